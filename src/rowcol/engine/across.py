"""A look at a wide X in C order: for some of its columns all of Xβ, Xᴴα, Xᴴr and ‖X_j‖², every number read once.

Four rows at a time, so that what belongs to a column (β_j, and the sums of Xᴴα, of Xᴴr and of squares) is loaded and
stored once for four numbers of X: that is at the memory's speed, where BLAS would read X twice, and the squares a
third time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ROWS = 256  # in a chain of a column's sums: a certificate's rounding term grows with the longest


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def across(a, start, stop, alpha, r, beta, pulled, image, slope, square):
    """pulled_i = Σ_j a_ij β_j over columns start, ..., stop-1; there Σ_i a_ij α_i, Σ_i a_ij r_i and Σ_i a_ij².

    Parameters
    ----------
    a : (n, p) float64
    alpha, r, pulled : (n,)
    beta, image, slope, square : (p,)
        What is there of pulled, image, slope and square is added to.
    """
    n, width, b = a.shape[0], stop - start, beta[start:stop]
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        im, sl, sq = np.zeros(width), np.zeros(width), np.zeros(width)
        whole = last - (last - first) % 4
        for i in range(first, whole, 4):
            r0, r1, r2, r3 = a[i, start:stop], a[i + 1, start:stop], a[i + 2, start:stop], a[i + 3, start:stop]
            c0, c1, c2, c3 = alpha[i], alpha[i + 1], alpha[i + 2], alpha[i + 3]
            d0, d1, d2, d3 = r[i], r[i + 1], r[i + 2], r[i + 3]
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(width):
                t0 += r0[j] * b[j]
                t1 += r1[j] * b[j]
                t2 += r2[j] * b[j]
                t3 += r3[j] * b[j]
                im[j] += (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j])
                sl[j] += (d0 * r0[j] + d1 * r1[j]) + (d2 * r2[j] + d3 * r3[j])
                sq[j] += (r0[j] * r0[j] + r1[j] * r1[j]) + (r2[j] * r2[j] + r3[j] * r3[j])
            pulled[i] += t0
            pulled[i + 1] += t1
            pulled[i + 2] += t2
            pulled[i + 3] += t3
        for i in range(whole, last):
            r0, c0, d0, t0 = a[i, start:stop], alpha[i], r[i], 0.0
            for j in range(width):
                t0 += r0[j] * b[j]
                im[j] += c0 * r0[j]
                sl[j] += d0 * r0[j]
                sq[j] += r0[j] * r0[j]
            pulled[i] += t0
        image[start:stop] += im
        slope[start:stop] += sl
        square[start:stop] += sq

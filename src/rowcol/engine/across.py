"""Looks across the lines of X, every number read once: at a wide X in C order, and at a tall X in F order.

Eight lines at a time, so that what belongs to a place on them (of a wide X β_j, and the sums of Xᴴα, of Xᴴr and of
squares; of a tall one r_i) is loaded and stored once for eight numbers of X: that is near the memory's speed, where
BLAS would read X twice, and the squares a third time. Four lines at a time took a quarter longer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ROWS = 256  # in a chain of a column's sums: a certificate's rounding term grows with the longest
PLACES = 2048  # of a tall X: so much of every column is in cache when it comes again; 1024 took an eighth longer


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
        whole = last - (last - first) % 8
        for i in range(first, whole, 8):
            r0, r1, r2, r3 = a[i, start:stop], a[i + 1, start:stop], a[i + 2, start:stop], a[i + 3, start:stop]
            r4, r5, r6, r7 = a[i + 4, start:stop], a[i + 5, start:stop], a[i + 6, start:stop], a[i + 7, start:stop]
            c0, c1, c2, c3 = alpha[i], alpha[i + 1], alpha[i + 2], alpha[i + 3]
            c4, c5, c6, c7 = alpha[i + 4], alpha[i + 5], alpha[i + 6], alpha[i + 7]
            d0, d1, d2, d3 = r[i], r[i + 1], r[i + 2], r[i + 3]
            d4, d5, d6, d7 = r[i + 4], r[i + 5], r[i + 6], r[i + 7]
            t0, t1, t2, t3, t4, t5, t6, t7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(width):
                x0, x1, x2, x3, x4, x5, x6, x7 = r0[j], r1[j], r2[j], r3[j], r4[j], r5[j], r6[j], r7[j]
                t0 += x0 * b[j]
                t1 += x1 * b[j]
                t2 += x2 * b[j]
                t3 += x3 * b[j]
                t4 += x4 * b[j]
                t5 += x5 * b[j]
                t6 += x6 * b[j]
                t7 += x7 * b[j]
                im[j] += ((c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)) + ((c4 * x4 + c5 * x5) + (c6 * x6 + c7 * x7))
                sl[j] += ((d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3)) + ((d4 * x4 + d5 * x5) + (d6 * x6 + d7 * x7))
                sq[j] += ((x0 * x0 + x1 * x1) + (x2 * x2 + x3 * x3)) + ((x4 * x4 + x5 * x5) + (x6 * x6 + x7 * x7))
            pulled[i] += t0
            pulled[i + 1] += t1
            pulled[i + 2] += t2
            pulled[i + 3] += t3
            pulled[i + 4] += t4
            pulled[i + 5] += t5
            pulled[i + 6] += t6
            pulled[i + 7] += t7
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def down(a, start, stop, beta, r, slope):
    """r_i −= Σ_j a_ji β_j for i = start, ..., stop-1, and then Σ_i a_ji r_i over these, which is added to slope_j.

    Parameters
    ----------
    a : (p, n) float64
        A column of X in each row.
    r : (n,)
    beta, slope : (p,)
    """
    p = a.shape[0]
    eights, fours = p - p % 8, p - p % 4
    for first in range(start, stop, PLACES):
        last = min(first + PLACES, stop)
        s, width = r[first:last], last - first
        for j in range(0, eights, 8):
            c0, c1, c2, c3 = a[j, first:last], a[j + 1, first:last], a[j + 2, first:last], a[j + 3, first:last]
            c4, c5, c6, c7 = a[j + 4, first:last], a[j + 5, first:last], a[j + 6, first:last], a[j + 7, first:last]
            b0, b1, b2, b3 = beta[j], beta[j + 1], beta[j + 2], beta[j + 3]
            b4, b5, b6, b7 = beta[j + 4], beta[j + 5], beta[j + 6], beta[j + 7]
            for i in range(width):
                some = (b0 * c0[i] + b1 * c1[i]) + (b2 * c2[i] + b3 * c3[i])
                s[i] -= some + ((b4 * c4[i] + b5 * c5[i]) + (b6 * c6[i] + b7 * c7[i]))
        for j in range(eights, fours, 4):
            c0, c1, c2, c3 = a[j, first:last], a[j + 1, first:last], a[j + 2, first:last], a[j + 3, first:last]
            b0, b1, b2, b3 = beta[j], beta[j + 1], beta[j + 2], beta[j + 3]
            for i in range(width):
                s[i] -= (b0 * c0[i] + b1 * c1[i]) + (b2 * c2[i] + b3 * c3[i])
        for j in range(fours, p):
            c0, b0 = a[j, first:last], beta[j]
            for i in range(width):
                s[i] -= b0 * c0[i]
        for j in range(fours, p):
            c0, t0 = a[j, first:last], 0.0
            for i in range(width):
                t0 += c0[i] * s[i]
            slope[j] += t0
        for j in range(eights, fours, 4):
            c0, c1, c2, c3 = a[j, first:last], a[j + 1, first:last], a[j + 2, first:last], a[j + 3, first:last]
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for i in range(width):
                t0 += c0[i] * s[i]
                t1 += c1[i] * s[i]
                t2 += c2[i] * s[i]
                t3 += c3[i] * s[i]
            slope[j] += t0
            slope[j + 1] += t1
            slope[j + 2] += t2
            slope[j + 3] += t3
        for j in range(eights - 8, -1, -8):  # backwards: the lines that came last are in the nearest cache
            c0, c1, c2, c3 = a[j, first:last], a[j + 1, first:last], a[j + 2, first:last], a[j + 3, first:last]
            c4, c5, c6, c7 = a[j + 4, first:last], a[j + 5, first:last], a[j + 6, first:last], a[j + 7, first:last]
            t0, t1, t2, t3, t4, t5, t6, t7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(width):
                t0 += c0[i] * s[i]
                t1 += c1[i] * s[i]
                t2 += c2[i] * s[i]
                t3 += c3[i] * s[i]
                t4 += c4[i] * s[i]
                t5 += c5[i] * s[i]
                t6 += c6[i] * s[i]
                t7 += c7[i] * s[i]
            slope[j] += t0
            slope[j + 1] += t1
            slope[j + 2] += t2
            slope[j + 3] += t3
            slope[j + 4] += t4
            slope[j + 5] += t5
            slope[j + 6] += t6
            slope[j + 7] += t7

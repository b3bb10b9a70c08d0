"""Is a certificate true? Measured again by mpmath with as many digits as it takes: a second opinion beside honest.py.

Numbers are taken as they are stored, sums of products are exact, and what has to be divided keeps a hundred digits or
more. So nothing here is a matter of scale or of condition: Hilbert's matrix, and rows that differ by 1e300, are as good
as any.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from mpmath import mp

from rowcol import Status

UNIT = 2.0**-53
SLACK = 1 + 1e-12  # for norms and quotients of double precision
PAIRS = 60  # terms that sums in pairs add to a chain


class Exact(NamedTuple):
    """The system, weighted sums over its rows, and the answer where there is only one; arrays of mpmath's numbers."""

    A: np.ndarray  # (n, p) less its means where there is an intercept
    b: np.ndarray  # (n, q)
    w: np.ndarray  # (n,)
    alpha: object
    beta: np.ndarray | None  # (p, q) with a penalty
    columns: np.ndarray  # (p,) ‖W^½A_j‖
    raw: np.ndarray  # (p,) the same of X as it is stored
    raw_y: np.ndarray  # (q,) ‖W^½y‖ as it is stored
    means: tuple  # of the columns, and of y


def lifted(a):
    """An array as mpmath's numbers."""
    a = np.asarray(a)
    if np.iscomplexobj(a):
        return np.array([mp.mpc(float(z.real), float(z.imag)) for z in a.ravel()], object).reshape(a.shape)
    return np.array([mp.mpf(float(z)) for z in a.ravel()], object).reshape(a.shape)


def conj(a):
    return np.array([mp.conj(z) for z in a.ravel()], object).reshape(a.shape)


def size2(a):
    return np.array([z.real**2 + z.imag**2 for z in a.ravel()], object).reshape(a.shape)


def norm(a, w=1):
    """√Σ w|a|², over the first axis."""
    total = (size2(a).T * w).T.sum(axis=0)
    return np.array([mp.sqrt(z) for z in total], object) if np.ndim(total) else mp.sqrt(total)


def bits_for(*arrays):
    """Bits of precision: six times the range of the exponents, which no product of three, nor a quotient, exceeds."""
    sizes = np.concatenate([np.abs(np.asarray(a, complex)).ravel() for a in arrays])
    e = np.frexp(sizes[sizes > 0])[1]
    return 400 + 6 * (int(e.max()) - int(e.min()) if e.size else 0)


def solved(H, B):
    """H⁻¹B for a Hermitian positive definite H."""
    H, B = H.copy(), B.copy()
    for k in range(len(H)):
        for i in range(k + 1, len(H)):
            if H[i, k] != 0:
                factor = H[i, k] / H[k, k]
                H[i, k:] = H[i, k:] - factor * H[k, k:]
                B[i] = B[i] - factor * B[k]
    for k in reversed(range(len(H))):
        B[k] = (B[k] - H[k, k + 1 :] @ B[k + 1 :]) / H[k, k] if k + 1 < len(H) else B[k] / H[k, k]
    return B


def exact(X, y, alpha, weight, intercept):
    """The system with all its digits; to be called, and used, under `mp.workprec`."""
    A, b = lifted(X.toarray() if sp.issparse(X) else X), lifted(np.reshape(y, (len(y), -1)))
    w = lifted(np.ones(len(A)) if weight is None else weight)
    raw, raw_y, means = norm(A, w), norm(b, w), (0 * A[0], 0 * b[0])
    if intercept:
        means = (w @ A) / w.sum(), (w @ b) / w.sum()
        A, b = A - means[0], b - means[1]
    lam, beta = mp.mpf(float(alpha)), None
    if alpha > 0:
        H = conj(A).T @ (A * w[:, None])
        H[np.arange(len(H)), np.arange(len(H))] += lam
        beta = solved(H, conj(A).T @ (b * w[:, None]))
    return Exact(A, b, w, lam, beta, norm(A, w), raw, raw_y, means)


def measured(truth, x, dual, i):
    """Of one answer: ‖ρ‖, ‖g‖, the largest angle, √(2 gap), √(2(P − P*)), ‖x − β*‖."""
    A, b, w = truth.A, truth.b[:, i], truth.w
    rho = b - A @ x
    slope = conj(A).T @ (w * rho)
    gradient = slope - truth.alpha * x
    left = norm(rho, w)
    angles = [abs(g) / c for g, c in zip(slope, truth.columns, strict=True) if c > 0]
    found = {"residual": left, "gradient": norm(gradient), "angle": max(angles, default=mp.mpf(0)) / (left or 1)}
    if truth.beta is not None:
        soft = mp.sqrt(truth.alpha)
        found["gap"] = found["gradient"] / soft
        if dual is not None and not any(dual[w == 0]):
            inverse = np.array([1 / v if v else v for v in w], object)
            by_rows = norm(rho - truth.alpha * inverse * dual, w) ** 2 + truth.alpha * norm(x - conj(A).T @ dual) ** 2
            found["gap"] = min(found["gap"], mp.sqrt(by_rows))
        off = x - truth.beta[:, i]
        found["excess"] = mp.sqrt(norm(A @ off, w) ** 2 + truth.alpha * norm(off) ** 2)
        found["error"] = norm(off)
    return found


def near(claimed, true, off, what):
    """A norm as it is told: double precision may have no number for it."""
    top, least = np.finfo(float).max, mp.mpf(2) ** -1060
    if claimed == np.inf:
        assert true + off > top * (1 - 1e-9), f"{what} is told as infinite, and is {mp.nstr(true, 5)}"
        return
    assert abs(mp.mpf(float(claimed)) - true) <= off + least, f"{what} {claimed} is {mp.nstr(true, 17)}"


def full_rank(X, weight=None, intercept=False):
    """Is there but one least-squares solution? By fractions, so that nothing but zero is zero."""
    A = np.asarray(X)[np.ones(len(X), bool) if weight is None else weight > 0]
    A = np.hstack([np.ones((len(A), int(intercept))), A])
    if np.iscomplexobj(A):
        A = np.block([[A.real, -A.imag], [A.imag, A.real]])
    rows, p = [[Fraction(float(v)) for v in row] for row in A], A.shape[1]
    for k in range(p):
        first = next((row for row in rows if row[k]), None)
        if first is None:
            return False
        rows.remove(first)
        for row in rows:
            if row[k]:
                factor = row[k] / first[k]
                row[k:] = [a - factor * b for a, b in zip(row[k:], first[k:], strict=True)]
    return True


def certified(one, result):
    """Hold every certificate of a result to its word; returns how many there are, and how many are of successes."""
    dense = one.X.toarray() if sp.issparse(one.X) else one.X
    n, p = dense.shape
    x = np.reshape(result.x, (p, -1))
    dual = None if result.dual is None else np.reshape(result.dual, (n, -1))
    arrays = [dense, one.y, [one.alpha, 1.0], x, [] if one.weight is None else one.weight, [] if dual is None else dual]
    with mp.workprec(bits_for(*arrays)):
        truth = exact(one.X, one.y, one.alpha, one.weight, one.intercept)
        for i, (c, status) in enumerate(zip(result.certificates, result.statuses, strict=True)):
            a = None if dual is None else lifted(dual[:, i])
            single = np.finfo(result.x.dtype).eps / 2 if np.finfo(result.x.dtype).bits == 32 else 0.0
            _certificate(
                truth, measured(truth, lifted(x[:, i]), a, i), c, status, result.tol, x[:, i], i, single, a is not None
            )
            if one.intercept:
                _intercept(truth, one, np.ravel(result.intercept)[i], lifted(x[:, i]), i)
    if "unique" in result.solution:
        assert full_rank(dense, one.weight, one.intercept), "said to be unique"
    return len(result.certificates), sum(s is Status.CONVERGED for s in result.statuses)


def _certificate(truth, found, c, status, tol, x, i, single, known):
    (n, p), whole = truth.A.shape, norm(truth.b[:, i], truth.w)
    sizes = lifted(np.abs(x.astype(complex)).real)
    reach, raw_y = sizes @ truth.raw, truth.raw_y[i]
    # a sum of k terms is off by k·2⁻⁵³ at most; x may be stored in single precision, or in subnormal numbers
    tiny = float(np.finfo(x.dtype).smallest_subnormal) * sum(truth.raw)
    off = UNIT * (p + PAIRS) * (whole + raw_y + reach) + single * reach + tiny
    near(c.residual_norm, found["residual"], off + UNIT * (n + 6) * found["residual"], "residual norm")
    off = norm(truth.raw) * (off + UNIT * (n + PAIRS) * found["residual"]) + (4 * UNIT + single) * truth.alpha * norm(
        sizes
    )
    off += truth.alpha * tiny / (sum(truth.raw) or 1) * p
    near(c.gradient_norm, found["gradient"], off + UNIT * (p + 6) * found["gradient"], "gradient norm")
    value = (
        mp.mpf(c.value)
        + mp.mpf(2) ** -1060
        + (  # below which double precision has few numbers, or none
            mp.inf if c.storing == np.inf else mp.mpf(c.storing)
        )
    )
    told = {"residual": found["residual"] / (whole or 1), "gradient": found["angle"]}
    if truth.beta is not None:
        told["residual"] = told["gap"] = found["excess"] / (whole or 1)
        assert c.error_bound >= 0
        bound = mp.mpf(c.error_bound) if c.error_bound < np.inf else mp.inf
        assert found["error"] <= bound * SLACK, f"error {mp.nstr(found['error'], 5)}, bound {c.error_bound:.5e}"
        if c.storing == 0 and known:  # x and its dual are what was measured, to the bit
            gap = found["gap"] / (whole or 1)
            assert gap <= value * SLACK, f"gap {mp.nstr(gap, 9)}, told {c.value:.9e}"
    true = told[c.kind]
    assert true <= value * SLACK, f"{c.kind} is {mp.nstr(true, 9)}, told {c.value:.9e} + {c.storing:.3e}"
    if status is Status.CONVERGED:
        assert c.value <= tol
        allowed = tol + (value - c.value)
        met = min(told.values())
        assert met <= allowed * SLACK, f"{c.kind} {mp.nstr(met, 9)} is above tol {tol}"
    else:
        assert not c.value <= tol


def _intercept(truth, one, told, x, i):
    mean = truth.means[1][i] - truth.means[0] @ x
    n, p = truth.A.shape
    sizes = np.array([abs(z) for z in x], object)
    counted = [k for k in range(n) if truth.w[k] > 0]
    raw = lifted(np.abs((one.X.toarray() if sp.issparse(one.X) else one.X)[counted].astype(complex)).max(axis=0))
    top = lifted(np.abs(np.reshape(one.y, (n, -1))[counted, i].astype(complex)).max())
    off = UNIT * (n + p + PAIRS) * (top + sizes @ raw) + mp.mpf(2) ** -1060 * (1 + sizes.sum())
    told = mp.mpc(complex(told))
    assert abs(told - mean) <= off, f"intercept {told} is {mp.nstr(mean, 17)}"

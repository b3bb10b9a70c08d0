"""Is an answer what it says it is? Everything is measured again, in extended precision, by nothing of rowcol's.

Throughout A = W^½X and b = W^½y, so that weights need no second thought, and D holds the norms of A's columns.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from rowcol import ConvergenceWarning, Status

UNIT, FINE = 2.0**-53, np.finfo(np.longdouble).eps / 2
SLACK = 1 + 1e-9  # for norms and quotients, which rounded too


class Truth(NamedTuple):
    """The exact answer, with a bound on how far it is from that itself."""

    A: np.ndarray  # (n, p) longdouble
    b: np.ndarray  # (n, q)
    beta: np.ndarray | None  # (p, q) ridge, or the minimum-norm least-squares solution; None where ill determined
    doubt: np.ndarray | None  # (q,) ‖D(beta − exact)‖
    D: np.ndarray | None  # (p,) the units in which the distance to beta is measured
    values: np.ndarray  # singular values of A D⁻¹, those kept
    dropped: float  # the largest singular value taken as zero
    space: list  # reflectors of an orthonormal basis whose first len(values) vectors span the row space
    raw: tuple | None = None  # norms of A's columns, and of b's, before their means were taken off for an intercept


def norm(a):
    return np.sqrt((np.abs(a) ** 2).sum(axis=0))


def fine(a):
    a = a.toarray() if sp.issparse(a) else np.asarray(a)
    return a.astype(np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def reflect(A, steps):
    """Householder QR with column pivoting, in the precision of A: R, the reflectors, the order of the columns."""
    A, order, vectors = A.copy(), np.arange(A.shape[1]), []
    for k in range(steps):
        norms = norm(A[k:, k:])
        j = k + int(np.argmax(norms))
        A[:, [k, j]], order[[k, j]] = A[:, [j, k]], order[[j, k]]
        v, size = A[k:, k].copy(), norms[j - k]
        v[0] += size * (v[0] / abs(v[0]) if v[0] else 1)
        v /= norm(v) if size else 1
        A[k:, k:] -= 2 * np.outer(v, v.conj() @ A[k:, k:])
        vectors.append(v)
    return np.triu(A[:steps]), vectors, order


def turn(vectors, B, back=False):
    """Qᴴ B, or Q B."""
    B = B.copy()
    for k, v in reversed(list(enumerate(vectors))) if back else enumerate(vectors):
        B[k:] -= 2 * np.outer(v, v.conj() @ B[k:])
    return B


def substitute(R, B):
    """R⁻¹ B for upper triangular R."""
    X = B.copy()
    for k in reversed(range(len(R))):
        X[k] = (X[k] - R[k, k + 1 :] @ X[k + 1 :]) / R[k, k]
    return X


def shortest(A, rank):
    """What applies A⁺, taken to be of this rank, to b; and reflectors of its row space: two QR decompositions."""
    R, left, order = reflect(A, rank)
    T, right, swap = reflect(R.conj().T, rank)  # Rᴴ[:, swap] = Z T, so R⁺ c = Z T⁻ᴴ c[swap]
    lower = T[:rank].conj().T[::-1, ::-1]  # upper triangular once turned around

    def solve(b):
        c = turn(left, b)[:rank][swap]
        z = np.zeros((A.shape[1], b.shape[1]), A.dtype)
        z[:rank] = substitute(lower, c[::-1])[::-1]
        x = np.empty_like(z)
        x[order] = turn(right, z, back=True)
        return x

    return solve, [right, order]


def determined(A):
    """Units D, singular values of A D⁻¹ kept, and the largest dropped, where float64 data settle the rank; or None."""
    n, p = A.shape
    tiny = max(max(n, p) * 2 * UNIT, 1e-14)
    units = norm(A)
    if n >= p and units.all():  # the only solution is the same in any units: take the best
        s = np.linalg.svd((A / units).astype(complex if np.iscomplexobj(A) else float), compute_uv=False)
        if s[-1] >= 1e3 * tiny * s[0]:
            return units, s, 0.0
    s = np.linalg.svd(A.astype(complex if np.iscomplexobj(A) else float), compute_uv=False)
    rank = int((s > tiny * s[0]).sum())
    if rank == 0 or s[rank - 1] < 1e3 * tiny * s[0]:
        return None
    return np.ones(p, np.longdouble), s[:rank], float(s[rank]) if rank < len(s) else 0.0


def exact(X, y, alpha=0.0, weight=None, intercept=False):
    """The ridge solution, or the minimum-norm least-squares one where float64 data determine it."""
    w = np.asarray(np.ones(X.shape[0]) if weight is None else weight, np.longdouble)
    root, X, y = np.sqrt(w)[:, None], fine(X), fine(y).reshape(len(y), -1)
    raw = norm(root * X), norm(root * y)
    if intercept:
        X, y = (a - a[np.argmax(w)] for a in (X, y))  # so that no large mean costs any digits
        X, y = (a - w @ a / w.sum() for a in (X, y))
    A, b = root * X, root * y
    A, b = A.astype(np.result_type(A, b)), b.astype(np.result_type(A, b))
    n, p = A.shape
    if alpha == 0:
        known = determined(A)
        if known is None:
            return Truth(A, b, None, None, None, np.empty(0), 0.0, [], raw)
        D, values, dropped = known
        solve, space = shortest(A / D, len(values))
        z = solve(b)
        z += solve(b - A @ (z / D[:, None]))
        gradient = (A / D).conj().T @ (b - A @ (z / D[:, None]))
        doubt = norm(gradient) / values[-1] ** 2
        if dropped:  # then A is of this rank up to a change of size `dropped` only, which moves the answer so much
            doubt = dropped / values[-1] * (norm(z) + norm(b) / values[-1])
        return Truth(A, b, z / D[:, None], doubt, D, values, dropped, space, raw)
    soft = np.sqrt(np.longdouble(alpha))
    if n >= p:  # least squares on [A; √λ I]
        solve, space = shortest(np.vstack([A, soft * np.eye(p)]), p)
        beta = solve(np.vstack([b, np.zeros((p, b.shape[1]))]))
    else:  # minimum norm on [A, √λ I]
        solve, space = shortest(np.hstack([A, soft * np.eye(n)]), n)
        beta = solve(b)[:p]
    gradient, columns = norm(A.conj().T @ (b - A @ beta) - alpha * beta), norm(A)
    rounding = FINE * (n + p + 9) * (norm(columns) * (norm(b) + columns @ np.abs(beta)) + alpha * norm(beta))
    doubt = (gradient + rounding) * SLACK / np.longdouble(alpha)
    return Truth(A, b, beta, doubt, np.ones(p, np.longdouble), np.empty(0), 0.0, space, raw)


def sound(X, y, result, caught=()):
    """Is it a result at all: shapes, numbers, one status, and a warning, and no other, where it did not converge?"""
    assert np.shape(result.x) == (X.shape[1], *np.shape(y)[1:])
    assert np.isfinite(result.x).all()
    assert len(result.certificates) == len(result.statuses) == np.reshape(y, (len(y), -1)).shape[1]
    assert result.success == (result.status is Status.CONVERGED) == all(s is Status.CONVERGED for s in result.statuses)
    assert [w.category for w in caught] == ([] if result.success else [ConvergenceWarning]), [str(w) for w in caught]
    assert result.success != result.solution.startswith("not converged")
    return {result.status.name, f"solution: {result.solution.split(' (')[0]}"}


def check(X, y, result, tol, *, alpha=0.0, weight=None, intercept=False, caught=(), truth=None):
    """Hold a result to its word; returns what could be checked, as a set of words."""
    truth = exact(X, y, alpha, weight, intercept) if truth is None else truth
    done, raw = sound(X, y, result, caught), truth.raw or (norm(truth.A), norm(truth.b))
    x = fine(result.x).reshape(X.shape[1], -1)
    dual = None if result.dual is None else fine(result.dual).reshape(X.shape[0], -1)
    for i, (c, status) in enumerate(zip(result.certificates, result.statuses, strict=True)):
        best = None if truth.beta is None else truth.beta[:, i]
        one = truth._replace(b=truth.b[:, i], beta=best, raw=(raw[0], raw[1][i]))
        stored = np.finfo(result.x.dtype).eps / 2 if result.x.dtype.itemsize < (16 if x.dtype.kind == "c" else 8) else 0
        if alpha > 0:
            a = None if dual is None else dual[:, i]
            done |= _ridge(one, c, x[:, i], a, weight, alpha, tol, status, stored)
            error = norm(x[:, i] - truth.beta[:, i])
            assert error <= c.error_bound * SLACK + truth.doubt[i], f"error {error:.2e}, bound {c.error_bound:.2e}"
            done |= {"error bound"} if truth.doubt[i] < 0.1 * c.error_bound else set()
        else:
            done |= _least(one, c, x[:, i], tol, status, stored)
            if status is Status.CONVERGED and result.success and truth.beta is not None:
                far = 0.0 if dual is None else float(np.abs(dual[:, i]) @ norm(fine(X).T))
                done |= _distance(truth, result, i, x[:, i], tol, far)
    if result.success:
        _words(result, alpha, truth)
    return done


def _measured(truth, c, x, alpha, stored):
    """ρ, its norm and the gradient; the certificate's norms must agree within rounding."""
    A, b = truth.A, truth.b
    rho, columns = b - A @ x, norm(A)
    slope = A.conj().T @ rho
    raw, whole = truth.raw
    size, reach = norm(rho), np.abs(x) @ raw
    n, p = A.shape
    # A sum of k terms, in whatever order, is off by k·2⁻⁵³ at most, and so is each of its own terms by a few.
    off = (UNIT * (p + 6) + stored) * (whole + reach)
    assert abs(c.residual_norm - size) <= off + UNIT * (n + 6) * size, f"residual norm {c.residual_norm} is {size}"
    gradient = norm(slope - alpha * x)
    off_gradient = norm(raw) * (off + UNIT * (n + 6) * size) + (4 * UNIT + stored) * alpha * norm(x)
    assert abs(c.gradient_norm - gradient) <= off_gradient + UNIT * (p + 6) * gradient, "gradient norm"
    return rho, size, slope, columns


def _least(truth, c, x, tol, status, stored):
    _, size, slope, columns = _measured(truth, c, x, 0.0, stored)
    live, whole = columns > 0, norm(truth.b)
    angle = float(np.max(np.abs(slope[live]) / columns[live], initial=0.0) / size) if size else 0.0
    residual = float(size / whole) if whole else 0.0 if not size else np.inf
    assert c.error_bound is None
    assert c.kind in ("residual", "gradient")
    mine = residual if c.kind == "residual" else angle
    spare = c.storing + 2.0**-8 * c.rounding  # that rounding is of float64, ours is 2⁻¹¹ of it
    assert mine <= c.value * SLACK + spare, f"{c.kind} is {mine:.3e}, certificate {c.value:.3e}"
    assert c.value <= (mine + 2 * c.rounding * (1 + c.value) + c.storing) * SLACK, "the certificate is needlessly bad"
    if status is Status.CONVERGED:
        assert min(residual, angle) <= tol * SLACK + spare, f"residual {residual:.3e}, angle {angle:.3e}, tol {tol:.0e}"
    else:
        assert c.value > tol
    return {f"certificate: {c.kind}"}


def _ridge(truth, c, x, dual, weight, alpha, tol, status, stored):
    rho, _, slope, columns = _measured(truth, c, x, alpha, stored)
    soft, whole = np.sqrt(np.longdouble(alpha)), norm(truth.b)
    gap = norm(slope - alpha * x) / soft  # α = Wρ/λ
    spare = c.storing + 2.0**-8 * c.rounding
    if dual is not None:
        inverse = np.ones(len(rho)) if weight is None else np.divide(1.0, weight, where=weight > 0, out=0.0 * weight)
        root = np.sqrt(inverse.astype(np.longdouble))
        # α has to vanish with its weight, or the dual objective is −∞ there; A already carries one W^½
        assert not dual[inverse == 0].any(), "dual where the weight is zero"
        gap_dual = np.hypot(norm(rho - alpha * root * dual), soft * norm(x - truth.A.conj().T @ (root * dual)))
        gap = min(gap, gap_dual)
        # a dual stored in single precision moves the gap as well, which `storing` does not speak of
        spare += (stored + UNIT) * norm(root * dual) * np.hypot(alpha, soft * norm(columns)) / (whole or 1)
    if stored:  # then the dual that counted is that of β before it was stored, and what is left to say is P(β) − P(β*)
        gap = min(gap, np.hypot(norm(truth.A @ (x - truth.beta)), soft * norm(x - truth.beta)))
    value = float(gap / whole) if whole else 0.0 if not gap else np.inf
    assert c.kind == "gap" or not whole
    assert value <= c.value * SLACK + spare, f"√(2 gap)/‖y‖ is {value:.3e}, certificate {c.value:.3e}"
    if status is Status.CONVERGED:
        assert value <= tol * SLACK + spare, f"√(2 gap)/‖y‖ is {value:.3e}, tol {tol:.0e}"
    else:
        assert c.value > tol
    return {f"certificate: {c.kind}"}


def _distance(truth, result, i, x, tol, far):
    """The distance to the only, or to the shortest, least-squares solution, against what tol implies.

    With B = A D⁻¹ of rank r, e = D(β − β*) in B's row space and P on its range: B e = −Pρ, and Bᴴρ = −BᴴB e. So
    ‖e‖ ≤ ‖ρ‖/σ_r ≤ tol‖b‖/σ_r, or ‖e‖ ≤ ‖Bᴴρ‖/σ_r² ≤ tol‖B‖_F‖ρ‖/σ_r². What is outside the row space adds to it.
    `far` is Σ|α_i|‖X_i‖, where β = Xᴴα was summed.
    """
    c, (n, p), rank = result.certificates[i], truth.A.shape, len(truth.values)
    stated = re.search(r"rank (\d+)", result.solution)
    if stated and int(stated[1]) != rank:  # said, not silent; but what was dropped must be small, as was said
        s = np.linalg.svd(truth.A.astype(complex), compute_uv=False)
        below = re.search(r"below ([\d.e+-]+)", result.solution)
        assert below, f"rank {rank}, but the answer is {result.solution}"
        assert s[int(stated[1]) :].max(initial=0.0) <= float(below[1]) * s[0] * SLACK, result.solution
        return {"another rank"}
    if rank < p and "minimum" not in result.solution:
        return set()
    z, best = truth.D * x, truth.D * truth.beta[:, i]
    last, rho = truth.values[-1], norm(truth.b[:, i] - truth.A @ x)
    limit = tol + c.storing
    if c.kind == "residual":
        bound = limit * norm(truth.b[:, i]) / last
    else:
        bound = limit * norm(norm(truth.A / truth.D)) * rho / last**2
    stored = np.finfo(result.x.dtype).eps
    condition = truth.values[0] / last
    # Rounding at every step, or (in one go) a change of A in its last bit, takes β out of the row space by
    astray = (stored + 2 * UNIT * (result.steps + 10 * (n + p) * condition)) * norm(z)
    astray += 10 * truth.dropped / last * norm(z) + 2 * UNIT * (n + p + 10) * far * np.max(truth.D)
    if rank < p:
        right, order = truth.space
        outside = norm(turn(right, z[order][:, None])[rank:])[0]
        assert outside <= astray, f"{outside:.2e} of {norm(z):.2e} is outside the row space, rounding {astray:.2e}"
    bound = bound * 1.01 + astray + 10 * truth.doubt[i]  # σ_r has an error of its own
    error = norm(z - best)
    assert error <= bound, f"distance to the solution {error:.3e}, bound {bound:.3e}, size {norm(best):.3e}"
    name = "the only solution" if rank == p else "shortest solution"
    return {name + (", sharply" if bound <= 0.1 * norm(best) else ", loosely")}


def _words(result, alpha, truth):
    """No more is claimed than holds."""
    n, p = truth.A.shape
    kinds = {c.kind for c in result.certificates}
    said = result.solution
    if alpha > 0:
        assert said.startswith("ridge")
        return
    assert "ridge" not in said
    assert "least squares" in said or "gradient" not in kinds, f"{said}, certificates {kinds}"
    if "one of many" in said:
        assert p > n or (truth.beta is not None and len(truth.values) < p), said
    if "unique" in said:
        zero = truth.beta is not None and truth.dropped <= max(n, p) * 2 * UNIT * truth.values[0]
        assert not zero or len(truth.values) == p, said

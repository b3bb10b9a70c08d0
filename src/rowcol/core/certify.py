"""How good is it? One exact pass in float64 over the data says, whatever method made β.

With ρ = y − Xβ, weights W and P(β) = ½‖W^½ρ‖² + ½λ‖β‖²:

- λ > 0. For any α the duality gap is P(β) − D(α) = ½‖W^½(ρ − λW⁻¹α)‖² + ½λ‖β − Xᴴα‖². The α a row method keeps is
  tried, and α = Wρ/λ, for which it is ‖XᴴWρ − λβ‖²/(2λ); the better one counts. ‖β − β*‖ is bounded by
  ‖XᴴWρ − λβ‖/λ and, on rows, by ‖W^½(ρ − λW⁻¹α)‖/(2√λ) + ‖β − Xᴴα‖.
- λ = 0. Consistent: ‖W^½ρ‖ ≤ tol ‖W^½y‖. Otherwise: max_j |X_jᴴWρ| / (‖W^½X_j‖‖W^½ρ‖) ≤ tol, column by column, so
  that bad scaling cannot hide. Either suffices.

- Within bounds l ≤ β ≤ h, with g = XᴴWρ − λβ. λ > 0: the dual function takes up the box, and with α = Wρ/λ the gap is
  Σ_j max_t (g_j t − ½λt²) over t in [l_j − β_j, h_j − β_j]: each term is what β_j alone could still gain, at most
  g_j²/(2λ), and nothing at a bound g_j points out of. P is λ-strongly convex, so ½λ‖β − β*‖² ≤ P(β) − P(β*) ≤ gap.
  √(2·term) moves by no more than 1/√λ times what g_j does, so rounding counts as it does without bounds. λ = 0: as
  above, with max(g_j, 0) for g_j where β_j = l_j, min(g_j, 0) where β_j = h_j, and nothing where both: equal, bit for
  bit, and no less.

- A kernel matrix K in place of XXᴴ. With r = y − (K + λW⁻¹)α the gap is ½‖W^½r‖², and ‖f − f*‖ ≤ ‖W^½r‖/(2√λ) in the
  norm of the kernel's own space: so |f(x) − f*(x)| is at most √k(x, x) times that, at every x.

An operator does not show its columns: there ‖X_j‖ is taken as ‖X‖₂/√p, from a lower bound on ‖X‖₂, which makes the
value too large rather than too small, but lets a badly scaled column hide.

All of it carries the rounding error of this very pass: k·2⁻⁵³ for a sum of k terms, with the sums cut into blocks
so that k stays small.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .explain import explain_values, tallest_of
from .gram import Gram, product
from .norms import Lengths, lengths, norm
from .passes import Products, longest, misfit_pass
from .problem import Problem, scaled_bounds
from .products import back, less_tilt, lowered, raised, times
from .sizes import sizes2
from .sums import norms_there, stays, sums, sums_there

UNIT = 2.0**-53
ONE = 1.0  # the weight of every row, unless given
PAIRS = 48  # terms in the longest chain of a sum in pairs: NumPy's are of 16, then of halves


class Certificate(NamedTuple):
    """What was measured on one answer.

    Attributes
    ----------
    kind : str
        "residual", "gradient" or "gap": which of the conditions `value` measures.
    value : float
        To be compared with `tol`. It includes `rounding`.
    rounding : float
        The part of `value` that bounds the rounding errors of the pass that measured it.
    storing : float
        What storing the answer in its own precision can add to `value`: zero unless that is single precision, or some
        of its numbers are nearly too small for any.
    residual_norm : float
        ‖W^½(y − Xβ)‖.
    gradient_norm : float
        ‖XᴴW(y − Xβ) − λβ‖, within bounds without what points out of them; NaN where the residual alone was measured,
        which is enough if it vanishes.
    error_bound : float or None
        A bound on ‖β − β*‖, storing included, where one exists (λ > 0).
    exhausted : bool
        True if little but rounding errors is left of one of the conditions: more steps will not help.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> certificate = rowcol.solve(np.eye(3), np.ones(3), alpha=1.0, random_state=0).certificate
    >>> certificate.kind, certificate.error_bound < 1e-6
    ('gap', True)
    """

    kind: str
    value: float
    rounding: float
    storing: float
    residual_norm: float
    gradient_norm: float
    error_bound: float | None
    exhausted: bool


class Evidence(NamedTuple):
    """The certificates of several right-hand sides, and what the pass computed on the way."""

    certificates: list[Certificate]
    residual: Any  # (q, n) ρ; None where it `stays` with parts of X
    slope: np.ndarray  # (q, p) XᴴWρ
    image: np.ndarray | None  # (q, p) Xᴴα, where α was given and is needed
    column2: np.ndarray  # (p,) ‖W^½X_j‖²
    left: np.ndarray  # (q,) ‖W^½ρ‖


def certify_residual(problem: Problem, by: Products, beta: np.ndarray, ids: np.ndarray, tol: float) -> Evidence | None:
    """Half a look, without the gradient: enough where every residual vanishes (λ = 0). None where one does not."""
    if by.side != "rows" or problem.weight is not None or problem.alpha > 0 or by.shift is not None:
        return None
    y = _chosen(problem, ids)
    rho, reach = misfit_pass(by, y, beta)
    certificates, lefts = [], np.array([norm(one) for one in rho])
    for q, i in enumerate(ids):
        scale, size, left = float(problem.scale[i]), norm(y[q]), float(lefts[q])
        grain = _grain(problem, beta[q], scale)
        if grain > UNIT:  # then it takes norms of columns to say what storing does
            return None
        d_rho, s_rho = UNIT * (longest(by.lines) + 3) * (size + reach[q]), (_stored(problem) + grain) * reach[q]
        value, rounding, storing = (float(v) / max(size, 1e-300) for v in (left + d_rho, d_rho, s_rho))
        if not value + storing <= tol:  # False for NaN too
            return None
        exhausted = bool(left <= 3 * d_rho)
        certificates.append(Certificate("residual", value, rounding, storing, left * scale, math.nan, None, exhausted))
    return Evidence(certificates, rho, np.empty((len(ids), 0)), None, np.empty(0), lefts)


def _chosen(problem: Problem, ids: np.ndarray) -> np.ndarray:
    """The right-hand sides `ids`; no copy where that is all of them, as they are."""
    return problem.y if np.array_equal(ids, np.arange(len(problem.y))) else np.ascontiguousarray(problem.y[ids])


def _stored(problem: Problem) -> float:
    """The relative error of storing β in the precision of the answer."""
    return float(np.finfo(problem.dtype).eps) / 2 if problem.dtype.itemsize < problem.y.dtype.itemsize else 0.0


def _faint(problem: Problem, beta: np.ndarray, scale: float) -> np.ndarray:
    """What storing can move each β_j by that may be stored as a subnormal number, where a column may be large."""
    tiny = float(np.finfo(problem.dtype).smallest_subnormal) / scale
    return np.where((beta != 0) & (np.abs(beta) * UNIT**2 < tiny), tiny, 0.0)


def _grain(problem: Problem, beta: np.ndarray, scale: float) -> float:
    """By how much storing subnormal numbers can move Xβ, against ‖|X||β|‖, which is no less than any |β_j|‖X_j‖."""
    faint = _faint(problem, beta, scale)
    return len(beta) * float(np.max(np.divide(faint, np.abs(beta), out=np.zeros_like(faint), where=faint > 0)))


def certify(
    problem: Problem,
    by: Products,
    beta: np.ndarray,
    alpha: Any,
    ids: np.ndarray,
    column2: np.ndarray,
    expected: np.ndarray | None = None,
) -> Evidence:
    """Measure the answers β (and α, where a row method keeps it, here or `Afar`) for the right-hand sides `ids`.

    `column2` holds the squared column norms: if negative they are filled in on the way, once for a whole solve.
    `expected` is what a method takes ρ to be, so that its slope can be summed before ρ is known: it is only believed as
    far as the ρ summed here agrees, and what they differ by counts as a rounding error.
    """
    if isinstance(problem.X, Gram):
        return _certify_kernel(problem, problem.X, beta, ids, column2)
    if hasattr(problem.X, "certify"):  # features of a kernel, which know what rounding does to them
        found = problem.X.certify(problem, _chosen(problem, ids), beta, ids, column2)
        own = [_in_users_units(c, float(problem.scale[i]), problem.gauge) for c, i in zip(found.certificates, ids)]
        return found._replace(certificates=own)
    p = problem.X.shape[1]
    y = _chosen(problem, ids)
    if problem.shift is not None and problem.shift.live is not None and problem.bounds is None:
        beta = beta * problem.shift.live  # as in the answer, whatever steps have left in constant columns
    w = ONE if problem.weight is None else problem.weight
    known, many = bool((column2 >= 0).all()), len(ids)
    lams = np.full(many, problem.alpha) if problem.each is None else problem.each[ids]
    assert by.shift is None or problem.weight is None, "weights scale X before its means are taken off"
    # an operator's own products take the shift off; sums over what is stored leave it to us
    stored_lines = by.shift is not None and by.side != "operator"
    dual = alpha if problem.alpha > 0 else None
    squares = by.shift is None and not known
    if by.side == "place":
        found = sums_there(by, problem.y, ids, beta, problem.weight, dual, lams, squares)
    else:
        up = raised(by, y, beta) if stored_lines else y
        found = sums(by, up, beta, problem.weight, dual, squares, expected)
    rho, slope, image, (terms_rho, terms_slope) = found.rho, found.slope, found.image, found.terms
    sizes = found.lengths or lengths(rho, problem.weight, dual, lams)
    if stored_lines:
        slope = lowered(by, found.of, slope) if found.tilt is None else less_tilt(by, found.tilt, slope)
        image = None if image is None or dual is None else lowered(by, dual, image)
    if not known and by.side == "operator":
        column2[:] = _largest(by, np.vstack([y, rho])) ** 2 / p
    elif not known:
        column2[:] = found.squares if by.shift is None else by.shift.column2
    column = raw = np.sqrt(column2)
    if by.shift is not None:
        # what is subtracted has rounding errors of its own, of x̄ᵀβ and of a sum in pairs, as large as X is uncentred
        raw = np.sqrt(column2 + (by.shift.ones @ by.shift.ones) * np.abs(by.shift.mean) ** 2)
        terms_rho, terms_slope = terms_rho + PAIRS, terms_slope + PAIRS
    _check_column_norms(problem, column2)
    certificates, box = [], scaled_bounds(problem)
    for q in range(many):
        size = Lengths(*(one[q] for one in sizes))
        # three more: the subtraction from y, the weight and the product of two rounded numbers
        units = UNIT * (terms_rho + 3), UNIT * (terms_slope + 3)
        scale = float(problem.scale[ids[q]])
        lam, back_q = float(lams[q]), None if image is None else image[q]
        sides = None if box is None else box[:, ids[q]] - beta[q]
        apart = 0.0 if found.of is rho else norm(rho[q] - found.of[q])
        one = _one(problem, lam, y[q], w, beta[q], size, slope[q], column, raw, back_q, units, scale, sides, apart)
        if not math.isfinite(one.residual_norm + one.gradient_norm) or math.isnan(one.value):
            raise ValueError(explain_values(problem.X))
        certificates.append(_in_users_units(one, scale, problem.gauge))
    return Evidence(certificates, rho, slope, image, column2, sizes.rho)


def weight_of(problem: Problem, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights of a right-hand side, and their inverses; both zero at points that do not count for it."""
    if problem.weight is None:
        return np.ones(problem.X.shape[0]), np.ones(problem.X.shape[0])
    w = problem.weight if problem.weight.ndim == 1 else problem.weight[i]
    return w, np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)


def _certify_kernel(problem: Problem, g: Gram, alpha: np.ndarray, ids: np.ndarray, column2: np.ndarray) -> Evidence:
    """Measure the coefficients α of functions Σ_i α_i k(x_i, ·): `column2` is filled with k(x_i, x_i)."""
    y, lam = _chosen(problem, ids), problem.alpha
    rho = y - product(g, alpha)
    if not (column2 >= 0).all():
        column2[:] = sizes2(g)
    sizes, certificates, lefts = np.sqrt(column2), [], []
    # |δK_ij| ≤ error √(k_ii k_jj), and a sum of a tile's width, then of as many tiles
    unit = g.error + UNIT * (g.chain + 3)
    for q, i in enumerate(ids):
        w, inverse = weight_of(problem, int(i))
        root = np.sqrt(w)
        reach = norm(root * sizes)
        size, scale = norm(root * y[q]), float(problem.scale[i])
        left = norm(root * (rho[q] - lam * inverse * alpha[q]))
        d_left = unit * reach * float(np.abs(alpha[q]) @ sizes) + 3 * UNIT * (
            size + lam * norm(np.sqrt(inverse) * alpha[q])
        )
        if not math.isfinite(left + d_left):
            raise ValueError("the numbers met on the way leave float64: rescale X, y, alpha or sample_weight")
        bound = (left + d_left) / (2 * math.sqrt(lam)) if g.kernel.definite else None
        value, rounding = (left + d_left) / max(size, 1e-300), d_left / max(size, 1e-300)
        if bound is not None and float(alpha[q] @ (y[q] - rho[q])) < -unit * float(np.abs(alpha[q]) @ sizes) ** 2:
            bound = None  # αᵀKα < 0: K is not positive definite, whatever was said of it
        lefts.append(norm(root * rho[q]))
        one = Certificate("gap", value, rounding, 0.0, lefts[-1], math.nan, bound, left <= 3 * d_left)
        certificates.append(_in_users_units(one, scale, problem.gauge))
    return Evidence(certificates, rho, np.zeros((len(ids), 0)), None, column2, np.array(lefts))


def _in_users_units(c: Certificate, scale: float, gauge: float) -> Certificate:
    """Norms as the user would measure them: both are powers of two, and no step on the way may leave float64."""
    bound = c.error_bound
    if bound is not None and bound > 0:
        bound = max(bound * scale, math.ulp(0.0))  # no bound but that of zero is zero
    of_y, of_w = math.frexp(scale)[1] - 1, math.frexp(gauge)[1] - 1
    with np.errstate(over="ignore", under="ignore"):
        residual = float(np.ldexp(c.residual_norm, of_y + of_w // 2))
        gradient = float(np.ldexp(c.gradient_norm, of_y + of_w))
    return c._replace(residual_norm=residual, gradient_norm=gradient, error_bound=bound)


def _largest(by: Products, y: np.ndarray) -> float:
    """‖X‖₂ from below, by a few products with what is at hand: an operator does not show its columns."""
    v = np.vstack([back(by, y), np.random.default_rng(0).standard_normal((1, by.shape[1])).astype(y.dtype)])
    v = v / np.maximum(np.linalg.norm(v, axis=1), 1e-300)[:, None]
    seen = np.linalg.norm(times(by, v), axis=1)
    v, size = v[[int(np.argmax(seen))]], 0.0
    for _ in range(2):
        if not 0.0 < norm(v) < math.inf:
            break
        u = times(by, v / norm(v))
        size, v = norm(u), back(by, u)
    return size


def _check_column_norms(problem: Problem, column2: np.ndarray) -> None:
    if not np.isfinite(column2).all():
        raise ValueError(explain_values(problem.X))
    small = column2 < 1e-280
    if problem.shift is not None and problem.shift.live is not None:
        small &= problem.shift.live > 0  # constant columns are nothing, and known to be
    if small.any() and problem.weight is None and sp.issparse(problem.X):
        tall = np.abs(problem.X.data)
        if not ((tall > 0) & (tall < 1e-139)).any():  # those are columns of zeros: words that no text has
            return
    faint = np.flatnonzero(small)
    if faint.size and not isinstance(problem.X, LinearOperator):
        tallest = tallest_of(problem.X, faint, problem.weight)
        if tallest.any():
            j = int(faint[np.argmax(tallest > 0)])
            raise ValueError(f"column {j} of X is so small that its squares leave float64: rescale it")


def _one(
    problem: Problem,
    lam: float,
    y: np.ndarray,
    w: Any,
    beta: np.ndarray,
    size: Lengths,  # of this right-hand side
    slope: np.ndarray,
    column: np.ndarray,
    raw: np.ndarray,
    image: np.ndarray | None,  # Xᴴα
    units: tuple[float, float],
    scale_of_y: float,
    sides: np.ndarray | None,  # (2, p) how far β may still go, down and up
    apart: float,  # ‖ρ − ρ'‖, where the slope is that of ρ'
) -> Certificate:
    y_norm, rho_norm = norm(y if problem.weight is None else np.sqrt(w) * y), float(size.rho)
    beta_norm = norm(beta)
    # Rounding: ‖W^½ δρ‖ ≤ u(‖y‖ + Σ|β_j|‖X_j‖), then |δ(X_jᴴWρ)| ≤ ‖X_j‖(‖W^½ δρ‖ + u'‖ρ‖). Sums are over X as it is
    # stored, with `raw` column norms; they give (X_j − u x̄_j)ᴴρ, so that δρ is seen by the centred `column` only.
    reach = float(np.abs(beta) @ raw)
    d_rho = units[0] * (y_norm + reach)
    d_sum, d_slope = units[1] * (rho_norm + apart), d_rho + apart * (1 + 3 * UNIT)
    # Storing β in single precision moves ρ by at most this, and β itself by at most d_beta.
    stored, faint = _stored(problem), _faint(problem, beta, scale_of_y)
    s_rho, d_beta = stored * reach + float(faint @ raw), stored * beta_norm + norm(faint)
    gradient = slope - lam * beta
    if sides is not None:
        gradient, slope = _followed(gradient, sides), _followed(slope, sides)
    gradient_norm = steep = norm(gradient)
    scale = y_norm if y_norm > 0 else reach
    if scale == 0.0:  # y = 0 and β = 0
        return Certificate("residual", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 if lam > 0 else None, True)
    if lam > 0:
        soft = math.sqrt(lam)
        d_gradient = d_slope * norm(column) + d_sum * norm(raw) + 2 * UNIT * lam * beta_norm
        if sides is not None:
            step = np.clip(gradient / lam, *sides)
            steep = math.sqrt(lam * float(step @ (2 * gradient - lam * step)))  # √(2λ gap): ‖g‖, if no side is met
            # stored, β_j may move away from a side it is near, but not at
            loose = 2 * stored * float(np.abs(gradient * beta)[step != gradient / lam].sum())
            s_rho = math.sqrt(s_rho**2 + loose)
        gap, rounding = (steep + d_gradient) / soft, d_gradient / soft
        error = (steep + d_gradient) / lam
        exhausted = gap <= 4 * rounding
        if image is not None:
            alpha_norm, r, off = float(size.alpha), float(size.left), norm(beta - image)
            d_r, d_off = d_rho + 2 * UNIT * lam * alpha_norm, units[1] * norm(raw) * alpha_norm
            error = min(error, (r + d_r) / (2 * soft) + off + d_off)
            by_rows = math.hypot(r + d_r, soft * (off + d_off))
            if by_rows < gap:
                gap, rounding = by_rows, math.hypot(d_r, soft * d_off)
        storing = math.hypot(s_rho, soft * d_beta)
        exhausted = exhausted or gap <= 4 * rounding
        gap, rounding, storing = gap / scale, rounding / scale, storing / scale
        error += d_beta + math.ulp(0.0)
        return Certificate("gap", gap, rounding, storing, rho_norm, gradient_norm, error, exhausted)
    residual = (rho_norm + d_rho) / scale
    live = column > 0
    steepest = float(np.max(np.abs(slope[live]) / column[live], initial=0.0))
    d_column = d_slope + d_sum * float(np.max(raw[live] / column[live], initial=1.0))
    angle = (steepest + d_column) / (rho_norm - d_rho) if rho_norm > d_rho else math.inf
    angle = math.inf if slope[~live].any() else angle
    exhausted = rho_norm <= 3 * d_rho or steepest <= 3 * d_column
    if residual <= angle:
        return Certificate("residual", residual, d_rho / scale, s_rho / scale, rho_norm, gradient_norm, None, exhausted)
    storing = s_rho * (1 + angle) / (rho_norm - d_rho - s_rho) if rho_norm > d_rho + s_rho else math.inf
    rounding = d_column / (rho_norm - d_rho)
    return Certificate("gradient", angle, rounding, storing, rho_norm, gradient_norm, None, exhausted)


def _followed(g: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """What of a direction g stays within the bounds, however short the step."""
    up = np.where(sides[0] == 0, np.maximum(g, 0.0), g)
    return np.where(sides[1] == 0, np.minimum(up, 0.0), up)


def hopeless(problem: Problem, by: Products, beta: np.ndarray, i: int, steps: int) -> bool:
    """Do conjugate gradients from a row method's β come to rest, in a few passes, at a residual that is not small?

    So they do if no β fits. They do not where rows are slow only: those residuals they take down, or keep taking down.
    """
    n, p = problem.X.shape
    many = min(max(steps, 20), 2 * min(n, p) + 5)
    if stays(by):
        norms = norms_there(by, problem.y, np.array([i]), beta[None], problem.weight, many)
    else:
        root = np.ones(n) if problem.weight is None else np.sqrt(problem.weight)
        r = root * (problem.y[i] - times(by, beta[None]))
        slope = back(by, root * r)
        direction, norms = slope.copy(), [norm(r)]
        for _ in range(many):
            moved, before = root * times(by, direction), norm(slope)
            if not 0.0 < norm(moved) < math.inf:
                break
            r = r - (before / norm(moved)) ** 2 * moved
            slope = back(by, root * r)
            direction = slope + (norm(slope) / before) ** 2 * direction
            norms.append(norm(r))
    third = norms[2 * len(norms) // 3]
    return 1e-3 * norms[0] < norms[-1] and norms[-1] > 0.98 * third

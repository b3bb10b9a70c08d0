"""How fast it must be, and how far it can get: the paper's bounds, asked of your own X.

`rate` is what a step and a pass do to the error, at most; `passes` how many a tolerance takes; `horizon` how far from
least squares Kaczmarz' rows stay where no β fits. All are theorems about the mean over independent picks in proportion
to ‖a_i‖² + λ_i (`sampler="norms"`), or with any fixed weights; for other samplers they are a guide, and say so. Where X
is small its singular values are taken exactly; where it is large, a few passes estimate them, and ranges say how well.

Examples
--------
>>> import numpy as np
>>> from rowcol import theory
>>> X = np.random.default_rng(0).standard_normal((300, 20))
>>> theory.rate(X, "rk")
Rate of rk (25): E‖β − β*‖² is multiplied by 0.9692 a step at most, its root by 0.00919 a pass (300 steps)
>>> round(theory.passes(X, "rk", tol=1e-6), 1)
2.9
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .core.gram import gram, written
from .core.kernels import kernel_of
from .core.problem import matrix, real_number, right_hand_sides
from .core.rates import conjugate_rate, extended_steps_to, step_rate, steps_to
from .core.sampler import check
from .core.sampler import sampler as make_sampler
from .core.sides import leaves_of, points
from .core.sizes import diagonal
from .core.words import shown
from .methods.extremes import Extremes, extremes, line_squares
from .solving import solve

__all__ = ["Extremes", "Horizon", "Rate", "extremes", "horizon", "passes", "rate"]

METHODS = ("rk", "rcd", "rek", "cg")
KERNEL_EXACT = 2000  # points of which the kernel matrix is written out
INDEPENDENT = ("norms", "uniform")


@dataclass(frozen=True, repr=False)
class Rate:
    """A bound on how the error falls.

    Attributes
    ----------
    method, theorem : str
        Of what, and who says so.
    norm : str
        Which error. "E" is the mean over the picks.
    step : float
        What its mean square is multiplied by in a step, at most: E‖e_k‖² ≤ constant · stepᵏ · ‖e_0‖².
    range : tuple of float
        Where `step` can be, if singular values were estimated.
    lines : int
        Steps in a pass over X.
    constant : float
        1; of conjugate gradients 4. Of extended Kaczmarz, where a step is a pair, a column and a row, the 1 + 2κ² of
        Theorem 4.1, E‖e_k‖² ≤ constant · step^⌊k/2⌋ · ‖e_0‖², which is not the sharpest:
    extra : float
        of extended Kaczmarz E‖e_k‖² ≤ stepᵏ (1 + k · extra) ‖e_0‖² (Du 2019). Elsewhere 0.
    holds : bool
        Is it a theorem for the sampler asked about, or a guide?
    exact : bool
        Were singular values taken exactly?
    words : str
        How they were found, and what else there is to say.

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol import theory
    >>> found = theory.rate(np.eye(4), "rcd")
    >>> found.step, found.theorem, found.holds
    (0.75, '(26)', True)
    >>> theory.rate(np.eye(4), "rcd", sampler="shuffled").holds
    False
    """

    method: str
    theorem: str
    norm: str
    step: float
    range: tuple[float, float]
    lines: int
    constant: float
    extra: float
    holds: bool
    exact: bool
    words: str

    @property
    def per_pass(self) -> float:
        """What the root of the mean square is multiplied by in a pass, at most."""
        return self.step ** (self.lines / 2)

    def bound(self, steps: Any) -> np.ndarray:
        """E‖e_k‖²/‖e_0‖² after so many steps, at most."""
        k = np.asarray(steps, float)
        return self.step**k * (1.0 + k * self.extra if self.extra else self.constant)

    def passes(self, tol: float) -> float:
        """Passes until √E‖e‖² ≤ tol·‖e_0‖, by this bound; infinite where it promises nothing."""
        tol = real_number(tol, "tol", above=1e-150, below=1e150)  # its square is a number too
        if self.extra:
            return extended_steps_to(self.step, self.extra, tol**2) / self.lines
        return steps_to(self.step, tol**2 / self.constant) / self.lines

    def __repr__(self) -> str:
        some = "" if self.exact else f" ({self.range[0]:.6g} to {self.range[1]:.6g})"
        what = "pairs of steps" if self.method == "rek" else "steps"
        told = (
            f"Rate of {self.method} {self.theorem}: {self.norm} is multiplied by {self.step:.4g}{some} a step at most, "
        )
        told += f"its root by {self.per_pass:.3g} a pass ({self.lines:,} {what})"
        return told if self.holds else told + "; a guide only: " + self.words


def rate(
    X: Any,
    method: str,
    alpha: float = 0.0,
    kernel: Any = None,
    sampler: Any = "norms",
    random_state: Any = 0,
    extremes: Extremes | None = None,
) -> Rate:
    """What the error is multiplied by in a step and in a pass, at most.

    Parameters
    ----------
    X : array or sparse array, (n, p)
        With a kernel, its points.
    method : str
        "rk": rows, (25), with alpha or a kernel (36) and (35). "rcd": columns, (26), with alpha (38). "rek": extended
        Kaczmarz, Theorem 4.1 of Zouzias and Freris (2013). "cg": conjugate gradients, Chebyshev's bound.
    alpha : float
        The ridge penalty.
    kernel : str or kernel
        For kernel ridge regression.
    sampler : str or array of weights
        How lines are picked. Exact theorems are for "norms", "uniform" and fixed weights.
    random_state : int
        For estimates of singular values, where X is large.
    extremes : Extremes, optional
        Of X, where they are known: asking for several methods, take them once.

    Returns
    -------
    Rate

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol import theory
    >>> X = np.random.default_rng(0).standard_normal((20, 300))
    >>> by_rows, by_columns = (theory.rate(X, method, alpha=1.0) for method in ("rk", "rcd"))
    >>> by_rows.per_pass < by_columns.per_pass  # wide: rows
    True
    """
    alpha = real_number(alpha, "alpha", at_least=0.0)
    check(sampler)
    if kernel is not None:
        if not isinstance(method, str) or method not in ("rk", "auto"):
            raise ValueError(f"with a kernel the paper's steps are method='rk', got {shown(method)}")
        return _kernel_rate(X, alpha, kernel, sampler)
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}: others have no rate; got {shown(method)}")
    X, _ = matrix(X)
    known = _known(X, random_state, extremes)
    n, p = X.shape
    if known.shape != (n, p):
        raise ValueError(f"extremes are those of an X of shape {known.shape}, not {(n, p)}")
    if known.total == 0:
        raise ValueError("X is zero: there is nothing to solve")
    low, high = known.smallest**2, known.largest**2
    ends = tuple(value**2 for value in known.smallest_range)
    if not isinstance(sampler, str):
        make_sampler(sampler, n + p if method == "rek" else p if method == "rcd" else n, np.random.SeedSequence(0))
    if method == "cg":
        seen = [v if known.full or alpha == 0 else 0.0 for v in (low, *ends)]
        factors = [conjugate_rate(v + alpha, high + alpha) ** 2 for v in seen]
        norm = "‖β − β*‖² in the energy norm"
        return Rate(
            "cg",
            "(Chebyshev)",
            norm,
            factors[0],
            (factors[2], factors[1]),
            1,
            4.0,
            0.0,
            seen[1] + alpha > 0,
            known.exact,
            known.words,
        )
    if method == "rek":
        return _extended(X, known, ends, alpha, sampler)
    lines = n if method == "rk" else p
    # the smallest eigenvalue of the lines' own Gram matrix: zero if there are more lines than the rank; without a
    # penalty the error stays in the span of the lines, where the smallest that is not zero counts
    whole = known.full and lines == min(n, p)
    seen = [v if alpha == 0 or whole else 0.0 for v in (low, *ends)]
    sizes = line_squares(X, method == "rk") + alpha
    share, holds, words = _share(sizes, sampler)
    steps = [step_rate((v + alpha) * share, 1.0) for v in seen]
    theorem, norm = {
        ("rk", False): ("(25)", "E‖β − β*‖²"),
        ("rk", True): ("(36)", "E‖α − α*‖² in the energy norm"),
        ("rcd", False): ("(26)", "E‖Xβ − Xβ*‖²"),
        ("rcd", True): ("(38)", "E‖β − β*‖² in the energy norm"),
    }[method, alpha > 0]
    exact, holds = known.exact or seen == [0.0] * 3, holds and seen[1] + alpha > 0
    return Rate(
        method, theorem, norm, steps[0], (steps[2], steps[1]), lines, 1.0, 0.0, holds, exact, words or known.words
    )


_extremes = extremes  # a parameter of `rate` has its name


def _known(X: Any, random_state: Any, given: Any) -> Extremes:
    if given is not None and not isinstance(given, Extremes):
        raise TypeError(f"extremes must be what theory.extremes gave, or None; got {shown(given)}")
    return _extremes(X, random_state) if given is None else given


def _extended(X: Any, known: Extremes, ends: Any, alpha: float, sampler: Any) -> Rate:
    if alpha > 0:
        raise ValueError("extended Kaczmarz is for alpha = 0: with a penalty take 'rk' or 'rcd'")
    (n, p), low, share = X.shape, known.smallest**2, 1.0 / known.total
    weighted = isinstance(sampler, str) and sampler in ("norms", "auto")
    words, holds = "" if weighted else "the theorem is for norm-weighted picks", weighted and ends[0] > 0
    steps = [step_rate(v * share, 1.0) for v in (low, *ends)]
    # Each pair adds ‖z_k − z‖²/‖X‖_F² to what is left of ‖e_k‖², and ‖z_k − z‖² falls as ‖e‖² does, from ‖Xβ*‖²:
    # E‖e_k‖² ≤ ρᵏ(‖e_0‖² + k ‖Xβ*‖²/‖X‖_F²), and ‖Xβ*‖ ≤ σ_max‖β*‖ (Du 2019). Theorem 4.1 has ρ^⌊k/2⌋(1 + 2κ²).
    extra = known.largest**2 * share
    constant = 1.0 + 2.0 * known.largest**2 / low
    norm = "E‖β − β*‖²"
    theorem = "(ZF 4.1)"
    found = "Theorem 4.1 of Zouzias and Freris (2013), in the sharper form of Du (2019); " + known.words
    return Rate(
        "rek",
        theorem,
        norm,
        steps[0],
        (steps[2], steps[1]),
        max(n, p),
        constant,
        extra,
        holds,
        known.exact,
        f"{words}; {found}" if words else found,
    )


def _kernel_rate(X: Any, alpha: float, kernel: Any, sampler: Any) -> Rate:
    X = points(X)
    g = gram(kernel_of(kernel), X)
    n, sizes = g.shape[0], diagonal(g) + alpha
    exact, low = n <= KERNEL_EXACT, 0.0
    if exact:
        values = np.linalg.eigvalsh(written(g))
        low = float(values[0]) if values[0] < -n * 2.0**-50 * abs(values).max() else max(float(values[0]), 0.0)
    if low + alpha < 0 or not (sizes > 0).any() or sizes.min() < 0:
        raise ValueError(
            "the kernel matrix plus alpha is not positive definite, and there is no rate for it: use a positive "
            "definite kernel, or raise alpha"
        )
    share, holds, words = _share(sizes, sampler)
    step = step_rate((low + alpha) * share, 1.0)
    words = words or ("all eigenvalues of K were taken" if exact else "the smallest eigenvalue of K was taken as 0")
    if not exact and not all(leaf.definite for leaf in leaves_of(g.kernel)):
        holds, words = False, "the kernel is not known to be positive definite, and K is too large to see"
    return Rate("rk", "(35)", "E‖α − α*‖² in the energy norm", step, (step, step), n, 1.0, 0.0, holds, exact, words)


def _share(sizes: np.ndarray, kind: Any) -> tuple[float, bool, str]:
    """min p_i/A_ii over lines that are not zero; whether that makes a theorem; and what to say if not."""
    live = sizes > 0
    if isinstance(kind, str) and kind in ("norms", "auto"):
        return 1.0 / float(sizes.sum()), True, ""
    if isinstance(kind, str) and kind not in INDEPENDENT:
        return 1.0 / float(sizes.sum()), False, f"no such theorem is known for {kind!r} picks, which are mostly quicker"
    weights = np.ones(len(sizes)) if isinstance(kind, str) else np.asarray(kind, float)
    if not isinstance(kind, str):
        make_sampler(kind, len(sizes), np.random.SeedSequence(0))  # its errors
        weights = weights / weights.max()
    return float((weights[live] / sizes[live]).min() / weights.sum()), True, ""


def passes(X: Any, method: str, tol: float, alpha: float = 0.0, kernel: Any = None, **named: Any) -> float:
    """Passes over X until √E‖error‖² is `tol` of what it was at the start, by the bound of `rate`, which see.

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol import theory
    >>> theory.passes(np.eye(10), "cg", 1e-8)
    1.0
    >>> tall = np.random.default_rng(0).standard_normal((400, 10))
    >>> theory.passes(tall, "rk", 1e-8) < theory.passes(tall, "rcd", 1e-8)
    True
    """
    return rate(X, method, alpha, kernel, **named).passes(tol)


@dataclass(frozen=True, repr=False)
class Horizon:
    """How far from least squares Kaczmarz' rows stay, in the mean, where no β fits.

    Attributes
    ----------
    misfit : float
        ‖w‖² with w = y − Xβ_LS, what no β can reach; without rows of zeros, which are never picked.
    limit : float
        ‖w‖²/σ⁺_min(Σ): E‖β_k − β_LS‖² ends below it. Section 4 prints σ², which is a slip.
    least : float
        ‖w‖²/σ_max(Σ): it stays above it, in the long run.
    printed : float
        The bound as printed, ‖w‖²/σ⁺_min(Σ)², which is not one.
    range : tuple of float
        Where `limit` can be, if singular values were estimated.
    """

    misfit: float
    limit: float
    least: float
    printed: float
    range: tuple[float, float]

    def __repr__(self) -> str:
        return (
            f"Horizon: E‖β − β_LS‖² ends between {self.least:.4g} and {self.limit:.4g}, "
            f"and E‖X(β − β_LS)‖² at ‖w‖² = {self.misfit:.4g}"
        )


def horizon(X: Any, y: Any, random_state: Any = 0, extremes: Extremes | None = None) -> Horizon:
    """How far from β_LS rows stay (Section 4, corrected), for norm-weighted picks.

    A step takes |Xⁱ(β − β_LS)|² off ‖Xⁱ‖²‖β − β_LS‖² and adds |w_i|², at right angles. In the mean that is
    E‖e_{k+1}‖² = E‖e_k‖² − (E‖Xe_k‖² − ‖w‖²)/‖X‖_F²: so in the long run E‖Xe‖² is ‖w‖² exactly, and E‖e‖² lies between
    ‖w‖²/σ_max² and ‖w‖²/σ_min².

    Parameters
    ----------
    X, y : array (n, p), array (n,)
    random_state : int
    extremes : Extremes, optional
        Of X, where they are known.

    Returns
    -------
    Horizon

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol import theory
    >>> theory.horizon(np.array([[1.0], [1.0]]), np.array([0.0, 2.0]))
    Horizon: E‖β − β_LS‖² ends between 1 and 1, and E‖X(β − β_LS)‖² at ‖w‖² = 2
    """
    X, _ = matrix(X)
    known = _known(X, random_state, extremes)
    if known.smallest == 0:
        raise ValueError("X is zero, or its smallest singular value is not known: there is no horizon to tell")
    y, single = right_hand_sides(y, X.shape[0])
    if not single:
        raise ValueError(f"y must have one dimension, got shape {y.shape}: ask for one target at a time")
    y = y[:, 0]
    found = solve(X, y, tol=1e-10, random_state=random_state)
    live = line_squares(X, rows=True) > 0
    with np.errstate(all="ignore"):  # far beyond any scale of use these are infinite, or zero
        misfit = np.float64(np.linalg.norm((y - X @ found.x)[live])) ** 2
        small, large = np.float64(known.smallest) ** 2, np.float64(known.largest) ** 2
        low, high = (float(misfit / np.float64(v) ** 2) if v > 0 else math.inf for v in reversed(known.smallest_range))
        limit, least, printed = (float(v) for v in (misfit / small, misfit / large, misfit / small / small))
    return Horizon(float(misfit), limit, least, printed, (low, high))

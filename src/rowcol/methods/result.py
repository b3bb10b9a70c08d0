"""What happened: `Result`, its `History` and its `Status`, whose values are advice."""

from __future__ import annotations

import enum
import sys
import textwrap
import warnings
import weakref
from dataclasses import dataclass, field
from html import escape
from itertools import takewhile
from traceback import walk_stack
from typing import Any

import numpy as np

from ..core.certify import Certificate


class ConvergenceWarning(UserWarning):
    """The tolerance was not reached; the message says why and what to do."""


class StartWarning(UserWarning):
    """The start x0 changes which solution can be reached."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the solve goes on, and the last one that could be stays as it is."""


def warn(message: str, kind: type[Warning]) -> None:
    """Warn of the line that called rowcol, however deep in it this is."""
    names = (frame.f_globals.get("__name__", "") for frame, _ in walk_stack(sys._getframe()))
    inside = sum(1 for _ in takewhile(lambda name: name.startswith("rowcol."), names))
    warnings.warn(message, kind, stacklevel=inside + 1)


class Status(enum.Enum):
    """How a solve ended. The value is the advice.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.Status.CONVERGED.value
    'the certificate meets the tolerance'
    """

    CONVERGED = "the certificate meets the tolerance"
    PASSES = "max_passes came before the tolerance: raise max_passes, loosen tol, or try another method"
    SECONDS = "max_seconds came before the tolerance: allow more time, loosen tol, or try another method"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "Ctrl-C came before the tolerance: this is the best so far; go on from it with x0=result"
    PLATEAU = (
        "the residual no longer falls: rows cannot solve an inconsistent system (nor, in reasonable time, a very "
        "ill-conditioned one): use method='rcd' (least squares) or method='rek' (minimum-norm least squares)"
    )
    INCONSISTENT = (
        "the system is inconsistent, as a row of zeros has a nonzero right-hand side: use method='rcd' or 'rek' for "
        "the least-squares solution, or drop such rows"
    )
    STALLED = (
        "this method makes no more progress on this system: use method='auto', which goes on by another, or 'direct'"
    )
    INDEFINITE = (
        "the kernel matrix plus alpha is not positive definite: the kernel is none, or alpha is too small for it: use "
        "a positive definite kernel, or raise alpha"
    )
    SLOW = "another method was predicted to be quicker"
    ROUNDING = "the answer is as good as float64 can make it, which is short of the tolerance: loosen tol or rescale X"


# Of several right-hand sides the worst status is the one to report.
WORST_FIRST = (
    Status.INDEFINITE,
    Status.INCONSISTENT,
    Status.PLATEAU,
    Status.STALLED,
    Status.ROUNDING,
    Status.SLOW,
    Status.SECONDS,
    Status.PASSES,
    Status.INTERRUPTED,
    Status.CALLBACK,
    Status.CONVERGED,
)


MEANING = {
    "residual": "‖y − Xβ‖ / ‖y‖",
    "gradient": "max |X_j·r| / (‖X_j‖ ‖r‖)",
    "gap": "√(2·duality gap) / ‖y‖",
}


def meaning(kind: str, intercept: bool = False) -> str:
    """What a certificate's value is; with an intercept, of y without its mean."""
    return MEANING[kind].replace("‖y‖", "‖y − ȳ‖") if intercept else MEANING[kind]


def count_passes(passes: float) -> str:
    """1 pass, 2.5 passes, 1,000 passes."""
    number = f"{passes:,.0f}" if passes >= 100 else f"{passes:.3g}"
    return f"{number} pass" if number == "1" else f"{number} passes"


@dataclass(eq=False, repr=False)
class History:
    """One entry a round of steps (as a callback is called); exact certificates where one was taken.

    Attributes
    ----------
    passes, seconds : list of float
    energy : list of ndarray
        Mean of |step|²(‖a_i‖² + λ_i) over the round, for each right-hand side: what the objective fell by a step,
        twice. It costs nothing, and falls in step with the squared error.
    certificate : list of tuple
        (passes, right-hand side, Certificate) for every exact look. With alpha = 0 the kind of a certificate, and so
        the meaning of its value, may change from look to look: residual_norm and gradient_norm do not.
    check_seconds : float
        Time spent on exact looks.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> history = rowcol.solve(np.eye(4), np.ones(4), method="rcd", sampler="cyclic").history
    >>> history.passes
    [1.0]
    >>> passes, right_hand_side, certificate = history.certificate[-1]
    >>> certificate.residual_norm
    0.0
    """

    passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    energy: list[np.ndarray] = field(default_factory=list)
    certificate: list[tuple[float, int, Certificate]] = field(default_factory=list)
    check_seconds: float = 0.0

    def __repr__(self) -> str:
        looks = len(self.certificate)
        return f"History({len(self.passes)} rounds, {looks} certificates, {self.check_seconds:.2g} s spent on them)"


class Asked:
    """The X and y that a Result is of, as they were given, while someone keeps them: nothing is kept alive for it.

    Copies and pickles have none; nor is there one of a list.
    """

    def __init__(self, X: Any = None, y: Any = None, source: Any = None) -> None:
        self._X, self._y, self._source = _weak(X), _weak(y), _weak(source)

    @property
    def X(self) -> Any:  # noqa: N802
        """X, or None."""
        return None if self._X is None else self._X()

    @property
    def y(self) -> Any:
        """y, or None."""
        return None if self._y is None else self._y()

    @property
    def source(self) -> Any:
        """What X was made of, or None."""
        return None if self._source is None else self._source()

    def __reduce__(self) -> tuple:
        return Asked, ()


def _weak(value: Any) -> Any:
    try:
        return None if value is None else weakref.ref(value)
    except TypeError:  # lists and tuples
        return None


@dataclass(eq=False, repr=False)
class Result:
    """The answer, how good it is, and how it came about.

    Attributes
    ----------
    x : ndarray, (p,) or (p, q)
        The solution β; with a kernel, the coefficients α of its points.
    dual : ndarray, (n,) or (n, q), or None
        α with β = Xᴴα, where the method keeps it; for ridge by columns W(y − Xβ)/alpha. Within bounds, β is what Xᴴα
        becomes when it is clipped to them. On a cluster, by columns, it takes a pass when it is first asked for, while
        X and y live.
    status : Status
        Its value is advice. With several right-hand sides, that of the worst; `statuses` has them all.
    message : str
        The advice, and what else there is to say.
    solution : str
        Which solution this is: "ridge", "least squares", "minimum norm", ...
    method, sampler : str
        What was run; for method "auto", with the reason.
    passes, steps : float, int
        Work done: a pass touches every row (or column) once on average. For extended Kaczmarz, passes over columns
        and over rows together.
    seconds : float
        Time taken, without that of compiling, which is done once a machine.
    copied : int
        Bytes of converted or transposed copies of X that the method needed.
    tol : float
        The tolerance asked for.
    statuses, certificates : list
        One a right-hand side.
    history : History
        How it went, round by round.
    plan : Plan
        Why it was done so, and what was learned on the way.
    at_bound : int or ndarray, (q,), or None
        How many unknowns are at a bound; None where none were given.
    intercept : float, ndarray (q,), or None
        b, where one was asked for. Certificates then speak of y − ȳ and of X without its means.
    function, error_estimate, fitted
        Of kernel ridge regression only: f itself, to be called with new points; from the preconditioner, an estimate of
        ‖f − f*‖ far tighter than `error_bound`; and f at the points of X, (n,) or (n, q), as the last look found it:
        at points that alpha leaves out these are predictions, for nothing (NaN where no right-hand side has the point).
    asked : Asked
        X and y while they live, for `rowcol.report`.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> result = rowcol.solve(np.array([[1.0, 1.0]]), np.array([2.0]), method="rk", random_state=0)
    >>> result.solution, result.x.tolist()
    ('minimum norm', [1.0, 1.0])
    >>> result.status.name, result.certificate.kind
    ('CONVERGED', 'residual')
    """

    x: np.ndarray
    dual: np.ndarray | None
    status: Status
    message: str
    solution: str
    method: str
    sampler: str
    passes: float
    steps: int
    seconds: float
    copied: int
    tol: float
    statuses: list[Status]
    certificates: list[Certificate]
    history: History
    plan: Any = None
    intercept: Any = None
    function: Any = None
    error_estimate: Any = None
    at_bound: Any = None
    fitted: Any = None
    asked: Any = None

    def __getattr__(self, name: str) -> Any:
        """`dual`, where it is still to be brought: it is kept then."""
        if name != "dual" or "bring" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.dual = vars(self).pop("bring")(self.asked)
        return self.dual

    @property
    def success(self) -> bool:
        """True if every right-hand side met the tolerance."""
        return self.status is Status.CONVERGED

    @property
    def certificate(self) -> Certificate:
        """The certificate; with several right-hand sides, the worst one."""
        return max(self.certificates, key=lambda c: c.value)

    @property
    def residual_norm(self) -> Any:
        """‖y − Xβ‖ (weighted by sample_weight), a number or one a right-hand side."""
        return self._each([c.residual_norm for c in self.certificates])

    @property
    def gradient_norm(self) -> Any:
        """‖Xᴴ(y − Xβ) − alpha β‖, a number or one a right-hand side."""
        return self._each([c.gradient_norm for c in self.certificates])

    @property
    def error_bound(self) -> Any:
        """A bound on ‖x − exact x‖, a number or one a right-hand side; None where there is none (alpha = 0)."""
        bounds = [c.error_bound for c in self.certificates]
        return None if bounds[0] is None else self._each(bounds)

    @property
    def copied_mb(self) -> float:
        """Megabytes of converted or transposed copies of X."""
        return self.copied / 1e6

    def _each(self, values: list) -> Any:
        return values[0] if self.x.ndim == 1 else np.array(values)

    def __repr__(self) -> str:
        return "rowcol.Result\n" + "\n".join(
            textwrap.fill(f"  {name:<15}{text}", 110, subsequent_indent=" " * 17, break_on_hyphens=False)
            for name, text in self._rows()
        )

    def _rows(self) -> list[tuple[str, str]]:
        c = self.certificate
        worst = f", the worst of {len(self.certificates)}" if len(self.certificates) > 1 else ""
        residual, gradient = (np.max(v) for v in (self.residual_norm, self.gradient_norm))
        bound = None if self.error_bound is None else np.max(self.error_bound)
        storing = f", storing {c.storing:.0e}" if c.storing else ""
        shape = f"{self.x.shape[0]} unknowns" + (f" x {self.x.shape[1]} right-hand sides" if self.x.ndim == 2 else "")
        what = "β" if self.function is None else "f"
        told = meaning(c.kind, self.intercept is not None)
        bound_by = "" if self.at_bound is None else f", {np.sum(self.at_bound):,} at a bound"
        rows = [
            ("status", f"{self.status.name}: {self.message}"),
            ("solution", f"{self.solution}, {shape}{bound_by}, {self.x.dtype}"),
            ("method", self.method + ("" if self.sampler == "none" else f", sampler {self.sampler}")),
            (
                "certificate",
                f"{told} = {c.value:.2e} (tol {self.tol:.0e}, rounding {c.rounding:.0e}{storing}){worst}",
            ),
            ("residual norm", f"{residual:.6g}{worst}"),
            ("gradient norm", "not measured" if np.isnan(gradient) else f"{gradient:.3g}{worst}"),
            ("error bound", "none without alpha > 0" if bound is None else f"‖{what} − {what}*‖ ≤ {bound:.2e}{worst}"),
            ("work", f"{count_passes(self.passes)}, {self.steps:,} step{'s'[: self.steps > 1]}, {self.seconds:.3g} s"),
            ("copies of X", f"{max(self.copied_mb, 0.01):,.2f} MB" if self.copied else "none"),
        ]
        if self.function is not None:
            rows = [row for row in rows if row[0] not in ("gradient norm", "copies of X")]
            if self.error_estimate is not None:
                rows.insert(-1, ("estimate", f"‖f − f*‖ is about {np.max(self.error_estimate):.2e} or less"))
        return rows

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in self._rows())
        return f"<table><caption>rowcol.Result</caption>{cells}</table>"


def dual_here(result: Result) -> np.ndarray | None:
    """`dual`, unless a cluster would have to bring it."""
    return vars(result).get("dual")

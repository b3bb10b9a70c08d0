"""A Result as a book: the answer, why it was found so, how good it is, how it went, and what is left over."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import __version__
from ..methods.result import Result, Status, count_passes, meaning
from .looking import residual, spectrum
from .picture import Book, Chapter, Curve, Picture, Table

LARGEST = 12  # coefficients that are listed
WORST = 10  # right-hand sides that are listed
MEANS = {
    "residual": (
        "It is the size of what the answer leaves over, as a part of y: zero if every equation holds. The system was "
        "found to be consistent that far, so no other answer can fit better by more than this."
    ),
    "gradient": (
        "What is left over is compared with every column of X: this is the largest cosine of the angles between them. "
        "At the exact least-squares answer all are right angles, and it is zero. A column of another scale cannot hide."
    ),
    "gap": (
        "The objective of the answer and a bound from below on every objective, from the dual problem, are this far "
        "apart: twice the gap, its root, as a part of y. It is zero at the exact answer, and only there."
    ),
}
EXACT = (
    "It was measured by one exact pass over the data, in double precision, of the answer as it is, whatever method "
    "found it. The rounding errors of that pass are bounded, and the bound is part of the value."
)


def told(result: Result, X: Any = None, y: Any = None, title: str = "", names: Any = None) -> Book:
    """A Result as a book.

    Parameters
    ----------
    result : Result
    X, y : optional
        What it is of, unless the result still knows.
    title : str
    names : sequence of str, optional
        Of the columns of X, unless X has them.

    Returns
    -------
    Book

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> X, y = np.eye(3), np.arange(3.0)
    >>> [chapter.title for chapter in told(rowcol.solve(X, y)).chapters]
    ['The answer', 'The plan', 'The certificate', 'Convergence', 'Singular values', 'What is left over']
    """
    X = X if X is not None else None if result.asked is None else result.asked.X
    y = y if y is not None else None if result.asked is None else result.asked.y
    seen = [spectrum(result, X), residual(result, X, y)]  # which judge X and y
    if names is None:
        names = getattr(X, "columns", None)
    parts = [_answer(result, names), _plan(result), _certificate(result), _convergence(result), *seen]
    made = f"Made by rowcol {__version__}."
    return Book(title or _title(result), _summary(result), parts, made)


def _title(result: Result) -> str:
    what = "Kernel ridge" if result.function is not None else result.solution.split(" (")[0].capitalize()
    if result.plan is None:
        return what
    n, p = result.plan.shape
    if result.function is not None:
        return f"{what} on {n:,} points"
    return f"{what}, {n:,} x {p:,}"


def _summary(result: Result) -> list[str]:
    c, many = result.certificate, len(result.certificates)
    told = meaning(c.kind, result.intercept is not None)
    within = "within" if c.value <= result.tol else "which is not within"
    worst = f" for the worst of {many} right-hand sides" if many > 1 else ""
    verdict = "The answer is as good as was asked" if result.success else f"The solve ended early: {result.message}"
    return [
        f"{verdict}. {told} is {c.value:.2e}{worst}, {within} the tolerance {result.tol:.0e}.",
        f"It took {result.method.replace(' → ', ', then ')} {count_passes(result.passes)} and {result.seconds:.2g} s.",
    ]


# --- chapters --------------------------------------------------------------------------------------------------------


def _answer(result: Result, names: Any) -> Chapter:
    table = Table("In short", ["what", "value"], [[name, text] for name, text in result._rows()])
    return Chapter("The answer", [_which(result)], tables=[table, *_coefficients(result, names)])


def _which(result: Result) -> str:
    if result.status is not Status.CONVERGED:
        return f"No claim is made about which solution this is: {result.message}."
    intercept = ", with an intercept that is not penalised" if result.intercept is not None else ""
    return f"What was found is this solution: {result.solution}{intercept}."


def _coefficients(result: Result, names: Any) -> list[Table]:
    """The largest ones, of the worst right-hand side, with the names that X has for them."""
    if result.function is not None:
        return []
    x, place = result.x.reshape(result.x.shape[0], -1), worst(result)
    beta = x[:, place]
    order = np.argsort(-np.abs(beta), kind="stable")[:LARGEST]
    known = names is not None and len(names) == len(beta)
    rows = [[str(names[j]) if known else f"{j:,}", _number(beta[j])] for j in order]
    if result.intercept is not None:
        rows.insert(0, ["(intercept)", _number(np.atleast_1d(result.intercept)[place])])
    of = f" of right-hand side {place + 1}" if x.shape[1] > 1 else ""
    title = (
        f"The {len(order)} largest of {len(beta):,} coefficients{of}" if len(beta) > LARGEST else f"Coefficients{of}"
    )
    return [Table(title, ["column", "β"], rows)]


def worst(result: Result) -> int:
    """The right-hand side with the largest certificate."""
    return int(np.argmax([c.value for c in result.certificates]))


def _plan(result: Result) -> Chapter:
    plan = result.plan
    if plan is None:
        return Chapter("The plan", ["No plan was kept."])
    words = [f"The method chosen first was {plan.route}, by {plan.side}."]
    words += [f"Because {reason}." for reason in plan.reasons] + [
        f"Learned on the way: {what}." for what in plan.learned
    ]
    foretold = "not foretold" if plan.passes is None else f"about {count_passes(plan.passes)}"
    rows = [["passes", foretold, count_passes(result.passes)]]
    if plan.seconds is not None:
        rows.append(["seconds", f"about {plan.seconds:.2g}", f"{result.seconds:.2g}"])
    rows.append(["copies of X", _size(plan.copies), _size(result.copied)])
    rows.append(["memory beside X and y", f"{_size(plan.bytes)} of {_size(plan.memory)}", ""])
    if plan.rate is not None:
        rows.insert(0, ["error, a pass", f"times {plan.rate:.2g}", ""])
    if plan.then:
        rows.append(["if slow", f"on to {', then '.join(plan.then)}", f"took {result.method}"])
    return Chapter("The plan", words, tables=[Table("Work", ["what", "foretold", "taken"], rows)])


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if count else "none"
        count /= 1000
    return f"{count:,.3g} GB"


def _number(v: Any) -> str:
    return f"{v:.6g}".replace("-", "−") if np.isrealobj(v) else f"{v:.4g}"


def _certificate(result: Result) -> Chapter:
    c, many = result.certificate, len(result.certificates)
    words = [f"The certificate is {meaning(c.kind, result.intercept is not None)}. {MEANS[c.kind]}", EXACT]
    rows = [
        ["value", f"{c.value:.2e}", f"to be at most the tolerance, {result.tol:.0e}"],
        ["rounding", f"{c.rounding:.0e}", "the part of it that is a bound on rounding errors"],
        [
            "‖y − Xβ‖" if result.function is None else "‖y − f(X)‖",
            f"{c.residual_norm:.4g}",
            "weighted, if there are weights",
        ],
    ]
    marks: list[bool | None] = [bool(c.value <= result.tol), None, None]
    if c.storing:
        rows.insert(2, ["storing", f"{c.storing:.0e}", f"what keeping the answer as {result.x.dtype} can add"])
    if c.error_bound is not None:
        what = "β" if result.function is None else "f"
        rows.append([f"‖{what} − {what}*‖", f"≤ {c.error_bound:.2e}", "how far the exact answer can be, at most"])
    else:
        rows.append(["error bound", "–", "none is known without alpha > 0"])
    marks += [None] * (len(rows) - len(marks))
    tables = [
        Table("Measured" + (f": the worst of {many}" if many > 1 else ""), ["what", "value", "meaning"], rows, marks)
    ]
    if many > 1:
        order = sorted(range(many), key=lambda i: -result.certificates[i].value)[:WORST]
        each = [[f"{i + 1}", f"{result.certificates[i].value:.2e}", result.statuses[i].name] for i in order]
        title = f"The {len(order)} worst right-hand sides" if many > WORST else "Right-hand sides"
        met = [bool(result.certificates[i].value <= result.tol) for i in order]
        tables.append(Table(title, ["right-hand side", "certificate", "status"], each, list(met)))
    return Chapter("The certificate", words, tables=tables)


def convergence(result: Result) -> Picture | None:
    """How the solve went: steps and exact looks against passes; None where there was no round and no look."""
    history, curves = result.history, []
    energy = np.sqrt(np.array([np.ravel(one) for one in history.energy])) if history.energy else np.empty((0, 1))
    first = np.array([next((v for v in column if v > 0), np.nan) for column in energy.T])
    if len(energy) > 1 and np.isfinite(first).any():
        share = energy[:, np.isfinite(first)] / first[np.isfinite(first)]
        seen = np.isfinite(share).any(axis=1)
        passes, share = np.array(history.passes)[seen], share[seen]
        middle, low, high = (np.nanquantile(share, q, axis=1) for q in (0.5, 0.0, 1.0))
        band = (low, high) if share.shape[1] > 1 else (None, None)
        curves.append(Curve("size of steps, of the first round's", passes, middle, *band))
    looks = np.array([(passes, c.value) for passes, _, c in history.certificate]).reshape(-1, 2)
    if len(looks):
        curves.append(Curve("certificate, as an exact look found it", looks[:, 0], looks[:, 1], style="points"))
    if not curves:
        return None
    ends = np.array([min(float(c.x.min()) for c in curves), max(float(c.x.max()) for c in curves)])
    ends = ends if ends[1] > ends[0] else ends + np.array([-0.5, 0.5])
    curves.append(Curve("tolerance", ends, np.full(2, result.tol), style="dashed"))
    many = " The band holds all right-hand sides." if len(first) > 1 else ""
    words = (
        f"Over {count_passes(result.passes)} the certificate came to {result.certificate.value:.1e}; "
        f"{result.tol:.0e} was asked for. Steps shrink as the error does.{many}"
    )
    return Picture("Certificate and steps against passes", words, "passes", "size", curves, log_y=True)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _convergence(result: Result) -> Chapter:
    history = result.history
    words = [
        f"{_count(len(history.passes), 'round')} and {_count(len(history.certificate), 'exact look')}; looking took "
        f"{history.check_seconds:.2g} s of {result.seconds:.2g} s. The root of what a step gains shrinks in step with "
        "the error, and costs nothing to know; only a look is proof."
    ]
    picture = convergence(result)
    return Chapter("Convergence", words, [picture] if picture is not None else [])

"""Which of the solutions an answer is: no more is said than its method and its start warrant."""

from __future__ import annotations

from scipy.sparse.linalg import LinearOperator

from ..core.place import Place
from ..core.problem import Problem
from .loop import Outcome
from .result import Status
from .way import Way


def which_solution(asked: Problem, way: Way, status: Status, outcome: Outcome, clean_start: bool) -> str:
    """Which solution this is: no more is claimed than the method and its start warrant."""
    if status is not Status.CONVERGED:
        return "not converged"
    if asked.bounds is not None:
        return f"{'ridge' if asked.alpha > 0 else 'least squares'} within bounds"
    if asked.alpha > 0:
        return "ridge"
    exact = all(c.kind == "residual" for c in outcome.certificates.values())
    n, p = asked.X.shape
    factor = way.factor
    if outcome.at_start and not clean_start:
        factor = None
    sampled = way.taken[-1].startswith("subset")
    if sampled and factor is not None and factor.rank < p:  # in the row space of the sample, and so of X
        return "minimum norm" if exact else "least squares (the only one if X has full column rank)"
    if factor is not None and (sampled or way.taken[-1].startswith("direct")):
        if n >= p and factor.rank == p:
            return "unique" if exact else "least squares"
        cut = (
            ""
            if factor.rank == min(n, p)
            else (
                f" (rank {factor.rank} of {min(n, p)}: singular values below {factor.cut:.0e} of the largest are zero)"
            )
        )
        return ("minimum norm" if exact else "minimum-norm least squares") + cut
    # a factor was left because what it took as zero mattered: what counts as the row space is then not settled
    unsettled = factor is not None and factor.rank < min(n, p) and any(t.startswith("direct") for t in way.taken)
    if unsettled or not way.proven or not clean_start:
        unclaimed = "one of many" if p > n else "the only one if X has full column rank"
        return f"{'a solution' if exact else 'least squares'} ({unclaimed})"
    if exact:
        return "minimum norm"
    operator = isinstance(asked.X, LinearOperator) and not isinstance(asked.X, Place)
    alike = " (columns of an operator taken as alike)" if operator else ""
    return "minimum-norm least squares" + alike

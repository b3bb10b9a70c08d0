"""A fit with `warm_start` that was cut short goes on: what it leaves is a checkpoint in memory, as plain data."""

from __future__ import annotations

from typing import Any

from ..checkpoints import Warm, recalled
from ..methods.costs import budget
from ..methods.result import Result


def room_of(model: Any) -> int:
    """The budget by which X is placed: that of the fit that may go on, or what there is now."""
    past = next((one for one in _past(model) if one is not None), None)
    return recalled(Warm(past, getattr(model, "checkpoint", None)), budget(model.memory), model.memory)[1]


def checkpoints_of(model: Any, apart: int = 1) -> list[Any]:
    """Those of a fit that is so many solves: its file, and with `warm_start` what the last fit left of each."""
    file, past = getattr(model, "checkpoint", None), _past(model)
    if not getattr(model, "warm_start", False):
        return [file] * apart
    return [Warm(one, file) for one in (past if len(past) == apart else [None] * apart)]


def leave(model: Any, checkpoints: list[Any], results: list[Result]) -> None:
    """Keep what the next fit can go on from, now that all that this one found is set."""
    vars(model).pop("_cut", None)
    left = [one.left(result) for one, result in zip(checkpoints, results, strict=True) if isinstance(one, Warm)]
    if any(one is not None for one in left):
        model._cut = left


def _past(model: Any) -> list[dict[str, Any] | None]:
    return vars(model).get("_cut", []) if getattr(model, "warm_start", False) else []

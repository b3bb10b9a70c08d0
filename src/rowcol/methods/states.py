"""What moves in a Mover, as plain data, and back: a file may hold it, and a file may hold anything.

So what comes back must be of the shapes and types that the Mover has, which was made anew in the same way as at first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.sampler import Sampler, Weave


def held(mover: Any, *names: str) -> dict[str, Any]:
    """Some attributes of it."""
    return {name: _plain(getattr(mover, name)) for name in names}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def put(mover: Any, told: dict[str, Any], *names: str) -> None:
    """Set attributes, each of the kind that it is now."""
    for name in names:
        now, then = getattr(mover, name), told[name]
        if isinstance(now, np.ndarray):
            then = like(then, now.shape, now.dtype)
        elif type(then) is not type(_plain(now)):
            raise ValueError(f"{name} is no {type(now).__name__}")
        setattr(mover, name, then)


def like(value: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """An array, if that is what it is."""
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
        raise ValueError(f"an array of shape {shape} is something else")
    return value


def optional(value: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray | None:
    """An array, or None."""
    return None if value is None else like(value, shape, dtype)


def places(value: Any, below: int, most: int) -> np.ndarray:
    """Whole numbers from 0 to below − 1, no more than so many: compiled code looks there without asking."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1 or value.size > most:
        raise ValueError("positions are something else")
    if value.size and not (value.min() >= 0 and value.max() < below):
        raise ValueError("positions are out of range")
    return value


def narrowed(mover: Any, told: dict[str, Any]) -> None:
    """Keep the right-hand sides that were still moving."""
    ids, now = told["ids"], mover.ids
    mask = np.isin(now, places(ids, int(now.max(initial=-1)) + 1, now.size))
    if not np.array_equal(now[mask], ids):
        raise ValueError("right-hand sides are other ones")
    if not mask.all():
        mover.keep(mask)


def picks_so_far(source: Sampler | Weave) -> dict[str, Any]:
    """Where a stream of picks is; its tables are made anew."""
    if isinstance(source, Weave):
        return {"cols": picks_so_far(source.cols), "rows": picks_so_far(source.rows), "place": int(source.place)}
    return {"random": source.random, "order": source.order, "place": int(source.place)}


def pick_on(source: Sampler | Weave, told: dict[str, Any]) -> None:
    """Go on from there."""
    most = source.cols.m + source.rows.m if isinstance(source, Weave) else source.m
    if type(told["place"]) is not int or not 0 <= told["place"] < most:
        raise ValueError("a sampler is out of its range")
    source.place = told["place"]
    if isinstance(source, Weave):
        pick_on(source.cols, told["cols"])
        pick_on(source.rows, told["rows"])
        return
    source.random = like(told["random"], (4,), np.uint64).copy()
    source.order = places(told["order"], source.m, source.m)
    if source.place and source.kind in ("shuffled", "chunks") and source.order.size != source.m:
        raise ValueError("a sampler has lost its order")

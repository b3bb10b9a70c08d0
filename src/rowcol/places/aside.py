"""Aside: questions that workers answer beside Dask's tasks, where a task would take longer than its answer.

A task takes 8 to 11 ms from here and back, whatever it does, and time of the scheduler, which on one machine is that of
the workers; a function that the scheduler passes on takes 2 to 4. What lies on a worker is named, and must be there by
then. Nothing insists: whoever asked, and heard nothing for a second, asks by tasks, which find out what is wrong, and
which other workers may take where one is busy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.place import Late, time_left

log = logging.getLogger(__name__)

PATIENCE = 1.0  # seconds: a worker may be gone, which the scheduler tries for 30, or be at something else of others


class Named(NamedTuple):
    """What lies on a worker, by its name there."""

    key: Any


def aside(client: Any, f: Callable, asked: list[tuple[str | None, tuple]]) -> list[Any] | None:
    """f of every question, whose worker has what it is about; None if any answer did not come, whatever the reason."""
    shares: dict[str | None, list[int]] = {}
    for k, (worker, _) in enumerate(asked):
        shares.setdefault(worker, []).append(k)

    async def told(worker: str | None, share: list[int]) -> Any:
        many = [tuple(_named(one) for one in asked[k][1]) for k in share]
        return (await client.run(_served, f, many, workers=[worker], on_error="return")).get(worker)

    async def everybody() -> list[Any]:
        try:
            return await asyncio.wait_for(asyncio.gather(*(told(*one) for one in shares.items())), PATIENCE)
        except TimeoutError as late:
            raise ConnectionError(f"no answer in {PATIENCE} s") from late

    try:
        found = client.sync(everybody, callback_timeout=time_left())
    except TimeoutError:
        raise Late from None
    except Exception as wrong:  # of the scheduler, or on the way there
        log.debug("questions are asked by tasks: %s", wrong)
        return None
    answers: list[Any] = [None] * len(asked)
    for share, some in zip(shares.values(), found, strict=True):
        if not isinstance(some, list):
            log.debug("questions are asked by tasks: %s", some)
            return None
        for k, one in zip(share, some, strict=True):
            answers[k] = one
    return answers


def _named(value: Any) -> Any:
    """Futures, by their names; they are looked for as Dask does, in lists and tuples."""
    from distributed import Future

    if isinstance(value, Future):
        return Named(value.key)
    return type(value)(_named(one) for one in value) if type(value) in (list, tuple) else value


# --- on a worker -----------------------------------------------------------------------------------------------------


async def _served(f: Callable, many: list[tuple], dask_worker: Any) -> list[Any]:
    """f of some questions, by the threads that tasks have, too."""
    from distributed.worker import logger

    logger.addFilter(_silent)  # once, however often
    held, loop = dask_worker.data, asyncio.get_running_loop()
    given = [_found(one, held) for one in many]
    pool = dask_worker.executors["default"]
    return list(await asyncio.gather(*(loop.run_in_executor(pool, f, *one) for one in given)))


def _found(value: Any, held: Any) -> Any:
    """What is meant by names; a KeyError, if it is not here."""
    if isinstance(value, Named):
        return held[value.key]
    return type(value)(_found(one, held) for one in value) if type(value) in (list, tuple) else value


def _silent(record: logging.LogRecord) -> bool:
    """Workers log every function that they are told to run: ours are many."""
    return not (str(record.msg).startswith("Run") and _served.__name__ in map(str, record.args or ()))

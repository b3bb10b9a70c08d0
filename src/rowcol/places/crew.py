"""Crew: the workers of a Dask cluster, what is asked of them, and the bytes that go there and back.

Whatever is sent can be sent again: a worker that is lost takes with it only what others can make anew, or what is here.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.place import Late, time_left
from .aside import aside

log = logging.getLogger(__name__)

TINY = 2_000  # bytes that may travel with every question: fewer than the question itself takes
INLINE = 1_000_000  # bytes that travel with the one question that needs them: 8 ms less than by any other way
SMALL = 250_000  # bytes that travel in Dask's graph, once a worker; more are scattered
TRIES = 6  # of a question whose answer was lost with a worker
TOGETHER = 16  # answers that are fetched at once, as long as they are short
SHORT = 4_000_000  # bytes
NOTED = 1_000  # bytes: of arrays at least this long a worker is told once, and reminded later
NOTES = 256_000_000  # bytes of them that a worker keeps
LATER = 0.3  # seconds after which short answers are forgotten, if nothing is asked
PATIENCE = 120  # seconds to wait for the first worker


Question = Callable[[int, bool], tuple[str | None, tuple]]  # of k, and again? Whom to ask, and what


class LostError(RuntimeError):
    """Workers were lost, time and again, over one question."""


class Note(NamedTuple):
    """An array, or a reminder of one."""

    digest: bytes
    value: np.ndarray | None


class Forgotten(NamedTuple):
    """What a worker answers that does not have what it was reminded of."""


class Crew:
    """The workers of a Dask client."""

    def __init__(self, client: Any) -> None:
        self.client, self.sent, self.received = client, 0, 0
        self.lengths: dict[str, int] = {}  # bytes of the last answer, by what was asked
        self.told: set[tuple[str, bytes]] = set()  # which worker knows what
        self.done: list = []  # answers that may be forgotten

    def workers(self) -> dict[str, int]:
        """Their addresses, and how many threads each has; at least one."""
        self.present()
        found = self.client.nthreads()
        if not found:
            self.client.wait_for_workers(1, timeout=PATIENCE)
            found = self.client.nthreads()
        return dict(sorted(found.items()))

    def memory(self) -> float:
        """Bytes that all of them may use; infinite, if one may use any."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        return float(sum(known.get(one, {}).get("memory_limit") or np.inf for one in self.workers()))

    def present(self) -> None:
        """Is there anybody to ask? An error that says what to do, if not."""
        if self.client.status in ("closed", "closing"):
            raise RuntimeError("the Dask client of X is closed: open a Client, and take rowcol.chunks of X anew")

    def send(self, value: Any, worker: str | None, times: int = 1) -> Any:
        """A value as so many questions to a worker may hold it: itself, or as it lies there."""
        size = weight(value)
        if size > (TINY if times > 1 else INLINE):
            return self.lay(value, worker)
        self.sent += times * size
        return value

    def lay(self, value: Any, worker: str | None) -> Any:
        """A value as it lies on a worker, for any number of questions: it travels once."""
        size = weight(value)
        self.sent += size
        if size <= SMALL and worker:  # by a task, which nobody waits for, and which Dask can do again
            key = f"rowcol-shared-{uuid.uuid4().hex}", 0
            where = {"workers": [worker], "allow_other_workers": True}
            return self.client.submit(_same, value, key=key, pure=False, **where)
        return self.client.scatter([value], workers=[worker] if worker else None, hash=False)[0]

    def note(self, value: Any, worker: str, anew: bool = False) -> Any:
        """A value whose arrays that worker was sent before are left out, whatever they were called then."""
        if isinstance(value, np.ndarray) and value.nbytes >= NOTED:
            digest = hashlib.blake2b(f"{value.dtype.str} {value.shape}".encode(), digest_size=16)
            digest.update(np.ascontiguousarray(value).data)
            name = digest.digest()
            known = (worker, name) in self.told and not anew
            self.told.add((worker, name))
            return Note(name, None if known else value)
        if isinstance(value, tuple):
            made = [self.note(one, worker, anew) for one in value]
            return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
        return value

    def ask(
        self,
        f: Callable,
        count: int,
        question: Question,
        named: Callable | None = None,
        insist: bool = True,
    ) -> Iterator[Any]:
        """f of every question, in order; an answer that was lost with a worker is asked for again.

        `named`: what Dask's dashboard is told, where f only passes it on. Without `insist`, Forgotten stands for an
        answer that did not come, whatever the reason.
        """
        asked = (named or f).__name__.strip("_").replace("_", "-")
        name = f"rowcol-{asked}-{uuid.uuid4().hex}"
        self.done.clear()
        waiting = [self._submit(f, name, k, 0, question) for k in range(count)]
        some: list | None = []
        done: list[Any] = []
        ends = range(0)
        try:
            for k in range(count):
                if k not in ends:  # as long as they were the last time, and as those before
                    step = max(min(TOGETHER, SHORT // max(self.lengths.get(asked, SHORT), 1)), 1)
                    ends = range(k, min(k + step, count))
                    some = self._fetched(waiting[ends.start : ends.stop])
                answer = Forgotten() if some is None else some[k - ends.start]
                if isinstance(answer, Forgotten):
                    one, again = waiting[k], [answer]
                    answer = self._insisted(f, name, k, one, question) if insist else (self._fetched([one]) or again)[0]
                self.lengths[asked] = weight(answer)
                self.received += self.lengths[asked]
                if self.lengths[asked] <= SHORT:
                    done.append(waiting[k])
                waiting[k] = None  # so that the worker may forget it
                yield answer
            self._forget(done)
        except (Late, KeyboardInterrupt, GeneratorExit):
            self._leave([one for one in waiting if one is not None])
            raise

    def beside(self, f: Callable, asked: list[tuple[str | None, tuple]]) -> list[Any] | None:
        """f of questions that take so little that they are no tasks; None, if any answer did not come."""
        answers = aside(self.client, f, asked)
        self.received += sum(weight(one) for one in answers or ())
        return answers

    def _submit(self, f: Callable, name: str, k: int, attempt: int, question: Question) -> Any:
        worker, arguments = question(k, attempt > 0)
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        key = (name, k) if not attempt else (name, k, attempt)
        return self.client.submit(f, *arguments, key=key, pure=False, **where)

    def wait(self, futures: list) -> None:
        """Until they are there, or lost; `Late`, if time is up before."""
        from distributed import wait

        try:
            wait(futures, timeout=time_left())
        except TimeoutError:
            raise Late from None
        except CancelledError:  # who asks for it finds that out
            return

    def arriving(self, futures: list) -> Iterator[Any]:
        """Each as it is there, or lost; `Late`, if time is up before."""
        from distributed import as_completed

        try:
            yield from as_completed(futures, timeout=time_left())
        except TimeoutError:
            raise Late from None

    def _leave(self, futures: list) -> None:
        """Nobody waits for these any more: who is at one leaves it after the part it is at (`wanted`)."""
        if futures and self.client.status == "running":
            self.client.cancel(futures)

    def _forget(self, futures: list) -> None:
        """Short answers may be forgotten: with the next question, or a little later, if none follows.

        What the client says goes out every 10 ms at most. Said by itself, this would hold up the question that follows.
        """
        if self.client.status == "running":
            self.done, loop = futures, self.client.loop
            loop.add_callback(loop.call_later, LATER, futures.clear)

    def _fetched(self, futures: list) -> list | None:
        """Their answers; None where one is missing."""
        try:
            self.wait(futures)
            return self.client.gather(futures)
        except Late:
            raise
        except Exception as wrong:  # which one, and why, is found out, and raised, one by one
            log.debug("answers are fetched one by one: %s", wrong)
            return None

    def _insisted(self, f: Callable, name: str, k: int, future: Any, question: Question) -> Any:
        from distributed.scheduler import KilledWorker

        for attempt in range(1, TRIES + 1):
            try:
                self.wait([future])
                answer = future.result()
                if not isinstance(answer, Forgotten):
                    return answer
            except (CancelledError, KilledWorker) as lost:
                if attempt == TRIES:
                    raise LostError(f"workers were lost over it, {TRIES} times: is it too large for them?") from lost
                self.workers()  # or wait for one
            future = self._submit(f, name, k, attempt, question)
        raise LostError(f"workers forgot what they were told, {TRIES} times")


def current_client() -> Any:
    """Dask's current client, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def weight(value: Any, seen: set[int] | None = None) -> int:
    """Bytes of the arrays in a value, each counted once."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return int(value.nbytes)
    if sp.issparse(value):
        return sum(int(a.nbytes) for a in (value.data, value.indices, value.indptr))
    if isinstance(value, dict):
        return sum(weight(one, seen) for one in value.values())
    if isinstance(value, (tuple, list)):
        return sum(weight(one, seen) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(weight(getattr(value, one), seen) for one in value.__dataclass_fields__)
    return 0


# --- on a worker -----------------------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def wanted() -> bool:
    """Does anybody still wait for the task of this thread? Dask ends none that was begun."""
    from distributed.worker import get_worker, thread_state

    task = get_worker().state.tasks.get(getattr(thread_state, "key", None))
    return task is None or task.state != "cancelled"


_notes: OrderedDict[bytes, np.ndarray] = OrderedDict()
_writing = threading.Lock()


def noted(value: Any) -> Any:
    """The value that `note` stands for; raises KeyError where it is not known here."""
    if isinstance(value, Note):
        with _writing:
            if value.value is not None:
                _notes[value.digest] = value.value
            _notes.move_to_end(value.digest)
            found = _notes[value.digest]
            held = sum(one.nbytes for one in _notes.values())
            for old in list(_notes)[:-1]:
                if held <= NOTES:
                    break
                held -= _notes.pop(old).nbytes
        return found
    if isinstance(value, tuple):
        made = [noted(one) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value

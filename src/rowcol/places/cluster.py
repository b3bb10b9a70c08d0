"""Dask collections as places: rows stay where they are, and what is asked of them goes there.

With a Dask client the parts are kept in the memory of its workers, each a task of the user's own graph: a worker that
is lost costs the time to make its parts anew. Without one, Dask computes part after part here, one ahead.
"""

from __future__ import annotations

import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from inspect import isfunction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.place import Asked, Place, aligned, cut, fitting, in_time, on_time, tell, type_for
from ..core.problem import precision
from ..core.words import first_line
from .crew import Crew, Forgotten, LostError, current_client, noted, wanted, weight

HELD = 64_000_000  # bytes of answers that come together, from all workers


class Spread(Place):
    """X on the workers of a Dask cluster."""

    together = True  # parts can be asked at the same time

    def __init__(self, crew: Crew, futures: list, starts: np.ndarray, p: int, kind: Any, name: str) -> None:
        super().__init__(kind, starts, p, name)
        self.crew, self.token = crew, uuid.uuid4().hex
        self.futures = [self._kept(k, one, None) for k, one in enumerate(futures)]
        self.owners: list[str] = []
        self.seen: dict[str, int] = {}
        self.lengths: dict[tuple, int] = {}  # bytes of a part's last answer, by what was asked

    @property
    def sent(self) -> int:
        """Bytes that went to the workers."""
        return self.crew.sent

    @property
    def received(self) -> int:
        """Bytes that came back."""
        return self.crew.received

    @property
    def waiting(self) -> int:
        """Nothing of X is here."""
        return 0

    def part(self, k: int) -> Any:
        """A part, fetched: for messages, and for points of kernels."""
        self.crew.present()
        found = self.futures[k].result()
        self.crew.received += found.data.nbytes
        return found

    def checked(self, k: int) -> Any:
        """`part`, or an error that names it."""
        self.crew.present()  # a client that is closed is no fault of the part
        return super().checked(k)

    def map(
        self,
        f: Asked,
        shared: tuple = (),
        sliced: tuple = (),
        pool: Executor | None = None,
        which: Sequence[int] | None = None,
        beside: Sequence | None = None,
    ) -> Iterator[Any]:
        """f of every part, or of some, where that part is.

        A question is about all parts of a worker's thread at once, as far as their answers are known to be short:
        what they share travels once, and questions are what a round takes. Answers stay apart, so that what is made
        of them does not depend on who has which part.
        """
        self.settle()
        parts = list(range(self.count) if which is None else which)
        told: list[Asked] = [f, *filter(isfunction, shared)]  # who scales rows first is told what comes then
        asked = *(one.__name__ for one in told), weight(shared)
        shares = self._shares(parts, self.lengths.get(asked))
        common, times = dict[str, Any](), Counter(self.owners[share[0]] for share in shares)

        def question(i: int, again: bool) -> tuple[str | None, tuple]:
            worker = self.owners[shares[i][0]]
            if worker not in common:
                common[worker] = self.crew.send(shared, worker, times[worker])
            return worker, (f, *self._given(shares[i], sliced, beside), common[worker])

        came: dict[int, Any] = {}
        given = 0
        answers = self.crew.ask(_asked, len(shares), question, told[-1], insist=False)
        for share, answer in zip(shares, answers, strict=True):
            came.update(_each(share, answer))
            for k in parts[given:]:
                if k not in came:
                    break
                one = came.pop(k)
                if isinstance(one, Forgotten):
                    one = self._insisted(k, f, shared, sliced, beside, told[-1])
                self.lengths[asked] = weight(one)
                given += 1
                yield one
                tell(given, len(parts))
                if given < len(parts):
                    on_time()

    def _insisted(self, k: int, f: Asked, shared: tuple, sliced: tuple, beside: Sequence | None, named: Asked) -> Any:
        """The answer of a part that did not come with those of others: or else why it does not come."""

        def question(_: int, again: bool) -> tuple[str | None, tuple]:
            self.settle()  # whoever was lost may have had what was sent
            given = self._given([k], sliced, beside, True)
            return self.owners[k], (f, *given, self.crew.send(shared, self.owners[k]))

        try:
            return next(self.crew.ask(_asked, 1, question, named))[0]
        except Exception as wrong:
            raise self._explained(k, wrong) from wrong

    def _given(
        self, share: list[int], sliced: tuple, beside: Sequence | None, anew: bool = False
    ) -> tuple[list, list | None, Any]:
        """Some parts of a worker, what lies beside them, and what belongs to their rows."""
        crew, worker = self.crew, self.owners[share[0]]
        mine = [crew.note(tuple(cut(a, self.rows(k)) for a in sliced), worker, anew) for k in share]
        cells = None if beside is None else [beside[k] for k in share]
        return [self.futures[k] for k in share], cells, crew.send(mine, worker)

    def cells(self, make: Callable[[int], Any]) -> list:
        """make(k) of every part, on the worker that has it; Dask forgets it when it is forgotten here."""
        self.settle()
        name = f"rowcol-{make.__name__.lower()}-{uuid.uuid4().hex}"
        where = [{"workers": [worker], "allow_other_workers": True} for worker in self.owners]
        submit = self.crew.client.submit
        return [submit(make, k, key=(name, k), pure=False, **here) for k, here in enumerate(where)]

    def _shares(self, parts: list[int], length: int | None) -> list[list[int]]:
        """Parts that are asked about together: one by one, as long as nobody knows how long an answer is."""
        if length is None:
            return [[k] for k in parts]
        seats: dict[tuple[str, int], list[int]] = {}
        turns: Counter = Counter()
        for k in parts:
            worker = self.owners[k]
            seats.setdefault((worker, turns[worker] % self.seen[worker]), []).append(k)
            turns[worker] += 1
        most = max(HELD // (max(length, 1) * len(seats)), 1)  # as all of them may be here at a time
        found = [mine[i : i + most] for mine in seats.values() for i in range(0, len(mine), most)]
        return sorted(found, key=lambda share: share[0])

    def _explained(self, k: int, wrong: Exception) -> Exception:
        """What went wrong, by the name of the part where it was the part."""
        if isinstance(wrong, LostError):
            return LostError(f"{self.told(k)}: {wrong}")
        if self.futures[k].status != "error" or str(wrong).startswith(self.name):
            return wrong
        return type_for(wrong)(f"{self.told(k)} cannot be read: {first_line(wrong)}")

    def _kept(self, k: int, source: Any, worker: str | None) -> Any:
        """A task that holds the part as it should be."""
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        want = int(self.starts[k + 1] - self.starts[k]), self.shape[1]
        key = (f"rowcol-part-{self.token}", k) if not worker else (f"rowcol-part-{uuid.uuid4().hex}", k)
        arguments = source, want, self.dtype, self.told(k)
        return self.crew.client.submit(_fitting, *arguments, key=key, pure=False, **where)

    def settle(self) -> None:
        """Who has which part; those of the busiest go to workers that have come since."""
        workers = self.crew.workers()
        if workers == self.seen:
            return
        for _ in in_time(self.crew.arriving(self.futures), self.count):  # it may take as long as reading all of it
            pass
        holds = self.crew.client.who_has(self.futures)
        found = [[w for w in holds.get(one.key, ()) if w in workers] for one in self.futures]
        lengths, threads = np.diff(self.starts), sum(workers.values())
        room = {w: t / threads * self.shape[0] for w, t in workers.items()}
        owners: list[str] = [""] * self.count
        for k, where in enumerate(found):  # those that have room keep what they have
            best = max(where, key=room.__getitem__, default="")
            if best and room[best] > 0.25 * lengths[k]:
                owners[k], room[best] = best, room[best] - lengths[k]
        for k in (k for k, owner in enumerate(owners) if not owner):
            owners[k] = max(workers, key=room.__getitem__)
            room[owners[k]] -= lengths[k]
            if owners[k] not in found[k] and self.futures[k].status != "error":
                self.futures[k] = self._kept(k, self.futures[k], owners[k])
        self.owners, self.seen = owners, workers


def _each(share: list[int], answer: Any) -> dict[int, Any]:
    """What came of each part."""
    return dict.fromkeys(share, answer) if isinstance(answer, Forgotten) else dict(zip(share, answer, strict=True))


class Lazy(Place):
    """Dask blocks without a cluster: each is computed here when it is its turn, the next one meanwhile."""

    remedy = "give X in shorter chunks, or open a Client, whose workers keep them"

    def __init__(self, blocks: list, starts: np.ndarray, p: int, kind: Any, name: str) -> None:
        super().__init__(kind, starts, p, name)
        self.blocks = blocks

    def part(self, k: int) -> Any:
        """A block, computed."""
        return _numbers(self.blocks[k].compute())


class Opened(NamedTuple):
    """What is known of a Dask collection: its blocks, and their lengths where they are known."""

    blocks: list  # Delayed, one a part
    lengths: list[int] | None
    p: int | None
    kind: Any
    name: str


def is_dask(source: Any) -> bool:
    """A Dask array, data frame or series, a Delayed or a list of them?"""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(is_delayed(one) for one in source)
    return is_delayed(source) or _module(source).startswith(("dask.array", "dask.dataframe", "dask_expr"))


def is_delayed(value: Any) -> bool:
    """What Dask has yet to make, whatever that is?"""
    return _module(value) == "dask.delayed"


def _module(value: Any) -> str:
    return type(value).__module__


def spread(
    source: Any, columns: Any = None, target: str | None = None
) -> tuple[Place, np.ndarray | None, tuple[str, ...] | None]:
    """X, y and the names of its columns, of a Dask collection."""
    names, y = None, None
    source = [source] if is_delayed(source) else source  # which says that it has any attribute
    if hasattr(source, "to_dask_array"):
        opened, names, y = _of_frame(source, columns, target)
    elif columns is not None or target is not None:
        raise TypeError(f"columns and target are for tables with names, not for {type(source).__name__}")
    else:
        opened = _of_array(source) if hasattr(source, "chunks") else Opened(list(source), None, None, None, "X")
    client = current_client()
    place: Place = _here(opened) if client is None else _there(opened, Crew(client))
    place.names = names
    return place, y, names


def _of_array(X: Any) -> Opened:
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim} (shape {X.shape})")
    if 0 in X.shape:
        raise ValueError(f"X is empty (shape {X.shape}): it needs at least one row and one column")
    if X.numblocks[1] > 1:
        many = X.numblocks[1]
        warnings.warn(
            f"columns of X are in {many} chunks, and a part needs whole rows: Dask puts them together, which moves "
            "most of X once; X.rechunk({1: -1}) beforehand, or chunks of rows from the start, avoid this warning",
            UserWarning,
            stacklevel=2,
        )
        X = X.rechunk({1: -1})
    known = not any(np.isnan(c) for c in X.chunks[0])
    kind = precision(X.dtype, "X")
    blocks, lengths = list(X.to_delayed().ravel()), [int(c) for c in X.chunks[0]] if known else None
    return Opened(blocks, lengths, int(X.shape[1]), kind, "X")


def _of_frame(X: Any, columns: Any, target: str | None) -> tuple[Opened, tuple[str, ...] | None, np.ndarray | None]:
    if X.ndim != 2:
        raise ValueError("X must have 2 dimensions, and this is one column of a table: take frame[[name]]")
    have = list(X.columns)
    chosen = list(columns) if columns is not None else [c for c in have if c != target]
    missing = [c for c in (*chosen, *([target] if target is not None else [])) if c not in have]
    if missing:
        raise ValueError(f"the table has no column {missing[0]!r}: it has {', '.join(map(str, have[:8]))}")
    if not chosen:
        raise ValueError("the table has no columns left for X")
    kinds = X.dtypes
    for c in (*chosen, *([target] if target is not None else [])):
        if getattr(kinds[c], "kind", "O") not in "fiub":
            raise TypeError(f"column {c!r} is of {kinds[c]}, not of numbers: leave it out by columns=, or encode it")
    y = None
    if target is not None:
        y = np.asarray(X[target].compute().to_numpy(dtype=np.float64, na_value=np.nan))
    return Opened(list(X[chosen].to_delayed()), None, len(chosen), np.dtype(float), "X"), tuple(map(str, chosen)), y


def _here(opened: Opened) -> Lazy:
    import dask

    shapes = None if opened.lengths else dask.compute(*(dask.delayed(_shape)(one) for one in opened.blocks))
    blocks, starts, p, kind = _measured(opened, opened.blocks, shapes)
    return Lazy(blocks, starts, p, kind, opened.name)


def _there(opened: Opened, crew: Crew) -> Spread:
    futures = crew.client.compute(opened.blocks)
    shapes = None
    if opened.lengths is None:
        found = crew.ask(_shape, len(futures), lambda k, again: (None, (futures[k],)))
        shapes = list(in_time(found, len(futures)))
    futures, starts, p, kind = _measured(opened, futures, shapes)
    return Spread(crew, futures, starts, p, kind, opened.name)


def _measured(opened: Opened, blocks: list, shapes: Any) -> tuple[list, np.ndarray, int, Any]:
    """Blocks that have rows, where they begin, how wide they are and of what precision."""
    if shapes is None:
        lengths, p, kind = opened.lengths, opened.p, opened.kind
    else:
        for k, (shape, kind) in enumerate(shapes):
            if len(shape) != 2:
                raise ValueError(
                    f"{opened.name}: chunk {k + 1} of {len(shapes)} should be rows of numbers, and is {kind}"
                )
        lengths = [shape[0] for shape, _ in shapes]
        p = opened.p if opened.p is not None else next((w for (n, w), _ in shapes if n), 0)  # which others must have
        live = {precision(kind, opened.name) for shape, kind in shapes if shape[0]}
        kind = np.result_type(*live) if live else np.dtype(float)
    assert lengths is not None
    assert p is not None
    if not sum(lengths) or not p:
        raise ValueError(f"X is empty (shape {(sum(lengths), p)}): it needs at least one row and one column")
    kept = [one for one, length in zip(blocks, lengths, strict=True) if length]
    return kept, np.cumsum([0, *(length for length in lengths if length)]), p, kind


# --- what workers run ------------------------------------------------------------------------------------------------


def _asked(f: Asked, parts: list, cells: list | None, sliced: list[tuple], shared: tuple) -> Any:
    try:
        mine, shared = aligned([noted(one) for one in sliced]), aligned(shared)
    except KeyError:
        return Forgotten()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # it is found, and said
        beside: list[tuple] = [()] * len(parts) if cells is None else [(cell,) for cell in cells]
        given = zip(aligned(parts), beside, mine, strict=True)
        found = [f(part, None, *cell, *shared, *own) for part, cell, own in given if wanted()]
    return found if len(found) == len(parts) else Forgotten()  # should Dask want it after all, it is asked for anew


def _fitting(found: Any, want: tuple[int, int], kind: np.dtype, name: str) -> Any:
    return fitting(_numbers(found), want, kind, name)


def _shape(found: Any) -> tuple[tuple[int, ...], Any]:
    """Its shape and dtype; what it is, where it is no rows of numbers."""
    made = _numbers(found)
    if made.ndim != 2:
        told = f"an array of shape {made.shape}" if hasattr(found, "shape") else f"a {type(found).__name__}"
        return (), told
    return made.shape, made.dtype


def _numbers(found: Any) -> Any:
    """A block as an array: of a data frame its values, with NaN where one is missing."""
    if hasattr(found, "iloc"):
        return found.to_numpy(dtype=np.float64, na_value=np.nan)
    return found if sp.issparse(found) else np.asarray(found)

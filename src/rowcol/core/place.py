"""Place: an X that lies elsewhere, on disk or on other machines, in parts of whole rows.

Nothing asks for all of it. What is to be done with X is a function of one part, `f(part, pool, *shared, *sliced)`, and
`map` gives what it found, part by part, in order: vectors of the length of a row are shared, those of the length of a
column are cut to the part's rows. So the same functions serve files, which are read one ahead, and a cluster, where
they run where the part is. It is a `LinearOperator` too: what knows nothing of places multiplies with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .sparse import sound
from .threads import SHARED, ahead, workers_of
from .words import first_line

ABREAST = 3  # threads that take a part each, at most: as many parts are in memory at a time
PIECE = 2_000_000  # bytes of a part that are still in a core's own cache when they are used after having been read

Asked = Callable[..., Any]  # f(part, pool, *shared, *sliced)

# of the passes that this thread asks for: when they are left, and who is told how far they are
_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))
_told: ContextVar[Callable[[int, int], None] | None] = ContextVar("told", default=None)


class Late(Exception):  # noqa: N818 - nothing is wrong
    """Time is up, and a pass was left between two parts."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Passes are left, by `Late`, once `perf_counter` is beyond this: one over all parts may take hours."""
    before = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(before)


@contextmanager
def telling(who: Callable[[int, int], None] | None) -> Iterator[None]:
    """Passes tell, after each part, how many are done, and of how many; they tell nobody else."""
    before = _told.set(who)
    try:
        yield
    finally:
        _told.reset(before)


def tell(done: int, count: int) -> None:
    """Say how far a pass is, to whom it may concern."""
    who = _told.get()
    if who is not None:
        who(done, count)


def in_time(found: Iterable, count: int, left: bool = True) -> Iterator:
    """What is found in so many parts, as it comes, and tell how many were used; `Late`, if time is up before the last.

    Not `left`: whoever asks looks at the clock.
    """
    done = 0
    for one in found:
        yield one
        del one  # or it would be held while the next one is read, as `enumerate` does
        done += 1  # noqa: SIM113
        tell(done, count)
        if left and done < count:
            on_time()


def on_time() -> None:
    """`Late`, if time is up."""
    if time.perf_counter() > _deadline.get():
        raise Late


def time_left() -> float | None:
    """Seconds that who waits may wait; None for ever."""
    left = _deadline.get() - time.perf_counter()
    return None if left == float("inf") else max(left, 0.0)


class Place(LinearOperator):
    """X in parts of whole rows.

    starts : where each part begins, and where the last one ends
    together : can all parts be asked at once?
    """

    together = False
    room = 0  # bytes that points may take here, where a kernel brings some of them
    shorter = False  # may parts be cut to fit the memory, by `shortened`?
    unpacked = 0  # bytes that a reading takes beside its part: what is stored together is unpacked together
    stored = ""  # what that is, for messages
    kept = 0  # bytes that stay as long as it is read
    names: tuple[str, ...] | None = None  # of the columns, where they have any
    lent = False  # do all parts lie in memory as it is, and are somebody else's?
    remedy = "say fewer rows="  # where parts are too long, and may not be cut
    alone = False  # is it read by one thread only?

    def __init__(self, dtype: Any, starts: np.ndarray, p: int, name: str = "X") -> None:
        self.starts = np.asarray(starts, dtype=np.int64)
        self.name = name
        super().__init__(np.dtype(dtype), (int(self.starts[-1]), int(p)))

    def __repr__(self) -> str:
        n, p = self.shape
        return f"<{self.name}: {n:,} x {p:,}, {self.dtype}, in {self.count:,} part{'s' * (self.count != 1)}>"

    @property
    def count(self) -> int:
        """How many parts."""
        return len(self.starts) - 1

    @property
    def held(self) -> int:
        """Bytes of parts that are in memory at a time."""
        return self.waiting + self.kept + self.unpacked * (1 if self.alone else ABREAST)

    @property
    def waiting(self) -> int:
        """Bytes of three parts: one is used, one waits, one is being read."""
        return 3 * int(np.diff(self.starts).max()) * self.shape[1] * self.dtype.itemsize

    def part(self, k: int) -> Any:
        """Rows starts[k], ..., starts[k + 1] − 1, as an array or a CSR array."""
        raise NotImplementedError

    def parts(self, order: Any = None) -> Iterator[tuple[int, Any]]:
        """k and its part, of all of them; the next one is read while this one is used."""
        order = range(self.count) if order is None else [int(k) for k in order]
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(self.checked, order[0])
            for here, after in zip(order, [*order[1:], None], strict=True):
                now = waiting.result()
                if after is not None:
                    waiting = reader.submit(self.checked, after)
                yield here, now
                del now  # or it would be held while the next but one is read

    def map(
        self,
        f: Asked,
        shared: tuple = (),
        sliced: tuple = (),
        pool: Executor | None = None,
        which: Sequence[int] | None = None,
        beside: Sequence | None = None,
    ) -> Iterator[Any]:
        """f of every part, in order; or of some of them, named in rising order.

        A few threads take a part each, and read it, too: so one reads while another works, and none waits for another.
        With `beside`, of `cells`, f has that of its part before all that is shared.
        """
        many = self.count if which is None else len(which)
        if not many:
            return

        def own(k: int) -> tuple:
            return () if beside is None else (beside[k],)

        def one(k: int, part: Any = None) -> Any:
            if part is None:
                part = self.unread(k) if getattr(f, "by_pieces", False) else self.checked(k)
            return f(part, None, *own(k), *shared, *(cut(a, self.rows(k)) for a in sliced))

        if (
            pool is not None and abreast(pool) and self.shape[1] <= SHARED
        ):  # or else BLAS has threads of its own, or there are too many
            yield from in_time(ahead(pool, one, self.asked(which), ABREAST), many)
            return
        for k, part in in_time(self.parts(which), many):
            if which is None or k in which:  # where parts come in their own order, those before do, too
                yield f(part, pool, *own(k), *shared, *(cut(a, self.rows(k)) for a in sliced))
            if which is not None and k >= which[-1]:
                return

    def cells(self, make: Callable[[int], Any]) -> list:
        """make(k) of every part, which stays where that part is: for `beside`."""
        return [make(k) for k in range(self.count)]

    def asked(self, which: Sequence[int] | None) -> Iterator[tuple]:
        """Parts that threads are to take, by their numbers; or, where one has to read them, as they come."""
        if self.alone:
            return self.parts(which)
        return ((int(k),) for k in (range(self.count) if which is None else which))

    def rows(self, k: int) -> slice:
        """The rows of a part."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def some(self, which: np.ndarray) -> Any:
        """Some rows, by their numbers in rising order, as an array or a CSR array."""
        chosen = np.zeros(self.shape[0], bool)
        chosen[which] = True
        parts = np.unique(np.searchsorted(self.starts, which, side="right") - 1)
        return stacked(list(self.map(_chosen, (), (chosen,), which=parts.tolist())))

    def checked(self, k: int) -> Any:
        """`part`, or an error that names it."""
        try:
            found = self.part(k)
        except Exception as wrong:
            raise type_for(wrong)(f"{self.told(k)} cannot be read: {first_line(wrong)}") from wrong
        return self.fitting(k, found)

    def unread(self, k: int) -> Any:
        """`checked`, or an `Unread` in its place."""
        return self.checked(k)

    def fitting(self, k: int, found: Any) -> Any:
        """A part as it should be: of this many rows and columns, and of numbers of this dtype."""
        return fitting(found, (int(self.starts[k + 1] - self.starts[k]), self.shape[1]), self.dtype, self.told(k))

    def told(self, k: int) -> str:
        """How messages call a part."""
        return f"{self.name}: chunk {k + 1} of {self.count} (rows {self.starts[k]:,} to {self.starts[k + 1] - 1:,})"

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return np.concatenate(list(self.map(_pulled, (np.ravel(v),))))

    def _rmatvec(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(sum(self.map(_pushed, (), (np.ravel(u),))))


class Scaled(Place):
    """√w X, part by part."""

    def __init__(self, of: Place, root: np.ndarray) -> None:
        super().__init__(np.result_type(of.dtype, np.float64), of.starts, of.shape[1], of.name)
        self.of, self.root, self.together = of, root, of.together

    def part(self, k: int) -> Any:
        """A part, its rows scaled."""
        return times_rows(self.of.checked(k), self.root[self.starts[k] : self.starts[k + 1]])

    def map(
        self,
        f: Asked,
        shared: tuple = (),
        sliced: tuple = (),
        pool: Executor | None = None,
        which: Sequence[int] | None = None,
        beside: Sequence | None = None,
    ) -> Iterator[Any]:
        """f of every scaled part, where that part is."""
        assert beside is None, "rows are scaled for columns, which keep nothing beside them"
        first = _pieces_scaled if getattr(f, "by_pieces", False) else _scaled_first
        return self.of.map(first, (f, len(shared), *shared), (self.root, *sliced), pool, which)


def _scaled_first(part: Any, pool: Executor | None, f: Asked, many: int, *rest: Any) -> Any:
    shared, (root, *sliced) = rest[:many], rest[many:]
    return f(times_rows(part, root), pool, *shared, *sliced)


class Unread:
    """A part that is read, or made, as it is gone through: a piece of it is gone when the next one comes."""

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype,
        read: Callable[[int], Iterator[np.ndarray]],
        whole: Callable[[], Any],
        copies: int = 1,  # of a piece that are there at a time
    ) -> None:
        self.shape, self.dtype, self.read, self.whole, self.copies = shape, dtype, read, whole, copies


def by_pieces(f: Asked) -> Asked:
    """Mark an f that goes through its part once, by `pieces_of`: it is given parts that are not read yet."""
    vars(f)["by_pieces"] = True
    return f


@by_pieces
def _pieces_scaled(part: Any, pool: Executor | None, f: Asked, many: int, *rest: Any) -> Any:
    """The same of an f that goes through its part by pieces: no part is there twice."""
    if pool is not None or sp.issparse(part):
        return _scaled_first(whole(part), pool, f, many, *rest)
    root = rest[many]

    def read(step: int) -> Iterator[np.ndarray]:
        for rows, piece in cut_into(part, step):
            yield times_rows(piece, root[rows])

    lazy = Unread(part.shape, np.result_type(part.dtype, root), read, lambda: times_rows(whole(part), root), 2)
    return f(lazy, pool, *rest[:many], *rest[many + 1 :])


def whole(part: Any) -> Any:
    """A part, read."""
    return part.whole() if isinstance(part, Unread) else part


def pieces_of(part: Any, least: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
    """A dense part, some rows at a time, and which they are: of PIECE bytes, but of no fewer rows than this."""
    copies = part.copies if isinstance(part, Unread) else 1
    return cut_into(part, max(PIECE // (copies * part.shape[1] * part.dtype.itemsize), least))


def cut_into(part: Any, step: int) -> Iterator[tuple[slice, np.ndarray]]:
    """The same, of so many rows."""
    begins = range(0, part.shape[0], step)
    found = part.read(step) if isinstance(part, Unread) else (part[i : i + step] for i in begins)
    for i, piece in zip(begins, found, strict=True):
        yield slice(i, i + len(piece)), piece


def fitting(found: Any, want: tuple[int, int], kind: np.dtype, name: str) -> Any:
    """A part, if it has this shape, in this precision; an error by its name if not."""
    if getattr(found, "shape", None) != want:
        got = getattr(found, "shape", type(found).__name__)
        raise ValueError(f"{name} should be {want[0]:,} x {want[1]:,}, but is {got}: it was cut or changed")
    if sp.issparse(found):
        with np.errstate(over="ignore"):  # what leaves float64 is infinite, and found
            return sound(found, kind, name).tocsr()
    found = np.asarray(found)
    if found.dtype.kind not in "fiubc":
        raise TypeError(f"{name} has dtype {found.dtype}, which is not numeric")
    with np.errstate(over="ignore"):
        return np.require(found, kind, ("C", "A"))


def aligned(value: Any) -> Any:
    """Arrays that begin where numbers do: not all that came over a network do, and BLAS leaves these to other code."""
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if sp.issparse(value) and value.format in ("csr", "csc"):
        return type(value)(aligned((value.data, value.indices, value.indptr)), shape=value.shape)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(aligned, value))
    return type(value)(map(aligned, value)) if type(value) in (tuple, list) else value


def times_rows(part: Any, root: np.ndarray) -> Any:
    """Rows, each times a number, in double precision also where they are not: rounding X would change the problem."""
    if sp.issparse(part):
        each = root[part.indices] if part.format == "csc" else np.repeat(root, np.diff(part.indptr))
        return type(part)((part.data * each, part.indices, part.indptr), shape=part.shape)
    return np.multiply(part, root[:, None], order="K")


def cut(a: Any, rows: slice) -> Any:
    """What of a sliced argument belongs to a part: the last axis is that of the rows of X. Of a Shift, its ones."""
    if hasattr(a, "ones"):
        return a._replace(ones=a.ones[rows], column2=None)
    return None if a is None else a[..., rows]


def stacked(parts: list) -> Any:
    """Rows one below the other, as an array or a CSR array."""
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)


def _chosen(part: Any, pool: Executor | None, chosen: np.ndarray) -> Any:
    return part[chosen]


def abreast(pool: Executor | None) -> bool:
    """Are there threads, and few enough to have a part each?"""
    return 1 < workers_of(pool) <= ABREAST


def _pulled(part: Any, pool: Executor | None, v: np.ndarray) -> np.ndarray:
    return np.asarray(part @ v)


def _pushed(part: Any, pool: Executor | None, u: np.ndarray) -> np.ndarray:
    return np.asarray(part.T @ u.conj()).conj()


def type_for(wrong: Exception) -> type[Exception]:
    """OSError for what the system says of a file, MemoryError as it is, ValueError for the rest."""
    if isinstance(wrong, (OSError, MemoryError)):
        return OSError if isinstance(wrong, OSError) else MemoryError
    return ValueError

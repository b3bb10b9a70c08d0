"""Far: the points of a kernel matrix, where they lie elsewhere, in parts.

The points of some parts are brought here, as many as there is room for, and meet those of every later part where these
are: each entry is made once and serves twice. So a product reads X once for every such block, and no more than a
block and a part are in memory at a time, whatever the number of points; on a cluster blocks travel, parts stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .explain import explain_values
from .gram import Gram, alone, between, cross, facing, picked, product, two_ways, written
from .kernels import Precomputed
from .memory import width_of
from .place import ABREAST, Place, stacked
from .recipes import Kernel
from .sides import Leaf, begun, leaves_of, reach2_of, settled
from .sizes import diagonal, fits_single, sizes2

NUMBER = 16  # bytes of a number among points that are read and put together
LAID = 8  # and laid out in tiles, for each one-line kernel
PREPARED = 32  # bytes of a number in a tile while it is laid out: centred, scaled, and its square
TILE = 125_000  # numbers of a tile at most: tiles of points with many features are narrow, and their room is small


class Sizes(NamedTuple):
    """What `sizes.py` says, of all parts."""

    diagonal: np.ndarray
    sizes2: np.ndarray
    single: bool


@dataclass(frozen=True)
class _From:
    """v as parts are sent it: nothing of it for those before a row."""

    v: np.ndarray
    first: int

    def __getitem__(self, key: Any) -> Any:
        return self.v[key] if key[-1].start >= self.first else None


@dataclass(eq=False)
class Far:
    """Points elsewhere, and what was seen of them."""

    place: Place
    leaves: int
    known: dict[type, Sizes] = field(default_factory=dict, repr=False)

    def points(self, which: np.ndarray) -> Any:
        """Some points, in the order they were asked for."""
        order, back = np.unique(which, return_inverse=True)
        return _finite(self.place.some(order), self.place)[back]

    def blocks(self) -> list[tuple[int, int]]:
        """Parts that are here together: from the first to the last but one."""
        return blocks_of(self.place, self.leaves)

    def cuts(self, g: Gram) -> int:
        """By how much sums are longer than those of one Gram: tiles that are cut short, and the blocks added up."""
        return 2 * self.place.count + len(self.blocks())

    def product(self, g: Gram, v: np.ndarray) -> np.ndarray:
        """K v; where both sides are these points, every entry serves twice."""
        place, near = self.place, replace(alone(g), far=None)
        if not g.symmetric:
            return np.asarray(sum(place.map(_seen, (near,), (v,), g.pool)))
        out = np.zeros((len(v), g.shape[0]))
        for first, stop in self.blocks():
            rows, asked = slice(int(place.starts[first]), int(place.starts[stop])), range(stop, place.count)
            block, mine = between(near, self._block(first, stop)), v[:, rows]
            if place.together:  # those who have the block's own points do that, too: it travels once
                asked = range(first, place.count)
            else:
                out[:, rows] += product(replace(block, pool=g.pool), mine)
            found = place.map(_both, (block, mine), (_From(v, rows.stop),), g.pool, asked)
            for k, (here, there) in zip(asked, found, strict=True):
                out[:, place.rows(k)] += there
                if here is not None:
                    out[:, rows] += here
        return out

    def columns(self, g: Gram, which: np.ndarray, v: np.ndarray) -> np.ndarray:
        """K[:, which] v: some points go to where the others are."""
        few = between(replace(alone(g), far=None), self.points(which))
        return np.concatenate(list(self.place.map(_met, (few, v), (), g.pool)), axis=1)

    def written(self, g: Gram, out: np.ndarray) -> np.ndarray:
        """Entries of the rows on the left, in `out`."""
        if g.symmetric:
            for first, stop in self.blocks():
                rows = np.arange(self.place.starts[first], self.place.starts[stop])
                written(picked(g, rows), out[rows[0] : rows[-1] + 1])
            return out
        lines = self.place.map(_lines, (replace(alone(g), far=None),), (), g.pool)
        for k, found in enumerate(lines):
            out[:, self.place.rows(k)] = found
        return out

    def sizes(self, g: Gram) -> Sizes:
        """The diagonal of K and the like, part by part, the first time."""
        if g.dtype not in self.known:
            found = list(self.place.map(_sizes, (replace(alone(g), far=None),)))
            own, most = (np.concatenate([one[i] for one in found]) for i in (0, 1))
            self.known[g.dtype] = Sizes(own, most, all(one.single for one in found))
        return self.known[g.dtype]

    def _block(self, first: int, stop: int) -> Any:
        return stacked([part for _, part in self._parts(range(first, stop))])

    def _parts(self, which: range) -> Iterator[tuple[int, Any]]:
        if self.place.together:
            return ((k, self.place.part(k)) for k in which)
        return ((k, part) for k, part in self.place.parts(which) if k in which)


def blocks_of(place: Place, leaves: int = 1) -> list[tuple[int, int]]:
    """Consecutive parts whose points, as tiles, fit into the room there is for them; one at least."""
    ends, fits = [0], place.room // ((NUMBER + LAID * leaves) * place.shape[1])
    for k in range(1, place.count):
        if place.starts[k + 1] - place.starts[ends[-1]] > fits:
            ends.append(k)
    return list(zip(ends, [*ends[1:], place.count], strict=True))


def bytes_here(place: Place, leaves: int = 1) -> int:
    """What is in memory at a time: a block, a part that meets it, and those that are read ahead."""
    most = max(int(place.starts[b] - place.starts[a]) for a, b in blocks_of(place, leaves))
    part = 0 if place.together else ABREAST * int(np.diff(place.starts).max())
    laid_out = (NUMBER + LAID * leaves) * (most + part) + PREPARED * min(most, _width(place))
    return place.shape[1] * laid_out + place.held


def _width(place: Place) -> int:
    n, d = place.shape
    return width_of(n, max(TILE // d // 4 * 4, 64))


def grams_of(kernel: Kernel, place: Place, pool: Executor | None) -> Callable[[type], Gram]:
    """The kernel matrix of points that lie elsewhere, in whichever precision: two passes see what they are like."""
    found = list(place.map(_seen_first))
    n, d = place.shape
    sparse, lowest = bool(found[0][2]), min(one[1] for one in found)
    if any(bool(one[2]) != sparse for one in found):
        raise TypeError(f"{place.name} has parts that are sparse and parts that are not: a kernel needs one kind")
    mean = np.sum([one[0] for one in found], axis=0) / n
    if not np.isfinite(mean).all():
        raise ValueError(explain_values(place))
    if any(isinstance(leaf, Precomputed) for leaf in leaves_of(kernel)):
        raise TypeError("a precomputed kernel matrix must be in memory: load X, or allow more memory")
    made = [begun(leaf, place.shape, sparse, lambda: mean, np.float64) for leaf in leaves_of(kernel)]
    reach2 = np.max(list(place.map(_reach2, (made,))), axis=0)
    far, width = Far(place, len(made)), _width(place)

    def of(dtype: type) -> Gram:
        leaves = tuple(
            begun(one.kernel, place.shape, sparse, lambda: mean, dtype)
            if one.recipe is None
            else settled(one, d, sparse, float(r2), lowest, dtype)
            for one, r2 in zip(made, reach2, strict=True)
        )
        return Gram(kernel, leaves, (), (), (n, n), d, sparse, dtype, width, pool, far=far)

    return of


# --- of one part, where it is ----------------------------------------------------------------------------------------


def _finite(part: Any, place: Place) -> Any:
    if not np.isfinite(part.data if sp.issparse(part) else part).all():
        raise ValueError(explain_values(place))
    return part


def _seen_first(part: Any, pool: Executor | None) -> tuple[np.ndarray, float, bool]:
    """Sums of columns, in double precision; the lowest number; sparse or not."""
    values = part.data if sp.issparse(part) else part
    sums = np.asarray(part.sum(axis=0, dtype=np.float64)).ravel()
    if not np.isfinite(values).all():  # sums of large numbers may be infinite, too: both are explained
        sums = np.full_like(sums, np.nan)
    return sums, float(values.min(initial=0.0)), sp.issparse(part)


def _reach2(part: Any, pool: Executor | None, made: list[Leaf]) -> list[float]:
    return [0.0 if leaf.recipe is None else reach2_of(leaf, part) for leaf in made]


def _sizes(part: Any, pool: Executor | None, g: Gram) -> Sizes:
    mine = between(g, part)
    return Sizes(diagonal(mine), sizes2(mine), fits_single(mine))


def _seen(part: Any, pool: Executor | None, g: Gram, v: np.ndarray) -> np.ndarray:
    """K(left, part) v."""
    return product(replace(facing(g, part), pool=pool), v)


def _met(part: Any, pool: Executor | None, g: Gram, v: np.ndarray) -> np.ndarray:
    """K(part, right) v."""
    return product(replace(cross(g, part), pool=pool), v)


def _both(
    part: Any, pool: Executor | None, g: Gram, u: np.ndarray, v: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray]:
    """K(left, part) v, and K(part, left) u; only that where there is no v."""
    if v is None:
        return None, _met(part, pool, g, u)
    return two_ways(replace(facing(g, part), pool=pool), u, v)


def _lines(part: Any, pool: Executor | None, g: Gram) -> np.ndarray:
    return written(replace(facing(g, part), pool=pool))

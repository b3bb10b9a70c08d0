"""The same numbers in every form an array can have: strides, orders, byte orders, sparse formats, files, chunks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

import rowcol


def spaced(a, down=2, across=3):
    """Every second row and third column of something larger, whose other numbers are NaN."""
    room = np.full((down * a.shape[0], across * a.shape[1]), np.nan if a.dtype.kind in "fc" else 1).astype(a.dtype)
    room[::down, ::across] = a
    return room[::down, ::across]


def backwards(a):
    return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]


def readonly(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    room = np.zeros(a.nbytes + 1, np.uint8)
    out = room[1:].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def swapped(a):
    return a.astype(a.dtype.newbyteorder())


class Holder:
    """Anything with __array__."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype=dtype)


class Named(np.ndarray):
    """A subclass of arrays."""


DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "turned": lambda a: np.ascontiguousarray(a.T).T,
    "spaced": spaced,
    "spaced down": lambda a: spaced(a, 3, 1),
    "spaced across": lambda a: spaced(a, 1, 2),
    "backwards": backwards,
    "rows backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "columns backwards, F": lambda a: np.asfortranarray(a[:, ::-1])[:, ::-1],
    "read-only": readonly,
    "read-only, F": lambda a: readonly(np.asfortranarray(a)),
    "unaligned": unaligned,
    "swapped": swapped,
    "swapped, F": lambda a: np.asfortranarray(swapped(a)),
    "swapped, spaced, read-only": lambda a: readonly(spaced(swapped(a))),
    "list": lambda a: a.tolist(),
    "tuple of rows": tuple,
    "with __array__": Holder,
    "a subclass": lambda a: a.view(Named),
    "cut from 3-D": lambda a: np.stack([a, 0 * a], axis=2)[:, :, 0],
}


def parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr


def built(like, data, indices, indptr):
    """Without a look at what it is given: so is what others make by hand."""
    out = type(like)(like.shape, dtype=data.dtype)
    out.data, out.indices, out.indptr = data, indices, indptr
    return out


def in_halves(matrix):
    """Every entry twice, as two halves."""
    data, indices, indptr = parts(matrix)
    return built(matrix, np.repeat(data / 2, 2), np.repeat(indices, 2), 2 * indptr)


def jumbled(matrix):
    """Entries of every line in reverse order."""
    data, indices, indptr = (a.copy() for a in parts(matrix))
    for a, b in pairwise(indptr):
        data[a:b], indices[a:b] = data[a:b][::-1].copy(), indices[a:b][::-1].copy()
    return built(matrix, data, indices, indptr)


def with_zeros(matrix):
    """Zeros that are stored: an entry and its negative, and a negative zero."""
    data, indices, indptr = parts(matrix)
    more = np.repeat(data, 3)
    more[1::3], more[2::3] = 0.0, -0.0
    return built(matrix, more, np.repeat(indices, 3), 3 * indptr)


def with_room(matrix):
    """More room than is used, with NaN in it."""
    data, indices, indptr = parts(matrix)
    return built(
        matrix,
        np.append(data, np.full(5, np.nan if data.dtype.kind in "fc" else 1).astype(data.dtype)),
        np.append(indices, np.zeros(5, indices.dtype)),
        indptr,
    )


def indexed(kind, pointers):
    return lambda matrix: built(matrix, matrix.data, matrix.indices.astype(kind), matrix.indptr.astype(pointers))


def frozen(matrix):
    return built(matrix, *(readonly(a) for a in parts(matrix)))


def gaps(matrix):
    data, indices, indptr = parts(matrix)
    return built(matrix, np.repeat(data, 2)[::2], np.repeat(indices, 2)[::2], np.repeat(indptr, 2)[::2])


CHANGES = {
    "": lambda matrix: matrix,
    "in halves": in_halves,
    "jumbled": jumbled,
    "jumbled halves": lambda matrix: jumbled(in_halves(matrix)),
    "stored zeros": with_zeros,
    "room to spare": with_room,
    "int64": indexed(np.int64, np.int64),
    "int32 and int64": indexed(np.int32, np.int64),
    "int64 and int32": indexed(np.int64, np.int32),
    "read-only": frozen,
    "gaps": gaps,
}
SPARSE = {
    f"{kind.__name__} {change}".strip(): (lambda kind, change: lambda a: CHANGES[change](kind(a)))(kind, change)
    for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix)
    for change in CHANGES
}
SPARSE |= {kind.__name__: kind for kind in (sp.coo_array, sp.bsr_array, sp.lil_array, sp.dok_array, sp.dia_array)}
SPARSE["coo_array, twice"] = lambda a: sp.coo_array(
    (np.repeat(sp.coo_array(a).data / 2, 2), tuple(np.repeat(i, 2) for i in sp.coo_array(a).coords)), shape=a.shape
)


def mapped(a, folder, mode="r", order="C", swap=False):
    """A memory map of a file."""
    path = folder / f"X{len(list(folder.iterdir()))}.npy"
    np.save(path, np.asarray(swapped(a) if swap else a, order=order))
    return np.load(path, mmap_mode=mode)


MAPS = {
    "map": mapped,
    "map, F": lambda a, folder: mapped(a, folder, order="F"),
    "map, copy on write": lambda a, folder: mapped(a, folder, "c"),
    "map, swapped": lambda a, folder: mapped(a, folder, swap=True),
    "map, spaced": lambda a, folder: mapped(np.repeat(a, 2, axis=0), folder)[::2],
    "map, backwards": lambda a, folder: mapped(a[::-1], folder)[::-1],
}
PLACES = {
    **{
        f"chunks of a {name}": (lambda f: lambda a, folder: rowcol.chunks(f(a, folder), rows=3).X)(f)
        for name, f in MAPS.items()
    },
    **{
        f"chunks, {name}": (lambda f: lambda a, folder: rowcol.chunks(f(a), rows=3).X)(DENSE[name])
        for name in ("C", "F", "spaced", "backwards", "read-only", "swapped", "unaligned")
    },
    **{
        f"chunks, {name}": (lambda f: lambda a, folder: rowcol.chunks(f(a), rows=4).X)(SPARSE[name])
        for name in ("csr_array", "csc_array jumbled", "csr_array in halves", "coo_array", "csr_array int64")
    },
    "chunks from a function": lambda a, folder: rowcol.chunks(lambda: iter(np.array_split(a, min(3, len(a))))).X,
    "chunks, some empty": lambda a, folder: rowcol.chunks(lambda: iter([a[:0], a[:1], a[1:1], a[1:], a[:0]])).X,
}


def content(X):
    """What is in X, to the bit, whatever it is."""
    if sp.issparse(X):
        if X.format in ("csr", "csc", "bsr"):
            return [np.asarray(a).tobytes() for a in parts(X)]
        return [X.toarray().tobytes(), X.nnz]
    if X is None or hasattr(X, "parts"):
        return []
    a = np.asarray(X)
    return [(a.astype(float) if a.dtype == np.longdouble else a).tobytes(), type(X)]  # whose padding is anyone's

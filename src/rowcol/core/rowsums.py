"""Sums over dense rows that come in pieces, each of which is read once, and is in cache when it is summed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..engine.gathering import ACROSS, CHAIN, ROWS, gather, look, whole
from ..engine.lines import BLOCK
from .memory import zeros

SEVERAL = 4  # right-hand sides from which on BLAS multiplies them


Pieces = Iterable[tuple[slice, np.ndarray]]  # rows, and which; each is used before the next one is asked for


class RowSums(NamedTuple):
    """About a point c: with X − 1cᵀ in place of X."""

    gram: np.ndarray  # (p, p) XᵀX
    slope: np.ndarray  # (q, p) yX
    column2: np.ndarray  # (p,) ‖X_j‖², in double precision
    total: np.ndarray  # (p,) Σ x_i


def row_sums(pieces: Pieces, p: int, y: np.ndarray, about: np.ndarray | None, single: bool) -> RowSums:
    """Of real numbers; products of columns in single precision, if that will do."""
    wide = -(-p // ACROSS) * ACROSS
    few, G = zeros((ROWS, wide), np.float32 if single else np.float64), zeros((wide, wide), np.float64)
    slope, column2, total = np.zeros((len(y), p)), np.zeros(p), np.zeros(p)
    c = np.zeros(p) if about is None else about
    own = y if len(y) < SEVERAL else y[:0]
    for rows, piece in pieces:
        X = readonly(piece)
        gather(X, c, np.ascontiguousarray(own[:, rows]), few, G, slope[: len(own)], column2, total)
        if len(y) >= SEVERAL:
            slope += y[:, rows] @ (X if about is None else X - about)
    if single:  # squares were summed in double precision, too, and their sums err most, as they only grow
        np.fill_diagonal(G[:p, :p], column2)
    return RowSums(whole(G, p), slope, column2, total)


class Looked(NamedTuple):
    """What a look at rows finds."""

    rho: np.ndarray  # (q, n) y − Xβ
    slope: np.ndarray  # (q, p) XᴴWρ
    image: np.ndarray | None  # (q, p) Xᴴα, where α was given
    squares: np.ndarray | None  # (p,) Σ_i w_i |x_ij|², where they were asked for
    terms: tuple[int, int]  # in the longest chain of ρ, and of the others


def looked(
    pieces: Pieces, y: np.ndarray, beta: np.ndarray, weight: Any, squares: bool, alpha: np.ndarray | None = None
) -> Looked:
    """ρ = y − Xβ, XᴴWρ and what else is asked for: by our own loop for one real β, and by BLAS for several."""
    rho = y.astype(np.result_type(y, beta))
    (q, p), cuts, many, most = beta.shape, cuts_of(beta.shape[1], BLOCK), 0, 0
    own = q == 1 and rho.dtype == np.float64 and p <= BLOCK
    slope, total = np.zeros(beta.shape, rho.dtype), np.zeros(p if squares else 0)
    image = np.zeros((0 if alpha is None else q, p), rho.dtype)
    for rows, piece in pieces:
        w = np.ones(len(piece)) if weight is None else weight[rows]
        a = np.zeros((0, len(piece))) if alpha is None else alpha[:, rows]
        if own:
            here = np.zeros((3, p))  # of this piece: no chain goes through all of them
            dual = a[0] if len(a) else w[:0]
            vectors = rho[0, rows], np.ascontiguousarray(beta[0]), w, dual, rho[0, rows]
            look(readonly(piece), *vectors, here[0], here[1][: p * len(a)], here[2][: total.size])
            slope[0] += here[0]
            image += here[1][None][: len(a)]
            total += here[2][: total.size]
            many, most = many + 1, max(most, CHAIN + -(-len(piece) // CHAIN))
            continue
        for start, stop in cuts_of(len(piece), BLOCK):
            part, there = piece[start:stop].astype(rho.dtype, copy=False), slice(rows.start + start, rows.start + stop)
            for c, d in cuts:
                rho[:, there] -= beta[:, c:d] @ part[:, c:d].T
            slope += ((w[start:stop] * rho[:, there]).conj() @ part).conj()
            image += (a[:, start:stop].conj() @ part).conj()
            if squares:
                total += squares_of(part if weight is None else np.sqrt(w[start:stop])[:, None] * part)
            many, most = many + 1, max(most, len(part))
    terms = max(b - a for a, b in cuts) + len(cuts), many + most
    return Looked(rho, slope, None if alpha is None else image, total if squares else None, terms)


def squares_of(part: np.ndarray) -> np.ndarray:
    """Σ_i |a_ij|² of a block that is in cache."""
    if np.iscomplexobj(part):
        return np.einsum("ij,ij->j", part.real, part.real) + np.einsum("ij,ij->j", part.imag, part.imag)
    return np.einsum("ij,ij->j", part, part)


def cuts_of(count: int, length: int) -> list[tuple[int, int]]:
    """0, ..., count-1 in pieces of about the same length, no longer than this."""
    ends = np.linspace(0, count, -(-count // length) + 1).astype(int).tolist()
    return list(pairwise(ends))


def readonly(a: np.ndarray) -> np.ndarray:
    """The same memory as a plain array that cannot be written: one compiled type, and nobody's data are changed."""
    a = np.asarray(a).view()
    a.flags.writeable = False
    return a

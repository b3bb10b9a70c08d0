"""What an exact look sums: ρ = y − Xβ, XᴴWρ, Xᴴα and ‖X_j‖², and how long the chains of these sums are.

By the lines of X, compiled, where bits must not depend on who multiplies, X is sparse or short rows stay in cache; a
wide X for one β by tiles of our own, which read it once for all but XᴴWρ, and a tall one of few columns in F order
too; the rest by BLAS on blocks, which our threads share where X is tall. A bound of k·2⁻⁵³ holds for a sum of k terms
in whatever order BLAS takes them, so blocks keep k small.
"""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Executor
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..engine.across import PLACES, ROWS, across
from ..engine.lines import BLOCK, Dense
from .norms import Lengths, lengths, norm, of_parts
from .passes import (
    Products,
    blocks,
    chain,
    few_lines,
    longest,
    norms_of,
    pull_all,
    push_all,
    residual_pass,
    stored,
    there_and_back,
    tiles_of,
    workers,
)
from .place import Scaled, Unread, by_pieces, pieces_of, whole
from .products import CACHED, SEVERAL, back, by_blas, in_pairs, normal, one_pass, products, raised, tiled, times
from .rowsums import cuts_of, looked, squares_of
from .threads import AHEAD, by_threads, spread

UNIT = 2.0**-53


class Sums(NamedTuple):
    """The sums of one look, nothing taken off for a shift yet."""

    rho: Any  # (q, n); None where it `stays`
    slope: np.ndarray  # (q, p) XᴴWρ, of ρ or of what it was expected to be
    of: Any  # (q, n) that: ρ to no more than its own rounding
    image: np.ndarray | None  # (q, p) Xᴴα, where α was given
    squares: np.ndarray | None  # (p,) ‖W^½X_j‖², where they were asked for; an operator has none
    terms: tuple[int, int]  # in the longest chain: of ρ, and of the others
    lengths: Lengths | None = None  # of an X in parts: what is known of ρ, here or not
    tilt: np.ndarray | None = None  # (q,) Σ_i ρ_i u_i, likewise, where there is a shift


def sums(
    by: Products,
    y: np.ndarray,
    beta: np.ndarray,
    weight: np.ndarray | None,
    alpha: np.ndarray | None,
    squares: bool,
    expected: np.ndarray | None = None,
) -> Sums:
    """All sums of a look at (q, p) vectors β, and at their α if they have any.

    `expected`: what ρ should be. Its slope takes no second pass over a wide X; it counts where ρ turns out to be that.
    """
    n, p = by.shape
    if by.side == "operator":
        rho = y - times(by, beta)
        return Sums(rho, back(by, rho), rho, None if alpha is None else back(by, alpha), None, (p, n))
    few = len(beta) < SEVERAL and n >= p and one_pass(by)  # short rows are quicker by our own loop
    if by.blas and weight is None and by_blas(by, beta) and not few:
        if n < p:
            return _across(by, y, beta, alpha, squares, expected)
        few = alpha is None and few_lines(by, "cols", beta)
        return _by_columns(by, y, beta, squares) if few else _down(by, y, beta, alpha, squares)
    if by.side == "cols":  # weights are all ones here: weighted columns are scaled beforehand
        rho = y + push_all(by, -beta.conj()).conj()
        slope = pull_all(by, rho.conj()).conj()
        image = None if alpha is None else pull_all(by, alpha.conj()).conj()
        terms = chain(blocks(p, n, stored(by.lines))), longest(by.lines)
        return Sums(rho, slope, rho, image, norms_of(by) if squares else None, terms)
    w = np.ones(n) if weight is None else weight
    rho, slope, found = residual_pass(by, y, beta, w, squares)
    image = None if alpha is None else push_all(by, alpha)
    terms = longest(by.lines), chain(blocks(n, p, stored(by.lines)))
    return Sums(rho, slope, rho, image, found if squares else None, terms)


def _added(a: Sums, b: Sums) -> Sums:
    """The sums of some rows and of others, but for ρ and its lengths."""
    image = None if a.image is None else a.image + b.image
    total = None if a.squares is None else a.squares + b.squares
    terms = max(a.terms[0], b.terms[0]), max(a.terms[1], b.terms[1])
    tilt = None if a.tilt is None or b.tilt is None else a.tilt + b.tilt
    return Sums(b.rho, a.slope + b.slope, b.rho, image, total, terms, tilt=tilt)


def stays(by: Any, alpha: Any = None, ridge: bool = False) -> bool:
    """Is ρ of an X in parts left with them? On a cluster, or where no α is to be made of it; unless rows are the fewer.

    Who walks those needs it, and α, too, if that is here.
    """
    if getattr(by, "side", "") != "place":
        return False
    return _afar(alpha) or (by.shape[0] >= by.shape[1] and (by.X.together or not ridge))


def _afar(alpha: Any) -> bool:
    return hasattr(alpha, "map")


def sums_there(
    by: Products,
    y: np.ndarray,
    ids: np.ndarray,
    beta: np.ndarray,
    weight: Any,
    alpha: Any,
    lam: np.ndarray,
    squares: bool,
) -> Sums:
    """The same of an X in parts, for some of all y, each part's where it is: of ρ its lengths, and ρ if it must be."""
    rho = None if stays(by, alpha, bool(lam.any())) else np.empty((len(ids), by.shape[0]), np.result_type(y, beta))
    shared = beta, lam, squares, rho is not None
    if _afar(alpha):  # y and weights are there with it
        assert by.shift is None, "rows that lie elsewhere have no intercept"
        found = alpha.map(_look_at, shared)
    else:
        found = by.X.map(_look_at_some, (ids, *shared), (y, weight, alpha, by.shift), by.pool)
    whole, sizes = None, []
    for k, one in enumerate(found):
        if rho is not None:
            rho[:, by.X.rows(k)] = one.rho
        sizes.append(one.lengths)
        whole = one if whole is None else _added(whole, one)
    assert whole is not None
    terms = whole.terms[0], whole.terms[1] + by.X.count
    return whole._replace(rho=rho, of=rho, lengths=of_parts(sizes), terms=terms)


def norms_there(by: Products, y: np.ndarray, ids: np.ndarray, beta: np.ndarray, weight: Any, steps: int) -> list[float]:
    """‖W^½ρ‖ along so many conjugate-gradient steps from one β: what they gained is taken off, and no ρ travels."""
    look = sums_there(by, y, ids, beta, weight, None, np.zeros(1), False)
    assert look.lengths is not None
    heavy = by if weight is None else products(Scaled(by.X, np.sqrt(weight)), by.pool)
    slope, left2 = look.slope, float(look.lengths.rho[0]) ** 2
    direction, norms = slope, [math.sqrt(left2)]
    for _ in range(steps):
        pulled, before = normal(heavy, direction)[0], norm(slope)
        curvature = float(np.vdot(direction, pulled).real)
        if not 0.0 < curvature < math.inf:
            break
        step = before**2 / curvature
        slope, left2 = slope - step * pulled, max(left2 - step * before**2, 0.0)
        direction = slope + (norm(slope) / before) ** 2 * direction
        norms.append(math.sqrt(left2))
    return norms


def column_squares(by: Products) -> np.ndarray:
    """‖X_j‖² of an X in parts."""
    return np.asarray(sum(by.X.map(_squares, (), (), by.pool)))


@by_pieces
def _look_at_some(
    part: Any,
    pool: Executor | None,
    ids: np.ndarray,
    beta: np.ndarray,
    lam: np.ndarray,
    squares: bool,
    keep: bool,
    y: np.ndarray,
    *rest: Any,
) -> Sums:
    return _look_at(part, pool, beta, lam, squares, keep, y[ids], *rest)


def _look_at(
    part: Any,
    pool: Executor | None,
    beta: np.ndarray,
    lam: np.ndarray,
    squares: bool,
    keep: bool,
    y: np.ndarray,
    weight: Any,
    alpha: Any,
    shift: Any = None,
) -> Sums:
    up = y if shift is None else raised(Products(part, "rows", None, None, {}, shift), y, beta)
    one = _part(part, pool, beta, squares, up, weight, alpha)
    tilt = None if shift is None else in_pairs(one.rho, shift.ones)
    sizes = lengths(one.rho, weight, alpha, lam)
    return one._replace(rho=one.rho if keep else None, of=None, lengths=sizes, tilt=tilt)  # once is enough to send


@by_pieces
def _squares(part: Any, pool: Executor | None) -> Any:
    kind = np.result_type(part.dtype, np.float64)
    return _part(
        part, pool, np.zeros((1, part.shape[1]), kind), True, np.zeros((1, part.shape[0]), kind), None, None
    ).squares


@by_pieces
def _part(
    part: Any, pool: Executor | None, beta: np.ndarray, squares: bool, y: np.ndarray, weight: Any, alpha: Any
) -> Sums:
    if pool is None and isinstance(part, (np.ndarray, Unread)):
        found = looked(pieces_of(part), y, beta, weight, squares, alpha)
        return Sums(found.rho, found.slope, found.rho, found.image, found.squares, found.terms)
    part = whole(part)
    y, alpha = np.ascontiguousarray(y), None if alpha is None else np.ascontiguousarray(alpha)
    return sums(products(part, pool), y, beta, weight, alpha, squares)


def _across(
    by: Products,
    y: np.ndarray,
    beta: np.ndarray,
    alpha: np.ndarray | None,
    squares: bool,
    expected: np.ndarray | None,
) -> Sums:
    """Of a wide X: blocks of columns are in cache for ρ, Xᴴα and ‖X_j‖²; ρ is whole only after the last of them."""
    X, (n, p) = by.X, by.shape
    down = cuts_of(n, ROWS)
    if tiled(by) and len(beta) == 1 and (squares or alpha is not None):
        rho, image, total, cuts, slope = tiles(by, y, beta, alpha, expected)
        if expected is not None and np.linalg.norm(rho - expected) <= UNIT * chain(cuts) * np.linalg.norm(y):
            return Sums(rho, slope, expected, image, total if squares else None, (chain(cuts), chain(down)))
    else:
        rho, image, total, cuts = _blocks(by, y, beta, alpha, squares)
    slope = np.zeros((len(rho), p), np.result_type(rho, X))

    def pulled(ends: tuple[int, int]) -> None:
        a, b = ends
        for i, j in down:
            slope[:, a:b] += (rho[:, i:j].conj() @ X[i:j, a:b]).conj()

    deque(by_threads(workers(by), pulled, [(0, p)] if workers(by) is None else cuts_of(p, -(-p // AHEAD)), 0), maxlen=0)
    return Sums(rho, slope, rho, image, total if squares else None, (chain(cuts), chain(down)))


Parts = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, list[tuple[int, int]]]


def tiles(
    by: Products, y: np.ndarray, beta: np.ndarray, alpha: np.ndarray | None, expected: np.ndarray | None = None
) -> tuple[*Parts, np.ndarray]:
    """ρ, Xᴴα, ‖X_j‖², the cuts of the columns and Xᴴ of what ρ should be, of one β, by tiles that threads share."""
    assert isinstance(by.lines, Dense)
    lines, (n, p) = by.lines.a, by.shape
    dual = np.zeros(n) if alpha is None else np.ascontiguousarray(alpha[0])
    guess = np.zeros(n) if expected is None else np.ascontiguousarray(expected[0])
    s, cuts = np.ascontiguousarray(beta[0]), cuts_of(p, BLOCK)
    image, slope, total = np.zeros(p), np.zeros(p), np.zeros(p)

    def block(ends: tuple[int, int]) -> np.ndarray:
        pulled = np.zeros(n)
        across(lines, *ends, dual, guess, s, pulled, image, slope, total)
        return pulled

    rho = y.copy()
    for part in spread(by.pool, block, cuts):
        rho[0] -= part
    return rho, None if alpha is None else image[None], total, cuts, slope[None]


def _blocks(by: Products, y: np.ndarray, beta: np.ndarray, alpha: np.ndarray | None, squares: bool) -> Parts:
    """The same by BLAS."""
    X, (n, p) = by.X, by.shape
    down, cuts = cuts_of(n, ROWS), cuts_of(p, min(max(CACHED // (n * by.X.itemsize), 1), BLOCK))
    rho = y.astype(np.result_type(y, beta))
    image = None if alpha is None else np.zeros((len(alpha), p), np.result_type(alpha, X))
    total = np.zeros(p) if squares else None
    for (a, b), (i, j) in product(cuts, down):
        part = X[i:j, a:b]
        rho[:, i:j] -= beta[:, a:b] @ part.T
        if image is not None and alpha is not None:
            image[:, a:b] += (alpha[:, i:j].conj() @ part).conj()
        if total is not None:
            total[a:b] += squares_of(part)
    return rho, image, total, cuts


def _by_columns(by: Products, y: np.ndarray, beta: np.ndarray, squares: bool) -> Sums:
    """Of a tall X in F order and one β: some rows of all columns at a time, by tiles that threads share."""
    rho, total = y.copy(), norms_of(by) if squares else None
    slope = there_and_back(by, beta[0], rho[0])[None]
    return Sums(rho, slope, rho, None, total, (by.shape[1], PLACES + chain(tiles_of(by))))


def _down(by: Products, y: np.ndarray, beta: np.ndarray, alpha: np.ndarray | None, squares: bool) -> Sums:
    """Of a tall X, by BLAS: blocks of rows, which threads share, are in cache for ρ first, and then for XᴴWρ."""
    X, (n, p) = by.X, by.shape
    down, cuts = blocks(n, p, n * p), cuts_of(p, BLOCK)
    rho = y.astype(np.result_type(y, beta))
    slope = np.zeros((len(rho), p), np.result_type(rho, X))
    image = None if alpha is None else np.zeros((len(alpha), p), np.result_type(alpha, X))
    total = np.zeros(p) if squares and by.side == "rows" else None

    def block(ends: tuple[int, int]) -> tuple[np.ndarray, Any, Any]:
        i, j = ends
        part = X[i:j]
        for a, b in cuts:
            rho[:, i:j] -= beta[:, a:b] @ part[:, a:b].T
        pulled = (rho[:, i:j].conj() @ part).conj()
        imaged = None if alpha is None else (alpha[:, i:j].conj() @ part).conj()
        return pulled, imaged, None if total is None else squares_of(part)

    for pulled, imaged, squared in by_threads(workers(by), block, down, slope.nbytes):
        slope += pulled
        if image is not None:
            image += imaged
        if total is not None:
            total += squared
    total = norms_of(by) if squares and by.side == "cols" else total
    return Sums(rho, slope, rho, image, total, (chain(cuts), chain(down)))

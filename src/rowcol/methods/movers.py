"""From a route's name to its Mover."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.passes import Products
from ..core.place import Place
from ..core.problem import Problem, shared
from ..core.products import back, compile_for, of_view, products
from ..core.sampler import sampler as make_sampler
from ..core.sampler import take
from ..core.view import both, cols, rows, unknowns
from . import coordinate, extended
from .alike import jacobi, unlike
from .blocks import blocks
from .bounded import bounded
from .choose import SIDE_OF, Choice
from .conjugate import Seen, conjugate, sweeps
from .costs import BY_LINES
from .direct import direct
from .joined import joined
from .level import level, one_more, with_one
from .loop import Mover
from .probe import probe
from .shifted import shifted
from .sketch import OVERSAMPLE, Sketched, full_sketch, low_rank
from .streamed import streamed
from .way import Way


def mover_of(
    way: Way,
    given: Problem,
    route: str,
    side: str,
    choice: Choice | None,
    beta0: np.ndarray | None,
    alpha0: np.ndarray | None,
    seen: Seen | None,
) -> tuple[Mover, str, bool, float, int]:
    """The Mover of a route, its sampler's name, whether to look first, seconds compiling and bytes copied."""
    if route == "rk" and isinstance(given.X, Place):
        make = joined if given.X.together else streamed
        return make(way, given, beta0, alpha0), "shuffled", beta0 is not None, 0.0, 0
    if route in BY_LINES:
        return _by_lines(way, given, route, side, beta0, alpha0)
    by = products(given.X, way.pool, given.shift)
    way.compiling += compile_for(by)
    if alpha0 is not None and beta0 is not None and seen is None:
        beta0 = back(by, alpha0)  # of this X, and of the rows that count
    if route == "direct":
        factor = way.kept.factor
        if factor is not None and (factor.kind == "spectrum") != (given.each is not None):
            factor = None  # made for one alpha, or for many
        if factor is not None and np.iscomplexobj(factor.upper) and not np.iscomplexobj(given.y):
            factor = None  # made for a complex y
        loose = 0.0 if way.kept.often else way.stop.tol
        made = direct(given, by, factor, None, beta0, loose, way.gathered)
        return made, "none", beta0 is not None and seen is None, 0.0, 0
    if route == "subset":
        sample = choice.sample if choice is not None else None
        if sample is None or given.weight is not None:
            sample = probe(given, way.seed, min(2 * given.X.shape[1], given.X.shape[0]))
        return direct(given, by, None, sample, beta0), "uniform", beta0 is not None, 0.0, sample.X.nbytes
    where = "rows" if side == "rows" else "cols"
    precondition: Any = way.kept.precondition
    if route == "sketch":
        precondition = _sketch(way, given, by, where)
        start, precondition.start = precondition.start, None  # it is this y's own
        beta0 = start if beta0 is None else beta0
        # by columns, the few directions of a low-rank sketch are in the row space up to 1e-8 or so only
        way.row_space = way.row_space and where == "rows"
    if precondition is None:
        norms = _unlike(way, given, by, where)
        precondition = None if norms is None else jacobi(norms + given.alpha)
        way.row_space = way.row_space and precondition is None
    base = shared(given) if precondition is None and beta0 is None else None
    if base is not None:
        return shifted(given, by, where, base, way.stop.tol), "none", False, 0.0, 0
    mover = conjugate(given, by, where, beta0, alpha0 if where == "rows" else None, precondition, seen)
    if way.column2 is not None:
        mover.column = np.sqrt(way.column2)  # so that it knows its certificate as it goes
    if route == "sketch":
        mover.spent = precondition.passes
    look = beta0 is not None and seen is None
    if way.kept.precondition is not None:
        way.row_space = False
    return mover, "none", look, 0.0, 0


def _sketch(way: Way, given: Problem, by: Products, where: str) -> Sketched:
    n, p = given.X.shape
    kept = way.kept.sketch.get(where)
    if kept is not None and np.iscomplexobj(given.y) < any(
        np.iscomplexobj(a) for a in (kept.upper, kept.U) if a is not None
    ):
        del way.kept.sketch[where]  # made for a complex y
    if where not in way.kept.sketch:
        made = None
        if not isinstance(given.X, LinearOperator) and max(n, p) >= 2 * OVERSAMPLE * min(n, p):
            made = full_sketch(given, way.seed)
        way.kept.sketch[where] = made or low_rank(given, by, where, way.seed, _unlike(way, given, by, where))
    return way.kept.sketch[where]


def _unlike(way: Way, given: Problem, by: Products, where: str) -> np.ndarray | None:
    """‖X_j‖², where X is tall and they differ."""
    tall = where == "cols" and given.X.shape[0] >= given.X.shape[1]
    return unlike(given, by, way.seed, way.column2) if tall else None


def _by_lines(
    way: Way, given: Problem, route: str, side: str, beta0: np.ndarray | None, alpha0: np.ndarray | None
) -> tuple[Mover, str, bool, float, int]:
    centred = given.shift is not None  # and X is sparse: a dense X was copied without its means
    asked, given = given, with_one(given, beta0) if centred else given
    beta0, alpha0 = (one_more(beta0), one_more(alpha0)) if centred else (beta0, alpha0)
    view = {"rows": rows, "columns": cols, "both": both}[SIDE_OF.get(route, side)](given)
    kind = way.sampler
    if isinstance(kind, str) and kind == "auto":
        # neighbours in a row are read quickly, but are often alike: with a penalty they took five times the passes
        many_sparse_rows = side == "rows" and sp.issparse(given.X) and given.X.shape[0] >= 10_000
        kind = "chunks" if many_sparse_rows and given.alpha == 0 else "shuffled"
        if route in ("sgs-cg", "blocks"):
            kind = "cyclic"
        elif not way.auto:
            kind = "norms"
    if view.side == "both":
        now = extended.start(given, view, beta0, alpha0)
    elif view.side == "rows":
        now = coordinate.start_rows(given, view, beta0, alpha0)
    else:
        now = coordinate.start_cols(given, view, beta0)
    before = time.perf_counter()
    coordinate.compile_for(view, now, kind if isinstance(kind, str) else "norms")
    compiling = time.perf_counter() - before
    name, warm = kind if isinstance(kind, str) else "weights", beta0 is not None
    by = of_view(given.X, view, way.pool)
    mover: Mover
    if route == "sgs-cg":
        order = take(make_sampler(kind, view.b.shape[1], way.seed), view.b.shape[1])
        mover = sweeps(given, view, now, by, order, way.jobs)
    elif route == "blocks":
        mover = blocks(given, view, by, unknowns(view, now), now.s.copy(), way.seed)
    else:
        source: Any
        if view.side == "both":
            source = extended.picks(given, view, now, kind, way.seed)
        else:
            source = coordinate.picks(view, now, kind, way.seed, given.weight)
        plain = coordinate.coordinate(given, view, source, now, way.pool, way.jobs)
        # a named method or sampler takes single steps, as always
        mover = bounded(plain) if given.bounds is not None and way.auto and way.sampler == "auto" else plain
        mover = level(asked, plain) if centred else mover
    # dependent lines make the small systems of blocks nearly singular, and β leaves the row space by rounding
    if (view.side == "cols" or route == "blocks") and given.alpha == 0:
        way.row_space = False
    elif view.side == "both":
        way.row_space = way.row_space or alpha0 is not None
    return mover, name, warm, compiling, view.copied

"""What a route costs, in passes over X and in bytes: nothing is decided by the clock."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.centre import PART
from ..core.place import Place
from ..core.problem import Problem
from ..core.view import size
from ..core.words import first_line, shown
from .blocks import block_length
from .sketch import DIRECTIONS, OVERSAMPLE

BY_LINES = ("rk", "rcd", "rek", "sgs-cg", "blocks")  # these step on lines of X, or on blocks of them
GROUP = Path("/sys/fs/cgroup")
LESS = "say memory='...', so that what is chosen needs less, or method='cg'; or leave X in a file, by rowcol.chunks"
FEWER = "say memory='...', so that what is chosen needs less, or n_centers, for a smaller model; or take fewer points"
SKETCH = 40.0  # passes: what a sketch, and the steps it makes few, take in all


def budget(memory: Any) -> int:
    """`memory` in bytes: a number, or text such as "2 GB"; half of what is free unless said."""
    if memory is None:
        return _free() // 2
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kMGT]?)i?B?\s*", memory)
        try:
            memory = float(found[1]) * 1000.0 ** " kMGT".index(found[2] or " ") if found else math.nan
        except ValueError:
            memory = math.nan
    if isinstance(memory, bool) or not isinstance(memory, (int, float, np.integer, np.floating)) or not memory > 0:
        raise ValueError(f"memory must be a positive number of bytes, or text such as '2 GB', got {shown(memory)}")
    return int(min(memory, 2**62))


def _free() -> int:
    """What the machine has left, or what a limit on this process or its group leaves of it."""
    left = [_meminfo()]
    try:
        import resource  # which not every system has

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            left.append(limit - pages * os.sysconf("SC_PAGE_SIZE"))
    except (ImportError, OSError, ValueError):
        pass
    try:  # of a container
        most, now = ((GROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        cached = re.search(r"^inactive_file (\d+)$", (GROUP / "memory.stat").read_text(), re.M)
        # pages of files that nobody uses give way: reading a large file fills a container with them
        left += [int(most) - int(now) + (int(cached[1]) if cached else 0)] if most != "max" else []
    except (OSError, ValueError):
        pass
    return max(min(left), 2)


def _meminfo() -> int:
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        if found:
            return int(found[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 10**9


@contextmanager
def enough(shape: tuple[int, ...], remedy: str) -> Iterator[list[Any]]:
    """A MemoryError says what was needed, and what to do; the Plan, once there is one, goes on the list."""
    plans: list[Any] = []
    try:
        yield plans
    except MemoryError as wrong:
        size = " x ".join(f"{one:,}" for one in shape)
        known = f"; the plan was for about {plans[0].bytes / 1e6:,.0f} MB beside X and y" if plans else ""
        raise MemoryError(f"memory ran out on an X of {size}: {first_line(wrong)}{known}: {remedy}") from wrong


# --- costs -----------------------------------------------------------------------------------------------------------


def sketch_passes(X: Any) -> float:
    """Passes a sketch takes in all, its dense directions counted: beside a sparse X they are most of it."""
    return SKETCH + DIRECTIONS**2 * (X.shape[0] + X.shape[1]) / size(X)


def gram_passes(X: Any, many: int = 1) -> float:
    """What forming and factoring the small Gram matrix costs, in passes with `many` right-hand sides over X."""
    n, p = X.shape
    m, entries = min(n, p), size(X)
    if isinstance(X, Place):
        return 2.0  # what is read, and read again to certify
    if sp.issparse(X):
        cost = 3 + 3.3 * entries / max(n, p) + 8 * m**2 / entries + 0.0055 * m**3 / entries
    else:
        cost = (3 if n >= p else 6) + m / 28 + 0.015 * m**3 / entries
        cost *= 2 if X.dtype.itemsize < (16 if np.iscomplexobj(X) else 8) else 1  # it is formed in double precision
    return cost / max(1.0, many / 3)


def bytes_of(route: str, asked: Problem, copies: int) -> int:
    """Memory a route needs beside X and y."""
    (q, n), p = asked.y.shape, asked.X.shape[1]
    item, m = asked.y.dtype.itemsize, min(n, p)
    vectors = item * q * (n + p)
    base = copies + 5 * vectors + 64 * 1024
    if isinstance(asked.X, Place):  # parts in memory, and one of them once more, centred, scaled or doubled
        base -= 2 * vectors if route == "direct" else 0  # what is as long as y is made part by part
        held = asked.X.held + (asked.X.held - asked.X.kept) // 3
        held += 0 if asked.weight is None else asked.X.waiting // 3  # pieces of it, weighted
        steps = item * q * (8 * p + (3 if n >= p else 8) * n)  # by columns little is as long as y but in parts
        more = {"direct": 13 * m * m * item, "rk": 2 * vectors + asked.X.held // 3}.get(route, steps)
        if route == "sketch":  # its directions, and what X makes of them: of three parts at a time, or of all by rows
            long = 12 * p + 6 * int(np.diff(asked.X.starts).max()) if n >= p else 8 * (n + p)
            more += DIRECTIONS * item * long
        return int(base + held + more + (2 * vectors if asked.shift is not None else 0))
    if asked.shift is not None:
        base += 2 * vectors + 8 * item * min(size(asked.X), PART)  # the means, and what is lifted by them
        if route in ("sketch", "direct", "subset"):
            base += min(n * p * item, 32_000_000)  # blocks less their means
    if route in ("rk", "rcd", "rek", "blocks", "sgs-cg"):
        lines = {"rk": n, "rcd": p, "rek": n + p}.get(route, max(n, p))
        bounded = asked.bounds is not None  # then moves are remembered, too
        base += 3 * (16 + (4 if bounded else 2) * item * q) * lines + (12 if bounded else 2) * vectors
    if route in ("sgs-cg", "cg", "sketch"):
        base += 8 * vectors
    if route == "blocks":
        length = block_length(m, max(n, p))
        base += (4 * m + 3 * max(n, p) + 3 * length) * length * item
    if route == "direct":
        whole = n * p * item
        base += 5 * m * m * item + 3 * min(whole, max(32_000_000, 32 * m * m))
        if asked.dtype.itemsize == item and not isinstance(asked.X, LinearOperator) and not sp.issparse(asked.X):
            base -= min(whole, 32_000_000)  # blocks are looked at in place
    if route == "subset":
        base += 6 * min(2 * p, n) * p * item + (2 * size(asked.X) * item if sp.issparse(asked.X) else 0)
    if route == "sketch":
        full = max(n, p) >= 2 * OVERSAMPLE * m
        rows = OVERSAMPLE * m * m if full else 4 * DIRECTIONS * (n + p)
        base += 4 * rows * item + min(n * p * item, 3 * 32_000_000) * (2 if asked.dtype.itemsize < item else 1)
        if sp.issparse(asked.X):
            base += 3 * size(asked.X) * item
    return int(base)


def copies_of(route: str, asked: Problem) -> int:
    """Bytes of transposed or scaled copies of X a route makes."""
    X = asked.X
    if isinstance(X, LinearOperator):
        return 0
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
    by_rows = X.format == "csr" if sp.issparse(X) else X.flags.c_contiguous
    by_cols = X.format == "csc" if sp.issparse(X) else X.flags.f_contiguous
    whole = X.shape[0] * X.shape[1] * asked.y.dtype.itemsize
    if asked.shift is not None and route in BY_LINES and not sp.issparse(X):
        rows_first = route == "rk" or (route in ("sgs-cg", "blocks") and X.shape[0] < X.shape[1])
        turned = not (by_rows and by_cols) if route == "rek" else not (by_rows if rows_first else by_cols)
        return whole * (2 if turned else 1)
    scaled = stored * (2 if X.dtype.itemsize < asked.y.dtype.itemsize else 1) if asked.weight is not None else 0
    narrow = 4 * X.nnz if sp.issparse(X) and X.indices.dtype.itemsize > 4 and max(X.shape) < 2**31 else 0
    if route == "rk" or (route == "sgs-cg" and X.shape[0] < X.shape[1]):
        return narrow if by_rows else stored  # indices are read as 32 bits where that is enough
    if route == "blocks" and X.shape[0] < X.shape[1]:
        return scaled + (0 if by_rows else stored)
    if route in ("rcd", "sgs-cg", "blocks"):
        return scaled + (narrow if by_cols else scaled or stored)
    if route == "rek":
        return scaled + (0 if by_rows and by_cols else scaled or stored)
    return scaled

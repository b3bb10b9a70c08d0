"""A checkpoint: what was asked, of which X and y, and what was done so far; in a file in which nothing is code."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import __version__
from .asking import How
from .core.kernels import kernel_of
from .core.place import Place
from .core.problem import matrix, real_number, right_hand_sides
from .core.words import cut, first_line
from .files.archive import read, write
from .files.plain import Packing, Unpacking
from .files.writing import swept, writable
from .methods.log import Log
from .methods.result import History, Result

FORMAT = 1  # goes up by one when a file has other parts
TREE = "checkpoint.json"
REMEDY = "remove it to begin anew, or name another file"
PART = 1 << 26  # bytes of X summed at a time, so that Ctrl-C is obeyed
LIMITS = ("max_seconds", "n_jobs")  # of a process, and not of what is solved; so is the start, once there is a way
SAME = (
    *("alpha", "kernel", "n_centers", "fit_intercept", "method", "tol", "max_passes", "sampler", "sample_weight"),
    *("bounds", "preconditioner", "memory"),
)
NAMES = ("x0", *SAME, *LIMITS)


@dataclass(frozen=True)
class Checkpoint:
    """Where a solve writes down what it has done so far, and how often.

    Parameters
    ----------
    path : str or Path
        A file. It is replaced as a whole, so that there is always a good one.
    seconds : float
        So many between two writings, or more, so that writing takes no more than a tenth of the time; 0 writes after
        every round.
    passes : float, optional
        Also write after so many passes.

    Examples
    --------
    >>> import tempfile, numpy as np, rowcol
    >>> X = np.random.default_rng(0).standard_normal((50, 6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     often = rowcol.Checkpoint(folder + "/solve.checkpoint", seconds=5)
    ...     first = rowcol.solve(X, X @ np.ones(6), method="rcd", checkpoint=often)
    ...     again = rowcol.resume(often, X, X @ np.ones(6))
    >>> bool((first.x == again.x).all())
    True
    """

    path: str | Path
    seconds: float = 30.0
    passes: float | None = None


@dataclass(frozen=True)
class Found(Checkpoint):
    """One that was read."""

    told: dict[str, Any] | None = None


def found(checkpoint: Any) -> Found:
    """What the file holds, None if it is not there yet; errors name the argument, and what to do."""
    if isinstance(checkpoint, Found):
        return checkpoint
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    if not isinstance(given.path, (str, Path)):
        raise TypeError(
            f"checkpoint must be the path of a file, or a rowcol.Checkpoint, got {type(given.path).__name__}"
        )
    path = Path(given.path).absolute()  # wherever a callback may go
    try:
        there = path.stat() is not None
    except FileNotFoundError:
        there = False
    except (OSError, ValueError) as wrong:  # a name that no file can have
        raise ValueError(f"checkpoint: {cut(str(path), 80)} can be no file: {first_line(wrong)}") from wrong
    if there and not path.is_file():
        raise ValueError(f"checkpoint must be a file, and {path} is none")
    every = real_number(given.seconds, "seconds", at_least=0.0)
    passes = None if given.passes is None else real_number(given.passes, "passes", above=0.0)
    return Found(path, every, passes, _read(path) if there else None)


def _read(path: Path) -> dict[str, Any]:
    try:
        tree, arrays = read(path, TREE, "checkpoint")
        made = tree.get("format")
        if type(made) is not int or made < 1:
            raise ValueError(f"{path.name} is no checkpoint of rowcol, or it is damaged: it has no format number")
        version = str(tree.get("rowcol"))[:20]
        if made > FORMAT:
            raise ValueError(f"{path.name} was made by a newer rowcol ({version})")
        if version != __version__:
            raise ValueError(f"{path.name} was made by rowcol {version}, and this is {__version__}: go on by that one")
    except ValueError as wrong:
        raise ValueError(f"checkpoint: {wrong}; {REMEDY}") from wrong
    try:
        told = Unpacking(arrays).unpack(tree)
        told = {name: _of(told[name], kind) for name, kind in PARTS.items()}
        if set(told["parameters"]) != set(NAMES) or not set(told["left_out"]) <= set(NAMES):
            raise ValueError("it has other parameters")
        return told
    except MemoryError:
        raise
    except Exception as wrong:  # whatever a forged tree leads to
        why = (str(wrong).splitlines() or [type(wrong).__name__])[0][:200]
        raise ValueError(f"checkpoint: {path.name} is damaged: {why}; {REMEDY}") from wrong


PARTS = {"problem": dict, "parameters": dict, "left_out": list, "seed": dict, "memory": int, "done": dict}


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"a {kind.__name__} is something else")
    return value


def opened(checkpoint: Any, how: How, X: Any, y: Any, given: dict[str, Any]) -> Any:
    """Let a solve write down what it does, and go on from what is written there; the start it is to take.

    `given` are the parameters of `solve`, but for callback and progress.
    """
    if checkpoint is None:
        return given["x0"]
    at = found(checkpoint)
    path, told = Path(at.path), at.told
    writable(path)
    problem, (parameters, left_out) = fingerprint(X, y), plain(given)
    seed, memory, spent = how.seed, how.memory, 0.0
    runs: list[Any] = []
    facts: dict[str, Any] = {}
    if told is not None:
        _compare(path, told, problem, parameters, left_out)
        try:
            seed, memory = _seed(told["seed"]), told["memory"]
            runs, facts = _of(told["done"]["runs"], list), _of(told["done"]["facts"], dict)
            spent = _of(told["done"]["seconds"], float)
            first = told["parameters"]["max_seconds"]
            start = told["parameters"]["x0"]
            if start is not None and not isinstance(getattr(start, "x", start), np.ndarray):
                raise ValueError("x0 is no array")
            how.patience = math.inf if first is None else real_number(first, "max_seconds", above=0.0)
        except (KeyError, ValueError, TypeError) as wrong:
            raise ValueError(f"checkpoint: {path.name} is damaged; remove it to begin anew") from wrong
        if given["random_state"] is not None and _seeded(seed) != _seeded(how.seed):
            raise ValueError(_other(path, "random_state is another"))
        parameters, left_out = told["parameters"], told["left_out"]
    asked: dict[str, Any] = {"problem": problem, "parameters": parameters, "left_out": left_out}
    asked |= {"seed": _seeded(seed), "memory": memory}
    log = Log(path.name, partial(_written, path, asked), at.seconds, at.passes, runs, facts)
    log.spent = spent
    how.log, how.seed, how.memory = log, seed, memory
    return given["x0"] if told is None or "x0" in left_out else parameters["x0"]


def closed(how: How, result: Result) -> Result:
    """The solve is done: so is its file."""
    if how.log is not None:
        how.log.close()
        result.seconds += how.log.spent
    return result


def _written(path: Path, asked: dict[str, Any], done: dict[str, Any]) -> None:
    packing = Packing()
    tree = {"format": FORMAT, "rowcol": __version__} | {k: packing.pack(v) for k, v in (asked | {"done": done}).items()}
    swept(path)
    write(path, tree, packing.arrays, TREE)


# --- is it the same? -------------------------------------------------------------------------------------------------


def _compare(path: Path, told: dict[str, Any], problem: dict, parameters: dict, left_out: list[str]) -> None:
    for name, now in problem.items():
        then = told["problem"].get(name)
        if then != now:
            said = (
                f"{name} has other values"
                if name in ("X", "y")
                else f"{name} is {now} here, and {first_line(then)[:60]} there"
            )
            raise ValueError(_other(path, said))
    for name in SAME:
        now = None if name in left_out else _bytes(parameters[name])  # code cannot be compared
        if now != (None if name in told["left_out"] else _bytes(told["parameters"][name])):
            raise ValueError(_other(path, f"{name} is another"))


def _other(path: Path, why: str) -> str:
    return f"checkpoint: {path.name} is of another solve, as {why}: name another file, or remove it to begin anew"


def _bytes(value: Any) -> bytes:
    """Equal for equal plain data only."""
    packing = Packing()
    tree = json.dumps(packing.pack(value)).encode()
    return b"\0".join([tree, *(f"{a.dtype.str} {a.shape}".encode() + a.tobytes() for a in packing.arrays)])


def plain(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Parameters as plain data, and the names of those that are none."""
    made: dict[str, Any] = {}
    left_out = []
    for name in NAMES:
        value = given.get(name)
        try:
            made[name] = TAMED.get(name, _tame)(value)
            Packing().pack(made[name])
        except TypeError:
            made[name] = None
            left_out.append(name)
    return made, left_out


def _tame(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else value


def _number(value: Any) -> Any:
    value = _tame(value)
    return float(value) if type(value) is int else value


def _start(x0: Any) -> Any:
    """A start as an array, or as a Result of little else."""
    if not isinstance(x0, Result):
        return _tame(x0)
    if x0.function is not None and np.shape(x0.x)[0] != x0.function.exact.shape[0]:
        raise TypeError("the function of an earlier fit is no plain data")
    return replace(x0, function=None, plan=None, history=History(), fitted=None)


def _refused(value: Any) -> None:
    if value is not None:
        raise TypeError("an operator is no plain data")


TAMED: dict[str, Callable[[Any], Any]] = {
    "x0": _start,
    "kernel": lambda value: None if value is None else kernel_of(value),
    "bounds": lambda value: None if value is None else tuple(_tame(one) for one in value),
    "preconditioner": _refused,
    **dict.fromkeys(("alpha", "tol", "max_passes", "max_seconds"), _number),
}


def _seeded(seed: np.random.SeedSequence) -> dict[str, Any]:
    entropy: Any = seed.entropy
    return {
        "entropy": [int(one) for one in entropy] if np.ndim(entropy) else int(entropy),
        "spawn_key": [int(one) for one in seed.spawn_key],
    }


def _seed(told: dict[str, Any]) -> np.random.SeedSequence:
    return np.random.SeedSequence(told["entropy"], spawn_key=tuple(told["spawn_key"]))


def fingerprint(X: Any, y: Any) -> dict[str, Any]:
    """What tells one X and y from others: shapes, types, layout and a checksum of all numbers.

    It takes about a second a gigabyte, once a solve. Of an operator, it is the product with a fixed vector.
    """
    X, _ = matrix(X)
    b, single = right_hand_sides(y, X.shape[0])
    told: dict[str, Any] = {"shape of X": list(X.shape), "type of X": str(X.dtype)}
    if sp.issparse(X):
        told |= {"layout of X": X.format, "X": _sum(X.indptr, X.indices, X.data)}
    elif isinstance(X, Place):
        told |= {"layout of X": X.starts.tolist(), "X": list(X.map(_part_sum))}
    elif isinstance(X, np.ndarray):
        by_rows = X.flags.c_contiguous
        told |= {"layout of X": "rows" if by_rows else "columns", "X": _sum(X if by_rows else X.T)}
    else:
        some = np.random.default_rng(0).standard_normal(X.shape[1])
        told |= {"layout of X": "operator", "X": _sum(np.asarray(X.matvec(some)))}
    return told | {"shape of y": [len(b)] if single else list(b.shape), "y": _sum(b)}


def _part_sum(part: Any, pool: Any) -> int:
    return _sum(part.indptr, part.indices, part.data) if sp.issparse(part) else _sum(part)


def _sum(*arrays: np.ndarray) -> int:
    total = 0
    for a in arrays:
        flat = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
        for start in range(0, flat.size, PART):
            total = zlib.crc32(flat[start : start + PART].data, total)
    return total

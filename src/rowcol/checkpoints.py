"""A checkpoint: what was asked, of which X and y, and what was done so far; in a file in which nothing is code."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .asking import How
from .core.problem import matrix, real_number, right_hand_sides
from .core.words import cut, first_line
from .files.archive import read, write
from .files.plain import Packing, Unpacking
from .files.writing import swept, writable
from .fingerprints import NAMES, SAME, as_bytes, fingerprint, plain, seed_of, seeded
from .methods.log import Log
from .methods.result import Result, Status
from .methods.routes import RACE

FORMAT = 1  # goes up by one when a file has other parts
TREE = "checkpoint.json"
REMEDY = "remove it to begin anew, or name another file"
LEAST, VECTORS = 16_384, 6  # of a first checkpoint: bytes, and vectors as long as a row and a column, for each y
CUT = {Status.PASSES, Status.SECONDS, Status.CALLBACK, Status.INTERRUPTED}  # of a fit that can go on


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


@dataclass
class Warm:
    """A checkpoint in memory, of a fit with `warm_start`, beside that in a file, if there is one.

    What a fit leaves is as in a file, with what only memory can hold: a start and a kernel that are no plain data.
    """

    past: dict[str, Any] | None = None  # what the fit before left, if it was cut short
    file: Any = None
    asked: dict[str, Any] = field(default_factory=dict)  # of this fit
    of: tuple[Any, Any] = (None, None)  # its X and y
    log: Log | None = None

    def left(self, result: Result) -> dict[str, Any] | None:
        """What the next fit can go on from; None if this one came to its end. X and y are summed up only here."""
        if self.log is None or not CUT & set(result.statuses):
            return None
        told = self.asked | {"problem": self.asked["problem"] or fingerprint(*self.of)}
        told["parameters"] = deepcopy(told["parameters"])  # arrays may be the user's own
        return told | {"done": self.log.kept, "passes": result.passes}


def recalled(checkpoint: Any, memory: int, said: Any) -> tuple[Any, int]:
    """A checkpoint, its file read; and the budget by which X is placed: that of what was cut short, not what is free.

    `said` is the budget as it was given.
    """
    if checkpoint is None:
        return None, memory
    warm = checkpoint if isinstance(checkpoint, Warm) else None
    if warm is None:
        checkpoint = found(checkpoint)
    elif warm.file is not None:
        warm.file = found(warm.file)
    told = getattr(checkpoint if warm is None else warm.file, "told", None)
    if told is None and warm is not None and warm.past is not None and warm.past["parameters"]["memory"] == said:
        told = warm.past
    return checkpoint, memory if told is None else told["memory"]


def opened(checkpoint: Any, how: How, X: Any, y: Any, given: dict[str, Any]) -> Any:
    """Let a solve write down what it does, and go on from what is written there; the start it is to take.

    `given` are the parameters of `solve`, but for callback and progress.
    """
    if checkpoint is None:
        return given["x0"]
    warm = checkpoint if isinstance(checkpoint, Warm) else None
    file = checkpoint if warm is None else warm.file
    at = None if file is None else found(file)
    parameters, left_out = plain(given)
    asked: dict[str, Any] = {"problem": None, "parameters": parameters, "left_out": left_out}
    asked |= {"seed": seeded(how.seed), "memory": how.memory}
    told = None
    if at is not None:
        writable(Path(at.path), _bytes_of(at, X, y, parameters, left_out))
        asked["problem"] = fingerprint(X, y)
        if at.told is not None:
            _compare(Path(at.path), at.told, asked)
            told = at.told
    name = "what the last fit left" if at is None else Path(at.path).name
    if warm is not None:
        warm.asked, warm.of = asked | _code(given, left_out), (X, y)
        told = warm.past if told is None and _goes_on(warm, given) else told
        asked["problem"] = warm.asked["problem"]
    allowed, spent = how.stop.max_passes, 0.0
    runs: list[Any] = []
    facts: dict[str, Any] = {}
    if told is not None:
        runs, facts, spent = _gone_on(how, told, name, given)
        asked |= {one: told[one] for one in ("parameters", "left_out", "seed", "memory")}
        more = how.stop.max_passes != allowed
        limit = {"max_passes": how.stop.max_passes if more else parameters["max_passes"]}
        asked["parameters"] = asked["parameters"] | limit
    log = Log(name, None, runs=runs, facts=facts, spent=spent, limit=how.stop.max_passes)
    if at is not None:
        log.save, log.seconds, log.passes = partial(_written, Path(at.path), asked), at.seconds, at.passes
        log.exists = at.told is not None
    if warm is not None:
        warm.asked |= asked | {"limit": how.stop.max_passes, "start": (told or warm.asked).get("start")}
        # a file may hold rounds that its limit has shortened: then what is kept in memory begins with the seed
        known = list(runs) if told is warm.past else []
        warm.log, log.keeps, log.kept = log, True, {"runs": known, "facts": facts, "seconds": spent}
    how.log = log
    if told is None:
        return given["x0"]
    start = told["parameters"]["x0"]
    return start if "x0" not in told["left_out"] else told.get("start", given["x0"])


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


def _gone_on(how: How, told: dict[str, Any], name: str, given: dict[str, Any]) -> tuple[list[Any], dict, float]:
    """Seed, memory and limits as they were; the runs that are known, what the clock decided, and seconds spent."""
    try:
        seed, memory = seed_of(told["seed"]), told["memory"]
        runs, facts = _of(told["done"]["runs"], list), _of(told["done"]["facts"], dict)
        spent = _of(told["done"]["seconds"], float)
        first, start = told["parameters"]["max_seconds"], told["parameters"]["x0"]
        if start is not None and not isinstance(getattr(start, "x", start), np.ndarray):
            raise ValueError("x0 is no array")
        how.patience = math.inf if first is None else real_number(first, "max_seconds", above=0.0)
    except (KeyError, ValueError, TypeError) as wrong:
        raise ValueError(f"checkpoint: {name} is damaged; remove it to begin anew") from wrong
    if "limit" in told:  # in memory: passes that were all spent may be allowed again
        limit = how.stop.max_passes
        limit += told["passes"] if told["passes"] >= limit * (1 - 1e-12) else 0.0
        how.stop = how.stop._replace(max_passes=limit)
        if (limit < RACE) != (told["limit"] < RACE):  # it would have begun in another way
            runs = []
    elif given["random_state"] is not None and seeded(seed) != seeded(how.seed):
        raise ValueError(_other(name, "random_state is another"))
    how.seed, how.memory = seed, memory
    return list(runs), dict(facts), spent


def _bytes_of(at: Found, X: Any, y: Any, parameters: dict[str, Any], left_out: list[str]) -> int:
    """About what the first checkpoint takes, which is known before there is one."""
    packing = Packing()
    packing.pack(parameters)
    X, _ = matrix(X)
    (n, p), b = X.shape, right_hand_sides(y, X.shape[0])[0]
    more = n if parameters["kernel"] is not None or "kernel" in left_out else p
    vectors = VECTORS * (b.size // n) * (n + more) * np.result_type(X.dtype, b.dtype, np.float64).itemsize
    last = Path(at.path).stat().st_size if at.told is not None else 0
    return max(LEAST + vectors + sum(a.nbytes for a in packing.arrays), last)


# --- is it the same? -------------------------------------------------------------------------------------------------


def _compare(path: Path, told: dict[str, Any], asked: dict[str, Any]) -> None:
    for name, now in asked["problem"].items():
        then = told["problem"].get(name)
        if then != now:
            said = (
                f"{name} has other values"
                if name in ("X", "y")
                else f"{name} is {_short(name, now)} here, and {_short(name, then)} there"
            )
            raise ValueError(_other(path.name, said))
    other = _another(told, asked)
    if other is not None:
        raise ValueError(_other(path.name, f"{other} is another"))


def _another(told: dict[str, Any], asked: dict[str, Any], but: tuple[str, ...] = ()) -> str | None:
    """The first parameter that is another one."""
    for name in SAME:
        now = None if name in asked["left_out"] else as_bytes(asked["parameters"][name])  # code cannot be compared
        then = None if name in told["left_out"] else as_bytes(told["parameters"][name])
        if now != then and name not in but:
            return name
    return None


def _short(name: str, value: Any) -> str:
    """A shape, a type, or where parts of X begin: there may be thousands."""
    if name == "layout of X" and isinstance(value, list) and all(type(one) is int for one in value[:2]):
        rows = value[1] - value[0] if len(value) > 1 else 0
        return f"{len(value) - 1:,} part{'s' * (len(value) != 2)} of {rows:,} rows"
    return first_line(value)[:60]


def _other(name: str, why: str) -> str:
    return f"checkpoint: {name} is of another solve, as {why}: name another file, or remove it to begin anew"


def _code(given: dict[str, Any], left_out: list[str]) -> dict[str, Any]:
    """What is no plain data: a start is kept as it is, and all else is held against what comes."""
    code = {name: given[name] for name in left_out if name != "x0"}
    return {"code": code, "start": given["x0"] if "x0" in left_out else None}


def _goes_on(warm: Warm, given: dict[str, Any]) -> bool:
    """Is this fit the one that was cut short? X and y come last, as they take longest.

    Of no seed, and of a generator, the next number is as good as any: then it is the one that was drawn.
    """
    past, asked = warm.past, warm.asked
    if past is None:
        return False
    fixed = isinstance(given["random_state"], (int, np.integer, np.random.SeedSequence))
    if _another(past, asked, ("max_passes",)) is not None or (fixed and past["seed"] != asked["seed"]):
        return False
    try:
        if past["code"] != asked["code"]:
            return False
    except ValueError:  # of arrays
        return False
    X, y = warm.of
    asked["problem"] = asked["problem"] or fingerprint(X, y)
    return bool(asked["problem"] == past["problem"])

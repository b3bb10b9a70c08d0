"""What test_resources.py has run in a process: `python living.py '[["grown", {"times": 9}], ...]'` prints JSON."""

import contextlib
import gc
import io
import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import rowcol

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 6))
y = X @ np.arange(6.0) + 0.1 * rng.standard_normal(60)
LEAK, KEPT = 40_000, []


def leak():
    """What a fit that forgets nothing would do: the checks have to see it."""
    KEPT.append((np.ones(LEAK // 8), os.dup(0)))


def fits(folder):
    """Fits of all sorts, by name."""
    np.save(folder / "X.npy", X)
    chunks = rowcol.chunks(folder / "X.npy", rows=16)
    kernel = {"kernel": "rbf", "alpha": 0.1, "random_state": 0}

    def solved(**more):
        return lambda: rowcol.solve(X, y, random_state=0, **more)

    return {
        "auto": solved(alpha=1.0),
        "direct": solved(alpha=1.0, method="direct"),
        "cg": solved(alpha=1.0, method="cg"),
        "rk": solved(alpha=1.0, method="rk", tol=1e-2),
        "rcd": solved(alpha=1.0, method="rcd", tol=1e-2),
        "threads": solved(alpha=1.0, method="rk", tol=1e-2, n_jobs=2),
        "ridge": lambda: rowcol.Ridge(1.0).fit(X, y).predict(X),
        "kernel": lambda: rowcol.KernelRidge(**kernel).fit(X, y).predict(X),
        "chunks": lambda: rowcol.solve(chunks, y, alpha=1.0),
        "chunks, opened anew": lambda: rowcol.solve(rowcol.chunks(folder / "X.npy", rows=16), y, alpha=1.0),
        "leak": leak,
    }


def now():
    """Bytes in memory, open files, and threads."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def grown(times):
    """What memory, files and threads grew by over so many fits, after a third of them to settle down."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, fit in fits(Path(folder)).items():
            for _ in range(times // 3):
                fit()
            before = now()
            for _ in range(times):
                fit()
            found[name] = [after - was for after, was in zip(now(), before, strict=True)]
    KEPT.clear()
    return found


def limited(more):
    """What comes of work that needs more than `more` bytes beside X, one after the other."""
    import rowcol.__main__
    import rowcol.cli

    wide = {"memory": "100 GB", "n_jobs": 1}
    calls = {
        "direct": lambda X, y: rowcol.solve(X, y, alpha=1.0, method="direct", **wide).success,
        "ridge": lambda X, y: rowcol.Ridge(1.0, solver="direct", **wide).fit(X, y).result_.success,
        "columns": lambda X, y: rowcol.solve(X, y, alpha=1.0, method="rcd", max_passes=2, **wide).success,
        "kernel": lambda X, y: rowcol.KernelRidge(1.0, kernel="rbf", solver="direct", **wide).fit(X, y).result_.success,
        "auto": lambda X, y: rowcol.solve(X, y, alpha=1.0, tol=1e-3, n_jobs=1).success,
        "auto kernel": lambda X, y: rowcol.KernelRidge(1.0, kernel="rbf", n_jobs=1).fit(X, y).result_.success,
        "command": command,
    }
    few, many, tall, points = (rng.standard_normal(one) for one in ((400, 40), (3200, 3000), (400_000, 40), (5000, 5)))
    data = {name: {"columns": tall, "kernel": points, "auto kernel": points}.get(name, many) for name in calls}
    found = {}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        os.chdir(folder)
        for call in calls.values():
            call(few, few[:, 0].copy())  # what is loaded late is loaded now
        np.save(
            "X.npy", data["command"].astype(np.float32)
        )  # which is read within the limit, and its square is not made
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + more, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for name, one in data.items():
            try:
                found[name] = ["done", calls[name](one, one[:, 0].copy())]
            except MemoryError as wrong:
                found[name] = ["MemoryError", str(wrong)]
        os.chdir("/")
    return found


def command(points, target):
    """The same by the command line: its exit code, and what it says."""
    name = "X.npy" if len(points) > 1000 else "few.npy"
    if name == "few.npy":
        np.save(name, points)
    np.save("y.npy", target)
    words = ["solve", name, "y.npy", "--alpha", "1", "--method", "direct", "--memory", "100GB", "--threads", "1"]
    sys.argv, said, code = ["rowcol", *words], io.StringIO(), 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            rowcol.__main__.main()
        except SystemExit as ended:
            code = ended.code
    return [code, said.getvalue()]


def compiled(light=False, largest=None):
    """A solve, or a table of picks, by code that is kept where the environment says, and how much was found there."""
    from numba.core.dispatcher import Dispatcher

    from rowcol.engine import alias, lines

    if largest is not None:  # as on a disk that is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if light:
        weights, keep, other = rng.uniform(size=50), np.empty(50), np.empty(50, np.int64)
        alias.build(weights, keep, other)
        off = np.abs((keep + np.bincount(other, 1 - keep, 50)) / 50 - weights / weights.sum()).max()
    else:
        off = np.abs(rowcol.solve(X, X @ np.ones(6), method="rk", n_jobs=1, random_state=0).x - 1).max()
    known = [one.stats for module in (alias, lines) for one in vars(module).values() if isinstance(one, Dispatcher)]
    hits, misses = (sum(sum(getattr(one, name).values()) for one in known) for name in ("cache_hits", "cache_misses"))
    return {"off": float(off), "hits": hits, "misses": misses}


def full(folder, largest):
    """Save a model over another, and go on from a checkpoint, where files may not become so large."""
    folder, told = Path(folder), {}
    asked = {"alpha": 1.0, "method": "rk", "random_state": 0, "tol": 1e-9}
    model = rowcol.Ridge(1.0).fit(X, y)
    rowcol.save(model, folder / "model")
    count = iter(range(9))
    rowcol.solve(X, y, checkpoint=folder / "checkpoint", callback=lambda now: next(count) > 1, **asked)
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        rowcol.save(rowcol.KernelRidge(kernel="rbf").fit(X, y), folder / "model")
    except OSError as wrong:
        told["save"] = str(wrong)
    checkpoint = rowcol.Checkpoint(folder / "checkpoint", seconds=0)
    try:
        rowcol.resume(checkpoint, X, y)
    except OSError as wrong:
        told["refused"] = str(wrong)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with warnings.catch_warnings(record=True) as caught:  # full in the middle
        warnings.simplefilter("always")
        smaller = largest, limits[1]
        result = rowcol.resume(
            checkpoint, X, y, callback=lambda now: resource.setrlimit(resource.RLIMIT_FSIZE, smaller)
        )
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    told["checkpoint"] = [str(one.message) for one in caught if one.category is rowcol.CheckpointWarning]
    told["the same"] = before == {one.name: one.read_bytes() for one in folder.iterdir()}
    told["off"] = float(np.abs(result.x - np.linalg.solve(X.T @ X + np.eye(6), X.T @ y)).max())
    return told | {
        "left": sorted(before),
        "predicts": bool((rowcol.load(folder / "model").predict(X) == model.predict(X)).all()),
    }


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # too large a file is an error, and not the end
    print(json.dumps([globals()[name](**given) for name, given in json.loads(sys.argv[1])]))

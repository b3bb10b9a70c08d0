"""Jobs whose bits must not depend on who runs them, when, or beside what: each gives all it found as plain data.

`run(name)` runs one here; `python jobs.py out.json name ...` runs some in a process of their own.
"""

import hashlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does

import rowcol
from cases import AT_ONCE, CASES, HARD, POINTS, SPARSE, TALL, VALUES, Y, told
from oracle import uneven
from rowcol import kernels
from rowcol.asking import ROUTES

LARGE = uneven(3_000, 40)  # large enough for threads to share blocks of rows
MANY = np.column_stack([LARGE[1], LARGE[0] @ np.ones(40), -LARGE[1]])
DOTS = np.random.default_rng(2).standard_normal((1_200, 3))
SOLVES = (
    CASES
    | AT_ONCE
    | {f"large {method}": (LARGE[0], MANY, dict(method=method, max_passes=8, tol=1e-5)) for method in ROUTES}
    | {"large kernel": (DOTS, np.sin(DOTS[:, 0]), dict(kernel="rbf", alpha=0.1, method="pcg", tol=1e-4))}
)
for one in (*LARGE, MANY, DOTS, TALL, HARD, POINTS, VALUES, Y, SPARSE.data, SPARSE.indices):
    one.flags.writeable = False  # X is read by many at once, and nobody may write to it

CLASSES = (VALUES[:, 0] > 0.2).astype(int) + (VALUES[:, 1] > 1)
MODELS = {
    "Ridge": (rowcol.Ridge(0.5, random_state=0), TALL, Y),
    "Ridge, rows": (rowcol.Ridge(0.5, solver="rk", max_iter=20, random_state=0), TALL, Y[:, 0]),
    "LeastSquares": (rowcol.LeastSquares(random_state=0), TALL, Y[:, 1]),
    "RidgeCV": (rowcol.RidgeCV(np.logspace(-3, 1, 5), cv=3, random_state=0), HARD, Y[:80, 0]),
    "RidgeClassifier": (rowcol.RidgeClassifier(0.1, random_state=0), POINTS, CLASSES),
    "KernelRidge": (rowcol.KernelRidge(0.1, kernel="rbf", random_state=0), POINTS, VALUES),
    "KernelRidge, centres": (rowcol.KernelRidge(0.1, kernel="rbf", n_centers=30, random_state=0), POINTS, VALUES),
    "KernelRidgeClassifier": (rowcol.KernelRidgeClassifier(0.1, kernel="rbf", random_state=0), POINTS, CLASSES),
    "KernelRidgeCV": (rowcol.KernelRidgeCV(cv=3, random_state=0), POINTS[:60], VALUES[:60, 0]),
}
KERNELS = {
    name: (getattr(kernels, name)(), np.abs(POINTS) if name == "Chi2" else POINTS)
    for name in ("RBF", "Laplacian", "Matern", "Polynomial", "Linear", "Sigmoid", "Cosine", "Chi2")
    if name != "Sigmoid"  # which is not positive definite
}


def solved(name, n_jobs, **setting):
    """One solve of the table; a checkpoint is written after every round, and gone on from."""
    X, y, options = SOLVES[name]
    asked = {"random_state": 3, "memory": "1 GB", "n_jobs": n_jobs} | options
    if "checkpoint" not in setting:
        return told(rowcol.solve(X, y, **asked, **setting))
    calls = []
    with tempfile.TemporaryDirectory() as folder:
        at = rowcol.Checkpoint(Path(folder) / "at", seconds=0)
        rowcol.solve(X, y, checkpoint=at, callback=lambda now: calls.append(now) or len(calls) == 2, **asked)
        return told(rowcol.resume(at, X, y))


def modelled(name, n_jobs):
    """A model is fitted, saved, loaded; both predict."""
    model, X, y = MODELS[name]
    model = type(model)(**model.get_params()).set_params(n_jobs=n_jobs, memory="1 GB").fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        rowcol.save(model, Path(folder) / "model.rowcol")
        loaded = rowcol.load(Path(folder) / "model.rowcol")
    found = {"predict": model.predict(X).tobytes(), "loaded": loaded.predict(X).tobytes()}
    for attribute in ("coef_", "dual_coef_", "intercept_", "alpha_", "best_score_"):
        value = getattr(model, attribute, None)
        found[attribute] = None if value is None else np.asarray(value).tobytes()
    return found


def by_kernel(name, n_jobs):
    """Each kernel, by a route that forms none of it."""
    kernel, X = KERNELS[name]
    asked = dict(kernel=kernel, alpha=0.5, method="pcg", random_state=3, memory="1 GB", n_jobs=n_jobs)
    result = rowcol.solve(X, VALUES, **asked)
    values, bounds = result.function(X[:40], return_bound=True)
    return told(result) | {"values": values.tobytes(), "bounds": bounds.tobytes()}


def path(n_jobs, method):
    """Many alphas."""
    asked = dict(method=method, max_passes=50, memory="1 GB", random_state=3, n_jobs=n_jobs)
    found = rowcol.ridge_path(HARD, Y[:80, 0], np.logspace(-3, 1, 7), **asked)
    return {"coef": found.coef.tobytes(), "passes": found.passes, "certificates": str(found.certificates)}


def prepared(n_jobs):
    """One X, several y."""
    with_factor = rowcol.prepare(HARD, alpha=0.1, memory="1 GB", random_state=3, n_jobs=n_jobs)
    return {str(i): told(with_factor.solve(Y[:80, i])) for i in range(2)}


def in_chunks(n_jobs, method):
    """X by parts of 32 rows, read ahead."""
    place, *_ = rowcol.chunks(TALL, rows=32)
    asked = dict(alpha=0.5, method=method, max_passes=30, memory="1 GB", random_state=3, n_jobs=n_jobs)
    return told(rowcol.solve(place, Y[:, 0], **asked))


OTHERS = {
    "ridge_path": lambda n_jobs: path(n_jobs, "auto"),
    "ridge_path, rows": lambda n_jobs: path(n_jobs, "rk"),
    "prepare": prepared,
    "chunks": lambda n_jobs: in_chunks(n_jobs, "direct"),
    "chunks, rows": lambda n_jobs: in_chunks(n_jobs, "rk"),
    "chunks, cg": lambda n_jobs: in_chunks(n_jobs, "cg"),
}
NAMES = [
    *(f"solve: {name}" for name in SOLVES),
    *(f"model: {name}" for name in MODELS),
    *(f"kernel: {name}" for name in KERNELS),
    *(f"other: {name}" for name in OTHERS),
]
# slow, where all others take milliseconds: they are among the jobs of `make torture`
SLOW = ("solve: one route, then another", "solve: a race", "model: KernelRidgeCV")


def run(name, n_jobs=1, **setting):
    """All that a job found, as a digest for each part of it."""
    kind, name = name.split(": ", 1)
    if kind == "solve":
        found = solved(name, n_jobs, **setting)
    elif kind == "model":
        found = modelled(name, n_jobs)
    elif kind == "kernel":
        found = by_kernel(name, n_jobs)
    else:
        found = OTHERS[name](n_jobs)
    return digests(found)


def digests(found):
    """Each part by its SHA-256, so that processes can tell each other."""
    if isinstance(found, dict):
        return {name: digests(part) for name, part in found.items()}
    raw = found if isinstance(found, bytes) else str(found).encode()
    return hashlib.sha256(raw).hexdigest()


def differing(a, b, where=""):
    """Which parts are not the same."""
    if isinstance(a, dict) and isinstance(b, dict):
        names = sorted(set(a) | set(b))
        return [found for name in names for found in differing(a.get(name), b.get(name), f"{where}/{name}")]
    return [] if a == b else [where]


if __name__ == "__main__":
    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
    out, jobs, *names = sys.argv[1:]
    Path(out).write_text(json.dumps({name: run(name, None if jobs == "None" else int(jobs)) for name in names}))
    os._exit(0)  # threads of BLAS need not be waited for

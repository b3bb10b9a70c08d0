"""What a checkpoint costs: the checksum of X, the file, writing it, and coming back. A minute or two.

python benchmarks/checkpoints.py
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rowcol
from rowcol import checkpoints, fingerprints


def timed(f: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    out = f()
    return time.perf_counter() - began, out


def measure(name: str, X: np.ndarray, y: np.ndarray, passes: float, **options: Any) -> None:
    """A solve without a checkpoint, one that writes after every round, and one that goes on from its end."""
    with tempfile.TemporaryDirectory() as folder:
        path, writing, written = Path(folder) / "at", [], checkpoints.write

        def write(*a: Any) -> None:
            writing.append(timed(lambda: written(*a))[0])

        told = options | {"max_passes": passes, "random_state": 0, "memory": "2 GB"}
        rowcol.solve(X, y, **told | {"max_passes": 1e-3})  # to compile
        plain, first = timed(lambda: rowcol.solve(X, y, **told))
        checkpoints.write = write
        every = timed(lambda: rowcol.solve(X, y, checkpoint=rowcol.Checkpoint(path, seconds=0), **told))[0]
        checkpoints.write = written
        back, last = timed(lambda: rowcol.resume(path, X, y))
        summing = timed(lambda: fingerprints.fingerprint(X, y))[0]
        assert (first.x == last.x).all()
        assert (first.passes, first.steps) == (last.passes, last.steps)
        print(
            f"{name}: X {X.nbytes / 1e6:,.0f} MB, checksum {summing:.2f} s; solve {plain:.1f} s, {len(writing)} "
            f"checkpoints of {path.stat().st_size / 1e6:.1f} MB, {np.median(writing):.3f} s each (all: {every:.1f} s); "
            f"coming back to the end {back:.2f} s"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 50))
    measure("rows, 1,000,000 x 50", X, rng.standard_normal(1_000_000), 20, method="rk", alpha=1.0)
    X = rng.standard_normal((12_000, 8))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(12_000)
    measure("kernel ridge, 12,000 points", X, y, 1000, kernel="rbf", alpha=0.01, tol=1e-4)

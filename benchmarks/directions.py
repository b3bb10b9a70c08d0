"""An X on disk whose Gram matrix does not fit: conjugate gradients, the same preconditioned by a sketch, and auto.

A pass is a reading of the file; seconds are of one run each, from the page cache, the sketch included. Columns are
mixed, so that scaling them does not help.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np

import rowcol


def spectra(p: int) -> dict[str, np.ndarray]:
    """Singular values, but for what a random X adds."""
    few = np.ones(p)
    few[:50] = np.geomspace(1e4, 1e2, 50)
    return {
        "50 large ones over a flat tail": few,
        "as 1/√j": np.arange(1, p + 1) ** -0.5,
        "as 1/j": 1.0 / np.arange(1, p + 1),
        "all alike": np.ones(p),
    }


def write(path: Path, n: int, p: int, s: np.ndarray) -> np.ndarray:
    """X = G Q diag(s) Qᵀ on disk, in pieces, and a y that no β fits."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    mixed, beta = (Q * s) @ Q.T, rng.standard_normal(p)
    X, y = np.lib.format.open_memmap(path, "w+", np.float64, (n, p)), np.empty(n)
    for at in range(0, n, 4_000):
        part = rng.standard_normal((min(4_000, n - at), p)) @ mixed
        X[at : at + 4_000], y[at : at + 4_000] = part, part @ beta
    X.flush()
    return y + 0.1 * np.linalg.norm(y) / np.sqrt(n) * rng.standard_normal(n)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--columns", type=int, default=3_000)
    parser.add_argument("--memory", default="600MB")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-passes", type=int, default=1_000)
    given = parser.parse_args()
    n, p = given.rows, given.columns
    print(f"{n:,} x {p:,}, {8e-9 * n * p:.2f} GB, memory {given.memory}, tol {given.tol:.0e}")
    print(f"{'singular values':32}{'method':8}{'passes':>8}{'seconds':>9}  how it ended")
    for name, s in spectra(p).items():
        with tempfile.TemporaryDirectory() as folder:
            y = write(Path(folder) / "X.npy", n, p, s)
            X = rowcol.chunks(Path(folder) / "X.npy").X
            for method in ("cg", "sketch", "auto"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
                    found = rowcol.solve(
                        X,
                        y,
                        method=method,
                        memory=given.memory,
                        tol=given.tol,
                        max_passes=given.max_passes,
                        random_state=0,
                    )
                ended = f"{found.method}: {found.status.name}, {found.certificate.value:.0e}"
                print(f"{name:32}{method:8}{found.passes:8.0f}{found.seconds:9.1f}  {ended}", flush=True)


if __name__ == "__main__":
    main()

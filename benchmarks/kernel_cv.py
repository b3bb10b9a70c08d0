"""KernelRidgeCV against its rivals: what folds cost, how well it predicts, and predictions of a million rows.

    python benchmarks/kernel_cv.py [--only folds,accuracy,predict] [--data DIR] [--sets a,b] [--out DIR]

Without --data, on the diamonds and on a made-up function; with it, on every .csv of a folder, whose last column is the
target: features and target are standardised by the nine tenths that are fitted. Writes kernel_cv.json and kernel_cv.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernel import diamonds, rmse, teacher

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
PUBLISHED = {  # exact Gaussian processes, one length-scale and one a feature: test RMSE, target standardised
    "kin40k": (0.099, None),
    "protein": (0.536, 0.50),
    "pol": (0.151, 0.08),
}


def sets(folder: str | None, names: str | None) -> Iterator[tuple[str, Split]]:
    """Points and targets to fit, and to test."""
    if folder is None:
        yield "teacher, 20,000", teacher(20_000)
        yield "diamonds", diamonds()
        return
    for path in sorted(Path(folder).glob("*.csv*")):
        name = path.name.split(".")[0]
        if names is not None and name not in names.split(","):
            continue
        table = np.genfromtxt(path, delimiter=",")
        table = table[~np.isnan(table).any(axis=1)]
        table = table[np.random.default_rng(0).permutation(len(table))]
        m = len(table) // 10
        fit = table[m:]
        table = (table - fit.mean(axis=0)) / np.where(fit.std(axis=0) > 0, fit.std(axis=0), 1.0)
        yield name, (table[m:, :-1], table[m:, -1], table[:m, :-1], table[:m, -1])


def timed(call: Callable[..., Any], *given: Any, **named: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = call(*given, **named)
    return time.perf_counter() - start, found


def folds(folder: str | None, names: str | None) -> Iterator[dict]:
    """Five folds x eight alphas, against one fit with the least alpha, and against the naive loop of forty fits."""
    import rowcol
    from rowcol import kernels
    from rowcol.folding import folded

    for n in (12_000, 36_000):
        X, y, _, _ = teacher(n)
        alphas, kernel = np.logspace(-2, 1, 8), kernels.RBF(gamma=0.1)
        trains = [np.flatnonzero(np.arange(n) % 5 != f) for f in range(5)]
        how: dict[str, Any] = {"method": "pcg", "tol": 1e-3, "random_state": 0}
        best: list[Any] = [np.inf, np.inf]
        for turn in range(3):
            one, single = timed(rowcol.solve, X, y, kernel=kernel, alpha=alphas.min(), **how)
            all_, many = timed(folded, X, y[:, None], kernel, alphas, trains, **how)
            if turn:
                best = [min(best[0], one), min(best[1], all_)]
        entries = many.entries / (single.passes * n * n)
        told = f"{best[1]:.1f} s against {best[0]:.2f}; {entries:.2f} times its kernel entries"
        yield {"what": f"5 folds x 8 alphas over one fit, n = {n:,}: time", "value": best[1] / best[0], "words": told}
        if n < 20_000:
            far, naive = 0.0, 0.0
            for k, alpha in enumerate(alphas):
                for f, at in enumerate(trains):
                    took, alone = timed(rowcol.solve, X[at], y[at], kernel=kernel, alpha=alpha, **how)
                    naive += took
                    far = max(far, rmse(alone.function(X), many.values[k, f, :, 0]))
            told = f"{naive:.1f} s; values differ by {far:.1e} at most, root mean square, tol {how['tol']:g}"
            yield {"what": "the naive loop of forty fits over them: time", "value": naive / best[1], "words": told}


def scored(name: str, Z: np.ndarray, z: np.ndarray, model: str, fitted: Any, seconds: float, words: str) -> dict:
    return {"what": f"{name}: {model}", "value": rmse(fitted.predict(Z), z), "words": f"{seconds:.1f} s; {words}"}


def accuracy(folder: str | None, names: str | None) -> Iterator[dict]:
    """Test error and seconds of everything a person might try; Nystroem is given as long as KernelRidgeCV took."""
    import rowcol

    for name, split in sets(folder, names):
        X, y, Z, z = split
        longest = 0.0
        for ard in (False, True):
            model = rowcol.KernelRidgeCV(ard=ard, random_state=0)
            seconds, fitted = timed(model.fit, X, y)
            longest = seconds if not ard else longest
            published = PUBLISHED.get(name, (None, None))[ard]
            told = f"{type(fitted.kernel_).__name__}{getattr(fitted.kernel_, 'nu', '')}, alpha {fitted.alpha_:.2g}, "
            told += f"{fitted.result_.status.name.lower()} {fitted.result_.certificate.value:.0e}"
            told += f", published {published:g}" if published else ""
            yield scored(name, Z, z, f"KernelRidgeCV{'(ard=True)' if ard else '()'}", fitted, seconds, told)
        yield from rivals(name, split, longest)


def rivals(name: str, split: Split, longest: float) -> Iterator[dict]:
    """Nystroem, of as many components as `longest` seconds allow; boosted trees; SVR and a Gaussian process on some."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVR

    X, y, Z, z = split
    few = np.random.default_rng(0).permutation(len(X))[:4000]
    row, gamma = partial(scored, name, Z, z), 1.0 / X.shape[1]
    seconds, fitted = timed(HistGradientBoostingRegressor(max_iter=1000, early_stopping=True, random_state=0).fit, X, y)
    yield row("HistGradientBoosting", fitted, seconds, f"{fitted.n_iter_} rounds")
    seconds, fitted = timed(SVR(C=10.0, gamma=gamma).fit, X[few], y[few])
    yield row("SVR, 4,000 points", fitted, seconds, "C = 10")
    kernel = ConstantKernel() * RBF(np.full(X.shape[1], 3.0)) + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, fitted = timed(GaussianProcessRegressor(kernel).fit, X[few[:1500]], y[few[:1500]])
    yield row("Gaussian process, 1,500 points, a length-scale a feature", fitted, seconds, "")
    for m in (500, 1000, 2000, 4000):
        start, found = time.perf_counter(), []
        for g in (gamma / 4, gamma, 4 * gamma):
            made = make_pipeline(Nystroem(gamma=g, n_components=m, random_state=0), RidgeCV(np.logspace(-6, 0, 7)))
            found.append(made.fit(X, y))
        seconds = time.perf_counter() - start
        best = max(found, key=lambda f: f[-1].best_score_)
        yield row(f"Nystroem({m}) x 3 gammas + RidgeCV", best, seconds, f"gamma {best[0].gamma:.3g}")
        if 4 * seconds > 1.2 * longest:  # twice the components take at least four times as long
            break


def predict(folder: str | None, names: str | None) -> Iterator[dict]:
    """A million rows against 20,000 points: speed against tiles alone, and memory."""
    import rowcol
    from rowcol.core.function import shared
    from rowcol.core.gram import cross, product

    X, y, _, _ = teacher(20_000)
    model = rowcol.KernelRidge(0.02, kernel="rbf", gamma=0.1, tol=1e-2, random_state=0).fit(X, y)
    Z = np.random.default_rng(1).standard_normal((1_000_000, X.shape[1])).astype(np.float32)
    model.predict(Z[:5000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, _ = timed(model.predict, Z)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6
    f = model.result_.function
    with shared(f.jobs) as pool:
        from dataclasses import replace

        g = cross(replace(f.quick if f.rough else f.exact, pool=pool), Z[:16_384])
        product(g, f.coefficients)
        tiles = min(timed(product, g, f.coefficients)[0] for _ in range(3)) * len(Z) / 16_384
    told = f"{len(Z) / seconds / 1e3:.0f} thousand rows a second, {more:.0f} MB more, of which 8 are the answer"
    yield {"what": "predict of a million rows: tiles alone over it", "value": tiles / seconds, "words": told}


PARTS = {"folds": folds, "accuracy": accuracy, "predict": predict}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--data", help="a folder of csv files, for your own eyes")
    parser.add_argument("--sets", help="which of them")
    parser.add_argument("--out", default="bench")
    given = parser.parse_args()
    lines, rows = ["| what | measured | |", "|---|---|---|"], []
    print("\n".join(lines))
    for part in given.only.split(","):
        for row in PARTS[part](given.data, given.sets):
            rows.append(row)
            lines.append(f"| {row['what']} | {row['value']:.3g} | {row['words']} |")
            print(lines[-1], flush=True)
    folder = Path(given.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel_cv.json").write_text(json.dumps(rows, indent=1))
    (folder / "kernel_cv.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

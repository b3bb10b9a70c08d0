"""What rowcol does, on problems it carries with it. Run it: make demo"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import regimes
import rowcol
from rowcol import zoo


def main() -> None:
    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
    folder = Path("demo")
    folder.mkdir(exist_ok=True)

    scan = zoo.tomography(pixels=32, angles=48)
    rowcol.solve(scan.X, scan.y, method="rk", sampler="shuffled", max_passes=1)  # the first call loads compiled code
    print(f"1. One call. A scan: {scan.X.shape[0]:,} rays through an image of 32 x 32 pixels, solved by rows.\n")
    result = rowcol.solve(scan.X, scan.y, method="rk", sampler="shuffled", tol=1e-4, random_state=0)
    print(result)
    print(f"  distance to the true image: {regimes.error(result.x, scan.answer):.1%}\n")

    print("2. Rows or columns? The paper's regimes: distance to the minimum-norm least-squares solution, relative,")
    print("   and how each solve ended. Columns converge where solutions are many, but to another one.\n")
    print(regimes.table())
    regimes.picture(folder / "regimes.png")

    print("\n3. Ridge regression both ways, 50 x 5,000, with a bound on the error.\n")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 5000)), rng.standard_normal(50)
    exact = X.T @ np.linalg.solve(X @ X.T + 10 * np.eye(50), y)
    for method, side in (("rk", "rows"), ("rcd", "columns")):
        result = rowcol.solve(X, y, alpha=10.0, method=method, random_state=0)
        true = np.linalg.norm(result.x - exact)
        print(f"  by {side:<8} {result.passes:6.1f} passes, true error {true:.1e}, bound {result.error_bound:.1e}")

    print("\n4. No method named: a plan first, then what came of it, on a system that no β fits.\n")
    X = rng.standard_normal((40_000, 200))
    print(rowcol.plan(X, rng.standard_normal(40_000), random_state=0))
    scan_result = rowcol.solve(scan.X, scan.y, tol=1e-6, random_state=0)
    print(f"\n   And the scan again, to 1e-6, took {scan_result.method}:")
    print("   " + "\n   ".join(scan_result.plan.learned or scan_result.plan.reasons))

    print("\n5. Kernel ridge regression, exact, without the kernel matrix: 10,000 points, and what it is sure of.\n")
    X = rng.standard_normal((11_000, 5))
    truth = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3])
    model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", gamma=0.25, tol=1e-3, random_state=0)
    model.fit(X[:10_000], truth[:10_000] + 0.1 * rng.standard_normal(10_000))
    print(model.result_)
    off = np.sqrt(np.mean((model.predict(X[10_000:]) - truth[10_000:]) ** 2))
    print(f"  off by {off:.3f} on 1,000 new points, of a spread of {truth.std():.2f}")
    print(f"  memory planned: {model.result_.plan.bytes / 1e6:,.0f} MB; the kernel matrix would take 800 MB")

    print("\n   In one dimension, to look at: 300 points, the function, and how far the exact one can be.")
    kernel_picture(folder / "kernel.png")
    scan_picture(scan, folder / "scan.png")
    rowcol.report(scan_result, folder / "scan.html")

    print("\n6. The paper, run: every setting over 12 seeds, each measured curve beside its bound.\n")
    found = rowcol.study(quick=True)
    print(found)
    rowcol.report(found, folder / "study.html")
    print()
    for name, what in (
        ("study.html", "the study, in a browser; it needs no network"),
        ("scan.html", "the report of one solve"),
        ("regimes.png", "rows and columns: opposite fates"),
        ("scan.png", "the scan"),
        ("kernel.png", "kernel ridge, stopped early on purpose: the bound holds"),
    ):
        print(f"   Look at {folder / name}: {what}.")


def kernel_picture(path: Path) -> None:
    """Kernel ridge regression stopped at three tolerances: the band is the certified distance to the exact solution."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    X, grid = np.sort(rng.uniform(0, 10, 300))[:, None], np.linspace(0, 10, 400)[:, None]
    y = np.sin(X[:, 0]) + 0.3 * np.sin(4 * X[:, 0]) + 0.15 * rng.standard_normal(300)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained", sharey=True)
    exact = rowcol.solve(X, y, kernel=rowcol.kernels.RBF(gamma=1.0), alpha=0.1, method="direct").function(grid)
    for axis, tol in zip(axes, (1e-1, 3e-2, 3e-3), strict=True):
        options = {"kernel": rowcol.kernels.RBF(gamma=1.0), "alpha": 0.1, "method": "blocks", "tol": tol}
        result = rowcol.solve(X, y, **options, random_state=0)
        values, bound = result.function(grid, return_bound=True)
        axis.fill_between(grid[:, 0], values - bound, values + bound, color="tab:orange", alpha=0.25, lw=0)
        axis.plot(X[:, 0], y, ".", color="0.7", ms=3)
        axis.plot(grid[:, 0], exact, color="black", lw=1, label="exact")
        axis.plot(grid[:, 0], values, color="tab:orange", lw=1.5, label="found, and its bound")
        axis.set_title(f"tol {tol:g}: {result.passes:.1f} passes", fontsize=10)
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def scan_picture(scan: zoo.Case, path: Path) -> None:
    """The image after 1, 5 and 100 passes of rows, beside the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained")
    side = int(np.sqrt(scan.X.shape[1]))
    for axis, passes in zip(axes, (1, 5, 100, None), strict=True):
        x, title = scan.answer, "truth"
        if passes is not None:
            x = rowcol.solve(scan.X, scan.y, method="rk", sampler="shuffled", max_passes=passes, random_state=0).x
            title = f"{passes} pass{'es' if passes > 1 else ''}: {regimes.error(x, scan.answer):.0%} off"
        axis.imshow(x.reshape(side, side), cmap="gray", vmin=0, vmax=1)
        axis.set_title(title, fontsize=10)
        axis.axis("off")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()

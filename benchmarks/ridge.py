"""Many alphas: ridge_path against one fit, RidgeCV against scikit-learn's. Run it: make bench-ridge

    python benchmarks/ridge.py [--threads 1] [--quick] [--out DIR]

Contenders take turns, the fastest turn of each counts, and what they find is compared: the same alpha, the same
coefficients to 1e-4. Writes ridge.json and ridge.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--quick", action="store_true", help="small sizes, seconds in all")
parser.add_argument("--out", default="bench")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def in_turns(jobs: dict[str, Any], turns: int) -> tuple[dict[str, float], dict[str, Any]]:
    """The fastest turn of every job, and what it returned."""
    import time

    best: dict[str, float] = {}
    found = {}
    for _ in range(turns):
        for name, job in jobs.items():
            began = time.perf_counter()
            found[name] = job()
            best[name] = min(time.perf_counter() - began, best.get(name, float("inf")))
    return best, found


def paths(quick: bool) -> list[dict[str, Any]]:
    """A path of 20 alphas over one fit at its smallest, middle and largest alpha: the dearest of these counts."""
    import numpy as np

    import datasets
    import rowcol

    out = []
    for name in ("ridge-tall-C", "ridge-tall-F", "ridge-wide", "text-ridge", "intercept-tall", "intercept-wide"):
        data = datasets.make(name, "quick" if quick else "full")
        alphas = data.alpha * np.geomspace(0.1, 100, 20)
        tol = 1e-6

        def fit(alpha: float, data: Any = data, tol: float = tol) -> Any:
            return rowcol.solve(data.X, data.y, alpha=alpha, fit_intercept=data.intercept, tol=tol, random_state=0)

        def path(data: Any = data, alphas: Any = alphas, tol: float = tol) -> Any:
            return rowcol.ridge_path(data.X, data.y, alphas, fit_intercept=data.intercept, tol=tol, random_state=0)

        jobs = {"path": path} | {f"one {k}": (lambda a=alphas[k]: fit(a)) for k in (0, 10, 19)}
        best, found = in_turns(jobs, 3)
        assert found["path"].success
        error = max(_apart(found["path"].coef[k], found[f"one {k}"].x) for k in (0, 10, 19))
        one = max(best[f"one {k}"] for k in (0, 10, 19))
        out.append({"problem": name, "path": best["path"], "one": one, "ratio": best["path"] / one, "apart": error})
        print(f"path {name}: {best['path']:.3g} s, one fit {one:.3g} s, {best['path'] / one:.2f}x", file=sys.stderr)
    return out


def choices(quick: bool) -> list[dict[str, Any]]:
    """RidgeCV with 5 folds, and with leave-one-out, on 20 alphas, wide and tall."""
    import numpy as np
    from sklearn import linear_model

    import rowcol

    out, rng = [], np.random.default_rng(0)
    shapes = ((200, 2_000), (3_000, 60)) if quick else ((500, 10_000), (1_000, 4_000), (20_000, 200))
    for n, p in shapes:
        X = rng.standard_normal((n, p))
        y = X @ rng.standard_normal(p) / np.sqrt(p) + rng.standard_normal(n)
        alphas = np.logspace(-1, 4, 20)
        for cv in (5, None):
            jobs = {
                "rowcol": lambda cv=cv, X=X, y=y, a=alphas: rowcol.RidgeCV(a, cv=cv).fit(X, y),
                "scikit-learn": lambda cv=cv, X=X, y=y, a=alphas: linear_model.RidgeCV(a, cv=cv).fit(X, y),
            }
            best, found = in_turns(jobs, 2)
            ours, theirs = found["rowcol"], found["scikit-learn"]
            assert ours.alpha_ == theirs.alpha_, (ours.alpha_, theirs.alpha_)
            ratio = best["scikit-learn"] / best["rowcol"]
            out.append({"shape": [n, p], "cv": cv, **best, "ratio": ratio, "apart": _apart(ours.coef_, theirs.coef_)})
            print(f"cv={cv} {n} x {p}: {best['rowcol']:.3g} s, scikit-learn {ratio:.1f}x", file=sys.stderr)
    return out


def _apart(a: Any, b: Any) -> float:
    import numpy as np

    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def page(whole: dict[str, Any]) -> str:
    """The records as two tables."""
    lines = [
        f"{whole['threads']} thread(s). A path of 20 alphas, from a tenth to a hundred times the problem's own:",
        "",
    ]
    lines += ["| problem | path s | one fit s | path / one fit | 4 at most |", "|---|---|---|---|---|"]
    for r in whole["paths"]:
        verdict = "ok" if r["ratio"] <= 4 else "MISSED"
        lines.append(f"| {r['problem']} | {r['path']:.3g} | {r['one']:.3g} | {r['ratio']:.2f} | {verdict} |")
    lines += ["", "RidgeCV on 20 alphas; the same alpha was chosen every time:", ""]
    lines += ["| X | cv | rowcol s | scikit-learn s | scikit-learn / rowcol |", "|---|---|---|---|---|"]
    for r in whole["choices"]:
        cv = "leave-one-out" if r["cv"] is None else f"{r['cv']} folds"
        n, p = r["shape"]
        lines.append(f"| {n:,} x {p:,} | {cv} | {r['rowcol']:.3g} | {r['scikit-learn']:.3g} | {r['ratio']:.1f} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Run both, write both."""
    arguments = parser.parse_args(argv)
    whole = {"threads": arguments.threads, "paths": paths(arguments.quick), "choices": choices(arguments.quick)}
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "ridge.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    (out / "ridge.md").write_text(page(whole), encoding="utf-8")
    print(page(whole))


if __name__ == "__main__":
    if os.environ.get(THREADS[0]) != str(parser.parse_args().threads):  # libraries read it when they are loaded
        os.environ |= dict.fromkeys(THREADS, str(parser.parse_args().threads))
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main()

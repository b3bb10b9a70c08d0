"""Text regression: which words of a docstring foretell a long function?

The text is real, and on every machine: docstrings of Python's standard library, one a function. y is the logarithm of
the number of lines of code below it. X, the weights of words, is sparse, and stays so with an intercept: nothing is
centred in memory. Figures differ a little from one version of Python to the next.

Run it: python examples/words.py
"""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import numpy as np
from sklearn import linear_model
from sklearn.feature_extraction.text import TfidfVectorizer

import rowcol
from gallery import BLUE, ORANGE, agree, command, plots, save

ALPHAS = np.logspace(-1, 2, 13)
FEW = ("asyncio", "email", "http", "logging")
NOT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "turtledemo"}


def library(small: bool) -> tuple[list[str], np.ndarray]:
    """Docstrings of functions, and how many lines of code follow each. Files are parsed, none is run."""
    root = Path(sysconfig.get_path("stdlib"))
    files = [file for name in FEW for file in (root / name).rglob("*.py")] if small else root.rglob("*.py")
    texts, lines = [], []
    for file in sorted(files):
        if NOT.isdisjoint(file.relative_to(root).parts):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    text = ast.get_docstring(node)
                    if text and len(node.body) > 1:
                        texts.append(text)
                        lines.append((node.end_lineno or 0) - (node.body[0].end_lineno or 0))
    return texts, np.array(lines)


def run(folder: Path, small: bool = False) -> dict[str, float]:
    texts, lines = library(small)
    words = TfidfVectorizer(min_df=3 if small else 8, sublinear_tf=True)
    X, y = words.fit_transform(texts), np.log2(np.maximum(lines, 1))
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [4 * len(y) // 5])

    model = rowcol.RidgeCV(ALPHAS, cv=5).fit(X[train], y[train])  # five folds, all alphas of a fold from one path
    print(f"{X.shape[0]:,} docstrings, {X.shape[1]:,} words, {X.nnz / X.shape[0]:.0f} of them in each")
    print(f"alpha {model.alpha_:.2g}, chosen by {model.cv_}\n\n{model.result_}\n")

    theirs = linear_model.Ridge(model.alpha_, solver="sparse_cg", tol=1e-12).fit(X[train], y[train])
    distance = np.linalg.norm(model.coef_ - theirs.coef_)
    agree("distance from scikit-learn's coefficients", distance, model.result_.error_bound + 1e-8)  # theirs is off, too
    agree("distance from its intercept, in doublings", abs(model.intercept_ - theirs.intercept_), 1e-5)
    score = model.score(X[test], y[test])
    factor = 2 ** np.median(np.abs(model.predict(X[test]) - y[test]))
    print(f"{len(test):,} functions not seen: R² {score:.2f}, half of them told within a factor of {factor:.1f}")
    picture(folder / "gallery-words.png", model, words.get_feature_names_out())
    return {"score": float(score), "documents": X.shape[0]}


def picture(path: Path, model: rowcol.RidgeCV, words: np.ndarray, most: int = 12) -> None:
    plt = plots()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 5.2), layout="constrained", width_ratios=[1.35, 1])
    order = np.argsort(model.coef_)
    for place, j in enumerate([*order[:most], *order[-most:]]):
        size = model.coef_[j]
        left.barh(place, size, color=ORANGE if size > 0 else BLUE)
        left.text(-0.06 * np.sign(size), place, words[j], ha="right" if size > 0 else "left", va="center", fontsize=9)
    left.text(1.5, most / 2 - 0.5, "short functions", color=BLUE, va="center", fontsize=11)
    left.text(-1.2, 3 * most / 2 - 0.5, "long functions", color=ORANGE, ha="right", va="center", fontsize=11)
    left.set(yticks=[], xlabel="coefficient: doublings of the code, for that word alone", ylim=(-0.8, 2 * most - 0.2))
    left.spines["left"].set_visible(False)
    right.semilogx(model.alphas, model.scores_, "o-", color=BLUE)
    right.axvline(model.alpha_, color="black", linewidth=1, linestyle=":")
    right.annotate(f" chosen: {model.alpha_:.2g}", (model.alpha_, np.min(model.scores_)), fontsize=10)
    right.set(xlabel="alpha", ylabel="R² of docstrings left out, mean of 5 folds")
    right.grid(alpha=0.3)
    save(figure, path)


if __name__ == "__main__":
    command(run, __doc__)

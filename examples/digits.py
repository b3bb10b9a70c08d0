"""Handwritten digits by KernelRidgeClassifier: ten regressions on the same tiles of a kernel matrix that is not kept.

The 1,797 images of 8 x 8 pixels come with scikit-learn. Half are learned from, and the others told. With
`probability=True` it says how sure it is, and the images it gets wrong are those it was not sure of.

Run it: python examples/digits.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split

import rowcol
from gallery import agree, command, plots, save

ALPHA, GAMMA = 0.1, 0.2


def by_lapack(X: np.ndarray, labels: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """The same ten regressions, intercepts included, from the whole kernel matrix."""
    n = len(X)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = rbf_kernel(X, gamma=GAMMA) + ALPHA * np.eye(n)
    system[n, n] = 0
    targets = np.where(labels[:, None] == np.arange(10), 1.0, -1.0)
    found = np.linalg.solve(system, np.vstack([targets, np.zeros(10)]))
    return rbf_kernel(Z, X, gamma=GAMMA) @ found[:n] + found[n]


def run(folder: Path, small: bool = False) -> dict[str, float]:
    images, digits = load_digits(return_X_y=True)
    images = images / 16
    count = 250 if small else len(digits) // 2
    X, Z, labels, truth = train_test_split(images, digits, train_size=count, random_state=0, stratify=digits)

    model = rowcol.KernelRidgeClassifier(ALPHA, gamma=GAMMA, tol=1e-6, probability=True, random_state=0)
    model.fit(X, labels)
    found, chance = model.predict(Z), model.predict_proba(Z).max(axis=1)
    print(f"{len(X)} images to learn from, {len(Z)} to tell\n\n{model.result_}\n")

    exact = by_lapack(X, labels, Z)
    agree("values of all regressions, distance from LAPACK", np.abs(model.decision_function(Z) - exact).max(), 1e-5)
    agree("digits told otherwise than by LAPACK's values", (found != exact.argmax(axis=1)).sum(), 0)
    wrong = found != truth
    print(f"right: {np.mean(~wrong):.1%}; it expected {chance.mean():.1%}", end=". ")
    print(f"Sure of {np.median(chance[~wrong]):.1%} where right and of {np.median(chance[wrong]):.0%} where wrong")
    picture(folder / "gallery-digits.png", Z, truth, found, chance)
    return {"right": float(np.mean(~wrong)), "expected": float(chance.mean())}


def picture(path: Path, Z: np.ndarray, truth: np.ndarray, found: np.ndarray, chance: np.ndarray) -> None:
    plt = plots()
    figure = plt.figure(figsize=(9.6, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.15])
    axis = left.subplots()
    table = confusion_matrix(truth, found)
    axis.imshow(np.log1p(table), cmap="Blues")
    for i, j in zip(*np.nonzero(table)):
        axis.text(j, i, table[i, j], ha="center", va="center", fontsize=9, color="white" if i == j else "black")
    axis.set(xlabel="told", ylabel="true digit", xticks=range(10), yticks=range(10))
    axis.set_title(f"{np.mean(found == truth):.1%} of {len(truth)} are right", fontsize=11)
    wrong = np.flatnonzero(found != truth)
    axes = right.subplots(2, 4)
    some = "the" if len(wrong) <= axes.size else f"{axes.size} of the"
    right.suptitle(f"{some} {len(wrong)} that are wrong, the surest first", fontsize=11)
    for axis in axes.flat:
        axis.axis("off")
    for axis, i in zip(axes.flat, wrong[np.argsort(-chance[wrong])]):
        axis.imshow(Z[i].reshape(8, 8), cmap="gray_r")
        axis.set_title(f"{truth[i]} told as {found[i]}, {chance[i]:.0%}", fontsize=9)
    save(figure, path)


if __name__ == "__main__":
    command(run, __doc__)

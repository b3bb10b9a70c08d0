"""The decision table of docs/rows-or-columns.md, row by row, against the plans that `plan` makes."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import rowcol
from rowcol.methods import costs

PAGE = (Path(__file__).parent.parent / "docs" / "rows-or-columns.md").read_text()
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## Which solution")[0].splitlines()
    if re.match(r"\| (?!system)\w", line)
]


def normal(n, p):
    return np.random.default_rng(0).standard_normal((n, p))


def noise(n):
    return np.random.default_rng(1).standard_normal(n)


def sparse(n=20_000, p=2_000):
    return sp.random_array((n, p), density=100 / n, format="csr", rng=np.random.default_rng(0))


SYSTEMS = {
    "operator": lambda: (aslinearoperator(normal(3000, 200)), noise(3000)),
    "small": lambda: (normal(300, 40), noise(300)),
    "tall, consistent": lambda: (normal(20_000, 60), normal(20_000, 60) @ np.ones(60)),
    "tall, few unknowns": lambda: (normal(20_000, 60), noise(20_000)),
    "tall, ill-conditioned": lambda: (
        normal(40_000, 300) @ np.diag(np.geomspace(1, 1e-5, 300)) @ normal(300, 300),
        noise(40_000),
    ),
    "ridge, few unknowns": lambda: (normal(20_000, 60), noise(20_000), 1.0),
    "sparse": lambda: (sparse(), noise(20_000)),
    "sparse ridge, wide": lambda: (sparse(2_000, 20_000), noise(2_000), 100.0),
    "sparse ridge, square": lambda: (sparse(4_000, 4_000), noise(4_000), 10.0),
    "sparse ridge, tall": lambda: (sparse(), noise(20_000), 10.0),
    "sparse ridge, small alpha": lambda: (sparse(), noise(20_000), 1.0),
    "tall, many unknowns": lambda: (normal(3000, 1000), noise(3000)),
    "tall, inconsistent": lambda: (normal(40_000, 300), noise(40_000)),
    "wide": lambda: (normal(200, 20_000), noise(200)),
    "wide ridge": lambda: (normal(200, 20_000), noise(200), 1.0),
    "tall, little memory": lambda: (normal(20_000, 200), noise(20_000), 0.0, "5 MB"),
}


def test_the_table_has_every_system():
    assert [row[0] for row in TABLE] == list(SYSTEMS)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_a_row_of_the_decision_table(row):
    name, first, then, because = row
    X, y, *rest = SYSTEMS[name]()
    alpha, memory = (*rest, *(0.0, "1 GB")[len(rest) :])
    plan = rowcol.plan(X, y, alpha=alpha, memory=memory, random_state=0)
    assert plan.route == first
    assert ", ".join(plan.then) == then
    assert because in " ".join(plan.reasons)
    assert rowcol.solve(X, y, alpha=alpha, memory=memory, random_state=0, tol=1e-4).plan.route == first


def test_the_costs_named_on_the_page_are_those_it_decides_by():
    page = " ".join(PAGE.split())
    assert f"a sketch {costs.SKETCH:g}," in page
    n, p = 1_000_000, 36
    X = np.broadcast_to(np.zeros(1), (n, p))
    assert "3 + m/28 passes" in page
    assert costs.gram_passes(X) == pytest.approx(3 + p / 28, rel=1e-3)
    assert costs.gram_passes(X.T) == pytest.approx(6 + p / 28, rel=1e-3)
    assert costs.gram_passes(X.astype(np.float32)) == pytest.approx(2 * (3 + p / 28), rel=1e-3)

"""The zoo's answers against LAPACK; the regimes table, expected failures included."""

import warnings

import numpy as np
import pytest

import rowcol
from oracle import close
from rowcol import zoo

QUICK = {  # sizes at which every good method converges in well under a second
    "flat_tail": {"n": 60, "outliers": 3, "scale": 10.0},
    "ill_conditioned": {"condition": 5.0},
    "tomography": {"pixels": 5, "angles": 12},
    "correlated": {"correlation": 0.5},
}


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def lapack(case):
    X = dense(case.X)
    if case.alpha:
        p = X.shape[1]
        return np.linalg.lstsq(
            np.vstack([X, np.sqrt(case.alpha) * np.eye(p)]), np.append(case.y, np.zeros(p)), rcond=None
        )[0]
    return np.linalg.lstsq(X, case.y, rcond=1e-10)[0]


@pytest.mark.parametrize("name", zoo.CASES)
def test_answers_are_those_of_lapack(name):
    for seed in (0, 1):
        case = zoo.CASES[name](seed=seed, **({"n": 300, "p": 600} if name == "text" else {}))
        close(case.answer, lapack(case), 1e-9)
        assert case.name == name


@pytest.mark.parametrize("name", zoo.CASES)
def test_good_methods_find_the_answer_and_the_others_do_not_claim_to(name):
    case = zoo.CASES[name](**QUICK.get(name, {}))
    for method in ("rk", "rcd", "rek") if case.alpha == 0 else ("rk", "rcd"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
            result = rowcol.solve(case.X, case.y, alpha=case.alpha, method=method, tol=1e-10, random_state=0)
        error = np.linalg.norm(result.x - case.answer) / np.linalg.norm(case.answer)
        if method in case.good:
            assert result.success
            assert error < 1e-7
        else:
            assert error > 1e-2
            assert not result.success or "minimum" not in result.solution


REGIMES = {  # name: (case, does RK find it?, does RCD?)
    "300x40 inconsistent": (zoo.tall_inconsistent(), False, True),
    "300x40 rank 25 inconsistent": (zoo.rank_deficient_inconsistent(300, 40, 25), False, False),
    "40x300 consistent": (zoo.wide(), True, False),
    "60x80 rank 30 inconsistent": (zoo.rank_deficient_inconsistent(60, 80, 30), False, False),
}


@pytest.mark.parametrize("sampler", ["norms", "shuffled"])
@pytest.mark.parametrize("name", REGIMES)
def test_regimes(name, sampler):
    """Rows fail where columns succeed and the reverse; extended Kaczmarz never fails."""
    case, *expected = REGIMES[name]
    for method, finds in zip(("rk", "rcd", "rek"), (*expected, True), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
            result = rowcol.solve(case.X, case.y, method=method, sampler=sampler, tol=1e-12, random_state=1)
        error = np.linalg.norm(result.x - case.answer) / np.linalg.norm(case.answer)
        assert error < 1e-9 if finds else error > 0.05
        if method == "rk":  # Section 4: rows stop by themselves on inconsistent systems, and say what to do
            assert result.status is (rowcol.Status.CONVERGED if finds else rowcol.Status.PLATEAU)
        if method == "rcd":  # Section 5: the residual is as small as can be all the same
            best = np.linalg.norm(case.y - case.X @ case.answer)
            assert result.residual_norm == pytest.approx(best, rel=1e-9, abs=1e-9 * np.linalg.norm(case.y))


def test_tomography_is_what_it_says():
    """Rays of known length: through the middle of the image a vertical or horizontal ray has the image's width."""
    X = zoo.tomography(pixels=8, angles=12).X
    assert X.sum(axis=1).max() <= 8 * np.sqrt(2) + 1e-9
    assert X.data.min() > 0
    index, length = zoo._ray(8, 0.0, 0.3)
    assert length.sum() == pytest.approx(8)
    assert index.tolist() == [8 * line + 4 for line in range(8)][::-1]
    assert zoo.phantom(64)[32, 32] == pytest.approx(0.2)
    assert zoo.phantom(64)[0, 0] == 0

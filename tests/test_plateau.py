"""How often rows mistake a slow system for an inconsistent one, and how often they find one that is. `make slow`."""

import collections
import warnings

import numpy as np
import pytest

import rowcol


@pytest.mark.slow
def test_plateaus_over_300_random_systems_of_condition_up_to_1000():
    found = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        for seed in range(300):
            rng = np.random.default_rng(seed)
            n, p = (int(v) for v in rng.integers(3, 60, 2))
            U, V = (np.linalg.qr(rng.standard_normal((k, min(n, p))))[0] for k in (n, p))
            X = U * np.geomspace(1, 10 ** -rng.uniform(0, 3), min(n, p)) @ V.T
            y = X @ rng.standard_normal(p)
            found["consistent", rowcol.solve(X, y, method="rk", random_state=seed).status.name] += 1
            if n > p + 2:
                z = rng.standard_normal(n)
                y = y + 10 ** -rng.uniform(0, 4) * (z - U @ (U.T @ z))
                found["inconsistent", rowcol.solve(X, y, method="rk", random_state=seed).status.name] += 1
    assert found["consistent", "PLATEAU"] == 0
    assert found["inconsistent", "CONVERGED"] == 0
    assert found["inconsistent", "PLATEAU"] >= 3 * found["inconsistent", "PASSES"]

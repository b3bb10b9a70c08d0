"""Tiles of a wide X and of a tall one against NumPy."""

import numpy as np
import pytest

from rowcol.engine.across import PLACES, ROWS, across, down

# plain Python is slow
SIZES = [(n, True) for n in (1, 3, 4, 9, 21, ROWS, ROWS + 6)] + [(n, False) for n in (1, 3, 9, 21)]


@pytest.mark.parametrize("ends", [(0, 31), (5, 20), (7, 7)])
@pytest.mark.parametrize(("n", "compiled"), SIZES)
def test_across_adds_every_sum(n, compiled, ends, rng):
    a, alpha, r, beta = (rng.standard_normal(k) for k in ((n, 31), n, n, 31))
    pulled, (image, slope, square) = rng.standard_normal(n), rng.standard_normal((3, 31))
    there, part = slice(*ends), a[:, slice(*ends)]
    expected = [v.copy() for v in (pulled, image, slope, square)]
    expected[0] += part @ beta[there]
    for one, more in zip(expected[1:], (alpha @ part, r @ part, (part**2).sum(axis=0)), strict=True):
        one[there] += more
    f = across if compiled else getattr(across, "py_func", across)
    f(a, *ends, alpha, r, beta, pulled, image, slope, square)
    for got, wanted in zip((pulled, image, slope, square), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12)


@pytest.mark.parametrize("p", [1, 3, 4, 6, 9, 12, 29])
@pytest.mark.parametrize(
    ("ends", "compiled"), [((0, 12), False), ((3, 40), False), ((5, 5), True), ((7, 2 * PLACES + 9), True)]
)
def test_down_takes_off_and_pulls(p, ends, compiled, rng):
    a, beta, slope, r = (rng.standard_normal(k) for k in ((p, 2 * PLACES + 20), p, p, 2 * PLACES + 20))
    there, wanted, part = slice(*ends), r.copy(), a[:, slice(*ends)]
    wanted[there] -= beta @ part
    pulled = slope + part @ wanted[there]
    f = down if compiled else getattr(down, "py_func", down)
    f(a, *ends, beta, r, slope)
    np.testing.assert_allclose(r, wanted, atol=1e-12)
    np.testing.assert_allclose(slope, pulled, atol=1e-10)

"""What a certificate must say, typed plainly from its mathematics: for the tests of core/certify.py."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from rowcol.core.certify import Certificate

UNIT = 2.0**-53
TINY = {True: 2.0**-149, False: 2.0**-1074}  # the smallest numbers of single and of double precision


def norm(a):
    return math.sqrt(sum(abs(complex(v)) ** 2 for v in np.ravel(a)))


def gains(g, lam, sides):
    """Σ_j max_t (g_j t − ½λt²) over what is left to go, and which of them end at a side that is not where β_j is."""
    total, cut = 0.0, []
    for gj, (low, high) in zip(g, np.transpose(sides), strict=True):
        inside = [gj / lam] if low < gj / lam < high else []
        best = max([low, high, *inside, 0.0], key=lambda t: gj * t - lam * t * t / 2 if math.isfinite(t) else -math.inf)
        total += gj * best - lam * best * best / 2
        cut.append(best != 0 and not inside)
    return total, np.array(cut)


def told(c):
    """What a certificate must say, from the docstring of core/certify.py and the theory of rounding errors."""
    root = np.sqrt(c["w"])
    size, left, reach = norm(root * c["y"]), norm(root * c["rho"]), float(sum(abs(c["beta"]) * c["raw"]))
    beta_size = norm(c["beta"])
    whole = size if size else reach
    if not whole:
        return Certificate("residual", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 if c["lam"] else None, True)
    d_rho = c["units"][0] * (size + reach)  # ‖W^½δρ‖
    d_pull = c["units"][1] * (left + c["apart"])  # of a sum with ρ', a unit column long
    d_other = d_rho + c["apart"] * (1 + 3 * UNIT)  # and of the ρ' in it
    stored = 2.0**-24 if c["single"] else 0.0
    tiny = TINY[c["single"]] / c["scale"]  # by which numbers move that may be stored as subnormal ones; zero may not
    faint = [tiny if 0 < abs(b) * UNIT**2 < tiny else 0.0 for b in c["beta"]]
    s_rho = sum((stored * abs(b) + f) * x for b, f, x in zip(c["beta"], faint, c["raw"], strict=True))
    d_beta = stored * beta_size + norm(np.array(faint))
    slope, g = c["slope"].copy(), c["slope"] - c["lam"] * c["beta"]
    if c["sides"] is not None:
        for a in (slope, g):
            for j, (low, high) in enumerate(np.transpose(c["sides"])):
                a[j] = 0.0 if (low == 0 and a[j] < 0) or (high == 0 and a[j] > 0) else a[j]
    if not c["lam"]:
        live = c["column"] > 0
        steep = max([0.0, *(abs(slope[live]) / c["column"][live])])
        d_steep = d_other + d_pull * max([1.0, *(c["raw"][live] / c["column"][live])])
        S, L = steep + d_steep, left - d_rho
        residual, angle = (left + d_rho) / whole, S / L if L > 0 and not slope[~live].any() else math.inf
        exhausted = left <= 3 * d_rho or steep <= 3 * d_steep
        if residual <= angle:
            return Certificate("residual", residual, d_rho / whole, s_rho / whole, left, norm(g), None, exhausted)
        storing = (S + s_rho) / (L - s_rho) - S / L if s_rho < L else math.inf
        return Certificate("gradient", angle, d_steep / L, storing, left, norm(g), None, exhausted)
    lam = c["lam"]
    d_g = d_other * norm(c["column"]) + d_pull * norm(c["raw"]) + 2 * UNIT * lam * beta_size
    steep = norm(g)
    if c["sides"] is not None:
        total, cut = gains(g, lam, c["sides"])
        steep = math.sqrt(2 * lam * total)
        s_rho = math.sqrt(s_rho**2 + 2 * stored * sum(abs(g * c["beta"])[cut]))
    values = [((steep + d_g) / math.sqrt(lam), d_g / math.sqrt(lam), (steep + d_g) / lam)]
    if c["pair"] is not None:
        alpha, back = c["pair"]
        inverse = np.array([1 / v if v else 0.0 for v in c["w"]])
        across, alpha_size = norm(root * (c["rho"] - lam * inverse * alpha)), norm(np.sqrt(inverse) * alpha)
        d_across, away = d_rho + 2 * UNIT * lam * alpha_size, norm(c["beta"] - back)
        d_away = c["units"][1] * norm(c["raw"]) * alpha_size
        gap = math.sqrt((across + d_across) ** 2 + lam * (away + d_away) ** 2)
        rounding = math.sqrt(d_across**2 + lam * d_away**2)
        values.append((gap, rounding, (across + d_across) / (2 * math.sqrt(lam)) + away + d_away))
    gap, rounding, _ = min(values)
    error = min(e for _, _, e in values) + d_beta
    exhausted = values[0][0] <= 4 * values[0][1] or gap <= 4 * rounding
    storing = math.sqrt(s_rho**2 + lam * d_beta**2)
    return Certificate("gap", gap / whole, rounding / whole, storing / whole, left, norm(g), error, exhausted)


def same(found, expected):
    assert (found.kind, found.exhausted) == (expected.kind, expected.exhausted)
    assert (found.error_bound is None) == (expected.error_bound is None)
    for name in ("value", "rounding", "storing", "residual_norm", "gradient_norm", "error_bound"):
        if getattr(expected, name) is not None:
            rel = 1e-8 if name == "storing" else 1e-11  # that is a difference, where it is typed plainly
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rel, abs=1e-300), name


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "operator": aslinearoperator,
}


def long(a):
    """In long double."""
    return np.asarray(a, np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def system(shape, kind=float, q=2, seed=0):
    """X with columns of different size, some zeros, and q right-hand sides far from one in size."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((shape[0], shape[1] + q)) for _ in range(2)]
    A = parts[0] + 1j * parts[1] if kind is complex else parts[0]
    X = A[:, q:] * np.geomspace(1, 9, shape[1])
    X[rng.random(shape) < 0.2] = 0
    return X, A[:, :q] * np.array([3e5, 0.02, 70.0])[:q]


def measured(X, y, beta, alpha=0.0, w=None):
    """ρ and XᴴWρ − λβ in long double, of one right-hand side."""
    X, y, beta = long(X), long(y), long(beta)
    w = np.ones(len(y)) if w is None else w
    rho = y - X @ beta
    return rho, X.conj().T @ (w * rho) - alpha * beta

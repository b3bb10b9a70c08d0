"""Small solves of every method and kind, and all that a Result tells but for times."""

import numpy as np
import scipy.sparse as sp

from rowcol import kernels

rng = np.random.default_rng(0)
TALL = rng.standard_normal((120, 20)) @ np.diag(np.logspace(0, -1.5, 20))
WIDE, HARD = np.ascontiguousarray(TALL.T), rng.standard_normal((80, 30)) @ np.diag(np.logspace(0, -3, 30))
Y = np.column_stack([rng.standard_normal(120), TALL @ rng.standard_normal(20), np.zeros(120)])
SPARSE = sp.random_array((120, 40), density=0.15, rng=1, format="csr")
POINTS = rng.standard_normal((150, 2))
VALUES = np.column_stack([np.sin(POINTS[:, 0]), POINTS[:, 1] ** 2, np.ones(150)])
FOLDS = np.where(np.arange(150)[:, None] % 3 == np.arange(3), np.inf, 0.1)
ALPHAS = np.array([1.0, 0.1, 0.01, 0.001])
SLOW_X = sp.csr_array(
    sp.random_array((4000, 1500), density=5 / 1500, rng=2, format="csr") * np.geomspace(1, 1e-3, 1500)
)
SLOW_Y = SLOW_X @ np.random.default_rng(3).standard_normal(1500)
SQUARE = sp.random_array((4000, 4000), density=0.005, rng=5, format="csr")

CASES = {
    "rk": (TALL, Y, dict(alpha=0.5, method="rk", max_passes=30, tol=1e-3)),
    "rk, one": (TALL, Y[:, 1], dict(method="rk", max_passes=20)),
    "rk, shuffled": (WIDE, Y[:20, 0], dict(method="rk", sampler="shuffled", max_passes=20)),
    "rk, chunks": (TALL, Y[:, 0], dict(alpha=0.5, method="rk", sampler="chunks:7", max_passes=20)),
    "rk, weights": (TALL, Y, dict(alpha=0.5, method="rk", sample_weight=np.arange(120.0) % 3, max_passes=20)),
    "rk, sampler": (TALL, Y[:, 0], dict(alpha=0.5, method="rk", sampler=np.arange(1.0, 121), max_passes=20)),
    "rk, float32": (TALL.astype(np.float32), Y[:, 0], dict(alpha=0.5, method="rk", max_passes=20)),
    "rcd": (TALL, Y, dict(method="rcd", max_passes=40)),
    "rcd, complex": (TALL + 1j * TALL[::-1], Y, dict(method="rcd", alpha=0.1, max_passes=40, tol=1e-4)),
    "rcd, uniform": (TALL, Y, dict(method="rcd", sampler="uniform", max_passes=40)),
    "rek": (TALL, Y, dict(method="rek", max_passes=20)),
    "rek, shuffled": (TALL, Y[:, 0], dict(method="rek", sampler="shuffled", max_passes=40)),
    "bounds": (TALL, Y, dict(bounds=(0.0, np.inf), tol=1e-10)),
    "sgs-cg, rows": (WIDE, Y[:20], dict(method="sgs-cg")),
    "sgs-cg, columns": (HARD, Y[:80], dict(method="sgs-cg", alpha=1e-4)),
    "cg": (HARD, Y[:80], dict(method="cg", tol=1e-9)),
    "cg, rows": (HARD.T.copy(), Y[:30, 0], dict(method="cg", tol=1e-9)),
    "cg, alphas": (HARD, np.repeat(Y[:80, :1], 4, 1), dict(method="cg", alpha=ALPHAS, tol=1e-10)),
    "cg, alphas, rows": (HARD.T.copy(), np.repeat(Y[:30, :1], 4, 1), dict(method="cg", alpha=ALPHAS, tol=1e-11)),
    "cg, start": (HARD, Y[:80], dict(method="cg", tol=1e-9, x0=np.ones((30, 3)))),
    "cg, intercept": (HARD, Y[:80], dict(method="cg", tol=1e-9, fit_intercept=True)),
    "sketch": (np.tile(HARD, (4, 1)) + 1e-3, np.tile(Y[:80, 0], 4), dict(method="sketch", alpha=1e-3, tol=1e-11)),
    "blocks": (TALL, Y, dict(method="blocks", alpha=0.1)),
    "blocks, rows": (WIDE, Y[:20, 0], dict(method="blocks")),
    "level, rows": (SPARSE, Y, dict(alpha=0.5, fit_intercept=True, method="rk", max_passes=40)),
    "level, columns": (SPARSE, Y, dict(alpha=0.05, fit_intercept=True, method="rcd", tol=1e-8)),
    "ones": (SPARSE, Y, dict(alpha=0.05, fit_intercept=True, method="sgs-cg")),
    "one route, then another": (SLOW_X, SLOW_Y, dict(tol=1e-8)),
    "a race": (SQUARE, SQUARE @ np.ones(4000), dict(alpha=30.0)),
    "kernel rk": (POINTS, VALUES, dict(kernel="rbf", alpha=0.5, method="rk", tol=1e-3)),
    "kernel blocks": (POINTS, VALUES, dict(kernel="rbf", alpha=0.05, method="blocks")),
    "kernel blocks, folds": (POINTS, VALUES, dict(kernel="rbf", alpha=FOLDS, method="blocks", tol=1e-4)),
    "kernel pcg": (POINTS, VALUES, dict(kernel="rbf", alpha=1e-4, method="pcg", tol=1e-7, fit_intercept=True)),
    "kernel pcg, folds": (POINTS, VALUES, dict(kernel="rbf", alpha=FOLDS / 100, method="pcg", tol=1e-8)),
    "kernel cg": (POINTS, VALUES[:, 0], dict(kernel=kernels.Matern() * kernels.RBF(), alpha=0.01, method="cg")),
    "kernel centres": (POINTS, VALUES, dict(kernel="rbf", alpha=1e-4, n_centers=40, method="cg", tol=1e-4)),
}
AT_ONCE = {
    "direct": (HARD, Y[:80], dict(method="direct", tol=1e-12)),
    "subset": (TALL, TALL @ np.ones(20), dict(method="subset")),
    "auto": (TALL, Y, dict()),
    "kernel direct": (POINTS, VALUES, dict(kernel="rbf", alpha=0.1, method="direct")),
}


def told(result):
    """All that a Result tells, as plain data; what took how long is left out."""
    raw = {name: None if (a := getattr(result, name)) is None else a.tobytes() for name in ("x", "dual")}
    for name in ("status", "message", "solution", "method", "sampler", "passes", "steps", "copied", "tol", "statuses"):
        raw[name] = str(getattr(result, name))
    for name in ("certificates", "plan"):
        raw[name] = str(getattr(result, name))
    for name in ("intercept", "error_estimate", "fitted", "at_bound"):
        raw[name] = np.array(getattr(result, name), float).tobytes()
    looks = result.history
    return raw | {
        "looks": str(looks.certificate),
        "rounds": np.array(looks.passes).tobytes(),
        "gains": np.array(looks.energy).tobytes(),
    }

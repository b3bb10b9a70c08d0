"""The paper's settings: consistent, inconsistent, underdetermined, rank-deficient; and gradient steps beside rows."""

from __future__ import annotations

import numpy as np

from .. import theory, zoo
from ..core.sampler import sampler, take
from ..show.picture import Curve, Picture, Table
from .parts import NAMES, Part, curve
from .runs import Trace, course, distance2, image2, walked

LABELS = ("passes over X", "error, relative to the start")


def _last(trace: Trace) -> float:
    """The median error at the end, relative to the start."""
    return float(np.sqrt(np.median(trace.errors[:, -1]) / trace.mean[0]))


def consistent(seeds: int, seed: int) -> Part:
    """(a) More equations than unknowns, all of them true: Section 3."""
    case = zoo.tall_consistent(seed=seed)
    X, y, star = case.X, case.y, case.answer
    known = theory.extremes(X)
    part = Part(
        "Consistent: rows and columns both converge",
        [
            f"{X.shape[0]} equations in {X.shape[1]} unknowns, all true (Section 3). Rows fall in ‖β − β*‖, columns "
            "in ‖X(β − β*)‖, each by the same factor 1 − σ_min(Σ)/Tr(Σ) a step, (25) and (26). A pass of rows has n "
            "steps and a pass of columns p, each as costly as the other: tall systems are for rows.",
            "Lines are medians over seeds, bands hold eight seeds in ten, dashed lines are the bounds, which speak "
            "of the mean.",
        ],
        seeds,
        seed,
    )
    curves: list[Curve] = []
    for method, error in (("rk", distance2(star)), ("rcd", image2(X, star)), ("rek", distance2(star))):
        rate = theory.rate(X, method, extremes=known)
        trace = part.run(course(X, y, method), error, min(rate.passes(1e-9), 40.0))
        curves += part.beside(trace, rate, NAMES[method], method)
        if method != "rcd":
            part.claim(f"{NAMES[method]} reaches the solution", "error → 0", f"{_last(trace):.0e}", _last(trace) < 1e-4)
    words = "Error against passes on a consistent system, by rows, by columns and by both, each below its dashed bound."
    part.pictures.append(Picture("Consistent, overdetermined", words, *LABELS, curves, log_y=True))
    # where all singular values are equal the bound is an equality, and can be met from both sides
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((60, 20)))[0]
    beta = rng.standard_normal(20)
    trace = walked(course(Q, Q @ beta, "rk"), np.arange(0, 101, 10), distance2(beta), 4 * seeds, seed)
    bound = trace.mean[0] * 0.95**trace.steps
    off = float((np.abs(trace.mean - bound)[1:] / trace.spread[1:]).max())
    part.claim(
        "(25) is an equality where XᵀX = cI: 1 − 1/20 a step",
        "0.95000",
        f"{(trace.mean[-1] / trace.mean[0]) ** 0.01:.5f}, {off:.1f} standard errors off at most",
        off < 3.5,
    )
    return part


def inconsistent(seeds: int, seed: int) -> Part:
    """(b) No β fits: Section 4, its horizon corrected."""
    part = Part(
        "Inconsistent: columns reach least squares, rows stop at their horizon",
        [
            "The same shape with noise that no β can reach, w = y − Xβ_LS (Section 4). Columns converge to least "
            "squares. Every step of rows adds a little of w, and they end in a cloud around β_LS, whose size the "
            "theory gives.",
            "Section 4 prints the horizon as ‖w‖²/σ_min(Σ)². With σ_min(Σ) an eigenvalue of Σ = XᵀX it must be "
            "‖w‖²/σ_min(Σ). And more can be said: in the long run E‖X(β − β_LS)‖² is ‖w‖² exactly, so that E‖β − "
            "β_LS‖² lies between ‖w‖²/σ_max(Σ) and ‖w‖²/σ_min(Σ).",
        ],
        seeds,
        seed,
    )
    head = ["noise", "at least", "measured", "at most (corrected)", "as printed", "E‖X(β − β_LS)‖²/‖w‖²"]
    table = Table("Where rows end: E‖β − β_LS‖²", head, [])
    by_noise: list[list[Curve]] = []
    for noise in (0.01, 0.1, 1.0):
        case = zoo.tall_inconsistent(noise=noise, seed=seed)
        X, y, star = case.X, case.y, case.answer
        known = theory.extremes(X)
        end = theory.horizon(X, y, extremes=known)
        on = course(X, y, "rk")
        trace = part.run(on, distance2(star), 25)
        edge = np.sqrt(theory.rate(X, "rk", extremes=known).bound(trace.steps) + end.limit / trace.mean[0])
        dashed = Curve(f"bound and horizon, noise {noise:g}", trace.passes, edge, style="dashed", family=f"rk{noise:g}")
        by_noise.append([curve(trace, f"{NAMES['rk']}, noise {noise:g}", f"rk{noise:g}"), dashed])
        late = np.arange(4, 13) * on.steps_a_pass
        own = seed + round(1000 * noise)  # errors are in proportion to the noise: the same seeds would show the same
        far = walked(on, late.astype(int), distance2(star), seeds, own).errors.mean(axis=1)
        seen = walked(on, late.astype(int), image2(X, star), seeds, own).errors.mean(axis=1) / end.misfit
        mean, off = float(far.mean()), float(abs(seen.mean() - 1) / (seen.std(ddof=1) / np.sqrt(seeds)))
        table.rows.append(
            [
                f"{noise:g}",
                f"{end.least:.3g}",
                f"{mean:.3g}",
                f"{end.limit:.3g}",
                f"{end.printed:.3g}",
                f"{seen.mean():.3f} ± {seen.std(ddof=1) / np.sqrt(seeds):.3f}",
            ]
        )
        table.marks.append(bool(end.least <= mean <= end.limit))
        part.claim(
            f"rows end within the corrected horizon, noise {noise:g}",
            f"{end.least:.3g} to {end.limit:.3g}",
            f"{mean:.3g}",
            end.least <= mean <= end.limit,
        )
        part.claim(f"E‖X(β − β_LS)‖² is ‖w‖², noise {noise:g}", "1", f"{seen.mean():.3f}", off < 3.5)
        part.claim(
            f"the horizon as printed, ‖w‖²/σ², is violated, noise {noise:g}",
            f"{end.printed:.3g}",
            f"{mean:.3g}",
            mean > end.printed,
        )
    curves = by_noise.pop()  # of noise 1; colours follow the order
    for method, error in (("rcd", image2(X, star)), ("rek", distance2(star))):
        rate = theory.rate(X, method, extremes=known)
        trace = part.run(course(X, y, method), error, 25)
        curves += part.beside(trace, rate, NAMES[method], method)
        part.claim(
            f"{NAMES[method]} converges to least squares, noise 1",
            "error → 0",
            f"{_last(trace):.0e}",
            _last(trace) < 1e-3,
        )
    words = (
        "Rows level off at a height that grows with the noise, below the dashed horizon; columns and both go on down."
    )
    curves += [one for pair in reversed(by_noise) for one in pair]
    part.pictures.append(Picture("Inconsistent, three levels of noise", words, *LABELS, curves, log_y=True))
    part.tables.append(table)
    return part


def underdetermined(seeds: int, seed: int) -> Part:
    """(c) Many solutions: Section 5."""
    case = zoo.wide(seed=seed)
    X, y, star = case.X, case.y, case.answer
    known = theory.extremes(X)
    part = Part(
        "Underdetermined: rows find the shortest solution, columns another",
        [
            f"{X.shape[0]} equations in {X.shape[1]} unknowns (Section 5). Rows move within the span of the rows of "
            "X, so from β = 0 they can only end at the solution of minimum norm. Columns solve the system too, but "
            "end at whatever solution lies on their way: the opposite of the inconsistent case.",
        ],
        seeds,
        seed,
    )
    curves: list[Curve] = []
    for method in ("rk", "rek"):
        rate = theory.rate(X, method, extremes=known)
        trace = part.run(course(X, y, method), distance2(star), 60)
        curves += part.beside(trace, rate, NAMES[method], method)
        part.claim(
            f"{NAMES[method]} reaches the minimum-norm solution",
            "error → 0",
            f"{_last(trace):.0e}",
            _last(trace) < 1e-3,
        )
    rate = theory.rate(X, "rcd", extremes=known)
    trace = part.run(course(X, y, "rcd"), image2(X, star), 12)
    curves += part.beside(trace, rate, f"{NAMES['rcd']}, in the residual", "rcd")
    part.claim("columns solve the system", "residual → 0", f"{_last(trace):.0e}", _last(trace) < 1e-3)
    trace = part.run(course(X, y, "rcd"), distance2(star), 12)
    curves.append(curve(trace, f"{NAMES['rcd']}, from the shortest", "rcd far"))
    part.claim("but do not reach the shortest solution", "error stays", f"{_last(trace):.2f}", _last(trace) > 0.1)
    words = (
        "Rows and both fall to the minimum-norm solution; columns' residual falls, while their distance from it stays."
    )
    part.pictures.append(Picture("Underdetermined", words, *LABELS, curves, log_y=True))
    return part


def rank_deficient(seeds: int, seed: int) -> Part:
    """(d) Neither: rank-deficient and inconsistent, where only both together converge."""
    part = Part(
        "Rank-deficient and inconsistent: only both together",
        [
            "Here rows and columns both fail to find the minimum-norm least-squares solution: rows because nothing "
            "fits, columns because solutions are many. Extended Kaczmarz (Zouzias and Freris), which the paper "
            "mentions and leaves out, drives the unreachable part of y away by columns while rows solve for the "
            "rest. Its bound is their Theorem 4.1 in a sharper form: E‖e_k‖² ≤ ρᵏ(‖e_0‖² + k‖Xβ*‖²/‖X‖_F²).",
        ],
        seeds,
        seed,
    )
    for n, p, rank in ((300, 40, 25), (60, 80, 30)):
        case = zoo.rank_deficient_inconsistent(n, p, rank, seed=seed)
        X, y, star = case.X, case.y, case.answer
        known = theory.extremes(X)
        curves: list[Curve] = []
        for method in ("rk", "rcd"):
            trace = part.run(course(X, y, method), distance2(star), 60)
            curves.append(curve(trace, NAMES[method], method))
            part.claim(
                f"{NAMES[method]} does not reach it, {n} x {p} of rank {rank}",
                "error stays",
                f"{_last(trace):.2f}",
                _last(trace) > 0.05,
            )
        rate = theory.rate(X, "rek", extremes=known)
        trace = part.run(course(X, y, "rek"), distance2(star), min(rate.passes(1e-6), 120.0))
        curves += part.beside(trace, rate, f"{NAMES['rek']}, {n} x {p}", "rek")
        theorem = trace.mean[0] * rate.constant * rate.step ** (trace.steps // 2)
        part.claim(
            f"Theorem 4.1 holds too, {n} x {p}",
            f"1 + 2κ² = {rate.constant:.3g}",
            "mean below it",
            bool((trace.mean <= theorem * (1 + 1e-9)).all()),
        )
        part.claim(f"{NAMES['rek']} reaches it, {n} x {p}", "error → 0", f"{_last(trace):.0e}", _last(trace) < 1e-2)
        words = f"{n} x {p} of rank {rank}: rows and columns level off, both together falls below its dashed bound."
        part.pictures.append(Picture(f"Rank {rank}, {n} x {p}, inconsistent", words, *LABELS, curves, log_y=True))
    return part


def gradient_steps(seeds: int, seed: int) -> Part:
    """(g) Kaczmarz beside stochastic gradient descent with the same picks."""
    case = zoo.tall_consistent(n=200, p=20, seed=seed)
    X, y, star = case.X, case.y, case.answer
    size = np.sum(X**2, axis=1)
    part = Part(
        "Kaczmarz is stochastic gradient descent, with the right step",
        [
            "A gradient step on one row is β + η (y_i − Xⁱβ) Xⁱ. With η = 1/‖Xⁱ‖² it is Kaczmarz' projection, bit "
            "for bit but for rounding: it is as far as one row allows. Half or one and a half of it are slower, "
            "twice of it reflects and never converges, and one step size for all rows has to fit the largest.",
        ],
        seeds,
        seed,
    )
    on = course(X, y, "rk")
    root = np.random.SeedSequence(seed).spawn(1)[0]
    picks = take(sampler("norms", len(X), root, size), 400)
    beta = np.zeros(X.shape[1])
    for i in picks:  # as those who descend gradients write it
        beta = beta + (1.0 / (X[i] @ X[i])) * (y[i] - X[i] @ beta) * X[i]
    held: list[np.ndarray] = []
    walked(on, np.array([0, 400]), lambda b, a: held.append(b) or 0.0, 1, seed)  # type: ignore[func-returns-value]
    apart = float(np.linalg.norm(held[-1] - beta) / np.linalg.norm(beta))
    part.claim(
        "the same picks with η = 1/‖Xⁱ‖² give the same β after 400 steps",
        "equal to rounding",
        f"{apart:.0e} apart",
        apart < 1e-12,
    )
    curves = [curve(part.run(on, distance2(star), 4), "η = 1/‖Xⁱ‖²: Kaczmarz", "rk")]
    ends = {}
    for share in (0.5, 1.5, 2.0):
        trace = part.run(course(X, y, "rk", step=share / size), distance2(star), 4)
        curves.append(curve(trace, f"η = {share:g}/‖Xⁱ‖²", f"{share:g}"))
        ends[share] = _last(trace)
    for name, step in (("largest", 1 / size.max()), ("mean", 1 / size.mean())):
        trace = part.run(course(X, y, "rk", step=np.full(len(X), step)), distance2(star), 4)
        curves.append(curve(trace, f"one η = 1/{name} ‖Xⁱ‖²", name))
    first = float(np.nan_to_num(curves[0].y[-1], nan=np.inf))
    part.claim(
        "half and one and a half steps are slower",
        f"above {first:.0e}",
        f"{ends[0.5]:.0e}, {ends[1.5]:.0e}",
        min(ends[0.5], ends[1.5]) > first,
    )
    part.claim("twice the step never gets nearer", "1", f"{ends[2.0]:.3f}", abs(ends[2.0] - 1) < 1e-6)
    words = "Error against passes for several step sizes with the same picks; the Kaczmarz step is the steepest."
    part.pictures.append(Picture("One row at a time, several step sizes", words, *LABELS, curves, log_y=True))
    return part

"""What axes and pages draw alike: the colours, which curve has which, and what of a curve there is to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .picture import Curve, Picture

# Told apart with every kind of colour blindness, and at least 3:1 against their paper: tests measure both.
LIGHT = ("#2457c5", "#d9700a", "#00774a", "#b0719f", "#5b3a00", "#1a94e0", "#7d0056", "#5c626d")
DARK = ("#4a92f5", "#e0762a", "#2fd694", "#d6b0f2", "#e8c02a", "#b9efc4", "#f0556d", "#7d8794")
PAPER = {"light": "#ffffff", "dark": "#14171c"}
DASHES = {"dashed": (6, 4), "dotted": (2, 3)}
STYLES = ("line", "dashed", "points", "bars")
FEW = 25  # points of a line that are marked, each


@dataclass(eq=False)
class Stroke:
    """A curve as it is drawn: values that its axes can show, NaN where they cannot; a colour and a dash."""

    curve: Curve
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    colour: int
    dash: tuple[int, ...]

    @property
    def points(self) -> np.ndarray:
        """Which of its points there are."""
        return np.isfinite(self.y) & (np.ones(self.x.shape, bool) if is_words(self.x) else np.isfinite(self.x))


def is_words(x: np.ndarray) -> bool:
    """Are these names, rather than numbers?"""
    return np.asarray(x).dtype.kind not in "fiub"


def by_words(picture: Picture) -> bool:
    """Does the picture go along names, rather than numbers?"""
    return any(is_words(curve.x) for curve in picture.curves)


def strokes(picture: Picture) -> list[Stroke]:
    """The curves of a picture as they are drawn. Log axes have no place for what is not above zero."""
    words, families = by_words(picture), [curve.family or curve.name for curve in picture.curves]
    order = list(dict.fromkeys(families))
    found = []
    for curve, family in zip(picture.curves, families):
        _check(curve)
        x = np.array([str(v) for v in curve.x]) if words else _shown(curve.x, picture.log_x)
        low, high = ((None if v is None else _shown(v, False)) for v in (curve.low, curve.high))
        place = order.index(family)
        dash = DASHES["dashed"] if curve.style == "dashed" else DASHES["dotted"] if place >= len(LIGHT) else ()
        found.append(Stroke(curve, x, _shown(curve.y, picture.log_y), low, high, place % len(LIGHT), dash))
    if picture.log_y:
        for one in found:
            if one.low is not None and one.high is not None:  # a band that goes below zero goes down to the last value
                one.high = _shown(one.high, True)
                one.low = np.where(one.low > 0, one.low, np.where(np.isfinite(one.low), floor(found), np.nan))
    return found


def floor(found: list[Stroke]) -> float:
    """The smallest value above zero."""
    values = [v[v > 0] for one in found for v in (one.y, one.low, one.high) if v is not None]
    return float(min((v.min() for v in values if v.size), default=1.0))


def base(picture: Picture, found: list[Stroke]) -> float:
    """Where bars stand: at zero, or on a log axis at the power of ten below all."""
    return float(10.0 ** np.floor(np.log10(floor(found)) - 1e-9)) if picture.log_y else 0.0


def sides(picture: Picture, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where bars at x begin and end: they just leave a gap to the nearest neighbour."""
    u = np.log10(x) if picture.log_x else x
    steps = np.diff(np.unique(u[np.isfinite(u)]))
    half = 0.45 * (float(steps.min()) if steps.size else 1.0)
    return (10.0 ** (u - half), 10.0 ** (u + half)) if picture.log_x else (u - half, u + half)


def _shown(values: np.ndarray, log: bool) -> np.ndarray:
    out = np.array(values, dtype=np.float64)
    out[~np.isfinite(out) | ((out <= 0) if log else False)] = np.nan
    return out


def _check(curve: Curve) -> None:
    if curve.style not in STYLES:
        raise ValueError(f"the style of a curve must be one of {', '.join(STYLES)}, got {curve.style!r}")
    for name in ("y", "low", "high"):
        value = getattr(curve, name)
        if value is not None and np.shape(value) != np.shape(curve.x):
            raise ValueError(
                f"{name} of the curve {curve.name!r} has shape {np.shape(value)}, x has {np.shape(curve.x)}"
            )

"""A picture as a Vega-Lite chart: a plain dict, in which text is data only, and never part of an expression."""

from __future__ import annotations

from typing import Any

import numpy as np

from .drawing import FEW, LIGHT, Stroke, base, by_words, is_words, sides, strokes
from .picture import Picture

INK = {"text": "#1c2026", "faint": "#5a616c", "grid": "#e3e6ea"}
HOVERED = 400  # points of a curve that answer to the pointer
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
FONT = "system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif"
SHOWN = "shown[datum.k]"
SHORT = "datum.value == 0 || abs(datum.value) >= 1e-3 && abs(datum.value) < 1e6"
TICK = f"(({SHORT}) ? format(datum.value, ',~g') : format(datum.value, '~e'))"
# A log axis names powers of ten; where there are few of them, as many more as it has room for.
TEN = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
FIRST = "floor(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)) + 0.5)"
DECADES = "log(domain('{0}')[1] / domain('{0}')[0]) / LN10"
NAMED = f"({TEN} || {DECADES} < 1.7 && indexof([2, 5], {FIRST}) >= 0 || {DECADES} < 0.7)"
PINCH = "wheel![event.ctrlKey || event.metaKey]"  # a plain wheel is for the page


def chart(
    picture: Picture,
    colours: tuple[str, ...] = LIGHT,
    ink: dict[str, str] | None = None,
    live: bool = False,
) -> dict[str, Any]:
    """A picture as a Vega-Lite specification.

    Parameters
    ----------
    picture : Picture
    colours : tuple of str
        Of the curves' families, in turn.
    ink : dict
        Colours of "text", "faint" text and the "grid".
    live : bool
        For a page: as wide as its box, with a pointer that zooms and asks, and a signal `shown` that hides curves; the
        legend is the page's. Otherwise it has a size, a title and a legend of its own.

    Returns
    -------
    dict

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol.show.picture import Curve, Picture
    >>> line = Curve("error", np.arange(3), np.array([1.0, 0.1, 0.0]))
    >>> spec = chart(Picture("Errors", "They fall.", "pass", "error", [line], log_y=True))
    >>> [row["y"] for row in spec["layer"][0]["data"]["values"]]  # a log axis has no place for zero
    [1.0, 0.1, None]
    """
    found = strokes(picture)
    ink = INK if ink is None else ink
    key = "k" if live else "name"
    axes = _axes(picture)
    layers = []
    for make in (_bars, _bands, _lines, _dots):
        layers += make(picture, found, axes, key)
    layers = layers or [_layer([], {"type": "point"}, axes, {})]
    hue = _by_curve(found, [colours[one.colour % len(colours)] for one in found], key)
    for layer in layers:
        layer["encoding"]["color"] = hue
    if live:
        layers.append(_hover(found, axes, hue))
        for layer in layers:
            layer["transform"] = [{"filter": SHOWN}]
            layer["mark"]["clip"] = True
            for row in layer["data"]["values"]:
                row.pop("name")  # the page has the names
        layers[0]["params"] = [_zoom(picture)]
    spec: dict[str, Any] = {"$schema": SCHEMA, "layer": layers, "config": _config(ink)}
    if live:
        shown = {"name": "shown", "value": [True] * len(found)}
        return spec | {
            "params": [shown],
            "width": "container",
            "height": 320,
            "autosize": {"type": "fit-x", "contains": "padding", "resize": True},
            "background": None,
        }
    title = {"text": picture.title, "anchor": "start", "fontSize": 15, "fontWeight": 600, "offset": 22, "limit": 620}
    return spec | {"title": title, "width": 560, "height": 320, "background": "#ffffff", "padding": 16}


# --- layers ----------------------------------------------------------------------------------------------------------


def _layer(rows: list[dict], mark: dict, axes: dict, more: dict) -> dict[str, Any]:
    return {"data": {"values": rows}, "mark": mark, "encoding": axes | more}


def _rows(found: list[Stroke], *names: str, keep: Any = None) -> list[dict[str, Any]]:
    """A row a point, in order; a value that cannot be drawn is null."""
    rows, told = [], _names(found)
    for k, one in enumerate(found):
        chosen = range(len(one.x)) if keep is None else np.flatnonzero(keep(one))
        columns = {name: getattr(one, name) for name in names}
        for i in chosen:
            row = {"k": k, "name": told[k], "i": int(i)}
            rows.append(row | {name: _value(v[i]) for name, v in columns.items() if v is not None})
    return rows


def _names(found: list[Stroke]) -> list[str]:
    """Of the curves, no two alike: a second one ends in signs of no width."""
    names = [one.curve.name for one in found]
    return [name + "\u200b" * names[:k].count(name) for k, name in enumerate(names)]


def _value(v: Any) -> Any:
    """A number in six digits; null where there is none."""
    if isinstance(v, str):
        return str(v)
    return float(f"{v:.6g}") if np.isfinite(v) else None


def _bars(picture: Picture, found: list[Stroke], axes: dict, key: str) -> list[dict[str, Any]]:
    if not any(one.curve.style == "bars" for one in found):
        return []
    rows, low, told = [], base(picture, found), _names(found)
    for k, one in enumerate(found):
        if one.curve.style != "bars":
            continue
        words = is_words(one.x)
        left, right = (one.x, one.x) if words else sides(picture, one.x)
        for i in np.flatnonzero(one.points):
            rows.append(
                {"k": k, "name": told[k], "x": _value(left[i]), "y": _value(one.y[i]), "base": _value(low)}
                | ({} if words else {"end": _value(right[i])})
            )
    more: dict[str, Any] = {"y2": {"field": "base"}}
    if by_words(picture):
        more["xOffset"] = {"field": key, "type": "nominal", "scale": {"paddingInner": 0.08}}
        return [_layer(rows, {"type": "bar", "opacity": 0.85, "cornerRadiusEnd": 2}, axes, more)]
    return [_layer(rows, {"type": "rect", "opacity": 0.75}, axes, more | {"x2": {"field": "end"}})]


def _bands(picture: Picture, found: list[Stroke], axes: dict, key: str) -> list[dict[str, Any]]:
    rows = [
        row | {"y": None if row["high"] is None else row["low"]}
        for row in _rows(found, "x", "low", "high", keep=lambda one: np.full(one.x.shape, _has_band(one)))
    ]
    if not rows:
        return []
    mark = {"type": "area", "opacity": 0.16, "invalid": "break-paths-filter-domains", "line": False}
    return [_layer(rows, mark, axes, {"y2": {"field": "high"}})]


def _lines(picture: Picture, found: list[Stroke], axes: dict, key: str) -> list[dict[str, Any]]:
    rows = _rows(found, "x", "y", keep=lambda one: np.full(one.x.shape, one.curve.style in ("line", "dashed")))
    if not rows:
        return []
    mark = {"type": "line", "strokeWidth": 2, "invalid": "break-paths-filter-domains", "strokeCap": "butt"}
    dash = _by_curve(found, [list(one.dash or (1, 0)) for one in found], key)
    return [_layer(rows, mark, axes, {"strokeDash": dash, "order": {"field": "i"}})]


def _dots(picture: Picture, found: list[Stroke], axes: dict, key: str) -> list[dict[str, Any]]:
    """Points; and those of a line that has few."""
    points = _rows(found, "x", "y", keep=lambda one: one.points & (one.curve.style == "points"))
    few = _rows(found, "x", "y", keep=lambda one: one.points & (one.curve.style == "line" and one.points.sum() <= FEW))
    layers = [_layer(few, {"type": "point", "filled": True, "size": 36, "opacity": 1}, axes, {})] if few else []
    if points:
        many = len(points) > 200
        mark = {"type": "point", "filled": True, "size": 22 if many else 60, "opacity": 0.45 if many else 0.9}
        layers.append(_layer(points, mark, axes, {}))
    return layers


def _has_band(one: Stroke) -> bool:
    return one.low is not None and one.high is not None


def _answers(one: Stroke) -> np.ndarray:
    """Which points answer to the pointer: of many, some that are evenly spread."""
    there = np.flatnonzero(one.points)
    some = np.unique(np.linspace(0, len(there) - 1, min(len(there), HOVERED)).round().astype(int))
    return np.isin(np.arange(len(one.x)), there[some])


def _hover(found: list[Stroke], axes: dict, hue: dict) -> dict[str, Any]:
    """Points that nobody sees until the pointer is near; the page writes what they say."""
    rows = _rows(found, "x", "y", "low", "high", keep=_answers)
    mark = {"type": "point", "filled": True, "size": 90, "tooltip": {"content": "data"}}
    seen = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
    layer = _layer(rows, mark, axes, {"opacity": seen, "color": hue})
    on = {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout", "fields": ["k", "i"]}
    return layer | {"params": [{"name": "near", "select": on}]}


# --- scales, axes, colours -------------------------------------------------------------------------------------------


def _axes(picture: Picture) -> dict[str, Any]:
    y = _axis("y", picture.y_label, picture.log_y, 0 if any(curve.style == "bars" for curve in picture.curves) else 8)
    y["axis"] |= {
        "titleAngle": 0,
        "titleAlign": "left",
        "titleBaseline": "bottom",
        "titleX": 0,
        "titleY": -10,
        "minExtent": 44,
    }
    if by_words(picture):
        long = sum({len(str(v)) for curve in picture.curves for v in curve.x}) > 40
        words = {"title": picture.x_label or None, "labelAngle": -30 if long else 0, "labelLimit": 130, "grid": False}
        return {"x": {"field": "x", "type": "nominal", "sort": None, "axis": words}, "y": y | {"field": "y"}}
    return {"x": _axis("x", picture.x_label, picture.log_x) | {"field": "x"}, "y": y | {"field": "y"}}


def _axis(name: str, label: str, log: bool, padding: int = 8) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": label, "labelExpr": TICK, "tickCount": 6, "labelOverlap": True}
    if not log:
        scale = {"type": "linear", "zero": False, "nice": padding == 0, "padding": padding}
        return {"type": "quantitative", "scale": scale, "axis": axis}
    test = NAMED.format(name)
    faint = {"condition": {"test": test, "value": 1}, "value": 0}
    axis |= {"labelExpr": f"{test} ? {TICK} : ''", "labelOverlap": False, "gridOpacity": faint, "tickOpacity": faint}
    return {"type": "quantitative", "scale": {"type": "log", "nice": False, "padding": padding}, "axis": axis}


def _by_curve(found: list[Stroke], values: list, key: str) -> dict[str, Any]:
    """A channel that tells curves apart."""
    domain = list(range(len(found))) if key == "k" else _names(found)
    legend: dict[str, Any] = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 260, "symbolOpacity": 1}
    if any(one.curve.style in ("line", "dashed") for one in found):
        legend |= {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2.5}
    scale = {"domain": domain, "range": values}
    return {"field": key, "type": "nominal", "scale": scale, "legend": legend if key == "name" and found[1:] else None}


def zoomed(picture: Picture) -> list[str]:
    """Along which axes one can zoom."""
    return ["y"] if by_words(picture) else ["x", "y"]


def _zoom(picture: Picture) -> dict[str, Any]:
    select = {"type": "interval", "encodings": zoomed(picture), "zoom": PINCH}
    return {"name": "grid", "select": select, "bind": "scales"}


def _config(ink: dict[str, str]) -> dict[str, Any]:
    return {
        "aria": False,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink["faint"],
            "titleColor": ink["text"],
            "gridColor": ink["grid"],
            "domainColor": ink["faint"],
            "tickColor": ink["faint"],
            "tickSize": 4,
            "labelFontSize": 12,
            "titleFontSize": 13,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "labelPadding": 5,
        },
        "axisY": {"domain": False, "ticks": False},
        "axisX": {"grid": False},
        "legend": {"labelColor": ink["text"], "labelFontSize": 12, "symbolStrokeWidth": 2},
        "title": {"color": ink["text"]},
    }

"""A benchmark's JSON as a book: what benchmarks/ wrote, for those who would rather look than read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .picture import Book, Chapter, Curve, Picture, Table

OURS = "rowcol"
TIE = 1.2
FEW = 12  # problems: up to here every contender has a row
BARS = 24  # problems on one picture, at most


def of_benchmark(data: Any) -> Book:
    """What a benchmark wrote, as a book.

    Parameters
    ----------
    data : dict or list
        As read from the JSON of benchmarks/bench.py ("runs"), kernel.py or kernel_cv.py (a list of rows with "what" and
        "value"), or ridge.py ("paths" and "choices").

    Returns
    -------
    Book

    Examples
    --------
    >>> book = of_benchmark([{"what": "tiles", "value": 2.0, "target": 1.5, "words": "of a roof"}])
    >>> book.chapters[0].tables[0].marks
    [True]
    """
    try:
        if isinstance(data, dict) and "runs" in data:
            return _race(data)
        if isinstance(data, dict) and "paths" in data:
            return _ridge(data)
        if isinstance(data, list) and data and all("what" in row for row in data):
            return _measured(data)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"what: this JSON is not as the benchmarks of rowcol write it: {error!r}") from error
    raise ValueError("what: this JSON is not of a benchmark of rowcol: it has no runs, no paths and no measured rows")


# --- bench.py --------------------------------------------------------------------------------------------------------


def _race(data: dict[str, Any]) -> Book:
    chapters, won, all_of = [], 0, 0
    for threads in sorted({run["threads"] for run in data["runs"]}):
        runs = [run for run in data["runs"] if run["threads"] == threads]
        rows, marks, ratios = [], [], []
        for run in runs:
            for target in dict.fromkeys(record["target"] for record in run["records"]):
                ours, rival = _best(run, target)
                ratio = _ratio(ours, rival)
                ratios.append((str(run["facts"]["dataset"]), target, ours, rival, ratio))
                marks.append(None if ratio is None else ratio >= 1 / TIE)
                told = _seconds(ours), str(rival["contender"]) if rival else "none", _seconds(rival), _times(ratio)
                rows.append([str(run["facts"]["dataset"]), shape(run["facts"]), f"{target:g}", *told])
        head = ["problem", "size", "error", "rowcol, s", "best rival", "its s", "rival / rowcol"]
        good, known = sum(mark is True for mark in marks), sum(mark is not None for mark in marks)
        won, all_of = won + good, all_of + known
        words = [f"Of {known} races, rowcol is first or within {TIE:g} of it in {good}. ✓ marks these.", _lost(runs)]
        title = f"{threads} thread{'s' * (threads > 1)}"
        tables = [Table("Seconds to an error", head, rows, marks)]
        tables += [_everyone(run) for run in runs] if len(runs) <= FEW else []
        chapters.append(Chapter(title, words, _bars(ratios, title), tables))
    machine = ", ".join(f"{name} {value}" for name, value in data.get("machine", {}).items())
    summary = [
        f"rowcol is first, or no more than {TIE:g} times the seconds of the best rival, in {won} of {all_of} races.",
        "Each contender runs at the loosest setting whose answer has an error within the target; set-up counts, "
        "compilation does not.",
    ]
    return Book("Seconds to a verified error", summary, chapters, f"{machine}. Sizes: {data.get('size', 'unknown')}.")


def ranked(run: dict[str, Any], target: float) -> tuple[list[dict], list[dict]]:
    """Those with a time, the fastest first; and the others."""
    here = [r for r in run["records"] if r["target"] == target]
    timed = sorted((r for r in here if r["seconds"] is not None), key=lambda r: r["seconds"])
    return timed, [r for r in here if r["seconds"] is None]


def _everyone(run: dict[str, Any]) -> Table:
    rows = []
    for target in dict.fromkeys(record["target"] for record in run["records"]):
        timed, rest = ranked(run, target)
        rows += [[f"{target:g}", str(r["contender"]), f"{r['seconds']:.3g}", _error(r), _how(r)] for r in timed]
        rows += [[f"{target:g}", str(r["contender"]), "–", "–", str(r["note"])] for r in rest]
    title = f"{run['facts']['dataset']}: {shape(run['facts'])}"
    return Table(title, ["error", "contender", "seconds", "error found", "how, or why not"], rows)


def _error(record: dict[str, Any]) -> str:
    return f"{record['error']:.1e}" if record.get("error") is not None else "–"


def _how(record: dict[str, Any]) -> str:
    setting = record.get("setting")
    return ", ".join([*([str(record["route"])] if record.get("route") else []), *([f"{setting:g}"] if setting else [])])


def _losses(runs: list[dict[str, Any]]) -> tuple[list[str], int]:
    """Where a rival is first, the worst first; and of how many races."""
    found, races = [], 0
    for run in runs:
        for target in dict.fromkeys(record["target"] for record in run["records"]):
            ours, rival = _best(run, target)
            ratio = _ratio(ours, rival)
            races += ratio is not None
            if ratio is not None and ratio < 1 and rival is not None:
                times = "rowcol does not reach it" if ours is None else f"{1 / ratio:.3g} times as fast"
                found.append((ratio, f"{run['facts']['dataset']} to {target:g} ({rival['contender']}, {times})"))
    return [text for _, text in sorted(found)], races


def _lost(runs: list[dict[str, Any]]) -> str:
    lost, _ = _losses(runs)
    return "A rival is first in: " + "; ".join(lost) + "." if lost else "No rival is first anywhere."


def tally(data: dict[str, Any]) -> list[str]:
    """In how many races rowcol is first, and where it is not."""
    lost, races = _losses(data["runs"])
    lines = [f"rowcol is first in {races - len(lost)} of {races} races."]
    return lines + [f"  a rival is first: {one}" for one in lost]


def _best(run: dict[str, Any], target: float) -> tuple[dict | None, dict | None]:
    """Ours and the best rival, where they have a time."""
    timed = [r for r in run["records"] if r["target"] == target and r["seconds"] is not None]
    ours = next((r for r in timed if r["contender"] == OURS), None)
    return ours, min((r for r in timed if r["contender"] != OURS), key=lambda r: r["seconds"], default=None)


def _ratio(ours: dict | None, rival: dict | None) -> float | None:
    if ours is None:
        return None if rival is None else 0.0
    return math.inf if rival is None else rival["seconds"] / ours["seconds"]


def _bars(ratios: list[tuple], title: str) -> list[Picture]:
    """Seconds of the tightest target of each problem: ours, and the best rival's."""
    tightest: dict[str, tuple] = {}
    for name, target, ours, rival, _ in ratios:
        if name not in tightest or target < tightest[name][0]:
            tightest[name] = target, ours, rival
    pictures = []
    names = list(tightest)
    for start in range(0, len(names), BARS):
        some = np.array(names[start : start + BARS], dtype=str)
        curves = []
        for label, place in ((OURS, 1), ("best rival", 2)):
            found = [tightest[name][place] for name in some]
            seconds = np.array([math.nan if r is None else r["seconds"] for r in found])
            curves.append(Curve(label, some, seconds, style="bars"))
        both = np.isfinite(curves[0].y) & np.isfinite(curves[1].y)
        ahead = int((curves[0].y[both] <= curves[1].y[both]).sum())
        words = f"At the tightest error of each of {len(some)} problems, rowcol takes fewer seconds in {ahead}."
        pictures.append(Picture(f"Seconds at the tightest error, {title}", words, "", "seconds", curves, log_y=True))
    return pictures


def shape(facts: dict[str, Any]) -> str:
    """The size of a problem, in words."""
    n, p = facts["shape"]
    alpha = f", λ {facts['alpha']:g}" if facts.get("alpha") else ""
    order = facts.get("order", "")
    kernel = f", {facts['kernel']}" if facts.get("kernel") else ""
    return f"{n:,} x {p:,}, {order + ' order' if order in ('C', 'F') else order}{alpha}{kernel}"


def _seconds(record: dict | None) -> str:
    return "–" if record is None else f"{record['seconds']:.3g}"


def _times(value: float | None) -> str:
    if value is None:
        return "–"
    return {0.0: "rivals only", math.inf: "rowcol only"}.get(value, f"{value:.3g}")


# --- kernel.py, kernel_cv.py, ridge.py -------------------------------------------------------------------------------


def _measured(rows: list[dict[str, Any]]) -> Book:
    marks = [_met(row) for row in rows]
    cells = []
    for row in rows:
        target = row.get("target")
        limit = "–" if target is None else f"{'≥' if target > 0 else '≤'} {abs(target):g}"
        value = "–" if row["value"] is None else f"{row['value']:.3g}"
        cells.append([str(row["what"]), value, limit, str(row.get("words", ""))])
    judged = [mark for mark in marks if mark is not None]
    told = f"{sum(judged)} of {len(judged)} targets are met." if judged else f"{len(rows)} figures, without targets."
    table = Table("Measured", ["what", "measured", "target", "how"], cells, marks if judged else [])
    return Book("What was measured", [told], [Chapter("Figures", [told], tables=[table])])


def _met(row: dict[str, Any]) -> bool | None:
    """A target below zero is an upper limit."""
    target, value = row.get("target"), row["value"]
    if target is None or value is None:
        return None
    return bool(value >= target if target > 0 else value <= -target)


def _ridge(data: dict[str, Any]) -> Book:
    paths = [[str(r["problem"]), *(f"{r[k]:.3g}" for k in ("path", "one", "ratio"))] for r in data["paths"]]
    met = [bool(r["ratio"] <= 4) for r in data["paths"]]
    choices = []
    for r in data["choices"]:
        n, p = r["shape"]
        cv = "leave-one-out" if r["cv"] is None else f"{r['cv']} folds"
        choices.append([f"{n:,} x {p:,}", cv, *(f"{r[k]:.3g}" for k in ("rowcol", "scikit-learn", "ratio"))])
    summary = [f"Twenty alphas take no more than four fits in {sum(met)} of {len(met)} problems."]
    first = Table("A path of 20 alphas", ["problem", "path, s", "one fit, s", "path / one fit"], paths, list(met))
    head = ["X", "cv", "rowcol, s", "scikit-learn, s", "scikit-learn / rowcol"]
    second = Table("RidgeCV on 20 alphas", head, choices)
    return Book("Many alphas", summary, [Chapter("Paths and choices", summary, tables=[first, second])])

"""The records as a page to read: the table, the stated targets, the routes taken, and where rowcol loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from rowcol.racing.contenders import LSTSQ, OURS

TIE = 1.2


class Row(NamedTuple):
    """One problem, target and thread count: ours, the best rival, the faster lstsq; None where there is no time."""

    facts: dict[str, Any]
    threads: int
    target: float
    ours: dict[str, Any]
    rival: dict[str, Any] | None
    lstsq: float | None
    others: dict[str, float]

    def over(self, *names: str) -> float | None:
        """The fastest of these contenders' seconds over ours; None where none of them was timed."""
        theirs = min((self.others[name] for name in names if name in self.others), default=None)
        return None if theirs is None else _over(theirs, self.ours["seconds"])

    @property
    def ratio(self) -> float | None:
        """The best rival's seconds over ours: 0 if only rivals reach the target, None if nobody does."""
        return _over(self.rival["seconds"] if self.rival else None, self.ours["seconds"])

    @property
    def lstsq_ratio(self) -> float | None:
        return _over(self.lstsq, self.ours["seconds"])


def _over(theirs: float | None, ours: float | None) -> float | None:
    if ours is None:
        return None if theirs is None else 0.0
    return float("inf") if theirs is None else theirs / ours


def rows_of(runs: list[dict[str, Any]]) -> list[Row]:
    """A run is a dataset at a thread count, with its records."""
    rows = []
    for run in runs:
        for target in dict.fromkeys(record["target"] for record in run["records"]):
            here = {r["contender"]: r for r in run["records"] if r["target"] == target}
            timed = {name: r for name, r in here.items() if r["seconds"] is not None}
            rivals = [r for name, r in timed.items() if name != OURS]
            direct = [r["seconds"] for name, r in timed.items() if name in LSTSQ]
            rival = min(rivals, key=lambda r: r["seconds"], default=None)
            others = {name: r["seconds"] for name, r in timed.items() if name != OURS}
            rows.append(Row(run["facts"], run["threads"], target, here[OURS], rival, min(direct, default=None), others))
    return rows


# --- the targets ---------------------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """What was promised: `figure` of every row that `applies` is at least `least`."""

    text: str
    least: float
    figure: Callable[[Row], float | None]
    applies: Callable[[Row], bool]


def _ahead(group: str, least: float, text: str = "", targets: tuple[float, ...] = ()) -> Claim:
    def applies(row: Row) -> bool:
        return row.facts["group"] == group and (not targets or row.target in targets)

    return Claim(f"{text or group}: {least:g}x the best rival", least, lambda row: row.ratio, applies)


CLAIMS = (
    Claim("everywhere: at most 1.2x the seconds of the best rival", 1 / TIE, lambda row: row.ratio, lambda row: True),
    _ahead("tall consistent", 8),
    _ahead("sparse consistent", 2),
    _ahead("CT", 3, "CT, image error 0.2 and 0.1", (0.2, 0.1)),
    _ahead("CT", 2, "CT, image error 0.03 and 0.01", (0.03, 0.01)),
    _ahead("flat tail", 1.5),
    Claim(
        "tall inconsistent, p ≤ 500: 4x the faster lstsq",
        4,
        lambda row: row.lstsq_ratio,
        lambda row: row.facts["group"] == "tall inconsistent" and row.facts["shape"][1] <= 500,
    ),
    Claim("wide: 20x the faster lstsq", 20, lambda row: row.lstsq_ratio, lambda row: row.facts["group"] == "wide"),
    _ahead("text ridge", 1.5),
    Claim(
        "wide dense ridge: 2.5x scikit-learn's Ridge()",
        2.5,
        lambda row: row.over("Ridge"),
        lambda row: _ridge(row) and row.facts["shape"][0] < row.facts["shape"][1] and row.facts["order"] != "sparse",
    ),
    Claim("ridge: 3x sag and saga", 3, lambda row: row.over("Ridge sag", "Ridge saga"), lambda row: _ridge(row)),
)


def _ridge(row: Row) -> bool:
    return bool(row.facts.get("alpha"))


def judge(rows: list[Row]) -> list[tuple[Claim, list[Row], list[Row]]]:
    """Each claim with the rows it is about and those where it fails; a row that nobody solved proves nothing."""
    verdicts = []
    for claim in CLAIMS:
        about = [row for row in rows if claim.applies(row) and claim.figure(row) is not None]
        verdicts.append((claim, about, [row for row in about if claim.figure(row) < claim.least]))
    return verdicts


# --- the page ------------------------------------------------------------------------------------------------------


def _seconds(value: float | None) -> str:
    return "not reached" if value is None else f"{value:.3g}"


def _times(value: float | None) -> str:
    if value is None:
        return "–"
    if value in (0.0, float("inf")):
        return "rivals only" if value == 0.0 else "rowcol only"
    return f"{value:.3g}"


def _name(row: Row) -> str:
    return f"{row.facts['dataset']} ({row.target:g}; {row.threads} thr.)"


def _shape(facts: dict[str, Any]) -> str:
    n, p = facts["shape"]
    extra = [facts["order"]] if facts["order"] == "sparse" else [f"{facts['order']} order"]
    extra += [facts["dtype"]] if facts["dtype"] != "float64" else []
    extra += [f"{facts['right_hand_sides']} right-hand sides"] if facts["right_hand_sides"] > 1 else []
    extra += [f"λ {facts['alpha']:g}"] if facts["alpha"] else []
    extra += ["intercept"] if facts.get("intercept") else []
    return f"{n:,} x {p:,}, {', '.join(extra)}"


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| problem | size | target | rowcol s | route | passes | best rival | s | rival / rowcol | lstsq / rowcol |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours, rival = row.ours, row.rival
        passes = "" if ours.get("passes") is None else f"{ours['passes']:.3g}"
        cells = [row.facts["dataset"], _shape(row.facts), f"{row.target:g}", _seconds(ours["seconds"])]
        cells += [ours.get("route") or ours["note"], passes, rival["contender"] if rival else "none"]
        cells += [_seconds(rival["seconds"]) if rival else "", _times(row.ratio)]
        cells += ["" if row.lstsq is None else _times(row.lstsq_ratio)]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return lines


def markdown(report: dict[str, Any]) -> str:
    """The whole page."""
    rows = rows_of(report["runs"])
    machine = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = ["# Seconds to a verified error", "", f"{machine}. Sizes: {report['size']}.", ""]
    lines += [
        "Each contender runs at the loosest setting whose answer has an error ‖β − truth‖/‖truth‖ within the target;",
        "all take turns, the fastest turn counts, set-up included, compilation not. Ratios above 1: rowcol is faster.",
    ]
    for threads in sorted({row.threads for row in rows}):
        lines += ["", f"## {threads} thread{'s' * (threads > 1)}", ""]
        lines += _table([row for row in rows if row.threads == threads])
    lines += ["", "## Stated targets", ""]
    if report["size"] == "quick":
        lines += ["The targets are for full sizes: at quick ones they only show that the page works.", ""]
    lines += ["| target | met in | worst | |", "|---|---|---|---|"]
    for claim, about, missed in judge(rows):
        if about:
            worst = min(about, key=claim.figure)
            text = f"{_times(claim.figure(worst))}, {_name(worst)}"
            met = f"{len(about) - len(missed)} of {len(about)}"
            lines.append(f"| {claim.text} | {met} | {text} | {'MISSED' if missed else 'ok'} |")
        else:
            lines.append(f"| {claim.text} | 0 of 0 | | not run |")
    routes = Counter(row.ours["route"] for row in rows if row.ours.get("route"))
    lines += ["", "## Routes taken", "", "| route | times |", "|---|---|"]
    lines += [f"| {route.replace('|', '/')} | {count} |" for route, count in routes.most_common()]
    lines += ["", "## Where rowcol loses", ""]
    lost = sorted((row for row in rows if row.ratio is not None and row.ratio < 1), key=lambda row: row.ratio)
    for row in lost:
        ours = row.ours["note"] if row.ours["seconds"] is None else f"{row.ours['seconds']:.3g} s"
        tie = ", a tie" if row.ratio >= 1 / TIE else ""
        lines.append(f"- {_name(row)}: {ours}, {row.rival['contender']} {row.rival['seconds']:.3g} s{tie}")
    nobody = [row for row in rows if row.ratio is None]
    lines += [f"- {_name(row)}: nobody reaches it; rowcol {row.ours['note']}" for row in nobody]
    lines += [] if lost or nobody else ["Nowhere."]
    lines += ["", "## Who has no time, and why", "", "But for what a contender is not made for.", ""]
    for run in report["runs"]:
        whys: dict[str, list[str]] = {}
        for r in run["records"]:
            if r["note"] and not r["note"].endswith(("only", "no ridge", "is its default")):
                whys.setdefault(f"{r['contender']}: {r['note']}", []).append(f"{r['target']:g}")
        text = "; ".join(f"{why} ({', '.join(targets)})" for why, targets in whys.items())
        lines += [f"- {run['facts']['dataset']}, {run['threads']} thr.: {text}"] if text else []
    return "\n".join(lines) + "\n"

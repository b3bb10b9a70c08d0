"""The tables of docs/benchmarks.md, from the results in docs/results/. Run it: make bench-page

Results of one problem at one thread count that come later, in the order of the files' names, stand for earlier ones. To
publish a new run, put its bench.json there under a name that comes last, and remove what it replaces.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from report import markdown

DOCS = Path(__file__).parent.parent / "docs"
PAGE, RESULTS = DOCS / "benchmarks.md", DOCS / "results"
MARKS = [("<!-- tables -->", "<!-- end of tables -->"), ("<!-- verdicts -->", "<!-- end of verdicts -->")]


def merged() -> tuple[dict[str, Any], list[str]]:
    """All runs that stand, as one report; and a line for each file: what ran where."""
    runs: dict[tuple[str, int], dict[str, Any]] = {}
    whose: dict[tuple[str, int], str] = {}
    machines = {}
    for path in sorted(RESULTS.glob("[0-9]*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        machines[path.name] = report["machine"]
        for run in report["runs"]:
            key = run["facts"]["dataset"], run["threads"]
            runs[key], whose[key] = run, path.name
    told = []
    for name, machine in machines.items():
        mine = [key for key, path in whose.items() if path == name]
        if mine:
            facts = ", ".join(f"{what} {value}" for what, value in machine.items())
            counts = ", ".join(f"{t} thread{'s' * (t > 1)}" for t in sorted({t for _, t in mine}))
            told.append(f"- {counts}, {len(mine)} problems ({', '.join(key[0] for key in mine)}): {facts}.")
    return {"machine": {}, "size": "full", "runs": list(runs.values())}, told


def parts() -> list[str]:
    """What stands between the marks: the tables, and the verdicts on one thread."""
    report, told = merged()
    tables = markdown(report).split("\n## Stated targets")[0].split("\n## 1 thread", 1)[1]
    alone = report | {"runs": [run for run in report["runs"] if run["threads"] == 1]}
    verdicts = "## Stated targets" + markdown(alone).split("\n## Stated targets", 1)[1]
    return ["What ran where:\n\n" + "\n".join(told) + "\n\n## 1 thread" + tables, verdicts]


def page(text: str) -> str:
    """The page with its tables made anew."""
    for (first, last), made in zip(MARKS, parts(), strict=True):
        before, rest = text.split(first)
        text = f"{before}{first}\n\n{made.strip()}\n\n{last}{rest.split(last)[1]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

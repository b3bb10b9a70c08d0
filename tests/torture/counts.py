"""The counts of the last full run, into docs/trust.md: what `make torture` ends with.

Numbers of one name in one chapter are added up; of text, the last stays. A chapter that did not run keeps what it had.
"""

import datetime
import json
import re
from pathlib import Path

import rowcol

HOME = Path(__file__).parents[2]
LINES = HOME / "build" / "torture" / "tally.jsonl"
KEPT = HOME / "docs" / "results" / "trust.json"
PAGE = HOME / "docs" / "trust.md"


def added(lines):
    """Chapters, each with what was counted."""
    chapters = {}
    for line in map(json.loads, lines):
        counts = chapters.setdefault(line.pop("chapter"), {})
        for name, found in line.items():
            counts[name] = counts.get(name, 0) + found if isinstance(found, (int, float)) else found
    return chapters


def table(counts):
    """A Markdown table of one chapter."""
    said = {name.replace("_", " "): f"{n:,}" if isinstance(n, (int, float)) else n for name, n in counts.items()}
    return "\n".join(["| counted | |", "|---|---|", *(f"| {name} | {n} |" for name, n in said.items())])


def filled(text, chapters):
    """The page, with each chapter's table between its marks."""

    def one(mark):
        counts = chapters.get(mark[1])
        return f"<!-- {mark[1]} -->\n\n{table(counts)}\n\n<!-- end -->" if counts else mark[0]

    return re.sub(r"<!-- ([a-z-]+) -->.*?<!-- end -->", one, text, flags=re.S)


def main():
    """Put together what was counted."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    today = {"run": datetime.date.today().isoformat(), "rowcol": rowcol.__version__}
    kept |= {name: counts | today for name, counts in added(LINES.read_text().splitlines()).items()}
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), kept))
    print(f"{len(kept)} chapters: see docs/trust.md")


if __name__ == "__main__":
    main()

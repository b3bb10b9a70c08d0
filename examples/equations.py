"""The paper's equations, each with what it says, where it lives, and a tick that its tests have just earned.

Run it: make paper
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def tagged(folder: Path) -> dict[str, set[int]]:
    """Tests whose first line says which equations they are of, such as `# (4), (5)`."""
    found: dict[str, set[int]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for name, said in re.findall(r"^def (test_\w+)\(.*\):  # (.*)$", path.read_text(), re.M):
            tags = {int(tag) for tag in re.findall(r"\((\d{1,2})\)", said)}
            if tags:
                found[f"{path.relative_to(ROOT).as_posix()}::{name}"] = tags
    return found


def mapped(page: Path) -> list[tuple[set[int], str, str]]:
    """Rows of the equation map: tags, what, where."""
    rows = re.findall(r"^\| ((?:\(\d+\)(?:, )?)+) \| (.*?) \| (.*?) \|$", page.read_text(), re.M)
    return [
        ({int(tag) for tag in re.findall(r"\d+", tags)}, what, where.replace("`", "")) for tags, what, where in rows
    ]


class Outcomes:
    """A pytest plugin that notes how every test ended."""

    def __init__(self) -> None:
        self.passed: dict[str, list[bool]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.failed:
            self.passed.setdefault(report.nodeid.split("[")[0], []).append(report.passed)


def table(passed: dict[str, list[bool]], tests: dict[str, set[int]], rows: list) -> tuple[list[str], bool]:
    """A line an equation, with a tick if it has tests and all of them passed."""
    lines, good = [], True
    what_of = {tag: (what, where) for tags, what, where in reversed(rows) for tag in tags}
    for tag in range(1, 39):
        own = [name for name, tags in tests.items() if tag in tags]
        held = bool(own) and all(all(passed.get(name, [False])) for name in own)
        good &= held
        what, where = what_of.get(tag, ("not on the map", ""))
        count = sum(len(passed.get(name, [])) for name in own)
        lines.append(
            f" {'✓' if held else '✗'} ({tag:>2})  {count:>2} test{'s' if count != 1 else ' '}  {what}  [{where}]"
        )
    return lines, good


def main() -> int:
    tests, outcomes = tagged(ROOT / "tests"), Outcomes()
    arguments = ["-o", "addopts=", "-p", "no:terminal", "-p", "no:xdist", *(str(ROOT / name) for name in tests)]
    pytest.main([*arguments, f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml")], plugins=[outcomes])
    lines, good = table(outcomes.passed, tests, mapped(ROOT / "docs" / "paper.md"))
    print("The paper's equations, and whether their tests passed just now:\n")
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

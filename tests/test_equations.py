"""`make paper`: ticks are earned, not printed."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import equations  # noqa: E402


def test_every_equation_has_a_tagged_test_and_a_line_on_the_map():
    tests = equations.tagged(ROOT / "tests")
    assert set().union(*tests.values()) == set(range(1, 39))
    rows = equations.mapped(ROOT / "docs" / "paper.md")
    assert set().union(*(tags for tags, _, _ in rows)) == set(range(1, 39))


def test_a_tick_needs_tests_that_all_passed():
    tests = equations.tagged(ROOT / "tests")
    passed = {name: [True, True] for name in tests}
    lines, good = equations.table(passed, tests, [])
    assert good
    assert all(line.startswith(" ✓") for line in lines)
    first = next(name for name, tags in tests.items() if 23 in tags)
    for outcome in ({**passed, first: [True, False]}, {k: v for k, v in passed.items() if k != first}):
        lines, good = equations.table(outcome, tests, [])
        assert not good
        assert lines[22].startswith(" ✗ (23)")
        assert sum(line.startswith(" ✗") for line in lines) == len(tests[first])

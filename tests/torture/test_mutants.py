"""The machinery of `make mutants`: what it changes, that it sees some die and one live, and that reasons are needed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import mutants as judge
from mutations import mutants
from spared import ASIDE, SURVIVE

HOME = Path(__file__).parents[2]
SOURCE = """
LIMIT = 3
def f(a: int = 0, b=1.5):
    'Words.'
    total = 0.0
    for i in range(a, 9):
        if i < b and not a:
            total += max(a * b, -1)
    return total if a == 2 else None
"""


def run(*args):
    """The script, in a process of its own: there the engine must not be compiled."""
    command = [sys.executable, str(HOME / "tests" / "torture" / "mutants.py"), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=dict(os.environ))
    return done.returncode, done.stdout + done.stderr


def test_what_is_changed():
    assert {one.change for one in mutants("none", SOURCE)[1]} == {
        "LIMIT = 4", "LIMIT = 2", "total = 1.0", "for i in range(a, 9 - 1):", "for i in range(a + 1, 9):",
        "for i in range(a, 10):", "for i in range(a, 8):", "if i < b or not a:", "if i <= b and not a:",
        "if i >= b and not a:", "if i < b and a:", "total -= max(a * b, -1)", "pass", "total += min(a * b, -1)",
        "total += max(a / b, -1)", "total += max(a * b, -2)", "total += max(a * b, -0)",
        "return total if a != 2 else None", "return total if a == 3 else None", "return total if a == 1 else None",
        "if not (i < b and (not a)):",
    }  # fmt: skip


def test_every_mutant_is_a_program_of_its_own():
    seen = {ast.dump(mutants("none", SOURCE)[0])}
    for k in range(len(mutants("none", SOURCE)[1])):
        tree, made = mutants("none", SOURCE)
        judge.mutated(tree, made[k])
        seen.add(ast.dump(tree))
    assert len(seen) == 1 + len(mutants("none", SOURCE)[1])


def test_reasons_are_for_lines_that_are_there():
    chosen, aside = judge.everything()
    assert not judge.stale(ASIDE, aside)
    assert not judge.stale(SURVIVE, [one for _, one in chosen])
    assert judge.stale({"none": [("engine/lines", "descend", "no such line")]}, aside)


def test_the_dead_and_the_living(full, tmp_path):
    """Hand-picked: one a module that must die, and one that only asks for memory too late, which no test can mind."""
    dead = [
        "gains -= slope.real * step.real + slope.imag * step.imag",
        "keep[rich] -= 1.0 + keep[poor]",
        "slope[j + 5] -= t5",
        "return t - x * y",
        "d_rho = units[0] * (y_norm - reach)",
        "PAIRS = 49",
    ]
    kept = "--kept", str(tmp_path / "kept")
    code, said = run(*kept, *(word for one in [*dead, "fetch(a, i, reach + 1)"] for word in ("--change", one)))
    assert code == 1, said
    assert "7 of 7" in said, said
    assert "{'killed': 6, 'survived': 1}" in said, said
    assert "survived: engine/lines.py" in said
    if full:  # all of them; the script counts them, and writes docs/mutants.md
        code, said = run(*kept)
        assert code == 0, said

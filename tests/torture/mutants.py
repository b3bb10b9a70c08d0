"""Do the tests test? Change one small thing of the engine or of a certificate at a time, and see whether a test minds.

`make mutants` does so for every change there is, in under an hour on one core: the engine runs as plain Python
(NUMBA_DISABLE_JIT=1), all that is not ours is imported once, and every mutant is a fork of that process, which imports
rowcol with the mutated module (made in memory: no file is touched) and runs the tests of that module until one fails.

    python tests/torture/mutants.py [--only certify] [--every 7] [--go-on]

spared.py says which changes are set aside, because they change nothing but speed or are no Python, and why each
survivor is no hole in the tests. A survivor without a reason, or a reason without a survivor, is an error.
(An own one: cosmic-ray starts the tests anew for every mutant, mutmut 3 leaves alone what is outside of functions.)
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mutations import HOME, Mutant, mutants
from spared import ASIDE, SURVIVE

KEPT, PAGE = HOME / "build" / "torture" / "mutants.jsonl", HOME / "docs" / "mutants.md"
TESTS = {
    "engine/across": ["tests/engine/test_across.py"],
    "engine/alias": ["tests/engine/test_alias.py"],
    "engine/lines": ["tests/engine/test_bodies.py", "tests/engine/test_lines.py"],
    "engine/tiles": ["tests/engine/test_tiles.py"],
    "core/certify": ["tests/core/test_certify.py", "tests/core/test_looks.py"],
}
# hundreds of examples each, as plain Python: seconds a mutant
SLOW = ["takes_alone_bit_for_bit", "cutting_the_picks"]
SECONDS = 20.0  # a mutant that takes longer hangs: the tests take one or two
MEMORY = 6 << 30  # bytes: a mutant that asks for more shall not bring the machine down
OTHERS = "numpy scipy.sparse.linalg scipy.optimize numba numba.extending llvmlite.ir sklearn.base threadpoolctl pytest"
OTHERS += " _pytest.doctest hypothesis hypothesis.strategies concurrent.futures"
Table = dict[str, list[tuple[str, str, str]]]


def mutated(tree: ast.Module, mutant: Mutant | None) -> Any:
    """The code of a module after the change, which stays in the tree: for a fork."""
    if mutant is not None:
        mutant.apply()
    return compile(ast.fix_missing_locations(tree), "mutant", "exec")


class Finder(importlib.machinery.SourceFileLoader):
    """Imports one module as given code."""

    def __init__(self, name: str, path: str, code: Any):
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> Any:
        """The mutant, in place of what the file has."""
        return self.code

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Ours, for this name only."""
        return importlib.util.spec_from_loader(name, self) if name == self.name else None


def alive(tree: ast.Module, mutant: Mutant | None, module: str, told: Path | None = None) -> str:
    """Run the tests of a module on a mutant of it, in a fork: "survived", "killed" or "timed out"."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = _tested(tree, mutant, module, told)
        finally:
            os._exit(code)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def _tested(tree: ast.Module, mutant: Mutant | None, module: str, told: Path | None) -> int:
    import pytest

    out = os.open(told or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(2 * SECONDS), int(2 * SECONDS)))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = (
        "1"  # plugins are found anew by every start, which takes longer than tests
    )
    name = "rowcol." + module.replace("/", ".")
    sys.meta_path.insert(0, Finder(name, str(HOME / "src" / "rowcol" / f"{module}.py"), mutated(tree, mutant)))
    quick = ["-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--assert=plain", "--tb=line"]
    unless = " or ".join(["slow_as_python", *SLOW])
    return int(pytest.main([*quick, "-m", "not slow", "-k", f"not ({unless})", *TESTS[module]]))


def spared(one: Mutant, table: Table) -> str | None:
    """The reason this mutant is in a table of spared.py, if it is: by its line, or what became of it."""
    for reason, places in table.items():
        for module, function, text in places:
            there = (module, function) == (one.module, one.function)
            if there and (text in (one.line, one.change) or (text[-1] == "*" and one.line.startswith(text[:-1]))):
                return reason
    return None


def judged(chosen: list[tuple[ast.Module, Mutant]], seconds: float, go_on: bool) -> dict[str, str]:
    """What became of each, also in KEPT; there is what an earlier run found, to go on from."""
    found = dict(map(json.loads, KEPT.read_text().splitlines())) if go_on and KEPT.exists() else {}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    with KEPT.open("a" if go_on else "w") as file:
        for tree, one in chosen:
            if str(one) not in found and time.monotonic() < until:
                found[str(one)] = alive(tree, one, one.module)
                if found[str(one)] == "survived" and spared(one, SURVIVE) is None:
                    print(f"survived: {one}", flush=True)
                print(json.dumps([str(one), found[str(one)]]), file=file, flush=True)
    return {str(one): found[str(one)] for _, one in chosen if str(one) in found}


def prepare(modules: Iterable[str]) -> None:
    """Import all that is not ours, for the forks; where the tests do not pass as it is, there is nothing to learn."""
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to find plugins takes every start longer than its tests
    sys.path.insert(0, str(HOME / "src"))
    os.chdir(HOME)
    for name in OTHERS.split():
        importlib.import_module(name)
    assert "rowcol" not in sys.modules, "a fork must import rowcol by itself"
    for module in modules:
        assert alive(mutants(module)[0], None, module) == "survived", f"the tests of {module} fail as it is"


def everything(only: str = "") -> tuple[list[tuple[ast.Module, Mutant]], list[Mutant]]:
    """Mutants to judge, and those set aside."""
    chosen, aside = [], []
    for module in (one for one in TESTS if only in one):
        tree, made = mutants(module)
        aside += [one for one in made if spared(one, ASIDE)]
        chosen += [(tree, one) for one in made if not spared(one, ASIDE)]
    return chosen, aside


def stale(table: Table, there: list[Mutant]) -> list[str]:
    """Places in a table of spared.py that no mutant is at."""
    places = {(reason, place) for reason, places in table.items() for place in places}
    return sorted(str(place) for reason, place in places if not any(spared(one, {reason: [place]}) for one in there))


def told(table: Table, there: list[Mutant]) -> str:
    """Markdown: each reason, and the mutants it is given for, by their lines."""
    lines = []
    for reason in table:
        lines += ["", f"**{reason[0].upper()}{reason[1:]}.**", ""]
        named = Counter(
            f"`{one.line}` in {one.module}.py" + (f", `{one.function}`" if one.function else "")
            for one in there
            if spared(one, table) == reason
        )
        lines += [f"- {name}" + (f" ({count} changes)" if count > 1 else "") for name, count in named.items()]
    return "\n".join(lines).strip()


def report(chosen: list[tuple[ast.Module, Mutant]], aside: list[Mutant], found: dict[str, str]) -> bool:
    """Write the counts and the pages; is all well?"""
    from conftest import note  # not before: the forks have a conftest of their own

    survivors = [one for _, one in chosen if found[str(one)] == "survived"]
    loose = [one for one in survivors if spared(one, SURVIVE) is None]
    count = Counter(found[str(one)] for _, one in chosen)
    share = 1 - len(survivors) / len(chosen)
    note(
        "mutants", mutants=len(chosen) + len(aside), set_aside=len(aside), killed=count["killed"],
        timed_out=count["timed out"], survived_with_a_reason=len(survivors) - len(loose),
        survived_without_one=len(loose), killed_or_timed_out_of_those_not_set_aside=f"{100 * share:.1f} %",
    )  # fmt: skip
    text = PAGE.read_text()
    for mark, content in (("survivors", told(SURVIVE, survivors)), ("aside", told(ASIDE, aside))):
        start, rest = text.split(f"<!-- {mark} -->")
        text = f"{start}<!-- {mark} -->\n\n{content}\n\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}"
    PAGE.write_text(text)
    old = stale(SURVIVE, survivors) + stale(ASIDE, aside)
    print(f"{share:.1%} of {len(chosen)} killed; without a reason {len(loose)}; reasons that nothing needs: {old}")
    return share >= 0.9 and not loose and not old


def main() -> int:
    """See the top of this file."""
    said = argparse.ArgumentParser(description="Change one thing at a time, and see whether a test minds.")
    said.add_argument("--only", default="", help="modules whose name has this")
    said.add_argument("--every", type=int, default=1, help="every so many mutants only")
    said.add_argument("--change", action="append", help="this one only: the line as the mutant has it")
    said.add_argument("--minutes", type=float, default=60.0, help="stop after so many")
    said.add_argument("--go-on", action="store_true", help="with what an earlier run has not judged")
    asked = said.parse_args()
    began, (chosen, aside) = time.monotonic(), everything(asked.only)
    if asked.change:
        trees = {one.module: tree for tree, one in chosen}
        made = [one for _, one in chosen] + aside
        chosen = [(trees[one.module], one) for one in made if one.change in asked.change]
    chosen = chosen[:: asked.every]
    prepare(dict.fromkeys(one.module for _, one in chosen))
    found = judged(chosen, 60 * asked.minutes, asked.go_on)
    print(f"{len(found)} of {len(chosen)} in {time.monotonic() - began:.0f} s: {dict(Counter(found.values()))}")
    if asked.only or asked.change or asked.every > 1 or len(found) < len(chosen):
        return int(any(found.get(str(one)) == "survived" and not spared(one, SURVIVE) for _, one in chosen))
    return int(not report(chosen, aside, found))


if __name__ == "__main__":
    sys.exit(main())

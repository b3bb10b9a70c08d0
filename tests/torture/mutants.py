"""Do the tests test? Change one small thing of the engine or of a certificate at a time, and see whether a test minds.

`make mutants` does so for every change there is: rowcol and the tests of a module are imported once, the engine as
plain Python (NUMBA_DISABLE_JIT=1), and every mutant is a fork of that process, which takes the mutated functions' code
in place of the original (in memory: no file is touched) and runs the tests until one fails.

    python tests/torture/mutants.py [--only certify] [--every 7] [--go-on]

spared.py says which changes are set aside, because they change nothing but speed or are no Python, and why each
survivor is no hole in the tests. A survivor without a reason, or a reason without a survivor, is an error.
(An own one: cosmic-ray starts the tests anew for every mutant, mutmut 3 leaves alone what is outside of functions.)
"""

from __future__ import annotations

import argparse
import ast
import json
import numbers
import os
import resource
import signal
import sys
import time
import types
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

from mutations import HOME, Mutant, mutants
from spared import ASIDE, SURVIVE

PAGE = HOME / "docs" / "mutants.md"
TESTS = {
    "engine/across": ["tests/engine/test_across.py"],
    "engine/alias": ["tests/engine/test_alias.py"],
    "engine/lines": ["tests/engine/test_bodies.py", "tests/engine/test_lines.py"],
    "engine/tiles": ["tests/engine/test_tiles.py"],
    "core/certify": [
        f"tests/core/test_{name}.py" for name in ("certify", "looks", "half_looks", "kernel_looks", "no_looks")
    ],
}
# hundreds of examples each, as plain Python: seconds a mutant
SLOW = "takes_alone_bit_for_bit or cutting_the_picks"
SECONDS = 20  # of computing: a mutant that takes longer hangs, as the tests take one or two
MEMORY = 6 << 30  # bytes: a mutant that asks for more shall not bring the machine down
Table = dict[str, list[tuple[str, str, str]]]


def mutated(tree: ast.Module, mutant: Mutant | None) -> types.CodeType:
    """The code of a module after the change, which stays in the tree: for a fork."""
    if mutant is not None:
        mutant.apply()
    return compile(ast.fix_missing_locations(tree), "mutant", "exec")


def become(module: str, code: types.CodeType, constants: bool) -> None:
    """Let every function of an imported module be as the code has it, for all who have imported it; and constants."""
    name = "rowcol." + module.replace("/", ".")
    there = vars(sys.modules[name])
    bodies = {c.co_qualname: c for c in code.co_consts if isinstance(c, types.CodeType)}
    for f in list(there.values()):
        if isinstance(f, types.FunctionType) and f.__module__ == name and f.__qualname__ in bodies:
            f.__code__ = bodies[f.__qualname__]
    if constants:
        fresh: dict[str, Any] = {"__name__": name, "__package__": name.rpartition(".")[0]}
        exec(code, fresh)
        for key, old in list(there.items()):
            if isinstance(old, numbers.Number) and fresh[key] != old:
                for one in list(sys.modules.values()):
                    if getattr(one, "__dict__", {}).get(key) is old:
                        setattr(one, key, fresh[key])


class Judge:
    """In place of pytest's loop over the tests: on every mutant of a module, in a fork, until one fails."""

    def __init__(
        self, module: str, tree: ast.Module, chosen: list[Mutant], found: dict[str, str], kept: Any, until: float
    ):
        self.module, self.tree, self.chosen, self.found, self.kept, self.until = (
            module,
            tree,
            chosen,
            found,
            kept,
            until,
        )

    def pytest_runtestloop(self, session: Any) -> bool:
        """The hook."""
        self.items = list(session.items)
        assert self.judged(session, None) == "survived", f"the tests of {self.module} fail as it is"
        for one in self.chosen:
            if str(one) not in self.found and time.monotonic() < self.until:
                self.found[str(one)] = self.judged(session, one)
                if self.found[str(one)] == "survived" and spared(one, SURVIVE) is None:
                    print(f"survived: {one}", flush=True)
                print(json.dumps([str(one), self.found[str(one)]]), file=self.kept, flush=True)
        return True

    def judged(self, session: Any, mutant: Mutant | None) -> str:
        """What becomes of one mutant."""
        child = os.fork()
        if child == 0:
            code = 254
            try:
                code = self.tried(session, mutant)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            return "timed out"
        if os.WIFEXITED(status) and 0 < os.WEXITSTATUS(status) <= len(self.items):  # who killed one, kills the next
            self.items.insert(0, self.items.pop(os.WEXITSTATUS(status) - 1))
        assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) < 255, f"this is no program: {mutant}"
        return "survived" if status == 0 else "killed"

    def tried(self, session: Any, mutant: Mutant | None) -> int:
        """In the fork: which of the tests failed first, from one on, or none; 255 for what is no program."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(10 * SECONDS)  # and one that waits, without computing
        try:
            become(self.module, mutated(self.tree, mutant), mutant is not None and not mutant.function)
        except BaseException:
            return 255
        for k, item in enumerate(self.items):
            after = self.items[k + 1] if k + 1 < len(self.items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                return min(k + 1, 254)
        return 0


def spared(one: Mutant, table: Table) -> str | None:
    """The reason this mutant is in a table of spared.py, if it is: by its line, or what became of it."""
    for reason, places in table.items():
        for module, function, text in places:
            there = (module, function) == (one.module, one.function)
            if there and (text in (one.line, one.change) or (text[-1] == "*" and one.line.startswith(text[:-1]))):
                return reason
    return None


def judged(chosen: list[tuple[ast.Module, Mutant]], seconds: float, kept: Path, go_on: bool) -> dict[str, str]:
    """What became of each, also in a file; there is what an earlier run found, to go on from."""
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    sys.path.insert(0, str(HOME / "src"))
    sys.path[:] = [one for one in sys.path if one != str(HOME / "tests" / "torture")]  # it has a conftest.py of its own
    os.chdir(HOME)
    import pytest

    found = dict(map(json.loads, kept.read_text().splitlines())) if go_on and kept.exists() else {}
    kept.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    quiet = ["-x", "-q", "-s", "-o", "addopts=", "-p", "no:cacheprovider", "--assert=plain", "--tb=no", "--no-summary"]
    with kept.open("a" if go_on else "w") as file:
        for module in dict.fromkeys(one.module for _, one in chosen):
            own = [(tree, one) for tree, one in chosen if one.module == module]
            judge = Judge(module, own[0][0], [one for _, one in own], found, file, until)
            pytest.main([*quiet, "-m", "not slow", "-k", f"not ({SLOW})", *TESTS[module]], plugins=[judge])
    return {str(one): found[str(one)] for _, one in chosen if str(one) in found}


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
        there_for = [one for one in there if spared(one, table) == reason]
        for name, own in groupby(there_for, lambda one: (one.line, f"{one.module}.py", one.function)):
            changes = list(own)
            became = f", became `{changes[0].change}`" if len(changes) == 1 else f" ({len(changes)} changes)"
            lines.append(f"- `{name[0]}`{became}, in {name[1]}" + (f", `{name[2]}`" if name[2] else ""))
    return "\n".join(lines).strip()


def report(chosen: list[tuple[ast.Module, Mutant]], aside: list[Mutant], found: dict[str, str]) -> bool:
    """Write the counts and the pages; is all well?"""
    sys.path.insert(0, str(HOME / "tests" / "torture"))
    sys.modules.pop("conftest", None)
    from conftest import note

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
    said.add_argument("--kept", type=Path, default=HOME / "build" / "torture" / "mutants.jsonl", help="what was found")
    asked = said.parse_args()
    began, (chosen, aside) = time.monotonic(), everything(asked.only)
    if asked.change:
        trees = {one.module: tree for tree, one in chosen}
        made = [one for _, one in chosen] + aside
        chosen = [(trees[one.module], one) for one in made if one.change in asked.change]
    chosen = chosen[:: asked.every]
    found = judged(chosen, 60 * asked.minutes, asked.kept, asked.go_on)
    print(f"{len(found)} of {len(chosen)} in {time.monotonic() - began:.0f} s: {dict(Counter(found.values()))}")
    if asked.only or asked.change or asked.every > 1 or len(found) < len(chosen):
        return int(any(found.get(str(one)) == "survived" and not spared(one, SURVIVE) for _, one in chosen))
    return int(not report(chosen, aside, found))


if __name__ == "__main__":
    sys.exit(main())

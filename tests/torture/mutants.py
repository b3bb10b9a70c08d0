"""Do the tests test? Change one small thing of the engine or of a certificate at a time, and see whether a test minds.

`make mutants` does so for every change there is, in under an hour on one core: the engine runs as plain Python
(NUMBA_DISABLE_JIT=1), all that is not ours is imported once, and every mutant is a fork of that process, which imports
rowcol with the mutated module (made in memory: no file is touched) and runs the tests of that module until one fails.

    python tests/torture/mutants.py [--every 7] [--only certify] [--page]

spared.py says which changes are set aside, because they change nothing but speed or are no Python, and why each
survivor is no hole in the tests. A survivor without a reason, or a reason without a survivor, is an error.
(mutmut and cosmic-ray start a process a mutant, or rewrite functions that Numba's `overload` finds by name: neither
would be done within hours here.)
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spared import ASIDE, SURVIVE

HOME = Path(__file__).parents[2]
KEPT = HOME / "build" / "torture" / "mutants.jsonl"
TESTS = {
    "engine/across": ["tests/engine/test_across.py"],
    "engine/alias": ["tests/engine/test_alias.py"],
    "engine/lines": ["tests/engine/test_lines.py"],
    "engine/tiles": ["tests/engine/test_tiles.py"],
    "core/certify": ["tests/core/test_certify.py", "tests/core/test_looks.py"],
}
# hundreds of examples each, as plain Python: seconds a mutant
SLOW = ["takes_alone_bit_for_bit", "cutting_the_picks"]
SECONDS = 20.0  # a mutant that takes longer hangs: the tests take one or two
MEMORY = 6 << 30  # bytes: a mutant that asks for more shall not bring the machine down
OTHERS = ["numpy", "scipy.sparse.linalg", "scipy.optimize", "numba", "numba.extending", "llvmlite.ir", "sklearn.base"]
OTHERS += [
    "threadpoolctl",
    "pytest",
    "_pytest.doctest",
    "hypothesis",
    "hypothesis.strategies",
    "mpmath",
    "concurrent.futures",
]

ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitOr,
}  # fmt: skip
COMPARED = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is],
}  # fmt: skip
SWAPPED = {"min": "max", "max": "min", "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any"}
REMOVED = {"sqrt", "conj", "abs", "float64"}  # f(x) becomes x


class Mutant(NamedTuple):
    """One change."""

    module: str  # "engine/lines"
    function: str
    number: int  # the line it is on
    line: str  # as it was
    change: str  # as it is now
    apply: Any  # makes the change in the parsed module

    def __str__(self) -> str:
        return f"{self.module}.py:{self.number} {self.function}: `{self.line}` became `{self.change}`"


def mutants(module: str) -> tuple[ast.Module, list[Mutant]]:
    """The parsed module, and all changes of it."""
    text = (HOME / "src" / "rowcol" / f"{module}.py").read_text()
    tree = ast.parse(text)
    found = []
    for node, function, bound in _code(tree, "", set()):
        for now, apply in _changes(node, bound):
            line = text.splitlines()[node.lineno - 1]
            found.append(Mutant(module, function, node.lineno, _plain(line), _plain(_spliced(line, node, now)), apply))
    return tree, found


def _plain(line: str) -> str:
    return line.split("  #")[0].strip()


def _spliced(line: str, node: Any, now: str) -> str:
    """A line with what a node is now in place of what it was; of a node of several lines, just that."""
    if node.end_lineno != node.lineno:
        return now
    raw = line.encode()
    return (raw[: node.col_offset] + now.encode() + raw[node.end_col_offset :]).decode()


def _code(node: ast.AST, function: str, bound: set[str]) -> Iterator[tuple[Any, str, set[str]]]:
    """Nodes that run, each with the function it is in and the names that are bound before it."""
    if isinstance(node, ast.FunctionDef):
        function, inside = f"{function}.{node.name}".strip("."), {a.arg for a in node.args.args}
        for statement in node.body:
            yield from _code(statement, function, inside)
        return
    if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
        return
    yield node, function, set(bound)
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _code(child, function, bound)
    bound |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _changes(node: Any, bound: set[str]) -> Iterator[tuple[str, Any]]:
    """What the node is now, and how to make it so, in place."""

    def put(field: str, value: Any) -> tuple[str, Any]:
        kept = getattr(node, field)
        setattr(node, field, value)
        text = ast.unparse(node).splitlines()[0]
        setattr(node, field, kept)
        return text, lambda: setattr(node, field, value)

    def whole(value: ast.AST) -> tuple[str, Any]:
        def apply() -> None:
            ast.copy_location(value, node)
            node.__class__, node.__dict__ = value.__class__, {**value.__dict__}
            ast.fix_missing_locations(node)

        text = ast.unparse(value)
        return f"({text})" if isinstance(value, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp)) else text, apply

    match node:
        case ast.BinOp() | ast.AugAssign() if type(node.op) in ARITHMETIC:
            yield put("op", ARITHMETIC[type(node.op)]())
        case ast.BoolOp():
            yield put("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield whole(operand)
        case ast.Compare(ops=[op]):
            for other in COMPARED.get(type(op), []):
                yield put("ops", [other()])
        case ast.Compare(ops=ops):
            for k, op in enumerate(ops):
                for other in COMPARED.get(type(op), []):
                    yield put("ops", [*ops[:k], other(), *ops[k + 1 :]])
        case ast.Constant(value=bool(value)):
            yield put("value", not value)
        case ast.Constant(value=int(value)):
            yield put("value", value + 1)
            yield put("value", value - 1)
        case ast.Constant(value=float(value)):
            if value + 1.0 != value:
                yield put("value", value + 1.0)
            if value:
                yield put("value", -value)
        case ast.Call(func=ast.Name(id="range"), args=args):
            k = 0 if len(args) == 1 else 1
            less = ast.BinOp(args[k], ast.Sub(), args[2] if len(args) == 3 else ast.Constant(1))
            yield put("args", [*args[:k], less, *args[k + 1 :]])
            if k and not isinstance(args[0], ast.Constant):
                yield put("args", [ast.BinOp(args[0], ast.Add(), ast.Constant(1)), *args[1:]])
        case ast.Call(func=ast.Name(id=name) as func, args=args) if name in SWAPPED and len(args) > 1:
            yield put("func", ast.Name(SWAPPED[name], func.ctx))
        case ast.Call(func=ast.Attribute(attr=name) as func) if name in SWAPPED:
            yield put("func", ast.Attribute(func.value, SWAPPED[name], func.ctx))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[arg]) if name in REMOVED:
            yield whole(arg)
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
        yield put("test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, (ast.AugAssign, ast.Expr, ast.Raise, ast.Break, ast.Continue)) or (
        isinstance(node, ast.Assign) and bound and _again(node, bound)
    ):
        yield whole(ast.Pass())


def _again(node: ast.Assign, bound: set[str]) -> bool:
    """Is nothing named here that was not before? Then the statement can go without a NameError."""
    return all(n.id in bound for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name))


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


def spared(one: Mutant, table: dict[str, list[tuple[str, str, str]]]) -> str | None:
    """The reason this mutant is in a table of spared.py, if it is: by its function, its line, or what became of it."""
    for reason, places in table.items():
        for module, function, text in places:
            if (module, function) == (one.module, one.function) and text in ("*", one.line, one.change):
                return reason
    return None


def judged(chosen: list[tuple[ast.Module, Mutant]], seconds: float, kept: Path | None = None) -> dict[str, str]:
    """What became of each; `kept` has what an earlier run found, and gets what this one finds."""
    found = dict(map(json.loads, kept.read_text().splitlines())) if kept and kept.exists() else {}
    until = time.monotonic() + seconds
    for tree, one in chosen:
        if str(one) not in found and time.monotonic() < until:
            found[str(one)] = alive(tree, one, one.module)
            if found[str(one)] == "survived" and spared(one, SURVIVE) is None:
                print(f"survived: {one}", flush=True)
            if kept:
                with kept.open("a") as file:
                    file.write(json.dumps([str(one), found[str(one)]]) + "\n")
    return found


def prepare() -> None:
    """Import all that is not ours, for the forks; where the tests do not pass as it is, there is nothing to learn."""
    for name in OTHERS:
        importlib.import_module(name)
    assert "rowcol" not in sys.modules, "a fork must import rowcol by itself"


def everything(only: str = "", every: int = 1) -> tuple[list[tuple[ast.Module, Mutant]], list[Mutant]]:
    """Mutants to judge, and those set aside."""
    chosen, aside = [], []
    for module in TESTS:
        tree, made = mutants(module)
        if only in module:
            aside += [one for one in made if spared(one, ASIDE)]
            chosen += [(tree, one) for one in made if not spared(one, ASIDE)]
    return chosen[::every], aside


def main() -> None:
    """See the top of this file."""
    said = argparse.ArgumentParser(description="Change one thing at a time, and see whether a test minds.")
    said.add_argument("--only", default="", help="modules whose name has this")
    said.add_argument("--every", type=int, default=1, help="every so many mutants only")
    said.add_argument("--minutes", type=float, default=60.0, help="stop after so many")
    said.add_argument("--go-on", action="store_true", help="with what an earlier run has not judged")
    asked = said.parse_args()
    prepare()
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    if not asked.go_on:
        KEPT.unlink(missing_ok=True)
    began, (chosen, aside) = time.monotonic(), everything(asked.only, asked.every)
    for module in TESTS:
        assert asked.only not in module or alive(mutants(module)[0], None, module) == "survived", f"{module}: as it is"
    found = judged(chosen, 60 * asked.minutes, KEPT)
    print(f"{time.monotonic() - began:.0f} s: {dict(Counter(found.values()))}, {len(aside)} set aside")


if __name__ == "__main__":
    main()

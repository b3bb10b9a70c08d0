"""The mutants of a module: small changes of its code, one at a time, by its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).parents[2]

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


def mutants(module: str, text: str = "") -> tuple[ast.Module, list[Mutant]]:
    """The parsed module, and all changes of it."""
    text = text or (HOME / "src" / "rowcol" / f"{module}.py").read_text()
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

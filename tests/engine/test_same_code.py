"""Compiled code has the same bits whether it was just compiled or comes from Numba's cache.

A compiled function that calls another one, and does not contain it, has a copy of it, of which the process keeps the
first that was loaded; copies differ, as LLVM optimises them at other times. So nothing is called: all is contained.
"""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rowcol.engine

FILES = sorted(path for path in Path(rowcol.engine.__file__).parent.glob("*.py") if path.name != "__init__.py")


def keywords(call):
    return {one.arg: ast.unparse(one.value) for one in call.keywords}


def compiled(tree):
    """Functions that are compiled by themselves, and with what."""
    for node in tree.body:
        for one in getattr(node, "decorator_list", []):
            if isinstance(one, ast.Call) and ast.unparse(one.func) == "njit":
                yield node, keywords(one)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_compiled_code_calls_is_part_of_it(path):
    tree = ast.parse(path.read_text())
    known = {node.name: how for node, how in compiled(tree)}
    assert known
    free = "fastmath" in getattr(importlib.import_module(f"rowcol.engine.{path.stem}"), "JIT", ["fastmath"])
    for node, _ in compiled(tree):
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in known:
                how = known[call.func.id]
                assert how.get("forceinline") == "True" or not free, f"{node.name} calls {call.func.id}"
    flags = {
        node.targets[0].id: ast.literal_eval(ast.unparse(node.value).replace("FAST", "0").replace("EXACT", "0"))
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("_FLAGS", "_EXACT", "_INLINE")
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "overload":
            how = {}
            for one in call.keywords:
                given = flags[ast.unparse(one.value)] if one.arg is None else {one.arg: ast.unparse(one.value)}
                how |= given
            inside = str(how.get("inline")).strip("'") == "always" or "forceinline" in str(how.get("jit_options"))
            assert inside, ast.unparse(call)


SOLVES = """
import hashlib, sys, warnings
import numpy as np, scipy.sparse as sp
import rowcol
rng = np.random.default_rng(0)
X, y = rng.standard_normal((301, 37)), rng.standard_normal(301)
Z, t = X + 1j * rng.standard_normal(X.shape), rng.standard_normal((301, 2))
S, P = sp.random_array((400, 90), density=0.07, rng=rng, format="csr"), rng.standard_normal((800, 60))
ones = S @ np.ones(90)
asked = [
    (X, y, dict(bounds=(0, 0.1), alpha=0.1, n_jobs=1)), (X, y, dict(bounds=(0, 0.1), alpha=0.1, n_jobs=2)),
    (Z, Z @ np.ones(37), dict(method="rk")), (Z, t, dict(method="rcd")), (S, ones, dict(method="rek", tol=1e-3)),
    (P, P[:, :2], dict(kernel="rbf", alpha=0.5, method="pcg")), (X.T.copy(), y[:37], dict(method="rk", alpha=1.0)),
]
for A, b, how in asked[:: int(sys.argv[1])]:
    x = rowcol.solve(A, b, **{"random_state": 0, "tol": 1e-6} | how).x
    print(hashlib.md5(np.ascontiguousarray(x).tobytes()).hexdigest())
"""


def test_bits_are_those_of_the_cache_and_do_not_depend_on_what_came_before(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("NUMBA_DISABLE_JIT", None)
    found = []
    for way in ("1", "1", "-1"):  # compiled, from the cache, and the other way round
        words = [sys.executable, "-W", "ignore", "-c", SOLVES, way]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split()[:: int(way)])
    assert len(found[0]) == 7
    assert found[0] == found[1] == found[2]
    assert found[0][0] == found[0][1]  # by one thread or two

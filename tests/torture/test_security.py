"""Named forgeries, what the source may not say, and names from files as a terminal sees them."""

import ast
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import forging
import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from rowcol.cli.common import note, one_line, say_json, shortened
from rowcol.files import plain
from rowcol.files.matrices import matrix_from
from rowcol.files.table import table_from

HOME = Path(__file__).parents[2]
SOURCE = sorted((HOME / "src").rglob("*.py"))
X = np.random.default_rng(0).standard_normal((12, 4))
y = X[:, 0] + 1


# --- what the source does not say ------------------------------------------------------------------------------------

MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "subprocess",
    "yaml",
    "xml",
    "socket",
    "urllib",
}
CALLS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
METHODS = {("os", "system"), ("os", "popen"), ("yaml", "load"), ("tempfile", "mktemp"), ("re", "compile_command")}


def dangerous(text):
    """What in a source could run what is in a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (one for one in named if one.split(".")[0] in MODULES and not getattr(node, "level", 0))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield node.func.id
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                yield from [node.func.attr] * ((node.func.value.id, node.func.attr) in METHODS)
            for key in node.keywords:
                if key.arg in ("shell", "allow_pickle") and not (
                    isinstance(key.value, ast.Constant) and key.value.value is False
                ):
                    yield key.arg


def test_no_source_runs_what_a_file_says(tally):
    for path in SOURCE:
        assert not list(dangerous(path.read_text())), path.name
        for line in path.read_text().splitlines():
            assert "np.load(" not in line or "allow_pickle=False" in line, f"{path.name}: {line}"
    assert len(SOURCE) > 100
    tally("security", source_files_without_eval_or_pickle=len(SOURCE))


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "eval(x)",
        "os.system('x')",
        "f(shell=True)",
        "np.load(p, allow_pickle=True)",
        "np.load(p, allow_pickle=given)",
        "def f():\n    import subprocess as s",
    ],
)
def test_the_walk_sees_it(text):
    assert list(dangerous(text))


# --- named forgeries -------------------------------------------------------------------------------------------------


def refused(path, ask, says):
    with pytest.raises(ValueError, match=says) as wrong:
        ask(path)
    assert len(str(wrong.value).splitlines()) == 1
    assert path.name in str(wrong.value)


def members(path):
    with zipfile.ZipFile(path) as held:
        return {one.filename: held.read(one) for one in held.infolist()}


def put_together(path, parts):
    path.write_bytes(forging.zipped([forging.Part(name.encode(), content) for name, content in parts.items()]))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good"
    rowcol.save(rowcol.KernelRidge(0.1, kernel="rbf", random_state=0).fit(X, y), path)
    return members(path)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "-" * 9000 + "1,)}",
        "~" * 9000 + "1",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    ],
)
def test_a_header_that_overruns_pythons_stack_or_declares_a_terabyte(header, good, tmp_path):
    put_together(tmp_path / "forged", good | {"0.npy": forging.headed(header, bytes(8))})
    refused(tmp_path / "forged", rowcol.load, "damaged")


def test_our_own_zips_are_those_of_zipfile(good, tmp_path):
    """Without lies the forger's files are good ones: forgeries are refused for their lies."""
    put_together(tmp_path / "good", good)
    assert members(tmp_path / "good") == good
    assert rowcol.load(tmp_path / "good").predict(X).shape == (12,)


def test_a_small_file_cannot_name_an_array_a_million_times(monkeypatch):
    monkeypatch.setattr(plain, "FREE", 10_000)
    arrays = [np.ones(100), np.arange(100), np.arange(101), np.zeros(100, bool)]
    one = {
        "$sparse": "csr",
        "shape": [100, 100],
        "data": {"$array": 0},
        "indices": {"$array": 1},
        "indptr": {"$array": 2},
    }
    assert len(plain.Unpacking(arrays).unpack([one] * 9)) == 9
    with pytest.raises(ValueError, match="far more memory than the file has"):
        plain.Unpacking(arrays, room=10_000).unpack([one] * 1000)
    tall = {"$sparse": "csc", "shape": [10**15, 100], **{k: v for k, v in one.items() if k not in ("$sparse", "shape")}}
    with pytest.raises(ValueError, match="far more memory"):
        plain.Unpacking(arrays).unpack(tall)
    with pytest.raises(ValueError, match="a mask does not go"):
        plain.Unpacking(arrays).unpack({"$masked": {"$array": 0}, "mask": {"$array": 0}})
    masked = plain.Unpacking(arrays).unpack({"$masked": {"$array": 0}, "mask": {"$array": 3}})
    assert np.shares_memory(masked.data, arrays[0])


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_sparse_files_that_lead_out_of_their_shape(name, tmp_path):
    A = sp.csr_array(np.eye(5))
    parts = {"data": A.data, "indices": A.indices.copy(), "indptr": A.indptr.copy()}
    parts[name][2] = 10**8
    np.savez(tmp_path / "forged.npz", format=np.array(b"csr"), shape=np.array([5, 5]), **parts)
    refused(tmp_path / "forged.npz", matrix_from, "cannot be read")
    refused(tmp_path / "forged.npz", table_from, "cannot be read")


MARKET = {
    "too many values": ("array real general\n2 2\n" + "1\n" * 9, "declares 4 values, and has 9"),
    "too few": ("array real general\n2 2\n1\n", "declares 4 values, and has 1"),
    "not square": ("array real symmetric\n2 5\n" + "1\n" * 4, "2 x 5, and symmetric"),
    "none": ("array real general\n0 3\n1\n", "declares 0 values, and has 1"),
    "huge": ("coordinate real general\n3000000000 3 1\n1 1 2\n", "more than the file can hold"),
    "dense and huge": ("array real general\n300000 300000\n1\n", "more than the file can hold"),
    "outside": ("coordinate real general\n3 3 1\n4 1 2\n", "outside of 3 x 3"),
    "zeroth": ("coordinate real general\n3 3 1\n0 1 2\n", "outside of 3 x 3"),
    "half a place": ("coordinate real general\n3 3 1\n1.5 1 2\n", "outside of 3 x 3"),
    "zeros in text": ("coordinate real general\n3 3 1\n1 1 \x00\x00\n", "cannot be read"),
    "no numbers": ("coordinate real general\n3 3 1\n1 1 x\n", "cannot be read"),
    "pattern with values": ("coordinate pattern general\n3 3 1\n1 1 2\n", "3 numbers in a line, and not 2"),
    "no sizes": ("coordinate real general\n-3 3 1\n", "how many rows"),
    "other": ("coordinate quaternion general\n3 3 1\n1 1 2\n", "is not known"),
}


@pytest.mark.parametrize("name", MARKET)
def test_matrix_market_files_that_ended_the_process_or_lie(name, tmp_path):
    text, says = MARKET[name]
    (tmp_path / "forged.mtx").write_text("%%MatrixMarket matrix " + text)
    refused(tmp_path / "forged.mtx", matrix_from, says)
    refused(tmp_path / "forged.mtx", table_from, says)


@pytest.mark.parametrize("kind", ["real", "complex", "integer", "symmetric", "skew", "hermitian", "pattern", "empty"])
@pytest.mark.parametrize("sparse", [True, False])
def test_matrix_market_files_are_what_scipy_wrote(kind, sparse, tmp_path):
    import scipy.io

    A = np.random.default_rng(1).standard_normal((5, 5))
    A = A + 1j * A[::-1] if kind in ("complex", "hermitian") else np.round(9 * A) if kind == "integer" else A
    A = {"symmetric": A + A.T, "hermitian": A + A.conj().T, "skew": A - A.T, "empty": 0 * A}.get(kind, A)
    A[np.abs(A) < 0.5] = 0
    A = (A != 0).astype(float) if kind == "pattern" and sparse else A
    held = sp.coo_array(A.astype(int) if kind == "integer" else A) if sparse else A
    scipy.io.mmwrite(tmp_path / "A.mtx", held, field="pattern" if kind == "pattern" and sparse else None, precision=17)
    found = matrix_from(tmp_path / "A.mtx")
    assert sp.issparse(found) == sparse
    np.testing.assert_array_equal(found.toarray() if sparse else found, A)


def test_parameters_of_a_forged_checkpoint_are_the_files_fault(tmp_path):
    path = tmp_path / "forged"
    rowcol.solve(X, y, alpha=1.0, method="rk", max_passes=3, random_state=0, checkpoint=path, callback=lambda now: True)
    whole = members(path)
    tree = json.loads(whole["checkpoint.json"])
    for name, value in [("max_passes", {"$tuple": [1]}), ("bounds", [1]), ("x0", "x"), ("tol", {}), ("n_jobs", "all")]:
        told = tree | {"parameters": tree["parameters"] | {name: value}}
        put_together(path, whole | {"checkpoint.json": json.dumps(told).encode()})
        refused(path, lambda path: rowcol.resume(path, X, y), "^checkpoint: forged is damaged.*remove it")
    told = tree | {"problem": tree["problem"] | {"shape of y": ["long\n" * 999]}}
    put_together(path, whole | {"checkpoint.json": json.dumps(told).encode()})
    refused(path, lambda path: rowcol.resume(path, X, y), "is of another solve")
    put_together(path, whole)
    with pytest.raises(ValueError, match="y has") as wrong:  # that is no fault of the file's
        rowcol.resume(path, X, y[:-1])
    assert "damaged" not in str(wrong.value)

    def own(now):
        raise KeyError("of the user's own callback")

    with pytest.raises(KeyError, match="own callback"):
        rowcol.resume(path, X, y, callback=own)


# --- a terminal ------------------------------------------------------------------------------------------------------

NASTY = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202eevil\u2028\r\nnext\x00\x7f"


def control(text):
    """Characters by which a terminal is told to do something, and not to show it; a line may end."""
    return [one for one in text if not one.isprintable() and one != "\n"]


def test_names_from_files_do_not_command_a_terminal(capsys):
    assert control(NASTY), "the check has to see them"
    assert not control(one_line(NASTY) + shortened(NASTY))
    note("error", f"column {NASTY!s} is wrong [red]not markup[/red]")
    said = capsys.readouterr().err
    assert not control(said)
    assert said.count("\n") == 1
    assert "[red]not markup[/red]" in said
    say_json({NASTY: NASTY})
    assert json.loads(capsys.readouterr().out) == {NASTY: NASTY}


def test_commands_show_hostile_names_as_text(tmp_path, tally):
    """Columns, files, classes and a model's own words with escape sequences, by every command that shows them."""
    name = "a\x1b[31m\x9b2J\x07b"
    file = f"t{name}.csv"
    text = io.StringIO()
    text.write(f'"{name}","{NASTY.replace(chr(0), "")}",town\n')  # zeros are refused
    for k in range(12):
        text.write(f"{X[k, 0]},{X[k, 1]},{'Ulm' if k % 2 else 'x' + name}\n")
    (tmp_path / file).write_text(text.getvalue())
    asked = [
        ["solve", file, "--target", name, "--drop", "town"],
        ["solve", file, "--target", name],
        ["solve", file, "--target", f"no{name}"],
        ["fit", file, "--target", name, "--one-hot", "town", "-o", f"m{name}.rowcol", "-v"],
        ["predict", f"m{name}.rowcol", f"no{name}.csv"],
        ["evaluate", f"m{name}.rowcol", file],
        ["solve", f"no{name}.mtx", file],
        [f"no{name}"],
        ["solve", file, f"--no{name}"],
    ]
    script = f"""
import contextlib, io, json, os, sys
import rowcol.__main__
os.chdir({str(tmp_path)!r})
for words in {asked!r}:
    out, wrong, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        sys.argv = ["rowcol", *words]
        try:
            rowcol.__main__.main()
        except SystemExit as ended:
            code = ended.code
    print(json.dumps([code, out.getvalue(), wrong.getvalue()]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    told = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(told) == len(asked)
    assert [code or 0 for code, *_ in told] == [0, 2, 2, 0, 2, 0, 2, 2, 2], told
    for words, (_, out, wrong) in zip(asked, told, strict=True):
        assert not control(out + wrong), f"{words}: {out!r} {wrong!r}"
        assert out + wrong
    tally("security", commands_with_hostile_names=len(asked))

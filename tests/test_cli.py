"""The command line: what it prints, writes and returns."""

import gzip
import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

from oracle import scattered
from rowcol import zoo
from rowcol.cli import app
from rowcol.files.matrices import KINDS, matrix_from, vector_from

run = CliRunner()


@pytest.fixture
def case():
    return zoo.tall_consistent(n=40, p=5)


def test_a_study_is_told_and_written(tmp_path):
    out = tmp_path / "study.html"
    done = run.invoke(app, ["study", "--parts", "kernel", "--seeds", "4", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "✓" in done.output
    assert "6 of 6 claims held, over 4 seeds" in done.output
    assert str(out) in done.output.replace("\n", "")
    assert "Kernel ridge regression, one point at a time" in out.read_text()


def test_json_is_json_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run.invoke(app, ["study", "--parts", "kernel", "--seeds", "3", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert len(told["claims"]) == 6
    assert all(claim["holds"] for claim in told["claims"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_ones_own_matrix_from_every_kind_of_file(kind, case, tmp_path):
    X, y = tmp_path / f"X{kind}", tmp_path / f"y{kind}"
    for path, value in ((X, case.X), (y, case.y)):
        if ".mtx" in kind:
            with (gzip.open if kind.endswith("gz") else open)(path, "wb") as file:
                scipy.io.mmwrite(file, np.atleast_2d(value.T).T)
        elif kind == ".npy":
            np.save(path, value)
        elif kind == ".npz":
            np.savez(path, value)
        elif kind == ".mat":
            scipy.io.savemat(path, {"value": value})
        elif kind in (".h5", ".hdf5"):
            with h5py.File(path, "w") as held:
                held["value"] = value
        else:
            np.savetxt(path, value, delimiter={".csv": ",", ".tsv": "\t"}.get(kind, " "))
    np.testing.assert_allclose(matrix_from(X), case.X, rtol=1e-12)
    np.testing.assert_allclose(vector_from(y), case.y, rtol=1e-12)
    out = tmp_path / "own.html"
    done = run.invoke(app, ["study", "--matrix", str(X), "--target", str(y), "--seeds", "3", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "40 x 5" in out.read_text()


def test_sparse_files_stay_sparse(tmp_path):
    X = scattered(np.random.default_rng(0), 30, 8, 0.3, "coo")
    scipy.io.mmwrite(tmp_path / "X.mtx", X)
    sp.save_npz(tmp_path / "X.npz", X.tocsr())
    for name in ("X.mtx", "X.npz"):
        found = matrix_from(tmp_path / name)
        assert sp.issparse(found)
        np.testing.assert_allclose(found.toarray(), X.toarray())


class Trap:
    def __reduce__(self):
        return os.system, ("touch trapped",)


def test_files_that_cannot_be_read_are_named_and_run_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez("two.npz", a=np.eye(2), b=np.eye(2))
    np.save("cube.npy", np.zeros((2, 2, 2)))
    np.save("plane.npy", np.zeros((3, 3)))
    (tmp_path / "words.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "notes.pdf").write_text("x")
    for name, says in {
        "trap.npy": "cannot be read",
        "two.npz": "one array is wanted",
        "words.csv": "cannot be read",
        "empty.csv": "cannot be read",
        "short.npy": "cannot be read",
        "notes.pdf": "a matrix is read from",
        "cube.npy": "2 dimensions",
        "none.npy": "there is no file",
    }.items():
        done = run.invoke(app, ["study", "--matrix", name, "--seeds", "2"])
        assert done.exit_code == 2, (name, done.output)
        assert "error:" in done.stderr
        assert says in done.stderr.replace("\n", " "), (name, done.stderr)
        assert not (tmp_path / "trapped").exists()
    with pytest.raises(ValueError, match="one column"):
        vector_from("plane.npy")


def test_bad_options_have_exit_code_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options in (["--parts", "nonsense"], ["--seeds", "1"], ["--target", "y.npy"], ["--random-state", "-3"]):
        assert run.invoke(app, ["study", *options]).exit_code == 2
    done = run.invoke(app, ["study", "--parts", "kernel", "--seeds", "2", "--out", str(tmp_path / "no" / "x.html")])
    assert done.exit_code == 2
    assert "error:" in done.stderr
    assert run.invoke(app, ["report", "none.json"]).exit_code == 2


def test_a_claim_that_fails_is_the_exit_code(tmp_path, monkeypatch):
    from rowcol.studies import studying
    from rowcol.studies.parts import Part

    def lying(seeds, seed):
        part = Part("Lies", ["None of it."], seeds, seed)
        part.claim("[red]two[/red] is one", "1", "2", False)
        return part

    monkeypatch.setitem(studying.PARTS, "kernel", lying)
    done = run.invoke(app, ["study", "--parts", "kernel", "--seeds", "2", "--out", str(tmp_path / "x.html")])
    assert done.exit_code == 1
    assert "✗" in done.output
    assert "[red]two[/red] is one" in done.output  # text is text


def test_the_module_and_its_help():
    done = subprocess.run(
        [sys.executable, "-m", "rowcol", "study", "--help"], capture_output=True, text=True, check=True
    )
    assert "rowcol study --quick" in done.stdout
    assert "--matrix" in done.stdout


def test_what_spreadsheets_write_is_read(tmp_path):
    (tmp_path / "X.csv").write_bytes(b"\xef\xbb\xbf1,2\n3,5\n4,4\n")
    np.testing.assert_array_equal(matrix_from(tmp_path / "X.csv"), [[1, 2], [3, 5], [4, 4]])
    (tmp_path / "one.csv").write_text("1\n2\n3\n")
    assert matrix_from(tmp_path / "one.csv").shape == (3, 1)
    out = tmp_path / "one.html"
    done = run.invoke(app, ["study", "--matrix", str(tmp_path / "one.csv"), "--seeds", "2", "--out", str(out)])
    assert done.exit_code == 0, done.output


def test_where_a_report_cannot_go_is_said_before_the_study(tmp_path, monkeypatch):
    from rowcol.studies import studying

    monkeypatch.setattr(studying, "study", lambda *a, **k: pytest.fail("it was run"))
    for out in ("x.pdf", "none/x.html"):
        done = run.invoke(app, ["study", "--out", str(tmp_path / out)])
        assert done.exit_code == 2
        assert "path" in done.stderr


def test_names_of_files_are_text(tmp_path):
    name = os.fsdecode(b"[red]\xff[b].npy")
    np.save(tmp_path / name, np.arange(6.0).reshape(3, 2))
    out = tmp_path / "x.html"
    done = run.invoke(app, ["study", "--matrix", str(tmp_path / name), "--seeds", "2", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "[red]" in done.output
    assert "[red]" in out.read_text()

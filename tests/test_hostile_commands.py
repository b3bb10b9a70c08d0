"""Commands used wrongly, on odd files, without room to write, stopped and killed: one line, and whole output."""

import csv
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

import commanding
import rowcol
from rowcol.cli.bench import _shown
from rowcol.files.table import table_from
from rowcol.files.writing import written
from rowcol.racing.problems import own, small

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("torture")
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=["größe", "age", "price"])
    frame.to_csv(out / "train.csv", index=False)
    rowcol.save(rowcol.Ridge().fit(frame[["größe", "age"]], frame["price"]), out / "good.rowcol")
    return out


@pytest.fixture(scope="module")
def command(folder):
    with commanding.commands(folder) as ask:
        yield ask


def one_error(told, *says, code=2):
    """One line on stderr that says this, nothing on stdout, and the exit code."""
    found, out, wrong = told
    assert (found, out) == (code, ""), wrong
    assert wrong.startswith("error: ")
    assert wrong.count("\n") == 1
    assert "Traceback" not in wrong
    for one in says:
        assert one in wrong


# --- wrong usage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("solv",), ("no such command 'solv'", "'solve'", "rowcol --help")),
        (("solve",), ("missing argument", "rowcol solve --help")),
        (("fit", "train.csv", "--target", "price"), ("missing option '--out'",)),
        (("fit", "train.csv", "--targt", "price"), ("no such option: --targt", "--target")),
        (("fit", "train.csv", "--target", "a", "-o", "m", "--model", "rigde"), ("did you mean 'ridge'?",)),
        (("solve", "train.csv", "--alpha", "much"), ("--alpha",)),
        (("solve", "train.csv", "--alpha"), ("--alpha", "requires an argument")),
        (("solve", "a", "b", "c"), ("unexpected extra argument",)),
        (("bench", "--rounds", "0"), ("--rounds",)),
        (("bench", "--only", "nothing"), ("no problem is called nothing: there are tall, consistent",)),
        (("bench", "train.csv", "--target", "price", "-o", "race.txt"), ("name a .json file",)),
        (("solve", "train.csv", "--target", "pirce"), ("no column 'pirce': did you mean 'price'?",)),
        (("solve", "train.csv", "--target", "Price"), ("did you mean 'price'?",)),
        (("solve", "train.csv", "--target", "price", "--decimal", ";"), ("decimal must be",)),
    ],
)
def test_wrong_usage_is_one_line(words, says, command):
    one_error(command(*words), *says)


# --- odd files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        (b'a b,"c ""q"", d",\xf0\x9f\x8e\x88\n1,2,3\n', ("a b", 'c "q", d', "🎈"), 1.0),
        (b"\xef\xbb\xbfa,y\r\n1,2\r\n", ("a", "y"), 1.0),
        (b"a,b,\n1,2,\n3,4,\n", ("a", "b"), 1.0),
        (b"a;y\n1.5;2\n", ("a", "y"), 1.5),
        (b"a\ty\n1.5\t2\n", ("a", "y"), 1.5),
        (b"a,y\n1e5,2\n+3,4\n", ("a", "y"), 1e5),
        (b"a,y\nTrue,2\nFalse,4\n", ("a", "y"), 1.0),
        (b"a,y\n99999999999999999999999,2\n-3,4\n", ("a", "y"), 1e23),
        (b"a,y\nNA,1\n,2\n<NA>,3\nnull,4\n7,5\n", ("a", "y"), np.nan),
        (b"--alpha,y\n1,2\n", ("--alpha", "y"), 1.0),
    ],
)
def test_odd_but_legitimate_text_is_read(text, names, first, tmp_path):
    (tmp_path / "odd.csv").write_bytes(text)
    table = table_from(tmp_path / "odd.csv")
    assert table.names == names
    np.testing.assert_equal(table.numbers[0, 0], first)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,y\n0x1F,1\n0x20,2\n", "hexadecimal numbers, such as '0x1F'"),
        ("a,y\n1_000,1\n2_000,2\n", "numbers with underscores"),
        ('a,y\n"1,234.5",1\n"2,000.0",2\n', "commas for thousands (1,234.5)"),
        ('a,y\n"1,234",1\n"2,000",2\n', "if these are decimals, say --decimal ,"),
        ("a,y\n12%,1\n13%,2\n", "percentages, such as '12%'"),
        ("a,y\n2024-01-02,1\n2024-01-03,2\n", "dates, which are no numbers"),
        ("a,y\n€5,1\n€6,2\n", "amounts with a currency"),
        ("a,a,y\n1,2,3\n", "has two columns 'a'"),
        (",,y\n1,2,3\n", "columns without a name"),
        ("a,y\n1,2,3\n", "more values in a row than names"),
        ("1,2\n3,4\n", "its first line has numbers, where the names should be"),
        (" a , y \n1,2\n", "did you mean ' y '?"),
        ("a,b,y\n1,2\n2,3,4\n", "row 1 has no target 'y': leave out"),
    ],
)
def test_what_is_no_number_is_named(text, says, command, folder):
    (folder / "odd.csv").write_text(text)
    one_error(command("solve", "odd.csv", "--target", "y"), says)


def test_decimal_commas(command, folder):
    (folder / "de.csv").write_text("a;y\n1,5;3\n2,5;5\n-1,5e1;-30\n")
    with_points = np.array([[1.5, 3], [2.5, 5], [-15, -30]])
    one_error(command("solve", "de.csv", "--target", "y"), "column 'a' has decimal commas (1,5)", "--decimal ,")
    code, told, wrong = command("solve", "de.csv", "--target", "y", "--decimal", ",", "--json")
    assert (code, wrong) == (0, "")
    known = np.linalg.lstsq(with_points[:, :1], with_points[:, 1], rcond=None)[0]
    np.testing.assert_allclose(json.loads(told)["x"], known)
    (folder / "A.csv").write_text("1,5;1\n2,5;0\n0;3\n")
    (folder / "b.csv").write_text("1,5\n2\n3\n")
    code, told, wrong = command("solve", "A.csv", "b.csv", "--decimal", ",", "--json")
    known = np.linalg.lstsq([[1.5, 1], [2.5, 0], [0, 3]], [1.5, 2, 3], rcond=None)[0]
    np.testing.assert_allclose(json.loads(told)["x"], known)
    one_error(command("solve", "A.csv", "b.csv"), "if it has decimal commas, say --decimal ,")


def test_stdin_and_files_that_are_not_what_they_are_called(command, folder):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [2.0, 4.0, 8.0]})
    frame.to_csv(folder / "plain.csv", index=False)
    frame.to_csv(folder / "packed.csv", index=False, compression="gzip")
    frame.to_parquet(folder / "arrow.parquet")
    for name in ("plain.csv", "packed.csv", "arrow.parquet"):
        code, told, wrong = command("solve", "-", "--target", "y", "--json", stdin=str(folder / name))
        assert (code, wrong) == (0, "")
        np.testing.assert_allclose(json.loads(told)["x"], [2.0])
    code, told, _ = command("solve", "packed.csv", "--target", "y", "--json")
    np.testing.assert_allclose(json.loads(told)["x"], [2.0])
    one_error(command("solve", "-", "--target", "y", stdin="/dev/null"), "is empty")


def test_notes_on_what_may_not_be_meant(command, folder):
    (folder / "index.csv").write_text(",a,y\n0,1,2\n1,2,3\n2,5,3\n")
    assert "column 1 has no name and is taken as 'Unnamed: 0'" in command("solve", "index.csv", "--target", "y")[2]
    assert command("solve", "index.csv", "--target", "y", "--drop", "Unnamed: 0")[0] == 0
    (folder / "ids.csv").write_text("a,y\n9007199254740993,1\n3,2\n")
    assert "column 'a' has whole numbers beyond 2^53" in command("solve", "ids.csv", "--target", "y")[2]
    (folder / "lines.csv").write_text('"a\n\x1b[31mb",y\n1,2\n2,3\n')
    told = command("solve", "lines.csv", "--target", "y")[1]
    assert "\n  a [31mb " in told  # on one line, and no escape


def test_arrow_and_arrays(folder):
    frame = pd.DataFrame({"d": [Decimal(k) / 4 for k in range(3)], "n": pd.array([1, None, 3], dtype="Int64")})
    frame["zip"], frame["c"] = ["01", "02", "03"], pd.Categorical(["u", "v", "u"])
    frame.to_parquet(folder / "f.parquet")
    table = table_from(folder / "f.parquet")
    np.testing.assert_array_equal(table.column("d"), [0, 0.25, 0.5])
    np.testing.assert_array_equal(table.column("n"), [1, np.nan, 3])
    assert table.column("zip").tolist() == ["01", "02", "03"]
    assert table.column("c").tolist() == ["u", "v", "u"]
    np.savez(folder / "a.npz", X=np.eye(3), y=np.ones(3), names=np.array(["p", "q"]), seed=3)
    table = table_from(folder / "a.npz")
    assert table.names == ("X0", "X1", "X2", "y")
    assert "names, seed" in table.notes[0]
    for first in (0, 1):
        (folder / "s.svm").write_text("".join(f"{i} {i + first}:2\n" for i in range(3)))
        np.testing.assert_array_equal(table_from(folder / "s.svm").some(["X0", "X1", "X2"]).toarray(), 2 * np.eye(3))
    with h5py.File(folder / "v.mat", "w", userblock_size=512) as held:
        held["X"], held["y"], held["s"] = np.arange(6.0).reshape(2, 3), np.ones((1, 3)), np.array([65], np.uint16)
        held["s"].attrs["MATLAB_class"] = np.bytes_("char")
    with open(folder / "v.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    with pytest.raises(NotImplementedError):
        scipy.io.loadmat(folder / "v.mat")  # so it is of that kind
    np.testing.assert_array_equal(table_from(folder / "v.mat").some(["X0", "X1"]), np.arange(6.0).reshape(2, 3).T)


def test_a_million_columns(command, folder):
    names = [f"c{j}" for j in range(1_000_000)]
    (folder / "wide.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * 1_000_000) + "\n")
    one_error(command("solve", "wide.csv", "--target", "y"), "no column 'y': it has 'c0'", "and 999,992 more")
    (folder / "wide.csv").unlink()


def test_very_wide_tables_are_read_as_others_are(tmp_path, monkeypatch):
    """Row by row, and by pandas: the same."""
    rows = [
        ["1.5", "", "x", "True", "7", "1e400"],
        ["NA", "-2", "", "false", "Ulm", "3"],
        ["0.1", "+3", "z", "", "8", ""],
    ]
    with open(tmp_path / "w.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "d", "e", "f"], *rows])
    known = table_from(tmp_path / "w.csv")
    monkeypatch.setattr("rowcol.files.table.WIDE", 5)
    found = table_from(tmp_path / "w.csv")
    assert set(found.names) == set(known.names)
    for name in ("a", "b", "f"):
        np.testing.assert_array_equal(found.column(name), known.column(name))
    assert found.column("c").tolist() == known.column("c").tolist() == ["x", None, "z"]
    assert set(found.text) >= {"c", "e"}


# --- no room, no permission ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "train.csv", "--target", "price", "-o", "closed/out.rowcol"),
        ("predict", "good.rowcol", "train.csv", "-o", "closed/out.csv"),
        ("solve", "train.csv", "--target", "price", "-o", "closed/out.npy"),
    ],
)
def test_no_permission_and_no_room(words, command, folder):
    closed = folder / "closed"
    closed.mkdir(exist_ok=True)
    (closed / words[-1].partition("/")[2]).write_text("what was there")
    before = sorted(one.name for one in closed.iterdir())
    closed.chmod(0o555)
    one_error(command(*words, nobody=True), "Permission denied")
    closed.chmod(0o755)
    one_error(command(*words, largest=100), "File too large")
    assert sorted(one.name for one in closed.iterdir()) == before
    assert (closed / words[-1].partition("/")[2]).read_text() == "what was there"


# --- stopped and killed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [0.001, 0.02, 0.1, 0.3])
def test_ctrl_c_at_any_moment(moment, command, folder):
    out = folder / "stopped.rowcol"
    out.unlink(missing_ok=True)
    options = ("--target", "price", "--model", "kernel-ridge", "--cv", "--random-state", "0", "-o", out.name)
    code, told, wrong = command("fit", "train.csv", *options, interrupt=moment)
    assert "Traceback" not in wrong
    assert code in (0, 1, 130), wrong
    assert not list(folder.glob(".*.part"))
    if code == 130:
        assert wrong.endswith("error: stopped\n")
        assert not told
    if code != 130 or out.exists():
        assert rowcol.load(out).n_features_in_ == 2


def test_ctrl_c_while_libraries_are_being_loaded():
    now = """
import os, signal, sys
class Now:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Now())
from rowcol.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", now], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: stopped\n")


def test_a_terminal_without_greek_letters(command):
    words = ("solve", "train.csv", "--target", "price", "--columns", "größe")
    code, told, wrong = command(*words, encoding="ascii")
    assert (code, wrong) == (0, "")
    assert "\n  gr??e " in told


class Person:
    """Asks to stop after so many looks."""

    def __init__(self, looks):
        self.looks = looks

    @property
    def asked(self):
        self.looks -= 1
        return self.looks < 0

    def __call__(self, progress):
        return self.looks < 0


WAVES = rng.uniform(-3, 3, (300, 1))
HEIGHTS = np.sin(2 * WAVES[:, 0]) + 0.1 * rng.standard_normal(300)


@pytest.fixture(scope="module")
def searched():
    return rowcol.KernelRidgeCV(kernel="rbf", random_state=0).fit(WAVES, HEIGHTS)


@pytest.mark.parametrize("looks", [0, 5, 15])
def test_a_search_that_is_stopped_fits_the_best_so_far(looks, searched):
    person = Person(looks)
    model = rowcol.KernelRidgeCV(kernel="rbf", random_state=0, callback=person).fit(WAVES, HEIGHTS)
    assert person.looks < 0
    assert len(model.cv_results_["params"]) < len(searched.cv_results_["params"])
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    known = KernelRidge(alpha=model.alpha_, kernel="rbf", gamma=0.5 / model.kernel_.length_scale**2)
    known.fit(WAVES, HEIGHTS - model.intercept_)
    np.testing.assert_allclose(model.predict(WAVES), known.predict(WAVES) + model.intercept_, atol=1e-3)
    assert model.score(WAVES, HEIGHTS) > 0.5


def test_a_process_that_is_killed_leaves_nothing(tmp_path):
    (tmp_path / "out.csv").write_text("what was there")
    killed = f"""
import os, signal
from rowcol.files.writing import written
with written({str(tmp_path / "out.csv")!r}) as file:
    file.write(b"half of it" * 1000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -signal.SIGKILL
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "what was there"
    with written(tmp_path / "out.csv") as file:
        file.write(b"all of it")
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_bytes() == b"all of it"
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    now = os.umask(0)
    os.umask(now)
    return now


# --- races -----------------------------------------------------------------------------------------------------------


def test_a_race_on_ones_own_table(command, folder):
    options = ("--target", "price", "--alpha", "0.5", "--rounds", "1", "--threads", "1")
    code, told, wrong = command("bench", "train.csv", *options, "--json", "-o", "race.json", "--html", "race.html")
    assert (code, wrong) == (0, "")
    whole = json.loads(told)
    assert json.loads((folder / "race.json").read_text()) == whole
    assert whole["machine"]["numpy"] == np.__version__
    (run,) = whole["runs"]
    assert run["threads"] == 1
    assert run["facts"]["shape"] == [60, 2]
    timed = {r["contender"] for r in run["records"] if r["seconds"]}
    assert {"rowcol", "lsqr", "lsmr", "Ridge", "Ridge svd"} <= timed
    assert all(r["error"] <= 1.01 * r["target"] for r in run["records"] if r["seconds"])
    page = (folder / "race.html").read_text()
    assert "Ridge svd" in page
    assert "rival is first" in page
    told = _shown(whole, None, None)
    assert "rowcol is first in" in told
    for r in (r for r in run["records"] if r["seconds"]):
        assert f"    {r['contender']:<20}{r['seconds']:>9.3g}" in told
    code, _, _ = command("report", "race.json", "--out", "again.html")
    assert code == 0
    assert (folder / "again.html").stat().st_size > 10_000


def test_the_truth_of_ones_own_data_is_known_well_or_not_used():
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    found = own("mine", X, y, 2.0)
    np.testing.assert_allclose(found.truth, np.linalg.solve(X.T @ X + 2.0 * np.eye(5), X.T @ y), rtol=1e-10)
    assert found.targets == (1e-4, 1e-8)
    alike = np.column_stack([X, X[:, 0] * (1 + 1e-13 * rng.standard_normal(40))])
    with pytest.raises(ValueError, match="ill-conditioned"):
        own("mine", alike, y)
    assert own("mine", alike, y, 1.0).targets == (1e-4, 1e-8)
    sparse = own("mine", sp.csr_array(X), y, 2.0)
    np.testing.assert_allclose(sparse.truth, found.truth, rtol=1e-8)
    case = small("kernel ridge")
    K = rbf_kernel(case.X[:5], case.X, gamma=case.gamma)
    np.testing.assert_allclose(K @ case.truth + case.alpha * case.truth[:5], case.y[:5], rtol=1e-9)

"""The commands that solve, fit, predict and evaluate: against scikit-learn, and with input of every bad kind."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from typer.testing import CliRunner

import commanding
import rowcol
from oracle import scattered
from rowcol.cli import app
from rowcol.files.table import table_from

run = CliRunner()
rng = np.random.default_rng(0)
HOMES = pd.DataFrame(
    {
        "größe": rng.uniform(20, 200, 150),
        "age": rng.integers(0, 90, 150),
        "town": rng.choice(["Ulm", "Köln", "東京"], 150),
    }
)
HOMES["price"] = 3 * HOMES["größe"] - HOMES["age"] + 50 * (HOMES["town"] == "Ulm") + 5 * rng.standard_normal(150)
HOMES["dear"] = np.where(HOMES["price"] > 300, "yes", "no")
TRAIN, TEST = HOMES[:100], HOMES[100:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("homes")
    TRAIN.to_csv(out / "train.csv", index=False)
    TRAIN.to_parquet(out / "train.parquet")
    TEST.to_csv(out / "test.csv", index=False)
    return out


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def ok(*words, code=0):
    done = run.invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def features(frame):
    return np.hstack([frame[["größe", "age"]].to_numpy(float), pd.get_dummies(frame["town"]).to_numpy(float)])


# --- solve and plan --------------------------------------------------------------------------------------------------


def test_a_table_is_solved_as_numpy_does():
    done = ok("solve", "train.csv", "--target", "price", "--columns", "größe,age", "--json")
    told = json.loads(done.stdout)
    x = np.linalg.lstsq(TRAIN[["größe", "age"]].to_numpy(float), TRAIN["price"], rcond=None)[0]
    np.testing.assert_allclose(told["x"], x, rtol=1e-6)
    assert told["names"] == ["größe", "age"]
    assert told["success"]
    assert told["certificate"]["value"] <= told["tol"] == 1e-6
    with_one = ok("solve", "train.csv", "--target", "price", "--columns", "größe", "--columns", "age", "--intercept")
    known = LinearRegression().fit(TRAIN[["größe", "age"]], TRAIN["price"])
    assert f"intercept      {known.intercept_:.4f}" in with_one.stdout
    assert f"größe          {str(known.coef_[0])[:7]}" in with_one.stdout
    assert "CONVERGED" in with_one.stdout


def test_two_files_are_solved_and_the_answer_is_written():
    X = scattered(rng, 60, 8, 0.5)
    scipy.io.mmwrite("A.mtx", X, precision=17)
    scipy.io.mmwrite("b.mtx", (X @ np.ones(8))[:, None], precision=17)
    done = ok("solve", "A.mtx", "b.mtx", "-o", "x.npy", "--alpha", "1e-9", "--random-state", "0", "--threads", "1")
    np.testing.assert_allclose(np.load("x.npy"), np.ones(8), rtol=1e-5)
    assert "ridge, 8 unknowns" in done.stdout
    ok("solve", "A.mtx", "b.mtx", "-o", "x.csv", "--intercept")
    held = pd.read_csv("x.csv")
    assert held["name"].tolist() == ["(intercept)", *(f"x{j}" for j in range(8))]
    np.testing.assert_allclose(held["value"], [0.0, *np.ones(8)], atol=1e-5)
    done = ok("solve", "A.mtx", "b.mtx", "-o", "-")
    assert done.stdout.startswith("name,value\nx0,")
    told = json.loads(ok("plan", "A.mtx", "b.mtx", "--memory", "1GB", "--json").stdout)
    assert told["route"] == "direct"
    assert "rowcol.Plan for 60 x 8" in ok("plan", "A.mtx", "b.mtx").stdout


def test_what_did_not_converge_is_exit_code_one_and_still_written():
    np.save("A.npy", rng.standard_normal((300, 100)))
    np.save("b.npy", rng.standard_normal(300))
    options = ("--method", "cg", "--max-passes", "1", "-o", "rough.csv", "--tol", "1e-12")
    done = ok("solve", "A.npy", "b.npy", *options, code=1)
    assert "PASSES" in done.stdout
    assert done.stderr.startswith("warning: ")
    assert done.stderr.count("\n") == 1
    assert len(pd.read_csv("rough.csv")) == 100
    assert "and 80 more" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "train.csv", "--intercept"),
        ("fit", "train.csv", "-o", "h.rowcol"),
        ("fit", "train.csv", "--cv", "-o", "h.rowcol"),
    ],
)
def test_a_page_tells_of_it_by_the_names_of_columns(words):
    done = ok(*words, "--target", "price", "--one-hot", "town", "--drop", "dear", "--html", "told.html")
    assert done.stdout.endswith("Look at told.html\n")
    page = Path("told.html").read_text(encoding="utf-8")
    assert all(f">{name}<" in page for name in ("(intercept)", "größe", "age", "town=東京"))


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "train.csv", "--target", "price", "--html", "no.html"),
        ("fit", "train.csv", "--target", "price", "-o", "no.rowcol", "--html", "no.html"),
        ("bench", "--html", "no.html"),
        ("study", "--quick", "--out", "no.html"),
    ],
)
def test_what_a_page_needs_is_asked_for_before_any_work(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = ok(*words, code=2)
    assert done.stderr == "error: reports need vl-convert-python: pip install 'rowcol[report]'\n"
    assert not done.stdout
    assert not list(Path().glob("no.*"))


# --- fit, predict, evaluate ------------------------------------------------------------------------------------------


def test_ridge_from_a_table_is_that_of_scikit_learn():
    done = ok("fit", "train.csv", "--target", "price", "--drop", "dear", "--one-hot", "town", "-o", "m.rowcol")
    assert "Ridge on 100 rows x 5 features" in done.stdout
    ok("predict", "m.rowcol", "test.csv", "-o", "out.csv")
    known = Ridge(alpha=1.0).fit(features(TRAIN), TRAIN["price"])
    found = np.loadtxt("out.csv", skiprows=1)
    np.testing.assert_allclose(found, known.predict(features(TEST)), rtol=1e-4)
    model, encoder = rowcol.load("m.rowcol", encoder=True)
    np.testing.assert_array_equal(found, model.predict(encoder.encode(table_from("test.csv")).X))  # every digit
    assert encoder.target == "price"
    told = json.loads(ok("evaluate", "m.rowcol", "test.csv", "--json").stdout)
    assert told["r2"] == pytest.approx(r2_score(TEST["price"], found))
    assert told["rmse"] == pytest.approx(mean_squared_error(TEST["price"], found) ** 0.5)
    assert told["mae"] == pytest.approx(mean_absolute_error(TEST["price"], found))
    assert told["rows"] == 50
    assert "r2" in ok("evaluate", "m.rowcol", "test.csv", "--target", "price", "--at-least", "0.9").stdout
    assert "less than 0.9999" in ok("evaluate", "m.rowcol", "test.csv", "--at-least", "0.9999", code=1).stderr


def test_kernel_ridge_with_bounds_and_deviations():
    options = ("--model", "kernel-ridge", "--gamma", "0.01", "--alpha", "0.1", "--no-intercept", "--tol", "1e-8")
    ok("fit", "train.parquet", "--target", "price", "--columns", "größe,age", *options, "-o", "k.rowcol")
    told = json.loads(ok("predict", "k.rowcol", "test.csv", "--bound", "--std", "--json").stdout)
    known = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.01).fit(TRAIN[["größe", "age"]], TRAIN["price"])
    np.testing.assert_allclose(told["prediction"], known.predict(TEST[["größe", "age"]]), rtol=1e-4, atol=1e-4)
    assert set(told) == {"prediction", "bound", "std"}
    lines = ok("predict", "k.rowcol", "test.csv", "--bound").stdout.splitlines()
    assert lines[0] == "prediction,bound"
    assert len(lines) == 51


@pytest.mark.parametrize(("model", "more"), [("kernel-ridge", ["--kernel", "rbf", "--standardize"]), ("ridge", [])])
def test_what_is_chosen_by_validation_is_told(model, more):
    options = ("--target", "price", "--columns", "größe,age", "--cv", "--random-state", "0", "-o", "cv.rowcol")
    told = json.loads(ok("fit", "train.csv", *options, "--model", model, *more, "--json").stdout)
    assert told["alpha"] == rowcol.load("cv.rowcol").alpha_
    assert told["result"]["success"]
    assert told["cv_score"] < 1
    assert json.loads(ok("evaluate", "cv.rowcol", "test.csv", "--json").stdout)["r2"] > 0.9


def test_classes_with_probabilities():
    options = ("--target", "dear", "--drop", "price", "--target-encode", "all", "--standardize", "-o", "c.rowcol")
    ok("fit", "train.csv", *options, "--model", "kernel-classifier", "--probability", "--random-state", "0")
    ok("predict", "c.rowcol", "test.csv", "-o", "classes.tsv")
    found = pd.read_csv("classes.tsv", sep="\t")
    assert list(found) == ["prediction", "p(no)", "p(yes)"]
    np.testing.assert_allclose(found["p(no)"] + found["p(yes)"], 1.0)
    told = json.loads(ok("evaluate", "c.rowcol", "test.csv", "--json").stdout)
    assert told["accuracy"] == (found["prediction"] == TEST["dear"].to_numpy()).mean() > 0.8
    assert told["log_loss"] < 0.5
    frame = TRAIN.assign(count=np.arange(100) % 3)
    frame.to_csv("count.csv", index=False)
    ok("fit", "count.csv", "--target", "count", "--columns", "age", "--model", "ridge-classifier", "-o", "r.rowcol")
    assert set(ok("predict", "r.rowcol", "count.csv").stdout.split()[1:]) <= {"0", "1", "2"}
    assert "accuracy" in ok("evaluate", "r.rowcol", "count.csv").stdout


def test_rows_with_missing_values_keep_their_place():
    holes = TRAIN.copy()
    holes.loc[[3, 7], "age"] = np.nan
    holes.loc[5, "price"] = np.nan
    holes.to_csv("holes.csv", index=False)
    options = ("--target", "price", "--columns", "größe,age", "-o", "h.rowcol")
    assert "row 6 has no target" in ok("fit", "holes.csv", *options, code=2).stderr
    done = ok("fit", "holes.csv", *options, "--missing", "drop", "--model", "least-squares")
    assert "LeastSquares on 97 rows" in done.stdout
    assert "2 of 99 rows have missing values" in done.stderr
    lines = ok("predict", "h.rowcol", "holes.csv").stdout.split("\n")
    assert [k for k, line in enumerate(lines[1:101]) if line in ("", '""')] == [3, 7]
    whole = TRAIN.drop(index=[3, 5, 7])
    known = LinearRegression().fit(whole[["größe", "age"]], whole["price"])
    np.testing.assert_allclose(float(lines[1]), known.predict(TRAIN[["größe", "age"]][:1])[0], rtol=1e-6)
    assert json.loads(ok("evaluate", "h.rowcol", "holes.csv", "--json").stdout)["rows"] == 97
    assert json.loads(ok("predict", "h.rowcol", "holes.csv", "--json").stdout)["prediction"][3] is None


def test_a_model_that_python_saved():
    rowcol.save(rowcol.Ridge().fit(TRAIN[["größe", "age"]], TRAIN["price"]), "p.rowcol")
    assert json.loads(ok("evaluate", "p.rowcol", "test.csv", "--target", "price", "--json").stdout)["r2"] > 0.9
    assert "does not know its target" in ok("evaluate", "p.rowcol", "test.csv", code=2).stderr
    rowcol.save(rowcol.Ridge().fit(TRAIN[["größe", "age"]].to_numpy(), TRAIN["price"]), "p.rowcol")
    assert "takes 2, and test.csv has 3" in ok("predict", "p.rowcol", "test.csv", code=2).stderr
    TEST[["größe", "age"]].to_csv("two.csv", index=False)
    ok("predict", "p.rowcol", "two.csv")


def test_info_tells_what_there_is():
    told = json.loads(ok("info", "--json").stdout)
    assert told["rowcol"] == rowcol.__version__
    assert told["extras"]["files"]["pandas"] == pd.__version__
    assert "threads" in ok("info").stdout


# --- bad input, in processes of their own ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command(folder):
    with commanding.commands(folder) as ask:
        yield ask


@pytest.fixture(scope="module")
def bad(folder):
    (folder / "empty.csv").write_bytes(b"")
    (folder / "junk.csv").write_bytes(bytes(range(256)) * 40)
    (folder / "junk.rowcol").write_bytes(bytes(range(256)) * 40)
    (folder / "commas.csv").write_text('a,y\n"1,5",2\n"2,5",3\n')
    (folder / "semicolons.csv").write_text("a;y\n1,5;2\n2,5;3\n")
    (folder / "ünïcode.csv").write_text("größe,y\n1,2\n2,3\n東京,4\n")
    wide = ",".join(f"c{j}" for j in range(100_000))
    (folder / "wide.csv").write_text(wide + "\n" + ",".join(["1"] * 100_000) + "\n")
    (folder / "escape.csv").write_text("\x1b[31mred\x1b[0m,y\nx,1\nz,2\n")
    (folder / "hole.csv").write_text("a,y\n1,2\n,3\n")
    (folder / "file").write_text("not a folder")
    (folder / "nothing").mkdir()
    (folder / "full.csv").symlink_to("/dev/full")
    rowcol.save(rowcol.Ridge().fit(TRAIN[["größe", "age"]], TRAIN["price"]), folder / "good.rowcol")
    return folder


FIT = ("fit", "train.csv", "--target", "price", "--drop", "dear", "--one-hot", "town")
SOLVE = ("solve", "train.csv", "--target", "age")
BAD = {
    "no file": (("solve", "none.csv", "--target", "y"), "there is no file none.csv"),
    "no model": (("predict", "none.rowcol", "test.csv"), "there is no file none.rowcol"),
    "a folder": (("solve", "nothing", "--target", "y"), "nothing is a folder"),
    "a folder of files that are no tables": (("solve", "nothing", "good.csv"), "a matrix is read from"),
    "a folder of tables": (
        ("solve", ".", "--target", "y"),
        "has no column 'y': it has 'größe', 'age', 'town', 'price'",
    ),
    "wrong column": ((*FIT[:3], "cost", "-o", "x.rowcol"), "no column 'cost': it has 'größe', 'age', 'town', 'price'"),
    "wrong columns": ((*FIT, "--columns", "weight", "-o", "x.rowcol"), "no column 'weight'"),
    "empty": (("solve", "empty.csv", "--target", "y"), "empty.csv is empty"),
    "junk": (("solve", "junk.csv", "--target", "y"), "junk.csv is not text"),
    "junk for a model": (("predict", "junk.rowcol", "test.csv"), "no model of rowcol"),
    "a table for a model": (("predict", "train.csv", "test.csv"), "no model of rowcol"),
    "a model for a table": (("predict", "good.rowcol", "good.rowcol"), "a table is read from"),
    "100,000 columns": (("solve", "wide.csv", "--target", "y"), "and 99,992 more"),
    "unicode": (("solve", "ünïcode.csv", "--target", "y"), "column 'größe' has numbers but for '東京' in row 3"),
    "decimal commas": (("solve", "commas.csv", "--target", "y"), "column 'a' has decimal commas (1,5)"),
    "semicolons": (("solve", "semicolons.csv", "--target", "y"), "(1,5): read them by --decimal ,"),
    "escapes": (("solve", "escape.csv", "--target", "y"), "is text"),
    "text": (("fit", "train.csv", "--target", "price", "-o", "x.rowcol"), "encode it (--one-hot, or --target-encode)"),
    "text, solving": (SOLVE, "column 'town' is text (3 different): encode it (--one-hot) or leave it out (--drop)"),
    "a hole": (("solve", "hole.csv", "--target", "y"), "fill in means (--missing mean) or leave out such rows (--m"),
    "no file, no target": (("solve", "none.csv"), "there is no file none.csv"),
    "a model to report": (("report", "good.rowcol"), "is reported by its own --html"),
    "text target": (("solve", "train.csv", "--target", "town"), "is text, such as"),
    "classes of fractions": ((*FIT, "--model", "ridge-classifier", "-o", "x.rowcol"), "has fractions"),
    "no target": (("solve", "train.csv"), "say which column is y by --target"),
    "both": (("solve", "A.mtx", "b.mtx", "--target", "y"), "leave out one"),
    "missing, how": ((*FIT, "--missing", "zero", "-o", "x.rowcol"), "missing must be"),
    "kernel of ridge": ((*FIT, "--kernel", "rbf", "-o", "x.rowcol"), "--kernel is not for --model ridge"),
    "cv of least squares": ((*FIT, "--model", "least-squares", "--cv", "-o", "x.rowcol"), "--cv is for"),
    "no such kernel": ((*FIT, "--model", "kernel-ridge", "--kernel", "magic", "-o", "x.rowcol"), "kernel must be"),
    "alpha below zero": ((*FIT, "--alpha", "-1", "-o", "x.rowcol"), "alpha"),
    "memory": ((*FIT, "--memory", "lots", "-o", "x.rowcol"), "memory must be"),
    "bounds of ridge": (("predict", "good.rowcol", "test.csv", "--bound"), "--bound and --std are of kernel-ridge"),
    "kind of output": (("predict", "good.rowcol", "test.csv", "-o", "x.pdf"), "written as .csv or .tsv"),
    "file for a folder": ((*FIT, "-o", "file/x.rowcol"), "cannot be written"),
    "file for a folder, predicting": (("predict", "good.rowcol", "test.csv", "-o", "file/x.csv"), "cannot be written"),
    "full disk": ((*FIT, "-o", "/dev/full"), "No space left"),
    "full disk, predicting": (("predict", "good.rowcol", "test.csv", "-o", "full.csv"), "No space left"),
    "full disk, solving": ((*SOLVE, "--columns", "price", "-o", "full.csv"), "No space left"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_two(name, command, bad):
    words, says = BAD[name]
    before = sorted(one.name for one in bad.iterdir())
    code, told, wrong = command(*words)
    assert code == 2, wrong
    assert not told
    assert wrong.startswith("error: ")
    assert wrong.count("\n") == 1
    assert says in wrong
    assert "Traceback" not in wrong
    assert "\x1b" not in wrong
    assert sorted({one.name for one in bad.iterdir()} - {"stdout", "stderr"}) == sorted(
        set(before) - {"stdout", "stderr"}
    )


def test_good_input_in_a_process(command, bad):
    code, told, wrong = command("predict", "good.rowcol", "test.csv")
    assert (code, wrong) == (0, "")  # and no progress, as stderr is no terminal
    assert len(told.splitlines()) == 51
    code, told, wrong = command("solve", "train.csv", "--target", "price", "--columns", "age", "--json")
    assert (code, wrong) == (0, "")
    assert json.loads(told)["names"] == ["age"]


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "good.rowcol", "test.csv"),
        ("solve", "train.csv", "--target", "price", "--columns", "age"),
        ("evaluate", "good.rowcol", "test.csv", "--target", "price", "--json"),
        ("info",),
    ],
)
def test_a_closed_pipe_and_a_full_disk_behind_stdout(words, command, bad):
    assert command(*words, stdout="closed")[::2] == (0, "")
    code, _, wrong = command(*words, stdout="/dev/full")
    assert code == 2
    assert wrong.startswith("error: ")
    assert "No space left" in wrong
    assert wrong.count("\n") == 1


def test_ctrl_c_leaves_the_best_so_far(command, folder):
    left, _ = np.linalg.qr(rng.standard_normal((400, 60)))
    X = left * np.geomspace(1, 1e-6, 60) @ np.linalg.qr(rng.standard_normal((60, 60)))[0]
    np.save(folder / "slow.npy", X)
    np.save(folder / "right.npy", X @ np.ones(60))
    words = ("solve", "slow.npy", "right.npy", "--method", "rk", "--tol", "1e-12", "--max-passes", "1e9", "-o", "b.npy")
    code, told, wrong = command(*words, interrupt=1.0, begun=True)
    assert code == 1, wrong
    assert "CALLBACK" in told
    assert "stopping, with the best so far" in wrong
    assert np.linalg.norm(X @ np.load(folder / "b.npy") - X @ np.ones(60)) < 0.1 * np.linalg.norm(X @ np.ones(60))


def test_every_command_has_examples():
    for name in ("solve", "plan", "fit", "predict", "evaluate", "info", "bench", "study", "report"):
        told = " ".join(ok(name, "--help").stdout.split())
        assert f"rowcol {name}" in told
        assert "Example" in told

"""Commands on files that are larger than memory: the answers of the whole table, in the memory that was allowed."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from typer.testing import CliRunner

import rowcol
from rowcol.cli import app

run = CliRunner()
KINDS = ["trips.parquet", "trips.feather", "trips.csv", "trips.csv.gz", "folder"]


def trips(n, seed=0):
    rng = np.random.default_rng(seed)
    out = pd.DataFrame(rng.standard_normal((n, 3)), columns=["km", "hours", "stops"]).assign(id=np.arange(n))
    return out.assign(fare=3 * out["km"] - out["hours"] + 7 + 0.1 * rng.standard_normal(n), city="Ulm")


NOW, LATER = trips(30_000), trips(2_000, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("far")
    NOW.to_parquet(out / "trips.parquet", row_group_size=3_000)
    NOW.to_feather(out / "trips.feather")
    NOW.to_csv(out / "trips.csv", index=False)
    NOW.to_csv(out / "trips.csv.gz", index=False)
    LATER.to_csv(out / "later.csv", index=False)
    (out / "folder").mkdir()
    NOW[:20_000].to_parquet(out / "folder" / "1.parquet")
    NOW[20_000:].to_parquet(out / "folder" / "2.parquet")
    return out


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def told(*words, code=0):
    done = run.invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.mark.parametrize("source", KINDS)
def test_a_table_that_is_larger_than_memory_is_solved_in_chunks(source):
    memory = () if source == "folder" else ("--memory", "1.8MB")  # which the text is longer than
    chosen = "--drop", "id,city", "--intercept", "--json"
    done = told("solve", source, "--target", "fare", *chosen, *(memory if "csv" in source else ()))
    known = LinearRegression().fit(NOW[["km", "hours", "stops"]], NOW["fare"])
    found = json.loads(done.stdout)
    assert found["names"] == ["km", "hours", "stops"]
    assert found["success"]
    np.testing.assert_allclose(found["x"], known.coef_, rtol=1e-4, atol=1e-5)
    assert found["intercept"] == pytest.approx(known.intercept_)
    whole = source != "folder" and "csv" not in source
    assert ("is read in" in done.stderr) != whole
    plan = told("plan", source, "--target", "fare", "--drop", "id,city", *(memory if "csv" in source else ()))
    assert ("X lies elsewhere" in plan.stdout) != whole


@pytest.mark.parametrize("source", KINDS)
def test_what_is_fitted_predicted_and_judged_in_chunks_is_what_scikit_learn_says(source, monkeypatch):
    monkeypatch.setattr("rowcol.cli.far._size", lambda path: np.inf)  # as if there were no room for any
    done = told("fit", source, "--target", "fare", "--drop", "id,city", "--alpha", "2", "-o", "model.rowcol", "--json")
    assert f"note: {source} is read in" in done.stderr
    names = ["km", "hours", "stops"]
    known = Ridge(2.0).fit(NOW[names], NOW["fare"])
    model = rowcol.load("model.rowcol")
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-4, atol=1e-5)
    assert json.loads(done.stdout)["score"] == pytest.approx(known.score(NOW[names], NOW["fare"]), abs=1e-6)
    told("predict", "model.rowcol", "later.csv", "-o", "out.csv")
    found = pd.read_csv("out.csv")["prediction"]
    np.testing.assert_allclose(found, known.predict(LATER[names]), rtol=1e-4, atol=1e-4)
    several = json.loads(told("predict", "model.rowcol", source, "--json").stdout)
    np.testing.assert_allclose(several["prediction"], known.predict(NOW[names]), rtol=1e-4, atol=1e-4)
    judged = json.loads(told("evaluate", "model.rowcol", "later.csv", "--json").stdout)
    assert judged["rows"] == len(LATER)
    assert judged["r2"] == pytest.approx(r2_score(LATER["fare"], known.predict(LATER[names])), abs=1e-6)


def test_rows_with_missing_values_keep_their_places_chunk_by_chunk(monkeypatch):
    names = ["km", "hours", "stops"]
    NOW[:500].to_csv("some.csv", index=False)
    told("fit", "some.csv", "--target", "fare", "--drop", "id,city", "--missing", "drop", "-o", "drop.rowcol")
    told("fit", "some.csv", "--target", "fare", "--drop", "id,city", "--standardize", "-o", "strict.rowcol")
    gone = LATER.copy()
    gone.loc[[3, 1_700], "hours"] = np.nan
    gone.to_csv("gone.csv", index=False)
    told("predict", "drop.rowcol", "gone.csv", "-o", "whole.csv")
    monkeypatch.setattr("rowcol.cli.far._size", lambda path: np.inf)
    monkeypatch.setattr("rowcol.places.chunks.CHUNK", 12_000)
    done = told("predict", "drop.rowcol", "gone.csv", "-o", "parts.csv")
    assert "note: gone.csv is read in chunks" in done.stderr
    assert "note: 2 rows have missing values and are left out" in done.stderr
    found = pd.read_csv("parts.csv", skip_blank_lines=False)
    assert list(np.flatnonzero(found["prediction"].isna())) == [3, 1_700]
    np.testing.assert_array_equal(found, pd.read_csv("whole.csv", skip_blank_lines=False))
    judged = json.loads(told("evaluate", "drop.rowcol", "gone.csv", "--json").stdout)
    assert judged["rows"] == len(LATER) - 2
    wrong = told("predict", "strict.rowcol", "gone.csv", code=2)
    assert "gone.csv: chunk 1 of 4 (rows 0 to 499): row 4, column 'hours' is missing" in " ".join(wrong.stderr.split())
    scaled = told("predict", "strict.rowcol", "later.csv", "-o", "scaled.csv")
    assert "is read in chunks" in scaled.stderr
    known = Ridge(1.0)
    spread = NOW[:500][names].std(ddof=0)
    known.fit((NOW[:500][names] - NOW[:500][names].mean()) / spread, NOW[:500]["fare"])
    truth = known.predict((LATER[names] - NOW[:500][names].mean()) / spread)
    np.testing.assert_allclose(pd.read_csv("scaled.csv")["prediction"], truth, rtol=1e-4, atol=1e-4)


def test_what_needs_the_whole_table_has_it_as_before(monkeypatch):
    monkeypatch.setattr("rowcol.cli.far._size", lambda path: np.inf)
    for more in (("--one-hot", "city"), ("--missing", "mean", "--drop", "city"), ("--standardize", "--drop", "city")):
        done = told("solve", "trips.csv", "--target", "fare", *more, "--json")
        assert "is read in" not in done.stderr
        assert json.loads(done.stdout)["success"]
    kernel = "--model", "kernel-ridge", "--drop", "city,id", "--max-seconds", "20", "--tol", "0.1"
    done = told("fit", "trips.csv", "--target", "fare", *kernel, "-o", "kernel.rowcol")
    assert "is read in" not in done.stderr
    assert "is read in" in told("predict", "kernel.rowcol", "later.csv", "-o", "out.csv").stderr


@pytest.fixture
def no_room(monkeypatch):
    monkeypatch.setattr("rowcol.cli.far._size", lambda path: np.inf)
    monkeypatch.setattr("rowcol.places.chunks.CHUNK", 12_000)  # 500 rows of three numbers


def test_chunks_without_a_whole_row_or_a_target_are_passed_over(no_room, tmp_path):
    NOW[:500].to_csv("some.csv", index=False)
    told("fit", "some.csv", "--target", "fare", "--drop", "id,city", "--missing", "drop", "-o", "drop.rowcol")
    gone = LATER.copy()
    gone.loc[:600, "hours"] = np.nan
    gone.loc[1_000:1_700, "fare"] = np.nan
    gone.to_csv(tmp_path / "gone.csv", index=False)
    done = told("predict", "drop.rowcol", tmp_path / "gone.csv", "-o", tmp_path / "out.csv")
    assert "read in chunks" in done.stderr
    found = pd.read_csv(tmp_path / "out.csv", skip_blank_lines=False)["prediction"]
    assert list(np.flatnonzero(found.isna())) == list(range(601))
    known = LinearRegression().fit(NOW[:500][["km", "hours", "stops"]], NOW[:500]["fare"])
    np.testing.assert_allclose(found[601:], known.predict(LATER[601:][["km", "hours", "stops"]]), atol=0.05)
    judged = told("evaluate", "drop.rowcol", tmp_path / "gone.csv", "--json")
    assert json.loads(judged.stdout)["rows"] == 2_000 - 601 - 701
    assert judged.stderr.count("note: 701 rows have no target and are left out") == 1
    assert judged.stderr.count("note: 601 rows have missing values and are left out") == 1
    gone.assign(hours=np.nan)[["km", "hours", "stops", "fare"]].to_parquet(tmp_path / "none.parquet")
    assert "no row without" in told("predict", "drop.rowcol", tmp_path / "none.parquet", code=2).stderr
    assert "has no row with" in told("evaluate", "drop.rowcol", tmp_path / "none.parquet", code=2).stderr


def test_classes_that_are_text_are_judged_as_a_whole_and_those_of_numbers_in_chunks(no_room, tmp_path):
    for classes, kind in ((np.where(LATER["km"] > 0, "far", "near"), "is read in"), (1 * (LATER["km"] > 0), "nothing")):
        LATER.assign(fare=classes).to_parquet(tmp_path / "classes.parquet")
        fitted = "--model", "ridge-classifier", "--target", "fare", "--drop", "id,city", "-o", tmp_path / "c.rowcol"
        told("fit", tmp_path / "classes.parquet", *fitted)
        done = told("evaluate", tmp_path / "c.rowcol", tmp_path / "classes.parquet", "--json")
        assert json.loads(done.stdout)["accuracy"] > 0.9
        assert ("is read in" in done.stderr) != (kind == "is read in")


def test_columns_have_the_names_they_have_as_a_whole(tmp_path, monkeypatch):
    """Of counted rows, which pandas writes without a name, and of an index that has one."""
    table = NOW[:3_000][["km", "hours", "fare"]]
    table.to_csv(tmp_path / "counted.csv")
    table.set_index(pd.Index(np.arange(3_000) % 7, name="day")).to_parquet(tmp_path / "indexed.parquet")
    table.set_index(np.arange(3_000)[::-1]).to_parquet(tmp_path / "turned.parquet")
    for source, more in (("counted.csv", ["Unnamed: 0"]), ("indexed.parquet", ["day"]), ("turned.parquet", [])):
        words = "solve", tmp_path / source, "--target", "fare", "--json"
        with monkeypatch.context() as patch:
            whole = told(*words)
            patch.setattr("rowcol.cli.far._size", lambda path: np.inf)
            parts = told(*words)
            found, known = (json.loads(done.stdout) for done in (parts, whole))
            assert set(found["names"]) == set(known["names"]) == {"km", "hours", *more}
            assert ("column 1 has no name" in parts.stderr) == ("column 1 has no name" in whole.stderr)
            for one in more:
                fewer = json.loads(told(*words, "--drop", one).stdout)
                assert set(fewer["names"]) == {"km", "hours"}
                fit = "fit", tmp_path / source, "--target", "fare", "-o", tmp_path / "model.rowcol"
                told(*fit)
                far = json.loads(told("predict", tmp_path / "model.rowcol", tmp_path / source, "--json").stdout)
                patch.setattr("rowcol.cli.far._size", lambda path: 0)
                near = json.loads(told("predict", tmp_path / "model.rowcol", tmp_path / source, "--json").stdout)
                np.testing.assert_allclose(far["prediction"], near["prediction"], rtol=1e-10, atol=1e-10)


def test_methods_that_need_x_in_memory_have_it(no_room, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), rng.standard_normal(60)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    pd.DataFrame(X, columns=list("abcde")).assign(y=y).to_parquet(tmp_path / "X.parquet")
    for method, whole in (("rek", True), ("rcd", True), ("direct", False)):
        for words in ((tmp_path / "X.npy", tmp_path / "y.npy"), (tmp_path / "X.parquet", "--target", "y")):
            done = told("solve", *words, "--method", method, "--json")
            assert ("is read in" in done.stderr) != whole
            np.testing.assert_allclose(json.loads(done.stdout)["x"], np.linalg.lstsq(X, y)[0], atol=1e-4)


def test_streams_of_arrow_are_read_as_a_whole_and_folders_by_their_files(no_room, tmp_path):
    table = pa.table(LATER[["km", "hours", "fare"]])
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    whole = run.invoke(app, ["solve", str(tmp_path / "s.arrow"), "--target", "fare", "--json"])
    assert "is read in" not in whole.stderr
    (tmp_path / "spark" / "part.parquet").mkdir(parents=True)
    pq.write_table(table[:900], tmp_path / "spark" / "part.parquet" / "a.parquet")
    pq.write_table(table[900:], tmp_path / "spark" / "b.PARQUET")
    found = json.loads(told("solve", tmp_path / "spark", "--target", "fare", "--json").stdout)
    (tmp_path / "spark" / "part.parquet" / "a.parquet").rename(tmp_path / "spark" / "a.PARQUET")
    (tmp_path / "spark" / "part.parquet").rmdir()
    again = json.loads(told("solve", tmp_path / "spark", "--target", "fare", "--json").stdout)
    np.testing.assert_allclose(again["x"], found["x"], rtol=1e-6)
    known = np.linalg.lstsq(LATER[["km", "hours"]].to_numpy(), LATER["fare"].to_numpy())[0]
    np.testing.assert_allclose(found["x"], known, rtol=1e-4)


def test_predictions_are_written_as_they_are_made(no_room, tmp_path):
    """A chunk that is broken ends it, and what was there before stays."""
    NOW[:500].to_csv("some.csv", index=False)
    told("fit", "some.csv", "--target", "fare", "--drop", "id,city", "-o", "strict.rowcol")
    gone = LATER.copy()
    gone.loc[1_900, "hours"] = np.nan
    gone.to_csv(tmp_path / "gone.csv", index=False)
    (tmp_path / "out.csv").write_text("as before")
    done = told("predict", "strict.rowcol", tmp_path / "gone.csv", "-o", tmp_path / "out.csv", code=2)
    assert "chunk 4 of 4" in " ".join(done.stderr.split())
    assert (tmp_path / "out.csv").read_text() == "as before"


def test_what_is_wrong_is_said_in_a_line(monkeypatch):
    monkeypatch.setattr("rowcol.cli.far._size", lambda path: np.inf)
    for words, says in (
        (("trips.csv", "--target", "fare"), "column 'city' is of string, not of numbers: leave it out (--drop)"),
        (("trips.parquet", "--target", "fair"), "trips.parquet has no column 'fair': did you mean 'fare'?"),
        (("trips.parquet", "--target", "fare", "--drop", "town"), "trips.parquet has no column 'town': it has"),
        (("trips.parquet", "--target", "fare", "--columns", "fare"), "column 'fare' is the target"),
    ):
        done = told("solve", *words, code=2)
        assert says in " ".join(done.stderr.split()).replace("large_string", "string")
        assert done.stderr.count("error:") == 1
    assert "there is no file" in told("solve", "nowhere.csv", "--target", "fare", code=2).stderr


def test_matrices_that_are_larger_than_memory_stay_on_disk(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3_000, 20)), rng.standard_normal(3_000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    page = tmp_path / "page.html"
    done = told("solve", tmp_path / "X.npy", tmp_path / "y.npy", "--memory", "200kB", "--html", page, "--json")
    assert "note: X.npy is read in" in done.stderr
    np.testing.assert_allclose(json.loads(done.stdout)["x"], np.linalg.lstsq(X, y)[0], rtol=1e-4, atol=1e-6)
    assert "What is left over" in page.read_text()
    assert "is read in" not in told("solve", tmp_path / "X.npy", tmp_path / "y.npy", "--memory", "900kB").stderr


TAKEN = """
import sys, threading
import pyarrow.parquet
from rowcol.cli import app

def anonymous():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("RssAnon"))

def told(source):
    try:
        app(["solve", source, "--target", "y", "--memory", "40MB", "--alpha", "1"], standalone_mode=False)
    except SystemExit:
        return

told(sys.argv[2])
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

threading.Thread(target=watch, daemon=True).start()
told(sys.argv[1])
done.set()
print("taken", peak[0] - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what is taken is read from /proc")
def test_a_file_of_eight_times_the_memory_is_solved_in_it(tmp_path):
    n, p = 400_000, 100
    columns = {f"c{j}": np.random.default_rng(j).standard_normal(n).astype(np.float32) for j in range(p)}
    columns["y"] = columns["c0"] - 2 * columns["c1"]
    pq.write_table(pa.table(columns), tmp_path / "X.parquet", row_group_size=3_000, use_dictionary=False)
    (tmp_path / "small").mkdir()  # a folder, which is read in chunks, too
    pq.write_table(pa.table(columns)[:1_000], tmp_path / "small" / "X.parquet")
    words = [sys.executable, "-c", TAKEN, str(tmp_path / "X.parquet"), str(tmp_path / "small")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "CONVERGED" in done.stdout.split("rowcol.Result")[-1]
    taken = int(done.stdout.split("taken")[-1])
    assert taken <= 40e6 + 5 * 8 * n < 8 * n * p / 5, f"{taken / 1e6:.0f} MB"  # and vectors as long as y

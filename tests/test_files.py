"""Tables from files and how they become numbers: against pandas, SciPy and scikit-learn."""

import gzip
import json
import re

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from rowcol.files import arrays
from rowcol.files.encoder import Encoder, learned
from rowcol.files.table import KINDS, Table, table_from
from rowcol.files.writing import written

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "größe": rng.standard_normal(30),
        "count": rng.integers(0, 9, 30),
        "town": rng.choice(["Ulm", "Köln", "東京"], 30),
        "flag": rng.integers(0, 2, 30).astype(bool),
        "y": rng.standard_normal(30),
    }
)
NUMBERS = ["größe", "count", "flag", "y"]


def save(frame, path):
    kind = path.name.split(".", 1)[1]
    if kind.startswith(("csv", "tsv")):
        frame.to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet", "feather", "arrow"])
def test_a_table_is_what_pandas_has(kind, tmp_path):
    found = table_from(save(FRAME, tmp_path / f"t.{kind}"))
    assert found.numeric == tuple(NUMBERS)
    np.testing.assert_array_equal(found.numbers, FRAME[NUMBERS].to_numpy(float))  # every bit, also through text
    assert found.text["town"].tolist() == FRAME["town"].tolist()
    assert len(found) == 30
    np.testing.assert_array_equal(found.column("y"), FRAME["y"])


def test_arrays_side_by_side_from_every_kind_of_file(tmp_path):
    X, y = rng.standard_normal((6, 3)), rng.standard_normal(6)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    scipy.io.savemat(tmp_path / "t.mat", {"X": X, "y": y})  # which makes y a row
    for kind in ("h5", "hdf5"):
        with h5py.File(tmp_path / f"t.{kind}", "w") as file:
            file["X"], file["y"] = X, y
    for kind in ("npz", "mat", "h5", "hdf5"):
        found = table_from(tmp_path / f"t.{kind}")
        assert found.numeric == ("X0", "X1", "X2", "y")
        np.testing.assert_array_equal(found.some(["X0", "X1", "X2"]), X)
        np.testing.assert_array_equal(found.column("y"), y)
    np.save(tmp_path / "t.npy", X)
    np.testing.assert_array_equal(table_from(tmp_path / "t.npy").numbers, X)
    np.save(tmp_path / "s.npy", np.array([(1, 2.5), (3, 4.5)], dtype=[("a", int), ("b", float)]))
    assert table_from(tmp_path / "s.npy").numeric == ("a", "b")


@pytest.mark.parametrize("kind", ["svmlight", "svm", "libsvm", "mtx", "mtx.gz", "npz", "mat"])
def test_sparse_tables_stay_sparse(kind, tmp_path):
    X, y = sp.csr_array(np.round(rng.uniform(-1, 0.6, (20, 7)), 3).clip(0)), rng.integers(0, 2, 20).astype(float)
    path = tmp_path / f"t.{kind}"
    if kind.startswith("mtx"):
        with (gzip.open if kind.endswith("gz") else open)(path, "wb") as file:
            scipy.io.mmwrite(file, X, precision=17)
    elif kind == "npz":
        sp.save_npz(path, X)
    elif kind == "mat":
        scipy.io.savemat(path, {"X": sp.csc_matrix(X), "y": y})
    else:
        dump_svmlight_file(X, y, str(path), zero_based=False)
    found = table_from(path)
    assert sp.issparse(found.numbers)
    names = [f"X{j}" for j in range(7)]
    np.testing.assert_allclose(found.some(names).toarray(), X.toarray(), rtol=1e-12)
    if "y" in found.names:
        np.testing.assert_array_equal(found.column("y"), y)
    encoder, made = learned(found, drop=["y"] if "y" in found.names else None, standardize=True)
    spread = StandardScaler(with_mean=False).fit_transform(X)
    np.testing.assert_allclose(made.X.toarray(), spread.toarray(), rtol=1e-9)
    np.testing.assert_array_equal(encoder.encode(found).X.toarray(), made.X.toarray())


def test_every_kind_is_tried_here():
    tried = {".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".feather", ".arrow", ".npz", ".mat", ".h5", ".hdf5"}
    assert set(KINDS) == tried | {".npy", ".svmlight", ".svm", ".libsvm", ".mtx", ".mtx.gz"}


BROKEN = {
    "empty.csv": (b"", "is empty"),
    "head.csv": (b"a,b\n", "names but no rows"),
    "junk.csv": (bytes(range(128, 256)) * 9, "not text in UTF-8"),
    "junk.parquet": (b"\x00\x01junk" * 9, "cannot be read"),
    "junk.arrow": (b"\x00\x01junk" * 9, "cannot be read"),
    "junk.npy": (b"\x93NUMPY", "cannot be read"),
    "junk.npz": (b"PK\x03\x04", "cannot be read"),
    "junk.mat": (b"MATLAB" * 50, "cannot be read"),
    "junk.h5": (b"\x89HDF\r\n", "cannot be read"),
    "junk.mtx": (b"%%Matrix", "cannot be read"),
    "junk.svm": (b"1 one:2", "cannot be read"),
    "quoted.csv": (b'a,b\n"1,2\n', "cannot be read"),
    "junk.csv.gz": (b"\x1f\x8b", "cannot be read"),
    "zeros.csv": (b"a,b\x00\n1,2\n", "not text in UTF-8"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "two columns 'a'"),
    "many.csv": (b"a,b\n1,2,3\n4,5,6\n", "more values in a row"),
    "semicolons.csv": (b"a;b\n1,5;2,5\n", "semicolons"),
    "commas.tsv": (b"a\tb\n1,5\t2\n2\t3\n", "decimal commas (1,5)"),
    "twice.npz": (None, "two columns 'b0'"),
    "notes.pdf": (b"x", "a table is read from"),
    "shapes.npz": (None, "a row for each"),
    "complex.npy": (None, "no real numbers"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_are_no_tables_are_told(name, tmp_path):
    content, says = BROKEN[name]
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    elif name == "twice.npz":
        np.savez(path, b=np.ones((2, 2)), b0=np.ones(2))
    elif name == "shapes.npz":
        np.savez(path, a=np.ones(2), b=np.ones(3))
    else:
        np.save(path, np.ones((2, 2), complex))
    with pytest.raises(ValueError, match=re.escape(says)) as wrong:
        table_from(path)
    assert "\n" not in str(wrong.value)
    assert name in str(wrong.value)


def test_hdf5_that_leads_elsewhere_or_declares_too_much_is_not_followed(tmp_path):
    with h5py.File(tmp_path / "big.h5", "w") as file:
        file.create_dataset("X", shape=(10**7, 10**5), dtype="f8", chunks=(1000, 1000))
    with pytest.raises(ValueError, match="more than the file can hold"):
        table_from(tmp_path / "big.h5")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["X"] = h5py.ExternalLink("big.h5", "X")
    with pytest.raises(ValueError, match="no array of numbers"):
        table_from(tmp_path / "link.h5")


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(ImportError, match=r"t.csv, a table, needs pandas: pip install 'rowcol\[files\]'"):
        table_from(save(FRAME, tmp_path / "t.csv"))
    (tmp_path / "t.h5").write_bytes(b"x")
    with pytest.raises(ImportError, match="needs h5py"):
        table_from(tmp_path / "t.h5")


# --- numbers ---------------------------------------------------------------------------------------------------------


def table(frame):
    text = {c: frame[c].astype(object).where(frame[c].notna(), None).to_numpy(object) for c in frame}
    text = {c: v for c, v in text.items() if frame[c].dtype.kind not in "biuf"}
    numeric = tuple(c for c in frame if c not in text)
    return Table(numeric, frame[list(numeric)].to_numpy(float), text, "t.csv")


def again(encoder):
    """As it comes back from a file."""
    return Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))


def test_one_hot_and_scales_are_those_of_scikit_learn_and_remembered():
    t = table(FRAME)
    encoder, made = learned(t, target="y", one_hot=["town"], standardize=True)
    hot = OneHotEncoder(sparse_output=False).fit_transform(FRAME[["town"]])
    plain = np.hstack([FRAME[["größe", "count", "flag"]].to_numpy(float), hot])
    np.testing.assert_allclose(made.X, StandardScaler().fit_transform(plain), rtol=1e-12, atol=1e-12)
    assert encoder.features == ("größe", "count", "flag", "town=Köln", "town=Ulm", "town=東京")
    shuffled = table(FRAME[["y", "town", "flag", "count", "größe"]].iloc[::-1])
    np.testing.assert_array_equal(again(encoder).encode(shuffled).X, made.X[::-1])  # by name, not by place


def test_target_means_leave_out_the_rows_own_fold():
    frame = pd.DataFrame({"town": list("ab") * 50 + ["c"], "y": rng.standard_normal(101)})
    encoder, made = learned(table(frame), target="y", y=frame["y"].to_numpy(), target_encode=["town"])
    overall, means = frame["y"].mean(), frame.groupby("town")["y"].agg(["sum", "count"])
    for town in "abc":
        wanted = (means["sum"][town] + 10 * overall) / (means["count"][town] + 10)
        assert encoder.means_of["town"][town] == pytest.approx(wanted)
    rest = frame["y"].drop(100)
    fold = np.random.default_rng(0).permutation(101) % 5
    assert made.X[100, 0] == pytest.approx(rest[fold[:100] != fold[100]].mean())  # c is not known without its own row
    new = again(encoder).encode(table(pd.DataFrame({"town": ["a", "d"]})))
    assert new.X[:, 0] == pytest.approx([encoder.means_of["town"]["a"], overall])
    assert "'d', in 1 rows" in new.notes[0]


def test_missing_values_are_named_and_refused_unless_said():
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "b": [0.0, 1.0, 2.0, np.nan], "t": ["x", None, "y", "x"]})
    with pytest.raises(ValueError, match=r"t.csv: row 3, column 'a' is missing \(2 rows"):
        learned(table(frame[["a", "b"]]))
    with pytest.raises(ValueError, match="row 2, column 't' is missing"):
        learned(table(frame[["t"]]), one_hot=["all"])
    encoder, made = learned(table(frame), one_hot=["t"], missing="mean")
    np.testing.assert_allclose(made.X[:, :2], frame[["a", "b"]].fillna(frame[["a", "b"]].mean()))
    assert made.X[1, 2:].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(again(encoder).encode(table(frame)).X, made.X)
    new = pd.DataFrame({"a": [np.nan], "b": [9.0], "t": ["y"]})
    assert again(encoder).encode(table(new)).X.tolist() == [[frame["a"].mean(), 9.0, 0.0, 1.0]]
    _, made = learned(table(frame), one_hot=["t"], missing="drop")
    assert made.rows.tolist() == [0]
    assert "3 of 4 rows" in made.notes[0]
    with pytest.raises(ValueError, match="column 'a' is infinite"):
        learned(table(pd.DataFrame({"a": [1.0, np.inf]})), missing="drop")
    with pytest.raises(ValueError, match="no value at all"):
        learned(table(pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]})), missing="mean")
    holes = sp.csr_array(np.array([[np.nan, 1.0], [2.0, 0.0]]))
    with pytest.raises(ValueError, match="row 1, column 'a' is missing"):
        learned(Table(("a", "b"), holes))
    assert learned(Table(("a", "b"), holes), missing="mean")[1].X.toarray().tolist() == [[2.0, 1.0], [2.0, 0.0]]
    assert learned(Table(("a", "b"), holes), missing="drop")[1].X.toarray().tolist() == [[2.0, 0.0]]


def test_columns_are_chosen_by_name_and_text_is_refused_with_the_remedy():
    t = table(FRAME)
    assert learned(t, target="y", columns=["count", "größe"])[0].features == ("count", "größe")
    assert learned(t, target="y", drop=["town", "flag"])[0].features == ("größe", "count")
    for options, says in (
        ({"target": "y"}, "column 'town' is text .3 different.: encode it"),
        ({"target": "price"}, "t.csv has no column 'price': it has 'größe'"),
        ({"columns": ["y"], "target": "y"}, "is the target"),
        ({"drop": ["none"]}, "no column 'none'"),
        ({"one_hot": ["count"]}, "is not text"),
        ({"one_hot": ["town"], "target_encode": ["town"], "y": np.ones(30)}, "encoded twice"),
        ({"target_encode": ["town"]}, "needs a target"),
        ({"columns": ["y"], "missing": "zero"}, "missing must be"),
        ({"drop": list(FRAME)}, "no column to fit"),
    ):
        with pytest.raises(ValueError, match=says):
            learned(t, **options)
    odd = table(pd.DataFrame({"a": ["1", "2", "x12", "4"]}))
    with pytest.raises(ValueError, match="numbers but for 'x12' in row 3: mend"):
        learned(odd)
    encoder, _ = learned(table(pd.DataFrame({"a": [1.0, 2.0]})))
    with pytest.raises(ValueError, match="is to have numbers there"):
        encoder.encode(odd)
    with pytest.raises(ValueError, match="no column 'a'"):
        encoder.encode(t)
    by_text, _ = learned(table(pd.DataFrame({"a": ["1", "b", "2.5"]})), one_hot=["a"])
    whole = table(pd.DataFrame({"a": [1, 2.5]}))  # the same column, in a file where all of it can be read as numbers
    assert by_text.encode(whole).X.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("wrong", [None, [], {}, {"numeric": [1]}, "scale", "missing", "one_hot", "means"])
def test_an_encoder_that_is_none_is_told(wrong):
    told = learned(table(FRAME), one_hot=["town"], standardize=True, missing="mean")[0].to_dict()
    if isinstance(wrong, str):
        wrong = told | {wrong: {"scale": [1.0], "missing": "zero", "one_hot": [1], "means": []}[wrong]}
    with pytest.raises(ValueError, match="the encoder is not one"):
        Encoder.from_dict(wrong)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), written(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_text() == "before"
    with pytest.raises(IsADirectoryError), written(tmp_path):
        pass
    with pytest.raises(FileNotFoundError, match="there is no folder"), written(path / "x.csv"):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    (tmp_path / "link.csv").symlink_to(path)
    with written(tmp_path / "link.csv") as file:
        file.write(b"after")
    assert (tmp_path / "link.csv").is_symlink()
    assert path.read_text() == "after"

"""Tables, maps and iterables in chunks: numbers are those of pandas and NumPy, or what is wrong with them is named."""

import json
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import rowcol
from oracle import lapack, uneven
from rowcol.files.matrices import matrix_from
from rowcol.files.table import table_from


def numbers_of(place):
    return np.concatenate([part for _, part in place.parts()])


def frame(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc")).assign(whole=rng.integers(0, 9, n))


def written(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, row_group_size=100)
    elif path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_feather(path)
    return path


def refused(says, kind, *given, **named):
    with pytest.raises(kind, match=says) as wrong:
        rowcol.chunks(*given, **named)
    assert "\n" not in str(wrong.value)
    return wrong.value


# --- columns by their names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
@pytest.mark.parametrize("rows", [None, 70, 100, 250])
def test_files_may_have_their_columns_in_any_order(tmp_path, suffix, rows):
    first, second = frame(300, 0), frame(250, 1)
    paths = [
        written(first, tmp_path / f"1{suffix}"),
        written(second[["whole", "c", "a", "b"]], tmp_path / f"2{suffix}"),
    ]
    place, y, names = rowcol.chunks(paths, columns=["c", "whole"], target="a", rows=rows)
    both = pd.concat([first, second])
    np.testing.assert_allclose(numbers_of(place), both[["c", "whole"]], rtol=1e-15)
    np.testing.assert_allclose(y, both["a"], rtol=1e-15)
    assert names == ("c", "whole")
    assert rows is None or np.diff(place.starts).max() <= rows


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_a_file_that_lacks_a_column_is_named(tmp_path, suffix):
    paths = [written(frame(), tmp_path / f"1{suffix}"), written(frame()[["a", "c"]], tmp_path / f"2{suffix}")]
    refused(f"2{suffix} has no column 'b'", ValueError, paths, columns=["a", "b"])
    refused(f"2{suffix} has no column 'b'", ValueError, paths, columns=["a"], target="b")
    refused(f"2{suffix} has no column 'b'", ValueError, paths)
    written(frame().assign(b="text"), paths[1])
    refused(f"2{suffix}: column 'b' is of .*, not of numbers", TypeError, paths, columns=["a", "b"])


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_column_that_is_there_twice_is_refused(tmp_path, suffix):
    table = pa.table([[1.0], [2.0], [3.0]], names=["a", "b", "a"])
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)
    refused(r"t\.\w+ has 2 columns 'a': rename", ValueError, path)
    assert rowcol.chunks(path, columns="b").X.shape == (1, 1)


def test_a_string_is_one_column(tmp_path):
    path = written(frame().rename(columns={"c": "ab"}), tmp_path / "t.parquet")
    place, _, names = rowcol.chunks(path, columns="ab")
    assert names == ("ab",)
    np.testing.assert_array_equal(numbers_of(place)[:, 0], frame()["c"])


@pytest.mark.parametrize("index", [None, "id"])
def test_an_index_that_pandas_stored_is_no_feature(tmp_path, index):
    table = frame().set_index(pd.Index(np.arange(600) * 7 % 600, name=index))
    table.to_parquet(tmp_path / "t.parquet")
    stored = index or "__index_level_0__"
    assert stored in pq.read_schema(tmp_path / "t.parquet").names
    assert rowcol.chunks(tmp_path / "t.parquet").names == tuple(frame().columns)
    named = rowcol.chunks(tmp_path / "t.parquet", columns=["a", stored]).X
    np.testing.assert_array_equal(numbers_of(named)[:, 1], table.index)


def test_a_column_that_is_the_name_of_a_folder_is_not_in_the_files(tmp_path):
    pq.write_to_dataset(pa.table(frame()), tmp_path / "trips", partition_cols=["whole"])
    (tmp_path / "trips" / "_delta_log").mkdir()
    pd.DataFrame({"other": [1]}).to_parquet(tmp_path / "trips" / "_delta_log" / "1.parquet")
    place, _, names = rowcol.chunks(tmp_path / "trips")
    assert names == ("a", "b", "c")
    assert numbers_of(place).sum() == pytest.approx(frame()[["a", "b", "c"]].to_numpy().sum())
    refused(r"column 'whole' is not stored in .*, but in the name of its folder whole=0", ValueError,
            tmp_path / "trips", columns=["a", "whole"])  # fmt: skip
    refused("in the name of its folder whole=0", ValueError, tmp_path / "trips", target="whole")


# --- empty ones ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 2])
def test_files_and_row_groups_without_rows_add_none(tmp_path, at):
    table, folder = frame(), tmp_path / "spark"
    folder.mkdir()
    names = [f"{k}.parquet" for k in range(3)]
    empty = names.pop(at)
    pd.DataFrame(columns=["a", "b", "c", "whole"]).to_parquet(folder / empty)  # of no type at all
    half = pa.table(table[:250])
    with pq.ParquetWriter(folder / names[0], half.schema) as out:
        for part in (half[:0], half[:100], half[:0], half[100:], half[:0]):
            out.write_table(part)
    table[250:].to_parquet(folder / names[1])
    for rows in (None, 40, 300):
        place, y, _ = rowcol.chunks(folder, target="c", rows=rows)
        np.testing.assert_array_equal(numbers_of(place), table[["a", "b", "whole"]])
        np.testing.assert_array_equal(y, table["c"])
    for name in names:
        (folder / name).unlink()
    refused("names but no rows", ValueError, folder)


def test_batches_and_chunks_without_rows_add_none(tmp_path):
    table = pa.table(frame()[["a", "b"]])
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        for part in (table[:0], table[:100], table[:0], table[100:], table[:0]):
            out.write_batch(
                part.combine_chunks().to_batches()[0] if len(part) else pa.RecordBatch.from_pylist([], table.schema)
            )
    np.testing.assert_array_equal(numbers_of(rowcol.chunks(tmp_path / "t.arrow", rows=64).X), frame()[["a", "b"]])
    X = frame().to_numpy()
    given = [np.empty((0, 0)), X[:99], np.empty((0, 7)), [], X[99:], np.empty(0)]
    place = rowcol.chunks(lambda: iter(given)).X
    assert place.count == 2
    np.testing.assert_array_equal(numbers_of(place), X)


# --- text ------------------------------------------------------------------------------------------------------------


def test_numbers_that_look_whole_or_missing_at_first_are_numbers(tmp_path):
    n = 120_000  # more than a block of text
    table = pd.DataFrame({"a": np.arange(n), "b": np.full(n, np.nan), "yes": np.arange(n) % 2 == 0}).astype(
        {"a": object}
    )
    table.loc[n - 1, "a"], table.loc[n - 2, "b"] = 0.5, 7.25
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    want = pd.read_csv(tmp_path / "t.csv.gz").astype(float).to_numpy()
    np.testing.assert_array_equal(numbers_of(rowcol.chunks(tmp_path / "t.csv.gz").X), want)


def test_text_among_numbers_is_named_by_its_column_and_chunk(tmp_path):
    lines = ["a,b"] + ["1,2"] * 400_000
    lines[350_001] = "1,many"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    says = r"t.csv: column 'b' is not of numbers in row 350,000, chunk 36 \(invalid value 'many'\)"
    refused(says, ValueError, tmp_path / "t.csv", rows=10_000)
    assert rowcol.chunks(tmp_path / "t.csv", columns="a").X.shape == (400_000, 1)


def test_a_first_line_of_numbers_has_no_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0.5,-2e3,7\n1,2,3\n4,5,6\n")
    refused("t.csv: its first line has numbers, where the names should be", ValueError, path)
    refused("no column 'b': its first line has numbers", ValueError, path, columns="b")
    path.write_text("1,1\n2,3\n")
    refused("its first line has numbers, where the names should be", ValueError, path)
    with pytest.raises(ValueError, match="its first line has numbers, where the names should be"):
        table_from(path)
    path.write_text("2023;2024\n1;2\n3;4.5\n")  # years are names, if that is said
    np.testing.assert_array_equal(numbers_of(rowcol.chunks(path, target="2023").X), [[2], [4.5]])


# --- maps and groups of arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_map_is_read_as_it_is_with_what_was_changed(tmp_path, mode):
    X, y = uneven(2_000, 6)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    if mode != "r":
        mapped[700:900, 2] = X[700:900, 2] = 50.0
    views = [np.s_[:], np.s_[100:], np.s_[::2], np.s_[::-1], np.s_[5:1500:3, 1:4]]
    for at in views:
        np.testing.assert_array_equal(numbers_of(rowcol.chunks(mapped[at], rows=300).X), X[at])
    np.testing.assert_array_equal(numbers_of(rowcol.chunks(mapped.T, rows=2).X), X.T)
    np.testing.assert_array_equal(numbers_of(rowcol.chunks(mapped.reshape(1_000, 12), rows=2).X), X.reshape(1_000, 12))
    np.testing.assert_allclose(rowcol.solve(mapped, y, tol=1e-9, memory=60e3).x, lapack(X, y), rtol=1e-6)


def test_an_array_of_a_zarr_group_is_opened_by_its_name(tmp_path):
    import zarr

    X, _ = uneven(500, 4)
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    for name, held in {"X": X, "Z": 2 * X, "more/W": 3 * X}.items():
        group.create_array(name, shape=held.shape, dtype=held.dtype, chunks=(100, 4))[:] = held
    for name, times in {"X": 1, "Z": 2, "more/W": 3}.items():
        np.testing.assert_array_equal(numbers_of(rowcol.chunks(tmp_path / "g.zarr", name=name).X), times * X)
    refused(r"g.zarr: it holds X, Z: say which by name=", ValueError, tmp_path / "g.zarr")
    refused(r"g.zarr has no 'V': it holds X, Z", ValueError, tmp_path / "g.zarr", name="V")
    refused(r"g.zarr has no 'more': it holds X, Z", ValueError, tmp_path / "g.zarr", name="more")
    (tmp_path / "broken.zarr").mkdir()
    refused(r"broken.zarr cannot be read as Zarr", ValueError, tmp_path / "broken.zarr")


# --- functions and iterables -----------------------------------------------------------------------------------------


def test_a_chunk_that_cannot_be_made_is_named():
    X, _ = uneven(1_000, 4)
    calls = []

    def begin():
        calls.append(0)
        for k in range(10):
            if k == 6 and len(calls) >= failing:
                raise KeyError("no such station")
            yield X[100 * k : 100 * (k + 1)]

    failing = 1
    wrong = refused("begin: chunk 7 cannot be read: .*no such station", ValueError, begin)
    assert isinstance(wrong.__cause__, KeyError)
    failing = 3
    place = rowcol.chunks(begin).X
    with pytest.raises(ValueError, match=r"begin: chunk 7 cannot be read: .*no such station"):
        numbers_of(place)

    def at_once():
        raise OSError("the disk is gone")

    refused("at_once: chunk 1 cannot be read: the disk is gone", OSError, at_once)
    refused("must be a function that returns an iterator of chunks", TypeError, lambda: None)


class Again:
    """What can be gone through again and again, and is no iterator."""

    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)


def test_what_can_be_iterated_anew_is_chunks_and_what_cannot_is_refused():
    X, y = uneven(1_000, 4)
    parts = [X[i : i + 300] for i in range(0, 1_000, 300)]
    for source in (parts, tuple(parts), Again(parts)):
        place = rowcol.chunks(source).X
        assert place.count == 4
        np.testing.assert_allclose(rowcol.solve(place, y, tol=1e-9).x, lapack(X, y), rtol=1e-6)
    place, target, _ = rowcol.chunks(Again([(part, part[:, 0]) for part in parts]))
    np.testing.assert_array_equal(target, X[:, 0])
    for source in ((part for part in parts), iter(parts), map(np.asarray, parts)):
        refused("give a function that returns it anew", TypeError, source)
    refused("chunk 2 comes without a y", ValueError, [(parts[0], y[:300]), parts[1]])
    refused("is a tuple of 3", ValueError, [(parts[0], y[:300], y[:300])])


# --- memory ----------------------------------------------------------------------------------------------------------

TAKEN = """
import json, sys, threading
import numpy as np
import rowcol

def anonymous():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("RssAnon"))

def solved(path, memory):
    X = rowcol.chunks(path).X
    return rowcol.solve(X, np.arange(X.shape[0]) % 2.0, alpha=1.0, method="cg", tol=1e-3, memory=memory)

solved(sys.argv[2], 1e9)
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

threading.Thread(target=watch, daemon=True).start()
result = solved(sys.argv[1], float(sys.argv[3]))
done.set()
print(json.dumps([peak[0] - before, result.plan.bytes, result.success]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what is taken is read from /proc")
def test_one_row_group_of_twice_the_memory_is_read_in_parts(tmp_path):
    n, p, budget = 800_000, 20, 64e6
    columns = {f"c{j}": np.random.default_rng(j).standard_normal(n) for j in range(p)}
    pq.write_table(pa.table(columns), tmp_path / "X.parquet", row_group_size=n, use_dictionary=False)
    pq.write_table(pa.table(columns)[:1_000], tmp_path / "small.parquet")
    assert pq.read_metadata(tmp_path / "X.parquet").num_row_groups == 1
    words = [sys.executable, "-c", TAKEN, str(tmp_path / "X.parquet"), str(tmp_path / "small.parquet"), str(budget)]
    taken, foretold, success = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert success
    assert taken <= foretold
    beside = 5 * 8 * n  # vectors of the length of y
    assert taken <= budget + beside < 8 * n * p * 1.1, f"{taken / 1e6:.0f} MB"


@pytest.mark.skipif(sys.platform != "linux", reason="what is taken is read from /proc")
def test_dictionaries_that_do_not_fit_are_refused_and_the_memory_that_is_named_is_kept(tmp_path):
    n, p = (
        140_000,
        60,
    )  # more values than a dictionary of 1 MB holds: each column keeps one, twice, as long as it is read
    columns = {f"c{j}": np.random.default_rng(j).standard_normal(n) for j in range(p)}
    pq.write_table(pa.table(columns), tmp_path / "X.parquet", row_group_size=n)
    pq.write_table(pa.table(columns)[:1_000], tmp_path / "small.parquet")
    place = rowcol.chunks(tmp_path / "X.parquet").X
    says = r"row groups of 140,000 rows, and reading a row unpacks about 1\d\d MB, of memory=60 MB: .* of fewer rows"
    for method in ("cg", "rk", "direct", "auto"):
        with pytest.raises(ValueError, match=says) as told:
            rowcol.solve(place, np.ones(n), alpha=1.0, method=method, memory="60 MB")
    with pytest.raises(ValueError, match=says):
        rowcol.Ridge(memory=60e6).fit(place, np.ones(n))
    enough = float(re.search(r"memory='(\d+) MB'", str(told.value))[1]) * 1e6
    words = [sys.executable, "-c", TAKEN, str(tmp_path / "X.parquet"), str(tmp_path / "small.parquet"), str(enough)]
    taken, _, success = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert success
    assert 100e6 < taken <= enough, f"{taken / 1e6:.0f} MB"  # so it would not have done with the 60


def test_what_is_read_is_counted_by_the_heads_of_pages(tmp_path):
    n, p = 60_000, 10
    table = pa.table({f"c{j}": np.random.default_rng(j).standard_normal(n) for j in range(p)})
    sizes = {"small": 4_000, "large": 10**9}
    for name, rows in sizes.items():
        how = {"use_dictionary": False, "max_rows_per_page": rows, "data_page_size": 1 << 30}
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=n, **how)
    small, large = (rowcol.chunks(tmp_path / f"{name}.parquet").X.unpacked for name in sizes)
    assert large > table.nbytes > 0.3 * large  # a page is a column
    assert small < large


@pytest.mark.parametrize("kind", ["rows", "function", "table", "dask"])
def test_chunks_of_a_given_length_that_do_not_fit_are_refused_with_the_remedy(tmp_path, kind):
    X, y = uneven(3_000, 50)  # 1.2 MB, in three chunks
    np.save(tmp_path / "X.npy", X)
    pd.DataFrame(X).rename(columns=str).to_parquet(tmp_path / "X.parquet", row_group_size=200)
    # what tells where row groups lie takes a megabyte
    rows, memory, take, enough = (3_000, "3 MB", "4.8", "9 MB") if kind == "table" else (1_000, "1 MB", "1.6", "3 MB")
    if kind == "dask":
        import dask.array as da

        place, remedy = rowcol.chunks(da.from_array(X, chunks=(1_000, -1))).X, "X in shorter chunks, or open a Client"
    elif kind == "function":
        place, remedy = rowcol.chunks(lambda: (X[i : i + 1_000] for i in (0, 1_000, 2_000))).X, "let it give shorter"
    else:
        name = "X.npy" if kind == "rows" else "X.parquet"
        place, remedy = rowcol.chunks(tmp_path / name, rows=rows).X, "say fewer rows="
    says = rf"memory={memory} is too little for chunks of {rows:,} x 50 numbers: .* take {take} MB: .*{remedy}"
    for method in ("cg", "rk", "direct", "auto"):
        with pytest.raises(ValueError, match=says):
            rowcol.solve(place, y, alpha=1.0, method=method, memory=memory)
    found = rowcol.solve(place, y, alpha=1.0, memory=enough, tol=1e-9)
    np.testing.assert_allclose(found.x, lapack(X, y, 1.0), rtol=1e-6)


def test_chunks_that_are_in_memory_anyway_are_not_refused():
    X, y = uneven(3_000, 50)
    place = rowcol.chunks([X[:1_000], X[1_000:]]).X
    found = rowcol.solve(place, y, alpha=1.0, memory="1 MB", tol=1e-9)
    np.testing.assert_allclose(found.x, lapack(X, y, 1.0), rtol=1e-6)


def test_a_memory_in_which_vectors_as_long_as_y_do_not_fit_is_refused(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).standard_normal((100_000, 2)))
    place, y = rowcol.chunks(tmp_path / "X.npy").X, np.ones(100_000)
    with pytest.raises(ValueError, match=r"memory=1.5 MB is too little for 100,000 rows: vectors as long as y"):
        rowcol.solve(place, y, alpha=1.0, memory="1.5 MB")
    assert rowcol.solve(place, y, alpha=1.0, memory="2 MB").success


def test_a_row_group_that_is_cut_has_the_same_rows(tmp_path):
    table = pd.concat([frame()] * 40, ignore_index=True)
    table.to_parquet(tmp_path / "one.parquet")  # in one row group
    table.to_parquet(tmp_path / "many.parquet", row_group_size=1_000)
    y = np.random.default_rng(0).standard_normal(len(table))
    want = lapack(table.to_numpy(float), y, 1e5)
    for name in ("one", "many"):
        place = rowcol.chunks(tmp_path / f"{name}.parquet", rows=500 if name == "one" else None).X
        np.testing.assert_array_equal(numbers_of(place), table)
        for method in ("direct", "cg", "rk"):
            found = rowcol.solve(place, y, alpha=1e5, method=method, tol=1e-9, random_state=0).x
            np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("kind", ["zarr", "h5"])
def test_what_is_stored_together_and_does_not_fit_is_refused_before_any_work(tmp_path, kind):
    X, y = uneven(20_000, 50)  # 8 MB
    for rows in (20_000, 500):
        path = tmp_path / f"{rows}.{kind}"
        if kind == "zarr":
            import zarr

            zarr.create_array(str(path), shape=X.shape, chunks=(rows, 50), dtype=X.dtype)[:] = X
        else:
            import h5py

            with h5py.File(path, "w") as file:
                file.create_dataset("X", data=X, chunks=(rows, 50), compression="lzf")
    place = rowcol.chunks(tmp_path / f"20000.{kind}").X
    says = r"is stored in chunks of 20,000 x 50, and reading a row unpacks about 16 MB, of memory=6 MB: .* fewer rows"
    with pytest.raises(ValueError, match=says):
        rowcol.solve(place, y, alpha=1.0, memory=6e6)
    with pytest.raises(ValueError, match=says):
        rowcol.Ridge(memory=6e6).fit(place, y)
    fine = rowcol.chunks(tmp_path / f"500.{kind}").X
    np.testing.assert_allclose(rowcol.solve(fine, y, alpha=1.0, memory=6e6, tol=1e-9).x, lapack(X, y, 1.0), rtol=1e-6)
    assert rowcol.solve(place, y, alpha=1.0, memory=60e6).success


def test_parts_do_not_reach_across_what_is_stored_together():
    from rowcol.places.chunks import cut_at

    for n, rows, whole in [(1_000, 70, 300), (1_000, 300, 300), (1_000, 700, 300), (1_000, 70, 1), (10, 99, 20)]:
        starts = cut_at(n, rows, whole)
        lengths = np.diff(starts)
        assert (starts[0], starts[-1]) == (0, n)
        assert 0 < lengths.min() <= lengths.max() <= rows
        for a, b in pairwise(starts):
            assert a % whole == 0 if b - a >= whole else a // whole == (b - 1) // whole


def test_a_memory_in_which_no_row_fits_is_refused(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((100, 20_000)))
    place = rowcol.chunks(tmp_path / "X.npy").X
    with pytest.raises(ValueError, match=r"memory=0.5 MB is too little for rows of 20,000 numbers"):
        rowcol.solve(place, np.ones(100), alpha=1.0, memory=5e5)
    assert rowcol.solve(place, np.ones(100), alpha=1.0, memory=2e6).success


def test_a_zip_that_is_called_npy_is_refused_in_words(tmp_path):
    np.savez(tmp_path / "X.npz", X=np.eye(3))
    (tmp_path / "X.npz").rename(tmp_path / "X.npy")
    with pytest.raises(ValueError, match=r"X\.npy is not a \.npy file"):
        rowcol.chunks(tmp_path / "X.npy")
    for read in (matrix_from, table_from):
        with pytest.raises(ValueError, match="zip"):
            read(tmp_path / "X.npy")


@pytest.mark.parametrize("model", [rowcol.Ridge(), rowcol.KernelRidge(gamma=0.1)])
def test_files_whose_columns_come_in_another_order_are_refused(tmp_path, model):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((300, 3)), columns=["a", "b", "c"]).assign(y=rng.standard_normal(300))
    table.to_parquet(tmp_path / "t.parquet")
    X, y, _ = rowcol.chunks(tmp_path / "t.parquet", target="y")
    model.fit(X, y)
    want = type(model)(**model.get_params()).fit(table[["a", "b", "c"]], table["y"]).predict(table[["a", "b", "c"]])
    np.testing.assert_allclose(model.predict(X), want, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match=r"X has column 'b' where 'a' was fitted"):
        model.predict(rowcol.chunks(tmp_path / "t.parquet", columns=["b", "a", "c"]).X)

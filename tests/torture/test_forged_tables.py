"""Named forgeries of tables: each of these ended the process, took seconds, or asked for all memory there is."""

import struct
import warnings
from pathlib import Path

import doors
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse as sp

import rowcol
from rowcol.files import arrow, plain
from rowcol.files.arrays import arrays_from
from rowcol.files.matlab import variables
from rowcol.files.matrices import matrix_from
from rowcol.files.table import COLUMNS, table_from

A = np.random.default_rng(1).standard_normal((6, 4))
B = sp.csc_array(np.where(np.abs(A) < 0.7, 0, A))


def refused(path, ask, says):
    with pytest.raises(ValueError, match=says) as wrong:
        ask(path)
    assert len(str(wrong.value).splitlines()) == 1
    assert path.name in str(wrong.value)


# --- MATLAB ----------------------------------------------------------------------------------------------------------


def same(found, wanted):
    """Are these the arrays of numbers that SciPy finds?"""
    wanted = {
        k: v for k, v in wanted.items() if sp.issparse(v) or (isinstance(v, np.ndarray) and v.dtype.kind in "biufc")
    }
    wanted = {k: v for k, v in wanted.items() if not k.startswith("__")}
    assert list(found) == list(wanted)
    for name, one in wanted.items():
        assert sp.issparse(found[name]) == sp.issparse(one)
        pair = [v.toarray() if sp.issparse(v) else v for v in (found[name], one)]
        assert pair[0].dtype.kind == pair[1].dtype.kind or pair[1].dtype == bool
        np.testing.assert_array_equal(*pair)


HELD = {
    "X": A,
    "y": A[:, 0],
    "single": A.astype(np.float32),
    "whole": np.arange(6, dtype=np.int16),
    "large": np.array([2**62], np.uint64),
    "z": A + 1j,
    "cube": np.arange(24.0).reshape(2, 3, 4),
    "none": np.zeros((0, 3)),
    "S": B,
    "Z": B * (1 + 2j),
    "text": "words",
    "cell": np.array([1, "a"], object),
    "struct": {"a": 1},
}


@pytest.mark.parametrize("how", [{}, {"do_compression": True}, {"format": "4"}])
def test_matlabs_files_are_what_scipy_wrote(how, tmp_path):
    old = ("X", "y", "z", "S", "Z", "text") if how.get("format") else HELD
    scipy.io.savemat(tmp_path / "t.mat", {name: HELD[name] for name in old}, **how)
    same(variables((tmp_path / "t.mat").read_bytes()), scipy.io.loadmat(tmp_path / "t.mat", spmatrix=False))
    assert list(arrays_from(tmp_path / "t.mat")) == [
        k for k in old if k in HELD and k not in ("z", "text", "cell", "struct")
    ]


def test_matlabs_own_files_are_read_as_scipy_reads_them():
    """Those that SciPy tests itself with, from MATLAB 4 to 8; where SciPy has none there are none."""
    for path in sorted((Path(scipy.io.__file__).parent / "matlab" / "tests" / "data").glob("*.mat")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = scipy.io.loadmat(path, spmatrix=False)
            except Exception:  # meant to be broken, or HDF5
                continue
        same(variables(path.read_bytes()), wanted)


def mat(shape, starts, places, values):
    """A sparse matrix of version 5, whatever it says."""

    def element(kind, held):
        return struct.pack("<II", kind, len(held)) + held + bytes(-len(held) % 8)

    body = element(6, struct.pack("<II", 5, len(values))) + element(5, struct.pack("<ii", *shape)) + element(1, b"X")
    body += element(5, np.asarray(places, "<i4").tobytes()) + element(5, np.asarray(starts, "<i4").tobytes())
    body += element(9, np.asarray(values, "<f8").tobytes())
    return b"MATLAB".ljust(124) + b"\x00\x01IM" + element(14, body)


def test_a_sparse_matrix_of_matlab_by_hand(tmp_path):
    path = tmp_path / "forged.mat"
    path.write_bytes(mat((3, 2), [0, 1, 2], [0, 2], [5, 7]))
    assert matrix_from(path).toarray().tolist() == [[5, 0], [0, 0], [0, 7]]
    for wrong, says in {
        ((3, 2), (0, 10**8, 0), (0, 2), (5, 7)): "indptr falls",  # SciPy does not look where there are no entries
        ((3, 2), (0, 1, 9), (0, 2), (5, 7)): "declares 9 values, and has 2",
        ((3, 2), (0, 1, 2), (0, 3), (5, 7)): "indices must be < 3",
        ((2**31 - 1, 2), (0, 1, 2), (0, 2), (5, 7)): "more than the file can hold",
        ((3, 2**31 - 1), (0, 1, 2), (0, 2), (5, 7)): "no sparse matrix",
    }.items():
        path.write_bytes(mat(*wrong))
        refused(path, matrix_from, says)
        refused(path, table_from, says)


def test_a_variable_that_unpacks_to_all_memory(tmp_path):
    scipy.io.savemat(tmp_path / "good.mat", {"X": np.zeros((300, 300))}, do_compression=True)
    assert variables((tmp_path / "good.mat").read_bytes())["X"].shape == (300, 300)
    import zlib

    bomb = zlib.compress(struct.pack("<II", 14, 2**31) + bytes(1000))
    path = tmp_path / "forged.mat"
    path.write_bytes(b"MATLAB".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(bomb)) + bomb)
    refused(path, matrix_from, "more than the file can hold")


# --- sparse ones -----------------------------------------------------------------------------------------------------


def test_sparse_files_without_entries_whose_lines_lead_elsewhere(tmp_path):
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 10**8, 0, 0])}
    np.savez(tmp_path / "forged.npz", format=np.array(b"csr"), shape=np.array([3, 3]), **parts)
    refused(tmp_path / "forged.npz", matrix_from, "indptr falls")
    refused(tmp_path / "forged.npz", table_from, "indptr falls")
    told = {"$sparse": "csr", "shape": [3, 3], "data": {"$array": 0}, "indices": {"$array": 1}, "indptr": {"$array": 2}}
    with pytest.raises(ValueError, match="indptr falls"):
        plain.Unpacking(list(parts.values())).unpack(told)


def test_a_sparse_table_cannot_ask_for_names_of_all_numbers(tmp_path):
    """Each column has a name: a file of twenty bytes had 16 million of them, in ten seconds and two gigabytes."""
    path = tmp_path / "forged.svmlight"
    path.write_text(f"1 0:1 {COLUMNS + 10_000}:2\n2 1:3\n")
    refused(path, table_from, r"X declares 1,058,577 columns, more than the file can hold")
    path = tmp_path / "forged.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 15000000 1\n1 1 1\n")
    refused(path, table_from, "15,000,000 columns")
    assert matrix_from(path).shape == (2, 15_000_000), "a matrix has no names"
    path = tmp_path / "hashed.svmlight"
    path.write_text(f"1 0:1 {2**20 - 1}:2\n2 1:3\n")
    assert len(table_from(path).names) == 2**20 + 1


# --- Arrow -----------------------------------------------------------------------------------------------------------


def test_offsets_of_arrow_that_lead_out_of_their_text(tmp_path):
    path = tmp_path / "forged.arrow"
    towns = pa.table({"town": pa.array(doors.TOWNS, pa.string()), "n": range(12)})
    pa.feather.write_feather(towns, path, compression="uncompressed")
    assert table_from(path).text["town"].tolist() == doors.TOWNS.tolist()
    raw = path.read_bytes()
    at = raw.index(np.cumsum([0, *map(len, map(str.encode, doors.TOWNS))]).astype("<i4").tobytes()[:16])
    for number in (2**31 - 1, 10**6, -5):
        path.write_bytes(raw[: at + 8] + struct.pack("<i", number) + raw[at + 12 :])
        refused(path, table_from, "cannot be read as a table")


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_buffer_of_arrow_cannot_declare_all_memory(compression, tmp_path):
    path = tmp_path / "forged.feather"
    zeros = pd.DataFrame({"a": np.zeros(3000)})
    zeros.to_feather(path, compression=compression)
    assert table_from(path).numbers.shape == (3000, 1)
    raw = path.read_bytes()
    at = raw.rindex(struct.pack("<q", 24_000))  # how much it will be
    for number in (2**46, 2**62, 10**9):
        path.write_bytes(raw[:at] + struct.pack("<q", number) + raw[at + 8 :])
        refused(path, table_from, "more than the file can hold")


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_what_arrow_declares_is_what_arrow_wrote(kind, compression, tmp_path):
    """Eight bytes a value, or what the buffers are: our reading of messages against Arrow's own count."""
    table = pa.table(
        {"a": A[:, 0], "town": pa.array(["Ulm", None, "Köln"] * 2).dictionary_encode(), "x": ["a" * 500] * 6}
    )
    options = pa.ipc.IpcWriteOptions(compression=compression)
    begin = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with begin(str(tmp_path / "t.arrow"), table.schema, options=options) as file:
        file.write_table(table, max_chunksize=4)
    with pa.memory_map(str(tmp_path / "t.arrow")) as held:
        held.seek(8 if kind == "file" else 0)
        said = [arrow._declared(one) for one in pa.ipc.MessageReader.open_stream(held)]
    text = [4 * 500 + 5 * 4, 2 * 500 + 3 * 4]  # of six rows in two batches: the letters and where they begin
    assert len(said) == 4, "a schema, a dictionary and two batches"
    assert said[0] == 0
    if compression:
        assert all(a >= b for a, b in zip(said[2:], text))
    else:
        assert said[1:] == [8 * 2, 8 * 3 * 4, 8 * 3 * 2]
    found = table_from(tmp_path / "t.arrow")
    np.testing.assert_array_equal(found.numbers[:, 0], A[:, 0])
    assert found.text["town"].tolist() == ["Ulm", None, "Köln"] * 2


def test_rows_without_number_and_feather_of_old(tmp_path, monkeypatch):
    many = pa.table({"n": pa.nulls(40_000_000)})  # nothing is written of them
    pa.feather.write_feather(many, tmp_path / "forged.feather", chunksize=40_000_000)
    refused(tmp_path / "forged.feather", table_from, "more than the file can hold")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pa.feather.write_feather(pa.table({"a": A[:, 0]}), tmp_path / "old.feather", version=1)
    refused(tmp_path / "old.feather", table_from, "Feather of version 1")
    monkeypatch.setattr(arrow, "FREE", 0)
    pa.parquet.write_table(pa.table({"n": np.zeros(3_000_000)}), tmp_path / "forged.parquet")
    refused(tmp_path / "forged.parquet", table_from, "24,000,000 bytes, more than the file can hold")


def test_members_of_an_npz_that_are_no_arrays(tmp_path):
    path = tmp_path / "forged.npz"
    path.write_bytes(doors.zip_of({"X.npy": b"no array"}))
    refused(path, matrix_from, "no array")
    refused(path, table_from, "no array")


# --- files in chunks -------------------------------------------------------------------------------------------------


def test_chunks_of_hdf5_do_not_follow_links_to_other_files(tmp_path):
    import h5py

    doors.hdf5(tmp_path / "other.h5", A)
    with h5py.File(tmp_path / "forged.h5", "w") as file:
        file["own"] = A
        file["linked"] = h5py.ExternalLink("other.h5", "X")
        layout = h5py.VirtualLayout(A.shape, A.dtype)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "X", A.shape)
    np.testing.assert_array_equal(next(rowcol.chunks(tmp_path / "forged.h5").X.parts())[1], A)
    for name in ("linked", "/linked"):
        with pytest.raises(ValueError, match=r"forged.h5: .*others are not followed"):
            rowcol.chunks(tmp_path / "forged.h5", name=name)
    with h5py.File(tmp_path / "forged.h5", "a") as file:
        file.create_virtual_dataset("virtual", layout)
    with pytest.raises(ValueError, match="others are not followed"):
        rowcol.chunks(tmp_path / "forged.h5", name="virtual")
    (tmp_path / "forged.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    refused(tmp_path / "forged.h5", rowcol.chunks, "cannot be read as HDF5")


def test_chunks_of_arrow_do_not_read_beyond_their_buffers(tmp_path):
    path = tmp_path / "forged.arrow"
    pa.feather.write_feather(pa.table({"a": A[:, 0]}), path, compression="uncompressed")
    raw = path.read_bytes()
    path.write_bytes(raw.replace(struct.pack("<q", 6), struct.pack("<q", 10**5)))  # values, and rows
    with pytest.raises(ValueError, match=r"^forged.arrow: .*Buffer"):
        list(rowcol.chunks(path).X.parts())

"""Parquet files of many short row groups: what tells where these lie is parsed once, and counts."""

import copy
import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowcol
from oracle import lapack
from test_place_tables import TAKEN


def stored(path, n, p, rows, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, p))
    table = pa.table({f"c{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, path, row_group_size=rows, use_dictionary=False)
    return X


@pytest.mark.parametrize("memory", ["1GB", "1MB"])  # by row groups, and as a stream
def test_it_is_parsed_once_for_all_passes_and_anew_where_the_file_is_another(tmp_path, monkeypatch, memory):
    asked, parse = [], pq.read_metadata
    monkeypatch.setattr(pq, "read_metadata", lambda path: asked.append(path) or parse(path))
    path, y = tmp_path / "X.parquet", np.arange(4_000) % 7.0
    X = stored(path, 4_000, 5, 100)
    place = rowcol.chunks(path).X
    asked.clear()
    for alpha in (0.0, 3.0):
        result = rowcol.solve(place, y, alpha=alpha, method="cg", tol=1e-10, memory=memory)
        assert result.passes > 3
        np.testing.assert_allclose(result.x, lapack(X, y, alpha), rtol=1e-7)
    assert not asked  # since it was opened
    other = stored(path, 4_000, 5, 100, seed=1)
    np.testing.assert_allclose(rowcol.solve(place, y, tol=1e-10, memory=memory).x, lapack(other, y), rtol=1e-7)
    assert len(asked) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="what is taken is read from /proc")
def test_where_it_does_not_fit_that_is_refused_and_the_memory_that_is_named_is_kept(tmp_path):
    n, p = 40_000, 60
    stored(tmp_path / "X.parquet", n, p, 100)  # 24,000 columns of row groups
    stored(tmp_path / "small.parquet", 1_000, p, 100)
    place = rowcol.chunks(tmp_path / "X.parquet").X
    says = r"row groups of 100 rows, and where each of them lies takes about 29 MB to know, of .* in longer row groups"
    with pytest.raises(ValueError, match=says) as told:
        rowcol.solve(place, np.ones(n), memory="20 MB")
    enough = float(re.search(r"memory='(\d+) MB'", str(told.value))[1]) * 1e6
    words = [sys.executable, "-c", TAKEN, str(tmp_path / "X.parquet"), str(tmp_path / "small.parquet"), str(enough)]
    taken, foretold, success = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert success
    assert 20e6 < taken <= min(enough, foretold), f"{taken / 1e6:.0f} MB"  # so it would not have done with the 20


def test_files_of_a_folder_share_what_is_counted(tmp_path, monkeypatch):
    """Threads are in several files at a time, and the footers of no more are there than are counted."""
    asked, parse = [], pq.read_metadata
    for j in range(6):
        stored(tmp_path / f"{j}.parquet", 2_000, 20, 50, seed=j)
    one = rowcol.chunks(tmp_path / "0.parquet").X.kept
    place = rowcol.chunks(tmp_path).X
    assert one < place.kept <= 6 * one
    few = rowcol.chunks([tmp_path / f"{j}.parquet" for j in range(3)]).X
    monkeypatch.setattr(pq, "read_metadata", lambda path: asked.append(path) or parse(path))
    rowcol.solve(few, np.arange(6_000) % 7.0, method="cg", tol=1e-9)
    assert not asked
    rowcol.solve(place, np.arange(12_000) % 7.0, method="cg", tol=1e-9)
    assert asked


def test_tables_can_be_sent_and_copied(tmp_path):
    X = stored(tmp_path / "X.parquet", 400, 5, 100)
    place = rowcol.chunks(tmp_path / "X.parquet").X
    for other in (pickle.loads(pickle.dumps(place)), copy.deepcopy(place)):
        np.testing.assert_array_equal(np.concatenate([part for _, part in other.parts()]), X)

"""What a review found in X that lies elsewhere, and beside it."""

import threading

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import rowcol
from oracle import lapack, scattered, uneven
from rowcol import resuming
from rowcol.core.far import bytes_here
from rowcol.files.market import market
from rowcol.methods import costs
from rowcol.places.crew import LostError


def pieces(X, rows=100):
    return rowcol.chunks(lambda: (X[i : i + rows] for i in range(0, X.shape[0], rows))).X


@pytest.mark.parametrize("model", [rowcol.Ridge(), rowcol.KernelRidge(kernel="rbf", memory="30 MB")], ids=str)
def test_a_masked_y_is_refused_beside_chunks_too(model):
    X = np.random.default_rng(0).standard_normal((600, 2_000))
    y = np.ma.masked_greater(np.arange(600.0), 400)
    with pytest.raises(TypeError, match="y is a masked array"):
        model.fit(pieces(X), y)


def test_indices_that_were_changed_after_a_solve_are_looked_at_again():
    X = scattered(np.random.default_rng(0), 60, 20, 0.3)
    X.sum_duplicates()
    y = np.ones(60)
    rowcol.solve(X, y, alpha=1.0, method="rk", random_state=0)
    X.indices[X.indptr[3] + 1] = 10**9  # SciPy still takes it for sorted
    with pytest.raises(ValueError, match="indices outside of its shape"):
        rowcol.solve(X, y, alpha=1.0, method="rk", random_state=0)


def test_pages_of_files_that_nobody_uses_are_no_part_of_what_a_container_has_used(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000000000\n")
    (tmp_path / "memory.current").write_text("999950000\n")
    (tmp_path / "memory.stat").write_text("anon 100\nfile 800000000\ninactive_file 700000000\nactive_file 1\n")
    assert costs.budget(None) == pytest.approx(350_025_000, rel=1e-6)
    (tmp_path / "memory.max").write_text("max\n")
    assert costs.budget(None) > 1e9 or costs._meminfo() < 2e9


@pytest.mark.parametrize(
    "wrong", [LostError("workers were lost"), ValueError("begin: chunk 3 of 4 cannot be read"), UserWarning("so")]
)
def test_a_sound_checkpoint_is_not_blamed_for_what_others_did(tmp_path, monkeypatch, wrong):
    X, y = uneven(400)

    def begin():
        return (X[i : i + 100] for i in range(0, 400, 100))

    place, path = rowcol.chunks(begin).X, tmp_path / "checkpoint"
    rowcol.solve(place, y, alpha=1.0, method="cg", checkpoint=path, callback=lambda now: True)

    def failing(*given, **named):
        raise wrong

    monkeypatch.setattr(resuming, "solve", failing)
    with pytest.raises(type(wrong)) as caught:
        rowcol.resume(path, place, y)
    assert caught.value is wrong


def test_a_source_that_may_not_bear_threads_is_read_by_one():
    X, y = uneven(3_000)

    class Source:
        shape, dtype, inside, most = X.shape, X.dtype, 0, 0
        lock = threading.Lock()

        def __getitem__(self, rows):
            with self.lock:
                Source.inside += 1
                Source.most = max(Source.most, Source.inside)
            np.linalg.svd(X[rows], compute_uv=False)  # takes a while, in which others could come in
            with self.lock:
                Source.inside -= 1
            return X[rows]

    result = rowcol.solve(rowcol.chunks(Source(), rows=200).X, y, method="cg", tol=1e-9, n_jobs=2)
    np.testing.assert_allclose(result.x, lapack(X, y), rtol=1e-6)
    assert Source.most == 1


def test_kernels_of_sparse_and_dense_parts_are_refused():
    X = np.random.default_rng(0).standard_normal((400, 3_000))
    place = rowcol.chunks(
        lambda: (X[i : i + 50] if i < 200 else sp.csr_array(X[i : i + 50]) for i in range(0, 400, 50))
    ).X
    with pytest.raises(TypeError, match="parts that are sparse and parts that are not"):
        rowcol.solve(place, np.ones(400), kernel="rbf", alpha=1.0, memory="33 MB")


def test_sums_of_kernels_take_room_for_each():
    place = pieces(np.ones((600, 50)))
    place.room = 10**9
    assert bytes_here(place, 5) == bytes_here(place, 1) + 4 * 8 * 50 * (600 + 3 * 100)


def test_a_skew_symmetric_file_of_short_values_is_read(tmp_path):
    K = np.triu(np.ones((90, 90)), 1)
    K = (K - K.T).astype(int)
    lines = [str(K[i, j]).removeprefix("-") for j in range(90) for i in range(j + 1, 90)]
    text = "%%MatrixMarket matrix array integer skew-symmetric\n90 90\n" + "\n".join(lines) + "\n"
    (tmp_path / "K.mtx").write_text(text)
    np.testing.assert_array_equal(market(tmp_path / "K.mtx"), scipy.io.mmread(tmp_path / "K.mtx"))

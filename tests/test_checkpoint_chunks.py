"""What goes wrong with X in chunks in the middle of a solve: it is named, and the last checkpoint is whole."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import rowcol
from cases import CASES, told
from rowcol import asking, checkpoints
from rowcol.files import writing
from rowcol.places import opening

pytestmark = pytest.mark.filterwarnings("ignore::rowcol.ConvergenceWarning")
rng = np.random.default_rng(2)
X = rng.standard_normal((1000, 30)) @ np.diag(np.logspace(0, -2, 30))
Y = X @ rng.standard_normal(30) + 0.1 * rng.standard_normal(1000)
WAYS = {
    "cg": dict(method="cg", alpha=1e-3, tol=1e-9),
    "rows": dict(method="rk", alpha=1.0, tol=1e-6, max_passes=25),
    "intercept": dict(method="cg", alpha=1e-3, tol=1e-9, fit_intercept=True),
}


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)


class Source:
    """An array of 100 chunks, the seventh of which goes bad when it is read for the so manieth time."""

    shape, dtype = X.shape, X.dtype

    def __init__(self, bad=None, at=0):
        self.bad, self.at, self.reads = bad, at, 0

    def __getitem__(self, rows):
        part = X[rows].copy()
        if rows.start == 60:
            self.reads += 1
            if self.bad is not None and self.reads > self.at:
                return self.bad(part)
        return part


def _with_nan(part):
    part[3, 5] = np.nan
    return part


def _gone(part):
    raise FileNotFoundError(errno.ENOENT, "No such file or directory")


BAD = {
    "nan": (_with_nan, r"chunk 7 of 100 \(rows 60 to 69\) has a NaN or infinity in its row 3, column 5: drop"),
    "gone": (_gone, r"chunk 7 of 100 \(rows 60 to 69\) cannot be read: .*No such file"),
    "short": (lambda part: part[:4], r"chunk 7 of 100 .* should be 10 x 30, but is \(4, 30\): it was cut or changed"),
    "narrow": (lambda part: part[:, :9], r"chunk 7 of 100 .* should be 10 x 30, but is \(10, 9\): it was cut"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("way", WAYS)
def test_a_chunk_goes_bad_in_the_middle_and_the_checkpoint_goes_on_once_it_is_mended(way, bad, tmp_path):
    asked = WAYS[way] | dict(random_state=0, memory="1 GB", n_jobs=1)
    all_along = Source()
    whole = rowcol.solve(rowcol.chunks(all_along, rows=10).X, Y, **asked)
    assert len(whole.history.passes) > 10
    spoil, said = BAD[bad]
    resumed = 0
    for at in np.unique(np.linspace(3, all_along.reads - 1, 6).astype(int)):
        source, path = Source(spoil, at), tmp_path / f"{at}"
        place = rowcol.chunks(source, rows=10).X
        with pytest.raises((ValueError, OSError), match=said):
            rowcol.solve(place, Y, checkpoint=rowcol.Checkpoint(path, seconds=0), **asked)
        if not path.exists():
            continue  # it was before the first round
        held = path.read_bytes()
        with pytest.raises((ValueError, OSError)) as caught:
            rowcol.resume(path, place, Y)  # it is still bad
        text = str(caught.value)
        assert "chunk 7 of 100" in text or "X has other values" in text
        assert "damaged" not in text
        assert path.read_bytes() == held
        source.bad, rounds = None, []
        result = rowcol.resume(path, place, Y, callback=rounds.append)
        a, b = told(whole), told(result)
        assert [name for name in a if a[name] != b[name]] == []
        resumed += len(rounds) < len(whole.history.passes)
    assert resumed >= 3


def test_a_file_that_vanishes_in_the_middle(tmp_path):
    """A real file, by its name; then other rows are in its place."""
    np.save(tmp_path / "X.npy", X)
    asked = dict(method="cg", alpha=1e-3, tol=1e-9, random_state=0, memory="1 GB", n_jobs=1)
    place = rowcol.chunks(tmp_path / "X.npy", rows=10).X
    whole, rounds, path = rowcol.solve(place, Y, **asked), [], tmp_path / "at"

    def away(progress):
        rounds.append(1)
        if len(rounds) == 6:
            (tmp_path / "X.npy").rename(tmp_path / "away.npy")

    with pytest.raises(OSError, match=r"X.npy: chunk 1 of 100 \(rows 0 to 9\) cannot be read: .*No such file"):
        rowcol.solve(place, Y, checkpoint=rowcol.Checkpoint(path, seconds=0), callback=away, **asked)
    np.save(tmp_path / "X.npy", 2 * X)
    with pytest.raises(ValueError, match="checkpoint: at is of another solve, as X has other values"):
        rowcol.resume(path, place, Y)
    (tmp_path / "away.npy").rename(tmp_path / "X.npy")
    rounds.clear()
    a, b = told(whole), told(rowcol.resume(path, place, Y, callback=rounds.append))
    assert [name for name in a if a[name] != b[name]] == []
    assert len(rounds) == len(whole.history.passes) - 6


# --- what is free, and how full the disk is --------------------------------------------------------------------------


CG = dict(method="cg", alpha=1e-3, tol=1e-9)


@pytest.mark.parametrize(
    ("way", "first", "then"),
    [(CG, 1 << 40, 100_000), (CG, 100_000, 1 << 40), (dict(kernel="rbf", alpha=0.01, method="cg"), 1 << 40, 10**5)],
    ids=["in place", "in parts", "a kernel"],
)
def test_x_is_placed_by_the_budget_that_a_solve_was_begun_with(way, first, then, tmp_path, monkeypatch):
    """What is free decides whether a memory map is used in place, or read in parts: when it is begun, and only then."""
    np.save(tmp_path / "X.npy", X)
    mapped, path = np.load(tmp_path / "X.npy", mmap_mode="r"), tmp_path / "at"
    now = [first]
    monkeypatch.setattr(asking, "budget", lambda memory: now[0])
    asked = way | dict(random_state=0, n_jobs=1)
    whole = rowcol.solve(mapped, Y, **asked)
    calls = []
    rowcol.solve(mapped, Y, checkpoint=path, callback=lambda progress: calls.append(1) or len(calls) > 3, **asked)
    now[0] = then
    a, b = told(whole), told(rowcol.resume(path, mapped, Y))
    assert [name for name in a if a[name] != b[name]] == []


def test_parts_are_counted_and_not_listed(tmp_path):
    place, path = rowcol.chunks(np.ones((8000, 2)), rows=2).X, tmp_path / "at"
    rowcol.solve(place, np.ones(8000), method="cg", checkpoint=path)
    other = rowcol.chunks(np.ones((8000, 2)), rows=3).X
    for X_now, said in ((other, "2,667 parts of 3 rows"), (np.ones((8000, 2)), "rows")):
        with pytest.raises(ValueError, match=f"layout of X is {said} here, and 4,000 parts of 2 rows there") as caught:
            rowcol.resume(path, X_now, np.ones(8000))
        assert len(str(caught.value)) < 250


def test_a_first_checkpoint_fits_where_room_was_found_for_it(tmp_path, monkeypatch):
    found, sizes, write = [], [], checkpoints.write

    def room(path, size):
        found.append(size)

    def counted(path, *rest):
        write(path, *rest)
        sizes.append(os.path.getsize(path))

    monkeypatch.setattr(checkpoints, "writable", room)
    monkeypatch.setattr(checkpoints, "write", counted)
    for k, (A, b, options) in enumerate(CASES.values()):
        sizes.clear()
        rowcol.solve(
            A, b, checkpoint=rowcol.Checkpoint(tmp_path / f"{k}", seconds=1e6), callback=lambda p: 1, **options
        )
        assert sizes[0] <= found[-1] <= 5 * sizes[0] + 20_000


FULL = """
import json, resource, sys, warnings
import numpy as np, rowcol
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
rng, calls = np.random.default_rng(0), []
X, y = rng.standard_normal((4000, 30)), rng.standard_normal(4000)
try:
    rowcol.solve(X, y, alpha=1.0, method="rk", max_passes=3, checkpoint=sys.argv[1], callback=calls.append)
    said = ""
except OSError as wrong:
    said = str(wrong)
print(json.dumps([said, len(calls)]))
"""


@pytest.mark.parametrize("room", [4_000, 10_000_000])
def test_a_disk_that_is_full_from_the_beginning_is_said_before_any_work(room, tmp_path):
    pytest.importorskip("resource", reason="a limit stands for a full disk")
    env = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(rowcol.__file__))}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "at"), str(room)], capture_output=True, text=True, env=env
    )
    said, calls = json.loads(done.stdout)
    if room > 1_000_000:
        assert (said, calls > 0, os.listdir(tmp_path)) == ("", True, ["at"])
        return
    assert calls == 0
    assert said.endswith("at cannot be written, File too large: about 1 MB are needed: make room, or name another file")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EOPNOTSUPP])
def test_file_systems_that_set_nothing_aside_are_written_to(number, tmp_path, monkeypatch):
    def refused(*given):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refused, raising=False)
    if number != errno.EOPNOTSUPP:
        with pytest.raises(OSError, match=r"about 3 MB are needed: make room, or name another file"):
            writing.writable(tmp_path / "at", 3_000_000)
    else:
        writing.writable(tmp_path / "at", 3_000_000)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_before_the_first_checkpoint_leaves_none(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "write", full)
    with pytest.warns(rowcol.CheckpointWarning, match="no checkpoint could be written, and there is none: .*No space"):
        rowcol.solve(X, Y, method="cg", checkpoint=tmp_path / "at")


# --- samplers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        dict(sampler="uniform"),
        dict(sampler="shuffled", fit_intercept=True, alpha=1.0),
        dict(method="rk", sampler="norms"),
        dict(method="rk", sampler=np.ones(3)),
        dict(method="rk", sampler=np.ones(1000)),
    ],
    ids=lambda asked: ", ".join(asked),
)
def test_samplers_are_refused_where_rows_come_part_by_part(asked):
    source = Source()
    place = opening.chunks(source, rows=10).X
    with pytest.raises(TypeError, match=r"sampler cannot be used where rows of X lie elsewhere.*: leave out"):
        rowcol.solve(place, Y, **asked)
    assert source.reads == 0
    assert rowcol.solve(place, Y, alpha=1.0, method="rk", sampler="shuffled", max_passes=2).sampler == "shuffled"

"""A solve that was cut short goes on to the bits of one that was not: the uninterrupted run is the truth."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from typer.testing import CliRunner

import rowcol
from cases import AT_ONCE, CASES, HARD, POINTS, TALL, VALUES, Y, told
from rowcol import checkpoints
from rowcol.asking import METHODS
from rowcol.cli import app
from rowcol.core import view
from rowcol.files import archive
from rowcol.methods.kernel_routes import ROUTES as KERNEL_ROUTES

pytestmark = pytest.mark.filterwarnings("ignore::rowcol.ConvergenceWarning")
RARELY = 1e6  # seconds: only what has to be written is


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    """Nobody pulls the plug: what the disk has yet to write down is not waited for."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


class After:
    """A callback that stops after so many rounds, and counts them."""

    def __init__(self, count=np.inf):
        self.count, self.calls = count, 0

    def __call__(self, progress):
        self.calls += 1
        return self.calls >= self.count


def same(a, b):
    """All that a Result tells, but for times."""
    a_told, b_told = told(a), told(b)
    assert [name for name in a_told if a_told[name] != b_told[name]] == []
    assert b.history.seconds == sorted(b.history.seconds)


def common(options):
    return {"random_state": 3, "memory": "1 GB", "n_jobs": 1} | options


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_wherever_it_was_cut(name, tmp_path):
    X, y, options = CASES[name]
    every = After()
    whole = rowcol.solve(X, y, callback=every, **common(options))
    assert every.calls > 3, "an example that cannot be cut shows nothing"
    for cut in (1, max(2 * every.calls // 3, 2), every.calls - 1):
        at = rowcol.Checkpoint(tmp_path / f"{cut}", seconds=RARELY)
        rowcol.solve(X, y, callback=After(cut), checkpoint=at, **common(options))
        on = After()
        same(whole, rowcol.resume(at, X, y, callback=on))
        assert on.calls == every.calls - cut, "it went on from there"
    again = After()
    same(whole, rowcol.resume(at, X, y, callback=again))
    assert again.calls == 0


def test_the_same_bits_by_lines_packed_into_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(view, "PACKED_FROM", 1)
    X, y, options = CASES["rk, one"]
    assert rowcol.solve(X, y, **common(options)).copied == X.nbytes, "they are packed, from the second pass on"
    test_the_same_bits_wherever_it_was_cut("rk, one", tmp_path)


def test_the_same_bits_by_two_threads(tmp_path):
    X, y, options = CASES["rk"]
    whole, options = rowcol.solve(X, y, **common(options)), common(options) | {"n_jobs": 2}
    rowcol.solve(X, y, callback=After(5), checkpoint=tmp_path / "at", **options)
    same(whole, rowcol.resume(tmp_path / "at", X, y))


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_is_a_round_or_two_is_done_again(name, tmp_path):
    X, y, options = AT_ONCE[name]
    whole = rowcol.solve(X, y, **common(options))
    same(whole, rowcol.solve(X, y, checkpoint=tmp_path / "at", **common(options)))
    same(whole, rowcol.resume(tmp_path / "at", X, y))


def test_every_method_has_its_example():
    linear, kernel = (
        {options.get("method", "auto") for *_, options in (CASES | AT_ONCE).values() if ("kernel" in options) == by}
        for by in (False, True)
    )
    assert linear == set(METHODS)
    assert kernel == set(KERNEL_ROUTES)
    assert " → " in rowcol.solve(*CASES["one route, then another"][:2], tol=1e-8, random_state=3).method


def test_time_limits_are_of_a_process(tmp_path):
    """Each process takes a round, as there is no time for more; pivots are as few as the clock allowed at first."""
    X, y, options = CASES["rk"]
    whole = rowcol.solve(X, y, **common(options))
    assert rowcol.solve(X, y, max_seconds=1e-9, checkpoint=tmp_path / "a", **common(options)).status.name == "SECONDS"
    for _ in whole.history.passes[2:]:
        assert rowcol.resume(tmp_path / "a", X, y).status.name == "SECONDS"
    same(whole, rowcol.solve(X, y, checkpoint=tmp_path / "a", **common(options)))

    asked = {"kernel": "rbf", "alpha": 1e-3, "tol": 1e-6, "method": "pcg", "random_state": 0}
    first = rowcol.solve(POINTS, VALUES, max_seconds=1e-9, checkpoint=tmp_path / "b", **asked)
    assert first.plan.learned[0].startswith("0 pivots"), "there was no time for more"
    last = rowcol.resume(tmp_path / "b", POINTS, VALUES, max_seconds=1000)
    assert last.success
    assert last.plan.learned == first.plan.learned
    same(last, rowcol.resume(tmp_path / "b", POINTS, VALUES))


def test_an_operator_a_function_and_a_preconditioner_are_given_again(tmp_path):
    given = {
        "X": (aslinearoperator(HARD), Y[:80], dict(alpha=0.01)),
        "kernel": (POINTS, VALUES, dict(kernel=lambda A, B: A @ B.T + 1, alpha=0.1, method="cg")),
        "preconditioner": (HARD, Y[:80], dict(preconditioner=np.linalg.inv(HARD.T @ HARD + 1e-4), tol=1e-11)),
    }
    for name, (X, y, options) in given.items():
        whole, at = rowcol.solve(X, y, **common(options)), tmp_path / name
        rowcol.solve(X, y, callback=After(1), checkpoint=at, **common(options))
        if name != "X":
            with pytest.raises(ValueError, match=f"has no {name}, as code is in no file: call solve again"):
                rowcol.resume(at, X, y)
        on = After()
        same(whole, rowcol.solve(X, y, checkpoint=at, callback=on, **common(options)))
        assert 0 < on.calls < len(whole.history.passes)


def test_written_after_so_many_passes_and_no_more_often_than_it_pays(tmp_path, monkeypatch):
    X, y, options = CASES["rk"]
    count = []
    written = checkpoints.write
    monkeypatch.setattr(checkpoints, "write", lambda *a: (count.append(1), time.sleep(0.002), written(*a)))
    whole = rowcol.solve(X, y, checkpoint=rowcol.Checkpoint(tmp_path / "a", RARELY, passes=5), **common(options))
    assert len(count) == 1 + whole.passes // 5 - (whole.passes % 5 == 0)  # the last one is that of the end
    count.clear()
    rowcol.solve(X, y, checkpoint=rowcol.Checkpoint(tmp_path / "b", 0), **common(options))
    assert len(count) == 1 + len(whole.history.passes)
    count.clear()
    rowcol.solve(X, y, checkpoint=rowcol.Checkpoint(tmp_path / "c", 1e-9), **common(options))
    assert 2 <= len(count) < 0.8 * len(whole.history.passes)


# --- estimators and commands -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        rowcol.Ridge(0.5, solver="rk", max_iter=20, random_state=0),
        rowcol.LeastSquares(solver="cg", tol=1e-9, random_state=0),
        rowcol.KernelRidge(1e-3, kernel="rbf", solver="pcg", tol=1e-6, random_state=0, fit_intercept=True),
        rowcol.KernelRidge([0.1, 1, 2], kernel="rbf", solver="cg", random_state=0, warm_start=True),
    ],
    ids=["Ridge", "LeastSquares", "KernelRidge", "alphas"],
)
def test_a_fit_goes_on(model, tmp_path):
    X, y = (POINTS, VALUES) if isinstance(model, rowcol.KernelRidge) else (HARD, Y[:80])
    whole = clone(model).set_params(memory="1 GB").fit(X, y)
    model = clone(model).set_params(checkpoint=str(tmp_path / "at"), memory="1 GB")
    clone(model).set_params(callback=After(2)).fit(X, y)
    on = After()
    again = clone(model).set_params(callback=on).fit(X, y)
    same(whole.result_, again.result_)
    assert (again.predict(X) == whole.predict(X)).all()
    assert 0 < on.calls < len(whole.result_.history.passes)
    same(whole.result_, again.set_params(callback=None).fit(X, y).result_)
    same(whole.result_, rowcol.resume(tmp_path / "at", X, y))
    with pytest.raises(ValueError, match="checkpoint: at is of another solve, as y has other values: name another"):
        again.fit(X, y + 1e-9)
    rowcol.save(again, tmp_path / "model")
    assert rowcol.load(tmp_path / "model").checkpoint is None


def test_alphas_that_are_solved_apart_have_no_one_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="checkpoint is for one solve, and these alphas take 2"):
        rowcol.Ridge([0, 1, 1], checkpoint=tmp_path / "at").fit(TALL, Y)


def test_commands_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt(
        "t.csv", np.column_stack([TALL, Y[:, 0]]), delimiter=",", header=",".join("abcdefghijklmnopqrstu"), comments=""
    )
    run = CliRunner()
    words = ["t.csv", "--target", "u", "--alpha", "0.5", "--random-state", "0", "--json"]
    solve = ["solve", *words, "--method", "rk", "--max-passes", "20"]
    whole = json.loads(run.invoke(app, solve).stdout)
    first = run.invoke(app, [*solve, "--max-seconds", "1e-9", "--checkpoint", "at"])
    assert (first.exit_code, json.loads(first.stdout)["status"]) == (1, "SECONDS")
    last = json.loads(run.invoke(app, [*solve, "--checkpoint", "at"]).stdout)
    assert (last["x"], last["passes"], last["status"]) == (whole["x"], whole["passes"], "PASSES")
    other = run.invoke(app, [*solve, "--checkpoint", "at", "--alpha", "0.6"])
    assert other.exit_code == 2
    assert "checkpoint: at is of another solve, as alpha is another: name another file" in " ".join(
        other.output.split()
    )
    for kind, code in (("kernel-ridge", 0), ("ridge-classifier", 2)):
        done = run.invoke(app, ["fit", *words, "--model", kind, "-o", "m", "--checkpoint", f"at {kind}"])
        assert (done.exit_code, Path(f"at {kind}").exists()) == (code, code == 0), done.output


# --- files that are not what they should be --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A checkpoint in the middle of a solve, and the whole solve."""
    path = tmp_path_factory.mktemp("cut") / "cut"
    asked = dict(alpha=0.5, method="rk", sampler="shuffled", max_passes=6, random_state=0, memory="1 GB")
    X, y = TALL[:12, :3].copy(), Y[:12]
    rowcol.solve(X, y, callback=After(3), checkpoint=path, **asked)
    return path.read_bytes(), X, y, rowcol.solve(X, y, **asked)


def refused(path, X, y, whole):
    """A clear line that says what to do; or, where it did not matter, the same bits."""
    try:
        result = rowcol.resume(path, X, y)
    except ValueError as wrong:
        text = str(wrong)
        assert text.startswith(("checkpoint:", f"checkpoint: {path.name}")), text
        assert "\n" not in text
        assert "remove it" in text
        return True
    same(whole, result)
    return False


def test_cut_and_changed_files_are_refused(cut, tmp_path):
    held, X, y, whole = cut
    path = tmp_path / "bad"
    for at in range(0, len(held), 97):
        path.write_bytes(held[:at])
        assert refused(path, X, y, whole), f"{at} bytes of {len(held)}"
    told = 0
    for at in range(0, len(held), 61):
        path.write_bytes(held[:at] + bytes([held[at] ^ 0x55]) + held[at + 1 :])
        told += refused(path, X, y, whole)
    assert told > 0.7 * len(range(0, len(held), 61))  # the rest is dates and the like, of which nothing is read


def forged(held, path):
    path.write_bytes(held)
    return archive.read(path, checkpoints.TREE, "checkpoint")


@pytest.mark.parametrize("name", ["rek, shuffled", "level, rows", "cg, alphas, rows", "kernel blocks"])
def test_forged_arrays_are_refused_before_compiled_code_sees_them(name, tmp_path):
    """Every array of another size or type, or of places that are not there; all checksums are right."""
    X, y, options = CASES[name]
    path, told = tmp_path / "forged", []
    rowcol.solve(X, y, callback=After(4), checkpoint=path, **common(options))
    tree, arrays = archive.read(path, checkpoints.TREE, "checkpoint")
    for k, a in enumerate(arrays):
        if f'"$array": {k}}}' in json.dumps(tree["parameters"]):
            continue  # it is compared, or used as any parameter is
        bad = [np.concatenate([a, a]), a.astype(np.float32)]
        bad += [np.full_like(a, 2**40), np.full_like(a, -5)] if a.dtype == np.int64 else []
        archive.write(path, tree, [*arrays[:k], bad[k % len(bad)], *arrays[k + 1 :]], checkpoints.TREE)
        try:
            rowcol.resume(path, X, y, callback=After(1))
        except ValueError as wrong:
            told.append(str(wrong))
    assert all("remove it" in text and "\n" not in text for text in told)
    assert len(told) > 0.8 * len(arrays)  # but for what is empty, or no longer needed


def test_forged_trees_are_refused(cut, tmp_path):
    held, X, y, whole = cut
    path = tmp_path / "forged"
    tree, arrays = forged(held, path)
    text = json.dumps(tree)
    for old, new in (
        ('"length": ', '"length": "x", "was": '),
        ('"place": ', '"place": 99, "was": '),
        ('"done": false', '"done": 0'),
        ('"PASSES"', '"NONE"'),
        ('"mover"', '"moved"'),
        ('"seconds"', '"hours"'),
        ('"entropy": 0', '"entropy": "0"'),
        ('"parameters"', '"parameter"'),
    ):
        if old in text:
            archive.write(path, json.loads(text.replace(old, new)), arrays, checkpoints.TREE)
            assert refused(path, X, y, whole), old


def test_foreign_files_are_refused(cut, tmp_path):
    held, X, y, _ = cut
    path = tmp_path / "other"
    tree, arrays = forged(held, path)
    for change, said in (
        ({"format": 99, "rowcol": "9.9"}, r"other was made by a newer rowcol \(9.9\); remove it"),
        (
            {"rowcol": "0.1"},
            f"other was made by rowcol 0.1, and this is {rowcol.__version__}: go on by that one; remove",
        ),
        ({"format": None}, "other is no checkpoint of rowcol, or it is damaged: it has no format number; remove it"),
    ):
        archive.write(path, tree | change, arrays, checkpoints.TREE)
        with pytest.raises(ValueError, match=f"^checkpoint: {said}"):
            rowcol.resume(path, X, y)
    rowcol.save(rowcol.Ridge().fit(X, y), path)
    with zipfile.ZipFile(tmp_path / "zip", "w") as foreign:
        foreign.writestr("readme", "hello")
    (tmp_path / "text").write_text("hello")
    for one in ("other", "zip", "text"):
        with pytest.raises(
            ValueError, match=f"^checkpoint: {one} is no checkpoint of rowcol, or it is damaged: .*remove"
        ):
            rowcol.resume(tmp_path / one, X, y)
    with pytest.raises(FileNotFoundError, match=r"checkpoint: there is no file .*none to go on from"):
        rowcol.resume(tmp_path / "none", X, y)
    with pytest.raises(ValueError, match="checkpoint must be a file"):
        rowcol.solve(X, y, checkpoint=tmp_path)
    with pytest.raises(TypeError, match=r"checkpoint must be the path of a file, or a rowcol\.Checkpoint, got int"):
        rowcol.solve(X, y, checkpoint=3)
    with pytest.raises(ValueError, match="seconds"):
        rowcol.solve(X, y, checkpoint=rowcol.Checkpoint(tmp_path / "c", seconds=-1))


def test_another_problem_is_told_from_this_one(tmp_path):
    asked = dict(alpha=0.5, method="rk", max_passes=4, random_state=0, memory="1 GB")
    at = tmp_path / "at"
    rowcol.solve(TALL, Y, checkpoint=at, callback=After(1), **asked)
    one = TALL.copy()
    one[77, 3] = np.nextafter(one[77, 3], 9)
    swapped = TALL[:, [1, 0, *range(2, 20)]]
    for X, y, said in (
        (one, Y, "X has other values"),
        (np.ascontiguousarray(swapped), Y, "X has other values"),
        (TALL, Y + 1e-12, "y has other values"),
        (np.asfortranarray(TALL), Y, "layout of X is columns here, and rows there"),
        (TALL.astype(np.float32), Y, "type of X is float32 here, and float64 there"),
        (TALL[:-1], Y[:-1], r"shape of X is \[119, 20\] here, and \[120, 20\] there"),
        (TALL, Y[:, 0], r"shape of y is \[120\] here, and \[120, 3\] there"),
    ):
        with pytest.raises(ValueError, match=f"^checkpoint: at is of another solve, as {said}: name another file"):
            rowcol.resume(at, X, y)
    for name, value in dict(
        alpha=0.6, method="rcd", max_passes=5, tol=1e-3, sampler="cyclic", sample_weight=np.ones(120), memory=10**9
    ).items():
        with pytest.raises(ValueError, match=f"as {name} is another: name another file, or remove it"):
            rowcol.solve(TALL, Y, checkpoint=at, **(asked | {name: value}))
    with pytest.raises(ValueError, match="as random_state is another"):
        rowcol.solve(TALL, Y, checkpoint=at, **(asked | {"random_state": 1}))
    whole = rowcol.solve(TALL, Y, **asked)
    alike = {
        "random_state": None,
        "x0": np.ones((20, 3)),
        "alpha": np.float64(0.5),
        "max_passes": 4.0,
        "max_seconds": 99,
    }
    same(whole, rowcol.solve(TALL, Y, checkpoint=at, **(asked | alike)))


def test_what_cannot_be_written_is_said_before_any_work(tmp_path):
    def never(progress):
        raise AssertionError("no work")

    with pytest.raises(FileNotFoundError, match=r"checkpoint: .*at cannot be written, as there is no folder"):
        rowcol.solve(TALL, Y, checkpoint=tmp_path / "none" / "at", callback=never)
    with pytest.raises(OSError, match=r"checkpoint: .*cannot be written, File name too long: name another file"):
        rowcol.solve(TALL, Y, checkpoint=tmp_path / ("é" * 120 + "a" * 10), callback=never)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_once_and_the_last_checkpoint_stays(tmp_path, monkeypatch):
    X, y, options = CASES["rk"]
    whole, written, count = rowcol.solve(X, y, **common(options)), archive.npy.write_array, []

    def full(*a, **b):
        count.append(1)
        if len(count) > 60:
            raise OSError(28, "No space left on device")
        written(*a, **b)

    monkeypatch.setattr(archive.npy, "write_array", full)
    at = rowcol.Checkpoint(tmp_path / "at", seconds=0)
    with pytest.warns(rowcol.CheckpointWarning, match=r"the last one stays as it is: .*No space left") as told:
        same(whole, rowcol.solve(X, y, checkpoint=at, **common(options)))
    assert len([one for one in told if one.category is rowcol.CheckpointWarning]) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["at"]
    monkeypatch.undo()
    on = After()
    same(whole, rowcol.resume(at, X, y, callback=on))
    assert 0 < on.calls < len(whole.history.passes)


def test_what_a_killed_process_left_is_taken_away(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    gone, busy, other = (tmp_path / f".at.{n}.part" for n in (int(dead.stdout), os.getppid(), "x"))
    for one in (gone, busy, other):
        one.touch()
    rowcol.solve(TALL, Y, checkpoint=tmp_path / "at")
    assert sorted(tmp_path.iterdir()) == sorted([busy, other, tmp_path / "at"])


# --- kill -9 ---------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(1)
STEEP = (
    rng.standard_normal((120, 100))
    @ np.diag(np.logspace(0, -4, 100))
    @ np.linalg.qr(rng.standard_normal((100, 100)))[0]
)
LONG = {
    "rows": (TALL, Y, dict(alpha=1e-3, method="rk", tol=1e-9, max_passes=300)),
    "conjugate gradients": (STEEP, Y, dict(method="cg", tol=1e-10, max_passes=500)),
    "a kernel": (POINTS, VALUES, dict(kernel="rbf", alpha=1e-7, method="pcg", tol=1e-9, max_passes=150)),
    "chunks": (rowcol.chunks(STEEP, rows=12).X, Y, dict(method="cg", tol=1e-10, max_passes=500)),
    "chunks, rows": (
        rowcol.chunks(lambda: (TALL[i : i + 9] for i in range(0, 120, 9))).X,
        Y,
        dict(alpha=1e-3, method="rk", tol=1e-9, max_passes=200),
    ),
}
SERVER = """
import os, sys, warnings
import test_checkpoint, rowcol
warnings.simplefilter("ignore")
for X, y, options in test_checkpoint.LONG.values():  # compiled code is loaded once
    rowcol.solve(X, y, **test_checkpoint.common(options) | {"max_passes": 1})
for line in sys.stdin:
    name, path = line.rstrip().split("|")
    child = os.fork()  # all is imported once, and each solve has a process of its own
    if not child:
        X, y, options = test_checkpoint.LONG[name]
        at = rowcol.Checkpoint(path, seconds=0)
        rowcol.solve(X, y, checkpoint=at, **test_checkpoint.common(options))
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()  # a process that has ended keeps its number until it is waited for
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def server():
    paths = [str(Path(rowcol.__file__).parent.parent), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as one:
        yield one
        one.stdin.close()


def begun(server, name, path):
    """Begin, or go on with, a solve in another process, and wait until there is a file."""
    server.stdin.write(f"{name}|{path}\n")
    server.stdin.flush()
    child = int(server.stdout.readline())
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.001)
    return child


def ended(server):
    """How it ended, once it has."""
    server.stdin.write("it is dead, or will be\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def lasting(server, name, path):
    """How long a solve takes from its first file on, if it is let."""
    begun(server, name, path)
    began = time.monotonic()
    assert ended(server) == 0
    return time.monotonic() - began


def killed(server, name, path, moment):
    """Kill a solve a moment after there is a file; did it run?"""
    child = begun(server, name, path)
    time.sleep(moment)
    assert child > 1, "there is one to kill, and not a group of them"
    os.kill(child, signal.SIGKILL)
    return ended(server) == signal.SIGKILL


@pytest.mark.parametrize("name", LONG)
def test_kill_9(name, server, tmp_path):
    _killed_often(name, server, tmp_path, 2, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_kill_9_at_many_moments(name, server, tmp_path):
    _killed_often(name, server, tmp_path, 20, 0.4)


def _killed_often(name, server, tmp_path, times, longest):
    X, y, options = LONG[name]
    whole, moments = rowcol.solve(X, y, **common(options)), np.random.default_rng(7)
    running, longest = 0, min(longest, lasting(server, name, tmp_path / "whole"))  # on a quick machine it is short
    for k in range(times):
        path = tmp_path / f"{k // 3}"  # three times the same one, unless it came to its end
        running += killed(server, name, path, longest * moments.random())
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        on = After()
        same(whole, rowcol.resume(rowcol.Checkpoint(copy, RARELY), X, y, callback=on))
        assert on.calls < len(whole.history.passes)
    assert running >= max(times // 4, 1)

"""The benchmark at toy sizes: errors are verified, targets reached, and the files written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

HOME = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(HOME))

import bench  # noqa: E402
import datasets  # noqa: E402
import report  # noqa: E402
import solvers  # noqa: E402
from rowcol.racing import contenders, contest  # noqa: E402

BUDGET = contest.Budget(call=5.0, search=5.0, race=0.3, patience=2.0, turns=2)


@pytest.fixture(autouse=True)
def one_thread():  # as the command does by the environment: two threads of BLAS on a busy machine wait for each other
    with threadpool_limits(1):
        yield


def few(*names):
    return [solver for solver in solvers.SOLVERS if solver.name in names]


@pytest.mark.parametrize("name", ["tall-inconsistent-16", "rank-deficient", "sparse-inconsistent", "ridge-tall-C"])
def test_the_truth_is_the_minimiser(name):
    data = datasets.make(name, "quick")
    gradient = data.X.T @ (data.y - data.X @ data.truth) - data.alpha * data.truth
    assert np.linalg.norm(gradient) < 1e-13 * np.linalg.norm(data.X.T @ data.y)


def test_flat_tail_has_the_singular_values_it_says():
    values = np.linalg.svd(datasets.flat_tail(200, outliers=7).X, compute_uv=False)
    np.testing.assert_allclose(values[:7], np.geomspace(1000, 10, 7))
    assert 0.9 <= values[-1] <= values[7] <= 1.1


def test_every_dataset_has_a_name_and_two_sizes():
    assert datasets.chosen() == list(datasets.SPECS)
    assert datasets.chosen("wide") == ["wide"]  # an exact name means itself
    assert datasets.chosen("flat,ct-") == ["flat-tail", "ct-noise"]
    assert all(set(spec.full) == set(spec.quick) for spec in datasets.SPECS.values())


def test_the_error_is_that_of_the_worst_column():
    truth = np.array([[1.0, 10.0], [0.0, 0.0]])
    assert contest.error_of(truth + [[0.0, 0.0], [0.1, 0.1]], truth) == pytest.approx(0.1)
    assert contest.error_of(np.full(2, np.nan), np.ones(2)) == np.inf


def test_compare_reaches_its_targets_and_the_page_is_written(tmp_path):
    runs = []
    for name in ("tall-inconsistent-p500-F", "text-ridge"):
        data = datasets.make(name, "quick")
        records = contest.compare(data, few("rowcol", "lsqr", "lstsq gelsd", "Ridge"), BUDGET)
        assert {r["target"] for r in records} == set(data.targets)
        for r in records:
            assert r["seconds"] is None or (r["error"] <= contest.SLACK * r["target"] and r["rounds"] >= 1)
            if r["contender"] in ("rowcol", "lsqr"):
                assert r["seconds"] > 0, r
            if r["contender"] == "rowcol":
                assert r["route"]
                assert r["passes"] is not None
        runs.append({"threads": 1, "facts": data.facts, "records": records})
    page = bench.write(runs, "quick", tmp_path).read_text(encoding="utf-8")
    assert json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["machine"]["cores"] == os.cpu_count()
    assert "| text-ridge | 1,000 x 2,500, sparse, λ 1 | 0.0001 |" in page
    assert "MISSED" in page or "| ok |" in page


@pytest.mark.parametrize(("power", "floor"), [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0), (1.0, 1e-3)])
def test_the_search_finds_the_loosest_setting(power, floor):
    """Whatever the error does with the tolerance, jumps and all."""
    data = datasets.tall_consistent(50, 4, targets=(0.15, 2e-4))
    away = np.linalg.norm(data.truth) * np.array([1.0, 0.0, 0.0, 0.0])

    def run(data, setting, limit):
        return contenders.Answer(data.truth + max(setting**power, floor) * away)

    fake = contenders.Solver("fake", run, lambda data: contenders.TOLERANCES, lambda data, limit: "")
    jobs, why = contest.search(fake, data, BUDGET, np.inf)
    expected = {t: max(s for s in contenders.TOLERANCES if s**power <= t) for t in data.targets if t > floor}
    assert {target: job.setting for job in jobs for target in job.targets} == expected
    assert bool(why) == (floor > 0)


def test_claims_are_judged_by_the_worst_row():
    def run(group, ours, lsqr):
        facts = {"dataset": group, "group": group, "shape": [9, 3]}
        records = [{"contender": c, "target": 0.1, "seconds": s} for c, s in (("rowcol", ours), ("lsqr", lsqr))]
        return {"threads": 1, "facts": facts, "records": records}

    runs = [run("tall consistent", 1.0, 9.0), run("tall consistent", 1.0, 7.0), run("CT", None, 1.0)]
    rows = report.rows_of([*runs, run("CT", 1.0, None), run("CT", None, None)])
    assert [row.ratio for row in rows] == [9.0, 7.0, 0.0, np.inf, None]
    missed = {claim.text: len(missed) for claim, _, missed in report.judge(rows)}
    assert missed["tall consistent: 8x the best rival"] == 1
    assert missed["everywhere: at most 1.2x the seconds of the best rival"] == 1


@pytest.fixture
def arguments(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "mine.npy", rng.standard_normal((200, 6)))
    data, out = str(tmp_path / "data"), str(tmp_path / "out")
    return ["--quick", "--only", "ridge-tall-C", "--threads", "1", "--data", data, "--out", out]


def check_files(out):
    whole = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    assert [run["facts"]["dataset"] for run in whole["runs"]] == ["ridge-tall-C", "mine"]
    assert all(any(r["seconds"] for r in run["records"]) for run in whole["runs"])
    for name in ("bench.json", "bench.md"):
        assert str(out.parent) not in (out / name).read_text(encoding="utf-8")


def test_the_command_takes_files_and_writes(arguments, tmp_path, monkeypatch, capsys):
    seen = []

    def here(command, check, env):
        seen.append({env[name] for name in bench.THREADS})
        bench.main(command[2:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(bench.subprocess, "run", here)
    bench.main(arguments)
    assert seen == [{"1"}]
    assert "## Stated targets" in capsys.readouterr().out
    check_files(tmp_path / "out")


@pytest.mark.slow
def test_the_command_in_processes_of_its_own(arguments, tmp_path):
    subprocess.run([sys.executable, str(HOME / "bench.py"), *arguments], check=True, capture_output=True)
    check_files(tmp_path / "out")


def test_the_page_is_made_of_the_results_that_are_committed():
    import page

    text = page.PAGE.read_text(encoding="utf-8")
    assert page.page(text) == text
    (first, last), _ = page.MARKS
    blank = text.split(first)[0] + first + last + text.split(last)[1]
    assert page.page(blank) == text

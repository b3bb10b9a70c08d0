"""What is logged, against what the Result says; and that nothing is said, or paid for, unless asked."""

import ast
import json
import logging
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import rowcol
from rowcol.cli import app

SOURCE = Path(rowcol.__file__).parent


def messages(caplog, level=logging.INFO, of="rowcol"):
    return [r.getMessage() for r in caplog.records if r.name.startswith(of) and r.levelno == level]


def hand_over(rng):
    """Sparse, and no β fits: rows find out, and another route goes on."""
    where = np.repeat(np.arange(4000), 6), rng.integers(0, 300, 24_000)
    return sp.csr_array((rng.standard_normal(24_000), where), shape=(4000, 300)), rng.standard_normal(4000)


ASKED = {
    "direct": {},
    "rcd": dict(method="rcd"),
    "not reached": dict(method="rcd", tol=1e-12, max_passes=2),
    "ridge with an intercept": dict(alpha=1.0, fit_intercept=True),
    "kernel": dict(kernel="rbf", alpha=0.1),
    "pivots": dict(kernel="rbf", alpha=0.1, method="pcg"),
    "centres": dict(kernel="rbf", alpha=0.1, n_centers=15),
}


@pytest.mark.parametrize("name", [*ASKED, "hand over"])
def test_plan_route_and_verdict_are_those_of_the_result(name, rng, caplog):
    X, y = rng.standard_normal((80, 4)), rng.standard_normal(80)
    options = {} if name == "hand over" else ASKED[name]
    X, y = hand_over(rng) if name == "hand over" else (X, y)
    with caplog.at_level(logging.INFO, "rowcol"), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = rowcol.solve(X, y, random_state=0, **options)
    said = [text for text in messages(caplog) if "went to compiling" not in text]
    plan, *learned, verdict = said
    assert f"{result.plan.route}, by {result.plan.side}: {result.plan.reasons[-1]}" in plan
    assert tuple(learned) == result.plan.learned
    assert verdict.startswith(f"{result.status.name} by {result.method}: ")
    assert f"= {result.certificate.value:.1e} after" in verdict
    assert result.success == (not warned)
    assert all(str(one.message).startswith(verdict.split(": ", 1)[1]) for one in warned)
    if name == "hand over":
        assert " → " in result.method
        assert learned


def test_every_look_is_logged_for_those_who_debug(rng, caplog):
    X, Y = rng.standard_normal((60, 6)), rng.standard_normal((60, 3))
    with caplog.at_level(logging.DEBUG, "rowcol"):
        result = rowcol.solve(X, Y, method="rcd", random_state=0)
    looks = messages(caplog, logging.DEBUG, "rowcol.methods.loop")
    known = [f"right-hand side {i}: {c.kind} {c.value:.2e}: " for _, i, c in result.history.certificate]
    assert len(looks) == len(known) >= 3
    assert all(part in text for part, text in zip(known, looks, strict=True))
    assert sum(text.endswith("CONVERGED") for text in looks) == 3


def test_files_and_models_and_rungs(rng, tmp_path, caplog):
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    with caplog.at_level(logging.INFO, "rowcol"):
        model = rowcol.KernelRidgeCV(kernel="rbf", tune_points=40, random_state=0).fit(X, y)
        (*_, rung) = messages(caplog, of="rowcol.estimators.ladder")
        started = messages(caplog, of="rowcol.estimators.kernel_cv")
        rowcol.save(model, tmp_path / "m.rowcol")
        rowcol.load(tmp_path / "m.rowcol")
        chosen = rowcol.RidgeCV([0.1, 10.0]).fit(X, y)
    assert f"score {model.best_score_:.4g}" in rung
    assert sum("points: " in text for text in started) == len(model.stages_) - 1  # the last is the fit
    assert messages(caplog, of="rowcol.files.writing") == [f"wrote {tmp_path / 'm.rowcol'}"]
    saved, loaded = messages(caplog, of="rowcol.saving.models")
    assert saved == f"saved KernelRidgeCV as {tmp_path / 'm.rowcol'}"
    assert loaded == f"loaded KernelRidgeCV from {tmp_path / 'm.rowcol'}, saved by rowcol {rowcol.__version__!r}"
    (picked,) = messages(caplog, of="rowcol.estimators.ridge_cv")
    assert f"alpha {chosen.alpha_} of 2" in picked


def test_silence_is_free_and_is_the_default(rng, capfd, monkeypatch):
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("rowcol").handlers)

    def made(*_, **__):
        raise AssertionError("a record was made that nobody asked for")

    monkeypatch.setattr(logging.Logger, "makeRecord", made)
    monkeypatch.setattr(logging.getLogger("rowcol"), "level", logging.WARNING)
    logging.getLogger("rowcol").manager._clear_cache()
    X = rng.standard_normal((60, 6))
    rowcol.solve(X, rng.standard_normal(60), random_state=0)
    rowcol.solve(X, rng.standard_normal(60), kernel="rbf", alpha=1.0, method="pcg", random_state=0)
    with pytest.warns(rowcol.ConvergenceWarning):
        rowcol.solve(X, rng.standard_normal(60), method="rcd", max_passes=1, tol=1e-12, random_state=0)
    monkeypatch.undo()
    logging.getLogger("rowcol").manager._clear_cache()
    assert capfd.readouterr() == ("", "")


def test_the_command_line_says_it_on_stderr_and_only_when_asked(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,y\n1,2,3\n2,1,4\n5,3,1\n0,1,1\n")
    words = ["solve", str(table), "--target", "y", "--json"]
    quiet, told, more = (CliRunner().invoke(app, [*words, *extra]) for extra in ([], ["-v"], ["-vv"]))
    answers = [json.loads(done.stdout) for done in (quiet, told, more)]
    assert quiet.stderr == ""
    assert [a["x"] for a in answers] == [answers[0]["x"]] * 3
    assert {line.split(":")[0] for line in told.stderr.splitlines()} == {"info"}
    assert {line.split(":")[0] for line in more.stderr.splitlines()} == {"info", "debug"}
    assert f"info: read {table}: 4 rows x 3 columns" in told.stderr.replace("\n", "")
    assert CliRunner().invoke(app, words).stderr == "", "the log is quiet again"
    assert [type(one).__name__ for one in logging.getLogger("rowcol").handlers] == ["NullHandler"]


def test_loggers_are_named_by_their_module_and_format_late():
    calls = [
        (path, node)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert sum(ast.unparse(node.func) == "logging.getLogger" for _, node in calls) >= 10
    for path, node in calls:
        called = ast.unparse(node.func)
        if called == "logging.getLogger" and path.parent.name != "cli":
            assert ast.unparse(node.args[0]) == "__name__"
        if called in ("log.info", "log.debug"):
            assert isinstance(node.args[0], ast.Constant), f"line {node.lineno} is put together even if nobody reads it"
        assert called not in ("log.warning", "log.error"), "warnings are warnings"
        assert called != "print" or "file=sys.stderr" in ast.unparse(node), "stdout is the user's"

"""`rowcol fit`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .common import (
    AsJson,
    Checkpoint,
    Columns,
    Decimal,
    Drop,
    Html,
    Interrupt,
    MaxSeconds,
    Memory,
    Missing,
    OneHot,
    RandomState,
    Standardize,
    TargetEncode,
    Threads,
    Tol,
    Verbose,
    answering,
    app,
    reportable,
    say,
    say_json,
    shortened,
)
from .far import allowed, is_far, table_in_chunks
from .reading import encoded
from .solve import told

ALPHAS = np.logspace(-4, 5, 37)  # that ridge with --cv tries


class Kind(enum.StrEnum):
    """The models there are."""

    RIDGE = "ridge"
    LEAST_SQUARES = "least-squares"
    KERNEL_RIDGE = "kernel-ridge"
    RIDGE_CLASSIFIER = "ridge-classifier"
    KERNEL_CLASSIFIER = "kernel-classifier"


IN_CHUNKS = (Kind.RIDGE, Kind.LEAST_SQUARES)  # models of tables that are read in chunks, where they are large


@app.command()
def fit(
    source: Annotated[Path, typer.Argument(help="A table: .csv, .tsv, .parquet, .feather, .npz, .mat, .h5, ...")],
    target: Annotated[str, typer.Option(help="The column to explain, by name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")],
    html: Html = None,
    model: Annotated[Kind, typer.Option(help="Which model.")] = Kind.RIDGE,
    alpha: Annotated[float | None, typer.Option(help="The penalty; 1 unless said.")] = None,
    cv: Annotated[bool, typer.Option("--cv", help="Choose alpha, and for kernels the length-scales too.")] = False,
    kernel: Annotated[str | None, typer.Option(help="`rbf`, `matern`, `laplacian`, `poly`, `linear`, ...")] = None,
    gamma: Annotated[float | None, typer.Option(help="Of the kernel.")] = None,
    length_scale: Annotated[float | None, typer.Option(help="Of the kernel.")] = None,
    ard: Annotated[bool, typer.Option("--ard", help="With --cv: a length-scale a feature.")] = False,
    centers: Annotated[int | None, typer.Option(help="For kernel-ridge on very many rows: so many centres.")] = None,
    probability: Annotated[bool, typer.Option("--probability", help="For kernel-classifier.")] = False,
    intercept: Annotated[bool, typer.Option(help="Fit an intercept, which is not penalised.")] = True,
    columns: Columns = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    target_encode: TargetEncode = None,
    missing: Missing = None,
    decimal: Decimal = ".",
    standardize: Standardize = False,
    tol: Tol = None,
    max_seconds: MaxSeconds = None,
    memory: Memory = None,
    threads: Threads = None,
    random_state: RandomState = None,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Fit a model to a table, and write it to a file that `rowcol predict` reads.

    Examples:

        rowcol fit train.csv --target price -o model.rowcol --html report.html

        rowcol fit train.parquet --target price --model kernel-ridge --kernel rbf --cv --standardize -o model.rowcol

        rowcol fit mails.csv --target spam --model kernel-classifier --probability --one-hot all -o spam.rowcol

    Ctrl-C stops with the best model so far; twice, at once. With --checkpoint the same command goes on from there. The
    exit code is 0 if the tolerance was met, 1 if it was not (the model is written all the same), 2 if something could
    not be read or written.
    """
    with answering():
        given: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "length_scale": length_scale, "n_centers": centers}
        given |= {"checkpoint": checkpoint}
        more = {"tol": tol, "max_seconds": max_seconds, "memory": memory, "n_jobs": threads}
        more |= {"random_state": random_state, "fit_intercept": intercept}
        if not out.parent.is_dir():
            raise ValueError(f"{out} cannot be written: there is no folder {out.parent}")  # before any work
        reportable(html)
        made = _model(model, cv, alpha, given, more, ard, probability)
        from ..files.encoder import Encoder

        options = {
            "columns": columns or None,
            "drop": drop or None,
            "one_hot": one_hot or None,
            "target_encode": target_encode or None,
            "missing": missing,
            "standardize": standardize,
        }
        if model in IN_CHUNKS and not cv and allowed(options, decimal) and is_far(source, memory):
            X, y, names = table_in_chunks(source, target, options)
            encoder = Encoder(tuple(names), target=target)
        else:
            encoder, X, y = encoded(source, target, options, "classifier" in model, decimal)
        from ..saving.models import save

        with Interrupt() as interrupt:
            made.callback = interrupt
            made.fit(X, y)
        made.callback = None
        save(made, out, encoder=encoder)
        if html is not None:
            from ..show.models import of_model
            from ..show.reporting import report

            report(of_model(made, X, y, encoder.features), html)
        results = made.result_ if isinstance(made.result_, tuple) else (made.result_,)
        worst = max(results, key=lambda one: one.certificate.value)
        summary = {"model": type(made).__name__, "rows": X.shape[0], "features": list(encoder.features)}
        summary |= {"target": target, "saved": str(out), **_chosen(made), "score": float(made.score(X, y))}
        if as_json:
            say_json(summary | {"result": told(worst)})
        else:
            say(_shown(summary, worst) + (f"\nLook at {html}" if html is not None else ""))
    raise typer.Exit(0 if worst.success else 1)


def _model(
    kind: Kind, cv: bool, alpha: float | None, given: dict[str, Any], more: dict[str, Any], ard: bool, proba: bool
) -> Any:
    """The estimator, not fitted; options it does not have are told, not passed over."""
    from ..saving.models import ESTIMATORS

    table: dict[tuple[str, bool], tuple[str, tuple[str, ...]]] = {
        ("ridge", False): ("Ridge", ("alpha", "checkpoint")),
        ("ridge", True): ("RidgeCV", ()),
        ("least-squares", False): ("LeastSquares", ("checkpoint",)),
        ("ridge-classifier", False): ("RidgeClassifier", ("alpha",)),
        ("kernel-ridge", False): (
            "KernelRidge",
            ("alpha", "kernel", "gamma", "length_scale", "n_centers", "checkpoint"),
        ),
        ("kernel-ridge", True): ("KernelRidgeCV", ("kernel", "gamma", "ard")),
        ("kernel-classifier", False): (
            "KernelRidgeClassifier",
            ("alpha", "kernel", "gamma", "length_scale", "probability"),
        ),
    }
    if (kind.value, cv) not in table:
        raise ValueError(f"--cv is for ridge and kernel-ridge, not for {kind.value}")
    made, known = table[kind.value, cv]
    wanted = {"alpha": alpha, **given, "ard": ard or None, "probability": proba or None}
    for name, value in wanted.items():
        if value is not None and name not in known:
            option = {"n_centers": "centers"}.get(name, name).replace("_", "-")
            raise ValueError(f"--{option} is not for --model {kind.value}{' with --cv' if cv else ''}")
    options = {name: value for name, value in (wanted | more).items() if value is not None}
    if made == "KernelRidge":
        options.setdefault("kernel", "rbf")
    if made == "RidgeCV":
        options["alphas"] = ALPHAS
    return ESTIMATORS[made][0](**options)


def _chosen(made: Any) -> dict[str, Any]:
    """What was chosen by validation, or given."""
    out: dict[str, Any] = {}
    alpha = getattr(made, "alpha_", getattr(made, "alpha", None))
    if alpha is not None:
        out["alpha"] = float(alpha)
    if hasattr(made, "kernel_"):
        out["kernel"] = str(made.kernel_)
    elif hasattr(made, "kernel"):
        out["kernel"] = str(made.kernel)
    if hasattr(made, "best_score_"):
        out["cv_score"] = float(made.best_score_)
    return out


def _shown(summary: dict[str, Any], result: Any) -> str:
    lines = [f"{summary['model']} on {summary['rows']:,} rows x {len(summary['features']):,} features"]
    for name in ("target", "kernel", "alpha", "cv_score"):
        if name in summary:
            told = summary[name]
            lines.append(f"  {name:<15}{f'{told:.6g}' if isinstance(told, float) else shortened(told, 200)}")
    lines.append(f"  {'score':<15}{summary['score']:.6g} on the rows it was fitted to")
    lines += str(result).splitlines()[1:]
    lines.append(f"Saved as {summary['saved']}")
    return "\n".join(lines)

"""Every kind of input to every public entry: the right answer, by LAPACK on plain numbers, or a refusal in words."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from entries import ENTRIES, LABELS, PLAIN_X, PLAIN_Y, WEIGHTS
from judging import SAID, frozen, outcome, same
from kinds import ANSWER, ANY, COLUMNS, EITHER, LONG, OPERATORS, REFUSE, TABLES, VALUES, Form
from scipy.optimize import lsq_linear
from sklearn.exceptions import DataConversionWarning

import rowcol
from oracle import lapack

NAMES = {"X": ("X", "source"), "y": ("y",), "weight": ("sample_weight",)}
PLAIN = {"X": PLAIN_X, "y": PLAIN_Y, "weight": WEIGHTS}
KINDS = {"X": ANY | TABLES | OPERATORS, "y": ANY | COLUMNS, "weight": ANY | COLUMNS}
ALIKE = Form(lambda a: 3.0, EITHER, lambda a: np.full(len(a), 3.0))  # one weight for all rows
NOT_SAID = {  # what scikit-learn, or an entry, has its own mind about
    ("weight", "scalar"): ALIKE,
    ("weight", "0-d"): ALIKE,
}


def takes(entry, argument):
    if argument == "y":
        return entry.of_y and not entry.labels
    return argument == "X" or entry.weighted


def verdict_of(entry, name, argument, kind, form, means):
    """What an entry must do with a kind: the form's own verdict, but for what it cannot take by its nature."""
    if means is not None and np.iscomplexobj(means) and (entry.real or argument == "weight"):
        return REFUSE
    if name == "report" and kind in OPERATORS and argument == "X":  # nothing is drawn of an operator
        return EITHER
    if kind in OPERATORS and argument == "X" and not entry.places:
        return REFUSE
    if name == "chunks" and argument == "X" and form.verdict == ANSWER:  # of tables and lists it takes paths only
        return EITHER
    if kind in ("too short", "too long") and not entry.of_y and argument == "X":
        return ANSWER
    if name == "plan" and any(word in kind for word in VALUES):  # it looks at a sample of the numbers only
        return EITHER
    return form.verdict


def close_enough(found, want, rough):
    found, want = np.asarray(found) * 1.0, np.asarray(want) * 1.0
    assert found.shape == want.shape, f"shape {found.shape}, not {want.shape}"
    off = float(np.abs(found - want).max(initial=0.0))
    assert off <= (3e-4 if rough else 1e-6) * float(np.abs(want).max(initial=1e-10)), f"off by {off:.1e}"


def given_one(name, argument, kind):
    """One case; True if it was answered."""
    entry, form = ENTRIES[name], NOT_SAID.get((argument, kind), KINDS[argument][kind])
    plain = {"X": PLAIN_X, "y": LABELS if entry.labels else PLAIN_Y, "weight": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of those who make it
        given, means = form.make(PLAIN[argument]), form.means(PLAIN[argument])
    verdict = verdict_of(entry, name, argument, kind, form, means)
    asked = plain | {argument: given}
    refusals = (ValueError, TypeError, FileNotFoundError) if name == "chunks" else (ValueError, TypeError)
    found = outcome(lambda: entry.ask(asked["X"], asked["y"], asked["weight"]), (given,), NAMES[argument], refusals)
    assert not (found.refused and verdict == ANSWER), f"refused: {found.words}"
    assert found.refused or verdict != REFUSE, f"answered: {found.value}"
    unsure = kind == "integers beyond 64 bits" and rowcol.ConvergenceWarning in found.warned  # and that was said
    if not (found.refused or unsure or means is None):
        with np.errstate(all="ignore"):
            truth = entry.truth(**{"w" if k == "weight" else k: v for k, v in (plain | {argument: means}).items()})
        close_enough(found.value, truth, form.rough)
    return not found.refused


def every_case():
    return [
        (name, argument, kind)
        for argument, kinds in KINDS.items()
        for name, kind in product(ENTRIES, kinds)
        if takes(ENTRIES[name], argument)
    ]


def run_all(cases, one):
    """How many were answered; all that went wrong in one message."""
    answered, wrong = 0, []
    for case in cases:
        try:
            answered += one(*case)
        except AssertionError as failure:
            wrong.append(f"{' / '.join(case)}: {str(failure)[:200]}")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:40])
    return answered


@pytest.mark.parametrize("argument", KINDS)
def test_every_kind_is_answered_rightly_or_refused_in_words(argument, amount, tally):
    cases = [case for case in every_case() if case[1] == argument]
    some = np.random.default_rng(1).permutation(len(cases))[: amount(150, len(cases))]
    answered = run_all([cases[i] for i in some], given_one)
    tally("kinds", cases=len(some), answered=answered, refused=len(some) - answered)


# --- classes, starts and bounds ---------------------------------------------------------------------------------------

CLASSES = {  # labels that are two classes, in this order
    "int": [1, 2],
    "negative": [-7, 7],
    "bool": [False, True],
    "text": ["no", "yes"],
    "long text": ["no", "yes" * 1000],
    "bytes": [b"no", b"yes"],
    "float": [0.0, 1.0],
    "float32": np.array([0, 1], np.float32),
    "uint8": np.array([3, 200], np.uint8),
    "big": [-(2**60), 2**60],
}
HOLDERS = {
    "array": np.array,
    "list": list,
    "object": lambda y: np.array(list(y), object),
    "Series": pd.Series,
    "category": lambda y: pd.Series(y, dtype="category"),
    "column": lambda y: np.array(y)[:, None],
    "polars": lambda y: pl.Series(y) if not isinstance(y[0], np.generic) else pl.Series(np.array(y)),
}
NO_CLASSES = {
    "one class": lambda: [1] * 12,
    "continuous": lambda: np.linspace(0, 1, 12),
    "NaN": lambda: [1.0, np.nan] * 6,
    "None": lambda: [1, None] * 6,
    "None alone": lambda: None,
    "scalar": lambda: 3,
    "3-d": lambda: np.ones((12, 1, 1)),
    "too short": lambda: [1, 2],
    "empty": lambda: [],
    "complex": lambda: [1j, 2.0] * 6,
    "masked": lambda: np.ma.masked_equal(np.tile([1, 2], 6), 1),
    "mixed": lambda: np.array([1, "a"] * 6, object),
    "dicts": lambda: [{}, {}] * 6,
    "generator": lambda: (i for i in range(12)),
    "sparse": lambda: sp.csr_array(np.tile([1, 2], 6)[:, None]),
    "text alone": lambda: LONG,
    "dict": lambda: {"a": 1},
}


def classes_one(name, kind, holder):
    entry, two = ENTRIES[name], CLASSES[kind]
    y = [two[i % 2] for i in range(12)]
    given = HOLDERS[holder](y)
    found = outcome(lambda: entry.ask(PLAIN_X, given), (given,), ("y",), said=(*SAID, DataConversionWarning))
    if not found.refused:
        close_enough(found.value, entry.truth(PLAIN_X, np.arange(12) % 2), False)
    assert not (found.refused and holder in ("array", "list", "Series") and "bytes" not in kind), found.words
    return not found.refused


def no_classes_one(name, kind):
    found = outcome(lambda: ENTRIES[name].ask(PLAIN_X, NO_CLASSES[kind]()), (), ("y",))
    assert found.refused, f"answered: {found.value}"
    return False


LABELLED = [name for name, entry in ENTRIES.items() if entry.labels and entry.of_y]


def test_every_kind_of_class(tally):
    cases = list(product(LABELLED, CLASSES, HOLDERS))
    answered = run_all(cases, classes_one)
    bad = list(product(LABELLED, NO_CLASSES))
    run_all(bad, no_classes_one)
    tally("kinds", cases=len(cases) + len(bad), answered=answered, refused=len(cases) + len(bad) - answered)


START, LOW = np.array([1.0, 0.0, 4.0]), np.array([0.0, 1.0, 0.0])
STARTED = {
    "solve": dict(),
    "solve rcd": dict(method="rcd"),
    "solve cg": dict(method="cg", alpha=0.5),
    "prepare": dict(alpha=0.5),
}
NO_BOUNDS = ("infinity", "longdouble beyond float64")  # these are what "no bound" is
BOX = {k: f for k, f in (ANY | COLUMNS).items() if k not in ("scalar", "0-d", *NO_BOUNDS)}


def start_one(name, kind):
    """A start changes the way, not the goal."""
    form, more = NOT_SAID.get(("x0", kind), (ANY | COLUMNS)[kind]), STARTED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, means = form.make(START), form.means(START)

    def ask():
        if name == "prepare":
            return rowcol.prepare(PLAIN_X, **more).solve(PLAIN_Y, x0=given, tol=1e-10).x
        return rowcol.solve(PLAIN_X, PLAIN_Y, x0=given, tol=1e-10, random_state=0, **more).x

    verdict = REFUSE if means is not None and np.iscomplexobj(means) else form.verdict
    found = outcome(ask, (given,), ("x0",))
    assert not (found.refused and verdict == ANSWER), f"refused: {found.words}"
    assert found.refused or verdict != REFUSE, f"answered: {found.value}"
    if not found.refused:
        close_enough(found.value, lapack(PLAIN_X, PLAIN_Y, more.get("alpha", 0.0)), False)
    return not found.refused


def bounds_one(side, kind):
    """Bounds on one side, against SciPy's bounded least squares."""
    form = BOX[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, means = form.make(LOW), form.means(LOW)
    bounds = (given, np.inf) if side == "low" else (-np.inf, given)
    verdict = REFUSE if means is not None and np.iscomplexobj(means) else form.verdict
    ask = lambda: rowcol.solve(PLAIN_X, PLAIN_Y, bounds=bounds, tol=1e-9, random_state=0).x  # noqa: E731
    found = outcome(ask, (given,), ("bounds",))
    assert not (found.refused and verdict == ANSWER), f"refused: {found.words}"
    assert found.refused or verdict != REFUSE, f"answered: {found.value}"
    if not found.refused:
        truth = (means, np.inf) if side == "low" else (-np.inf, means)
        close_enough(found.value, lsq_linear(PLAIN_X, PLAIN_Y, truth, tol=1e-14).x, True)
    return not found.refused


def test_every_kind_of_start_and_of_bounds(amount, tally):
    starts, boxes = list(product(STARTED, ANY | COLUMNS)), list(product(("low", "high"), BOX))
    rng = np.random.default_rng(2)
    starts = [starts[i] for i in rng.permutation(len(starts))[: amount(60, len(starts))]]
    boxes = [boxes[i] for i in rng.permutation(len(boxes))[: amount(40, len(boxes))]]
    answered = run_all(starts, start_one) + run_all(boxes, bounds_one)
    count = len(starts) + len(boxes)
    tally("kinds", cases=count, answered=answered, refused=count - answered)


# --- files ------------------------------------------------------------------------------------------------------------

NO_PATHS = {**{k: (lambda f=f: f.make(PLAIN_Y)) for k, f in ANY.items() if f.verdict == REFUSE and "text" not in k}}
NO_MODELS = {"None": None, "text": "model", "array": PLAIN_X, "class": rowcol.Ridge, "dict": {}, "object": object()}


@pytest.mark.parametrize("kind", NO_PATHS)
def test_paths_that_are_none(kind):
    model = rowcol.Ridge().fit(PLAIN_X, PLAIN_Y)
    result = rowcol.solve(PLAIN_X, PLAIN_Y, random_state=0)
    for call, names in (
        (lambda p: rowcol.save(model, p), ("path",)),
        (lambda p: rowcol.load(p), ("path",)),
        (lambda p: rowcol.report(result, p), ("path",)),
        (lambda p: rowcol.resume(p, PLAIN_X, PLAIN_Y), ("checkpoint",)),
        (lambda p: rowcol.solve(PLAIN_X, PLAIN_Y, checkpoint=p), ("checkpoint",)),
    ):
        given = NO_PATHS[kind]()
        if given is not None:
            assert outcome(lambda: call(given), (given,), names).refused


@pytest.mark.parametrize("kind", NO_MODELS)
def test_models_that_are_none(kind, tmp_path):
    for call in (lambda m: rowcol.save(m, tmp_path / "m"), lambda m: rowcol.report(m, tmp_path / "m.html")):
        refusals = (ValueError, TypeError, FileNotFoundError)
        assert outcome(lambda: call(NO_MODELS[kind]), (), ("model", "what"), refusals).refused
    assert not list(tmp_path.iterdir())


# --- do these checks check? -------------------------------------------------------------------------------------------


def raised(error):
    raise error


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: a.fill(0.0), "was changed"),
        (lambda a: warnings.warn("x", DeprecationWarning, stacklevel=2), "DeprecationWarning"),
        (lambda a: raised(AttributeError("X has no shape, or so")), "AttributeError"),
        (lambda a: raised(np.linalg.LinAlgError("X is singular, or so")), "LinAlgError"),
        (lambda a: raised(ValueError("X is wrong:\nvery wrong")), "more than a line"),
        (lambda a: raised(ValueError("X" * 1000)), "1000 characters"),
        (lambda a: raised(ValueError("something is not as it should be")), "names none of"),
    ],
)
def test_what_may_never_happen_is_seen(call, words):
    a = np.ones(3)
    with pytest.raises(AssertionError, match=words):
        outcome(lambda: call(a), (a,), ("X",))


@pytest.mark.parametrize("change", [lambda e: e + 1e-4, lambda e: e[:-1]])
def test_a_wrong_answer_is_seen(change, monkeypatch):
    entry = ENTRIES["solve ridge"]
    monkeypatch.setitem(ENTRIES, "solve ridge", entry._replace(ask=lambda X, y, w=None: change(entry.ask(X, y, w))))
    with pytest.raises(AssertionError, match="1 of 1:"):
        run_all([("solve ridge", "X", "int8")], given_one)


@pytest.mark.parametrize("given", [np.ones(3), sp.csr_array(np.eye(3)), pd.Series([1.0, 2.0]), [[1.0], [2.0]]])
def test_a_changed_input_is_seen(given):
    was = frozen(given)
    assert same(given, was)
    if sp.issparse(given):
        given.data[0] = 5
    elif isinstance(given, list):
        given[0][0] = 5.0
    else:
        given[0] = 5.0
    assert not same(given, was)

"""Every parameter of every public callable, at, below and above its limits and of the wrong type."""

import inspect

import numpy as np
import pytest
from judging import outcome
from limits import CALLS, LIMITS, VALUES
from test_kinds import close_enough, raised, run_all

import rowcol

# these ask for another answer, or a rougher one
ANOTHER = ("tol", "kernel", "length_scale", "n_centers", "positive", "class_weight", "callback", "bounds")


def parameters_of(name):
    call = CALLS[name]
    return [one for one in inspect.signature(call.of).parameters if one not in call.skip]


def limit_of(name, parameter):
    own = CALLS[name].own
    return own[parameter] if parameter in own else LIMITS[parameter]


def one_value(name, parameter, which):
    """One case; True if the value was taken."""
    call, value = CALLS[name], VALUES[which]
    must, worked = limit_of(name, parameter)(value), []
    more = {} if parameter == "callback" or not call.watched else {"callback": lambda now: worked.append(now)}
    names = () if callable(value) else (parameter, *call.names.get(parameter, ()))  # of a function, its own errors
    found = outcome(lambda: call.make(**{parameter: value}, **more), (value,), names)
    assert must is not False or found.refused, f"taken: {found.value}"
    assert must is not True or not found.refused, f"refused: {found.words}"
    if found.refused:
        assert not (worked and must is False), "refused after work was done"
    elif call.truth is not None and rowcol.ConvergenceWarning not in found.warned and parameter not in ANOTHER:
        close_enough(found.value, call.truth(**{parameter: value}), True)
    return not found.refused


def every_case():
    return [(name, parameter, which) for name in CALLS for parameter in parameters_of(name) for which in VALUES]


@pytest.mark.parametrize("name", CALLS)
def test_every_parameter_has_its_limits(name):
    missing = [one for one in parameters_of(name) if one not in LIMITS and one not in CALLS[name].own]
    assert not missing, f"say in limits.py what {name} takes for {missing}"


def test_every_value_is_taken_or_refused_before_any_work(amount, tally, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of the values are names of files
    cases = every_case()
    some = np.random.default_rng(3).permutation(len(cases))[: amount(500, len(cases))]
    taken = run_all([cases[i] for i in some], one_value)
    tally("parameters", cases=len(some), taken=taken, refused=len(some) - taken)


# --- do these checks check? -------------------------------------------------------------------------------------------


def test_a_parameter_without_limits_is_seen(monkeypatch):
    monkeypatch.delitem(LIMITS, "tol")
    with pytest.raises(AssertionError, match=r"say in limits.py what solve takes for \['tol'\]"):
        test_every_parameter_has_its_limits("solve")


@pytest.mark.parametrize(
    ("make", "which", "words"),
    [
        (lambda tol, callback: [1.0], "nan", "taken"),
        (lambda tol, callback: np.ones(12), "0.5", "off by"),
        (lambda tol, callback: raised(ValueError("tol is not to my taste")), "0.5", "refused"),
        (lambda tol, callback: (callback(1), raised(ValueError("tol is no number"))), "nan", "after work was done"),
        (lambda tol, callback: raised(ValueError("it is not to my taste")), "nan", "names none of"),
        (lambda tol, callback: raised(KeyError("tol")), "nan", "KeyError"),
    ],
)
def test_what_may_never_happen_is_seen(make, which, words, monkeypatch):
    monkeypatch.setitem(CALLS, "solve", CALLS["solve"]._replace(make=make))
    monkeypatch.setattr("test_parameters.ANOTHER", ())
    with pytest.raises(AssertionError, match=words):
        one_value("solve", "tol", which)

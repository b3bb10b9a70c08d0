"""`save` and `load`: a fitted estimator as a file, in which nothing is code, and back."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..core import threads
from ..core.function import KernelFunction
from ..core.place import Place
from ..core.problem import weights
from ..core.recipes import Kernel
from ..estimators.calibration import Calibration
from ..estimators.classes import Classes
from ..estimators.kernel_classifier import KernelRidgeClassifier
from ..estimators.kernel_cv import KernelRidgeCV
from ..estimators.kernel_model import KernelModel
from ..estimators.kernel_ridge import KernelRidge
from ..estimators.least_squares import LeastSquares
from ..estimators.linear import Ridge
from ..estimators.ridge_classifier import RidgeClassifier
from ..estimators.ridge_cv import RidgeCV
from ..files.archive import read, write
from ..files.encoder import Encoder
from ..files.plain import KNOWN, Packing, Unpacking
from ..files.writing import path_of
from ..methods.result import Asked, Result
from .functions import packed, unpacked

log = logging.getLogger(__name__)

FORMAT = 1  # goes up by one when an older rowcol could no longer read what is written

CLASSES = KNOWN | {"Calibration": Calibration}
SEEN = ("n_features_in_", "feature_names_in_", "n_iter_", "result_", "intercept_", "dual_coef_")
LINEAR = (*SEEN, "coef_", "solver_")
POINTS = ("X_fit_", *SEEN)  # the points first: the function is of them
REGRESSION = (*POINTS, "y_fit_", "sample_weight_fit_", "_ones")
CHOSEN = ("alpha_", "best_score_", "cv_results_")
ESTIMATORS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "Ridge": (Ridge, (*LINEAR, "covariance_", "standard_errors_")),
    "LeastSquares": (LeastSquares, (*LINEAR, "covariance_", "standard_errors_")),
    "RidgeCV": (RidgeCV, (*LINEAR, *CHOSEN, "scores_", "cv_")),
    "RidgeClassifier": (RidgeClassifier, (*LINEAR, "_labels")),
    "KernelRidge": (KernelRidge, REGRESSION),
    "KernelRidgeCV": (KernelRidgeCV, (*REGRESSION, *CHOSEN, "kernel_", "best_params_", "best_index_", "stages_")),
    "KernelRidgeClassifier": (KernelRidgeClassifier, (*POINTS, "_labels", "calibration_")),
}


def save(model: Any, path: str | Path, *, encoder: Encoder | None = None) -> None:
    """Write a fitted estimator to a file, all of it or nothing.

    The file is a zip of JSON and .npy files: docs/models.md tells its format. Predictions of what `load` makes of it
    are the same, bit for bit. Not saved are callbacks, random generators and other parameters that are no plain data;
    the preconditioner that `KernelRidge.add_rows` starts from; and what `Ridge.partial_fit` goes on from.

    Parameters
    ----------
    model : Ridge, LeastSquares, RidgeCV, RidgeClassifier, KernelRidge, KernelRidgeCV or KernelRidgeClassifier
        After its fit. A kernel that is a Python function cannot be saved.
    path : str or Path
    encoder : Encoder, optional
        How a table became X, to be kept with it.

    Examples
    --------
    >>> import tempfile, numpy as np, rowcol
    >>> model = rowcol.Ridge(alpha=0.1).fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rowcol.save(model, folder + "/m.rowcol")
    ...     again = rowcol.load(folder + "/m.rowcol")
    >>> again, bool((again.predict(np.eye(3)) == model.predict(np.eye(3))).all())
    (Ridge(alpha=0.1), True)
    """
    path, name = path_of(path), type(model).__name__
    if ESTIMATORS.get(name, (None,))[0] is not type(model):
        raise TypeError(f"a model is saved if it is one of {', '.join(ESTIMATORS)}, and this is {name}")
    check_is_fitted(model)
    if isinstance(getattr(model, "X_fit_", None), Place):
        raise TypeError("the points of this model lie elsewhere, and a file holds its points: fit with more memory")
    packing = Packing(special=_packed, known=CLASSES)
    parameters, left_out = _parameters(model, packing)
    learned = {one: packing.pack(vars(model)[one]) for one in ESTIMATORS[name][1] if one in vars(model)}
    tree = {
        "format": FORMAT,
        "rowcol": __version__,
        "estimator": name,
        "parameters": parameters,
        "left_out": left_out,
        "learned": learned,
        "encoder": None if encoder is None else encoder.to_dict(),
    }
    write(path, tree, packing.arrays)
    log.info("saved %s as %s", name, path)


def _parameters(model: Any, packing: Packing) -> tuple[dict[str, Any], list[str]]:
    """The parameters as JSON, and which of them are no plain data: only a kernel must not be among these."""
    told, left_out = {}, []
    for name, value in model.get_params(deep=False).items():
        if name == "checkpoint":  # it is of a fit, and not of what was fitted
            left_out += [name] if value is not None else []
            continue
        try:
            told[name] = packing.pack(value)
        except TypeError as wrong:
            if name.startswith("kernel"):
                raise TypeError(f"the kernel cannot be saved: {wrong}; use one of rowcol.kernels") from None
            left_out.append(name)
    return told, left_out


def _packed(value: Any, packing: Packing) -> Any:
    if isinstance(value, KernelFunction):
        return {"$function": packed(value, packing)}
    if isinstance(value, LabelBinarizer):
        return {"$labels": packing.pack(value.classes_), "type": value.y_type_}
    return None


def load(path: str | Path, *, encoder: bool = False) -> Any:
    """The estimator that `save` wrote. Nothing in the file is run, whoever made it.

    Parameters
    ----------
    path : str or Path
    encoder : bool
        Also give the Encoder that was saved with it, or None.

    Returns
    -------
    estimator; or a pair (estimator, Encoder or None)

    Examples
    --------
    >>> import tempfile, numpy as np, rowcol
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rowcol.save(rowcol.RidgeClassifier().fit(np.eye(2), ["no", "yes"]), folder + "/m.rowcol")
    ...     rowcol.load(folder + "/m.rowcol").predict(np.eye(2)).tolist()
    ['no', 'yes']
    """
    path = path_of(path)
    tree, arrays = read(path)
    name, made = path.name, tree.get("format")
    if type(made) is not int or made < 1:
        raise ValueError(f"{name} is no model of rowcol, or it is damaged: it has no format number")
    if made > FORMAT:
        raise ValueError(f"{name} was made by a newer rowcol ({str(tree.get('rowcol'))[:20]}): update this one")
    try:
        model = _model(tree, arrays)
        found = None if tree["encoder"] is None else Encoder.from_dict(tree["encoder"])
        if found is not None and len(found.features) != model.n_features_in_:
            raise ValueError("the encoder makes another number of features")
    except MemoryError:
        raise
    except Exception as wrong:  # whatever a forged tree leads to
        told = (str(wrong).splitlines() or [type(wrong).__name__])[0][:200]
        raise ValueError(f"{name} is no model of rowcol, or it is damaged: {told}") from wrong
    log.info("loaded %s from %s, saved by rowcol %.20r", type(model).__name__, path, tree.get("rowcol"))
    return (model, found) if encoder else model


def _model(tree: dict[str, Any], arrays: list[np.ndarray]) -> Any:
    kind, names = ESTIMATORS[tree["estimator"]]
    unpacking = Unpacking(arrays, known=CLASSES)
    parameters = {key: unpacking.unpack(one) for key, one in tree["parameters"].items()}
    if not set(parameters) <= set(inspect.signature(kind).parameters):
        raise ValueError("it has other parameters")
    model, told = kind(**parameters), tree["learned"]
    if not set(told) <= set(names):
        raise ValueError("it has learned something else")
    model.n_jobs = threads.most(model.n_jobs)
    jobs = threads.count(model.n_jobs)
    unpacking.special["$labels"] = _labels
    unpacking.special["$function"] = lambda found, own: unpacked(found["$function"], model.X_fit_, jobs, own)
    for one in (one for one in names if one in told):  # in this order: the function is of X_fit_
        setattr(model, one, unpacking.unpack(told[one]))
    results = model.result_ if isinstance(model.result_, tuple) else (model.result_,)
    for result in results:
        if not isinstance(result, Result) or not result.certificates:
            raise ValueError("it has no result")
        result.asked = Asked()
    if isinstance(model, KernelModel):
        _check_points(model)
        if not isinstance(model, KernelRidgeClassifier):
            model._kept = None  # it can be drawn anew
    else:
        _check_coefficients(model)
        model.plan_ = results[0].plan
    if isinstance(model, Classes):
        _check_classes(model)
    if "feature_names_in_" in vars(model) and len(model.feature_names_in_) != model.n_features_in_:
        raise ValueError("names are not as many as features")
    return model


def _labels(told: dict, unpacking: Unpacking) -> LabelBinarizer:
    out = LabelBinarizer(neg_label=-1, pos_label=1)
    out.classes_, out.y_type_, out.sparse_input_ = unpacking.unpack(told["$labels"]), str(told["type"]), False
    if not isinstance(out.classes_, np.ndarray) or out.classes_.ndim != 1:
        raise ValueError("it has no classes")
    return out


# --- what must fit together ------------------------------------------------------------------------------------------


def _numbers(value: Any, *shapes: tuple[int, ...]) -> bool:
    real = isinstance(value, (int, float, np.floating)) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    return real and np.shape(value) in shapes


def _check_coefficients(model: Any) -> None:
    rows = np.shape(model.coef_)[:-1]
    if len(rows) > 1 or not _numbers(model.coef_, (*rows, model.n_features_in_)):
        raise ValueError("coefficients do not go with the features")
    if not _numbers(model.intercept_, (), rows):
        raise ValueError("the intercept does not go with the coefficients")


def _check_points(model: Any) -> None:
    X, function = model.X_fit_, model.result_.function
    if not isinstance(function, KernelFunction) or not (sp.issparse(X) or isinstance(X, np.ndarray)):
        raise ValueError("it has no function")
    q, (n, d) = len(function.coefficients), X.shape
    shape = (n,) if function.single else (n, q)
    if d != model.n_features_in_ or not _numbers(model.dual_coef_, shape):
        raise ValueError("coefficients do not go with the points")
    if not _numbers(model.intercept_, (), shape[1:]):
        raise ValueError("the intercept does not go with the coefficients")
    if isinstance(model, KernelRidgeClassifier) or function.centers is not None:
        return
    if not _numbers(model.y_fit_, shape) or (model._ones is not None and not _numbers(model._ones, (n, 1), (n, q))):
        raise ValueError("targets do not go with the points")
    if model.sample_weight_fit_ is not None:
        weights(model.sample_weight_fit_, n)
    if isinstance(model, KernelRidgeCV) and not isinstance(model.kernel_, Kernel):
        raise ValueError("it has no kernel")


def _check_classes(model: Any) -> None:
    count = len(model.classes_)
    kernel = isinstance(model, KernelModel)
    columns = len(model.result_.function.coefficients) if kernel else len(np.atleast_2d(model.coef_))
    if columns != (1 if count == 2 and not model._multilabel else count):
        raise ValueError("classes are not as many as regressions")
    found = vars(model).get("calibration_", [])
    sizes = [(2,)] * columns if model._multilabel else [(max(columns, 2),)]
    if found and not (all(isinstance(one, Calibration) for one in found) and len(found) == len(sizes)):
        raise ValueError("probabilities do not go with the classes")
    if any(not _numbers(one.slope, ()) or not _numbers(one.offsets, size) for one, size in zip(found, sizes)):
        raise ValueError("probabilities do not go with the classes")

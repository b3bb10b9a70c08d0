"""rowcol solves X β = y by rows or by columns, and proves how good the answer is."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.8.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent, unless the user says otherwise

if TYPE_CHECKING:
    from . import theory as theory
    from . import zoo as zoo
    from .checkpoints import Checkpoint as Checkpoint
    from .core import kernels as kernels
    from .core.certify import Certificate as Certificate
    from .estimators.kernel_classifier import KernelRidgeClassifier as KernelRidgeClassifier
    from .estimators.kernel_cv import KernelRidgeCV as KernelRidgeCV
    from .estimators.kernel_ridge import KernelRidge as KernelRidge
    from .estimators.least_squares import LeastSquares as LeastSquares
    from .estimators.linear import Ridge as Ridge
    from .estimators.ridge_classifier import RidgeClassifier as RidgeClassifier
    from .estimators.ridge_cv import RidgeCV as RidgeCV
    from .methods.choose import Plan as Plan
    from .methods.progress import Progress as Progress
    from .methods.result import CheckpointWarning as CheckpointWarning
    from .methods.result import ConvergenceWarning as ConvergenceWarning
    from .methods.result import History as History
    from .methods.result import Result as Result
    from .methods.result import StartWarning as StartWarning
    from .methods.result import Status as Status
    from .pathing import RidgePath as RidgePath
    from .pathing import ridge_path as ridge_path
    from .places.opening import chunks as chunks
    from .preparing import Prepared as Prepared
    from .preparing import prepare as prepare
    from .resuming import resume as resume
    from .saving.models import load as load
    from .saving.models import save as save
    from .show.axes import plot as plot
    from .show.reporting import report as report
    from .solving import plan as plan
    from .solving import solve as solve
    from .studies.studying import Study as Study
    from .studies.studying import study as study

# Loaded when first touched: importing rowcol costs nothing that is not used.
_HOME = {
    "Certificate": "core.certify",
    "Checkpoint": "checkpoints",
    "CheckpointWarning": "methods.result",
    "ConvergenceWarning": "methods.result",
    "History": "methods.result",
    "KernelRidge": "estimators.kernel_ridge",
    "KernelRidgeClassifier": "estimators.kernel_classifier",
    "KernelRidgeCV": "estimators.kernel_cv",
    "LeastSquares": "estimators.least_squares",
    "Plan": "methods.choose",
    "Prepared": "preparing",
    "Progress": "methods.progress",
    "Result": "methods.result",
    "Ridge": "estimators.linear",
    "RidgeClassifier": "estimators.ridge_classifier",
    "RidgeCV": "estimators.ridge_cv",
    "RidgePath": "pathing",
    "StartWarning": "methods.result",
    "Status": "methods.result",
    "Study": "studies.studying",
    "chunks": "places.opening",
    "kernels": "core.kernels",
    "load": "saving.models",
    "plan": "solving",
    "plot": "show.axes",
    "prepare": "preparing",
    "report": "show.reporting",
    "resume": "resuming",
    "ridge_path": "pathing",
    "save": "saving.models",
    "solve": "solving",
    "study": "studies.studying",
    "theory": "theory",
    "zoo": "zoo",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rowcol' has no attribute {name!r}")
    module = import_module(f".{_HOME[name]}", __name__)
    value = module if name in ("kernels", "theory", "zoo") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

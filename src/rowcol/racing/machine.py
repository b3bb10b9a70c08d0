"""What one needs to know to compare two runs, and threads that all contenders share."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from .. import __version__
from ..core import threads

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def machine(packages: tuple[str, ...] = PACKAGES) -> dict[str, Any]:
    """Cores, system and versions; nothing that says whose machine it is.

    Examples
    --------
    >>> from rowcol.racing.machine import machine
    >>> sorted(machine(("numpy",)))
    ['architecture', 'blas', 'cores', 'numpy', 'python', 'rowcol', 'system']
    """
    facts = {"cores": os.cpu_count(), "architecture": platform.machine(), "system": platform.system()}
    facts |= {"python": platform.python_version(), "rowcol": __version__}
    for package in packages:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "none"
    blas = [f"{one.get('internal_api')} {one.get('version')}" for one in threadpool_info() if one["user_api"] == "blas"]
    facts["blas"] = " and ".join(dict.fromkeys(blas)) or "unknown"
    return facts


@contextmanager
def limited(count: int | None) -> Iterator[int]:
    """As many threads for rowcol, BLAS and OpenMP; how many that is, where the environment decides."""
    import scipy.linalg  # noqa: F401 - threads of libraries are limited once these are loaded
    import sklearn.linear_model  # noqa: F401

    many = threads.count(count)
    before = os.environ.get(threads.VARIABLES[0])
    os.environ[threads.VARIABLES[0]] = str(many)
    try:
        with threadpool_limits(many):
            yield many
    finally:
        if before is None:
            del os.environ[threads.VARIABLES[0]]
        else:
            os.environ[threads.VARIABLES[0]] = before

"""`resume`: a solve that was cut short goes on, from its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .checkpoints import REMEDY, Checkpoint, Found, found
from .core.place import Place
from .core.problem import problem
from .core.threads import most
from .core.words import first_line
from .fingerprints import LIMITS
from .methods.progress import Progress
from .methods.result import Result
from .places.crew import LostError
from .solving import solve


def resume(
    checkpoint: str | Path | Checkpoint,
    X: Any,
    y: Any,
    *,
    max_seconds: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    progress: bool | None = None,
) -> Result:
    """Go on with a solve that was cut short, to the same bits as if it had not been.

    All parameters, the seed among them, are those of the file. The bits are the same on the same machine with the same
    number of threads, and so are passes, steps, history and certificate, but for times. The file is written on.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        What `solve` wrote, or the `fit` of an estimator.
    X, y
        The same as then: they are not in the file, but their checksums are.
    max_seconds : float, optional
        Of this process; as then, from its start on, unless said.
    callback : callable, optional
        As of `solve`.
    progress : bool, optional
        As of `solve`.

    Returns
    -------
    Result

    Examples
    --------
    >>> import tempfile, numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((200, 20)), rng.standard_normal(200)
    >>> whole = rowcol.solve(X, y, alpha=1.0, method="rk", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/solve.checkpoint"
    ...     stopped = rowcol.solve(
    ...         X, y, alpha=1.0, method="rk", random_state=0, checkpoint=path, callback=lambda now: now.passes > 9
    ...     )
    ...     result = rowcol.resume(path, X, y)
    >>> stopped.status.name, result.status.name, bool((result.x == whole.x).all())
    ('CALLBACK', 'CONVERGED', True)
    """
    at = found(checkpoint)
    if at.told is None:
        raise FileNotFoundError(f"checkpoint: there is no file {at.path} to go on from")
    code = [name for name in at.told["left_out"] if isinstance(name, str)]
    if code:
        raise ValueError(
            f"checkpoint: {at.path} has no {' and no '.join(code)}, as code is in no file: call solve again, as at "
            "first, with checkpoint"
        )
    given = dict(at.told["parameters"])
    limits = {name: given.pop(name, None) for name in LIMITS}
    limits["max_seconds"] = limits["max_seconds"] if max_seconds is None else max_seconds
    raised: list[BaseException] = []

    def heard(now: Progress) -> object:
        try:
            return callback(now) if callback is not None else None
        except BaseException as wrong:
            raised.append(wrong)
            raise

    with _blaming(at, X, y, raised):
        limits["n_jobs"] = most(limits["n_jobs"])
        ask = heard if callable(callback) else callback
        return solve(X, y, **given, **limits, callback=ask, progress=progress, checkpoint=at)


@contextmanager
def _blaming(at: Found, X: Any, y: Any, raised: list[BaseException]) -> Iterator[None]:
    """Parameters of a forged file may be anything: errors are its own, unless X and y or the callback bring them."""
    try:
        yield
    except (OSError, MemoryError, LostError, Warning):
        raise
    except Exception as wrong:
        rows = getattr(X, "X", X)  # of `chunks`
        theirs = isinstance(rows, Place) and str(wrong).startswith(rows.name)  # said of one of its parts
        if str(wrong).startswith("checkpoint") or any(wrong is one for one in raised) or theirs or not _sound(X, y):
            raise
        name = Path(at.path).name
        raise ValueError(f"checkpoint: {name} is damaged: {first_line(wrong)[:200]}; {REMEDY}") from wrong


def _sound(X: Any, y: Any) -> bool:
    """Can X and y be solved at all? If not, that is what is to be said."""
    try:
        problem(X, y, 0.0)
    except Exception:
        return False
    return True

"""`Encoder`: how the columns of a table became numbers, as plain data, so that new tables become the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .columns import read, refusal, texts_named, wanted
from .table import Table

MISSING = (None, "mean", "drop")
FOLDS = 5  # a row's own target is never in the mean that stands for its text
PRIOR = 10.0  # rows that the overall mean counts for, in the mean of a text's rows


class Encoded(NamedTuple):
    """A table as numbers."""

    X: Any  # (m, features) array or CSR array
    rows: np.ndarray  # (m,) which of the table's rows these are
    notes: list[str]  # what a person should know


@dataclass
class Encoder:
    """Columns, codes of texts, means and scales: all that turns a table into X.

    Attributes
    ----------
    numeric : tuple of str
        Columns of numbers.
    one_hot : dict of str to tuple of str
        Columns of text, and the texts that have a feature each: 1 where it is this text, and 0 elsewhere.
    means_of : dict of str to dict of str to float
        Columns of text, and the mean of the target over the rows of each text; a text that is not there has the mean
        over all rows, which is under the key None.
    target : str or None
    missing : {None, "mean", "drop"}
        What is done where a value is missing: an error; the mean of the column (for text: none of those known); the row
        is left out.
    means : tuple of float
        Of the columns of numbers, with "mean".
    center, scale : tuple of float, or empty
        Features are (x − center)/scale, if they were standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol.files.encoder import Encoder, learned
    >>> from rowcol.files.table import Table
    >>> homes = Table(("size",), np.array([[50.0], [80.0]]), {"town": np.array(["Ulm", "Bonn"], object)})
    >>> encoder, _ = learned(homes, one_hot=["town"])
    >>> encoder.features
    ('size', 'town=Bonn', 'town=Ulm')
    >>> Encoder.from_dict(encoder.to_dict()).encode(homes).X.tolist()
    [[50.0, 0.0, 1.0], [80.0, 1.0, 0.0]]
    """

    numeric: tuple[str, ...]
    one_hot: dict[str, tuple[str, ...]] = field(default_factory=dict)
    means_of: dict[str, dict[str | None, float]] = field(default_factory=dict)
    target: str | None = None
    missing: str | None = None
    means: tuple[float, ...] = ()
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        hot = (f"{name}={value}" for name, values in self.one_hot.items() for value in values)
        return (*self.numeric, *hot, *self.means_of)

    def encode(self, table: Table) -> Encoded:
        """A table as X. Columns it does not need are passed over.

        Parameters
        ----------
        table : Table

        Returns
        -------
        Encoded
        """
        raw, texts, rows, notes = read(table, self.numeric, (*self.one_hot, *self.means_of), self.missing)
        if self.missing == "mean":
            raw = _filled(raw, np.asarray(self.means, float))
        parts = [raw]
        for name, values in self.one_hot.items():
            parts.append(_hot(texts[name], values))
            _note_unknown(notes, name, texts[name], set(values))
        for name, means in self.means_of.items():
            parts.append(np.array([[means.get(one, means[None])] for one in texts[name]], float).reshape(-1, 1))
            _note_unknown(notes, name, texts[name], set(means))
        return Encoded(self._scaled(_beside(parts)), rows, notes)

    def _scaled(self, X: Any) -> Any:
        if not self.scale:
            return X
        if sp.issparse(X):
            return sp.csr_array(X @ sp.diags_array(1.0 / np.asarray(self.scale)))
        return (X - np.asarray(self.center)) / np.asarray(self.scale)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can say it."""
        return {
            "numeric": list(self.numeric),
            "one_hot": {name: list(values) for name, values in self.one_hot.items()},
            "means_of": {
                name: {"texts": {k: v for k, v in means.items() if k is not None}, "otherwise": means[None]}
                for name, means in self.means_of.items()
            },
            "target": self.target,
            "missing": self.missing,
            "means": list(self.means),
            "center": list(self.center),
            "scale": list(self.scale),
        }

    @classmethod
    def from_dict(cls, told: Any) -> Encoder:
        """From what `to_dict` said; a ValueError if it is something else."""
        try:
            out = cls(
                tuple(_text(one) for one in told["numeric"]),
                {_text(name): tuple(_text(one) for one in values) for name, values in told["one_hot"].items()},
                {
                    _text(name): {_text(k): float(v) for k, v in one["texts"].items()} | {None: float(one["otherwise"])}
                    for name, one in told["means_of"].items()
                },
                None if told["target"] is None else _text(told["target"]),
                told["missing"],
                *(tuple(float(v) for v in told[name]) for name in ("means", "center", "scale")),
            )
        except (KeyError, TypeError, AttributeError) as wrong:
            raise ValueError(f"the encoder is not one: {wrong!r}") from None
        count = len(out.features)
        sizes = [(out.means, len(out.numeric)), (out.center, count), (out.scale, count)]
        if out.missing not in MISSING or any(len(one) not in (0, size) for one, size in sizes):
            raise ValueError("the encoder is not one: its parts do not fit together")
        if len(out.center) != len(out.scale) or (out.missing == "mean") > bool(out.means or not out.numeric):
            raise ValueError("the encoder is not one: its parts do not fit together")
        return out


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def learned(
    table: Table,
    *,
    target: str | None = None,
    y: np.ndarray | None = None,
    columns: list[str] | None = None,
    drop: list[str] | None = None,
    one_hot: list[str] | None = None,
    target_encode: list[str] | None = None,
    missing: str | None = None,
    standardize: bool = False,
) -> tuple[Encoder, Encoded]:
    """The Encoder for a table, and the table encoded.

    A text that stands for its target's mean has, in the table it is learned from, the mean over the other four of five
    folds: a row's own target would tell too much.

    Parameters
    ----------
    table : Table
    target : str, optional
        A column that is not to be among the features.
    y : ndarray, (n,), optional
        The target as numbers, for `target_encode`.
    columns, drop : list of str, optional
        Columns to use, all others unless said; columns to leave out.
    one_hot, target_encode : list of str, optional
        Columns of text to encode; ["all"] means all of them.
    missing : {None, "mean", "drop"}
    standardize : bool
        Give every feature mean 0 and standard deviation 1; a sparse X is only scaled.

    Returns
    -------
    Encoder, Encoded
    """
    if missing not in MISSING:
        raise ValueError(f"missing must be 'mean' or 'drop', got {missing!r}")
    used = wanted(table, target, columns, drop)
    texts = [name for name in used if name in table.text]
    hot, coded = (texts_named(table, texts, given) for given in (one_hot, target_encode))
    for name in texts:
        if name not in hot and name not in coded:
            raise ValueError(refusal(table, name))
    if set(hot) & set(coded):
        raise ValueError(f"column {min(set(hot) & set(coded))!r} is to be encoded twice: by one-hot or by target means")
    if coded and y is None:
        raise ValueError("target encoding needs a target")
    numeric = tuple(name for name in used if name not in table.text)
    raw, held, rows, notes = read(table, numeric, (*hot, *coded), missing)
    encoder = Encoder(numeric, target=target, missing=missing)
    if missing == "mean":
        encoder.means = tuple(_means(raw, table, numeric).tolist())
        raw = _filled(raw, np.asarray(encoder.means, float))
    parts = [raw]
    for name in hot:
        encoder.one_hot[name] = tuple(sorted({one for one in held[name] if one is not None}))
        parts.append(_hot(held[name], encoder.one_hot[name]))
    for name in coded:
        assert y is not None
        encoder.means_of[name] = _target_means(held[name], y[rows])
        parts.append(_left_out_means(held[name], y[rows]))
    X = _beside(parts)
    if not X.shape[1]:
        raise ValueError(f"{table.name} has no column to fit to but the target")
    if not X.shape[0]:
        raise ValueError(f"{table.name} has no row without a missing value: say missing='mean'")
    if standardize:
        encoder.center, encoder.scale = _moments(X)
        X = encoder._scaled(X)
    return encoder, Encoded(X, rows, notes)


# --- numbers -------------------------------------------------------------------------------------------------------


def _means(raw: Any, table: Table, numeric: tuple[str, ...]) -> np.ndarray:
    dense = raw.toarray() if sp.issparse(raw) and np.isnan(raw.data).any() else raw
    if sp.issparse(dense):
        return np.asarray(dense.mean(axis=0)).reshape(-1)
    there = ~np.isnan(dense)
    counts = there.sum(axis=0)
    if not counts.all():
        empty = numeric[int(np.argmin(counts))]
        raise ValueError(f"{table.name}: column {empty!r} has no value at all: drop it")
    return np.where(there, dense, 0.0).sum(axis=0) / counts


def _filled(raw: Any, means: np.ndarray) -> Any:
    if sp.issparse(raw):
        out = raw.tocoo(copy=True)
        out.data = np.where(np.isnan(out.data), means[out.col], out.data)
        return out.tocsr()
    return np.where(np.isnan(raw), means, raw)


def _hot(column: np.ndarray, values: tuple[str, ...]) -> np.ndarray:
    place = {value: j for j, value in enumerate(values)}
    out = np.zeros((len(column), len(values)))
    for i, one in enumerate(column):
        if one in place:
            out[i, place[one]] = 1.0
    return out


def _target_means(column: np.ndarray, y: np.ndarray) -> dict[str | None, float]:
    """The mean target of each text's rows, and of PRIOR rows more that have the overall mean."""
    overall = float(np.mean(y)) if len(y) else 0.0
    sums: dict[str, list[float]] = {}
    for one, value in zip(column, y):
        if one is not None:
            so_far = sums.setdefault(one, [0.0, 0.0])
            so_far[0] += float(value)
            so_far[1] += 1.0
    means: dict[str | None, float] = {
        one: (total + PRIOR * overall) / (count + PRIOR) for one, (total, count) in sums.items()
    }
    return {**means, None: overall}


def _left_out_means(column: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty((len(column), 1))
    fold = np.random.default_rng(0).permutation(len(column)) % min(FOLDS, max(len(column), 1))
    for k in range(FOLDS):
        own = fold == k
        means = _target_means(column[~own], y[~own])
        out[own, 0] = [means.get(one, means[None]) for one in column[own]]
    return out


def _beside(parts: list[Any]) -> Any:
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts]))
    return np.hstack(parts)


def _moments(X: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means and standard deviations; a column that does not vary is not scaled."""
    if sp.issparse(X):
        square = np.asarray(X.multiply(X).mean(axis=0)).reshape(-1)
        spread = np.sqrt(np.maximum(square - np.asarray(X.mean(axis=0)).reshape(-1) ** 2, 0.0))
        center = np.zeros(X.shape[1])
    else:
        center, spread = X.mean(axis=0), X.std(axis=0)
        spread = np.where(np.ptp(X, axis=0) > 0, spread, 0.0)  # a mean that is rounded leaves a spread of its own
    return tuple(center.tolist()), tuple(np.where(spread > 0, spread, 1.0).tolist())


def _note_unknown(notes: list[str], name: str, column: np.ndarray, known: set) -> None:
    new = {one for one in column if one is not None and one not in known}
    if new:
        rows = sum(one in new for one in column)
        notes.append(f"column {name!r} has texts that were not there before, such as {min(new)!r}, in {rows:,} rows")

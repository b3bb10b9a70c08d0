"""Doors by which files come in: what a good file is there, how it is forged, and who opens it."""

import contextlib
import gzip
import importlib
import io
import json
import os
import pickle
import time
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import forging
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import rowcol
from rowcol.core.sparse import checked
from rowcol.files import archive
from rowcol.files.encoder import Encoder
from rowcol.files.matrices import KINDS as MATRICES
from rowcol.files.matrices import matrix_from
from rowcol.files.plain import Unpacking
from rowcol.files.table import KINDS as TABLES
from rowcol.files.table import table_from
from rowcol.methods.kernel_routes import ROUTES as KERNEL_ROUTES
from rowcol.saving import models as saving

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 4))
y = np.sin(X[:, 0])
SPARSE = sp.csr_array(np.where(np.abs(X) < 0.8, 0, X))
TOWNS = np.array(["Ulm", "Bonn", "Köln"] * 4)


class Door(NamedTuple):
    """Where files come in."""

    seeds: Callable[[Any], Any]  # of a folder: pairs (suffix, what is forged)
    forge: Callable[..., tuple[str, Any]]  # of a seed, a Random and another seed: a kind, and what is opened
    whole: Callable[[Any], Any]  # a seed as it is
    ask: Callable[[Any], Any]  # open it; None, or a function that uses what was found
    inner: bool = False  # is it given what was made, and not the path of a file? Then any plain error will do
    writes: bool = False  # may it write in the folder of the file?
    quiet: frozenset = frozenset()  # events that are its own

    @property
    def errors(self):
        """What it may raise."""
        return Exception if self.inner else (ValueError, OSError)


def members(path):
    """What a zip of ours has, by name."""
    with zipfile.ZipFile(path) as held:
        return {one.filename: held.read(one) for one in held.infolist()}


# --- models and checkpoints ------------------------------------------------------------------------------------------


def fitted():
    """Small models of every kind."""
    kernel = {"alpha": 0.1, "kernel": "rbf", "random_state": 0}
    return {
        "ridge": rowcol.Ridge(0.5).fit(X, y),
        "classes": rowcol.RidgeClassifier().fit(X, TOWNS.astype(object)),
        "cv": rowcol.RidgeCV([0.1, 1.0], store_cv_results=True).fit(X, y),
        "kernel": rowcol.KernelRidge(**kernel, fit_intercept=True).fit(X, y),
        "sparse": rowcol.KernelRidge(**kernel | {"kernel": "cosine"}).fit(SPARSE, y),
        "centres": rowcol.KernelRidge(**kernel, n_centers=4).fit(X, y),
        "chances": rowcol.KernelRidgeClassifier(alpha=0.1, probability=True, random_state=0).fit(X, TOWNS),
    }


def models(folder):
    """As members of their files."""
    for name, model in fitted().items():
        encoder = Encoder(("a", "b", "c", "d"), missing="drop") if name == "ridge" else None
        rowcol.save(model, folder / name, encoder=encoder)
        yield "", members(folder / name)


def load(path):
    """The whole door of models; what gets through has to predict, or to say why not."""
    model = rowcol.load(path, encoder=True)[0]
    return lambda: model.predict(X)


ASKED = {
    "rk": {"alpha": 0.5, "method": "rk", "sampler": "shuffled", "max_passes": 6},
    "cg": {"alpha": 0.1, "method": "cg"},
    "kernel": {"alpha": 1e-3, "method": "cg", "kernel": "rbf"},
}


WARM = [
    *({"alpha": 0.5, "method": "rk", "sampler": one} for one in ("norms", "uniform", "shuffled", "chunks", "cyclic")),
    *({"alpha": 0.5, "method": one} for one in ("rcd", "sgs-cg", "blocks", "cg", "direct", "sketch")),
    *({"alpha": 0.5, "kernel": k, "method": one} for k in ("rbf", "linear", "laplacian") for one in KERNEL_ROUTES),
    *({"alpha": 0.5, "n_jobs": one} for one in (1, 2)),
    {"method": "rek"},
]


def checkpoints(folder):
    """Solves that were cut in the middle, as members of their files."""
    for name, asked in ASKED.items():
        count, how = iter(range(99)), asked | {"random_state": 0, "memory": "1 GB"}
        rowcol.solve(X, y, checkpoint=folder / name, callback=lambda _: next(count) > 1, **how)
        yield "", members(folder / name)
    for asked in WARM:  # what a forged file may ask for is loaded before it counts
        for kind in (float, np.float32):
            rowcol.solve(X.astype(kind), y, max_passes=3, random_state=0, callback=lambda _: True, **asked)


def resume(path):
    """The whole door of checkpoints, up to the first round that is new."""
    rowcol.resume(path, X, y, max_seconds=0.2, callback=lambda now: True)


def zip_of(parts):
    """A zip of members."""
    return forging.zipped([forging.Part(name.encode(), content) for name, content in parts.items()])


# --- what is within them ---------------------------------------------------------------------------------------------


def little(folder):
    """Small archives: a tree with all tags, and an array of each kind."""
    arrays = [
        X[:2],
        np.arange(3),
        np.array(["a", "é"]),
        np.float64(3),
        np.ones((2, 4), bool),
        np.array([0, 1, 2, 3]),
        y[:3],
    ]
    places = {"data": {"$array": 6}, "indices": {"$array": 1}, "indptr": {"$array": 5}}
    tree = {"a": [1, 2.5, None, True, "x"], "b": {"$tuple": [{"$array": 0}, {"$scalar": 3}]}, "c": {"$float": "nan"}}
    tree |= {"d": {"$dict": [[1, 2]]}, "e": {"$objects": ["a", 1], "shape": [2]}, "f": {"$status": "CONVERGED"}}
    tree |= {"g": {"$masked": {"$array": 0}, "mask": {"$array": 4}}, "h": {"$sparse": "csr", "shape": [3, 3], **places}}
    tree |= {"i": {"$is": "RBF", "fields": {"gamma": 1.0, "length_scale": None}}}
    files = {f"{k}.npy": forging.array_file(np.asarray(a)) for k, a in enumerate(arrays)}
    yield "", {"model.json": json.dumps(tree).encode(), **files}
    yield "", {"model.json": b'{"format": 1, "learned": {"coef_": {"$array": 0}}}', "0.npy": files["1.npy"]}


def header(raw):
    """The header of an array, and that it declares no more than there is."""
    file = io.BytesIO(raw)
    shape, _, dtype = archive._header(file, "forged")
    assert dtype.kind in "biufcU"
    assert dtype.itemsize * max(shape, default=0) >= 0


def values(told):
    """A tree of plain values."""
    text, arrays = told
    Unpacking(arrays, known=saving.CLASSES).unpack(json.loads(text))


def forged_header(seed, draw, other):
    name = draw.choice([one for one in seed if one.endswith(".npy")])
    return "header", forging.misread(seed[name], draw)


def forged_values(seed, draw, other):
    return "values", values_of(seed, draw)


def values_of(seed, draw=None):
    """A tree and its arrays, forged if there is something to draw from."""
    arrays = [np.load(io.BytesIO(seed[f"{k}.npy"])) for k in range(len(seed) - 1)]
    text = seed["model.json"].decode()
    if draw is not None:
        text = forging.regrown(text, draw, len(arrays), text)
        k = draw.randrange(len(arrays))
        arrays[k] = np.asarray(forging.reshaped(arrays[k], draw))
    return text, arrays


# --- matrices and tables ---------------------------------------------------------------------------------------------


FRAME = pd.DataFrame(X, columns=list("abcd")).assign(town=TOWNS, n=np.arange(12))


def tables(kinds, folder):
    """A small file of each of these kinds."""
    yield from ((suffix, raw) for suffix, raw in _tables(folder) if suffix.endswith(kinds))


def _tables(folder):
    text = FRAME.to_csv(index=False).encode()
    yield ".csv", text
    yield ".tsv", text.replace(b",", b"\t")
    yield ".csv.gz", gzip.compress(text)
    yield ".txt", "\n".join(" ".join(map(str, row)) for row in X).encode()
    yield "m.csv", "\n".join(",".join(map(str, row)) for row in X).encode()
    writers = {
        ".npy": lambda path: np.save(path, X),
        ".npz": lambda path: np.savez_compressed(path, X=X, y=y),
        "s.npz": lambda path: sp.save_npz(path, SPARSE),
        ".mtx": lambda path: scipy.io.mmwrite(path, SPARSE),
        "d.mtx": lambda path: scipy.io.mmwrite(path, X),
        ".svmlight": lambda path: dump_svmlight_file(SPARSE, y, str(path)),
        ".mat": lambda path: scipy.io.savemat(path, {"X": SPARSE.tocsc()}),
        "d.mat": lambda path: scipy.io.savemat(path, {"X": X, "s": "text"}),
        "z.mat": lambda path: scipy.io.savemat(path, {"X": X}, do_compression=True),
        "4.mat": lambda path: scipy.io.savemat(path, {"X": SPARSE.tocsc()}, format="4"),
        ".h5": lambda path: hdf5(path, X),
        "z.hdf5": lambda path: hdf5(path, X, chunks=(3, 4), compression="gzip"),
        ".parquet": FRAME.to_parquet,
        "z.parquet": partial(FRAME.to_parquet, compression="zstd"),
        ".arrow": partial(FRAME.to_feather, compression="uncompressed"),
        "s.arrow": stream,
        ".feather": partial(FRAME.to_feather, compression="lz4"),
        "z.feather": partial(FRAME.to_feather, compression="zstd"),
    }
    for suffix, write in writers.items():
        write(folder / f"seed{suffix}")
        yield suffix, (folder / f"seed{suffix}").read_bytes()


def hdf5(path, array, **how):
    """One array."""
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=array, **how)


def stream(path):
    """Arrow's format without a table of contents, of text that is written once."""
    told = pa.Table.from_pandas(FRAME.assign(town=FRAME.town.astype("category")))
    with pa.ipc.new_stream(str(path), told.schema) as file:
        file.write_table(told)


def forged_table(raw, draw, other):
    """Bytes, or the numbers of a text."""
    if draw.random() < 0.4:
        for _ in range(draw.choice((1, 1, 3))):
            cut = sorted(draw.randrange(len(raw) + 1) for _ in range(2))
            word = draw.choice(
                [*map(str, forging.NUMBERS), *map(str, forging.FLOATS), *forging.TEXTS, "1 1 1", "%", "\n"]
            )
            raw = raw[: cut[0]] + word.encode() + raw[draw.choice((cut[0], min(cut[0] + 3, cut[1]))) :]
        return "words", raw
    return "bytes", forging.bent(raw, draw, other)


def table(path):
    """A table: what is sparse has to lie within its shape, as compiled code does not look."""
    sound(table_from(path).numbers)


def matrix(path):
    """A matrix."""
    sound(matrix_from(path))


def sound(found):
    """Nothing lies outside."""
    if sp.issparse(found):
        checked(found.tocsr())


# --- doors that do what none may: the watch has to see it ------------------------------------------------------------


def _eval(path):
    return eval("1 + 1") and None


def _slow(path):
    while time.process_time() < _slow.until:
        pass


def _said(wrong):
    raise wrong


TRAPS = {
    "eval": _eval,
    "shell": lambda path: os.system("true") and None,
    "import": lambda path: importlib.import_module("this_module_is_not_there"),
    "write": lambda path: open(os.path.join(os.path.dirname(path), "..", "evil"), "w").close(),
    "read": lambda path: open(__file__).close(),
    "unpickle": lambda path: pickle.loads(pickle.dumps(Door)) and None,
    "memory": lambda path: np.empty(1 << 40),
    "other": lambda path: {}["a key"],
    "lines": lambda path: _said(ValueError("forged\nin two lines")),
    "nameless": lambda path: _said(ValueError("something is wrong")),
    "slow": _slow,
    "swallowed": lambda path: suppressed(),
}


def suppressed():
    """An error that nobody hears of is seen all the same, by what it asked for."""
    with contextlib.suppress(Exception):
        exec("x = 1")


def trapped(path):
    """By the last word of the name."""
    _slow.until = time.process_time() + 1.2
    TRAPS[path.rsplit(".")[-1]](path)


LAZY = frozenset(("import", "os.listdir"))  # readers of tables load parts of theirs late
DOORS = {
    "load": Door(models, forging.forged, zip_of, load),
    "resume": Door(checkpoints, forging.forged, zip_of, resume, writes=True),
    "archive": Door(little, forging.forged, zip_of, lambda path: archive.read(path) and None),
    "header": Door(little, forged_header, lambda seed: seed["0.npy"], header, inner=True),
    "values": Door(little, forged_values, values_of, values, inner=True),
    "traps": Door(lambda _: ((f".{one}", b"") for one in TRAPS), lambda *_: ("trap", b""), lambda raw: raw, trapped),
    "table": Door(partial(tables, TABLES), forged_table, lambda raw: raw, table, quiet=LAZY),
    "matrix": Door(partial(tables, MATRICES), forged_table, lambda raw: raw, matrix, quiet=LAZY),
}

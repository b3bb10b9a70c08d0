"""Doors by which files come in: what a good file is there, how it is forged, and who opens it."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import forging
import h5py
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp

import rowcol
from rowcol.files import archive
from rowcol.files.encoder import Encoder
from rowcol.files.matrices import KINDS, matrix_from
from rowcol.files.plain import Unpacking
from rowcol.files.table import table_from
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


def checkpoints(folder):
    """Solves that were cut in the middle, as members of their files."""
    for name, asked in ASKED.items():
        count, how = iter(range(99)), asked | {"random_state": 0, "memory": "1 GB"}
        rowcol.solve(X, y, checkpoint=folder / name, callback=lambda _: next(count) > 1, **how)
        yield "", members(folder / name)


def resume(path):
    """The whole door of checkpoints, up to the first round that is new."""
    rowcol.resume(path, X, y, max_seconds=0.2, callback=lambda now: True)


def zip_of(parts):
    """A zip of members."""
    return forging.zipped([forging.Part(name.encode(), content) for name, content in parts.items()])


# --- what is within them ---------------------------------------------------------------------------------------------


def little(folder):
    """Small archives: a tree with all tags, and an array of each kind."""
    arrays = [X[:2], np.arange(3), np.array(["a", "é"]), np.float64(3), np.ones((2, 4), bool), np.array([0, 1, 2, 3]), y[:3]]
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


def tables(folder):
    """A small file of every kind that a table or a matrix is read from."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"], frame["n"] = TOWNS, np.arange(12)
    text = frame.to_csv(index=False).encode()
    yield ".csv", text
    yield ".tsv", text.replace(b",", b"\t")
    yield ".csv.gz", gzip.compress(text)
    yield ".txt", "\n".join(" ".join(map(str, row)) for row in X).encode()
    yield ".svm", b"\n".join(b"%d 1:%.3f 3:%.3f" % (k, X[k, 0], X[k, 2]) for k in range(12))
    writers = {
        ".parquet": frame.to_parquet,
        ".feather": frame.to_feather,
        ".npy": lambda path: np.save(path, X),
        ".npz": lambda path: np.savez_compressed(path, X=X, y=y),
        "s.npz": lambda path: sp.save_npz(path, SPARSE),
        ".mat": lambda path: scipy.io.savemat(path, {"X": X, "y": y}),
        "s.mat": lambda path: scipy.io.savemat(path, {"X": sp.csc_array(SPARSE)}),
        ".mtx": lambda path: scipy.io.mmwrite(path, SPARSE),
        "d.mtx": lambda path: scipy.io.mmwrite(path, X),
        ".h5": hdf5,
    }
    for suffix, write in writers.items():
        write(folder / f"seed{suffix}")
        yield suffix, (folder / f"seed{suffix}").read_bytes()


def hdf5(path):
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, y
        file.create_dataset("Z", data=X, chunks=(4, 4), compression="gzip")


def forged_table(raw, draw, other):
    """Bytes, or the numbers of a text."""
    if draw.random() < 0.4:
        for _ in range(draw.choice((1, 1, 3))):
            cut = sorted(draw.randrange(len(raw) + 1) for _ in range(2))
            word = draw.choice([*map(str, forging.NUMBERS), *map(str, forging.FLOATS), *forging.TEXTS, "1 1 1", "%", "\n"])
            raw = raw[: cut[0]] + word.encode() + raw[draw.choice((cut[0], min(cut[0] + 3, cut[1]))) :]
        return "words", raw
    return "bytes", forging.bent(raw, draw, other)


def readable(path):
    """A table, and a matrix: what is sparse has to lie within its shape, as compiled code does not look."""
    found = []
    if path.endswith(KINDS):
        try:
            found = [matrix_from(path)]
        except ValueError:
            found = []
    if not path.endswith(".txt"):
        found.append(table_from(path).numbers)
    for one in found:
        if sp.issparse(one):
            one.tocsr().check_format(full_check=True)


LAZY = frozenset(("import", "os.listdir"))  # readers of tables load parts of theirs late
DOORS = {
    "load": Door(models, forging.forged, zip_of, load),
    "resume": Door(checkpoints, forging.forged, zip_of, resume, writes=True),
    "archive": Door(little, forging.forged, zip_of, lambda path: archive.read(path) and None),
    "header": Door(little, forged_header, lambda seed: seed["0.npy"], header, inner=True),
    "values": Door(little, forged_values, values_of, values, inner=True),
    "table": Door(tables, forged_table, lambda raw: raw, readable, quiet=LAZY),
}


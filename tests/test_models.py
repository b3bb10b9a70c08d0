"""Models on disk: the same bits after a round trip, and nothing but a clear word from a file that is none."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.lib import format as npy
from sklearn.pipeline import make_pipeline

import rowcol
from rowcol import kernels
from rowcol.files import archive
from rowcol.files.encoder import Encoder

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 4))
NEW = rng.standard_normal((25, 4))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90)
Y = np.column_stack([y, X[:, 1]])
TOWNS = np.array(["Ulm", "Bonn", "Köln"])[rng.integers(0, 3, 90)]
TWO = np.where(y > 0, "yes", "no")
SPARSE = sp.csr_array(np.where(rng.uniform(size=(90, 4)) < 0.5, X, 0))
PLENTY = kernels.RBF(gamma=0.3) + 0.5 * kernels.Matern(nu=2.5, length_scale=[1.0, 2.0, 3.0, 4.0]) * kernels.Linear()


def kernel_ridge(**options):
    return rowcol.KernelRidge(**({"alpha": 0.1, "kernel": "rbf", "random_state": 0} | options))


def classifier(**options):
    return rowcol.KernelRidgeClassifier(alpha=0.1, random_state=0, **options)


MODELS = {
    "ridge": lambda: rowcol.Ridge(0.5).fit(X, y),
    "ridge, targets apart": lambda: rowcol.Ridge([0.0, 1.0], covariance=False).fit(X, Y),
    "ridge, covariance, single": lambda: rowcol.Ridge(covariance=True).fit(X.astype(np.float32), y),
    "ridge, sparse": lambda: rowcol.Ridge(solver="sgs-cg", tol=1e-3, random_state=1).fit(SPARSE, y),
    "ridge, pieces": lambda: rowcol.Ridge().partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:]),
    "least squares": lambda: rowcol.LeastSquares(positive=True).fit(X, y),
    "ridge cv": lambda: rowcol.RidgeCV([0.1, 1.0, 10.0], store_cv_results=True).fit(X, y),
    "ridge cv, targets": lambda: rowcol.RidgeCV(np.array([0.1, 1.0]), alpha_per_target=True).fit(X, Y),
    "ridge classes": lambda: rowcol.RidgeClassifier().fit(X, TOWNS),
    "ridge two classes": lambda: rowcol.RidgeClassifier(class_weight={"yes": 2.0, "no": 1.0}).fit(X, TWO),
    "ridge, objects": lambda: rowcol.RidgeClassifier().fit(X, TOWNS.astype(object)),
    "ridge, labels": lambda: rowcol.RidgeClassifier().fit(X, (Y > 0).astype(int)),
    "kernel": lambda: kernel_ridge().fit(X, y),
    "kernel, intercept, weights": lambda: kernel_ridge(fit_intercept=True).fit(X, Y, np.arange(90) % 3),
    "kernel, tree": lambda: kernel_ridge(kernel=PLENTY, alpha=[0.1, 0.2]).fit(X, Y),
    "kernel, absolute": lambda: kernel_ridge(kernel="laplacian").fit(X, y),
    "kernel, chi2": lambda: kernel_ridge(kernel="chi2").fit(np.abs(X), y),
    "kernel, poly": lambda: kernel_ridge(kernel="poly", degree=2).fit(X, y),
    "kernel, single": lambda: kernel_ridge(dtype="float32").fit(X, y),
    "kernel, sparse": lambda: kernel_ridge(kernel="cosine").fit(SPARSE, y),
    "kernel, centres": lambda: kernel_ridge(n_centers=20, fit_intercept=True).fit(X, y),
    "kernel cv": lambda: rowcol.KernelRidgeCV(kernel="rbf", ard=True, cv=3, random_state=0, tune_points=60).fit(X, y),
    "classes": lambda: classifier(probability=True).fit(X, TOWNS),
    "two classes": lambda: classifier(probability=True, kernel="matern").fit(X, TWO == "yes"),
    "labels": lambda: classifier(probability=True).fit(X, (Y > 0).astype(int)),
}


def same(a, b):
    assert type(a) is type(b)
    for one, other in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("name", MODELS)
def test_a_round_trip_keeps_every_bit(name, folder):
    model, path = MODELS[name](), folder / "m.rowcol"
    rowcol.save(model, path)
    again = rowcol.load(path)
    assert type(again) is type(model)
    assert str(again) == str(model)
    new = np.abs(NEW) if "chi2" in name else NEW
    for points in (new, new.astype(np.float32), sp.csr_array(new)):
        same(again.predict(points), model.predict(points))
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method):
            same(getattr(again, method)(new), getattr(model, method)(new))
    if name.startswith("kernel"):
        same(again.predict(new, return_bound=True), model.predict(new, return_bound=True))
        if "centres" not in name:
            model._kept = None  # as in a pickle: it is drawn anew
            same(again.predict(new, return_std=True), model.predict(new, return_std=True))
            same(tuple(again.loo_residuals([1, 2])), tuple(model.loo_residuals([1, 2])))
    told = model.result_ if isinstance(model.result_, tuple) else (model.result_,)
    back = again.result_ if isinstance(again.result_, tuple) else (again.result_,)
    for one, other in zip(told, back, strict=True):
        assert str(one) == str(other)
        assert str(one.certificates) == str(other.certificates)  # NaN is not itself
        assert str(one.plan) == str(other.plan)
        assert one.history.passes == other.history.passes
    assert str(again.plan_) == str(model.plan_)
    first = path.read_bytes()
    rowcol.save(again, path)
    assert path.read_bytes() == first  # nothing is lost, and nothing is added


def test_what_a_loaded_model_can_still_do(folder):
    model = kernel_ridge().fit(X[:80], y[:80])
    rowcol.save(model, folder / "m.rowcol")
    again = rowcol.load(folder / "m.rowcol").add_rows(X[80:], y[80:])
    whole = kernel_ridge().fit(X, y)
    assert np.abs(again.predict(NEW) - whole.predict(NEW)).max() < 1e-3
    chosen = MODELS["kernel cv"]()
    rowcol.save(chosen, folder / "m.rowcol")
    again = rowcol.load(folder / "m.rowcol")
    assert again.best_params_ == chosen.best_params_
    assert again.cv_results_["params"] == chosen.cv_results_["params"]
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], chosen.cv_results_["mean_test_score"])


def test_a_precomputed_kernel_with_points_that_do_not_count(folder):
    K = kernels.RBF(gamma=0.3)
    for weight in (None, (np.arange(90) % 4 > 0).astype(float)):
        model = kernel_ridge(kernel="precomputed").fit(K(X), y, weight)
        rowcol.save(model, folder / "m.rowcol")
        same(rowcol.load(folder / "m.rowcol").predict(K(NEW, X)), model.predict(K(NEW, X)))


def test_names_parameters_and_an_encoder_come_along(folder):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    model = rowcol.Ridge(random_state=np.random.default_rng(0), callback=lambda p: None, memory="1 GB").fit(frame, y)
    encoder = Encoder(("a", "b", "c", "d"), missing="drop")
    rowcol.save(model, folder / "m.rowcol", encoder=encoder)
    again, found = rowcol.load(folder / "m.rowcol", encoder=True)
    assert found == encoder
    assert again.feature_names_in_.tolist() == list("abcd")
    assert again.get_params() == rowcol.Ridge(memory="1 GB").get_params()  # functions and generators are left out
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[list("dcba")])
    told = json.loads(zipfile.ZipFile(folder / "m.rowcol").read("model.json"))
    assert told["left_out"] == ["callback", "random_state"]
    assert told["format"] == 1
    assert told["rowcol"] == rowcol.__version__


def test_what_cannot_be_saved_is_told_and_nothing_is_written(folder):
    path = folder / "none.rowcol"
    for model, says in (
        (kernel_ridge(kernel=lambda a, b: float(a @ b)).fit(X[:20], y[:20]), "the kernel cannot be saved"),
        (kernel_ridge(kernel=kernels.Function(lambda A, B: A @ B.T)).fit(X[:20], y[:20]), "the kernel cannot be saved"),
        (kernel_ridge(kernel=kernels.RBF() + kernels.Function(np.inner)).fit(X[:20], y[:20]), "nothing in a file is"),
        (make_pipeline(rowcol.Ridge()).fit(X, y), "one of Ridge, LeastSquares"),
    ):
        with pytest.raises(TypeError, match=says):
            rowcol.save(model, path)
    with pytest.raises(Exception, match="not fitted yet"):
        rowcol.save(rowcol.Ridge(), path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        rowcol.save(MODELS["ridge"](), path / "m.rowcol")
    with pytest.raises(OSError, match="No space left"):
        rowcol.save(MODELS["ridge"](), "/dev/full")
    assert not path.exists()
    assert not list(folder.glob(".*"))


# --- files that are none ---------------------------------------------------------------------------------------------


def parts_of(path):
    with zipfile.ZipFile(path) as held:
        return {one.filename: held.read(one) for one in held.infolist()}


def forged(path, parts, compress=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compress) as held:
        for name, content in parts.items():
            held.writestr(name, content)


@pytest.fixture(scope="module")
def good(folder):
    path = folder / "good.rowcol"
    rowcol.save(kernel_ridge(fit_intercept=True, kernel=PLENTY).fit(X, y), path)
    return parts_of(path)


def tree_with(parts, *changes):
    """The parts with some of the tree changed: places, and what to put there."""
    tree = json.loads(parts["model.json"])
    for *place, last, value in changes:
        at = tree
        for key in place:
            at = at[key]
        at[last] = value
    return parts | {"model.json": json.dumps(tree).encode()}


FUNCTION = ("learned", "result_", "fields", "function", "$function")
TREES = {
    "newer": (("format", 99), ("rowcol", "9.1"), "made by a newer rowcol .9.1.: update"),
    "no format": (("format", "1"), "no format number"),
    "other estimator": (("estimator", "os.system"), "os.system"),
    "other class": (("estimator", "Ridge"), "damaged"),
    "other parameter": (("parameters", "shell", "rm"), "other parameters"),
    "other attribute": (("learned", "predict", 1), "learned something else"),
    "other type": (("learned", "alpha_", {"$is": "Popen"}), "damaged"),
    "method for a tag": (("learned", "n_iter_", {"$unpack": [1]}), "is not known"),
    "no such array": (("learned", "dual_coef_", {"$array": 999}), "no array 999"),
    "swapped arrays": ((*FUNCTION, "coefficients", {"$array": 0}), "do not go with 90 points"),
    "other kernel": ((*FUNCTION, "kernel", {"$is": "RBF", "fields": {"gamma": 1.0, "length_scale": None}}), "parts"),
    "kernel of text": ((*FUNCTION, "kernel", {"$is": "RBF", "fields": {"gamma": "x", "length_scale": None}}), "gamma"),
    "no kernel": ((*FUNCTION, "kernel", 3), "no kernel"),
    "other base": ((*FUNCTION, "exact", 2, "dots", False), "another base"),
    "no centre": ((*FUNCTION, "exact", 0, "centre", None), "another centre"),
    "long centre": ((*FUNCTION, "exact", 0, "centre", {"$array": 0}), "centre does not go"),
    "places": ((*FUNCTION, "places", {"$array": 0}), "no points count"),
    "features": (("learned", "n_features_in_", 5), "do not go with the points"),
    "no result": (("learned", "result_", None), "damaged"),
    "missing": (("learned", {}), "damaged"),
    "no number of threads": (("parameters", "n_jobs", "all"), "n_jobs must be"),
    "encoder": (("encoder", {"numeric": []}), "encoder is not one"),
    "encoder of others": (("encoder", Encoder(("a",)).to_dict()), "another number of features"),
}


@pytest.mark.parametrize("name", TREES)
def test_a_forged_tree_is_refused(name, good, folder):
    *changes, says = TREES[name]
    forged(folder / "f.rowcol", tree_with(good, *changes))
    with pytest.raises(ValueError, match=says) as wrong:
        rowcol.load(folder / "f.rowcol")
    assert "f.rowcol" in str(wrong.value)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(("told", "most"), [(10**9, max(64, os.cpu_count())), (2, 2), (-1, -1)])
def test_a_file_cannot_ask_for_a_billion_threads(told, most, good, folder):
    forged(folder / "f.rowcol", tree_with(good, ("parameters", "n_jobs", told)))
    model = rowcol.load(folder / "f.rowcol")
    assert model.n_jobs <= most
    assert model.n_jobs == told or told > most
    assert 1 <= model.result_.function.jobs <= max(most, os.cpu_count())
    np.testing.assert_allclose(model.predict(X[:3]), rowcol.load(folder / "good.rowcol").predict(X[:3]))


def header(shape, dtype="<f8"):
    out = io.BytesIO()
    npy.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


def test_forged_archives_are_refused_before_anything_is_allocated(good, folder):
    path = folder / "f.rowcol"
    pickled = io.BytesIO()
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    deep = b"[" * 200_000 + b"]" * 200_000
    for parts, says in (
        (good | {"0.npy": header((10**15,)) + bytes(80)}, "declares shape"),
        (good | {"0.npy": header((-1, -10)) + bytes(80)}, "no shape"),
        (good | {"0.npy": header((10**15,), "<U0")}, "numbers or text"),
        (good | {"0.npy": header((10**15,), "|V0")}, "numbers or text"),
        (good | {"0.npy": pickled.getvalue()}, "numbers or text"),
        (good | {"0.npy": b"not an array"}, "magic"),
        (good | {"../../evil.npy": b""}, "numbered .npy"),
        ({"model.json": deep}, "recursion|damaged"),
        ({"model.json": b"[1, 2]"}, "holds no model"),
        ({"model.json": b'{"format": 1' + b"0" * 5000 + b"}"}, "damaged"),
        ({"model.json": b"\xff\xfe"}, "damaged"),
        ({f"{k}.npy": b"" for k in range(archive.MOST + 1)}, "parts"),
    ):
        forged(path, parts)
        with pytest.raises(ValueError, match=says):
            rowcol.load(path)
    forged(path, good | {"0.npy": bytes(10**6)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="not stored as they are"):
        rowcol.load(path)
    assert not (folder.parent.parent / "evil.npy").exists()


def test_sparse_points_that_lead_out_of_their_shape_are_refused(folder):
    rowcol.save(MODELS["kernel, sparse"](), folder / "s.rowcol")
    parts = parts_of(folder / "s.rowcol")
    at = json.loads(parts["model.json"])["learned"]["X_fit_"]["indices"]["$array"]
    places = np.load(io.BytesIO(parts[f"{at}.npy"])).copy()
    places[0] = 10**8  # compiled code would read there
    out = io.BytesIO()
    np.save(out, places)
    forged(folder / "s.rowcol", parts | {f"{at}.npy": out.getvalue()})
    with pytest.raises(ValueError, match="damaged"):
        rowcol.load(folder / "s.rowcol")


def test_cut_and_changed_files_are_refused(folder):
    path = folder / "m.rowcol"
    rowcol.save(MODELS["ridge"](), path)
    whole = path.read_bytes()
    for cut in (0, 1, 30, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="damaged"):
            rowcol.load(path)
    refused = 0
    for at in range(60, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            rowcol.load(path)
        except ValueError:
            refused += 1
    assert refused >= 0.9 * len(range(60, len(whole), 97))  # what is left are dates and the like, which nobody reads
    with pytest.raises(FileNotFoundError, match="there is no file"):
        rowcol.load(folder / "nothing.rowcol")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        rowcol.load(folder)


def test_a_classifiers_parts_must_fit(folder):
    path = folder / "c.rowcol"
    rowcol.save(MODELS["classes"](), path)
    parts = parts_of(path)
    for change, says in (
        (("learned", "_labels", "$labels", {"$objects": ["a", "b"], "shape": [2]}), "classes are not as many"),
        (("learned", "_labels", "$labels", 1), "no classes"),
        (("learned", "calibration_", [1]), "probabilities do not go"),
        (("learned", "intercept_", "x"), "intercept does not go"),
    ):
        forged(path, tree_with(parts, change))
        with pytest.raises(ValueError, match=says):
            rowcol.load(path)
    rowcol.save(MODELS["ridge"](), path)
    parts = parts_of(path)
    for change in (("learned", "coef_", 3.0), ("learned", "intercept_", [1.0]), ("learned", "n_features_in_", 9)):
        forged(path, tree_with(parts, change))
        with pytest.raises(ValueError, match="not go with"):
            rowcol.load(path)


def test_predictions_in_single_precision_are_the_same_too(folder, monkeypatch):
    from rowcol.core import function

    model = kernel_ridge(tol=1e-2, kernel=PLENTY).fit(X, y)
    rowcol.save(model, folder / "m.rowcol")
    monkeypatch.setattr(function, "MUCH", 0)  # as if there were very many points
    again = rowcol.load(folder / "m.rowcol")
    assert model.result_.function.rough
    assert again.result_.function.quick.dtype is np.float32
    same(again.predict(NEW), model.predict(NEW))

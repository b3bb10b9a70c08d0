"""The architecture, held by tests: who may import whom, who may compile, how long a file is, what tags mean."""

import ast
import importlib
import inspect
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest
import yaml

import rowcol

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rowcol"
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = [
    "engine",
    "core",
    "places",
    "methods",
    "files",
    "asking",
    "fingerprints",
    "checkpoints",
    "posing",
    "fitting",
    "solving",
    "resuming",
    "theory",
    "preparing",
    "pathing",
    "folding",
    "estimators",
    "zoo",
    "saving",
    "racing",
    "show",
    "studies",
    "cli",
]


def layer(path):
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return LAYERS.index(part) if part in LAYERS else None


def imported(path):
    """The rowcol modules a file imports, at any depth of nesting, as absolute names."""
    package = ["rowcol", *path.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            named = [node.module] if node.module else [one.name for one in node.names if one.name != "__version__"]
            yield from (".".join([*base, name]) for name in named)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rowcol"):
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_imports_only_from_above(path):
    mine = layer(path)
    if mine is None:  # __init__ gathers the public names
        return
    for name in imported(path):
        parts = name.split(".")
        assert LAYERS.index(parts[1]) <= mine if len(parts) > 1 else False, f"{path.name} imports {name}"
    if path.parent.name == "engine" and path.name != "__init__.py":  # which compiles nothing
        assert not list(imported(path)), "each engine file is compiled, and cached, on its own"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_engine_compiles_and_files_stay_short(path):
    text = path.read_text()
    if path.parent.name != "engine":
        assert not re.search(r"^\s*(import|from) (numba|llvmlite)", text, re.M)
    assert "parallel=True" not in text, "threads of Numba's own are not safe after a fork"
    assert text.count("\n") <= 560 if path.parent.name == "engine" else text.count("\n") <= 400


def test_there_is_one_loop():
    """One Python loop that runs until something is satisfied, and one compiled descent."""
    whiles = {
        path.relative_to(SOURCE).as_posix(): sum(
            isinstance(n, ast.While) for n in ast.walk(ast.parse(path.read_text()))
        )
        for path in FILES
    }
    running = {k: v for k, v in whiles.items() if v}
    # alias.py fills its table, sampler.py its buffer: neither solves anything
    assert running == {"methods/loop.py": 1, "engine/alias.py": 1, "core/sampler.py": 1}
    assert sum(len(re.findall(r"^def descend\(", path.read_text(), re.M)) for path in FILES) == 1


def prose(path):
    """Comments and docstrings."""
    text = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            yield ast.get_docstring(node)


def tags(text):
    found = set()
    for a, b in re.findall(r"(?<![\w.])\((\d{1,2})\)(?:-\((\d{1,2})\))?", text):
        found |= set(range(int(a), int(b or a) + 1))
    return found


def test_every_equation_tag_is_on_the_map_and_in_a_test():
    used = set().union(*(tags(t) for path in FILES for t in prose(path)))
    mapped = tags((ROOT / "docs" / "paper.md").read_text())
    tested = set().union(*(tags(path.read_text()) for path in (ROOT / "tests").glob("test_*.py")))
    assert used, "the source cites the paper"
    assert used <= mapped
    assert mapped == set(range(1, 39)), "the paper has equations (1) to (38)"
    assert mapped <= tested, f"no test for {sorted(mapped - tested)}"


def test_public_names_load_and_are_documented():
    assert set(rowcol.__all__) <= set(dir(rowcol))
    for name in rowcol.__all__:
        value = getattr(rowcol, name)
        if not name.startswith("__"):
            assert inspect.getdoc(value), f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        rowcol.nonsense  # noqa: B018
    for path in FILES:
        module = ".".join(["rowcol", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        assert importlib.import_module(module).__doc__


def test_papers_of_the_project_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == rowcol.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["license"], citation["keywords"]) == (project["license"], project["keywords"])
    assert citation["abstract"] == project["description"]
    assert citation["references"][0]["url"] in project["urls"].values()
    assert f"## {rowcol.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test", "check", "slow", "nojit", "speed", "bench", "paper", "release", "clean"):
        assert re.search(rf"^{target}:", makefile, re.M)
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_the_page_on_support_says_what_the_package_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "support.md").read_text()
    extras = project["optional-dependencies"]
    rows = {name.lower(): oldest for name, oldest in re.findall(r"^\| (.+?) \| ([\d., ]+) \|$", page, re.M)}
    told = {}
    for names, oldest in rows.items():
        told |= dict(zip(names.split(": ")[-1].split(", "), oldest.split(", "), strict=True))
    tested = ("cli", "files", "cluster", "plot", "report")
    wanted = [*project["dependencies"], *(one for extra in tested for one in extras[extra])]
    assert told == dict(re.sub(r"\[.*\]", "", one).split(">=") for one in wanted)
    for extra in tested:
        assert set(extras[extra]) <= set(extras["dev"]), "tests ask for the same versions"
    tested = re.findall(r"^\| Python (3\.\d+) \| yes \|", page, re.M)
    claimed = [one.split(" :: ")[-1] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert tested == claimed
    assert project["requires-python"] == f">={tested[0]}"


def test_the_map_names_every_file():
    tree = (ROOT / "docs" / "design.md").read_text().split("## The tree")[1].split("\n## ")[0]
    folders, named = {}, set()
    for indent, names in re.findall(r"^( +)([\w./]+(?:, [\w.]+)*)(?: {2,}.*)?$", tree, re.M):
        for name in names.split(", "):
            folders = {deep: one for deep, one in folders.items() if deep < len(indent)}
            if name.endswith("/"):
                folders[len(indent)] = name
            else:
                named.add("".join(folders[deep] for deep in sorted(folders)) + name)
    there = {str(path.relative_to(ROOT)) for path in FILES if path.name != "__init__.py"}
    assert {one for one in named if one.startswith("src/rowcol/") and one.endswith(".py")} == there | {
        "src/rowcol/__init__.py"
    }


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]), ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

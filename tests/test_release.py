"""What would be released: the wheel and the sdist, built without the network. `make release` installs them, too."""

import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "release"))

import check  # noqa: E402


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return check.build(tmp_path_factory.mktemp("dist"), isolated=False)


def test_wheel_and_sdist_have_what_they_should_and_nothing_else(built):
    check.look(*built)


def test_the_tree_and_the_sdist_make_the_same_wheel(built, tmp_path):
    from_sdist = built[1]
    from_tree = check.build_wheel(tmp_path, isolated=False)
    with zipfile.ZipFile(from_sdist) as a, zipfile.ZipFile(from_tree) as b:
        assert a.namelist() == b.namelist()
        assert all(a.read(name) == b.read(name) for name in a.namelist())

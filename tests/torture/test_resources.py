"""Memory, files, disks and caches: nothing grows, limits are kept, and what is full or damaged is said or done without.

Everything is measured in processes of their own, see living.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FULL = os.environ.get("ROWCOL_TORTURE") == "full"
CACHES = ["cut", "full", "nowhere", "shared"] if FULL else ["cut"]  # compiling takes seconds each time


def begun(*asked, **environment):
    """A process that does all that, one after the other."""
    return subprocess.Popen(
        [sys.executable, HERE / "living.py", json.dumps(asked)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process):
    out, wrong = process.communicate(timeout=1800)
    assert process.returncode == 0, wrong[-3000:]
    return json.loads(out)


@pytest.fixture(scope="module")
def lived(tmp_path_factory, amount):
    """What one process went through: it takes longest to start."""
    times, folder = amount(60, 1000), str(tmp_path_factory.mktemp("full"))
    asked = [
        ["grown", {"times": times}],
        ["full", {"folder": folder, "largest": 2000}],
        ["limited", {"more": 50_000_000}],
    ]
    return times, *told(begun(*asked))


def test_fits_leave_nothing_behind(lived, tally):
    times, grown, *_ = lived
    allowed = 500_000 + 1000 * times  # bytes; what a fit takes is a hundred times that

    def clean(memory, files, threads):
        return memory < allowed and files <= 0 and threads <= 0

    assert not clean(*grown.pop("leak")), "the check has to see a leak"
    assert len(grown) == 10
    for name, change in grown.items():
        assert clean(*change), f"{name}: {change} after {times} fits"
    tally(
        "resources", fits_without_growth=times * len(grown), most_bytes_grown=str(max(one[0] for one in grown.values()))
    )


def test_a_full_disk_is_told_and_what_was_there_stays(lived, tally):
    full = lived[2]
    assert "too large" in full["save"]
    assert "cannot be written, File too large" in full["refused"], "before any work"
    (warned,) = full["checkpoint"]
    assert "no checkpoint could be written, and the last one stays as it is" in warned
    assert full["the same"]
    assert full["predicts"]
    assert full["left"] == ["checkpoint", "model"]
    assert full["off"] < 1e-7
    tally("resources", writes_on_a_full_disk=3)


def test_limits_on_memory_are_kept_or_told(lived, tally):
    limited = lived[3]
    code, said = limited.pop("command")[1]
    assert code == 2
    assert said.startswith("error: memory ran out")
    assert said.count("\n") == 1
    assert limited.pop("auto") == limited.pop("auto kernel") == ["done", True], "what is chosen fits"
    for name, (how, text) in [*limited.items(), ("command", ("MemoryError", said))]:
        assert how == "MemoryError", name
        assert "Unable to allocate" in text
        assert "the plan was for about" in text
        assert "say memory=" in text
        assert ("n_centers" if name == "kernel" else "rowcol.chunks") in text
    tally("resources", limits_on_memory=len(limited) + 3)


# --- compiled code on disk -------------------------------------------------------------------------------------------


def solved(cache, **more):
    """A solve in a new process, or for a sample a small part of one; compiled code is kept in `cache`."""
    return begun(["compiled", {"light": not FULL, **more}], NUMBA_CACHE_DIR=str(cache))


def right(process, fresh=None):
    """Its answer, and whether it compiled anew."""
    (found,) = told(process)
    assert found["off"] < 1e-6
    assert found["hits"] + found["misses"] > 0, "nothing was compiled or loaded"
    assert fresh is None or (found["misses"] > 0) == fresh, found


def cut(folder):
    """Every file loses its end, or all of it."""
    files = sorted(one for one in folder.rglob("*") if one.suffix in (".nbi", ".nbc"))
    assert files
    for k, one in enumerate(files):
        os.truncate(one, int(one.stat().st_size * (0, 0.4, 0.99)[k % 3]))


@pytest.mark.parametrize("how", CACHES)
def test_compiled_code_on_disk_is_no_one_to_rely_on(how, tmp_path, tally):
    cache = tmp_path / "cache"
    cache.mkdir()
    if how == "nowhere":
        right(solved("/dev/null/nowhere"))
    elif how == "full":
        right(solved(cache, largest=3000), fresh=True)
        right(solved(cache), fresh=True)
    elif how == "shared":
        both = [solved(cache), solved(cache)]
        for one in both:
            right(one)
    else:
        right(solved(cache), fresh=True)
        cut(cache)
        right(solved(cache), fresh=True)
    if how != "nowhere":
        right(solved(cache), fresh=False)
    tally("resources", caches_cut_full_missing_or_shared=1)

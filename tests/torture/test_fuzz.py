"""No file can hurt you: forged models, checkpoints, matrices and tables are refused in a line, or do no harm.

Each door is tried in a process of its own that is watched, see fuzzing.py.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FULL = os.environ.get("ROWCOL_TORTURE") == "full"
# door: the sample's files, and all of them; a million and more together
RUNS = {
    "header": (1500, 600_000),
    "values": (300, 120_000),
    "archive": (300, 120_000),
    "load": (300, 80_000),
    "resume": (200, 30_000),
    "table": (200, 60_000),
    "matrix": (200, 30_000),
}
GROUPS = [[one] for one in RUNS] if FULL else [list(RUNS)]  # a sample shares one process, as starting it takes longest


# and of bytes that atheris draws; each process takes seconds to begin, so that the sample has one
DRAWN = {"load": (400, 60_000), "resume": (0, 20_000), "table": (0, 80_000), "matrix": (0, 60_000)}
PEAK = {"table": 300, "matrix": 300}  # MB: what a file may take whatever it has, 256, and some; 150 for models
KEPT = 60  # MB that a process may have more at the end; the fuzzer's own tables are half of it


def watched(script, *words):
    """What a watched process tells."""
    paths = [str(HERE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-X", "faulthandler", HERE / script, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    return json.loads(told.stdout.splitlines()[-1])


def opened(runs):
    """So many forged files by each door."""
    return watched("fuzzing.py", json.dumps(runs))


def held(door, one, runs):
    """Did it hold?"""
    assert not one["wrong"], "\n".join(one["wrong"])
    assert one["runs"] == runs
    assert one["fine"], "good files are taken"
    refused = sum(count for kind, count in one["errors"].items() if not kind.startswith("used"))
    assert refused > 0.1 * one["runs"], "forgeries that all get through are none"
    assert one["grown"] < PEAK.get(door, 150), f"{one['grown']} MB more than {one['size']}"
    assert one["held"] < KEPT, f"{one['held']} MB more at the end"
    assert all(name.startswith("forged") for name in one["left"]), one["left"]


def noted(tally, one):
    tally("security", forged_files=one["runs"], refused_in_a_line=one["runs"] - one["accepted"])
    tally("security", harmless_and_taken=one["accepted"], ran_something_or_wrote_elsewhere=0, crashes=0)


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_forged_files_are_refused_in_a_line_and_do_nothing(group, tally):
    found = opened({door: RUNS[door][FULL] for door in group})
    for door, one in found.items():
        held(door, one, RUNS[door][FULL])
        assert one["accepted"] > 0.01 * one["runs"], "those that all stop at the gate try nothing behind it"
        noted(tally, one)


@pytest.mark.parametrize("door", [door for door, runs in DRAWN.items() if runs[FULL]])
def test_bytes_that_follow_the_code_are_refused_in_a_line_and_do_nothing(door, tally):
    one = watched("guided.py", door, str(DRAWN[door][FULL]))
    held(door, one, DRAWN[door][FULL])
    assert one["accepted"], "some get past the gate"
    if importlib.util.find_spec("atheris"):  # where there is none, good files are bent at random, and nothing is kept
        assert one["kept"] > 0, "no input reached anything new: is the code followed?"
    noted(tally, one)
    tally("security", of_these_drawn_by_coverage=one["runs"] if importlib.util.find_spec("atheris") else 0)


@pytest.mark.parametrize("script", ["fuzzing", "guided"])
def test_the_watch_sees_what_it_has_to_see(script):
    """Doors that run, import, write, read, allocate, dawdle and raise what they should not: each is noted."""
    found = opened({"traps": 12})["traps"] if script == "fuzzing" else watched("guided.py", "traps", "13")
    assert len(found["suffixes"]) == 12
    for name in found["suffixes"]:
        assert any(one.split(":")[0].endswith(name) for one in found["wrong"]), f"{name} was not seen"

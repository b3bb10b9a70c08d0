"""No file can hurt you: forged models, checkpoints, matrices and tables are refused in a line, or do no harm.

Each door is tried in a process of its own that is watched, see fuzzing.py.
"""

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


def opened(runs):
    """What a watched process tells of so many files by each door."""
    paths = [str(HERE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-X", "faulthandler", HERE / "fuzzing.py", json.dumps(runs)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    return json.loads(told.stdout)


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_forged_files_are_refused_in_a_line_and_do_nothing(group, tally):
    found = opened({door: RUNS[door][FULL] for door in group})
    for door, one in found.items():
        assert not one["wrong"], "\n".join(one["wrong"])
        assert one["runs"] == RUNS[door][FULL]
        assert one["fine"], "good files are taken"
        refused = sum(count for kind, count in one["errors"].items() if not kind.startswith("used"))
        assert refused > 0.1 * one["runs"], "forgeries that all get through are none"
        assert one["accepted"] > 0.01 * one["runs"], "those that all stop at the gate try nothing behind it"
        assert one["grown"] < 150, f"{one['grown']} MB more than {one['size']}"
        assert all(name.startswith("forged") for name in one["left"]), one["left"]
        tally("security", forged_files=one["runs"], refused_in_a_line=one["runs"] - one["accepted"])
        tally("security", harmless_and_taken=one["accepted"], ran_something_or_wrote_elsewhere=0, crashes=0)


def test_the_watch_sees_what_it_has_to_see():
    """Doors that run, import, write, read, allocate, dawdle and raise what they should not: each is noted."""
    (found,) = opened({"traps": 12}).values()
    assert len(found["suffixes"]) == 12
    for name in found["suffixes"]:
        assert any(one.split(":")[0].endswith(name) for one in found["wrong"]), f"{name} was not seen"

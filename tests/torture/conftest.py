"""Cases without number: a sample in `make test`, all of them in `make torture`, which counts them for docs/trust.md."""

import json
import os
from pathlib import Path

import pytest

FULL = os.environ.get("ROWCOL_TORTURE") == "full"
LINES = Path(__file__).parents[2] / "build" / "torture" / "tally.jsonl"


@pytest.fixture(scope="session")
def full():
    """Is this `make torture`?"""
    return FULL


@pytest.fixture(scope="session")
def amount():
    """How many cases: `amount(50, 20_000)` is the sample's number, or that of `make torture`."""
    return lambda sample, everything: everything if FULL else sample


@pytest.fixture(scope="session")
def tally():
    """Note what a test counted, once it has held: `tally("values", cases=120, certified=80)`; counts.py adds up."""
    return note


def note(chapter, **found):
    LINES.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"chapter": chapter, **found}) + "\n"
    with open(LINES, "ab", buffering=0) as file:  # one write, appended: other workers write here too
        file.write(line.encode())

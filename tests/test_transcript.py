"""The recorded first minute: what the docs show is what the commands print today."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import transcript  # noqa: E402


def check(commands):
    page = transcript.PAGE.read_text(encoding="utf-8")
    shown = page.partition(transcript.BEGIN)[2].partition(transcript.END)[0]
    today = transcript.recorded(commands)
    assert transcript.same(transcript.block(today)) in transcript.same(shown)
    assert transcript.WAVES.strip() in page
    assert str(ROOT) not in page
    for command, said in today:
        assert "(exit code" not in said, command
        assert all(len(transcript.plain(line)) <= transcript.WIDTH for line in said.splitlines())


def test_the_transcript_is_what_the_commands_print():
    """As far as to the first answer: every command is a process, which loads its libraries."""
    check(transcript.COMMANDS[:4])


@pytest.mark.slow
def test_all_of_the_transcript_is_what_the_commands_print():
    check(transcript.COMMANDS)


def test_the_picture_shows_the_same_commands():
    assert transcript.PICTURE.read_text().count("://") == 1  # the name of the format: nothing is fetched
    text = "".join(ET.parse(transcript.PICTURE).getroot().itertext()).replace("\xa0", " ")
    for k in transcript.SHOWN:
        assert transcript.COMMANDS[k] in text
    assert transcript.PICTURE.name in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        ("one\r\ntwo\r\n", "one\ntwo"),
        ("10%\r50%\r100%\r\ndone\r\n", "100%\ndone"),
        ("spin\r\x1b[2Kspun\r\x1b[2Kend\r\n", "end"),
        ("bar\r\n\x1b[1A\x1b[2Kend\r\n", "end"),
        ("\x1b[?25l\x1b[31mred\x1b[0m\r\n", "\x1b[31mred\x1b[0m"),
    ],
)
def test_a_terminal_is_read_as_a_person_sees_it(seen, left):
    assert transcript.settled(seen) == left

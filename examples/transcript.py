"""A new user's first minute, recorded: real commands in an empty folder and a terminal of 100 columns. make transcript

    python examples/transcript.py

Writes docs/transcript.md between its markers, and docs/pictures/transcript.svg, which the README shows.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "transcript.md"
PICTURE = ROOT / "docs" / "pictures" / "transcript.svg"
WIDTH = 100
BEGIN, END = "<!-- begin: examples/transcript.py -->", "<!-- end -->"

WAVES = """\
import math, random
random.seed(0)
print("x,z,y")
for _ in range(120):
    x, z = random.uniform(0, 6), random.gauss(0, 1)
    print(f"{x:.3f},{z:.3f},{math.sin(x) + z / 5 + random.gauss(0, 0.05):.3f}")
"""
COMMANDS = (
    "python waves.py > waves.csv && head -3 waves.csv",
    "rowcol info",
    "rowcol plan waves.csv --target y --intercept --memory 1GB",
    "rowcol solve waves.csv --target y --intercept",
    "rowcol fit waves.csv --target y --model kernel-ridge --cv --random-state 0 -o waves.rowcol",
    "head -4 waves.csv | rowcol predict waves.rowcol -",
    "rowcol evaluate waves.rowcol waves.csv --at-least 0.9",
    "rowcol bench waves.csv --target y --rounds 1 --json > race.json",
    "rowcol report race.json --out race.html",
)
SHOWN = (3, 4, 5, 6)  # of these commands on the picture
LIGHT = TerminalTheme(
    (250, 250, 250),
    (40, 40, 40),
    [
        (40, 40, 40),
        (190, 40, 40),
        (30, 130, 60),
        (160, 110, 0),
        (40, 80, 180),
        (140, 60, 150),
        (0, 120, 140),
        (90, 90, 90),
    ],
)


def typed(command: str, folder: Path, env: dict[str, str]) -> str:
    """What a terminal of `WIDTH` columns gets to see, escapes and all."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    running = subprocess.Popen(["bash", "-c", command], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # so Linux says that the other end is closed
            break
        if not some:
            break
        seen += some
    os.close(ours)
    code = running.wait()
    return seen.decode() + (f"(exit code {code})\n" if code else "")


def settled(seen: str) -> str:
    """What is left on the screen: as a terminal does it, lines are written over, taken back and cleared."""
    lines, row = [""], 0
    for one in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r\n|\r|\n|[^\x1b\r\n]+", seen):
        if one in ("\n", "\r\n"):
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif one.startswith("\x1b") and one.endswith("A"):
            row = max(row - int(one[2:-1] or 1), 0)
        elif one == "\r" or (one.startswith("\x1b") and one.endswith("K")):
            lines[row] = ""
        elif not one.startswith("\x1b") or one.endswith("m"):
            lines[row] += one
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")


def anyones(text: str) -> str:
    """Without the folder and the kernel of this machine."""
    text = re.sub(rf"{re.escape(str(ROOT))}/src", "...", text)
    return re.sub(r"(?m)^(platform +\w+)-.*$", r"\1", text)


def recorded(commands: tuple[str, ...] = COMMANDS) -> list[tuple[str, str]]:
    """Every command, and what it left on the screen."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = Path(name) / "first", Path(name) / "bin"
        folder.mkdir()
        tools.mkdir()
        (folder / "waves.py").write_text(WAVES)
        for tool, words in (("python", sys.executable), ("rowcol", f"{sys.executable} -m rowcol")):
            (tools / tool).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (tools / tool).chmod(0o755)
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES", "CI", "GITHUB_ACTIONS")}
        env |= {"TERM": "xterm-256color", "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
        return [(command, anyones(settled(typed(command, folder, env)))) for command in commands]


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def same(text: str) -> str:
    """A transcript without what depends on the machine: versions, seconds, rounding, and digits beyond the second."""
    text = re.sub(
        r"(?m)^(rowcol|python|platform|numpy|scipy|numba|scikit-learn|threads|cache|\[\w+\]) .*$", r"\1", text
    )
    text = re.sub(r"\d[\d.e+-]* s\b", "some s", text)
    text = re.sub(r"-?\d[\d.]*e-\d+", "tiny", text)
    return re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.2g}", text)


def block(session: list[tuple[str, str]]) -> str:
    return "\n".join(f"$ {command}\n{plain(said)}".rstrip("\n") + "\n" for command, said in session)


def picture(session: list[tuple[str, str]]) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for k in SHOWN:
        command, said = session[k]
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(said))
        console.print()
    return offline(console.export_svg(title="rowcol", theme=LIGHT, unique_id="rowcol"))


def offline(svg: str) -> str:
    """Without fonts from elsewhere: any of fixed width will do."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)
    return re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)


def main() -> None:
    session = recorded()
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n```text\n{block(session)}```\n\n{END}{after}", encoding="utf-8")
    PICTURE.write_text(picture(session), encoding="utf-8")
    print(f"Look at {PAGE.relative_to(ROOT)} and {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

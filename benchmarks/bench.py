"""rowcol against its rivals: seconds to a verified error, on every kind of problem. Run it: make bench

    python benchmarks/bench.py [--only ct,wide] [--threads 1,2] [--quick] [--data DIR] [--out DIR]

What counts, and most contenders, are rowcol.racing, which `rowcol bench` shares; datasets.py has the problems,
solvers.py one contender more, and report.py makes the page.
Each thread count is a process of its own: the libraries read their thread counts when they are loaded.
Writes bench.json and bench.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def datasets_for(only: str, size: str, folder: str | None) -> Iterator[Any]:
    """The chosen problems one by one (they do not fit in memory together), then those of the folder."""
    import datasets

    for name in datasets.chosen(only):
        yield datasets.make(name, size)
    if folder:
        yield from datasets.from_files(folder)


def work(only: str, size: str, folder: str | None, threads: int, part: Path) -> None:
    """All runs at this process's thread count, into the file `part` one by one. A line of progress each, on stderr."""
    from rowcol.racing.contest import compare
    from solvers import SOLVERS

    runs = []
    for data in datasets_for(only, size, folder):
        began = time.perf_counter()
        records = compare(data, SOLVERS)
        runs.append({"threads": threads, "facts": data.facts, "records": records})
        part.write_text(json.dumps(runs))
        best = {r["contender"]: r["seconds"] for r in records if r["seconds"] and r["target"] == min(data.targets)}
        order = ", ".join(f"{name} {best[name]:.3g}" for name in sorted(best, key=best.get)[:4])
        seconds = time.perf_counter() - began
        print(f"{threads} thr. {data.name} ({seconds:.0f} s): {order or 'nobody'}", file=sys.stderr, flush=True)


def in_a_process(arguments: argparse.Namespace, threads: int) -> list[dict[str, Any]]:
    """`work` in a new process, whose libraries have this many threads. If it dies, what it had done is kept."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.json"
        command = [sys.executable, __file__, "--only", arguments.only, "--worker", str(threads), "--out", str(part)]
        command += ["--quick"] if arguments.quick else []
        command += ["--data", arguments.data] if arguments.data else []
        ended = subprocess.run(command, check=False, env=os.environ | dict.fromkeys(THREADS, str(threads)))
        if ended.returncode:
            print(f"the run with {threads} threads ended early, code {ended.returncode}", file=sys.stderr)
        return json.loads(part.read_text()) if part.exists() else []


def write(runs: list[dict[str, Any]], size: str, out: str | Path) -> Path:
    """bench.json and bench.md into the folder `out`; returns the page."""
    import report
    from rowcol.racing.machine import PACKAGES, machine

    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    whole = {"machine": machine((*PACKAGES, "kaczmarz-algorithms")), "size": size, "runs": runs}
    (out / "bench.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = out / "bench.md"
    page.write_text(report.markdown(whole), encoding="utf-8")
    return page


def main(argv: list[str] | None = None) -> None:
    import datasets

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=f"names or parts of names: {', '.join(datasets.SPECS)}")
    parser.add_argument("--threads", help="thread counts, 1,2 unless said; with --quick 1")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or two in all")
    parser.add_argument("--data", help="also .npy and .csv files of this folder, the last column being the target")
    parser.add_argument("--out", default="bench", help="folder for bench.json and bench.md")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    size = "quick" if arguments.quick else "full"
    if arguments.only and not datasets.chosen(arguments.only) and not arguments.data:
        parser.error(f"no dataset is called {arguments.only}")
    if arguments.worker:
        work(arguments.only, size, arguments.data, arguments.worker, Path(arguments.out))
        return
    runs = []
    for threads in (arguments.threads or ("1" if arguments.quick else "1,2")).split(","):
        runs += in_a_process(arguments, int(threads))
        page = write(runs, size, arguments.out)  # after each thread count: the runs are long
    print(page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

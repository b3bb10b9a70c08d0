"""How wide a tile of a kernel matrix should be: nanoseconds an entry, and how much they depend on where memory is.

    python benchmarks/widths.py [--widths 512,704,1024] [--features 8,26,64] [--processes 5] [--double]

Products of one thread. Every process makes its points several times, so that they lie elsewhere in memory; of each
place the least of three products counts. What is printed is the least, the mean and the greatest over all places.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

PLACES = 3  # in a process
ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def places(widths: list[int], d: int, n: int, kind: type) -> dict[int, list[float]]:
    """Nanoseconds an entry, width by width."""
    from rowcol import kernels
    from rowcol.core import gram

    rng = np.random.default_rng(os.getpid())
    X, v = rng.standard_normal((n, d)), rng.standard_normal((1, n))
    found: dict[int, list[float]] = {width: [] for width in widths}
    kept = []
    for place in range(PLACES + 1):
        for width in widths:
            gram.width_of = lambda n, most=0, width=width: width  # type: ignore[misc]
            g = gram.gram(kernels.RBF(), X, kind)
            kept.append((g, np.ones(rng.integers(1, 20_000))))
            took = []
            for _ in range(3):
                began = time.perf_counter()
                gram.product(g, v)
                took.append(time.perf_counter() - began)
            if place:  # the first loads compiled code
                found[width].append(2e9 * min(took) / n / (n + 1))
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--widths", default="512,640,704,768,1024")
    asked.add_argument("--features", default="8,26,64")
    asked.add_argument("--points", type=int, default=12_000)
    asked.add_argument("--processes", type=int, default=5)
    asked.add_argument("--double", action="store_true")
    asked.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given = asked.parse_args()
    widths = [int(one) for one in given.widths.split(",")]
    if given.worker:
        print(json.dumps(places(widths, given.worker, given.points, np.float64 if given.double else np.float32)))
        return
    print("| features | width | least | mean | greatest |\n|---|---|---|---|---|")
    for d in given.features.split(","):
        found: dict[str, list[float]] = {}
        for _ in range(given.processes):
            command = [sys.executable, __file__, *sys.argv[1:], "--worker", d]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | ONE)
            for width, some in json.loads(ended.stdout).items():
                found.setdefault(width, []).extend(some)
        for width, all_of in found.items():
            print(f"| {d} | {width} | {min(all_of):.2f} | {np.mean(all_of):.2f} | {max(all_of):.2f} |", flush=True)


if __name__ == "__main__":
    main()

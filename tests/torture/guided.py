"""Bytes that atheris draws, led by which lines of ours they reach: `python guided.py load 1000`.

The process is watched and limited as in fuzzing.py. A first byte says which good file it began as, and how
the rest is wrapped: as it is, or as the members of a zip whose checksums are right, as no fuzzer guesses these. Where
there is no atheris the same good files are bent at random (Python 3.14, or another machine than x86-64 Linux).
"""

import contextlib
import gzip
import importlib
import io
import json
import os
import random
import sys
import tempfile
import types
import warnings
import zipfile
import zlib
from pathlib import Path

import forging
import fuzzing

try:
    import atheris
except ImportError:
    atheris = None

LED = ["archive", "arrays", "arrow", "delimited", "market", "matlab", "matrices", "plain", "table"]
LED = [f"rowcol.files.{one}" for one in LED] + ["rowcol.saving.models", "rowcol.saving.functions", "rowcol.checkpoints"]
LED += ["rowcol.resuming", "zipfile", "json.decoder", "json.scanner", "numpy.lib.format"]
MARK = b"\n-- another member --\n"
LONGEST = 20_000  # bytes


def led():
    """Have atheris follow these modules: function by function, as its hook on imports does not go with Numba's code."""
    for name in LED:
        held = [
            one
            for one in vars(importlib.import_module(name)).values()
            if str(getattr(one, "__module__", "")).startswith(name)
        ]
        held += [part for one in held if isinstance(one, type) for part in vars(one).values()]
        for one in held:
            if isinstance(one, types.FunctionType):
                atheris.instrument_func(one)


def mutated(drawn, most, seed):
    """Members are mostly changed one at a time: bytes as atheris likes, or a tree or a header by forging.py."""
    draw = random.Random(seed)
    parts = drawn[1:].split(MARK)
    if len(parts) == 1 or draw.random() < 0.2:
        return atheris.Mutate(drawn, most)
    k = draw.choice((0, draw.randrange(len(parts))))
    one = parts[k]
    with contextlib.suppress(Exception):  # what was forged before may not be forged again
        if draw.random() < 0.3:
            one = atheris.Mutate(one, len(one) + 100)
        elif one.startswith(b"\x93NUMPY"):
            one = forging.misread(one, draw)
        else:
            one = forging.regrown(one.decode(), draw, len(parts) - 1, one.decode()).encode()
    parts[k] = one
    return (drawn[:1] + MARK.join(parts))[:most]


def members(raw):
    """The contents of a zip of ours, in order."""
    with zipfile.ZipFile(io.BytesIO(raw)) as held:
        return {one.filename: held.read(one) for one in held.infolist()}


def zip_again(names, raw):
    """The parts under these names, or numbered."""
    named = [*names, *(f"{k}.npy" for k in range(len(names) - 1, 60))]
    return forging.zipped([forging.Part(name.encode(), one) for name, one in zip(named, raw.split(MARK))])


def mat_again(raw):
    """MATLAB's header, and one compressed variable."""
    packed = zlib.compress(raw[128:])
    return raw[:128] + b"\x0f\0\0\0" + len(packed).to_bytes(4, "little") + packed


def wraps(suffix, raw):
    """Ways to write a good file down: pairs (bytes that are drawn on, how they become a file)."""
    yield raw, bytes
    if raw[:4] == b"PK\x03\x04":
        held = members(raw)
        yield MARK.join(held.values()), lambda drawn: zip_again(list(held), drawn)
    if suffix.endswith(".gz"):
        yield gzip.decompress(raw), gzip.compress
    if suffix == "z.mat":
        yield raw[:128] + zlib.decompress(raw[136:]), mat_again


def bent_forever(seeds, judge):
    """What is drawn where nothing leads."""
    draw = random.Random(0)
    for one in seeds:
        judge(one)
    for _ in iter(int, 1):
        one = draw.choice(seeds)
        judge(one[:1] + forging.bent(one[1:], draw, draw.choice(seeds)[1:]))


def run(name, runs):
    """One door; what was found is printed, and the process ends."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        folder = os.path.realpath(folder)
        trial, seeds = fuzzing.ready(name, Path(folder))
        ways = [(suffix, *way) for suffix, one in seeds for way in wraps(suffix, trial.door.whole(one))]
        good = [bytes([k]) + drawn for k, (_, drawn, _) in enumerate(ways)]
        corpus, odd = Path(folder, "corpus"), Path(folder, "odd")
        corpus.mkdir()
        odd.mkdir()
        for k, one in enumerate(good):
            (corpus / f"{k}").write_bytes(one)
        start = fuzzing.begun(trial)

        def judge(drawn):
            suffix, _, wrap = ways[drawn[0] % len(ways) if drawn else 0]
            trial.open(wrap(drawn[1:]), f"{name} {drawn[:60]!r}{suffix}", suffix)
            trial.found["kinds"]["drawn"] += 1
            if trial.found["kinds"]["drawn"] == runs or len(trial.found["wrong"]) > fuzzing.MARGIN:
                found = fuzzing.ended(trial, start, {"corpus", "odd"})
                print(json.dumps(found | {"kept": len(list(corpus.iterdir())) - len(good)}), flush=True)
                os._exit(0)  # atheris never returns

        if atheris is None:
            bent_forever(good, judge)
        led()
        words = [
            "-seed=1",
            f"-max_len={LONGEST}",
            "-rss_limit_mb=0",
            "-len_control=0",
            "-mutate_depth=1",
            f"-artifact_prefix={odd}/",
        ]
        atheris.Setup([sys.argv[0], *words, "-verbosity=0", str(corpus)], judge, custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(sys.argv[1], int(sys.argv[2]))

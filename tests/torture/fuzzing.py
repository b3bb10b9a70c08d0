"""A process that opens forged files and is watched: `python fuzzing.py '{"load": 1000, "resume": 200}'`.

While a file is being opened nothing may be run, imported or written, nothing else may be read, no more memory may be
asked for than there is a limit for, and only a ValueError or an OSError of one line may come out. What was found is
printed as JSON; a crash of the interpreter is the exit code.
"""

import collections
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import doors

import rowcol

# Events of Python's own that anything may cause, and that lead nowhere.
QUIET = {"sys._getframe", "object.__getattr__", "object.__setattr__", "builtins.id", "array.__new__"}
WRITING = {"open", "os.rename", "os.remove", "os.link", "os.scandir", "os.listdir", "os.utime", "pathlib.Path.glob"}
MACHINE = ("/sys/fs/cgroup/", "/proc/meminfo", "/proc/self/statm")  # how many cores and how much memory there is
COMPILED = os.path.join(os.path.dirname(rowcol.__file__), "engine", "__pycache__")
LONGEST = 1.0  # seconds of CPU for a file
WARM = 20  # forged files of each kind, so that what is loaded or compiled late is loaded or compiled before it counts
MARGIN = 30  # what is wrong, before it is enough


class Watch:
    """An audit hook, which cannot be taken off: it looks while `path` is set."""

    def __init__(self, writes, quiet):
        self.path, self.writes, self.quiet, self.seen = None, writes, QUIET | quiet, []
        self.compiled = False  # was compiled code read, while this file is open? Numba keeps it as pickles
        sys.addaudithook(self.heard)

    def heard(self, event, told):
        """Note what should not happen."""
        if self.path is None or event in self.quiet:
            return
        reads = event == "open" and not told[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if reads and (told[0] == self.path or str(told[0]).startswith(MACHINE)):
            return
        if self.writes and reads and str(told[0]).startswith(COMPILED):  # who resumes solves, by code Numba has kept
            self.compiled = True
            return
        if self.compiled and (event == "pickle.find_class" or event.startswith("ctypes.")):
            return
        path, self.path = self.path, None  # what follows here is our own
        if event == "os.link" and told[0].startswith("/proc/self/fd/"):  # a name for a file that has none yet
            told = (os.path.join(os.readlink(f"/proc/self/fd/{told[3]}"), told[1]),)
        parsed = event == "compile" and told[1] == "<unknown>"  # by ast.parse, which runs nothing: NumPy's headers
        told = told[:1] if event in ("open", "pathlib.Path.glob") else told  # and how it is to be opened
        if not parsed and not (self.writes and event in WRITING and self.beside(path, told)):
            self.seen.append(f"{event} {told!r}"[:300])
        self.path = path

    @staticmethod
    def beside(path, told):
        """Is it about the file's own folder, or about a file that is open?"""
        folder = os.path.dirname(path)
        named = [os.path.realpath(os.fspath(one)) for one in told if isinstance(one, (str, bytes, os.PathLike))]
        return all(one == folder or os.path.dirname(one) == folder for one in named)


class Trial:
    """Files opened one by one, and what came of them."""

    def __init__(self, door, folder):
        self.door, self.folder = door, folder
        self.watch = Watch(door.writes, door.quiet)
        self.found = {"wrong": [], "kinds": {}, "errors": collections.Counter(), "accepted": 0, "slowest": 0.0}

    def open(self, raw, name, suffix="", watched=True):
        """One file: what it brings, besides an answer or the errors that are allowed, is noted."""
        path, found, watch = os.path.join(self.folder, "forged" + suffix), self.found, self.watch
        if not self.door.inner:
            with open(path, "wb") as file:
                file.write(raw)
        began, then = time.process_time(), None
        watch.path, watch.compiled = path if watched else None, False
        try:
            then = self.door.ask(raw if self.door.inner else path)
            found["accepted"] += 1
        except self.door.errors as wrong:
            watch.path = None
            found["errors"][type(wrong).__name__] += 1
            said = str(wrong)
            if isinstance(wrong, MemoryError):
                found["wrong"].append(f"{name}: MemoryError")
            elif not self.door.inner and (len(said.splitlines()) != 1 or len(said) > 700 or "forged" not in said):
                found["wrong"].append(f"{name}: {said!r}"[:900])
        except BaseException as wrong:
            watch.path = None
            found["wrong"].append(f"{name}: {type(wrong).__name__}: {wrong}"[:900])
        watch.path = None
        took = time.process_time() - began
        found["slowest"] = max(found["slowest"], took)
        if took > LONGEST and watched:
            found["wrong"].append(f"{name}: took {took:.1f} s")
        if watch.seen:
            found["wrong"].append(f"{name}: {watch.seen[:3]}")
            watch.seen.clear()
        if then is not None:
            self.use(then, name)

    def use(self, then, name):
        """What got through has to work, or to say why not: that it does not crash is what matters."""
        try:
            then()
            self.found["used"] = self.found.get("used", 0) + 1
        except (ValueError, TypeError) as wrong:
            self.found["errors"][f"used {type(wrong).__name__}"] += 1
        except Exception as wrong:
            self.found["wrong"].append(f"{name}: used {type(wrong).__name__}: {wrong}"[:900])


def resident():
    """MB of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def room(more):
    """Let this process have so many bytes more, and tell its largest size so far, in kB."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.getrlimit(resource.RLIMIT_AS)[1]))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def ready(name, folder):
    """A door with its good files, tried, and with forged ones that do not count: what is loaded late is loaded now."""
    door = doors.DOORS[name]
    seeds = list(door.seeds(folder))
    trial = Trial(door, str(folder))
    for k, (suffix, one) in enumerate(seeds):
        trial.open(door.whole(one), f"good {k}", suffix, watched=False)
    trial.found["fine"] = trial.found["accepted"]
    trial.found["suffixes"] = [suffix for suffix, _ in seeds]
    for k in range(WARM * len(seeds) if name != "traps" else 0):
        suffix, one = seeds[k % len(seeds)]
        trial.open(door.forge(one, random.Random(k), one)[1], "warm", suffix, watched=False)
    if name == "traps":
        trial.found["wrong"].clear()
    return trial, seeds


def begun(trial, more=2 << 30):
    """From here on it counts, with so much memory besides what there is: how it was at the start."""
    found = trial.found
    found |= {"accepted": 0, "used": 0, "kinds": collections.Counter(), "errors": collections.Counter(), "slowest": 0.0}
    return set(os.listdir(trial.folder)), room(more), resident(), time.perf_counter()


def ended(trial, start, own=frozenset()):
    """What was found since."""
    before, usage, held, began = start
    found = trial.found | {"runs": sum(trial.found["kinds"].values()), "seconds": time.perf_counter() - began}
    found |= {"left": sorted(set(os.listdir(trial.folder)) - before - own), "size": usage // 1024}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - usage) // 1024
    return found | {"grown": grown, "held": resident() - held}


def tried(name, runs, seed=0):
    """Open so many forged files by one door, and tell."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        trial, seeds = ready(name, Path(os.path.realpath(folder)))
        start = begun(trial)
        for k in range(runs):
            draw = random.Random(f"{seed} {k}")
            suffix, one = draw.choice(seeds) if name != "traps" else seeds[k % len(seeds)]
            kind, raw = trial.door.forge(one, draw, draw.choice(seeds)[1])
            trial.found["kinds"][kind] += 1
            trial.open(raw, f"{name} {seed} {k} {kind}{suffix}", suffix)
            if len(trial.found["wrong"]) > MARGIN:
                break
        return ended(trial, start)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({name: tried(name, runs) for name, runs in json.loads(sys.argv[1]).items()}))

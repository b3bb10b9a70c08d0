"""Commands in processes of their own, which start at once: all is imported once, in a process that they fork from."""

import json
import subprocess
import sys
from contextlib import contextmanager

SERVER = """
import ctypes, json, os, resource, signal, sys, threading, time
import numpy
import pandas, pyarrow.feather, pyarrow.parquet, sklearn.kernel_ridge
import rowcol.__main__, rowcol.cli, rowcol.files.encoder, rowcol.files.matrices, rowcol.saving.models, rowcol.solving
import rowcol.racing.contest, rowcol.show.page, rowcol.show.reporting
some = numpy.random.default_rng(0).standard_normal((30, 3))
rowcol.KernelRidge(kernel="rbf").fit(some, some[:, 0]).predict(some)  # compiled code is loaded once
rowcol.solve(some, some[:, 0])
for line in sys.stdin:
    job = json.loads(line)
    if {"--html", "report"} & set(job["words"]):
        rowcol.show.page._engine()  # seconds to make, and then kept
    child = os.fork()  # all is imported once, and each command has a process, with an end of its own
    if not child:
        if job["stdout"] == "closed":
            read, out = os.pipe()
            os.close(read)
        else:
            out = os.open(job["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        if job["interrupt"]:
            signal.signal(signal.SIGINT, rowcol.__main__._stopped)  # it may come before the command begins

            def ring():
                while job.get("begun") and signal.getsignal(signal.SIGINT) is rowcol.__main__._stopped:
                    time.sleep(0.02)  # the command has not taken Ctrl-C upon itself yet
                time.sleep(job["interrupt"])
                os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=ring, daemon=True).start()
        if job.get("stdin"):
            os.dup2(os.open(job["stdin"], os.O_RDONLY), 0)
        if job.get("largest"):  # no file may be larger, as on a disk that is full
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["largest"],) * 2)
        if job.get("nobody") and os.geteuid() == 0:  # without its capabilities root, too, obeys permissions
            number = ctypes.c_uint32
            assert ctypes.CDLL(None).capset((number * 2)(0x20080522, 0), (number * 6)()) == 0
        if job.get("encoding"):
            sys.stdout.reconfigure(encoding=job["encoding"], errors="strict")
        sys.argv = ["rowcol", *job["words"]]
        try:
            rowcol.__main__.main()
        except SystemExit as ended:
            code = ended.code or 0
        try:
            sys.stdout.flush()  # as Python does at its end, which takes seconds where so much is imported
        except OSError:
            code = 120
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)  # Python's own end takes seconds
"""


@contextmanager
def commands(folder):
    """A function that runs a command in this folder: what it returns, and says on stdout and stderr."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    )

    def ask(*words, stdout="stdout", interrupt=None, **more):
        server.stdin.write(json.dumps({"words": words, "stdout": stdout, "interrupt": interrupt, **more}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        told = (folder / "stdout").read_text() if stdout == "stdout" else ""
        return code, told, (folder / "stderr").read_text()

    yield ask
    server.stdin.close()
    server.wait()
    server.stdout.close()

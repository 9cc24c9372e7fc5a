"""Runs one command and tells what it cost, by the kernel's own accounting.

Times and memory are what wait4(2) says when the command ends: CPU seconds of the process
and of all its children, and the largest resident set of any one of them. Pages of files
that were written belong to the page cache, not to a process, and are not in it. Memory
below that of this small program (about 20 MB) cannot be seen, since a child begins in it.
"""

import os
import signal
import subprocess
import threading
import time

from harness.settings import PATIENCE_SECONDS


class Cost:
    def __init__(self, wall, usage, code):
        self.wall = wall
        self.user = usage.ru_utime
        self.system = usage.ru_stime
        self.peak = usage.ru_maxrss * 1024
        self.code = code


def run(command, environment, log, folder="/"):
    """Waits for the command, whose output goes to the log's end."""
    # What earlier commands wrote must not be flushed at this one's cost.
    os.sync()
    with open(log, "ab") as target:
        target.write(f"$ {' '.join(str(word) for word in command)}\n".encode())
        target.flush()
        begun = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], env=environment, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=target, stderr=target, start_new_session=True,
        )
        limit = threading.Timer(PATIENCE_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(wall, usage, process.returncode)

"""Where things are and what the caller asked for."""

import os
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
FOLDER = Path(os.environ.get("BENCH_DIR") or BENCH / "data").resolve()
RESULTS = BENCH / "results"
SCALE = os.environ.get("SF") or "1"
ROUNDS = int(os.environ.get("ROUNDS") or "5")
ONLY = [name for name in (os.environ.get("ONLY") or "").split(",") if name]
# Only these contestants, for a trial: its results stand apart and in no report.
TRIAL = [name for name in (os.environ.get("WITH") or "").split(",") if name]
TIDELAKE = ROOT / "target" / "release" / "tidelake"

# A peer that took so many times as long as the fastest is measured once.
SLOW_FACTOR = 3
# How long one command may take before it is stopped.
PATIENCE_SECONDS = 1800

USER = "bench"
PASSWORD = "bench"


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def fail(text):
    say(text)
    sys.exit(1)


def small_scale():
    """A tenth of the scale, which shows how time and memory grow."""
    return f"{float(SCALE) / 10:g}"


def dataset(scale):
    """The name of the database that holds TPC-H at this scale."""
    return "tpch_" + scale.replace(".", "_")


def memory_share(divisor):
    """A part of the machine's memory, in whole MiB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return pages // divisor // (1 << 20)

"""How time and memory grow: lineitem at the scale and at a tenth of it, tidelake alone."""

from harness import load, rounds, tables
from harness.jobs import Job
from harness.settings import SCALE, small_scale
from peers import peer_tidelake

TITLE = "PostgreSQL, lineitem, a tenth of the scale and the whole"
CONTESTANTS = [peer_tidelake]
GROUPS = {"tenth": "a tenth of the scale", "whole": "the scale"}


def measure(part):
    jobs = {
        "tenth": Job("postgres", load.tpch("postgres", small_scale()), [tables.LINEITEM]),
        "whole": Job("postgres", load.tpch("postgres", SCALE), [tables.LINEITEM]),
    }
    rounds.alternate(part, CONTESTANTS, jobs)

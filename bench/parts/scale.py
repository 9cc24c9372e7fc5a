"""How time and memory grow: lineitem at a tenth of the scale, at the scale, and three times over.

tidelake alone. At a tenth the rows end before the buffers are full, so it is the step from
one to three that tells whether memory follows the number of rows.
"""

from harness import load, rounds, tables
from harness.jobs import Job
from harness.settings import SCALE, small_scale
from peers import peer_tidelake

TITLE = "PostgreSQL, lineitem, a tenth of the scale, the whole, and three times the whole"
CONTESTANTS = [peer_tidelake]
GROUPS = {"tenth": "a tenth of the scale", "whole": "the scale", "thrice": "three times the scale"}


def measure(part):
    jobs = {
        "tenth": Job("postgres", load.tpch("postgres", small_scale()), [tables.LINEITEM]),
        "whole": Job("postgres", load.tpch("postgres", SCALE), [tables.LINEITEM]),
        "thrice": Job("postgres", load.thrice(SCALE), [tables.THRICE]),
    }
    rounds.alternate(part, CONTESTANTS, jobs)

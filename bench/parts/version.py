"""`tidelake --version`: how long the program takes to start."""

import os

from harness.jobs import Workplace
from harness.measure import run
from harness.rounds import cost_of
from peers import peer_tidelake

TITLE = "Start of the program"
CONTESTANTS = [peer_tidelake]
STARTS = 50


def measure(part):
    place = Workplace(part.name, "tidelake")
    for number in range(STARTS):
        command = [peer_tidelake.binary(), "--version"]
        cost = run(command, dict(os.environ), place.log)
        part.keep(group="", who="tidelake", round=number, command="tidelake --version", **cost_of(cost))
    place.close()

"""Measures contestants that remember how far they got: new rows, and nothing new."""

import json
import subprocess

from harness import install
from harness.jobs import Workplace, readable
from harness.measure import run
from harness.rounds import commands, cost_of
from harness.settings import BENCH, ROUNDS, say


def follow(part, contestants, job, cursor, new_rows=0, add=None):
    """Each contestant reads all once, then in each round what was added, then nothing."""
    followers = [Follower(part, peer, job, cursor) for peer in contestants]
    followers = [follower for follower in followers if follower.begin()]
    for number in range(ROUNDS):
        turn = number % max(len(followers), 1)
        order = followers[turn:] + followers[:turn]
        if add:
            add()
            for follower in order:
                follower.again("some", number, new_rows)
        for follower in order:
            follower.again("none", number, 0)
    for follower in followers:
        follower.place.close()


class Follower:
    def __init__(self, part, peer, job, cursor):
        self.part, self.peer, self.job, self.cursor = part, peer, job, cursor
        self.place = Workplace(part.name, peer.NAME)

    def begin(self):
        """The first, whole read, which is kept but stands in no table."""
        line = {"group": "first", "who": self.peer.NAME, "round": 0}
        try:
            prepared = self.peer.begin(self.job, self.place, self.cursor)
        except Exception as error:  # noqa: BLE001 whatever keeps a peer from running is a result
            say(f"{self.part.name} {self.peer.NAME}: not run: {error}")
            self.part.keep(**line, failed=f"not run: {error}")
            return False
        return self.measured(line, prepared, None)

    def again(self, group, number, expected):
        prepared = self.peer.again(self.job, self.place, self.cursor)
        self.measured({"group": group, "who": self.peer.NAME, "round": number}, prepared, expected)

    def measured(self, line, prepared, expected):
        before = self.listing()
        cost = run(prepared.command, prepared.environment, self.place.log, prepared.folder)
        line |= {**cost_of(cost), "command": readable(commands(self.place, prepared))}
        if cost.code:
            line["failed"] = readable(f"exit code {cost.code}: {self.place.last_words()}"[:300])
        elif expected is not None:
            written = {path: size for path, size in self.listing().items() if before.get(path) != size}
            line |= {"objects": len(written), "bytes": sum(written.values())}
            line["rows"] = rows_of(self.peer, self.place, written)
            if line["rows"] != expected:
                line["wrong"] = [f"{line['rows']} rows instead of {expected}"]
        self.part.keep(**line)
        say(f"{self.part.name} {line['group']} {self.peer.NAME}: {cost.wall:.3f} s {line.get('failed') or ''}"
            f"{line.get('wrong') or ''}")
        return "failed" not in line

    def listing(self):
        """What lies in the output folder: sizes by path."""
        return {str(path): path.stat().st_size for path in self.place.out.rglob("*") if path.is_file()}


def rows_of(peer, place, written):
    """How many rows the new files hold."""
    if hasattr(peer, "rows"):
        return peer.rows(place)
    files = [path for path in written if path.endswith(".parquet")]
    if not files:
        return 0
    job = json.dumps({"count": files})
    command = [install.python_of("reader"), str(BENCH / "harness" / "reader.py"), job]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

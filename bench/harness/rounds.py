"""Measures contestants in alternation and keeps one JSON line for each measurement."""

import json
import shutil
import time

from harness import check
from harness.jobs import Workplace, readable
from harness.measure import run
from harness.settings import RESULTS, ROUNDS, SCALE, SLOW_FACTOR, TRIAL, say


class Part:
    """The measurements of one part; they replace earlier ones when the part is done."""

    def __init__(self, name):
        self.name = name
        folder = RESULTS / "trial" if TRIAL else RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{name}.jsonl"
        self.half = self.file.with_suffix(".half")
        self.half.unlink(missing_ok=True)

    def keep(self, **line):
        line = {"part": self.name, "scale": SCALE, "at": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()), **line}
        with open(self.half, "a") as target:
            target.write(json.dumps(line) + "\n")
        return line

    def done(self):
        self.half.rename(self.file)


def cost_of(cost):
    return {"wall": cost.wall, "user": cost.user, "system": cost.system, "peak": cost.peak}


def alternate(part, contestants, jobs, rounds=ROUNDS):
    """Every contestant once with each job in each round, another first each time.

    `jobs` has a name for each job. The output of a contestant's first round is compared with
    the database in full, that of later rounds by its size alone, which must stay within a
    hundredth of the first one's.
    """
    races = [Race(part, contestants, group, job) for group, job in jobs.items()]
    for number in range(rounds):
        for race in races:
            race.round(number)
    for race in races:
        race.close()


class Race:
    def __init__(self, part, contestants, group, job):
        self.part, self.contestants, self.group, self.job = part, contestants, group, job
        folder = part.name + (f"-{group}" if group else "")
        self.places = {peer.NAME: Workplace(folder, peer.NAME) for peer in contestants}
        self.out_of_race = set()

    def round(self, number):
        turn = number % len(self.contestants)
        walls = {}
        for peer in self.contestants[turn:] + self.contestants[:turn]:
            if peer.NAME not in self.out_of_race:
                walls[peer.NAME] = one(self.part, peer, self.job, self.places[peer.NAME], self.group, number)
        fastest = min((wall for name, wall in walls.items() if wall and name != "floor"), default=0)
        for name, wall in walls.items():
            slow = number == 0 and name not in ("floor", "tidelake") and wall and wall > SLOW_FACTOR * fastest
            if wall is None or slow:
                self.out_of_race.add(name)

    def close(self):
        for place in self.places.values():
            place.close()


def one(part, peer, job, place, group, number):
    """One measurement. Answers the seconds, or None where it did not work."""
    place.empty()
    line = {"group": group, "who": peer.NAME, "round": number}
    try:
        prepared = peer.prepare(job, place)
    except Exception as error:  # noqa: BLE001 whatever keeps a peer from running is a result
        say(f"{part.name} {group} {peer.NAME}: not run: {error}")
        part.keep(**line, failed=f"not run: {error}")
        return None
    cost = run(prepared.command, prepared.environment, place.log, prepared.folder)
    line |= {**cost_of(cost), "command": readable(commands(place, prepared)), "bytes": parquet_bytes(place.out)}
    if cost.code:
        words = f"exit code {cost.code}: {place.last_words()}"[:300]
        say(f"{part.name} {group} {peer.NAME}: {words}")
        part.keep(**line, failed=readable(words))
        return None
    if number == 0 and peer.NAME != "floor":
        rows, wrong, types = check.output(job.system, job.database, job.tables, place.out)
        line |= {"rows": rows, "wrong": wrong[:5], "types": types, "files": len(list(place.out.rglob("*.parquet")))}
        for complaint in wrong[:3]:
            say(f"{part.name} {group} {peer.NAME}: DISAGREES: {complaint}")
    if place.first_bytes is None:
        place.first_bytes = line["bytes"]
    if abs(line["bytes"] - place.first_bytes) > place.first_bytes / 100:
        line["wrong"] = [f"{line['bytes']} bytes instead of {place.first_bytes}"]
    part.keep(**line)
    say(f"{part.name} {group} {peer.NAME} round {number + 1}: {cost.wall:.2f} s, "
        f"{cost.user + cost.system:.2f} CPU s, {cost.peak >> 20} MiB, {line['bytes'] / 1e6:.1f} MB")
    shutil.rmtree(place.out, ignore_errors=True)
    return cost.wall


def commands(place, prepared):
    """What was run, with what was needed before it."""
    return "\n".join([*([place.setup] if place.setup else []), " ".join(prepared.command)])


def parquet_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))

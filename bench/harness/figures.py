"""The figures that the results must show: target, value, met or missed.

A ratio is the median of the ratios of single rounds, since a machine that drifts between
fast and slow phases does so for both; a peer that was measured once has only one.
"""

from statistics import median

MIB = 1 << 20


class Lines:
    """The measurements of one part."""

    def __init__(self, lines):
        self.about = next((line["about"] for line in lines if "about" in line), {})
        self.lines = [line for line in lines if "about" not in line]

    def of(self, who, group=""):
        """What one contestant did in a group, without what failed."""
        return [
            line for line in self.lines if line["who"] == who and line["group"] == group and not line.get("failed")
        ]

    def contestants(self, group=""):
        return list(dict.fromkeys(line["who"] for line in self.lines if line["group"] == group))

    def failure(self, who, group=""):
        found = (line for line in self.lines if line["who"] == who and line["group"] == group and line.get("failed"))
        return next((line["failed"] for line in found), None)

    def middle(self, who, group="", key="wall"):
        values = [line[key] for line in self.of(who, group)]
        return median(values) if values else None

    def cpu(self, who, group=""):
        values = [line["user"] + line["system"] for line in self.of(who, group)]
        return median(values) if values else None

    def most(self, who, group="", key="peak"):
        values = [line[key] for line in self.of(who, group)]
        return max(values) if values else None

    def wrong(self, who, group=""):
        return [text for line in self.of(who, group) for text in line.get("wrong") or []]

    def ratio(self, above, below, group=""):
        """How many times as long as `below` took `above`."""
        walls = [{line["round"]: line["wall"] for line in self.of(who, group)} for who in (above, below)]
        shared = [walls[0][number] / walls[1][number] for number in walls[0] if number in walls[1]]
        return median(shared) if shared else None

    def peers(self, group=""):
        """The other contestants whose output agrees with the database, fastest first."""
        names = [
            who for who in self.contestants(group)
            if who not in ("floor", "tidelake", "psql") and self.of(who, group) and not self.wrong(who, group)
        ]
        return sorted(names, key=lambda who: self.middle(who, group))


class Figure:
    def __init__(self, part, text, target, value):
        self.part, self.text, self.target, self.value = part, text, target, value

    def row(self, measured):
        """The row of the table: what, target, value, and whether it was reached."""
        lines = measured.get(self.part)
        answer = self.value(lines) if lines else None
        if answer is None:
            return [self.text, self.target, "not run", "–"]
        value, reached = answer
        # The targets are those of scale 1.
        if lines.about.get("scale") != "1":
            value += f", at scale {lines.about.get('scale')}"
        return [self.text, self.target, value, "met" if reached else "**missed**"]


def against_floor(lines):
    ratio = lines.ratio("tidelake", "floor")
    walls = ratio and f"{lines.middle('tidelake'):.2f} s to {lines.middle('floor'):.2f} s"
    return ratio and (f"{ratio:.2f} × ({walls})", ratio <= 1.4)


def against_peers(least):
    def value(lines):
        if not lines.of("tidelake") or not lines.peers():
            return None
        peer = lines.peers()[0]
        ratio = lines.ratio(peer, "tidelake")
        return f"{ratio:.2f} × ({peer}: {lines.middle(peer):.2f} s)", ratio >= least and not lines.wrong("tidelake")

    return value


def processor(lines):
    ours, theirs = lines.cpu("tidelake"), lines.cpu("duckdb")
    return ours and theirs and (f"{ours / theirs:.2f} × ({ours:.2f} s to {theirs:.2f} s)", ours <= theirs / 2)


def size(lines):
    ours, theirs = lines.middle("tidelake", key="bytes"), lines.middle("duckdb", key="bytes")
    share = ours and theirs and ours / theirs
    return share and (f"{share:.3f} × ({ours / 1e6:.1f} MB to {theirs / 1e6:.1f} MB)", share <= 1.05)


def memory(group):
    def value(lines):
        peak = lines.most("tidelake", group)
        return peak and (f"{peak / MIB:.0f} MiB", peak <= 300 * MIB)

    return value


def growth_of_time(lines):
    small, whole = lines.middle("tidelake", "tenth"), lines.middle("tidelake", "whole")
    return small and whole and (f"{whole / small:.1f} × ({small:.2f} s, {whole:.2f} s)", whole / small <= 10)


def growth_of_memory(below, above, rows):
    def value(lines):
        small, whole = lines.most("tidelake", below), lines.most("tidelake", above)
        peaks = small and whole and f"{small / MIB:.0f} MiB, {whole / MIB:.0f} MiB"
        return peaks and (f"{whole / small:.2f} × for {rows} × the rows ({peaks})", whole / small <= 1.1)

    return value


def at_most(group, seconds):
    def value(lines):
        wall = lines.middle("tidelake", group)
        return wall and (f"{wall * 1000:.1f} ms", wall <= seconds and not lines.wrong("tidelake", group))

    return value


def beside(other, group, most):
    def value(lines):
        ratio = lines.ratio("tidelake", other, group)
        return ratio and (f"{ratio:.2f} × ({other}: {lines.middle(other, group) * 1000:.1f} ms)", ratio <= most)

    return value


def no_objects(lines):
    objects = lines.most("tidelake", "none", "objects")
    return None if objects is None else (str(objects), objects == 0)


def transactions(lines):
    found = {int(line["group"]): line["transactions"] for line in lines.lines}
    text = "; ".join(f"{found[count]} for {count} table{'s' * (count > 1)}" for count in sorted(found))
    return text, all(number <= 2 + count for count, number in found.items())


FIGURES = [
    Figure("postgres_lineitem", "PostgreSQL lineitem, wall to the server's floor", "≤ 1.4 ×", against_floor),
    Figure("postgres_lineitem", "the same, faster than the fastest peer", "≥ 1.25 ×", against_peers(1.25)),
    Figure("postgres_lineitem", "the same, CPU seconds to DuckDB's", "≤ 0.5 ×", processor),
    Figure("postgres_lineitem", "the same, peak memory", "≤ 300 MiB", memory("")),
    Figure("postgres_lineitem", "the same, size of the output to DuckDB's", "≤ 1.05 ×", size),
    Figure(
        "postgres_schema", "PostgreSQL, whole TPC-H schema, faster than the fastest peer", "≥ 1.25 ×",
        against_peers(1.25),
    ),
    Figure("mariadb_lineitem", "MariaDB lineitem, faster than the fastest peer", "> 1 ×", against_peers(1)),
    Figure("sqlite_lineitem", "SQLite lineitem, faster than the fastest peer", "> 1 ×", against_peers(1)),
    Figure("shapes", "peak memory, cells of 1 MB", "≤ 300 MiB", memory("cells")),
    Figure("shapes", "peak memory, 200 tables, 4 at once", "≤ 300 MiB", memory("small")),
    Figure("scale", "time, the scale to a tenth of it", "≤ 10 ×", growth_of_time),
    Figure("scale", "peak memory, the scale to a tenth of it", "≤ 1.1 ×", growth_of_memory("tenth", "whole", 10)),
    Figure("scale", "peak memory, three times the scale to it", "≤ 1.1 ×", growth_of_memory("whole", "thrice", 3)),
    Figure("news", "5,000 new rows among 6 million", "≤ 300 ms", at_most("some", 0.3)),
    Figure("news", "the same, to a bare psql", "≤ 3 ×", beside("psql", "some", 3)),
    Figure("news", "nothing new, 1 table", "≤ 100 ms", at_most("none", 0.1)),
    Figure("news", "the same, to rivet's", "≤ 1 ×", beside("rivet", "none", 1)),
    Figure("news", "the same, objects written", "0", no_objects),
    Figure("nothing", "nothing new, 200 tables", "≤ 1,000 ms", at_most("none", 1)),
    Figure("nothing", "the same, objects written", "0", no_objects),
    Figure("transactions", "nothing new, transactions that write state", "≤ 2 and 1 a table", transactions),
    Figure("version", "`tidelake --version`", "≤ 15 ms", at_most("", 0.015)),
]

"""RESULTS.md from the measurements that are there."""

from statistics import median

from harness.figures import FIGURES, MIB, Lines
from harness.settings import BENCH

INTRODUCTION = """# Results

Written by `make bench`; [README.md](README.md) tells how to read and reproduce them. All
figures are medians over the rounds, with the least and the most in brackets; memory is the
most of all rounds. Each part tells on what it was measured.
"""


def text(modules, measured):
    known = {name: Lines(lines) for name, lines in measured.items()}
    pieces = [INTRODUCTION, "## What must be shown\n", figures(known)]
    for name, module in modules.items():
        pieces.append(f"## {module.TITLE}\n")
        if name in known:
            pieces += part(name, module, known[name])
        else:
            pieces.append("not run\n")
    analysis = BENCH / "analysis.md"
    if analysis.exists():
        pieces.append(analysis.read_text())
    return "\n".join(pieces).rstrip() + "\n"


def figures(known):
    rows = [figure.row(known) for figure in FIGURES]
    return table(["figure", "must reach", "value", ""], rows)


def part(name, module, lines):
    about = lines.about
    yield f"`ONLY={name} SF={about['scale']} ROUNDS={about['rounds']} make bench`: {conditions(about)}\n"
    groups = getattr(module, "GROUPS", {"": ""})
    for group, title in groups.items():
        if title:
            yield f"### {title}\n"
        rows = [row(lines, who, group) for who in lines.contestants(group)]
        if any(rows):
            yield table(HEADER, [cells for cells in rows if cells])
    if name == "transactions":
        yield table(
            ["tables", "transactions that write"], [[line["group"], str(line["transactions"])] for line in lines.lines]
        )
    yield details(module, lines)


HEADER = [
    "", "wall s", "to tidelake", "rows/s", "CPU s", "peak MiB", "output MB", "files", "rounds",
    "agrees with the database",
]


def row(lines, who, group):
    found = lines.of(who, group)
    if not found:
        failure = lines.failure(who, group)
        return [who, *["–"] * (len(HEADER) - 2), failure] if failure else None
    if "wall" not in found[0]:
        return None
    walls = [line["wall"] for line in found]
    # What the clients of the server spend tells nothing about the floor, nor have they an output.
    idle = who == "floor"
    ratio = lines.ratio(who, "tidelake", group)
    rows = next((line["rows"] for line in found if line.get("rows")), None)
    return [
        who,
        f"{seconds(median(walls))} ({seconds(min(walls))}–{seconds(max(walls))})",
        f"{ratio:.2f} ×" if ratio else "–",
        f"{rows / median(walls):,.0f}" if rows else "–",
        "–" if idle else seconds(lines.cpu(who, group)),
        "–" if idle else f"{lines.most(who, group) / MIB:.0f}",
        "–" if idle or not found[0].get("bytes") else f"{lines.middle(who, group, 'bytes') / 1e6:.1f}",
        str(found[0].get("files", found[0].get("objects", "–"))),
        str(len(found)),
        verdict(lines, who, group),
    ]


def verdict(lines, who, group):
    found = lines.of(who, group)
    if lines.wrong(who, group):
        return "**no**: " + lines.wrong(who, group)[0].replace("|", "\\|")
    if not any("rows" in line for line in found):
        return "–"
    notes = [note for line in found for note in line.get("types") or []]
    return "; ".join(["yes", *dict.fromkeys(notes)])


def seconds(value):
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def conditions(about):
    servers = ", ".join(f"{name} {version}" for name, version in about["servers"].items())
    return (
        f"{about['processor']}, {about['cores']} cores shared with the servers, {about['memory_gib']} GiB, "
        f"{about['system']}, load {about['load']:.1f} at the start; tidelake at commit {about['commit']}; {servers}."
    )


def details(module, lines):
    """How each contestant was called."""
    pieces = ["<details><summary>How each was run</summary>\n"]
    for peer in module.CONTESTANTS:
        called = [line["command"] for line in lines.lines if line["who"] == peer.NAME and "command" in line]
        pieces.append(f"**{peer.NAME}** ({lines.about['versions'].get(peer.NAME, '')}): {peer.NOTE}.\n")
        if called:
            pieces.append(f"```text\n{called[-1]}\n```\n")
    return "\n".join(pieces) + "\n</details>\n"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(lines) + "\n"

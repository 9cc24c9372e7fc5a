"""The verbs of `bench/run`."""

import importlib
import json
import shutil

from harness import install, load, machine, report as reports, servers, tables
from harness.rounds import Part
from harness.settings import BENCH, FOLDER, ONLY, PASSWORD, RESULTS, SCALE, TRIAL, USER, dataset, fail, say, small_scale

# In the order of the results.
PARTS = [
    "postgres_lineitem", "postgres_schema", "mariadb_lineitem", "sqlite_lineitem",
    "shapes", "scale", "news", "nothing", "transactions", "version",
]


def part_names():
    return PARTS


def modules(names=PARTS):
    return {name: importlib.import_module(f"parts.{name}") for name in names}


def everything():
    """Measures the parts that ONLY names, or all, and writes the results."""
    unknown = [name for name in ONLY if name not in PARTS]
    if unknown:
        fail(f"no part is called {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    chosen = modules(ONLY or PARTS)
    for module in chosen.values():
        module.CONTESTANTS = [peer for peer in module.CONTESTANTS if peer.NAME in (TRIAL or [peer.NAME])]
    need_room()
    install.environment("reader")
    for peer in {peer.NAME: peer for module in chosen.values() for peer in module.CONTESTANTS}.values():
        peer.install_it()
    found_up = all(servers.running(name) for name in servers.NAMES)
    servers.up()
    try:
        for name, module in chosen.items():
            say(f"part {name}: {module.TITLE}")
            part = Part(name)
            part.keep(about=machine.about(module))
            module.measure(part)
            part.done()
            if not TRIAL:
                report()
    finally:
        if not found_up:
            servers.down()


def need_room():
    """Disk: CSV files, three databases, outputs."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(FOLDER).free
    needed = int(12e9 * max(float(SCALE), 0.3))
    if not (FOLDER / "loaded").exists() and free < needed:
        fail(f"{FOLDER} has {free / 1e9:.0f} GB of room; about {needed / 1e9:.0f} GB are needed (BENCH_DIR moves it)")


def up():
    """Loads all that any part needs."""
    servers.up()
    for system in load.LOADERS:
        load.tpch(system, SCALE)
    load.tpch("postgres", small_scale())
    for name in tables.SETS:
        load.shape("postgres", name)
    load.moving(SCALE)
    environment()


def environment():
    """Lines for a shell, to look at the data by hand."""
    for name in servers.NAMES:
        known = servers.running(name) or fail(f"{name} is not up; start with: bench/run up")
        print(f"export BENCH_{name.upper()}_PORT={known['port']}")
    print(f"export BENCH_USER={USER} BENCH_PASSWORD={PASSWORD} BENCH_DATABASE={dataset(SCALE)}")
    print(f"export BENCH_SQLITE={FOLDER / 'sqlite' / dataset(SCALE)}.db")


def report():
    """RESULTS.md from whatever was measured."""
    measured = {}
    for name in PARTS:
        file = RESULTS / f"{name}.jsonl"
        if file.exists():
            measured[name] = [json.loads(line) for line in file.read_text().splitlines()]
    (BENCH / "RESULTS.md").write_text(reports.text(modules(), measured))

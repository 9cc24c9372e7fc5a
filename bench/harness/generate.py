"""Writes the CSV files that all systems load. NULL is the bare word, bytes are `\\x` and hex."""

import base64
import random
import shutil
import subprocess
from datetime import date, datetime, timedelta

from harness import install, tables
from harness.settings import FOLDER, fail, say


def tpch(scale):
    """The folder with the eight tables of TPC-H at that scale."""
    return once(f"tpch-{scale}", lambda folder: run_tpchgen(scale, folder))


def shape(name):
    """The folder with the tables of one of our own shapes."""
    return once(name, {"wide": wide, "cells": cells, "small": small}[name])


def once(name, writer):
    folder = FOLDER / "csv" / name
    if not folder.exists():
        say(f"generating {name}")
        half = folder.with_name(name + ".half")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        writer(half)
        half.rename(folder)
    return folder


def run_tpchgen(scale, folder):
    program = install.program_of("tpch", "tpchgen-cli")
    if subprocess.run([program, "csv", "-s", scale, "--quiet", f"--output-dir={folder}"]).returncode:
        fail("tpchgen-cli failed")


def wide(folder):
    """200 columns of eight kinds, a tenth of the cells NULL, values from pools of 5,000."""
    chance = random.Random(20)
    words = [base64.b32encode(chance.randbytes(chance.randrange(5, 15))).decode().rstrip("=") for _ in range(5000)]
    makers = {
        "integer": lambda: str(chance.randrange(-(1 << 31), 1 << 31)),
        "bigint": lambda: str(chance.randrange(-(1 << 63), 1 << 63)),
        "double": lambda: repr(chance.uniform(-1e6, 1e6)),
        "decimal": lambda: f"{chance.randrange(-10**12, 10**12) / 100:.2f}",
        "text": lambda: chance.choice(words),
        "date": lambda: str(date(2000, 1, 1) + timedelta(days=chance.randrange(9000))),
        "timestamp": lambda: moment(chance.randrange(1 << 53)),
        "boolean": lambda: str(chance.randrange(2)),
    }
    pools = {kind: [make() for _ in range(4500)] + ["NULL"] * 500 for kind, make in makers.items()}
    picks = [pools[kind] for _, kind in tables.WIDE.columns[1:]]
    with open(folder / "wide.csv", "w") as target:
        target.write(header(tables.WIDE))
        for row in range(tables.WIDE_ROWS):
            # Indexes drawn at once, since one call for each of 20 million cells takes minutes.
            indexes = chance.choices(range(5000), k=len(picks))
            target.write(f"{row + 1}," + ",".join([pool[at] for pool, at in zip(picks, indexes)]) + "\n")


def cells(folder):
    """One document and one image of about a megabyte in each row; neither compresses."""
    chance = random.Random(21)
    with open(folder / "cells.csv", "w") as target:
        target.write(header(tables.CELLS))
        for row in range(tables.CELLS_ROWS):
            text = base64.b64encode(chance.randbytes(750_000)).decode()
            target.write(f"{row + 1},{text},\\x{chance.randbytes(1_000_000).hex()}\n")


def small(folder):
    chance = random.Random(22)
    states = ["open", "paid", "sent", "returned"]
    for table in tables.SMALL:
        with open(folder / f"{table.name}.csv", "w") as target:
            target.write(header(table))
            for row in range(tables.SMALL_ROWS):
                note = base64.b32encode(chance.randbytes(20)).decode()
                target.write(
                    f"{row + 1},{moment(row * 60_000_000)},{chance.randrange(100_000)},"
                    f"{chance.randrange(10**8) / 100:.2f},{chance.choice(states)},{note},"
                    f"{chance.randrange(2)},{chance.random()!r}\n"
                )


def header(table):
    return ",".join(name for name, _ in table.columns) + "\n"


def moment(microseconds):
    at = datetime(2001, 1, 1) + timedelta(microseconds=microseconds % (20 * 365 * 86_400 * 10**6))
    return at.isoformat(sep=" ", timespec="microseconds")



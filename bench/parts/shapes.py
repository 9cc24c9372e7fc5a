"""Three shapes of our own: 200 columns, cells of a megabyte, 200 small tables.

They show memory more than speed, so only DuckDB runs beside tidelake.
"""

from harness import load, rounds, tables
from harness.jobs import Job
from peers import peer_duckdb, peer_tidelake

TITLE = "PostgreSQL, odd shapes"
CONTESTANTS = [peer_tidelake, peer_duckdb]
GROUPS = {
    "wide": f"{tables.WIDE_ROWS:,} rows of 200 columns",
    "cells": f"{tables.CELLS_ROWS} rows with two cells of 1 MB each",
    "small": f"200 tables of {tables.SMALL_ROWS:,} rows, 4 at once",
}


def measure(part):
    jobs = {
        name: Job("postgres", load.shape("postgres", name), tables.SETS[name], tables_at_once=4) for name in GROUPS
    }
    rounds.alternate(part, CONTESTANTS, jobs)

"""PostgreSQL, the table lineitem, everything that exports it."""

from harness import load, rounds, tables
from harness.jobs import Job
from harness.settings import SCALE
from peers import (
    peer_adbc, peer_connectorx, peer_dlt, peer_duckdb, peer_floor,
    peer_odbc2parquet, peer_polars, peer_rivet, peer_tidelake,
)

TITLE = "PostgreSQL, lineitem"
CONTESTANTS = [
    peer_floor, peer_tidelake, peer_duckdb, peer_connectorx, peer_polars,
    peer_adbc, peer_odbc2parquet, peer_rivet, peer_dlt,
]


def measure(part):
    database = load.tpch("postgres", SCALE)
    rounds.alternate(part, CONTESTANTS, {"": Job("postgres", database, [tables.LINEITEM])})

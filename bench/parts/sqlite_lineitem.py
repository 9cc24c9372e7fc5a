"""SQLite, the table lineitem, everything that exports it."""

from harness import load, rounds, tables
from harness.jobs import Job
from harness.settings import SCALE
from peers import peer_tidelake, peer_duckdb, peer_connectorx, peer_polars, peer_adbc, peer_odbc2parquet, peer_dlt

TITLE = "SQLite, lineitem"
CONTESTANTS = [peer_tidelake, peer_duckdb, peer_connectorx, peer_polars, peer_adbc, peer_odbc2parquet, peer_dlt]


def measure(part):
    database = load.tpch("sqlite", SCALE)
    rounds.alternate(part, CONTESTANTS, {"": Job("sqlite", database, [tables.LINEITEM])})

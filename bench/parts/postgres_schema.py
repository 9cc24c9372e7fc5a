"""PostgreSQL, the whole schema: what exports a schema, and loops over its tables."""

from harness import load, rounds, tables
from harness.jobs import Job
from harness.settings import SCALE
from peers import (
    peer_adbc, peer_connectorx, peer_dlt, peer_duckdb, peer_floor,
    peer_odbc2parquet, peer_polars, peer_rivet, peer_tidelake,
)

TITLE = "PostgreSQL, all 8 tables of TPC-H"
CONTESTANTS = [
    peer_floor, peer_tidelake, peer_duckdb, peer_connectorx, peer_polars,
    peer_adbc, peer_odbc2parquet, peer_rivet, peer_dlt,
]


def measure(part):
    database = load.tpch("postgres", SCALE)
    rounds.alternate(part, CONTESTANTS, {"": Job("postgres", database, tables.TPCH, tables_at_once=4)})

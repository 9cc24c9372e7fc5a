"""How many transactions that write a sync with nothing new needs in a state store.

The state is in PostgreSQL for once, whose counter of transactions tells: only those that
change or lock something take a number, and nobody else uses the bench's server.
"""

import subprocess

from harness import databases, load, tables
from harness.jobs import Job, Workplace
from harness.settings import fail
from peers import peer_tidelake

TITLE = "State transactions of a sync with nothing new"
CONTESTANTS = [peer_tidelake]
STATE = "bench_state"


def measure(part):
    database = load.shape("postgres", "small")
    for count in (1, len(tables.SMALL)):
        databases.psql("postgres", f"DROP DATABASE IF EXISTS {STATE}")
        databases.psql("postgres", f"CREATE DATABASE {STATE}")
        job = Job("postgres", database, tables.SMALL[:count], tables_at_once=4)
        place = Workplace(part.name, "tidelake")
        run(peer_tidelake.begin(job, place, "updated_at", STATE))
        before = counter()
        run(peer_tidelake.again(job, place, "updated_at"))
        part.keep(group=str(count), who="tidelake", round=0, transactions=counter() - before)
        place.close()
    databases.psql("postgres", f"DROP DATABASE IF EXISTS {STATE}")


def run(prepared):
    done = subprocess.run(prepared.command, env=prepared.environment, capture_output=True, text=True)
    if done.returncode:
        fail(f"the sync failed: {done.stderr.strip()}")


def counter():
    return int(databases.psql("postgres", "SELECT pg_snapshot_xmax(pg_current_snapshot())")[0][0])

"""5,000 new rows among six million, and then nothing new, with an indexed time cursor.

All that take part have read the table once before. Each round adds the rows and lets each
of them fetch what is new, then runs each again, when nothing is.
"""

from harness import follow, load, tables
from harness.jobs import Job
from harness.settings import SCALE
from peers import peer_psql, peer_rivet, peer_tidelake

TITLE = "PostgreSQL, 5,000 new rows among 6 million (at scale 1), and then none"
CONTESTANTS = [peer_tidelake, peer_psql, peer_rivet]
GROUPS = {"some": "5,000 new rows", "none": "nothing new, 1 table"}
NEW_ROWS = 5_000
EVENTS = tables.Table(
    "events",
    "id bigint," + ",".join(" ".join(column) for column in tables.LINEITEM.columns) + ",updated_at timestamp",
    "id",
)


def measure(part):
    database = load.moving(SCALE)
    job = Job("postgres", database, [EVENTS], schema="moving")
    follow.follow(part, CONTESTANTS, job, "updated_at", NEW_ROWS, lambda: load.add_rows(database, NEW_ROWS))

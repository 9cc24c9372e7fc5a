"""Nothing new in 200 tables, each with a time cursor, after one sync of all of them."""

from harness import follow, load, tables
from harness.jobs import Job
from peers import peer_rivet, peer_tidelake

TITLE = "PostgreSQL, nothing new in 200 tables"
CONTESTANTS = [peer_tidelake, peer_rivet]
GROUPS = {"none": "nothing new, 200 tables, 4 at once"}


def measure(part):
    job = Job("postgres", load.shape("postgres", "small"), tables.SMALL, tables_at_once=4)
    follow.follow(part, CONTESTANTS, job, "updated_at")

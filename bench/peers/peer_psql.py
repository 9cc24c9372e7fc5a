"""psql: a bare client that fetches the rows above the value it saw last, into a file."""

from harness import databases, install
from harness.jobs import Prepared

NAME = "psql"
SYSTEMS = ("postgres",)
NOTE = "`\\copy (SELECT * FROM … WHERE cursor > …) TO file (FORMAT binary)`; keeps no state, writes no Parquet"


def version():
    return f"psql {install.package_version('postgresql-client-15')}"


def install_it():
    pass


def begin(job, workplace, cursor):
    """Nothing is read: a person would only note how far the table reaches."""
    workplace.seen = highest(job, cursor)
    return Prepared(["true"])


def again(job, workplace, cursor):
    table = f"{job.schema}.{job.tables[0].name}"
    file = workplace.out / "rows.binary"
    text = f"\\copy (SELECT * FROM {table} WHERE {cursor} > '{workplace.seen}') TO '{file}' (FORMAT binary)"
    # The next call begins where this one will have ended: nobody writes meanwhile.
    workplace.seen = highest(job, cursor)
    return Prepared(["psql", "-X", "-c", text], databases.postgres_environment(job.database))


def highest(job, cursor):
    return databases.psql(job.database, f"SELECT max({cursor}) FROM {job.schema}.{job.tables[0].name}")[0][0]


def rows(workplace):
    """psql says `COPY 5000`."""
    return int(workplace.last_words().split()[-1])

"""The server's floor: what reading alone costs it, with nothing sent to anybody.

Two halves of each table by ctid, as `COPY … TO '/dev/null' (FORMAT binary)`, at once.
"""

from harness import databases, install
from harness.jobs import Prepared

NAME = "floor"
SYSTEMS = ("postgres",)
NOTE = "`COPY (SELECT * FROM … WHERE ctid …) TO '/dev/null' (FORMAT binary)`, two halves at once; no output"


def version():
    return f"postgresql {install.package_version('postgresql-15')}"


def install_it():
    pass


def prepare(job, workplace):
    lines = []
    for table in job.tables:
        pages = databases.psql(
            job.database, f"SELECT pg_relation_size('{table.name}') / current_setting('block_size')::int"
        )[0][0]
        half = int(pages) // 2
        for condition in (f"ctid < '({half},0)'", f"ctid >= '({half},0)'"):
            lines.append(
                f"psql -Xqc \"COPY (SELECT * FROM {table.name} WHERE {condition}) TO '/dev/null' (FORMAT binary)\" &"
            )
        lines.append("wait")
    return Prepared(["sh", "-ec", "\n".join(lines)], databases.postgres_environment(job.database))

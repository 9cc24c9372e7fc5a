"""odbc2parquet: one process for each table, with Debian's ODBC drivers."""

from harness import install
from harness.jobs import Prepared

NAME = "odbc2parquet"
SYSTEMS = ("postgres", "mariadb", "sqlite")
NOTE = "`query` with zstd level 1, Debian's ODBC drivers, batches of its default size; one process a table"


def version():
    drivers = ", ".join(
        f"{name} {install.package_version(name)}" for name in ("odbc-postgresql", "odbc-mariadb", "libsqliteodbc")
    )
    return f"odbc2parquet {install.ODBC2PARQUET}, {drivers}"


def install_it():
    install.odbc2parquet()


def prepare(job, workplace):
    program = install.odbc2parquet()
    server = job.server()
    if job.system == "sqlite":
        address = f"Driver={{SQLite3}};Database={server['file']};"
    else:
        driver = {"postgres": "PostgreSQL Unicode", "mariadb": "MariaDB Unicode"}[job.system]
        # Without its own fetching in portions the PostgreSQL driver holds the whole result.
        portions = "UseDeclareFetch=1;Fetch=10000;" if job.system == "postgres" else "NO_CACHE=1;FORWARDONLY=1;"
        address = (
            f"Driver={{{driver}}};Server={server['host']};Port={server['port']};Database={job.database};"
            f"Uid={server['user']};Pwd={server['password']};{portions}"
        )
    lines = []
    for table in job.tables:
        folder = workplace.out / table.name
        folder.mkdir(parents=True)
        lines.append(
            f"{program} --quiet query --connection-string '{address}' --column-compression-default zstd "
            f"--column-compression-level-default 1 {folder}/data.parquet 'SELECT * FROM {table.name}'"
        )
    return Prepared(["sh", "-ec", "\n".join(lines)])

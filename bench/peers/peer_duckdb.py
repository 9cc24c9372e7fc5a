"""DuckDB: its scanner of the system, and COPY to Parquet."""

import json
import sys

from targets import target

NAME = "duckdb"
SYSTEMS = ("postgres", "mariadb", "sqlite")
NOTE = "`COPY (SELECT * FROM …) TO …`, zstd level 1, 2 threads, `preserve_insertion_order` off"

EXTENSIONS = {"postgres": "postgres_scanner", "mariadb": "mysql_scanner", "sqlite": "sqlite_scanner"}
TYPES = {"postgres": "postgres", "mariadb": "mysql", "sqlite": "sqlite"}


def version():
    from harness import install

    return install.versions_of("duckdb")


def install_it():
    """The extensions come from wheels; without the network DuckDB could not fetch them."""
    import subprocess

    from harness import install

    python = install.python_of("duckdb")
    subprocess.run([python, __file__, "install"], check=True)


def prepare(job, workplace):
    from harness import install
    from harness.jobs import Prepared, script

    return Prepared(script(install.python_of("duckdb"), "peer_duckdb", job.as_json(workplace.out)))


def connect():
    import duckdb

    return duckdb.connect(config={"extension_directory": sys.prefix + "/duckdb-extensions"})


def import_extensions():
    from duckdb_extensions import import_extension

    for name in EXTENSIONS.values():
        import_extension(name, con=connect())


def main(job):
    system = job["system"]
    connection = connect()
    connection.load_extension(EXTENSIONS[system])
    connection.execute(f"SET threads = {job['readers']}")
    connection.execute("SET preserve_insertion_order = false")
    address = job.get("file") or " ".join(
        f"{key}={value}"
        for key, value in (("host", job["host"]), ("port", job["port"]), ("user", job["user"]),
                           ("password" if system == "postgres" else "passwd", job["password"]),
                           ("dbname" if system == "postgres" else "db", job["database"]))
    )
    connection.execute(f"ATTACH '{address}' AS source (TYPE {TYPES[system]}, READ_ONLY)")
    schema = {"postgres": "public", "mariadb": job["database"], "sqlite": "main"}[system]
    for table in job["tables"]:
        connection.execute(
            f"COPY (SELECT * FROM source.{schema}.{table['name']}) TO '{target(job, table)}' "
            "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
        )


if __name__ == "__main__":
    if sys.argv[1] == "install":
        import_extensions()
    else:
        main(json.loads(sys.argv[1]))

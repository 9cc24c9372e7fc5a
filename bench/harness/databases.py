"""Speaks to the three systems through their own clients."""

import os
import sqlite3
import subprocess

from harness import servers
from harness.settings import FOLDER, PASSWORD, USER, fail


def psql(database, sql, arguments=()):
    """Runs SQL in PostgreSQL and answers the rows, each a list of texts."""
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-F", "\x1f", *arguments, "-c", sql]
    return rows_of(command, postgres_environment(database))


def postgres_environment(database):
    port = servers.running("postgres")["port"]
    return {
        **os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": USER, "PGPASSWORD": PASSWORD,
        "PGDATABASE": database, "PGSSLMODE": "disable",
    }


def mariadb(database, sql):
    """Runs SQL in MariaDB and answers the rows, each a list of texts."""
    port = servers.running("mariadb")["port"]
    command = [
        "mariadb", "--no-defaults", "--host=127.0.0.1", f"--port={port}", f"--user={USER}", "--skip-ssl",
        "--local-infile=1", "--max-allowed-packet=256M", "--batch", "--skip-column-names", "-e", sql, database,
    ]
    return rows_of(command, {**os.environ, "MYSQL_PWD": PASSWORD}, "\t")


def rows_of(command, environment, separator="\x1f"):
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        fail(f"{command[0]} failed: {done.stderr.strip()}")
    return [line.split(separator) for line in done.stdout.splitlines()]


def sqlite_file(database):
    return FOLDER / "sqlite" / f"{database}.db"


def sqlite(database, sql):
    """Runs SQL in SQLite and answers the rows, each a list of texts."""
    with sqlite3.connect(sqlite_file(database)) as connection:
        return [["" if cell is None else str(cell) for cell in row] for row in connection.execute(sql)]


QUERY = {"postgres": psql, "mariadb": mariadb, "sqlite": sqlite}

"""Makes a database of each set of tables in each system, once."""

import csv
import sqlite3

from harness import databases, generate, tables
from harness.settings import FOLDER, dataset, say


def tpch(system, scale):
    """The name of the database that holds TPC-H at this scale, loaded if it was not."""
    return once(system, dataset(scale), tables.TPCH, lambda: generate.tpch(scale))


def shape(system, name):
    return once(system, name, tables.SETS[name], lambda: generate.shape(name))


def once(system, database, members, source):
    mark = FOLDER / "loaded" / f"{system}-{database}"
    if not mark.exists():
        folder = source()
        say(f"loading {database} into {system}")
        LOADERS[system](database, members, folder)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return database


def postgres(database, members, folder):
    databases.psql("postgres", f"DROP DATABASE IF EXISTS {database}")
    databases.psql("postgres", f"CREATE DATABASE {database}")
    for table in members:
        file = folder / f"{table.name}.csv"
        databases.psql(database, table.ddl("postgres"))
        databases.psql(database, f"\\copy {table.name} FROM '{file}' (FORMAT csv, HEADER, NULL 'NULL')")
    databases.psql(database, "VACUUM (ANALYZE, FREEZE)")
    databases.psql(database, "CHECKPOINT")


def mariadb(database, members, folder):
    databases.mariadb("mysql", f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}")
    for table in members:
        # Bytes come as text, which a variable holds until it is decoded.
        targets = ", ".join(f"@{name}" if kind == "bytes" else name for name, kind in table.columns)
        decoded = ", ".join(f"{name} = unhex(substr(@{name}, 3))" for name, kind in table.columns if kind == "bytes")
        databases.mariadb(
            database,
            f"{table.ddl('mariadb')}; SET unique_checks = 0; "
            f"LOAD DATA LOCAL INFILE '{folder / table.name}.csv' INTO TABLE {table.name} CHARACTER SET utf8mb4 "
            f"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\n' "
            f"IGNORE 1 LINES ({targets})" + (f" SET {decoded}" if decoded else "")
            + f"; ANALYZE TABLE {table.name}",
        )


def sqlite(database, members, folder):
    file = databases.sqlite_file(database)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    csv.field_size_limit(1 << 24)
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for table in members:
            connection.execute(table.ddl("sqlite"))
            marks = ", ".join("?" * len(table.columns))
            with open(folder / f"{table.name}.csv", newline="") as source:
                rows = csv.reader(source)
                next(rows)
                connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", decoded_rows(table, rows))
            connection.commit()
        connection.execute("ANALYZE")
    # The journal that a source of other programs usually has.
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def decoded_rows(table, rows):
    """Text cells take the affinity of their column; only NULL and bytes need words."""
    if table in tables.TPCH:
        return rows
    binary = [kind == "bytes" for _, kind in table.columns]
    return (
        [
            None if cell == "NULL" else bytes.fromhex(cell[2:]) if is_bytes else cell
            for cell, is_bytes in zip(row, binary)
        ]
        for row in rows
    )


LOADERS = {"postgres": postgres, "mariadb": mariadb, "sqlite": sqlite}


def thrice(scale):
    """The database of TPC-H in PostgreSQL, with a table beside it that has lineitem's rows three times."""
    database = tpch("postgres", scale)
    mark = FOLDER / "loaded" / f"postgres-{database}-thrice"
    if not mark.exists():
        say(f"loading lineitem three times over into {database}")
        name = tables.THRICE.name
        databases.psql(database, f"DROP TABLE IF EXISTS {name}")
        databases.psql(database, tables.THRICE.ddl("postgres"))
        databases.psql(database, f"INSERT INTO {name} SELECT lineitem.* FROM generate_series(1, 3), lineitem")
        databases.psql(database, f"VACUUM (ANALYZE, FREEZE) {name}")
        databases.psql(database, "CHECKPOINT")
        mark.touch()
    return database


def moving(scale):
    """A table of six million rows (at scale 1) with an indexed time cursor, in PostgreSQL.

    It lives in a schema of its own beside TPC-H. Rows that earlier rounds added are taken
    away again.
    """
    database = tpch("postgres", scale)
    mark = FOLDER / "loaded" / f"postgres-{database}-moving"
    if not mark.exists():
        say(f"loading the moving table into {database}")
        databases.psql(database, "DROP SCHEMA IF EXISTS moving CASCADE; CREATE SCHEMA moving")
        databases.psql(
            database,
            "CREATE TABLE moving.events AS SELECT row_number() OVER () AS id, lineitem.*, "
            "timestamp '2024-01-01' + row_number() OVER () * interval '1 second' AS updated_at FROM lineitem",
        )
        databases.psql(database, "ALTER TABLE moving.events ALTER updated_at SET NOT NULL, ADD PRIMARY KEY (id)")
        databases.psql(database, "CREATE INDEX ON moving.events (updated_at)")
        databases.psql(database, "VACUUM (ANALYZE, FREEZE) moving.events")
        mark.touch()
    databases.psql(
        database,
        "DELETE FROM moving.events WHERE id > (SELECT count(*) FROM lineitem)",
    )
    return database


def add_rows(database, count):
    """New rows at the end of the moving table, one second apart."""
    columns = ", ".join(name for name, _ in tables.LINEITEM.columns)
    databases.psql(
        database,
        f"INSERT INTO moving.events SELECT last.id + n, {columns}, last.updated_at + n * interval '1 second' "
        "FROM (SELECT id, updated_at FROM moving.events ORDER BY updated_at DESC LIMIT 1) AS last, "
        f"(SELECT row_number() OVER () AS n, * FROM (SELECT * FROM lineitem LIMIT {count}) AS few) AS fresh",
    )

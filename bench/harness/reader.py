"""Reads Parquet files with DuckDB and says what they hold; run in the `reader` environment.

Called with one JSON argument, {"folder", "tables": [[name, [[column, kind], ...]], ...]};
prints {table: {"rows", "files", "columns": {column: [type, facts...]}}}. Or called with
{"count": files}; prints how many rows they hold.
"""

import json
import sys
from pathlib import Path

import duckdb


def facts(column, kind, type_name):
    """The SQL expressions that `check.py` has for a database, for a column of a file."""
    name = f'"{column}"'
    word = kind.partition(":")[0]
    if word == "decimal" and type_name == "VARCHAR":
        name = f"CAST({name} AS DECIMAL(38, 2))"
    if word in ("integer", "bigint", "decimal", "double"):
        return [f"sum({name})", f"min({name})", f"max({name})"]
    if word in ("date", "timestamp"):
        moment = f"CAST({name} AS TIMESTAMP)"
        days = f"date_diff('day', DATE '1970-01-01', CAST({moment} AS DATE))"
        return [f"sum({days})", f"min({moment})", f"max({moment})"]
    if word == "boolean":
        return [f"sum(CAST(CAST({name} AS BOOLEAN) AS INTEGER))"]
    if word == "bytes":
        return [f"sum(octet_length({name}))"]
    text = f"rtrim(CAST({name} AS VARCHAR), ' ')"
    return [f"sum(strlen({text}))", f"min({text}[1:60])", f"max({text}[1:60])"]


def profile(connection, files, columns):
    source = f"read_parquet({[str(file) for file in files]}, union_by_name = false)"
    types = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {source})").fetchall())
    known = {name.lower(): name for name in types}
    parts, spans = ["count(*)"], {}
    for column, kind in columns:
        actual = known.get(column)
        if actual is None:
            spans[column] = None
            continue
        expressions = [f'count("{actual}")', *facts(actual, kind, types[actual])]
        spans[column] = (types[actual], len(parts), len(expressions))
        parts += expressions
    row = connection.execute(f"SELECT {', '.join(parts)} FROM {source}").fetchone()
    found = {}
    for column, span in spans.items():
        if span is None:
            found[column] = None
            continue
        type_name, start, length = span
        cells = row[start : start + length]
        found[column] = [type_name, *(None if cell is None else str(cell) for cell in cells)]
    return {"rows": row[0], "files": len(files), "columns": found}


def main():
    job = json.loads(sys.argv[1])
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    if "count" in job:
        print(connection.execute(f"SELECT count(*) FROM read_parquet({job['count']})").fetchone()[0])
        return
    answer = {}
    for name, columns in job["tables"]:
        files = sorted(path for path in Path(job["folder"]).rglob("*.parquet") if is_of(path, job["folder"], name))
        answer[name] = profile(connection, files, columns) if files else {"rows": 0, "files": 0, "columns": {}}
    print(json.dumps(answer))


def is_of(path, folder, name):
    """Whether a folder on the way to the file has the table's name."""
    return name in (part.lower() for part in path.relative_to(folder).parts[:-1])


main()

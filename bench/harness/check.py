"""Whether an output holds what the database holds: counts, sums, lengths and extremes.

For each column: how many values it has; of numbers the sum and the extremes, exact where
the column is; of dates and times the sum of the days and the extremes; of texts the sum
of their lengths in bytes (without the blanks at the end that CHAR adds) and the extremes
of their first 60 characters; of bytes the sum of their lengths.
"""

import json
import subprocess
from datetime import datetime
from decimal import Decimal, InvalidOperation
from math import isclose

from harness import install
from harness.databases import QUERY
from harness.settings import BENCH, FOLDER

DAYS = {
    "postgres": "sum({0}::date - date '1970-01-01')",
    "mariadb": "sum(to_days({0}) - 719528)",
    "sqlite": "cast(sum(julianday(date({0})) - 2440587.5) as integer)",
}
TEXT_BYTES = {
    "postgres": "sum(octet_length(rtrim({0})))",
    "mariadb": "sum(length(rtrim({0})))",
    "sqlite": "sum(length(cast(rtrim({0}, ' ') as blob)))",
}
BYTES = {"postgres": "sum(octet_length({0}))", "mariadb": "sum(length({0}))", "sqlite": "sum(length({0}))"}
TRUE = {"postgres": "sum({0}::int)", "mariadb": "sum({0})", "sqlite": "sum({0})"}


def facts(system, column, kind):
    word = kind.partition(":")[0]
    if word in ("integer", "bigint", "decimal", "double"):
        return [f"sum({column})", f"min({column})", f"max({column})"]
    if word in ("date", "timestamp"):
        return [DAYS[system].format(column), f"min({column})", f"max({column})"]
    if word == "boolean":
        return [TRUE[system].format(column)]
    if word == "bytes":
        return [BYTES[system].format(column)]
    first = f"substr(rtrim({column}), 1, 60)"
    return [TEXT_BYTES[system].format(column), f"min({first})", f"max({first})"]


def of_database(system, database, table):
    """The facts of a table, computed by its database once."""
    file = FOLDER / "facts" / f"{system}-{database}-{table.name}.json"
    if not file.exists():
        found = {}
        rows = QUERY[system](database, f"SELECT count(*) FROM {table.name}")[0][0]
        # Few columns at a time: SQLite has a limit on the columns of a result.
        for column, kind in table.columns:
            parts = [f"count({column})", *facts(system, column, kind)]
            found[column] = QUERY[system](database, f"SELECT {', '.join(parts)} FROM {table.name}")[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"rows": int(rows), "columns": found}))
    return json.loads(file.read_text())


def of_output(folder, members):
    job = {"folder": str(folder), "tables": [[table.name, table.columns] for table in members]}
    done = subprocess.run(
        [install.python_of("reader"), str(BENCH / "harness" / "reader.py"), json.dumps(job)],
        capture_output=True, text=True,
    )
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr else "unreadable"
    return json.loads(done.stdout), ""


def output(system, database, members, folder):
    """Compares all tables. Answers the rows, what is wrong, and what became of types."""
    found, complaint = of_output(folder, members)
    if found is None:
        return 0, [complaint], []
    wrong, types = [], set()
    for table in members:
        expected, actual = of_database(system, database, table), found[table.name]
        if expected["rows"] != actual["rows"]:
            wrong.append(f"{table.name}: {actual['rows']} rows instead of {expected['rows']}")
            continue
        for column, kind in table.columns:
            got = actual["columns"].get(column)
            if got is None:
                wrong.append(f"{table.name}.{column} is missing")
                continue
            word = kind.partition(":")[0]
            exact = word not in ("double",) and not (word == "decimal" and (system == "sqlite" or got[0] == "DOUBLE"))
            if not all(same(a, b, word, exact) for a, b in zip(expected["columns"][column], got[1:])):
                wrong.append(f"{table.name}.{column}: {got[1:]} instead of {expected['columns'][column]}")
            types |= changed(word, got[0])
    return sum(entry["rows"] for entry in found.values()), wrong, sorted(types)


def same(expected, actual, word, exact):
    if expected in ("", "NULL", None) or actual in ("", None):
        return expected in ("", "NULL", None) and actual in ("", None)
    try:
        if word in ("date", "timestamp"):
            return moment(expected) == moment(actual)
        if word in ("integer", "bigint", "boolean", "bytes") or (word == "decimal" and exact):
            return Decimal(expected) == Decimal(actual)
        if word in ("double", "decimal"):
            return isclose(float(expected), float(actual), rel_tol=1e-9, abs_tol=1e-6)
    except (ValueError, InvalidOperation):
        return False
    # Sums of lengths are among the texts; all are compared as they are.
    return expected == actual


def moment(text):
    """A date, a time, or the sum of days among them."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return datetime.fromisoformat(text)


def changed(word, type_name):
    """What a reader would notice about a column's type."""
    if word == "decimal" and not type_name.startswith("DECIMAL"):
        return {f"decimals are {type_name.lower()}"}
    if word in ("date", "timestamp") and type_name == "VARCHAR":
        return {"dates are text"}
    return set()

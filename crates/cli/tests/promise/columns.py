"""Prints each column of some Parquet files in a form that a server can print too.

Arguments: the engine (pyarrow or duckdb), the name of the column to sort by, files.
The answer is JSON: by column its type and its values, each as text or null. Dates are
days and times microseconds since the epoch, so that no calendar of a library has to
hold them; floats are their bits, bytes are hexadecimal.
"""

import json
import struct
import sys
import uuid

engine, order, files = sys.argv[1], sys.argv[2], sys.argv[3:]


def text(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, int):
        return str(value)
    return format(value, "f")


def by_pyarrow():
    import pyarrow
    import pyarrow.parquet as parquet

    table = pyarrow.concat_tables(parquet.ParquetFile(file).read() for file in files)
    table = table.sort_by(order)
    for name, column in zip(table.schema.names, table.columns):
        kind = column.type
        if pyarrow.types.is_date32(kind):
            column = column.cast(pyarrow.int32())
        elif pyarrow.types.is_timestamp(kind) or pyarrow.types.is_time64(kind):
            column = column.cast(pyarrow.int64())
        values = column.to_pylist()
        if pyarrow.types.is_float32(kind):
            values = [value if value is None else struct.pack(">f", value) for value in values]
        elif pyarrow.types.is_float64(kind):
            values = [value if value is None else struct.pack(">d", value) for value in values]
        yield name, str(kind), values


def by_duckdb():
    import duckdb

    with duckdb.connect() as database:
        relation = database.read_parquet(files).order(f'"{order}"')
        for name, kind in zip(relation.columns, map(str, relation.types)):
            column = f'"{name}"'
            if kind == "DATE":
                column = f"{column} - DATE '1970-01-01'"
            elif kind.startswith("TIMESTAMP") or kind == "TIME":
                column = f"epoch_us({column})"
            elif kind == "UUID":
                column = f"{column}::VARCHAR"
            values = [row[0] for row in relation.project(column).fetchall()]
            if kind in ("FLOAT", "DOUBLE"):
                form = ">f" if kind == "FLOAT" else ">d"
                values = [value if value is None else struct.pack(form, value) for value in values]
            yield name, kind, values


columns = by_duckdb() if engine == "duckdb" else by_pyarrow()
told = {name: {"type": kind, "values": list(map(text, values))} for name, kind, values in columns}
print(json.dumps(told))

"""Prints the columns of some tables' Parquet files, in a form that a database can print too.

The request is JSON on stdin: tables by name, each a list of files. The answer is JSON:
by table and column the Arrow type, the physical and the logical type in the file, and
by engine the values, each as text or null. Dates are days and times a count of their
unit since the epoch, so that no calendar of a library has to hold them; floats are
their bits, bytes are hexadecimal.
"""

import json
import struct
import sys
import uuid

import duckdb
import pyarrow
import pyarrow.parquet as parquet


def text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else format(value, "f")


def bits(values, form):
    return [value if value is None else struct.pack(form, value) for value in values]


def by_pyarrow(files, order):
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
            values = bits(values, ">f")
        elif pyarrow.types.is_float64(kind):
            values = bits(values, ">d")
        yield name, values


# Functions on quoted columns, by the engine's type. Of an infinite time the engine
# would not print the count.
COUNTED = {
    "DATE": "{} - DATE '1970-01-01'",
    "TIME": "epoch_us({})",
    "TIMESTAMP": "epoch_us({})",
    "TIMESTAMP_NS": "epoch_ns({})",
    "TIMESTAMP WITH TIME ZONE": "epoch_us({})",
    "UUID": "{}::VARCHAR",
}


def by_duckdb(files, order):
    with duckdb.connect() as database:
        relation = database.read_parquet(files).order(f'"{order}"')
        for name, kind in zip(relation.columns, map(str, relation.types)):
            quoted = '"' + name.replace('"', '""') + '"'
            try:
                column = COUNTED.get(kind, "{}").format(quoted)
                values = [row[0] for row in relation.project(column).fetchall()]
            except duckdb.Error as error:
                yield name, [f"{type(error).__name__}: {error}"]
                continue
            if kind in ("FLOAT", "DOUBLE"):
                values = bits(values, ">f" if kind == "FLOAT" else ">d")
            yield name, values


def types(file):
    opened = parquet.ParquetFile(file)
    arrow, schema = opened.schema_arrow, opened.schema
    for number in range(len(schema)):
        column = schema.column(number)
        logical = str(column.logical_type)
        physical = column.physical_type.lower()
        if physical == "fixed_len_byte_array":
            physical = f"{physical}({column.length})"
        yield arrow.names[number], {
            "arrow": str(arrow.types[number]),
            "physical": physical,
            "logical": "" if logical == "None" else logical,
        }


def columns(files, order="id"):
    told = dict(types(files[0]))
    for engine, values in (("pyarrow", by_pyarrow), ("duckdb", by_duckdb)):
        for name, found in values(files, order):
            told[name][engine] = [text(value) for value in found]
    return told


tables = json.load(sys.stdin)
print(json.dumps({name: columns(files) for name, files in tables.items()}))

"""The tables of the bench, in words that are no system's own.

A kind is one word, with a number where it has a length. `ddl` gives a system's words.
"""

KINDS = {
    "postgres": {
        "integer": "integer", "bigint": "bigint", "decimal": "numeric(15,2)", "double": "double precision",
        "date": "date", "timestamp": "timestamp(6)", "boolean": "boolean", "text": "text", "bytes": "bytea",
        "char": "char({0})", "varchar": "varchar({0})",
    },
    "mariadb": {
        "integer": "integer", "bigint": "bigint", "decimal": "decimal(15,2)", "double": "double",
        "date": "date", "timestamp": "datetime(6)", "boolean": "boolean", "text": "longtext", "bytes": "longblob",
        "char": "char({0})", "varchar": "varchar({0})",
    },
    "sqlite": {
        "integer": "INTEGER", "bigint": "BIGINT", "decimal": "DECIMAL(15,2)", "double": "DOUBLE",
        "date": "DATE", "timestamp": "TIMESTAMP", "boolean": "BOOLEAN", "text": "TEXT", "bytes": "BLOB",
        "char": "CHAR({0})", "varchar": "VARCHAR({0})",
    },
}


class Table:
    def __init__(self, name, columns, key):
        self.name = name
        # Pairs of name and kind.
        self.columns = [tuple(column.split()) for column in columns.split(",")]
        self.key = key

    def ddl(self, system):
        words = KINDS[system]
        lines = []
        for name, kind in self.columns:
            word, _, length = kind.partition(":")
            lines.append(f"{name} {words[word].format(length)}" + ("" if self.nullable(name) else " NOT NULL"))
        if self.key:
            lines.append(f"PRIMARY KEY ({self.key})")
        return f"CREATE TABLE {self.name} ({', '.join(lines)})"

    def nullable(self, column):
        """Columns of our own shapes hold NULLs; TPC-H has none."""
        return column.startswith("w") and column[1:].isdigit()


TPCH = [
    Table("region", "r_regionkey integer,r_name char:25,r_comment varchar:152", "r_regionkey"),
    Table("nation", "n_nationkey integer,n_name char:25,n_regionkey integer,n_comment varchar:152", "n_nationkey"),
    Table("supplier", "s_suppkey integer,s_name char:25,s_address varchar:40,s_nationkey integer,s_phone char:15,"
          "s_acctbal decimal,s_comment varchar:101", "s_suppkey"),
    Table("part", "p_partkey integer,p_name varchar:55,p_mfgr char:25,p_brand char:10,p_type varchar:25,"
          "p_size integer,p_container char:10,p_retailprice decimal,p_comment varchar:23", "p_partkey"),
    Table("customer", "c_custkey integer,c_name varchar:25,c_address varchar:40,c_nationkey integer,c_phone char:15,"
          "c_acctbal decimal,c_mktsegment char:10,c_comment varchar:117", "c_custkey"),
    Table("partsupp", "ps_partkey integer,ps_suppkey integer,ps_availqty integer,ps_supplycost decimal,"
          "ps_comment varchar:199", "ps_partkey, ps_suppkey"),
    Table("orders", "o_orderkey integer,o_custkey integer,o_orderstatus char:1,o_totalprice decimal,o_orderdate date,"
          "o_orderpriority char:15,o_clerk char:15,o_shippriority integer,o_comment varchar:79", "o_orderkey"),
    Table("lineitem", "l_orderkey integer,l_partkey integer,l_suppkey integer,l_linenumber integer,"
          "l_quantity decimal,l_extendedprice decimal,l_discount decimal,l_tax decimal,l_returnflag char:1,"
          "l_linestatus char:1,l_shipdate date,l_commitdate date,l_receiptdate date,l_shipinstruct char:25,"
          "l_shipmode char:10,l_comment varchar:44", "l_orderkey, l_linenumber"),
]
LINEITEM = TPCH[-1]
# The same rows three times over, which shows whether memory follows the number of rows.
THRICE = Table("lineitem_thrice", ",".join(" ".join(column) for column in LINEITEM.columns), None)

WIDE_KINDS = ["integer", "bigint", "double", "decimal", "text", "date", "timestamp", "boolean"]
WIDE = Table("wide", "id bigint," + ",".join(f"w{n} {WIDE_KINDS[n % 8]}" for n in range(1, 200)), "id")
WIDE_ROWS = 100_000

CELLS = Table("cells", "id bigint,document text,image bytes", "id")
CELLS_ROWS = 300

SMALL = [
    Table(f"small_{n:03}", "id bigint,updated_at timestamp,customer integer,amount decimal,state text,note text,"
          "open boolean,ratio double", "id")
    for n in range(200)
]
SMALL_ROWS = 5_000

# Each set of tables is one database in each system.
SETS = {"wide": [WIDE], "cells": [CELLS], "small": SMALL}

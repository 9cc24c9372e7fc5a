"""ADBC: its drivers for PostgreSQL and SQLite, batches streamed into pyarrow's writer."""

import json
import sys

from targets import target, url

NAME = "adbc"
SYSTEMS = ('postgres', 'sqlite')
NOTE = "`fetch_record_batch`, batches into `pyarrow.parquet.ParquetWriter` zstd level 1"


def version():
    from harness import install

    return install.versions_of("adbc")


def install_it():
    from harness import install

    install.environment("adbc")


def prepare(job, workplace):
    from harness import install
    from harness.jobs import Prepared, script

    return Prepared(script(install.python_of("adbc"), "peer_adbc", job.as_json(workplace.out)))


def main(job):
    import pyarrow.parquet

    if job["system"] == "sqlite":
        from adbc_driver_sqlite import dbapi

        address = job["file"]
    else:
        from adbc_driver_postgresql import dbapi

        address = url(job)
    with dbapi.connect(address) as connection:
        for table in job["tables"]:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {table['name']}")
                batches = cursor.fetch_record_batch()
                with pyarrow.parquet.ParquetWriter(
                    target(job, table), batches.schema, compression="zstd", compression_level=1
                ) as writer:
                    for batch in batches:
                        writer.write_batch(batch)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

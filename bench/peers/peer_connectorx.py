"""connectorx: into Arrow, cut by the first integer column, written by pyarrow."""

import json
import sys

from targets import target, url

NAME = "connectorx"
SYSTEMS = ('postgres', 'mariadb', 'sqlite')
NOTE = "`read_sql` with `partition_on` and `partition_num` 2 into Arrow, `pyarrow.parquet.write_table` zstd level 1"


def version():
    from harness import install

    return install.versions_of("connectorx")


def install_it():
    from harness import install

    install.environment("connectorx")


def prepare(job, workplace):
    from harness import install
    from harness.jobs import Prepared, script

    return Prepared(script(install.python_of("connectorx"), "peer_connectorx", job.as_json(workplace.out)))


def main(job):
    import connectorx
    import pyarrow.parquet

    for table in job["tables"]:
        cut = {"partition_on": table["split"], "partition_num": job["readers"]} if table["split"] else {}
        data = connectorx.read_sql(url(job), f"SELECT * FROM {table['name']}", return_type="arrow", **cut)
        pyarrow.parquet.write_table(data, target(job, table), compression="zstd", compression_level=1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

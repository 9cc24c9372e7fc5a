"""polars: `read_database_uri` with the connectorx engine, and its own Parquet writer."""

import json
import sys

from targets import target, url

NAME = "polars"
SYSTEMS = ('postgres', 'mariadb', 'sqlite')
NOTE = "`read_database_uri` (connectorx) with `partition_on` and `partition_num` 2, `write_parquet` zstd level 1"


def version():
    from harness import install

    return install.versions_of("polars")


def install_it():
    from harness import install

    install.environment("polars")


def prepare(job, workplace):
    from harness import install
    from harness.jobs import Prepared, script

    return Prepared(script(install.python_of("polars"), "peer_polars", job.as_json(workplace.out)))


def main(job):
    import polars

    for table in job["tables"]:
        cut = {"partition_on": table["split"], "partition_num": job["readers"]} if table["split"] else {}
        data = polars.read_database_uri(f"SELECT * FROM {table['name']}", url(job), engine="connectorx", **cut)
        data.write_parquet(target(job, table), compression="zstd", compression_level=1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

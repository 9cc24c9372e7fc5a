"""dlt: `sql_database` into the filesystem destination as Parquet."""

import json
import sys

from targets import url

NAME = "dlt"
SYSTEMS = ('postgres', 'mariadb', 'sqlite')
NOTE = (
    "`sql_table`, backend `connectorx` (SQLite: `pyarrow`), `filesystem` destination, "
    "`parquet` files with dlt's own codec"
)


def version():
    from harness import install

    return install.versions_of("dlt")


def install_it():
    from harness import install

    install.environment("dlt")


def prepare(job, workplace):
    from harness import install
    from harness.jobs import Prepared, script

    command = script(install.python_of("dlt"), "peer_dlt", job.as_json(workplace.out))
    return Prepared(command, {"RUNTIME__DLTHUB_TELEMETRY": "false"})


def main(job):
    import dlt
    from dlt.sources.sql_database import sql_table

    drivers = {"postgres": "postgresql+psycopg2", "mariadb": "mysql+pymysql", "sqlite": "sqlite"}
    address = url(job, drivers[job["system"]])
    if job["system"] == "sqlite":
        # SQLAlchemy wants one slash more before an absolute path.
        address = address.replace("sqlite://", "sqlite:///", 1)
    backend = "pyarrow" if job["system"] == "sqlite" else "connectorx"
    options = {}
    if backend == "connectorx":
        options = {"backend_kwargs": {"conn": url(job), "return_type": "arrow_stream"}}
    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=job["out"] + "/../dlt",
        destination=dlt.destinations.filesystem("file://" + job["out"]),
        dataset_name="data",
    )
    resources = [
        sql_table(address, table=table["name"], backend=backend, chunk_size=50_000, **options)
        for table in job["tables"]
    ]
    print(pipeline.run(resources, loader_file_format="parquet", write_disposition="replace"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

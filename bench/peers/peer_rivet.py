"""rivet: one export for each table, cut into chunks where the table has an integer key."""

from harness import databases, install
from harness.jobs import Prepared, split_column
from harness.settings import PASSWORD, USER

NAME = "rivet"
SYSTEMS = ("postgres", "mariadb")
NOTE = (
    "`mode: chunked`, 250,000 a chunk, `parallel: 2`, `profile: fast`, zstd level 1; several tables with "
    "`--parallel-exports`; what is new with `mode: incremental`"
)


def version():
    return install.versions_of("rivet")


def install_it():
    install.environment("rivet")


def prepare(job, workplace):
    (workplace.folder / "rivet.yaml").write_text(configuration(job, workplace.out, full_export))
    return command(job, workplace)


def begin(job, workplace, cursor):
    """The first run of exports that follow a cursor; the state lies beside the file."""
    (workplace.folder / "rivet.yaml").write_text(configuration(job, workplace.out, incremental_export(cursor)))
    return command(job, workplace)


def again(job, workplace, cursor):
    return command(job, workplace)


def command(job, workplace):
    at_once = ["--parallel-exports"] if len(job.tables) > 1 else []
    program = install.program_of("rivet", "rivet")
    return Prepared([program, "run", "-c", "rivet.yaml", *at_once], folder=workplace.folder)


def configuration(job, out, export):
    """The YAML for all tables of a job; `export` writes what is special to a table."""
    server = job.server()
    kind, scheme = {"postgres": ("postgres", "postgresql"), "mariadb": ("mysql", "mysql")}[job.system]
    lines = [
        "source:",
        f"  type: {kind}",
        f"  url: {scheme}://{USER}:{PASSWORD}@{server['host']}:{server['port']}/{job.database}",
        "  tuning: {profile: fast}",
        "exports:",
    ]
    for table in job.tables:
        decimals = {name: "decimal(15,2)" for name, kind in table.columns if kind == "decimal"}
        lines += [
            f"  - name: {table.name}",
            f"    table: {job.schema + '.' if job.system == 'postgres' else ''}{table.name}",
            *(f"    {line}" for line in export(job, table)),
            "    format: parquet",
            "    compression: zstd",
            "    compression_level: 1",
            "    destination:",
            "      type: local",
            f"      path: {out}/{table.name}/",
        ]
        if decimals:
            lines += ["    columns:"] + [f"      {name}: {kind}" for name, kind in decimals.items()]
    return "\n".join(lines) + "\n"


def full_export(job, table):
    column = split_column(table)
    rows = databases.QUERY[job.system](job.database, f"SELECT count(*) FROM {table.name}")[0][0]
    if column is None or int(rows) < 250_000:
        return ["mode: full"]
    return ["mode: chunked", f"chunk_column: {column}", "chunk_size: 250000", f"parallel: {job.readers}"]


def incremental_export(cursor):
    return lambda job, table: ["mode: incremental", f"cursor_column: {cursor}", "skip_empty: true"]

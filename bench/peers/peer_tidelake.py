"""tidelake itself: `config create` once, then the `sync` that is measured."""

import json
import os
import subprocess

from harness import install
from harness.jobs import Job, Prepared
from harness.settings import TIDELAKE

NAME = "tidelake"
SYSTEMS = ("postgres", "mariadb", "sqlite")
NOTE = "`sync`, zstd level 1 (its default), rows verified, files and folders flushed to the disk (its only way)"


def version():
    answer = subprocess.run([binary(), "--version"], capture_output=True, text=True)
    return answer.stdout.strip()


def install_it():
    if not os.environ.get("BENCH_TIDELAKE"):
        install.tidelake()


def binary():
    """BENCH_TIDELAKE names another build, to compare two."""
    return os.environ.get("BENCH_TIDELAKE") or str(TIDELAKE)


def prepare(job, workplace):
    create(job, workplace, ["--include", ",".join(table.name for table in job.tables)])
    return sync(workplace)


def begin(job, workplace, cursor, state=None):
    """The first run of a sync that follows a cursor."""
    followed = [f"--incremental-table={job.schema}.{table.name}:{cursor}:timestamp" for table in job.tables]
    create(job, workplace, ["--include", ",".join(table.name for table in job.tables), *followed], state)
    return sync(workplace)


def again(job, workplace, cursor):
    return sync(workplace)


def create(job, workplace, options, state=None):
    """Stores the sync; this is not timed. `state` is a database of PostgreSQL for its state."""
    credentials = workplace.folder / "credentials.json"
    known = {"source": credential(job)}
    if state:
        known["state"] = credential(Job("postgres", state, []))
    credentials.write_text(json.dumps(known))
    credentials.chmod(0o600)
    workplace.state = ["--lxdb-auth-id", "state"] if state else []
    command = [
        binary(), "-a", str(credentials), *workplace.state, "config", "create", "--source-db-auth-id", "source",
        "--source-schema-name", job.schema, "--output-dir", str(workplace.out), "--sync-id", "bench",
        "--n-jobs", str(job.tables_at_once),
        # Several tables share one pool of readers, as many as there are cores.
        *(["--parallel", str(job.readers)] if job.tables_at_once == 1 else []), *options,
    ]
    workplace.setup = " ".join(command)
    done = subprocess.run(command, env=environment(workplace), capture_output=True, text=True)
    with open(workplace.log, "a") as log:
        log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
    if done.returncode:
        raise NotRun(done.stderr.strip().splitlines()[0] if done.stderr.strip() else "config create failed")


class NotRun(Exception):
    """Why a contestant cannot take part."""


def sync(workplace):
    command = [binary(), "-a", workplace.folder / "credentials.json", *workplace.state, "--no-progress"]
    return Prepared([*command, "sync", "--sync-id", "bench"], environment(workplace))


def environment(workplace):
    # A state store of its own, so that each round begins with nothing.
    return {**os.environ, "XDG_DATA_HOME": str(workplace.folder / "state")}


def credential(job):
    server = job.server()
    if job.system == "sqlite":
        return {"ds_type": "sqlite", "auth_mode": "filesystem", "info": {"filepath": server["file"]}}
    return {
        "ds_type": job.system,
        "auth_mode": "classic",
        "info": {
            "server": server["host"], "port": server["port"], "database": job.database,
            "username": server["user"], "password": server["password"], "sslmode": "disable",
        },
    }

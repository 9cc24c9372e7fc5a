"""A job: which tables of which database go where. Peers get it as one JSON argument."""

import json
import os
import re
import shutil
from pathlib import Path

from harness import databases, servers
from harness.settings import BENCH, FOLDER, PASSWORD, USER

READERS = 2


class Job:
    def __init__(self, system, database, tables, readers=READERS, tables_at_once=1, schema=None):
        # What a table's name is preceded by, in the words of the system.
        self.schema = schema or {"postgres": "public", "mariadb": database, "sqlite": "main"}[system]
        self.system = system
        self.database = database
        self.tables = tables
        self.readers = readers
        self.tables_at_once = tables_at_once

    def server(self):
        """Where the database is, for those that connect to one."""
        if self.system == "sqlite":
            return {"file": str(databases.sqlite_file(self.database))}
        return {"host": "127.0.0.1", "port": servers.running(self.system)["port"], "user": USER, "password": PASSWORD}

    def as_json(self, out):
        """What a peer's own program needs to know."""
        return json.dumps(
            {
                "system": self.system, "database": self.database, "readers": self.readers, "out": str(out),
                "tables": [{"name": table.name, "split": split_column(table)} for table in self.tables],
                **self.server(),
            }
        )


def split_column(table):
    """The integer column by which a peer that needs one may cut the table."""
    first, kind = table.columns[0]
    return first if kind in ("integer", "bigint") else None


class Workplace:
    """A folder for one contestant in one part, emptied before each round."""

    def __init__(self, part, who):
        self.folder = FOLDER / "work" / part / who
        self.log = FOLDER / "logs" / f"{part}-{who}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        self.first_bytes = None
        # The commands that came before those that are timed, for the reader of the results.
        self.setup = ""
        self.empty()

    @property
    def out(self):
        return self.folder / "out"

    def empty(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.out.mkdir(parents=True)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_words(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


class Prepared:
    """A command that is ready to be timed."""

    def __init__(self, command, environment=None, folder="/"):
        self.command = [str(word) for word in command]
        self.environment = {**os.environ, **(environment or {})}
        self.folder = folder


def script(python, name, argument):
    return [python, BENCH / "peers" / f"{name}.py", argument]


def readable(text):
    """A command without this machine's folders, cut where it becomes long."""
    for path, word in ((FOLDER, "$BENCH_DIR"), (BENCH, "bench"), (BENCH.parent, "."), (Path.home(), "~")):
        text = text.replace(str(path), word)
    text = re.sub(r"(environments/\w+)-[0-9a-f]{12}", r"\1", text)
    lines = text.splitlines()
    if len(lines) > 6:
        lines = [*lines[:3], f"… and {len(lines) - 3} more such lines"]
    return "\n".join(line if len(line) <= 500 else line[:500] + " …" for line in lines)

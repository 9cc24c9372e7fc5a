"""The bench's own servers: PostgreSQL and MariaDB from Debian, on loopback ports.

Their data stays in the bench's folder when they stop, so that loading is paid once.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from harness import install
from harness.settings import FOLDER, PASSWORD, USER, fail, memory_share, say

# Read benches only: durability of the *servers* is off, and what may be cached is.
# A quarter of the memory keeps lineitem at scale 1 inside the server's own cache.
POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": f"{memory_share(4)}MB",
    "max_wal_size": "8GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "timezone": "UTC",
    "lc_messages": "C",
}
MARIADB_SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": f"{memory_share(4)}M",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-log-file-size": "1G",
    "skip-log-bin": None,
    "local-infile": "1",
    "max-allowed-packet": "256M",
    "character-set-server": "utf8mb4",
    "collation-server": "utf8mb4_bin",
    "default-time-zone": "+00:00",
}


NAMES = ("postgres", "mariadb")


def state_file(name):
    return FOLDER / "servers" / f"{name}.json"


def up():
    """Starts what does not run, and answers where each server is."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    return {"postgres": start("postgres", start_postgres), "mariadb": start("mariadb", start_mariadb)}


def start(name, starter):
    known = running(name)
    if known:
        return known
    known = starter()
    state_file(name).parent.mkdir(parents=True, exist_ok=True)
    state_file(name).write_text(json.dumps(known))
    say(f"{name} listens on 127.0.0.1:{known['port']}")
    return known


def running(name):
    try:
        known = json.loads(state_file(name).read_text())
        command = Path(f"/proc/{known['pid']}/cmdline").read_bytes().decode()
    except (OSError, ValueError):
        return None
    return known if str(known["data"]) in command else None


def down():
    for name in NAMES:
        known = running(name)
        if known:
            subprocess.run(["kill", "-INT" if name == "postgres" else "-TERM", str(known["pid"])])
            wait_until(120, lambda: running(name) is None, f"{name} does not stop")
            shutil.rmtree(known["socket"], ignore_errors=True)
            say(f"{name} stopped; its data stays in {known['data']}")


def free_port():
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def socket_folder(owner):
    """A socket's path may have 107 bytes only, which a checkout's folder may exceed."""
    folder = tempfile.mkdtemp(prefix="tidelake-bench-")
    if os.getuid() == 0:
        shutil.chown(folder, owner)
    os.chmod(folder, 0o755)
    return folder


def start_postgres():
    install.packages("postgresql")
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    data, sockets, port = FOLDER / "postgres", socket_folder("postgres"), free_port()
    if not (data / "PG_VERSION").exists():
        say("making the PostgreSQL cluster")
        data.mkdir(parents=True, exist_ok=True)
        secret = Path(sockets) / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            shutil.chown(data, "postgres")
            shutil.chown(secret, "postgres")
        options = ["--no-sync", f"--username={USER}", f"--pwfile={secret}", "--auth=scram-sha-256"]
        run_as("postgres", [programs / "initdb", "-D", data, *options, "--encoding=UTF8", "--locale=C.UTF-8"])
        secret.unlink()
    settings = " ".join(f"-c {key}={value}" for key, value in POSTGRES_SETTINGS.items())
    options = f"-p {port} -c unix_socket_directories={sockets} {settings}"
    log = Path(sockets) / "log"
    run_as("postgres", [programs / "pg_ctl", "start", "-w", "-s", "-D", data, "-l", log, "-o", options])
    pid = int((data / "postmaster.pid").read_text().splitlines()[0])
    return {"pid": pid, "port": port, "data": str(data), "socket": sockets, "programs": str(programs)}


def start_mariadb():
    install.packages("mariadb-server", "mariadb-client")
    data, sockets, port = FOLDER / "mariadb", socket_folder("mysql"), free_port()
    owner = ["--user=mysql"] if os.getuid() == 0 else []
    fresh = not (data / "mysql").exists()
    if fresh:
        say("making the MariaDB data folder")
        data.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(data, "mysql")
        run_as(None, ["mariadb-install-db", "--no-defaults", *owner, f"--datadir={data}",
                      "--auth-root-authentication-method=normal"])
    settings = [f"--{key}" if value is None else f"--{key}={value}" for key, value in MARIADB_SETTINGS.items()]
    path = f"{sockets}/socket"
    with open(f"{sockets}/log", "ab") as log:
        process = subprocess.Popen(
            ["mariadbd", "--no-defaults", *owner, f"--datadir={data}", f"--port={port}", f"--socket={path}", *settings],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )
    wait_until(60, lambda: answers(path), f"MariaDB does not answer; see {sockets}/log")
    if fresh:
        run_as(None, ["mariadb", "--no-defaults", f"--socket={path}", "-uroot", "-e",
                      f"CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';"
                      f"GRANT ALL ON *.* TO '{USER}'@'127.0.0.1'"])
    return {"pid": process.pid, "port": port, "data": str(data), "socket": sockets}


def answers(path):
    command = ["mariadb-admin", "--no-defaults", f"--socket={path}", "-uroot", "ping"]
    return subprocess.run(command, capture_output=True).returncode == 0


def run_as(user, command):
    """Runs it, as another user where we are root; the output goes to a log."""
    if user and os.getuid() == 0:
        command = ["runuser", "-u", user, "--", *command]
    with open(install.log("servers"), "ab") as log:
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd="/", stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    if done.returncode:
        fail(f"{command[0]} failed; see {install.log('servers')}")


def wait_until(seconds, condition, complaint):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            fail(complaint)
        time.sleep(0.1)

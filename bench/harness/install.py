"""Installs what the bench needs: Debian packages, Python environments, one cargo tool."""

import hashlib
import os
import shutil
import subprocess
import sys

from harness.settings import BENCH, FOLDER, ROOT, TIDELAKE, fail, say

ODBC2PARQUET = "11.0.0"


def packages(*names):
    """Installs those Debian packages that are missing."""
    missing = [name for name in names if not installed(name)]
    if not missing:
        return
    as_root = [] if os.getuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None:
        fail("please install the equivalent of these Debian packages: " + " ".join(missing))
    say("installing " + " ".join(missing))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    with open(log("packages"), "ab") as target:
        subprocess.run([*as_root, "apt-get", "update", "-qq"], env=environment, stdout=target, stderr=target)
        done = subprocess.run(
            [*as_root, "apt-get", "install", *options, *missing], env=environment, stdout=target, stderr=target
        )
    if done.returncode:
        fail(f"could not install {' '.join(missing)}; see {log('packages')}")


def installed(name):
    state = subprocess.run(["dpkg-query", "-W", "-f=${Status}", name], capture_output=True, text=True)
    return state.stdout.startswith("install ok")


def package_version(name):
    answer = subprocess.run(["dpkg-query", "-W", "-f=${Version}", name], capture_output=True, text=True)
    return answer.stdout.strip() or "?"


def environment(name):
    """The folder of the Python environment that bench/requirements/NAME.txt asks for."""
    wanted = BENCH / "requirements" / f"{name}.txt"
    mark = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = FOLDER / "environments" / f"{name}-{mark}"
    if (folder / "ready").exists():
        return folder
    say(f"making the Python environment {name}")
    packages("python3-venv")
    shutil.rmtree(folder, ignore_errors=True)
    with open(log(f"environment-{name}"), "wb") as target:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(folder / "bin" / "python"), "-m", "pip", "install", "--no-input", "-r", str(wanted)],
        ):
            if subprocess.run(command, stdout=target, stderr=target).returncode:
                fail(f"could not make the Python environment {name}; see {log(f'environment-{name}')}")
    (folder / "ready").touch()
    return folder


def python_of(name):
    return str(environment(name) / "bin" / "python")


def program_of(name, program):
    return str(environment(name) / "bin" / program)


def versions_of(name):
    """The pinned versions of an environment, as its list has them."""
    lines = (BENCH / "requirements" / f"{name}.txt").read_text().splitlines()
    return ", ".join(line for line in lines if line and not line.startswith("#"))


def odbc2parquet():
    """The path of odbc2parquet, built into the bench's own folder."""
    packages("unixodbc", "unixodbc-dev", "odbc-postgresql", "odbc-mariadb", "libsqliteodbc")
    root = FOLDER / "cargo" / ODBC2PARQUET
    program = root / "bin" / "odbc2parquet"
    if not program.exists():
        say("building odbc2parquet, which takes some minutes")
        with open(log("odbc2parquet"), "wb") as target:
            done = subprocess.run(
                ["cargo", "install", "--locked", "odbc2parquet", "--version", ODBC2PARQUET, "--root", str(root)],
                env={**os.environ, "CARGO_TARGET_DIR": str(FOLDER / "cargo" / "target")},
                cwd=FOLDER,
                stdout=target,
                stderr=target,
            )
        shutil.rmtree(FOLDER / "cargo" / "target", ignore_errors=True)
        if done.returncode:
            fail(f"could not build odbc2parquet; see {log('odbc2parquet')}")
    return str(program)


def tidelake():
    """The release build of this checkout."""
    done = subprocess.run(["cargo", "build", "--release", "-p", "tidelake"], cwd=ROOT)
    if done.returncode:
        fail("tidelake does not compile")
    return str(TIDELAKE)


def log(name):
    folder = FOLDER / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.log"

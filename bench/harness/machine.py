"""What the figures were measured on and with."""

import os
import platform
import subprocess
from pathlib import Path

from harness import install, servers
from harness.settings import ROOT, ROUNDS, SCALE


def about(module):
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)),
        "system": f"{distribution()}, Linux {platform.release().split('-')[0]}",
        "load": os.getloadavg()[0],
        "commit": commit(),
        "rounds": ROUNDS,
        "scale": SCALE,
        "servers": {
            "postgresql-15": install.package_version("postgresql-15"),
            "mariadb-server": install.package_version("mariadb-server"),
        },
        "settings": {"PostgreSQL": servers.POSTGRES_SETTINGS, "MariaDB": servers.MARIADB_SETTINGS},
        "versions": {peer.NAME: peer.version() for peer in module.CONTESTANTS},
    }


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def distribution():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def commit():
    """The checkout's commit, and whether something else was in the tree."""
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"],
        cwd=ROOT, capture_output=True, text=True,
    )
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")

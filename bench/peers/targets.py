"""What the peers' own programs share: where a table goes, and addresses as URLs."""

from pathlib import Path

SCHEMES = {"postgres": "postgresql", "mariadb": "mysql", "sqlite": "sqlite"}


def target(job, table):
    """The file for a table, in a folder with its name."""
    folder = Path(job["out"]) / table["name"]
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "data.parquet"


def url(job, scheme=None):
    scheme = scheme or SCHEMES[job["system"]]
    if job["system"] == "sqlite":
        return f"{scheme}://{job['file']}"
    return f"{scheme}://{job['user']}:{job['password']}@{job['host']}:{job['port']}/{job['database']}"

"""Reads a lake as anybody else would: by latest.json, its manifests and their files.

Nothing of tidelake is used here. A request is a line of JSON on stdin, the answer
a line of JSON on stdout:

    {"ask": "rows", "lake": {"folder": "/lake"}, "table": "main/orders"}
    {"ask": "rows", "lake": {"endpoint": "http://…", "bucket": "b", "prefix": "p"},
     "table": "raw/main/orders", "engine": "duckdb"}
    … "lake": {"endpoint": …, "bucket": …, "prefix": …, "token": …} …
    … "lake": {"endpoint": …, "container": …, "prefix": …, "sas": …} …
    {"ask": "union", "lake": …, "table": …}
    {"ask": "folder", "lake": …, "table": …}
    {"ask": "objects", "lake": …, "table": …}
    {"ask": "document", "lake": …, "table": …, "key": "_tidelake/latest.json"}

`rows` gives every row that counts, each value as text, NULL as null, sorted; `head`
is null where nothing was committed. Each file is checked against its manifest: size,
checksum, number of rows, schema. `union` gives the same of a table whose files have
different schemas, as DuckDB reads them together by the names of their columns. `folder` lists what a look into the folder shows,
`objects` everything in it with its checksum and the time of its last change.
"""

import datetime
import decimal
import hashlib
import io
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as xml

import duckdb
import pyarrow.parquet as parquet

UTC = datetime.timezone.utc


class Folder:
    def __init__(self, folder):
        self.folder = folder

    def get(self, key):
        try:
            with open(os.path.join(self.folder, key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def keys(self, prefix):
        """Every key below, with what changes when its content does."""
        base = os.path.join(self.folder, prefix)
        for folder, _, names in os.walk(base):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    found = os.stat(path)
                except FileNotFoundError:
                    continue
                version = f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
                yield os.path.relpath(path, base).replace(os.sep, "/"), version

    def uploads(self, _):
        return []

    def changed(self, key):
        return str(os.stat(os.path.join(self.folder, key)).st_mtime_ns)


class Bucket:
    """A bucket over plain HTTP; the emulator wants to see who asks, and checks nothing."""

    ASKS = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=tidelake-access/20260101/us-east-1/s3/"
        "aws4_request, SignedHeaders=host, Signature=none"
    }

    def __init__(self, endpoint, bucket, prefix="", token=None):
        self.base = f"{endpoint}/{bucket}"
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        if token:
            self.ASKS = {"Authorization": f"Bearer {token}"}

    def fetch(self, url, attempts=10):
        try:
            request = urllib.request.Request(url, headers=self.ASKS)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            # The emulator stumbles over objects that go while it lists the bucket.
            if error.code == 500 and attempts > 1:
                time.sleep(0.05)
                return self.fetch(url, attempts - 1)
            raise

    def get(self, key):
        return self.fetch(f"{self.base}/{urllib.parse.quote(self.prefix + key)}")

    def pages(self, settings, more):
        while True:
            body = self.fetch(f"{self.base}?{urllib.parse.urlencode(settings)}")
            page = xml.fromstring(body)
            for element in page.iter():
                element.tag = element.tag.split("}")[-1]
            yield page
            if page.findtext("IsTruncated") != "true":
                return
            settings.update(more(page))

    def keys(self, prefix):
        start = f"{self.prefix}{prefix}/"
        settings = {"list-type": "2", "prefix": start}
        more = lambda page: {"continuation-token": page.findtext("NextContinuationToken")}
        for page in self.pages(settings, more):
            for found in page.iter("Contents"):
                yield found.findtext("Key")[len(start):], found.findtext("ETag")

    def changed(self, key):
        request = urllib.request.Request(
            f"{self.base}/{urllib.parse.quote(self.prefix + key)}",
            headers=self.ASKS,
            method="HEAD",
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers["Last-Modified"]

    def uploads(self, prefix):
        start = f"{self.prefix}{prefix}/"
        more = lambda page: {
            "key-marker": page.findtext("NextKeyMarker"),
            "upload-id-marker": page.findtext("NextUploadIdMarker"),
        }
        # The emulator lists all uploads of the bucket whatever the prefix.
        for page in self.pages({"uploads": "", "prefix": start}, more):
            for found in page.iter("Upload"):
                if found.findtext("Key").startswith(start):
                    yield [found.findtext("Key")[len(start):], found.findtext("UploadId")]


class Container(Bucket):
    """A container of Azure over plain HTTP, by a shared access signature."""

    ASKS = {"x-ms-version": "2020-12-06"}

    def __init__(self, endpoint, container, sas, prefix=""):
        super().__init__(endpoint, container, prefix)
        self.sas = sas

    def fetch(self, url, attempts=10):
        return super().fetch(f"{url}{'&' if '?' in url else '?'}{self.sas}", attempts)

    def blobs(self, prefix, **more):
        settings = {"restype": "container", "comp": "list", "prefix": prefix, **more}
        while True:
            page = xml.fromstring(self.fetch(f"{self.base}?{urllib.parse.urlencode(settings)}"))
            yield from page.iter("Blob")
            settings["marker"] = page.findtext("NextMarker")
            if not settings["marker"]:
                return

    def keys(self, prefix):
        start = f"{self.prefix}{prefix}/"
        for found in self.blobs(start):
            yield found.findtext("Name")[len(start):], found.findtext("Properties/Etag")

    def uploads(self, prefix):
        """Blocks that are in no blob: they cannot be given up, only forgotten."""
        return []


def store_of(lake):
    if "folder" in lake:
        return Folder(lake["folder"])
    return Container(**lake) if "container" in lake else Bucket(**lake)


class Table:
    """A table's folder at one moment. What did not change is not read again."""

    known = {}

    def __init__(self, store, lake, name, engine="pyarrow"):
        self.store, self.name, self.engine = store, name, engine
        self.place = json.dumps([lake, name])
        latest = store.get(f"{name}/_tidelake/latest.json")
        self.latest = None if latest is None else json.loads(latest)
        # After latest.json: what that lists is there.
        self.keys = dict(store.keys(name))

    def once(self, key, what, read):
        """What a key's content comes to, for as long as it does not change."""
        if key not in self.keys:
            raise AssertionError(f"{self.name}/{key} is listed and does not exist")
        known = (self.place, key, self.keys[key], what)
        if known not in self.known:
            self.known[known] = read(self.store.get(f"{self.name}/{key}"))
        return self.known[known]

    def document(self, key):
        return self.once(key, "document", json.loads)

    def manifest(self, listed):
        manifest = self.document(listed["key"])
        if manifest["run_id"] != listed["run_id"]:
            raise AssertionError(f"{listed['key']} is of run {manifest['run_id']}")
        return manifest

    def live_files(self):
        if self.latest is None:
            return []
        files = []
        if self.latest["checkpoint"]:
            files += self.document(self.latest["checkpoint"])["files"]
        for listed in self.latest["manifests"]:
            manifest = self.manifest(listed)
            gone = {taken["key"] for taken in manifest["taken_out"]}
            unknown = gone - {file["key"] for file in files}
            if unknown:
                raise AssertionError(f"{listed['key']} takes out {unknown}, which was not there")
            files = [file for file in files if file["key"] not in gone] + manifest["files"]
        keys = [file["key"] for file in files]
        if len(set(keys)) != len(keys):
            raise AssertionError(f"a file counts twice: {sorted(keys)}")
        return files

    def content(self, file):
        """Names, types and rows of a data file, if it is what its manifest says."""
        read = by_duckdb if self.engine == "duckdb" else by_pyarrow
        summed = lambda body: (len(body), hashlib.sha256(body).hexdigest(), *read(body))
        size, checksum, names, kinds, rows = self.once(file["key"], self.engine, summed)
        told = (file["bytes"], file["sha256"], file["rows"])
        if told != (size, checksum, len(rows)):
            raise AssertionError(f"{file} is {size} bytes, {checksum}, {len(rows)} rows")
        return names, kinds, rows


def text(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return "0x" + value.hex()
    if isinstance(value, (list, tuple)):
        return json.dumps([text(part) for part in value])
    if isinstance(value, dict):
        return json.dumps({name: text(part) for name, part in value.items()})
    return repr(value)


def texts(rows):
    return [[text(value) for value in row] for row in rows]


def by_pyarrow(body):
    found = parquet.ParquetFile(io.BytesIO(body)).read()
    columns = [column.to_pylist() for column in found.columns]
    return found.schema.names, [str(kind) for kind in found.schema.types], texts(zip(*columns))


def by_duckdb(body):
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(body)
        file.flush()
        return by_duckdb_together([file.name])


def by_duckdb_together(paths):
    with duckdb.connect() as database:
        relation = database.read_parquet(paths, union_by_name=True)
        names, kinds = relation.columns, [str(kind) for kind in relation.types]
        zoned = [kind == "TIMESTAMP WITH TIME ZONE" for kind in kinds]
        # Zoned times would ask for an extension and another Python package.
        wanted = [
            f'make_timestamp(epoch_us("{name}"))' if zone else f'"{name}"'
            for name, zone in zip(names, zoned)
        ]
        rows = relation.project(", ".join(wanted)).fetchall()
    in_utc = lambda value, zone: value.replace(tzinfo=UTC) if zone and value else value
    return names, kinds, texts(map(in_utc, row, zoned) for row in rows)


NOTHING = {"columns": [], "types": [], "rows": [], "manifests": [], "files": []}


def described(table, files, names, kinds, found):
    found.sort(key=lambda row: [(value is not None, value or "") for value in row])
    listed, head = table.latest["manifests"], table.latest["head"]
    return {
        "head": next(table.manifest(run) for run in listed if run["run_id"] == head),
        "columns": names,
        "types": kinds,
        "rows": found,
        "manifests": [run["run_id"] for run in listed],
        "files": [file["key"] for file in files],
    }


def union(table):
    if table.latest is None:
        return NOTHING
    files = table.live_files()
    for file in files:
        table.content(file)
    if not files:
        return described(table, [], [], [], [])
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, file in enumerate(files):
            paths.append(os.path.join(folder, f"{number}.parquet"))
            with open(paths[-1], "wb") as copy:
                copy.write(table.store.get(f"{table.name}/{file['key']}"))
        return described(table, files, *by_duckdb_together(paths))


def rows(table):
    if table.latest is None:
        return NOTHING
    files = table.live_files()
    found, schema = [], None
    for file in files:
        names, kinds, part = table.content(file)
        if schema not in (None, (names, kinds)):
            raise AssertionError(f"{file['key']} has another schema: {names} {kinds}")
        schema = (names, kinds)
        found += part
    return described(table, files, *(schema or ([], [])), found)


def folder(table):
    keys = sorted(table.keys)
    data = [key for key in keys if key.endswith(".parquet")]
    documents = [key for key in keys if key.startswith("_tidelake/") and key.endswith(".json")]
    for key in data:
        table.once(key, "whole", lambda body: parquet.ParquetFile(io.BytesIO(body)).close())
    named = set()
    for key in documents:
        if key.startswith("_tidelake/runs/"):
            named.update(file["key"] for file in table.document(key)["files"])
    live = [file["key"] for file in table.live_files()]
    return {
        "live": sorted(live),
        "unnamed": [key for key in data if key not in named],
        "dead": [key for key in data if key in named and key not in live],
        "others": [key for key in keys if key not in data and key not in documents],
        "uploads": sorted(table.store.uploads(table.name)),
    }


def objects(store, folder):
    keys = sorted(key for key, _ in store.keys(folder))
    checksum = lambda key: hashlib.sha256(store.get(f"{folder}/{key}")).hexdigest()
    return [[key, checksum(key), store.changed(f"{folder}/{key}")] for key in keys]


def answer(request):
    lake = request["lake"]
    if request["ask"] == "objects":
        return objects(store_of(lake), request["table"])
    if request["ask"] == "document":
        key = "/".join(part for part in (request["table"], request["key"]) if part)
        return json.loads(store_of(lake).get(key))
    table = Table(store_of(lake), lake, request["table"], request.get("engine", "pyarrow"))
    if request["ask"] == "rows":
        return rows(table)
    if request["ask"] == "union":
        return union(table)
    if request["ask"] == "folder":
        return folder(table)
    raise AssertionError(f"nobody knows how to {request['ask']!r}")


for line in sys.stdin:
    try:
        said = answer(json.loads(line))
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), flush=True)

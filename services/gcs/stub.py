"""stub.py PORT BUCKET KEY: Google Cloud Storage's XML interface, in memory.

Written from Google's public description of that interface: objects with generations,
conditions (x-goog-if-generation-match, If-Match, If-None-Match), ranges, listing by
version 2, multipart uploads and their listing. A request must show a token that the
private key in KEY signed, or the reader's. What is not here is answered with 501.
"""

import base64
import hashlib
import http.server
import itertools
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from datetime import datetime, timezone
from xml.etree import ElementTree
from xml.sax.saxutils import escape

READER = "tidelake-reader"
SMALLEST_PART = 5 << 20
PAGE = 1000


class Refused(Exception):
    def __init__(self, status, code, message=""):
        self.status, self.code, self.message = status, code, message


class Object:
    def __init__(self, content, generation, etag=None):
        self.content, self.generation = content, generation
        self.etag = etag or hashlib.md5(content).hexdigest()
        self.changed = time.time()


class Upload:
    def __init__(self, key):
        self.key, self.parts, self.begun = key, {}, datetime.now(timezone.utc)


class Store:
    """All buckets; one request at a time looks at them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.buckets, self.uploads = {}, {}
        self.numbers = itertools.count(int(time.time() * 1e6))

    def bucket(self, name):
        if name not in self.buckets:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist.")
        return self.buckets[name]

    def upload(self, bucket, key, number):
        found = self.uploads.get(number)
        if found is None or found.key != (bucket, key):
            raise Refused(404, "NoSuchUpload", "The requested upload was not found.")
        return found


class Tokens:
    """Checks tokens that a service account signs itself."""

    def __init__(self, key):
        told = subprocess.run(
            ["openssl", "rsa", "-in", key, "-noout", "-modulus"], capture_output=True, check=True
        )
        self.modulus = int(told.stdout.decode().strip().split("=")[1], 16)

    def check(self, header):
        kind, _, token = (header or "").partition(" ")
        if kind != "Bearer" or not token:
            raise Refused(401, "AuthenticationRequired", "Authentication required.")
        if token == READER:
            return
        try:
            head, claims, signature = token.split(".")
            said = json.loads(decoded(claims))
            number = pow(int.from_bytes(decoded(signature), "big"), 65537, self.modulus)
        except ValueError:
            raise Refused(401, "AuthenticationRequired", "Invalid credentials.") from None
        digest = hashlib.sha256(f"{head}.{claims}".encode()).hexdigest()
        is_signed = f"{number:x}".endswith("3031300d060960864801650304020105000420" + digest)
        if not is_signed or said["exp"] < time.time():
            raise Refused(401, "AuthenticationRequired", "Invalid credentials.")


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def document(name, *content):
    return f"<?xml version='1.0' encoding='UTF-8'?><{name}>{''.join(content)}</{name}>".encode()


def field(name, value):
    return f"<{name}>{escape(str(value))}</{name}>"


def check_conditions(headers, found, reads):
    generation = headers.get("x-goog-if-generation-match")
    has = found.generation if found else 0
    failed = Refused(412, "PreconditionFailed", "At least one of the pre-conditions failed.")
    if generation is not None and int(generation) != has:
        raise failed
    tags = lambda text: [tag.strip().strip('"') for tag in text.split(",")]
    wanted, unwanted = headers.get("If-Match"), headers.get("If-None-Match")
    if wanted is not None and (found is None or (wanted != "*" and found.etag not in tags(wanted))):
        raise failed
    if unwanted is not None and found and (unwanted == "*" or found.etag in tags(unwanted)):
        raise Refused(304, "NotModified") if reads else failed


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store, tokens = Store(), None

    def log_message(self, form, *values):
        sys.stderr.write(f"{self.command} {self.path} {form % values}\n")

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        try:
            self.tokens.check(self.headers.get("Authorization"))
            with self.store.lock:
                status, headers, body = self.act()
        except Refused as refused:
            body = document("Error", field("Code", refused.code), field("Message", refused.message))
            status, headers = refused.status, {"Content-Type": "application/xml; charset=UTF-8"}
        except Exception as error:
            body = document("Error", field("Code", "InternalError"), field("Message", repr(error)))
            status, headers = 500, {}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", 0 if status in (204, 304) else len(body))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def act(self):
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, key = parts.path.lstrip("/").partition("/")
        bucket, key = urllib.parse.unquote(bucket), urllib.parse.unquote(key)
        if "x-goog-copy-source" in self.headers:
            raise Refused(501, "NotImplemented", "This stub does not copy.")
        name = f"{'object' if key else 'bucket'}_{self.command.lower()}"
        for kind in ("uploads", "uploadId"):
            if kind in query:
                name += f"_{kind.lower()}"
        act = getattr(self, name, None)
        if act is None or not bucket:
            raise Refused(501, "NotImplemented", f"This stub knows no {name}.")
        return act(bucket, key, query) if key else act(bucket, query)

    def told(self, found):
        return {
            "ETag": f'"{found.etag}"',
            "x-goog-generation": str(found.generation),
            "x-goog-metageneration": "1",
            "x-goog-stored-content-length": str(len(found.content)),
            "Last-Modified": self.date_time_string(int(found.changed)),
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }

    def bucket_put(self, bucket, query):
        if bucket in self.store.buckets:
            raise Refused(409, "BucketAlreadyOwnedByYou", "It exists.")
        self.store.buckets[bucket] = {}
        return 200, {}, b""

    def bucket_get(self, bucket, query):
        objects = self.store.bucket(bucket)
        if query.get("list-type") != "2":
            raise Refused(501, "NotImplemented", "This stub lists by version 2 alone.")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        limit = min(int(query.get("max-keys", PAGE)), PAGE)
        entries, folders, last, more = [], [], "", False
        for key in sorted(key for key in objects if key.startswith(prefix) and key > after):
            rest = key[len(prefix):]
            folder = None
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
            if folder in folders:
                last = key
                continue
            if len(entries) + len(folders) == limit:
                more = True
                break
            last = key
            if folder is not None:
                folders.append(folder)
                continue
            found = objects[key]
            changed = datetime.fromtimestamp(found.changed, timezone.utc)
            entries.append(
                "<Contents>"
                + field("Key", key)
                + field("Generation", found.generation)
                + field("MetaGeneration", 1)
                + field("LastModified", changed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
                + field("ETag", f'"{found.etag}"')
                + field("Size", len(found.content))
                + "</Contents>"
            )
        body = document(
            "ListBucketResult",
            field("Name", bucket),
            field("Prefix", prefix),
            field("KeyCount", len(entries) + len(folders)),
            field("IsTruncated", str(more).lower()),
            field("NextContinuationToken", last) if more else "",
            *entries,
            *(f"<CommonPrefixes>{field('Prefix', folder)}</CommonPrefixes>" for folder in folders),
        )
        return 200, {"Content-Type": "application/xml"}, body

    def bucket_get_uploads(self, bucket, query):
        self.store.bucket(bucket)
        prefix = query.get("prefix", "")
        marker = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        limit = min(int(query.get("max-uploads", PAGE)), PAGE)
        found = sorted(
            (upload.key[1], number, upload.begun)
            for number, upload in self.store.uploads.items()
            if upload.key[0] == bucket and upload.key[1].startswith(prefix)
        )
        # Without the second marker, all uploads of the key are behind it.
        found = [one for one in found if (one[:2] > marker if marker[1] else one[0] > marker[0])]
        page, more = found[:limit], len(found) > limit
        body = document(
            "ListMultipartUploadsResult",
            field("Bucket", bucket),
            field("Prefix", prefix),
            field("NextKeyMarker", page[-1][0]) + field("NextUploadIdMarker", page[-1][1])
            if more
            else "",
            field("MaxUploads", limit),
            field("IsTruncated", str(more).lower()),
            *(
                "<Upload>"
                + field("Key", key)
                + field("UploadId", number)
                + field("StorageClass", "STANDARD")
                + field("Initiated", begun.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
                + "</Upload>"
                for key, number, begun in page
            ),
        )
        return 200, {"Content-Type": "application/xml"}, body

    def object_put(self, bucket, key, query):
        objects = self.store.bucket(bucket)
        check_conditions(self.headers, objects.get(key), reads=False)
        found = objects[key] = Object(self.body, next(self.store.numbers))
        return 200, self.told(found) | {"Content-Length": "0"}, b""

    def object_get(self, bucket, key, query):
        objects = self.store.bucket(bucket)
        found = objects.get(key)
        if found and query.get("generation", str(found.generation)) != str(found.generation):
            found = None
        if found is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        check_conditions(self.headers, found, reads=True)
        headers, content = self.told(found), found.content
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not asked or asked.group(0) == "bytes=-":
            return 200, headers | {"Content-Length": str(len(content))}, content
        size = len(content)
        if asked.group(1):
            first, last = int(asked.group(1)), min(int(asked.group(2) or size - 1), size - 1)
        else:
            first, last = max(size - int(asked.group(2)), 0), size - 1
        if first >= size or first > last:
            raise Refused(416, "InvalidRange", "The requested range cannot be satisfied.")
        part = content[first : last + 1]
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        return 206, headers | {"Content-Length": str(len(part))}, part

    object_head = object_get

    def object_delete(self, bucket, key, query):
        objects = self.store.bucket(bucket)
        check_conditions(self.headers, objects.get(key), reads=False)
        if objects.pop(key, None) is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        return 204, {}, b""

    def object_post_uploads(self, bucket, key, query):
        self.store.bucket(bucket)
        number = f"upload-{next(self.store.numbers)}"
        self.store.uploads[number] = Upload((bucket, key))
        body = document(
            "InitiateMultipartUploadResult",
            field("Bucket", bucket),
            field("Key", key),
            field("UploadId", number),
        )
        return 200, {"Content-Type": "application/xml"}, body

    def object_put_uploadid(self, bucket, key, query):
        upload = self.store.upload(bucket, key, query["uploadId"])
        number = int(query.get("partNumber", 0))
        if not 1 <= number <= 10_000:
            raise Refused(400, "InvalidArgument", "partNumber is from 1 to 10000.")
        upload.parts[number] = self.body
        return 200, {"ETag": f'"{hashlib.md5(self.body).hexdigest()}"'}, b""

    def object_get_uploadid(self, bucket, key, query):
        upload = self.store.upload(bucket, key, query["uploadId"])
        parts = sorted(upload.parts.items())
        body = document(
            "ListPartsResult",
            field("IsTruncated", "false"),
            *(
                f"<Part>{field('PartNumber', number)}{field('Size', len(part))}</Part>"
                for number, part in parts
            ),
        )
        return 200, {"Content-Type": "application/xml"}, body

    def object_post_uploadid(self, bucket, key, query):
        upload = self.store.upload(bucket, key, query["uploadId"])
        try:
            wanted = [
                (int(part.findtext("PartNumber")), part.findtext("ETag").strip('"'))
                for part in ElementTree.fromstring(self.body).iter()
                if part.tag.split("}")[-1] == "Part"
            ]
        except (ElementTree.ParseError, TypeError, ValueError, AttributeError):
            raise Refused(400, "MalformedCompleteMultipartUploadRequest") from None
        numbers = [number for number, _ in wanted]
        if not wanted or numbers != sorted(set(numbers)):
            raise Refused(400, "InvalidPartOrder", "Parts must be listed in order.")
        content = []
        for number, etag in wanted:
            part = upload.parts.get(number)
            if part is None or hashlib.md5(part).hexdigest() != etag:
                raise Refused(400, "InvalidPart", f"Part {number} was not found.")
            if len(part) < SMALLEST_PART and number != numbers[-1]:
                raise Refused(400, "EntityTooSmall", f"Part {number} is too small.")
            content.append(part)
        objects = self.store.bucket(bucket)
        generation = next(self.store.numbers)
        # Not the hash of the content: nobody may take it for one.
        etag = base64.b64encode(f"composed-{generation}".encode()).decode()
        found = objects[key] = Object(b"".join(content), generation, etag)
        del self.store.uploads[query["uploadId"]]
        body = document(
            "CompleteMultipartUploadResult",
            field("Bucket", bucket),
            field("Key", key),
            field("ETag", f'"{found.etag}"'),
        )
        return 200, {"x-goog-generation": str(generation), "Content-Type": "application/xml"}, body

    def object_delete_uploadid(self, bucket, key, query):
        self.store.upload(bucket, key, query["uploadId"])
        del self.store.uploads[query["uploadId"]]
        return 204, {}, b""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    port, bucket, key = sys.argv[1:]
    Handler.tokens = Tokens(key)
    Handler.store.buckets[bucket] = {}
    # Small answers must not wait for one another.
    Handler.disable_nagle_algorithm = True
    Server(("127.0.0.1", int(port)), Handler).serve_forever()


main()

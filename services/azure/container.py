"""container.py ENDPOINT ACCOUNT KEY CONTAINER: makes a container, and prints a shared
access signature for it that is good for a week."""

import base64
import datetime
import hashlib
import hmac
import sys
import urllib.parse
import urllib.request

VERSION = "2020-12-06"

endpoint, account, key, container = sys.argv[1:]
now = datetime.datetime.now(datetime.timezone.utc)


def signature(text):
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


url = urllib.parse.urlsplit(f"{endpoint}/{container}?restype=container")
headers = {
    "x-ms-date": now.strftime("%a, %d %b %Y %H:%M:%S GMT"),
    "x-ms-version": VERSION,
}
told = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
# The method, eleven headers that are not sent, ours, and the place.
text = f"PUT\n{chr(10) * 11}{told}/{account}{url.path}\nrestype:container"
headers["Authorization"] = f"SharedKey {account}:{signature(text)}"
request = urllib.request.Request(url.geturl(), method="PUT", headers=headers)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(request, timeout=30) as answer:
    assert answer.status == 201, answer.status

permissions = "racwdl"
until = (now + datetime.timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
place = f"/blob/{account}/{container}"
# Permissions, start, end, place, policy, address, protocol, version, kind, and
# snapshot, scope and five headers that are not asked for.
parts = [permissions, "", until, place, "", "", "", VERSION, "c"] + [""] * 7
print(
    urllib.parse.urlencode(
        {"sv": VERSION, "sr": "c", "sp": permissions, "se": until, "sig": signature("\n".join(parts))}
    )
)

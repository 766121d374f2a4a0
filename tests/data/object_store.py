"""A server on this machine that speaks as much of S3 and Google Cloud as reading needs, and fails on demand."""

import json
import pickle
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

GOOGLE = "/storage/v1/b/"


@dataclass
class Store:
    """Buckets with files; tests change them while the server runs."""

    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)  # buckets that nobody may read
    nameless: set[str] = field(default_factory=set)  # buckets whose files may be read, but not asked for themselves
    failures: list[int] = field(default_factory=list)  # statuses of the next answers
    url: str = ""
    asked: list[str] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer takes 40 ms

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        store = self.server.store
        store.asked.append(f"{self.command} {self.path}")
        address = urlsplit(self.path)
        if address.path.startswith(GOOGLE):
            return self.answer_google(address.path.removeprefix(GOOGLE).split("/"), parse_qs(address.query))
        bucket, _, key = unquote(address.path).lstrip("/").partition("/")
        if store.failures:
            return self.fail(store.failures.pop(0), "SlowDown")
        if bucket in store.private:
            return self.fail(403, "AccessDenied")
        if bucket not in store.buckets:
            return self.fail(404, "NoSuchBucket")
        files = store.buckets[bucket]
        if not key:
            return self.answer(200, _listing(bucket, files, parse_qs(address.query, keep_blank_values=True)))
        if key not in files:
            return self.fail(404, "NoSuchKey")
        return self.send_file(files[key])

    def answer_google(self, steps, query):
        store, bucket, key = self.server.store, steps[0], unquote("/".join(steps[2:]))
        if bucket in store.private or (len(steps) == 1 and bucket in store.nameless):
            return self.fail_google(403, "reader@project does not have storage.objects.get access")
        files = store.buckets.get(bucket)
        if files is None or (key and key not in files):
            return self.fail_google(404, "Not Found")
        if query.get("alt") == ["media"]:
            return self.send_file(files[key])
        kept = [name for name in sorted(files) if name.startswith(query.get("prefix", [""])[0])]
        listing = {"kind": "storage#objects", "items": [_google_file(bucket, name, files[name]) for name in kept]}
        named = {"kind": "storage#bucket", "name": bucket}
        content = _google_file(bucket, key, files[key]) if key else listing if len(steps) > 1 else named
        return self.answer(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def fail_google(self, status, message):
        causes = [{"domain": "global", "reason": "forbidden", "message": message}]
        error = {"error": {"code": status, "message": message, "errors": causes}}
        self.answer(status, json.dumps(error).encode(), {"Content-Type": "application/json"})

    def send_file(self, content):
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        part = content[int(found[1]) : int(found[2]) + 1 if found[2] else None] if found else content
        extra = {"ETag": f'"{md5(content).hexdigest()}"', "Last-Modified": formatdate(1704067200, usegmt=True)}
        if found:
            extra["Content-Range"] = f"bytes {found[1]}-{int(found[1]) + len(part) - 1}/{len(content)}"
        self.answer(206 if found else 200, part, extra)

    def fail(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            "Content-Type": "application/xml",
            **dict(headers),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


def _google_file(bucket, name, content):
    times = {"timeCreated": "2024-01-01T00:00:00Z", "updated": "2024-01-01T00:00:00Z"}
    return {
        "kind": "storage#object",
        "bucket": bucket,
        "name": name,
        "size": str(len(content)),
        "generation": "1",
        **times,
    }


def _listing(bucket, files, query):
    prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
    most = int(query.get("max-keys", ["1000"])[0])
    keys, folders = [], []
    for key in sorted(files):
        if key.startswith(prefix):
            folder, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                folders.append(prefix + folder + delimiter)
            else:
                keys.append(key)
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>x</ETag><Size>{len(files[key])}</Size></Contents>"
        for key in keys[:most]
    )
    common = "".join(
        f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in dict.fromkeys(folders)
    )
    return (
        '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(keys[:most])}</KeyCount>"
        f"<IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>"
    ).encode()


@contextmanager
def serving_objects(**content):
    store = Store(**content)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.store = store
    store.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving_objects_elsewhere(**content):
    """The address of a server in a process of its own: pyarrow waits for Google Cloud without letting threads run."""
    with subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pickle.dump(content, process.stdin)
        process.stdin.flush()
        yield process.stdout.readline().decode().strip()
        process.stdin.close()  # ends it


if __name__ == "__main__":
    with serving_objects(**pickle.load(sys.stdin.buffer)) as opened:  # noqa: S301 - from the test that started it
        sys.stdout.write(f"{opened.url}\n")
        sys.stdout.flush()
        sys.stdin.read()

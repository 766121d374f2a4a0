"""A server on this machine that speaks as much of S3 as reading needs, and fails on demand."""

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class Store:
    """Buckets with files; tests change them while the server runs."""

    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)  # buckets that nobody may read
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

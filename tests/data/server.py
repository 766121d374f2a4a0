"""A web server on this machine that misbehaves on demand."""

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What the server has and how it behaves; tests change it while it runs."""

    files: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    ranges: bool = True  # can go on in the middle of a file
    lengths: bool = True  # says how long a file is
    tag: str | None = '"one"'
    cuts: list[int] = field(default_factory=list)  # bytes after which the next answers break off
    statuses: list[int] = field(default_factory=list)  # what the next answers are instead of a file
    moved: dict[str, str] = field(default_factory=dict)
    shifted: int = 0  # bytes that a part starts earlier than asked
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # paths and ranges
    gate: threading.Event | None = None  # answers wait for it
    stall: int = 0  # bytes after which an answer stands still


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        site = self.server.site
        wanted = self.headers.get("Range")
        site.asked.append((self.path, wanted))
        if site.gate:
            site.gate.wait(20)
        if site.statuses:
            return self.send_error(site.statuses.pop(0))
        if self.path in site.moved:
            self.send_response(302)
            self.send_header("Location", site.moved[self.path])
            return self.end_headers()
        if self.path not in site.files:
            return self.send_error(404)
        return self.send_file(site, site.files[self.path], wanted)

    def send_file(self, site, content, wanted):
        same = self.headers.get("If-Range") in (None, site.tag)
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and site.ranges and same else 0
        if start >= len(content) and start:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            return self.end_headers()
        if start:
            start -= site.shifted
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if site.lengths:
            self.send_header("Content-Length", str(len(content) - start))
        if site.tag:
            self.send_header("ETag", site.tag)
        self.end_headers()
        body = content[start:]
        if site.cuts:
            body = body[: site.cuts.pop(0)]
        if site.stall:
            self.wfile.write(body[: site.stall])
            self.wfile.flush()
            while site.stall:
                time.sleep(0.02)
            return None
        self.wfile.write(body)
        self.close_connection = True
        return None

    def log_message(self, *words):
        pass


@contextmanager
def serving(**behaviour):
    site = Site(**behaviour)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.site = site
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.stall = 0
        if site.gate:
            site.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()

"""Chromium without a window, spoken to through a pipe: what a reader's browser makes of a page."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """A page in Chromium; `events` has what happened on it."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self._number, self._rest = 0, b""
        self.events = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        return self._call(method, self._session, **params)

    def _call(self, method, session=None, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._rest:
            part = os.read(self._reader, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended.")
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, *, width, height=900, dark=False, scale=1):
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 500,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def ask(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        return found.get("value")

    def screenshot(self, path, *, height=None):
        tall = height or self.ask("document.documentElement.scrollHeight")
        wide = self.ask("innerWidth")
        clip = {"x": 0, "y": 0, "width": wide, "height": tall, "scale": 1}
        picture = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(picture["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"])

    def named(self, *methods):
        return [event for event in self.events if event.get("method") in methods]


@contextmanager
def browser():
    """A browser with a profile of its own, ended with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Chromium reads at 3 and writes at 4. Numbers well above these cannot be overwritten on the way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        os.close(theirs_in)
        os.close(theirs_out)
        process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}',
                "bash",
                CHROMIUM,
                *OPTIONS,
                f"--user-data-dir={profile}",
            ],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        try:
            opened = Browser(ours_in, ours_out)
            yield opened
            opened._call("Browser.close")
        finally:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(ours_in)
            os.close(ours_out)

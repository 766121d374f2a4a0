"""The service as users run it: `quanet serve` with its workers, and a browser."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

from tests.report.browser import CHROMIUM


@contextmanager
def service(data):
    """`quanet serve` on a free port; ended with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "quanet", "serve", "--data", str(data), "--port", str(port)]
    limited = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=limited)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/ready", process)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(address, process, seconds=60):
    for _ in range(10 * seconds):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            assert process.poll() is None, "the service has ended"
            time.sleep(0.1)
    raise TimeoutError(address)


@contextmanager
def chromium():
    """Debian's Chromium, driven by Playwright."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()

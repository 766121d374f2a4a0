"""A PostgreSQL server of the tests' own, from Debian's packages: no service is needed, and none is used."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

FAST = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c listen_addresses= -c max_connections=100"


def binaries():
    """The folder of the newest PostgreSQL, or None."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def user():
    """Who runs the server: it refuses to run as root."""
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names.get("nobody")


@contextmanager
def running_postgres():
    """The address of the server, to which the name of a database is added. Skips the tests where there is none."""
    home = binaries()
    if home is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="quanet-pg-"))
    options = {}
    if os.geteuid() == 0:
        entry = user()
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        options = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": folder}
    try:
        initdb = [
            home / "initdb",
            "-D",
            folder / "data",
            "-U",
            "quanet",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        ]
        subprocess.run(initdb, check=True, capture_output=True, **options)
        command = [home / "postgres", "-D", folder / "data", "-k", folder, *FAST.split()]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, **options)
        try:
            _wait(home, folder, server)
            yield f"postgresql://quanet@/{{}}?host={folder}"
        finally:
            server.send_signal(signal.SIGQUIT)  # nothing of it is needed any more
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(home, folder, server):
    for _ in range(300):
        if server.poll() is not None:
            break
        ready = subprocess.run([home / "pg_isready", "-h", folder, "-q"], check=False)
        if ready.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()[-1000:]}")

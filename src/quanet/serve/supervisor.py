"""Run the service: the web server in this process, and next to it workers that are started again when they die."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn

from quanet.errors import InvalidSetting, QuanetError
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.tokens import list_tokens
from quanet.serve.web.app import create_app
from quanet.serve.web.service_logs import LOG, configure_logs
from quanet.serve.web.service_settings import ServiceSettings

LANES = ("quick", "long")
QUICK_DEATH = 5.0  # seconds; a worker that dies sooner waits before it is started again
LONGEST_PAUSE = 30.0  # seconds
GRACE = 20.0  # seconds for requests and workers to end


class ServiceFailed(QuanetError):
    """The service cannot start."""


def check_access(store: ServiceStore, settings: ServiceSettings) -> None:
    """Refuse to serve other machines without a token."""
    if not settings.sign_in:
        return
    with store.read() as connection:
        if list_tokens(connection):
            return
    raise InvalidSetting(
        f"{settings.public_url or settings.host} can be reached from other machines, and there is no token. Create one "
        f"with `quanet token create NAME --data {store.data}`, or let everybody do everything with --insecure."
    )


def bind(settings: ServiceSettings) -> socket.socket:
    """A socket on the address of the service. Raises `ServiceFailed` if it is in use, or not of this machine."""
    place = f"{settings.host}:{settings.port}"
    bound = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except (OSError, UnicodeError, OverflowError, ValueError) as error:
        bound.close()
        number = getattr(error, "errno", None)
        hint = "Choose another --port." if number in {errno.EADDRINUSE, errno.EACCES} else "Choose another --host."
        raise ServiceFailed(f"{place} cannot be used: {getattr(error, 'strerror', '') or error}. {hint}") from error
    return bound


class Workers:
    """Worker processes by name; one that ends is started again.

    Examples
    --------
    >>> import sys
    >>> kept = Workers({"quick": [sys.executable, "-c", "import time; time.sleep(60)"]})
    >>> kept.start()
    >>> kept.processes["quick"].poll() is None
    True
    >>> kept.stop()
    >>> kept.processes["quick"].poll() is None
    False
    """

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self.commands = commands
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._pauses = dict.fromkeys(commands, 0.0)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="workers", daemon=True)

    def start(self) -> None:
        """Start all workers."""
        for name in self.commands:
            self._start(name)
        self._thread.start()

    def stop(self, patience: float = GRACE) -> None:
        """Stop all workers. A job that one of them does not finish is done again later."""
        self._stopping.set()
        self._thread.join()
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                process.terminate()
        until = time.monotonic() + patience
        for process in self.processes.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str) -> None:
        # In a group of its own: Ctrl-C reaches the server alone, which then stops the workers.
        process = subprocess.Popen(self.commands[name], stdin=subprocess.DEVNULL, process_group=0)
        self.processes[name] = process
        self._started[name] = time.monotonic()
        LOG.info("worker started", extra={"facts": {"lane": name, "pid": process.pid}})

    def _watch(self) -> None:
        while not self._stopping.wait(0.2):
            for name, process in self.processes.items():
                if process.poll() is None:
                    continue
                if name not in self._due:
                    self._due[name] = time.monotonic() + self._pause_after(name, process)
                if time.monotonic() >= self._due[name]:
                    del self._due[name]
                    self._start(name)

    def _pause_after(self, name: str, process: "subprocess.Popen[bytes]") -> float:
        """Seconds to wait: none after a training, which ends a worker, and longer the more often it dies at once."""
        lived = time.monotonic() - self._started[name]
        pause = 0.0 if not process.returncode or lived > QUICK_DEATH else max(1.0, 2 * self._pauses[name])
        self._pauses[name] = min(pause, LONGEST_PAUSE)
        if process.returncode:
            facts = {"lane": name, "code": process.returncode, "again_in": self._pauses[name]}
            LOG.warning("worker died", extra={"facts": facts})
        return self._pauses[name]


def worker_command(data: Path, lane: str, settings: ServiceSettings) -> list[str]:
    """The command line of a worker of this service."""
    limits = ["--max-rows", str(settings.rows), "--max-seconds", f"{settings.seconds:g}"]
    follow = ["--child", str(os.getpid())]
    return [sys.executable, "-m", "quanet", "worker", "--data", str(data), "--lane", lane, *follow, *limits]


class _Server(uvicorn.Server):
    """A server that says when it accepts requests, and returns after a signal, so that workers can be stopped."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.force_exit = self.should_exit and sig == signal.SIGINT  # a second Ctrl-C waits for nothing
        self.should_exit = True


def serve_requests(
    store: ServiceStore,
    settings: ServiceSettings,
    *,
    workers: bool = True,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C. Requests that run are finished; jobs that run are done after the next start.

    Parameters
    ----------
    store, settings : where everything is, and how to serve it.
    workers : whether to run workers next to the server.
    ready : called with the address when requests are accepted.
    """
    check_access(store, settings)
    bound = bind(settings)
    settings = replace(settings, port=bound.getsockname()[1])  # the one that was free, for port 0
    configure_logs()
    config = uvicorn.Config(
        create_app(store, settings),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.public_url),
        timeout_graceful_shutdown=int(GRACE),
        ws="none",
    )
    lanes = LANES if workers else ()
    kept = Workers({lane: worker_command(store.data, lane, settings) for lane in lanes})
    try:
        kept.start()
        _Server(config, lambda: ready(settings.address)).run(sockets=[bound])
    finally:
        kept.stop()
        bound.close()

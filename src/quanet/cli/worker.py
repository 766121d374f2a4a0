"""`quanet worker`: compute the jobs of a service, next to the server or on another machine."""

import os
import threading
from enum import StrEnum
from typing import Annotated

import typer

from quanet.cli.serve_options import DataFolder, MaxRows, MaxSeconds, data_folder, database_url, service_extra

PATIENCE = 10.0  # seconds for a worker whose server died


class Lane(StrEnum):
    """What a worker does."""

    quick = "quick"
    long = "long"


def worker(
    data: DataFolder = None,
    lane: Annotated[Lane, typer.Option(help="quick: everything but training; long: training.")] = Lane.quick,
    once: Annotated[bool, typer.Option("--once", help="Do the jobs that wait, and exit.")] = False,
    max_rows: MaxRows = 5_000_000,
    max_seconds: MaxSeconds = 3600.0,
    child: Annotated[int, typer.Option("--child", hidden=True, metavar="PID", help="Process to end with.")] = 0,
) -> None:
    """Compute the jobs of a service; `quanet serve` runs two of these itself.

    Workers on other machines need the same data folder and QUANET_DATABASE_URL (PostgreSQL).

    [bold]Examples[/]

    quanet worker --data /srv/quanet

    quanet worker --data /srv/quanet --lane long
    """
    with service_extra():
        from quanet.serve.web.service_logs import configure_logs
        from quanet.serve.work.worker import run_worker

    configure_logs()
    stop, ended = threading.Event(), threading.Event()
    if child:
        threading.Thread(target=_follow_parent, args=(child, stop, ended), daemon=True).start()
    folder, url = data_folder(data), database_url()
    try:
        run_worker(folder, lane.value, database=url, once=once, stop=stop, rows=max_rows, seconds=max_seconds)
    finally:
        ended.set()


def _follow_parent(parent: int, stop: threading.Event, ended: threading.Event) -> None:
    """End with the server: one that was killed starts its own workers when it is started again.

    The server gives its number, because it may be dead before this process can ask for its parent.
    """
    while os.getppid() == parent:
        if ended.wait(1.0):
            return
    stop.set()
    if not ended.wait(PATIENCE):
        os._exit(1)

"""Jobs: work for worker processes. A worker holds a job by a lease that it renews; if it dies, another takes the job.

A job may be computed twice, if a worker dies, but its result is stored once: `finish`, in the transaction that stores
the result, raises `LeaseLost` if the job is no longer the worker's.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, insert, select, update

from quanet.serve.store.rows import added, found, made, now, page, short_key, storable
from quanet.serve.store.schema import jobs
from quanet.serve.store.store_errors import LeaseLost

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore

LEASE = 60.0  # seconds
LONGEST_PAUSE = 60.0  # seconds for which a job waits whose workers have died several times
_NOBODY: dict[str, Any] = {"worker": "", "lease": 0.0}


@dataclass(frozen=True)
class JobRow:
    """A job. `attempts` counts how often it was taken, `lost` how often its worker died: it may be the cause."""

    id: int
    project: str | None
    kind: str
    lane: str
    key: str
    payload: Mapping[str, Any]
    state: str
    attempts: int
    lost: int
    not_before: float
    worker: str
    lease: float
    progress: float
    message: str
    error: str
    created: float
    finished: float | None


def enqueue(
    connection: Connection,
    kind: str,
    project: str | None,
    payload: Mapping[str, Any],
    *,
    key: str | None = None,
    lane: str = "quick",
    not_before: float = 0.0,
) -> JobRow:
    """Queue a job. If one with the same key waits already, it is returned instead."""
    key = short_key(key or "")
    waiting = _waiting(connection, key)
    if waiting:
        return waiting
    values: dict[str, Any] = {
        "project": project,
        "kind": kind,
        "lane": lane,
        "key": key,
        "payload": dict(payload),
        "state": "queued",
    }
    values |= {"not_before": not_before, "created": now()}
    return job(connection, added(connection, jobs, values))


def enqueue_all(connection: Connection, kind: str, project: str, payloads: Mapping[str, Mapping[str, Any]]) -> None:
    """Queue many quick jobs of one kind, by their keys, except those that wait already."""
    of_kind = (jobs.c.project == project, jobs.c.state == "queued", jobs.c.kind == kind)
    waiting = set(connection.scalars(select(jobs.c.key).where(*of_kind)))
    common = {"project": project, "kind": kind, "lane": "quick", "state": "queued", "created": now()}
    rows = [{"key": key, "payload": dict(payload)} | common for key, payload in payloads.items() if key not in waiting]
    if rows:
        connection.execute(insert(jobs), rows)


def claim(store: "ServiceStore", worker: str, lane: str, lease: float = LEASE) -> JobRow | None:
    """Take the oldest job of a lane that waits, or whose worker has not renewed its lease. None if there is none."""
    with store.read() as connection:  # most of the time there is nothing to do, and nobody has to wait for that
        if _claimable(connection, lane) is None:
            return None
    with store.write() as connection:
        id_ = _claimable(connection, lane)
        if id_ is None:
            return None
        old = job(connection, id_)
        died = old.state == "running" and old.lease > 0
        values: dict[str, Any] = {"state": "running", "worker": worker, "lease": now() + lease, "progress": 0.0}
        values |= {"message": "", "error": "", "attempts": old.attempts + 1, "lost": old.lost + died}
        connection.execute(update(jobs).where(jobs.c.id == id_).values(values))
        return job(connection, id_)


def renew(
    store: "ServiceStore",
    held: JobRow,
    lease: float = LEASE,
    progress: float | None = None,
    message: str | None = None,
) -> bool:
    """Keep a job for longer, and show its progress (0 to 1). False: it was cancelled, deleted or taken; stop."""
    values: dict[str, Any] = {"lease": now() + lease}
    if progress is not None:
        values["progress"] = min(max(float(progress), 0.0), 1.0)
    if message is not None:
        values["message"] = storable(message, 500)
    with store.write() as connection:
        return connection.execute(update(jobs).where(_held(held)).values(values)).rowcount == 1


def finish(connection: Connection, held: JobRow) -> None:
    """Mark a job as done, in the transaction that stores its result. Raises `LeaseLost` if it is no longer held."""
    _end(connection, held, {"state": "done", "finished": now(), "progress": 1.0} | _NOBODY)


def fail(connection: Connection, held: JobRow, error: str, retry_at: float | None = None) -> None:
    """Mark a job as failed, or queue it again at `retry_at`. Raises `LeaseLost` if it is no longer held."""
    values: dict[str, Any] = {"state": "failed", "finished": now(), "error": storable(error)} | _NOBODY
    if retry_at is not None:
        waiting = _waiting(connection, held.key)
        again = {"state": "queued", "finished": None, "not_before": retry_at}
        values |= {"state": "cancelled", "message": f"Job {waiting.id} does the same."} if waiting else again
    _end(connection, held, values)


def release(store: "ServiceStore", held: JobRow) -> bool:
    """Give a job back, such as when the worker is told to stop: others may take it now. False: it was not held."""
    with store.write() as connection:
        values = {"lease": 0.0, "progress": 0.0, "message": ""}
        return connection.execute(update(jobs).where(_held(held)).values(values)).rowcount == 1


def release_dead(store: "ServiceStore", is_dead: Callable[[str], bool]) -> int:
    """End the leases of workers that are known to be dead, so that nobody waits for them. Returns how many."""
    running = jobs.c.state == "running"
    with store.read() as connection:
        holders = set(connection.scalars(select(jobs.c.worker).where(running)))
    dead = [worker for worker in holders if is_dead(worker)]
    if not dead:
        return 0
    with store.write() as connection:
        query = update(jobs).where(running, jobs.c.worker.in_(dead), jobs.c.lease > now())
        return connection.execute(query.values(lease=now())).rowcount


def cancel(connection: Connection, id_: int) -> JobRow:
    """Cancel a job that waits or runs. Its worker notices when it renews its lease or finishes."""
    job(connection, id_)
    active = jobs.c.state.in_(["queued", "running"])
    values = {"state": "cancelled", "finished": now()} | _NOBODY
    connection.execute(update(jobs).where(jobs.c.id == id_, active).values(values))
    return job(connection, id_)


def forget_batch(connection: Connection, project: str, batch: int, kinds: Collection[str]) -> None:
    """Cancel the jobs about a batch that is deleted. Those of `kinds` that run may have read it: they begin again."""
    active = jobs.c.state.in_(["queued", "running"])
    query = select(jobs).where(jobs.c.project == project, active)
    for row in [made(JobRow, row) for row in connection.execute(query).all()]:
        if row.payload.get("batch") == batch:
            cancel(connection, row.id)
        elif row.kind in kinds and row.state == "running":
            cancel(connection, row.id)
            enqueue(connection, row.kind, project, row.payload, key=row.key, lane=row.lane)


def job(connection: Connection, id_: int) -> JobRow:
    """One job. Raises `NotFound` if it does not exist."""
    return found(JobRow, connection.execute(select(jobs).where(jobs.c.id == id_)).first(), f"Job {id_}")


def list_jobs(
    connection: Connection,
    project: str | None = None,
    state: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[JobRow]:
    """Jobs, newest first."""
    query = select(jobs)
    if project is not None:
        query = query.where(jobs.c.project == project)
    if state is not None:
        query = query.where(jobs.c.state == state)
    return [made(JobRow, row) for row in connection.execute(page(query, jobs.c.id, before, limit))]


def count_jobs(connection: Connection) -> dict[tuple[str, str], int]:
    """How many jobs of each (state, kind) there are."""
    query = select(jobs.c.state, jobs.c.kind, func.count()).group_by(jobs.c.state, jobs.c.kind)
    return {(state, kind): number for state, kind, number in connection.execute(query)}


def _claimable(connection: Connection, lane: str) -> int | None:
    moment = now()
    other = jobs.alias()
    same_key = exists().where(
        other.c.key == jobs.c.key, other.c.key != "", other.c.state == "running", other.c.id != jobs.c.id
    )
    of_lane = select(jobs.c.id, jobs.c.lease, jobs.c.lost).where(jobs.c.lane == lane).order_by(jobs.c.id)
    waiting = of_lane.where(jobs.c.state == "queued", jobs.c.not_before <= moment, ~same_key).limit(1)
    given_up = of_lane.where(jobs.c.state == "running", jobs.c.lease <= moment)
    lost = [row for row in connection.execute(given_up) if row.lease == 0 or row.lease + _pause(row.lost) <= moment]
    return min((row.id for row in [*connection.execute(waiting), *lost]), default=None)


def _pause(deaths: int) -> float:
    """Seconds until the job of a dead worker is taken again: it may be the cause of it, so that others go first."""
    return min(LONGEST_PAUSE, 5.0 * 2 ** (deaths - 2)) if deaths >= 2 else 0.0


def _held(held: JobRow) -> ColumnElement[bool]:
    mine = and_(jobs.c.worker == held.worker, jobs.c.attempts == held.attempts)
    return and_(jobs.c.id == held.id, jobs.c.state == "running", mine)


def _end(connection: Connection, held: JobRow, values: Mapping[str, Any]) -> None:
    if connection.execute(update(jobs).where(_held(held)).values(values)).rowcount != 1:
        raise LeaseLost(f"Job {held.id} ({held.kind}) is no longer held by {held.worker}: it was cancelled or taken.")


def _waiting(connection: Connection, key: str) -> JobRow | None:
    if not key:
        return None
    row = connection.execute(select(jobs).where(jobs.c.key == key, jobs.c.state == "queued")).first()
    return made(JobRow, row) if row else None

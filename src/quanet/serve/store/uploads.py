"""Uploaded files, and the batches among them: new data, of which each is read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, select, update

from quanet.serve.store.jobs import enqueue, enqueue_all, forget_batch
from quanet.serve.store.removal import plan_removal, remove_content
from quanet.serve.store.rows import MAX_PAGE, added, forget, found, made, now, page, short_key, storable, use
from quanet.serve.store.schema import answers, batches, files, label_plans
from quanet.serve.store.store_errors import NotFound

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore

ABOUT_ALL = ("overview", "difference", "monitor")  # kinds of answers that contain every batch
_BATCHES = select(batches, files.c.name).join(files, files.c.id == batches.c.file)


@dataclass(frozen=True)
class FileRow:
    """An uploaded file. Its name is only shown; its content is `blob`."""

    id: int
    project: str
    kind: str
    name: str
    blob: str
    size: int
    created: float


@dataclass(frozen=True)
class BatchRow:
    """New data. `name` is its file's; `done` its place in the order in which the batches of the project finished."""

    id: int
    project: str
    file: int
    key: str
    created: float
    status: str
    error: str
    rows: int
    totals: Mapping[str, Any] | None
    state: str
    model: str
    done: int | None
    name: str


@dataclass(frozen=True)
class DoneBatch:
    """What is needed of a batch to put it together with others."""

    id: int
    created: float
    name: str
    state: str
    done: int


def add_file(connection: Connection, project: str, kind: str, name: str, blob: str, size: int) -> FileRow:
    """Note an uploaded file, of the kind "training" or "batch"."""
    values: dict[str, Any] = {"project": project, "kind": kind, "name": storable(name, 200), "blob": blob, "size": size}
    id_ = added(connection, files, values | {"created": now()})
    use(connection, project, f"file:{id_}", [blob])
    return file(connection, project, id_)


def file(connection: Connection, project: str, id_: int) -> FileRow:
    """One file of a project. Raises `NotFound` if it does not exist."""
    row = connection.execute(select(files).where(files.c.id == id_, files.c.project == project)).first()
    return found(FileRow, row, f"File {id_}")


def list_files(
    connection: Connection, project: str, kind: str, before: int | None = None, limit: int = 50
) -> list[FileRow]:
    """Files of one kind, newest first."""
    query = select(files).where(files.c.project == project, files.c.kind == kind)
    return [made(FileRow, row) for row in connection.execute(page(query, files.c.id, before, limit))]


def add_batch(connection: Connection, project: str, file_id: int, key: str) -> tuple[BatchRow, bool]:
    """A batch, and the job that reads it. The same key gives the same batch: False means that it was known."""
    known = find_batch(connection, project, key)
    if known:
        return known, False
    values = {"project": project, "file": file_id, "key": short_key(key), "created": now(), "status": "queued"}
    id_ = added(connection, batches, values)
    _enqueue_reading(connection, project, id_)
    return batch(connection, project, id_), True


def receive_batch(
    connection: Connection, project: str, name: str, blob: str, size: int, key: str | None = None
) -> tuple[BatchRow, bool]:
    """A batch of a stored file, by default with its content as the key. False means that it was known."""
    key = key or f"sha256:{blob.partition('.')[0]}"
    known = find_batch(connection, project, key)
    if known:
        return known, False
    return add_batch(connection, project, add_file(connection, project, "batch", name, blob, size).id, key)


def find_batch(connection: Connection, project: str, key: str) -> BatchRow | None:
    """The batch with a key, if there is one."""
    query = _BATCHES.where(batches.c.project == project, batches.c.key == short_key(key))
    row = connection.execute(query).first()
    return made(BatchRow, row) if row else None


def batch(connection: Connection, project: str, id_: int) -> BatchRow:
    """One batch of a project. Raises `NotFound` if it does not exist."""
    row = connection.execute(_BATCHES.where(batches.c.id == id_, batches.c.project == project)).first()
    return found(BatchRow, row, f"Batch {id_}")


def list_batches(
    connection: Connection, project: str, before: int | None = None, limit: int = 50, status: str | None = None
) -> list[BatchRow]:
    """Batches, newest first."""
    query = _BATCHES.where(batches.c.project == project)
    if status is not None:
        query = query.where(batches.c.status == status)
    return [made(BatchRow, row) for row in connection.execute(page(query, batches.c.id, before, limit))]


def count_batches(connection: Connection, project: str) -> dict[str, int]:
    """How many batches have each status."""
    query = select(batches.c.status, func.count()).where(batches.c.project == project).group_by(batches.c.status)
    return dict(connection.execute(query).all())


def start_batch(connection: Connection, id_: int) -> None:
    """Show that a batch is being read."""
    query = update(batches).where(batches.c.id == id_, batches.c.status == "queued")
    connection.execute(query.values(status="running"))


def finish_batch(
    connection: Connection, id_: int, *, rows: int, totals: Mapping[str, Any], state: str, model: str
) -> BatchRow:
    """Store what was read from a batch. A batch that is read again is the last in the order again."""
    row = _any(connection, id_)
    last = connection.scalar(select(func.max(batches.c.done)).where(batches.c.project == row.project)) or 0
    use(connection, row.project, f"batch:{id_}", [state])
    values = {"status": "done", "error": "", "rows": rows, "totals": dict(totals), "state": state, "model": model}
    connection.execute(update(batches).where(batches.c.id == id_).values(values | {"done": last + 1}))
    return _any(connection, id_)


def fail_batch(connection: Connection, id_: int, error: str) -> BatchRow:
    """Store why a batch cannot be read."""
    row = _any(connection, id_)
    values = {"status": "failed", "error": storable(error), "rows": 0, "totals": None, "state": "", "done": None}
    connection.execute(update(batches).where(batches.c.id == id_).values(values))
    use(connection, row.project, f"batch:{id_}", [])
    return _any(connection, id_)


def read_again(connection: Connection, project: str, id_: int) -> BatchRow:
    """Queue a batch again, such as one that failed for a reason that was fixed."""
    batch(connection, project, id_)
    connection.execute(update(batches).where(batches.c.id == id_).values(status="queued", error=""))
    _enqueue_reading(connection, project, id_)
    return batch(connection, project, id_)


def read_all_again(connection: Connection, project: str) -> None:
    """Queue all batches of a project, since its model or the way they are read has changed."""
    of_project = batches.c.project == project
    connection.execute(update(batches).where(of_project).values(status="queued", error=""))
    ids = connection.scalars(select(batches.c.id).where(of_project).order_by(batches.c.id)).all()
    enqueue_all(connection, "predict", project, {f"predict:{id_}": {"batch": id_} for id_ in ids})


def unmerged(
    connection: Connection, project: str, after: int = 0, limit: int = MAX_PAGE, model: str | None = None
) -> list[BatchRow]:
    """The batches that were finished after the one with `done == after`, in that order."""
    query = _BATCHES.where(batches.c.project == project, batches.c.done > after, batches.c.status == "done")
    if model is not None:
        query = query.where(batches.c.model == model)
    return [made(BatchRow, row) for row in connection.execute(query.order_by(batches.c.done).limit(limit))]


def done_batches(connection: Connection, project: str, model: str) -> list[DoneBatch]:
    """The batches that a model has read, in the order of their arrival."""
    columns = (batches.c.id, batches.c.created, files.c.name, batches.c.state, batches.c.done)
    read = (batches.c.project == project, batches.c.status == "done", batches.c.model == model)
    query = select(*columns).join(files, files.c.id == batches.c.file).where(*read).order_by(batches.c.id)
    return [made(DoneBatch, row) for row in connection.execute(query)]


def delete_batch(store: "ServiceStore", project: str, id_: int) -> None:
    """Delete a batch: its rows, file, state, labels and answers, and the answers about all batches, which contain it.

    Jobs that compute the latter from the remaining batches are queued. Content that another row names remains.
    """
    with store.write() as connection:
        row = batch(connection, project, id_)
        mine = [f"batch:{id_}", f"file:{row.file}"]
        gone = select(answers.c.id, answers.c.kind).where(
            answers.c.project == project, answers.c.about.in_(mine) | answers.c.kind.in_(ABOUT_ALL)
        )
        lost = connection.execute(gone).all()
        plans = connection.scalars(select(label_plans.c.id).where(label_plans.c.batch == id_)).all()
        owners = [*mine, *(f"answer:{answer.id}" for answer in lost), *(f"plan:{plan}" for plan in plans)]
        plan_removal(connection, project, forget(connection, owners))
        forget_batch(connection, project, id_, ABOUT_ALL)
        connection.execute(delete(answers).where(answers.c.id.in_([answer.id for answer in lost])))
        connection.execute(delete(batches).where(batches.c.id == id_))
        connection.execute(delete(files).where(files.c.id == row.file))
        for kind in {"overview", "monitor"} & {answer.kind for answer in lost}:
            enqueue(connection, kind, project, {}, key=f"{kind}:{project}")
    remove_content(store)


def _any(connection: Connection, id_: int) -> BatchRow:
    row = connection.execute(_BATCHES.where(batches.c.id == id_)).first()
    if row is None:
        raise NotFound(f"Batch {id_} does not exist, or was deleted.")
    return made(BatchRow, row)


def _enqueue_reading(connection: Connection, project: str, id_: int) -> None:
    enqueue(connection, "predict", project, {"batch": id_}, key=f"predict:{id_}")

"""Check that a store is whole: that nothing is lost, damaged or contradictory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, String, Table, and_, cast, exists, literal, not_, or_, select

from quanet.serve.store.blobs import blob_digest, folder_digest
from quanet.serve.store.schema import answers, batches, files, jobs, label_items, label_plans, projects, uses

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore


def check_integrity(store: "ServiceStore", *, contents: bool = True) -> list[str]:
    """What is wrong with a store, one sentence each; empty if all is well.

    Parameters
    ----------
    store : to check. It may be in use.
    contents : whether to compare all files with their hashes, which reads all of them.
    """
    with store.read() as connection:
        found = [
            *_database(connection),
            *_references(connection),
            *_batches(connection),
            *_jobs(connection),
            *_labels(connection),
        ]
        named = connection.execute(select(uses.c.content, uses.c.owner).order_by(uses.c.content)).all()
    checked = ""
    for content, owner in named:
        if content != checked and (problem := _content(store, content, contents)):
            # Not a problem if it was deleted since.
            with store.read() as connection:
                if connection.scalar(select(uses.c.owner).where(uses.c.content == content)) is not None:
                    found.append(f"{owner} names {content}, {problem}.")
        checked = content
    return found


def _database(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    for (problem,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if problem != "ok":
            yield f"The database file is damaged: {problem}."
    for table, row, other, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"Row {row} of {table} refers to a row of {other} that does not exist."


def _content(store: "ServiceStore", content: str, hashes: bool) -> str:
    path = store.path(content)
    if not path.exists():
        return "which does not exist"
    if not hashes:
        return ""
    digest = folder_digest(path) if path.is_dir() else blob_digest(path)
    return "" if content.rpartition("/")[2].startswith(digest) else "which has other content than its name says"


def _owner(table: Table, kind: str) -> ColumnElement[str]:
    return literal(f"{kind}:") + cast(table.c.id, String)


def _references(connection: Connection) -> Iterator[str]:
    """Rows name content if and only if `uses` says so: otherwise it would be removed too early, or never."""
    owners: list[tuple[Table, str, Any]] = [
        (files, "file", files.c.blob),
        (batches, "batch", batches.c.state),
        (label_plans, "plan", label_plans.c.sheet),
        (projects, "project", literal("models/") + projects.c.model),
    ]
    for table, kind, content in owners:
        noted = exists().where(uses.c.owner == _owner(table, kind), uses.c.content == content)
        for (id_,) in connection.execute(select(table.c.id).where(content.not_in(["", "models/"]), ~noted)):
            yield f"{kind}:{id_} names content that is not noted as used."
    for id_, forms in connection.execute(select(answers.c.id, answers.c.forms)):
        missing = set(forms.values())
        missing -= set(connection.scalars(select(uses.c.content).where(uses.c.owner == f"answer:{id_}")))
        if missing:
            yield f"answer:{id_} names content that is not noted as used."
    for table, kind in [(table, kind) for table, kind, _ in owners] + [(answers, "answer")]:
        kept = exists().where(_owner(table, kind) == uses.c.owner)
        for (owner,) in connection.execute(select(uses.c.owner).where(uses.c.owner.startswith(f"{kind}:"), ~kept)):
            yield f"{owner} was deleted, but its content is still noted as used."


def _batches(connection: Connection) -> Iterator[str]:
    done = batches.c.status == "done"
    whole = and_(batches.c.state != "", batches.c.done.is_not(None), batches.c.totals.is_not(None))
    for (id_,) in connection.execute(select(batches.c.id).where(done, not_(whole))):
        yield f"Batch {id_} is done, but has no totals or no state."
    reads = exists().where(
        jobs.c.key == literal("predict:") + cast(batches.c.id, String), jobs.c.state.in_(["queued", "running"])
    )
    waiting = batches.c.status.in_(["queued", "running"])
    trained = exists().where(
        projects.c.id == batches.c.project, projects.c.model != ""
    )  # otherwise training will queue it
    for (id_,) in connection.execute(select(batches.c.id).where(waiting, ~reads, trained)):
        yield f"Batch {id_} waits, but no job will read it."
    for id_, status in connection.execute(select(batches.c.id, batches.c.status).where(not_(done), ~waiting)):
        if status != "failed":
            yield f"Batch {id_} has the unknown status {status!r}."


def _jobs(connection: Connection) -> Iterator[str]:
    running = jobs.c.state == "running"
    for (id_,) in connection.execute(select(jobs.c.id).where(running, jobs.c.worker == "")):
        yield f"Job {id_} is running, but no worker holds it."
    ended = jobs.c.state.in_(["done", "failed", "cancelled"])
    wrong = or_(and_(ended, jobs.c.finished.is_(None)), and_(not_(ended), jobs.c.finished.is_not(None)))
    for id_, state in connection.execute(select(jobs.c.id, jobs.c.state).where(wrong)):
        yield f"Job {id_} is {state}, which contradicts the time of its end."
    other = jobs.alias()
    twice = exists().where(
        other.c.key == jobs.c.key, other.c.key != "", other.c.state == "running", other.c.id < jobs.c.id
    )
    for id_, key in connection.execute(select(jobs.c.id, jobs.c.key).where(running, twice)):
        yield f"Job {id_} runs at the same time as another one with its key {key!r}."


def _labels(connection: Connection) -> Iterator[str]:
    labelled = label_items.c.label.is_not(None)
    decided = or_(labelled, label_items.c.skipped != 0)
    signed = and_(label_items.c.by != "", label_items.c.at.is_not(None))
    wrong = [
        ("is labelled and skipped", and_(labelled, label_items.c.skipped != 0)),
        ("is decided, but not by anybody", and_(decided, not_(signed))),
        ("is decided, but someone still holds it", and_(decided, label_items.c.holder != "")),
        ("is not decided, but signed", and_(not_(decided), label_items.c.by != "")),
    ]
    for problem, where in wrong:
        for (id_,) in connection.execute(select(label_items.c.id).where(where)):
            yield f"Item {id_} {problem}."

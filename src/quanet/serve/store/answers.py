"""Answers: what was computed, as a sentence, small facts for pages, and files in every format."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select

from quanet.serve.store.removal import plan_removal
from quanet.serve.store.rows import added, forget, found, made, now, page, short_key, storable, use
from quanet.serve.store.schema import answers

READING = 60.0  # seconds for which the files of a replaced answer remain, for those who are reading them


@dataclass(frozen=True)
class AnswerRow:
    """An answer. `forms` are blobs by format; `about` is what the answer is about, such as "batch:17"."""

    id: int
    project: str
    kind: str
    about: str
    request: Mapping[str, Any]
    sentence: str
    command: str
    forms: Mapping[str, str]
    data: Mapping[str, Any]
    created: float


def put_answer(
    connection: Connection,
    project: str,
    kind: str,
    about: str,
    *,
    request: Mapping[str, Any],
    sentence: str,
    command: str,
    forms: Mapping[str, str],
    data: Mapping[str, Any],
    keeps: Iterable[str] = (),
) -> AnswerRow:
    """Store an answer. It replaces the one of the same kind about the same.

    The blobs in `forms`, `data["state"]`, the folder `data["monitor"]` among the monitors, and further content in
    `keeps` exist as long as the answer.
    """
    old = answer(connection, project, kind, about)
    values: dict[str, Any] = {"project": project, "kind": kind, "about": short_key(about), "request": dict(request)}
    values |= {"sentence": storable(sentence), "command": storable(command), "forms": dict(forms), "data": dict(data)}
    dropped = forget(connection, [f"answer:{old.id}"]) if old else set()
    if old:
        connection.execute(delete(answers).where(answers.c.id == old.id))
    id_ = added(connection, answers, values | {"created": now()})
    monitor = data.get("monitor")
    content = {*forms.values(), str(data.get("state") or ""), f"monitors/{monitor}" if monitor else "", *keeps}
    use(connection, project, f"answer:{id_}", content)
    plan_removal(connection, project, dropped - content, delay=READING)
    return made(AnswerRow, connection.execute(select(answers).where(answers.c.id == id_)).one())


def answer(connection: Connection, project: str, kind: str, about: str) -> AnswerRow | None:
    """The answer of a kind about something, if there is one."""
    query = select(answers).where(
        answers.c.project == project, answers.c.kind == kind, answers.c.about == short_key(about)
    )
    row = connection.execute(query).first()
    return made(AnswerRow, row) if row else None


def answer_by_id(connection: Connection, project: str, id_: int) -> AnswerRow:
    """One answer. Raises `NotFound` if it does not exist: an answer that is computed again has a new id."""
    row = connection.execute(select(answers).where(answers.c.id == id_, answers.c.project == project)).first()
    return found(AnswerRow, row, f"Answer {id_}")


def list_answers(
    connection: Connection, project: str, kind: str | None = None, before: int | None = None, limit: int = 50
) -> list[AnswerRow]:
    """Answers, newest first."""
    query = select(answers).where(answers.c.project == project)
    if kind is not None:
        query = query.where(answers.c.kind == kind)
    return [made(AnswerRow, row) for row in connection.execute(page(query, answers.c.id, before, limit))]


def delete_answer(connection: Connection, project: str, id_: int) -> None:
    """Delete an answer; what it alone names is removed by the next `remove_content`."""
    plan_removal(connection, project, forget(connection, [f"answer:{id_}"]))
    connection.execute(delete(answers).where(answers.c.id == id_, answers.c.project == project))

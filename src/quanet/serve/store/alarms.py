"""Alarms: changes that the monitor has found, each once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from quanet.serve.store.rows import added, found, made, now, page, short_key, storable
from quanet.serve.store.schema import alarms


@dataclass(frozen=True)
class AlarmRow:
    """An alarm. `delivered` is when the webhook accepted it."""

    id: int
    project: str
    key: str
    date: str
    sentence: str
    data: Mapping[str, Any]
    created: float
    delivered: float | None


def add_alarm(
    connection: Connection, project: str, key: str, date: str, sentence: str, data: Mapping[str, Any]
) -> tuple[AlarmRow, bool]:
    """Store an alarm. False means that the one with this key was known."""
    query = select(alarms).where(alarms.c.project == project, alarms.c.key == short_key(key))
    known = connection.execute(query).first()
    if known:
        return made(AlarmRow, known), False
    values: dict[str, Any] = {
        "project": project,
        "key": short_key(key),
        "date": storable(date, 40),
        "sentence": storable(sentence),
    }
    values |= {"data": dict(data), "created": now()}
    id_ = added(connection, alarms, values)
    return alarm(connection, id_), True


def alarm(connection: Connection, id_: int) -> AlarmRow:
    """One alarm. Raises `NotFound` if it does not exist."""
    return found(AlarmRow, connection.execute(select(alarms).where(alarms.c.id == id_)).first(), f"Alarm {id_}")


def list_alarms(connection: Connection, project: str, before: int | None = None, limit: int = 50) -> list[AlarmRow]:
    """Alarms, newest first."""
    query = select(alarms).where(alarms.c.project == project)
    return [made(AlarmRow, row) for row in connection.execute(page(query, alarms.c.id, before, limit))]


def mark_delivered(connection: Connection, id_: int) -> None:
    """Note that the webhook has accepted an alarm."""
    connection.execute(update(alarms).where(alarms.c.id == id_, alarms.c.delivered.is_(None)).values(delivered=now()))

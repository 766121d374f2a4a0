"""The audit log: who did what. Entries outlive what they are about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from quanet.serve.store.rows import made, now, page, storable
from quanet.serve.store.schema import audit


@dataclass(frozen=True)
class AuditRow:
    """An entry of the audit log."""

    id: int
    at: float
    who: str
    action: str
    project: str
    detail: Mapping[str, Any]


def record(
    connection: Connection, who: str, action: str, project: str = "", detail: Mapping[str, Any] | None = None
) -> None:
    """Note that someone did something, in the transaction that does it."""
    values = {"at": now(), "who": storable(who, 100), "action": storable(action, 40), "project": storable(project, 16)}
    connection.execute(insert(audit).values(values | {"detail": dict(detail or {})}))


def list_audit(
    connection: Connection, project: str | None = None, before: int | None = None, limit: int = 50
) -> list[AuditRow]:
    """Entries, newest first."""
    query = select(audit)
    if project is not None:
        query = query.where(audit.c.project == project)
    return [made(AuditRow, row) for row in connection.execute(page(query, audit.c.id, before, limit))]

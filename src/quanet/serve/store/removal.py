"""Removal of content whose rows were deleted."""

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, insert, select, update

from quanet.serve.store.blobs import disk_error, remove
from quanet.serve.store.migrating import copies
from quanet.serve.store.schema import removals, uses

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore


def plan_removal(connection: Connection, project: str, content: Iterable[str], delay: float = 0.0) -> None:
    """Note content to remove, in the transaction that deletes its rows.

    Without a delay, everything of the project that is to be removed later is due now, too.
    """
    due = time.time() + delay
    if not delay:
        connection.execute(update(removals).where(removals.c.project == project).values(due=due))
    names = sorted(set(content))
    if names:
        connection.execute(delete(removals).where(removals.c.content.in_(names)))
        connection.execute(insert(removals), [{"content": name, "project": project, "due": due} for name in names])


def remove_content(store: "ServiceStore") -> int:
    """Remove the noted content from the disk, except what another row names. Returns how much was noted.

    On SQLite, deleted rows are overwritten in the file, and the log and copies that contain them are removed.
    """
    is_due = removals.c.due <= time.time()
    with store.read() as connection:
        if connection.scalar(select(removals.c.content).where(is_due).limit(1)) is None:
            return 0
    with store.write() as connection:  # so that nothing names it in the meantime
        names = list(connection.scalars(select(removals.c.content).where(is_due)))
        named = select(uses.c.content).join(removals, removals.c.content == uses.c.content).where(is_due)
        try:
            for name in set(names) - set(connection.scalars(named)):
                remove(store.path(name))
        except OSError as error:
            raise disk_error(store.data, error) from error
        connection.execute(delete(removals).where(is_due))
    if store.engine.dialect.name == "sqlite":
        for copy in copies(store.data):
            copy.unlink(missing_ok=True)
        _empty_log(store)
    return len(names)


def collect(store: "ServiceStore") -> int:
    """Remove what deletions, replaced answers and crashes have left: content that no row names. Returns how much."""
    noted = remove_content(store)
    try:
        store.blobs.drop_forgotten()
        old = [*store.blobs.old(), *store.models.old(), *store.monitors.old()]
        with store.read() as connection:
            unnamed = _unnamed(connection, old)
        if unnamed:
            with store.write() as connection:  # so that nothing names it in the meantime
                unnamed = _unnamed(connection, unnamed)
                for name in unnamed:
                    remove(store.path(name))
    except OSError as error:
        raise disk_error(store.data, error) from error
    return noted + len(unnamed)


def _unnamed(connection: Connection, content: Sequence[str]) -> list[str]:
    named: set[str] = set()
    for start in range(0, len(content), 500):
        some = content[start : start + 500]
        named.update(connection.scalars(select(uses.c.content).where(uses.c.content.in_(some))))
    return [name for name in content if name not in named]


def _empty_log(store: "ServiceStore") -> None:
    with closing(store.engine.raw_connection()) as connection:
        for setting in ("busy_timeout = 1000", "wal_checkpoint(TRUNCATE)", "busy_timeout = 30000"):
            connection.cursor().execute(f"PRAGMA {setting}")

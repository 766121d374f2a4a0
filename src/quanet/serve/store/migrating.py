"""Bring the tables of a database up to date, completely or not at all."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from filelock import FileLock
from sqlalchemy import Connection

from quanet.serve.store.blobs import sync_file
from quanet.serve.store.store_errors import StoreError

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(store: "ServiceStore", migrations: Path = MIGRATIONS) -> None:
    """Apply the migrations that a database lacks, in one transaction. Before that, a SQLite file is copied.

    Raises `StoreError` if a newer version has written the database, or if a migration fails; then nothing has changed.
    """
    script = ScriptDirectory(str(migrations))
    with FileLock(store.data / "migration.lock"):  # server and workers start at the same time
        with store.read() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
        steps = _steps(script, current, store.place)
        if not steps:
            return
        copy = _keep_copy(store, current) if current else None
        try:
            # On SQLite a table is changed by replacing it, which must not delete what refers to it.
            with store.write(foreign_keys=False) as connection:
                _apply(connection, script, steps)
        except Exception as error:
            reason = " ".join(str(error).split()).rstrip(".")
            kept = f" A copy is kept in {copy}." if copy else ""
            raise StoreError(
                f"The database {store.place} could not be upgraded from {current or 'an empty one'} to "
                f"{steps[-1].revision}: {reason}. Nothing was changed; use the version of quanet "
                f"that wrote it until this is fixed.{kept}"
            ) from error
        finally:
            store.close()  # its connections do not check foreign keys


def copies(data: Path) -> list[Path]:
    """The copies of the database that migrations have kept."""
    return sorted(data.glob("quanet.before-*.sqlite3"))


def _steps(script: ScriptDirectory, current: str | None, place: str) -> list[Script]:
    head = script.get_current_head()
    if current == head:
        return []
    try:
        return [step for step in script.walk_revisions(current or "base", "head") if step.revision != current][::-1]
    except CommandError as error:
        if current is None:
            raise
        raise StoreError(
            f"The database {place} was written by a newer version of quanet (its tables are {current}, this version "
            f"knows up to {head}). Install the newer version, or choose another folder with --data."
        ) from error


def _apply(connection: Connection, script: ScriptDirectory, steps: list[Script]) -> None:
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        for step in steps:
            step.module.upgrade()
            context.stamp(script, step.revision)
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if broken:
            raise StoreError(f"a row of {broken[0]} refers to a row of {broken[2]} that does not exist")


def _keep_copy(store: "ServiceStore", current: str) -> Path | None:
    if store.engine.dialect.name != "sqlite":
        return None
    target = store.data / f"quanet.before-{current}.sqlite3"
    part = target.with_suffix(".part")
    try:
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as copy, store.read() as connection:
            source = connection.connection.driver_connection
            if not isinstance(source, sqlite3.Connection):
                return None
            source.backup(copy)
        sync_file(part)
        part.replace(target)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"No copy of {store.place} could be made before its upgrade: {error}. Free space.") from error
    return target

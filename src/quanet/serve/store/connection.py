"""The store of the service: a database and a folder of files. One per process; threads share it."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, IntegrityError, InterfaceError, ProgrammingError

from quanet.errors import MissingExtra, brief
from quanet.files import json_ready
from quanet.serve.store.blobs import Blobs, Folders, disk_error
from quanet.serve.store.migrating import migrate
from quanet.serve.store.removal import remove_content
from quanet.serve.store.store_errors import NotFound, StoreError

__all__ = ["FILE", "Connection", "ServiceStore"]
FILE = "quanet.sqlite3"
FOLDERS = ("blobs", "incoming", "models", "monitors", "inbox")
PATIENCE = 30.0  # seconds to wait for another writer
_LOCK = 7_165_826_301  # number of the lock that writers hold on PostgreSQL, one for each database


class ServiceStore:
    """What the service remembers. Open it with `ServiceStore.open`.

    Attributes
    ----------
    data : the data folder.
    engine : the database.
    blobs, models, monitors : files and folders by their content.
    """

    def __init__(self, data: Path, engine: Engine) -> None:
        self.data = data
        self.engine = engine
        self.blobs = Blobs(data)
        self.models = Folders(data, "models")
        self.monitors = Folders(data, "monitors")
        self._sqlite = engine.dialect.name == "sqlite"
        self._turn = threading.Lock()

    @classmethod
    def open(cls, data: Path, url: str | None = None) -> "ServiceStore":
        """Open the store in a folder, create it if it does not exist, and bring its tables up to date.

        Parameters
        ----------
        data : the data folder.
        url : of a PostgreSQL database, such as "postgresql://user@host/name"; by default SQLite in the data folder.
        """
        data = Path(data).absolute()
        _make_folders(data)
        engine = create_engine(_address(data, url), **_options(url))
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _set_up_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        store = cls(data, engine)
        try:
            migrate(store)
            remove_content(store)
        except BaseException:
            store.close()
            raise
        return store

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database until the end of the block."""
        level = {} if self._sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._one_line(), self._connected(**level) as connection:
            yield connection

    @contextmanager
    def write(self, *, foreign_keys: bool = True) -> Iterator[Connection]:
        """A connection that alone may write until the end of the block: all of it is stored, or nothing.

        There is one writer at a time, on SQLite (BEGIN IMMEDIATE) as on PostgreSQL (an advisory lock), so that what a
        block has read is still true when it writes. Do no slow work in it. `foreign_keys` are off for migrations alone.
        """
        options = {"writes": True, "foreign_keys": foreign_keys}
        with self._one_line(), self._own_turn(), self._connected(**options) as connection:
            if not self._sqlite:
                connection.execute(text(f"SET LOCAL lock_timeout = '{PATIENCE:.0f}s'"))
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            yield connection

    def path(self, content: str) -> Path:
        """Where content is, as rows name it: a blob, "models/NAME" or "monitors/NAME"."""
        kind, _, name = content.rpartition("/")
        homes: dict[str, Blobs | Folders] = {"": self.blobs, "models": self.models, "monitors": self.monitors}
        if kind not in homes:
            raise NotFound(f"{brief(content)} is not the name of stored content.")
        return homes[kind].path(name)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @property
    def place(self) -> str:
        """The database as messages name it, without a password."""
        return str(self.data / FILE) if self._sqlite else self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def _connected(self, **options: Any) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.execution_options(store=self, **options).begin():
            yield connection

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        # Threads of one process queue here, which is fair; SQLite itself would let them poll.
        if not self._sqlite:
            yield
        elif self._turn.acquire(timeout=2 * PATIENCE):
            try:
                yield
            finally:
                self._turn.release()
        else:
            raise StoreError(f"{self.place} is busy: another change has not ended for {2 * PATIENCE:.0f} s. Try again.")

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, ProgrammingError, DataError):
            raise  # a mistake in this package
        except (DatabaseError, InterfaceError) as error:
            raise database_error(self.place, error.orig or error) from error
        except sqlite3.Error as error:
            raise database_error(self.place, error) from error


def database_error(place: str, error: BaseException) -> StoreError:
    """What is wrong with a database, in one line."""
    reason = " ".join(str(error).split()).rstrip(".")
    fixes = {
        "disk is full": "The disk is full. Free space; nothing that was stored is lost",
        "No space left": "The disk is full. Free space; nothing that was stored is lost",
        "readonly database": "It is read-only. Let this user write there, or choose another folder with --data",
        "unable to open": "It cannot be opened. Check the permissions of the folder, or choose another with --data",
        "locked": "Another process is writing to it for too long. Try again",
        "lock timeout": "Another process is writing to it for too long. Try again",
        "not a database": "It is no database of quanet, or damaged. Restore it from a copy, or choose another folder",
        "malformed": "The file is damaged. Restore it from a copy",
    }
    fix = next((fix for part, fix in fixes.items() if part in reason), reason)
    return StoreError(f"The database {place} cannot be used: {fix}.")


def _make_folders(data: Path) -> None:
    try:
        for name in FOLDERS:
            (data / name).mkdir(parents=True, exist_ok=True)
        probe = data / "incoming" / ".writable"
        probe.write_bytes(b"")
    except OSError as error:
        raise disk_error(data, error) from error


def _address(data: Path, url: str | None) -> URL:
    if not url:
        return URL.create("sqlite", database=str(data / FILE))
    try:
        address = make_url(url)
    except ArgumentError:
        raise StoreError(_WRONG_URL.format(found="a text that is no address")) from None
    if address.drivername not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise StoreError(_WRONG_URL.format(found=brief(address.drivername)))
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg. Install it with: pip install 'quanet[postgres]'") from None
    return address.set(drivername="postgresql+psycopg")


_WRONG_URL = (
    "QUANET_DATABASE_URL must be like postgresql://user:password@host/name, but it starts with {found}. "
    "Leave it out to use SQLite in the data folder."
)


def _options(url: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {"json_serializer": _as_json, "pool_timeout": PATIENCE, "max_overflow": 40}
    if url:
        return options | {"pool_size": 5, "max_overflow": 15, "pool_pre_ping": True}
    return options | {"pool_size": 20, "connect_args": {"timeout": PATIENCE, "check_same_thread": False}}


def _as_json(value: Any) -> str:
    return json.dumps(json_ready(value), allow_nan=False, separators=(",", ":"))


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says
    for setting in (
        f"busy_timeout = {PATIENCE * 1000:.0f}",
        "journal_mode = WAL",
        "synchronous = FULL",  # what was acknowledged survives a power cut
        "foreign_keys = ON",
        "secure_delete = ON",  # what was deleted is overwritten
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("foreign_keys", True):
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")  # has no effect after BEGIN
    writes = options.get("writes")
    connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if writes else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

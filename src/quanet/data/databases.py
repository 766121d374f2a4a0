"""Rows of a table or of a query in a SQLite or DuckDB file, which is opened read-only. An empty cell is None."""

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quanet.data.columns import Cells, PickColumns, cell_or_none, nearest_first
from quanet.errors import InvalidData, MissingExtra

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"  # first bytes; DuckDB's follow a checksum of 8 bytes
ROWS = 4096  # fetched at a time
MAX_LISTED = 10  # tables in a message
QUERY = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)\b", re.DOTALL)  # the first word, after comments
END = re.compile(r";\s*(?:(?:--[^\n]*(?:\n|$)|/\*.*?\*/)\s*)*$", re.DOTALL)  # of a statement, with comments
READS = {"select", "with", "values", "from"}
WRITES = re.compile(
    "insert|update|delete|replace|merge|create|drop|alter|truncate|copy|export|import|attach|detach|pragma|set|install|"
    "load|vacuum|begin|commit|call|checkpoint"
)
ZONED = "TIMESTAMP WITH TIME ZONE"  # a type of DuckDB, which Python reads only with another library
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

Opened = tuple[str, list[str], PickColumns, Any, Callable[[], int]]


def database_rows(path: Path, part: str) -> Opened:
    """Name, columns, rows, connection and bytes read so far, of a table or a query.

    Parameters
    ----------
    path : a SQLite or DuckDB file.
    part : the name of a table or view, or a query that only reads; empty for the only table.
    """
    with path.open("rb") as file:
        head = file.read(16)
    if head == SQLITE or not head:
        database: _Database = _SQLite(path)
    elif head[8:12] == DUCKDB:
        database = _DuckDB(path)
    else:
        raise InvalidData(f"{path} is neither a SQLite nor a DuckDB database. Is its name right?")
    try:
        return _rows(path, database, part)
    except BaseException:
        database.close()
        raise


class _Database(ABC):
    """A connection that only reads."""

    errors: tuple[type[Exception], ...] = ()

    @abstractmethod
    def tables(self) -> list[str]:
        """Names of tables and views."""

    @abstractmethod
    def run(self, query: str) -> Any:
        """A cursor over the rows of a query. Raises `InvalidData` unless it is one statement that only reads."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class _SQLite(_Database):
    errors = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError)

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(f"file:{quote(bytes(path.resolve()))}?mode=ro", uri=True)
        self.connection.set_authorizer(_authorize)

    def tables(self) -> list[str]:
        found = self.connection.execute(
            "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\'"
        )
        return [name for (name,) in found]

    def run(self, query: str) -> Any:
        try:
            return self.connection.execute(query)
        except sqlite3.DatabaseError as error:
            # SQLite says "not authorized"; other messages are about the query.
            if "authorized" in str(error) or "prohibited" in str(error):
                raise InvalidData(_only_reads("the query")) from None
            raise

    def close(self) -> None:
        self.connection.close()


def _authorize(action: int, _: str | None, function: str | None, *__: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and function == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


class _DuckDB(_Database):
    def __init__(self, path: Path) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra(f"{path} needs DuckDB. Install it: pip install 'quanet[duckdb]'") from None
        self.duckdb: Any = duckdb
        self.errors = (duckdb.Error, ValueError, OverflowError)
        # A query must not read or write other files, or load code.
        config: Any = {
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
        }
        try:
            self.connection: Any = duckdb.connect(str(path), read_only=True, config=config)
            # A timestamp with time zone is a moment without a zone of its own; the zone of the machine must not matter.
            self.connection.execute("set TimeZone = 'UTC'")
            self.connection.execute("set lock_configuration = true")
        except (duckdb.Error, UnicodeError) as error:
            raise InvalidData(f"{path} cannot be read: {_first_line(error)}") from None

    def tables(self) -> list[str]:
        found = self.connection.execute(
            "select table_name from information_schema.tables where table_schema = 'main' order by table_name"
        )
        return [name for (name,) in found.fetchall()]

    def run(self, query: str) -> Any:
        statements = self.connection.extract_statements(query)
        if len(statements) != 1:
            raise InvalidData(f"the query has {len(statements)} statements. Write one select.")
        if statements[0].type != self.duckdb.StatementType.SELECT:
            raise InvalidData(_only_reads("the query"))
        cursor = self.connection.execute(statements[0])
        moments = [column[0] for column in cursor.description if str(column[1]) == ZONED]
        if not moments:
            return cursor
        local = ", ".join(f"{_quoted(name)}::timestamp as {_quoted(name)}" for name in moments)
        return self.connection.execute(f"select * replace ({local}) from ({END.sub('', query)}\n)")

    def close(self) -> None:
        self.connection.close()


def _only_reads(what: str) -> str:
    return f"{what} does more than read, so it was not run. Use a single select."


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _rows(path: Path, database: _Database, part: str) -> Opened:
    name = str(path)
    try:
        table, query = _query(name, database.tables(), part)
        size, total, done = path.stat().st_size, 0, 0
        if table:
            name = f"{path}#{table}"
            total = database.run(f"select count(*) from {_quoted(table)}").fetchone()[0]
        cursor = database.run(query)
        columns = [str(column[0]) for column in cursor.description]
    except InvalidData as error:
        raise InvalidData(f"{name}: {error}") from None
    except database.errors as error:
        fails = "the query fails: " if part and name == str(path) else ""
        raise InvalidData(f"{name}: {fails}{_first_line(error)}") from None

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        nonlocal done
        places = [_place(name, columns, column) for column in wanted]
        take: Any = itemgetter(*places) if len(places) > 1 else (lambda row: tuple([row[place] for place in places]))
        try:
            while rows := cursor.fetchmany(ROWS):
                done += len(rows)
                for row in rows:
                    yield tuple([cell_or_none(cell) for cell in take(row)])
        except database.errors as error:
            raise InvalidData(f"{name}, after row {done:,}: {_first_line(error)}") from None

    return name, columns, pick, database, lambda: size * done // total if total else 0


def _place(name: str, columns: list[str], column: str) -> int:
    if columns.count(column) > 1:
        raise InvalidData(f"{name}: the query has {columns.count(column)} columns {column!r}. Name them with 'as'.")
    return columns.index(column)


def _query(name: str, tables: list[str], part: str) -> tuple[str, str]:
    """The name of a table, if one is meant, and the query."""
    if not tables:
        raise InvalidData("the database has no tables.")
    listed = ", ".join(map(repr, nearest_first(part, tables)[:MAX_LISTED] if part else tables[:MAX_LISTED]))
    more = f" and {len(tables) - MAX_LISTED} more" if len(tables) > MAX_LISTED else ""
    if not part and len(tables) > 1:
        raise InvalidData(f"the database has several tables: {listed}{more}. Name one: '{name}#{tables[0]}'.")
    named = [table for table in tables if table == part] or [one for one in tables if one.lower() == part.lower()]
    if named or not part:
        table = named[0] if named else tables[0]
        return table, f"select * from {_quoted(table)}"
    found = QUERY.match(part)
    word = found[1].lower() if found else ""
    if word in READS:
        return "", part
    if WRITES.fullmatch(word) and part.strip() != word:
        raise InvalidData(_only_reads("the query"))
    raise InvalidData(f"there is no table {part!r}. The tables are {listed}{more}.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""What the modules of the tables share: pages of rows, keys and texts of bounded length, and who names content."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Select, Table, delete, insert, select

from quanet.serve.store.schema import uses
from quanet.serve.store.store_errors import NotFound, StoreError

MAX_PAGE = 500
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
Record = TypeVar("Record")


def now() -> float:
    """Seconds since 1970."""
    return time.time()


def made(kind: type[Record], row: Any) -> Record:
    """A row as a record: its columns have the names of the fields."""
    return kind(**{field.name: getattr(row, field.name) for field in fields(kind)})  # type: ignore[arg-type]


def found(kind: type[Record], row: Any, what: str) -> Record:
    """A row as a record. Raises `NotFound` if there is none."""
    if row is None:
        raise NotFound(f"{what} does not exist, or was deleted.")
    return made(kind, row)


def added(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Insert a row and return its id."""
    key = connection.execute(insert(table).values(values)).inserted_primary_key
    return int(key[0]) if key else 0


def page(query: Select[Any], id_: Column[int], before: int | None, limit: int) -> Select[Any]:
    """The newest rows first, those with an id below `before`: a page costs the same wherever it is."""
    if before is not None:
        query = query.where(id_ < before)
    return query.order_by(id_.desc()).limit(max(1, min(limit, MAX_PAGE)))


def storable(text: str, length: int | None = None) -> str:
    r"""Text that every database accepts: no NUL, no unpaired surrogates, at most `length` characters.

    Examples
    --------
    >>> storable("a\0b\ud800c"), storable("reviews.csv", 7)
    ('a\ufffdb\ufffdc', 'reviews')
    """
    return _UNSTORABLE.sub("\ufffd", text)[:length]


def short_key(key: str, length: int = 200) -> str:
    """A key of bounded length: a longer one ends in its hash, so that different keys stay different.

    Examples
    --------
    >>> short_key("batch:17"), len(short_key("x" * 1000))
    ('batch:17', 200)
    """
    if len(key) <= length and not _UNSTORABLE.search(key):
        return key
    return storable(key)[: length - 65] + "#" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def use(connection: Connection, project: str, owner: str, content: Iterable[str], *, also: bool = False) -> None:
    """Note that a row names content, and nothing else unless `also`.

    Raises `StoreError` if the content is not stored: a row never names what does not exist.
    """
    known = used_by(connection, [owner])
    wanted = {name for name in content if name}
    names = sorted(wanted - known)
    if known - wanted and not also:
        connection.execute(delete(uses).where(uses.c.owner == owner, uses.c.content.in_(known - wanted)))
    store = connection.get_execution_options()["store"]
    for name in names:
        if not store.path(name).exists():
            raise StoreError(f"The content {name} was removed before anything named it. Send it again.")
    if names:
        connection.execute(insert(uses), [{"content": name, "owner": owner, "project": project} for name in names])


def forget(connection: Connection, owners: Iterable[str]) -> set[str]:
    """Note that some rows are deleted. Returns the content that they named."""
    owners = list(owners)
    content = used_by(connection, owners)
    connection.execute(delete(uses).where(uses.c.owner.in_(owners)))
    return content


def used_by(connection: Connection, owners: Iterable[str]) -> set[str]:
    """The content that some owners name."""
    return set(connection.scalars(select(uses.c.content).where(uses.c.owner.in_(list(owners)))))

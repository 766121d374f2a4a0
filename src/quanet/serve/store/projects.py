"""Projects: a name, settings and a model."""

import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from quanet.serve.store.removal import plan_removal, remove_content
from quanet.serve.store.rows import MAX_PAGE, found, made, now, storable, use
from quanet.serve.store.schema import projects, uses
from quanet.serve.store.store_errors import NotFound, Outdated

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


@dataclass(frozen=True)
class ProjectRow:
    """A project. `version` goes up with every change of its settings or model."""

    id: str
    name: str
    created: float
    settings: Mapping[str, Any]
    model: str
    version: int


def create_project(connection: Connection, name: str, settings: Mapping[str, Any]) -> ProjectRow:
    """Create a project with a random id, which nobody can guess."""
    id_ = "".join(secrets.choice(_ALPHABET) for _ in range(10))
    values = {"id": id_, "name": storable(name, 200), "created": now(), "settings": dict(settings)}
    connection.execute(insert(projects).values(values))
    return project(connection, id_)


def project(connection: Connection, id_: str) -> ProjectRow:
    """One project. Raises `NotFound` if it does not exist."""
    row = connection.execute(select(projects).where(projects.c.id == storable(id_))).first()
    return found(ProjectRow, row, "The project")


def list_projects(connection: Connection, before: str | None = None, limit: int = 50) -> list[ProjectRow]:
    """Projects, newest first, created before the project with the id `before`."""
    query = select(projects).order_by(projects.c.created.desc(), projects.c.id.desc())
    if before is not None:
        last = project(connection, before)
        query = query.where(tuple_(projects.c.created, projects.c.id) < (last.created, last.id))
    return [made(ProjectRow, row) for row in connection.execute(query.limit(max(1, min(limit, MAX_PAGE))))]


def count_projects(connection: Connection) -> int:
    """How many projects there are."""
    return connection.scalar(select(func.count()).select_from(projects)) or 0


def change_settings(
    connection: Connection, id_: str, settings: Mapping[str, Any], version: int | None = None, name: str | None = None
) -> ProjectRow:
    """Replace the settings of a project, and its name if one is given.

    Raises `Outdated` if `version` is given and someone has changed the project since.
    """
    row = project(connection, id_)
    if version is not None and version != row.version:
        raise Outdated("The settings were changed by someone else in the meantime. Load the page again.")
    values = {"settings": dict(settings), "name": storable(row.name if name is None else name, 200)}
    connection.execute(update(projects).where(projects.c.id == id_).values(values | {"version": row.version + 1}))
    return project(connection, id_)


def set_model(connection: Connection, id_: str, model: str) -> ProjectRow:
    """Let a project use a stored model. Earlier ones are kept: they have read earlier batches."""
    row = project(connection, id_)
    use(connection, id_, f"project:{id_}", [f"models/{model}"], also=True)
    values = {"model": model, "version": row.version + 1}
    connection.execute(update(projects).where(projects.c.id == id_).values(values))
    return project(connection, id_)


def delete_project(store: "ServiceStore", id_: str) -> None:
    """Delete a project with all that it has: rows, files, models, inbox. What another project names, too, remains."""
    with store.write() as connection:
        plan_removal(connection, id_, connection.scalars(select(uses.c.content).where(uses.c.project == id_)))
        if not connection.execute(delete(projects).where(projects.c.id == id_)).rowcount:
            raise NotFound("The project does not exist, or was deleted.")
    remove_content(store)
    shutil.rmtree(store.data / "inbox" / id_, ignore_errors=True)

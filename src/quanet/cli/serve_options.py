"""Options that the commands of the service share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore

LIMITS = "Limits"
DATABASE = "QUANET_DATABASE_URL"  # of a PostgreSQL database; not an option, because it holds a password

DataFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        envvar="QUANET_DATA",
        help="Folder of the service: database, files and models. [dim]default: of this user[/]",
    ),
]
MaxRows = Annotated[int, typer.Option(min=1, help="Rows per file.", rich_help_panel=LIMITS)]
MaxSeconds = Annotated[float, typer.Option(min=1, help="Seconds per job.", rich_help_panel=LIMITS)]


def open_store(data: Path | None) -> "ServiceStore":
    """The store in a folder, by default in the folder of this user; PostgreSQL if QUANET_DATABASE_URL is set."""
    with service_extra():
        from quanet.serve.store.connection import ServiceStore
    return ServiceStore.open(data_folder(data), database_url())


def data_folder(data: Path | None) -> Path:
    """The folder given with --data, or that of this user."""
    from platformdirs import user_data_path

    return data or user_data_path("quanet")


def database_url() -> str | None:
    """The address of the database; None for SQLite in the data folder."""
    return os.environ.get(DATABASE) or None


@contextmanager
def service_extra() -> Iterator[None]:
    """Inside, a package that is not installed is named together with the extra that installs it."""
    from quanet.errors import MissingExtra

    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(f"The service needs {error.name}. Install it: pip install 'quanet[serve]'") from error

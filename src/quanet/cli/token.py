"""`quanet token`: who may use a service."""

from enum import StrEnum
from typing import Annotated

import typer

from quanet.cli.console import console, note
from quanet.cli.serve_options import DataFolder, open_store

app = typer.Typer(name="token", no_args_is_help=True, help="Create, list and delete tokens of a service.")
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Who uses it, such as a person or a program.")]


class Role(StrEnum):
    """What a token allows."""

    read = "read"
    label = "label"
    manage = "manage"


@app.command()
def create(
    name: TokenName,
    role: Annotated[Role, typer.Option(help="read; label: also label; manage: everything.")] = Role.manage,
    data: DataFolder = None,
) -> None:
    """Create a token and print it. It cannot be shown again: only its hash is stored.

    [bold]Examples[/]

    quanet token create ann --role label

    quanet token create nightly-upload --data /srv/quanet
    """
    store = open_store(data)
    from quanet.serve.store.audit_log import record
    from quanet.serve.store.tokens import create_token

    try:
        with store.write() as connection:
            secret = create_token(connection, name, role.value)
            record(connection, "command line", "create token", "", {"name": name, "role": role.value})
    finally:
        store.close()
    note(f"Token {name!r} ({role.value}). Keep it: it cannot be shown again.")
    console.print(secret, highlight=False, soft_wrap=True)


@app.command("list")
def list_all(data: DataFolder = None) -> None:
    """List tokens with their roles, and when they were last used."""
    store = open_store(data)
    from datetime import UTC, datetime

    from rich.table import Table

    from quanet.serve.store.tokens import list_tokens

    try:
        with store.read() as connection:
            found = list_tokens(connection)
    finally:
        store.close()
    table = Table("name", "role", "created", "last used", box=None)
    for token in found:
        times = [
            "never" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (token.created, token.used)
        ]
        table.add_row(token.name, token.role, *times)
    console.print(table)


@app.command()
def delete(name: TokenName, data: DataFolder = None) -> None:
    """Delete a token: whoever uses it is signed out at once."""
    store = open_store(data)
    from quanet.serve.store.audit_log import record
    from quanet.serve.store.tokens import delete_token

    try:
        with store.write() as connection:
            delete_token(connection, name)
            record(connection, "command line", "delete token", "", {"name": name})
    finally:
        store.close()
    note(f"Token {name!r} is deleted.")

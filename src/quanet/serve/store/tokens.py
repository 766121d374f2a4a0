"""Tokens: who may use the service. Only their hashes are stored."""

import secrets as random
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, insert, select, update

from quanet.errors import InvalidSetting, brief, nearest
from quanet.serve.store.rows import made, now, storable
from quanet.serve.store.schema import secrets, tokens
from quanet.serve.store.store_errors import NotFound

if TYPE_CHECKING:
    from quanet.serve.store.connection import ServiceStore

ROLES = ("read", "label", "manage")
_FRESH = 60.0  # seconds within which the time of the last use is not written again


@dataclass(frozen=True)
class TokenRow:
    """A token, without its secret. `used` is when it was last used, to the minute."""

    id: int
    name: str
    role: str
    created: float
    used: float | None


def create_token(connection: Connection, name: str, role: str) -> str:
    """Create a token and return its secret, which cannot be shown again."""
    if role not in ROLES:
        raise InvalidSetting(f"Unknown role {brief(role)}. {nearest(role, ROLES)}")
    name = storable(name.strip(), 100)
    if not name:
        raise InvalidSetting("A token needs a name, such as the person or program that uses it.")
    if connection.scalar(select(tokens.c.id).where(tokens.c.name == name)) is not None:
        raise InvalidSetting(f"A token named {brief(name)} already exists. Choose another name, or delete that token.")
    secret = f"quanet_{random.token_urlsafe(32)}"
    connection.execute(insert(tokens).values(name=name, hash=_hash(secret), role=role, created=now()))
    return secret


def find_token(connection: Connection, secret: str) -> TokenRow | None:
    """The token with a secret, if there is one."""
    row = connection.execute(select(tokens).where(tokens.c.hash == _hash(secret))).first()
    return made(TokenRow, row) if row else None


def note_use(store: "ServiceStore", token: TokenRow) -> None:
    """Note that a token was used; at most once a minute, so that reading stays reading."""
    moment = now()
    if token.used is None or moment - token.used > _FRESH:
        with store.write() as connection:
            connection.execute(update(tokens).where(tokens.c.id == token.id).values(used=moment))


def has_tokens(connection: Connection) -> bool:
    """Whether there is any token."""
    return connection.scalar(select(tokens.c.id).limit(1)) is not None


def list_tokens(connection: Connection) -> list[TokenRow]:
    """All tokens, by name."""
    return [made(TokenRow, row) for row in connection.execute(select(tokens).order_by(tokens.c.name))]


def delete_token(connection: Connection, name: str) -> None:
    """Delete a token. Raises `NotFound` if none has this name."""
    if not connection.execute(delete(tokens).where(tokens.c.name == storable(name, 100))).rowcount:
        raise NotFound(f"No token is named {brief(name)}. `quanet token list` shows all.")


def secret_key(store: "ServiceStore", name: str = "cookies") -> bytes:
    """A random key that is made once, such as the one that signs cookies."""
    query = select(secrets.c.value).where(secrets.c.name == name)
    with store.read() as connection:
        value = connection.scalar(query)
    if value is None:
        with store.write() as connection:
            value = connection.scalar(query)
            if value is None:
                value = random.token_hex(32)
                connection.execute(insert(secrets).values(name=name, value=value))
    return bytes.fromhex(value)


def _hash(secret: str) -> str:
    # A secret has 256 random bits, so that a fast hash is enough: nobody can try them all.
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

"""The secret that signs the webhook of a project; who receives it can tell that it comes from this service."""

import hmac

from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.tokens import secret_key

SIGNATURE = "X-Quanet-Signature"


def webhook_secret(store: ServiceStore, project: str) -> str:
    """The secret of a project, which is shown in its settings."""
    return hmac.new(secret_key(store), f"webhook {project}".encode(), "sha256").hexdigest()


def sign(secret: str, body: bytes) -> str:
    """The signature of a message: HMAC-SHA256 in hexadecimal digits, after "sha256=".

    Examples
    --------
    >>> sign("key", b"The quick brown fox jumps over the lazy dog")[:23]
    'sha256=f7bc83f430538424'
    """
    return f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"

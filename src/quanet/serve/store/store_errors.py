"""Errors of the store. All of them are one clear line."""

from quanet.errors import QuanetError


class StoreError(QuanetError):
    """The database or the data folder cannot be used: newer version, read-only, full, unreachable, failed migration."""


class NotFound(StoreError):
    """A project, batch, job or other thing that does not exist, or no longer exists."""


class LeaseLost(StoreError):
    """A job or an item to label that someone else has taken, finished or deleted in the meantime."""


class Outdated(StoreError):
    """A change based on settings that were changed in the meantime."""

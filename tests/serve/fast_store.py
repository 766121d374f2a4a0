"""A store that does not wait for the disk: tests kill processes, but do not cut the power."""

from sqlalchemy import event

from quanet.serve.store.connection import ServiceStore


def open_store(data):
    """The store in a folder, on SQLite."""
    store = ServiceStore.open(data)
    event.listen(store.engine, "connect", lambda opened, _: opened.execute("PRAGMA synchronous = OFF"))
    store.close()  # its first connections, which wait
    return store

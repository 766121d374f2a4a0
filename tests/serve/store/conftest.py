import itertools
import shutil

import pytest

from tests.serve.store.postgres import running_postgres

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres():
    """Makes an empty database, and returns its address."""
    import psycopg

    with running_postgres() as address:

        def new():
            name = f"store{next(_NUMBERS)}"
            with psycopg.connect(address.format("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            return address.format(name)

        yield new


@pytest.fixture(scope="session")
def postgres_tables(postgres, tmp_path_factory):
    """Makes all tables of one database empty, which is faster than another database, and returns its address."""
    import psycopg

    from quanet.serve.store.connection import ServiceStore
    from quanet.serve.store.schema import metadata

    address = postgres()
    ServiceStore.open(tmp_path_factory.mktemp("tables"), address).close()

    def empty():
        with psycopg.connect(address, autocommit=True) as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(f"DELETE FROM {table.name}")
        return address

    return empty


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory):
    """A SQLite file with the tables of the store."""
    from quanet.serve.store.connection import FILE, ServiceStore

    folder = tmp_path_factory.mktemp("tables")
    ServiceStore.open(folder).close()
    return folder / FILE


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    """The address of a database with empty tables, None for SQLite."""
    return request.getfixturevalue("postgres_tables")() if request.param == "postgresql" else None


@pytest.fixture
def store(url, tmp_path, sqlite_file):
    from quanet.serve.store.connection import ServiceStore

    data = tmp_path / "data"
    if url is None:
        data.mkdir()
        shutil.copy(sqlite_file, data)
    store = ServiceStore.open(data, url)
    yield store
    store.close()

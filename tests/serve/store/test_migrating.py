import shutil

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from quanet.serve.store import projects
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.migrating import MIGRATIONS, copies, migrate
from quanet.serve.store.schema import metadata
from quanet.serve.store.store_errors import StoreError
from tests.serve.store.made_stores import made_batch, made_project, read_batch

NEXT = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"
def upgrade():
    with op.batch_alter_table("projects") as table:
        table.add_column(sa.Column("colour", sa.String(10), server_default="red", nullable=False))
"""


@pytest.fixture
def fresh(request, tmp_path):
    """Opens a store in an empty database, which is created by the migrations."""
    url = request.getfixturevalue("postgres")() if request.param == "postgresql" else None
    store = ServiceStore.open(tmp_path / "data", url)
    yield store
    store.close()


on_both = pytest.mark.parametrize("fresh", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def later(tmp_path):
    """Migrations of a later version: given its code, returns their folder."""

    def with_step(code):
        folder = tmp_path / "later"
        shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "second.py").write_text(code)
        return folder

    return with_step


@on_both
def test_the_migrations_make_the_tables_of_the_schema(fresh):
    with fresh.read() as c:
        context = MigrationContext.configure(c, opts={"compare_server_default": c.dialect.name != "sqlite"})
        assert compare_metadata(context, metadata) == []
    migrate(fresh)  # nothing to do


@on_both
def test_a_later_version_keeps_what_was_stored(fresh, later):
    project = made_project(fresh)
    made_batch(fresh, project.id)
    read_batch(fresh)
    folder = later(NEXT)
    migrate(fresh, folder)
    with fresh.read() as c:
        assert c.scalar(text("SELECT colour FROM projects")) == "red"
        assert projects.project(c, project.id) == project
    assert check_integrity(fresh) == []
    with fresh.read() as c:  # replacing a table must not turn its checks off
        assert c.dialect.name != "sqlite" or c.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    if fresh.engine.dialect.name == "sqlite":
        assert [path.name for path in copies(fresh.data)] == ["quanet.before-0001.sqlite3"]
    with pytest.raises(StoreError, match=r"tables are 0002, this version knows up to 0001"):
        migrate(fresh)


@on_both
def test_a_migration_that_fails_changes_nothing(fresh, later):
    project = made_project(fresh)
    code = NEXT + '    op.execute("DELETE FROM projects")\n    op.execute("SELECT * FROM no_such_table")\n'
    with pytest.raises(StoreError, match=r"could not be upgraded from 0001 to 0002: .* Nothing was changed") as caught:
        migrate(fresh, later(code))
    assert "\n" not in str(caught.value)
    with fresh.read() as c:
        assert projects.list_projects(c) == [project]
        assert "colour" not in {column["name"] for column in inspect(c).get_columns("projects")}
    migrate(fresh)  # it is of this version, as before
    if fresh.engine.dialect.name == "sqlite":
        copy = copies(fresh.data)[0]
        assert str(copy) in str(caught.value)
        (fresh.data / "copied").mkdir()
        shutil.copy(copy, fresh.data / "copied" / "quanet.sqlite3")
        with ServiceStore.open(fresh.data / "copied").read() as c:
            assert projects.list_projects(c) == [project]


def test_a_database_of_a_newer_version_is_refused_and_kept(store, url):
    project = made_project(store)
    with store.write() as c:
        c.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    try:
        with pytest.raises(StoreError, match=r"written by a newer version of quanet .* Install the newer version"):
            ServiceStore.open(store.data, url)
        with store.read() as c:
            assert projects.list_projects(c) == [project]
    finally:
        with store.write() as c:
            c.execute(text("UPDATE alembic_version SET version_num = '0001'"))

"""Tables of the database. Times are seconds since 1970 (UTC); JSON columns hold plain data.

A change of a table needs a migration in `migrations/versions`. Ids are never used twice (AUTOINCREMENT on SQLite), so
that an address never shows something else after a deletion.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _project() -> Column[str]:
    return Column("project", String(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=False)


# settings: text, features, label, by, weight, date_format, encoding, delimiter, normalize_labels, names, show, level,
# method, seed, webhook, limits. model: name of its folder among the model folders; "" before training.
projects = Table(
    "projects",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("created", Double, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("model", String(64), nullable=False, server_default=""),
    Column("version", Integer, nullable=False, server_default="0"),  # goes up with every change of settings or model
    Index("ix_projects_created_id", "created", "id"),
)

# The files that are uploaded. blob: sha256 and suffix of its content. kind: training, batch.
files = Table(
    "files",
    metadata,
    _id(),
    _project(),
    Column("kind", String(16), nullable=False),
    Column("name", String(200), nullable=False),  # as the user calls it; only shown
    Column("blob", String(80), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Index("ix_files_project_kind_id", "project", "kind", "id"),
    sqlite_autoincrement=True,
)

# New data. status: queued, running, done, failed. error: the sentence of what is wrong. totals: what lists show
# (classes, estimate, lower, upper, counted, state), so that a page needs no file. done: 1, 2, 3, ... in the order in
# which the batches of a project were finished, which may differ from the order of their ids; NULL before.
batches = Table(
    "batches",
    metadata,
    _id(),
    _project(),
    Column("file", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("key", String(200), nullable=False),  # the Idempotency-Key, or the content: each is accepted once
    Column("created", Double, nullable=False),
    Column("status", String(16), nullable=False),
    Column("error", Text, nullable=False, server_default=""),
    Column("rows", Integer, nullable=False, server_default="0"),
    Column("totals", JSON(none_as_null=True)),
    Column("state", String(80), nullable=False, server_default=""),  # blob of its state
    Column("model", String(64), nullable=False, server_default=""),  # the model that has read it
    Column("done", Integer),
    UniqueConstraint("project", "key"),
    UniqueConstraint("project", "done"),
    Index("ix_batches_project_id", "project", "id"),
    Index("ix_batches_project_status_id", "project", "status", "id"),
    Index("ix_batches_file", "file"),
    sqlite_autoincrement=True,
)

# What was computed. kind: check, training, batch, overview, difference, refined, monitor. about: what of, such as
# "batch:17"; request: settings. forms: blobs by format (html, json, csv, parquet, md, fragment). One per (kind, about).
answers = Table(
    "answers",
    metadata,
    _id(),
    _project(),
    Column("kind", String(16), nullable=False),
    Column("about", String(200), nullable=False),
    Column("request", JSON, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("forms", JSON, nullable=False),
    Column("data", JSON, nullable=False),  # small facts for pages
    Column("created", Double, nullable=False),
    UniqueConstraint("project", "kind", "about"),
    Index("ix_answers_project_kind_id", "project", "kind", "id"),
    Index("ix_answers_project_id", "project", "id"),
    sqlite_autoincrement=True,
)

# lane: quick (seconds) or long (training). key: jobs with the same key that wait are one job, and only one of them runs
# at a time; "" for none. A worker that holds a job renews its lease; after `lease` others may take it. attempts: how
# often it was taken, so that an earlier holder is told from the present one. A lease of 0 means that the job was given
# back. state: queued, running, done, failed, cancelled.
_WAITING = text("state = 'queued' AND key <> ''")

jobs = Table(
    "jobs",
    metadata,
    _id(),
    Column("project", String(16), ForeignKey("projects.id", ondelete="CASCADE")),
    Column("kind", String(16), nullable=False),
    Column("lane", String(8), nullable=False),
    Column("key", String(200), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("lost", Integer, nullable=False, server_default="0"),  # how often its worker died
    Column("not_before", Double, nullable=False, server_default="0"),
    Column("worker", String(64), nullable=False, server_default=""),
    Column("lease", Double, nullable=False, server_default="0"),
    Column("progress", Double, nullable=False, server_default="0"),
    Column("message", String(500), nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("created", Double, nullable=False),
    Column("finished", Double),
    Index("ix_jobs_state_lane_id", "state", "lane", "id"),
    Index("ix_jobs_state_id", "state", "id"),
    Index("ix_jobs_project_id", "project", "id"),
    Index("ix_jobs_project_state_id", "project", "state", "id"),
    Index("ix_jobs_key_state", "key", "state"),
    Index("uq_jobs_waiting", "key", unique=True, sqlite_where=_WAITING, postgresql_where=_WAITING),
    sqlite_autoincrement=True,
)

# A plan of rows to label, of the files of some batches. sheet: blob of the sheet of `quanet label plan`.
label_plans = Table(
    "label_plans",
    metadata,
    _id(),
    _project(),
    Column("batch", Integer, ForeignKey("batches.id", ondelete="CASCADE"), nullable=False),
    Column("sheet", String(80), nullable=False),
    Column("facts", JSON, nullable=False),  # what the plan promises: rows, width before and after
    Column("created", Double, nullable=False),
    Index("ix_label_plans_batch", "batch"),
    Index("ix_label_plans_project", "project"),
    sqlite_autoincrement=True,
)

# A row to label. An item is leased to one person at a time; label: the class; skipped: 1 where nobody could tell.
label_items = Table(
    "label_items",
    metadata,
    _id(),
    Column("plan", Integer, ForeignKey("label_plans.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),  # row of the sheet
    Column("text", Text, nullable=False),
    Column("detail", JSON, nullable=False),  # group and further columns, to show
    Column("label", Text),
    Column("by", String(100), nullable=False, server_default=""),
    Column("at", Double),
    Column("skipped", Integer, nullable=False, server_default="0"),
    Column("holder", String(100), nullable=False, server_default=""),
    Column("lease", Double, nullable=False, server_default="0"),
    UniqueConstraint("plan", "position"),
    Index("ix_label_items_plan_by_at", "plan", "by", "at"),
    Index("ix_label_items_plan_holder", "plan", "holder"),
    sqlite_autoincrement=True,
)

# Changes that the monitor has found. key: date and classes, so that each is announced once.
alarms = Table(
    "alarms",
    metadata,
    _id(),
    _project(),
    Column("key", String(200), nullable=False),
    Column("date", String(40), nullable=False),
    Column("sentence", Text, nullable=False),
    Column("data", JSON, nullable=False),
    Column("created", Double, nullable=False),
    Column("delivered", Double),  # when the webhook accepted it
    UniqueConstraint("project", "key"),
    Index("ix_alarms_project_id", "project", "id"),
    sqlite_autoincrement=True,
)

# hash: of the token, which nobody can read again. role: read, label, manage.
tokens = Table(
    "tokens",
    metadata,
    _id(),
    Column("name", String(100), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("created", Double, nullable=False),
    Column("used", Double),
    sqlite_autoincrement=True,
)

audit = Table(
    "audit",
    metadata,
    _id(),
    Column("at", Double, nullable=False),
    Column("who", String(100), nullable=False),
    Column("action", String(40), nullable=False),
    Column("project", String(16), nullable=False, server_default=""),  # without a reference: it outlives the project
    Column("detail", JSON, nullable=False),
    Index("ix_audit_project_id", "project", "id"),
    sqlite_autoincrement=True,
)

# Secrets of the service, such as the key that signs cookies.
secrets = Table(
    "secrets", metadata, Column("name", String(40), primary_key=True), Column("value", Text, nullable=False)
)

# Which rows name which content: a blob, or the folder of a model ("models/NAME") or monitor ("monitors/NAME"). owner:
# such as "file:3", "batch:3", "answer:5", "plan:2", "project:ID". Content that nobody names may be removed.
uses = Table(
    "uses",
    metadata,
    Column("content", String(100), primary_key=True),
    Column("owner", String(40), primary_key=True),
    _project(),
    Index("ix_uses_owner", "owner"),
    Index("ix_uses_project", "project"),
)

# Content to remove after `due`: written with the deletion of its rows, so that a crash does not forget it. Files of a
# replaced answer are due later, because someone may be reading them.
removals = Table(
    "removals",
    metadata,
    Column("content", String(100), primary_key=True),
    Column("project", String(16), nullable=False),
    Column("due", Double, nullable=False),
    Index("ix_removals_due", "due"),
    Index("ix_removals_project", "project"),
)

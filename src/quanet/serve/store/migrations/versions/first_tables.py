"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("project", sa.String(length=16), server_default="", nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_project_id", "audit", ["project", "id"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("model", sa.String(length=64), server_default="", nullable=False),
        sa.Column("version", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
    )
    op.create_index("ix_projects_created_id", "projects", ["created", "id"], unique=False)
    op.create_table(
        "removals",
        sa.Column("content", sa.String(length=100), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.Column("due", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("content", name=op.f("pk_removals")),
    )
    op.create_index("ix_removals_due", "removals", ["due"], unique=False)
    op.create_index("ix_removals_project", "removals", ["project"], unique=False)
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("used", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
        sa.UniqueConstraint("name", name=op.f("uq_tokens_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alarms",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("date", sa.String(length=40), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("delivered", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_alarms_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alarms")),
        sa.UniqueConstraint("project", "key", name=op.f("uq_alarms_project_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alarms_project_id", "alarms", ["project", "id"], unique=False)
    op.create_table(
        "answers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("about", sa.String(length=200), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("forms", sa.JSON(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_answers_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
        sa.UniqueConstraint("project", "kind", "about", name=op.f("uq_answers_project_kind_about")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_answers_project_id", "answers", ["project", "id"], unique=False)
    op.create_index("ix_answers_project_kind_id", "answers", ["project", "kind", "id"], unique=False)
    op.create_table(
        "files",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("blob", sa.String(length=80), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_files_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_files_project_kind_id", "files", ["project", "kind", "id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("lane", sa.String(length=8), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lost", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", sa.Double(), server_default="0", nullable=False),
        sa.Column("worker", sa.String(length=64), server_default="", nullable=False),
        sa.Column("lease", sa.Double(), server_default="0", nullable=False),
        sa.Column("progress", sa.Double(), server_default="0", nullable=False),
        sa.Column("message", sa.String(length=500), server_default="", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_jobs_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_key_state", "jobs", ["key", "state"], unique=False)
    op.create_index("ix_jobs_project_id", "jobs", ["project", "id"], unique=False)
    op.create_index("ix_jobs_project_state_id", "jobs", ["project", "state", "id"], unique=False)
    op.create_index("ix_jobs_state_id", "jobs", ["state", "id"], unique=False)
    op.create_index("ix_jobs_state_lane_id", "jobs", ["state", "lane", "id"], unique=False)
    op.create_index(
        "uq_jobs_waiting",
        "jobs",
        ["key"],
        unique=True,
        sqlite_where=sa.text("state = 'queued' AND key <> ''"),
        postgresql_where=sa.text("state = 'queued' AND key <> ''"),
    )
    op.create_table(
        "uses",
        sa.Column("content", sa.String(length=100), nullable=False),
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_uses_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("content", "owner", name=op.f("pk_uses")),
    )
    op.create_index("ix_uses_owner", "uses", ["owner"], unique=False)
    op.create_index("ix_uses_project", "uses", ["project"], unique=False)
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.Column("file", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("rows", sa.Integer(), server_default="0", nullable=False),
        sa.Column("totals", sa.JSON(), nullable=True),
        sa.Column("state", sa.String(length=80), server_default="", nullable=False),
        sa.Column("model", sa.String(length=64), server_default="", nullable=False),
        sa.Column("done", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["file"], ["files.id"], name=op.f("fk_batches_file"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_batches_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("project", "done", name=op.f("uq_batches_project_done")),
        sa.UniqueConstraint("project", "key", name=op.f("uq_batches_project_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batches_file", "batches", ["file"], unique=False)
    op.create_index("ix_batches_project_id", "batches", ["project", "id"], unique=False)
    op.create_index("ix_batches_project_status_id", "batches", ["project", "status", "id"], unique=False)
    op.create_table(
        "label_plans",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=16), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("sheet", sa.String(length=80), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["batch"], ["batches.id"], name=op.f("fk_label_plans_batch"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_label_plans_project"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label_plans")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_label_plans_batch", "label_plans", ["batch"], unique=False)
    op.create_index("ix_label_plans_project", "label_plans", ["project"], unique=False)
    op.create_table(
        "label_items",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("plan", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("by", sa.String(length=100), server_default="", nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("skipped", sa.Integer(), server_default="0", nullable=False),
        sa.Column("holder", sa.String(length=100), server_default="", nullable=False),
        sa.Column("lease", sa.Double(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["plan"], ["label_plans.id"], name=op.f("fk_label_items_plan"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label_items")),
        sa.UniqueConstraint("plan", "position", name=op.f("uq_label_items_plan_position")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_label_items_plan_by_at", "label_items", ["plan", "by", "at"], unique=False)
    op.create_index("ix_label_items_plan_holder", "label_items", ["plan", "holder"], unique=False)

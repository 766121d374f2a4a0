"""Settings of a project, what happened in it, and its deletion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from quanet.errors import QuanetError
from quanet.serve.store.audit_log import list_audit
from quanet.serve.store.projects import ProjectRow, project
from quanet.serve.web.intake import change_project, remove_project
from quanet.serve.web.pages.page_access import Fields, Manager, Reader, go, router, store_of
from quanet.serve.web.pages.rendering import manages, show_project
from quanet.serve.work.webhook_secrets import webhook_secret

LEVELS = (("", "95 %"), ("0.8", "80 %"), ("0.9", "90 %"), ("0.99", "99 %"))
LIMITS = (
    ("rows", "Rows per file", "A larger file is refused. Empty: the limit of the service."),
    ("seconds", "Seconds per job", "Longer work is stopped. Empty: the limit of the service."),
    ("batches", "Batches", "How many the project keeps. Empty: the limit of the service."),
)


@dataclass(frozen=True, slots=True)
class SettingField:
    """A field of the form."""

    name: str
    title: str
    hint: str
    value: str = ""
    type: str = "text"
    required: bool = False
    choices: tuple[tuple[str, str], ...] = ()


@router.get("/projects/{project_id}/settings")
def settings(request: Request, _: Reader, project_id: str, saved: bool = False) -> Response:
    """The settings."""
    return show_settings(request, project_id, saved=saved)


def show_settings(
    request: Request,
    project_id: str,
    *,
    saved: bool = False,
    given: Mapping[str, str] | None = None,
    wrongs: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """The settings, with what is wrong next to its field."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        return show_project(
            request,
            known,
            "settings.html",
            "Settings",
            fields=_fields(known, given or {}),
            log=list_audit(connection, project_id, limit=10),
            saved=saved,
            secret=webhook_secret(store, project_id) if known.settings.get("webhook") and manages(request) else "",
            wrongs=wrongs or {},
            status=status,
        )


def _fields(known: ProjectRow, given: Mapping[str, str]) -> list[SettingField]:
    now = known.settings
    limits = now.get("limits") or {}
    level = f"{now['level']:g}" if now.get("level") else ""
    fields = [
        SettingField("name", "Name", "Only shown.", known.name, required=True),
        SettingField("show", "Class to show first", "What sentences and charts are about.", now.get("show") or ""),
        SettingField(
            "by", "Groups", "Columns, separated by commas, such as product, date:month.", ", ".join(now.get("by") or [])
        ),
        SettingField(
            "level", "Level of intervals", "How often intervals contain the true share.", level, choices=_levels(level)
        ),
        SettingField(
            "webhook", "Webhook", "Every change is sent to this address once, signed.", now.get("webhook") or "", "url"
        ),
        *(SettingField(name, title, hint, str(limits.get(name) or ""), "number") for name, title, hint in LIMITS),
    ]
    return [_replaced(field, given.get(field.name)) for field in fields]


def _levels(level: str) -> tuple[tuple[str, str], ...]:
    known = level in {value for value, _ in LEVELS}
    return LEVELS if known else (*LEVELS, (level, f"{100 * float(level):g} %"))


def _replaced(field: SettingField, value: str | None) -> SettingField:
    if value is None:
        return field
    return SettingField(field.name, field.title, field.hint, value, field.type, field.required, field.choices)


@router.post("/projects/{project_id}/settings")
def save(request: Request, visitor: Manager, project_id: str, fields: Fields) -> Response:
    """Save settings."""
    version = fields.get("version", "")
    try:
        changes = _changes(fields)
        name, at = fields.get("name"), int(version) if version.isascii() and version.isdigit() else None
        change_project(store_of(request), visitor, project_id, changes, name=name, version=at)
    except QuanetError as error:
        field = (getattr(error, "field", None) or "").rpartition(".")[2]
        status = getattr(error, "status_code", 422)
        return show_settings(request, project_id, given=fields, wrongs={field: str(error)}, status=status)
    return go(f"/projects/{project_id}/settings?saved=true")


def _changes(fields: Mapping[str, str]) -> dict[str, Any]:
    limits = {name: fields[name] or None for name, _, _ in LIMITS if name in fields}
    return {
        "show": fields.get("show") or None,
        "by": [one.strip() for one in fields.get("by", "").split(",") if one.strip()],
        "level": fields.get("level") or None,
        "webhook": fields.get("webhook") or None,
        "limits": limits or None,
    }


@router.post("/projects/{project_id}/delete")
def delete_all(request: Request, visitor: Manager, project_id: str, fields: Fields) -> Response:
    """Delete the project, once its name was typed."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
    if " ".join(fields.get("confirm", "").split()) != " ".join(known.name.split()):
        wrongs = {"confirm": "This is not the name of the project. Nothing was deleted."}
        return show_settings(request, project_id, wrongs=wrongs, status=422)
    remove_project(store, visitor, project_id)
    return go("/")

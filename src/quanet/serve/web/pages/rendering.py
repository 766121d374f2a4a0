"""Templates: every page gets the visitor, the token of its forms and the version."""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from quanet import __version__
from quanet.serve.store.alarms import list_alarms
from quanet.serve.store.answers import AnswerRow
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.projects import ProjectRow
from quanet.serve.web.pages import shown_values
from quanet.serve.web.sessions import csrf_token

TEMPLATES = Path(__file__).parents[1] / "templates"
TABS = (
    ("", "Overview"),
    ("/batches", "Batches"),
    ("/monitor", "Changes"),
    ("/model", "Model"),
    ("/settings", "Settings"),
)
LARGEST_FRAGMENT = 120_000  # bytes; above, a page links to the report, so that it stays small
FILTERS = (
    "class_name",
    "percent",
    "between",
    "points",
    "place",
    "number",
    "moment",
    "day",
    "short",
    "softened",
    "doing",
)
BUSY = ("queued", "running")


@cache
def environment() -> Environment:
    """The environment of all templates."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update({name: getattr(shown_values, name) for name in FILTERS})
    found.filters["position"] = lambda classes, project: shown_values.class_position(
        classes, project.settings.get("show")
    )
    # The worker has written it from a `Summary`, whose renderer escapes every text.
    found.filters["trusted_fragment"] = Markup
    found.globals.update(version=__version__, tabs=TABS)
    return found


def manages(request: Request) -> bool:
    """Whether the visitor may change the project."""
    visitor = getattr(request.state, "visitor", None)
    return visitor is not None and visitor.role == "manage"


def show(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page."""
    visitor = getattr(request.state, "visitor", None)
    role = visitor.role if visitor else ""
    content = (
        environment()
        .get_template(template)
        .render(
            **{"reload": False, "error": "", "wrongs": {}} | values,
            visitor=visitor,
            signed_in=bool(visitor) and request.app.state.settings.sign_in,
            csrf=csrf_token(request),
            can_manage=manages(request),
            can_label=role in {"manage", "label"},
        )
    )
    return HTMLResponse(content, status)


def show_project(request: Request, project: ProjectRow, template: str, tab: str, **values: Any) -> Response:
    """A page of a project, with its tabs."""
    with request.app.state.store.read() as connection:
        count = len(list_alarms(connection, project.id, limit=9))
    values = {"heading": tab} | values
    return show(request, template, project=project, tab=tab, alarm_count=count, **values)


def fragment_of(
    store: ServiceStore, found: AnswerRow | None, *, cautions: bool = True, charts: bool = True
) -> tuple[str, str]:
    """The part of an answer that pages show: what comes first (cautions and charts, if wanted), and the rest.

    Both are empty if there is no answer, or if it is too large for a page; then the report has them.
    """
    blob = found.forms.get("fragment") if found else None
    path = store.blobs.path(blob) if blob else None
    if path is None or not path.exists() or path.stat().st_size > LARGEST_FRAGMENT:
        return "", ""
    before, *sections = (f"<section>{part}" for part in path.read_text(encoding="utf-8").split("<section>"))
    first = [before.removeprefix("<section>")] if cautions else []
    first += [part for part in sections if charts and "<figure" in part]
    others = [] if cautions else [before.removeprefix("<section>")]
    return "".join(first), "".join([*others, *(part for part in sections if part not in first)])


TITLES = {
    401: "Sign in first",
    403: "Not allowed",
    404: "Not here",
    409: "Somebody was faster",
    413: "Too large",
    422: "That cannot be used",
    429: "Too many requests",
    500: "Something broke",
    503: "Not ready",
    507: "The disk is full",
}


def show_error(request: Request, status: int, sentence: str) -> Response:
    """What a browser sees instead of a page that cannot be shown."""
    title = TITLES.get(status) or HTTPStatus(status).phrase
    parts = request.url.path.split("/")
    back = "/".join(parts[:3]) if status != 404 and parts[1:2] == ["projects"] and len(parts) > 3 else "/"
    return show(request, "error.html", status=status, code=status, title=title, sentence=sentence, back=back)

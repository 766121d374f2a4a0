"""The difference between two groups or periods, asked for with two clicks."""

import json
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from quanet.serve.store.answers import answer
from quanet.serve.store.jobs import job
from quanet.serve.store.projects import project
from quanet.serve.web.api_models import MAX_ID
from quanet.serve.web.error_answers import Refused
from quanet.serve.web.intake import ask_difference, difference_about
from quanet.serve.web.pages.page_access import Fields, Manager, Reader, difference_address, go, router, store_of
from quanet.serve.web.pages.rendering import BUSY, fragment_of, show_project
from quanet.serve.web.pages.shown_values import group_name

Values = Annotated[list[str], Query(max_length=5)]


@router.post("/projects/{project_id}/difference")
def compare(request: Request, visitor: Manager, project_id: str, fields: Fields) -> Response:
    """Ask for a difference. Of two periods, the earlier one comes first."""
    before, after = (_values(fields.get(name, "")) for name in ("before", "after"))
    store = store_of(request)
    with store.read() as connection:
        overview = answer(connection, project_id, "overview", "project")
    order = [[str(value) for value in one["group"]] for one in (overview.data.get("groups") or [])] if overview else []
    if before in order and after in order and order.index(after) < order.index(before):
        before, after = after, before
    asked = ask_difference(store, visitor, project_id, before, after)
    return go(difference_address(project_id, before, after, asked.id))


def _values(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Refused(422, "Choose two groups on the overview.")
    return found


@router.get("/projects/{project_id}/difference")
def difference(
    request: Request,
    _: Reader,
    project_id: str,
    before: Values = [],  # noqa: B006
    after: Values = [],  # noqa: B006
    job_id: Annotated[int | None, Query(alias="job", ge=1, le=MAX_ID)] = None,
) -> Response:
    """A difference, or that it is being computed."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        asked = job(connection, job_id) if job_id else None
        found = answer(connection, project_id, "difference", difference_about(before, after))
        busy = asked is not None and asked.project == project_id and asked.state in BUSY
        address = difference_address(project_id, before, after)
        return show_project(
            request,
            known,
            "difference.html",
            "Overview",
            heading="Difference",
            before=group_name(before),
            after=group_name(after),
            answer=None if busy else found,
            content=fragment_of(store, None if busy else found),
            job=asked if asked and asked.project == project_id else None,
            query=address.partition("?")[2],
            reload=busy,
        )

"""All pages, and forms that are shown again with what is wrong."""

import re

from fastapi import Request
from fastapi.responses import Response

from quanet.serve.web.pages import (
    batch_pages,
    difference_page,
    job_page,
    label_page,
    model_page,
    monitor_page,
    project_pages,
    settings_page,
    setup_page,
    sign_in_page,
)
from quanet.serve.web.pages.page_access import router
from quanet.serve.web.pages.rendering import show_error

__all__ = ["error_page", "router"]
PARTS = (batch_pages, difference_page, job_page, label_page, model_page, monitor_page, settings_page, sign_in_page)

_UPLOAD = re.compile(r"/projects(?:/([a-z2-7]{10})/(training|batches))?")


def error_page(request: Request, status: int, sentence: str) -> Response:
    """What a browser sees when something is wrong: the form again if it was about a file, else a page of its own."""
    place = _UPLOAD.fullmatch(request.url.path)
    if request.method == "POST" and place and status in {400, 409, 413, 415, 422, 507}:
        project_id, kind = place.groups()
        if project_id is None:
            return project_pages.show_home(request, error=sentence, status=status)
        shown = setup_page.show_setup if kind == "training" else project_pages.show_overview
        return shown(request, project_id, error=sentence, status=status)
    return show_error(request, status, sentence)

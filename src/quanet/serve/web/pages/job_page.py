"""Progress of a job, at an address that stays."""

from typing import Literal

from fastapi import Request
from fastapi.responses import Response

from quanet.serve.store.jobs import job
from quanet.serve.store.projects import project
from quanet.serve.web.pages.page_access import Id, Reader, result_address, router, store_of
from quanet.serve.web.pages.rendering import BUSY, show


@router.get("/jobs/{job_id:int}")
def progress_page(request: Request, _: Reader, job_id: Id) -> Response:
    """How far a job is."""
    with store_of(request).read() as connection:
        known = job(connection, job_id)
        of = project(connection, known.project) if known.project else None
    busy = known.state in BUSY
    return show(request, "job.html", job=known, project=of, next=result_address(known), reload=busy)


@router.get("/jobs/{job_id:int}/part")
def progress_part(
    request: Request, _: Reader, job_id: Id, then: Literal["refresh", "onward", "offer"] = "refresh"
) -> Response:
    """The part of a page that shows how far a job is.

    At the end, the page is loaded again, or the page of the result; or it is offered, so that somebody who reads is not
    disturbed.
    """
    with store_of(request).read() as connection:
        known = job(connection, job_id)
    if known.state in BUSY:
        return show(request, "job_part.html", job=known, then=then)
    if known.state == "done" and then == "onward":
        return Response(headers={"HX-Redirect": result_address(known)})
    if known.state == "done" and then == "offer":
        offered = show(request, "job_part.html", job=known, then=then)
        offered.headers["HX-Trigger"] = "fresh"  # a script loads the page again if nobody is in the middle of something
        return offered
    return Response(headers={"HX-Refresh": "true"})

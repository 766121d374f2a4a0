"""Changes: what the monitor has found, and who is told."""

from fastapi import Request
from fastapi.responses import Response

from quanet.serve.store.alarms import list_alarms
from quanet.serve.store.answers import answer
from quanet.serve.store.projects import project
from quanet.serve.web.pages.page_access import OlderThan, Reader, router, store_of
from quanet.serve.web.pages.project_pages import running_jobs
from quanet.serve.web.pages.rendering import fragment_of, show_project

ALARMS = 20  # on a page


@router.get("/projects/{project_id}/monitor")
def changes(request: Request, _: Reader, project_id: str, before: OlderThan = None) -> Response:
    """Changes with their dates and levels."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        found = answer(connection, project_id, "monitor", "project")
        alarms = list_alarms(connection, project_id, before=before, limit=ALARMS + 1)
        jobs = [job for job in running_jobs(connection, project_id) if job.kind == "monitor"]
        return show_project(
            request,
            known,
            "monitor.html",
            "Changes",
            answer=found,
            alarms=alarms[:ALARMS],
            more=len(alarms) > ALARMS,
            content=fragment_of(store, found, cautions=False),  # they are the alarms
            jobs=jobs,
            webhook=known.settings.get("webhook") or "",
            reload=bool(jobs),
        )

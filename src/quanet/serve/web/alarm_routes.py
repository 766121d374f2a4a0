"""Alarms of the monitor: through the API, and as an Atom feed."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from quanet.serve.store.alarms import AlarmRow, list_alarms
from quanet.serve.store.projects import ProjectRow, project
from quanet.serve.web.access import Visitor, require
from quanet.serve.web.api_answers import Settings, Stored, next_of
from quanet.serve.web.api_models import AlarmAnswer, AlarmList
from quanet.serve.web.api_requests import Before, Limit, ProjectId
from quanet.serve.web.error_answers import ERRORS
from quanet.serve.web.file_titles import CONTROL

router = APIRouter(responses=ERRORS, tags=["alarms"])
Reader = Annotated[Visitor, Depends(require("read"))]
ATOM = "http://www.w3.org/2005/Atom"


@router.get("/api/projects/{project_id}/alarms")
@router.get("/projects/{project_id}/alarms.json", include_in_schema=False)
def get_alarms(_: Reader, store: Stored, project_id: ProjectId, before: Before = None, limit: Limit = 50) -> AlarmList:
    """Changes that the monitor has found, newest first."""
    with store.read() as connection:
        project(connection, project_id)
        rows = list_alarms(connection, project_id, before, limit)
    shown = [AlarmAnswer.model_validate(row, from_attributes=True) for row in rows]
    return AlarmList(alarms=shown, next=next_of(rows, limit))


@router.get("/projects/{project_id}/feed.atom", response_class=Response)
def get_feed(_: Reader, store: Stored, settings: Settings, project_id: ProjectId) -> Response:
    """The alarms as an Atom feed."""
    with store.read() as connection:
        known = project(connection, project_id)
        alarms = list_alarms(connection, project_id, None, 50)
    headers = {"cache-control": "private, max-age=60"}
    return Response(atom_feed(known, alarms, settings.address), media_type="application/atom+xml", headers=headers)


def atom_feed(known: ProjectRow, alarms: list[AlarmRow], home: str) -> bytes:
    """An Atom feed (RFC 4287) of alarms."""
    page = f"{home}/projects/{known.id}"
    feed = ET.Element("feed", xmlns=ATOM)
    _add(feed, "id", f"urn:quanet:{known.id}")
    _add(feed, "title", f"{known.name}: changes")
    _add(feed, "updated", _time(alarms[0].created if alarms else known.created))
    ET.SubElement(feed, "link", rel="self", href=f"{page}/feed.atom")
    ET.SubElement(feed, "link", href=f"{page}/monitor")
    _add(ET.SubElement(feed, "author"), "name", "quanet")
    for alarm in alarms:
        entry = ET.SubElement(feed, "entry")
        _add(entry, "id", f"urn:quanet:{known.id}:alarm:{alarm.id}")
        _add(entry, "title", f"Change on {alarm.date}")
        _add(entry, "updated", _time(alarm.created))
        _add(entry, "content", alarm.sentence, type="text")
        ET.SubElement(entry, "link", href=f"{page}/monitor")
    return ET.tostring(feed, encoding="utf-8", xml_declaration=True)


def _add(parent: ET.Element, name: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, name, attributes).text = CONTROL.sub("", text)  # XML accepts no control characters


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

"""Labelling: one text per screen, keys, several people at once, and how the interval narrows."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from quanet.serve.store.answers import AnswerRow, answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.jobs import job
from quanet.serve.store.label_queue import LabelPlanRow, plans
from quanet.serve.store.projects import ProjectRow, project
from quanet.serve.store.store_errors import LeaseLost
from quanet.serve.store.uploads import BatchRow, batch
from quanet.serve.web.access import Visitor
from quanet.serve.web.api_models import MAX_ID
from quanet.serve.web.error_answers import Refused
from quanet.serve.web.labelling import next_to_label, put_label, take_back_label
from quanet.serve.web.pages.group_lines import scale_of
from quanet.serve.web.pages.page_access import Fields, Id, Labeller, Reader, go, router, store_of
from quanet.serve.web.pages.rendering import BUSY, show, show_project
from quanet.serve.web.pages.shown_values import class_position, number, points


@router.get("/projects/{project_id}/batches/{batch_id:int}/label")
def label(
    request: Request,
    visitor: Labeller,
    project_id: str,
    batch_id: Id,
    job_id: Annotated[int | None, Query(alias="job", ge=1, le=MAX_ID)] = None,
) -> Response:
    """The next text to label, or that texts are being chosen."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        row = batch(connection, project_id, batch_id)
        planned = bool(plans(connection, batch_id))
        planning = job(connection, job_id) if job_id and not planned else None
    if planned:
        values = _desk(request, visitor, known, row)
        return show_project(request, known, "label.html", "Batches", heading="Label", **values)
    if planning is None or planning.project != project_id or planning.state == "done":
        return go(f"/projects/{project_id}/batches/{batch_id}")
    values = {"batch": row, "job": planning, "address": f"/projects/{project_id}/batches/{batch_id}"}
    values |= {"heading": "Label", "reload": planning.state in BUSY}
    return show_project(request, known, "label_wait.html", "Batches", **values)


@router.post("/projects/{project_id}/batches/{batch_id:int}/label")
def give(request: Request, visitor: Labeller, project_id: str, batch_id: Id, fields: Fields) -> Response:
    """Label, skip or undo; then the next text."""
    store, error = store_of(request), ""
    item = fields.get("item", "")
    item_id = int(item) if item.isascii() and item.isdigit() and len(item) < 10 else 0
    try:
        if fields.get("do") == "undo":
            take_back_label(store, visitor, project_id, batch_id)
        else:
            label = None if fields.get("do") == "skip" else fields.get("label", "")
            put_label(store, visitor, project_id, batch_id, item_id, label)
    except (LeaseLost, Refused) as refused:  # such as an item that somebody else has labelled: the next one follows
        error = str(refused)
    if "hx-request" not in request.headers and not error:
        return go(f"/projects/{project_id}/batches/{batch_id}/label")
    with store.read() as connection:
        known = project(connection, project_id)
        row = batch(connection, project_id, batch_id)
    values = _desk(request, visitor, known, row) | {"error": error}
    if "hx-request" in request.headers:
        return show(request, "label_desk.html", project=known, **values)
    return show_project(request, known, "label.html", "Batches", heading="Label", **values)


@router.get("/projects/{project_id}/batches/{batch_id:int}/label/band")
def band_part(request: Request, _: Reader, project_id: str, batch_id: Id) -> Response:
    """How far the interval has narrowed."""
    with store_of(request).read() as connection:
        known = project(connection, project_id)
        batch(connection, project_id, batch_id)
        plan = next(iter(plans(connection, batch_id)), None)
        band = _band(connection, known, plan) if plan else None
    address = f"/projects/{project_id}/batches/{batch_id}"
    return show(request, "label_band.html", band=band, address=address) if band else Response()


def _desk(request: Request, visitor: Visitor, known: ProjectRow, row: BatchRow) -> dict[str, Any]:
    """What the desk shows."""
    store = store_of(request)
    state = next_to_label(store, visitor, known.id, row.id)
    with store.read() as connection:
        band = _band(connection, known, state.plan)
    return {
        "batch": row,
        "item": state.item,
        "progress": state.progress,
        "waiting": state.item is None and state.progress.left > 0,
        "classes": state.classes,
        "promise": promise_of(state.plan.facts),
        "band": band,
        "address": f"/projects/{known.id}/batches/{row.id}",
    }


def promise_of(facts: Mapping[str, Any]) -> str:
    """What a plan promises; widths in its facts are in points.

    Examples
    --------
    >>> promise_of({"rows": 40, "before": 9.0, "after": 5.0})
    '40 labels narrow the interval from 9.0 to 5.0 points.'
    >>> promise_of({"rows": 40, "before": 9.0, "after": 12.0, "numbers": [100, 200], "expected": [[0.1, 0], [0.07, 0]]})
    '40 labels test the estimate. About 200 narrow the interval from 9.0 to 7.0 points.'
    """
    rows, before, after = number(facts.get("rows") or 0), facts.get("before") or 0.0, facts.get("after") or 0.0
    if 0 < after < before and f"{before:.1f}" != f"{after:.1f}":
        return f"{rows} labels narrow the interval from {before:.1f} to {after:.1f} points."
    expected = zip(facts.get("numbers") or [], facts.get("expected") or [], strict=False)
    more = next(((n, 100 * widths[0]) for n, widths in expected if 100 * widths[0] < before), None)
    if more is None:
        return f"{rows} labels test whether the estimate holds."
    widths = f"{before:.1f} to {more[1]:.1f} points"
    return f"{rows} labels test the estimate. About {number(more[0])} narrow the interval from {widths}."


def _band(connection: Connection, known: ProjectRow, plan: LabelPlanRow) -> dict[str, Any] | None:
    """The interval without labels, and the one with the labels so far."""
    own = answer(connection, known.id, "batch", f"batch:{plan.batch}")
    if own is None:
        return None
    refined = answer(connection, known.id, "refined", f"batch:{plan.batch}")
    classes = own.data["classes"]
    c = class_position(classes, plan.facts.get("class") or known.settings.get("show"))
    first = _ends(own, c)
    then = _ends(refined, c) if refined else None
    low, high = scale_of(*_around([first, then] if then else [first]))
    before = first["upper"] - first["lower"]
    sentence = f"The interval is {points(before)} points wide. The first labels change it from the tenth on."
    if refined is not None and then is not None:
        now, count = then["upper"] - then["lower"], number(refined.data.get("labels") or 0)
        sentence = f"{count} labels have narrowed the interval from {points(before)} to {points(now)} points."
        if now >= before or points(now) == points(before):
            sentence = (
                f"With {count} labels the interval is {points(now)} points wide. It relies on your labels more than on "
                "the model, and narrows with every label."
            )
    return {"name": str(classes[c]), **first, "refined": then, "low": low, "high": high, "sentence": sentence}


def _ends(found: AnswerRow, c: int) -> dict[str, float]:
    total = found.data["total"]
    return {name: float(total[name][c]) for name in ("estimate", "lower", "upper")}


def _around(bands: list[dict[str, float]]) -> tuple[float, float]:
    return min(one["lower"] for one in bands), max(one["upper"] for one in bands)

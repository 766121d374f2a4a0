"""Labelling: the same functions for the API and the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quanet.errors import nearest
from quanet.serve.store.audit_log import record
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import enqueue
from quanet.serve.store.label_queue import (
    LabelItemRow,
    LabelPlanRow,
    LabelProgress,
    give_label,
    item,
    labels,
    next_item,
    plans,
    progress,
    skip_item,
    undo,
)
from quanet.serve.store.uploads import batch
from quanet.serve.web.access import Visitor
from quanet.serve.web.error_answers import Refused
from quanet.serve.work.label_files import filled_sheet


@dataclass(frozen=True, slots=True)
class LabelState:
    """What a person sees: the next item (None: all is done), the classes, and how far the plan is."""

    plan: LabelPlanRow
    item: LabelItemRow | None
    classes: list[str]
    progress: LabelProgress


def last_plan(connection: Any, project_id: str, batch_id: int) -> LabelPlanRow:
    """The plan of a batch that people label; else Refused."""
    batch(connection, project_id, batch_id)
    found = plans(connection, batch_id)
    if not found:
        raise Refused(409, f"Batch {batch_id} has no plan of rows to label yet. Ask for one first.")
    return found[0]


def next_to_label(store: ServiceStore, visitor: Visitor, project_id: str, batch_id: int) -> LabelState:
    """The next item for a visitor, who holds it for some minutes."""
    with store.write() as connection:
        plan = last_plan(connection, project_id, batch_id)
        found = next_item(connection, plan.id, visitor.key)
        return LabelState(plan, found, _classes(connection, plan), progress(connection, plan.id))


def put_label(
    store: ServiceStore, visitor: Visitor, project_id: str, batch_id: int, item_id: int, label: str | None
) -> None:
    """Label an item, or skip it (None). The refined answer follows."""
    with store.write() as connection:
        plan = last_plan(connection, project_id, batch_id)
        if item(connection, item_id).plan != plan.id:
            raise Refused(409, "This item belongs to another plan. Go on with the next one.", "item")
        if label is None:
            skip_item(connection, item_id, visitor.key)
        else:
            classes = _classes(connection, plan)
            if label not in classes:
                raise Refused(422, f"Unknown class {label[:80]!r}. {nearest(label[:80], classes)}", "label")
            give_label(connection, item_id, visitor.key, label)
        _refine(connection, visitor, plan, {"item": item_id, "label": label})


def take_back_label(store: ServiceStore, visitor: Visitor, project_id: str, batch_id: int) -> None:
    """Take back the last label or skip of a visitor."""
    with store.write() as connection:
        plan = last_plan(connection, project_id, batch_id)
        taken = undo(connection, plan.id, visitor.key)
        if taken is None:
            raise Refused(409, "There is nothing to undo.")
        _refine(connection, visitor, plan, {"item": taken.id, "undone": True})


def _refine(connection: Any, visitor: Visitor, plan: LabelPlanRow, detail: Mapping[str, object]) -> None:
    record(connection, visitor.name, "label", plan.project, {"batch": plan.batch, **detail})
    enqueue(connection, "refine", plan.project, {"batch": plan.batch}, key=f"refine:{plan.batch}")


def _classes(connection: Any, plan: LabelPlanRow) -> list[str]:
    known = plan.facts.get("classes") or (batch(connection, plan.project, plan.batch).totals or {}).get("classes") or []
    return [str(name) for name in known]


def exported_labels(store: ServiceStore, project_id: str, batch_id: int) -> bytes:
    """The sheet of a plan with the labels given so far, which `quanet refine` reads."""
    with store.read() as connection:
        plan = last_plan(connection, project_id, batch_id)
        given = labels(connection, plan.id)
    return filled_sheet(store.blobs.path(plan.sheet).read_bytes(), given, str(plan.facts["label"]))

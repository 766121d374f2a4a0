"""The queue of rows to label: several people at once, no row twice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, case, func, insert, select, update

from quanet.serve.store.rows import added, found, made, now, storable, use
from quanet.serve.store.schema import label_items, label_plans
from quanet.serve.store.store_errors import LeaseLost

HELD = 300.0  # seconds for which an item is one person's
_OPEN = and_(label_items.c.label.is_(None), label_items.c.skipped == 0)


@dataclass(frozen=True)
class LabelPlanRow:
    """A plan of rows to label in a batch. `sheet` is the blob of the sheet of `quanet label plan`."""

    id: int
    project: str
    batch: int
    sheet: str
    facts: Mapping[str, Any]
    created: float


@dataclass(frozen=True)
class LabelItemRow:
    """A row to label. `position` is its row in the sheet; `by` has labelled or skipped it; `holder` sees it now."""

    id: int
    plan: int
    position: int
    text: str
    detail: Mapping[str, Any]
    label: str | None
    by: str
    at: float | None
    skipped: int
    holder: str
    lease: float


@dataclass(frozen=True)
class LabelProgress:
    """How many items of a plan are labelled, skipped and left."""

    labelled: int
    skipped: int
    left: int


def add_plan(
    connection: Connection,
    project: str,
    batch: int,
    sheet: str,
    facts: Mapping[str, Any],
    items: Iterable[tuple[int, str, Mapping[str, Any]]],
) -> LabelPlanRow:
    """Store a plan. `items` are (position, text, detail), in the order in which people see them by position."""
    values = {"project": project, "batch": batch, "sheet": sheet, "facts": dict(facts), "created": now()}
    id_ = added(connection, label_plans, values)
    use(connection, project, f"plan:{id_}", [sheet])
    rows = [
        {"plan": id_, "position": position, "text": storable(text), "detail": dict(detail)}
        for position, text, detail in items
    ]
    if rows:
        connection.execute(insert(label_items), rows)
    return plan(connection, id_)


def plan(connection: Connection, id_: int) -> LabelPlanRow:
    """One plan. Raises `NotFound` if it does not exist."""
    row = connection.execute(select(label_plans).where(label_plans.c.id == id_)).first()
    return found(LabelPlanRow, row, f"Label plan {id_}")


def plans(connection: Connection, batch: int) -> list[LabelPlanRow]:
    """The plans of a batch, newest first."""
    query = select(label_plans).where(label_plans.c.batch == batch).order_by(label_plans.c.id.desc())
    return [made(LabelPlanRow, row) for row in connection.execute(query)]


def item(connection: Connection, id_: int) -> LabelItemRow:
    """One item. Raises `NotFound` if it does not exist."""
    row = connection.execute(select(label_items).where(label_items.c.id == id_)).first()
    return found(LabelItemRow, row, f"Item {id_}")


def next_item(connection: Connection, plan_id: int, who: str, lease: float = HELD) -> LabelItemRow | None:
    """The item that a person labels next: the one that they hold, or the first that nobody holds. None: all is done."""
    who = storable(who, 100)
    moment = now()
    mine = and_(label_items.c.holder == who, label_items.c.lease > moment)
    query = (
        select(label_items.c.id)
        .where(label_items.c.plan == plan_id, _OPEN, mine | (label_items.c.lease <= moment))
        .order_by(case((mine, 0), else_=1), label_items.c.position)
        .limit(1)
    )
    id_ = connection.scalar(query)
    return None if id_ is None else _set(connection, id_, {"holder": who, "lease": moment + lease})


def give_label(connection: Connection, item_id: int, who: str, label: str) -> LabelItemRow:
    """Label an item. The same label by the same person again changes nothing, so that a request can be repeated.

    Raises `LeaseLost` if someone else holds it, or if it was labelled or skipped.
    """
    who, label = storable(who, 100), storable(label)
    row = item(connection, item_id)
    if row.label == label and row.by == who:
        return row
    _check_open(row, who)
    return _set(connection, item_id, {"label": label, "by": who, "at": now(), "holder": "", "lease": 0.0})


def skip_item(connection: Connection, item_id: int, who: str) -> LabelItemRow:
    """Skip an item: nobody sees it again, unless the skipping is undone. Raises `LeaseLost` as `give_label`."""
    who = storable(who, 100)
    row = item(connection, item_id)
    if row.skipped and row.by == who:
        return row
    _check_open(row, who)
    return _set(connection, item_id, {"skipped": 1, "by": who, "at": now(), "holder": "", "lease": 0.0})


def undo(connection: Connection, plan_id: int, who: str, lease: float = HELD) -> LabelItemRow | None:
    """Take back the last label or skip of a person, who holds the item again. None: there is nothing to undo."""
    who = storable(who, 100)
    mine = and_(label_items.c.plan == plan_id, label_items.c.by == who)
    last = select(label_items.c.id).where(mine).order_by(label_items.c.at.desc(), label_items.c.id.desc()).limit(1)
    id_ = connection.scalar(last)
    if id_ is None:
        return None
    shown = and_(label_items.c.plan == plan_id, label_items.c.holder == who)
    connection.execute(update(label_items).where(shown).values(holder="", lease=0.0))
    back = {"label": None, "skipped": 0, "by": "", "at": None, "holder": who, "lease": now() + lease}
    return _set(connection, id_, back)


def progress(connection: Connection, plan_id: int) -> LabelProgress:
    """How far a plan is."""
    query = select(func.count(), func.count(label_items.c.label), func.sum(label_items.c.skipped))
    total, labelled, skipped = connection.execute(query.where(label_items.c.plan == plan_id)).one()
    return LabelProgress(labelled, skipped or 0, total - labelled - (skipped or 0))


def labels(connection: Connection, plan_id: int) -> dict[int, str]:
    """The labels by the position of their row in the sheet."""
    given = and_(label_items.c.plan == plan_id, label_items.c.label.is_not(None))
    query = select(label_items.c.position, label_items.c.label).where(given).order_by(label_items.c.position)
    return dict(connection.execute(query).all())


def _check_open(row: LabelItemRow, who: str) -> None:
    if row.label is not None or row.skipped:
        done = "labelled" if row.label is not None else "skipped"
        raise LeaseLost(f"This item was already {done} by {row.by}. Go on with the next one.")
    if row.holder not in ("", who) and row.lease > now():
        raise LeaseLost(f"{row.holder} is labelling this item. Go on with the next one.")


def _set(connection: Connection, id_: int, values: Mapping[str, Any]) -> LabelItemRow:
    connection.execute(update(label_items).where(label_items.c.id == id_).values(**values))
    return item(connection, id_)

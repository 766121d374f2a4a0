"""The job "plan": which rows of a batch people should label, and how much the interval would narrow."""

from typing import Any

from quanet.corpus.model_inputs import find_inputs
from quanet.corpus.reading import read_source
from quanet.data.streams import TableSource
from quanet.files import as_utf8, json_ready
from quanet.report.label import summarize_plan
from quanet.serve.store.answers import answer, put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.label_queue import add_plan
from quanet.serve.work.job_context import Finish, JobContext, JobRefused
from quanet.serve.work.label_files import SHEET
from quanet.serve.work.predicting import batch_of
from quanet.serve.work.read_options import MODEL, ReadOptions
from quanet.serve.work.render_answer import stored_forms
from quanet.workflows.label import PlannedLabels, plan_source
from quanet.workflows.label_sheet import PLAN

NUMBER = 40  # labels, if no number is given


def perform(context: JobContext) -> Finish:
    """Plan the labels of a batch; its rows become items of the label queue."""
    row, options = context.project()
    one, upload = batch_of(context, row.id)
    if not row.model:
        raise JobRefused("The project has no model yet. Train one first.")
    number = int(context.job.payload.get("number") or NUMBER)
    model = context.model(row, options)
    shown = list(dict.fromkeys(key.column for key in options.keys))
    with context.named([upload]) as paths:
        source = TableSource(paths, **options.table_options)
        others = [*shown, *([options.weight] if options.weight else [])]
        source.check(others)
        inputs = find_inputs(source, model.facts, None, exclude=others)
        follow = context.follow(options)
        source.follow = lambda done: follow(source, done, source.rows)
        reading = read_source(model.quantifier, source, inputs, weight=options.weight)
        context.report(0.9, "Planning")
        planned = plan_source(
            model.quantifier,
            reading,
            source,
            inputs,
            label=model.facts.get("label") or "label",
            number=min(number, reading.total),
            shown=shown,
            level=options.level,
            seed=options.seed,
        )
        command = _command(options, upload.name, planned.plan.n, shown)
        summary = summarize_plan(planned, sheet=SHEET, model=MODEL, settings=[("command", command)])
        forms = stored_forms(context.store.blobs, summary)
    sheet = context.store.blobs.put_bytes(as_utf8(planned.sheet.to_csv(index=False)), "csv")
    items = _items(planned, inputs.text, shown)
    with context.store.read() as connection:
        unlabelled = answer(connection, row.id, "batch", f"batch:{one.id}")
    facts = _facts(planned, unlabelled.data["total"] if unlabelled else None)

    def store_result(connection: Connection) -> None:
        add_plan(connection, row.id, one.id, sheet, facts, items)
        put_answer(
            connection,
            row.id,
            "plan",
            f"batch:{one.id}",
            request={"batch": one.id, "number": number},
            sentence=summary.answer,
            command=command,
            forms=forms,
            data=facts,
        )

    return store_result


def _command(options: ReadOptions, name: str, number: int, shown: list[str]) -> str:
    asked = ["--number", str(number), *(part for column in shown for part in ("--id", column)), "-o", SHEET]
    return options.command("label plan", [name], options=asked, keys=False)


def _items(planned: PlannedLabels, text: str | None, shown: list[str]) -> list[tuple[int, str, dict[str, str]]]:
    """The rows of the sheet: position, text, and the columns that people see next to it."""
    columns = [name for name in planned.sheet.columns if name not in {*PLAN, planned.label}]
    items = []
    for position, cells in enumerate(planned.sheet[columns].astype(object).to_dict("records")):
        written = {name: "" if cell is None else str(cell) for name, cell in cells.items()}
        words = written.pop(text) if text else ", ".join(f"{name}: {cell}" for name, cell in written.items())
        items.append((position, words.strip(), {name: cell for name, cell in written.items() if name in shown}))
    return items


def _facts(planned: PlannedLabels, total: Any) -> dict[str, Any]:
    """What pages say of the plan; widths are in points."""
    widths = (
        [100 * (upper - lower) for lower, upper in zip(total["lower"], total["upper"], strict=True)] if total else []
    )
    return {
        "rows": planned.plan.n,
        "before": round(max(widths), 1) if widths else None,
        "after": round(100 * planned.plan.width, 1),
        "plain": round(100 * planned.plan.plain_width, 1),
        "class": str(planned.classes[widths.index(max(widths))]) if widths else None,
        "classes": [str(name) for name in planned.classes.tolist()],
        "label": planned.label,
        "expected": json_ready(planned.widths.tolist()),
        "numbers": list(planned.numbers),
    }

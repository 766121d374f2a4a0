"""A store with everything that pages show, written without a worker."""

from dataclasses import dataclass

from sqlalchemy import insert

from quanet.serve.store.alarms import add_alarm
from quanet.serve.store.answers import put_answer
from quanet.serve.store.label_queue import add_plan
from quanet.serve.store.projects import create_project, set_model
from quanet.serve.store.schema import batches, files
from quanet.serve.store.uploads import add_file, batch, finish_batch, receive_batch

CLASSES = ["negative", "positive"]
TEXT = "A film that wants to be everything at once, and almost manages it. The second half drags."
FORMS = ("html", "csv", "json", "parquet", "md")


@dataclass(frozen=True)
class Made:
    """Ids of what was made."""

    project: str
    batch: int
    plan: int
    failed: int


def share(value, half=0.03):
    estimate = [value, 1 - value]
    return {
        "classes": CLASSES,
        "estimate": estimate,
        "lower": [one - half for one in estimate],
        "upper": [one + half for one in estimate],
        "counted": [value + 0.05, 0.95 - value],
    }


def group(number, name, state="trusted"):
    labels = {"trusted": 0}.get(state, 120)
    return {"group": [name], "n": 2000, "state": state, "labels": labels, "examples": [TEXT] * 5} | share(
        0.3 + number / 100
    )


def groups(number):
    states = ("trusted", "trusted", "widened", "trusted", "refused")
    return [group(i % 12, f"{2010 + i // 12}-{i % 12 + 1:02d}", states[i % 5]) for i in range(number)]


def answer_data(number):
    return {"classes": CLASSES, "total": share(0.37), "groups": groups(number), "keys": ["month"]}


CHECK = {
    "source": "reviews.csv",
    "rows": 2431,
    "encoding": "utf-8",
    "text": "text",
    "label": "sentiment",
    "columns": [
        {"name": "text", "content": "text", "empty": 3, "different_values": 2400, "first": TEXT},
        {"name": "sentiment", "content": "text", "empty": 0, "different_values": 3, "first": "negative"},
        {"name": "posted", "content": "dates", "empty": 0, "different_values": 300, "first": "2024-01-31"},
        {"name": "id", "content": "numbers", "empty": 0, "different_values": 2431, "first": "18273"},
    ],
    "classes": {"negative": 902, "Negative": 11, "positive": 1518},
    "dates": [{"column": "posted", "format": "%Y-%m-%d", "period": "month", "rows": {}, "gaps": []}],
    "findings": [
        {
            "severity": "warning",
            "finding": "label variants",
            "rows": 11,
            "sentence": "11 rows have the label 'Negative', 902 'negative'.",
            "advice": "Treat them as one label.",
        },
        {
            "severity": "note",
            "finding": "copies",
            "rows": 31,
            "sentence": "31 rows are copies of others.",
            "advice": "",
        },
    ],
    "examples": [[TEXT, "negative", "2024-01-31", "18273"]] * 5,
}


def fill(store, name="Film reviews", *, number=12, months=12, file_name="reviews.csv", fragment="<section></section>"):
    """A project with a model, batches, labels and alarms."""
    blob = store.blobs.put_bytes(b"text\nfine\n", "csv")
    forms = {form: store.blobs.put_bytes(b"{}", "txt") for form in FORMS}
    forms["fragment"] = store.blobs.put_bytes(fragment.encode(), "html")
    state = store.blobs.put_bytes(b"state", "arrow")
    folder = store.blobs.incoming() / f"model-{name.encode().hex()[:20]}"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    model = store.models.put(folder)
    with store.write() as connection:
        project = create_project(connection, name, {"show": "negative", "by": ["posted:month"]}).id
        file = add_file(connection, project, "training", file_name, blob, 10)
        set_model(connection, project, model)

        def answer(kind, about, sentence, data, command="quanet predict model reviews.csv --by posted:month"):
            put_answer(
                connection, project, kind, about, request={}, sentence=sentence, command=command, forms=forms, data=data
            )

        answer("check", f"file:{file.id}", "", CHECK)
        answer("training", f"model:{model}", "The model learned from 2,431 reviews.", {"classes": CLASSES})
        answer("overview", "project", "37.2 % of the reviews are negative (34.9 to 39.6 %).", answer_data(months))
        answer("monitor", "project", "The share of negative has changed since 2024-09.", {"classes": CLASSES})
        last = None
        for i in range(min(number, 12)):
            blob = store.blobs.put_bytes(f"text\nfine {i} {name}\n".encode(), "csv")
            row, _ = receive_batch(connection, project, f"{i} {file_name}", blob, 10)
            totals = share(0.3 + i / 100) | {"state": "trusted"}
            last = finish_batch(connection, row.id, rows=2000, totals=totals, state=state, model=model)
        if number > 12:
            many(connection, last, number - 12)
        answer("batch", f"batch:{last.id}", "37.2 % are negative (34.9 to 39.6 %).", answer_data(months))
        refined = {"classes": CLASSES, "total": share(0.36, 0.015), "labels": 12}
        answer("refined", f"batch:{last.id}", "With 12 labels, 36.0 % are negative.", refined)
        facts = {"rows": 40, "before": 9.0, "after": 5.0, "label": "sentiment", "class": "negative", "classes": CLASSES}
        items = [(i, f"{TEXT} {i} {name}", {"posted": "2024-09-12"}) for i in range(40)]
        plan = add_plan(connection, project, last.id, forms["json"], facts, items)
        for month in ("2024-03", "2024-09"):
            add_alarm(connection, project, month, month, f"Share of negative in {name}: from 31 % to 42 %.", {})
        blob = store.blobs.put_bytes(b"no text\n", "csv")
        failed, _ = receive_batch(connection, project, file_name, blob, 10)
    return Made(project, last.id, plan.id, failed.id)


def many(connection, like, number):
    """Further batches, inserted at once."""
    row = dict(connection.execute(files.select().where(files.c.id == like.file)).one()._mapping)
    del row["id"]
    first = connection.execute(insert(files).values(**row)).inserted_primary_key[0]
    values = dict(connection.execute(batches.select().where(batches.c.id == like.id)).one()._mapping)
    del values["id"]
    rows = [values | {"file": first, "key": f"many:{i}", "done": like.done + 1 + i} for i in range(number)]
    connection.execute(insert(batches), rows)
    return batch(connection, like.project, like.id)

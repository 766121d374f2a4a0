"""A store with a project that has everything, made without computing anything."""

from dataclasses import dataclass
from pathlib import Path

from quanet.serve.store.alarms import add_alarm
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import enqueue
from quanet.serve.store.label_queue import add_plan
from quanet.serve.store.projects import create_project, set_model
from quanet.serve.store.uploads import add_file, finish_batch, receive_batch

CSV = b"text,date,label\nFine film,2024-01-03,pos\nDull plot,2024-02-04,neg\n"
SHEET = "text,label,plan_order,plan_row\nFine film,,1,2\nDull plot,,2,1\n=1+1,,3,3\n"
REPORT = "<!doctype html><style>p { color: red }</style><p>62 %</p>"
FORMS = {"json": b'{"share": 0.62}', "csv": b"class,share\npos,0.62\n", "parquet": b"PAR1", "md": b"# 62 %"}
ABOUT = {"check": "file:1", "batch": "batch:1", "refined": "batch:1", "overview": "project", "monitor": "project"}


@dataclass(frozen=True)
class Made:
    """What exists: the ids of a project and of its first of everything."""

    project: str
    batch: int
    file: int
    job: int
    items: list[int]
    difference: str


def fill(store: ServiceStore, folder: Path, name: str = "Film reviews") -> Made:
    """Fill a store."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "arrays").write_bytes(b"0" * 1000)
    stored = store.models.put(model)
    blob = store.blobs.put_bytes(CSV, "csv")
    state = store.blobs.put_bytes(b"state", "arrow")
    sheet = store.blobs.put_bytes(SHEET.encode(), "csv")
    forms = {form: store.blobs.put_bytes(content, form) for form, content in FORMS.items()}
    forms["html"] = store.blobs.put_bytes(REPORT.encode(), "html")
    with store.write() as connection:
        project = create_project(connection, name, {"by": ["date:month"]}).id
        file = add_file(connection, project, "training", "train.csv", blob, len(CSV))
        set_model(connection, project, stored)
        batch, _ = receive_batch(connection, project, "march.csv", blob, len(CSV))
        share = {"estimate": [0.38, 0.62], "lower": [0.3, 0.54], "upper": [0.46, 0.7], "counted": [0.4, 0.6]}
        totals = {"classes": ["neg", "pos"], **share, "state": "trusted"}
        finish_batch(connection, batch.id, rows=2, totals=totals, state=state, model=stored)
        about = {
            **ABOUT,
            "check": f"file:{file.id}",
            "batch": f"batch:{batch.id}",
            "refined": f"batch:{batch.id}",
            "training": f"model:{stored}",
            "difference": "2024-01|2024-02",
        }
        for kind, subject in about.items():
            request = {"before": ["2024-01"], "after": ["2024-02"]} if kind == "difference" else {}
            put_answer(
                connection,
                project,
                kind,
                subject,
                request=request,
                sentence="62 % are positive.",
                command="quanet predict model march.csv",
                forms=forms,
                data={"classes": ["neg", "pos"], "total": share, "groups": [], "keys": [], "labels": 3},
            )
        items = [(at, text, {}) for at, text in enumerate(("Fine film", "Dull plot", "=1+1"))]
        plan = add_plan(
            connection, project, batch.id, sheet, {"rows": 3, "classes": ["neg", "pos"], "label": "label"}, items
        )
        add_alarm(connection, project, "2024-02-01", "2024-02-01", "More <b>negative</b> & fewer.", {})
        job = enqueue(connection, "overview", project, {}, key=f"overview:{project}").id
    return Made(project, batch.id, file.id, job, _items(store, plan.id), "2024-01|2024-02")


def _items(store: ServiceStore, plan: int) -> list[int]:
    from quanet.serve.store.schema import label_items

    with store.read() as connection:
        query = label_items.select().where(label_items.c.plan == plan).order_by(label_items.c.position)
        return [row.id for row in connection.execute(query)]

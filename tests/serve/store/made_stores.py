"""Small stores for tests."""

from quanet.serve.store import answers, jobs, label_queue, projects, uploads

TOTALS = {"classes": ["bad", "good"], "estimate": [0.3, 0.7]}


def made_project(store, name="Reviews"):
    with store.write() as c:
        return projects.create_project(c, name, {"text": "text"})


def made_batch(store, project, content=b"text\nfine\n", key=None):
    blob = store.blobs.put_bytes(content, "csv")
    with store.write() as c:
        return uploads.receive_batch(c, project, "new.csv", blob, len(content), key)[0]


def made_answer(store, project, kind, about, content="answer", **data):
    forms = {form: store.blobs.put_bytes(f"{content} as {form}".encode(), form) for form in ("html", "json")}
    with store.write() as c:
        facts = {"request": {}, "sentence": "70 % are good.", "command": "quanet predict", "data": data}
        return answers.put_answer(c, project, kind, about, forms=forms, **facts)


def read_batch(store, worker="worker"):
    """What a worker does with the next batch. Returns its number, None if no batch waits."""
    held = jobs.claim(store, worker, "quick")
    if held is None:
        return None
    number = held.payload["batch"]
    state = store.blobs.put_bytes(f"state of {number}".encode(), "arrow")
    form = store.blobs.put_bytes(f"answer of {number}".encode(), "json")
    with store.write() as c:
        jobs.finish(c, held)
        uploads.finish_batch(c, number, rows=1, totals=TOTALS, state=state, model="")
        facts = {"request": {}, "sentence": "", "command": "", "data": {}}
        answers.put_answer(c, held.project, "batch", f"batch:{number}", forms={"json": form}, **facts)
        jobs.enqueue(c, "overview", held.project, {}, key=f"overview:{held.project}", lane="long")
    return number


def made_plan(store, project, batch, items=5):
    sheet = store.blobs.put_bytes(f"sheet of {batch}".encode(), "csv")
    with store.write() as c:
        rows = [(row, f"text {row}", {"month": "May"}) for row in range(items)]
        return label_queue.add_plan(c, project, batch, sheet, {"rows": items}, rows)

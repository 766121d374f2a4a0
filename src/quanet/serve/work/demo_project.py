"""The demo project: film reviews train a model, and a year of further reviews arrives as batches."""

from typing import TYPE_CHECKING, Any

from quanet.serve.store.audit_log import record
from quanet.serve.store.connection import Connection, ServiceStore
from quanet.serve.store.jobs import JobRow, enqueue
from quanet.serve.store.projects import ProjectRow, create_project
from quanet.serve.store.uploads import add_file, receive_batch
from quanet.serve.work.job_context import Finish, JobContext

if TYPE_CHECKING:
    from quanet.data.dataset import Dataset

NAME = "Film reviews"
SETTINGS: dict[str, Any] = {
    "text": "review",
    "label": "opinion",
    "by": ["date:month"],
    "method": "EMQ",
    "show": "positive",
}
TRAINING = 2000  # reviews with labels
MONTHS, MONTHLY = 12, 300  # batches, and reviews in each
USUAL, LATER, CHANGE = 0.68, 0.45, 8  # share of positive reviews, and from which month on it is lower
CINEMAS = ("Astoria", "Odeon", "Rex")


def start_demo(store: ServiceStore, who: str = "") -> tuple[ProjectRow, JobRow]:
    """Create the demo project, and the job that fills it."""
    with store.write() as connection:
        row = create_project(connection, NAME, SETTINGS)
        record(connection, who, "demo", row.id, {})
        return row, enqueue(connection, "demo", row.id, {}, lane="long")


def perform(context: JobContext) -> Finish:
    """Store the reviews, queue the training, and add the batches, which wait for the model."""
    from quanet.data.reviews import movie_reviews

    context.report(0.1, "Reading film reviews")
    reviews = movie_reviews("imdb")
    tables = _tables(reviews)
    context.report(0.8, "Storing film reviews")
    blobs = {name: context.store.blobs.put_bytes(content, "csv") for name, content in tables.items()}
    project = str(context.job.project)

    def store_result(connection: Connection) -> None:
        (training, blob), *others = blobs.items()
        upload = add_file(connection, project, "training", training, blob, len(tables[training]))
        enqueue(connection, "check", project, {"file": upload.id}, key=f"check:{upload.id}")
        enqueue(connection, "train", project, {"file": upload.id}, key=f"train:{project}", lane="long")
        for name, one in others:
            receive_batch(connection, project, name, one, len(tables[name]))

    return store_result


def _tables(reviews: "Dataset") -> dict[str, bytes]:
    """The training file, then the file of every month."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    texts, labels = np.array(reviews.X, dtype=object), np.asarray(reviews.y)
    order = rng.permutation(len(texts))
    first, rest = order[:TRAINING], order[TRAINING:]
    tables = {"reviews with opinions.csv": pd.DataFrame({"review": texts[first], "opinion": labels[first]})}
    good, bad = (list(rest[labels[rest] == label]) for label in ("positive", "negative"))
    for month in range(1, MONTHS + 1):
        share = USUAL if month < CHANGE else LATER
        number = int(rng.binomial(MONTHLY, share))
        chosen = [good.pop() for _ in range(number)] + [bad.pop() for _ in range(MONTHLY - number)]
        rows = rng.permutation(chosen)
        days = np.sort(rng.integers(1, 29, MONTHLY))
        tables[f"reviews 2025-{month:02}.csv"] = pd.DataFrame(
            {
                "review": texts[rows],
                "date": [f"2025-{month:02}-{day:02}" for day in days],
                "cinema": rng.choice(CINEMAS, MONTHLY),
            }
        )
    return {name: table.to_csv(index=False).encode() for name, table in tables.items()}

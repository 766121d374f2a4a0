"""The demo project, with made-up reviews instead of real ones."""

import numpy as np

from quanet import Dataset
from quanet.serve.store.uploads import list_batches
from quanet.serve.work import demo_project

from .conftest import reviews


def test_the_demo_goes_from_reviews_to_an_alarm(fresh, monkeypatch):
    texts, labels = reviews(0.5, 1500, 0)
    texts = [f"{text} {at}" for at, text in enumerate(texts)]
    monkeypatch.setattr("quanet.data.reviews.movie_reviews", lambda source: Dataset(texts, np.array(labels), source))
    monkeypatch.setattr(demo_project, "TRAINING", 300)
    monkeypatch.setattr(demo_project, "MONTHLY", 60)
    row, _ = demo_project.start_demo(fresh.store, "ann")
    fresh.work("long")
    fresh.work("long")
    fresh.work()
    with fresh.store.read() as connection:
        assert [batch.status for batch in list_batches(connection, row.id)] == ["done"] * 12
    assert len(fresh.answer("overview", "project", row.id).data["groups"]) == 12
    assert fresh.answer("monitor", "project", row.id).data["changes"][0]["date"] == "2025-08-01"

"""Hostile uploads and names: nothing of them runs, leaves the data folder, or is shown unescaped."""

import pytest

from quanet.serve.store.integrity import check_integrity

from .hostile_run import run_hostile
from .hostile_uploads import hostile_uploads


@pytest.mark.no_cover
def test_hostile_uploads_and_names_do_nothing(store, made):
    counts = run_hostile(store, made, 500)
    assert counts["202"] > 100
    assert counts["415"] + counts["422"] > 50
    assert check_integrity(store) == []


def test_hostile_uploads_are_the_same_every_time_and_differ():
    made = list(hostile_uploads(100))
    assert made == list(hostile_uploads(100))
    assert len({upload.content for upload in made}) > 60

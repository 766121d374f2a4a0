"""Refined shares of groups that are kept as cells, compared with those of all rows."""

import numpy as np
import pandas as pd
import pytest

from quanet import EMQ, Gaussians
from quanet.corpus import layout
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.reading import read_state
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.data.streams import TableSource
from quanet.drift.scale import without_drift
from quanet.errors import InvalidData
from quanet.workflows.label_sheet import labels_in_source
from quanet.workflows.refine import refine_shares

KEYS = [Key("shop")]


@pytest.fixture(scope="module")
def quantifier():
    with without_drift():
        return EMQ().fit(*Gaussians(distance=2).draw([0.5, 0.5], 400, rng=0))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Two shops of which one has drifted; every thirtieth row has a label, and a few rows cannot be used."""
    X, y = Gaussians(distance=2).draw([0.7, 0.3], 9000, rng=1)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(shop=np.where(np.arange(9000) % 3, "x", "y"))
    table.loc[table["shop"] == "y", "a"] -= 0.5
    table["views"] = np.random.default_rng(2).integers(1, 9, 9000)
    table["label"] = np.where(np.random.default_rng(3).random(9000) < 1 / 30, y.astype(str), "")
    table.loc[[0, 5, 6], "b"] = np.nan
    folder = tmp_path_factory.mktemp("data")
    for at in range(3):
        table[3000 * at : 3000 * (at + 1)].to_csv(folder / f"{at}.csv", index=False)
    return TableSource([folder / "*.csv"])


def refined(quantifier, source, weight=None):
    reader = BatchReader(quantifier, InputColumns(features=("a", "b")), keys=KEYS, weight=weight)
    reading = reading_of(read_state(reader, source), quantifier)
    labels = labels_in_source(source, "label", reader.columns)
    return reading, refine_shares(reader, reading, labels, keys=KEYS)


@pytest.mark.parametrize("weight", [None, "views"])
def test_cells_give_the_shares_of_all_rows(quantifier, source, weight, monkeypatch):
    reading, every = refined(quantifier, source, weight)
    assert reading.merged is None
    monkeypatch.setattr(layout, "MOST_ROWS", 1000)
    reading, few = refined(quantifier, source, weight)
    assert reading.merged is not None
    assert len(reading.codes) < 2500
    assert reading.total == 8997
    for found, expected in ((few, every), (few.groups, every.groups)):
        for name in ("estimate", "lower", "upper"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=5e-4)
    assert few.labelled == every.labelled
    assert not few.findings


def test_labels_that_are_no_random_part_are_recognized_among_cells(quantifier, source, tmp_path, monkeypatch):
    for at, file in enumerate(source.files):
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
        table.loc[table["a"].astype(float) > 0, "label"] = ""
        table.to_csv(tmp_path / f"{at}.csv", index=False)
    monkeypatch.setattr(layout, "MOST_ROWS", 1000)
    with pytest.raises(InvalidData, match="not a random part"):
        refined(quantifier, TableSource([tmp_path / "*.csv"]))

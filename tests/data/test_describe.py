import numpy as np
import pytest

from quanet import Dataset
from quanet.data.describe import describe, describe_bags
from quanet.data.lequa import BagFiles, Files, read_task
from tests.data.formats import lequa_task


def test_texts_are_described_by_words_repetitions_and_dates():
    data = Dataset(["a b", "a", "a", "a b c d"], ["x", "y", "y", "y"], dates=["2002", "2001", "2004", "2003"])
    found = describe(data, first=2)
    assert found.counts == {"x": 1, "y": 3}
    assert found.words.tolist() == [1, 1, 1.5, 2.5, 4]
    assert found.repeated == 1
    assert found.dates == ("2001", "2004")
    assert found.first == (("x", "a b"), ("y", "a"))
    assert found.width is None


def test_numbers_are_described_by_their_width():
    found = describe(Dataset(np.ones((4, 7)), [1, 0, 1, 1]))
    assert (found.instances, found.width, found.words, found.repeated, found.dates) == (4, 7, None, None, None)
    assert found.counts == {0: 1, 1: 3}


def test_bags_are_described_by_the_range_of_their_prevalences(tmp_path):
    for part, content in lequa_task()[0].items():
        (tmp_path / f"{part}.zip").write_bytes(content)
    test = read_task(sorted(tmp_path.glob("*.zip"))).test
    found = describe_bags(test)
    assert found.bags == 4
    assert found.prevalences == pytest.approx(
        np.stack([test.prevalences.min(axis=0), test.prevalences.mean(axis=0), test.prevalences.max(axis=0)])
    )
    assert (
        describe_bags(BagFiles(Files([tmp_path / "test.zip"]), "test_samples", np.arange(4), None)).prevalences is None
    )

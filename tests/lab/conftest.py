import numpy as np
import pandas as pd
import pytest

from quanet import WordBags

ONE_CLASSIFIER = """\
datasets = [{ name = "words", path = "words-train.csv::words-test.csv" }]
runs = 2
learn = 0.6

[protocol]
bag_size = 20
repeats = 2

[classifiers.text]
kind = "TextClassifier"
embedding_size = 4

[methods.CC]
classifier = "text"

[methods.EMQ]
classifier = "text"
"""
PLAN = (
    ONE_CLASSIFIER
    + """
[methods.SVM-KLD]
kind = "SVMKLD"
grid = { C = [0.1, 1.0] }
"""
)


def write_words(folder, name="words", k=2, n=150):
    for seed, part in enumerate(("train", "test")):
        texts, codes = WordBags(k=k, length=8).draw(np.full(k, 1 / k), n, rng=seed)
        labels = np.array(["bad", "good", "so-so"])[codes]
        pd.DataFrame({"text": texts, "label": labels}).to_csv(folder / f"{name}-{part}.csv", index=False)


@pytest.fixture
def home(tmp_path):
    """A folder with a small dataset and a plan."""
    write_words(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path

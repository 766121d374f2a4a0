"""The drift scale is saved with the model; models without one load, and their drift is unknown."""

import json

import numpy as np
import pytest

from quanet import EMQ, DeepSets, Gaussians, GridSearchQ, WordBags, load, save
from quanet.drift.scale import NO_SCALE, without_drift
from quanet.persist.load import model_facts
from quanet.persist.trust import ARRAYS

NUMBERS, Y = Gaussians().draw([0.5, 0.5], 1100, rng=0)
TEXTS, CODES = WordBags(length=12, preference=4.0).draw([0.5, 0.5], 1100, rng=0)


def rows():
    """Posteriors of the numbers."""
    return EMQ().fit(NUMBERS, Y).read(NUMBERS).values


KINDS = {
    "texts": (EMQ, lambda: TEXTS, CODES),
    "numbers": (EMQ, lambda: NUMBERS, Y),
    "precomputed": (lambda: EMQ("precomputed"), rows, Y),
    "network": (
        lambda: DeepSets("precomputed", max_epochs=1, device="cpu"),
        lambda: np.hstack([rows(), NUMBERS]),
        Y,
    ),
    "search": (lambda: GridSearchQ(EMQ(), {"calibration": ["bcts"]}), lambda: NUMBERS, Y),
}


def first(X, n=150):
    return X[:n]


@pytest.mark.parametrize("kind", KINDS)
def test_the_scale_and_the_intervals_come_back(kind, tmp_path):
    make, data, y = KINDS[kind]
    X = data()
    fitted = make().fit(X, y)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    chosen, again = (getattr(one, "quantifier_", one).drift_ for one in (fitted, loaded))
    assert (again.rate, again.kind, again.sentence) == (chosen.rate, chosen.kind, chosen.sentence)
    np.testing.assert_array_equal(again.distances, chosen.distances)
    one, other = (each.predict_interval(first(X)) for each in (fitted, loaded))
    for name in ("lower", "upper"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.drift.cost, other.drift.cost)
    assert one.drift.state == other.drift.state != "unknown"
    assert model_facts(tmp_path / "model").drift == chosen.sentence
    assert chosen.sentence in (tmp_path / "model" / "README.md").read_text()


def test_a_model_without_a_scale_gives_intervals_of_sampling_and_says_why(tmp_path):
    with without_drift():
        old = EMQ().fit(NUMBERS, Y)
    save(old, tmp_path / "model")
    assert "drift_" not in json.loads((tmp_path / "model" / "config.json").read_text())["model"]["state"]
    loaded = load(tmp_path / "model")
    assert loaded.drift_ is None
    found, plain = (loaded.predict_interval(first(NUMBERS), drift=drift) for drift in (True, False))
    assert (found.drift.state, found.drift.source) == ("unknown", NO_SCALE)
    np.testing.assert_array_equal(found.lower, plain.lower)
    np.testing.assert_array_equal(found.upper, plain.upper)
    assert NO_SCALE in model_facts(tmp_path / "model").drift
    assert "## Drift" not in (tmp_path / "model" / "README.md").read_text()


def test_the_scale_of_texts_makes_the_folder_at_most_a_fifth_larger(tmp_path):
    # Words as different as in real texts, so that the word table counts.
    rng = np.random.default_rng(0)
    words = np.array([f"w{n}" for n in range(6000)])
    shares = 1 / np.arange(1, 6001)
    drawn = [" ".join(rng.choice(words, 30, p=shares / shares.sum())) for _ in CODES]
    texts = [f"{text} {'good' if code else 'bad'}" for text, code in zip(drawn, CODES, strict=True)]
    sizes = []
    for name, fit in (("with", EMQ().fit), ("without", _quick)):
        save(fit(texts, CODES), tmp_path / name)
        sizes.append((tmp_path / name / ARRAYS).stat().st_size)
    assert sizes[0] <= 1.2 * sizes[1]


def _quick(X, y):
    with without_drift():
        return EMQ().fit(X, y)

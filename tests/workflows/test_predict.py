import json
from collections import Counter
from copy import copy

import numpy as np
import pytest

from quanet import ACC, CC, EMQ, UPP, Gaussians, HDx, TextClassifier, evaluate
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.corpus.reading import read_source
from quanet.data.columns import match_labels
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Key
from quanet.data.streams import TableSource
from quanet.errors import InvalidData
from quanet.evaluation.contents import SomeTexts
from quanet.workflows import predict as workflow
from quanet.workflows.fit import held_out_errors
from quanet.workflows.labelled import read_labelled
from quanet.workflows.predict import diagnose_reading, estimate_shares

SOURCE = Gaussians()
SIZES = {"few": 2, "many": 300, "one": 1, "some": 15, "strange": 200}


@pytest.fixture(scope="module")
def quantifier():
    return EMQ().fit(*SOURCE.draw([0.5, 0.5], 1500, rng=0))


def reading_of(quantifier, bags):
    read = [quantifier.read(bag) for bag in bags]
    descriptions = None if read[0].descriptions is None else np.concatenate([one.descriptions for one in read])
    inputs = Inputs(np.concatenate([one.values for one in read]).astype(np.float32), descriptions)
    codes = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags]).astype(np.int32)
    return GroupedInputs(inputs, codes, [(name,) for name in SIZES][: len(bags)], {}, None)


@pytest.fixture(scope="module")
def shares(quantifier):
    bags = [SOURCE.draw([0.7, 0.3], size, rng=size)[0] for size in SIZES.values()]
    bags[-1] = 0 * bags[-1]  # none of the classes looks like that
    return estimate_shares(quantifier, reading_of(quantifier, bags), keys=[Key("kind")])


def test_every_group_has_its_own_answer(shares, quantifier):
    bag = SOURCE.draw([0.7, 0.3], 300, rng=300)[0]
    alone = quantifier.predict_interval(bag)
    at = list(SIZES).index("many")
    np.testing.assert_allclose(shares.interval.estimate[at], alone.estimate, atol=1e-5)
    np.testing.assert_allclose(shares.interval.lower[at], alone.lower, atol=1e-4)
    assert shares.sizes.tolist() == list(SIZES.values())
    np.testing.assert_allclose(shares.total_counted, shares.sizes @ shares.counted / shares.sizes.sum())


def test_small_groups_are_marked_and_hold_what_is_possible(shares):
    assert dict(zip(SIZES, shares.small.tolist(), strict=True)) | {"strange": True} == {
        "few": True, "many": False, "one": True, "some": True, "strange": True,
    }  # fmt: skip
    one = list(SIZES).index("one")
    assert shares.interval.lower[one].tolist() == [0, 0]
    assert shares.interval.upper[one].tolist() == [1, 1]
    assert (shares.interval.lower <= shares.interval.estimate).all()
    assert (shares.interval.estimate <= shares.interval.upper).all()


def write(share, n, rng, shoes=0.1):
    """Texts with a mood, which is often misleading, about films; a share of them is about shoes."""
    positive = rng.random(n) < share
    moods = np.where(positive ^ (rng.random(n) < 0.2), "good", "bad").tolist()
    topics = np.where(rng.random(n) < shoes, "shoe", "film").tolist()
    words = [rng.choice([f"{topic}{i}" for i in range(60)], 12) for topic in topics]
    return [" ".join([*found, mood]) for found, mood in zip(words, moods, strict=True)], positive


@pytest.fixture(scope="module")
def of_films():
    return EMQ(TextClassifier(views=["words"])).fit(*write(0.5, 3000, np.random.default_rng(0)))


def texts_of(quantifier, bags):
    reading = reading_of(quantifier, bags)
    texts = [text for bag in bags for text in bag]
    reading.some_texts = SomeTexts(texts, reading.instances.descriptions, reading.codes)
    return reading


def test_groups_of_the_same_kind_are_trusted_and_a_small_one_is_not_widened_by_chance(of_films):
    rng = np.random.default_rng(2)
    bags = [write(share, n, rng)[0] for share, n in ((0.2, 400), (0.8, 400), (0.5, 60))]
    found = estimate_shares(of_films, texts_of(of_films, bags), keys=[Key("kind")])
    assert found.states == ["trusted"] * 3
    assert found.labels.tolist() == [0, 0, 0]
    assert found.diagnosis["contents"].severity == "ok"
    assert (found.widening < 0.25 * found.interval.width.max(axis=1)).all()


def test_a_group_about_something_else_is_widened_or_refused_and_named_once(of_films):
    rng = np.random.default_rng(3)
    bags = [write(0.8, 600, rng)[0], write(0.8, 500, rng, shoes=1.0)[0]]
    found = estimate_shares(of_films, texts_of(of_films, bags), keys=[Key("kind")])
    assert found.states[1] in ("widened", "refused")
    assert found.labels[1] >= 20
    assert found.widening[1] > 5 * found.widening[0]
    assert "few" not in found.notes[1]  # wide because of drift, not because of its size
    finding = found.diagnosis["contents"]
    assert finding.severity == ("alarm" if "refused" in found.states else "warning")
    assert "'shoe" in finding.sentence
    assert all("shoe" in example for example in finding.examples)
    assert [one.name for one in found.diagnosis].count("contents") == 1


def test_intervals_without_drift_have_no_states(of_films):
    bags = [write(0.8, 500, np.random.default_rng(4), shoes=1.0)[0]] * 2
    reading = texts_of(of_films, bags)
    found = estimate_shares(of_films, reading, keys=[Key("kind")], drift=False)
    assert found.states == found.notes == ["", ""]
    assert "contents" not in [finding.name for finding in found.diagnosis]
    included = estimate_shares(of_films, reading, keys=[Key("kind")])
    np.testing.assert_array_equal(included.interval.without_drift.lower, found.interval.lower)
    assert (included.interval.width > found.interval.width).any()
    rows = found.rows()
    assert np.isnan(rows["drift"]).all()
    assert set(rows["state"].tolist()) == {""}
    assert included.rows()["state"].tolist() == np.repeat(included.states, 2).tolist()
    np.testing.assert_allclose(included.rows()["drift"], included.interval.drift.cost.ravel())


def test_descriptions_are_read_chunk_by_chunk_and_stored_compactly(of_films, tmp_path, monkeypatch):
    texts = write(0.5, 300, np.random.default_rng(5))[0]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    monkeypatch.setattr("quanet.data.table_files.MAX_CHARACTERS", 5000)
    found = read_source(of_films, TableSource([tmp_path / "new.jsonl"]), InputColumns("text")).instances
    assert found.descriptions.dtype == np.float16
    np.testing.assert_allclose(found.descriptions, of_films.read(texts).descriptions, rtol=2e-3, atol=2e-3)
    exact = of_films.predict_interval(texts)
    np.testing.assert_allclose(of_films.predict_interval(found).upper, exact.upper, atol=1e-3)


def test_a_model_without_a_drift_scale_says_what_is_unknown(of_films):
    old = copy(of_films)
    old.drift_ = None
    bags = [write(0.8, 500, np.random.default_rng(4), shoes=1.0)[0]] * 2
    found = estimate_shares(old, texts_of(old, bags), keys=[Key("kind")])
    assert found.states == found.notes == ["unknown"] * 2
    assert "the model has no drift scale" in found.diagnosis["contents"].sentence
    without = estimate_shares(old, texts_of(old, bags), keys=[Key("kind")], drift=False)
    np.testing.assert_array_equal(found.interval.lower, without.interval.lower)


def test_a_single_instance_is_a_group_of_which_nothing_is_known(shares):
    assert dict(zip(SIZES, shares.states, strict=True))["one"] == "unknown"
    assert shares.notes[list(SIZES).index("one")] == "few, unknown"


def test_a_diagnosis_of_very_many_looks_at_some(quantifier, monkeypatch):
    monkeypatch.setattr(workflow, "LARGEST", 500)
    reading = reading_of(quantifier, [SOURCE.draw([0.5, 0.5], 900, rng=1)[0]])
    reading.unknown_words = 0.5
    found = diagnose_reading(quantifier, reading)
    assert found["bag size"].numbers["n"] == 500
    assert found["words"].severity == "alarm"


def test_too_few_held_out_instances_still_give_an_interval():
    X, y = SOURCE.draw([0.5, 0.5], 16, rng=0)
    quantifier = ACC(cv=4).fit(X, y)
    found = estimate_shares(quantifier, reading_of(quantifier, [SOURCE.draw([0.5, 0.5], 12, rng=1)[0]]))
    assert (found.interval.upper > found.interval.lower).all()
    assert found.diagnosis[0].sentence.startswith("Not checked: Class")


def test_a_method_without_posteriors_counts_no_labels():
    X, y = SOURCE.draw([0.5, 0.5], 200, rng=0)
    quantifier = HDx().fit(X, y)
    with pytest.warns(match="has no held-out instances"):
        found = estimate_shares(quantifier, reading_of(quantifier, [X[:50]]))
    assert np.isnan(found.counted).all()
    assert held_out_errors(quantifier) is None


def test_held_out_errors_are_those_of_new_data(quantifier):
    found = held_out_errors(quantifier)
    X, y = SOURCE.draw([0.5, 0.5], 3000, rng=9)
    protocol = UPP(bag_size=found.bag_size, repeats=200)
    counted = evaluate(CC(quantifier.classifier_).fit(X, y), X, y, protocol, rng=1)
    assert found.counted == pytest.approx(counted.error("ae").mean(), rel=0.25)
    assert found.error < found.counted
    # One quantifier is lucky or not. Each half of the held-out rows has learned from half of them, which costs some.
    fitted = [EMQ().fit(*SOURCE.draw([0.5, 0.5], 1500, rng=seed)) for seed in range(6)]
    new = np.mean([evaluate(one, X, y, protocol, rng=1).error("ae").mean() for one in fitted])
    assert 0.8 * new < np.mean([held_out_errors(one).error for one in fitted]) < 1.7 * new
    assert held_out_errors(quantifier) == found  # the same seed, the same bags


def test_labels_are_names_in_every_format(tmp_path):
    (tmp_path / "a.csv").write_text("text,stars\nx,10\ny,9\nz,\n")
    (tmp_path / "b.jsonl").write_text('{"text": "u", "stars": 9.0}\n{"text": "v", "stars": 10}\n')
    data = read_labelled(TableSource([tmp_path / "a.csv", tmp_path / "b.jsonl"]), InputColumns("text"), "stars")
    assert data.y.tolist() == [10, 9, 9, 10]
    assert (data.counts, data.skipped) == ({9: 2, 10: 2}, {"no label": 1})
    assert match_labels(["10", "9"], np.array([9, 10]), source="a").tolist() == [10, 9]
    with pytest.raises(
        InvalidData,
        match=r"does not know the label '8' \(2 rows\)\. Its classes are ('9', '10'|'10', '9')\. 1 other",
    ):
        match_labels(["8", "8", "80"], np.array([9, 10]), source="a")


def test_reading_keeps_order_counts_words_and_labels(tmp_path):
    texts = [f"{word} film {n}" for n in range(20) for word in ("good", "bad")]
    quantifier = EMQ().fit(texts, ["yes", "no"] * 20)
    rows = [
        {"text": text, "label": n % 3, "shop": "ab"[n % 2]} for n, text in enumerate(["good film", "late flight"] * 30)
    ]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = TableSource([tmp_path / "new.jsonl"])
    found = read_source(quantifier, source, InputColumns("text"), keys=[Key("shop")], label="label")
    expected = quantifier.read([row["text"] for row in rows]).values
    np.testing.assert_allclose(found.instances.values, expected, atol=1e-6)
    assert found.groups == [("a",), ("b",)]
    assert found.codes.tolist() == [0, 1] * 30
    assert found.unknown_words == 0.5
    assert found.labels == Counter({"0": 20, "1": 20, "2": 20})


def test_a_column_of_numbers_is_no_text(tmp_path):
    (tmp_path / "new.jsonl").write_text('{"text": "good"}\n{"text": 5}\n')
    source = TableSource([tmp_path / "new.jsonl"])
    with pytest.raises(InvalidData, match=r"new\.jsonl, row 2: column 'text' contains 5, which is not text"):
        read_labelled(source, InputColumns("text"), "text")

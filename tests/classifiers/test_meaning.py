import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import quanet
from quanet import EMQ, TextClassifier
from quanet.classifiers import meaning
from quanet.classifiers.meaning import Tokens, fit_to_vectors, hash_vocabulary, load_token_vectors
from quanet.classifiers.text import DEFAULT_VIEWS
from quanet.errors import InvalidData, MissingExtra

VOCABULARY = [
    "play",
    "##ed",
    "##ing",
    "a",
    "##b",
    "##c",
    "bc",
    "good",
    "bad",
    "film",
    "!",
    "_",
    "\u4e2d",
    "cafe",
    "the",
]
FOUR = (*DEFAULT_VIEWS, "meaning")


def tokens():
    return Tokens(hash_vocabulary(VOCABULARY), longest=5)


def split(one):
    indices, _ = tokens()._split([one])
    return [VOCABULARY[at] for at in indices]


@pytest.mark.parametrize(
    ("one", "found"),
    [
        ("Played", ["play", "##ed"]),
        ("playing!!", ["play", "##ing", "!", "!"]),
        ("abc bc", ["a", "##b", "##c", "bc"]),  # the start of a word is not "##bc"
        ("playful film", ["film"]),  # no token for "ful"
        ("good_film", ["good", "_", "film"]),
        ("\u4e2d\u4e2d", ["\u4e2d", "\u4e2d"]),
        ("Caf\u00e9", ["cafe"]),
        ("a" + "b" * 99, ["a"] + ["##b"] * 99),
        ("a" + "b" * 100, []),  # longer than a word can be
        ("", []),
        ("ed", []),
    ],
)
def test_words_are_split_into_their_longest_tokens_from_the_left(one, found):
    assert split(one) == found


def test_our_tokens_are_those_of_the_encoder():
    tokenizers = pytest.importorskip("tokenizers")
    pytest.importorskip(meaning.ENCODER)
    folder = meaning._encoder_folder()
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    texts = ["It's unbelievably good; I've re-read #1 (twice)!", "Na\u00efve caf\u00e9 owners paid $4.50...", "x" * 60]
    indices, ends = Tokens(hash_vocabulary(vocabulary), longest=max(map(len, vocabulary)))._split(texts)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    for i, one in enumerate(texts):
        assert indices[ends[i] : ends[i + 1]].tolist() == tokenizer.encode(one, add_special_tokens=False).ids


def test_frequent_tokens_weigh_less():
    ours = tokens()
    rows = ours.fit_transform(["the film", "the play", ""]).toarray()
    weight = {share: 1e-3 / (1e-3 + share) for share in (0.25, 0.5)}  # "film" is one of four tokens, "the" two
    assert ours.rarity[VOCABULARY.index("the")] == pytest.approx(weight[0.5])
    assert ours.rarity[VOCABULARY.index("bad")] == 1  # never seen
    assert rows[0, VOCABULARY.index("film")] == pytest.approx(weight[0.25] / (weight[0.25] + weight[0.5]))
    np.testing.assert_allclose(rows.sum(axis=1), [1, 1, 0], rtol=1e-6)


RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(len(VOCABULARY), 12)).astype(np.float32)
WORDS = ["good", "bad", "film", "play", "the", "a"]
TEXTS = [" ".join(RNG.choice(WORDS, 6)) for _ in range(200)]
Y = np.array([one.count("good") > one.count("bad") for one in TEXTS])
SIGNS = np.where(Y, 1, -1).astype(np.float32)[:, None]


def test_one_number_per_token_gives_the_logits_of_the_regression_on_vectors():
    matrix = tokens().fit_transform(TEXTS)
    weights, (of_fold,) = fit_to_vectors(matrix, VECTORS, SIGNS, [(np.arange(150), np.arange(150, 200))], 0.1)
    rows = StandardScaler().fit_transform(matrix @ VECTORS)
    peer = LogisticRegression(C=0.1, tol=1e-8).fit(rows, Y)
    np.testing.assert_allclose(matrix @ weights[:-1, 0] + weights[-1, 0], peer.decision_function(rows), atol=2e-3)
    peer.fit(rows[:150], Y[:150])
    np.testing.assert_allclose(of_fold[:, 0], peer.decision_function(rows[150:]), atol=2e-3)


def test_a_fold_without_one_of_the_classes_predicts_the_other():
    positive = np.flatnonzero(Y)
    matrix = tokens().fit_transform(TEXTS)
    _, (of_fold,) = fit_to_vectors(matrix, VECTORS, SIGNS, [(np.flatnonzero(~Y), positive)], 0.1)
    assert (of_fold < -3).all()


@pytest.fixture
def small(monkeypatch):
    """A vocabulary and vectors that need no encoder."""
    monkeypatch.setattr(meaning, "load_token_vectors", lambda: (tokens(), VECTORS))


@pytest.mark.usefixtures("small")
def test_the_view_is_one_of_the_weighted_views():
    quantifier = EMQ(TextClassifier(views=FOUR)).fit(TEXTS, Y)
    classifier = quantifier.classifier_
    assert set(classifier.shares_) == set(FOUR)
    assert sum(classifier.shares_.values()) == pytest.approx(1)
    one = TextClassifier(views=("meaning",)).fit(TEXTS, Y)
    assert (one.predict(TEXTS) == Y).mean() > 0.8
    posteriors, embedding = one.read(TEXTS)
    np.testing.assert_array_equal(posteriors, one.predict_proba(TEXTS))
    np.testing.assert_array_equal(embedding, one.transform(TEXTS))


@pytest.mark.usefixtures("small")
def test_a_text_without_tokens_gets_the_posterior_of_the_mean_text():
    classifier = TextClassifier(views=("meaning",)).fit(TEXTS, Y)
    shift = float(classifier.weights_["meaning"][-1, 0])
    assert classifier.predict_proba(["xyz"])[0, 1] == pytest.approx(expit(shift))
    assert logit(classifier.predict_proba(TEXTS)[:, 1]).mean() == pytest.approx(shift, abs=1e-4)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("classes", [2, 3])
def test_a_saved_model_needs_no_encoder(tmp_path, monkeypatch, classes):
    labels = np.array(["no", "yes", "other"])[Y.astype(int) + (np.arange(200) % 3 == 0) * (classes - 2) * (1 - Y)]
    fitted = EMQ(TextClassifier(views=FOUR)).fit(TEXTS, labels)
    quanet.save(fitted, tmp_path / "model")
    monkeypatch.setattr(meaning, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    restored = quanet.load(tmp_path / "model")
    np.testing.assert_array_equal(restored.represent(TEXTS), fitted.represent(TEXTS))
    assert restored.classifier_.views == FOUR


@pytest.mark.usefixtures("small")
def test_copies_keep_the_view():
    classifier = clone(TextClassifier(views=FOUR)).fit(TEXTS, Y)
    np.testing.assert_array_equal(clone(classifier).fit(TEXTS, Y).predict_proba(TEXTS), classifier.predict_proba(TEXTS))


@pytest.mark.usefixtures("small")
def test_texts_without_words_are_an_error_with_this_view_too():
    with pytest.raises(InvalidData, match="contain no words"):
        TextClassifier(views=("meaning",)).fit(["", "", "", ""], [0, 1, 0, 1])


@pytest.mark.parametrize("missing", [meaning.ENCODER, "torch", "sentence_transformers"])
def test_a_missing_extra_is_named(monkeypatch, missing):
    found = SimpleNamespace(origin="encoder/__init__.py")
    monkeypatch.setattr(meaning, "find_spec", lambda name: None if name == missing else found)
    with pytest.raises(MissingExtra, match=r"'meaning' .* pip install 'quanet\[transformers\]'"):
        TextClassifier(views=FOUR).fit(TEXTS, Y)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An encoder of three tokens; returns how often it is read."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "vocab.txt").write_bytes(b"good\nbad\n##ly\n")
    (folder / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setenv("QUANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(meaning, "_encoder_folder", lambda: folder)
    read = []

    class Distiller:
        @staticmethod
        def distil():
            read.append(1)
            return np.eye(3, dtype=np.float32)

    monkeypatch.setattr(meaning, "import_module", lambda name: Distiller)
    return folder, read


def test_token_vectors_are_computed_once_per_encoder(package, tmp_path):
    folder, read = package
    for _ in range(2):
        found, vectors = load_token_vectors()
        assert found.longest == 4
        np.testing.assert_array_equal(vectors, np.eye(3))
    assert len(read) == 1
    (path,) = (tmp_path / "cache").iterdir()
    path.write_bytes(b"damaged")
    load_token_vectors()
    assert len(read) == 2
    (folder / "model.safetensors").write_bytes(b"other weights")
    load_token_vectors()
    assert len(read) == 3
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_cache_that_cannot_be_written_does_not_stop_a_fit(package, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("QUANET_CACHE", str(tmp_path / "file" / "cache"))
    np.testing.assert_array_equal(load_token_vectors()[1], np.eye(3))

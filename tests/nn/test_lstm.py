import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from quanet import PCC, LSTMClassifier, QuanetError, WordBags
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.nn import lstm
from quanet.nn.lstm import (
    PADDING,
    UNKNOWN,
    TextPool,
    alike_in_length,
    draw_balanced,
    encode_words,
    held_out_weights,
    hold_out,
    most_frequent_words,
    tokenize,
)
from quanet.simplex import count


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A film.", ["a", "film"]),
        ("one<br />two<BR>three<br/>four", ["one", "two", "three", "four"]),
        ("it's 'quoted'", ["it's", "quoted"]),
        ("déjà vu — Ärger", ["déjà", "vu", "ärger"]),
        ("", []),
        (" \n\t!?", []),
    ],
)
def test_a_text_is_its_lower_cased_words(text, words):
    assert tokenize(text) == words


def test_the_vocabulary_is_the_most_frequent_words_whatever_the_order_of_texts():
    texts = ["b b b", "a a", "c c", "d"]
    assert most_frequent_words(texts, 3) == {"b": 2, "a": 3, "c": 4}
    assert most_frequent_words(texts[::-1], 3) == {"b": 2, "a": 3, "c": 4}


def test_unknown_words_and_padding_have_ids_of_their_own():
    vocabulary = most_frequent_words(["a b c"], 5)
    assert not {PADDING, UNKNOWN} & set(vocabulary.values())
    ids, lengths = encode_words(["a z"], vocabulary, 4)
    np.testing.assert_array_equal(ids, [[vocabulary["a"], UNKNOWN, PADDING, PADDING]])
    np.testing.assert_array_equal(lengths, [2])


def test_the_end_of_a_long_text_is_read():
    vocabulary = most_frequent_words(["a b c d"], 5)
    ids, lengths = encode_words(["a b c d"], vocabulary, 2)
    np.testing.assert_array_equal(ids, [[vocabulary["c"], vocabulary["d"]]])
    np.testing.assert_array_equal(lengths, [2])


def test_no_text_is_a_matrix_without_rows():
    ids, lengths = encode_words([], {"a": 2}, 3)
    assert ids.shape == (0, 3)
    assert lengths.shape == (0,)


def test_texts_without_a_word_are_refused():
    with pytest.raises(InvalidData, match=r"no words were found in the 2 texts, such as '!!'"):
        most_frequent_words(["!!", ""], 5)


CLASSES = np.array(["a", "b", "c"])


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_same_share_of_every_class_is_held_out():
    codes = rng().permutation(np.repeat([0, 1, 2], [700, 200, 100]))
    seen, held = hold_out(codes, CLASSES, 0.1, rng=rng())
    assert count(codes[held], 3).tolist() == [70, 20, 10]
    assert sorted([*seen, *held]) == list(range(1000))


def test_a_class_of_two_is_both_trained_on_and_held_out():
    codes = np.array([0, 0, 1, 1])
    seen, held = hold_out(codes, CLASSES[:2], 0.9, rng=rng())
    assert codes[seen].tolist() == codes[held].tolist() == [0, 1]


def test_a_class_of_one_is_trained_on_and_named():
    codes = np.array([0, 0, 0, 1])
    with pytest.warns(QuanetWarning, match="class 'b' has one text. It is used for training"):
        seen, held = hold_out(codes, CLASSES[:2], 0.5, rng=rng())
    assert 3 in seen
    assert codes[held].tolist() == [0, 0]


def test_classes_of_one_alone_cannot_be_held_out():
    with pytest.raises(InvalidData, match=r"every class has one text.*Add texts"):
        hold_out(np.array([0, 1]), CLASSES[:2], 0.5, rng=rng())


def test_balanced_batches_have_prevalences_uniform_on_the_simplex():
    codes = np.repeat([0, 1, 2], [970, 20, 10])
    chosen = draw_balanced(codes, (4000, 50), rng=rng())
    prevalences = count(codes[chosen], 3) / 50
    np.testing.assert_allclose(prevalences.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(prevalences.var(axis=0), 1 / 18, atol=0.01)


def test_balanced_batches_draw_every_instance_of_a_class_alike():
    codes = np.array([1, 0, 1, 0, 0])
    chosen = draw_balanced(codes, (4000, 10), rng=rng())
    times = np.bincount(chosen.ravel(), minlength=5) / chosen.size
    np.testing.assert_allclose(times, [1 / 4, 1 / 6, 1 / 4, 1 / 6, 1 / 6], atol=0.01)


def test_held_out_classes_weigh_alike_when_balanced():
    codes = np.array([0, 0, 0, 2])  # none of class 1 could be held out
    np.testing.assert_allclose(held_out_weights(codes, balanced=True), [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    np.testing.assert_allclose(held_out_weights(codes, balanced=False), 1 / 4)


def test_parts_are_bounded_and_hold_every_text_once(monkeypatch):
    monkeypatch.setattr(lstm, "READ_AT_ONCE", 4)
    lengths = rng().integers(20, size=10)
    parts = list(alike_in_length(lengths))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(np.concatenate(parts)) == list(range(10))
    assert (np.diff(lengths[np.concatenate(parts)]) >= 0).all()


def test_the_mean_of_all_batches_is_the_weighted_mean(monkeypatch):
    monkeypatch.setattr(lstm, "READ_AT_ONCE", 3)
    codes, lengths = rng().integers(2, size=8), rng(1).integers(5, size=8)
    pool = TextPool.on(torch.device("cpu"), np.zeros((8, 5), dtype=np.int32), lengths, codes)
    weights = rng(2).dirichlet(np.ones(8))
    batches = list(pool.all_of(np.arange(8), weights))
    means = [float(share @ truth[:, 1]) for _, _, truth, share in batches]
    assert np.mean(means) == pytest.approx(float(weights @ codes), abs=1e-6)


def test_a_batch_is_as_wide_as_its_longest_text():
    ids = np.array([[2, 3, 4], [5, 0, 0], [0, 0, 0]], dtype=np.int32)
    pool = TextPool.on(torch.device("cpu"), ids, np.array([3, 1, 0]), np.array([0, 1, 1]))
    chosen = np.array([[0, 1], [1, 2], [2, 2]])
    widths = [tuple(batch[0].shape) for batch in pool.batches(chosen, np.full((3, 2), 0.5))]
    assert widths == [(2, 3), (2, 1), (2, 1)]


SOURCE = WordBags(k=3, length=15, preference=6.0)
TEXTS, CODES = SOURCE.draw([0.5, 0.3, 0.2], 300, rng=0)
Y = np.array(["ham", "news", "spam"])[CODES]
TINY = {
    "word_size": 8,
    "hidden": 12,
    "dense": 16,
    "embedding_size": 6,
    "lr": 0.01,
    "batch_size": 40,
    "max_steps": 60,
    "validate_every": 20,
    "device": "cpu",
    "random_state": 0,
}


@pytest.fixture(scope="module")
def fitted():
    return LSTMClassifier(**TINY | {"max_steps": 160}).fit(TEXTS, Y)


def test_it_learns_what_can_be_learned(fitted):
    new_texts, new_codes = SOURCE.draw([1 / 3, 1 / 3, 1 / 3], 500, rng=1)
    best = (SOURCE.posteriors(new_texts, np.full(3, 1 / 3)).argmax(axis=1) == new_codes).mean()
    accuracy = (fitted.predict(new_texts) == np.array(["ham", "news", "spam"])[new_codes]).mean()
    assert accuracy > best - 0.15


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_every_loss_and_draw_lowers_the_held_out_loss(loss, balanced):
    history = LSTMClassifier(**TINY, loss=loss, balanced=balanced).fit(TEXTS, Y).history_
    assert min(epoch.valid_loss for epoch in history) < 0.95 * history[0].valid_loss


def test_rare_classes_need_balanced_batches():
    source = WordBags(length=15, preference=6.0)
    texts, codes = source.draw([0.97, 0.03], 1000, rng=0)
    new_texts, new_codes = source.draw([0.5, 0.5], 500, rng=1)
    found = {}
    for balanced in (True, False):
        classifier = LSTMClassifier(**TINY, balanced=balanced).fit(texts, codes)
        found[balanced] = (classifier.predict(new_texts) == 1)[new_codes == 1].mean()
    assert found[True] > 0.6 > 0.2 > found[False]


def test_posteriors_sum_to_one_and_embeddings_are_not_negative(fitted):
    posteriors, embeddings = fitted.predict_proba(TEXTS), fitted.transform(TEXTS)
    assert posteriors.shape == (300, 3)
    assert embeddings.shape == (300, 6)
    assert posteriors.dtype == embeddings.dtype == np.float64
    np.testing.assert_allclose(posteriors.sum(axis=1), 1, atol=1e-12)
    assert posteriors.min() >= 0
    assert embeddings.min() >= 0 < embeddings.max()


def test_posteriors_follow_from_embeddings_by_the_last_layer(fitted):
    layer = fitted.network_.score[1]
    scores = fitted.transform(TEXTS) @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    odds = np.exp(scores)
    np.testing.assert_allclose(fitted.predict_proba(TEXTS), odds / odds.sum(axis=1, keepdims=True), atol=1e-6)


def test_a_text_never_depends_on_its_neighbours_or_on_padding(fitted, monkeypatch):
    texts = ["", "word1", "word1 word2 " * 100, "?!", "never seen", *TEXTS[:20], "word3 " * 7]
    for outputs in (fitted.predict_proba, fitted.transform):
        together = outputs(texts)
        alone = np.concatenate([outputs([text]) for text in texts])
        backwards = outputs(texts[::-1])[::-1]
        with monkeypatch.context() as small:
            small.setattr("quanet.nn.lstm.READ_AT_ONCE", 4)
            in_fours = outputs(texts)
        for other in (alone, backwards, in_fours):
            np.testing.assert_allclose(together, other, atol=1e-6)


def test_no_text_has_no_posteriors(fitted):
    assert fitted.predict_proba([]).shape == (0, 3)
    assert fitted.transform([]).shape == (0, 6)


def test_the_last_words_of_a_text_are_read():
    classifier = LSTMClassifier(**TINY, length=4).fit(TEXTS, Y)
    end = " word1 word2 word3 word4"
    np.testing.assert_allclose(classifier.predict_proba(["word5" + end]), classifier.predict_proba(["word9" + end]))


def test_the_vocabulary_holds_the_most_frequent_words(fitted):
    assert len(fitted.vocabulary_) == 60
    assert len(LSTMClassifier(**TINY, words=10).fit(TEXTS, Y).vocabulary_) == 10


def test_the_same_seed_gives_the_same_result_and_leaves_global_generators_alone():
    global_torch, global_numpy = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    one, again, other = (LSTMClassifier(**TINY | {"random_state": seed}).fit(TEXTS, Y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.predict_proba(TEXTS), again.predict_proba(TEXTS))
    assert one.history_ == again.history_
    assert np.abs(one.predict_proba(TEXTS) - other.predict_proba(TEXTS)).max() > 1e-3
    assert torch.equal(torch.get_rng_state(), global_torch)
    np.testing.assert_array_equal(np.random.get_state()[1], global_numpy)  # noqa: NPY002


def test_no_seed_gives_another_result_each_time():
    one, other = (LSTMClassifier(**TINY | {"random_state": None}).fit(TEXTS, Y) for _ in range(2))
    assert not np.array_equal(one.predict_proba(TEXTS), other.predict_proba(TEXTS))


@pytest.mark.parametrize(("max_steps", "epochs"), [(1, 1), (20, 1), (21, 2), (60, 3)])
def test_training_takes_exactly_the_steps_it_may(monkeypatch, max_steps, epochs):
    steps = []
    draw = lstm.draw_balanced

    def counted(codes, shape, *, rng):
        steps.append(shape)
        return draw(codes, shape, rng=rng)

    monkeypatch.setattr(lstm, "draw_balanced", counted)
    classifier = LSTMClassifier(**TINY | {"max_steps": max_steps}).fit(TEXTS, Y)
    assert len(classifier.history_) == epochs
    assert sum(step for step, _ in steps) == max_steps
    assert {size for _, size in steps} == {40}


def test_patience_ends_training():
    settings = TINY | {"max_steps": 20_000, "validate_every": 1, "patience": 2, "lr": 1e-12}
    history = LSTMClassifier(**settings).fit(TEXTS, Y).history_
    assert len(history) < 200
    assert not any(epoch.best for epoch in history[-2:])


def test_held_out_texts_are_not_trained_on(monkeypatch):
    trained, read = set(), set()
    batches = lstm.TextPool.batches

    def noted(self, chosen, weights):
        (trained if chosen.shape[1] == 40 else read).update(chosen.ravel().tolist())
        return batches(self, chosen, weights)

    monkeypatch.setattr(lstm.TextPool, "batches", noted)
    LSTMClassifier(**TINY, held_out=0.2).fit(TEXTS, Y)
    assert len(read) == 60
    assert trained
    assert not trained & read


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    calls = []

    def interrupted(network, batch):
        calls.append(batch)
        if len(calls) == 50:  # in the third epoch: 20 steps and one validation each
            raise KeyboardInterrupt
        return lstm.mean_squared_error(network, batch)

    monkeypatch.setitem(lstm.LOSSES, "mse", interrupted)
    classifier = LSTMClassifier(**TINY | {"max_steps": 1000})
    with pytest.warns(QuanetWarning, match="interrupted after 2 of at most 50 validations.*best weights"):
        classifier.fit(TEXTS, Y)
    monkeypatch.undo()
    whole = LSTMClassifier(**TINY | {"max_steps": 40}).fit(TEXTS, Y)
    assert classifier.history_ == whole.history_
    np.testing.assert_array_equal(classifier.predict_proba(TEXTS), whole.predict_proba(TEXTS))


def test_a_loss_that_runs_away_names_the_way_out():
    classifier = LSTMClassifier(**TINY | {"lr": 1e30})
    with pytest.raises(QuanetError, match=r"after 20 steps the loss is not a finite number.*Use an lr below 1e\+30"):
        classifier.fit(TEXTS, Y)
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)


@pytest.mark.parametrize("names", [["no", "yes", "maybe"], [1, 2, 7], [-1.0, 0.0, 1.0]])
def test_labels_are_given_back_as_they_came(names):
    labels = np.array(names)[CODES]
    classifier = LSTMClassifier(**TINY).fit(TEXTS, labels)
    assert classifier.classes_.tolist() == sorted(names)
    assert set(classifier.predict(TEXTS).tolist()) <= set(names)


def test_boolean_labels_and_pandas_columns_are_fine():
    labels = pd.Series(CODES == 0, index=range(1000, 1300))
    classifier = LSTMClassifier(**TINY).fit(pd.Series(TEXTS, index=labels.index), labels)
    assert classifier.predict(TEXTS).dtype == bool
    assert (classifier.predict(TEXTS) == labels.to_numpy()).mean() > 0.7


def test_a_handful_of_texts_is_enough():
    classifier = LSTMClassifier(**TINY).fit(TEXTS[:12], Y[:12])
    np.testing.assert_allclose(classifier.predict_proba(["word1"]).sum(), 1)


def test_a_class_of_one_text_is_learned_from_and_warned_of():
    with pytest.warns(QuanetWarning, match="class 'rare' has one text"):
        classifier = LSTMClassifier(**TINY).fit([*TEXTS[:50], "word1"], ["common"] * 50 + ["rare"])
    assert classifier.classes_.tolist() == ["common", "rare"]


def test_inputs_are_left_alone():
    texts, labels = list(TEXTS), Y.copy()
    LSTMClassifier(**TINY).fit(texts, labels).predict(texts)
    assert texts == TEXTS
    np.testing.assert_array_equal(labels, Y)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ([], [], "X and y are empty"),
        (["a", "b"], [1, 1], "y has one class only, 1; a classifier needs at least two"),
        (["a", None, "b"], [0, 1, 1], "1 of 3 texts is not a string"),
        ([1.0, 2.0], [0, 1], "none of the 2 values of X is a string"),
        ("one text", ["x"], "X is one string"),
        (["a", "b"], [0, 1, 1], "X has 2 instances but y has 3 labels"),
        (["a", "b", "c"], [0, 1, None], "y has 1 missing labels"),
        (["!", "?", "", "."], [0, 1, 0, 1], "no words were found in the 4 texts"),
        (["a", "b"], [0, 1], "every class has one text"),
    ],
)
def test_bad_data_is_named(texts, labels, message):
    with pytest.raises(InvalidData, match=message):
        LSTMClassifier(**TINY).fit(texts, labels)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"loss": "kld"}, "loss must be 'mse' or 'cross_entropy'; got 'kld'"),
        ({"held_out": 0.0}, "held_out must be a number between 0 and 1; got 0.0"),
        ({"held_out": 1}, "held_out must be"),
        ({"dropout": 1.0}, "dropout must be a number of at least 0 and below 1"),
        ({"lr": 0.0}, "lr must be a number above 0; got 0.0"),
        ({"lr": float("nan")}, "lr must be a number above 0; got nan"),
        ({"max_steps": 0}, "max_steps must be a number of at least 1; got 0"),
        ({"length": 0}, "length must be a whole number of at least 1; got 0"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not available"),
    ],
)
def test_a_bad_setting_is_named(setting, message):
    with pytest.raises(InvalidSetting, match=message):
        LSTMClassifier(**TINY | setting).fit(TEXTS, Y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform"])
def test_nothing_is_predicted_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(LSTMClassifier(), method)(["a text"])


def test_texts_to_predict_are_checked(fitted):
    with pytest.raises(InvalidData, match="one string, 'a text'"):
        fitted.predict("a text")


def test_the_constructor_stores_and_clones():
    classifier = LSTMClassifier(loss="cross_entropy", hidden=3)
    copied = clone(classifier)
    assert copied.get_params() == classifier.get_params()
    assert copied.get_params()["loss"] == "cross_entropy"
    paper = LSTMClassifier().get_params()
    assert (paper["words"], paper["length"], paper["hidden"], paper["dense"]) == (5000, 200, 128, 1024)
    assert (paper["lr"], paper["weight_decay"], paper["batch_size"], paper["max_steps"]) == (1e-4, 1e-4, 100, 20_000)


def test_a_copy_predicts_the_same(fitted):
    copied = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(copied.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_nothing_is_written_unless_progress_is_asked_for(capfd):
    LSTMClassifier(**TINY).fit(TEXTS, Y).predict(TEXTS)
    assert capfd.readouterr() == ("", "")
    LSTMClassifier(**TINY, progress=True).fit(TEXTS, Y)
    written = capfd.readouterr()
    assert written.out == ""
    assert "LSTM: loss" in written.err
    assert "3/3" in written.err


def test_a_quantifier_takes_it_as_its_classifier(fitted):
    new_texts, _ = SOURCE.draw([0.1, 0.1, 0.8], 500, rng=3)
    estimate = PCC(FrozenEstimator(fitted)).fit(TEXTS, Y).predict(new_texts)
    np.testing.assert_allclose(estimate, fitted.predict_proba(new_texts).mean(axis=0))
    assert PCC(LSTMClassifier(**TINY)).fit(TEXTS, Y).predict(new_texts).argmax() == 2


def test_without_torch_the_extra_is_named():
    code = """
import sys
sys.modules["torch"] = None
import quanet
try:
    quanet.LSTMClassifier
except quanet.QuanetError as error:
    print(type(error).__name__, error)
"""
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.startswith("MissingExtra LSTMClassifier needs PyTorch")
    assert "pip install 'quanet[nn]'" in shown

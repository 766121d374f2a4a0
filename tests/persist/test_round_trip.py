"""What is loaded is what was saved: every method, kind of data, label type and classifier, to the last bit."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import ComplementNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from quanet import ACC, APP, CC, EMQ, PACC, PCC, PWK, Gaussians, TextClassifier, TrainPrevalence, load, save
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.persist.load import Reader, model_facts
from quanet.persist.save import Writer
from quanet.persist.trust import Trust, canonical_json, digest

METHODS = [TrainPrevalence, CC, PCC, ACC, PACC, EMQ]
LABELS = {
    "string": np.array(["neg", "positive"]),
    "object": np.array(["neg", "positive"], dtype=object),
    "integer": np.array([1, 2]),
    "small integer": np.array([-1, 1], dtype=np.int8),
    "float": np.array([0.0, 1.0]),
    "boolean": np.array([False, True]),
    "date": np.array(["2018-10-22", "2018-10-23"], dtype="datetime64[D]"),
}
X, CODES = Gaussians(distance=2.0).draw([0.4, 0.6], 120, rng=0)
POOL, _ = Gaussians(distance=2.0).draw([0.7, 0.3], 50, rng=1)
WORDS = np.array(["awful terrible", "great lovely"])
TEXTS = [f"{WORDS[code]} film {at % 7}" for at, code in enumerate(CODES)]
NEW_TEXTS = ["great film", "awful plot 3", "lovely 5", "no word of it"]


def again(estimator, folder, **options):
    save(estimator, folder)
    return load(folder, **options)


def assert_same(loaded, fitted, pool):
    assert type(loaded) is type(fitted)
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert [type(label) for label in loaded.classes_.tolist()] == [type(label) for label in fitted.classes_.tolist()]
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.prior_, fitted.prior_)
    np.testing.assert_array_equal(loaded.represent(pool), fitted.represent(pool))
    np.testing.assert_array_equal(loaded.predict(pool), fitted.predict(pool))
    assert repr(loaded) == repr(fitted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labels", LABELS)
def test_labels_come_back_as_they_were(method, labels, tmp_path):
    fitted = method().fit(X, LABELS[labels][CODES])
    assert_same(again(fitted, tmp_path / "model"), fitted, POOL)


@pytest.mark.parametrize("method", METHODS)
def test_a_quantifier_of_texts_comes_back(method, tmp_path):
    fitted = method().fit(TEXTS, LABELS["string"][CODES])
    assert_same(again(fitted, tmp_path / "model"), fitted, NEW_TEXTS)


@pytest.mark.parametrize("method", METHODS)
def test_a_quantifier_of_posteriors_comes_back(method, tmp_path):
    source = Gaussians(distance=2.0)
    prior = np.array([0.5, 0.5])
    fitted = method("precomputed").fit(source.posteriors(X, prior), LABELS["string"][CODES])
    assert_same(again(fitted, tmp_path / "model"), fitted, source.posteriors(POOL, prior))


@pytest.mark.parametrize("method", METHODS)
def test_a_frozen_classifier_comes_back_once(method, tmp_path):
    labels = LABELS["string"][CODES]
    fitted = method(FrozenEstimator(TextClassifier().fit(TEXTS, labels))).fit(TEXTS, labels)
    loaded = again(fitted, tmp_path / "model")
    assert_same(loaded, fitted, NEW_TEXTS)
    if isinstance(fitted, AggregativeQuantifier):
        assert loaded.classifier_ is loaded.classifier


@pytest.mark.same_lines
@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(20, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        CalibratedClassifierCV(LinearSVC()),
        CalibratedClassifierCV(LinearSVC(), method="isotonic"),
        make_pipeline(MinMaxScaler(), LogisticRegression()),
        make_pipeline(MinMaxScaler(), make_pipeline(MinMaxScaler(), RandomForestClassifier(5, random_state=0))),
        SGDClassifier(loss="log_loss", random_state=0),
        GaussianProcessClassifier(),
        LinearDiscriminantAnalysis(),
        MLPClassifier((4,), max_iter=2000, random_state=0),
        CalibratedClassifierCV(SVC(), ensemble=False),
        LogisticRegression(random_state=np.random.RandomState(0)),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_a_quantifier_with_a_classifier_of_scikit_learn_comes_back(classifier, tmp_path):
    fitted = EMQ(classifier, cv=StratifiedKFold(3, shuffle=True, random_state=0)).fit(X, LABELS["string"][CODES])
    loaded = again(fitted, tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(POOL), fitted.predict(POOL))
    np.testing.assert_array_equal(loaded.represent(POOL), fitted.represent(POOL))


@pytest.mark.parametrize("calibration", ["platt", "temperature", "bcts", "vector", None])
def test_a_calibration_comes_back(calibration, tmp_path):
    fitted = EMQ(calibration=calibration).fit(X, CODES)
    assert_same(again(fitted, tmp_path / "model"), fitted, POOL)


def test_a_vocabulary_comes_back_and_stays_small(tmp_path):
    texts = [f"{text} word{at} other{at}" for at, text in enumerate(TEXTS * 10)]
    classifier = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), stop_words=["of"], dtype=np.float32), ComplementNB())
    fitted = PACC(classifier).fit(texts, np.tile(CODES, 10))
    loaded = again(fitted, tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(texts), fitted.predict(texts))
    assert list(loaded.classifier_[0].vocabulary_.items()) == list(fitted.classifier_[0].vocabulary_.items())
    assert (tmp_path / "model" / "config.json").stat().st_size < 10_000


def test_an_estimator_that_is_no_quantifier_comes_back(tmp_path):
    fitted = TextClassifier().fit(TEXTS, CODES)
    loaded = again(fitted, tmp_path / "text")
    np.testing.assert_array_equal(loaded.predict_proba(NEW_TEXTS), fitted.predict_proba(NEW_TEXTS))
    np.testing.assert_array_equal(loaded.transform(NEW_TEXTS), fitted.transform(NEW_TEXTS))
    scaler = again(MinMaxScaler().fit(X), tmp_path / "scaler")
    np.testing.assert_array_equal(scaler.transform(POOL), MinMaxScaler().fit(X).transform(POOL))
    assert "## Classes" not in (tmp_path / "scaler" / "README.md").read_text()
    piped = make_pipeline(MinMaxScaler(), EMQ()).fit(X, CODES)
    np.testing.assert_array_equal(again(piped, tmp_path / "pipe").predict(POOL), piped.predict(POOL))


def test_what_is_loaded_can_be_fitted_and_saved_again(tmp_path):
    fitted = EMQ().fit(X, CODES)
    twice = again(again(fitted, tmp_path / "model"), tmp_path / "model again")
    np.testing.assert_array_equal(twice.predict(POOL), fitted.predict(POOL))
    np.testing.assert_array_equal(twice.fit(X, CODES).predict(POOL), fitted.predict(POOL))


PROCESS = """
import json, sys
import numpy as np
import quanet

answers = {}
for name in sys.argv[1:]:
    quantifier = quanet.load(name)
    answers[name] = [float(share).hex() for share in quantifier.predict(json.load(open(name + ".json")))]
assert "skops" in sys.modules
assert not {"torch", "sklearn.externals.array_api_compat.torch"} & set(sys.modules)  # skops would import it
print(json.dumps(answers))
"""


def test_another_process_gives_the_same_estimates_and_needs_no_torch(tmp_path):
    cases = {}
    for fitted, pool in [
        *((method().fit(X, LABELS["boolean"][CODES]), POOL.tolist()) for method in METHODS),
        (EMQ().fit(TEXTS, LABELS["string"][CODES]), NEW_TEXTS),
        (PACC(RandomForestClassifier(9, random_state=0)).fit(X, CODES), POOL.tolist()),
    ]:
        name = str(tmp_path / f"model{len(cases)}")
        save(fitted, name)
        (tmp_path / f"{name}.json").write_text(json.dumps(pool))
        cases[name] = [share.hex() for share in fitted.predict(pool).tolist()]
    said = subprocess.run([sys.executable, "-c", PROCESS, *cases], check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == cases


def through_files(value):
    writer = Writer()
    tree = json.loads(json.dumps(writer.write(value, "value"), allow_nan=False))
    return Reader(writer.arrays, dict(enumerate(writer.parts)), Trust(())).read(tree)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = st.booleans() | st.integers() | st.text() | st.tuples(st.text(), st.integers())


@given(
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner),
        max_leaves=20,
    )
)
def test_plain_values_come_back_with_their_types(value):
    assert repr(through_files(value)) == repr(value)


@given(st.sets(KEYS) | st.frozensets(KEYS))
def test_sets_come_back(value):
    loaded = through_files(value)
    assert type(loaded) is type(value)
    assert loaded == value
    assert {type(entry) for entry in loaded} == {type(entry) for entry in value}


DTYPES = (
    hnp.scalar_dtypes()
    | hnp.unicode_string_dtypes(max_len=5)
    | hnp.byte_string_dtypes(max_len=5)
    | hnp.floating_dtypes(endianness=">")
)


@given(hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)), st.booleans())
def test_arrays_come_back_with_type_shape_and_order(array, turned):
    array = np.asfortranarray(array) if turned else array
    loaded = through_files(array)
    assert loaded.dtype == array.dtype
    assert loaded.shape == array.shape
    assert loaded.tobytes() == array.tobytes()
    assert loaded.flags.writeable
    if array.dtype.kind in "iuf" and array.dtype.isnative and array.dtype.itemsize <= 8:
        assert loaded.flags.f_contiguous == array.flags.f_contiguous


def test_numpy_values_and_types_come_back():
    for value in [np.float32(0.1), np.int64(3), np.str_("a"), np.bool_(True), np.datetime64("2018-10-22")]:
        loaded = through_files(value)
        assert type(loaded) is type(value)
        assert loaded == value
    assert through_files([np.float32, np.dtype("<U3")]) == [np.float32, np.dtype("<U3")]
    strings = np.array(["a", "longer"], dtype=np.dtypes.StringDType())
    assert through_files(strings).dtype == strings.dtype
    assert through_files(strings).tolist() == ["a", "longer"]


def test_numbers_that_json_has_not_come_back():
    assert repr(through_files([float("nan"), float("inf"), -float("inf"), -0.0])) == "[nan, inf, -inf, -0.0]"


def test_arrays_under_names_that_look_alike_stay_apart():
    loaded = through_files({"a.b": np.zeros(1), "a": {"b": np.ones(2)}})
    assert loaded["a.b"].tolist() == [0]
    assert loaded["a"]["b"].tolist() == [1, 1]


def test_a_part_that_was_shared_is_shared_again(tmp_path):
    fitted = CC(FrozenEstimator(LogisticRegression().fit(X, CODES))).fit(X, CODES)
    fitted.spare_ = fitted.classifier_.estimator
    loaded = again(fitted, tmp_path / "model")
    assert loaded.spare_ is loaded.classifier_.estimator


def test_what_was_shared_is_shared_again():
    array, turned = np.arange(6.0), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    first, second, *both = through_files([array, array, turned, turned])
    assert first is second
    assert both[0] is both[1]


def test_long_lists_and_dictionaries_come_back():
    words = {f"word {at}": at for at in range(5000)}
    assert through_files(words) == words
    assert through_files(list(words)) == list(words)
    assert through_files(APP(bag_size=7)) == APP(bag_size=7)


def test_neighbours_of_texts_keep_their_terms(tmp_path):
    texts, labels = ["good film", "bad film", "fine plot", "poor plot"] * 5, ["yes", "no"] * 10
    quantifier = PWK(3).fit(texts, labels)
    save(quantifier, tmp_path / "model")  # a sparse matrix among them
    assert load(tmp_path / "model").predict(texts[:7]).tolist() == quantifier.predict(texts[:7]).tolist()


@pytest.mark.parametrize("name", ["TermProfile", "Contents"])
def test_what_older_versions_saved_and_is_not_used_any_more_is_left_out(tmp_path, name):
    texts, labels = [f"{word} film {n}" for n in range(20) for word in ("good", "bad")], ["yes", "no"] * 20
    quantifier = EMQ(TextClassifier(views=["words"])).fit(texts, labels)
    save(quantifier, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_bytes())
    profile = {"$object": name, "id": 99, "state": {"means": [1.0], "counts": {"$array": "nowhere"}}}
    config["model"]["state"]["classifier_"]["state"]["contents_"] = profile
    config.pop("sha256")
    path.write_text(json.dumps(config | {"sha256": digest(canonical_json(config))}))
    again = load(tmp_path / "model")
    assert not hasattr(again.classifier_, "contents_")
    np.testing.assert_array_equal(again.predict(texts), quantifier.predict(texts))
    assert model_facts(tmp_path / "model").method == "EMQ"

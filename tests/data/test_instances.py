"""Texts and posteriors come in many containers; columns mean what they are called."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from quanet import CC, EMQ, PACC, CvMy, DeepSets, Gaussians, GridSearchQ, evaluate
from quanet.data.instances import check_posteriors, check_texts, is_text, posterior_columns
from quanet.errors import InvalidData
from quanet.methods.multiclass import OneVsRest
from quanet.protocols import APP

WORDS = ["film", "plot", "cast", "score", "scene", "start", "end", "camera", "sound", "joke"]
TEXTS = [f"{word} {thing}" for thing in WORDS for word in ("good", "bad")]
LABELS = ["pos", "neg"] * 10


class Frame:
    """A table as polars has it: no `iloc`, no `ndim`, columns by name."""

    def __init__(self, columns):
        self._columns = columns
        self.columns = list(columns)

    @property
    def shape(self):
        return len(next(iter(self._columns.values()))), len(self._columns)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, name):
        return Series(self._columns[name])

    def __array__(self, dtype=None, copy=None):
        return np.column_stack(list(self._columns.values())).astype(dtype)


class Series:
    """A column as polars has it."""

    dtype = "String"

    def __init__(self, values):
        self._values = list(values)

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        return iter(self._values)

    def to_list(self):
        return self._values


CONTAINERS = {
    "list": list,
    "array": np.array,
    "one column of an array": lambda texts: np.array(texts)[:, None],
    "pandas": pd.Series,
    "one column of pandas": lambda texts: pd.DataFrame({"text": texts}),
    "pandas over pyarrow": lambda texts: pd.Series(texts, dtype="string[pyarrow]"),
    "pyarrow": pa.array,
    "chunks of pyarrow": lambda texts: pa.chunked_array([texts[:5], texts[5:]]),
    "one column of pyarrow": lambda texts: pa.table({"text": texts}),
    "polars": Series,
    "one column of polars": lambda texts: Frame({"text": texts}),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_texts_are_read_from_any_container(container):
    X = container(TEXTS)
    assert is_text(X)
    assert check_texts(X) == TEXTS
    np.testing.assert_array_equal(EMQ().fit(X, LABELS).predict(X), EMQ().fit(TEXTS, LABELS).predict(TEXTS))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 3)), r"Texts are needed, but X is a matrix of shape \(4, 3\)"),
        ([1.0, 2.0], "none of the 2 values of X is a string"),
        (pd.DataFrame({"a": ["b"], "c": ["d"]}), r"matrix of shape \(1, 2\)"),
    ],
)
def test_numbers_for_a_model_of_texts_say_that_texts_are_needed(X, message):
    with pytest.raises(InvalidData, match=message):
        CC().fit(TEXTS, LABELS).predict(X)


def test_texts_for_a_model_of_numbers_say_that_numbers_are_needed():
    quantifier = CC().fit(np.random.default_rng(0).normal(size=(20, 2)), LABELS)
    with pytest.raises(InvalidData, match="X contains texts, but the model was fitted to numbers"):
        quantifier.predict(TEXTS)


def test_several_columns_with_strings_name_the_column():
    with pytest.raises(InvalidData, match="X has 2 columns, and 'text' contains strings"):
        CC().fit(pd.DataFrame({"size": range(20), "text": TEXTS}), LABELS)


def made(n=200):
    """Posteriors of pos and neg, in that order, and labels."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(n) < 0.8, "pos", "neg")
    pos = np.clip(np.where(labels == "pos", 0.8, 0.2) + rng.normal(0, 0.1, n), 0.01, 0.99)
    return pd.DataFrame({"pos": pos, "neg": 1 - pos}), labels


def each_by_itself(classifier):
    return OneVsRest(PACC(classifier))


@pytest.mark.parametrize("method", [CC, EMQ, PACC, each_by_itself])
def test_posterior_columns_are_matched_to_classes_by_name(method):
    table, labels = made()
    plain = table[["neg", "pos"]].to_numpy()
    by_name, by_place = method("precomputed").fit(table, labels), method("precomputed").fit(plain, labels)
    np.testing.assert_array_equal(by_name.predict(table), by_place.predict(plain))
    np.testing.assert_array_equal(by_name.predict(table[["neg", "pos"]]), by_name.predict(table))
    np.testing.assert_array_equal(by_name.predict(by_name.read(table)), by_name.predict(table))


def test_every_way_to_estimate_matches_posterior_columns_by_name():
    table, labels = made()
    turned = table[["neg", "pos"]]
    fitted = EMQ("precomputed").fit(table, labels)
    np.testing.assert_array_equal(fitted.predict_interval(table).lower, fitted.predict_interval(turned).lower)
    protocol = APP(bag_size=50, repeats=2)
    errors = [evaluate(fitted, X, labels, protocol, rng=0).error().mean() for X in (table, turned)]
    assert errors[0] == errors[1]
    grid = {"calibration": [None, "bcts"]}
    searches = [GridSearchQ(EMQ("precomputed"), grid, protocol=protocol).fit(X, labels) for X in (table, turned)]
    np.testing.assert_array_equal(searches[0].errors_, searches[1].errors_)


def test_a_network_matches_posterior_columns_by_name_and_takes_the_others_as_embedding():
    pytest.importorskip("torch")
    table, labels = made(300)
    table["e"] = np.random.default_rng(1).normal(size=300)
    one, two = (
        DeepSets("precomputed", max_epochs=1, random_state=0).fit(X, labels).predict(X)
        for X in (table, table[["e", "neg", "pos"]])
    )
    np.testing.assert_array_equal(one, two)


def test_columns_that_are_no_class_are_refused():
    table, labels = made()
    with pytest.raises(InvalidData, match=r"are \['yes', 'neg'\], but the classes are \['neg', 'pos'\]"):
        EMQ("precomputed").fit(table.rename(columns={"pos": "yes"}), labels)
    with pytest.raises(InvalidData, match="Remove the other columns"):
        EMQ("precomputed").fit(table.assign(size=1.0), labels)


def test_numbered_columns_are_taken_in_the_order_of_the_classes():
    table, _ = made()
    numbered = table[["neg", "pos"]].set_axis([0, 1], axis=1)
    np.testing.assert_array_equal(posterior_columns(numbered, np.array(["neg", "pos"]))[0], numbered.to_numpy())


def test_whole_number_classes_are_found_under_their_names_as_texts():
    table = pd.DataFrame({"2": [0.3], "1": [0.7]})
    np.testing.assert_array_equal(posterior_columns(table, np.array([1, 2]))[0], [[0.7, 0.3]])
    arrow = pa.table({"2": [0.3], "1": [0.7]})
    np.testing.assert_array_equal(posterior_columns(arrow, np.array([1, 2]))[0], [[0.7, 0.3]])


def test_posteriors_that_sum_to_one_stay_as_they_are():
    votes = np.array([[a, b, 10 - a - b] for a in range(11) for b in range(11 - a)]) / 10
    np.testing.assert_array_equal(check_posteriors(votes, 3), votes)
    single = votes.astype(np.float32)
    np.testing.assert_array_equal(check_posteriors(single, 3), single.astype(float))
    np.testing.assert_allclose(check_posteriors([[0.5, 0.5005]], 2).sum(axis=1), 1, atol=1e-15)


def test_equal_votes_stay_equal_in_the_rows_of_a_quantifier():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    votes = np.array([rng.multinomial(10, np.eye(3)[c] * 0.4 + 0.2) for c in y]) / 10
    quantifier = CvMy("precomputed").fit(votes, y)
    np.testing.assert_array_equal(np.unique(quantifier.represent(votes)[:, :3]), np.arange(11) / 10)


@pytest.mark.filterwarnings("ignore:The classifier")
@pytest.mark.parametrize("kind", [int, bool, float])
def test_labels_of_dtype_object_are_as_those_of_their_own_type(kind):
    X, codes = Gaussians().draw([0.4, 0.6], 100, rng=0)
    y = codes.astype(kind)
    expected, found = (PACC().fit(X, labels) for labels in (y, y.astype(object)))
    assert found.classes_.dtype == expected.classes_.dtype
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_labels_of_several_types_are_refused_and_missing_ones_are_named():
    X, codes = Gaussians().draw([0.4, 0.6], 100, rng=0)
    with pytest.raises(InvalidData, match="The labels mix int and str"):
        PACC().fit(X, [1 if code else "b" for code in codes])
    with pytest.raises(InvalidData, match=r"y has 1 missing labels \(first at index 0\)"):
        PACC().fit(X, [float("nan"), *("ab"[code] for code in codes[1:])])  # NumPy would write "nan"


def test_an_error_about_labels_does_not_blame_the_instances():
    X, codes = Gaussians().draw([0.4, 0.6], 100, rng=0)
    with pytest.raises(InvalidData, match=r"cannot use y: Unknown label type"):
        PACC().fit(X, np.array([Decimal(int(code)) for code in codes], dtype=object))

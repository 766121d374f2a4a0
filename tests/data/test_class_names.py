import numpy as np
import pytest

from quanet.data.columns import ClassNames, as_labels_written, parse_names
from quanet.errors import InvalidSetting

SAVED = {"0": "negative", "1": "positive"}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["0"], "LABEL=NAME"),
        (["=a"], "LABEL=NAME"),
        (["0="], "LABEL=NAME"),
        (["0=a", "0=b"], "two names"),
        (["0=a", "1=a"], "Two labels"),
    ],
)
def test_a_malformed_pair_and_a_double_name_are_rejected(texts, problem):
    with pytest.raises(InvalidSetting, match=problem):
        parse_names(texts)


def test_labels_and_names_mean_the_same():
    named = ClassNames.of(np.array([0, 1]), SAVED)
    assert named.shown(["0", "negative", "1", None, "?"]) == ["negative", "negative", "positive", None, "?"]
    assert named.find("1") == named.find("positive") == "positive"
    assert as_labels_written(["0", "negative"], SAVED) == ["0", "0"]


def test_names_keep_the_order_of_the_classes():
    assert ClassNames.of(np.array([0, 1]), {"0": "z", "1": "a"}).names.tolist() == ["z", "a"]


def test_names_given_now_take_precedence_over_saved_ones():
    named = ClassNames.of(np.array([0, 1]), {"0": "bad"}, SAVED)
    assert named.names.tolist() == ["bad", "positive"]
    assert named.shown(["negative", "0", "bad"]) == ["bad"] * 3


def test_without_names_nothing_is_renamed():
    classes, fitted = np.array([0, 1]), object()
    named = ClassNames.of(classes, {})
    assert named.names is classes
    assert named.rename(fitted) is fitted


@pytest.mark.parametrize("given", [{"2": "x"}, {"neg": "x"}, {"0": "1"}, {"0": "positive"}])
def test_an_unknown_label_and_a_name_of_two_classes_are_rejected(given):
    with pytest.raises(InvalidSetting, match=r"classes are 'negative'|would name two"):
        ClassNames.of(np.array([0, 1]), given, SAVED)


def test_an_unknown_class_is_reported_with_the_nearest_first():
    with pytest.raises(InvalidSetting, match="Choose from 'positive', 'negative'"):
        ClassNames.of(np.array([0, 1]), SAVED).find("positve")

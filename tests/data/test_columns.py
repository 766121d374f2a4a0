import numpy as np
import pytest

from quanet import EMQ, Gaussians
from quanet.data.label_spellings import describe_variants, label_variants, normalize_labels
from quanet.errors import QuanetWarning


@pytest.mark.parametrize(
    "labels",
    [
        ["negative", "NEGATIVE", "Negative "],
        ["not sure", "not  sure", "Not_Sure", "not-sure"],
        ["caf\u00e9", "cafe\u0301"],
        ["\uff41", "a"],
    ],
)
def test_labels_that_differ_in_case_spaces_or_form_are_variants(labels):
    assert len(label_variants([*labels, "other"])) == 1
    assert len(np.unique(normalize_labels([*labels, "other"]))) == 2


@pytest.mark.parametrize("labels", [["1", "-1"], ["a", "b"], [1, 2], [True, False], ["yes", "yess"]])
def test_different_labels_are_no_variants(labels):
    assert label_variants(labels) == []
    assert describe_variants(labels) == ""
    assert normalize_labels(labels).tolist() == labels


def test_the_commonest_spelling_is_kept_unless_one_is_known():
    labels = ["NO", "no", "no", "Yes"]
    assert normalize_labels(labels).tolist() == ["no", "no", "no", "Yes"]
    assert normalize_labels(labels, known=["No", "YES"]).tolist() == ["No", "No", "No", "YES"]


@pytest.mark.filterwarnings("ignore:The classifier (hardly|does not) separate")
def test_a_quantifier_warns_of_variants():
    X, codes = Gaussians().draw([0.5, 0.5], 90, rng=0)
    y = np.array(["no", "yes"])[codes].astype(object)
    y[:20] = [label.upper() for label in y[:20]]
    with pytest.warns(QuanetWarning, match="These labels look like one class each: 'NO', 'no'; 'YES', 'yes'"):
        EMQ().fit(X, y.astype(str))

"""Groups that the user names: left out once each, or a warning that says why not and what is used instead."""

import warnings

import numpy as np
import pytest

from quanet import EMQ, Gaussians, GridSearchQ
from quanet.drift.scale import TrainingParts, check_groups, drift_sentence, find_parts, root_mean_square, without_drift
from quanet.errors import InvalidData, QuanetWarning

X, Y = Gaussians().draw([0.5, 0.5], 1200, rng=0)
FOUR = np.arange(1200) % 4
APART = X + FOUR[:, None] * 0.3  # four groups that differ
INSTEAD = "The bias that is typical of other datasets is used instead."


def fit(groups, n=1200):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", QuanetWarning)
        fitted = EMQ().fit(APART[:n], Y[:n], groups=groups)
    return fitted.drift_, [str(one.message) for one in caught if issubclass(one.category, QuanetWarning)]


def test_groups_are_left_out_once_each():
    scale, said = fit(FOUR)
    assert (scale.kind, len(scale.distances), said) == ("groups", 4, [])
    assert scale.sentence.startswith(
        "When each of 4 groups of the training data was left out, a share of 50 % in it was "
    )


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        (["all"] * 1200, "there is one group only, all"),
        ([None] * 1200, "there is one group only"),
        (np.where(Y == 0, "no", "yes"), "0 of 2 groups can be left out"),
        (FOUR % 2, "2 of 2 groups can be left out, fewer than 3"),
        (np.arange(1200), "0 of 8 groups can be left out"),
    ],
)
def test_groups_that_cannot_be_used_are_explained_in_one_line(groups, why):
    scale, said = fit(groups)
    [message] = said
    assert why in message
    assert message.endswith(INSTEAD)
    assert "\n" not in message
    assert scale.kind == ""
    assert why in scale.sentence


def test_few_instances_are_explained():
    _, [message] = fit(FOUR[:900], n=900)
    assert message == (
        f"The groups do not show what drift may cost: there are 900 training instances, fewer than 1,000. {INSTEAD}"
    )
    assert fit(None, n=900)[1] == []  # nobody asked for parts


def test_a_wrong_number_of_groups_is_an_error_before_the_work(monkeypatch):
    monkeypatch.setattr(EMQ, "_fit", None)
    with pytest.raises(InvalidData, match=r"groups must have shape \(1200,\), one group per instance.*\(5,\)"):
        EMQ().fit(X, Y, groups=list("abcde"))


def test_instances_without_a_group_and_small_groups_are_never_left_out():
    assert check_groups([None, float("nan"), "a", 3], 4).tolist() == ["", "", "a", "3"]
    names = np.array([""] * 400 + [f"g{n % 4}" for n in range(800)])
    parts = find_parts(np.zeros((1200, 1)), Y, 2, names, 3000)
    assert isinstance(parts, TrainingParts)
    folds = parts.folds(Y, 2)
    assert len(folds) == 4
    assert all((held_out >= 400).all() for _, held_out in folds)
    assert all(len(seen) + len(held_out) == 1200 for seen, held_out in folds)
    many = np.array([f"g{n % 20}" for n in range(1200)])
    parts = find_parts(np.zeros((1200, 1)), Y, 2, many, 3000)
    assert len(parts.folds(Y, 2)) == 8


def test_a_search_learns_the_scale_once_with_the_groups(monkeypatch):
    calls = []
    learn = EMQ.learn_drift
    monkeypatch.setattr(EMQ, "learn_drift", lambda self, *rest: calls.append(rest[2]) or learn(self, *rest))
    search = GridSearchQ(EMQ(), {"calibration": ["bcts", "vector"]}).fit(APART, Y, groups=FOUR)
    assert len(calls) == 1
    assert search.quantifier_.drift_.kind == "groups"
    with without_drift():
        assert EMQ().fit(APART, Y).drift_ is None


def test_the_bias_is_the_root_mean_square_at_half():
    assert root_mean_square(np.array([0.01, 0.03])) == pytest.approx(np.sqrt(0.02 * 0.25))
    assert root_mean_square(np.array([-0.01, 0.02])) == pytest.approx(np.sqrt(0.01 * 0.25))
    assert drift_sentence("groups", np.array([0.0, -0.01, 0.0])) == (
        "When each of 3 groups of the training data was left out, a share of 50 % in it was right, except for chance."
    )
    assert drift_sentence("", np.empty(0), unknown="why") == "Unknown: why. Intervals do not include drift."

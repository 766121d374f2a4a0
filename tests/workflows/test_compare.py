from dataclasses import replace

import numpy as np
import pytest

from quanet import EMQ, Gaussians, WordBags
from quanet.errors import InvalidData, InvalidSetting, MissingExtra
from quanet.evaluation.evaluate import Results
from quanet.evaluation.significance import paired_t_test
from quanet.lab.catalogue import all_methods
from quanet.workflows import method_choice
from quanet.workflows.compare import MethodOutcome, rank_methods, run_methods, share_classifier
from quanet.workflows.drawing import Drawing, draw_bags
from quanet.workflows.method_choice import choose_methods

NAMES = np.array(["neg", "pos"])


@pytest.fixture(scope="module")
def shared():
    texts, codes = WordBags(length=10).draw([0.5, 0.5], 300, rng=0)
    tried, tried_codes = WordBags(length=10).draw([0.4, 0.6], 300, rng=1)
    return share_classifier(texts, NAMES[codes], tried, NAMES[tried_codes])


@pytest.fixture(scope="module")
def drawn(shared):
    return draw_bags(Drawing(bag_size=50, repeats=2), shared.test_labels, shared.classes, rng=0)


@pytest.fixture(scope="module")
def three():
    X, y = Gaussians(k=3, distance=3).draw([0.3, 0.3, 0.4], 300, rng=0)
    return share_classifier(X, y, X, y)


def run(names, shared, drawn):
    return {one.method: one for one in run_methods(names, shared, drawn.bags)}


def test_a_shared_classifier_gives_what_a_method_would_have_found_alone(shared, drawn):
    alone = EMQ().fit(shared.X, shared.labels)
    found = run(["EMQ"], shared, drawn)["EMQ"]
    np.testing.assert_allclose(found.results.estimate, alone.predict_bags(shared.X_test, drawn.bags), atol=1e-4)
    np.testing.assert_array_equal(found.results.truth, drawn.bags.prevalences)


def test_methods_are_ranked_and_tested_against_the_best(shared, drawn):
    outcomes = list(run(["TrainPrevalence", "CC", "EMQ", "HDx", "EDx"], shared, drawn).values())
    found = rank_methods(outcomes, shared, drawn, metric="RAE", train="a", test="b")
    assert list(found.errors) == ["rae", "ae", "kld"]
    assert (np.diff(found.errors["rae"]) >= 0).all()
    assert list(found.results)[-1] == "TrainPrevalence"
    for errors in found.p_values.values():
        assert np.isnan(errors).sum() == 1
    assert np.isnan(found.p_values["rae"][0])
    np.testing.assert_allclose(found.prior, [0.5, 0.5])
    assert found.counts.tolist() == [120, 180]
    assert found.limit.errors.mean() > 0


def test_probabilities_are_adjusted_for_the_number_of_methods(shared, drawn):
    truth = np.tile([0.5, 0.5], (4, 1))
    off = {"a": [0.01, 0.02, 0.01, 0.02], "b": [0.03, 0.05, 0.02, 0.06], "c": [0.2, 0.3, 0.25, 0.22]}
    outcomes = [
        MethodOutcome(name, Results(truth, truth + np.outer(d, [1, -1]), NAMES, np.full(4, 9), np.arange(4)), 0.1)
        for name, d in off.items()
    ]
    found = rank_methods(outcomes, shared, drawn)
    alone = [float(paired_t_test(off[name], off["a"])) for name in "bc"]
    # Holm: the smaller of two is doubled, the larger stays, and no smaller than the other.
    np.testing.assert_allclose(found.p_values["ae"][1:], [max(alone[0], 2 * alone[1]), 2 * alone[1]])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("OneVsRest", "combines other methods and needs quantifier"),
        ("HDy", "needs two classes; these data have 3"),
        ("ReadMe", "needs texts; these instances are numbers"),
    ],
)
def test_a_method_that_cannot_run_says_why(three, name, reason):
    drawn = draw_bags(Drawing(bag_size=30, repeats=1), three.test_labels, three.classes, rng=0)
    found = run([name, "CC"], three, drawn)
    assert reason in found[name].reason
    assert found["CC"].results is not None
    assert rank_methods(list(found.values()), three, drawn).failed.keys() == {name}


def test_methods_for_ordered_classes_need_three_numbers(shared, drawn, three):
    assert "at least three ordered classes" in run(["OEMQ"], shared, drawn)["OEMQ"].reason
    other = draw_bags(Drawing(bag_size=30, repeats=1), three.test_labels, three.classes, rng=0)
    assert run(["OEMQ"], three, other)["OEMQ"].results is not None
    named = replace(three, classes=np.array(["a", "b", "c"]))
    assert "these labels are names" in run(["OEMQ"], named, other)["OEMQ"].reason


def test_a_method_that_fails_does_not_stop_the_others(monkeypatch, shared, drawn):
    def fails(self, X, y):
        raise ValueError("two\nlines")

    monkeypatch.setattr(all_methods()["PACC"], "fit", fails)
    found = run(["PACC", "CC"], shared, drawn)
    assert found["PACC"].reason == "two lines"
    assert found["CC"].reason == ""
    with pytest.raises(InvalidData, match=r"No method could run on these data. PACC: two lines"):
        rank_methods([found["PACC"]], shared, drawn)


def test_a_missing_extra_is_a_reason(monkeypatch, shared, drawn):
    class Quanet:
        def __getattr__(self, name):
            raise MissingExtra("DeepSets needs PyTorch.")

    monkeypatch.setattr(method_choice, "quanet", Quanet())
    assert run(["DeepSets"], shared, drawn)["DeepSets"].reason == "DeepSets needs PyTorch."


def test_names_are_found_in_any_case_and_sorted_by_cost():
    assert choose_methods(["deepsets", "EMQ", "Hdx", "quanet", "emq"]) == ["EMQ", "QuaNet", "HDx", "DeepSets"]
    quick, everything = choose_methods(["Quick"]), choose_methods(["all"])
    assert set(quick) < set(everything)
    assert not {"OneVsRest", "AutoQuantifier", "GridSearchQ"} & set(everything)
    with pytest.raises(InvalidSetting, match=r"Unknown method 'emu'. Did you mean EMQ"):
        choose_methods(["cc", "emu"])
    with pytest.raises(InvalidSetting, match="cannot be combined with names"):
        choose_methods(["cc", "all"])


def test_unknown_labels_and_a_single_class_are_told_before_the_work():
    X, y = Gaussians().draw([0.5, 0.5], 40, rng=0)
    with pytest.raises(InvalidData, match="Add instances of another class"):
        share_classifier(X, np.zeros(40), X, y)
    with pytest.raises(InvalidData, match="Label 7 is not one of the classes"):
        share_classifier(X, y, X, np.full(40, 7))

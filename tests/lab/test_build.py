from datetime import date

import pytest

from quanet import CC, EMQ, GridSearchQ, HistNetQ, LSTMClassifier, QuaNet, TextClassifier, TrainPrevalence
from quanet.errors import InvalidPart
from quanet.lab.build import estimators, find, make, needs_seed, prepare, reads_posteriors_only, values_of


def test_parts_may_stand_in_parts():
    search = make({"kind": "GridSearchQ", "quantifier": {"kind": "EMQ", "tol": 1e-3}, "grid": [{"tol": [0.1]}]})
    assert isinstance(search, GridSearchQ)
    assert search.quantifier.tol == 1e-3
    assert make({"kind": "EMQ", "classifier": {"kind": "TextClassifier"}, "classifier__C": 3}).classifier.C == 3


def test_a_run_seeds_what_has_no_seed_and_nothing_else():
    assert prepare(LSTMClassifier(), seed=7, device=None, shared=False).random_state == 7
    assert prepare(LSTMClassifier(random_state=1), seed=7, device=None, shared=False).random_state == 1
    assert prepare(TextClassifier(), seed=7, device=None, shared=False).random_state == 0
    inner = prepare(EMQ(LSTMClassifier()), seed=7, device="cpu", shared=False)
    assert (inner.classifier.random_state, inner.classifier.device) == (7, "cpu")
    assert needs_seed(LSTMClassifier())
    assert not needs_seed(TextClassifier())


def test_a_device_fills_what_is_left_open():
    assert prepare(QuaNet.paper(), seed=0, device="cpu", shared=False).device == "cpu"
    assert prepare(QuaNet.paper(device="cuda"), seed=0, device="cpu", shared=False).device == "cuda"
    assert prepare(QuaNet.paper(), seed=0, device=None, shared=False).device == "auto"


def test_shared_rows_are_precomputed_also_for_a_method_in_a_method():
    assert prepare(CC(), seed=0, device=None, shared=True).classifier == "precomputed"
    search = prepare(GridSearchQ(EMQ(), {"tol": [0.1]}), seed=0, device=None, shared=True)
    assert search.quantifier.classifier == "precomputed"
    assert prepare(CC(), seed=0, device=None, shared=False).classifier is None


def test_a_network_is_told_that_shared_rows_are_of_one_classifier():
    assert prepare(HistNetQ(), seed=0, device=None, shared=True, share=0.4).cv == 0.4
    assert prepare(HistNetQ(), seed=0, device=None, shared=True).cv == 5
    assert prepare(HistNetQ(), seed=0, device=None, shared=False, share=0.4).cv == 5


def test_posteriors_are_for_methods_of_posteriors():
    assert reads_posteriors_only(CC())
    assert reads_posteriors_only(GridSearchQ(EMQ(), {"tol": [0.1]}))
    assert reads_posteriors_only(QuaNet())
    assert not reads_posteriors_only(QuaNet.paper())
    assert not reads_posteriors_only(TrainPrevalence())


def test_grids_may_hold_none_and_parts():
    values = values_of({"calibration": ["None", "bcts"], "classifier": [{"kind": "TextClassifier"}]})
    assert values["calibration"] == [None, "bcts"]
    assert isinstance(values["classifier"][0], TextClassifier)


def test_what_can_be_asked_for_is_known():
    assert {"CC", "QuaNet", "TextClassifier"} <= set(estimators())
    assert not {"Quantifier", "Bags", "load"} & set(estimators())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("QuaNet._aggregate", "has no '_aggregate'"),
        ("MODULE_OF", "has no 'MODULE_OF'"),
        ("METRICS", "is not an estimator class"),
        ("os:getcwd", "is not an estimator class"),
        ("uuid:UUID", "is not an estimator class"),
        ("..:x", "does not name a class"),
        ("no.such.module:Thing", "cannot be imported"),
        ("sklearn.svm:SVCC", "Did you mean 'SVC'"),
    ],
)
def test_what_there_is_not_is_named(kind, message):
    with pytest.raises(InvalidPart, match=message):
        find(kind)


def test_a_class_that_refuses_its_settings_is_named():
    with pytest.raises(InvalidPart, match="Gaussians cannot be built: "):
        make({"kind": "Gaussians", "k": 1})
    with pytest.raises(InvalidPart, match="is a date or a time, which cannot be a setting"):
        make({"kind": "PACC", "cv": date(1979, 5, 27)})

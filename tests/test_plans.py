"""The plans in benchmarks/ can be run as they stand."""

import sys
import tomllib
from pathlib import Path

import pytest

import quanet
from quanet.lab.plan import read_plan

PLANS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def search_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_the_papers_plan_has_its_rows_and_its_protocol():
    plan = read_plan(PLANS / "paper.toml")
    assert len(list(plan.cells)) == 3 * 10 * 11 + 10  # and what the authors' selection is worth, on IMDB
    assert plan.learn == 0.6
    assert plan.draws(2) == quanet.APP()  # 21 prevalences, 100 bags of 500 each
    shared = {method.name for method in plan.methods if method.classifier == "lstm"}
    assert {"CC", "ACC", "PCC", "PACC", "EMQ", "QuaNet", "QuaNet.paper"} < shared
    assert [method.name for method in plan.methods if method.leak] == ["QuaNet.paper (selected on test)"]
    assert plan.method("SVM-Q").grid == {"C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}


def test_the_modern_plan_can_be_read():
    said = tomllib.loads((PLANS / "modern.toml").read_text())
    kinds = {table.get("kind", name) for name, table in said["methods"].items()} | {"SentenceClassifier"}
    missing = sorted(kinds - set(quanet.__all__))
    if missing:
        pytest.skip(f"this version has no {', '.join(missing)}")
    plan = read_plan(PLANS / "modern.toml")
    assert plan.folds == 20


def test_the_variant_that_peeks_selects_on_bags_of_test_rows_and_the_papers_does_not(monkeypatch):
    monkeypatch.syspath_prepend(str(PLANS))
    from quanet.nn import paper
    from quanet.nn.training import Epoch
    from selected_on_test import SelectedOnTest

    seen = {}

    def train(network, batches, valid, loss, **settings):
        seen[name] = [batch[-1].shape[0] for batch in valid], valid[0][0]
        yield Epoch(0, 0.0, 0.0, True)

    monkeypatch.setattr(paper, "train", train)
    X, y = quanet.Gaussians().draw([0.5, 0.5], 200, rng=0)
    posteriors = quanet.Gaussians().posteriors(X, [0.5, 0.5])
    test = posteriors[::-1] * [0.5, 1.5] / (posteriors[::-1] * [0.5, 1.5]).sum(axis=1, keepdims=True)
    for leaked in ({}, {"leaked": (test, y[::-1])}):
        name = "peeks" if leaked else "honest"
        kind = SelectedOnTest if leaked else quanet.QuaNet.paper
        fitted = kind("precomputed", device="cpu", random_state=0).fit(posteriors, y, **leaked)
        assert not hasattr(fitted, "_leaked")
    assert seen["honest"][0] == seen["peeks"][0]  # as many bags, of other rows
    rows = {round(value, 5) for value in seen["peeks"][1].flatten().tolist()}
    assert rows <= {round(float(value), 5) for value in test[:, 1].astype("float32")}
    rows = {round(value, 5) for value in seen["honest"][1].flatten().tolist()}
    assert rows <= {round(float(value), 5) for value in posteriors[:, 1].astype("float32")}

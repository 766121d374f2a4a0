"""--names and --class in every verb: other words, the same numbers."""

import json

import numpy as np
import pandas as pd
import pytest

from quanet import Gaussians

from .made_tables import judged

NAMES = ("--names", "0=negative,1=positive")


def drawn(share, n, seed):
    """Numbers a and b with labels 0 and 1."""
    X, y = Gaussians().draw([1 - share, share], n, rng=seed)
    order = np.random.default_rng(seed).permutation(n)
    return pd.DataFrame({"a": X[order, 0], "b": X[order, 1], "sentiment": y[order], "product": ["x", "y"] * (n // 2)})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("numbered")


@pytest.fixture
def fitted(home, call):
    """Models with and without names, fitted once, and files."""
    if not (home / "named").exists():
        drawn(0.5, 400, 0).to_csv(home / "train.csv", index=False)
        drawn(0.3, 300, 1).to_csv(home / "test.csv", index=False)
        drawn(0.7, 300, 2).drop(columns="sentiment").to_csv(home / "new.csv", index=False)
        for name, extra in (("plain", ()), ("named", NAMES)):
            options = ("--features", "a,b", "--label", "sentiment", "--method", "EMQ", *extra)
            assert call("fit", home / "train.csv", *options, "-o", home / name)[0] == 0
    return home


def total(out):
    return {name: values["estimate"] for name, values in json.loads(out)["total"]["classes"].items()}


def test_names_saved_by_fit_are_shown_by_later_verbs(fitted, call):
    plain = total(call("predict", fitted / "plain", fitted / "new.csv")[1])
    named = total(call("predict", fitted / "named", fitted / "new.csv")[1])
    now = total(call("predict", fitted / "plain", fitted / "new.csv", *NAMES)[1])
    assert named == now == {"negative": plain["0"], "positive": plain["1"]}
    assert "0 (negative)" in call("info", fitted / "named")[1]


def test_the_class_wanted_is_the_headline(fitted, call):
    found = call("predict", fitted / "named", fitted / "new.csv", "--by", "product", "--class", "0", "--format", "md")[
        1
    ]
    assert found.split("\n\n")[1].lstrip("*").startswith("negative")
    assert "| product | n | negative | positive | negative, counted" in found


def test_labels_of_a_file_are_written_either_way(fitted, call):
    test = pd.read_csv(fitted / "test.csv")
    words = test.assign(sentiment=np.where(test["sentiment"] == 1, "positive", "0"))
    words.to_csv(fitted / "words.csv", index=False)
    options = ("--protocol", "npp", "--repeats", "5", "--label", "sentiment")
    plain = json.loads(call("evaluate", fitted / "plain", fitted / "test.csv", *options)[1])
    named = json.loads(call("evaluate", fitted / "named", fitted / "words.csv", *options, "--class", "negative")[1])
    assert list(named["whole"]) == ["negative", "positive"]
    assert named["whole"]["positive"] == plain["whole"]["1"]
    assert named["methods"] == plain["methods"]


def test_fit_accepts_labels_and_names_in_one_file(fitted, call, tmp_path):
    table = pd.read_csv(fitted / "test.csv")
    table["sentiment"] = [("0", "positive" if place % 2 else "1")[one] for place, one in enumerate(table["sentiment"])]
    table.to_csv(tmp_path / "mixed.csv", index=False)
    command = ("fit", tmp_path / "mixed.csv", "--label", "sentiment", "--features", "a,b", "--method", "CC")
    code, _, err = call(*command, "-o", "m", *NAMES, "--class", "positive", "--report", "r.json")
    assert code == 0
    assert "Classes: positive" in err
    assert json.loads((tmp_path / "r.json").read_text())["data"]["names"] == {"0": "negative", "1": "positive"}


def test_a_monitor_resumes_under_other_names(fitted, call, tmp_path):
    for name, share, week in (("one", 0.3, "03"), ("two", 0.8, "10")):
        drawn(share, 80, int(week)).assign(date=f"2024-01-{week}").to_csv(tmp_path / f"{name}.csv", index=False)
    command = ("--by", "date:week", "--state", "watch", "--class", "positive")
    assert call("monitor", fitted / "named", tmp_path / "one.csv", *command)[0] == 0
    code, out, _ = call("monitor", fitted / "plain", tmp_path / "two.csv", *command, "--names", "1=positive")
    assert code == 0
    assert json.loads(out)["class"] == "positive"


def test_a_judge_and_people_may_write_labels_differently(call, tmp_path):
    table = judged()
    table.to_csv(tmp_path / "words.csv", index=False)
    table["human"] = table["human"].map({"good": "1", "bad": "0", "": ""})
    table.to_csv(tmp_path / "numbers.csv", index=False)
    plain = json.loads(call("correct", tmp_path / "words.csv", "--human", "human", "--judge", "judge")[1])
    command = ("correct", tmp_path / "numbers.csv", "--human", "human", "--judge", "judge", "--names", "0=bad,1=good")
    named = json.loads(call(*command, "--class", "bad")[1])
    assert named["class"] == "bad"
    assert named["total"] == plain["total"]


def test_compare_shows_names(fitted, call):
    for name in ("train", "test"):
        pd.read_csv(fitted / f"{name}.csv").drop(columns="product").to_csv(fitted / f"{name}-only.csv", index=False)
    command = ("compare", fitted / "train-only.csv", fitted / "test-only.csv", "--methods", "cc,emq", "--repeats", "2")
    found = json.loads(call(*command, "--label", "sentiment", *NAMES)[1])
    assert found["classes"] == ["negative", "positive"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--names", "0"), "LABEL=NAME"),
        (("--names", "2=neutral"), "Unknown class '2'"),
        (("--names", "0=a,1=a"), "Two labels"),
        (("--class", "negatve"), "'negative', 'positive'"),
    ],
)
def test_wrong_names_are_usage_errors(fitted, call, options, problem):
    code, _, err = call("predict", fitted / "named", fitted / "new.csv", *options)
    assert code == 2
    assert problem in " ".join(err.split())


def test_the_help_groups_commands_by_goal(call):
    out = call("--help")[1]
    goals = [
        out.index(f"─ {goal} ─") for goal in ("Estimate", "Check and trust", "Labels and judges", "Watch", "Research")
    ]
    assert goals == sorted(goals)

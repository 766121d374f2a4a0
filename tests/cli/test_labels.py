"""Labels written in several ways are reported, and one with --normalize-labels."""

import json

import numpy as np
import pandas as pd
import pytest

import quanet

from .made_tables import judged, one_line


@pytest.fixture
def variants(files, tmp_path):
    table = pd.read_csv(files / "train.csv")[:300]
    table.loc[::3, "sentiment"] = table.sentiment[::3].str.upper()
    table.loc[1::7, "sentiment"] = table.sentiment[1::7].str.title() + " "
    table.to_csv(tmp_path / "variants.csv", index=False)
    return "variants.csv"


def test_fit_reports_labels_that_look_like_one_class(call, variants):
    _, _, err = call("fit", variants, "--text", "review", "--label", "sentiment", "--method", "EMQ", "-o", "model")
    assert "Warning: These labels look like one class each: 'NEGATIVE', 'Negative', 'negative'; 'POSITIVE'" in err
    assert "--normalize-labels" in err


def test_fit_takes_variants_for_one_class_if_told_so(call, variants, tmp_path):
    asked = ("--text", "review", "--label", "sentiment", "--method", "EMQ", "-o", "model", "--normalize-labels")
    code, _, err = call("fit", variants, *asked)
    assert code == 0
    assert "look like one class" not in err
    assert quanet.load(tmp_path / "model").classes_.tolist() == ["negative", "positive"]


def test_evaluate_takes_variants_for_the_classes_of_the_model(call, model, variants):
    code, _, err = call("evaluate", model, variants, "--label", "sentiment")
    assert code == 1
    assert "It looks like 'negative'. Add --normalize-labels to treat them as one." in one_line(err)
    code, out, err = call("evaluate", model, variants, "--label", "sentiment", "--normalize-labels", "--format", "json")
    assert code == 0
    assert "Labels merged into 'negative': " in err
    assert json.loads(out)["whole"].keys() == {"negative", "positive"}


def test_compare_takes_variants_of_both_files_for_one(call, files, variants):
    asked = ("--text", "review", "--label", "sentiment", "--methods", "cc", "--format", "json")
    code, out, _ = call("compare", files / "train.csv", variants, *asked, "--normalize-labels")
    assert code == 0
    assert len(json.loads(out)["methods"]) == 1


@pytest.mark.parametrize("normalize", [True, False])
def test_correct_takes_the_spelling_of_people(call, tmp_path, normalize):
    table = judged()
    table.to_csv(tmp_path / "plain.csv", index=False)
    table.assign(judge=table.judge.str.upper()).to_csv(tmp_path / "loud.csv", index=False)
    asked = ("--human", "human", "--judge", "judge", "--format", "json")
    plain = json.loads(call("correct", "plain.csv", *asked)[1])
    code, out, err = call("correct", "loud.csv", *asked, *(["--normalize-labels"] if normalize else []))
    if normalize:
        assert json.loads(out)["total"] == plain["total"]
    else:
        assert code == 1
        assert "look like one class" in err


def test_rows_without_a_group_are_shown_and_counted_in_all(call, files, model, tmp_path):
    table = pd.read_csv(files / "new.csv")
    table.loc[::4, "product"] = None
    table.to_csv(tmp_path / "gaps.csv", index=False)
    code, out, _ = call("predict", model, "gaps.csv", "--by", "product", "--format", "json")
    assert code == 0
    said = json.loads(out)
    groups = {json.dumps(one): one for one in said["groups"]}
    assert any("(empty)" in one for one in groups)
    assert sum({one: group["n"] for one, group in groups.items()}.values()) in {720, 1440}
    assert said["skipped"] == {}


def test_posteriors_in_a_file_are_matched_to_classes_by_their_column_names(call, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(300) < 0.3, "pos", "neg")
    pos = np.clip(np.where(labels == "pos", 0.8, 0.2) + rng.normal(0, 0.1, 300), 0.01, 0.99)
    pd.DataFrame({"pos": pos, "neg": 1 - pos, "label": labels}).to_csv(tmp_path / "table.csv", index=False)
    asked = ("--method", "EMQ", "--set", "classifier=precomputed", "--label", "label")
    code, _, _ = call("fit", "table.csv", *asked, "--features", "pos,neg", "-o", "model")
    assert code == 0
    said = json.loads(call("predict", "model", "table.csv", "--format", "json")[1])["total"]["classes"]
    assert said["pos"]["estimate"] == pytest.approx((labels == "pos").mean(), abs=0.03)
    pd.read_csv(tmp_path / "table.csv").rename(columns={"pos": "p"}).to_csv(tmp_path / "other.csv", index=False)
    code, _, err = call("fit", "other.csv", *asked, "--features", "p,neg", "-o", "other")
    assert code == 1
    assert "The columns of the posteriors are ['p', 'neg'], but the classes are ['neg', 'pos']" in one_line(err)

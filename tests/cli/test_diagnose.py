"""`quanet diagnose` and `quanet predict --items`."""

import json

import pandas as pd
import pytest


def test_a_diagnosis_has_findings_states_accuracy_and_what_to_do(model, files, call, tmp_path):
    code, out, _ = call("diagnose", model, files / "new.csv", "--by", "product", "--report", "r.html")
    found = json.loads(out)
    assert code == 0
    assert {one["name"] for one in found["findings"]} >= {"prior shift", "classifier", "contents"}
    assert sum(found["states"].values()) == len(found["groups"]) == 2
    assert 0.9 < found["expected_accuracy"]["accuracy"]["estimate"] <= 1
    assert found["next"][0]["command"].startswith("quanet ")
    assert "How accurate are single labels?" in (tmp_path / "r.html").read_text()


def test_the_csv_of_a_diagnosis_has_a_row_for_every_finding(model, files, call, tmp_path):
    assert call("diagnose", model, files / "new.csv", "-o", "d.csv")[0] == 0
    table = pd.read_csv(tmp_path / "d.csv")
    assert table["severity"].isin(["ok", "note", "warning", "alarm"]).all()


def test_predict_shows_expected_accuracy_in_json_and_reports(model, files, call, tmp_path):
    found = json.loads(call("predict", model, files / "new.csv", "--report", "r.md")[1])["expected_accuracy"]
    shares = [sum(cell["estimate"] for cell in row.values()) for row in found["confusion"].values()]
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    assert "Expected confusion matrix" in (tmp_path / "r.md").read_text()


def test_items_are_written_with_the_columns_kept(model, files, call, tmp_path):
    options = ("--by", "product", "--items", "items.csv", "--keep", "date,review")
    code, out, err = call("predict", model, files / "new.csv", *options)
    items = pd.read_csv(tmp_path / "items.csv")
    assert code == 0
    assert "Items: items.csv (720 rows)" in err
    means = items.groupby("product")["p_positive"].mean()
    for group in json.loads(out)["groups"]:
        estimate = group["classes"]["positive"]["estimate"]
        assert means[group["group"]["product"]] == pytest.approx(estimate, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (("--items", "items.txt"), 2, "does not end in any of"),
        (("--keep", "review"), 2, "Add --items"),
        (("--items", "i.csv", "--keep", "nothing"), 1, "no column 'nothing'"),
    ],
)
def test_wrong_items_are_rejected_before_the_work(model, files, call, options, code, problem):
    found, _, err = call("predict", model, files / "new.csv", *options)
    assert found == code
    assert problem in " ".join(err.split())

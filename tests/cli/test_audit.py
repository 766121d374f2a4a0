"""`quanet correct` for audits: clusters, differences, several judges, anchor sets, bounds."""

import json

import numpy as np
import pandas as pd
import pytest

from .made_tables import judged, one_line

ASKED = ("--human", "human", "--judge", "judge")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("judged") / "judged.csv"
    table = judged()
    rng = np.random.default_rng(1)
    table["talk"] = np.arange(len(table)) // 5
    table["second"] = np.where(rng.random(len(table)) < 0.1, "good", table["judge"])
    table.to_csv(path, index=False)
    return path


def test_every_part_of_an_audit_is_in_every_output(call, file, tmp_path):
    ask = ("correct", file, *ASKED, "--judge", "second", "--by", "model", "--against", "rest", "--cluster", "talk")
    ask = (*ask, "--anchor", file, "--class", "bad")
    code, out, err = call(*ask, "--format", "json", "--report", "report.md")
    assert code == 0
    said = json.loads(out)
    assert set(said["judges"]) == {"judge", "second"}
    assert len(said["kappa"]["values"]) == 3
    assert said["clusters"]["judged"] == 120
    assert [row["second"] for row in said["differences"]] == ["A", "A", "B", "B"]
    assert {row["first"] for row in said["differences"]} == {"rest"}
    assert said["anchor"]["differ"] is False
    assert "120 clusters" in err
    report = (tmp_path / "report.md").read_text()
    for words in ("## Judges", "## Differences", "## Anchor set", "Cohen's kappa", "independent rows"):
        assert words in report
    table = call(*ask, "--format", "table")[1]
    assert "Differences of bad in points" in table


def test_the_test_of_equal_errors_is_shown_by_group(call, file):
    out = call("correct", file, *ASKED, "--by", "model", "--format", "table")[1]
    assert "Human labels that the judge gives too, in %, by group" in " ".join(out.split())


def test_clusters_of_one_are_said_to_be_so(call, file, tmp_path):
    table = pd.read_csv(file).assign(own=range(600))
    table.to_csv(tmp_path / "own.csv", index=False)
    plain = json.loads(call("correct", "own.csv", *ASKED)[1])
    code, out, err = call("correct", "own.csv", *ASKED, "--cluster", "own")
    assert code == 0
    assert "Every cluster has one row" in err
    assert json.loads(out)["total"] == plain["total"]


def test_few_clusters_are_warned_about(call, file, tmp_path):
    table = pd.read_csv(file).assign(few=np.arange(600) % 6)
    table.to_csv(tmp_path / "few.csv", index=False)
    assert "Warning: There are few clusters" in call("correct", "few.csv", *ASKED, "--cluster", "few")[2]


@pytest.mark.parametrize(
    ("bound", "which", "code"),
    [(0.6, "upper", 0), (0.3, "upper", 3), (0.01, "lower", 3), (0.5, "lower", 0), (0.3, "estimate", 3)],
)
def test_a_bound_that_is_crossed_is_exit_code_3_after_the_answer(call, file, bound, which, code):
    ask = ("correct", file, *ASKED, "--class", "bad", "--fail-over", bound, "--fail-bound", which, "--format", "json")
    found, out, err = call(*ask)
    assert found == code
    assert json.loads(out)["class"] == "bad"
    assert ("Failed: bad" in err) == (code == 3)
    assert ("not over" in err) == (code == 0)


def test_the_group_over_the_bound_is_named(call, file):
    code, _, err = call("correct", file, *ASKED, "--by", "model", "--class", "bad", "--fail-over", 0.55)
    assert code == 3
    assert err.rstrip().splitlines()[-1].startswith("Failed: bad may be over 55 % (upper end: B ")


@pytest.mark.parametrize(
    "words",
    [
        ("--against", "rest"),
        ("--by", "model", "--against", "rest", "--between", "A", "B"),
        ("--judge", "judge"),
        ("--judge", "second", "--scores"),
        ("--fail-over", "5"),
        ("--fail-over", "0.1", "--fail-bound", "middle"),
    ],
)
def test_options_that_do_not_fit_are_exit_code_2(call, file, words):
    code, out, _ = call("correct", file, *ASKED, *words)
    assert (code, out) == (2, "")


def test_unknown_groups_labels_and_columns_are_one_line(call, file, tmp_path):
    error = one_line(call("correct", file, *ASKED, "--by", "model", "--between", "A", "C")[2])
    assert "no group is named 'C'. Groups are 'A', 'B'" in error
    assert "has no column 'tlak'" in one_line(call("correct", file, *ASKED, "--cluster", "tlak")[2])
    table = pd.read_csv(file)
    table.loc[:4, "second"] = "unsure"
    table.to_csv(tmp_path / "unsure.csv", index=False)
    error = one_line(call("correct", "unsure.csv", *ASKED, "--judge", "second")[2])
    assert "judge 'second': the judge's label 'unsure' (5 rows) is not among the human labels" in error


def test_results_of_promptfoo_are_corrected_by_human_labels_from_elsewhere(call, file, tmp_path):
    table = pd.read_csv(file)
    results = [
        {
            "testIdx": i,
            "provider": {"id": f"model {model}"},
            "success": judge == "good",
            "gradingResult": {"componentResults": [{"pass": judge == "good", "assertion": {"type": "llm-rubric"}}]},
        }
        for i, (model, judge) in enumerate(zip(table["model"], table["judge"], strict=True))
    ]
    (tmp_path / "results.json").write_text(json.dumps({"results": {"version": 3, "results": results}}))
    names = {"good": "pass", "bad": "fail"}
    known = table[table["human"].notna()]
    pairs = pd.DataFrame({"human": known["human"].map(names), "llm-rubric": known["judge"].map(names)})
    pairs.to_csv(tmp_path / "labelled.csv", index=False)
    ask = ("correct", "results.json", "--calibration", "labelled.csv", "--human", "human", "--judge", "llm-rubric")
    code, out, _ = call(*ask, "--by", "provider", "--class", "fail", "--format", "json")
    assert code == 0
    said = json.loads(out)
    expected = json.loads(call("correct", file, *ASKED, "--chosen", "--class", "bad")[1])
    assert said["total"]["fail"]["estimate"] == pytest.approx(expected["total"]["bad"]["estimate"])
    assert {row["provider"] for row in said["groups"]} == {"model A", "model B"}

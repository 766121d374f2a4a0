import json
from io import StringIO

import pandas as pd
import pytest

from quanet import correct_rate

from .made_tables import judged, one_line

ASKED = ("--human", "human", "--judge", "judge")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("judged") / "judged.csv"
    judged().to_csv(path, index=False)
    return path


def test_the_answer_is_that_of_correct_rate(call, file):
    code, out, err = call("correct", file, *ASKED, "--format", "json")
    assert code == 0
    table = judged()
    known = table["human"] != ""
    expected = correct_rate(table["judge"][~known], table["human"][known], table["judge"][known], calibration="part")
    said = json.loads(out)
    for c, name in enumerate(expected.classes.tolist()):
        assert said["total"][name]["estimate"] == pytest.approx(expected.estimate[c])
        assert said["total"][name]["upper"] == pytest.approx(expected.upper[c])
        assert said["total"][name]["judged"] == pytest.approx((table["judge"] == name).mean())
    assert said["calibration"] == "part"
    assert said["labelled"] == known.sum()
    assert "count as a random part" in err


def test_groups_are_rows(call, file, tmp_path):
    code, out, err = call("correct", file, *ASKED, "--by", "model", "--by", "date:month", "-o", "rates.csv")
    assert (code, out) == (0, "")
    assert "Written: rates.csv" in err
    table = pd.read_csv(tmp_path / "rates.csv")
    shown = ("model", "date", "n", "class", "judged", "estimate", "lower", "upper", "small", "labels_used")
    assert table.columns.tolist() == list(shown)
    assert len(table) == 2 * 4 * 2
    assert (table["n"][::2].sum(), set(table["date"])) == (600, {f"2024-0{month}" for month in range(1, 5)})
    assert ((table["lower"] <= table["estimate"]) & (table["estimate"] <= table["upper"])).all()


def test_the_screen_shows_the_answer_first_and_how_the_judge_errs(call, file):
    code, out, _ = call("correct", file, *ASKED, "--by", "model", "--format", "table", "--class", "bad")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("bad: 4")
    assert "the judge's uncorrected rate is" in " ".join(out.split())
    for words in ("How the judge errs", "human label"):
        assert words in out


@pytest.mark.parametrize("name", ["bad", "good"])
def test_every_output_headlines_the_class_asked_for(call, file, tmp_path, name):
    ask = ("correct", file, *ASKED, "--by", "model", "--class", name, "--force")
    said = json.loads(call(*ask, "--format", "json", "--report", "report.md")[1])
    assert said["class"] == name
    assert said["answer"].startswith(f"{name}: {100 * said['total'][name]['estimate']:.1f} %")
    assert call(*ask, "--format", "table")[1].startswith(f"{name}: ")
    report = (tmp_path / "report.md").read_text()
    assert report.split("\n\n")[1].lstrip("*").startswith(f"{name}: ")


def test_every_output_says_by_whose_labels_groups_are_corrected(call, file, tmp_path):
    ask = ("correct", file, *ASKED, "--by", "model")
    code, out, _ = call(*ask, "--format", "json", "--report", "report.md")
    assert code == 0
    said = json.loads(out)
    assert said["errors"]["differ"] is False
    assert {row["labels_used"] for row in said["groups"]} <= {"own", "all"}
    for sentence in said["errors"]["assumptions"]:
        assert sentence in (tmp_path / "report.md").read_text()
    assumed = json.loads(call(*ask, "--format", "json", "--same-errors")[1])
    assert {row["labels_used"] for row in assumed["groups"]} == {"all"}
    assert "labels used" in call(*ask, "--format", "table")[1]


def test_labels_may_come_from_elsewhere_or_be_chosen(call, file, tmp_path):
    table = judged()
    table[table["human"] != ""][["human", "judge"]].to_csv(tmp_path / "labelled.csv", index=False)
    table.drop(columns="human").to_csv(tmp_path / "rest.csv", index=False)
    code, out, err = call("correct", "rest.csv", "--calibration", "labelled.csv", *ASKED)
    assert code == 0
    assert "human labels." in err
    apart = json.loads(out)
    assert apart["calibration"] == "apart"
    code, out, err = call("correct", file, *ASKED, "--chosen")
    assert code == 0
    assert "count as a random part" not in err
    assert json.loads(out)["total"] == apart["total"]


def test_scores_and_more_classes(call, file, tmp_path):
    code, out, _ = call("correct", file, "--human", "human", "--judge", "score", "--scores", "--format", "csv")
    assert code == 0
    assert pd.read_csv(StringIO(out))["judged"].isna().all()
    code, _, err = call("correct", file, "--human", "human", "--judge", "judge", "--scores")
    assert code == 1
    assert "row 1: " in one_line(err)
    assert "is not a score. If the column contains labels, omit --scores." in one_line(err)
    table = judged()
    third = table.index % 3 == 0
    table.loc[third, "judge"] = "so-so"
    table.loc[third & (table["human"] != ""), "human"] = "so-so"
    table.to_csv(tmp_path / "three.csv", index=False)
    code, out, _ = call("correct", "three.csv", *ASKED, "--by", "model", "--format", "table")
    assert code == 0
    assert out.count("so-so") >= 4


def test_rows_without_a_judgement_are_left_out_and_those_without_a_group_are_one(call, tmp_path):
    table = judged()
    table.loc[:9, "judge"] = ""
    table.loc[5:19, "model"] = ""
    table.to_csv(tmp_path / "gaps.csv", index=False)
    code, out, err = call("correct", "gaps.csv", *ASKED, "--by", "model", "--format", "csv")
    assert code == 0
    sizes = pd.read_csv(StringIO(out)).groupby("model")["n"].first()
    assert sizes.sum() == 590
    assert sizes["(empty)"] == 10
    assert "Skipped: 10 rows with no judgement." in err
    assert "no group" not in err
    assert "590 judged rows" in err


def test_a_report_is_written(call, file, tmp_path):
    assert call("correct", file, *ASKED, "--by", "model", "--report", "report.md")[0] == 0
    assert "judge" in (tmp_path / "report.md").read_text()


def test_what_is_wrong_is_one_line(call, file, tmp_path):
    code, out, err = call("correct", file, "--human", "humna", "--judge", "judge")
    assert (code, out) == (1, "")
    assert "has no column 'humna'. Its columns are 'human'" in one_line(err)
    table = judged()
    table.loc[table["human"] == "bad", "human"] = ""
    table.to_csv(tmp_path / "good.csv", index=False)
    assert "human labels are 'good'" in one_line(call("correct", "good.csv", *ASKED)[2])
    table.loc[:2, "human"] = "bad"
    table.to_csv(tmp_path / "few.csv", index=False)
    assert "'bad' has 3 human labels" in one_line(call("correct", "few.csv", *ASKED)[2])
    assert "is not a date" in one_line(call("correct", file, *ASKED, "--by", "model:month")[2])
    (tmp_path / "there.csv").write_text("mine")
    assert "there.csv already exists" in one_line(call("correct", file, *ASKED, "-o", "there.csv")[2])
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert call("correct", file, *ASKED, "-o", "there.csv", "--force")[0] == 0
    assert (tmp_path / "there.csv").read_text() != "mine"


@pytest.mark.parametrize(
    "words", [("--class", "ugly"), ("--level", "95"), ("--format", "xml"), ("-o", "rates.docx"), ("--by", "date:moon")]
)
def test_a_wrong_call_is_exit_code_2(call, file, words):
    code, out, err = call("correct", file, *ASKED, *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_labels_are_written_as_they_are(call, tmp_path):
    table = judged().replace({"good": ":smile:", "bad": "[red]"})
    table.to_csv(tmp_path / "odd.csv", index=False)
    code, out, _ = call("correct", "odd.csv", *ASKED, "--by", "model", "--format", "table")
    assert code == 0
    assert ":smile:" in out
    assert out.startswith("[red]: ")
    assert call("correct", "odd.csv", *ASKED, "-o", "odd.txt")[0] == 0
    assert ":smile:" in (tmp_path / "odd.txt").read_text()

import json

import pandas as pd
import pytest

import quanet
from quanet import APP, EMQ, Gaussians, Monitor

from .made_tables import labelled, one_line


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tests") / "test.csv"
    labelled().to_csv(path, index=False)
    return path


def test_errors_are_those_of_the_library(call, model, file):
    code, out, err = call("evaluate", model, file, "--repeats", "3", "--bag-size", "60", "--seed", "2")
    assert code == 0
    said = json.loads(out)
    table = labelled()
    results = quanet.evaluate(
        quanet.load(model), table["review"].tolist(), table["sentiment"], APP(bag_size=60, repeats=3), rng=2
    )
    ours, counted, floor = said["methods"]
    assert (ours["method"], counted["method"], floor["method"]) == ("EMQ", "CC", "TrainPrevalence")
    for metric in ("ae", "rae", "kld"):
        # Rows are kept in 32 bits.
        assert ours[metric] == pytest.approx(results.error(metric).mean(), abs=1e-4)
        assert ours[f"{metric}_sd"] == pytest.approx(results.error(metric).std(), abs=1e-3)
    assert ours["ae"] < counted["ae"] < floor["ae"]
    assert ours["coverage"] > 0.9
    assert counted["coverage"] is None
    assert said["protocol"] == "APP: 21 prevalences x 3 bags of 60"
    assert said["whole"]["positive"]["truth"] == pytest.approx(0.4)
    assert said["limit"] > 0
    assert "words" in {one["name"] for one in said["diagnosis"]}
    assert "300 of 300 rows" in err


def test_the_screen_shows_the_answer_first(call, model, file):
    code, out, err = call("evaluate", model, file, "--repeats", "1", "--format", "table")
    assert code == 0
    assert out.startswith("EMQ is off by ")
    assert "of the 95 % intervals contain the truth" in " ".join(out.split())
    for words in ("TrainPrevalence", "smallest possible error", "covered", "APP: 21 prevalences x 1 bags of 150"):
        assert words in " ".join(out.split())
    assert "Bags have 150 instances instead of 500, because the file has 300 labelled instances." in err


def test_drift_is_reported_unless_it_is_not_wanted(call, model, file):
    words = ("evaluate", model, file, "--repeats", "3", "--bag-size", "60")
    said, plain = (json.loads(call(*words, *more)[1]) for more in ((), ("--no-drift",)))
    assert sum(said["drift"]["states"].values()) == pytest.approx(1)
    assert said["drift"]["states"]["unknown"] == 0
    assert said["drift"]["with"]["width"] >= said["drift"]["without"]["width"]
    assert plain["drift"] is None
    assert plain["methods"][0]["coverage"] == pytest.approx(said["drift"]["without"]["coverage"])


def test_a_files_own_groups_can_be_the_bags(call, model, file, tmp_path):
    code, out, _ = call(
        *("evaluate", model, file, "--protocol", "by:date:month", "--bags", "bags.csv", "--report", "report.json"),
        *("-o", "errors.csv"),
    )
    assert (code, out) == (0, "")
    bags = pd.read_csv(tmp_path / "bags.csv")
    assert bags["bag"].unique().tolist() == ["2024-01", "2024-02", "2024-03"]
    assert ((bags["lower"] <= bags["estimate"]) & (bags["estimate"] <= bags["upper"])).all()
    table = labelled()
    january = table[table["date"].str.startswith("2024-01")]["sentiment"]
    assert bags["truth"][1] == pytest.approx((january == "positive").mean())
    assert pd.read_csv(tmp_path / "errors.csv")["bags"].tolist() == [3, 3, 3]
    assert json.loads((tmp_path / "report.json").read_text())["title"]


def test_a_model_that_says_no_columns_takes_the_only_ones_that_can_be_it(call, model, file, tmp_path):
    quanet.save(quanet.load(model), tmp_path / "plain")
    code, _, err = call("evaluate", "plain", file, "--label", "sentiment", "--repeats", "1", "-o", "errors.txt")
    assert code == 0
    assert "text column 'review' (detected)" in err
    assert (tmp_path / "errors.txt").read_text().startswith("EMQ is off by ")
    labelled().drop(columns=["product", "date"]).to_csv(tmp_path / "two.csv", index=False)
    code, _, err = call("evaluate", "plain", "two.csv", "--repeats", "1")
    assert code == 0
    assert "label column 'sentiment' (detected)" in err
    labelled().rename(columns={"review": "opinion"}).to_csv(tmp_path / "renamed.csv", index=False)
    code, _, err = call("evaluate", model, "renamed.csv", "--repeats", "1")
    assert code == 0
    assert "text column 'opinion' (detected, since 'review' is missing)" in err
    labelled()[["sentiment", "product", "date"]].to_csv(tmp_path / "none.csv", index=False)
    assert "no column 'review'" in one_line(call("evaluate", model, "none.csv")[2])


def test_numbers_are_read_from_the_columns_that_the_model_knows(call, tmp_path):
    table = labelled(200)
    table["x"] = (table["sentiment"] == "positive") + 0.4 * (table.index % 5)
    table["y"] = table.index % 3
    table[["y", "x", "sentiment"]].to_csv(tmp_path / "numbers.csv", index=False)
    assert call("fit", "numbers.csv", "--features", "x,y", "--method", "pacc", "-o", "model")[0] == 0
    code, out, _ = call("evaluate", "model", "numbers.csv", "--repeats", "1")
    assert code == 0
    assert json.loads(out)["methods"][0]["ae"] < 0.1
    table[["x", "sentiment"]].to_csv(tmp_path / "x.csv", index=False)
    assert "no column 'y'" in one_line(call("evaluate", "model", "x.csv")[2])


def test_a_method_without_posteriors_stands_beside_the_training_shares_alone(call, tmp_path):
    table = labelled(200)
    table.to_csv(tmp_path / "train.csv", index=False)
    words = ("--text", "review", "--label", "sentiment", "--method", "svmkld", "-o", "model")
    assert call("fit", "train.csv", *words)[0] == 0
    code, out, _ = call("evaluate", "model", "train.csv", "--repeats", "1", "--bag-size", "30", "--format", "table")
    assert code == 0
    assert "CC" not in out.split("All labelled instances")[0]
    assert "smallest possible" not in out


def test_rows_without_a_label_are_left_out(call, model, tmp_path):
    table = labelled()
    table.loc[:9, "sentiment"] = None
    table.to_csv(tmp_path / "gaps.csv", index=False)
    code, _, err = call("evaluate", model, "gaps.csv", "--repeats", "1")
    assert code == 0
    assert "290 of 300 rows: 10 skipped (no label)" in err


def test_what_is_wrong_is_one_line(call, model, file, tmp_path):
    code, out, err = call("evaluate", model, file, "--label", "sentimnt")
    assert (code, out) == (1, "")
    assert "no column 'sentimnt'. Its columns are 'sentiment'" in one_line(err)
    assert "does not know the label 'lamp'" in one_line(call("evaluate", model, file, "--label", "product")[2])
    one = labelled()
    one[one["sentiment"] == "negative"].to_csv(tmp_path / "one.csv", index=False)
    assert "class 'positive' has none" in one_line(call("evaluate", model, "one.csv")[2])
    assert "the folder nothing does not exist" in one_line(call("evaluate", "nothing", file)[2])
    assert "is not a date" in one_line(call("evaluate", model, file, "--protocol", "by:product:month")[2])
    quanet.save(Monitor(EMQ()).fit(*Gaussians().draw([0.5, 0.5], 60, rng=0)), tmp_path / "watch")
    assert "contains a Monitor, which does not estimate shares" in one_line(call("evaluate", "watch", file)[2])
    (tmp_path / "there.json").write_text("mine")
    for option in ("-o", "--report", "--bags"):
        assert "there.json already exists" in one_line(call("evaluate", model, file, option, "there.json")[2])
    assert (tmp_path / "there.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--protocol", "apq"), "Did you mean 'app'"),
        (("--protocol", "by:date:moon"), "Unknown period"),
        (("--bag-size", "1"), "--bag-size"),
        (("--level", "2"), "--level"),
    ],
)
def test_a_wrong_call_is_exit_code_2(call, model, file, words, said):
    code, out, err = call("evaluate", model, file, *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_labels_with_decimals_are_the_classes_of_other_formats(call, tmp_path):
    table = labelled()
    table["stars"] = (table["sentiment"] == "positive").astype(float) + 1
    table.drop(columns="sentiment").to_csv(tmp_path / "train.csv", index=False)  # 1.0 and 2.0
    table.astype({"stars": int}).to_parquet(tmp_path / "test.parquet")
    words = ("--label", "stars", "--method", "CC", "-o", "model", "--names", "2.0=good")
    assert call("fit", "train.csv", *words)[0] == 0
    assert quanet.load(tmp_path / "model").classes_.tolist() == [1, 2]
    for name in ("train.csv", "test.parquet"):
        code, out, err = call("evaluate", "model", name, "--label", "stars", "--repeats", "1")
        assert (code, sorted(json.loads(out)["whole"])) == (0, ["1", "good"])
        code, _, err = call("predict", "model", name)
        assert (code, "does not know" in err) == (0, False)
        assert json.loads(call("check", name, "--label", "stars")[1])["classes"] == {"1": 180, "2": 120}

import json
import signal
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

from quanet.cli import compare
from quanet.workflows import compare as workflow
from quanet.workflows.compare import MethodOutcome

from .conftest import draw
from .made_tables import labelled, one_line


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Few instances to learn from, and some to try."""
    folder = tmp_path_factory.mktemp("tables")
    texts, labels = draw(0.5, 200, 5)
    pd.DataFrame({"review": texts, "sentiment": labels}).to_csv(folder / "train.csv", index=False)
    labelled(200).to_csv(folder / "test.csv", index=False)
    return folder / "train.csv", folder / "test.csv"


FEW = ("--repeats", "2", "--bag-size", "40")


def test_methods_are_ranked_with_significance(call, tables):
    code, out, err = call("compare", *tables, "--methods", "cc,Emq,trainprevalence,onevsrest,OEMQ", *FEW)
    assert code == 0
    said = json.loads(out)
    names = [one["method"] for one in said["methods"]]
    assert set(names) == {"CC", "EMQ", "TrainPrevalence"}
    assert names[-1] == "TrainPrevalence"
    errors = [one["ae"] for one in said["methods"]]
    assert errors == sorted(errors)
    assert said["methods"][0]["ae_p"] is None
    assert said["methods"][-1]["ae_p"] < 0.001
    assert said["methods"][0]["bags"] == 42
    assert "combines other methods" in said["not_run"]["OneVsRest"]
    assert "three ordered classes" in said["not_run"]["OEMQ"]
    assert "200 training instances, 200 test instances" in err
    assert "text 'review' (detected), label 'sentiment' (detected)" in err


def test_the_screen_shows_the_best_first(call, tables, tmp_path):
    code, out, _ = call(
        *("compare", *tables, "--methods", "cc emq readme onevsrest", *FEW, "--metric", "KLD", "--format", "table"),
        *("--report", "report.md"),
    )
    assert code == 0
    assert out.splitlines()[0].split(" has the smallest KLD")[0] in ("EMQ", "CC")
    for words in ("Holm's correction", "smallest possible error", "could not run on these data", "OneVsRest"):
        assert words in " ".join(out.split())
    assert "EMQ" in (tmp_path / "report.md").read_text()


def test_one_method_alone_has_nobody_to_be_tested_against(call, tables, tmp_path):
    table = labelled(200)
    table.loc[:9, "review"] = None
    table.to_csv(tmp_path / "gaps.csv", index=False)
    code, out, err = call("compare", tables[0], "gaps.csv", "--methods", "emq", *FEW, "--format", "table")
    assert code == 0
    assert out.startswith("EMQ has the smallest AE of 1 method (0.0")
    assert "could not run" not in out
    assert "gaps.csv: 10 rows skipped (no text)" in err


def test_numbers_and_groups(call, tmp_path):
    table = labelled(200)
    table["x"] = (table["sentiment"] == "positive") + 0.1 * (table.index % 7)
    table["y"] = table.index % 5
    table[["x", "y", "sentiment", "date"]].to_csv(tmp_path / "numbers.csv", index=False)
    code, out, err = call(
        *("compare", "numbers.csv", "numbers.csv", "--methods", "pacc,readme", "--label", "sentiment"),
        *("--protocol", "by:date:month", "-o", "methods.csv"),
    )
    assert (code, out) == (0, "")
    assert "features x, y (detected)" in err
    found = pd.read_csv(tmp_path / "methods.csv")
    assert found["method"].tolist() == ["PACC"]
    assert found["bags"].tolist() == [3]


def test_an_interruption_shows_what_is_finished(call, monkeypatch, tables):
    real = workflow._results

    def interrupted(name, *args):
        if name == "EMQ":
            signal.raise_signal(signal.SIGINT)
        return real(name, *args)

    monkeypatch.setattr(workflow, "_results", interrupted)
    code, out, err = call("compare", *tables, "--methods", "acc,cc,emq,pacc", *FEW)
    assert code == 130
    assert [one["method"] for one in json.loads(out)["methods"]] in (["ACC", "CC"], ["CC", "ACC"])
    assert "Stopped: 2 of 4 methods are finished." in err
    assert "Traceback" not in err
    code, out, err = call("compare", *tables, "--methods", "emq", *FEW)
    assert (code, out) == (130, "")


def test_what_is_wrong_is_one_line(call, tables, tmp_path):
    train, test = tables
    table = labelled(60)
    table["sentiment"] = table["sentiment"].replace("negative", "neutral")
    table.to_csv(tmp_path / "other.csv", index=False)
    code, out, err = call("compare", train, "other.csv")
    assert (code, out) == (1, "")
    assert "does not know the label 'neutral'" in one_line(err)
    assert "no column 'txt'" in one_line(call("compare", train, test, "--text", "txt")[2])
    table[table["sentiment"] == "neutral"].to_csv(tmp_path / "one.csv", index=False)
    assert "contains a single class" in one_line(call("compare", "one.csv", "one.csv", "--label", "sentiment")[2])
    assert "does not exist" in one_line(call("compare", train, "nothing.csv")[2])
    table.assign(sentiment=None).to_csv(tmp_path / "empty.csv", index=False)
    assert "none of the 60 rows can be used (no label: 60)" in one_line(
        call("compare", "empty.csv", test, "--label", "sentiment")[2]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--methods", "cc,emqq"), "Did you mean EMQ"),
        (("--methods", "cc,all"), "quick and all cannot be combined with names"),
        (("--methods", ","), "Name at least one method"),
        (("--metric", "rea"), "Did you mean 'rae'"),
        (("--protocol", "paper"), "Unknown protocol 'paper'"),
    ],
)
def test_a_wrong_call_is_exit_code_2(call, tables, words, said):
    code, out, err = call("compare", *tables, *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.replace("│", "").split())


def test_a_bar_hears_of_a_training_within_a_method(monkeypatch):
    written = Console(file=StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(compare, "notes", written)
    with compare._method_progress(["CC", "QuaNet"]) as (advance, listener):
        advance(MethodOutcome("CC", None, 0.1, left=95.0))
        listener("words", 0.5)
        listener("network", 0.25)
    shown = written.file.getvalue()
    assert "QuaNet" in shown
    assert "training: at most" in shown

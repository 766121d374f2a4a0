"""docs/reference/answers.md lists the fields and columns that the commands really write."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from quanet.evaluation.evaluate import Cell
from quanet.evaluation.scores import score
from quanet.report.compare import summarize_comparison
from quanet.report.evaluate import bag_rows, summarize_evaluation
from quanet.report.experiment import summarize_experiment
from quanet.report.render import ANSWER_FORMAT, FORMATS, VERSIONS, to_csv, to_json
from tests.made_cells import noisy_cells
from tests.page_fields import compare, listed, paths, sections
from tests.report.made_answers import made_comparison, made_evaluation, with_drift

from .made_tables import judged, labelled, stream

PAGE = sections("reference/answers.md")
PARTS = {
    "Findings": ("diagnosis[]", "findings[]", "cautions[]"),
    "Comparisons": ("comparisons[]", "changes[]"),
    "Expected accuracy": ("expected_accuracy",),
}


CELLS = [*noisy_cells(), Cell("imdb", "EMQ", 99)]  # one of them is missing


def fields_of(verb):
    """The fields that the page lists for a command, with those of the parts that several answers share."""
    columns = listed(PAGE[verb], "column")
    found = listed(PAGE["All answers"], "field")
    for name in listed(PAGE[verb], "field"):
        part = next((part for part, ends in PARTS.items() if name.endswith(ends)), None)
        if part is not None:
            found += [f"{name}.{field}" for field in listed(PAGE[part], "field")]
        elif name.endswith("[].FIELD"):
            rows = listed(PAGE["quanet diff"], "column") if name.startswith("differences") else columns
            found += [name.replace("FIELD", column) for column in rows]
        else:
            found.append(name)
    return found


def check(verb, *found):
    """Compare the page with answers of a command, each as JSON and as a table."""
    written, columns = set(), set()
    for answer, table in found:
        assert VERSIONS.items() <= answer.items()
        written |= paths(answer)
        columns |= set(table.columns)
    compare(fields_of(verb), written, rare=["cautions[]"])  # a caution has numbers and examples only sometimes
    compare(listed(PAGE[verb], "column"), columns)


@pytest.fixture
def ask(call, monkeypatch):
    """The answer of a command as JSON and as CSV, of one run."""
    written = []
    monkeypatch.setitem(FORMATS, "json", lambda summary: written.append(summary) or to_json(summary))

    def run(*words):
        code, out, err = call(*words, "--format", "json", "--force", "-q")
        assert code == 0, err
        return json.loads(out), pd.read_csv(io.StringIO(to_csv(written[-1])))

    return run


@pytest.fixture
def weighted(files, tmp_path):
    """The new reviews with views; some rows have no text, and one file cannot be read."""
    table = pd.read_csv(files / "new.csv").assign(views=2)
    table.loc[:3, "review"] = None
    table.to_csv(tmp_path / "weighted.csv", index=False)
    (tmp_path / "bad.csv").write_text("review,product,date,views\n1,2\n")
    return ("weighted.csv", "bad.csv", "--skip-bad-files", "--weight", "views")


def test_predict_and_monitor(ask, model, weighted, tmp_path):
    check("quanet predict", ask("predict", model, *weighted, "--by", "product"), ask("predict", model, "weighted.csv"))
    stream([0.3] * 5 + [0.8] * 4).assign(views=1).to_csv(tmp_path / "weeks.csv", index=False)
    check("quanet monitor", ask("monitor", model, "weeks.csv", *weighted[1:], "--by", "date:week"))


def test_items(call, model, files, tmp_path):
    code, _, err = call("predict", model, files / "new.csv", "--by", "product", "--items", "items.csv", "-q")
    assert code == 0, err
    text = PAGE["quanet predict"].rpartition("`--items`")[2]
    columns = pd.read_csv(tmp_path / "items.csv").columns
    assert columns.tolist() == ["row", "product", "class", "p_negative", "p_positive", "skipped"]
    assert all(f"`{name}`" in text for name in ("row", "class", "p_CLASS", "skipped"))


def test_diff_check_and_diagnose(ask, model, weighted, tmp_path):
    check("quanet diff", ask("diff", model, "weighted.csv", "--by", "date:month"))
    check("quanet diagnose", ask("diagnose", model, "weighted.csv", "--by", "product"))
    table = labelled(n=60)
    table[table["date"] < "2024-02"].assign(date="2023-10-01").to_csv(tmp_path / "gap.csv", index=False)
    table.to_csv(tmp_path / "later.csv", index=False)
    check("quanet check", ask("check", "gap.csv", "later.csv", "--label", "sentiment"))


def test_label_plan_and_refine(ask, call, model, tmp_path):
    table = labelled(n=300)
    table.loc[:3, "review"] = None
    table.assign(views=1).drop(columns="sentiment").to_csv(tmp_path / "new.csv", index=False)
    plan = ("label", "plan", model, "new.csv", "-o", "sheet.csv")
    check(
        "quanet label plan",
        ask(*plan, "--width", 25),
        ask(*plan, "--by", "date:month", "--number", 40, "--weight", "views"),
    )
    sheet = pd.read_csv(tmp_path / "sheet.csv")
    sheet["sentiment"] = table["sentiment"].to_numpy()[sheet["plan_row"] - 1]
    sheet.to_csv(tmp_path / "sheet.csv", index=False)
    words = ("--labels", "sheet.csv", "--by", "date:month", "--weight", "views")
    check("quanet refine", ask("refine", model, "new.csv", *words))


def test_correct(ask, tmp_path):
    table = judged()
    table["talk"] = np.arange(len(table)) // 5
    table["second"] = table["judge"].mask(np.arange(len(table)) % 9 == 0, "good")
    table.loc[:3, ["human", "judge", "second"]] = None
    table.to_csv(tmp_path / "judged.csv", index=False)
    asked = ("correct", "judged.csv", "--human", "human", "--judge", "judge", "--by", "model")
    audit = ("--judge", "second", "--against", "rest", "--cluster", "talk", "--anchor", "judged.csv")
    check("quanet correct", ask(*asked, *audit), ask(*asked, "--same-errors"))


def test_merge(ask, call, model, files, weighted):
    words = ("--by", "date:day", "--weight", "views", "--save-state", "days.arrow")
    assert call("predict", model, "weighted.csv", *words)[0] == 0
    check("quanet merge", ask("merge", "days.arrow", "-o", "all.arrow"))


def with_metrics(comparison):
    """The comparison with the errors that the command computes."""
    first = comparison.errors["ae"], comparison.p_values["ae"]
    errors, p_values = (dict.fromkeys(("ae", "rae", "kld"), one) for one in first)
    return replace(comparison, errors=errors, p_values=p_values)


@pytest.mark.parametrize(
    ("verb", "make"),
    [
        ("quanet evaluate", lambda: summarize_evaluation(with_drift(made_evaluation(), ["widened", "trusted"]))),
        ("quanet compare", lambda: summarize_comparison(with_metrics(made_comparison()))),
        ("quanet experiment table", lambda: summarize_experiment(score(noisy_cells(), expected=CELLS))),
    ],
)
def test_commands_that_take_longer(verb, make):
    summary = make()
    check(verb, (json.loads(to_json(summary)), pd.read_csv(io.StringIO(to_csv(summary)))))


def test_bags_of_an_evaluation():
    columns = bag_rows(with_drift(made_evaluation(), ["trusted"])).columns
    text = PAGE["quanet evaluate"].partition("`--bags`")[2]
    assert all(f"`{name}`" in text for name in columns)


def test_reports(call, model, files, tmp_path):
    code, _, err = call("predict", model, files / "new.csv", "--by", "product", "--report", "report.json", "-q")
    assert code == 0, err
    report = json.loads((tmp_path / "report.json").read_text())
    names = {name.partition("[")[0].partition(".")[0] for name in listed(PAGE["Reports as JSON"], "field")}
    assert set(report) == names | set(VERSIONS)
    tables = [name for name in listed(PAGE["Reports as JSON"], "field") if name.startswith("sections[]")]
    written = {path for path in paths({"sections": report["sections"]}) if not path.endswith("?")}
    assert {path.split(".")[1].rstrip("[]") for path in written} <= {name.split(".")[1].rstrip("[]") for name in tables}


def test_the_version():
    assert f"version of the format: {ANSWER_FORMAT} |" in PAGE["All answers"]

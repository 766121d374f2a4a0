"""`quanet label plan` and `quanet refine`: from new data to shares that drift cannot mislead."""

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .conftest import draw
from .made_tables import one_line


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """New reviews of three months with their labels, and the same without."""
    folder = tmp_path_factory.mktemp("refined")
    parts = []
    for month, share in ((1, 0.2), (2, 0.5), (3, 0.7)):
        texts, labels = draw(share, 150, 50 + month)
        days = [f"2024-{month:02}-{1 + n % 28:02}" for n in range(150)]
        ids = [f"r{month}-{n}" for n in range(150)]
        parts.append(pd.DataFrame({"id": ids, "review": texts, "date": days, "views": 1, "truth": labels}))
    table = pd.concat(parts, ignore_index=True)
    table.loc[table["truth"] == "positive", "views"] = 5
    # Drift: the words of class 1 disappear from a third of its texts.
    hidden = np.flatnonzero((table["truth"] == "positive") & (np.arange(450) % 3 == 0))
    table.loc[hidden, "review"] = draw(0.0, len(hidden), 99)[0]
    table.drop(columns="truth").to_csv(folder / "new.csv", index=False)
    table.to_csv(folder / "truth.csv", index=False)
    return folder


@pytest.fixture
def fill(data):
    """Fill in a sheet; `change` may alter it as people do."""
    truth = pd.read_csv(data / "truth.csv")["truth"]

    def run(path, rows=None, change=None):
        sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
        sheet = sheet.sort_values("plan_order", key=lambda order: order.astype(int), ignore_index=True)
        names = truth[sheet["plan_row"].astype(int) - 1].to_numpy()
        sheet["sentiment"] = np.where(np.arange(len(sheet)) < (rows or len(sheet)), names, "")
        if change is not None:
            sheet = change(sheet)
        sheet.to_csv(path, index=False)

    return run


@pytest.fixture
def planned(call, model, data, tmp_path):
    """A plan of 60 rows, made once."""
    made = data / "sheet.csv"
    if not made.exists():
        code, out, err = call("label", "plan", model, data / "new.csv", "--number", 60, "--id", "id", "-o", made)
        assert code == 0, err
        assert json.loads(out)["labels"] == 60
    return Path(shutil.copy(made, tmp_path))


@pytest.mark.parametrize("by", [(), ("--by", "date:month")])
def test_the_labels_that_a_diagnosis_asks_for_are_those_that_its_command_selects(call, model, data, tmp_path, by):
    pd.read_csv(data / "new.csv")[::30].to_csv(tmp_path / "few.csv", index=False)  # too few rows to be trusted
    code, out, err = call("diagnose", model, tmp_path / "few.csv", *by)
    assert code == 0, err
    step = json.loads(out)["next"][0]
    said = int(step["reason"].split(" labelled rows")[0].replace(",", ""))
    words = shlex.split(step["command"])
    assert words[0] == "quanet"
    code, out, err = call(*words[1:-1], tmp_path / words[-1])
    assert code == 0, err
    assert json.loads(out)["labels"] == said == len(pd.read_csv(tmp_path / words[-1]))


def test_the_sheet_has_the_rows_of_the_data_and_an_empty_label_column(planned, data):
    sheet = pd.read_csv(planned, keep_default_na=False)
    new = pd.read_csv(data / "new.csv")
    assert sheet.columns[:3].tolist() == ["id", "review", "sentiment"]
    assert (sheet["sentiment"] == "").all()
    assert (new["id"][sheet["plan_row"] - 1].to_numpy() == sheet["id"].to_numpy()).all()
    assert sheet["plan_order"].tolist() == list(range(1, 61))
    np.testing.assert_allclose(sheet["plan_weight"].sum(), 450, atol=1e-3)


def test_a_width_says_how_many_labels_are_needed_and_what_to_expect(call, model, data):
    found = {}
    for width in (20, 10):
        code, out, _ = call("label", "plan", model, data / "new.csv", "--width", width, "-o", f"{width}.csv")
        assert code == 0
        found[width] = json.loads(out)
        assert found[width]["width"] <= width / 100 <= found[width]["plain_width"]
        assert found[width]["strata"] > 1
    assert found[20]["labels"] < found[10]["labels"] < 450
    code, out, _ = call(
        "label", "plan", model, data / "new.csv", "-o", "t.csv", "--format", "table", "--design", "random"
    )
    assert "--labels t.csv" in " ".join(out.split())


def test_refined_shares_are_right_where_drift_misleads_the_model(call, model, data, planned, fill, tmp_path):
    fill(planned)
    options = ("--labels", planned, "--by", "date:month", "--report", "r.html", "--format", "json")
    code, out, err = call("refine", model, data / "new.csv", *options)
    assert code == 0, err
    found = json.loads(out)
    truth = pd.read_csv(data / "truth.csv")
    share = (truth["truth"] == "positive").mean()
    positive = found["total"]["positive"]
    assert positive["lower"] <= share <= positive["upper"]
    assert positive["without labels"]["estimate"] < share - 0.08
    assert positive["width_with_more_labels"] < positive["upper"] - positive["lower"]
    assert len(found["groups"]) == 6
    assert sum(row["labelled"] for row in found["groups"] if row["class"] == "positive") == 60
    assert "without labels" in (tmp_path / "r.html").read_text()


def test_sorting_and_emptied_rows_at_the_end_are_harmless(call, model, data, planned, fill):
    shares = []
    for change in (None, lambda sheet: sheet.sort_values("review"), lambda sheet: sheet.iloc[:40]):
        fill(planned, rows=40, change=change)
        code, out, err = call("refine", model, data / "new.csv", "--labels", planned)
        assert code == 0, err
        shares.append(json.loads(out)["total"]["positive"]["estimate"])
    assert json.loads(out)["labelled"] == 40
    np.testing.assert_allclose(shares, shares[0])


def test_a_plan_by_group_gives_every_group_its_labels_and_its_own_correction(call, model, data, fill, tmp_path):
    plan = ("label", "plan", model, data / "new.csv", "--number", 15, "--by", "date:month", "-o", "by.csv")
    assert call(*plan)[0] == 0
    fill(tmp_path / "by.csv")
    asked = ("refine", model, data / "new.csv", "--labels", "by.csv", "--by", "date:month")
    code, _, err = call(*asked, "-o", "shares.csv")
    assert code == 0, err
    table = pd.read_csv(tmp_path / "shares.csv")
    assert table["labelled"].tolist() == [15] * 6
    assert set(table["labels_used"]) == {"own"}
    assert (table["lower"] <= table["estimate"]).all()
    code, out, _ = call(*asked, "--format", "table", "--class", "negative")
    assert out.startswith("negative: ")
    words = " ".join(out.split())
    assert words.count("Differences are between the sources of these rows") == 1
    assert "The refined shares are of exactly these rows." in words
    widths = []
    for target in ("source", "bag"):
        found = answer(call(*asked, "--target", target, "--format", "json"))["differences"]
        assert found["target"] == target
        assert ("exactly these rows" in found["meaning"]) == (target == "bag")
        step = found["comparisons"][0]["classes"]["positive"]
        widths.append(step["upper"] - step["lower"])
    assert widths[0] > widths[1]


def test_labels_are_planned_with_weights_and_few_heavy_labels_are_reported(call, model, data, tmp_path):
    table = pd.read_csv(data / "new.csv")
    truth = pd.read_csv(data / "truth.csv")["truth"]
    table["views"] = np.random.default_rng(0).random(450) ** (-1 / 1.2)
    table.loc[[7, 300], "views"] = 400.0
    table.to_csv(tmp_path / "new.csv", index=False)
    sheet = tmp_path / "sheet.csv"
    code, out, err = call(
        "label",
        "plan",
        model,
        tmp_path / "new.csv",
        "--number",
        60,
        "--weight",
        "views",
        "-o",
        sheet,
        "--format",
        "json",
    )
    assert code == 0, err
    assert json.loads(out)["weight"] == "views"
    filled = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    assert {8, 301} <= set(filled["plan_row"].astype(int))  # certain
    filled["sentiment"] = truth[filled["plan_row"].astype(int) - 1].to_numpy()
    filled.to_csv(sheet, index=False)
    words = ["--weight", "views", "--class", "positive", "--format", "json"]
    planned = answer(call("refine", model, tmp_path / "new.csv", "--labels", sheet, *words))
    share = (table["views"] * (truth == "positive")).sum() / table["views"].sum()
    assert planned["total"]["positive"]["lower"] <= share <= planned["total"]["positive"]["upper"]
    part = np.random.default_rng(1).permutation(450)[:60]
    table.loc[part, "sentiment"] = truth[part]
    table.to_csv(tmp_path / "partly.csv", index=False)
    random = answer(call("refine", model, tmp_path / "partly.csv", "--random", *words))
    notes = {kind: " ".join(map(str, found["cautions"])) for kind, found in (("planned", planned), ("random", random))}
    assert "the interval rests on the equivalent of" in notes["random"]
    assert "quanet label plan --weight views" in notes["random"]
    assert "rests on" not in notes["planned"]
    widths = [found["total"]["positive"]["upper"] - found["total"]["positive"]["lower"] for found in (planned, random)]
    assert widths[0] < 0.6 * widths[1]


def answer(called):
    code, out, err = called
    assert code == 0, err
    return json.loads(out)


def test_a_partly_labelled_file_needs_random_rows(call, model, data, tmp_path):
    table = pd.read_csv(data / "truth.csv")
    rng = np.random.default_rng(0)
    table["sentiment"] = np.where(np.isin(np.arange(450), rng.permutation(450)[:80]), table["truth"], "")
    table.to_csv(tmp_path / "part.csv", index=False)
    code, _, err = call("refine", model, "part.csv")
    assert code == 1
    assert "--random if" in one_line(err)
    code, out, _ = call("refine", model, "part.csv", "--random")
    assert json.loads(out)["labelled"] == 80
    code, weighted, _ = call("refine", model, "part.csv", "--random", "--weight", "views")
    assert "of the views of 450 instances" in json.loads(weighted)["answer"]
    shares = [json.loads(answer)["total"]["positive"]["estimate"] for answer in (out, weighted)]
    assert shares[1] > shares[0] + 0.15  # positive reviews have five times as many views
    table["sentiment"] = np.where(table["truth"] == "positive", "positive", "")
    table.to_csv(tmp_path / "picked.csv", index=False)
    code, _, err = call("refine", model, "picked.csv", "--random")
    assert code == 1
    assert "not a random part" in one_line(err)


def changed(column, row, value):
    def change(sheet):
        sheet.loc[row, column] = value
        return sheet

    return change


def first_positive(sheet, n):
    return sheet[sheet["sentiment"] == "positive"].iloc[:n].assign(plan_order=[str(at + 1) for at in range(n)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed("review", 3, "a completely different text"), "the text was changed (1 of 60 rows)"),
        (changed("sentiment", 3, "neutral"), "does not know the label 'neutral'"),
        (changed("sentiment", 3, "Positive "), "--normalize-labels"),
        (changed("sentiment", 3, ""), "1 of the first 60 rows of the plan have no label (plan_order 4)"),
        (changed("plan_row", 3, "many"), "column 'plan_row' was changed"),
        (lambda sheet: sheet.drop(columns="plan_row"), "is not a plan"),
        (lambda sheet: sheet.drop(columns="sentiment"), "no column 'sentiment'"),
        (lambda sheet: sheet.assign(sentiment=""), "is empty"),
        (lambda sheet: pd.concat([sheet, sheet.iloc[:1]]), "twice"),
        (lambda sheet: sheet.iloc[:5], "5 labels are too few"),
        (lambda sheet: first_positive(sheet, 15), "all 15 labels are 'positive'"),
        (lambda sheet: sheet.assign(plan_rows_in_data="451"), "belongs to other data: its plan was made for 451 rows"),
        (lambda sheet: sheet.assign(plan_rows_in_data=["450"] * 59 + ["451"]), "several plans"),
    ],
)
def test_a_bad_sheet_is_named_with_the_way_out(call, model, data, planned, fill, change, words):
    fill(planned, change=change)
    code, _, err = call("refine", model, data / "new.csv", "--labels", planned)
    assert code == 1
    assert words in one_line(err)


def test_a_sheet_of_another_file_is_refused_and_so_are_changed_data(call, model, data, planned, fill, tmp_path):
    fill(planned)
    table = pd.read_csv(data / "new.csv")
    table.iloc[::-1].to_csv(tmp_path / "reversed.csv", index=False)
    code, _, err = call("refine", model, "reversed.csv", "--labels", planned)
    assert code == 1
    assert "belongs to other data" in one_line(err)
    first = int(pd.read_csv(planned)["plan_row"][0]) - 1
    table.loc[first, "review"] = "a text that was not planned"
    table.to_csv(tmp_path / "edited.csv", index=False)
    code, _, err = call("refine", model, "edited.csv", "--labels", planned)
    assert code == 1
    assert f"row {first + 1}: the text is not the one that was planned" in one_line(err)


def test_skipped_rows_and_variants_of_labels_are_accepted_if_told_so(call, model, data, planned, fill):
    def change(sheet):
        sheet.loc[3, "sentiment"] = ""
        sheet.loc[4, "sentiment"] = sheet["sentiment"][4].upper()
        return sheet

    fill(planned, change=change)
    code, out, err = call("refine", model, data / "new.csv", "--labels", planned, "--random", "--normalize-labels")
    assert code == 0, err
    assert json.loads(out)["labelled"] == 59


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--width", 3, "--number", 50), 2, "either --width or --number"),
        (("--width", 200), 2, "between 0 and 100"),
        (("--id", "nothing"), 1, "no column 'nothing'"),
        (("-o", "sheet.pdf"), 2, "does not end in"),
    ],
)
def test_bad_options_of_a_plan_are_named(call, model, data, words, code, message):
    ended, _, err = call("label", "plan", model, data / "new.csv", "-o", "sheet.csv", *words)
    assert ended == code
    assert message in " ".join(err.replace("│", " ").split())


def test_a_sheet_may_be_a_workbook(call, model, data, tmp_path):
    pytest.importorskip("openpyxl")
    assert call("label", "plan", model, data / "new.csv", "--number", 20, "-o", "sheet.xlsx")[0] == 0
    sheet = pd.read_excel(tmp_path / "sheet.xlsx")
    sheet["sentiment"] = pd.read_csv(data / "truth.csv")["truth"][sheet["plan_row"] - 1].to_numpy()
    sheet.to_excel(tmp_path / "filled.xlsx", index=False)
    code, out, err = call("refine", model, data / "new.csv", "--labels", "filled.xlsx")
    assert code == 0, err
    assert json.loads(out)["labelled"] == 20


def test_standard_input_cannot_be_planned(call, model):
    code, _, err = call("label", "plan", model, "-", "-o", "sheet.csv")
    assert code == 1
    assert "Save standard input to a file" in one_line(err)

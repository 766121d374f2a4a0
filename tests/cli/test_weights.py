"""Shares of exposure on the command line: --weight."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from .conftest import draw
from .made_tables import one_line

MONTHS = ("2024-01-10", "2024-02-10")


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    """Posts of two months; positive ones have four times as many views; one in ten has none."""
    parts = []
    for at, day in enumerate(MONTHS):
        texts, labels = draw(0.4, 300, 70 + at)
        views = np.where(labels == "positive", 40, 10) * (np.arange(300) % 10 > 0)
        part = {"review": texts, "date": day, "sentiment": labels, "views": views, "price": "3.5"}
        parts.append(pd.DataFrame(part))
    table = pd.concat(parts, ignore_index=True)
    path = tmp_path_factory.mktemp("posts") / "posts.csv"
    table.to_csv(path, index=False)
    return path, table


def true_share(table):
    return table.loc[table["sentiment"] == "positive", "views"].sum() / table["views"].sum()


def test_shares_of_views_and_their_effective_size(call, model, posts):
    path, table = posts
    code, out, err = call("predict", model, path, "--weight", "views", "--text", "review")
    assert code == 0
    assert "60 rows have weight 0 in column 'views' and do not count." in err
    answer = json.loads(out)
    positive, total = answer["total"]["classes"]["positive"], answer["total"]
    assert positive["lower"] <= true_share(table) <= positive["upper"]
    assert positive["estimate"] == pytest.approx(true_share(table), abs=0.06)
    assert positive["counted"] == pytest.approx(true_share(table), abs=0.1)
    views = table["views"]
    assert (answer["weight"], total["n"], total["weight"]) == ("views", 600, views.sum())
    assert total["effective_n"] == round(views.sum() ** 2 / (views**2).sum())
    [finding] = [one for one in answer["diagnosis"] if one["name"] == "weights"]
    assert "60 instances have no views" in finding["sentence"]


def test_tables_and_reports_say_what_shares_are_of(call, model, posts, tmp_path):
    path, table = posts
    words = ("predict", model, path, "--weight", "views", "--by", "date:month")
    code, out, _ = call(*words, "--format", "csv", "--report", "report.md")
    assert code == 0
    rows = pd.read_csv(io.StringIO(out))
    assert rows.columns.tolist()[:8] == ["date", "class", "estimate", "lower", "upper", "n", "weight", "effective_n"]
    months = table.groupby(table["date"].str[:7])["views"].sum()
    assert rows["weight"].tolist() == np.repeat(months.to_numpy(), 2).tolist()
    report = (tmp_path / "report.md").read_text()
    assert "of the views of 600 instances" in report
    assert "Shares of views in %" in report
    assert "effective n" in report


def test_equal_weights_change_no_share(call, model, posts):
    path, _ = posts
    plain, equal = (
        json.loads(call("predict", model, path, *words)[1])["total"]["classes"] for words in ((), ("--weight", "price"))
    )
    assert plain == equal


def test_a_monitor_and_an_evaluation_of_views(call, model, posts):
    path, table = posts
    code, out, _ = call("monitor", model, path, "--by", "date:month", "--weight", "views", "--format", "csv")
    assert code == 0
    rows = pd.read_csv(io.StringIO(out))
    newest = rows[(rows["batch"] == "2024-02") & (rows["class"] == "positive")].iloc[0]
    assert newest["estimate"] == pytest.approx(true_share(table[table["date"] == MONTHS[1]]), abs=0.08)
    assert newest["effective_n"] < newest["n"]
    words = ("--weight", "views", "--label", "sentiment", "--protocol", "by:date:month")
    code, out, _ = call("evaluate", model, path, *words)
    assert code == 0
    answer = json.loads(out)
    assert answer["protocol"].endswith("weighted by views")
    assert answer["methods"][0]["ae"] < 0.08


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ("many", "posts.csv, row 3: the weight in column 'views' is 'many'"),
        ("-1", "posts.csv, row 3: the weight in column 'views' is '-1'"),
        ("", "posts.csv, row 3: the weight in column 'views' is empty"),
        ("inf", "row 3: the weight in column 'views' is 'inf'"),
        ("nan", "row 3: the weight in column 'views' is empty"),
    ],
)
def test_weights_that_are_none_are_one_line(call, model, posts, tmp_path, views, message):
    table = posts[1].astype({"views": str}).head(40).copy()
    table.loc[2, "views"] = views
    table.to_csv(tmp_path / "posts.csv", index=False)
    code, out, err = call("predict", model, "posts.csv", "--weight", "views")
    assert (code, out) == (1, "")
    assert message in one_line(err)


def test_months_without_views_and_missing_columns_are_named(call, model, posts, tmp_path):
    table = posts[1].copy()
    table.loc[table["date"] == MONTHS[0], "views"] = 0
    table.to_csv(tmp_path / "posts.csv", index=False)
    code, _, err = call("predict", model, "posts.csv", "--weight", "views", "--by", "date:month")
    assert code == 1
    assert "All weights in bag '2024-01' are 0" in one_line(err)
    code, _, err = call("monitor", model, "posts.csv", "--weight", "views", "--by", "date:month")
    assert code == 1
    assert "All weights of batch 2024-01 are 0" in one_line(err)
    assert call("predict", model, "posts.csv", "--weight", "view")[0] == 1
    table["views"] = 0
    table.to_csv(tmp_path / "posts.csv", index=False)
    assert "all weights in column 'views' are 0" in call("predict", model, "posts.csv", "--weight", "views")[2]

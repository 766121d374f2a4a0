import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pytest

from quanet import EMQ, Gaussians
from quanet.data.columns import ClassNames, as_labels, label_name, match_labels, parse_names
from quanet.data.instances import InputColumns
from quanet.data.label_spellings import describe_variants, label_variants, normalize_labels
from quanet.data.streams import TableSource
from quanet.errors import QuanetWarning
from quanet.workflows.labelled import read_pool


@pytest.mark.parametrize(
    "labels",
    [
        ["negative", "NEGATIVE", "Negative "],
        ["not sure", "not  sure", "Not_Sure", "not-sure"],
        ["caf\u00e9", "cafe\u0301"],
        ["\uff41", "a"],
    ],
)
def test_labels_that_differ_in_case_spaces_or_form_are_variants(labels):
    assert len(label_variants([*labels, "other"])) == 1
    assert len(np.unique(normalize_labels([*labels, "other"]))) == 2


@pytest.mark.parametrize("labels", [["1", "-1"], ["a", "b"], [1, 2], [True, False], ["yes", "yess"]])
def test_different_labels_are_no_variants(labels):
    assert label_variants(labels) == []
    assert describe_variants(labels) == ""
    assert normalize_labels(labels).tolist() == labels


def test_the_commonest_spelling_is_kept_unless_one_is_known():
    labels = ["NO", "no", "no", "Yes"]
    assert normalize_labels(labels).tolist() == ["no", "no", "no", "Yes"]
    assert normalize_labels(labels, known=["No", "YES"]).tolist() == ["No", "No", "No", "YES"]


LABELS = [4, 5, 4, -1, 0]


def written_as(folder, form, column):
    """A table with these labels, as text or as numbers with decimals."""
    table = pd.DataFrame({"text": [f"a text {n}" for n in range(len(column))], "label": column})
    if form == "duckdb":
        with duckdb.connect(str(folder / "a.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("create table rows as select text, label::decimal(10, 2) as label from given")
    elif form == "sqlite":
        with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
            table.to_sql("rows", connection, index=False)
    else:
        write = {"csv": table.to_csv, "parquet": table.to_parquet, "xlsx": table.to_excel}.get(form)
        if write is None:
            table.to_json(folder / "a.jsonl", orient="records", lines=True)
        else:
            write(folder / f"a.{form}", index=False)
    return TableSource([folder / f"a.{form}"])


@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx", "jsonl", "sqlite", "duckdb"])
def test_a_class_has_the_same_name_in_every_format(form, kind, tmp_path):
    column = [f"{label:.1f}" if kind is str else kind(label) for label in LABELS]
    source = written_as(tmp_path, form, column)
    pool = read_pool(source, InputColumns("text"), "label")
    assert pool.names == ["4", "5", "4", "-1", "0"]
    assert as_labels(pool.names).tolist() == LABELS


@pytest.mark.parametrize("text", ["1.10", "1.1", "04", "4.", ".0", "4.0.0", "4,0", "1e3", "v4.0", "nan", "0.50"])
def test_other_texts_are_labels_as_they_are(text):
    assert label_name(text) == text


@pytest.mark.parametrize(
    ("value", "name"), [("-0.0", "0"), ("10.00", "10"), (" -7.0 ", "-7"), (Decimal("4.50"), "4.5")]
)
def test_whole_numbers_are_written_without_decimals(value, name):
    assert label_name(value) == name


def test_names_of_classes_find_labels_with_decimals():
    given = parse_names(["4.0=good", "5=very good"])
    named = ClassNames.of(np.array([4, 5]), given)
    assert named.names.tolist() == ["good", "very good"]
    assert named.find("4.0") == "good"
    old = ClassNames.of(np.array(["4.0", "5.0"]), {}, {"4.0": "good"})  # as an older version has fitted it
    assert old.shown(["4", "5"]) == ["good", "5"]
    assert match_labels(["4", "5"], np.array(["4.0", "5.0"]), source="a.csv").tolist() == ["4.0", "5.0"]


@pytest.mark.filterwarnings("ignore:The classifier (hardly|does not) separate")
def test_a_quantifier_warns_of_variants():
    X, codes = Gaussians().draw([0.5, 0.5], 90, rng=0)
    y = np.array(["no", "yes"])[codes].astype(object)
    y[:20] = [label.upper() for label in y[:20]]
    with pytest.warns(QuanetWarning, match="These labels look like one class each: 'NO', 'no'; 'YES', 'yes'"):
        EMQ().fit(X, y.astype(str))

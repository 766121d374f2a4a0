"""Columns, names of classes, and what a comma means in a number: decided once for all chunks, files and processes."""

import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pytest

from quanet import CC, EMQ, Gaussians, save
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.reading import EngineChoice, read_state
from quanet.data.columns import (
    DECIMAL_COMMA,
    THOUSANDS_COMMA,
    ClassNames,
    as_labels,
    as_labels_written,
    describe_variants,
    label_name,
    label_variants,
    match_labels,
    normalize_labels,
    numbers_of,
    parse_names,
    read_number,
)
from quanet.data.instances import InputColumns
from quanet.data.streams import TableSource
from quanet.errors import Detected, InvalidData, InvalidSetting, QuanetWarning
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


pytestmark = pytest.mark.filterwarnings("ignore::quanet.errors.Detected")


def source_of(tmp_path, *columns):
    for number, cells in enumerate(columns):
        pd.DataFrame({"x": cells, "label": "a"}).to_csv(tmp_path / f"{number}.csv", sep=";", index=False)
    return TableSource([tmp_path / "*.csv"])


def numbers(source, rows=3):
    return [number for chunk in source.chunks(["x"], rows=rows) for number in numbers_of(chunk["x"], source)]


def test_a_chunk_without_commas_is_read_as_the_others_are(tmp_path):
    # Alone, the second chunk would be 1.234 and 5.678.
    source = source_of(tmp_path, ["1.234,5", "7", "3,25", "1.234", "5.678", "1"])
    assert numbers(source) == [1234.5, 7, 3.25, 1234, 5678, 1]
    with pytest.warns(Detected) as caught:
        numbers(TableSource(source.files))
    assert len(caught) == 1  # one report, not one for each chunk


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["3,5", "7", "1,25"], ["1,234.5", "1", "2"]),  # thousands, in a column with decimal commas
        (["3,5", "7", "1,25"], ["3.5", "1", "2"]),
        (["1,234.5", "7", "8"], ["3,5", "1", "2"]),  # decimal commas, in a column with separators of thousands
    ],
)
def test_a_number_that_is_written_otherwise_is_none(first, then, tmp_path):
    assert None in numbers(source_of(tmp_path, first + then))
    source = source_of(tmp_path, first, then)
    assert numbers(source)[3:] == [None, 1, 2]  # the first file decides for the second
    chunk = list(source.chunks(["x"]))[1]
    with pytest.raises(InvalidData, match=r"1.csv, row 1: .* in column 'x' is not a number"):
        InputColumns(features=("x",)).of(chunk, source)


def test_the_first_rows_decide_what_an_unclear_comma_means(tmp_path):
    unclear = ["1,234"] * 1500  # more than the rows that are looked at first
    assert numbers(source_of(tmp_path, [*unclear, "1,234.5"]), rows=100)[:2] == [1234, 1234]
    assert numbers(source_of(tmp_path, [*unclear, "3,5"]), rows=100)[:2] == [1.234, 1.234]
    with pytest.raises(InvalidData, match=r"row 1: '1,234' in column 'x' may be 1.234 or 1234"):
        numbers(source_of(tmp_path, unclear), rows=100)


def test_cells_have_to_fit_the_style():
    assert [read_number(cell, DECIMAL_COMMA) for cell in ("3.5", "1,234.5", "1.23,4", "x")] == [None] * 4
    assert [read_number(cell, THOUSANDS_COMMA) for cell in ("3,5", "1.234,5", "12,34", "x")] == [None] * 4


@pytest.mark.filterwarnings("ignore:The classifier")
def test_workers_read_numbers_as_one_process_does(tmp_path):
    X, y = Gaussians().draw([0.5, 0.5], 200, rng=0)
    names = [f"x{at}" for at in range(X.shape[1])]
    model = CC().fit(X, y)
    save(model, tmp_path / "model")
    rows = np.round(Gaussians().draw([0.6, 0.4], 300, rng=1)[0], 3)
    columns = {name: [f"{number:.3f}" for number in column] for name, column in zip(names, rows.T, strict=True)}
    table = pd.DataFrame(columns | {"views": [f"{1 + at / 8:.3f}" for at in range(300)]})
    table.loc[0] = "0.5"  # if all numbers had three decimals, a comma might also separate thousands
    table.to_csv(tmp_path / "points.csv", index=False)
    table.replace(r"\.", ",", regex=True).to_csv(tmp_path / "commas.csv", index=False, sep=";")

    def state(name, engine):
        reader = BatchReader(model, InputColumns(features=tuple(names)), weight="views", model="m")
        return read_state(reader, TableSource([tmp_path / name]), engine=engine).in_order()

    expected = state("points.csv", None)
    for engine in (None, EngineChoice(tmp_path / "model", workers=1)):
        found = state("commas.csv", engine)
        np.testing.assert_array_equal(found.kept.rows.values, expected.kept.rows.values)
        np.testing.assert_array_equal(found.totals, expected.totals)


SAVED = {"0": "negative", "1": "positive"}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["0"], "LABEL=NAME"),
        (["=a"], "LABEL=NAME"),
        (["0="], "LABEL=NAME"),
        (["0=a", "0=b"], "two names"),
        (["0=a", "1=a"], "Two labels"),
    ],
)
def test_a_malformed_pair_and_a_double_name_are_rejected(texts, problem):
    with pytest.raises(InvalidSetting, match=problem):
        parse_names(texts)


def test_labels_and_names_mean_the_same():
    named = ClassNames.of(np.array([0, 1]), SAVED)
    assert named.shown(["0", "negative", "1", None, "?"]) == ["negative", "negative", "positive", None, "?"]
    assert named.find("1") == named.find("positive") == "positive"
    assert as_labels_written(["0", "negative"], SAVED) == ["0", "0"]


def test_names_keep_the_order_of_the_classes():
    assert ClassNames.of(np.array([0, 1]), {"0": "z", "1": "a"}).names.tolist() == ["z", "a"]


def test_names_given_now_take_precedence_over_saved_ones():
    named = ClassNames.of(np.array([0, 1]), {"0": "bad"}, SAVED)
    assert named.names.tolist() == ["bad", "positive"]
    assert named.shown(["negative", "0", "bad"]) == ["bad"] * 3


def test_without_names_nothing_is_renamed():
    classes, fitted = np.array([0, 1]), object()
    named = ClassNames.of(classes, {})
    assert named.names is classes
    assert named.rename(fitted) is fitted


@pytest.mark.parametrize("given", [{"2": "x"}, {"neg": "x"}, {"0": "1"}, {"0": "positive"}])
def test_an_unknown_label_and_a_name_of_two_classes_are_rejected(given):
    with pytest.raises(InvalidSetting, match=r"classes are 'negative'|would name two"):
        ClassNames.of(np.array([0, 1]), given, SAVED)


def test_an_unknown_class_is_reported_with_the_nearest_first():
    with pytest.raises(InvalidSetting, match="Choose from 'positive', 'negative'"):
        ClassNames.of(np.array([0, 1]), SAVED).find("positve")

"""What a comma means in a number: decided once for a column, for all chunks, files and processes."""

import numpy as np
import pandas as pd
import pytest

from quanet import CC, Gaussians, save
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.reading import EngineChoice, read_state
from quanet.data.columns import numbers_of
from quanet.data.decimals import DECIMAL_COMMA, THOUSANDS_COMMA, read_number
from quanet.data.instances import InputColumns
from quanet.data.streams import TableSource
from quanet.errors import Detected, InvalidData

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

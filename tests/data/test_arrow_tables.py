from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quanet.data.arrow_tables import cells_of, column_cells
from quanet.data.columns import cell_or_none
from quanet.data.streams import TableSource
from quanet.errors import InvalidData

COLUMNS = {
    "string": pa.array(["a", "", None, "é"]),
    "large_string": pa.array(["a", "", None, "é"], pa.large_string()),
    "string_view": pa.array(["a", "", None, "é"], pa.string_view()),
    "dictionary": pa.array(["a", "", None, "a"]).dictionary_encode(),
    "large dictionary": pa.array(["a", "", None, "a"], pa.large_string()).dictionary_encode(),
    "dictionary with null": pa.DictionaryArray.from_arrays(pa.array([0, 0, None, 1], pa.int8()), pa.array(["x", None])),
    "integers": pa.array([1, -2, 3, 4], pa.int8()),
    "large integers": pa.array([2**64 - 1, 2, 3, 4], pa.uint64()),
    "integers with null": pa.array([2**53 + 1, 2, None, 4]),
    "numbers": pa.array([1.5, float("nan"), 3, 4]),
    "numbers with null": pa.array([0.1, None, 3, 4]),
    "float32": pa.array([0.1, 0.2, 3, 4], pa.float32()),
    "float16": pa.array(np.array([0.1, 0.2, 3, 4], dtype=np.float16)),
    "truth": pa.array([True, False, True, True]),
    "truth with null": pa.array([True, None, True, True]),
    "decimals": pa.array([Decimal("1.10"), None, Decimal("2.00"), Decimal("1.10")]),
    "dates": pa.array([date(2024, 1, 1), None, date(1, 1, 1), date(2024, 1, 1)]),
    "times with zone": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None] * 2, pa.timestamp("us", "Europe/Berlin")),
    "nanoseconds": pa.array([1, None] * 2, pa.timestamp("ns")),
    "times of day": pa.array([time(1), None] * 2),
    "durations": pa.array([timedelta(1), None] * 2),
    "null": pa.nulls(4),
    "lists": pa.array([[1], [], None, [2, 3]]),
    "structs": pa.array([{"a": 1}, None] * 2),
    "bytes": pa.array([b"", b"a", None, b"c"]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_whole_columns_give_the_same_cells_as_cell_by_cell(name):
    column = COLUMNS[name]
    in_parts = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    for one in (column, column.slice(1, 2), in_parts, pa.chunked_array([], column.type)):
        expected = [cell_or_none(cell) for cell in one.to_pylist()]
        found = column_cells(one, name, "a table").tolist()
        assert found == expected
        assert list(map(type, found)) == list(map(type, expected))


def test_a_dictionary_as_long_as_its_numbers_allow_may_have_nulls():
    names = pa.array([f"n{number}" for number in range(128)])
    column = pa.DictionaryArray.from_arrays(pa.array([127, None], pa.int8()), names)
    assert column_cells(column, "n", "a table").tolist() == ["n127", None]


@pytest.mark.parametrize("make", [pa.table, pa.record_batch])
def test_tables_and_batches_become_frames_of_objects(make):
    frame = cells_of(make({"a": [1, 2], "b": ["x", ""]}), ["b", "a"], start=7)
    assert frame.to_dict("list") == {"b": ["x", None], "a": [1, 2]}
    assert frame.index.tolist() == [7, 8]
    assert set(map(str, frame.dtypes)) == {"object"}
    assert len(cells_of(make({"a": [1, 2]}), [])) == 2


def test_dates_that_python_does_not_have_are_named():
    with pytest.raises(
        InvalidData, match=r"day\.parquet: column 'day' \(date32\[day\]\) contains a value out of range"
    ):
        cells_of(pa.table({"day": pa.array([10**7], pa.date32())}), name="day.parquet")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("group", [3, 1000])
def test_chunks_of_parquet_end_where_those_of_csv_do(kind, group, tmp_path, monkeypatch):
    monkeypatch.setattr("quanet.data.table_files.MAX_CHARACTERS", 500)
    rng = np.random.default_rng(0)
    texts = ["é" * length for length in rng.choice([0, 1, 20, 300, 700], 100)]
    table = pa.table({"text": pa.array(texts).cast(kind)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=group)
    pd.DataFrame({"text": texts, "n": range(100)}).to_csv(tmp_path / "a.csv", index=False)
    columns, rows = (list(TableSource([tmp_path / name]).chunks(["text"], rows=40)) for name in ("a.parquet", "a.csv"))
    assert [len(chunk) for chunk in columns] == [len(chunk) for chunk in rows]
    pd.testing.assert_frame_equal(pd.concat(columns), pd.concat(rows))


def test_two_columns_of_one_name_in_parquet_are_an_error(tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), tmp_path / "a.parquet")
    with pytest.raises(InvalidData, match="has 2 columns 'a'"):
        TableSource([tmp_path / "a.parquet"]).read(["a"])

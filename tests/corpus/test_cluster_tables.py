"""Tables of a cluster, without a cluster: what is decided before the rows are read, and what comes back."""

import pyarrow as pa
import pytest

from quanet.data.settings import Estimation, TableReading
from quanet.errors import Detected, InvalidData
from quanet.workflows.cluster_tables import ClusterTable, predict_table
from tests.corpus.conftest import KEYS, digits


@pytest.fixture
def table(corpus):
    """The corpus in blocks of 100 rows."""
    whole = pa.Table.from_pandas(corpus.table, preserve_index=False)

    def read(work):
        for start in range(0, whole.num_rows, 100):
            yield work.of_tables([whole.slice(start, 100)])

    return ClusterTable(
        "The table", whole.column_names, lambda number, names: whole.select(names).slice(0, number), read
    )


def test_a_table_has_the_digits_of_the_files_with_dates_detected_and_weights(corpus, expected, table):
    with pytest.warns(Detected, match="%d.%m.%Y"):
        shares = predict_table(table, corpus.home / "model", TableReading(by=KEYS, weight="views"), Estimation())
    assert digits(shares) == expected


def test_equal_blocks_count_twice_and_a_table_without_rows_is_refused(corpus, table):
    twice = ClusterTable(table.name, table.columns, table.first, lambda work: [*table.read(work), *table.read(work)])
    shares = predict_table(twice, corpus.home / "model", TableReading(by="product"), Estimation())
    assert shares.sizes.sum() == 2 * len(corpus.table)
    empty = ClusterTable(table.name, table.columns, table.first, lambda _: iter(()))
    with pytest.raises(InvalidData, match="The table has no rows"):
        predict_table(empty, corpus.home / "model", TableReading(), Estimation())
    with pytest.raises(InvalidData, match="no column 'brand'"):
        predict_table(table, corpus.home / "model", TableReading(by="brand"), Estimation())

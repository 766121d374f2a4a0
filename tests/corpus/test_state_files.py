"""Merged states: the same digits as reading everything at once, in any order, and never what does not belong."""

import numpy as np
import pandas as pd
import pytest

from quanet import EMQ, Gaussians
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.state import State, regroup
from quanet.corpus.state_files import check_belongs, merge_states, save_state, to_bytes
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.drift.scale import without_drift
from quanet.errors import InvalidData

DAYS = [Key("date", "day"), Key("shop")]


@pytest.fixture(scope="module")
def quantifier():
    with without_drift():
        return EMQ().fit(*Gaussians().draw([0.5, 0.5], 200, rng=0))


@pytest.fixture(scope="module")
def tables():
    made = []
    for at in range(4):
        table = pd.DataFrame(Gaussians().draw([0.7, 0.3], 50, rng=at)[0], columns=["a", "b"])
        days = [f"2024-0{1 + at // 2}-{1 + day % 3:02}" for day in range(50)]
        made.append(table.assign(date=days, shop=np.where(np.arange(50) % 2, "x", None)).astype(object))
    return [table.where(table.notna(), None) for table in made]


def states(quantifier, tables, keys=DAYS, **options):
    reader = BatchReader(quantifier, InputColumns(features=("a", "b")), keys=keys, model="one", **options)
    return [reader(table, partition=str(at)) for at, table in enumerate(tables)]


@pytest.fixture
def files(quantifier, tables, tmp_path):
    """Two days each: the first two files overlap in nothing, the third contains both, the fourth has a part of each."""
    every = states(quantifier, tables)
    made = {"early": every[:2], "late": every[2:], "all": every, "middle": every[1:3]}
    for name, part in made.items():
        save_state(State.merge(part), tmp_path / f"{name}.arrow")
    return {name: str(tmp_path / f"{name}.arrow") for name in made}


def test_the_order_and_repetitions_do_not_matter(quantifier, tables, files):
    expected = to_bytes(State.merge(states(quantifier, tables)))
    for chosen in (["early", "late"], ["late", "early", "late"], ["early", "all"], ["all", "late", "early"]):
        merged = merge_states([files[name] for name in chosen])
        assert to_bytes(merged.state) == expected
    assert [one.repeated for one in merged.files] == [False, True, True]
    assert merged.files[1].instances == 100


@pytest.mark.parametrize("keys", [[], [Key("shop")], [Key("date", "month")], [Key("shop"), Key("date", "year")], DAYS])
def test_a_state_by_fewer_keys_is_that_of_reading_the_rows_by_them(quantifier, tables, files, keys):
    expected = State.merge(states(quantifier, tables, keys))
    assert to_bytes(regroup(State.merge(states(quantifier, tables)), keys)) == to_bytes(expected)
    assert to_bytes(merge_states([files["early"], files["late"]], keys).state) == to_bytes(expected)


def test_states_that_do_not_belong_together_are_not_merged(quantifier, tables, files, tmp_path):
    with pytest.raises(InvalidData, match=r"early.*middle.*share 1 partitions, but neither contains the other"):
        merge_states([files["early"], files["middle"]])
    with pytest.raises(InvalidData, match="no states to merge"):
        merge_states([])
    save_state(states(quantifier, tables, DAYS[:1])[0], tmp_path / "other.arrow")
    with pytest.raises(InvalidData, match=r"other.arrow cannot be merged: it is grouped by date"):
        merge_states([files["early"], str(tmp_path / "other.arrow")])
    state = State.merge(states(quantifier, tables))
    with pytest.raises(InvalidData, match="read with another model"):
        check_belongs(state, "two", None, "day.arrow")
    with pytest.raises(InvalidData, match=r"day.arrow has no weights. Use the same --weight"):
        check_belongs(state, "one", "views", "day.arrow")
    with pytest.raises(InvalidData, match=r"grouped by date:day, shop, which does not determine date \(hour\)"):
        regroup(state, [Key("date", "hour")], "day.arrow")


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"a,b\n1,2\n"])
def test_a_damaged_or_foreign_file_is_named(files, tmp_path, content):
    path = tmp_path / "bad.arrow"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=r"bad.arrow is not a state"):
        merge_states([files["early"], str(path)])
    data = (tmp_path / "early.arrow").read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidData, match=r"bad.arrow is not a state"):
        merge_states([str(path)])

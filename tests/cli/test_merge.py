"""Saved states: what was read once need not be read again, and the answers have the same digits."""

import json

import pandas as pd
import pytest

from .test_fit import one_line


@pytest.fixture
def months(files, tmp_path):
    """The new reviews, one file for every month."""
    table = pd.read_csv(files / "new.csv")
    for month, part in table.groupby(table["date"].str[:7]):
        part.to_csv(tmp_path / f"{month}.csv", index=False)
    return sorted(path.name for path in tmp_path.glob("*.csv"))


def answer(call, *words):
    code, out, err = call(*words, "--format", "json")
    assert code == 0, err
    found = json.loads(out)
    return {name: found[name] for name in ("total", "groups", "diagnosis", "accuracy") if name in found}, err


def test_merged_states_answer_like_the_files(call, model, months, tmp_path):
    by = ("--by", "product", "--by", "date:day")
    for name in months:
        code, _, err = call("predict", model, name, *by, "--save-state", f"{name}.arrow", "-o", f"{name}.json")
        assert (code, f"State: {name}.arrow" in err) == (0, True)
    states = [f"{name}.arrow" for name in months]
    (tmp_path / "copy.arrow").write_bytes((tmp_path / states[0]).read_bytes())
    code, out, _ = call("merge", *states, "copy.arrow", "-o", "all.arrow", "--format", "json")
    assert code == 0
    merged = json.loads(out)
    assert (merged["instances"], merged["groups"]) == (720, 168)
    assert [one["repeated"] for one in merged["states"]] == [False, False, False, True]
    for keys in (by, ("--by", "date:month"), ()):
        expected, _ = answer(call, "predict", model, *months, *keys)
        assert answer(call, "predict", model, "all.arrow", *keys)[0] == expected
        assert answer(call, "predict", model, *reversed(states), *keys)[0] == expected
        found, err = answer(call, "predict", model, states[1], *months, *keys)
        assert found == expected
        assert "Not read again: 1 of 3 files, which the state contains." in err
    assert "720 of 720 rows in 3 groups" in call("diagnose", model, "all.arrow", "--by", "date:month")[2]


def test_a_monitor_follows_states_as_it_follows_files(call, model, months):
    code, _, _ = call("predict", model, *months[:2], "--by", "date:day", "--save-state", "old.arrow")
    assert code == 0
    words = ("--by", "date:week", "--format", "json")
    code, expected, _ = call("monitor", model, *months, *words)
    assert code == 0
    assert call("monitor", model, "old.arrow", months[2], *words)[:2] == (0, expected)
    assert call("monitor", model, "old.arrow", *words, "--state", "watch", "--save-state", "weeks.arrow")[0] == 0
    assert call("merge", "old.arrow", "weeks.arrow", "-o", "x.arrow")[0] == 1  # days and weeks
    assert call("monitor", model, months[2], "--by", "date:day", "--save-state", "new.arrow")[0] == 0
    assert call("merge", "old.arrow", "new.arrow", "-o", "days.arrow")[0] == 0
    code, _, err = call("monitor", model, "weeks.arrow", *words, "--state", "watch")
    assert code == 0
    assert "Skipped 9 batches that the monitor already contains" in err


def test_what_cannot_be_merged_is_one_line(call, model, months, tmp_path):
    day = ("--by", "date:day", "-q")
    for name, words in {"a": day, "b": ("--by", "product", "-q")}.items():
        assert call("predict", model, months[0], *words, "--save-state", f"{name}.arrow")[0] == 0
    (tmp_path / "cut.arrow").write_bytes((tmp_path / "a.arrow").read_bytes()[:900])
    pd.DataFrame({"review": ["good"]}).to_feather(tmp_path / "table.arrow")
    for words, message in {
        ("merge", "a.arrow", "b.arrow", "-o", "c.arrow"): "b.arrow cannot be merged: it is grouped by product",
        ("merge", "a.arrow", "cut.arrow", "-o", "c.arrow"): "cut.arrow is not a state",
        ("predict", model, "table.arrow"): "table.arrow is not a state",
        ("merge", "a.arrow", "-o", "a.arrow"): "a.arrow already exists",
        ("merge", "missing.arrow", "-o", "c.arrow"): "missing.arrow does not exist",
        ("predict", model, "a.arrow", "--by", "product"): "a.arrow is grouped by date:day, which does not determine",
        ("predict", model, "a.arrow", "--weight", "views"): "a.arrow has no weights",
        ("predict", model, "a.arrow", "--items", "items.csv"): "--items needs every row",
        ("refine", model, "a.arrow", "--random"): "quanet refine needs every row",
        ("diff", model, "a.arrow", "--by", "date:day"): "which only predict, monitor, diagnose and merge read",
    }.items():
        code, out, err = call(*words)
        assert (code, out) == (1, "")
        assert message in one_line(err)
    code, _, err = call("merge", "a.arrow", "-o", "c.csv")
    assert code == 2
    assert "c.csv does not end in .arrow" in err
    assert not (tmp_path / "c.arrow").exists()


def test_a_state_of_another_model_is_refused(call, model, files, months):
    assert call("predict", model, months[0], "-q", "--save-state", "a.arrow")[0] == 0
    assert call("fit", files / "train.csv", "--method", "CC", "-o", "other", "-q")[0] == 0
    code, _, err = call("predict", "other", "a.arrow")
    assert code == 1
    assert "a.arrow was read with another model" in one_line(err)

import json
from io import StringIO

import pandas as pd
import pytest

import quanet

from .made_tables import one_line, stream

STEADY, CHANGED = [0.3] * 5, [0.7] * 4


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    """Five steady weeks; four that differ; and all of them in one file."""
    folder = tmp_path_factory.mktemp("weeks")
    first, second = stream(STEADY), stream(CHANGED, start="2024-02-05", seed=50)
    for name, table in (("first", first), ("second", second), ("all", pd.concat([first, second]))):
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_a_change_is_told_first_and_since_when(call, model, weeks, tmp_path):
    code, out, err = call(
        *("monitor", model, weeks / "all.csv", "--by", "date:week", "--format", "table", "--plot", "band.svg"),
        *("--report", "report.md"),
    )
    assert code == 0
    assert out.startswith("Alarm: positive changed from ")
    assert "at 2024-02-05; the newest estimate is" in " ".join(out.split())
    assert "2024-W06" in out
    assert "720 of 720 rows" in err
    assert (tmp_path / "band.svg").read_text().startswith("<?xml")
    assert "2024-02-05" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("name", ["negative", "positive"])
def test_every_output_headlines_the_class_asked_for(call, model, weeks, tmp_path, name):
    ask = ("monitor", model, weeks / "all.csv", "--by", "date:week", "--class", name, "--force")
    said = json.loads(call(*ask, "--format", "json", "--report", "report.md", "--plot", "band.svg")[1])
    assert said["class"] == name
    assert said["answer"].startswith(f"Alarm: {name} changed from ")
    assert [one["since"] for one in said["changes"]] == ["2024-02-05"]
    assert call(*ask, "--format", "table")[1].startswith(f"Alarm: {name} ")
    assert (tmp_path / "report.md").read_text().split("\n\n")[1].lstrip("*").startswith(f"Alarm: {name} ")
    assert f"prevalence of {name}" in (tmp_path / "band.svg").read_text()


def test_all_changes_are_listed(call, model, tmp_path):
    stream([0.2] * 5 + [0.7] * 5 + [0.3] * 5).to_csv(tmp_path / "three.csv", index=False)
    code, out, _ = call("monitor", model, "three.csv", "--by", "date:week", "--format", "table")
    assert code == 0
    assert out.startswith("Alarm: 2 changes. positive changed from ")
    assert "detected" in out
    assert sum(line.rstrip().endswith("*") for line in out.splitlines()) == 2


def test_no_change_is_no_alarm(call, model, weeks):
    code, out, err = call("monitor", model, weeks / "first.csv", "--by", "date:week")
    assert code == 0
    said = json.loads(out)
    assert not said["alarm"]
    assert said["answer"].startswith("No change in 5 batches: positive is at ")
    assert said["answer"] in err
    assert len(said["readings"]) == 2 * 5
    assert {one["state"] for one in said["readings"]} <= {"trusted", "widened"}
    assert all(0 <= one["drift"] < 0.2 for one in said["readings"])
    assert said["threshold"] == pytest.approx(20)


def test_the_next_file_goes_on_where_the_last_one_ended(call, model, weeks):
    ask = ("--by", "date:week", "--format", "csv")
    assert call("monitor", model, weeks / "first.csv", *ask, "--state", "watch")[0] == 0
    code, out, err = call("monitor", model, weeks / "second.csv", *ask, "--state", "watch")
    assert code == 0
    assert "watch contained 5 batches; 4 are new." in err
    apart = pd.read_csv(StringIO(out))
    whole = pd.read_csv(StringIO(call("monitor", model, weeks / "all.csv", *ask)[1]))
    pd.testing.assert_frame_equal(apart, whole[-8:].reset_index(drop=True), check_dtype=False)
    code, out, err = call("monitor", model, weeks / "second.csv", *ask, "--state", "watch")
    assert code == 0
    assert "Skipped 4 batches that the monitor already contains (2024-W06, 2024-W07, 2024-W08 and more)." in err
    assert out.count("\n") == 1
    assert "Alarm" in err


def test_after_an_alarm_it_can_be_restarted(call, model, weeks):
    ask = ("--by", "date:week", "--state", "watch")
    assert json.loads(call("monitor", model, weeks / "all.csv", *ask)[1])["alarm"]
    code, out, err = call("monitor", model, weeks / "second.csv", *ask, "--restart")
    assert code == 0
    assert not json.loads(out)["alarm"]
    assert "watch contained 4 batches; 0 are new." in err
    assert "nothing to restart from" in call("monitor", model, weeks / "second.csv", *ask, "--restart")[2]


def test_late_and_single_rows(call, model, weeks, tmp_path):
    ask = ("--by", "date:week", "--state", "watch")
    assert call("monitor", model, weeks / "second.csv", *ask)[0] == 0
    table = pd.read_csv(weeks / "first.csv")
    lonely = pd.concat([table, pd.DataFrame({"review": ["word1"], "date": ["2024-02-05"]})])
    lonely.to_csv(tmp_path / "late.csv", index=False)
    code, out, err = call("monitor", model, "late.csv", *ask)
    assert code == 0
    assert "Merged batches with one row into their neighbours: 2024-W06." in err
    said = json.loads(out)["readings"]
    assert [one["n"] for one in said[::2]] == [80, 80, 80, 80, 81]
    lonely[-1:].to_csv(tmp_path / "one.csv", index=False)
    assert "only one row has a date" in one_line(call("monitor", model, "one.csv", "--by", "date:week")[2])


def test_numbers_count_batches_too(call, model, weeks, tmp_path):
    table = pd.read_csv(weeks / "all.csv")
    table["batch"] = table.index // 80
    table[["review", "batch"]].to_csv(tmp_path / "numbered.csv", index=False)
    code, out, _ = call("monitor", model, "numbered.csv", "--by", "batch", "--window", "2", "--tolerance", "0.01")
    assert code == 0
    assert json.loads(out)["since"] == "5"


def test_what_is_wrong_is_one_line(call, model, weeks, tmp_path):
    file = weeks / "first.csv"
    ask = ("--by", "date:week", "--state", "watch")
    assert call("monitor", model, file, *ask)[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "watch").iterdir()}
    code, out, err = call("monitor", model, file, *ask, "--level", "0.9")
    assert (code, out) == (1, "")
    assert "watch was created with level = 0.95; got 0.9" in one_line(err)
    other = quanet.load(model)
    other.n_instances_ += 1
    quanet.save(other, tmp_path / "other")
    assert "created with a different model than other" in one_line(call("monitor", "other", file, *ask)[2])
    assert {path.name: path.read_bytes() for path in (tmp_path / "watch").iterdir()} == before
    assert "contains EMQ, not a monitor" in one_line(
        call("monitor", model, file, "--by", "date:week", "--state", model)[2]
    )
    assert "no column 'dat'. Its columns are 'date'" in one_line(call("monitor", model, file, "--by", "dat:week")[2])
    assert "is neither a number nor a date" in one_line(call("monitor", model, file, "--by", "review")[2])
    pd.DataFrame({"review": ["a", "b"], "date": ["03/01/2024", "03/01/2024"]}).to_csv(tmp_path / "d.csv", index=False)
    code, _, err = call("monitor", model, "d.csv", "--by", "date:week")
    assert code == 1
    assert "d.csv, row 1: '03/01/2024' in column 'date' may be in several formats" in one_line(err)
    assert call("monitor", model, "d.csv", "--by", "date:week", "--date-format", "%d/%m/%Y")[0] == 0
    (tmp_path / "there.png").write_text("mine")
    assert "already exists" in one_line(call("monitor", model, file, "--by", "date:week", "--plot", "there.png")[2])
    assert call("monitor", model, file, "--by", "date:week", "--plot", "band.txt")[0] == 1


def test_a_state_is_a_folder_of_its_own(call, model, weeks, tmp_path):
    ask = ("monitor", model, weeks / "first.csv", "--by", "date:week", "--state")
    (tmp_path / "file").write_text("mine")
    assert "file is a file, but a model is a folder" in one_line(call(*ask, "file")[2])
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "letter").write_text("mine")
    assert "others is not empty and is not a quanet model" in one_line(call(*ask, "others")[2])
    assert [path.name for path in (tmp_path / "others").iterdir()] == ["letter"]
    (tmp_path / "empty").mkdir()
    assert call(*ask, "empty")[0] == 0
    assert (tmp_path / "empty" / "config.json").is_file()


@pytest.mark.parametrize("words", [("--by", "date:moon"), ("--by", "date:week", "--class", "neutral"), ()])
def test_a_wrong_call_is_exit_code_2(call, model, weeks, words):
    code, out, err = call("monitor", model, weeks / "first.csv", *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@pytest.mark.parametrize(("bound", "code"), [(0.3, 3), (1.0, 0)])
def test_the_newest_window_over_the_bound_is_exit_code_3_after_the_answer(call, model, weeks, bound, code):
    ask = ("monitor", model, weeks / "all.csv", "--by", "date:week", "--class", "positive", "--fail-over", bound)
    found, out, err = call(*ask, "--fail-bound", "estimate", "--format", "json")
    assert found == code
    assert json.loads(out)["class"] == "positive"
    assert ("Failed: positive is estimated over 30 % (estimate: 2024-" in err) == (code == 3)

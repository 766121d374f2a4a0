import io
import json
import sys

import pandas as pd
import pytest

from quanet import EMQ, save
from quanet.data.streams import TableSource
from quanet.workflows import predict as workflow

from .conftest import draw
from .test_fit import interrupt, one_line


def test_the_answer_in_a_pipe_is_json(call, model, files):
    code, out, err = call("predict", model, files / "new.csv")
    assert code == 0
    assert "720 of 720 rows" in err
    answer = json.loads(out)
    positive = answer["total"]["classes"]["positive"]
    assert positive["lower"] < 0.55 < positive["upper"]
    assert positive["estimate"] == pytest.approx(0.55, abs=0.06)
    assert "groups" not in answer
    assert {one["name"] for one in answer["diagnosis"]} >= {"prior shift", "words"}
    assert answer["model"]["method"] == "EMQ"


def test_groups_by_values_and_by_months_of_dates(call, model, files):
    words = ("predict", model, files / "new.csv", "--by", "product", "--by", "date:month")
    code, out, err = call(*words, "--format", "csv")
    assert code == 0
    assert "720 of 720 rows in 6 groups" in err
    table = pd.read_csv(io.StringIO(out))
    values = ["estimate", "lower", "upper", "n", "counted", "drift", "state", "labels", "note"]
    assert table.columns.tolist() == ["product", "date", "class", *values]
    assert set(table["state"]) <= {"trusted", "widened", "refused"}
    assert table["date"].tolist()[::2] == ["2024-01", "2024-02", "2024-03"] * 2
    assert (table["n"] == 120).all()
    assert ((table["lower"] <= table["estimate"]) & (table["estimate"] <= table["upper"])).all()
    lamps = table[(table["product"] == "lamp") & (table["class"] == "positive")]
    assert lamps["estimate"].to_numpy() == pytest.approx([0.8, 0.8, 0.8], abs=0.15)
    groups = json.loads(call(*words)[1])["groups"]
    assert groups[0]["group"] == {"product": "lamp", "date": "2024-01"}
    assert groups[0]["classes"]["positive"]["estimate"] == pytest.approx(lamps["estimate"].iloc[0], abs=1e-5)


def test_the_same_from_every_format_and_from_standard_input(call, model, files, tmp_path, monkeypatch):
    table = pd.read_csv(files / "new.csv")
    table.to_json(tmp_path / "new.jsonl.gz", orient="records", lines=True)
    table.to_parquet(tmp_path / "new.parquet")
    expected = json.loads(call("predict", model, files / "new.csv", "-q")[1])["total"]
    for name in ("new.jsonl.gz", "new.parquet"):
        assert json.loads(call("predict", model, name, "-q")[1])["total"] == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((files / "new.csv").read_bytes())))
    code, out, err = call("predict", model, "-", "-q")
    assert (code, err) == (0, "")
    assert json.loads(out)["total"] == expected


def test_intervals_can_leave_drift_out(call, model, files):
    words = ("predict", model, files / "new.csv", "--by", "product", "-q")
    included, left_out = json.loads(call(*words)[1]), json.loads(call(*words, "--no-drift")[1])
    assert {"state", "labels"} <= set(included["groups"][0]) & set(included["total"])
    assert "state" not in left_out["groups"][0]
    for group, narrow in zip(included["groups"], left_out["groups"], strict=True):
        for name, found in group["classes"].items():
            plain = narrow["classes"][name]
            assert found["estimate"] == plain["estimate"]
            assert found["lower"] <= plain["lower"] <= plain["upper"] <= found["upper"]
            assert found["drift"] > 0
            assert plain["drift"] is None
    assert "contents" not in {one["name"] for one in left_out["diagnosis"]}


def test_chunks_change_nothing(call, model, files, monkeypatch):
    words = ("predict", model, files / "new.csv", "--by", "date:month", "-q")
    whole = call(*words)[1]
    monkeypatch.setattr("quanet.data.table_files.MAX_CHARACTERS", 2000)
    assert call(*words)[1] == whole


STARTS = {
    "csv": b"product,class,estimate",
    "json": b'{\n "quanet_answer":',
    "parquet": b"PAR1",
    "txt": b"positive 55.0 % (",
    "html": b"<!doctype html>",
    "md": b"# Shares in ",
}


@pytest.mark.parametrize("ending", list(STARTS))
def test_the_ending_says_what_is_written(call, model, files, tmp_path, ending):
    code, out, err = call("predict", model, files / "new.csv", "--by", "product", "-o", f"shares.{ending}")
    assert (code, out) == (0, "")
    assert f"Written: shares.{ending}" in err
    content = (tmp_path / f"shares.{ending}").read_bytes()
    assert b" ".join(content.split()).startswith(b" ".join(STARTS[ending].split()))
    assert b"lamp" in content
    assert b"[red]" not in content
    code, _, err = call("predict", model, files / "new.csv", "-o", f"shares.{ending}")
    assert code == 1
    assert "already exists" in one_line(err)
    assert (tmp_path / f"shares.{ending}").read_bytes() == content


def test_a_picture_and_a_report_beside_the_answer(call, model, files, tmp_path):
    code, out, err = call(
        *("predict", model, files / "new.csv", "--by", "date:month", "--format", "table"),
        *("--plot", "trend.png", "--report", "report.html"),
    )
    assert code == 0, err
    assert "2024-02" in out
    assert (tmp_path / "trend.png").read_bytes().startswith(b"\x89PNG")
    assert b"2024-02" in (tmp_path / "report.html").read_bytes()
    assert "Chart: trend.png" in err


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_fits_its_screen(call, model, files, monkeypatch, width):
    monkeypatch.setattr("quanet.cli.console.console.width", width, raising=False)
    code, out, _ = call(
        "predict", model, files / "new.csv", "--by", "product", "--by", "date:month", "--format", "table"
    )
    assert code == 0
    assert "95 % intervals" in out
    assert "Total" in out
    assert max(map(len, out.splitlines())) <= width


def test_small_groups_are_answered_and_marked(call, model, tmp_path):
    texts, _ = draw(0.5, 60, 5)
    shops = ["large"] * 56 + ["single"] + ["pair"] * 2 + [None]
    pd.DataFrame({"review": texts, "shop": shops}).to_csv(tmp_path / "new.csv", index=False)
    code, out, err = call("predict", model, "new.csv", "--by", "shop")
    assert code == 0
    assert "60 of 60 rows in 4 groups" in err
    groups = {group["group"]["shop"]: group for group in json.loads(out)["groups"]}
    assert [groups[name]["n"] for name in ("large", "pair", "single", "(empty)")] == [56, 2, 1, 1]
    alone = groups["single"]["classes"]["positive"]
    assert (alone["lower"], alone["upper"], groups["single"]["small"]) == (0.0, 1.0, True)
    assert groups["pair"]["small"]
    code, out, _ = call("predict", model, "new.csv", "--by", "shop", "--format", "csv", "-q")
    assert out.splitlines()[-1].endswith(',0,"few, unknown"')


def test_another_name_of_the_only_text_column_is_guessed(call, model, files, tmp_path):
    pd.read_csv(files / "new.csv").rename(columns={"review": "body"}).to_csv(tmp_path / "new.csv", index=False)
    code, _, err = call("predict", model, "new.csv")
    assert code == 0
    assert "text column 'body' (detected, since 'review' is missing)" in err


def test_labels_that_the_model_does_not_know_are_a_warning(call, model, files, tmp_path):
    table = pd.read_csv(files / "train.csv")[:100]
    table.loc[:9, "sentiment"] = "neutral"
    table.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = call("predict", model, "new.csv", "-q")
    assert code == 0
    assert err.count("\n") == 1
    assert "Column 'sentiment' has 10 rows with labels that the model does not know, such as 'neutral'" in err
    assert json.loads(out)["total"]["n"] == 100


def test_a_model_without_facts_and_without_held_out_rows_answers_too(call, files, tmp_path):
    train = pd.read_csv(files / "train.csv")
    from quanet import CC

    save(CC().fit(train["review"].tolist(), train["sentiment"]), tmp_path / "plain")
    code, out, err = call("predict", "plain", files / "new.csv", "--by", "product")
    assert code == 0
    assert "Warning: CC has no held-out instances" in err
    assert err.count("Warning") == 1
    assert len(json.loads(out)["groups"]) == 2


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("date,product\n2024-01-01,lamp\n", [], "no column 'review'. Its columns are"),
        (
            "review,day\na b c,1\n",
            ["--by", "date:day"],
            "new.csv has no column 'date'. Its columns are 'day', 'review'",
        ),
        (
            "review,date\na b,2024-01-31\nc d,31/01/2024\n",
            ["--by", "date:month"],
            "row 2: '31/01/2024' in column 'date' is not a date",
        ),
        (
            "review,date\na b,2024-02-30\n",
            ["--by", "date:week"],
            "row 1: '2024-02-30' in column 'date' is not a date in ISO 8601",
        ),
        ('review\n" "\n', [], "none of the 1 rows can be used (no text: 1)"),
        ("review\n", [], "new.csv has no rows"),
        ("", [], "new.csv is empty"),
        ("review\na,b\n", [], "row 1 has 2 cells, but the table has 1 columns"),
    ],
)
def test_bad_tables_are_one_line(call, model, tmp_path, content, words, message):
    (tmp_path / "new.csv").write_text(content)
    code, out, err = call("predict", model, "new.csv", "-o", "shares.csv", *words)
    assert (code, out) == (1, "")
    assert message in one_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_dates_written_in_another_way(call, model, tmp_path):
    (tmp_path / "new.csv").write_text("review,date\na b,31/01/2024\nc d,01/02/2024\n")
    code, out, _ = call("predict", model, "new.csv", "--by", "date:month", "--date-format", "%d/%m/%Y")
    assert code == 0
    assert [group["group"]["date"] for group in json.loads(out)["groups"]] == ["2024-01", "2024-02"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing", "new.csv"], "the folder nothing does not exist"),
        (["other", "new.csv"], "other is not a quanet model: it has no config.json"),
        (["MODEL", "nothing.csv"], "The file nothing.csv does not exist"),
        (["MODEL", "new.csv", "-o", "nowhere/shares.csv"], "Folder nowhere does not exist"),
        (["MODEL", "new.csv", "--plot", "trend.bmp"], "trend.bmp"),
    ],
)
def test_what_is_not_there_is_one_line(call, model, files, tmp_path, words, message):
    (tmp_path / "other").mkdir()
    (tmp_path / "new.csv").write_bytes((files / "new.csv").read_bytes())
    code, out, err = call("predict", *(model if word == "MODEL" else word for word in words))
    assert (code, out) == (1, "")
    assert message in one_line(err)


@pytest.mark.parametrize(
    "words",
    [["--level", "2"], ["--encoding", "klingon"], ["--by", "date:century"], ["-o", "shares.xls"], ["--format", "pdf"]],
)
def test_a_wrong_call_is_exit_code_2(call, model, files, words):
    code, out, err = call("predict", model, files / "new.csv", *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("place", "name"),
    [(TableSource, "chunks"), (EMQ, "read"), (workflow, "predict_interval_bags"), (workflow, "diagnose")],
)
def test_ctrl_c_leaves_nothing(call, model, files, monkeypatch, tmp_path, place, name):
    monkeypatch.setattr(place, name, interrupt)
    code, out, err = call("predict", model, files / "new.csv", "-o", "shares.csv", "-q")
    assert (code, out, err) == (130, "", "Stopped.\n")
    assert not list(tmp_path.iterdir())


def by_authors(path, share, authors, seed):
    """Reviews of authors who write five each, all positive or all negative."""
    positive = round(share * authors)
    texts = [draw(float(at < positive), 5, seed + at)[0] for at in range(authors)]
    rows = [(text, f"author {at}") for at, of_author in enumerate(texts) for text in of_author]
    pd.DataFrame(rows, columns=["review", "author"]).to_csv(path, index=False)


def test_clusters_widen_intervals_of_the_source(call, model, tmp_path):
    by_authors(tmp_path / "new.csv", 0.4, 30, seed=500)
    words = ("predict", model, tmp_path / "new.csv", "-q", "--no-drift")
    plain, clustered = (json.loads(call(*words, *more)[1]) for more in ((), ("--cluster", "author")))
    width = [one["total"]["classes"]["positive"] for one in (plain, clustered)]
    assert width[0]["estimate"] == width[1]["estimate"]
    assert width[1]["upper"] - width[1]["lower"] > 2 * (width[0]["upper"] - width[0]["lower"])
    _, out, _ = call(*words, "--cluster", "author", "--format", "html")
    assert "clusters by author" in out
    assert "intervals are those of their source" in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--save-state", "s.arrow"), "--cluster reads all rows in this process. Leave out --save-state"),
        (("--engine", "ray"), "Leave out --engine"),
        (("--workers", "2"), "Leave out --workers"),
    ],
)
def test_clusters_need_all_rows(call, model, files, more, message):
    code, _, err = call("predict", model, files / "new.csv", "--cluster", "product", *more)
    assert code == 2
    assert message in " ".join(err.replace("│", " ").split())


def test_an_empty_cluster_is_an_error_that_names_the_row(call, model, tmp_path):
    by_authors(tmp_path / "new.csv", 0.4, 4, seed=600)
    table = pd.read_csv(tmp_path / "new.csv")
    table.loc[2, "author"] = None
    table.to_csv(tmp_path / "new.csv", index=False)
    code, _, err = call("predict", model, tmp_path / "new.csv", "--cluster", "author")
    assert code == 1
    assert "row 3" in one_line(err)
    assert "column 'author' is empty" in one_line(err)


def test_copies_in_a_file_are_named_and_do_not_narrow_the_interval(call, model, tmp_path):
    texts = draw(0.4, 60, 700)[0]
    for name, rows in (("once", texts), ("often", texts * 5)):
        pd.DataFrame({"review": rows}).to_csv(tmp_path / f"{name}.csv", index=False)
    once, often = (json.loads(call("predict", model, tmp_path / f"{name}.csv", "-q")[1]) for name in ("once", "often"))
    ends = [[one["total"]["classes"]["positive"][end] for end in ("lower", "upper")] for one in (once, often)]
    assert ends[1] == pytest.approx(ends[0], abs=0.01)
    (found,) = (one for one in often["diagnosis"] if one["name"] == "copies")
    assert found["sentence"].startswith(
        "240 of 300 rows are copies of other rows; the interval is that of 60 different"
    )

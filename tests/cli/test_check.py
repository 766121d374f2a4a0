"""`quanet check`: every finding names rows and what to do, in every output."""

import json

import pandas as pd
import pytest

from .made_tables import labelled, one_line


def found(call, *words):
    code, out, err = call("check", *words)
    assert code == 0, err
    answer = json.loads(out)
    return answer, {(one["severity"], one["finding"]): one for one in answer["findings"]}


def save(table, tmp_path, name="a.csv", **settings):
    table.to_csv(tmp_path / name, index=False, **settings)
    return name


def test_a_clean_table_has_no_findings(call, tmp_path):
    table = labelled().drop_duplicates("review")
    code, out, _ = call("check", save(table, tmp_path), "--label", "sentiment", "--format", "table")
    assert code == 0
    assert "No problems found" in " ".join(out.split())
    assert "Checked, no problems: copies" in out
    answer, findings = found(call, "a.csv", "--label", "sentiment")
    assert not findings
    assert (answer["text"], answer["label"], answer["rows"]) == ("review", "sentiment", len(table))
    assert answer["dates"][0]["format"] == "ISO 8601"
    assert answer["encoding"] == "utf-8"
    assert answer["delimiter"] == ","


def messy():
    table = labelled().drop_duplicates("review").reset_index(drop=True)
    table.loc[10:12, "review"] = table.loc[0, "review"].upper()
    table.loc[10:12, "sentiment"] = ["negative", "positive", "negative"]
    table.loc[20:21, "review"] = [f"order {n} of @user{n} was sent by us today https://x.y/{n}" for n in range(2)]
    table.loc[30, "review"] = "42"
    table.loc[31, "review"] = "ok"
    table.loc[32, "review"] = "the cafÃ© is nice"
    table.loc[33, "review"] = "long " * 5000
    table.loc[40:41, "review"] = ""
    table.loc[50:52, "sentiment"] = ["Positive ", "", "rare"]
    table["date"] = [f"{day[8:]}/{day[5:7]}/{day[:4]}" for day in table["date"]]
    table.loc[60:62, "date"] = ["soon", "", ""]
    table["score"] = "3,5"
    return table[~table["date"].str.contains("/02/")]


def test_each_problem_is_found_counted_and_has_a_remedy(call, tmp_path):
    answer, findings = found(call, save(messy(), tmp_path, sep=";"), "--by", "product")
    expected = {
        ("note", "copies"): (3, "rows 11, 12, 13", "Remove them"),
        ("note", "near copies"): (1, "row 22", "templates"),
        ("warning", "contradicting labels"): (1, "row 1", "Correct the labels"),
        ("warning", "numbers as texts"): (1, "row 31", "--text"),
        ("note", "short texts"): (1, "row 32", ""),
        ("warning", "encoding errors"): (1, "row 33", "--encoding"),
        ("note", "long texts"): (1, "row 34", ""),
        ("warning", "label variants"): (1, "'Positive' (1)", "--normalize-labels"),
        ("alarm", "class sizes"): (1, "'rare' (1)", "Add rows, or merge"),
        ("note", "missing labels"): (1, "row 52", "skips"),
        ("warning", "date format"): (1, "'soon'", "--date-format"),
        ("note", "gaps in time"): (0, "2024-02", "complete"),
    }
    for key, (rows, said, advice) in expected.items():
        assert findings[key]["rows"] == rows, key
        assert said in findings[key]["sentence"]
        assert advice in findings[key]["advice"]
    assert answer["dates"][0]["format"] == "%d/%m/%Y"
    assert answer["delimiter"] == ";"
    assert {one["name"]: one["content"] for one in answer["columns"]} == {
        "review": "text",
        "sentiment": "label",
        "product": "words",
        "date": "date",
        "score": "number",
    }


def test_languages_and_labels_in_texts(call, tmp_path):
    english = [f"this is the film that was number {n} of the year, spam" for n in range(60)]
    german = [f"das ist nicht der Film und ich war sehr müde {n}" for n in range(40)]
    table = pd.DataFrame({"text": english + german, "label": ["spam"] * 60 + ["other"] * 40})
    answer, findings = found(call, save(table, tmp_path))
    assert "English (60 %) and German (40 %)" in findings["warning", "languages"]["sentence"]
    assert "100 % of the texts with the label 'spam' contain" in findings["warning", "labels in texts"]["sentence"]
    assert answer["languages"] == {"English": 60, "German": 40}


def test_dates_that_may_mean_two_things_are_named(call, tmp_path):
    table = labelled(40)
    table["date"] = "03/04/2024"
    _, findings = found(call, save(table, tmp_path), "--by", "date:month")
    assert "'%d/%m/%Y' or '%m/%d/%Y'" in findings["warning", "date format"]["advice"]
    answer, findings = found(call, "a.csv", "--by", "date:month", "--date-format", "%m/%d/%Y")
    assert ("warning", "date format") not in findings
    assert answer["dates"][0]["rows"] == {"2024-03": 40}


def test_columns_that_are_unclear_are_a_note_and_several_files_are_one_table(call, tmp_path):
    pd.DataFrame({"a": ["x y z w", "u v w x"], "b": ["k l m n", "o p q r"]}).to_csv(tmp_path / "a.csv", index=False)
    answer, findings = found(call, "a.csv")
    assert "Name the column: --text" in findings["note", "columns"]["sentence"] or answer["text"] is None
    for name in ("c.csv", "d.csv"):
        save(labelled(30).assign(review="the same text as all others"), tmp_path, name)
    answer, findings = found(call, "c.csv", "d.csv")
    assert answer["rows"] == 60
    assert findings["warning", "copies"]["rows"] == 59


def test_one_class_is_an_alarm_and_every_output_can_be_written(call, tmp_path):
    save(labelled(30).assign(sentiment="x"), tmp_path)
    code, _, err = call("check", "a.csv", "--label", "sentiment", "-o", "f.csv", "--report", "r.html")
    assert code == 0, err
    table = pd.read_csv(tmp_path / "f.csv")
    assert table.loc[0, ["severity", "finding"]].tolist() == ["alarm", "class sizes"]
    assert "fit needs rows of at least two classes" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("text,label\n", [], "has no rows"),
        ("text,label\na,b\n", ["--text", "txt"], "has no column 'txt'"),
        ("text,label\na,b\n", ["--by", "shop"], "has no column 'shop'"),
        ("text,text\na,b\n", [], "has 2 columns 'text'"),
    ],
)
def test_a_table_that_cannot_be_used_is_exit_code_1(call, tmp_path, content, words, message):
    (tmp_path / "a.csv").write_text(content)
    code, _, err = call("check", "a.csv", *words)
    assert code == 1
    assert message in one_line(err)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"label": ["pos"]}, r"row 3, column 'label': ['pos'] contains several values. Use a column with one value"),
        ({"label": {"is": "pos"}}, "row 3, column 'label': {'is': 'pos'} contains several values"),
        ({"text": ["a film"]}, "row 3: column 'text' contains ['a film'], which is not text"),
        ({"shop": [1, 2]}, "row 3, column 'shop': [1, 2] contains several values"),
    ],
)
def test_what_fit_and_predict_refuse_does_not_pass_the_check(call, tmp_path, cells, message):
    rows = [{"text": f"a good film {n}", "label": "np"[n % 2], "shop": "a"} for n in range(20)]
    rows[2] |= cells
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, _, err = call("check", "rows.jsonl", "--text", "text", "--label", "label", "--by", "shop")
    assert code == 1
    assert message in one_line(err)
    if "shop" not in cells:
        words = ("--text", "text", "--label", "label", "--method", "CC", "-o", "model")
        assert one_line(call("fit", "rows.jsonl", *words)[2]).endswith(one_line(err).split("Error: ")[1])

"""Laws of every call: one line for what is wrong, files before answers, commands that a shell can read again."""

import json
import os
import shlex
import subprocess
import sys

import pandas as pd
import pytest

from .conftest import draw
from .made_tables import one_line


def tiny(n=30):
    texts, labels = draw(0.5, n, 3)
    return pd.DataFrame({"review": texts, "sentiment": labels})


def test_whoever_stops_reading_leaves_the_report_and_no_error(model, files, tmp_path):
    # Standard output is closed before anything is printed to it, as `| head -0` does.
    read, write = os.pipe()
    os.close(read)
    words = ["predict", model, files / "new.csv", "--report", "x.md", "--format", "table"]
    ended = subprocess.run(
        [sys.executable, "-m", "quanet", *map(str, words)],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        check=False,
    )
    os.close(write)
    assert ended.returncode == 0, ended.stderr
    notes = ended.stderr.decode()
    assert "Report: x.md" in notes
    assert not any(word in notes for word in ("Traceback", "Error", "Broken pipe"))
    assert (tmp_path / "x.md").stat().st_size > 500


def test_a_report_in_a_pipe_to_head_is_whole(model, files, tmp_path):
    options = ["--repeats", "1", "--report", "x.md", "--bags", "bags.csv", "--format", "json"]
    words = [sys.executable, "-m", "quanet", "evaluate", str(model), str(files / "train.csv"), *options]
    line = f"{shlex.join(words)} | head -2; echo ${{PIPESTATUS[0]}}"
    out = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "0"
    assert (tmp_path / "x.md").exists()
    assert (tmp_path / "bags.csv").exists()


def test_notes_that_nobody_reads_do_not_stop_the_work(files, tmp_path):
    read, write = os.pipe()
    os.close(read)
    words = ["fit", files / "train.csv", "--method", "CC", "-o", "model"]
    code = [sys.executable, "-m", "quanet", *map(str, words)]
    assert subprocess.run(code, stderr=write, cwd=tmp_path, check=False).returncode == 0
    os.close(write)
    assert (tmp_path / "model" / "config.json").exists()


def test_a_command_in_a_report_can_be_given_to_a_shell(call, model, files, tmp_path):
    (tmp_path / "it's new (1).csv").write_bytes((files / "new.csv").read_bytes())
    words = ["predict", str(model), "it's new (1).csv", "--by", "date:month", "--report", "x.json", "-q"]
    assert call(*words)[0] == 0
    said = json.loads((tmp_path / "x.json").read_text())["settings"]["command"]
    assert shlex.split(said) == ["quanet", *words]


def test_a_model_keeps_a_command_that_a_shell_can_read(call, files, tmp_path):
    (tmp_path / "a b.csv").write_bytes((files / "train.csv").read_bytes())
    code, _, err = call("fit", "a b.csv", "--method", "CC", "-o", "my model")
    assert code == 0
    assert "Next: quanet predict 'my model' NEW_FILE" in err
    assert "quanet fit 'a b.csv' --method CC -o 'my model'" in call("info", "my model")[1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"text,label\n\x81\x8d va bien,x\n", "The encoding of a.csv cannot be detected"),
        ("a.ods", b"PK", "is a spreadsheet in another format. Save it as .xlsx or CSV"),
        ("a.csv", b"text,label\na b c,x\nd,e,f,g\n", "row 2 has 4 cells"),
    ],
)
def test_a_file_that_cannot_be_read_is_not_advised_to_be_numbers(call, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    for verb in (("fit", name, "-o", "model"), ("compare", name, name, "--methods", "cc")):
        code, _, err = call(*verb)
        assert code == 1
        assert message in one_line(err)
        assert "--features" not in err


def test_where_no_column_is_text_features_are_advised(call, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    assert "--features" in one_line(call("fit", "a.csv", "-o", "model")[2])


def test_a_spreadsheets_csv_is_shown_as_it_is_read(call, tmp_path):
    (tmp_path / "a.csv").write_bytes("text;label\ncafé noir;gut\nthé vert;schön\n".encode("cp1252"))
    for words in ((), ("--encoding", "cp1252")):
        code, out, err = call("datasets", "show", "a.csv", *words)
        assert code == 0
        assert "schön" in out
        assert "café noir" in out
        assert ("encoding cp1252 (detected" in err) is not bool(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seed", "-1"), "--seed"),
        (("--encoding", "undefined"), "Unknown encoding 'undefined'"),
        (("--encoding", "utf\x008"), "Unknown encoding"),
        (("--date-format", "%Q"), "is not a date format"),
    ],
)
def test_a_value_that_no_option_takes_is_a_wrong_call(call, model, files, words, message):
    code, _, err = call("predict", model, files / "new.csv", *words)
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--classifier", "..:x"), "does not name a class"),
        (("--method", "os:getcwd"), "is not an estimator class"),
        (("--method", "json:JSONDecoder"), "is not an estimator class"),
        (("--classifier", "EMQ"), "is not a classifier"),
        (("--set", "cv=1979-05-27"), "is a date or a time"),
        (("--set", "cv=" + "[" * 5000), "cv of PACC must be a number of folds"),
        (("--set", "cv=[]"), "cv of PACC must be a number of folds or a share such as 0.4; got []"),
    ],
)
def test_what_no_method_is_made_of_is_refused_by_name(call, files, words, message):
    rest = () if words[0] == "--method" else ("--method", "PACC")
    code, _, err = call("fit", files / "train.csv", "-o", "model", *rest, *words)
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())


def test_a_protocol_without_bags_is_a_wrong_call(call, model, files):
    for alpha in ("inf", "nan", "1e300", "0", "-1"):
        code, _, err = call("evaluate", model, files / "train.csv", "--protocol", f"dirichlet:{alpha}")
        assert code == 2
        assert "concentration of dirichlet" in err


def test_settings_nested_too_deeply_are_a_wrong_call(call, tmp_path):
    (tmp_path / "quanet.toml").write_text("x = " + "[" * 20_000)
    code, _, err = call("methods")
    assert code == 2
    assert "nested too deeply" in err


def test_names_with_line_breaks_and_markup_stay_one_line(call, model, tmp_path):
    for name in ("a\nb.csv", "[/].csv", "[red]x.csv"):
        code, _, err = call("predict", model, name)
        assert code == 1
        assert name.replace("\n", "\\n") in one_line(err)


def test_a_label_in_markup_is_a_warning_as_it_stands(call, model, files, tmp_path):
    texts, _ = draw(0.5, 20, 1)
    pd.DataFrame({"review": texts, "sentiment": "[/red]"}).to_csv(tmp_path / "new.csv", index=False)
    code, _, err = call("predict", model, "new.csv")
    assert code == 0
    assert "such as '[/red]'" in err


def test_labels_with_signs_of_mathematics_can_be_drawn(call, tmp_path):
    table = tiny(80)
    table["sentiment"] = table["sentiment"].map({"positive": "$x^{2", "negative": "$5 \\frac"})
    table.to_csv(tmp_path / "train.csv", index=False)
    assert call("fit", "train.csv", "--method", "CC", "-o", "model")[0] == 0
    code, _, err = call("predict", "model", "train.csv", "--plot", "x.png", "--report", "x.html")
    assert code == 0, err


def test_where_people_have_labelled_every_row_their_labels_are_the_answer(call, tmp_path):
    (tmp_path / "a.csv").write_text("judge\n" + "good\nbad\nbad\nbad\n" * 25)
    code, out, err = call("correct", "a.csv", "--human", "judge", "--judge", "judge", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["total"]["good"]["estimate"] == pytest.approx(0.25, abs=0.01)


def test_a_judge_without_usable_rows_is_one_line(call, tmp_path):
    (tmp_path / "a.csv").write_text("judge,human\n,\n,\n")
    for columns in (("judge", "judge"), ("human", "judge")):
        code, _, err = call("correct", "a.csv", "--human", columns[0], "--judge", columns[1])
        assert code == 1
        one_line(err)


def test_features_without_a_name_are_a_wrong_call(call, files):
    assert call("fit", files / "train.csv", "--features", ",", "-o", "model")[0] == 2


def test_an_address_that_is_none_is_one_line(call):
    code, _, err = call("datasets", "fetch", "imdb", "--mirror", "http://[")
    assert code == 1
    assert "is not a valid URL" in one_line(err)


def test_a_refused_plan_leaves_nothing_behind(call, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'datasets = ["gone.csv::gone.csv"]\nruns = 1\nlearn = 0.5\n[classifiers.a]\nkind = "TextClassifier"\n'
        '[methods.CC]\nclassifier = "a"\n'
    )
    assert call("experiment", "run", "plan.toml", "-o", "deep/er")[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]

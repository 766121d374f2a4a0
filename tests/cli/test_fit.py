import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import quanet
from quanet import EMQ
from quanet.data.streams import TableSource
from quanet.nn import paper
from quanet.persist import save as persist
from quanet.persist.load import facts_of

from .conftest import draw


def one_line(err):
    """The error, which must be a single line, the last."""
    lines = [line for line in err.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1
    assert err.rstrip().endswith(lines[0])
    assert "Traceback" not in err
    return lines[0]


def test_it_says_what_it_took_counts_classes_and_tells_errors(call, files):
    code, out, err = call("fit", files / "train.csv", "--method", "emq", "-o", "model")
    assert (code, out) == (0, "")
    assert "text 'review' (detected), label 'sentiment' (detected)" in err
    assert "800 of 800 rows" in err
    assert "negative" in err
    assert "EMQ" in err
    assert "plain count of labels (CC)" in err
    assert "Model: model (" in err


def test_what_it_learnt_from_is_kept_with_the_model(model):
    facts = facts_of(model)
    assert facts["files"] == ["train.csv"]
    assert (facts["text"], facts["label"], facts["method"], facts["seed"]) == ("review", "sentiment", "EMQ", 0)
    assert facts["counts"].keys() == {"negative", "positive"}
    assert sum(facts["counts"].values()) == facts["rows"] == 800
    assert 0 < facts["held_out"]["error"] < facts["held_out"]["counted"]
    assert "800 rows of train.csv: texts in `review`" in (model / "README.md").read_text()
    assert quanet.load(model).classes_.tolist() == ["negative", "positive"]


def test_quiet_says_nothing(call, files):
    assert call("fit", files / "train.csv", "--method", "EMQ", "-o", "model", "-q") == (0, "", "")


def test_settings_classifier_and_several_files_in_other_formats(call, files, tmp_path):
    whole = pd.read_csv(files / "train.csv")
    whole[:400].to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    whole[400:].to_parquet(tmp_path / "b.parquet")
    code, _, err = call(
        *("fit", "a.jsonl", "b.parquet", "--text", "review", "--label", "sentiment", "-o", "model", "--method", "pacc"),
        *(
            "--set",
            "cv=3",
            "--classifier",
            "TextClassifier",
            "--set",
            "classifier__C=3.0",
            "--set",
            "classifier__views=['words']",
        ),
    )
    assert code == 0, err
    made = quanet.load(tmp_path / "model")
    assert (type(made).__name__, made.cv, made.classifier.C) == ("PACC", 3, 3.0)


def test_numbers_instead_of_texts(call, tmp_path):
    X, y = quanet.Gaussians().draw([0.5, 0.5], 300, rng=0)
    table = pd.DataFrame({"width": X[:, 0], "height": X[:, 1], "kind": y + 1})
    table.loc[3, "width"] = None
    table.to_csv(tmp_path / "train.csv", index=False)
    call_it = ("fit", "train.csv", "--features", "width,height", "--label", "kind", "--method", "ACC", "-o", "model")
    code, _, err = call(*call_it)
    assert code == 0
    assert "299 of 300 rows: 1 skipped (a number is missing)" in err
    assert quanet.load(tmp_path / "model").classes_.tolist() == [1, 2]
    code, out, err = call("predict", "model", "train.csv")
    assert code == 0
    assert json.loads(out)["total"]["n"] == 299


def test_the_default_is_quanet(call, files, tmp_path):
    code, _, _ = call("fit", files / "train.csv", "-o", "model", "--set", "cv=3")
    assert code == 0
    made = quanet.load(tmp_path / "model")
    assert (type(made).__name__, made.cv) == ("QuaNet", 3)
    code, out, _ = call("predict", "model", files / "new.csv", "--by", "product")
    shares = [group["classes"]["positive"]["estimate"] for group in json.loads(out)["groups"]]
    assert shares == pytest.approx([0.8, 0.3], abs=0.1)


def test_the_papers_network_is_trained_by_name(call, files, monkeypatch, tmp_path):
    short = replace(paper.RECIPE, bags=6, sizes=(20, 30), batches=2, stop_sizes=(20, 30), stop_batches=2)
    monkeypatch.setattr(paper, "RECIPE", short)
    settings = ("--method", "QuaNet.paper", "--set", "max_epochs=2", "--device", "cpu")
    code, _, err = call("fit", files / "train.csv", "-o", "model", "--verbose", *settings)
    assert code == 0
    assert "Training the network ..." in err
    made = quanet.load(tmp_path / "model")
    assert (type(made).__name__, made.max_epochs, made.random_state, made.device) == ("PaperQuaNet", 2, 0, "cpu")


def test_rows_without_text_or_label_are_left_out_and_counted(call, tmp_path):
    texts, labels = draw(0.5, 200, 1)
    table = pd.DataFrame({"text": texts, "label": labels})
    table.loc[[1, 2], "text"] = [None, "   "]
    table.loc[5, "label"] = None
    table.to_csv(tmp_path / "train.csv", index=False)
    code, _, err = call("fit", "train.csv", "--method", "EMQ", "-o", "model")
    assert code == 0
    assert "197 of 200 rows: 2 skipped (no text), 1 skipped (no label)" in err


def test_an_existing_model_stays_unless_forced(call, files, tmp_path):
    first = ("fit", files / "train.csv", "--method", "EMQ", "-o", "model", "-q")
    assert call(*first)[0] == 0
    saved = (tmp_path / "model" / "config.json").read_bytes()
    code, _, err = call(*first)
    assert code == 1
    assert "model already exists. Choose another name, or replace the model with --force" in one_line(err)
    assert (tmp_path / "model" / "config.json").read_bytes() == saved
    assert call(*first, "--force", "--seed", "3")[0] == 0
    assert facts_of(tmp_path / "model")["seed"] == 3


def test_a_folder_of_other_things_is_never_replaced(call, files, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    code, _, err = call("fit", files / "train.csv", "-o", "thesis", "--force")
    assert code == 1
    assert "is not empty and is not a quanet model" in one_line(err)
    assert (tmp_path / "thesis" / "chapter.txt").exists()


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (
            "review,sentiment\na b c,pos\n",
            ["--text", "revew"],
            "no column 'revew'. Its columns are 'review', 'sentiment'",
        ),
        ("review,mood\n" + "a b c,good\n" * 5, ["--label", "mood"], "'mood' contains a single class, 'good'"),
        (
            "review,mood\n" + "a b c,good\n" * 5 + "a b c,bad\n",
            ["--label", "mood"],
            "Class 'bad' has only one",
        ),
        (
            "review,id\n" + "".join(f"a b c,r{n}\n" for n in range(300)),
            ["--label", "id"],
            "300 different labels in 300 rows",
        ),
        ("review,mood\na b c,\n,good\n", ["--label", "mood"], "none of the 2 rows can be used"),
        ("", [], "train.csv is empty"),
        ("review,mood\n", ["--text", "review", "--label", "mood"], "train.csv has no rows"),
        ("review,mood\na,b,c\n", [], "line 2: row 1 has 3 cells, but the table has 2 columns"),
        ("a,b,mood\nx y z,u v w,1\n", ["--label", "mood"], "several columns may be the text: 'a', 'b'"),
        ("n,mood\n1,x\n2,y\n", ["--label", "mood"], "If the instances are numbers, name their columns: --features"),
        ("n,mood\n1,x\ntwo,y\n", ["--features", "n", "--label", "mood"], "row 2: 'two' in column 'n' is not a number"),
    ],
)
def test_bad_tables_are_one_line_and_leave_nothing(call, tmp_path, content, words, message):
    (tmp_path / "train.csv").write_text(content)
    code, out, err = call("fit", "train.csv", "-o", "model", "--method", "EMQ", *words)
    assert (code, out) == (1, "")
    assert message in one_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["train.csv"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_detected_and_a_wrong_one_is_named_with_its_row(call, tmp_path, encoding):
    texts, labels = draw(0.5, 100, 2)
    texts[7] += " déjà vu"
    rows = "".join(f"{text},{label}\r\n" for text, label in zip(texts, labels, strict=True))
    (tmp_path / "train.csv").write_bytes(f"text,label\r\n{rows}".encode(encoding))
    words = ("fit", "train.csv", "-o", "model", "--method", "EMQ")
    code, _, err = call(*words, "--encoding", "utf-8")
    assert code == 1
    assert ("line 9" if encoding == "latin-1" else "is UTF-16, not utf-8") in one_line(err)
    code, _, err = call(*words)
    assert code == 0
    assert f"encoding {'cp1252' if encoding == 'latin-1' else 'utf-16'} (detected" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "EMQQ"], "Unknown name 'EMQQ'. Did you mean EMQ?"),
        (["--method", "TextClassifier"], "does not estimate shares"),
        (["--method", "Gaussians"], "'Gaussians' does not estimate shares"),
        (["--method", "app", "--set", "bag_size=5"], "'app' does not estimate shares"),
        (["--method", "EMQ", "--classifier", "Gaussians"], "'Gaussians' is not a classifier"),
        (["--set", "cv"], "is not of the form key=value"),
        (["--method", "EMQ", "--set", "folds=3"], "has no setting 'folds'"),
        (["--method", "EMQ", "--set", "tol=much"], "got 'much'"),
        (["--text", "review", "--features", "id"], "not both"),
    ],
)
def test_a_wrong_call_is_exit_code_2(call, files, tmp_path, words, message):
    code, _, err = call("fit", files / "train.csv", "-o", "model", *words)
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())
    assert not list(tmp_path.iterdir())


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "name"), [(TableSource, "chunks"), (EMQ, "fit"), (EMQ, "relearn"), (persist, "write_new")]
)
def test_ctrl_c_leaves_what_was_there(call, files, monkeypatch, tmp_path, place, name):
    words = ("fit", files / "train.csv", "--method", "EMQ", "-o", "model", "-q")
    assert call(*words)[0] == 0
    before = (tmp_path / "model" / "config.json").read_bytes()
    monkeypatch.setattr(place, name, interrupt)
    code, out, err = call(*words, "--force")
    assert (code, out, err) == (130, "", "Stopped.\n")
    assert (tmp_path / "model" / "config.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    monkeypatch.undo()
    assert np.isfinite(quanet.load(tmp_path / "model").predict(["good film", "bad one"])).all()


@pytest.mark.parametrize(("method", "why"), [("EMQ", "there are too few held-out"), ("CC", "CC has no held-out")])
def test_errors_that_cannot_be_measured_are_not_made_up(call, tmp_path, method, why):
    texts, labels = draw(0.5, 30, 3)
    pd.DataFrame({"text": texts, "label": labels}).to_csv(tmp_path / "train.csv", index=False)
    code, _, err = call("fit", "train.csv", "--method", method, "-o", "model")
    assert code == 0
    assert f"Expected errors are unknown, since {why} instances" in err
    assert facts_of(tmp_path / "model")["held_out"] == {}


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """1,200 labelled reviews of four products over four quarters."""
    texts, labels = draw(0.5, 1200, 3)
    order = np.random.default_rng(0).permutation(1200)
    table = pd.DataFrame({"review": np.array(texts, dtype=object)[order], "sentiment": labels[order]})
    table["product"] = [f"p{n % 4}" for n in range(1200)]
    table["review"] += " about " + table["product"]
    table["date"] = [f"{1 + n % 28:02}.{1 + 3 * (n // 300):02}.2024" for n in range(1200)]
    table["same"] = "all"
    path = tmp_path_factory.mktemp("grouped") / "train.csv"
    table.to_csv(path, index=False)
    return path


FIT = ("--text", "review", "--label", "sentiment", "--method", "EMQ", "-o", "model")


def test_groups_are_left_out_to_learn_the_drift_scale(call, grouped, tmp_path):
    code, _, err = call("fit", grouped, "--groups", "product", *FIT)
    assert code == 0, err
    sentence = "hen each of 4 groups of the training data was left out, a share of 50 % in it was typically off by"
    assert f"Drift: w{sentence}" in err
    drift = facts_of(tmp_path / "model")["drift"]
    assert (drift["kind"], drift["parts"]) == ("groups", 4)
    assert drift["bias"] >= 0
    assert f"## Drift\n\nW{sentence}" in (tmp_path / "model" / "README.md").read_text()
    code, out, _ = call("info", "model", "--json")
    assert json.loads(out)["drift"].startswith(f"W{sentence}")


def test_groups_may_be_periods_of_dates(call, grouped, tmp_path):
    code, _, err = call("fit", grouped, "--groups", "date:quarter", "--date-format", "%d.%m.%Y", *FIT)
    assert code == 0, err
    drift = facts_of(tmp_path / "model")["drift"]
    # Quarters of one source may not differ at all; either way it is reported.
    assert drift["kind"] == "groups" or "groups differ from the other training data" in drift["sentence"]


def test_groups_that_cannot_be_used_are_a_warning(call, grouped, tmp_path):
    code, _, err = call("fit", grouped, "--groups", "same", *FIT)
    assert code == 0, err
    [line] = [line for line in err.splitlines() if "do not show what drift may cost" in line]
    assert "there is one group only, all. The bias that is typical of other datasets is used instead." in line
    assert facts_of(tmp_path / "model")["drift"]["kind"] == ""


def test_groups_of_an_unknown_column_or_period_are_an_error(call, grouped):
    code, _, err = call("fit", grouped, "--groups", "produkt", *FIT)
    assert code == 1
    assert "has no column 'produkt'. Its columns are 'product'" in one_line(err)
    code, _, err = call("fit", grouped, "--groups", "date:querter", *FIT)
    assert code == 2
    assert "--groups" in err

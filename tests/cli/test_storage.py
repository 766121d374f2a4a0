"""Commands on files in storage: the same shares, no credentials anywhere, bad files skipped on request."""

import json

import pandas as pd
import pytest

from tests.data.object_store import serving_objects

from .made_tables import one_line

ADDRESS = "s3://AKIAKEY:sec%2Fret@shop/new-*.parquet?region=t0ken"


@pytest.fixture
def store(files, monkeypatch):
    """The new reviews in three Parquet files of a bucket."""
    monkeypatch.setenv("no_proxy", "*")
    table = pd.read_csv(files / "new.csv")
    parts = {f"new-{part}.parquet": table.iloc[part::3].to_parquet() for part in range(3)}
    with serving_objects(buckets={"shop": parts}) as opened:
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url)
        yield opened


def test_a_bucket_gives_the_same_shares_and_shows_no_credentials(call, files, model, store, tmp_path):
    by = ("--by", "product")
    expected = json.loads(call("predict", model, files / "new.csv", *by, "-q")[1])
    code, out, err = call("predict", model, ADDRESS, *by, "--report", "report.md")
    assert code == 0
    assert json.loads(out)["groups"] == expected["groups"]
    assert json.loads(out)["source"] == "s3://shop/new-0.parquet and 2 more files"
    for shown in (out, err, (tmp_path / "report.md").read_text()):
        assert not {word for word in ("AKIAKEY", "sec%2Fret", "t0ken") if word in shown}
    store.private.add("shop")
    code, out, err = call("predict", model, ADDRESS)
    assert code == 1
    assert "s3://shop/new-*.parquet cannot be read: no permission." in one_line(err)


def test_training_files_are_kept_without_credentials(call, files, store, tmp_path):
    store.buckets["shop"]["train.csv"] = (files / "train.csv").read_bytes()
    code, _, err = call("fit", "s3://AKIAKEY:secret@shop/train.csv", "--method", "CC", "-o", "model")
    assert (code, "secret" in err) == (0, False)
    kept = " ".join(path.read_text(errors="replace") for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert "s3://shop/train.csv" in kept
    assert "AKIAKEY" not in kept


@pytest.mark.parametrize("command", ["predict", "monitor"])
def test_bad_files_are_named_and_skipped_on_request(command, call, files, model, tmp_path):
    new = pd.read_csv(files / "new.csv")
    new.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 is not enough")
    new.rename(columns={"review": "text"}).to_parquet(tmp_path / "c.parquet")
    words = (command, model, "*.parquet", "--by", "date:month")
    code, _, err = call(*words)
    assert code == 1
    assert "b.parquet cannot be read as PARQUET" in one_line(err)
    assert one_line(err).endswith("add --skip-bad-files.")
    code, out, err = call(*words, "--skip-bad-files", "--report", "report.md")
    assert code == 0
    assert "Warning: Skipped: b.parquet cannot be read as PARQUET" in err
    assert "Warning: Skipped: c.parquet has no column 'review'" in err
    assert list(json.loads(out)["skipped_files"]) == ["b.parquet", "c.parquet"]
    assert "- skipped c.parquet: c.parquet has no column" in (tmp_path / "report.md").read_text()

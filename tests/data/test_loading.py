import dataclasses
import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quanet import Dataset, fetch_dataset, list_datasets, load_dataset
from quanet.data.lequa import BagFiles, Files, read_task
from quanet.data.loading import describe, describe_bags
from quanet.data.registry import CATALOGUE, STAND_INS, find_entry
from quanet.errors import DownloadFailed, InvalidData, InvalidSetting
from tests.data.formats import REVIEWS, imdb_archive, lequa_task, lines

SHARED = Path(__file__).parents[3] / "shared" / "data"
LEQUA = sorted(name for name in CATALOGUE if name.startswith("lequa"))
SMALL = {"kindle_train.txt": lines(3_821), "kindle_test.txt": lines(21_592)}
RECORD = {f"/kindle/{name}": content for name, content in SMALL.items()}


@pytest.fixture
def mirror(site, monkeypatch):
    monkeypatch.setenv("QUANET_MIRROR", f"{site.url}/")
    return site


def at_hand():
    return {listed.entry.name: listed.at for listed in list_datasets() if listed.at}


def known(monkeypatch, name, *, md5=None, **facts):
    """Let a small file stand for the published one."""
    entry = CATALOGUE[name]
    files = tuple(dataclasses.replace(file, md5=md5) for file in entry.files)
    monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(entry, files=files, **facts))


def test_a_dataset_is_fetched_when_it_is_first_asked_for(mirror, tmp_path):
    mirror.files = RECORD
    assert at_hand() == {}
    data = load_dataset("kindle")
    assert (len(data.train), len(data.test)) == (3_821, 21_592)
    assert data.train.prevalence[1] == pytest.approx(0.9, abs=1e-3)
    assert (data.name, data.train.name, data.test.name, data.stand_in) == ("kindle", "kindle", "kindle", None)
    assert data.source == str(tmp_path / "cache" / "kindle")
    assert at_hand() == {"kindle": tmp_path / "cache" / "kindle" / "kindle_train.txt"}
    mirror.asked.clear()
    assert load_dataset("KINDLE").test.X == data.test.X
    assert mirror.asked == []


def test_reviews_without_text_are_left_out_and_do_not_make_the_count_wrong(mirror):
    mirror.files = RECORD | {"/kindle/kindle_test.txt": lines(21_591) + b"1\t\n"}
    assert len(load_dataset("kindle").test) == 21_591


def test_imdb_is_read_from_its_archive(mirror, monkeypatch, tmp_path):
    archive = imdb_archive()
    known(monkeypatch, "imdb", md5=hashlib.md5(archive).hexdigest(), sizes=((5, 2),))
    mirror.files["/imdb/aclImdb_v1.tar.gz"] = archive
    mirror.cuts = [len(archive) // 2]
    seen = []
    assert fetch_dataset("imdb", progress=lambda *step: seen.append(step)) == tmp_path / "cache" / "imdb"
    assert seen[-1] == ("aclImdb_v1.tar.gz", len(archive), len(archive))
    assert mirror.asked[-1] == ("/imdb/aclImdb_v1.tar.gz", f"bytes={len(archive) // 2}-")
    data = load_dataset("imdb", download=False)
    assert sorted(data.train.X + data.test.X) == sorted(REVIEWS.values())


@pytest.mark.parametrize("task", LEQUA)
def test_every_task_of_lequa_is_fetched_checked_and_read(task, mirror, monkeypatch):
    entry = CATALOGUE[task]
    bags = 4 if task == "lequa2024-t3" else 0
    archives, _ = lequa_task(k=entry.classes, text="-t2" in task and "2022" in task, train=60, bags=bags, n=30)
    size = 120 if bags else 60
    known(monkeypatch, task, bags=(3, 4, 30), sizes=((size, None),))
    mirror.files = {f"/{task}/{file.name}": archives[file.name.split(".")[1]] for file in entry.files}
    data = load_dataset(task)
    assert len(data.train) == size
    assert isinstance(data.test, BagFiles)
    assert (len(data.dev), len(data.test)) == (3, 4)
    assert data.test.prevalences.shape == (4, entry.classes)
    assert (data.train_bags is None) == (not bags)
    assert task in at_hand()


def test_an_unpacked_task_in_a_folder_is_found(tmp_path, monkeypatch):
    known(monkeypatch, "lequa2022-t1a", bags=(3, 4, 5), sizes=((12, None),))
    for name, content in lequa_task()[1].items():
        file = tmp_path / "data" / "T1A" / "public" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    assert len(load_dataset("lequa2022-t1a", folder=tmp_path / "data", download=False).test) == 4
    assert len(load_dataset(tmp_path / "data" / "T1A").test) == 4


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"/kindle/kindle_test.txt": lines(21_000)},
            "has 3,821 training and 21,000 test .* expected 3,821 and 21,592",
        ),
        ({"/kindle/kindle_train.txt": b"<html>Not now</html> later\n"}, "line 1 has no tab"),
    ],
)
def test_files_with_the_wrong_content_are_set_aside(files, message, mirror, tmp_path):
    mirror.files = RECORD | files
    with pytest.raises(DownloadFailed, match=rf"{message}.*kindle_train\.txt\.wrong"):
        fetch_dataset("kindle")
    assert at_hand() == {}
    with pytest.raises(DownloadFailed, match=message):
        load_dataset("kindle")
    mirror.files = RECORD
    assert len(load_dataset("kindle").train) == 3_821


def test_a_damaged_zip_is_set_aside_alone(mirror, monkeypatch, tmp_path):
    known(monkeypatch, "lequa2022-t1a", bags=(3, 4, 5), sizes=((12, None),))
    archives, _ = lequa_task()
    mirror.files = {f"/lequa2022-t1a/T1A.{part}.zip": content for part, content in archives.items()}
    whole = archives["test"]
    mirror.files["/lequa2022-t1a/T1A.test.zip"] = whole[:60] + bytes(20) + whole[80:]
    with pytest.raises(DownloadFailed, match=r"T1A\.test\.zip\.wrong"):
        fetch_dataset("lequa2022-t1a")
    names = sorted(path.name for path in (tmp_path / "cache" / "lequa2022-t1a").iterdir() if path.suffix != ".lock")
    assert names == ["T1A.test.zip.wrong", "T1A.test_prevalences.zip", "T1A.train_dev.zip"]


def test_a_task_with_too_few_bags_is_refused(mirror):
    archives, _ = lequa_task(train=5_000)
    mirror.files = {f"/lequa2022-t1a/T1A.{part}.zip": content for part, content in archives.items()}
    with pytest.raises(DownloadFailed, match=r"has 3 bags .* and 4 for testing; expected 1,000 and 5,000"):
        load_dataset("lequa2022-t1a")


def test_what_cannot_be_fetched_says_where_to_put_it_by_hand(mirror, tmp_path):
    with pytest.raises(DownloadFailed) as caught:
        fetch_dataset("hp")
    said = str(caught.value)
    assert "404" in said
    assert f"{mirror.url}/hp/hp_train.txt" in said
    assert f"as {tmp_path / 'cache' / 'hp' / 'hp_train.txt'}" in said
    assert "QUANET_DATA" in said
    assert "\n" not in said


def test_files_that_lie_in_a_folder_are_used_from_there(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, content in SMALL.items():
        (folder / name).write_bytes(content)
    with pytest.raises(InvalidData, match=r"kindle is not available\. Download it: quanet datasets fetch kindle"):
        load_dataset("kindle", download=False)
    assert len(load_dataset("kindle", folder=folder).train) == 3_821
    monkeypatch.setenv("QUANET_DATA", os.pathsep.join([str(tmp_path), str(folder)]))
    assert at_hand() == {"kindle": folder / "kindle_train.txt"}
    assert fetch_dataset("kindle") == folder / "kindle_train.txt"
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("QUANET_DATA", "/nowhere/to/be/found")
    with pytest.raises(InvalidSetting, match="QUANET_DATA contains /nowhere/to/be/found, which is not a folder"):
        load_dataset("imdb")


def test_the_cache_lies_where_the_platform_has_it(monkeypatch, tmp_path):
    from quanet.data.download import cache_folder

    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("QUANET_CACHE")
    assert cache_folder().name.lower() in {"quanet", "cache"}


def test_the_authors_own_file_is_split_by_date(tmp_path, monkeypatch):
    known(monkeypatch, "hp", sizes=((4, 3),))
    years = [1998, 1998, 1999, 2000, 2001, 2002, 2003]
    (tmp_path / "HP_reviews.txt").write_text("".join(f"{year} user\treview of {year}\t5\n" for year in years[::-1]))
    monkeypatch.setenv("QUANET_DATA", str(tmp_path))
    data = load_dataset("hp")
    assert data.train.dates.tolist() == ["1998", "1998", "1999", "2000"]
    assert data.test.dates.tolist() == ["2001", "2002", "2003"]
    assert load_dataset(tmp_path / "HP_reviews.txt").train.X == data.train.X


def write_tables(folder, name, train=4, test=6):
    folder.mkdir(exist_ok=True)
    for part, size in (("train", train), ("test", test)):
        table = pd.DataFrame({"text": [f"text {i}" for i in range(size)], "label": np.arange(size) % 2})
        table.assign(date=[f"2020-01-{i + 1:02d}" for i in range(size)]).to_parquet(folder / f"{name}-{part}.parquet")


@pytest.mark.parametrize("name", ["imdb", "kindle-device", "amazon-devices", "airline-3class"])
def test_tables_of_a_name_are_taken_from_a_folder(name, tmp_path, monkeypatch):
    known(monkeypatch, name, sizes=((4, 6),))
    write_tables(tmp_path / "data", name)
    monkeypatch.setenv("QUANET_DATA", str(tmp_path / "data"))
    data = load_dataset(name)
    assert (len(data.train), len(data.test)) == (4, 6)
    assert data.stand_in == STAND_INS.get(name)
    assert data.train.dates.tolist() == ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]


def test_stand_ins_say_what_they_stand_for():
    assert STAND_INS == {
        "kindle-device": "stand-in for KINDLE",
        "kindle-store": "second stand-in for KINDLE",
        "amazon-devices": "stand-in for HP",
    }


def test_a_stand_in_comes_from_a_folder_only(tmp_path):
    for ask in (load_dataset, fetch_dataset):
        with pytest.raises(
            InvalidData, match=r"not available\. Set QUANET_DATA to a folder that contains kindle-store"
        ):
            ask("kindle-store")


def test_a_table_of_the_wrong_size_is_refused(tmp_path):
    write_tables(tmp_path, "imdb")
    with pytest.raises(InvalidData, match=r"imdb in .* has 4 training and 6 test instances; expected 25,000"):
        load_dataset("imdb", folder=tmp_path)


@pytest.mark.parametrize(("name", "near"), [("imbd", "imdb"), ("kindel", "kindle"), ("lequa2022-t1", "lequa202")])
def test_the_nearest_name_is_suggested(name, near):
    with pytest.raises(InvalidSetting, match=f"Unknown dataset '{name}'. Did you mean {near}"):
        load_dataset(name)


def test_without_a_near_name_all_are_listed():
    with pytest.raises(InvalidSetting, match="Choose from imdb, kindle, hp, lequa2022-t1a"):
        find_entry("mnist")


def test_two_tables_make_a_pair_and_a_folder_of_two_does_too(tmp_path):
    (tmp_path / "train.csv").write_text("body,verdict\ngood,yes\nbad,no\n")
    (tmp_path / "test.jsonl").write_text('{"body": "fine", "verdict": "yes"}\n')
    for given in (f"{tmp_path}/train.csv::{tmp_path}/test.jsonl", tmp_path, str(tmp_path)):
        data = load_dataset(given, text="body", label="verdict")
        assert data.train.X == ["good", "bad"]
        assert data.test.y.tolist() == ["yes"]
        assert data.source == str(tmp_path)


def test_tables_without_texts_are_numbers(tmp_path):
    (tmp_path / "train.csv").write_text("a,b,label\n1,2.5,x\n3,4,y\n")
    (tmp_path / "test.csv").write_text("a,b,label\n5,6,y\n")
    np.testing.assert_array_equal(load_dataset(tmp_path).train.X, [[1, 2.5], [3, 4]])


def test_lines_of_label_and_text_are_a_table_too(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.txt").write_bytes(lines(4, positive=0.5))
    assert load_dataset(tmp_path).test.y.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        (
            {"a.csv": "text,label\ngood,1\n"},
            "a.csv",
            r"is one table\. Pass two tables, for training and testing: .*a\.csv::OTHER",
        ),
        ({}, "gone.csv", r"The file .*gone\.csv does not exist"),
        ({}, "a.txt::b.txt", r"The file .*a\.txt does not exist"),
        ({"train.csv": "text,label\ngood,1\n"}, "", r"has neither train\.\* and test\.\*"),
        (
            {"train.csv": "text,label\na,1\n", "test.csv": "text,label\nb,2\n"},
            "",
            "has the class '2', which is missing in",
        ),
        ({"training_data.txt": "label,0\n0,1.0\n1,2.0\n"}, "", "no bags in test_samples"),
    ],
)
def test_paths_that_hold_no_pair_say_what_is_missing(files, given, message, tmp_path, monkeypatch):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidData, match=message):
        load_dataset(given or tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real reviews")
@pytest.mark.parametrize("name", ["imdb", *STAND_INS, "airline-3class"])
def test_the_real_reviews_have_the_sizes_of_the_catalogue(name):
    data = load_dataset(name, folder=SHARED, download=False)
    assert (len(data.train), len(data.test)) == CATALOGUE[name].sizes[0]
    assert len(data.train.classes) == CATALOGUE[name].classes


def test_texts_are_described_by_words_repetitions_and_dates():
    data = Dataset(["a b", "a", "a", "a b c d"], ["x", "y", "y", "y"], dates=["2002", "2001", "2004", "2003"])
    found = describe(data, first=2)
    assert found.counts == {"x": 1, "y": 3}
    assert found.words.tolist() == [1, 1, 1.5, 2.5, 4]
    assert found.repeated == 1
    assert found.dates == ("2001", "2004")
    assert found.first == (("x", "a b"), ("y", "a"))
    assert found.width is None


def test_numbers_are_described_by_their_width():
    found = describe(Dataset(np.ones((4, 7)), [1, 0, 1, 1]))
    assert (found.instances, found.width, found.words, found.repeated, found.dates) == (4, 7, None, None, None)
    assert found.counts == {0: 1, 1: 3}


def test_bags_are_described_by_the_range_of_their_prevalences(tmp_path):
    for part, content in lequa_task()[0].items():
        (tmp_path / f"{part}.zip").write_bytes(content)
    test = read_task(sorted(tmp_path.glob("*.zip"))).test
    found = describe_bags(test)
    assert found.bags == 4
    assert found.prevalences == pytest.approx(
        np.stack([test.prevalences.min(axis=0), test.prevalences.mean(axis=0), test.prevalences.max(axis=0)])
    )
    assert (
        describe_bags(BagFiles(Files([tmp_path / "test.zip"]), "test_samples", np.arange(4), None)).prevalences is None
    )

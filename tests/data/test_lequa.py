import tracemalloc

import numpy as np
import pytest

from quanet import CC, EMQ, BagFiles
from quanet.data.lequa import check_zip, parse_instances, read_task
from quanet.errors import InvalidBags, InvalidData
from tests.data.formats import lequa_task, prevalences, texts, vectors, zipped


@pytest.fixture(params=["zipped", "unpacked", "unpacked without public"])
def written(request, tmp_path):
    """Write a task the way it is published, or unpacked; gives the paths to read it from."""

    def write(**settings):
        archives, contents = lequa_task(**settings)
        if request.param == "zipped":
            for part, content in archives.items():
                (tmp_path / f"T1A.{part}.zip").write_bytes(content)
            return sorted(tmp_path.glob("*.zip"))
        root = tmp_path / "T1A"
        for name, content in contents.items():
            file = (root / "public" if request.param == "unpacked" else root) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return [root]

    return write


def test_a_task_of_vectors_has_labels_to_train_on_and_bags_with_prevalences(written):
    task = read_task(written(dev=12, test=4), "t1a")
    assert task.train.X.shape == (12, 4)
    assert task.train.y.tolist() == [0, 1] * 6
    assert task.train.name == "t1a"
    assert (len(task.dev), len(task.test)) == (12, 4)
    assert task.dev.labels.tolist() == list(range(12))  # 10 comes after 9, not after 1
    assert [len(bag) for bag in task.dev] == [5, 6] * 6
    np.testing.assert_allclose(task.dev.prevalences.sum(axis=1), 1)
    np.testing.assert_allclose(task.test.prevalences.sum(axis=1), 1, atol=1e-15)  # rounded in the file


def test_a_task_of_texts_keeps_quotes_and_line_breaks(written):
    task = read_task(written(text=True))
    assert all(text.endswith(', "quoted"\nline') for text in task.train.X)
    assert [len(bag) for bag in task.test] == [5] * 4
    X, bags = task.test.pool()
    assert len(X) == 20
    assert bags.sizes.tolist() == [5] * 4


def test_chunks_and_pool_hold_the_same_bags(written):
    task = read_task(written(dev=9))
    X, bags = task.dev.pool()
    assert bags.sizes.tolist() == [5, 6] * 4 + [5]
    np.testing.assert_array_equal(X, np.concatenate(list(task.dev)))
    chunks = list(task.dev.chunks(instances=12))
    assert [len(part) for _, part in chunks] == [3, 3, 3]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in chunks]), X)
    np.testing.assert_array_equal(np.concatenate([part.prevalences for _, part in chunks]), bags.prevalences)
    assert np.concatenate([part.labels for _, part in chunks]).tolist() == list(range(9))


def test_estimates_do_not_depend_on_the_chunks(written):
    task = read_task(written(test=7))
    quantifier = CC().fit(task.train.X, task.train.y)
    whole = quantifier.predict_bags(*task.test.pool())
    for size in (1, 12, 1000):
        parts = np.vstack([quantifier.predict_bags(X, bags) for X, bags in task.test.chunks(size)])
        np.testing.assert_array_equal(parts, whole)


def test_texts_in_files_can_be_quantified(written):
    task = read_task(written(text=True, train=40))
    estimates = EMQ(cv=2).fit(task.train.X, task.train.y).predict_bags(*task.test.pool())
    assert estimates.shape == task.test.prevalences.shape


def test_training_data_may_come_as_bags(written):
    task = read_task(written(bags=6, k=5, n=10))
    assert task.train.X.shape == (60, 4)
    assert len(task.train_bags) == 6
    np.testing.assert_allclose(task.train_bags.prevalences, np.full((6, 5), 0.2))
    assert task.train_bags.flat.tolist() == list(range(60))


def test_streaming_needs_the_memory_of_a_few_bags(tmp_path):
    rng = np.random.default_rng(0)
    files = {f"test_samples/{i}.txt": vectors(rng.normal(size=(100, 50)).round(3)) for i in range(80)}
    files["training_data.txt"] = vectors(rng.normal(size=(4, 50)), [0, 1, 0, 1])
    (tmp_path / "all.zip").write_bytes(zipped(files))
    del files
    test = read_task([tmp_path / "all.zip"]).test
    next(iter(test))  # what is imported on first use
    tracemalloc.start()
    total = sum(X.nbytes for X, _ in test.chunks(500))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 80 * 100 * 50 * 8
    assert peak < total / 3


def test_bags_without_published_prevalences_can_be_read_but_not_scored(tmp_path):
    (tmp_path / "a.zip").write_bytes(lequa_task()[0]["train_dev"])
    (tmp_path / "b.zip").write_bytes(lequa_task()[0]["test"])
    test = read_task([tmp_path / "a.zip", tmp_path / "b.zip"]).test
    assert isinstance(test, BagFiles)
    assert len(test.pool()[1]) == 4
    assert "4 bags in test_samples" in repr(test)
    with pytest.raises(InvalidBags, match="no true prevalences for test_samples"):
        _ = test.prevalences
    assert read_task([tmp_path / "a.zip"]).test is None


def changed(tmp_path, **files):
    """A task in a folder with some of its files replaced, or taken away."""
    for name, content in (lequa_task()[1] | files).items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        if content is not None:
            file.write_bytes(content)
    return [tmp_path]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"training_data.txt": None}, "neither training_data.txt nor training_samples"),
        ({"training_data.txt": b"0,1\n1.0,2.0\n"}, "training_data.txt of .* has no column 'label'"),
        ({"training_data.txt": b"label,0\n1,good\n"}, "cannot be read as a LeQua file"),
        ({"training_data.txt": b"label,0,1\n1,2.0,\n"}, "cannot be read as a LeQua file"),
        ({"training_data.txt": b"label,0\nx,1.0\n"}, "cannot be read as a LeQua file"),
        ({"training_data.txt": b"label,text\nx,good\n"}, "cannot be read as a LeQua file"),
        ({"training_data.txt": b"label,0\n"}, "has no instances"),
        (
            {"training_data.txt": vectors(np.ones((3, 4)), [0, 1, 2])},
            "have 3 classes but prevalences 2",
        ),
        ({"dev_samples/1.txt": None}, "2 bags in dev_samples but 3 rows in dev_prevalences.txt; .* is 1"),
        ({"dev_prevalences.txt": b"id,0,1\n0,1,0\n0,1,0\n1,1,0\n"}, "3 bags in dev_samples but 3 rows"),
        ({"dev_prevalences.txt": b"id,0,1\n0,0.5,0.4\n1,1,0\n2,1,0\n"}, r"bag 0 has \[0.5, 0.4\]"),
        ({"dev_prevalences.txt": b"id,0,1\n0,1.5,-0.5\n1,1,0\n2,1,0\n"}, "bag 0 has"),
        ({"dev_prevalences.txt": b"id,0\n0,1\n1,1\n2,1\n"}, "it has one class"),
        ({"dev_prevalences.txt": b"number,0,1\n0,1,0\n"}, "is not a table of `id`"),
        ({"dev_prevalences.txt": b"id,0,1\nx,1,0\n"}, "is not a table of `id`"),
    ],
)
def test_files_that_do_not_fit_together_are_named(files, message, tmp_path):
    with pytest.raises(InvalidData, match=message):
        read_task(changed(tmp_path, **files))


def test_a_missing_or_damaged_file_is_named_when_it_is_reached(tmp_path):
    dev = read_task(changed(tmp_path)).dev
    (tmp_path / "dev_samples/1.txt").unlink()
    with pytest.raises(InvalidData, match=r"dev_samples/1\.txt .* cannot be read"):
        list(dev)


def test_a_bag_that_was_never_there_is_named(tmp_path):
    dev = read_task(changed(tmp_path)).dev
    with pytest.raises(InvalidData, match=r"has no file dev_samples/99\.txt"):
        list(BagFiles(dev.files, "dev_samples", np.array([99]), None))


def test_a_damaged_zip_file_is_named(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"no zip")
    with pytest.raises(InvalidData, match="cannot be read as a zip file"):
        read_task([path])
    content = bytearray(zipped({"training_data.txt": texts([f"good {i}" for i in range(99)], [0] * 99)}))
    check_zip_of(path, bytes(content))
    content[200] ^= 255
    with pytest.raises(InvalidData, match=r"is damaged at T1A/public/training_data\.txt|cannot be read as a zip file"):
        check_zip_of(path, bytes(content))
    with pytest.raises(InvalidData, match=r"training_data\.txt of .* cannot be read"):
        read_task([path])


def check_zip_of(path, content):
    path.write_bytes(content)
    check_zip(path)


def test_prevalences_are_read_by_id_whatever_their_order(tmp_path):
    table = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    lines = prevalences(table).decode().splitlines()
    task = read_task(changed(tmp_path, **{"dev_prevalences.txt": "\n".join([lines[0], *lines[:0:-1]]).encode()}))
    np.testing.assert_allclose(task.dev.prevalences, table)


def test_the_header_says_what_a_file_holds():
    X, y = parse_instances(b'"label","0","1"\r\n1,0.5,-2e-3\r\n0,1,2\r\n', source="f")
    np.testing.assert_array_equal(X, [[0.5, -0.002], [1, 2]])
    assert y.tolist() == [1, 0]
    X, y = parse_instances(b"text\nNA\n", source="f")
    assert X == ["NA"]  # a text, not a missing value
    assert y is None

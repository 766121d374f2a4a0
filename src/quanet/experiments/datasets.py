"""The datasets that a plan names, and a fingerprint of what is in them."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import joblib

from quanet.data.dataset import Dataset
from quanet.data.loading import load_dataset
from quanet.errors import InvalidData
from quanet.text import is_text


@dataclass(frozen=True, slots=True)
class Place:
    """Where a dataset is: under its name in the catalogue, or at a path of its own, see `load_dataset`."""

    name: str
    path: str = ""
    text: str | None = None
    label: str = "label"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A dataset to learn from and to draw bags from; `stand_in` names the one it stands for, if it does."""

    train: Dataset
    test: Dataset
    stand_in: str

    @property
    def fingerprint(self) -> str:
        """Equal for equal instances and labels in the same order, and for no others."""
        return "".join(_digest(part.X, part.y.tolist())[:16] for part in (self.train, self.test))


@lru_cache(maxsize=1)  # cells of one dataset follow one another in a process
def load(place: Place) -> Parts:
    """Read both parts of a dataset, or say what is missing."""
    found = load_dataset(place.path or place.name, text=place.text, label=place.label)
    if not isinstance(found.test, Dataset):
        raise InvalidData(f"{place.name} has bags of its own to be tested on; a plan draws its bags from instances.")
    return Parts(found.train, found.test, found.stand_in or "")


def _digest(X: Any, labels: list[Any]) -> str:
    if not is_text(X):
        return str(joblib.hash((X, labels), hash_name="sha1"))
    digest = hashlib.sha256()
    for text, label in zip(X, labels, strict=True):
        digest.update(f"{len(text)} {label!r} {text}".encode(errors="surrogatepass"))
    return digest.hexdigest()

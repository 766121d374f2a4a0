"""The datasets that a plan names, and a fingerprint of what is in them."""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from quanet.data.dataset import Dataset
from quanet.data.tables import FORMATS, read_dataset
from quanet.errors import InvalidData
from quanet.experiments.source import nearest

STAND_INS = {"kindle-device": "KINDLE", "kindle-store": "KINDLE", "amazon-devices": "HP"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a dataset is: under its name in the data folder, or in two files of its own."""

    name: str
    train: str = ""
    test: str = ""
    text: str = "text"
    label: str = "label"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A dataset to learn from and to draw bags from; `stand_in` names the one it stands for, if it does."""

    train: Dataset
    test: Dataset
    stand_in: str = ""

    @property
    def fingerprint(self) -> str:
        """Equal for equal texts and labels in the same order, and for no others."""
        digest = hashlib.sha256()
        for part in (self.train, self.test):
            for text, label in zip(part.X, part.y.tolist(), strict=True):
                digest.update(f"{len(text)} {label!r} {text}".encode(errors="surrogatepass"))
            digest.update(b"\0")
        return digest.hexdigest()


@lru_cache(maxsize=1)  # cells of one dataset follow one another in a process
def load(place: Place) -> Parts:
    """Read both parts of a dataset, or say what is missing."""
    files = [place.train, place.test]
    if not place.train:
        files = [str(_named(place.name, part)) for part in ("train", "test")]
    train, test = (read_dataset(file, text=place.text, label=place.label) for file in files)
    strange = np.setdiff1d(test.classes, train.classes)
    if len(strange):
        raise InvalidData(f"{files[1]} has the label {strange.tolist()[0]!r}, which {files[0]} has not.")
    return Parts(train, test, STAND_INS.get(place.name, ""))


def _named(name: str, part: str) -> Path:
    folder = os.environ.get("QUANET_DATA")
    if not folder:
        raise InvalidData(
            f"where is the dataset {name!r}? Set QUANET_DATA to the folder that has {name}-train.parquet."
        )
    for ending in FORMATS:
        file = Path(folder) / f"{name}-{part}{ending}"
        if file.is_file():
            return file
    known = sorted({file.name.rpartition("-train.")[0] for file in Path(folder).glob("?*-train.*")})
    if name in known:
        raise InvalidData(f"{folder} has the training part of {name!r} but no {name}-{part} in {', '.join(FORMATS)}.")
    raise InvalidData(f"{folder} has no dataset {name!r}. {nearest(name, known)}")

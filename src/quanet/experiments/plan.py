"""A plan: which datasets, methods and runs; its cells, and what tells one cell from another."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from quanet.evaluation.cells import Cell
from quanet.evaluation.evaluate import DrawsBags
from quanet.experiments.datasets import Place
from quanet.experiments.estimators import Part, make
from quanet.protocols import APP, UPP

FORMAT = 1  # of cells; a change reruns them all
GRID_BAGS = 21  # prevalences of the binary APP, for as many bags where there are more classes


@dataclass(frozen=True, slots=True)
class Classifier:
    """A classifier that methods share: its part, and settings to choose from, if any."""

    name: str
    part: Part
    grid: Any = None


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the table.

    Attributes
    ----------
    name : in tables.
    part : the quantifier; its kind and settings.
    classifier : whose rows it reads; None for the texts themselves.
    grid : settings to choose from, by `select` on bags of held-out training data.
    refit : whether the chosen setting is fitted again to all that there is to learn from; None does as the split says.
    leak : whether the test rows are handed to `fit`, for showing what that is worth; no class of quanet takes them.
    datasets : the only ones it is for, if any are named.
    """

    name: str
    part: Part
    classifier: str | None = None
    grid: Any = None
    select: str = "ae"
    refit: bool | None = None
    leak: bool = False
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run; see docs/how-to/experiments.md for the file it is read from.

    Attributes
    ----------
    learn : share of the training data that classifiers learn from, methods learning from the rest; or None.
    folds : number of folds by which classifiers' rows of all training data are made; or None.
    runs : seeds, one for each run.
    """

    name: str
    datasets: tuple[Place, ...]
    runs: tuple[int, ...]
    learn: float | None
    folds: int | None
    protocol: Part
    metrics: tuple[str, ...]
    classifiers: Mapping[str, Classifier]
    methods: tuple[Method, ...]
    about: str = ""
    python_path: str | None = None
    text: str = field(default="", compare=False)
    file: str = field(default="", compare=False)

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell, the cells of one dataset and run together, so that early ones make whole rows of a table."""
        for dataset in self.datasets:
            for run in self.runs:
                for method in self.methods:
                    if not method.datasets or dataset.name in method.datasets:
                        yield Cell(dataset.name, method.name, run)

    def method(self, name: str) -> Method:
        """The method of a name."""
        return next(method for method in self.methods if method.name == name)

    def place(self, name: str) -> Place:
        """Where the dataset of a name is."""
        return next(place for place in self.datasets if place.name == name)

    def draws(self, k: int) -> DrawsBags:
        """How bags of k classes are drawn: as the plan says, but UPP in place of a grid over more than two."""
        protocol = make(self.protocol)
        if isinstance(protocol, APP) and k > 2 and protocol.prevalences is None:
            return UPP(bag_size=protocol.bag_size, repeats=GRID_BAGS * protocol.repeats)
        drawn: DrawsBags = protocol
        return drawn

    def key(self, cell: Cell, fingerprint: str) -> str:
        """Equal for cells that must come out equal: of the same data, settings and seed."""
        method = self.method(cell.method)
        said = asdict(method)
        del said["name"], said["datasets"]
        said["classifier"] = asdict(self.classifiers[method.classifier]) if method.classifier else None
        said |= {"run": cell.run, "protocol": self.protocol, "learn": self.learn, "folds": self.folds}
        return digest({"format": FORMAT, "data": fingerprint, **said})

    def rows_key(self, classifier: str, fingerprint: str, seed: int | None) -> str:
        """The same for a classifier's rows; `seed` is None where no run differs from another."""
        said = {"part": self.classifiers[classifier].part, "grid": self.classifiers[classifier].grid}
        said |= {"seed": seed, "learn": self.learn, "folds": self.folds}
        return digest({"format": FORMAT, "data": fingerprint, **said})


def digest(value: Any) -> str:
    """A short name for plain data."""
    said = json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(said.encode()).hexdigest()[:32]

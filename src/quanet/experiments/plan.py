"""The plan of an experiment: its datasets, methods and runs, its cells, and their keys."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from quanet.catalogue.build import Part, make
from quanet.evaluation.evaluate import Cell, DrawsBags
from quanet.experiments.plan_datasets import Place
from quanet.protocols import APP, UPP

FORMAT = 1  # of cells; a new number runs all cells again
GRID_BAGS = 21  # prevalences of APP for two classes; with more classes, UPP draws as many bags


@dataclass(frozen=True, slots=True)
class Classifier:
    """A classifier that methods share: its class and settings, and a grid to choose from, if any."""

    name: str
    part: Part
    grid: Any = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the experiment, a row in its tables.

    Attributes
    ----------
    name : its name in tables.
    part : the class and settings of the quantifier.
    classifier : the shared classifier whose rows it uses; None: the instances themselves.
    grid : settings to choose from, by the metric `select` on bags of held-out training data.
    refit : whether to fit the chosen setting again to all training data; None: depends on the split.
    leak : whether `fit` also gets the test rows, to show the effect of leakage; no class of quanet accepts them.
    datasets : the datasets to run it on; empty: all.
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
    """The plan of an experiment; docs/how-to/experiments.md describes its file.

    Attributes
    ----------
    learn : fraction of the training data for classifiers; methods use the rest. Or None.
    folds : number of folds for cross-fitting classifiers on all training data. Or None.
    runs : seeds, one per run.
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
        """All cells; cells of a dataset and run are adjacent, so that early results can be compared."""
        for dataset in self.datasets:
            for run in self.runs:
                for method in self.methods:
                    if not method.datasets or dataset.name in method.datasets:
                        yield Cell(dataset.name, method.name, run)

    def method(self, name: str) -> Method:
        """The method with this name."""
        return next(method for method in self.methods if method.name == name)

    def place(self, name: str) -> Place:
        """The location of the dataset with this name."""
        return next(place for place in self.datasets if place.name == name)

    def draws(self, k: int) -> DrawsBags:
        """The protocol for k classes: that of the plan, but UPP instead of a grid for more than two classes."""
        protocol = make(self.protocol)
        if isinstance(protocol, APP) and k > 2 and protocol.prevalences is None:
            return UPP(bag_size=protocol.bag_size, repeats=GRID_BAGS * protocol.repeats)
        chosen: DrawsBags = protocol
        return chosen

    def key(self, cell: Cell, fingerprint: str) -> str:
        """A key that is equal for cells with the same data, settings and seed."""
        method = self.method(cell.method)
        content = asdict(method)
        del content["name"], content["datasets"]
        content["classifier"] = asdict(self.classifiers[method.classifier]) if method.classifier else None
        content |= {"run": cell.run, "protocol": self.protocol, "learn": self.learn, "folds": self.folds}
        return digest({"format": FORMAT, "data": fingerprint, **content})

    def rows_key(self, classifier: str, fingerprint: str, seed: int | None) -> str:
        """The key of the rows of a classifier; `seed` is None if they are the same in every run."""
        content = {"part": self.classifiers[classifier].part, "grid": self.classifiers[classifier].grid}
        content |= {"seed": seed, "learn": self.learn, "folds": self.folds}
        return digest({"format": FORMAT, "data": fingerprint, **content})


def digest(value: Any) -> str:
    """A short hash of plain data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode()).hexdigest()[:32]

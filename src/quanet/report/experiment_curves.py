"""The data of an experiment's figures: curves and boxes by dataset and method."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray
from quanet.errors import InvalidData
from quanet.evaluation.evaluate import Cell, CellOutcome, Results
from quanet.evaluation.scores import check_bags

MAX_DISTINCT = 40  # distinct values of x; if there are more, they are grouped
STEP = 0.05  # width of such a group
MIDDLE_HALF = (0.25, 0.75)
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCurve:
    """A curve with a band: (g,) each.

    Attributes
    ----------
    x, middle, low, high : the line and the limits of the band.
    error : mean error over all bags.
    runs : number of runs.
    """

    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    error: float
    runs: int


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Box plots: x (g,) and the 5, 25, 50, 75 and 95 % quantiles of every group (g, 5)."""

    x: FloatArray
    quantiles: FloatArray
    error: float
    runs: int


@dataclass(frozen=True, slots=True, eq=False)
class Panels:
    """Curves or boxes of every dataset and method.

    Attributes
    ----------
    datasets, methods : in the experiment's order.
    shown : curve or boxes by dataset and method; pairs without a cell are missing.
    priors : mean training prevalence of the class, by dataset.
    label : the class.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    shown: Mapping[tuple[str, str], ErrorCurve | Boxes]
    priors: Mapping[str, float]
    label: str

    def runs(self, dataset: str) -> int:
        """The largest number of runs of a method on a dataset."""
        return max(one.runs for (name, _), one in self.shown.items() if name == dataset)


def estimate_curves(cells: Mapping[Cell, CellOutcome], *, position: int = -1) -> Panels:
    """Mean estimate of a class by true prevalence, with one standard deviation over bags and runs."""

    def curve(outcomes: list[CellOutcome]) -> ErrorCurve:
        truth, estimate = (
            np.concatenate([getattr(one.results, part)[:, position] for one in outcomes])
            for part in ("truth", "estimate")
        )
        x, groups = _grouped(truth, estimate)
        middle, spread = np.array([group.mean() for group in groups]), np.array([group.std() for group in groups])
        low, high = np.clip([middle - spread, middle + spread], 0, 1)
        return ErrorCurve(x, middle, low, high, _error(outcomes), len(outcomes))

    return _panels(cells, curve, position)


def error_curves(
    cells: Mapping[Cell, CellOutcome], *, metric: str = "ae", against: str = "prevalence", position: int = -1
) -> Panels:
    """Mean error by a class's true prevalence, or by shift, with the middle half of the bags.

    Shift is the distance of a bag's prevalences from the training prevalences: half the sum of absolute differences
    over classes; for two classes, the difference of one prevalence.
    """

    def place(outcome: CellOutcome) -> FloatArray:
        truth = outcome.results.truth
        return np.abs(truth - outcome.prior).sum(axis=-1) / 2 if against == "shift" else truth[:, position]

    def curve(outcomes: list[CellOutcome]) -> ErrorCurve:
        errors = np.concatenate([one.results.error(metric) for one in outcomes])
        x, groups = _grouped(np.concatenate([place(one) for one in outcomes]), errors, distinct=against != "shift")
        low, high = np.array([np.quantile(group, MIDDLE_HALF) for group in groups]).T
        return ErrorCurve(
            x, np.array([group.mean() for group in groups]), low, high, _error(outcomes, metric), len(outcomes)
        )

    return _panels(cells, curve, position)


def bias_boxes(cells: Mapping[Cell, CellOutcome], *, groups: int = 7, position: int = -1) -> Panels:
    """Estimate minus truth of a class, in groups of true prevalences of equal width."""

    def boxes(outcomes: list[CellOutcome]) -> Boxes:
        truth = np.concatenate([one.results.truth[:, position] for one in outcomes])
        bias = np.concatenate([(one.results.estimate - one.results.truth)[:, position] for one in outcomes])
        member = np.minimum((truth * groups).astype(int), groups - 1)
        found = np.unique(member)
        quantiles = np.array([np.quantile(bias[member == group], BOX) for group in found])
        return Boxes((found + 0.5) / groups, quantiles, _error(outcomes), len(outcomes))

    return _panels(cells, boxes, position)


def _panels(
    cells: Mapping[Cell, CellOutcome], draw: Callable[[list[CellOutcome]], ErrorCurve | Boxes], position: int
) -> Panels:
    if not cells:
        raise InvalidData("The experiment has no finished cells yet. Run it first.")
    check_bags(cells)
    datasets, methods = (tuple(dict.fromkeys(part)) for part in list(zip(*cells, strict=True))[:2])
    members = {
        (dataset, method): [one for cell, one in cells.items() if cell[:2] == (dataset, method)]
        for dataset in datasets
        for method in methods
    }
    shown = {pair: draw(outcomes) for pair, outcomes in members.items() if outcomes}
    priors = {
        dataset: float(np.mean([one.prior[position] for cell, one in cells.items() if cell.dataset == dataset]))
        for dataset in datasets
    }
    labels = dict.fromkeys(str(one.classes[position]) for one in _results(cells))
    return Panels(datasets, methods, shown, priors, " / ".join(labels))


def _results(cells: Mapping[Cell, CellOutcome]) -> Iterator[Results]:
    return (outcome.results for outcome in cells.values())


def _error(outcomes: list[CellOutcome], metric: str = "ae") -> float:
    return float(np.mean([one.results.error(metric).mean() for one in outcomes]))


def _grouped(x: FloatArray, values: FloatArray, *, distinct: bool = True) -> tuple[FloatArray, list[FloatArray]]:
    """Values grouped by x: by distinct x if wanted and few, otherwise around multiples of a step."""
    keys = np.round(x, 6)
    if not distinct or len(np.unique(keys)) > MAX_DISTINCT:
        keys = np.round(x / STEP)
    found, member = np.unique(keys, return_inverse=True)
    return (
        np.array([x[member == group].mean() for group in range(len(found))]),
        [values[member == group] for group in range(len(found))],
    )

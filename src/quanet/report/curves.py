"""What the figures of an experiment show, as plain data: curves and boxes by dataset and method."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray
from quanet.errors import InvalidData
from quanet.evaluation.cells import Cell, Outcome
from quanet.evaluation.results import Results
from quanet.evaluation.scores import check_bags

STEP = 0.05  # width of the groups where truths are too many to have one each
DISTINCT = 40
HALF = (0.25, 0.75)
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Something against something, with a band: (g,) each.

    Attributes
    ----------
    x, middle, low, high : the line and the band's ends.
    error : mean absolute error over all bags, to stand beside it.
    runs : that went in.
    """

    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    error: float
    runs: int


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Quantiles of something in groups: x (g,) and the 5, 25, 50, 75 and 95 % of every group, (g, 5)."""

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
    shown : what each has; a pair without any cell has nothing.
    priors : mean training prevalence of the class, by dataset.
    label : the class.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    shown: Mapping[tuple[str, str], Curve | Boxes]
    priors: Mapping[str, float]
    label: str

    def runs(self, dataset: str) -> int:
        """The most runs that a method has on a dataset."""
        return max(one.runs for (name, _), one in self.shown.items() if name == dataset)


def estimate_curves(cells: Mapping[Cell, Outcome], *, position: int = -1) -> Panels:
    """Mean estimate of a class at every true prevalence, and one standard deviation over bags and runs."""

    def curve(outcomes: list[Outcome]) -> Curve:
        truth, estimate = (
            np.concatenate([getattr(one.results, part)[:, position] for one in outcomes])
            for part in ("truth", "estimate")
        )
        x, groups = _grouped(truth, estimate)
        middle, spread = np.array([group.mean() for group in groups]), np.array([group.std() for group in groups])
        low, high = np.clip([middle - spread, middle + spread], 0, 1)
        return Curve(x, middle, low, high, _error(outcomes), len(outcomes))

    return _panels(cells, curve, position)


def error_curves(
    cells: Mapping[Cell, Outcome], *, metric: str = "ae", against: str = "prevalence", position: int = -1
) -> Panels:
    """Mean error by a class's true prevalence, or by shift, with the middle half of the bags.

    Shift is how far a bag's prevalences are from training: half the sum of absolute differences over classes, which for
    two classes is the difference of one share.
    """

    def place(outcome: Outcome) -> FloatArray:
        truth = outcome.results.truth
        return np.abs(truth - outcome.prior).sum(axis=-1) / 2 if against == "shift" else truth[:, position]

    def curve(outcomes: list[Outcome]) -> Curve:
        errors = np.concatenate([one.results.error(metric) for one in outcomes])
        x, groups = _grouped(np.concatenate([place(one) for one in outcomes]), errors, distinct=against != "shift")
        low, high = np.array([np.quantile(group, HALF) for group in groups]).T
        return Curve(
            x, np.array([group.mean() for group in groups]), low, high, _error(outcomes, metric), len(outcomes)
        )

    return _panels(cells, curve, position)


def bias_boxes(cells: Mapping[Cell, Outcome], *, groups: int = 7, position: int = -1) -> Panels:
    """Estimate less truth of a class, in groups of true prevalences of one width."""

    def boxes(outcomes: list[Outcome]) -> Boxes:
        truth = np.concatenate([one.results.truth[:, position] for one in outcomes])
        bias = np.concatenate([(one.results.estimate - one.results.truth)[:, position] for one in outcomes])
        member = np.minimum((truth * groups).astype(int), groups - 1)
        found = np.unique(member)
        quantiles = np.array([np.quantile(bias[member == group], BOX) for group in found])
        return Boxes((found + 0.5) / groups, quantiles, _error(outcomes), len(outcomes))

    return _panels(cells, boxes, position)


def _panels(cells: Mapping[Cell, Outcome], draw: Callable[[list[Outcome]], Curve | Boxes], position: int) -> Panels:
    if not cells:
        raise InvalidData("the experiment has no finished cell yet. Run it first.")
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


def _results(cells: Mapping[Cell, Outcome]) -> Iterator[Results]:
    return (outcome.results for outcome in cells.values())


def _error(outcomes: list[Outcome], metric: str = "ae") -> float:
    return float(np.mean([one.results.error(metric).mean() for one in outcomes]))


def _grouped(x: FloatArray, values: FloatArray, *, distinct: bool = True) -> tuple[FloatArray, list[FloatArray]]:
    """Values by their x: by each distinct one if wanted and they are few, else in groups around multiples of a step."""
    keys = np.round(x, 6)
    if not distinct or len(np.unique(keys)) > DISTINCT:
        keys = np.round(x / STEP)
    found, member = np.unique(keys, return_inverse=True)
    return (
        np.array([x[member == group].mean() for group in range(len(found))]),
        [values[member == group] for group in range(len(found))],
    )

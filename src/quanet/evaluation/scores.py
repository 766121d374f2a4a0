"""Mean errors of the methods of an experiment, per dataset and run, and their ranking."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from quanet.arrays import FloatArray
from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.evaluate import Cell, CellOutcome
from quanet.evaluation.significance import FriedmanTest, critical_distance, friedman_test
from quanet.metrics import find_metric
from quanet.parameters import one_of

BLOCKS = ("runs", "datasets")


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The mean error over the bags of each run.

    Attributes
    ----------
    datasets, methods, metrics : in the order of the experiment.
    runs : of each dataset.
    bags : of each dataset: bags per run, and their smallest and largest size.
    errors : (r,) one number per run, by metric, dataset and method, if all runs are complete.
    missing : planned cells without results.
    aside : methods that are shown but not ranked, such as methods that used test data.
    stand_ins : datasets that replace others, and how: "stand-in for KINDLE".
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    runs: Mapping[str, tuple[int, ...]]
    bags: Mapping[str, tuple[int, int, int]]
    errors: Mapping[tuple[str, str, str], FloatArray]
    missing: tuple[Cell, ...]
    aside: tuple[str, ...] = ()
    stand_ins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Mean ranks of methods over blocks, with their tests.

    Attributes
    ----------
    methods : methods with an error in every block.
    errors : (N, m), blocks by methods.
    friedman : mean ranks and Friedman's test.
    distance : Nemenyi's critical distance at `alpha`.
    left_out : methods with a missing block.
    """

    methods: tuple[str, ...]
    errors: FloatArray
    friedman: FriedmanTest
    distance: float
    alpha: float
    left_out: tuple[str, ...]


def score(
    cells: Mapping[Cell, CellOutcome],
    metrics: Sequence[str] = ("ae", "rae", "kld"),
    *,
    expected: Iterable[Cell] = (),
    aside: Sequence[str] = (),
    stand_ins: Mapping[str, str] | None = None,
) -> Scores:
    """Compute the mean errors of each run. All methods of a dataset and run must have the same bags.

    Parameters
    ----------
    cells : cells and their results.
    metrics : short names.
    expected : the cells of the plan, in its order; default: all combinations of the methods, datasets and runs found.
    aside : methods that are shown but not ranked.
    stand_ins : datasets that replace others, and how: "stand-in for KINDLE".
    """
    names = tuple(dict.fromkeys(metric.lower() for metric in metrics))
    for name in names:
        if find_metric(name).per_class:
            raise InvalidSetting(f"{name!r} is computed per class, not per bag, so it has no table. Draw its figure.")
    planned = tuple(expected)
    known = planned or tuple(cells)
    if not cells or not known:
        raise InvalidData("The experiment has no finished cell. Run it first.")
    check_bags(cells)
    datasets, methods = (tuple(dict.fromkeys(part)) for part in list(zip(*known, strict=True))[:2])
    if unknown := [name for name in aside if name not in methods]:
        raise InvalidSetting(f"Unknown method {unknown[0]!r}. Choose from {', '.join(methods)}.")
    runs = {name: tuple(sorted({cell.run for cell in known if cell.dataset == name})) for name in datasets}
    wanted = planned or tuple(Cell(d, m, r) for d in datasets for m in methods for r in runs[d])
    errors = {}
    for dataset in datasets:
        for method in methods:
            found = [cells.get(Cell(dataset, method, run)) for run in runs[dataset]]
            outcomes = [outcome for outcome in found if outcome is not None]
            if len(outcomes) == len(found):
                for name in names:
                    errors[name, dataset, method] = np.array([one.results.error(name).mean() for one in outcomes])
    return Scores(
        datasets,
        methods,
        names,
        runs,
        {name: _bags_of(name, cells) for name in datasets},
        errors,
        tuple(cell for cell in wanted if cell not in cells),
        tuple(aside),
        dict(stand_ins or {}),
    )


def check_bags(cells: Mapping[Cell, CellOutcome]) -> None:
    """Raise `InvalidData` if cells of a dataset and run have different bags, or an estimate is not finite."""
    first: dict[tuple[str, int], Cell] = {}
    for cell, outcome in cells.items():
        if not np.isfinite(outcome.results.estimate).all():
            raise InvalidData(
                f"{cell.dataset}, run {cell.run}: estimates of {cell.method} are not finite. Run the cell again."
            )
        other = first.setdefault((cell.dataset, cell.run), cell)
        ours, theirs = outcome.results, cells[other].results
        if ours.classes.tolist() != theirs.classes.tolist():
            raise InvalidData(
                f"{cell.dataset}, run {cell.run}: {other.method} has the classes {theirs.classes.tolist()}, but "
                f"{cell.method} has {ours.classes.tolist()}. Run the cells again on the same data."
            )
        if ours.truth.shape != theirs.truth.shape:
            what = f"{len(theirs):,} and {len(ours):,} bags"
        elif different := int((~np.isclose(ours.truth, theirs.truth, rtol=0, atol=1e-6)).any(axis=-1).sum()):
            what = f"the truth differs in {different:,} of {len(ours):,} bags"
        elif (ours.sizes != theirs.sizes).any():
            what = "the sizes of the bags differ"
        else:
            continue
        raise InvalidData(
            f"{cell.dataset}, run {cell.run}: {other.method} and {cell.method} have different bags: {what}. "
            "Delete the cells of this dataset and run, and run them again with the same seed."
        )


def rank(scores: Scores, metric: str, *, blocks: str = "runs", alpha: float = 0.05) -> Ranking:
    """Mean ranks of methods, with Friedman's test and Nemenyi's critical distance.

    Parameters
    ----------
    scores : of the experiment.
    metric : one of its metrics.
    blocks : "runs": each run of each dataset ranks the methods; as runs share test data, conclusions hold for these
        datasets. "datasets": each dataset ranks the methods by their mean error; conclusions hold for similar datasets,
        but many are needed.
    alpha : level of the critical distance.
    """
    one_of(*BLOCKS).check("blocks", blocks)
    ranked = [method for method in scores.methods if method not in scores.aside]
    complete = [m for m in ranked if all((metric, d, m) in scores.errors for d in scores.datasets)]
    columns = []
    for method in complete:
        by_dataset = [scores.errors[metric, dataset, method] for dataset in scores.datasets]
        means = [np.array([errors.mean()]) for errors in by_dataset]
        columns.append(np.concatenate(by_dataset if blocks == "runs" else means))
    if len(complete) < 2 or len(columns[0]) < 2:
        raise InvalidData(
            f"Ranks need at least 2 methods with complete results, and 2 blocks ({blocks}); found "
            f"{len(complete)} and {len(columns[0]) if columns else 0}. Run the missing cells."
        )
    errors = np.column_stack(columns)
    tested = friedman_test(errors)
    distance = critical_distance(len(complete), tested.blocks, alpha=alpha)
    left_out = tuple(method for method in ranked if method not in complete)
    return Ranking(tuple(complete), errors, tested, distance, alpha, left_out)


def _bags_of(dataset: str, cells: Mapping[Cell, CellOutcome]) -> tuple[int, int, int]:
    results = [outcome.results for cell, outcome in cells.items() if cell.dataset == dataset]
    if not results:
        return 0, 0, 0
    sizes = np.concatenate([result.sizes for result in results])
    return max(len(result) for result in results), int(sizes.min()), int(sizes.max())

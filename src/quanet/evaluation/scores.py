"""Mean errors of an experiment's methods on its datasets, run by run, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from quanet.arrays import FloatArray
from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.cells import Cell, Outcome
from quanet.evaluation.significance import Friedman, critical_distance, friedman_test
from quanet.metrics import find_metric

BLOCKS = ("runs", "datasets")


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Mean error over bags of every run.

    Attributes
    ----------
    datasets, methods, metrics : in the experiment's order.
    runs : of every dataset.
    bags : of every dataset: how many a run has, and their sizes, least and largest.
    errors : (r,) one number a run, by metric, dataset and method; of those alone that have every run.
    missing : cells that should be there.
    aside : methods that are shown but do not compete, such as ones that have seen test data.
    stand_ins : datasets that stand in for others, and for which.
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
    """Methods by their ranks over blocks, with what the tests need.

    Attributes
    ----------
    methods : those with an error in every block.
    errors : (N, m), blocks by methods.
    friedman : their mean ranks and Friedman's test.
    distance : Nemenyi's critical one, at `alpha`.
    left_out : methods that lack a block.
    """

    methods: tuple[str, ...]
    errors: FloatArray
    friedman: Friedman
    distance: float
    alpha: float
    left_out: tuple[str, ...]


def score(
    cells: Mapping[Cell, Outcome],
    metrics: Sequence[str] = ("ae", "rae", "kld"),
    *,
    expected: Iterable[Cell] = (),
    aside: Sequence[str] = (),
    stand_ins: Mapping[str, str] | None = None,
) -> Scores:
    """Mean errors of every run, where all methods of a dataset and run have met the same bags.

    Parameters
    ----------
    cells : and what they gave.
    metrics : by their short names.
    expected : the cells of the plan, in its order; without them, every method seen is expected in every run seen of
        every dataset seen.
    aside : methods that are shown but do not compete.
    stand_ins : datasets that stand in for others, and for which.
    """
    names = tuple(dict.fromkeys(metric.lower() for metric in metrics))
    for name in names:
        if find_metric(name).per_class:
            raise InvalidSetting(f"{name!r} is one number a class, not one a bag, so it has no table. Draw its figure.")
    planned = tuple(expected)
    known = planned or tuple(cells)
    if not cells or not known:
        raise InvalidData("the experiment has no finished cell yet. Run it first.")
    check_bags(cells)
    datasets, methods = (tuple(dict.fromkeys(part)) for part in list(zip(*known, strict=True))[:2])
    if unknown := [name for name in aside if name not in methods]:
        raise InvalidSetting(f"no method is called {unknown[0]!r}; there are {', '.join(methods)}.")
    runs = {name: tuple(sorted({cell.run for cell in known if cell.dataset == name})) for name in datasets}
    wanted = planned or tuple(Cell(d, m, r) for d in datasets for m in methods for r in runs[d])
    errors = {}
    for dataset in datasets:
        for method in methods:
            found = [cells.get(Cell(dataset, method, run)) for run in runs[dataset]]
            whole = [outcome for outcome in found if outcome is not None]
            if len(whole) == len(found):
                for name in names:
                    errors[name, dataset, method] = np.array([one.results.error(name).mean() for one in whole])
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


def check_bags(cells: Mapping[Cell, Outcome]) -> None:
    """Say which cells cannot be compared: those of one dataset and run that met different bags, or gave no numbers."""
    first: dict[tuple[str, int], Cell] = {}
    for cell, outcome in cells.items():
        if not np.isfinite(outcome.results.estimate).all():
            raise InvalidData(
                f"{cell.dataset}, run {cell.run}: {cell.method} has estimates that are no numbers. Run the cell again."
            )
        other = first.setdefault((cell.dataset, cell.run), cell)
        ours, theirs = outcome.results, cells[other].results
        if ours.classes.tolist() != theirs.classes.tolist():
            raise InvalidData(
                f"{cell.dataset}, run {cell.run}: the classes of {other.method} are {theirs.classes.tolist()}, those "
                f"of {cell.method} {ours.classes.tolist()}. Run the cells again on one version of the data."
            )
        if ours.truth.shape != theirs.truth.shape:
            what = f"{len(theirs):,} and {len(ours):,} bags"
        elif different := int((~np.isclose(ours.truth, theirs.truth, rtol=0, atol=1e-6)).any(axis=-1).sum()):
            what = f"the truth differs in {different:,} of {len(ours):,} bags"
        elif (ours.sizes != theirs.sizes).any():
            what = "the bags' sizes differ"
        else:
            continue
        raise InvalidData(
            f"{cell.dataset}, run {cell.run}: {other.method} and {cell.method} did not meet the same bags: {what}. "
            "Delete the cells of this dataset and run, and run them again with one seed."
        )


def rank(scores: Scores, metric: str, *, blocks: str = "runs", alpha: float = 0.05) -> Ranking:
    """Mean ranks of methods, with Friedman's test and Nemenyi's critical distance.

    Parameters
    ----------
    scores : of the experiment.
    metric : one of its metrics.
    blocks : "runs": every run of every dataset ranks the methods (runs of a dataset share test data, so that the test
        speaks of these datasets); "datasets": every dataset does, by its mean (speaks of datasets like these, and
        needs many).
    alpha : level of the critical distance.
    """
    if blocks not in BLOCKS:
        raise InvalidSetting(f"blocks are {' or '.join(BLOCKS)}; got {blocks!r}.")
    ranked = [method for method in scores.methods if method not in scores.aside]
    whole = [m for m in ranked if all((metric, d, m) in scores.errors for d in scores.datasets)]
    columns = []
    for method in whole:
        by_dataset = [scores.errors[metric, dataset, method] for dataset in scores.datasets]
        means = [np.array([one.mean()]) for one in by_dataset]
        columns.append(np.concatenate(by_dataset if blocks == "runs" else means))
    if len(whole) < 2 or len(columns[0]) < 2:
        raise InvalidData(
            f"ranks need at least 2 methods that are complete on every dataset, and 2 blocks ({blocks}); there are "
            f"{len(whole)} and {len(columns[0]) if columns else 0}. Run what is missing."
        )
    errors = np.column_stack(columns)
    tested = friedman_test(errors)
    distance = critical_distance(len(whole), tested.blocks, alpha=alpha)
    left_out = tuple(method for method in ranked if method not in whole)
    return Ranking(tuple(whole), errors, tested, distance, alpha, left_out)


def _bags_of(dataset: str, cells: Mapping[Cell, Outcome]) -> tuple[int, int, int]:
    results = [outcome.results for cell, outcome in cells.items() if cell.dataset == dataset]
    if not results:
        return 0, 0, 0
    sizes = np.concatenate([one.sizes for one in results])
    return max(len(one) for one in results), int(sizes.min()), int(sizes.max())

"""Cells of an experiment with known errors, for the tests of tables and figures."""

import numpy as np

from quanet.evaluation.evaluate import Cell, CellOutcome, Results

CLASSES = np.array(["negative", "positive"])
GRID = np.linspace(0.1, 0.9, 5)


def outcome(estimate, *, truth=None, prior=0.5, size=100):
    """An outcome with these shares of the second class."""
    shares = np.resize(GRID, len(estimate)) if truth is None else np.asarray(truth)
    both = [np.column_stack([1 - p, p]) for p in (shares, np.asarray(estimate))]
    results = Results(*both, CLASSES, np.full(len(shares), size), np.arange(len(shares)))
    return CellOutcome(results, np.array([1 - prior, prior]), 1.0)


def constant_cells(errors, *, prior=0.5):
    """Cells whose every bag is off by the run's error: {(dataset, method): [error of run 0, of run 1, ...]}."""
    return {
        Cell(dataset, method, run): outcome(GRID + error, prior=prior)
        for (dataset, method), by_run in errors.items()
        for run, error in enumerate(by_run)
    }


def noisy_cells(datasets=("imdb", "kindle-device"), methods=("CC", "EMQ", "QuaNet"), *, runs=3, repeats=8):
    """Cells with noise: the first method flattens, the others follow the truth."""
    cells = {}
    truth = np.repeat(GRID, repeats)
    for dataset in datasets:
        for run in range(runs):
            for number, method in enumerate(methods):
                rng = np.random.default_rng([len(dataset), run, number])
                flat = 0.5 + (0.5 if number == 0 else 1.0) * (truth - 0.5)
                estimate = np.clip(flat + rng.normal(scale=0.01 * (number + 1), size=len(truth)), 0, 1)
                cells[Cell(dataset, method, run)] = outcome(estimate, truth=truth, prior=0.7)
    return cells

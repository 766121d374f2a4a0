"""What QuaNet's choices at inference are worth: errors and intervals with few labels if one is made differently.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/few_labels_choices.py tmp/few --repetitions 12 --jobs 2

FOLDER has what `few_labels.py read` wrote. Only data sets that choices may be made with are used. Prints a table: mean
over the sets of the absolute error relative to EMQ's, then coverage and interval score. With `--weights`, other weights
of the network are compared with the shipped ones instead.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from few_labels import Task, fitted_methods, posteriors_of
from few_labels_table import BINARY, UNTOUCHED
from quanet import APP
from quanet.nn import share_reader

ROWS, SIZES, REPEATS = (100, 300, 1000), (50, 500), 5
VARIANTS: dict[str, dict[str, Any]] = {  # constants of `quanet.nn.share_reader`
    "as it is": {},
    "no sharpening": {"SHARPER": 0.0},
    "twice the sharpening": {"SHARPER": 1.0},
    "sharpening up to 1,000 rows": {"FEW": 1000.0},
    "growth ignored": {"GROWTH": 0.0},
    "all of the growth": {"GROWTH": 1.0},
}
USABLE = [name for name in BINARY if name not in UNTOUCHED]
USUAL = {name: getattr(share_reader, name) for name in ("SHARPER", "FEW", "GROWTH", "WEIGHTS")}


def measure(task: Task, folder: Path, weights: list[Path]) -> dict[tuple[str, int], dict[str, float]]:
    """Error, coverage and interval score of every variant, by bag size."""
    kept, found = np.load(folder / task.file), {}
    pool, truth = posteriors_of(kept["pool"]), kept["truth"].astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods = fitted_methods(kept)
    network, rows = methods["QuaNet"], methods["QuaNet"].rows(pool)
    for size in SIZES:
        bags = APP(bag_size=size, repeats=REPEATS).draw_quietly(truth, rng=[task.seed, size])
        right, stack = bags.prevalences[:, 1], rows[bags.indices]
        found["EMQ", size] = {"ae": float(np.abs(methods["EMQ"].predict_bags(pool, bags)[:, 1] - right).mean())}
        others: dict[str, dict[str, Any]] = {file.stem: {"WEIGHTS": file} for file in weights}
        for name, changed in ({"as it is": {}} | others if weights else VARIANTS).items():
            for constant, value in (USUAL | changed).items():
                setattr(share_reader, constant, value)
            share_reader.network.cache_clear()
            curve = network.share_curves(stack)[1]
            found[name, size] = facts_of(curve, curve.mean, right)
            if not changed and not weights:
                found["median instead of mean", size] = facts_of(curve, curve.quantile(0.5), right)
    return found


def facts_of(curve: Any, estimate: Any, right: Any) -> dict[str, float]:
    lower, upper = curve.quantile(0.025), curve.quantile(0.975)
    miss = np.maximum(lower - right, 0) + np.maximum(right - upper, 0)
    facts = {"ae": np.abs(estimate - right), "coverage": miss <= 1e-12, "score": upper - lower + 40 * miss}
    return {name: float(np.mean(values)) for name, values in facts.items()}


def table(found: dict[Task, dict[tuple[str, int], dict[str, float]]]) -> list[str]:
    """A line for each variant: relative errors, coverage and score, for every number of rows and bag size."""
    cases = [(rows, size) for rows in ROWS for size in SIZES]
    lines = [f"| | {' | '.join(f'{rows:,} rows, bags of {size}' for rows, size in cases)} |"]
    lines.append("|" + "---|" * (len(cases) + 1))
    for name in dict.fromkeys(name for facts in found.values() for name, _ in facts if name != "EMQ"):
        cells = []
        for rows, size in cases:
            per_set = {}
            for of in dict.fromkeys(task.name for task in found):
                facts = [values for task, values in found.items() if (task.name, task.rows) == (of, rows)]
                if facts:
                    means = {fact: np.mean([one[name, size][fact] for one in facts]) for fact in facts[0][name, size]}
                    means["ae"] /= np.mean([one["EMQ", size]["ae"] for one in facts])
                    per_set[of] = means
            ae, coverage, score = (
                np.mean([one[fact] for one in per_set.values()]) for fact in ("ae", "coverage", "score")
            )
            cells.append(f"{ae:.3f}, {coverage:.1%}, {score:.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--sets", nargs="+", default=USABLE, choices=USABLE)
    parser.add_argument("--weights", nargs="+", type=Path, default=[], help="other weights of the network")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    tasks = [Task(name, rows, seed) for rows in ROWS for name in options.sets for seed in range(options.repetitions)]
    tasks = [task for task in tasks if (options.folder / task.file).exists()]
    with ProcessPoolExecutor(options.jobs) as processes:
        ask = partial(measure, folder=options.folder, weights=options.weights)
        found = dict(zip(tasks, processes.map(ask, tasks), strict=True))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()

"""How much could be gained at most: QuaNet's errors with few labels next to those of methods that know more.

    python benchmarks/few_labels.py read FOLDER --output tmp/10-folds --folds 10 --rows 100 300 1000 --repetitions 12
    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/few_labels_bounds.py tmp/few --others tmp/10-folds --jobs 2

FOLDER has what `few_labels.py read` wrote; others have the same tasks, read with more folds. *As many fresh labels*:
EMQ and QuaNet learn from as many labelled rows of each class as before, but the final classifier has not seen them, so
there are no folds and no gap between their classifiers and the final one. *Known calibration*: the density ratio of the
final classifier's scores is learned from all labelled rows of the pool that bags are drawn from, and the estimate is
the mean of the exact distribution of the share under the simulator's prior. No method knows as much. Prints mean errors
over EMQ's, means over the data sets.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from few_labels import Task, fitted_methods, posteriors_of
from few_labels_table import BINARY
from quanet import APP
from quanet.nn.share_reader import BEND, BENT, ENDS
from quanet.simplex import count

ROWS, SIZES, REPEATS = (100, 300, 1000), (50, 500), 5
TRIM = 0.002  # of the scores at either end, which have the ratio of the outermost others
FRESH = "as many fresh labels"
KNOWN = "known calibration"


def fresh_labels(kept: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """The same task with held-out rows from the pool, and which rows of the pool are left for bags."""
    codes, chosen = kept["codes"].astype(int), []
    for c, number in enumerate(count(codes, 2).astype(int)):
        members = np.flatnonzero(kept["truth"] == c)
        chosen.append(rng.permutation(members)[: min(number, len(members) // 2)])
    rows = np.concatenate(chosen)
    missing = np.empty(0)
    changed = {"held": kept["pool"][rows], "codes": kept["truth"][rows], "groups": missing, "fold_gap": missing}
    rest = np.ones(len(kept["truth"]), dtype=bool)
    rest[rows] = False
    return kept | changed | {"growth": 0.0}, rest


def known_ratios(scores: Any, truth: Any) -> Any:
    """Log density ratios (m,) of scores (m,), as smooth as splines, learned from these very rows."""
    clipped = np.clip(scores, *np.quantile(scores, [TRIM, 1 - TRIM]))[:, None].astype(float)
    weights = (0.5 / (1 - truth.mean()), 0.5 / truth.mean())
    model = make_pipeline(SplineTransformer(extrapolation="linear"), LogisticRegression(C=100, max_iter=2000))
    model.fit(clipped, truth, logisticregression__sample_weight=np.take(weights, truth))
    return model.decision_function(clipped)


def expected_shares(ratios: Any) -> Any:
    """Expected shares (b,) of the second class in bags with log density ratios (b, n)."""
    b, n = ratios.shape
    # The distribution of a count of independent instances, tilted so that its middle is where the likelihood is.
    low, high = np.full(b, 1e-3), np.full(b, 1 - 1e-3)
    for _ in range(30):
        middle = (low + high) / 2
        excess = np.expm1(ratios)
        rising = (excess / (1 + middle[:, None] * excess)).sum(axis=1) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    tilt = np.log(middle / (1 - middle))
    chances = np.zeros((b, n + 1))
    chances[:, 0] = 1.0
    for second in (1 / (1 + np.exp(-(ratios + tilt[:, None])))).T[..., None]:
        moved = chances[:, :-1] * second
        chances *= 1 - second
        chances[:, 1:] += moved
    numbers = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(numbers + 1) - gammaln(n - numbers + 1)
    likelihood = np.log(np.maximum(chances, 1e-300)) - numbers * tilt[:, None] - ways
    edges = np.clip((np.arange(n + 2) - 0.5) / n, 0, 1)
    prior = np.diff((1 - ENDS - BENT) * edges + BENT * beta.cdf(edges, BEND, BEND))
    prior[[0, -1]] += ENDS / 2
    logs = np.where(chances > 1e-200, likelihood + np.log(prior), -np.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return (weights * numbers).sum(axis=1) / weights.sum(axis=1) / n


def measure(task: Task, folder: Path, others: list[Path]) -> dict[tuple[str, int], float]:
    """Mean absolute errors, by method and bag size."""
    kept, found = dict(np.load(folder / task.file)), {}
    fresh, rest = fresh_labels(kept, np.random.default_rng(task.seed))
    truth, scores = kept["truth"].astype(int)[rest], kept["pool"][rest]
    pool, ratios = posteriors_of(scores), known_ratios(kept["pool"], kept["truth"].astype(int))[rest]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods = fitted_methods(kept)
        for title, other in [*((path.name, np.load(path / task.file)) for path in others), (FRESH, fresh)]:
            methods |= {f"{name}, {title}": of for name, of in fitted_methods(other).items()}
    for size in SIZES:
        bags = APP(bag_size=size, repeats=REPEATS).draw_quietly(truth, rng=[task.seed, size])
        right = bags.prevalences[:, 1]
        estimates = {name: methods[name].predict_bags(pool, bags)[:, 1] for name in methods if "PACC" not in name}
        estimates[KNOWN] = expected_shares(ratios[bags.indices])
        found |= {(name, size): float(np.abs(values - right).mean()) for name, values in estimates.items()}
    return found


def table(found: dict[Task, dict[tuple[str, int], float]]) -> list[str]:
    """A line for each number of training rows and bag size: means over the data sets of errors relative to EMQ's."""
    methods = list(dict.fromkeys(method for errors in found.values() for method, _ in errors if method != "EMQ"))
    lines = [f"| rows | bag | {' | '.join(methods)} |", "|" + "---|" * (len(methods) + 2)]
    for size in sorted(SIZES, reverse=True):
        for rows in dict.fromkeys(task.rows for task in found):
            ratios = []
            for name in BINARY:
                facts = [errors for task, errors in found.items() if (task.name, task.rows) == (name, rows)]
                if facts:
                    mean = {method: np.mean([errors[method, size] for errors in facts]) for method in ("EMQ", *methods)}
                    ratios.append([mean[method] / mean["EMQ"] for method in methods])
            cells = " | ".join(f"{value:.3f}" for value in np.mean(ratios, axis=0))
            lines.append(f"| {rows:,} | {size} | {cells} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--others", nargs="*", type=Path, default=[])
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    tasks = [Task(name, rows, seed) for rows in options.rows for name in BINARY for seed in range(options.repetitions)]
    tasks = [task for task in tasks if all((path / task.file).exists() for path in (options.folder, *options.others))]
    ask = partial(measure, folder=options.folder, others=options.others)
    with ProcessPoolExecutor(options.jobs) as processes:
        found = dict(zip(tasks, processes.map(ask, tasks), strict=True))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()

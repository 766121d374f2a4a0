"""QuaNet with few labels where the truth is known: nearly perfect classifiers, and three and five classes.

    python benchmarks/few_labels_simulations.py --output tmp/simulations.json --jobs 2

Classes are Gaussian, the classifier is the default (logistic regression in five folds), and only prevalences differ
between training data and bags. `few_labels_table.py` shows the results. Training sets already in the output are not
drawn again.
"""

import argparse
import json
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ERRORS = (0.005, 0.02)  # Bayes errors of nearly perfect classifiers
SHARES = (0.05, 0.3, 0.5)  # of the second class in their bags
NEAR_ROWS, NEAR_SIZE, NEAR_BAGS = 300, 1000, 10  # training rows, instances of a bag, bags of each share
CLASSES, DISTANCES, ROWS, SIZES, BAGS = (3, 5), (1.0, 2.0, 3.0), (100, 300, 1000, 3000), (50, 500), 42
REPETITIONS = {"near": 200, 100: 30, 300: 30, 1000: 15, 3000: 8}  # training sets, of each number of rows


class Job(NamedTuple):
    """One training set: of a nearly perfect classifier, where k is 2 and the distance follows from its error."""

    kind: str
    k: int
    setting: float  # Bayes error, or distance between classes
    rows: int
    seed: int

    @property
    def name(self) -> str:
        """Key of the results."""
        return "/".join(map(str, self))


def jobs() -> list[Job]:
    """All training sets."""
    near = [Job("near", 2, error, NEAR_ROWS, seed) for error in ERRORS for seed in range(REPETITIONS["near"])]
    return near + [
        Job("classes", k, distance, rows, seed)
        for rows in ROWS
        for k in CLASSES
        for distance in DISTANCES
        for seed in range(REPETITIONS[rows])
    ]


def measure(job: Job) -> dict[str, dict[str, Any]]:
    """Coverage, width and error of every method, by bag size."""
    from scipy.stats import norm

    from quanet import EMQ, PACC, Gaussians, QuaNet
    from quanet.drift.scale import without_drift

    warnings.simplefilter("ignore")
    rng = np.random.default_rng([job.seed, job.k, job.rows, round(1000 * job.setting)])
    distance = -2 * norm.ppf(job.setting) if job.kind == "near" else job.setting
    source = Gaussians(k=job.k, distance=distance)
    X, y = source.draw(np.full(job.k, 1 / job.k), job.rows, rng=rng)
    methods = (EMQ, PACC, QuaNet) if job.kind == "near" else (EMQ, QuaNet)
    with without_drift():
        fitted = {kind.__name__: kind().fit(X, y) for kind in methods}
    found: dict[str, dict[str, Any]] = {}
    for size in (NEAR_SIZE,) if job.kind == "near" else SIZES:
        shares = np.repeat(SHARES, NEAR_BAGS)
        wanted = np.column_stack([1 - shares, shares]) if job.kind == "near" else rng.dirichlet(np.ones(job.k), BAGS)
        for name, facts in measure_bags(fitted, source, wanted, size, rng).items():
            parts = len(SHARES) if job.kind == "near" else 1
            found[f"{name}/{size}"] = {
                key: value.reshape(parts, -1).mean(axis=1).tolist() for key, value in facts.items()
            }
    return found


def measure_bags(fitted: dict[str, Any], source: Any, wanted: Any, size: int, rng: Any) -> dict[str, dict[str, Any]]:
    """Facts of every bag (b,), by method; bags have these prevalences (b, k)."""
    from quanet import Bags
    from quanet.uncertainty.intervals import predict_interval_bags

    drawn = [source.draw(row, size, rng=rng) for row in wanted]
    pool = np.concatenate([points for points, _ in drawn])
    truth = np.stack([np.bincount(classes, minlength=wanted.shape[1]) / size for _, classes in drawn])
    bags, found = Bags(np.arange(len(pool)).reshape(-1, size)), {}
    for name, quantifier in fitted.items():
        interval = predict_interval_bags(quantifier, pool, bags, drift=False)
        inside = (interval.lower <= truth + 1e-12) & (truth <= interval.upper + 1e-12)
        found[name] = {
            "ae": np.abs(interval.estimate - truth).mean(axis=1),
            "coverage": inside[:, 1:].mean(axis=1),
            "width": (interval.upper - interval.lower)[:, 1:].mean(axis=1),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=("near", "classes"), default=["near", "classes"])
    parser.add_argument("--unseen", type=float, help="prior of errors that were never seen; 0.2.0 had 1")
    options = parser.parse_args()
    if options.unseen is not None:
        from quanet.uncertainty import unseen_errors

        unseen_errors.PRIOR = options.unseen  # worker processes inherit it
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    missing = [job for job in jobs() if job.kind in options.kinds and job.name not in found]
    saved = time.monotonic()
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as processes:
        running = {processes.submit(measure, job): job for job in missing}
        for number, done in enumerate(as_completed(running), 1):
            found[running[done].name] = done.result()
            if time.monotonic() - saved > 20 or number == len(missing):
                partial = options.output.with_suffix(".partial")
                partial.write_text(json.dumps(found))
                partial.replace(options.output)
                print(f"{number}/{len(missing)}", file=sys.stderr, flush=True)
                saved = time.monotonic()


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    main()

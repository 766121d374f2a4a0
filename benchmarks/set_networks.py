"""HistNetQ, GMNet and DeepSets with ten classes, next to CC, PACC and EMQ: the same posteriors and test bags.

    python benchmarks/set_networks.py run --seeds 0 1 2 --output OUT
    python benchmarks/set_networks.py table OUT --output benchmarks/results/set-networks.md

The published figures are for Fashion-MNIST, which is not part of this repository. Two stand-ins replace it:

gaussians  Ten Gaussian classes in 20 dimensions, in groups of 4, 3, 2 and 1 that are alike, as garments are. A
           multilayer perceptron learns from 20,000 instances; the methods learn from its posteriors of 10,000 others.
digits     scikit-learn's 8 x 8 digits. Logistic regression learns from 200 images, the methods from its posteriors of
           800 others: a small pool.

Bags of 500 instances at prevalences uniform on the simplex come from instances that no method has seen.
"""

import argparse
import json
import platform
import time
import warnings
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from quanet import CC, EMQ, PACC, UPP, DeepSets, GMNet, HistNetQ, evaluate

PROTOCOL = UPP(bag_size=500, repeats=1000)
ALIKE = np.repeat(np.arange(4), [4, 3, 2, 1])  # the group of each class
PUBLISHED = """\
Published, on Fashion-MNIST with a convolutional network that is trained together with the quantifier (Pérez-Mon et al.
2024, bags of 500): HistNetQ .0060. With a convolutional classifier's posteriors, which is what these methods read, EMQ
has .0056 and CC .0125 there. Stand-ins have other errors: compare only rows of the same table."""


def gaussians(seed: int) -> tuple[Any, ...]:
    """Posteriors and classes to learn from, posteriors and classes to draw test bags from, and the accuracy."""
    rng = np.random.default_rng(seed)
    centres = 2.2 * rng.normal(size=(4, 20))[ALIKE] + 0.5 * rng.normal(size=(10, 20))
    shapes = np.eye(20) + 0.3 * rng.normal(size=(10, 20, 20)) / np.sqrt(20)

    def draw(n: int) -> tuple[Any, Any]:
        y = rng.integers(10, size=n)
        return centres[y] + np.einsum("nij,nj->ni", shapes[y], rng.normal(size=(n, 20))), y

    (X, y), (pool, y_pool), (test, y_test) = draw(20_000), draw(10_000), draw(20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = MLPClassifier((64,), max_iter=25, random_state=0).fit(X, y)
    return *_read(classifier, pool, y_pool), *_read(classifier, test, y_test), classifier.score(test, y_test)


def digits(seed: int) -> tuple[Any, ...]:
    """The same for handwritten digits."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    fit, pool, test = np.split(order, [200, 1000])
    classifier = LogisticRegression(C=0.01, max_iter=2000).fit(X[fit], y[fit])
    return (
        *_read(classifier, X[pool], y[pool]),
        *_read(classifier, X[test], y[test]),
        classifier.score(X[test], y[test]),
    )


def _read(classifier: Any, X: Any, y: Any) -> tuple[Any, Any]:
    return classifier.predict_proba(X), y


STAND_INS = {"gaussians": gaussians, "digits": digits}
METHODS: dict[str, Any] = {kind.__name__: kind for kind in (CC, PACC, EMQ, HistNetQ, GMNet, DeepSets)}


def run(stand_in: str, seed: int, name: str) -> dict[str, Any]:
    """The error of a method, and the seconds of its fit."""
    rows, y, test_rows, y_test, accuracy = STAND_INS[stand_in](seed)
    kind = METHODS[name]
    networks = (HistNetQ, GMNet, DeepSets)
    method = kind("precomputed", device="cpu", random_state=seed) if kind in networks else kind("precomputed")
    started = time.perf_counter()
    method.fit(rows, y)
    seconds = time.perf_counter() - started
    error = float(evaluate(method, test_rows, y_test, PROTOCOL, rng=seed).error("ae").mean())
    names = ("numpy", "scikit-learn", "torch")
    machine = f"CPU, Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names)
    return {
        "stand_in": stand_in, "seed": seed, "method": name, "error": error, "seconds": seconds,
        "accuracy": accuracy, "machine": machine,
    }  # fmt: skip


def table(folder: Path) -> str:
    """Mean AE and its standard deviation over the seeds, and the median time of a fit."""
    runs = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    lines = ["# Set networks with ten classes", "", PUBLISHED, ""]
    lines += ["Run by `benchmarks/set_networks.py`, which describes the stand-ins. AE on 1,000 bags of 500.", ""]
    for stand_in in sorted({run["stand_in"] for run in runs}):
        part = [run for run in runs if run["stand_in"] == stand_in]
        accuracy, seeds = np.mean([run["accuracy"] for run in part]), {run["seed"] for run in part}
        lines += [f"## {stand_in} (stand-in for Fashion-MNIST): accuracy {accuracy:.2f}; seeds {sorted(seeds)}", ""]
        lines += [f"{part[0]['machine']}.", "", "| method | AE | fit, s |", "|---|---|---|"]
        for name in METHODS:
            errors = np.array([run["error"] for run in part if run["method"] == name])
            seconds = [run["seconds"] for run in part if run["method"] == name]
            if len(errors):
                spread = f" ± {errors.std():.4f}" if len(errors) > 1 else ""
                lines.append(f"| {name} | {errors.mean():.4f}{spread} | {np.median(seconds):.1f} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run")
    one.add_argument("--stand-ins", nargs="+", choices=STAND_INS, default=list(STAND_INS))
    one.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    one.add_argument("--output", type=Path, required=True)
    written = verbs.add_parser("table")
    written.add_argument("folder", type=Path)
    written.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.verb == "table":
        arguments.output.write_text(table(arguments.folder))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    for stand_in, seed, name in product(arguments.stand_ins, arguments.seeds, arguments.methods):
        found = run(stand_in, seed, name)
        (arguments.output / f"{stand_in}-{seed}-{name}.json").write_text(json.dumps(found, indent=1))
        print(stand_in, seed, name, found["error"], found["seconds"], flush=True)


if __name__ == "__main__":
    main()

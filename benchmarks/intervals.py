"""Coverage and width of intervals: the paper's protocol, every method, the text default.

    python benchmarks/intervals.py rows FOLDER NAME OUT.npz
    python benchmarks/intervals.py run OUT.npz... --output benchmarks/results/coverage.json
    python benchmarks/intervals.py table coverage.json [--speed speed.json] --output benchmarks/results/coverage.md
    python benchmarks/intervals.py plot coverage.json --output docs/coverage.png
    python benchmarks/intervals.py speed --output speed.json      # in an environment that has QuaPy

FOLDER contains NAME-train.parquet and NAME-test.parquet with columns text and label. Training rows are out-of-fold rows
of the text default; test rows are those of the classifier fitted to the whole training set. The test set is read only
for the reported bags: 100 at each of 21 prevalences, 500 instances in each.

The width is compared with that of the Cramér-Rao interval: the lowest variance of an unbiased estimate with these
posteriors, calibrated on the test set itself, times 2 x 1.96.

`speed` times 1,000 resamples of a bag of 500 with EMQ against QuaPy's AggregativeBootstrap, alternating, in CPU seconds
of one thread.
"""

import argparse
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

METHODS = ("conformal", "closed", "bootstrap", "bayes")
QUANTIFIERS = ("EMQ", "PACC", "QuaNet")
LEVEL = 0.95


def make_rows(folder: Path, name: str, output: Path, folds: int) -> None:
    """Keep rows [posteriors | embedding] of the training set, out of fold, and of the test set."""
    import pandas as pd

    from quanet import Dataset, TextClassifier
    from quanet.classifiers.cross_fitting import cross_fit_with_gap
    from quanet.simplex import encode

    parts = {}
    for part in ("train", "test"):
        table = pd.read_parquet(folder / f"{name}-{part}.parquet", columns=["text", "label"])
        parts[part] = Dataset(table["text"].tolist(), table["label"].to_numpy(), name)
    train, test = parts["train"], parts["test"]
    codes = encode(train.y, train.classes)
    started = time.process_time()
    found = cross_fit_with_gap(TextClassifier(), train.X, codes, train.classes, cv=folds)
    classifier, held = found.classifier, found.positions
    print(f"{name}: fitted in {time.process_time() - started:.0f} s", flush=True)
    np.savez(
        output,
        name=name,
        classifier=repr(classifier),
        posteriors=found.posteriors,
        fold_gap=found.fold_gap,
        embedding=classifier.transform(train.X)[held],
        codes=codes[held],
        test_posteriors=classifier.predict_proba(test.X),
        test_embedding=classifier.transform(test.X),
        test_codes=encode(test.y, train.classes),
    )


def quantifiers(rows: Any) -> dict[str, tuple[Any, Any]]:
    """Fitted quantifiers and what they predict for."""
    from dataclasses import replace

    from quanet import EMQ, PACC, QuaNet

    found = {
        "EMQ": (EMQ("precomputed").fit(rows["posteriors"], rows["codes"]), rows["test_posteriors"]),
        "PACC": (PACC("precomputed").fit(rows["posteriors"], rows["codes"]), rows["test_posteriors"]),
        "QuaNet": (QuaNet("precomputed").fit(rows["posteriors"], rows["codes"]), rows["test_posteriors"]),
    }
    # What fit keeps where it is given texts.
    for quantifier, _ in found.values():
        quantifier.held_out_ = replace(quantifier.held_out_, fold_gap=rows["fold_gap"])
    return found


def measure(path: Path) -> dict[str, Any]:
    """Coverage and width of every quantifier and method on one dataset."""
    from scipy.stats import norm

    from quanet import APP, predict_interval_bags
    from quanet.classifiers.calibration import calibrate
    from quanet.evaluation.limits import cramer_rao_variance

    rows = np.load(path)
    codes = rows["test_codes"]
    bags = APP().draw(codes, rng=0)
    truth = bags.prevalences
    honest = calibrate(rows["test_posteriors"], codes, method="platt")(rows["test_posteriors"])
    groups = truth.reshape(21, -1, 2)[:, 0]
    variance = np.repeat(cramer_rao_variance(honest, groups, bag_size=500), len(truth) // 21, axis=0)
    limit = float((2 * norm.ppf((1 + LEVEL) / 2) * np.sqrt(variance)).mean())
    cells = []
    for name, (quantifier, pool) in quantifiers(rows).items():
        for method in METHODS:
            started = time.process_time()
            found = predict_interval_bags(quantifier, pool, bags, LEVEL, method=method)
            seconds = time.process_time() - started
            held = found.contains(truth)
            cells.append(
                {
                    "quantifier": name,
                    "method": method,
                    "coverage": float(held.mean()),
                    "groups": held.reshape(21, -1).mean(axis=1).tolist(),
                    "width": float(found.width.mean()),
                    "bias": float((found.estimate - truth)[:, 1].mean()),
                    "error": float(np.abs(found.estimate - truth).mean()),
                    "seconds": seconds,
                }
            )
            print(path.stem, cells[-1], flush=True)
    names = ("numpy", "scikit-learn", "scipy")
    return {
        "dataset": str(rows["name"]),
        "classifier": str(rows["classifier"]),
        "prevalences": groups[:, 1].tolist(),
        "limit": limit,
        "cells": cells,
        "versions": f"Python {platform.python_version()}, " + ", ".join(f"{one} {version(one)}" for one in names),
    }


def table(runs: list[dict[str, Any]], speed: dict[str, Any] | None) -> str:
    """The results in Markdown."""
    lines = [
        "# Coverage of intervals",
        "",
        "2,100 bags of 500, level 95 %; made by `benchmarks/intervals.py`, 5 folds.",
    ]
    lines += ["How often the test parts had been seen before: docs/experiments/intervals.md.", ""]
    for run in runs:
        lines += [
            f"## {run['dataset']}",
            "",
            f"Rows of `{run['classifier']}`; {run['versions']}. The Cramér-Rao interval is {run['limit']:.4f} wide.",
            "",
            "| quantifier | intervals | coverage | least of 21 groups | width | times Cramér-Rao | AE | bias | CPU s |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for cell in run["cells"]:
            least = int(np.argmin(cell["groups"]))
            lines.append(
                f"| {cell['quantifier']} | {cell['method']} | {100 * cell['coverage']:.1f} % | "
                f"{100 * cell['groups'][least]:.0f} % (at {run['prevalences'][least]:.2f}) | {cell['width']:.4f} | "
                f"{cell['width'] / run['limit']:.2f} | {cell['error']:.4f} | {cell['bias']:+.4f} | "
                f"{cell['seconds']:.1f} |"
            )
        lines += [""]
    if speed:
        lines += [
            "## Speed",
            "",
            f"1,000 resamples of a bag of 500 with EMQ, CPU of one thread, {speed['rounds']} alternating rounds: "
            f"quanet {1000 * speed['quanet']:.1f} ms, QuaPy {speed['version']} {1000 * speed['quapy']:.0f} ms; ratio "
            f"{speed['ratio']:.0f} ({speed['least']:.0f} to {speed['most']:.0f}).",
            "",
        ]
    return "\n".join(lines)


def plot(runs: list[dict[str, Any]], output: Path) -> None:
    from quanet.report.charts import new_figure, save_figure
    from quanet.report.charts.coverage_figure import coverage_by_prevalence

    figure, axes = new_figure(len(QUANTIFIERS))
    for ax, quantifier in zip(axes, QUANTIFIERS, strict=True):
        cells = {cell["method"]: cell for cell in runs[0]["cells"] if cell["quantifier"] == quantifier}
        covered = {method: np.array(cell["groups"]) for method, cell in cells.items()}
        coverage_by_prevalence(ax, np.array(runs[0]["prevalences"]), covered, level=LEVEL)
        ax.set_title(f"{quantifier}, {runs[0]['dataset']}")
    lowest = min(ax.get_ylim()[0] for ax in axes)
    for ax in axes:
        ax.set_ylim(bottom=lowest)
    save_figure(figure, output)


def speed(rounds: int) -> dict[str, Any]:
    """CPU seconds of 1,000 resamples of a bag of 500: ours and QuaPy's, in turn."""
    import quapy
    from joblib import parallel_config
    from quapy.method.confidence import AggregativeBootstrap
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    from quanet import EMQ, Gaussians

    source = Gaussians(distance=2.5)
    X, y = source.draw([0.5, 0.5], 5000, rng=0)
    held, y_held = source.draw([0.5, 0.5], 5000, rng=1)
    bag, _ = source.draw([0.3, 0.7], 500, rng=2)
    classifier = LogisticRegression().fit(X, y)
    ours = EMQ(FrozenEstimator(classifier)).fit(held, y_held)
    theirs = AggregativeBootstrap(
        quapy.method.aggregative.EMQ(classifier, fit_classifier=False),
        n_train_samples=1,
        n_test_samples=1000,
        random_state=0,
    )
    theirs.fit(held, y_held)
    times: dict[str, list[float]] = {"quanet": [], "quapy": []}
    # QuaPy would start processes, whose time is not counted here.
    with threadpool_limits(1), parallel_config(backend="sequential"):
        for turn in range(rounds + 1):
            for name, call in (
                ("quanet", lambda: ours.predict_interval(bag, method="bootstrap", resamples=1000)),
                ("quapy", lambda: theirs.predict_conf(bag, confidence_level=LEVEL)),
            ):
                started = time.process_time()
                call()
                if turn:  # the first is for compiling and calibrating
                    times[name].append(time.process_time() - started)
    ratios = np.array(times["quapy"]) / np.array(times["quanet"])
    return {
        "quanet": float(np.median(times["quanet"])),
        "quapy": float(np.median(times["quapy"])),
        "ratio": float(np.median(ratios)),
        "least": float(ratios.min()),
        "most": float(ratios.max()),
        "rounds": rounds,
        "version": quapy.__version__,
    }


def main() -> None:
    sys.path[:] = sys.path[1:]  # this folder: in it `quanet` would be another benchmark
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("rows")
    making.add_argument("folder", type=Path)
    making.add_argument("name")
    making.add_argument("output", type=Path)
    making.add_argument("--folds", type=int, default=5)
    for verb in ("run", "table", "plot", "speed"):
        one = verbs.add_parser(verb)
        if verb != "speed":
            one.add_argument("files", type=Path, nargs="+")
        one.add_argument("--output", type=Path, required=True)
        if verb == "table":
            one.add_argument("--speed", type=Path)
        if verb == "speed":
            one.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    if given.verb == "rows":
        make_rows(given.folder, given.name, given.output, given.folds)
    elif given.verb == "run":
        given.output.write_text(json.dumps([measure(path) for path in given.files], indent=1) + "\n")
    elif given.verb == "speed":
        given.output.write_text(json.dumps(speed(given.rounds), indent=1) + "\n")
    else:
        runs = [run for path in given.files for run in json.loads(path.read_text())]
        if given.verb == "plot":
            plot(runs, given.output)
        else:
            timed = json.loads(given.speed.read_text()) if given.speed else None
            given.output.write_text(table(runs, timed))


if __name__ == "__main__":
    main()

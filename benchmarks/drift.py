"""Intervals, states and alarms under drift: datasets x kinds of drift x methods.

    python benchmarks/drift.py run FOLDER --output OUT.json --jobs 16 --seeds 0 1
    python benchmarks/drift.py table OUT.json --output benchmarks/results/drift.md --picture docs/drift.png

FOLDER contains the Parquet files of `SCENARIOS`, with columns text and label. *natural*: learn from earlier texts and
estimate later ones, or leave out one domain of products. *pairs*: learn from one dataset and estimate another.
*control*: random halves of one file, so that only prevalences differ. Each scenario has 200 bags of 500 at prevalences
uniform on the simplex, given to one call of `predict_interval_bags`. A seed draws halves and bags, and is that of
QuaNet. Results are written after every fit, and a run that was killed resumes.

The bias of a bag is what the pool does to bags of its prevalence: a least-squares fit of the errors of all bags on
their prevalences (k x k), evaluated at the bag. Drift *costs more than the half-width* if the largest bias of a class
exceeds the largest half-width of the interval without drift. The observed bias of a scenario is the root mean square of
its biases over bags and classes; the predicted one is the root mean of the variances v p (1 - p).
"""

import argparse
import json
import os
import platform
import shlex
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

import quanet
from quanet import UPP, diagnose, predict_interval_bags
from quanet.classifiers.calibration import calibrate
from quanet.drift.scale import without_drift
from quanet.evaluation.limits import cramer_rao_error
from quanet.files import write_whole
from quanet.simplex import encode
from quanet.uncertainty.widening import STATES

METHODS = ("EMQ", "PACC", "QuaNet")
BAGS, SIZE = 200, 500
ALONE, DIAGNOSED = 20, 5  # bags that are estimated one by one, and that are diagnosed
DOMAINS = ("books", "dvd", "electronics", "kitchen_&_housewares")


@dataclass(frozen=True)
class Scenario:
    """Files to learn from and to estimate; of a control, halves of one file.

    A file is a name, a name and a number of texts drawn at random ("imdb-train 8000"), or a name and a domain that is
    selected ("blitzer4 =dvd") or left out ("blitzer4 -dvd").
    """

    kind: str
    train: str
    target: str

    def read(self, folder: Path, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Training data and target pool."""
        if self.kind != "control":
            return read_part(folder, self.train), read_part(folder, self.target)
        table = read_part(folder, self.train)
        order = np.random.default_rng(seed).permutation(len(table))
        return tuple(table.iloc[np.sort(half)] for half in np.array_split(order, 2))  # type: ignore[return-value]


def read_part(folder: Path, name: str) -> pd.DataFrame:
    file, _, which = name.partition(" ")
    table = pd.read_parquet(folder / f"{file}.parquet")
    if which.isdigit():
        return table.iloc[np.sort(np.random.default_rng(0).permutation(len(table))[: int(which)])]
    return table[(table["domain"] == which[1:]) == (which[0] == "=")] if which else table


SCENARIOS = {
    **{name: Scenario("natural", f"{name}-train", f"{name}-test") for name in ("amazon-devices", "kindle-store")},
    "airline-3class": Scenario("natural", "airline-3class-train", "airline-3class-test"),
    **{f"blitzer4 without {d.split('_')[0]}": Scenario("natural", f"blitzer4 -{d}", f"blitzer4 ={d}") for d in DOMAINS},
    "amazon-devices to kindle-device": Scenario("pairs", "amazon-devices-train", "kindle-device-test"),
    "amazon-devices to kindle-store": Scenario("pairs", "amazon-devices-train", "kindle-store-test"),
    "kindle-device to amazon-devices": Scenario("pairs", "kindle-device-train", "amazon-devices-test"),
    "kindle-store to blitzer4": Scenario("pairs", "kindle-store-train", "blitzer4"),
    "blitzer4 to amazon-devices": Scenario("pairs", "blitzer4", "amazon-devices-test"),
    "blitzer4 to imdb": Scenario("pairs", "blitzer4", "imdb-test 8000"),
    "imdb to kindle-device": Scenario("pairs", "imdb-train 8000", "kindle-device-test"),
    "imdb to blitzer4": Scenario("pairs", "imdb-train 8000", "blitzer4"),
    **{
        f"halves of {name}": Scenario("control", name, name)
        for name in ("imdb-train", "amazon-devices-test", "kindle-device-test", "airline-3class-test", "blitzer4")
    },
}


def new_method(name: str) -> Any:
    return getattr(quanet, name)()


def measure(folder: Path, name: str, method: str, seed: int, *, timed: bool) -> dict[str, Any]:
    """Fit a method to a scenario's training data and estimate bags of its target."""
    warnings.simplefilter("ignore")
    train, target = SCENARIOS[name].read(folder, seed)
    texts, labels, pool = train["text"].tolist(), train["label"].to_numpy(), target["text"].tolist()
    seconds = {}
    if timed:
        with without_drift():
            step = max(1, len(texts) // 1000)
            new_method("EMQ").fit(texts[::step], labels[::step])  # compiles
            started = time.perf_counter()
            new_method(method).fit(texts, labels)
        seconds["fit without drift"] = time.perf_counter() - started
    started = time.perf_counter()
    quantifier = new_method(method).fit(texts, labels)
    seconds["fit"] = time.perf_counter() - started
    started = time.perf_counter()
    inputs = quantifier.read(pool)
    seconds["read"] = time.perf_counter() - started
    bags = UPP(bag_size=SIZE, repeats=BAGS).draw(target["label"].to_numpy(), rng=seed, classes=quantifier.classes_)
    started = time.perf_counter()
    interval = predict_interval_bags(quantifier, inputs, bags)
    seconds["intervals"] = time.perf_counter() - started
    codes = encode(target["label"].to_numpy(), quantifier.classes_)
    posteriors = np.asarray(inputs)[:, : len(quantifier.classes_)]
    limit = cramer_rao_error(calibrate(posteriors, codes, method="platt")(posteriors), bags.prevalences, bag_size=SIZE)
    alone = [predict_interval_bags(quantifier, inputs, bags.take(np.array([at]))) for at in range(ALONE)]
    truths = [bags.prevalences[[at]] for at in range(ALONE)]
    diagnoses = [diagnose(quantifier, [pool[at] for at in bag]) for bag in bags.indices[:DIAGNOSED]]
    alarms = [[finding.name for finding in findings if finding.severity == "alarm"] for findings in diagnoses]
    found = summary(interval, bags.prevalences) | {
        "limit": float(limit.mean()),
        "coverage alone": float(np.mean([covered(*both).mean() for both in zip(alone, truths, strict=True)])),
        "width alone": float(np.mean([one.width.mean() for one in alone])),
        "alarms": Counter(name for names in alarms for name in names),
        "with alarm": float(np.mean([bool(names) for names in alarms])),
        "rate": quantifier.drift_.rate,
        "parts": f"{len(quantifier.drift_.distances)} {quantifier.drift_.kind}".strip(),
        "seconds": seconds,
    }
    return found | {"scenario": name, "kind": SCENARIOS[name].kind, "method": method, "seed": seed}


def covered(interval: Any, truth: Any) -> Any:
    """Whether the interval of each class contains its prevalence, (b, k)."""
    return (interval.lower - 1e-9 <= truth) & (truth <= interval.upper + 1e-9)


def summary(interval: Any, truth: Any) -> dict[str, Any]:
    """Errors, coverage, widths, bias and states of bags with these prevalences (b, k)."""
    plain, drift, error = interval.without_drift, interval.drift, interval.estimate - truth
    bias = truth @ np.linalg.lstsq(truth, error, rcond=None)[0]
    costly = np.abs(bias).max(axis=1) > plain.width.max(axis=1) / 2
    trusted = drift.state == "trusted"
    return {
        "ae": float(np.abs(error).mean()),
        "coverage": float(covered(interval, truth).mean()),
        "coverage without": float(covered(plain, truth).mean()),
        "width": float(interval.width.mean()),
        "width without": float(plain.width.mean()),
        "cost": float(drift.cost.mean()),
        "distance": float(drift.distance.mean()),
        "mean error": float(error[:, -1].mean()),
        "bias": float(np.sqrt((bias**2).mean())),
        "predicted bias": float(np.sqrt((drift.variance[:, None] * truth * (1 - truth)).mean())),
        **{state: float((drift.state == state).mean()) for state in STATES},
        "trusted and covered": float((trusted[:, None] & covered(plain, truth)).mean()),
        "costly": float(costly.mean()),
        "costly and trusted": float((costly & trusted).mean()),
        "labels": float(np.median(drift.labels)),
    }


def run(given: argparse.Namespace) -> None:
    """Measure all cells that the output does not contain yet."""
    if given.output.exists():
        content = json.loads(given.output.read_text())
    else:
        names = {str(given.folder): "FOLDER", str(given.output): "OUT.json"}
        command = shlex.join(
            ["python", "benchmarks/drift.py", *(names.get(str(Path(one)), one) for one in sys.argv[1:])]
        )
        content = {"machine": machine(), "date": f"{datetime.now(UTC):%Y-%m-%d}", "command": command, "cells": []}
    done = {(cell["scenario"], cell["method"], cell["seed"]) for cell in content["cells"]}
    wanted = [one for one in product(given.only or SCENARIOS, given.methods, given.seeds) if one not in done]
    wanted.sort(key=lambda one: (one[1] != "QuaNet", "imdb" not in one[0]))  # the slowest first
    tasks = [delayed(measure)(given.folder, *one, timed=one[2] == given.seeds[0]) for one in wanted]
    os.environ["NUMBA_NUM_THREADS"] = "1"
    started = time.perf_counter()
    with parallel_config("loky", n_jobs=given.jobs, inner_max_num_threads=1):
        for at, cell in enumerate(Parallel(return_as="generator_unordered")(tasks), start=1):
            content["cells"].append(cell)
            write_whole(given.output, (json.dumps(content, indent=1) + "\n").encode())
            print(
                f"{at}/{len(tasks)} after {time.perf_counter() - started:.0f} s: {cell['scenario']}, {cell['method']}, "
                f"seed {cell['seed']}: coverage {cell['coverage without']:.3f} -> {cell['coverage']:.3f}, width "
                f"{cell['width without']:.3f} -> {cell['width']:.3f}, fit {cell['seconds']['fit']:.0f} s",
                flush=True,
            )


def machine() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    versions = ", ".join(f"{name} {version(name)}" for name in ("quanet", "numpy", "scipy", "scikit-learn", "torch"))
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run")
    one.add_argument("folder", type=Path)
    one.add_argument("--output", type=Path, required=True)
    one.add_argument("--only", nargs="+", choices=SCENARIOS, metavar="NAME", help="scenarios; default: all")
    one.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    one.add_argument("--jobs", type=int, default=1, help="processes")
    all_of_them = verbs.add_parser("table")
    all_of_them.add_argument("files", type=Path, nargs="+")
    all_of_them.add_argument("--output", type=Path, required=True)
    all_of_them.add_argument("--picture", type=Path)
    all_of_them.add_argument("--method", default="EMQ", help="whose bias the picture shows")
    given = parser.parse_args()
    if given.verb == "run":
        run(given)
        return
    from drift_table import write_picture, write_table  # needs matplotlib

    write_table(given.files, given.output)
    if given.picture:
        write_picture(given.files, given.picture, given.method)


if __name__ == "__main__":
    main()

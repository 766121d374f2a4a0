"""QuaNet against every counting method and the other set networks: the same rows and 2,100 test bags.

    python benchmarks/network.py run FOLDER --dataset imdb --track paper --seeds 0 1 2 --output OUT
    python benchmarks/network.py table OUT... --output benchmarks/results/quanet.md

FOLDER contains NAME-train.parquet and NAME-test.parquet with columns text and label. Track "paper": the LSTM classifier
is trained on 60 % of the training data, and all methods learn from its rows for the other 40 %. Track "text": the
TF-IDF default, cross-fitted with 20 folds. Test data are read only to draw the reported bags, and for their
Cramér-Rao limit.
"""

import argparse
import json
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy.stats import ttest_rel

from quanet import (
    ACC,
    APP,
    CC,
    EMQ,
    PACC,
    PCC,
    UPP,
    Dataset,
    DeepSets,
    GMNet,
    HistNetQ,
    QuaNet,
    TextClassifier,
    evaluate,
    load_dataset,
)
from quanet.classifiers.calibration import calibrate
from quanet.classifiers.cross_fitting import cross_fit
from quanet.data.registry import STAND_INS
from quanet.evaluation.limits import cramer_rao_error
from quanet.simplex import encode

METRICS = ("ae", "rae", "kld")


@contextmanager
def mixed_precision(device: str) -> Iterator[None]:
    """LSTM layers multiply in bfloat16; all else, such as losses and steps, stays in single precision."""
    forward = torch.nn.LSTM.forward

    def multiply(self: torch.nn.LSTM, *arguments: Any) -> Any:
        with torch.autocast("cpu" if device == "cpu" else "cuda", torch.bfloat16):
            states, last = forward(self, *arguments)
        return states.float(), last

    with patch.object(torch.nn.LSTM, "forward", multiply):
        yield


def rows_of_the_paper(train: Dataset, test: Dataset, seed: int, arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Rows and labels of the 40 %, and rows of the test set, from an LSTM trained on the 60 %."""
    from quanet import LSTMClassifier

    learn, held = train.split(0.6, rng=seed)
    with mixed_precision(arguments.device) if arguments.mixed else nullcontext():
        classifier = LSTMClassifier(device=arguments.device, random_state=seed).fit(learn.X, learn.y)
    print(f"{len(classifier.history_)} validations, the best at", [e.number for e in classifier.history_ if e.best][-1])
    held_rows, test_rows = (
        np.hstack([classifier.predict_proba(part.X), classifier.transform(part.X)]) for part in (held, test)
    )
    return held_rows, held.y, test_rows


def rows_of_text(train: Dataset, test: Dataset) -> tuple[Any, Any, Any]:
    """Out-of-fold rows of the training set and rows of the test set, from the text default."""
    codes = encode(train.y, train.classes)
    classifier, posteriors, held = cross_fit(TextClassifier(), train.X, codes, train.classes, cv=20)
    embedding = classifier.transform(train.X)[held]
    test_rows = np.hstack([classifier.predict_proba(test.X), classifier.transform(test.X)])
    return np.hstack([posteriors, embedding]), train.y[held], test_rows


def runs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Errors of every method, seed by seed. Rows of the text default do not depend on the seed and are made once."""
    data = load_dataset(arguments.dataset, folder=arguments.folder, download=False)
    made, took = None, 0.0
    for seed in arguments.seeds:
        if made is None or arguments.track == "paper":
            started = time.perf_counter()
            if arguments.track == "paper":
                made = rows_of_the_paper(data.train, data.test, seed, arguments)
            else:
                made = rows_of_text(data.train, data.test)
            took = time.perf_counter() - started
        found = run(made, data.test.y, seed, arguments)
        found["seconds"] |= {"rows": took}
        yield {"dataset": arguments.dataset, "track": arguments.track, "seed": seed, **found}


def run(rows: tuple[Any, Any, Any], y_test: Any, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Errors of every method on one seed's rows, and the least that their posteriors allow."""
    held_rows, y, test_rows = rows
    track, device = arguments.track, arguments.device
    k = len(np.unique(y))
    seconds: dict[str, float] = {}
    protocol = APP() if k == 2 else UPP(bag_size=500, repeats=2100)
    methods: dict[str, Any] = {method.__name__: method("precomputed") for method in (CC, ACC, PCC, PACC, EMQ)}
    cv = 0.4 if track == "paper" else 20  # how the rows were made
    methods["QuaNet"] = QuaNet("precomputed")
    if track == "paper" and not arguments.quick:
        methods["QuaNet.paper"] = QuaNet.paper("precomputed", device=device, random_state=seed)
    if arguments.sets:
        for kind in (HistNetQ, GMNet, DeepSets):
            methods[kind.__name__] = kind("precomputed", cv=cv, device=device, random_state=seed)
        methods["DeepSets, max"] = DeepSets("precomputed", pooling="max", cv=cv, device=device, random_state=seed)
    errors, notes = {}, {}
    for name, method in methods.items():
        is_network = hasattr(method, "max_epochs")
        width = held_rows.shape[1] if is_network else k
        started = time.perf_counter()
        method.fit(held_rows[:, :width], y)
        seconds[name] = time.perf_counter() - started
        results = evaluate(method, test_rows[:, :width], y_test, protocol, rng=seed)
        errors[name] = {metric: float(results.error(metric).mean()) for metric in METRICS}
        if is_network:
            notes[name] = {"epochs": len(method.history_)}
    # The density ratio is taken on the test data, so no method can know it.
    posteriors, codes = test_rows[:, :k], encode(y_test, np.unique(y))
    bags = protocol.draw(y_test, rng=seed)
    known = calibrate(posteriors, codes, method="platt" if k == 2 else "bcts")(posteriors)
    limit = float(cramer_rao_error(known, bags.prevalences, bag_size=500).mean())
    return {"errors": errors, "seconds": seconds, "notes": notes, "limit": limit, "machine": machine(device)}


def machine(device: str) -> str:
    on = torch.cuda.get_device_name() if device in ("auto", "cuda") and torch.cuda.is_available() else "CPU"
    names = ("numpy", "scikit-learn", "torch")
    return f"{on}, Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names)


def table(files: list[Path]) -> str:
    """Means and standard deviations over the seeds, and a paired t-test of QuaNet against each."""
    runs = [json.loads(file.read_text()) for file in files]
    lines = ["# QuaNet compared with the counting methods", ""]
    lines += [
        "On the paper's LSTM: [the paper's experiment](paper/table.md). All methods: [modern](modern.md).",
        "",
    ]
    for track, dataset in sorted({(run["track"], run["dataset"]) for run in runs}):
        part = sorted((r for r in runs if (r["track"], r["dataset"]) == (track, dataset)), key=lambda r: r["seed"])
        rows = "the paper's LSTM, 60/40" if track == "paper" else "the text default, 20 folds"
        stand_in = f" ({STAND_INS[dataset]})" if dataset in STAND_INS else ""
        lines += [f"## {dataset}{stand_in}: {rows}; {len(part)} seeds", "", f"{part[0]['machine']}.", ""]
        lines += [
            "| method | AE | RAE | KLD | p, QuaNet better: AE / RAE / KLD | fit, s |",
            "|---|---|---|---|---|---|",
        ]
        for name in part[0]["errors"]:
            values = np.array([[run["errors"][name][m] for m in METRICS] for run in part])
            ours = np.array([[run["errors"]["QuaNet"][m] for m in METRICS] for run in part])
            cells = [f"{mean:.4f} ± {sd:.4f}" for mean, sd in zip(values.mean(0), values.std(0), strict=True)]
            chance = "-"
            if name != "QuaNet" and len(part) > 1:
                found = [ttest_rel(values[:, m], ours[:, m], alternative="greater").pvalue for m in range(3)]
                chance = " / ".join(f"{p:.1g}" for p in found)
            fit = np.median([run["seconds"][name] for run in part])
            lines.append(f"| {name} | {' | '.join(cells)} | {chance} | {fit:.1f} |")
        limits = np.array([run["limit"] for run in part])
        ours = np.array([run["errors"]["QuaNet"]["ae"] for run in part])
        lines += [
            "",
            f"Cramér-Rao limit of AE on {dataset}, {rows}: {limits.mean():.4f}; "
            f"QuaNet has {(ours / limits).mean():.3f} times that.",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run")
    one.add_argument("folder", type=Path)
    one.add_argument("--dataset", default="imdb")
    one.add_argument("--track", choices=("paper", "text"), default="paper")
    one.add_argument("--seeds", type=int, nargs="+", default=[0])
    one.add_argument("--device", default="auto")
    one.add_argument("--mixed", action="store_true", help="train the LSTM in mixed precision: twice as fast on a CPU")
    one.add_argument("--sets", action="store_true", help="also run the other set networks")
    one.add_argument("--quick", action="store_true", help="without QuaNet.paper, which takes long on a CPU")
    one.add_argument("--output", type=Path, required=True)
    all_of_them = verbs.add_parser("table")
    all_of_them.add_argument("files", type=Path, nargs="+")
    all_of_them.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.verb == "table":
        arguments.output.write_text(table(arguments.files))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    for found in runs(arguments):
        name = f"{arguments.track}-{arguments.dataset}-{found['seed']}.json"
        (arguments.output / name).write_text(json.dumps(found, indent=1))
        print(name, found["errors"], found["seconds"], found["notes"], flush=True)


if __name__ == "__main__":
    main()

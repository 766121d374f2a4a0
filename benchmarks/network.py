"""QuaNet beside its base and every counting method: the same rows, the same 2,100 test bags, several seeds.

    python benchmarks/network.py run FOLDER --dataset imdb --track paper --seeds 0 1 2 --output OUT
    python benchmarks/network.py table OUT... --output benchmarks/results/quanet.md

FOLDER holds NAME-train.parquet and NAME-test.parquet with columns text and label. Track "paper": the LSTM classifier is
trained on 60 % of the training data, and all methods learn from its rows of the other 40 %. Track "text": the TF-IDF
default, cross-fitted with 20 folds. Test data are only read to draw the bags that are reported.
"""

import argparse
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import ttest_rel

from quanet import ACC, APP, CC, EMQ, PACC, PCC, UPP, Dataset, QuaNet, TextClassifier, evaluate
from quanet.classifiers import cross_fit
from quanet.simplex import encode

METRICS = ("ae", "rae", "kld")
STAND_INS = {
    "kindle-device": "stand-in for KINDLE",
    "kindle-store": "second stand-in for KINDLE",
    "amazon-devices": "stand-in for HP",
}


def read(folder: Path, name: str, part: str) -> Dataset:
    table = pd.read_parquet(folder / f"{name}-{part}.parquet", columns=["text", "label"])
    return Dataset(table["text"].tolist(), table["label"].to_numpy(), name)


def rows_of_the_paper(train: Dataset, test: Dataset, seed: int, device: str) -> tuple[Any, Any, Any]:
    """Rows and labels of the 40 %, and rows of the test set, from an LSTM trained on the 60 %."""
    from quanet import LSTMClassifier

    learn, held = train.split(0.6, rng=seed)
    classifier = LSTMClassifier(device=device, random_state=seed).fit(learn.X, learn.y)
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


def run(folder: Path, dataset: str, track: str, seed: int, device: str) -> dict[str, Any]:
    """Errors of every method on one seed."""
    train, test = read(folder, dataset, "train"), read(folder, dataset, "test")
    started = time.perf_counter()
    made = rows_of_the_paper(train, test, seed, device) if track == "paper" else rows_of_text(train, test)
    held_rows, y, test_rows = made
    k = len(train.classes)
    seconds = {"rows": time.perf_counter() - started}
    protocol = APP() if k == 2 else UPP(bag_size=500, repeats=2100)
    methods: dict[str, Any] = {method.__name__: method("precomputed") for method in (CC, ACC, PCC, PACC, EMQ)}
    methods["QuaNet"] = QuaNet("precomputed", device=device, random_state=seed)
    if track == "paper":
        methods["QuaNet.paper"] = QuaNet.paper("precomputed", device=device, random_state=seed)
    errors, notes = {}, {}
    for name, method in methods.items():
        is_network = name.startswith("QuaNet")
        width = held_rows.shape[1] if is_network else k
        started = time.perf_counter()
        method.fit(held_rows[:, :width], y)
        seconds[name] = time.perf_counter() - started
        results = evaluate(method, test_rows[:, :width], test.y, protocol, rng=seed)
        errors[name] = {metric: float(results.error(metric).mean()) for metric in METRICS}
        if is_network:
            notes[name] = {
                "epochs": len(method.history_),
                "corrects": bool(method.corrects_),
                "p_value": None if np.isnan(method.p_value_) else float(method.p_value_),
            }
    return {
        "dataset": dataset,
        "track": track,
        "seed": seed,
        "errors": errors,
        "seconds": seconds,
        "notes": notes,
        "machine": machine(device),
    }


def machine(device: str) -> str:
    on = torch.cuda.get_device_name() if device in ("auto", "cuda") and torch.cuda.is_available() else "CPU"
    names = ("numpy", "scikit-learn", "torch")
    return f"{on}, Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names)


def table(files: list[Path]) -> str:
    """Means and standard deviations over the seeds, and a paired t-test of QuaNet against each."""
    runs = [json.loads(file.read_text()) for file in files]
    lines = ["# QuaNet beside its base and the counting methods", ""]
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
        used = sum(run["notes"]["QuaNet"]["corrects"] for run in part)
        lines += ["", f"The network's correction was used in {used} of {len(part)} runs.", ""]
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
    one.add_argument("--output", type=Path, required=True)
    all_of_them = verbs.add_parser("table")
    all_of_them.add_argument("files", type=Path, nargs="+")
    all_of_them.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.verb == "table":
        arguments.output.write_text(table(arguments.files))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        found = run(arguments.folder, arguments.dataset, arguments.track, seed, arguments.device)
        name = f"{arguments.track}-{arguments.dataset}-{seed}.json"
        (arguments.output / name).write_text(json.dumps(found, indent=1))
        print(name, found["errors"], found["seconds"], found["notes"], flush=True)


if __name__ == "__main__":
    main()

"""Does the order of the training rows decide the estimate? Folds by content against folds that follow the file.

    python benchmarks/training_order.py FOLDER --output benchmarks/results/training-order.md

Folds that follow the file are scikit-learn's `StratifiedKFold`, which quanet gives the rows as they are. Generated
files have 60 topics of 50 rows; the share of the positive class differs by topic, and so do the words. Datasets of
FOLDER (`NAME-train.parquet`, `NAME-test.parquet` with the columns text and label) are read in the order of their files.
"""

import argparse
import os
import platform
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

TOPICS, ROWS, SEEDS = 60, 50, 5
NAMES = ("imdb", "kindle-device", "kindle-store", "airline-3class", "amazon-devices")
Texts = tuple[list[str], Any]


def draw_topics(seed: int, part: int) -> Texts:
    """Texts sorted by topic, with words of their topic and, in most texts, one of their class; parts share topics."""
    shares, rng = np.random.default_rng(seed).beta(0.5, 0.5, size=TOPICS), np.random.default_rng([seed, part])
    texts, labels = [], []
    for topic, share in enumerate(shares):
        for label in (rng.random(ROWS) < share).astype(int).tolist():
            words = [f"topic{topic}w{number}" for number in rng.integers(5, size=8)]
            texts.append(" ".join([*words, f"class{label}w{rng.integers(40)}"] if rng.random() < 0.6 else words))
            labels.append(label)
    return texts, np.array(labels)


def measure(train: Texts, test: Texts, cv: Any) -> list[float]:
    """Accuracy out of fold, and AE of EMQ in 21 prevalences x 20 bags of 500 test rows."""
    from quanet import APP, EMQ, evaluate
    from quanet.drift.scale import without_drift

    with without_drift():
        quantifier = EMQ(cv=cv).fit(*train)
    held_out = quantifier.held_out_
    assert held_out is not None
    accuracy = (held_out.inputs[:, : held_out.k].argmax(axis=1) == held_out.codes).mean()
    errors = evaluate(quantifier, quantifier.read(test[0]), test[1], APP(bag_size=500, repeats=20), rng=0).error()
    return [float(accuracy), float(errors.mean())]


def generated_rows() -> list[str]:
    from sklearn.model_selection import StratifiedKFold

    found: dict[tuple[str, str], list[list[float]]] = {}
    for seed in range(SEEDS):
        (texts, y), new = draw_topics(seed, 0), draw_topics(seed, 1)
        mixed = np.random.default_rng(seed).permutation(len(y))
        for order, chosen in (("sorted by topic", np.arange(len(y))), ("shuffled", mixed)):
            train = [texts[at] for at in chosen], y[chosen]
            for name, cv in _folds(StratifiedKFold):
                found.setdefault((order, name), []).append(measure(train, new, cv))
    means = {cell: np.mean(values, axis=0) for cell, values in found.items()}
    return [f"| {order} | {name} | {value[0]:.3f} | {value[1]:.4f} |" for (order, name), value in means.items()]


def dataset_rows(folder: Path) -> list[str]:
    import pandas as pd
    from sklearn.model_selection import StratifiedKFold

    rows = []
    for data in NAMES:
        parts = [pd.read_parquet(folder / f"{data}-{part}.parquet") for part in ("train", "test")]
        train, test = ((part["text"].tolist(), part["label"].to_numpy()) for part in parts)
        for name, cv in _folds(StratifiedKFold):
            accuracy, error = measure(train, test, cv)
            rows.append(f"| {data} | {name} | {accuracy:.3f} | {error:.4f} |")
            print(rows[-1], flush=True)
    return rows


def _folds(splitter: Any) -> list[tuple[str, Any]]:
    return [(f"by content, {n}", n) for n in (5, 20)] + [(f"of the file, {n}", splitter(n)) for n in (5, 20)]


def main() -> None:
    sys.path[:] = sys.path[1:]  # this folder: in it `quanet` would be another benchmark
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the datasets")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("quanet", "numpy", "scikit-learn"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [
            "# The order of the training rows",
            "",
            f"Made by `benchmarks/training_order.py`: EMQ on the text default, without a drift scale; bags of 500. "
            f"Python {platform.python_version()}, {versions}. *By content*: the default. *Of the file*: "
            "`StratifiedKFold`, unshuffled. kindle-device, kindle-store and amazon-devices are stand-ins for the "
            "paper's KINDLE and HP.",
            "",
            f"## Generated: {TOPICS} topics x {ROWS} rows, mean of {SEEDS} seeds",
            "",
            "| rows | folds | accuracy out of fold | AE |",
            "|---|---|---|---|",
            *generated_rows(),
            "",
            "## Datasets, in the order of their files",
            "",
            "| dataset | folds | accuracy out of fold | AE |",
            "|---|---|---|---|",
            *dataset_rows(given.folder),
            "",
        ]
    text = "\n".join(lines)
    print(text) if given.output is None else given.output.write_text(text)


if __name__ == "__main__":
    main()

"""Decide on held-out training data whether `TextClassifier` gains from the view "meaning"; test data are never read.

    python benchmarks/static_view.py FOLDER [--datasets NAME ...] [--seeds 6] [--first-seed 0] [--strengths 0.001 ...]
    python benchmarks/static_view.py FOLDER [--datasets NAME ...] --costs

FOLDER contains NAME-train.parquet and blitzer4.parquet, with columns text and label, and date or domain. Needs the
extra transformers.

A training set is split in half at random, once per seed; a second look splits it by date, product domain or film.
EMQ and PACC are fitted to one part, with three views and with four, and evaluated on 400 bags of 500 instances of the
other, drawn at uniformly distributed prevalences. From imdb, 8,000 random texts are used. Printed for each dataset: AE
with three views and with four, their ratio, and the standard error of the difference over splits, relative to the AE
with three. A strength is the C of the view's regression, relative to that of the words (`MEANING_C`).

--costs prints the processor time of fitting EMQ and of reading the same texts, and the size of the model folder.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import ClassVar

import numpy as np
import pandas as pd

from quanet import EMQ, PACC, UPP, TextClassifier, evaluate, save
from quanet.classifiers import text
from quanet.classifiers.text import DEFAULT_VIEWS, MEANING_C

SETS = ("airline-3class", "amazon-devices", "blitzer4", "imdb", "kindle-device", "kindle-store")
METHODS = (EMQ, PACC)
CUTS = (0.5, 0.65)
SOME = 8000  # texts of imdb
Split = tuple[np.ndarray, np.ndarray]


class Shared(TextClassifier):
    """Remembers its last fit, which the second method on the same split then uses."""

    memory: ClassVar[dict[object, tuple[list[np.ndarray], dict[str, object]]]] = {}

    def fit_out_of_fold(self, X, y, folds):
        key = tuple(self.views), text.MEANING_C, tuple(X), len(folds)
        if key not in self.memory:
            self.memory.clear()
            self.memory[key] = super().fit_out_of_fold(X, y, folds), dict(vars(self))
        posteriors, fitted = self.memory[key]
        vars(self).update(fitted)
        return posteriors


def read(folder: Path, name: str) -> pd.DataFrame:
    table = pd.read_parquet(folder / ("blitzer4.parquet" if name == "blitzer4" else f"{name}-train.parquet"))
    if name == "imdb":
        same = table.groupby("label")["label"]
        table["place"] = same.cumcount() / same.transform("size")  # the file has one class after the other, by film
        table = table.iloc[np.sort(np.random.default_rng(0).permutation(len(table))[:SOME])]
    return table.reset_index(drop=True)


def random_splits(table: pd.DataFrame, seeds: range) -> Iterator[Split]:
    for seed in seeds:
        first = np.random.default_rng(seed).random(len(table)) < 0.5
        yield np.flatnonzero(first), np.flatnonzero(~first)


def drifting_splits(table: pd.DataFrame) -> Iterator[Split]:
    """By domain, film or date, whichever the table has."""
    held: list[pd.Series] = []
    if "domain" in table:
        held = [table["domain"] == name for name in sorted(table["domain"].unique())]
    elif "place" in table:
        held = [table["place"].between(start, start + 0.25, inclusive="left") for start in (0.25, 0.75)]
    elif "date" in table:
        held = [table["date"].rank(method="first", pct=True) > cut for cut in CUTS]
    for part in held:
        yield np.flatnonzero(~part), np.flatnonzero(part)


def errors(table: pd.DataFrame, split: Split, strengths: list[float]) -> dict[tuple[str, float], float]:
    """Mean AE by method and strength; strength 0 stands for three views."""
    texts, y = table["text"].to_numpy(dtype=object), table["label"].to_numpy()
    learn, held = split
    found = {}
    for strength in (0.0, *strengths):
        text.MEANING_C = strength
        classifier = Shared(views=(*DEFAULT_VIEWS, "meaning") if strength else DEFAULT_VIEWS)
        for method in METHODS:
            quantifier = method(classifier).fit(texts[learn].tolist(), y[learn])
            results = evaluate(quantifier, texts[held].tolist(), y[held], UPP(bag_size=500, repeats=400), rng=7)
            found[method.__name__, strength] = float(results.error("ae").mean())
    return found


def show(title: str, runs: list[dict[tuple[str, float], float]]) -> None:
    for method, strength in runs[0]:
        if strength:
            before, after = (np.array([run[method, one] for run in runs]) for one in (0.0, strength))
            error = (after - before).std(ddof=1) / np.sqrt(len(runs)) / before.mean() if len(runs) > 1 else np.nan
            ratio = after.mean() / before.mean()
            print(
                f"{title:24} {len(runs):2} splits  {method:4}  {strength:<6g} {before.mean():.4f} {after.mean():.4f}"
                f"  {ratio:.3f} +- {error:.3f}",
                flush=True,
            )


def costs(name: str, table: pd.DataFrame) -> None:
    texts, y = table["text"].tolist(), table["label"].to_numpy()
    for views in (DEFAULT_VIEWS, (*DEFAULT_VIEWS, "meaning")):
        EMQ(TextClassifier(views=views)).fit(texts, y).predict(texts[:1])  # compile loops, and cache the vectors
        start = process_time()
        quantifier = EMQ(TextClassifier(views=views)).fit(texts, y)
        fitted = process_time()
        quantifier.read(texts)
        read = process_time()
        with TemporaryDirectory() as folder:
            save(quantifier, Path(folder) / "model")
            size = sum(file.stat().st_size for file in Path(folder, "model").iterdir())
        print(
            f"{name:16} {len(texts):5} texts  {len(views)} views  fit {fitted - start:.1f} s  "
            f"read {read - fitted:.2f} s  folder {size / 1e6:.1f} MB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--datasets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0, help="C was chosen with seeds below 12")
    parser.add_argument("--strengths", type=float, nargs="+", default=[MEANING_C])
    parser.add_argument("--costs", action="store_true")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for name in arguments.datasets:
        table = read(arguments.folder, name)
        if arguments.costs:
            costs(name, table)
            continue
        for kind, splits in (("random", random_splits(table, seeds)), ("drift", drifting_splits(table))):
            runs = [errors(table, split, arguments.strengths) for split in splits]
            if runs:
                show(f"{name} {kind}", runs)


if __name__ == "__main__":
    main()

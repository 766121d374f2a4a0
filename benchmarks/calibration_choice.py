"""Which calibration, and which methods learn with the fold gap closed: on held-out training data.

    python benchmarks/calibration_choice.py texts FOLDER [--datasets NAME ...] [--share 0.5] [--folds 5]
    python benchmarks/calibration_choice.py numbers

FOLDER contains NAME-train.parquet and blitzer4.parquet, with columns text and label; test data are never read. Every
dataset is split at random: in half (--share), or 300 or 1,000 labelled instances against the rest; and in half in order
(of date, or of the file) within each class. Four splits of the slow datasets, twelve of the others. Every method learns
from one part and is evaluated on bags of 500 of the other. An entry is the mean AE divided by that of the default, with
its standard error over the splits. The last line has geometric means of the ratios of AE, RAE and KLD over the
datasets, without those with other labels (NAME:COLUMN).

"texts" uses `TextClassifier`, "numbers" logistic regression, a random forest and naive Bayes on seven datasets.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quanet import ACC, APP, EMQ, MS, PACC, RLLS, UPP, DyS, KDEyML, QuanetError, TextClassifier
from quanet.classifiers.calibration import Calibration, calibrate, zero_floor
from quanet.classifiers.cross_fitting import close_fold_gap, cross_fit_with_gap
from quanet.metrics import absolute_error, kullback_leibler_divergence, relative_absolute_error
from quanet.simplex import encode

FILES = (
    "airline-3class-train",
    "amazon-devices-train",
    "blitzer4",
    "imdb-train",
    "kindle-device-train",
    "kindle-store-train",
)
OTHER_LABELS = ("blitzer4:domain", "blitzer4:stars", "kindle-device-train:stars")  # four classes each
MAX_TEXTS, MAX_POOL = 16_000, 8_000
SEEDS, SEEDS_OF_SLOW = 12, 4
SLOW = ("blitzer4", "imdb-train", *OTHER_LABELS)
MIN_OF_CLASS = 5
PENALTIES = (10.0, 30.0)
GAP_METHODS = {"PACC": PACC, "RLLS": RLLS, "ACC": ACC, "MS": MS, "EMQ": EMQ, "DyS": DyS, "KDEyML": KDEyML}
BAG, EPS = 500, 1 / 1000

Cells = dict[tuple[str, str], list[dict[str, np.ndarray]]]  # by design and dataset: errors of each variant, per split


def shrunk_vector(posteriors: np.ndarray, codes: np.ndarray, penalty: float) -> Calibration:
    """Vector scaling with a ridge penalty on the log ratios of its scales: BCTS if the penalty is infinite."""
    start, (n, k) = calibrate(posteriors, codes, method="bcts"), posteriors.shape
    floor = zero_floor(posteriors, codes)
    smoothed = posteriors if floor is None else (1 - floor.sum()) * posteriors + floor
    logs, truth = start.scale[0] * np.log(np.clip(smoothed, 1e-12, 1 - 1e-12)), np.eye(k)[codes]

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        ratios, shift = parameters[:k], parameters[k:]  # logarithms of scales relative to BCTS
        scaled, centred = np.exp(ratios) * logs, ratios - ratios.mean()
        found = log_softmax(scaled + shift, axis=1)
        residual = (np.exp(found) - truth) / n
        gradient = [(residual * scaled).sum(axis=0) + penalty / n * centred, residual.sum(axis=0)]
        return float(penalty * centred @ centred / 2 - (truth * found).sum()) / n, np.concatenate(gradient)

    best = minimize(loss, np.r_[np.zeros(k), start.shift], jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
    return Calibration("vector", start.scale[0] * np.exp(best[:k]), best[k:], floor)


def errors(truth: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Mean AE, RAE and KLD."""
    relative, divergence = relative_absolute_error, kullback_leibler_divergence
    found = [absolute_error(truth, estimate), relative(truth, estimate, eps=EPS), divergence(truth, estimate, eps=EPS)]
    return np.array([values.mean() for values in found])


def compare(
    fitted: Any, codes: np.ndarray, pool: np.ndarray, truth: np.ndarray, repeats: int = 8
) -> dict[str, np.ndarray]:
    """Errors of every variant, from one cross-fitted classifier and its posteriors of the other part."""
    posteriors, k = fitted.posteriors, pool.shape[1]
    protocol = APP(bag_size=BAG, repeats=repeats) if k == 2 else UPP(bag_size=BAG, repeats=20 * repeats)
    bags = protocol.draw(truth, rng=7)
    found = {}

    def record(name: str, quantifier: Any) -> None:
        found[name] = errors(bags.prevalences, quantifier.predict_bags(pool, bags))

    for name in ("bcts", "vector"):
        record(name, EMQ("precomputed", calibration=name).fit(posteriors, codes))
    for penalty in PENALTIES:
        shrunk = EMQ("precomputed").fit(posteriors, codes)
        shrunk.calibration_ = shrunk_vector(posteriors, codes, penalty)
        record(f"shrunk {penalty:g}", shrunk)
    if fitted.fold_gap is None:
        return found
    closed = close_fold_gap(posteriors, codes, fitted.fold_gap)
    for name, kind in GAP_METHODS.items():
        try:
            record(name, kind("precomputed").fit(posteriors, codes))
            record(f"{name}, closed", kind("precomputed").fit(closed, codes))
        except QuanetError:  # two classes only
            continue
    return found


def in_order(table: pd.DataFrame, codes: np.ndarray) -> np.ndarray:
    """Place (n,) of every text within its class, from 0 to 1: by date if dated, within its domain if it has one."""
    dated = "date" in table and table["date"].notna().all()
    ranks = table["date"].rank(method="first") if dated else pd.Series(np.arange(len(table)), index=table.index)
    groups = [codes, table["domain"]] if "domain" in table else [codes]
    within = ranks.groupby(groups)
    return ((within.rank() - 1) / within.transform("size")).to_numpy()


def text_splits(
    table: pd.DataFrame, codes: np.ndarray, seeds: int, share: float = 0.5
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name of the design, positions to learn from, positions to draw bags from."""
    n = len(table)
    for seed in range(seeds):
        order = np.random.default_rng(1000 + seed).permutation(n)
        cut = int(share * n)
        yield f"random, {share:.0%} labelled", np.sort(order[:cut]), np.sort(order[cut:])
        for size in (1000, 300):
            if size < 0.7 * n:
                order = np.random.default_rng(5000 + size + seed).permutation(n)
                yield f"{size} labelled", np.sort(order[:size]), np.sort(order[size : size + MAX_POOL])
    first = in_order(table, codes) < 0.5
    for part in (first, ~first):
        yield "in order", np.flatnonzero(part), np.flatnonzero(~part)


def try_texts(folder: Path, names: list[str], share: float, cv: int) -> Cells:
    """Every variant on every split of the text datasets."""
    cells: Cells = defaultdict(list)
    for name in names:
        file, _, column = name.partition(":")
        table = pd.read_parquet(folder / f"{file}.parquet")
        if len(table) > MAX_TEXTS:
            table = table.iloc[np.sort(np.random.default_rng(99).permutation(len(table))[:MAX_TEXTS])]
        classes, texts = np.unique(table[column or "label"]), table["text"].to_numpy()
        codes = encode(table[column or "label"].to_numpy(), classes)
        for design, learn, rest in text_splits(table, codes, SEEDS_OF_SLOW if name in SLOW else SEEDS, share):
            if (column and design == "in order") or np.bincount(codes[learn]).min() < MIN_OF_CLASS:
                continue
            fitted = cross_fit_with_gap(TextClassifier(), texts[learn].tolist(), codes[learn], np.unique(codes), cv=cv)
            pool = fitted.classifier.predict_proba(texts[rest].tolist())
            found = compare(fitted, codes[learn][fitted.positions], pool, codes[rest])
            found["rarest"] = np.full(3, np.bincount(codes[learn]).min())
            cells[design, name].append(found)
    return cells


def skewed(seed: int, shares: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Classes that differ in place, spread and shape, so that log posteriors of a linear model are not calibrated."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(shares), 14_000, p=shares)
    X = rng.standard_normal((len(y), 8)) * (0.7 + 0.5 * y[:, None])
    X = np.where(y[:, None] % 2 == 0, X, np.exp(0.6 * X) - 1)
    X[:, :4] += 0.6 * y[:, None]
    return X, y


def mixed(seed: int, k: int, rare: float, separation: float) -> tuple[np.ndarray, np.ndarray]:
    """Two clusters per class, 2 % of the labels random."""
    weights = [1 - rare] if rare else None
    options = {"n_informative": 8, "n_redundant": 4, "flip_y": 0.02, "class_sep": separation, "random_state": seed}
    return make_classification(14_000, 20, n_classes=k, weights=weights, **options)


NUMBERS = {
    "mixed, 2 classes": lambda seed: mixed(seed, 2, 0, 1.0),
    "mixed, one class 10 %": lambda seed: mixed(seed, 2, 0.1, 1.0),
    "skewed, 2 classes": lambda seed: skewed(seed, [0.7, 0.3]),
    "breast cancer": lambda _: load_breast_cancer(return_X_y=True),
    "mixed, 5 classes": lambda seed: mixed(seed, 5, 0, 1.5),
    "skewed, 3 classes": lambda seed: skewed(seed, [0.5, 0.3, 0.2]),
    "digits, 10 classes": lambda _: load_digits(return_X_y=True),
}
CLASSIFIERS = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "random forest": lambda: RandomForestClassifier(100, random_state=0),
    "naive Bayes": lambda: make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-3)),
}


def try_numbers() -> Cells:
    """Every calibration on 100, 300 and 1,000 labelled instances of the numeric datasets."""
    cells: Cells = defaultdict(list)
    for seed in range(SEEDS_OF_SLOW):
        for name, draw in NUMBERS.items():
            X, y = draw(seed)
            order = np.random.default_rng(seed).permutation(len(y))
            for size in (100, 300, 1000):
                learn, rest = order[:size], order[size:][-10_000:]
                if size > 0.6 * len(y) or np.bincount(y[learn]).min() < MIN_OF_CLASS:
                    continue
                for classifier, build in CLASSIFIERS.items():
                    fitted = cross_fit_with_gap(build(), X[learn], y[learn], np.unique(y), cv=5)
                    pool = fitted.classifier.predict_proba(X[rest])
                    found = compare(fitted, y[learn][fitted.positions], pool, y[rest], repeats=4)
                    cells[f"{classifier}, {size} labelled", name].append(found)
    return cells


def show(cells: Cells, pairs: list[tuple[str, str]]) -> None:
    """One table per design: the ratio of each pair's second variant to its first."""
    for design in dict.fromkeys(design for design, _ in cells):
        names = [name for other, name in cells if other == design]
        print(f"\n### {design}\n\n| | splits | rarest class | {' | '.join(second for _, second in pairs)} |")
        print("|---" * (len(pairs) + 3) + "|")
        logs = defaultdict(list)
        for name in names:
            entries = [
                _ratio(cells[design, name], *pair, logs if ":" not in name else defaultdict(list)) for pair in pairs
            ]
            rarest = [float(run["rarest"][0]) for run in cells[design, name] if "rarest" in run]
            print(f"| {name} | {len(cells[design, name])} | {np.mean(rarest or [0]):.0f} | {' | '.join(entries)} |")
        means = [
            " / ".join(f"{mean:.3f}" for mean in np.exp(np.mean(logs[pair] or [[np.nan]], axis=0))) for pair in pairs
        ]
        print(f"| geometric mean: AE / RAE / KLD | | | {' | '.join(means)} |", flush=True)


def _ratio(runs: list[dict[str, np.ndarray]], first: str, second: str, logs: dict[Any, list[np.ndarray]]) -> str:
    both = [(run[first], run[second]) for run in runs if second in run]
    if len(both) < 2:
        return "-"
    before, after = np.array(both).swapaxes(0, 1)
    ratio, excess = after.mean(axis=0) / before.mean(axis=0), (after - before)[:, 0] / before[:, 0].mean()
    logs[first, second].append(np.log(ratio))
    return f"{ratio[0]:.3f} ± {excess.std(ddof=1) / len(excess) ** 0.5:.3f}"


def main() -> None:
    """Read the arguments, try all variants, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["texts", "numbers"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--datasets", nargs="+", default=[*FILES, *OTHER_LABELS])
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--folds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    calibrations = [("bcts", "vector"), *(("bcts", f"shrunk {penalty:g}") for penalty in PENALTIES)]
    if arguments.what == "numbers":
        show(try_numbers(), calibrations)
        return
    cells = try_texts(arguments.folder, arguments.datasets, arguments.share, arguments.folds)
    show(cells, calibrations)
    show(cells, [(name, f"{name}, closed") for name in GAP_METHODS])


if __name__ == "__main__":
    main()

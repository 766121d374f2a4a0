"""Choose defaults on held-out training data; test data are never read.

    python benchmarks/defaults.py calibration FOLDER [--seeds 3]
    python benchmarks/defaults.py text FOLDER [--folds 5 20] [--datasets NAME ...]

FOLDER contains NAME-train.parquet files with columns text and label.

"calibration", for EMQ: every training set is split in half at random, several times. EMQ is fitted to one half with
each calibration and evaluated on bags of the other.

"text": which views `TextClassifier` averages, evenly or weighted by out-of-fold logits, measured by EMQ on bags of 500.
Where a dataset is in order of date, the models learn from the earlier part and are evaluated on the later part. For
imdb, they are evaluated on a quarter with other films, twice. The other datasets are split in half at random, several
times.
"""

import argparse
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from quanet import APP, EMQ, PACC, UPP, Dataset, TextClassifier, evaluate
from quanet.classifiers.calibration import METHODS, fit_weights
from quanet.classifiers.cross_fitting import cross_fit
from quanet.classifiers.text import DEFAULT_VIEWS
from quanet.simplex import encode

Errors = dict[str, tuple[float, ...]]
BEFORE = "one model of words and pairs"  # scikit-learn's, its terms counted in every fold
CUTS = (0.4, 0.5, 0.6, 0.65, 0.7)
DATED = {"amazon-devices-train": CUTS, "kindle-store-train": CUTS, "airline-3class-train": (0.5, 0.65)}
HALVES = {"airline-3class-train": 2, "kindle-device-train": 6}


def calibrations(data: Dataset, seed: int) -> Errors:
    """Mean AE, RAE and KLD of every calibration on one split; the classifier is shared."""
    train, held = data.split(0.5, rng=seed)
    codes = encode(train.y, data.classes)
    classifier, posteriors, rows = cross_fit(TextClassifier(), train.X, codes, data.classes, cv=5)
    pool = classifier.predict_proba(held.X)
    protocol = APP(bag_size=100, repeats=20) if len(data.classes) == 2 else UPP(bag_size=100, repeats=500)
    methods = {str(name): EMQ("precomputed", calibration=name) for name in (None, *METHODS)}
    methods["PACC"] = PACC("precomputed")
    found = {}
    for name, method in methods.items():
        results = evaluate(method.fit(posteriors, train.y[rows]), pool, held.y, protocol, rng=seed)
        found[name] = tuple(float(results.error(metric).mean()) for metric in ("ae", "rae", "kld"))
    return found


def splits(data: Dataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Texts to learn from, and texts to evaluate on."""
    n = len(data)
    for share in DATED.get(data.name, ()):
        yield np.arange(int(share * n)), np.arange(int(share * n), n)
    if data.name == "imdb-train":
        place = np.empty(n)  # within its class, for the file has one class after the other
        for label in data.classes:
            place[data.y == label] = np.linspace(0, 1, (data.y == label).sum(), endpoint=False)
        for start in (0.25, 0.75):
            held = (place >= start) & (place < start + 0.25)
            yield np.flatnonzero(~held), np.flatnonzero(held)
    for seed in range(HALVES.get(data.name, 0)):
        first = np.random.default_rng(seed).random(n) < 0.5
        yield np.flatnonzero(first), np.flatnonzero(~first)


def views(data: Dataset, learn: np.ndarray, held: np.ndarray, cv: int) -> Errors:
    """Mean AE, RAE, KLD and bias of every choice of views; the mean of logits is that of log posteriors, normalised."""
    texts, y, k = np.array(data.X, dtype=object), data.y, len(data.classes)
    codes = encode(y[learn], data.classes)
    logs = {}
    single = TfidfVectorizer(ngram_range=(1, 2), min_df=3 if len(learn) >= 1000 else 1, sublinear_tf=True)
    classifiers = {view: TextClassifier(views=(view,)) for view in DEFAULT_VIEWS}
    classifiers[BEFORE] = make_pipeline(single, LogisticRegression(C=10, max_iter=1000))
    for name, classifier in classifiers.items():
        fitted, posteriors, rows = cross_fit(classifier, texts[learn], codes, data.classes, cv=cv)
        logs[name] = np.log(posteriors), np.log(fitted.predict_proba(texts[held]))
    protocol = APP(repeats=20) if k == 2 else UPP(bag_size=500, repeats=400)
    found = {}
    for chosen in [
        (BEFORE,),
        *(some for size in range(1, len(DEFAULT_VIEWS) + 1) for some in combinations(DEFAULT_VIEWS, size)),
    ]:
        ways = {"evenly": np.full(len(chosen), 1 / len(chosen))}
        if len(chosen) > 1:
            ways["weighted"] = fit_weights([logs[view][0] for view in chosen], codes[rows])
        for (way, weights), calibration in product(ways.items(), ("bcts", "vector")):
            out_of_fold, pool = (
                softmax(sum(w * logs[view][i] for w, view in zip(weights, chosen, strict=True)), axis=1) for i in (0, 1)
            )
            method = EMQ("precomputed", calibration=calibration).fit(out_of_fold, y[learn][rows])
            results = evaluate(method, pool, y[held], protocol, rng=100)
            means = [float(results.error(metric).mean()) for metric in ("ae", "rae", "kld")]
            bias = float((results.estimate - results.truth)[:, -1].mean())
            found[f"{' + '.join(chosen)}, {way}, {calibration}"] = (*means, bias)
    return found


def show(title: str, runs: list[Errors]) -> None:
    print(f"\n{title} over {len(runs)} splits")
    for name in runs[0]:
        ae, rae, kld, *bias = np.mean([run[name] for run in runs], axis=0)
        print(f"  {name:56} {ae:.4f}  {rae:.3f}  {kld:.4f}", *(f" {value:+.3f}" for value in bias), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["calibration", "text"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--datasets", nargs="+")
    arguments = parser.parse_args()
    for file in sorted(arguments.folder.glob("*-train.parquet")):
        if arguments.datasets and file.stem.removesuffix("-train") not in arguments.datasets:
            continue
        table = pd.read_parquet(file, columns=["text", "label"])
        data = Dataset(table["text"].tolist(), table["label"].to_numpy(), file.stem)
        if arguments.what == "calibration":
            runs = [calibrations(data, seed) for seed in range(arguments.seeds)]
            show(f"{data.name} ({len(data)} texts): mean AE, RAE, KLD", runs)
            continue
        for cv in arguments.folds:
            runs = [views(data, *split, cv) for split in splits(data)]
            show(f"{data.name} ({len(data)} texts), {cv} folds: mean AE, RAE, KLD, bias", runs)


if __name__ == "__main__":
    main()

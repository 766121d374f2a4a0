"""Corrections of EMQ learned from left-out parts of the training texts, evaluated on parts that they have not seen.

    python benchmarks/part_corrections.py FOLDER [--parts blocks] [--datasets NAME TRAIN>TARGET ...]

FOLDER contains NAME-train.parquet and NAME-test.parquet with columns text and label, and blitzer4.parquet with a column
domain; each domain of it is the target once, and the other three are the training texts. Parts are eight clusters of
the training texts (directions of frequent words, centred by class) or eight blocks in order of date, or of the file.

The classifier of a part is fitted to the other parts. Bags of a part have 300 texts at prevalences uniform on the
simplex, so EMQ's errors on them contain the bias of the part. A correction shifts log-odds of estimates. It learns
from some parts and is evaluated on another. How strongly it is shrunk, or that it is not used, is chosen by leaving out
one more part. Then it learns from all parts and is evaluated on 200 bags of the target, which decides nothing.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import expit, logit
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from quanet import UPP, TextClassifier
from quanet.classifiers.calibration import calibrate
from quanet.classifiers.folds import split_in_folds
from quanet.classifiers.terms import MAX_TERMS, MIN_TEXTS, Terms, unit_rows
from quanet.data.duplicates import find_distinct
from quanet.methods.solvers import maximum_likelihood

Array = np.ndarray[Any, Any]
DOMAINS = ("books", "dvd", "electronics", "kitchen_&_housewares")
DATASETS = ("airline-3class", "amazon-devices", "kindle-device", "kindle-store", "imdb", *DOMAINS)
DIRECTIONS, PARTS, MIN_OF_CLASS = 50, 8, 10
QUANTILES = np.arange(1, 10) / 10  # of scores; instances between them are counted
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of the penalty of ridge regressions
DECAYS = (0.1, 1.0)  # of the network's weights, relative to the error of the base


@dataclass(frozen=True)
class PartBags:
    """Bags of one part: truth and EMQ's estimate (b, k), and groups of features (b, k, m) of every class."""

    truth: Array
    estimate: Array
    features: dict[str, Array]

    def error(self, shift: Array | float = 0.0) -> float:
        """Mean absolute error after a shift (b, k) of the log-odds."""
        shares = expit(logit(self.estimate) + np.clip(shift, -2, 2))
        return float(np.abs(shares / shares.sum(axis=1, keepdims=True) - self.truth).mean())


Shift = Callable[[PartBags], Array]
Fit = Callable[[list[PartBags], float], Shift]


def without(parts: list[PartBags], part: PartBags) -> list[PartBags]:
    return [other for other in parts if other is not part]


def means_of(values: Array, codes: Array) -> Array:
    return np.stack([values[codes == c].mean(axis=0) for c in range(codes.max() + 1)])


class Reference:
    """Calibration, and what the posteriors of every class look like, learned from cross-fitted posteriors."""

    def __init__(self, posteriors: Array, codes: Array) -> None:
        self.k = posteriors.shape[1]
        self.prior = np.bincount(codes) / len(codes)
        self.calibration = calibrate(posteriors, codes, method="bcts")
        scores, balance = self._scores(posteriors), 1 / self.prior[codes]
        order = scores.argsort(axis=0)
        heights = balance[order].cumsum(axis=0) / balance.sum()  # as if all classes were equally frequent
        self.edges = [scores[order[np.searchsorted(heights[:, c], QUANTILES), c], c] for c in range(self.k)]
        self.of_class = means_of(self._describe(posteriors), codes)  # (k, k, m)

    def _scores(self, posteriors: Array) -> Array:
        """Log-odds of every class if all were equally frequent: (n, k) -> (n, k)."""
        likelihoods = self.calibration(posteriors) / self.prior
        return logit(np.clip(likelihoods / likelihoods.sum(axis=1, keepdims=True), 1e-9, 1 - 1e-9))

    def _describe(self, posteriors: Array) -> Array:
        """Bin, score, its square, doubt and calibrated posterior of every instance: (n, k) -> (n, k, m)."""
        scores = self._scores(posteriors)
        bins = [np.eye(len(QUANTILES) + 1)[np.digitize(scores[:, c], self.edges[c])] for c in range(self.k)]
        others = [scores / 3, scores**2 / 9, expit(scores) * expit(-scores), self.calibration(posteriors)]
        return np.concatenate([np.stack(bins, axis=1), np.stack(others, axis=2)], axis=2)

    def bags(self, posteriors: Array, codes: Array, vectors: Array, means: Array, *, size: int, count: int) -> PartBags:
        """Draw bags; `means` (k, e) are those of the vectors of the classes in the texts that were learned from."""
        drawn = UPP(bag_size=size, repeats=count).draw_quietly(codes, rng=0, classes=np.arange(self.k))
        estimate, _ = maximum_likelihood(self.calibration(posteriors)[drawn.indices], self.prior)
        estimate = (estimate + 0.5 / size) / (1 + self.k * 0.5 / size)
        found = self._describe(posteriors)[drawn.indices].mean(axis=1)
        excess = vectors[drawn.indices].mean(axis=1) - estimate @ means
        features = {
            "constant": np.ones((count, self.k, 1)),
            "prevalence": logit(estimate)[:, :, None] / 2,
            "misfit": found - np.einsum("bt,tkm->bkm", estimate, self.of_class),
            "excess": np.repeat(excess[:, None], self.k, axis=1),
        }
        return PartBags(drawn.prevalences, estimate, features)


def ridge(*groups: str) -> Fit:
    """A linear shift of log-odds for every class; the penalty treats the groups of features alike."""

    def fit(parts: list[PartBags], strength: float) -> Shift:
        unit = {g: np.sqrt(np.mean([np.square(part.features[g]).sum(axis=2).mean() for part in parts])) for g in groups}

        def inputs(part: PartBags) -> Array:
            return np.concatenate([part.features[g] / unit[g] for g in groups], axis=2)

        estimate = np.concatenate([part.estimate for part in parts])
        missing = np.concatenate([part.truth for part in parts]) - estimate
        slope = estimate * (1 - estimate)  # of a prevalence along its log-odds
        rows = np.moveaxis(slope[:, :, None] * np.concatenate([inputs(part) for part in parts]), 0, 2)  # (k, m, b)
        penalty = strength * np.square(slope).sum(axis=0).mean() * np.eye(rows.shape[1])
        weights = np.linalg.solve(rows @ rows.swapaxes(1, 2) + penalty, rows @ missing.T[:, :, None])[..., 0]
        return lambda part: np.einsum("bkm,km->bk", inputs(part), weights)

    return fit


def network(parts: list[PartBags], decay: float) -> Shift:
    """Twelve units over prevalence, misfit and four directions of the excess; the class is an input."""
    excess = np.stack([part.features["excess"][:, 0].mean(axis=0) for part in parts])
    directions = np.linalg.svd(excess, full_matrices=False)[2][:4].T

    def inputs(part: PartBags) -> Array:
        named = np.broadcast_to(np.eye(part.truth.shape[1]), (*part.truth.shape, part.truth.shape[1]))
        seen = [part.features["prevalence"], part.features["misfit"], part.features["excess"] @ directions, named]
        return np.concatenate(seen, axis=2)

    raw = np.concatenate([inputs(part) for part in parts])
    centre, unit = raw.mean(axis=(0, 1)), raw.std(axis=(0, 1)) + 1e-9
    start, truth = (np.concatenate([getattr(part, name) for part in parts]) for name in ("estimate", "truth"))
    X, odds, goal = (torch.tensor(array, dtype=torch.float32) for array in ((raw - centre) / unit, logit(start), truth))
    first = torch.randn(X.shape[2], 12, generator=torch.Generator().manual_seed(0)) / X.shape[2] ** 0.5
    weights = [first.requires_grad_(), *(torch.zeros(shape, requires_grad=True) for shape in (12, (12, 1), 1))]
    optimizer = torch.optim.Adam(weights, lr=0.02)
    for _ in range(100):
        W, b, V, c = weights
        estimate = torch.sigmoid(odds + (torch.tanh(X @ W + b) @ V + c)[..., 0])
        penalty = W.square().sum() / len(W) + V.square().sum() + c.square().sum()
        loss = (estimate - goal).square().mean() + decay * float(np.square(start - truth).mean()) * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    W, b, V, c = (weight.detach().numpy().astype(float) for weight in weights)
    return lambda part: (np.tanh((inputs(part) - centre) / unit @ W + b) @ V + c)[..., 0]


CORRECTIONS: dict[str, tuple[Fit, tuple[float, ...]]] = {
    "constant": (ridge("constant"), STRENGTHS),
    "misfit": (ridge("constant", "prevalence", "misfit"), STRENGTHS),
    "words": (ridge("constant", "excess"), STRENGTHS),
    "all": (ridge("constant", "prevalence", "misfit", "excess"), STRENGTHS),
    "network": (network, DECAYS),
}


def learn(parts: list[PartBags], fit: Fit, strengths: tuple[float, ...]) -> Shift:
    """The correction with the strength that is best on parts left out, or none if no strength gains on them."""
    best, chosen = np.mean([part.error() for part in parts]), None
    for strength in strengths:
        error = np.mean([part.error(fit(without(parts, part), strength)(part)) for part in parts])
        if error < best:
            best, chosen = error, strength
    return (lambda part: np.zeros(part.truth.shape)) if chosen is None else fit(parts, chosen)


def vectors_of(texts: list[str], target: list[str], codes: Array) -> tuple[Array, Array]:
    """Directions of frequent words, with variance 1 within the classes: (n, e), (m, e)."""
    terms = Terms("words", 3, repeats=False)
    matrix = terms.fit_transform(texts)
    frequent = min(MAX_TERMS, int((np.bincount(matrix.indices) >= MIN_TEXTS).sum()))  # the most frequent come first
    rows, target_rows = unit_rows(matrix[:, :frequent]), unit_rows(terms.transform(target)[:, :frequent])
    directions = randomized_svd(rows, DIRECTIONS, random_state=0)[2].T
    vectors = rows @ directions
    unit = (vectors - means_of(vectors, codes)[codes]).std(axis=0)
    return vectors / unit, target_rows @ directions / unit


def bags_of(train: pd.DataFrame, target: pd.DataFrame, parts: str) -> tuple[list[PartBags], PartBags]:
    """Bags of the parts of a training set, and of a target."""
    if parts == "blocks" and "date" in train:
        train = train.sort_values("date", kind="stable")
    texts, (classes, codes) = train.text.tolist(), np.unique(train.label, return_inverse=True)
    vectors, target_vectors = vectors_of(texts, target.text.tolist(), codes)
    part_of = np.arange(len(codes)) * PARTS // len(codes)
    if parts == "clusters":
        centred = normalize(vectors - means_of(vectors, codes)[codes])
        part_of = KMeans(PARTS, n_init=3, random_state=0).fit_predict(centred)
    folds = split_in_folds(codes, classes, 5, find_distinct(texts))
    sizes = np.array([np.bincount(codes[part_of == part], minlength=len(classes)) for part in range(PARTS)])
    large = np.flatnonzero(sizes.min(axis=1) >= MIN_OF_CLASS)
    splits = [(np.flatnonzero(part_of != part), np.flatnonzero(part_of == part)) for part in large]
    classifier = TextClassifier()
    found = classifier.fit_out_of_fold(texts, train.label.to_numpy(), [*folds, *splits])
    order = np.concatenate([held for _, held in folds]).argsort()
    reference = Reference(np.concatenate(found[: len(folds)])[order], codes)
    bags = [
        reference.bags(posteriors, codes[held], vectors[held], means_of(vectors[seen], codes[seen]), size=300, count=40)
        for (seen, held), posteriors in zip(splits, found[len(folds) :], strict=True)
    ]
    asked = classifier.predict_proba(target.text.tolist()), np.searchsorted(classes, target.label), target_vectors
    return bags, reference.bags(*asked, means_of(vectors, codes), size=500, count=200)


def read(folder: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    reviews = pd.read_parquet(folder / "blitzer4.parquet")
    if name in DOMAINS:
        return reviews[reviews.domain != name], reviews[reviews.domain == name]
    sides = name.split(">")
    files = [folder / f"{sides[0]}-train.parquet", folder / f"{sides[-1]}-test.parquet"]
    train, target = (reviews if file.name.startswith("blitzer4") else pd.read_parquet(file) for file in files)
    return train, target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--parts", choices=("clusters", "blocks"), default="clusters")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| AE on unseen parts / on the target | parts | EMQ | {' | '.join(CORRECTIONS)} |\n" + "|---" * 8 + "|")
    ratios = []
    for name in arguments.datasets:
        parts, target = bags_of(*read(arguments.folder, name), arguments.parts)
        errors = [(np.mean([part.error() for part in parts]), target.error())]
        for method in CORRECTIONS.values():
            unseen = [part.error(learn(without(parts, part), *method)(part)) for part in parts]
            errors.append((np.mean(unseen), target.error(learn(parts, *method)(target))))
        ratios.append(np.divide(errors, errors[0]))
        print(f"| {name} | {len(parts)} | {' | '.join(f'{u:.4f} / {t:.4f}' for u, t in errors)} |", flush=True)
    means = np.exp(np.log(ratios).mean(axis=0))
    print(f"| mean ratio to EMQ | | {' | '.join(f'{u:.2f} / {t:.2f}' for u, t in means)} |")


if __name__ == "__main__":
    main()

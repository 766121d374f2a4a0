"""Coverage of expected accuracy, F1 and confusion matrices: under prior shift with known truth, and under drift.

    python benchmarks/expected_accuracy.py --jobs 16 --output benchmarks/results/expected-accuracy.md

Prior shift: Gaussian classes. Training sets are drawn many times, because what is learned from few instances is part of
the error; bags are drawn at several prevalences. Drift: real texts (`--data`), learned from one part of a file and
asked about another part of the same file: later dates, or another kind of products. Bags of both parts are drawn at
uniformly distributed prevalences. Only training files are used, so nothing here has been chosen on test data.
"""

import argparse
import itertools
import os
import platform
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 0.95
SIZES = (100, 500, 2000)
TRAININGS = (300, 1000)
METHODS = ("EMQ", "PACC")
DISTANCE = 2.0  # between classes, in standard deviations
SHARES: dict[int, tuple[tuple[float, ...], ...]] = {
    2: ((0.5, 0.5), (0.3, 0.7), (0.9, 0.1), (0.02, 0.98)),
    4: ((0.25, 0.25, 0.25, 0.25), (0.4, 0.4, 0.1, 0.1), (0.7, 0.1, 0.1, 0.1)),
}
MEASURES = ("accuracy", "macro F1", "F1", "cells")
BAG, BAGS = 300, 60  # of texts
TEXTS = {  # file -> column that orders or divides it, and the value that is left out; None leaves out the later half
    "blitzer4": ("domain", ("books", "dvd", "electronics", "kitchen_&_housewares")),
    "airline-3class-train": ("date", (None,)),
    "amazon-devices-train": ("date", (None,)),
    "kindle-store-train": ("date", (None,)),
}


def scores_of(found: Any, truth: np.ndarray) -> dict[str, float]:
    """Share of the intervals that contain the truth, errors and width, of one bag with a true confusion matrix."""
    f1 = 2 * np.diag(truth) / np.maximum(truth.sum(axis=0) + truth.sum(axis=1), 1e-12)
    values = (np.trace(truth), f1.mean(), f1, truth)
    measures = (found.accuracy, found.macro_f1, found.f1, found.confusion)
    scores = {
        name: float(np.mean((value >= one.lower - 1e-9) & (value <= one.upper + 1e-9)))
        for name, one, value in zip(MEASURES, measures, values, strict=True)
    }
    width = float(found.accuracy.upper - found.accuracy.lower)
    return scores | {"error": float(found.accuracy.estimate - values[0]), "width": width}


def confusion_of(codes: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """The true confusion matrix."""
    return np.bincount(codes * k + labels, minlength=k * k).reshape(k, k) / len(codes)


def simulate(task: tuple[str, int, int, int, int]) -> list[dict[str, Any]]:
    """All bags of one training set."""
    import quanet

    name, k, training, seed, bags = task
    rng = np.random.default_rng([seed, k, training])
    source = quanet.Gaussians(k=k, distance=DISTANCE)
    X, y = source.draw(np.full(k, 1 / k), training, rng=rng)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantifier = getattr(quanet, name)().fit(X, y)
        for n, share, _ in itertools.product(SIZES, SHARES[k], range(bags)):
            X, codes = source.draw(share, n, rng=rng)
            read = quantifier.read(X)
            found = quanet.predict_accuracy(quantifier, read, LEVEL, drift=False)
            truth = confusion_of(codes, read.values[:, :k].argmax(axis=1), k)
            rows.append({"method": name, "k": k, "training": training, "n": n, **scores_of(found, truth)})
    return rows


def natural(task: tuple[str, str, Any, str]) -> list[dict[str, Any]]:
    """Bags of the same kind as the training data, and of the part that was left out."""
    import pandas as pd

    from quanet import EMQ, Bags, predict_accuracy, predict_interval_bags
    from quanet.evaluation.accuracy import LabelErrors
    from quanet.uncertainty.relearning import as_full_fit

    file, column, value, folder = task
    table = pd.read_parquet(Path(folder) / f"{file}.parquet").sample(frac=1, random_state=0)
    apart = table[column] == value if value else table[column] > table[column].sort_values().iloc[len(table) // 2]
    own = table[~apart]
    train, same = own[: 2 * len(own) // 3], own[2 * len(own) // 3 :]
    rng, rows = np.random.default_rng(0), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantifier = EMQ().fit(train["text"].tolist(), train["label"].to_numpy())
        held_out = as_full_fit(quantifier).held_out_.doubles()  # type: ignore[union-attr]
        errors, k = LabelErrors.of(held_out, quantifier.prior_), held_out.k
        rates = np.stack([np.bincount(errors.labels[errors.codes == c], minlength=k) for c in range(k)])
        recall = np.diag(rates) / rates.sum(axis=1)
        for name, part in (("same", same), (value or "later", table[apart])):
            read = quantifier.read(part["text"].tolist())
            codes = np.searchsorted(quantifier.classes_, part["label"])
            members = [np.flatnonzero(codes == c) for c in range(k)]
            if min(map(len, members)) < 20:
                continue
            for _ in range(BAGS):
                counts = rng.multinomial(BAG, rng.dirichlet(np.ones(k)))
                chosen = np.concatenate([rng.choice(m, n) for m, n in zip(members, counts, strict=True)])
                interval = predict_interval_bags(quantifier, read, Bags(chosen[None]), LEVEL).of_bag(0)
                found = predict_accuracy(quantifier, read.take(chosen), LEVEL, interval=interval)
                truth = confusion_of(codes[chosen], read.values[chosen, :k].argmax(axis=1), k)
                rows.append(
                    {"file": file, "part": name, "left out": value or "later half", **scores_of(found, truth)}
                    | {"rates": float(interval.estimate @ recall - np.trace(truth))}
                )
    return rows


def summary(rows: list[dict[str, Any]], keys: tuple[str, ...], errors: tuple[str, ...]) -> list[str]:
    """A Markdown table: coverage in % by keys, root mean square errors and width in points."""
    import pandas as pd

    table = pd.DataFrame(rows)
    lines = [
        f"| {' | '.join(keys)} | bags | {' | '.join(MEASURES)} | {' | '.join(errors)} | width |",
        f"|{'---|' * (len(keys) + len(MEASURES) + len(errors) + 2)}",
    ]
    for values, part in table.groupby(list(keys), sort=False):
        cells = [str(one) for one in (values if isinstance(values, tuple) else (values,))]
        cells += [f"{len(part):,}", *(f"{100 * part[name].mean():.1f}" for name in MEASURES)]
        cells += [f"{100 * np.sqrt((part[name] ** 2).mean()):.1f}" for name in errors]
        cells.append(f"{100 * part['width'].mean():.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Run everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--bags", type=int, default=2)
    parser.add_argument("--texts", type=int, help="number of text tasks; default all")
    parser.add_argument(
        "--data", default="data", help="folder of the training files of texts; drift is skipped if missing"
    )
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    started = time.time()
    tasks = [(*one, given.bags) for one in itertools.product(METHODS, SHARES, TRAININGS, range(given.seeds))]
    files = [
        (file, column, value, given.data)
        for file, (column, values) in TEXTS.items()
        for value in values
        if (Path(given.data) / f"{file}.parquet").exists()
    ]
    files = files[: given.texts]
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = [pool.submit(natural, one) for one in files]  # the longest first
        simulated = [row for rows in pool.map(simulate, tasks) for row in rows]
        texts = [row for future in waiting for row in future.result()]
    total = [dict(row, all="all") for row in simulated]
    lines = [
        "# Expected accuracy: coverage",
        "",
        f"`python benchmarks/expected_accuracy.py --jobs {given.jobs} --seeds {given.seeds} --bags {given.bags} "
        "--data FOLDER`, "
        f"{time.time() - started:.0f} s, Python {platform.python_version()}, quanet {version('quanet')}, "
        f"numpy {np.__version__}.",
        "",
        f"Nominal level {LEVEL:.0%}. Coverage in %; error of the accuracy (root mean square) and width in points.",
        "",
        "## Prior shift (Gaussian classes)",
        "",
        *summary(total, ("all",), ("error",)),
        "",
        *summary(simulated, ("method", "k", "training", "n"), ("error",)),
    ]
    if texts:
        lines += [
            "",
            f"## Natural drift (texts, EMQ, bags of {BAG}; intervals with drift)",
            "",
            'Part "same": held-out texts like the training data. "rates": error of held-out rates alone, reweighted to '
            "the estimated prevalences. Bags of a part are drawn from the same few hundred texts, with repetition, so "
            "that the bags of a row share most of their error: a row is nearly one draw.",
            "",
            *summary(texts, ("file", "left out", "part"), ("error", "rates")),
        ]
    text = "\n".join(lines) + "\n"
    if given.output:
        given.output.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()

"""Time QuaNet against EMQ, and the paper's network against QuaPy's, on one core and in one run.

    OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/network_speed.py --output benchmarks/results/network-speed.md

The environment is that of `make bench`. `fit` is timed on features, with the default classifier in folds and with the
drift scale, as a user calls it. Bags are those of the paper: 500 rows; QuaPy's network gets posteriors and embeddings
with 100 numbers. The cost of a training bag is that of one more epoch, divided by its bags. The cost of a predicted bag
is that of a whole call, including rows, divided by its bags.
"""

import argparse
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin

from quanet import APP, EMQ, UPP, Gaussians, QuaNet
from quanet.nn import paper as paper_network

SIZE, EMBEDDING = 500, 100


def rows(n: int, *, seed: int) -> tuple[Any, Any]:
    """Posteriors and embeddings (n, 2 + 100), and labels: the classifier uses a part of the embedding."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    embedding = rng.normal(size=(n, EMBEDDING)) + 0.15 * y[:, None]
    positive = 1 / (1 + np.exp(-(0.15 * embedding.sum(axis=1) - 1.1)))
    return np.column_stack([1 - positive, positive, embedding]), y


class Halves(ClassifierMixin, BaseEstimator):
    """A classifier for QuaPy: its instances are posteriors and embedding already."""

    def fit(self, _X: Any, y: Any) -> "Halves":
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return X[:, :2]

    def transform(self, X: Any) -> Any:
        return X[:, 2:].astype(np.float32)

    def predict(self, X: Any) -> Any:
        return self.classes_[X[:, :2].argmax(axis=1)]


def quapy_network(X: Any, y: Any, *, epochs: int, bags: int, folder: str) -> Any:
    """QuaPy's QuaNet, trained for so many epochs."""
    from quapy.method.meta import QuaNet as Peer

    made = Peer(
        Halves().fit(X, y),
        fit_classifier=False,
        sample_size=SIZE,
        n_epochs=epochs + 1,  # its epochs count from one up to, not including, this number
        tr_iter_per_poch=bags,
        va_iter_per_poch=2,  # the fewest it can draw
        device="cpu",
        checkpointdir=folder,
    )
    return made.fit(X, y)


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of this process, which has one thread."""
    started = time.process_time()
    work()
    return time.process_time() - started


def fits(rounds: int) -> list[str]:
    """Seconds of `fit`, QuaNet's over EMQ's."""
    lines = [
        "## fit",
        "",
        "| classes | training rows | EMQ, s | QuaNet, s | QuaNet over EMQ |",
        "|---|---|---|---|---|",
    ]
    for k, n in ((2, 300), (2, 3000), (2, 20_000), (5, 3000)):
        X, y = Gaussians(k=k).draw(np.full(k, 1 / k), n, rng=0)
        times = [
            [seconds(lambda m=method, X=X, y=y: m().fit(X, y)) for method in (EMQ, QuaNet)] for _ in range(rounds + 1)
        ]
        emq, quanet = np.median(times[1:], axis=0)  # imports and first calls are not timed
        lines.append(f"| {k} | {n:,} | {emq:.3f} | {quanet:.3f} | {quanet / emq:.2f} |")
    return [*lines, ""]


def estimates(rounds: int) -> list[str]:
    """Seconds of estimates after reading, and of estimates with intervals."""
    lines = [
        "## Estimates",
        "",
        "| classes | training rows | 2,100 bags of 500, s | with intervals, s | one bag, ms | with interval, ms |",
        "|---|---|---|---|---|---|",
    ]
    for k, n in ((2, 300), (2, 3000), (2, 20_000), (3, 1000), (5, 1000)):
        source = Gaussians(k=k)
        quantifier = QuaNet().fit(*source.draw(np.full(k, 1 / k), n, rng=0))
        pool, labels = source.draw(np.full(k, 1 / k), 10_000, rng=1)
        bags = APP().draw(labels, rng=2) if k == 2 else UPP(bag_size=SIZE, repeats=2100).draw(labels, rng=2)
        one = pool[bags.indices[0]]
        calls: list[Callable[[], Any]] = [
            lambda q=quantifier, p=pool, b=bags: q.predict_bags(p, b),
            lambda q=quantifier, p=pool, b=bags: q.predict_interval_bags(p, b, drift=False),
            lambda q=quantifier, x=one: q.predict(x),
            lambda q=quantifier, x=one: q.predict_interval(x, drift=False),
        ]
        times = np.median([[seconds(call) for call in calls] for _ in range(rounds + 1)][1:], axis=0)
        whole = " | ".join(f"{value:.2f}" for value in times[:2])
        lines.append(f"| {k} | {n:,} | {whole} | " + " | ".join(f"{1e3 * value:.1f}" for value in times[2:]) + " |")
    return [*lines, ""]


def networks(rounds: int) -> list[str]:
    """The paper's network here and in QuaPy, by training and predicted bag; and QuaNet, which is not trained."""
    recipe = replace(paper_network.RECIPE, sizes=(SIZE, SIZE), batches=5, stop_batches=1)  # an epoch of seconds
    paper_network.RECIPE = recipe
    X, y = rows(6000, seed=0)
    pool, labels = rows(10_000, seed=1)
    few, many = (UPP(bag_size=SIZE, repeats=b).draw(labels, rng=2) for b in (60, 1000))
    with tempfile.TemporaryDirectory() as folder:
        peer = quapy_network(X, y, epochs=1, bags=5, folder=folder)

    def trained(epochs: int) -> Any:
        return QuaNet.paper("precomputed", max_epochs=epochs, random_state=0).fit(X, y)

    ours, once = trained(1), QuaNet("precomputed").fit(X[:, :2], y)
    once.predict_bags(pool[:, :2], few)
    training: dict[str, list[float]] = {"QuaPy's QuaNet": [], "QuaNet.paper": []}
    predicting: dict[str, list[float]] = {**{name: [] for name in training}, "QuaNet": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            one, two = (seconds(lambda e=e: quapy_network(X, y, epochs=e, bags=60, folder=folder)) for e in (1, 2))
        training["QuaPy's QuaNet"].append((two - one) / 61)  # its two bags of validation cost about one of training
        one, two = (seconds(lambda e=e: trained(e)) for e in (1, 2))
        training["QuaNet.paper"].append((two - one) / (recipe.bags * recipe.batches))
        calls = {
            "QuaPy's QuaNet": seconds(lambda: [peer.predict(pool[row]) for row in few.indices]) / len(few),
            "QuaNet.paper": seconds(lambda: ours.predict_bags(pool, few)) / len(few),
            "QuaNet": seconds(lambda: once.predict_bags(pool[:, :2], many)) / len(many),
        }
        for name, value in calls.items():
            predicting[name].append(value)
    lines = ["## Networks", "", "Milliseconds of a bag, median; in brackets QuaPy's time over it.", ""]
    lines += ["| | training | prediction |", "|---|---|---|"]
    for name in predicting:
        cells = [name]
        for found in (training, predicting):
            if name in found:
                ratio = np.median(np.array(found["QuaPy's QuaNet"]) / np.array(found[name]))
                cells.append(f"{1e3 * np.median(found[name]):.2f} ({ratio:.1f})")
            else:
                cells.append("none")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def million() -> str:
    """Seconds of one bag of a million rows."""
    quantifier = QuaNet().fit(*Gaussians().draw([0.5, 0.5], 2000, rng=0))
    bag = quantifier.represent(Gaussians().draw([0.5, 0.5], 1_000_000, rng=1)[0])
    quantifier.aggregate(bag[:1000])
    return f"One bag of {len(bag):,} rows: {seconds(lambda: quantifier.aggregate(bag)):.2f} s."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        found = [*fits(arguments.rounds), *estimates(arguments.rounds), million(), "", *networks(arguments.rounds)]
    names = ("quanet", "QuaPy", "numpy", "torch")
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    head = [
        "# The speed of QuaNet",
        "",
        f"One core, CPU seconds, {arguments.rounds} rounds; {machine}, {versions}.",
        "",
    ]
    text = "\n".join(head + found)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()

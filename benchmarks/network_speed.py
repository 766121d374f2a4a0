"""Time QuaNet against QuaPy's on one core: bags of 500 rows with 100-d embeddings, alternating in one run.

    .venv-bench/bin/python benchmarks/network_speed.py --output benchmarks/results/network-speed.md

The environment is that of `make bench`. Both libraries get the same posteriors and embeddings of the same instances.
The cost of a training bag is the cost of one more epoch, divided by its bags. The cost of a predicted bag is that of a
whole call, including rows, divided by its bags. quanet's guard is opened by force, so that its network is really used;
with the guard shut, estimates cost what the base costs. Last, one bag of a million rows, in its own process.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin

from quanet import UPP, QuaNet
from quanet.nn import quanet as estimator

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


def training(rounds: int) -> dict[str, list[float]]:
    """Seconds per training bag, by library, one value per round."""
    X, y = rows(6000, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        quapy_network(X, y, epochs=1, bags=5, folder=folder)  # imports and first calls are not timed
    paper_bags = estimator.RECIPES["paper"].bags * estimator.RECIPES["paper"].batches
    bags = estimator.RECIPES["residual"].bags * estimator.RECIPES["residual"].batches
    found: dict[str, list[float]] = {"QuaPy": [], "quanet": [], "quanet, paper": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            one, two = (seconds(lambda e=e: quapy_network(X, y, epochs=e, bags=60, folder=folder)) for e in (1, 2))
            found["QuaPy"].append((two - one) / 61)  # its two bags of validation cost about one of training
        one, three = (
            seconds(lambda e=e: QuaNet("precomputed", max_epochs=e, random_state=0).fit(X, y)) for e in (1, 3)
        )
        found["quanet"].append((three - one) / 2 / bags)
        one, two = (
            seconds(lambda e=e: QuaNet.paper("precomputed", max_epochs=e, random_state=0).fit(X, y)) for e in (1, 2)
        )
        found["quanet, paper"].append((two - one) / paper_bags)
    return found


def prediction(rounds: int) -> dict[str, list[float]]:
    """Seconds per predicted bag, by library, one value per round."""
    X, y = rows(6000, seed=0)
    pool, labels = rows(10_000, seed=1)
    few, many = (UPP(bag_size=SIZE, repeats=b).draw(labels, rng=2) for b in (60, 1000))
    with tempfile.TemporaryDirectory() as folder:
        peer = quapy_network(X, y, epochs=1, bags=2, folder=folder)
    open_, shut, paper = (
        QuaNet("precomputed", max_epochs=1, random_state=0).fit(X, y),
        QuaNet("precomputed", max_epochs=1, random_state=0).fit(X, y),
        QuaNet.paper("precomputed", max_epochs=1, random_state=0).fit(X, y),
    )
    open_.corrects_, shut.corrects_ = True, False
    found: dict[str, list[float]] = {"QuaPy": [], "quanet": [], "quanet, guard shut": [], "quanet, paper": []}
    for _ in range(rounds):
        found["QuaPy"].append(seconds(lambda: [peer.predict(pool[row]) for row in few.indices]) / len(few))
        found["quanet"].append(seconds(lambda: open_.predict_bags(pool, many)) / len(many))
        found["quanet, guard shut"].append(seconds(lambda: shut.predict_bags(pool, many)) / len(many))
        found["quanet, paper"].append(seconds(lambda: paper.predict_bags(pool, few)) / len(few))
    return found


def million() -> str:
    """Time and memory of one bag of a million rows."""
    quantifier = QuaNet("precomputed", max_epochs=1, random_state=0).fit(*rows(2000, seed=0))
    quantifier.corrects_ = True
    parts = [quantifier.represent(rows(100_000, seed=seed)[0]) for seed in range(10)]
    bag = np.concatenate(parts)
    started = time.perf_counter()
    quantifier.aggregate(bag)
    took = time.perf_counter() - started
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 2**20
    return f"One bag of {len(bag):,} rows: {took:.2f} s; the whole process took {peak:.2f} GB at its peak."


def table(title: str, found: dict[str, list[float]]) -> list[str]:
    lines = [f"## {title}", "", "| | ms per bag, median | QuaPy's time over it, median (range) |", "|---|---|---|"]
    for name, times in found.items():
        ratios = np.array(found["QuaPy"]) / np.array(times)
        spread = "1" if name == "QuaPy" else f"{np.median(ratios):.0f} ({ratios.min():.0f} to {ratios.max():.0f})"
        lines.append(f"| {name} | {1e3 * np.median(times):.3f} | {spread} |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--million", action="store_true", help="only the bag of a million rows")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.million:
        print(million())
        return
    # Bags of one size, as the peer's, in place of the 20 to 1,000 that quanet trains on.
    estimator.RECIPES["residual"] = replace(estimator.RECIPES["residual"], sizes=(SIZE, SIZE))
    estimator.RECIPES["paper"] = replace(estimator.RECIPES["paper"], batches=5, stop_batches=1)  # an epoch of seconds
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        found = training(arguments.rounds), prediction(arguments.rounds)
    alone = subprocess.run([sys.executable, __file__, "--million"], check=True, capture_output=True, text=True).stdout
    names = ("QuaPy", "numpy", "torch")
    lines = [
        "# QuaNet compared with QuaPy's QuaNet",
        "",
        f"One core, bags of {SIZE}, {EMBEDDING}-d embeddings, CPU seconds, {arguments.rounds} rounds; "
        f"{platform.machine()}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in names)
        + ".",
        "",
        *table("Training", found[0]),
        *table("Prediction", found[1]),
        alone.strip(),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()

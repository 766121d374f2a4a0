"""How many labels a method needs: errors and intervals of QuaNet and other methods with 100 to all training rows.

    python benchmarks/few_labels.py read FOLDER --output tmp/few --jobs 2
    python benchmarks/few_labels.py read FOLDER --folds 10 --rows 300 1000 0 --output tmp/10-folds --jobs 2
    python benchmarks/few_labels.py measure tmp/few --output tmp/few.json
    python benchmarks/few_labels.py measure tmp/10-folds --methods QuaNet --output tmp/own.json
    python benchmarks/few_labels.py measure tmp/few --peers --rows 100 300 1000 --repetitions 5 --output tmp/peers.json
    python benchmarks/few_labels.py measure tmp/few --unseen 1 --repetitions 10 --output tmp/before.json
    python benchmarks/few_labels_table.py tmp/few.json --own tmp/own.json --peers tmp/peers.json \
        --before tmp/before.json --simulations tmp/simulations.json \
        --output benchmarks/results/few-labels.md --picture docs/few-labels.png

FOLDER contains the Parquet files named in `SETS`, with columns text and label. Every repetition cuts a data set into
random halves, draws N training rows from the first (at least 10 of each class), and fits the default text classifier in
folds: five, the default of EMQ and PACC, or ten, that of QuaNet with 200 to 2,000 texts. Bags are drawn from the second
half at the 21 prevalences of the paper. So only prevalences differ between training data and bags.

`read` runs the classifiers, once for all methods, and keeps what they say of held-out rows and of the second half.
`measure` asks every method about the same bags. Repetitions that are already in the output are not run again.
"""

import argparse
import json
import os
import platform
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SETS = {
    "imdb": ("imdb-train", "imdb-test"),
    "blitzer4": ("blitzer4",),
    "film-reviews-ko": ("film-reviews-ko",),
    "shopping-zh": ("shopping-zh",),
    "kindle-device": ("kindle-device-train", "kindle-device-test"),
    "kindle-store": ("kindle-store-train", "kindle-store-test"),
    "amazon-devices": ("amazon-devices-train", "amazon-devices-test"),
    # No choice was made with these.
    "airline-2class": ("airline-3class-train", "airline-3class-test"),
    "joy-sadness": ("emotions-multilabel",),
    "neutral-admiration": ("emotions-multilabel",),
    # Three classes.
    "airline-3class": ("airline-3class-train", "airline-3class-test"),
}
EMOTIONS = {"joy-sadness": ("sadness", "joy"), "neutral-admiration": ("neutral", "admiration")}
REPETITIONS = {100: 100, 300: 100, 1000: 40, 3000: 10, 0: 10}  # of every number of training rows; 0 means all
FEWEST = 10  # training rows of each class
POOL = 3000  # rows of each class in the pool that bags are drawn from, at most
TRIES = 20  # draws of N rows, after which a set is left out that does not have enough rows of each class


class Task(NamedTuple):
    """One repetition: a data set, a number of training rows and a seed."""

    name: str
    rows: int
    seed: int

    @property
    def file(self) -> str:
        """The file with its posteriors."""
        return f"{self.name}-{self.rows or 'all'}-{self.seed}.npz"


def log_odds(posteriors: Any) -> Any:
    """Log odds of the other classes against the first: (n,) of two classes, (n, k - 1) of more.

    Single precision keeps those of certain posteriors apart.
    """
    clipped = np.clip(np.asarray(posteriors, dtype=float), 1e-30, 1)
    odds = np.log(clipped[:, 1:] / clipped[:, :1]).astype(np.float32)
    return odds[:, 0] if odds.shape[1] == 1 else odds


def load(folder: Path, name: str) -> tuple[Any, Any]:
    """Texts and labels of a data set."""
    import pandas as pd

    columns = ["text", "labels" if name in EMOTIONS else "label"]
    data = pd.concat([pd.read_parquet(folder / f"{part}.parquet", columns=columns) for part in SETS[name]])
    data = data.dropna(subset="text")
    if name in EMOTIONS:
        first, second = EMOTIONS[name]
        data = data.assign(label=(data["labels"] == second).astype(int))[data["labels"].isin([first, second])]
    if name == "airline-2class":
        data = data[data["label"] < 2]
    return data["text"].to_numpy(dtype=object), data["label"].to_numpy()


def read_task(folder: Path, output: Path, folds: int, task: Task) -> str:
    """Fit the text classifier in folds, and keep its posteriors of held-out rows and of the pool."""
    from quanet import EMQ
    from quanet.drift.scale import without_drift

    texts, labels = load(folder, task.name)
    rng = np.random.default_rng([task.seed, len(labels)])
    order = rng.permutation(len(labels))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    for _ in range(TRIES):
        chosen = rng.permutation(first)[: task.rows or len(first)]
        if np.bincount(labels[chosen], minlength=labels.max() + 1).min() >= FEWEST and len(chosen) >= task.rows:
            break
    else:
        return "left out"
    pool = np.concatenate([second[labels[second] == c][:POOL] for c in np.unique(labels)])
    with warnings.catch_warnings(), without_drift():
        warnings.simplefilter("ignore")
        start = time.process_time()
        quantifier = EMQ(cv=folds).fit(texts[chosen].tolist(), labels[chosen])
        seconds = time.process_time() - start
        read = quantifier.read(texts[pool].tolist()).values
    held = quantifier.held_out_
    assert held is not None
    missing = np.empty(0)
    partial = output / f".{task.file}"
    with partial.open("wb") as file:
        np.savez(
            file,
            held=log_odds(held.inputs),
            codes=held.codes.astype(np.int8),
            groups=missing if held.groups is None else held.groups.astype(np.int32),
            fold_gap=missing if held.fold_gap is None else held.fold_gap,
            growth=held.growth,
            pool=log_odds(read),
            truth=labels[pool].astype(np.int8),
            seconds=seconds,
        )
    partial.replace(output / task.file)
    return f"{seconds:.1f} s"


def read(options: argparse.Namespace) -> None:
    options.output.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(name, rows, seed)
        for rows in options.rows
        for seed in range(min(REPETITIONS[rows], options.repetitions))
        for name in options.sets
        if not (options.output / Task(name, rows, seed).file).exists()
    ]
    with ProcessPoolExecutor(options.jobs) as processes:
        running = {
            processes.submit(read_task, options.folder, options.output, options.folds, task): task for task in tasks
        }
        for number, done in enumerate(as_completed(running), 1):
            print(f"{number}/{len(tasks)} {running[done].file}: {done.result()}", file=sys.stderr, flush=True)


def posteriors_of(odds: Any) -> Any:
    """Posteriors (n, k) with these log odds."""
    from scipy.special import expit, softmax

    values = np.asarray(odds, dtype=float)
    if values.ndim == 1:
        return np.column_stack([expit(-values), expit(values)])
    return softmax(np.column_stack([np.zeros(len(values)), values]), axis=1)


def fitted_methods(kept: Any) -> dict[str, Any]:
    """EMQ, PACC and QuaNet as they would be after `fit` with the classifier whose posteriors were kept."""
    from quanet import EMQ, PACC, QuaNet
    from quanet.drift.scale import without_drift
    from quanet.held_out import HeldOut

    held, codes = posteriors_of(kept["held"]), kept["codes"].astype(int)
    groups = kept["groups"].astype(int) if kept["groups"].size else None
    gap = kept["fold_gap"] if kept["fold_gap"].size else None
    found = {}
    for kind in (EMQ, PACC, QuaNet):
        with without_drift():
            found[kind.__name__] = quantifier = kind("precomputed").fit(held, codes)
        quantifier._keep_held_out(HeldOut(held, codes, held.shape[1], groups, gap, float(kept["growth"])))  # noqa: SLF001
    return found


def measure_task(folder: Path, options: argparse.Namespace, file: str) -> dict[str, dict[str, float]]:
    """Errors and intervals of every method on bags of one repetition, by method and bag size."""
    from quanet import APP, UPP
    from quanet.metrics import absolute_error, kullback_leibler_divergence, relative_absolute_error
    from quanet.uncertainty.intervals import predict_interval_bags

    kept, found = np.load(folder / file), {}
    pool, truth = posteriors_of(kept["pool"]), kept["truth"].astype(int)
    seed = int(file.rsplit("-", 1)[1][:-4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods = {name: method for name, method in fitted_methods(kept).items() if name in options.methods}
        two = pool.shape[1] == 2  # DyS is for two classes
        peers = peer_methods(kept) if options.peers and two else {}
        for size in options.sizes:
            if pool.shape[1] == 2:
                bags = APP(bag_size=size, repeats=options.repeats).draw_quietly(truth, rng=[seed, size])
            else:
                bags = UPP(bag_size=size, repeats=21 * options.repeats).draw_quietly(truth, rng=[seed, size])
            right, eps = bags.prevalences, 1 / (2 * size)
            estimates = {name: method(pool[bags.indices]) for name, method in peers.items()}
            ends = {}
            for name, quantifier in methods.items():
                interval = predict_interval_bags(quantifier, pool, bags, drift=False)
                estimates[name], ends[name] = interval.estimate, (interval.lower[:, 1:], interval.upper[:, 1:])
            for name, estimate in estimates.items():
                facts = {
                    "ae": absolute_error(right, estimate),
                    "rae": relative_absolute_error(right, estimate, eps=eps),
                    "kld": kullback_leibler_divergence(right, estimate, eps=eps),
                }
                if name in ends:
                    lower, upper = ends[name]
                    share = right[:, 1:]
                    miss = np.maximum(lower - share, 0) + np.maximum(share - upper, 0)
                    facts |= {"coverage": miss <= 1e-12, "width": upper - lower, "score": upper - lower + 40 * miss}
                found[f"{name}/{size}"] = {key: float(np.mean(value)) for key, value in facts.items()}
    return found


def peer_methods(kept: Any) -> dict[str, Any]:
    """QuaPy's methods, given the same posteriors: functions from bags (b, n, 2) to estimates (b, 2)."""
    import quapy

    from peer_methods import PassOn

    theirs = quapy.method.aggregative
    held, codes = posteriors_of(kept["held"]), kept["codes"].astype(int)
    # Vector scaling, because its temperature scaling divides by 0 while it is fitted.
    calibrated = partial(theirs.EMQ, val_split=(held, codes), calib="vs", exact_train_prev=False)
    kinds = {"EMQ": theirs.EMQ, "EMQ, calibrated": calibrated, "PACC": theirs.PACC}
    kinds |= {"KDEyML": theirs.KDEyML, "DyS": theirs.DyS}

    def of(kind: Any) -> Any:
        fitted = kind(PassOn().fit(held, codes), fit_classifier=False).fit(held, codes)
        return lambda bags: np.stack([np.asarray(fitted.aggregate(bag)) for bag in bags])

    return {f"QuaPy {name}": of(kind) for name, kind in kinds.items()}


def measure(options: argparse.Namespace) -> None:
    found = json.loads(options.output.read_text()) if options.output.exists() else {"tasks": {}}
    if options.unseen is not None:
        from quanet.uncertainty import unseen_errors

        unseen_errors.PRIOR = options.unseen  # worker processes inherit it
    files = [
        Task(name, rows, seed).file
        for rows in options.rows
        for seed in range(min(REPETITIONS[rows], options.repetitions))
        for name in options.sets
    ]
    files = [file for file in files if (options.folder / file).exists() and file not in found["tasks"]]
    found["versions"] = {name: version(name) for name in ("quanet", "numpy", "scikit-learn")} | {
        "python": platform.python_version()
    }
    saved = time.monotonic()
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as processes:
        running = {processes.submit(measure_task, options.folder, options, file): file for file in files}
        for number, done in enumerate(as_completed(running), 1):
            found["tasks"][running[done]] = done.result()
            if time.monotonic() - saved > 20 or number == len(files):
                partial = options.output.with_suffix(".partial")
                partial.write_text(json.dumps(found))
                partial.replace(options.output)
                print(f"{number}/{len(files)}", file=sys.stderr, flush=True)
                saved = time.monotonic()


def add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    command.add_argument("--rows", nargs="+", type=int, default=list(REPETITIONS), help="0 for all")
    command.add_argument("--repetitions", type=int, default=100, help="at most")
    command.add_argument("--jobs", type=int, default=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    reading = commands.add_parser("read")
    reading.add_argument("folder", type=Path)
    reading.add_argument("--output", type=Path, required=True)
    reading.add_argument("--folds", type=int, default=5)
    add_selection(reading)
    reading.set_defaults(run=read)
    measuring = commands.add_parser("measure")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--output", type=Path, required=True)
    measuring.add_argument("--sizes", nargs="+", type=int, default=[50, 500])
    measuring.add_argument("--repeats", type=int, default=10, help="bags of each of 21 prevalences")
    measuring.add_argument("--methods", nargs="+", default=["EMQ", "PACC", "QuaNet"])
    measuring.add_argument("--unseen", type=float, help="prior of errors that were never seen; 0.2.0 had 1")
    measuring.add_argument("--peers", action="store_true", help="also QuaPy's methods, which are slow")
    add_selection(measuring)
    measuring.set_defaults(run=measure)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    main()

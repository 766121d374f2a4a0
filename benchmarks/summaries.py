"""How far estimates from cells and samples of a state are from the estimate of all rows, and coverage of intervals.

    python benchmarks/summaries.py --raw summaries.jsonl -o benchmarks/results/summaries.md    # hours; or as in there
    python benchmarks/summaries.py --rows 20000 --caps 1024 --classes 2 --trainings 2     # small

Posteriors are generated: a logistic regression of Gaussian classes at several distances, as it is and overconfident.
Each bag is larger than the cap, so that its state keeps cells (few classes) or a sample (many). Its estimate is
compared with that of all rows, for all methods and prevalences from .002 to .98, with and without weights. --raw
makes a run resumable: a finished job is not computed again.
"""

import argparse
import itertools
import json
import platform
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import quanet
from quanet import bags
from quanet.corpus.batch_reader import BatchReader, BatchRows, own_columns, reads_smoothly
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.layout import Layout
from quanet.corpus.state import State
from quanet.data.instances import InputColumns, Inputs

GROUPS = (1, 1000, 100_000)  # whose default caps are measured
CLASSES = (2, 3, 5, 10)
WORLDS = ((1.5, 1.0), (3.0, 0.5))  # distance of the classes, and what log posteriors are divided by
SLOW = ("Ensemble", "KDEyHD")  # minutes for a bag of three classes
OTHERS: dict[str, Any] = {  # what cannot be called with posteriors alone
    "FrankHall": lambda: quanet.FrankHall(quanet.EMQ("precomputed")),
    "Median": lambda: quanet.Median(quanet.DMy("precomputed"), {"bins": [4, 8]}),
    "OneVsRest": lambda: quanet.OneVsRest(quanet.DyS("precomputed")),
    "Ensemble": lambda: quanet.Ensemble(quanet.EMQ("precomputed")),
    "MatchingX": lambda: quanet.MatchingX(representation=quanet.Histogram(10, span=None)),
}
OF_FIVE = ("EMQ", "PACC", "KDEyML", "KDEyCS", "DMy", "CvMy", "Friedman", "FrankHall", "HistNetQ")  # that are measured
OF_TEN = ("EMQ", "PACC", "KDEyCS", "DMy")
NO_ROWS = ("AutoQuantifier", "GridSearchQ", "ReadMe", "TrainPrevalence")  # others in disguise; texts; no estimate
TRAINING = 1000  # held-out posteriors that the methods learn from
PARTS = 8  # partitions of a bag
LIMIT = 0.0005
LEVEL = 0.95


def prevalences(k: int) -> dict[str, np.ndarray]:
    """Named prevalences from the centre of the simplex to its corners."""
    corner, skewed, absent = np.full(k, 0.002), np.full(k, 0.1 / (k - 1)), np.full(k, 0.997 / (k - 1))
    corner[0], skewed[0], absent[-1] = 1 - 0.002 * (k - 1), 0.9, 0.003
    return {"equal": np.full(k, 1 / k), "corner": corner, "skewed": skewed, "one near 0": absent}


def methods_of(k: int, names: list[str]) -> dict[str, str]:
    """The methods for k classes and what they read; all of them if no names are given."""
    listed = quanet.list_methods()
    needs = dict(zip(listed["name"], listed["needs"], strict=True))
    two = set(listed["name"][listed["classes"] == "two"])
    every = [name for name in needs if name not in (*NO_ROWS, *SLOW)]
    return {name: needs[name] for name in names or every if k == 2 or name not in two}


class World:
    """Generated posteriors, and methods fitted to them."""

    def __init__(self, k: int, distance: float, temperature: float, methods: dict[str, str], seed: int) -> None:
        self.source, equal = quanet.Gaussians(k=k, distance=distance), np.full(k, 1 / k)
        self.temperature, self.k = temperature, k
        self.classifier = LogisticRegression(max_iter=1000).fit(*self.source.draw(equal, 2000, rng=seed))
        X, y = self.source.draw(equal, TRAINING, rng=seed + 1)
        self.needs, self.fitted = methods, {}
        for name, needs in methods.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = () if needs == "features" else ("precomputed",)
                made = OTHERS[name]() if name in OTHERS else getattr(quanet, name)(*given)
                self.fitted[name] = made.fit(self.instances(X, needs), y)

    def instances(self, X: np.ndarray, needs: str) -> np.ndarray:
        """What a method reads: features, posteriors, or posteriors and an embedding; these not calibrated."""
        if needs == "features":
            return X
        found = self.posteriors(X)
        if needs != "embeddings":
            return found
        flat = found**0.3
        return np.hstack([flat / flat.sum(axis=1, keepdims=True), X, np.sin(2 * X), X**2]).astype(np.float32)

    def posteriors(self, X: np.ndarray) -> np.ndarray:
        """Posteriors (n, k) with the digits that states keep."""
        logarithms = self.classifier.predict_log_proba(X) / self.temperature
        found = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        return (found / found.sum(axis=1, keepdims=True)).astype(np.float32)

    def bag(self, prevalence: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Features and classes of n instances, in random order."""
        X, y = self.source.draw(prevalence, n, rng=seed)
        order = np.random.default_rng(seed).permutation(n)
        return X[order], y[order]


@contextmanager
def capped(cap: int) -> Iterator[None]:
    """Keep so many rows of a group."""
    before, Layout.most_rows = Layout.most_rows, lambda *_: cap  # type: ignore[method-assign]
    try:
        yield
    finally:
        Layout.most_rows = before  # type: ignore[method-assign]


@contextmanager
def precise_weights() -> Iterator[None]:
    """Repeat instances with weights more often, so that the rounding of weights is not taken for an error of states."""
    before = bags.REPEATS, bags.MOST_REPEATED
    bags.REPEATS, bags.MOST_REPEATED = 8, 2**23
    try:
        yield
    finally:
        bags.REPEATS, bags.MOST_REPEATED = before


def summary_of(quantifier: Any, read: np.ndarray, weights: np.ndarray | None, cap: int) -> Any:
    """What the state of a bag keeps, as instances and bags; the bag was read in several partitions."""
    names = tuple(f"p{at}" for at in range(read.shape[1]))
    reader = BatchReader(
        quantifier, InputColumns(features=names), weight=None if weights is None else "views", model="benchmark"
    )
    with capped(cap):
        states = []
        for part in np.array_split(np.arange(len(read)), PARTS):
            inputs = Inputs(read[part])
            rows = BatchRows(
                instances=inputs.values,
                groups=[()],
                codes=np.zeros(len(part), dtype=np.int32),
                weights=None if weights is None else weights[part],
                left_out=np.zeros(len(part), dtype=np.int8),
                labels=Counter(),
                inputs=inputs,
            )
            states.append(reader.state(rows, str(part[0])))
        return reading_of(State.merge(states), quantifier)


def caps_of(quantifier: Any, read: np.ndarray, given: argparse.Namespace) -> dict[str, int]:
    """The caps to measure, by name: those given, or the defaults of some numbers of groups."""
    if given.caps:
        return {f"{cap:,} rows": cap for cap in given.caps}
    kind, own = own_columns(quantifier, read[:2])
    classes = len(quantifier.classes_) * quantifier.reads_posteriors
    layout = Layout(
        read.shape[1] + own.shape[1],
        classes,
        tuple(quantifier.prior_.tolist())[:classes],
        weighted=False,
        smooth=reads_smoothly(quantifier),
        own=kind,
        own_columns=own.shape[1],
    )
    caps = {f"{groups:,} group{'s' * (groups > 1)}": layout.most_rows(groups) for groups in given.groups}
    least = min(caps.values())  # of caps that hardly differ, the smallest is measured
    return {name: least if cap < 1.1 * least else cap for name, cap in caps.items()}


def estimate(quantifier: Any, reading: Any) -> np.ndarray:
    """The estimate (k,) of the only bag of a reading."""
    return np.asarray(quantifier.aggregate_bags(quantifier.rows(reading.instances.values), reading.bags())[0])


def errors_of(k: int, world: int, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The largest difference of a share from the estimate of all rows, for each method, bag and cap."""
    distance, temperature = WORLDS[world]
    fitted = World(k, distance, temperature, methods_of(k, given.methods), seed=10 * k + world + 100_000 * given.seed)
    weightings = (False,) if given.unweighted else (False, True)
    for (name, prevalence), weighted in itertools.product(prevalences(k).items(), weightings):
        X, _ = fitted.bag(prevalence, given.rows, seed=1 + given.seed)
        rng = np.random.default_rng(2 + given.seed)
        weights = np.exp(rng.normal(size=given.rows)).round(3) if weighted else None
        for method, quantifier in fitted.fitted.items():
            read = quantifier.read(fitted.instances(X, fitted.needs[method])).values.astype(np.float32)
            with precise_weights():
                whole = np.asarray(quantifier.predict(Inputs(read.astype(float)), weights))
            caps, kept = caps_of(quantifier, read, given), {}
            for cap in set(caps.values()):
                kept[cap] = float(
                    np.abs(estimate(quantifier, summary_of(quantifier, read, weights, cap)) - whole).max()
                )
            found = {name_of_cap: kept[cap] for name_of_cap, cap in caps.items()}
            yield {"k": k, "world": world, "bag": name, "weighted": weighted, "method": method, "errors": found}


def coverage_of(k: int, training: int, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """How many 95 % intervals contain the true prevalence, from all rows and from a state of few rows."""
    rng = np.random.default_rng([k, training, given.seed])
    world = World(
        k, 2.5, 1.0, methods_of(k, given.methods or ["EMQ", "PACC"]), seed=1000 * k + training + 100_000 * given.seed
    )
    for at in range(given.bags):
        prevalence = rng.dirichlet(np.ones(k))
        X, classes = world.bag(prevalence, given.bag_rows, seed=int(rng.integers(2**31)))
        posteriors, truth = world.posteriors(X), np.bincount(classes, minlength=k) / len(classes)
        for method, quantifier in world.fitted.items():
            reading = summary_of(quantifier, posteriors, None, given.bag_cap)
            whole = quantifier.predict_interval(Inputs(posteriors), LEVEL, drift=False)
            found = quantifier.predict_interval_bags(reading.instances, reading.bags(), LEVEL, drift=False).of_bag(0)
            yield {
                "k": k,
                "training": training,
                "at": at,
                "method": method,
                "covered": [float(((one.lower <= truth) & (truth <= one.upper)).mean()) for one in (whole, found)],
                "width": [float(one.width.mean()) for one in (whole, found)],
            }


def run(given: argparse.Namespace) -> list[dict[str, Any]]:
    """All lines, those of an earlier run included."""
    lines = []
    if given.raw and given.raw.exists():
        lines = [json.loads(line) for line in given.raw.read_text().splitlines()]
    done = {line["job"] for line in lines}
    jobs: list[tuple[str, Any, tuple[int, int]]] = []
    for k in given.classes:
        jobs += [(f"errors-{k}-{world}", errors_of, (k, world)) for world in range(len(WORLDS))]
    for k in given.classes:
        jobs += [(f"coverage-{k}-{training}", coverage_of, (k, training)) for training in range(given.trainings)]
    for name, function, arguments in jobs:
        if name in done or given.only_raw or (given.only_coverage and function is errors_of):
            continue
        begin = time.time()
        new = [line | {"job": name, "rows": given.rows} for line in function(*arguments, given)]
        print(f"{name}: {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
        lines += new
        if given.raw:
            with given.raw.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in new)
    return lines


PAGE = """# Summaries: estimates and intervals from states above the cap

Largest difference of any class's share from the estimate of all rows: {worlds} classifiers (weak and good, the good
one overconfident), 4 prevalences from .002 to .98; with two classes also with weights. It must be at most .0005 at the
default cap. That cap is smallest for very many groups, which is measured here: 256 rows for methods that read means or
a likelihood of two classes (CC, PCC, ACC, PACC, EMQ), 8,192 rows for other methods of two classes, 32,768 rows
for samples, which are kept of more classes, of features and of embeddings. Bags of 200,000 rows for two classes,
100,000 for more. No default was chosen with the seed of these tables. Python {python}, {versions}.

<!-- not run: a benchmark -->
```console
{commands}
```

{note}

## At the smallest default caps

{errors}

FrankHall has EMQ as members, OneVsRest has DyS, Median has DMy, MatchingX a histogram of 10 bins.
A dash: not measured, or not for so many classes. Left out: {left_out}.

## Coverage

95 % intervals (without drift, which is absent) of bags of {bag_rows:,} rows at prevalences uniform on the simplex, from
all rows and from a state of {bag_cap:,} rows; for each number of classes, {trainings} training sets of {training:,}
instances and {bags_each} bags of each. The standard error of a coverage is about {standard:.1f} points; both columns
are of the same bags, so their difference is more precise.

{coverage}
"""

COMMANDS = (
    "--classes 2 --groups 100000 --trainings 0",
    "--classes 3 --groups 100000 --trainings 0 --rows 100000 --unweighted",
    f"--classes 5 --groups 100000 --trainings 0 --rows 100000 --unweighted --methods {' '.join(OF_FIVE)}",
    f"--classes 10 --groups 100000 --trainings 0 --rows 100000 --unweighted --methods {' '.join(OF_TEN)}",
    "--classes 2 3 5 10 --only-coverage --methods EMQ PACC --trainings 200",
    "--trainings 200 --only-raw -o benchmarks/results/summaries.md",
)


def table(lines: list[dict[str, Any]], given: argparse.Namespace) -> str:
    """The results as Markdown."""
    errors, covered = ([line for line in lines if key in line] for key in ("errors", "covered"))
    worst: dict[tuple[str, int], float] = {}
    for line in errors:
        at = line["method"], line["k"]
        worst[at] = max(worst.get(at, 0.0), *line["errors"].values())
    classes = sorted({k for _, k in worst})
    shown = [f"| method | {' | '.join(f'{k} classes' for k in classes)} |", "|---|" + "---|" * len(classes)]
    for method in sorted({name for name, _ in worst}, key=str.lower):
        cells = [f"{worst[method, k]:.1e}" if (method, k) in worst else "-" for k in classes]
        shown.append(f"| {method} | {' | '.join(cells)} |")
    cover = ["| classes | method | all rows | state | width, all rows | state |", "|---|---|---|---|---|---|"]
    for k, method in sorted({(line["k"], line["method"]) for line in covered}):
        mine = [line for line in covered if (line["k"], line["method"]) == (k, method)]
        share, width = (np.mean([line[name] for line in mine], axis=0) for name in ("covered", "width"))
        cover.append(f"| {k} | {method} | {share[0]:.1%} | {share[1]:.1%} | {width[0]:.4f} | {width[1]:.4f} |")
    return PAGE.format(
        commands="\n".join(
            f"$ python benchmarks/summaries.py --seed {given.seed} --raw summaries.jsonl {one}" for one in COMMANDS
        ),
        worlds=len(WORLDS),
        python=platform.python_version(),
        versions=", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn")),
        errors="\n".join(shown),
        note=given.note,
        left_out=", ".join((*NO_ROWS, *SLOW)),
        bag_rows=given.bag_rows,
        bag_cap=given.bag_cap,
        trainings=given.trainings,
        training=TRAINING,
        bags_each=given.bags,
        standard=100 * (0.95 * 0.05 / max(given.trainings, 1)) ** 0.5,
        coverage="\n".join(cover),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--caps", type=int, nargs="+", default=[], help="instead of the default ones")
    parser.add_argument("--groups", type=int, nargs="+", default=GROUPS, help="whose default caps are measured")
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    parser.add_argument("--methods", nargs="+", default=[], help="instead of all of them")
    parser.add_argument("--unweighted", action="store_true", help="no bags with weights")
    parser.add_argument("--trainings", type=int, default=60, help="training sets of the coverage, for each k")
    parser.add_argument("--bags", type=int, default=2, help="bags of the coverage, for each training set")
    parser.add_argument("--bag-rows", type=int, default=20_000)
    parser.add_argument("--bag-cap", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1, help="defaults were chosen with 0")
    parser.add_argument("--raw", type=Path, help="lines of finished jobs")
    parser.add_argument("--only-raw", action="store_true", help="compute nothing, write what --raw has")
    parser.add_argument("--only-coverage", action="store_true", help="compute no errors")
    parser.add_argument("--note", default="", help="a remark above the table of errors")
    parser.add_argument("--output", "-o", type=Path)
    given = parser.parse_args()
    text = table(run(given), given)
    print(text) if given.output is None else given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

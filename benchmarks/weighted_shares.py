"""Coverage of intervals for shares of weights, such as views, by simulation with known truth.

    python benchmarks/weighted_shares.py --jobs 16 --trainings 32 --output benchmarks/results/weighted-shares.md

With --raw the numbers are written to a file, and --add adds those of earlier runs with other seeds (--first).

Every training set is drawn, and a classifier and the quantifiers are fitted to it. Bags are drawn at prevalences from
.05 to .5, then the weights. The truth is the share of the weight of each class in the bag. Drift is left out, because
there is none: intervals that include it are wider.
"""

import argparse
import itertools
import json
import platform
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 0.95
SIZES = (100, 400, 2000)
SHARES = (0.05, 0.2, 0.5)  # of the second class, among the instances
TRAINING = 1000  # instances
MOST = 400  # instances in a bag for kinds of intervals that are never chosen automatically, to save time
QUANTIFIERS: dict[str, dict[str, Any]] = {  # settings of the intervals
    "EMQ": {},
    "PACC": {},
    "ACC": {},
    "DyS": {},
    "KDEyML": {},
    "EMQ, bootstrap": {"method": "bootstrap", "resamples": 200},
    "EMQ, bayes": {"method": "bayes"},
}
SOME = {
    "DyS": ("Gaussians", "words"),
    "KDEyML": ("Gaussians",),
    "EMQ, bootstrap": ("Gaussians",),
    "EMQ, bayes": ("Gaussians",),
}  # of the data
# Parameters of lognormal weights of the other classes and of the second class: mean and deviation of the logarithm.
WEIGHTS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "equal": ((0, 0), (0, 0)),
    "lognormal .5": ((0, 0.5), (0, 0.5)),
    "lognormal 1": ((0, 1), (0, 1)),
    "lognormal 1.5": ((0, 1.5), (0, 1.5)),
    "lognormal 2": ((0, 2), (0, 2)),
    "second class 3 times": ((0, 1), (1.1, 1)),
    "second class varies more": ((0, 0.5), (0, 1.5)),
    "second class 10 times": ((0, 0), (2.3, 0)),
}


def data(kind: str) -> Any:
    """The source of instances."""
    from quanet import Gaussians, WordBags

    return {"Gaussians": Gaussians(), "3 Gaussians": Gaussians(k=3), "words": WordBags()}[kind]


def bags_of(source: Any, weights: str, n: int, bags: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Instances, weighted bags of them, and the true shares of the weight: (b, k)."""
    from quanet import Bags

    X, codes, k = [], [], source.k
    for share, _ in itertools.product(SHARES, range(bags)):
        of_classes = [(1 - share) / (k - 1)] * k
        of_classes[1] = share
        drawn, y = source.draw(of_classes, n, rng=rng)
        X.append(drawn)
        codes.append(y)
    y = np.concatenate(codes)
    pool = np.concatenate(X) if isinstance(X[0], np.ndarray) else [text for part in X for text in part]
    mean, deviation = np.array(WEIGHTS[weights])[(y == 1).astype(int)].T
    drawn = np.exp(mean + deviation * rng.standard_normal(len(y)))
    made = Bags(np.arange(len(y)).reshape(-1, n), weights=drawn)
    return pool, made, made.shares(y, k)


def one_training(job: tuple[int, str, argparse.Namespace]) -> dict[str, list[Any]]:
    """For every cell: [covered, covered if n were the size, width, effective size] of the second class in every bag."""
    warnings.simplefilter("ignore")
    import quanet
    from quanet import Bags

    seed, kind, given = job
    rng = np.random.default_rng([seed, len(kind)])
    source = data(kind)
    X, y = source.draw(np.full(source.k, 1 / source.k), TRAINING, rng=rng)
    wanted = [name for name in given.quantifiers if kind in SOME.get(name, (kind,))]
    fitted = {name: getattr(quanet, name)().fit(X, y) for name in dict.fromkeys(map(_method, wanted))}
    found: dict[str, list[Any]] = {}
    for weights, n in itertools.product(given.weights, given.sizes):
        pool, bags, truth = bags_of(source, weights, n, given.bags, rng)
        plain, p = Bags(bags.indices), truth[:, 1]
        for name in wanted:
            if "method" in QUANTIFIERS[name] and n > MOST:
                continue
            quantifier, options = fitted[_method(name)], QUANTIFIERS[name] | {"rng": seed, "drift": False}
            read = quantifier.read(pool)
            interval = quanet.predict_interval_bags(quantifier, read, bags, LEVEL, **options)
            lower, upper, estimate = (part[:, 1] for part in (interval.lower, interval.upper, interval.estimate))
            if "method" in options:
                naive = np.full(len(p), np.nan)
            else:
                same = quanet.predict_interval_bags(quantifier, read, plain, LEVEL, **options)
                shift = estimate - same.estimate[:, 1]
                naive = _inside(p, same.lower[:, 1] + shift, same.upper[:, 1] + shift)
            values = [_inside(p, lower, upper), naive, upper - lower, bags.effective_sizes]
            found["|".join((kind, name, weights, str(n)))] = np.mean(values, axis=1).tolist()
    return found


def _method(name: str) -> str:
    return name.split(",")[0]


def _inside(p: Any, lower: Any, upper: Any) -> Any:
    return ((lower - 1e-9 <= p) & (p <= upper + 1e-9)).astype(float)


def table(found: dict[str, Any], given: argparse.Namespace, seconds: float) -> str:
    """The results in Markdown."""
    names = ", ".join(f"{one} {version(one)}" for one in ("numpy", "scikit-learn", "scipy"))
    cells = {tuple(name.split("|")): np.mean(values, axis=0) for name, values in found.items()}
    coverage = np.array([cell[0] for cell in cells.values()])
    lines = [
        "# Coverage of intervals for shares of weights",
        "",
        "<!-- not run: a benchmark -->\n```console",
        "$ python benchmarks/weighted_shares.py "
        f"--jobs {given.jobs} --trainings {given.trainings} --bags {given.bags} --output {given.output}",
        "```",
        "",
        f"{max(map(len, found.values()))} training sets of {TRAINING:,} instances; for each, {given.bags} bags at each "
        f"of the shares {', '.join(map(str, SHARES))} of the second class. Level {LEVEL:.0%}, without drift. Python "
        f"{platform.python_version()}, {names}. {seconds / 60:.0f} minutes.",
        "",
        "An entry: coverage in % (in brackets that of intervals which ignore that weights vary), and the mean width. "
        f"Standard error of a coverage: about {_error(found):.1f} points.",
        "",
        f"All entries: {100 * coverage.mean():.1f} % on average, from {100 * coverage.min():.1f} to "
        f"{100 * coverage.max():.1f} %.",
        "",
        *_by_weights(cells),
    ]
    for kind, name in dict.fromkeys(cell[:2] for cell in cells):
        mine = {cell[2:]: entry for cell, entry in cells.items() if cell[:2] == (kind, name)}
        sizes = list(dict.fromkeys(n for _, n in mine))
        lines += [
            f"## {name}: {kind}",
            "",
            f"| weights | {' | '.join(f'effective size of {n} | coverage, width' for n in sizes)} |",
            f"|---|{'---|---|' * len(sizes)}",
        ]
        for weights in dict.fromkeys(one for one, _ in mine):
            entries = [mine[weights, n] for n in sizes]
            lines.append(f"| {weights} | {' | '.join(map(_entry, entries))} |")
        mean = 100 * float(np.mean([entry[0] for entry in mine.values()]))
        lines += ["", f"{mean:.1f} % on average.", ""]
    return "\n".join(lines)


def _by_weights(cells: dict[tuple[str, ...], Any]) -> list[str]:
    """Mean coverage for each kind of weights and method."""
    names, kinds = (list(dict.fromkeys(cell[at] for cell in cells)) for at in (1, 2))
    lines = [f"| weights | all | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for weights in kinds:
        mine = {cell: 100 * entry[0] for cell, entry in cells.items() if cell[2] == weights}
        means = [np.mean([one for cell, one in mine.items() if cell[1] == name]) for name in names]
        lines.append(
            f"| {weights} | {np.mean(list(mine.values())):.1f} | {' | '.join(f'{one:.1f}' for one in means)} |"
        )
    return [*lines, ""]


def _entry(entry: Any) -> str:
    covered, naive, width, size = entry
    ignored = "" if np.isnan(naive) else f" ({100 * naive:.1f})"
    return f"{size:,.0f} | {100 * covered:.1f}{ignored}, {width:.3f}"


def _error(found: dict[str, Any]) -> float:
    """The mean standard error of a coverage, in points: that of the mean over training sets."""
    of_cells = [np.std([one[0] for one in values]) / np.sqrt(len(values)) for values in found.values()]
    return 100 * float(np.mean(of_cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--trainings", type=int, default=8, help="number of training sets")
    parser.add_argument("--first", type=int, default=0, help="seed of the first training set")
    parser.add_argument("--bags", type=int, default=8, help="at each share, for each training set")
    parser.add_argument("--quantifiers", nargs="+", default=tuple(QUANTIFIERS), choices=tuple(QUANTIFIERS))
    parser.add_argument("--kinds", nargs="+", default=("Gaussians", "3 Gaussians", "words"))
    parser.add_argument("--weights", nargs="+", default=tuple(WEIGHTS), choices=tuple(WEIGHTS))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--raw", type=Path, help="write the numbers behind the table")
    parser.add_argument("--add", type=Path, nargs="*", default=(), help="numbers of earlier runs")
    given = parser.parse_args()
    started, found = time.time(), dict[str, list[Any]]()
    jobs = [(seed, kind, given) for seed in range(given.first, given.first + given.trainings) for kind in given.kinds]
    with ProcessPoolExecutor(given.jobs) as pool:
        for cells in pool.map(one_training, jobs):
            for cell, values in cells.items():
                found.setdefault(cell, []).append(values)
    for path in given.add:
        for cell, entries in json.loads(path.read_text()).items():
            found.setdefault(cell, []).extend(entries)
    if given.raw is not None:
        given.raw.write_text(json.dumps(found))
    text = table(found, given, time.time() - started)
    print(text) if given.output is None else given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()

"""Differences between bags where the truth is known: coverage, width, family-wise error, trends.

    python benchmarks/differences.py run OUT.json --jobs 16 --repeats 200
    python benchmarks/differences.py table OUT.json --output benchmarks/results/differences.md

Gaussian classes. Training sets are drawn many times, because what a quantifier has learned is the part of the error
that both sides share. A classifier (logistic regression, five folds) and a quantifier are fitted to each. Nothing
drifts, so intervals are those without drift; `benchmarks/natural_differences.py` shows differences under drift.

*pairs*: bags at equal prevalences, at different ones, and near 0. The *true ratio* is the standard deviation of the
error of the difference, over training sets and bags, divided by the root of the sum of both variances; *ratio* is the
width of the intervals, divided by that of intervals that ignore what both sides share.

*family*: groups of equal prevalence, each compared with the rest, with the first, and with the one before. The
family-wise error is the share of sets of groups with at least one adjusted p-value below 5 %.

*trend*: the slope over ten periods whose prevalences are equal, or rise.
"""

import argparse
import itertools
import json
import os
import platform
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 0.95
METHODS = ("EMQ", "PACC", "DyS")
TWO_CLASSES = ("DyS",)  # methods for two classes only
SIZES = (50, 500, 5000)
TRAININGS = (200, 1000)
DISTANCE = 2.0  # between classes, in standard deviations
PAIRS: dict[int, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    2: {
        ".5, .5": ((0.5, 0.5), (0.5, 0.5)),
        ".2, .2": ((0.8, 0.2), (0.8, 0.2)),
        ".02, .02": ((0.98, 0.02), (0.98, 0.02)),
        ".02, .1": ((0.98, 0.02), (0.9, 0.1)),
        ".2, .4": ((0.8, 0.2), (0.6, 0.4)),
        ".1, .9": ((0.9, 0.1), (0.1, 0.9)),
    },
    3: {
        "centre, centre": ((1 / 3, 1 / 3, 1 / 3), (1 / 3, 1 / 3, 1 / 3)),
        "skewed, skewed": ((0.8, 0.1, 0.1), (0.8, 0.1, 0.1)),
        "skewed, centre": ((0.8, 0.1, 0.1), (1 / 3, 1 / 3, 1 / 3)),
    },
}
BAGS = 4  # pairs of bags at each pair of prevalences, per training set
GROUPS, GROUP_SIZE, PERIODS = 8, 300, 10
FAMILIES = 4  # sets of groups per training set


def measure(seed: int, given: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """All cells of one training set of each size: cell -> what was found, one entry per pair of bags."""
    import quanet
    from quanet import Gaussians
    from quanet.drift.scale import without_drift

    found: dict[str, dict[str, list[float]]] = {}
    for k, training in itertools.product(given.classes, given.trainings):
        rng = np.random.default_rng([seed, k, training])
        world = Gaussians(k=k, distance=DISTANCE)
        X, y = world.draw(np.full(k, 1 / k), training, rng=rng)
        with without_drift(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = [name for name in given.methods if k == 2 or name not in TWO_CLASSES]
            fitted = {name: getattr(quanet, name)().fit(X, y) for name in names}
        for n, target in itertools.product(given.sizes, given.targets):
            pool, bags, pairs, truth = draw_pairs(k, n, target, rng)
            for name, quantifier in fitted.items():
                _measure_pairs(found, quantifier, pool, bags, pairs, truth, (name, k, training, n, target))
        if k == 2:
            for (name, quantifier), _ in itertools.product(fitted.items(), range(FAMILIES)):
                _measure_family(found, quantifier, world, (name, training), rng)
    return found


def draw_pairs(k: int, n: int, target: str, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Instances, bags, pairs of bags, and the truth of every bag (b, k)."""
    from quanet import Bags, Gaussians
    from quanet.simplex import to_counts

    source = np.repeat(np.array(list(PAIRS[k].values())), BAGS, axis=0).reshape(-1, k)
    counts = to_counts(source, n) if target == "bag" else rng.multinomial(n, source / source.sum(axis=1, keepdims=True))
    codes = np.concatenate([np.repeat(np.arange(k), one) for one in counts])
    X = Gaussians(k=k, distance=DISTANCE).centres[codes] + rng.standard_normal((len(codes), k))
    pairs = np.arange(len(source)).reshape(-1, 2)
    return X, Bags(np.arange(len(X)).reshape(-1, n)), pairs, counts / n if target == "bag" else source


def _measure_pairs(found: Any, quantifier: Any, pool: Any, bags: Any, pairs: Any, truth: Any, cell: Any) -> None:
    from quanet import difference_bags

    name, k, training, n, target = cell
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = difference_bags(quantifier, pool, bags, pairs, LEVEL, target=target, drift=False)
    change = truth[pairs[:, 1]] - truth[pairs[:, 0]]
    inside = (change >= result.lower - 1e-9) & (change <= result.upper + 1e-9)
    errors = [result.first_estimate - truth[pairs[:, 0]], result.second_estimate - truth[pairs[:, 1]]]
    for at, which in enumerate(PAIRS[k]):
        mine = slice(at * BAGS, (at + 1) * BAGS)
        entry = found.setdefault("|".join(map(str, ("pairs", name, k, training, n, target, which))), {})
        columns = slice(1, 2) if k == 2 else slice(None)
        parts = {
            "covered": inside.astype(float),
            "width": result.upper - result.lower,
            "relative": result.relative_width,
            "first": errors[0],
            "second": errors[1],
        }
        for part, values in parts.items():
            entry.setdefault(part, []).extend(values[mine, columns].ravel().round(6).tolist())


def draw_from_source(world: Any, shares: Any, rng: np.random.Generator) -> Any:
    """Instances that are of the second class with these probabilities (n,)."""
    return world.centres[(rng.random(len(shares)) < shares).astype(int)] + rng.standard_normal((len(shares), world.k))


def _measure_family(found: Any, quantifier: Any, world: Any, cell: Any, rng: np.random.Generator) -> None:
    """Groups of equal prevalence, and periods that rise or do not."""
    from quanet import Bags, difference_bags, trend_bags

    name, training = cell
    for share in (0.05, 0.3):
        new = draw_from_source(world, np.full(GROUPS * GROUP_SIZE, share), rng)
        bags = Bags(np.arange(len(new)).reshape(GROUPS, -1))
        first = np.stack([np.zeros(GROUPS - 1, dtype=int), np.arange(1, GROUPS)], axis=1)
        for which, pairs in {"rest": "rest", "previous": "previous", "first": first}.items():
            result = difference_bags(quantifier, new, bags, pairs, LEVEL, drift=False)
            entry = found.setdefault(f"family|{name}|{training}|{which}|{share}", {})
            entry.setdefault("wrong", []).append(float(result.significant.any()))
            entry.setdefault("raw", []).append(float((result.p_value[:, 1] < 1 - LEVEL).mean()))
    for slope in (0.0, 0.02):
        shares = 0.1 + slope * np.arange(PERIODS)
        new = draw_from_source(world, np.repeat(shares, GROUP_SIZE), rng)
        bags = Bags(np.arange(PERIODS * GROUP_SIZE).reshape(PERIODS, -1))
        trend = trend_bags(quantifier, new, bags, LEVEL, drift=False)
        entry = found.setdefault(f"trend|{name}|{training}|{slope}", {})
        entry.setdefault("covered", []).append(float(trend.lower[1] <= slope <= trend.upper[1]))
        entry.setdefault("width", []).append(float(trend.upper[1] - trend.lower[1]))


def run(given: argparse.Namespace) -> None:
    """Measure all training sets, in processes."""
    from joblib import Parallel, delayed

    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    started = time.perf_counter()
    seeds = range(given.first, given.first + given.repeats)
    parts = Parallel(n_jobs=given.jobs, verbose=1)(delayed(measure)(seed, given) for seed in seeds)
    together = merge(part for part in parts if part is not None)
    together["about"] = {"repeats": [given.repeats], "seconds": [round(time.perf_counter() - started)]}
    given.output.write_text(json.dumps(together) + "\n")


def merge(parts: Any) -> dict[str, dict[str, list[float]]]:
    together: dict[str, dict[str, list[float]]] = {}
    for part in parts:
        for cell, entry in part.items():
            for name, values in entry.items():
                together.setdefault(cell, {}).setdefault(name, []).extend(values)
    return together


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """The results in Markdown."""
    found.pop("about", None)
    names = ("numpy", "scikit-learn", "scipy")
    lines = [
        "# Differences in simulations",
        "",
        "Made by `python benchmarks/differences.py run OUT.json` and `... table OUT.json ...`: Gaussian classes "
        f"{DISTANCE:g} standard deviations apart, level {LEVEL:.0%}, {BAGS} pairs of bags at each pair of prevalences "
        f"for every training set. Python {platform.python_version()}, "
        + ", ".join(f"{one} {version(one)}" for one in names)
        + ".",
        "",
        "*covered*: intervals that contain the true difference, in % (standard error over training sets). *width*: "
        "mean width in points. *ratio*: width compared with intervals that ignore what both sides share. *true ratio*: "
        "the same for the standard deviation of the errors. Rows come from several runs of *training sets*.",
        "",
        *_overview(found),
    ]
    cells = {tuple(name.split("|"))[1:]: entry for name, entry in found.items() if name.startswith("pairs")}
    for method, k, target in dict.fromkeys((c[0], c[1], c[4]) for c in cells):
        lines += [
            f"## {method}, {k} classes, target {target!r}",
            "",
            "| training | n | prevalences | training sets | covered | width | ratio | true ratio |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for cell, entry in cells.items():
            if (cell[0], cell[1], cell[4]) == (method, k, target):
                sets = len(entry["covered"]) // (BAGS * (1 if k == "2" else int(k)))
                lines.append(f"| {cell[2]} | {cell[3]} | {cell[5]} | {sets} | {_entry(entry)} |")
        lines.append("")
    return "\n".join([*lines, *_families(found), *_trends(found), ""])


def _entry(entry: dict[str, list[float]]) -> str:
    share, error = _coverage(entry)
    width, ratio = 100 * float(np.mean(entry["width"])), float(np.mean(entry["relative"]))
    return f"{share:.1f} ({error:.1f}) | {width:.1f} | {ratio:.2f} | {true_ratio(entry):.2f}"


def _coverage(entry: dict[str, list[float]], per_set: int = BAGS) -> tuple[float, float]:
    """Coverage in %, and its standard error over training sets."""
    covered = np.array(entry["covered"])
    by_set = covered[: len(covered) // per_set * per_set].reshape(-1, per_set).mean(axis=1)
    return 100 * float(by_set.mean()), 100 * float(by_set.std() / np.sqrt(len(by_set)))


def true_ratio(entry: dict[str, list[float]]) -> float:
    first, second = np.array(entry["first"]), np.array(entry["second"])
    return float((second - first).std() / np.hypot(first.std(), second.std()))


def _overview(found: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = [
        "| method | classes | target | cells | mean coverage | lowest | highest | mean ratio | mean true ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cells = {tuple(name.split("|"))[1:]: entry for name, entry in found.items() if name.startswith("pairs")}
    for key in dict.fromkeys((c[0], c[1], c[4]) for c in cells):
        mine = [entry for cell, entry in cells.items() if (cell[0], cell[1], cell[4]) == key]
        covered = [_coverage(entry)[0] for entry in mine]
        ratios = np.mean([[np.mean(entry["relative"]), true_ratio(entry)] for entry in mine], axis=0)
        lines.append(
            f"| {' | '.join(key)} | {len(mine)} | {np.mean(covered):.1f} | {min(covered):.1f} | {max(covered):.1f} | "
            f"{ratios[0]:.2f} | {ratios[1]:.2f} |"
        )
    return [*lines, ""]


def _families(found: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = [
        "## Family-wise error of Holm's correction",
        "",
        f"{GROUPS} groups of {GROUP_SIZE} instances with equal prevalences: sets of groups with a significant "
        "difference, in %, and p-values below 5 % before the correction.",
        "",
        "| method | training | compared with | prevalence | sets of groups | family-wise error | single |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in found.items():
        if name.startswith("family"):
            method, training, which, share = name.split("|")[1:]
            wrong, error = 100 * np.mean(entry["wrong"]), 100 * np.std(entry["wrong"]) / np.sqrt(len(entry["wrong"]))
            single = 100 * np.mean(entry["raw"])
            cell = f"{method} | {training} | {which} | {share} | {len(entry['wrong'])}"
            lines.append(f"| {cell} | {wrong:.1f} ({error:.1f}) | {single:.1f} |")
    wrong = [np.mean(entry["wrong"]) for name, entry in found.items() if name.startswith("family")]
    return [*lines, "", f"Mean family-wise error: {100 * np.mean(wrong):.1f} %.", ""]


def _trends(found: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = [
        "## Trend",
        "",
        f"The slope over {PERIODS} periods of {GROUP_SIZE} instances: intervals that contain it, in %, and their width "
        "in points per period.",
        "",
        "| method | training | slope | covered | width |",
        "|---|---|---|---|---|",
    ]
    for name, entry in found.items():
        if name.startswith("trend"):
            method, training, slope = name.split("|")[1:]
            share, error = _coverage(entry, 1)
            width = 100 * np.mean(entry["width"])
            lines.append(f"| {method} | {training} | {slope} | {share:.1f} ({error:.1f}) | {width:.2f} |")
    return lines


def main() -> None:
    sys.path[:] = sys.path[1:]  # this folder: in it `quanet` would be another benchmark
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running, showing = verbs.add_parser("run"), verbs.add_parser("table")
    running.add_argument("output", type=Path)
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--first", type=int, default=0, help="seed of the first training set")
    running.add_argument("--repeats", type=int, default=2, help="number of training sets")
    running.add_argument("--methods", nargs="+", default=METHODS)
    running.add_argument("--classes", type=int, nargs="+", default=tuple(PAIRS), choices=tuple(PAIRS))
    running.add_argument("--trainings", type=int, nargs="+", default=TRAININGS)
    running.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    running.add_argument("--targets", nargs="+", default=("source", "bag"))
    showing.add_argument("files", type=Path, nargs="+")
    showing.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.verb == "run":
        run(given)
        return
    text = table(merge(json.loads(path.read_text()) for path in given.files))
    print(text) if given.output is None else given.output.write_text(text)


if __name__ == "__main__":
    main()

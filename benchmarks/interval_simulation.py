"""Coverage of every kind of interval where the truth is known: Gaussian classes.

    python benchmarks/interval_simulation.py run --jobs 16 --output found.json
    python benchmarks/interval_simulation.py table found.json --output benchmarks/results/interval-simulation.md

Training sets are drawn many times, because what a quantifier has learned from few instances is part of its error. A
classifier (logistic regression, five folds) and a quantifier are fitted to each. Bags are drawn at prevalences from a
vertex of the simplex to its centre. Classes with the same true prevalence are alike, so they are counted together; the
table shows the prevalence whose class has the lowest coverage.

The kind that ``method="auto"`` chooses is measured with all training sets, the other kinds, which take longer, with
the first of them. Only prevalences differ between training and new instances, so that drift is left out
(``drift=False``), except in one column: with drift, intervals are wider.
"""

import argparse
import itertools
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95
AUTO, WITH_DRIFT = "auto", "auto with drift"
KINDS = (AUTO, WITH_DRIFT, "closed", "conformal", "bootstrap", "bayes")
TARGETS = ("bag", "source")
SIZES = (50, 200, 1000)
TRAININGS = (300, 1000)
QUANTIFIERS = ("EMQ", "PACC")
DISTANCES = (0.5, 1.0, 2.0, 3.0, 5.0)  # between classes, in standard deviations; two classes: accuracy .60 to .994
NEAR_PERFECT = 3.0  # distance from which a classifier is nearly perfect: accuracy .933 of two classes, .994 at 5
RESAMPLES = 200  # of the bootstrap
LOWEST, SHOWN = 90, 20  # coverage in % that no cell of "auto" may fall below; lowest cells that are listed
COPIES = {"copies, 4 of each": 4, "copies, 10 of each": 10}
CLUSTERS = "clusters of 10"
CLUSTER_SIZE = 10
CONCENTRATION = 1.0  # of the Dirichlet distribution of a cluster's classes: two rows of one correlate by 1 / 2
BAG_TYPES = ("independent", *COPIES, CLUSTERS)
GROUPS = (  # of cells, over which the coverage of a kind is averaged
    ("independent", "2, 4", f"**below {NEAR_PERFECT:g}**"),
    ("independent", "2, 4", f"**{NEAR_PERFECT:g} and more**"),
    ("independent", "10", "**all**"),
)
SPECIAL_DISTANCES, SPECIAL_CLASSES, SPECIAL_SIZES = (2.0, 5.0), (2, 4), (200, 1000)  # of copies and clusters
MOST_BAYES = 1000  # instances in a bag times classes, above which Bayesian intervals are drawn too slowly
SHARES: dict[int, dict[str, tuple[float, ...]]] = {
    2: {"0": (1.0, 0.0), ".02": (0.98, 0.02), ".1": (0.9, 0.1), ".5": (0.5, 0.5)},
    4: {
        "vertex": (1.0, 0.0, 0.0, 0.0),
        "near vertex": (0.94, 0.02, 0.02, 0.02),
        "skewed": (0.7, 0.1, 0.1, 0.1),
        "edge": (0.5, 0.5, 0.0, 0.0),
        "centre": (0.25, 0.25, 0.25, 0.25),
    },
    10: {
        "vertex": (1.0, *[0.0] * 9),
        "near vertex": (0.82, *[0.02] * 9),
        "skewed": (0.55, *[0.05] * 9),
        "falling": (0.24, 0.24, 0.13, 0.13, 0.07, 0.07, 0.04, 0.04, 0.02, 0.02),  # as a Dirichlet draw, in pairs
        "centre": (0.1,) * 10,
    },
}


class Cell(NamedTuple):
    """One entry of the table, over all training sets."""

    quantifier: str
    kind: str
    k: str
    distance: str
    training: str
    n: str
    target: str
    bags: str
    share: str


class Job(NamedTuple):
    """One training set, and what is measured with it."""

    seed: int
    k: int
    distance: float
    training: int
    kinds: tuple[str, ...]
    given: argparse.Namespace


# Cell, joined by "|" -> sums over training sets: their number, widths, kinds that "auto" chose, and for every true
# prevalence the coverage and its square.
Parts = dict[str, dict[str, Any]]


def draw_pool(job: Job, n: int, target: str, bag_type: str, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Instances, the bags drawn from them, every bag's truth (b, k), and clusters or None; shares are adjacent."""
    from quanet import Bags, Gaussians
    from quanet.simplex import to_counts

    k, copies = job.k, COPIES.get(bag_type, 1)
    source = np.repeat(list(SHARES[k].values()), job.given.bags, axis=0)
    different, clusters = n // copies, None
    if bag_type == CLUSTERS:
        authors = np.repeat(source, n // CLUSTER_SIZE, axis=0)
        gammas = rng.standard_gamma(CONCENTRATION * authors)
        gammas[gammas.sum(axis=1) == 0] = authors[gammas.sum(axis=1) == 0]
        counts = rng.multinomial(CLUSTER_SIZE, gammas / gammas.sum(axis=1, keepdims=True))
        clusters = np.repeat(np.arange(len(counts)), CLUSTER_SIZE)
    else:
        counts = to_counts(source, different) if target == "bag" else rng.multinomial(different, source)
    codes = np.concatenate([np.repeat(np.arange(k), one) for one in counts])
    X = Gaussians(k=k, distance=job.distance).centres[codes] + rng.standard_normal((len(codes), k))
    if copies > 1:
        X = np.repeat(X, copies, axis=0)
    truth = counts / different if target == "bag" else source
    return X, Bags(np.arange(len(X)).reshape(-1, n)), truth, clusters


def is_measured(job: Job, bag_type: str, target: str, n: int) -> bool:
    """Whether bags of this type and size are drawn: copies and clusters at some distances and sizes only."""
    if bag_type == "independent":
        return True
    special = job.distance in SPECIAL_DISTANCES and job.k in SPECIAL_CLASSES and n in SPECIAL_SIZES
    return special and (bag_type != CLUSTERS or target == "source")


def measure(job: Job) -> Parts:
    """Coverage and width in every cell, for one training set."""
    import quanet
    from quanet import Gaussians
    from quanet.drift.scale import without_drift

    warnings.simplefilter("ignore")
    found: Parts = {}
    rng = np.random.default_rng([job.seed, job.k, job.training, round(10 * job.distance)])
    X, y = Gaussians(k=job.k, distance=job.distance).draw(np.full(job.k, 1 / job.k), job.training, rng=rng)
    fitted = {}
    for name in job.given.quantifiers:
        with nullcontext() if WITH_DRIFT in job.kinds else without_drift():
            fitted[name] = getattr(quanet, name)().fit(X, y)
    for bag_type, target, n in itertools.product(job.given.bag_types, job.given.targets, job.given.sizes):
        if not is_measured(job, bag_type, target, n):
            continue
        pool, bags, truth, clusters = draw_pool(job, n, target, bag_type, rng)
        options = {"target": target, "resamples": RESAMPLES, "rng": job.seed}
        if clusters is not None:
            options["clusters"] = clusters
        for name, quantifier in fitted.items():
            for kind, interval in intervals(job, quantifier, pool, bags, options):
                cell = Cell(
                    name, kind, str(job.k), f"{job.distance:g}", str(job.training), str(n), target, bag_type, ""
                )
                add(found, cell, interval, truth, job)
    return found


def intervals(job: Job, quantifier: Any, pool: Any, bags: Any, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The interval of every kind that is possible; the one that "auto" chooses is computed once."""
    from quanet import QuanetError, predict_interval_bags

    chosen = predict_interval_bags(quantifier, pool, bags, LEVEL, drift=False, **options)
    for kind in job.kinds:
        if kind == WITH_DRIFT:
            yield kind, predict_interval_bags(quantifier, pool, bags, LEVEL, **options)
        elif kind in {AUTO, chosen.method}:
            yield kind, chosen
        elif kind != "bayes" or job.k * bags.sizes[0] <= MOST_BAYES or job.k == 2:
            try:
                yield kind, predict_interval_bags(quantifier, pool, bags, LEVEL, method=kind, drift=False, **options)
            except QuanetError:  # too few held-out instances for this kind
                continue


def add(found: Parts, cell: Cell, interval: Any, truth: Any, job: Job) -> None:
    """Add the intervals of one training set to the sums of the cells of all shares."""
    inside = (truth >= interval.lower - 1e-9) & (truth <= interval.upper + 1e-9)
    for s, (share, point) in enumerate(SHARES[job.k].items()):
        mine = slice(s * job.given.bags, (s + 1) * job.given.bags)
        covered = {str(p): float(inside[mine][:, np.array(point) == p].mean()) for p in set(point)}
        found["|".join(cell._replace(share=share))] = {
            "sets": 1,
            "width": float(interval.width[mine].mean()),
            "methods": {interval.method: 1},
            "covered": {p: [value, value**2] for p, value in covered.items()},
        }


def merge(together: Parts, part: Parts) -> None:
    """Add sums to sums."""
    for cell, entry in part.items():
        if cell not in together:
            together[cell] = entry
            continue
        mine = together[cell]
        mine["sets"] += entry["sets"]
        mine["width"] += entry["width"]
        for method, times in entry["methods"].items():
            mine["methods"][method] = mine["methods"].get(method, 0) + times
        for p, sums in entry["covered"].items():
            mine["covered"][p] = [a + b for a, b in zip(mine["covered"][p], sums, strict=True)]


def least(entry: dict[str, Any]) -> tuple[float, float]:
    """Coverage in % of the true prevalence whose classes have the lowest coverage, and its standard error."""
    sets = entry["sets"]
    total, squares = min(entry["covered"].values())
    mean = total / sets
    # Bags of one training set share what was learned, so that training sets are counted, not bags.
    return 100 * mean, 100 * float(np.sqrt(max(squares / sets - mean**2, 0.0) / max(sets - 1, 1)))


def table(found: Parts) -> str:
    """The results in Markdown."""
    cells = {Cell(*name.split("|")): entry for name, entry in found.items()}
    kinds = [kind for kind in KINDS if any(cell.kind == kind for cell in cells)]
    sets = {kind: [entry["sets"] for cell, entry in cells.items() if cell.kind == kind] for kind in kinds}
    names = ("numpy", "scikit-learn", "scipy")
    lines = [
        "# Coverage of intervals in simulations",
        "",
        f"Made by `benchmarks/interval_simulation.py`: Gaussian classes, level {LEVEL:.0%}. Python "
        f"{platform.python_version()}, " + ", ".join(f"{one} {version(one)}" for one in names) + ".",
        "",
        "Bags of every share were drawn for many training sets of each size: "
        + ", ".join(f"{max(many)} for {kind}" for kind, many in sets.items() if many)
        + ". Only prevalences differ between training sets and bags, so intervals are those without drift "
        f'(`drift=False`), except in the column "{WITH_DRIFT}", which has what a user gets without any option.',
        "",
        "For every cell (method, distance, classes, size of the training set and of the bag, target, type of bag, "
        "share) classes of the same true share are counted together, and the coverage is that of the share whose "
        "classes have the lowest. Coverage near 100 % is natural where a share is 0 or 1: intervals end there.",
        "",
        *requirement(cells),
        *by_distance(cells, kinds),
        *sections(cells, kinds),
    ]
    return "\n".join([*lines, ""])


def requirement(cells: dict[Cell, dict[str, Any]]) -> list[str]:
    """The lowest cells of the kind that "auto" chooses."""
    mine = {cell: least(entry) for cell, entry in cells.items() if cell.kind == AUTO}
    if not mine:
        return []
    ordered = sorted(mine, key=lambda cell: mine[cell][0])
    errors = np.array([mine[cell][1] for cell in ordered])
    below = sum(mine[cell][0] < LOWEST for cell in ordered)
    lines = [
        "## The kind that auto chooses",
        "",
        f"{below} of {len(mine)} cells are below {LOWEST} %. The standard error of a cell is at most "
        f"{errors.max():.1f} points, {np.median(errors):.1f} in the median; so the lowest of so many cells is below "
        "its true coverage. The lowest are:",
        "",
        "| cell | kind | coverage | standard error |",
        "|---|---|---|---|",
    ]
    for cell in ordered[:SHOWN]:
        methods = ", ".join(sorted(cells[cell]["methods"]))
        lines.append(f"| {describe(cell)} | {methods} | {mine[cell][0]:.1f} | {mine[cell][1]:.1f} |")
    return [*lines, ""]


def by_distance(cells: dict[Cell, dict[str, Any]], kinds: list[str]) -> list[str]:
    """For each kind, type of bag, number of classes and distance: the mean over cells, and the lowest of them."""
    lines = [
        "## Mean and lowest coverage",
        "",
        f"Classifiers of classes at least {NEAR_PERFECT:g} apart are nearly perfect: the held-out instances show few "
        "errors or none, so that intervals include errors that were never seen and cover more. With ten classes, most "
        "shares are near 0, where intervals end.",
        "",
        "| intervals | bags | classes | distance | cells | mean | lowest | where |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        of_kind = {cell: least(entry)[0] for cell, entry in cells.items() if cell.kind == kind}
        parts = [(*name, [c for c in of_kind if group_of(c) == name]) for name in GROUPS]
        parts = [part for part in parts if part[-1]]
        for bag_type, k, distance in sorted({(c.bags, int(c.k), float(c.distance)) for c in of_kind}, key=_order):
            mine = [c for c in of_kind if (c.bags, int(c.k), float(c.distance)) == (bag_type, k, distance)]
            parts.append((bag_type, str(k), f"{distance:g}", mine))
        for bag_type, classes, distance, mine in parts:
            lowest = min(mine, key=lambda cell: of_kind[cell])
            mean = float(np.mean([of_kind[cell] for cell in mine]))
            row = (kind, bag_type, classes, distance, len(mine), f"{mean:.1f}", f"{of_kind[lowest]:.0f}")
            lines.append(f"| {' | '.join(map(str, row))} | {describe(lowest)} |")
    return [*lines, ""]


def _order(group: tuple[str, int, float]) -> tuple[int, int, float]:
    return BAG_TYPES.index(group[0]), group[1], group[2]


def group_of(cell: Cell) -> tuple[str, str, str] | None:
    """Type of bags, classes and distances of the group that a cell belongs to; None for copies and clusters."""
    if cell.bags != BAG_TYPES[0]:
        return None
    return GROUPS[2] if int(cell.k) == 10 else GROUPS[int(float(cell.distance) >= NEAR_PERFECT)]


def describe(cell: Cell) -> str:
    """A cell in words."""
    bags = "" if cell.bags == BAG_TYPES[0] else f", {cell.bags}"
    return (
        f"{cell.quantifier}, {cell.k} classes {cell.distance} apart, training {cell.training}, n = {cell.n}, "
        f"target {cell.target}{bags}, {cell.share}"
    )


def sections(cells: dict[Cell, dict[str, Any]], kinds: list[str]) -> list[str]:
    """One table per method, number of classes, target and type of bag."""
    lines = []
    for group in dict.fromkeys((c.quantifier, int(c.k), c.target, c.bags) for c in cells):
        name, k, target, bag_type = group
        lines += [
            f"## {name}, {k} classes, target {target!r}" + ("" if bag_type == BAG_TYPES[0] else f", {bag_type}"),
            "",
            "The lowest coverage of a share in %, that share, and the mean width over all shares.",
            "",
            f"| distance | training | n | {' | '.join(kinds)} |",
            f"|---|---|---|{'---|' * len(kinds)}",
        ]
        mine = {c: e for c, e in cells.items() if (c.quantifier, int(c.k), c.target, c.bags) == group}
        rows = sorted({(float(c.distance), int(c.training), int(c.n)) for c in mine})
        for row in rows:
            texts = []
            for kind in kinds:
                here = {
                    c.share: e
                    for c, e in mine.items()
                    if c.kind == kind and (float(c.distance), int(c.training), int(c.n)) == row
                }
                texts.append(_entry(here))
            lines.append(f"| {row[0]:g} | {row[1]} | {row[2]} | {' | '.join(texts)} |")
        lines.append("")
    return lines


def _entry(of_shares: dict[str, dict[str, Any]]) -> str:
    if not of_shares:
        return ""
    lowest = min(of_shares, key=lambda share: least(of_shares[share])[0])
    width = np.mean([entry["width"] / entry["sets"] for entry in of_shares.values()])
    return f"{least(of_shares[lowest])[0]:.0f} {lowest} ({width:.3f})"


def run(given: argparse.Namespace) -> Parts:
    """Measure all training sets, in parallel."""
    jobs = []
    for k, distance, training, repeat in itertools.product(
        given.classes, given.distances, given.trainings, range(given.repeats)
    ):
        few = tuple(kind for kind in given.kinds if kind == AUTO or repeat < given.others)
        if few:
            jobs.append(Job(given.first + repeat, k, distance, training, few, given))
    jobs.sort(key=lambda job: (-len(job.kinds), -job.k, -job.training))  # the longest first
    together: Parts = {}
    if given.jobs == 1:
        for job in jobs:
            merge(together, measure(job))
        return together
    with ProcessPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(measure, job) for job in jobs]):
            merge(together, done.result())
    return together


def main() -> None:
    """Run the command."""
    sys.path[:] = sys.path[1:]  # this folder: in it `quanet` would be another benchmark
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running, showing = verbs.add_parser("run"), verbs.add_parser("table")
    showing.add_argument("files", type=Path, nargs="+")
    showing.add_argument("--output", type=Path)
    running.add_argument("--output", type=Path, required=True)
    running.add_argument("--jobs", type=int, default=1, help="processes")
    running.add_argument("--first", type=int, default=0, help="seed of the first training set")
    running.add_argument("--repeats", type=int, default=200, help="number of training sets, for auto")
    running.add_argument("--others", type=int, default=4, help="number of training sets, for the other kinds")
    running.add_argument("--bags", type=int, default=5, help="bags at every prevalence, for each training set")
    running.add_argument("--bag-types", nargs="+", default=BAG_TYPES, choices=BAG_TYPES)
    running.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    running.add_argument("--quantifiers", nargs="+", default=QUANTIFIERS)
    running.add_argument("--classes", type=int, nargs="+", default=tuple(SHARES), choices=tuple(SHARES))
    running.add_argument("--distances", type=float, nargs="+", default=DISTANCES)
    running.add_argument("--trainings", type=int, nargs="+", default=TRAININGS)
    running.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    running.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS)
    given = parser.parse_args()
    if given.verb == "run":
        started = time.perf_counter()
        given.output.write_text(json.dumps(run(given)) + "\n")
        print(f"{given.output}: {time.perf_counter() - started:.0f} s with {given.jobs} processes")
        return
    together: Parts = {}
    for path in given.files:
        merge(together, json.loads(path.read_text()))
    text = table(together)
    print(text) if given.output is None else given.output.write_text(text)


if __name__ == "__main__":
    main()

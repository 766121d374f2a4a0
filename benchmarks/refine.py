"""Coverage and width of shares refined with a few labels, under drift: random and planned labels, totals and groups.

    python benchmarks/refine.py --trials 400 --jobs 16 --output benchmarks/results/refine.md
    python benchmarks/refine.py --exposure --trials 150 --output benchmarks/results/refine-exposure.md
    python benchmarks/refine.py --data FOLDER --trials 200 --output benchmarks/results/refine-natural.md

FOLDER contains the Parquet files of `NATURAL`. Only training files are used: a quantifier learns from one part and
estimates another. In the simulations classes are Gaussian; the truth is the share of the bag itself. Every trial draws
other labels; simulated bags change every `REDRAWN` trials.

The plain share has Wilson's interval with the finite-population correction. A factor is the mean width of an interval,
divided by that of the plain share of as many random labels.
"""

import argparse
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from quanet import EMQ, Gaussians
from quanet.files import write_whole
from quanet.labels.group_labels import GroupLabels, refine_groups
from quanet.labels.label_plans import plan_posteriors
from quanet.labels.prediction_powered import BagExposure, LabelDesign, design_labels, prediction_powered, score_interval
from quanet.labels.refine import fixed_label_em, likelihood_ratios, responsibilities
from quanet.simplex import encode

LEVEL, SIZE, REDRAWN = 0.95, 2000, 10
LABELS = (50, 100, 200)
SHARES = (0.02, 0.1, 0.3, 0.5)
KINDS = {
    "prior shift": "only the share differs from training (50 %)",
    "shifted": "all instances move towards class 1, by 0.4 standard deviations in both dimensions",
    "far": "all instances move away, by 1.2: nearly all look like class 0",
    "hidden": "40 % of class 1 look like class 0",
    "useless": "posteriors are unrelated to the labels",
}
GROUP_KINDS = ("prior shift", "shifted", "differ", "one", "useless")
EXPOSURES = {
    "unrelated": "lognormal with deviation 1",
    "class 1 x 5": "lognormal with deviation 0.7, five times as much for class 1",
    "3 % x 11, class 1": "3 % of the rows have eleven times the exposure, all of class 1",
    "3 % x 11, class 0": "the same, all of class 0",
    "3 % x 11": "the same, unrelated to the class",
    "3 % x 11, mixed": "the same, half of them of class 1",
    "Pareto": "Pareto with exponent 1.2, unrelated",
    "Pareto, class 1 x 5": "the same, five times as much for class 1",
}
WAYS = ("random", "planned", "planned with weights")
NATURAL = {
    "blitzer4: electronics, from the other domains": ("blitzer4", "domain", "electronics"),
    "blitzer4: books, from the other domains": ("blitzer4", "domain", "books"),
    "airline-3class: later half of the training file": ("airline-3class-train", "date", None),
    "amazon-devices: later half of the training file": ("amazon-devices-train", "date", None),
}
NO_LABELS = np.empty(0, dtype=np.intp)


@dataclass
class Bag:
    """Likelihood ratios (N, k), classes (N,) and groups (N,)."""

    ratios: Any
    codes: Any
    owner: Any

    @cached_property
    def posteriors(self) -> Any:
        """Posteriors without labels, from which labels are planned."""
        return responsibilities(self.ratios, fixed_label_em(self.ratios, self.ratios[:0], NO_LABELS))


def fitted() -> EMQ:
    """The quantifier of the simulations."""
    return EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))


def simulate(quantifier: EMQ, kind: str, share: float, rng: np.random.Generator) -> Bag:
    """A bag under drift."""
    X, y = Gaussians().draw([1 - share, share], SIZE, rng=rng)
    X = drift(X, y, kind, rng)
    return Bag(likelihood_ratios(quantifier, X), y, np.zeros(SIZE, dtype=np.intp))


def drift(X: Any, y: Any, kind: str, rng: np.random.Generator, group: int = 0) -> Any:
    """Instances as a kind of drift makes them."""
    if kind == "shifted":
        return X + np.array([-0.4, 0.4])
    if kind == "far":
        return X + np.array([1.2, -1.2])
    if kind == "useless":
        return rng.permutation(X)
    if kind == "differ":
        return X + np.array([-1, 1]) * rng.normal(0, 0.5)
    if kind == "one" and group == 0:
        return X + np.array([-1.2, 1.2])
    if kind == "hidden":
        moved = np.flatnonzero((y == 1) & (rng.random(len(y)) < 0.4))
        X[moved] = Gaussians().draw([1, 0], len(moved), rng=rng)[0]
    return X


def simulate_groups(quantifier: EMQ, kind: str, sizes: tuple[int, ...], rng: np.random.Generator) -> Bag:
    """A bag of groups whose shares are between 8 and 60 %."""
    shares = rng.permutation(np.linspace(0.08, 0.6, len(sizes)))
    drawn = [Gaussians().draw([1 - p, p], size, rng=rng) for p, size in zip(shares, sizes, strict=True)]
    X = np.concatenate([drift(X, y, kind, rng, g) for g, (X, y) in enumerate(drawn)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return Bag(likelihood_ratios(quantifier, X), np.concatenate([y for _, y in drawn]), owner)


def drawn_labels(bag: Bag, n: int, way: str, rng: np.random.Generator) -> tuple[Any, LabelDesign, Any, Any]:
    """Positions, design, weights and strata of n labels: random, planned, or planned by group."""
    N = len(bag.codes)
    if way == "random":
        places = rng.permutation(N)[:n]
        return places, LabelDesign.of(n, N), None, None
    owner = bag.owner if way == "by group" else np.zeros(N, dtype=np.intp)
    each = n // (int(owner.max()) + 1)
    plan = plan_posteriors(bag.posteriors, owner, width=None, n=each, level=LEVEL, stratify=True, rng=rng)
    design = LabelDesign.of(plan.n, N, weights=plan.design_weights, strata=plan.strata)
    return plan.indices, design, plan.design_weights, plan.strata


def measure_total(bag: Bag, n: int, way: str, rng: np.random.Generator) -> list[float]:
    """Coverage and width of the refined share and of the plain one, over classes; weight of the posteriors; error."""
    k, N = bag.ratios.shape[1], len(bag.codes)
    truth = np.bincount(bag.codes, minlength=k) / N
    places, design, *_ = drawn_labels(bag, n, way, rng)
    known, codes = bag.ratios[places], bag.codes[places]
    shares = fixed_label_em(bag.ratios, known, codes)
    found = prediction_powered(
        responsibilities(bag.ratios, shares), responsibilities(known, shares), codes, design=design
    )
    random = bag.codes[rng.permutation(N)[:n]]
    plain = score_interval(np.bincount(random, minlength=k) / n, np.full(k, n / (1 - n / N)), LEVEL)
    shown = slice(1, None) if k == 2 else slice(None)
    parts = []
    for lower, upper in (found.interval(LEVEL), plain):
        inside = (lower <= truth + 1e-9) & (truth - 1e-9 <= upper)
        parts += [float(inside[shown].mean()), float((upper - lower)[shown].mean())]
    return [*parts, found.weight, float(((found.estimate - truth)[shown] ** 2).mean())]


@dataclass
class ExposedBag(Bag):
    """A bag with exposure (N,)."""

    exposure: Any


def simulate_exposed(quantifier: EMQ, kind: str, drifted: str, share: float, rng: np.random.Generator) -> ExposedBag:
    """A bag of 1,000 under drift, with a kind of exposure."""
    X, y = Gaussians().draw([1 - share, share], 1000, rng=rng)
    X = drift(X, y, drifted, rng)
    return ExposedBag(likelihood_ratios(quantifier, X), y, np.zeros(1000, dtype=np.intp), exposure_of(kind, y, rng))


def exposure_of(kind: str, y: Any, rng: np.random.Generator) -> Any:
    """Exposure of instances of classes y, of one of `EXPOSURES`."""
    if kind == "unrelated":
        return rng.lognormal(0, 1, len(y))
    times = np.where((y == 1) & kind.endswith("class 1 x 5"), 5, 1)
    if kind == "class 1 x 5":
        return times * rng.lognormal(0, 0.7, len(y))
    if kind.startswith("Pareto"):
        return times * rng.random(len(y)) ** (-1 / 1.2)
    one = {"3 % x 11, class 1": 1.0, "3 % x 11, class 0": 0.0, "3 % x 11, mixed": 0.5}.get(kind, y.mean())
    heavy = np.where(y == 1, one / y.mean(), (1 - one) / (1 - y.mean()))
    return np.where(rng.random(len(y)) < 0.03 * heavy, 11.0, 1.0)


def measure_exposed(bag: ExposedBag, n: int, way: str, rng: np.random.Generator) -> list[float]:
    """Coverage and width of the refined share of exposure, and of the same without strata of exposure."""
    N = len(bag.codes)
    truth = bag.exposure @ bag.codes / bag.exposure.sum()
    weights = strata = None
    places = rng.permutation(N)[:n]
    if way != "random":
        exposure = bag.exposure if way == "planned with weights" else None
        plan = plan_posteriors(
            bag.posteriors, bag.owner, exposure=exposure, width=None, n=n, level=LEVEL, stratify=True, rng=rng
        )
        places, weights, strata = plan.indices, plan.design_weights, plan.strata
    known, codes = bag.ratios[places], bag.codes[places]
    shares = fixed_label_em(bag.ratios, known, codes)
    posteriors, theirs = responsibilities(bag.ratios, shares), responsibilities(known, shares)
    parts = []
    for every in (BagExposure(bag.exposure), None):
        given = {"weights": weights, "strata": strata, "exposure": bag.exposure[places], "bag": every}
        design = design_labels(n, N, **given)
        found = prediction_powered(posteriors, theirs, codes, design=design, exposure=bag.exposure)
        lower, upper = (float(end[1]) for end in found.interval(LEVEL))
        parts += [float(lower - 1e-9 <= truth <= upper + 1e-9), upper - lower]
    return parts


def measure_groups(bag: Bag, n: int, way: str, rng: np.random.Generator) -> list[float]:
    """Coverage and width over groups and classes, of the first group, and of groups that borrow; plain widths."""
    k, g = bag.ratios.shape[1], int(bag.owner.max()) + 1
    sizes = np.bincount(bag.owner)
    truth = np.bincount(bag.owner * k + bag.codes, minlength=g * k).reshape(g, k) / sizes[:, None]
    places, design, *_ = drawn_labels(bag, n, way, rng)
    labels = GroupLabels(bag.ratios, bag.owner, bag.ratios[places], bag.owner[places], bag.codes[places], design)
    found = refine_groups(labels, fixed_label_em(bag.ratios, bag.ratios[places], bag.codes[places]), level=LEVEL)
    c = slice(1, None) if k == 2 else slice(None)
    inside = ((found.lower <= truth + 1e-9) & (truth - 1e-9 <= found.upper))[:, c]
    width = (found.upper - found.lower)[:, c]
    counts = np.bincount(bag.owner[places], minlength=g)
    own = np.bincount(bag.owner[places] * k + bag.codes[places], minlength=g * k).reshape(g, k)
    rest = np.maximum(1 - counts / sizes, 1e-9)
    effective = (np.maximum(counts, 0.1) / rest)[:, None]
    lower, upper = score_interval(own / np.maximum(counts, 1)[:, None], effective, LEVEL)
    plain = (upper - lower)[:, c]

    def mean(values: Any, which: Any) -> float:
        return float(values[which].mean()) if which.any() else float("nan")

    return [
        float(inside.mean()),
        float(width.mean()),
        float(inside[0].mean()),
        mean(inside, found.own),
        mean(width, found.own),
        mean(plain, found.own),
        mean(inside, ~found.own),
        mean(width, ~found.own),
        float((~found.own).mean()),
        float(found.p_value < 0.05),
    ]


def trials(make: Any, measure: Any, n: int, way: str, number: int, seed: int) -> Any:
    """Means over trials; NaN where nothing was measured."""
    redrawn = 1 if measure is measure_exposed else REDRAWN  # exposures differ much between bags
    rng = np.random.default_rng(seed)
    found, bag = [], None
    for trial in range(number):
        if trial % redrawn == 0:
            bag = make(rng)
        found.append(measure(bag, n, way, rng))
    values = np.array(found)
    there = np.isfinite(values)
    return np.where(there, values, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)


def natural_bag(folder: Path, file: str, column: str, held: str | None) -> Bag:
    """The held-out part of a training file, read by a quantifier that has learned from the rest."""
    table = pd.read_parquet(folder / f"{file}.parquet").sort_values("date", kind="stable")
    if held is None:
        test = np.arange(len(table)) >= len(table) // 2
        groups = table["date"].str[:10] if file.startswith("airline") else table["date"].str[:7]
    else:
        test = (table[column] == held).to_numpy()
        groups = table["date"].str[:4]
    train, target = table[~test], table[test]
    quantifier = EMQ().fit(train["text"].tolist(), train["label"].to_numpy())
    owner = np.unique(groups[test].to_numpy(str), return_inverse=True)[1].ravel()
    # Periods with fewer than 100 texts join the period before them.
    sizes, merged, current = np.bincount(owner), np.zeros(owner.max() + 1, dtype=np.intp), 0
    held_so_far = 0
    for place, size in enumerate(sizes.tolist()):
        merged[place] = current
        held_so_far += size
        if held_so_far >= 100 and sizes[place + 1 :].sum() >= 100:
            current, held_so_far = current + 1, 0
    ratios = likelihood_ratios(quantifier, target["text"].tolist())
    return Bag(ratios, encode(target["label"].to_numpy(), quantifier.classes_), merged[owner])


def report(given: argparse.Namespace) -> Iterator[str]:
    """The tables, in Markdown."""
    began = time.time()
    yield from introduction(given)
    if given.exposure:
        yield from exposed(given)
    else:
        yield from simulated(given) if given.data is None else natural(given)
    yield f"{time.time() - began:.0f} s with {given.jobs} jobs."


def introduction(given: argparse.Namespace) -> Iterator[str]:
    """What was run, and what the columns mean."""
    packages = ", ".join(f"{one} {version(one)}" for one in ("numpy", "scipy", "scikit-learn"))
    yield "# Shares refined with a few labels, under drift"
    yield ""
    yield (
        f"`python {shlex.join(sys.argv)}`. {given.trials} trials a cell: the standard error of a coverage of 95 % is "
        f"{100 * np.sqrt(0.95 * 0.05 / given.trials):.1f} points. Level 95 %. Python {platform.python_version()}, "
        f"{packages}."
    )
    yield ""
    yield "*Factor*: mean width of the refined interval divided by that of the plain share of as many random labels "
    yield "(Wilson, with finite-population correction); below 1 is better. *Planned*: strata of similar posteriors. "
    yield "A group with at least 10 labels uses its own; the others *borrow* from all."
    yield ""


def simulated(given: argparse.Namespace) -> Iterator[str]:
    """Gaussian classes under drift: bags of 2,000, and groups."""
    parallel, run = Parallel(n_jobs=given.jobs), partial(delayed(trials), number=given.trials, seed=given.seed)
    quantifier = fitted()
    yield "## Simulated drift, bags of 2,000"
    yield ""
    yield from (f"- {kind}: {meaning}." for kind, meaning in KINDS.items())
    yield ""
    cells = list(product(KINDS, SHARES, LABELS, ("random", "planned")))
    found = parallel(
        run(partial(simulate, quantifier, kind, share), measure_total, n, way) for kind, share, n, way in cells
    )
    yield from total_table([(f"{kind} | {share:.0%}", n, way) for kind, share, n, way in cells], found, "drift | share")
    yield "## Simulated groups"
    yield ""
    yield "Shares of groups are between 8 and 60 %. *differ*: each group moves by another amount; *one*: only the "
    yield "first group moves, far."
    yield ""
    sizes = {"6 of 300": (300,) * 6, "12 of 200": (200,) * 12, "12 of 60 to 600": uneven(12, 60, 600)}
    cells = list(product(sizes, GROUP_KINDS, (100, 200, 400), ("random", "by group")))
    found = parallel(
        run(partial(simulate_groups, quantifier, kind, sizes[name]), measure_groups, n, way)
        for name, kind, n, way in cells
    )
    yield from group_table([(f"{name} | {kind}", n, way) for name, kind, n, way in cells], found, "groups | drift")


def exposed(given: argparse.Namespace) -> Iterator[str]:
    """Shares of exposure: coverage and width for random and planned labels."""
    parallel, run = Parallel(n_jobs=given.jobs), partial(delayed(trials), number=given.trials, seed=given.seed)
    quantifier = fitted()
    yield "## Shares of exposure, bags of 1,000"
    yield ""
    yield from (f"- {kind}: {meaning}." for kind, meaning in EXPOSURES.items())
    yield ""
    yield "*Before*: the same labels, with the variance that they show themselves."
    yield ""
    cells = list(product(EXPOSURES, ("shifted", "useless"), (0.1, 0.3, 0.5), (100, 300), WAYS))
    found = parallel(
        run(partial(simulate_exposed, quantifier, kind, drifted, share), measure_exposed, n, way)
        for kind, drifted, share, n, way in cells
    )
    by = dict(zip(cells, found, strict=True))
    yield f"| exposure | drift | share | labels | {' | '.join(f'{way}: coverage | width' for way in WAYS)} | before |"
    yield "|" + "---|" * (len(WAYS) * 2 + 5)
    for row in dict.fromkeys(cell[:-1] for cell in cells):
        kind, drifted, share, n = row
        values = " | ".join(f"{by[*row, way][0]:.1%} | {by[*row, way][1]:.3f}" for way in WAYS)
        yield f"| {kind} | {drifted} | {share:.0%} | {n} | {values} | {by[*row, 'random'][2]:.1%} |"
    yield ""
    for n, way in product((100, 300), WAYS):
        values = np.array([by[cell] for cell in cells if cell[-2:] == (n, way)])
        yield (
            f"- {n} labels, {way}: {spread(values[:, 0], '.1%')}, width {spread(values[:, 1], '.3f')}; before "
            f"{spread(values[:, 2], '.1%')}."
        )
    yield ""


def natural(given: argparse.Namespace) -> Iterator[str]:
    """Held-out parts of training files, and their periods."""
    parallel, run = Parallel(n_jobs=given.jobs), partial(delayed(trials), number=given.trials, seed=given.seed)
    yield "## Held-out halves and domains of training files"
    yield ""
    bags = {name: natural_bag(given.data, *which) for name, which in NATURAL.items()}
    cells = list(product(bags, LABELS, ("random", "planned")))
    found = parallel(run(lambda _, b=bags[name]: b, measure_total, n, way) for name, n, way in cells)
    yield from total_table(cells, found, "data")
    grouped = [name for name, bag in bags.items() if bag.owner.any()]
    cells = list(product(grouped, (200, 400), ("random", "by group")))
    found = parallel(run(lambda _, b=bags[name]: b, measure_groups, n, way) for name, n, way in cells)
    named = [(f"{name}, {bags[name].owner.max() + 1} periods", n, way) for name, n, way in cells]
    yield from group_table(named, found, "data")


def uneven(g: int, low: int, high: int) -> tuple[int, ...]:
    """Sizes of groups, evenly spaced on a logarithmic scale."""
    return tuple(np.round(np.geomspace(low, high, g)).astype(int).tolist())


def total_table(cells: Any, found: Any, title: str) -> Iterator[str]:
    """One row for each kind and number of labels: random and planned labels side by side."""
    yield f"| {title} | labels | plain: coverage | width | random: coverage | factor | planned: coverage | factor |"
    yield "|" + "---|" * (title.count("|") + 8)
    by = {(name, n, way): values for (name, n, way), values in zip(cells, found, strict=True)}
    rows = dict.fromkeys((name, n) for name, n, _ in cells)
    gathered = []
    for name, n in rows:
        random, planned = by[name, n, "random"], by[name, n, "planned"]
        plain, width = (random[2] + planned[2]) / 2, (random[3] + planned[3]) / 2
        parts = (plain, random[0], random[1] / width, planned[0], planned[1] / width)
        gathered.append((n, *parts))
        yield (
            f"| {name} | {n} | {plain:.1%} | {width:.3f} | {parts[1]:.1%} | {parts[2]:.2f} | {parts[3]:.1%} | "
            f"{parts[4]:.2f} |"
        )
    values = np.array(gathered)
    yield ""
    for n in dict.fromkeys(values[:, 0].astype(int).tolist()):
        plain, random, factor, planned, planned_factor = values[values[:, 0] == n].T[1:]
        yield (
            f"- {n} labels: random ones cover {spread(random, '.1%')}, factor {spread(factor, '.2f')}; planned ones "
            f"cover {spread(planned, '.1%')}, factor {spread(planned_factor, '.2f')}; the plain share covers "
            f"{spread(plain, '.1%')}."
        )
    yield ""


def spread(values: Any, form: str) -> str:
    """Mean, lowest and highest value."""
    return f"{values.mean():{form}} ({values.min():{form}} to {values.max():{form}})"


def group_table(cells: Any, found: Any, title: str) -> Iterator[str]:
    """One row for each kind, number and choice of labels."""
    yield (
        f"| {title} | labels | choice | coverage | width | first group | own labels: coverage | factor | "
        "borrowing: groups | coverage | width | found to differ |"
    )
    yield "|" + "---|" * (title.count("|") + 12)
    for (name, n, way), values in zip(cells, found, strict=True):
        every, width, first, own, own_width, plain, borrowed, lent_width, share, differ = values
        lent = f"{share:.0%} | {borrowed:.1%} | {lent_width:.3f}" if share else "0% | -- | --"
        mine = f"{own:.1%} | {own_width / plain:.2f}" if share < 1 else "-- | --"
        yield f"| {name} | {n} | {way} | {every:.1%} | {width:.3f} | {first:.1%} | {mine} | {lent} | {differ:.0%} |"
    values = np.array([one[0] for one in found])
    yield ""
    yield f"{values.mean():.1%} on average, {values.min():.1%} to {values.max():.1%}."
    yield ""


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the training files; default: simulations")
    parser.add_argument("--exposure", action="store_true", help="shares of exposure instead")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    write_whole(given.output, ("\n".join(report(given)) + "\n").encode())


if __name__ == "__main__":
    main()

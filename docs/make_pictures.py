"""Draw the pictures of docs/explanation: generated data, fixed seeds, half a minute.

python docs/make_pictures.py [NAME ...]
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import expit, logit
from scipy.stats import norm

from quanet import ACC, APP, EMQ, PACC, Bags, Gaussians, QuaNet, calibrate, cramer_rao_error, evaluate
from quanet.nn.share_reader import WEIGHTS
from quanet.report.charts.canvas import save_figure, sized_figure
from quanet.report.palette import LIGHT

FOLDER = Path(__file__).parent / "explanation"
COLOURS = {"ACC": "ochre", "PACC": "purple", "EMQ": "blue"}
RECORD = WEIGHTS.with_suffix(".json")
TASKS_OF_A_STEP = 256  # in the run of docs/experiments/share-network.md
MARKERS = {"ACC": "s", "PACC": "D", "EMQ": "^"}


def panels(number: int, *, height: float = 3.4, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, on a white ground."""
    figure = sized_figure(9.6, height)
    axes = list(figure.subplots(1, number, sharey=sharey, squeeze=False)[0])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(LIGHT["muted"])
        ax.tick_params(colors=LIGHT["muted"], labelsize=8)
        ax.xaxis.label.set_size(9)
        ax.yaxis.label.set_size(9)
    return figure, axes


def grid(ax: Axes) -> None:
    """Faint lines behind the data."""
    ax.grid(color=LIGHT["rule"], linewidth=0.6)
    ax.set_axisbelow(True)


def diagonal(ax: Axes) -> None:
    """The line where both axes agree."""
    ax.plot([0, 1], [0, 1], color=LIGHT["muted"], linewidth=1, linestyle="--", label="ideal")
    ax.set(xlim=(0, 1), ylim=(0, 1))


def shifts() -> Figure:
    """Densities of a score in two classes: training, prior shift, covariate shift, drift within a class."""
    x = np.linspace(-5, 5, 600)
    negative, positive = norm.pdf(x, -1.2), norm.pdf(x, 1.2)
    rarer_left = expit(1.5 * (x + 0.3))  # P(y | x) stays: both classes are thinned out at the same x
    cases = {
        "training": (0.5 * negative, 0.5 * positive),
        "prior shift": (0.85 * negative, 0.15 * positive),
        "covariate shift": (negative * rarer_left / 2, positive * rarer_left / 2),
        "drift within a class": (0.5 * norm.pdf(x, -0.2), 0.5 * positive),
    }
    figure, axes = panels(4, height=2.5, sharey=True)
    for ax, (title, curves) in zip(axes, cases.items(), strict=True):
        first, second = np.array(curves) / np.trapezoid(sum(curves), x)
        ax.fill_between(x, first + second, color=LIGHT["rule"], linewidth=0)
        ax.plot(x, first, color=LIGHT["vermilion"], linewidth=2, label="negative")
        ax.plot(x, second, color=LIGHT["blue"], linewidth=2, linestyle="--", label="positive")
        ax.set_title(f"{title}\n{np.trapezoid(second, x):.0%} positive", fontsize=10)
        ax.set(xlabel="score", yticks=[], ylim=(0, 0.42))
        ax.spines["left"].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def calibration() -> Figure:
    """A reliability diagram, and what EMQ makes of the posteriors; overconfident and calibrated."""
    source = Gaussians(distance=2.0)

    def overconfident(X: Any) -> Any:
        log_odds = logit(source.posteriors(X, [0.5, 0.5])[:, 1])
        return np.column_stack([expit(-3 * log_odds), expit(3 * log_odds)])

    held, codes = source.draw([0.5, 0.5], 2000, rng=0)
    to_calibrated = calibrate(overconfident(held), codes, method="bcts")
    X, y = source.draw([0.5, 0.5], 100_000, rng=1)
    raw = overconfident(X)
    figure, (left, right) = panels(2, height=4.2)
    truths = np.linspace(0.05, 0.95, 19)
    bags = [source.draw([1 - p, p], 1000, rng=2 + at)[0] for at, p in enumerate(truths)]
    for name, colour, marker, posteriors, method in (
        ("overconfident", "vermilion", "o", raw, None),
        ("after BCTS", "blue", "^", to_calibrated(raw), "bcts"),
    ):
        edges = np.linspace(0, 1, 16)
        at = np.digitize(posteriors[:, 1], edges[1:-1])
        means = [[values[at == b].mean() for b in range(15)] for values in (posteriors[:, 1], y)]
        left.plot(*means, color=LIGHT[colour], marker=marker, markersize=4, label=name)
        quantifier = EMQ("precomputed", calibration=method).fit(overconfident(held), codes)
        estimates = [quantifier.predict(overconfident(bag))[1] for bag in bags]
        right.plot(truths, estimates, color=LIGHT[colour], marker=marker, markersize=4, label=f"EMQ, {name}")
    left.set_title("Posteriors", fontsize=10)
    left.set(xlabel="posterior of the positive class", ylabel="positive instances among them")
    right.set_title("Estimates", fontsize=10)
    right.set(xlabel="true prevalence", ylabel="estimated prevalence")
    for ax in (left, right):
        diagonal(ax)
        grid(ax)
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def cramer_rao() -> Figure:
    """The limit and three methods by prevalence; the limit by the accuracy of the classifier."""
    source = Gaussians(distance=2.0)
    X, y = source.draw([0.5, 0.5], 20_000, rng=0)
    posteriors = source.posteriors(X, [0.5, 0.5])
    figure, (left, right) = panels(2, height=3.8)
    p = np.linspace(0.01, 0.99, 99)
    limit = cramer_rao_error(posteriors, np.column_stack([1 - p, p]), bag_size=500)
    left.plot(p, limit, color=LIGHT["ink"], linewidth=2, label="Cramér-Rao limit", zorder=1)
    for method in (ACC, PACC, EMQ):
        name = method.__name__
        results = evaluate(method("precomputed").fit(posteriors, y), posteriors, y, APP(repeats=400), rng=1)
        truth = results.truth[:, 1].round(2)
        errors = [results.error("ae")[truth == value].mean() for value in np.unique(truth)]
        style = {"color": LIGHT[COLOURS[name]], "marker": MARKERS[name], "markersize": 4, "linestyle": "none"}
        left.plot(np.unique(truth), errors, label=name, **style)
    left.set_title("Bags of 500", fontsize=10)
    left.set(xlabel="true prevalence", ylabel="mean absolute error", ylim=(0, 0.027))
    distances = np.linspace(0.5, 5, 46)
    for size, style in ((100, ":"), (500, "-"), (2000, "--")):
        errors = [float(cramer_rao_error(pool_at(d), [[0.5, 0.5]], bag_size=size)[0]) for d in distances]
        right.plot(norm.cdf(distances / 2), errors, color=LIGHT["blue"], linestyle=style, label=f"bags of {size:,}")
    right.set_title("The limit at a prevalence of .5", fontsize=10)
    right.set(xlabel="accuracy of the classifier", ylabel="mean absolute error", xlim=(0.6, 1), ylim=(0, 0.15))
    for ax in (left, right):
        grid(ax)
        ax.legend(frameon=False, fontsize=8, loc="lower center" if ax is left else "upper right")
    return figure


def pool_at(distance: float) -> Any:
    """The best possible posteriors of two Gaussian classes at a distance."""
    source = Gaussians(distance=distance)
    return source.posteriors(source.draw([0.5, 0.5], 20_000, rng=0)[0], [0.5, 0.5])


def product_bag(offset: Any, prevalence: float, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Instances of a product: ten features, of which the first one separates the classes; and their classes."""
    positive = round(n * prevalence)
    y = rng.permutation(np.repeat([0, 1], [n - positive, positive]))
    X = rng.standard_normal((n, 10)) + offset
    X[:, 0] += 2 * y - 1
    return X, y


def intervals() -> Figure:
    """Sixty intervals: products of the training data; new products, sampling alone; new products, drift included."""
    rng, number, size, products = np.random.default_rng(0), 60, 500, 12
    offsets = 0.15 * rng.standard_normal((products, 10))
    parts = [product_bag(offset, 0.5, 250, rng) for offset in offsets]
    X, y = np.vstack([x for x, _ in parts]), np.hstack([y for _, y in parts])
    quantifier = EMQ().fit(X, y, groups=np.repeat(np.arange(products), 250))
    truths = rng.uniform(0.1, 0.9, number).round(2)
    new = [product_bag(0.15 * rng.standard_normal(10), p, size, rng) for p in truths]
    known = [product_bag(offsets[rng.integers(products, size=size)], p, size, rng) for p in truths]
    bags = Bags(np.arange(number * size).reshape(number, size))
    stable, drifted = (
        quantifier.predict_interval_bags(np.vstack([x for x, _ in drawn]), bags) for drawn in (known, new)
    )
    cases = {
        "Products of the training data": stable,
        "New products, sampling alone": drifted.without_drift,
        "New products, drift included": drifted,
    }
    figure, axes = panels(3, height=3.4, sharey=True)
    for ax, (title, found) in zip(axes, cases.items(), strict=True):
        ends = 100 * (np.column_stack([found.lower[:, 1], found.upper[:, 1]]) - truths[:, None])
        misses = (ends[:, 0] > 0) | (ends[:, 1] < 0)
        for part, colour, width in ((~misses, "blue", 1.4), (misses, "alarm", 2.6)):
            ax.vlines(np.flatnonzero(part), *ends[part].T, color=LIGHT[colour], linewidth=width)
        ax.axhline(0, color=LIGHT["ink"], linewidth=1)
        ax.set_title(f"{title}\n{misses.sum()} of {number} miss", fontsize=10)
        ax.set(xlabel="bag", xticks=[])
    axes[0].set_ylabel("interval minus truth, points")
    return figure


def simulated_tasks() -> Figure:
    """Eight of the tasks that QuaNet's network was trained on: scores of both classes and of the bag."""
    import torch

    from quanet.nn.simulator import Simulator

    simulator = Simulator(torch.Generator("cpu").manual_seed(7))
    tasks = simulator.small(64, 512, 1024)
    large = np.flatnonzero(tasks.counts[:, 2].sum(1) >= 50)[::2]
    figure = sized_figure(9.6, 4.2)
    for ax, at in zip(figure.subplots(2, 4).ravel(), large, strict=False):
        scores, counts, share = (part[at].numpy() for part in (tasks.scores, tasks.counts, tasks.share))
        known = np.flatnonzero(counts.sum(axis=0))
        edges = np.linspace(*np.quantile(scores[known], [0.005, 0.995]), 33)
        edges[-1] += 1e-3
        for of, colour in ((2, "rule"), (0, "vermilion"), (1, "blue")):
            heights, _ = np.histogram(scores, edges, weights=counts[of] / counts[of].sum())
            if of == 2:
                ax.stairs(heights, edges, fill=True, color=LIGHT[colour])
            else:
                ax.stairs(heights, edges, color=LIGHT[colour], linewidth=1.6, linestyle="-" if of else "--")
        first, second, bag = counts.sum(axis=1)
        ax.set_title(f"{first:.0f} + {second:.0f} rows, bag of {bag:,.0f}: {float(share):.0%}", fontsize=8.5)
        ax.set(xticks=[], yticks=[])
        ax.spines[["top", "right", "left"]].set_visible(False)
    return figure


def learned_curves() -> Figure:
    """What maximum likelihood and the network make of one bag of 500, with 40, 200 and 2,000 training rows."""
    source = Gaussians(distance=1.5)
    new, classes = source.draw([0.3, 0.7], 500, rng=10)
    truth, shares = float(np.mean(classes)), np.linspace(0.001, 0.999, 999)
    figure, axes = panels(3, height=2.9)
    for ax, number in zip(axes, (40, 200, 2000), strict=True):
        quantifier = QuaNet().fit(*source.draw([0.5, 0.5], number, rng=4))
        rows = quantifier.represent(new)
        ratios = rows[:, 1] / rows[:, 0] * quantifier.prior_[0] / quantifier.prior_[1]
        logs = np.log(1 - shares[:, None] + shares[:, None] * ratios).sum(axis=1)
        likelihood = np.exp(logs - logs.max())
        curve = quantifier.share_curves(rows[None])[1]
        nodes, chances = curve.nodes[0], curve.chances[0]
        ax.axvline(100 * truth, color=LIGHT["ink"], linewidth=1.2, label="truth")
        ax.plot(
            100 * shares, likelihood / likelihood.sum() * 1000, color=LIGHT["muted"], linestyle="--", label="likelihood"
        )
        density = (chances / np.gradient(nodes))[1:-1]  # the first and the last node are shares of exactly 0 and 1
        ax.plot(100 * nodes[1:-1], density, color=LIGHT["vermilion"], linewidth=2, label="network")
        ax.set_title(f"{number:,} training rows", fontsize=10)
        ax.set(xlabel="share of the positive class, %", xlim=(30, 100), yticks=[], ylim=(0, None))
        ax.spines["left"].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def learning_curve() -> Figure:
    """Losses of a small run of pretraining on fixed simulated tasks, and those of the shipped network on them."""
    log = (FOLDER.parent / "experiments" / "share-network-small.jsonl").read_text().splitlines()
    reports = [json.loads(line) for line in log]
    shipped = json.loads(RECORD.read_text())["losses"]
    tasks = [TASKS_OF_A_STEP * report["step"] for report in reports]
    figure, axes = panels(2, height=2.9)
    for ax, fact, label in zip(axes, ("network", "network_ae"), ("surprise", "absolute error"), strict=True):
        ax.plot(tasks, [report[fact] for report in reports], color=LIGHT["vermilion"], linewidth=2)
        ax.axhline(shipped[fact], color=LIGHT["ink"], linestyle="--", linewidth=1.2, label="shipped network")
        ax.set(xlabel="simulated tasks seen", ylabel=label)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.xaxis.set_major_locator(MaxNLocator(4))
        grid(ax)
    axes[1].axhline(
        shipped["likelihood_ae"], color=LIGHT["muted"], linestyle=":", linewidth=1.6, label="maximum likelihood"
    )
    axes[1].legend(frameon=False, fontsize=8)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "simulated-tasks": simulated_tasks,
    "learned-curves": learned_curves,
    "learning-curve": learning_curve,
    "shifts": shifts,
    "calibration": calibration,
    "cramer-rao": cramer_rao,
    "intervals": intervals,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        save_figure(PICTURES[name](), FOLDER / f"{name}.png")

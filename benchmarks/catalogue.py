"""Time every method of the catalogue: milliseconds of one thread for a bag of 500, and of 1,000 with 28 classes.

    python benchmarks/catalogue.py --output benchmarks/results/catalogue.md
    python benchmarks/catalogue.py --large --output benchmarks/results/catalogue-large.md    # 5,000 bags of 1,000

Posteriors are synthetic and exact, from `Gaussians`. Methods that read features get the points themselves, methods that
read texts get `WordBags`. A bag's rows are gathered from a pool and aggregated; classifying the pool is not counted.
"""

import argparse
import platform
import resource
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import quanet
from quanet import CC, PACC, T50, TAC, UPP, Gaussians, WordBags
from quanet.base import Quantifier
from quanet.lab.catalogue import list_methods

POOL, TRAIN = 25_000, 5_000
# How a method is made that needs more than a classifier; None: its cost is that of what it chooses.
MADE: dict[str, Callable[[], Any] | None] = {
    "OneVsRest": lambda: quanet.OneVsRest(T50("precomputed")),
    "FrankHall": lambda: quanet.FrankHall(PACC("precomputed")),
    "Median": lambda: quanet.Median(TAC("precomputed"), {"threshold": [0.3, 0.5, 0.7]}),
    "Ensemble": lambda: quanet.Ensemble(CC("precomputed"), size=50, policy="prevalence"),
    **{
        name: lambda name=name: getattr(quanet, name)("precomputed", max_epochs=1, random_state=0)
        for name in ("DeepSets", "GMNet", "HistNetQ")
    },
    "AutoQuantifier": None,
    "GridSearchQ": None,
}
TWO_ONLY = {"Median", "DeepSets", "GMNet", "HistNetQ"}  # as made here, or too slow to train for many classes


def make(name: str, needs: str) -> Quantifier | None:
    """An unfitted quantifier of that name, on posteriors if it accepts them."""
    if name in MADE:
        maker = MADE[name]
        return None if maker is None else maker()
    kind = getattr(quanet, name)
    return kind("precomputed") if needs == "posteriors" else kind()


def data(needs: str, k: int) -> tuple[Any, Any, Any, Any]:
    """Training instances and labels, pool and labels, as the method reads them."""
    uniform = np.full(k, 1 / k)
    if needs == "text":
        source = WordBags(k=k, preference=8)
        return *source.draw(uniform, TRAIN // 5, rng=0), *source.draw(uniform, POOL // 5, rng=1)
    clouds = Gaussians(k=k, distance=2.5)
    (X, y), (pool, y_pool) = clouds.draw(uniform, TRAIN, rng=0), clouds.draw(uniform, POOL, rng=1)
    if needs == "features":
        return X, y, pool, y_pool
    return clouds.posteriors(X, uniform), y, clouds.posteriors(pool, uniform), y_pool


def milliseconds(name: str, needs: str, k: int, n: int, bags: int) -> float:
    """CPU time per bag, after everything is compiled and the pool is represented."""
    quantifier = make(name, needs)
    if quantifier is None or (k > 5 and name in TWO_ONLY):
        return float("nan")
    X, y, pool, y_pool = data(needs, k)
    drawn = UPP(bag_size=n, repeats=bags).draw(y_pool, rng=2)
    rows = quantifier.fit(X, y).represent(pool)
    for _, stack in drawn.gather(rows):
        quantifier.aggregate(stack[:2])
        break
    seconds = []
    for _ in range(3 if bags < 1000 else 1):
        start = time.process_time()
        for _, stack in drawn.gather(rows):
            quantifier.aggregate(stack)
        seconds.append(time.process_time() - start)
    return 1e3 * float(np.median(seconds)) / bags


def told(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3g}"


def chosen(only: list[str]) -> list[Any]:
    return [entry for entry in list_methods().itertuples() if not only or entry.name in only]


def report(only: list[str]) -> str:
    lines = ["| method | ms, 500 of 2 classes | ms, 1,000 of 28 classes |", "|---|---|---|"]
    for entry in chosen(only):
        name, needs = str(entry.name), str(entry.needs)
        ordered, two = entry.classes == "ordered", entry.classes == "two"
        few = milliseconds(name, needs, 5 if ordered else 2, 500, 200)
        many = float("nan") if two else milliseconds(name, needs, 28, 1000, 50)
        lines.append(f"| `{name}` | {told(few)} | {told(many)} |")
        print(lines[-1], flush=True)
    return HEAD.format(machine=machine()) + "\n".join(lines) + "\n"


def large(only: list[str]) -> str:
    lines = ["| method | seconds for 5,000 bags of 1,000, 28 classes |", "|---|---|"]
    for entry in chosen(only):
        name, needs = str(entry.name), str(entry.needs)
        if entry.classes == "two" or make(name, needs) is None or name in TWO_ONLY:
            continue
        lines.append(f"| `{name}` | {5 * milliseconds(name, needs, 28, 1000, 5000):.1f} |")
        print(lines[-1], flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return LARGE.format(machine=machine(), peak=peak) + "\n".join(lines) + "\n"


HEAD = """# What a bag costs

Made by `python benchmarks/catalogue.py`. {machine}. CPU time of one thread, rows of a pool of 25,000 gathered and
aggregated; methods of ordered classes have 5 instead of 2; `Ensemble` has 50 members, `Median` 3 settings; the
networks are trained for one epoch.

"""
LARGE = """# The size of LeQua's T1B: 28 classes, 5,000 bags of 1,000

Made by `python benchmarks/catalogue.py --large`. {machine}. CPU seconds of one thread; the process with all methods
one after another took {peak:.2f} GB at most.

"""


def machine() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{model}, {platform.system()}, Python {platform.python_version()}; {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the table here, as Markdown")
    parser.add_argument("--large", action="store_true", help="28 classes, 5,000 bags of 1,000")
    parser.add_argument("--only", nargs="*", default=[], help="only these methods")
    arguments = parser.parse_args()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        text = (large if arguments.large else report)(arguments.only)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()

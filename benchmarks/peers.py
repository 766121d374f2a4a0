"""Time quanet against QuaPy, mlquantify and quantificationlib: same posteriors, one thread, alternating in one run.

    make bench                                     # or, in an environment that has the other libraries:
    python benchmarks/peers.py --output table.md

Two comparisons, for 2 classes (the paper's protocol) and for 4, 10 and 28:

- a whole evaluation, done the way each library does it: classify the pool, draw bags, aggregate each, compute the
  error;
- aggregation alone, on the same bags, and the difference between the estimates.

Times are CPU seconds of one thread. A ratio is the other library's time over quanet's within one round; its median and
range over the rounds are reported. Absolute times differ between machines, ratios hardly do. A library that would take
hours is given every 5th to 420th bag, see `peer_methods.py`, and its time is multiplied by that number.

    python benchmarks/peers.py --family matching --classes 2 28
"""

import argparse
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlquantify.counting
import mlquantify.likelihood
import mlquantify.model_selection
import numpy as np
import quantificationlib.baselines.ac
import quantificationlib.baselines.cc
import quantificationlib.multiclass.em
import quapy
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from peer_methods import Method, PassOn, matching_methods
from quanet import ACC, APP, CC, EMQ, PACC, PCC, UPP, Gaussians, evaluate

PEERS = ("quapy", "mlquantify", "quantificationlib")
MEMORY = Path(__file__).with_name("memory.py")


@dataclass(frozen=True)
class Problem:
    """Labelled data, a classifier, and the bags of one setting."""

    k: int
    bag_size: int
    bags: int
    seed: int = 0

    def __post_init__(self) -> None:
        source, uniform = Gaussians(k=self.k, distance=2.5), np.full(self.k, 1 / self.k)
        X, y = source.draw(uniform, 5000, rng=self.seed)
        classifier = LogisticRegression(max_iter=1000).fit(X, y)
        held, y_held = source.draw(uniform, 5000, rng=self.seed + 1)
        pool, y_pool = source.draw(uniform, 25_000, rng=self.seed + 2)
        made = {"classifier": classifier, "held": held, "y_held": y_held, "pool": pool, "y_pool": y_pool}
        made["protocol"] = APP(bag_size=500) if self.k == 2 else UPP(bag_size=self.bag_size, repeats=self.bags)
        for name, value in made.items():
            object.__setattr__(self, name, value)


def methods(k: int) -> list[Method]:
    """The methods, with each library's names and settings; quanet's EMQ both exact and with QuaPy's stopping rule."""
    theirs, counting = quapy.method.aggregative, mlquantify.counting
    adjusted = counting.ACC if k == 2 else counting.GACC
    em = {
        "quapy": lambda c: theirs.EMQ(c, fit_classifier=False),
        "mlquantify": lambda: mlquantify.likelihood.EMQ(PassOn()),
        "quantificationlib": quantificationlib.multiclass.em.EM,
    }
    return [
        Method(
            "CC",
            CC,
            lambda c: theirs.CC(c, fit_classifier=False),
            lambda: counting.CC(PassOn()),
            quantificationlib.baselines.cc.CC,
            soft=False,
        ),
        Method(
            "PCC",
            PCC,
            lambda c: theirs.PCC(c, fit_classifier=False),
            lambda: counting.PCC(PassOn()),
            quantificationlib.baselines.cc.PCC,
        ),
        Method(
            "ACC",
            ACC,
            lambda c: theirs.ACC(c, fit_classifier=False),
            lambda: adjusted(PassOn()),
            quantificationlib.baselines.ac.AC,
            soft=False,
        ),
        Method(
            "PACC",
            PACC,
            lambda c: theirs.PACC(c, fit_classifier=False),
            lambda: counting.GPACC(PassOn()),
            quantificationlib.baselines.ac.PAC,
        ),
        Method("EMQ, exact", lambda c: EMQ(c, calibration=None), **em),
        Method("EMQ, QuaPy's stopping", lambda c: EMQ(c, calibration=None, solver="em", tol=1e-4), **em),
    ]


def whole_evaluations(problem: Problem, method: Method) -> dict[str, Callable[[], float]]:
    """Classify, draw, aggregate, compute the mean error: one function per library."""
    ours = method.quanet(FrozenEstimator(problem.classifier)).fit(problem.held, problem.y_held)
    calls = {
        "quanet": lambda: float(
            evaluate(ours, problem.pool, problem.y_pool, problem.protocol, rng=problem.seed).error().mean()
        )
    }
    if method.quapy:
        theirs = method.quapy(problem.classifier).fit(problem.held, problem.y_held)
        labelled = quapy.data.LabelledCollection(problem.pool, problem.y_pool)
        every = method.every.get("quapy", 1)
        if problem.k == 2:
            settings = _thinned(every)
            protocol = quapy.protocol.APP(labelled, sample_size=500, random_state=0, **settings)
        else:
            protocol = quapy.protocol.UPP(labelled, problem.bag_size, repeats=problem.bags // every, random_state=0)
        calls["quapy"] = lambda: float(quapy.evaluation.evaluate(theirs, protocol, error_metric="mae"))
    if method.mlquantify:
        held = problem.held if method.features else problem.classifier.predict_proba(problem.held)
        other = method.mlquantify().fit(held, problem.y_held)
        calls["mlquantify"] = lambda: _mlquantify_evaluation(problem, method, other)
    return calls


def _thinned(every: int) -> dict[str, int]:
    """The paper's 21 prevalences and 100 bags each, or only every n-th of these 2,100."""
    repeats = max(1, 100 // every)
    return {"n_prevalences": 2100 // every // repeats, "repeats": repeats}


def _mlquantify_evaluation(problem: Problem, method: Method, quantifier: Any) -> float:
    rows = problem.pool if method.features else problem.classifier.predict_proba(problem.pool)
    draw, every = mlquantify.model_selection, method.every.get("mlquantify", 1)
    if problem.k == 2:
        protocol = draw.APP(batch_size=500, random_state=0, **_thinned(every))
    else:
        protocol = draw.UPP(batch_size=problem.bag_size, n_prevalences=problem.bags // every, random_state=0)
    errors = []
    for indices in protocol.split(rows, problem.y_pool):
        truth = np.bincount(problem.y_pool[indices], minlength=problem.k) / len(indices)
        errors.append(np.abs(quantifier.predict(rows[indices]) - truth).mean())
    return float(np.mean(errors))


def aggregations(problem: Problem, method: Method) -> dict[str, Callable[[], Any]]:
    """Estimates (b, k) on the same bags of the same given posteriors: one function per library."""
    made = (
        (problem.pool, problem.held)
        if method.features
        else map(problem.classifier.predict_proba, (problem.pool, problem.held))
    )
    rows, held = made
    bags = problem.protocol.draw(problem.y_pool, rng=problem.seed)
    stack = rows[bags.indices]
    stacks = list(stack)
    crisp = [bag.argmax(axis=1) for bag in stacks]
    ours = method.quanet("precomputed").fit(held, problem.y_held)
    calls: dict[str, Callable[[], Any]] = {
        "quanet": (lambda: ours.predict_bags(rows, bags)) if method.pool else (lambda: ours.aggregate(stack))
    }
    some = {peer: stacks[:: method.every.get(peer, 1)] for peer in PEERS}
    if method.quapy:
        theirs = method.quapy(problem.classifier).fit(problem.held, problem.y_held)
        predict = theirs.predict if method.features else theirs.aggregate
        given = some["quapy"] if method.soft else crisp
        calls["quapy"] = lambda: np.array([predict(bag) for bag in given])
    if method.mlquantify:
        other = method.mlquantify().fit(held, problem.y_held)
        calls["mlquantify"] = lambda: np.array([other.predict(bag) for bag in some["mlquantify"]])
    if method.quantificationlib:
        third = method.quantificationlib()
        if method.features:
            third.fit(held, problem.y_held)
            calls["quantificationlib"] = lambda: np.array([third.predict(bag) for bag in some["quantificationlib"]])
        else:
            third.fit(None, problem.y_held, predictions_train=held)
            calls["quantificationlib"] = lambda: np.array(
                [third.predict(None, predictions_test=bag) for bag in some["quantificationlib"]]
            )
    return calls


def rounds(
    calls: dict[str, Callable[[], Any]], repeats: int, every: dict[str, int]
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """CPU seconds of every call in every round, alternating between libraries; and their results."""
    returned = {name: call() for name, call in calls.items()}  # compiles, fills caches
    start = time.process_time()
    calls["quanet"]()
    # A call of a few milliseconds is repeated, so that the clock's grain does not matter.
    often = 5 if time.process_time() - start < 1 else 1
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times = often if name == "quanet" else 1
            start = time.process_time()
            for _ in range(times):
                call()
            seconds[name].append((time.process_time() - start) / times * every.get(name, 1))
    return seconds, returned


def ratio(seconds: dict[str, list[float]], peer: str) -> str:
    if peer not in seconds:
        return "-"
    ratios = np.array(seconds[peer]) / np.array(seconds["quanet"])
    return f"**{np.median(ratios):,.1f}** ({ratios.min():,.1f} to {ratios.max():,.1f})"


def difference(returned: dict[str, Any], peer: str, every: dict[str, int]) -> str:
    if peer not in returned:
        return "-"
    return f"{np.abs(returned[peer] - returned['quanet'][:: every.get(peer, 1)]).max():.0e}"


def nearer_to_the_optimum(problem: Problem, method: Method, returned: dict[str, Any]) -> list[str]:
    """How far every library's residual is above the smallest one of all libraries, at the worst bag."""
    posteriors = problem.classifier.predict_proba(problem.pool)
    bags = problem.protocol.draw(problem.y_pool, rng=problem.seed)
    held = problem.classifier.predict_proba(problem.held)
    rates = method.quanet("precomputed").fit(held, problem.y_held).rates_
    counted = (PCC if method.soft else CC)("precomputed").fit(held, problem.y_held).predict_bags(posteriors, bags)
    residual = {name: np.linalg.norm(found @ rates.T - counted, axis=1) for name, found in returned.items()}
    least = np.min(list(residual.values()), axis=0)
    return [f"{np.max(residual[name] - least):.0e}" if name in residual else "-" for name in ("quanet", *PEERS)]


def report(repeats: int, classes: list[int], families: list[str], only: str) -> str:
    whole = ["| k | bags | method | quanet, ms | QuaPy is slower by | mlquantify is slower by |", "|" + "---|" * 6]
    alone = [
        "| k | method | quanet, bags/s | QuaPy | differs | mlquantify | differs | quantificationlib | differs |",
        "|" + "---|" * 9,
    ]
    least = ["| k | method | quanet | QuaPy | mlquantify | quantificationlib |", "|" + "---|" * 6]
    chosen = {"counting": methods, "matching": matching_methods}
    for k in classes:
        problem = Problem(2, 500, 2100) if k == 2 else Problem(k, 1000, 500)
        size = f"{problem.bags:,} of {problem.bag_size:,}"
        for method in [one for family in families for one in chosen[family](k) if one.name.startswith(only)]:
            seconds, _ = rounds(whole_evaluations(problem, method), repeats, method.every)
            cells = [ratio(seconds, peer) for peer in PEERS[:2]]
            ours = 1e3 * np.median(seconds["quanet"])
            whole.append(f"| {problem.k} | {size} | {method.name} | {ours:.1f} | {' | '.join(cells)} |")
            seconds, returned = rounds(aggregations(problem, method), repeats, method.every)
            cells = [
                cell for peer in PEERS for cell in (ratio(seconds, peer), difference(returned, peer, method.every))
            ]
            speed = problem.bags / np.median(seconds["quanet"])
            alone.append(f"| {problem.k} | {method.name} | {speed:,.0f} | {' | '.join(cells)} |")
            if method.quanet in (ACC, PACC):
                cells = nearer_to_the_optimum(problem, method, returned)
                least.append(f"| {problem.k} | {method.name} | {' | '.join(cells)} |")
            print(whole[-1], alone[-1], sep="\n", flush=True)
    head = HEAD.format(machine=machine(), rounds=repeats)
    if "counting" not in families:
        return "\n".join([head, *whole, ALONE, *alone, ""])
    memory = subprocess.run([sys.executable, str(MEMORY)], check=True, capture_output=True, text=True).stdout
    return "\n".join([head, *whole, ALONE, *alone, LEAST, *least, MEM, memory])


HEAD = """# quanet compared with other libraries

Made by `make bench`. {machine}. CPU time of one thread; median (range) of the ratio over {rounds} alternating rounds.

## Whole evaluation: classify, draw, aggregate, error
"""
ALONE = """
## Aggregation alone, on the same bags of the same posteriors

Columns of a library: how many times slower it is, and the largest difference of an estimate from quanet's. QuaPy's CC
and ACC are given labels, so that their argmax is not counted. Where quanet computes something for each instance first,
as in distribution matching, its time includes that for the whole pool, and the gathering of bags.
"""
LEAST = """
## Least squares: distance from the best residual, at the worst bag

ACC and PACC are the point of the simplex with the smallest residual. QuaPy and mlquantify use a general optimiser,
which stops early; quantificationlib inverts, clips and scales, a different definition for more than two classes.
"""
MEM = """
## Memory

`python benchmarks/memory.py`
"""


def machine() -> str:
    packages = ("quanet", "quapy", "mlquantify", "quantificationlib", "numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    model = next(
        (line.split(":")[1].strip() for line in _cpu_info() if line.startswith("model name")), platform.machine()
    )
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; {versions}"


def _cpu_info() -> list[str]:
    file = Path("/proc/cpuinfo")
    return file.read_text().splitlines() if file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the tables here, as Markdown")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 4, 10, 28], help="numbers of classes")
    parser.add_argument("--family", nargs="+", default=["counting"], choices=["counting", "matching"])
    parser.add_argument("--only", default="", help="only methods whose names begin with this")
    arguments = parser.parse_args()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # the peers' own
        text = report(arguments.rounds, arguments.classes, arguments.family, arguments.only)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text)
        print(f"-> {arguments.output}")


if __name__ == "__main__":
    main()

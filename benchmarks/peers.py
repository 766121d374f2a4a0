"""Time quanet beside QuaPy, mlquantify and quantificationlib: same posteriors, one thread, alternating in one run.

    make bench                                     # or, in an environment that has the peers:
    python benchmarks/peers.py --output table.md

Two questions are asked, for 2 classes (the paper's protocol) and for 4, 10 and 28:

- a whole evaluation: classify the pool, draw bags, aggregate each, take the error; every library its own way;
- aggregation alone, on the very same bags, and by how much the estimates differ.

Times are CPU seconds of one thread; a ratio is the peer's time over quanet's within one round, and its median and range
over the rounds are given. Absolute times differ between machines, ratios hardly.
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
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from quanet import ACC, APP, CC, EMQ, PACC, PCC, UPP, Gaussians, evaluate

PEERS = ("quapy", "mlquantify", "quantificationlib")
MEMORY = Path(__file__).with_name("memory.py")


class PassOn(ClassifierMixin, BaseEstimator):
    """A classifier for libraries that must fit one: its instances are posteriors already."""

    def fit(self, _X: Any, y: Any) -> "PassOn":
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X)

    def predict(self, X: Any) -> Any:
        return self.classes_[np.asarray(X).argmax(axis=1)]


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


@dataclass(frozen=True)
class Method:
    """One method in every library; None where a library has no such method."""

    name: str
    quanet: Callable[[Any], Any]
    quapy: Callable[[Any], Any] | None = None
    mlquantify: Callable[[Problem], Any] | None = None
    quantificationlib: Callable[[], Any] | None = None
    soft: bool = True


def methods(k: int) -> list[Method]:
    """The methods, as each library names and sets them; quanet's EMQ twice: exact, and with QuaPy's stopping rule."""
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
    """Classify, draw, aggregate, take the mean error: one function a library."""
    ours = method.quanet(FrozenEstimator(problem.classifier)).fit(problem.held, problem.y_held)
    calls = {
        "quanet": lambda: float(
            evaluate(ours, problem.pool, problem.y_pool, problem.protocol, rng=problem.seed).error().mean()
        )
    }
    if method.quapy:
        theirs = method.quapy(problem.classifier).fit(problem.held, problem.y_held)
        labelled = quapy.data.LabelledCollection(problem.pool, problem.y_pool)
        if problem.k == 2:
            protocol = quapy.protocol.APP(labelled, sample_size=500, n_prevalences=21, repeats=100, random_state=0)
        else:
            protocol = quapy.protocol.UPP(labelled, problem.bag_size, repeats=problem.bags, random_state=0)
        calls["quapy"] = lambda: float(quapy.evaluation.evaluate(theirs, protocol, error_metric="mae"))
    if method.mlquantify:
        other = method.mlquantify().fit(problem.classifier.predict_proba(problem.held), problem.y_held)
        calls["mlquantify"] = lambda: _mlquantify_evaluation(problem, other)
    return calls


def _mlquantify_evaluation(problem: Problem, quantifier: Any) -> float:
    posteriors = problem.classifier.predict_proba(problem.pool)
    draw = mlquantify.model_selection
    if problem.k == 2:
        protocol = draw.APP(batch_size=500, n_prevalences=21, repeats=100, random_state=0)
    else:
        protocol = draw.UPP(batch_size=problem.bag_size, n_prevalences=problem.bags, random_state=0)
    errors = []
    for indices in protocol.split(posteriors, problem.y_pool):
        truth = np.bincount(problem.y_pool[indices], minlength=problem.k) / len(indices)
        errors.append(np.abs(quantifier.predict(posteriors[indices]) - truth).mean())
    return float(np.mean(errors))


def aggregations(problem: Problem, method: Method) -> dict[str, Callable[[], Any]]:
    """Estimates (b, k) on the same bags of the same posteriors, which are there already: one function a library."""
    posteriors = problem.classifier.predict_proba(problem.pool)
    held = problem.classifier.predict_proba(problem.held)
    bags = problem.protocol.draw(problem.y_pool, rng=problem.seed)
    stack = posteriors[bags.indices]
    stacks = list(stack)
    crisp = [bag.argmax(axis=1) for bag in stacks]
    ours = method.quanet("precomputed").fit(held, problem.y_held)
    calls: dict[str, Callable[[], Any]] = {"quanet": lambda: ours.aggregate(stack)}
    if method.quapy:
        theirs = method.quapy(problem.classifier).fit(problem.held, problem.y_held)
        calls["quapy"] = lambda: np.array([theirs.aggregate(bag) for bag in (stacks if method.soft else crisp)])
    if method.mlquantify:
        other = method.mlquantify().fit(held, problem.y_held)
        calls["mlquantify"] = lambda: np.array([other.predict(bag) for bag in stacks])
    if method.quantificationlib:
        third = method.quantificationlib()
        third.fit(None, problem.y_held, predictions_train=held)
        calls["quantificationlib"] = lambda: np.array([third.predict(None, predictions_test=bag) for bag in stacks])
    return calls


def rounds(calls: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """CPU seconds of every call in every round, the libraries taking turns; and what each returned."""
    returned = {name: call() for name, call in calls.items()}  # compiles, fills caches
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            # A call of a few milliseconds is repeated, so that the clock's grain does not matter.
            times = 5 if name == "quanet" else 1
            start = time.process_time()
            for _ in range(times):
                call()
            seconds[name].append((time.process_time() - start) / times)
    return seconds, returned


def ratio(seconds: dict[str, list[float]], peer: str) -> str:
    if peer not in seconds:
        return "-"
    ratios = np.array(seconds[peer]) / np.array(seconds["quanet"])
    return f"**{np.median(ratios):,.1f}** ({ratios.min():,.1f} to {ratios.max():,.1f})"


def difference(returned: dict[str, Any], peer: str) -> str:
    return "-" if peer not in returned else f"{np.abs(returned[peer] - returned['quanet']).max():.0e}"


def nearer_to_the_optimum(problem: Problem, method: Method, returned: dict[str, Any]) -> list[str]:
    """How far every library's answer lies above the least residual that any of them found, at the worst bag."""
    posteriors = problem.classifier.predict_proba(problem.pool)
    bags = problem.protocol.draw(problem.y_pool, rng=problem.seed)
    held = problem.classifier.predict_proba(problem.held)
    rates = method.quanet("precomputed").fit(held, problem.y_held).rates_
    counted = (PCC if method.soft else CC)("precomputed").fit(held, problem.y_held).predict_bags(posteriors, bags)
    residual = {name: np.linalg.norm(found @ rates.T - counted, axis=1) for name, found in returned.items()}
    least = np.min(list(residual.values()), axis=0)
    return [f"{np.max(residual[name] - least):.0e}" if name in residual else "-" for name in ("quanet", *PEERS)]


def report(repeats: int, quick: bool) -> str:
    settings = [Problem(2, 500, 2100), *(Problem(k, 1000, 500) for k in (4, 10, 28))]
    whole = ["| k | bags | method | quanet, ms | QuaPy is slower by | mlquantify is slower by |", "|" + "---|" * 6]
    alone = [
        "| k | method | quanet, bags/s | QuaPy | differs | mlquantify | differs | quantificationlib | differs |",
        "|" + "---|" * 9,
    ]
    least = ["| k | method | quanet | QuaPy | mlquantify | quantificationlib |", "|" + "---|" * 6]
    for problem in settings[:1] if quick else settings:
        size = f"{problem.bags:,} of {problem.bag_size:,}"
        for method in methods(problem.k):
            seconds, _ = rounds(whole_evaluations(problem, method), repeats)
            cells = [ratio(seconds, peer) for peer in PEERS[:2]]
            ours = 1e3 * np.median(seconds["quanet"])
            whole.append(f"| {problem.k} | {size} | {method.name} | {ours:.1f} | {' | '.join(cells)} |")
            seconds, returned = rounds(aggregations(problem, method), repeats)
            cells = [cell for peer in PEERS for cell in (ratio(seconds, peer), difference(returned, peer))]
            speed = problem.bags / np.median(seconds["quanet"])
            alone.append(f"| {problem.k} | {method.name} | {speed:,.0f} | {' | '.join(cells)} |")
            if method.quanet in (ACC, PACC):
                cells = nearer_to_the_optimum(problem, method, returned)
                least.append(f"| {problem.k} | {method.name} | {' | '.join(cells)} |")
            print(whole[-1], alone[-1], sep="\n", flush=True)
    memory = subprocess.run([sys.executable, str(MEMORY)], check=True, capture_output=True, text=True).stdout
    head = HEAD.format(machine=machine(), rounds=repeats)
    return "\n".join([head, *whole, ALONE, *alone, LEAST, *least, MEM, memory])


HEAD = """# quanet beside its peers

Made by `make bench`. {machine}. CPU time of one thread; median (range) of the ratio over {rounds} alternating rounds.

## Whole evaluation: classify, draw, aggregate, error
"""
ALONE = """
## Aggregation alone, on the same bags of the same posteriors

Columns of a peer: how many times slower it is, and the largest difference of an estimate from quanet's. QuaPy's CC and
ACC are given labels, so that their argmax is not counted.
"""
LEAST = """
## Least squares: distance from the best residual, at the worst bag

ACC and PACC ask for the point of the simplex with the least residual. QuaPy and mlquantify ask a general optimiser,
which stops early; quantificationlib inverts, clips and scales, another definition for more than two classes.
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
    parser.add_argument("--quick", action="store_true", help="two classes only")
    arguments = parser.parse_args()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # the peers' own
        text = report(arguments.rounds, arguments.quick)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text)
        print(f"-> {arguments.output}")


if __name__ == "__main__":
    main()

"""Time thresholds, weights, likelihoods and other families against other libraries, and compare the estimates.

    python benchmarks/families.py --output benchmarks/results/families.md
    python benchmarks/families.py --quick --only T50 MS        # two classes, some methods

Problems, libraries and rules are those of `benchmarks/peers.py`: whole evaluations, one thread, alternating in one run.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlquantify.counting
import mlquantify.likelihood
import mlquantify.meta
import mlquantify.neighbors
import numpy as np
import quantificationlib.binary.debias
import quantificationlib.multiclass.friedman
import quapy
from quapy.method._liep import LEIP
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

import quanet
from peers import Method, PassOn, Problem, machine, ratio, rounds, whole_evaluations
from quanet import APP, evaluate

PEERS = ("quapy", "mlquantify", "quantificationlib")


def families(k: int) -> list[Method]:
    """Thresholds, weights and others, with each library's names and settings; the positive class is the second."""
    theirs, counting = quapy.method.aggregative, mlquantify.counting
    thresholds = quapy.method._threshold_optim  # noqa: SLF001

    def threshold(name: str, other: str | None) -> Method:
        return Method(
            name,
            lambda c: getattr(quanet, name)(c, positive=1),
            None if name == "TAC" else lambda c: getattr(thresholds, name)(c, fit_classifier=False),
            None if other is None else lambda: getattr(counting, other)(PassOn()),
        )

    names = {"T50": "T50", "MAX": "TMAX", "X": "TX", "MS": "MS", "MS2": "MS2", "TAC": "TAC"}
    two = [threshold(name, other) for name, other in names.items()]
    two.append(Method("CDE", quanet.CDE, mlquantify=lambda: mlquantify.likelihood.CDE(PassOn())))
    two.append(Method("DeBias", quanet.DeBias, quantificationlib=quantificationlib.binary.debias.DeBias))
    two += [ensemble("average", "all"), ensemble("prevalence", "ptr")]
    exact = {"fit_classifier": False, "solver": "exact-raise"}
    return [
        *(two if k == 2 else []),
        Method("BBSE, hard", quanet.BBSE, lambda c: theirs.BBSEhard(c, **exact)),
        Method("BBSE, soft", lambda c: quanet.BBSE(c, outputs="soft"), lambda c: theirs.BBSEsoft(c, **exact)),
        Method("RLLS", quanet.RLLS, lambda c: theirs.RLLS(c, fit_classifier=False)),
        Method("LEIP", quanet.LEIP, lambda c: FrozenLEIP(c, fit_classifier=False)),
        Method("Friedman", quanet.Friedman, quantificationlib=quantificationlib.multiclass.friedman.FriedmanME),
    ]


def ensemble(policy: str, other: str) -> Method:
    """Fifty PACCs, each fitted to a training bag of a different prevalence; each library draws its own bags."""
    return Method(
        f"Ensemble of 50 PACC, {policy}",
        lambda c: quanet.Ensemble(quanet.PACC(c), size=50, policy=policy),
        mlquantify=lambda: mlquantify.meta.EnsembleQ(
            mlquantify.counting.GPACC(PassOn()), size=50, selection_metric=other
        ),
        every={"mlquantify": 20},
    )


class FrozenLEIP(LEIP):
    """QuaPy's LEIP for a fitted classifier, for which its own `fit` asks for validation data and then refuses them."""

    def fit(self, X: Any, y: Any) -> "FrozenLEIP":
        self.train_prevalence = np.bincount(y) / len(y)
        self.aggregation_fit(self.classify(X), y)
        return self


def family_calls(problem: Problem, method: Method) -> dict[str, Callable[[], Any]]:
    """Whole evaluations, as in `peers.py`; quantificationlib only aggregates given posteriors."""
    calls = whole_evaluations(problem, method)
    if method.quantificationlib:
        held, posteriors = (problem.classifier.predict_proba(part) for part in (problem.held, problem.pool))
        third = method.quantificationlib()
        third.fit(None, problem.y_held, predictions_train=held)
        bags = problem.protocol.draw(problem.y_pool, rng=problem.seed)

        def predict() -> float:
            found = [third.predict(None, predictions_test=posteriors[bag]) for bag in bags.indices]
            return float(np.abs(np.array(found) - bags.prevalences).mean())

        calls["quantificationlib"] = predict
    return calls


def family_differences(problem: Problem, method: Method, bags: int = 100) -> dict[str, str]:
    """The largest difference of each library's estimates from quanet's, on the same bags of instances."""
    drawn = problem.protocol.draw(problem.y_pool, rng=problem.seed).indices
    drawn = drawn[:: max(1, len(drawn) // bags)]
    ours = method.quanet(FrozenEstimator(problem.classifier)).fit(problem.held, problem.y_held)
    posteriors, held = (problem.classifier.predict_proba(part) for part in (problem.pool, problem.held))
    found = ours.predict_bags(problem.pool, quanet.Bags(drawn))
    others: dict[str, Callable[[Any], Any]] = {}
    if method.quapy:
        theirs = method.quapy(problem.classifier).fit(problem.held, problem.y_held)
        others["quapy"] = lambda bag: theirs.predict(problem.pool[bag])
    if method.mlquantify:
        other = method.mlquantify().fit(held, problem.y_held)
        others["mlquantify"] = lambda bag: other.predict(posteriors[bag])
    if method.quantificationlib:
        third = method.quantificationlib()
        third.fit(None, problem.y_held, predictions_train=held)
        others["quantificationlib"] = lambda bag: third.predict(None, predictions_test=posteriors[bag])
    told = {}
    for name, predict in others.items():
        answers = [predict(bag) for bag in drawn]
        values = [list(one.values()) if isinstance(one, dict) else one for one in answers]
        told[name] = f"{np.abs(np.array(values, dtype=float) - found).max():.0e}"
    return told


def neighbours(problem: Problem) -> dict[str, Callable[[], float]]:
    """PWK, which reads features: mlquantify's and ours, fitted to 1,000 instances, on 210 bags."""
    X, y = problem.held[:1000], problem.y_held[:1000]
    protocol = APP(bag_size=500, repeats=10)
    ours, other = quanet.PWK().fit(X, y), mlquantify.neighbors.PWK().fit(X, y)
    bags = protocol.draw(problem.y_pool, rng=0)

    def predict() -> float:
        answers = [other.predict(problem.pool[bag]) for bag in bags.indices]
        found = [list(one.values()) if isinstance(one, dict) else one for one in answers]
        return float(np.abs(np.array(found, dtype=float) - bags.prevalences).mean())

    return {
        "quanet": lambda: float(evaluate(ours, problem.pool, problem.y_pool, protocol, rng=0).error().mean()),
        "mlquantify": predict,
    }


def family_report(repeats: int, quick: bool, only: list[str]) -> str:
    lines = ["| k | method | quanet, ms | QuaPy | differs | mlquantify | differs | quantificationlib | differs |"]
    lines.append("|" + "---|" * 9)
    for problem in [Problem(2, 500, 2100), *([] if quick else [Problem(28, 1000, 100)])]:
        for method in (one for one in families(problem.k) if not only or one.name in only):
            seconds, _ = rounds(family_calls(problem, method), repeats, method.every)
            apart = family_differences(problem, method)
            cells = [cell for peer in PEERS for cell in (ratio(seconds, peer), apart.get(peer, "-"))]
            ours = 1e3 * np.median(seconds["quanet"])
            lines.append(f"| {problem.k} | {method.name} | {ours:.1f} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        if problem.k == 2 and (not only or "PWK" in only):
            seconds, returned = rounds(neighbours(problem), 1, {})
            apart = f"{abs(returned['mlquantify'] - returned['quanet']):.0e} (mean error)"
            lines.append(
                f"| 2 | PWK, 210 bags | {1e3 * np.median(seconds['quanet']):.1f} | - | - | "
                f"{ratio(seconds, 'mlquantify')} | {apart} | - | - |"
            )
            print(lines[-1], flush=True)
    return "\n".join([FAMILIES.format(machine=machine(), rounds=repeats), *lines, ""])


FAMILIES = """# Thresholds, weights, likelihoods and others compared with other libraries

Made by `python benchmarks/families.py`. {machine}. Whole evaluations (classify, draw, aggregate, error), CPU
time of one thread; median (range) of the ratio over {rounds} alternating rounds. *differs*: the largest difference of
an estimate on the same bags of instances. mlquantify thresholds are multiples of 0.01, a different definition; its TAC
and CDE, and all of QuaPy and quantificationlib, are the same. quantificationlib is given posteriors; PWK has one round.
Members of an ensemble are fitted to bags drawn at random, so estimates differ by chance; mlquantify is given every
20th bag there, and by prevalence it keeps a quarter of the members, quanet half.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the table here, as Markdown")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two classes only")
    parser.add_argument("--only", nargs="*", default=[], help="only these methods")
    arguments = parser.parse_args()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # the peers' own
        text = family_report(arguments.rounds, arguments.quick, arguments.only)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()

"""The demonstration of `quanet demo`: every method on bags of real reviews, and two made-up years of them."""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray
from quanet.base import Quantifier
from quanet.data.dataset import Dataset
from quanet.data.instances import Inputs
from quanet.data.periods import Key
from quanet.evaluation.diagnose import diagnose
from quanet.evaluation.evaluate import Results, evaluate, fit_for_estimates
from quanet.evaluation.findings import Diagnosis
from quanet.evaluation.limits import pool_limit
from quanet.methods.counting import ACC, CC, PACC, PCC, TrainPrevalence
from quanet.methods.likelihood import EMQ
from quanet.protocols import APP
from quanet.simplex import prevalence_of
from quanet.uncertainty.intervals import predict_interval, predict_interval_bags
from quanet.workflows.evaluate import Evaluation, covers
from quanet.workflows.predict import Shares

MONTHS = 24
LOWEST, HIGHEST = 0.2, 0.85  # true shares of the made-up months


@dataclass(frozen=True, slots=True, eq=False)
class Demonstration:
    """Results of the demonstration.

    Attributes
    ----------
    results : results of every method on the same bags, by name; the network is the last.
    evaluation : the network compared with the other methods.
    months : estimated shares of made-up months.
    truth : (months, k) their true shares.
    """

    results: dict[str, Results]
    evaluation: Evaluation
    months: Shares
    truth: FloatArray


def run_demo(train: Dataset, test: Dataset, network: Quantifier, protocol: APP, *, seed: int) -> Demonstration:
    """Train every method on the same classifier, evaluate it on the same bags, and follow the network over months.

    Parameters
    ----------
    train, test : reviews for training, and held-out reviews.
    network : not yet fitted. The other methods use its classifier.
    protocol, seed : how bags are drawn.
    """
    network.fit(train.X, train.y)
    pool = network.read(test.X)
    results = _evaluate_methods(test, network, pool, protocol, seed=seed)
    months, truth = _made_up_months(network, pool, test, protocol.bag_size, seed)
    return Demonstration(results, _evaluation(network, pool, train, test, results, protocol, seed), months, truth)


def _evaluate_methods(
    test: Dataset, network: Quantifier, pool: Inputs, protocol: APP, *, seed: int
) -> dict[str, Results]:
    """Results of every method on the same bags; all methods share the network's classifier."""
    k = len(network.classes_)
    assert network.held_out_ is not None
    held = network.held_out_.doubles()
    posteriors, labels = held.inputs[:, :k], network.classes_[held.codes]
    results = {}
    for method in (TrainPrevalence, CC, PCC, ACC, PACC, EMQ):
        fitted = fit_for_estimates(method("precomputed"), posteriors, labels)  # only the network's intervals are shown
        results[method.__name__] = evaluate(fitted, pool.values[:, :k], test.y, protocol, rng=seed)
    return results | {type(network).__name__: evaluate(network, pool, test.y, protocol, rng=seed)}


def _evaluation(
    model: Quantifier,
    pool: Inputs,
    train: Dataset,
    test: Dataset,
    results: dict[str, Results],
    protocol: APP,
    seed: int,
) -> Evaluation:
    bags = protocol.draw(test.y, rng=seed, classes=model.classes_)
    interval = predict_interval_bags(model, pool, bags, rng=seed)
    return Evaluation(
        results=dict(reversed(list(results.items()))),  # the network first, the constant answer last
        interval=interval,
        covered=covers(interval, bags.prevalences),
        prior=train.prevalence,
        whole_truth=test.prevalence,
        whole=predict_interval(model, pool, rng=seed),
        diagnosis=diagnose(model, pool, random_state=seed),
        limit=pool_limit(pool.values[:, : len(model.classes_)], test.y, model.classes_, bag_size=protocol.bag_size),
        protocol=f"{len(bags):,} bags of {protocol.bag_size:,} at 21 shares of {model.classes_[-1]}, 1 to 99 %",
        source=f"{len(test):,} held-out reviews",
        model={"method": type(model).__name__, "learnt from": f"{len(train):,} reviews of {train.name}"},
    )


def _made_up_months(model: Quantifier, pool: Inputs, test: Dataset, size: int, seed: int) -> tuple[Shares, FloatArray]:
    """Months whose shares rise and fall in a known way: their estimates and the truth."""
    months = [f"{2024 + month // 12}-{month % 12 + 1:02d}" for month in range(MONTHS)]
    wave = (1 - np.cos(3 * np.pi * (np.arange(MONTHS) / (MONTHS - 1)) ** 1.3)) / 2
    protocol = APP(bag_size=size, repeats=1, prevalences=LOWEST + (HIGHEST - LOWEST) * wave)
    bags = protocol.draw(test.y, rng=seed, classes=model.classes_)
    labels = pool.values[:, : len(model.classes_)].argmax(axis=1)
    counted, all_counted = (
        np.stack([prevalence_of(labels[members], np.arange(len(model.classes_))) for members in some])
        for some in (bags.indices, bags.flat[None])
    )
    shares = Shares(
        classes=model.classes_,
        keys=(Key("date", "month"),),
        groups=tuple((month,) for month in months),
        sizes=bags.sizes,
        interval=predict_interval_bags(model, pool, bags, rng=seed),
        counted=counted,
        small=np.zeros(MONTHS, dtype=bool),
        total=predict_interval(model, pool.take(bags.flat), rng=seed),
        total_counted=all_counted[0],
        diagnosis=Diagnosis([]),
    )
    return shares, bags.prevalences

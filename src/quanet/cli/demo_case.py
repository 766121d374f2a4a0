"""The case that `quanet demo` reports on: real reviews whose truth is known, in bags and in made-up months."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from quanet.answers.evaluation import Evaluation
from quanet.answers.shares import Key, Shares
from quanet.diagnostics.diagnose import diagnose
from quanet.diagnostics.findings import Diagnosis
from quanet.evaluation.limits import pool_limit
from quanet.protocols import APP
from quanet.report.evaluation import summarize_evaluation
from quanet.report.numbers import points
from quanet.report.shares import trend_section
from quanet.simplex import prevalence_of
from quanet.text import TextClassifier
from quanet.uncertainty.intervals import predict_interval, predict_interval_bags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.arrays import FloatArray
    from quanet.base import Quantifier
    from quanet.data.dataset import Dataset
    from quanet.evaluation.results import Results
    from quanet.report.summary import Section, Summary

MONTHS = 24
LOWEST, HIGHEST = 0.2, 0.85  # true shares of the made-up months


def summarize_case(
    model: Quantifier,
    pool: FloatArray,
    train: Dataset,
    test: Dataset,
    results: Mapping[str, Results],
    protocol: APP,
    *,
    seed: int,
    settings: Sequence[tuple[str, str]] = (),
) -> Summary:
    """The report of a fitted model on held-out reviews: errors on bags, and two years that were dealt from them.

    Parameters
    ----------
    model : fitted, and reading rows.
    pool : rows of the held-out reviews.
    train, test : reviews that were learnt from, and held out.
    results : of all methods on the same bags.
    protocol, seed : that these bags were drawn with.
    settings : names and values that give the same again.
    """
    name = type(model).__name__
    first = dict(reversed(list(results.items())))  # the model is the last one made, the constant answer the first
    bags = protocol.draw(test.y, rng=seed, classes=model.classes_)
    interval = predict_interval_bags(model, pool, bags, rng=seed)
    evaluation = Evaluation(
        results=first,
        interval=interval,
        covered=((interval.lower <= bags.prevalences) & (bags.prevalences <= interval.upper)).astype(float),
        prior=train.prevalence,
        whole_truth=test.prevalence,
        whole=predict_interval(model, pool, rng=seed),
        diagnosis=diagnose(as_refitted(model), pool, random_state=seed),
        limit=pool_limit(pool[:, : len(model.classes_)], test.y, model.classes_, bag_size=protocol.bag_size),
        protocol=f"{len(bags):,} bags of {protocol.bag_size:,} at 21 shares of {model.classes_[-1]}, 1 to 99 %",
        source=f"{len(test):,} held-out reviews",
        model={"method": name, "learnt from": f"{len(train):,} reviews of {train.name}"},
    )
    summary = summarize_evaluation(evaluation, settings=settings)
    return replace(summary, sections=(_two_years(model, pool, test, protocol.bag_size, seed), *summary.sections))


def _two_years(model: Quantifier, pool: FloatArray, test: Dataset, size: int, seed: int) -> Section:
    """Months whose shares rise and fall as they were made to, estimated beside the truth."""
    months = [f"{2024 + month // 12}-{month % 12 + 1:02d}" for month in range(MONTHS)]
    wave = (1 - np.cos(3 * np.pi * (np.arange(MONTHS) / (MONTHS - 1)) ** 1.3)) / 2
    dealt = APP(bag_size=size, repeats=1, prevalences=LOWEST + (HIGHEST - LOWEST) * wave)
    bags = dealt.draw(test.y, rng=seed, classes=model.classes_)
    labels = pool[:, : len(model.classes_)].argmax(axis=1)
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
        total=predict_interval(model, pool[bags.flat], rng=seed),
        total_counted=all_counted[0],
        diagnosis=Diagnosis([]),
        diagnoses=("",) * MONTHS,
    )
    truth = bags.prevalences
    inside = (shares.interval.lower[:, -1] <= truth[:, -1]) & (truth[:, -1] <= shares.interval.upper[:, -1])
    off, plain = (np.abs(part - truth)[:, -1].mean() for part in (shares.interval.estimate, counted))
    section = trend_section(shares, truth=truth)
    words = (
        f"The reviews are real, the months are not: each holds {size:,} held-out reviews, drawn so that the share of "
        f"{model.classes_[-1]} ones rises and falls. So the truth is known, and the model has seen none of it.",
        f"{int(inside.sum())} of {MONTHS} intervals hold the truth. On average the estimate is off by {points(off)}, a "
        f"plain count of predicted labels by {points(plain)}.",
    )
    return replace(section, title="Two years of reviews", paragraphs=words)


def as_refitted(model: Quantifier) -> Quantifier:
    """The same model, known as one whose classifier was fitted to folds for held-out rows, and to all for others.

    From rows alone a diagnosis cannot know, and would take the difference for drift.
    """
    told = copy(model)
    told.classifier = TextClassifier()
    return told

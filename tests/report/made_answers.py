"""Answers with known figures, for the tests of reports: built by hand, no model behind them."""

from dataclasses import replace

import numpy as np

from quanet.data.periods import Key
from quanet.evaluation.evaluate import Results
from quanet.evaluation.findings import Diagnosis, Finding
from quanet.evaluation.limits import Limit
from quanet.evaluation.monitor_batches import Change, History
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.widening import Drift
from quanet.workflows.compare import Comparison
from quanet.workflows.correct import Correction
from quanet.workflows.evaluate import Evaluation, covers
from quanet.workflows.predict import Shares

DIAGNOSIS = Diagnosis(
    [
        Finding("prior shift", "ok", "The bag looks like a mixture of the classes.", numbers={"p_value": 0.41}),
        Finding("prevalence", "note", "The prevalence is not that of training.", "Correct it.", {"p_value": 0.001}),
        Finding("words", "warning", "The texts are unlike the training texts.", "Check the language."),
    ]
)
ALARM = Diagnosis([Finding("prior shift", "alarm", "This is not prior shift alone.", "Do not rely on it.")])


def interval(estimate, sizes, *, classes, level=0.95):
    estimate = np.asarray(estimate, dtype=float)
    half = 1.2 / np.sqrt(np.asarray(sizes, dtype=float))[..., None] * np.ones_like(estimate)
    k = estimate.shape[-1]
    covariance = np.zeros((*estimate.shape, k))
    lower, upper = np.clip(estimate - half, 0, 1), np.clip(estimate + half, 0, 1)
    return Interval(estimate, lower, upper, covariance, np.asarray(sizes), level, "closed", classes)


def made_shares(
    *, classes=("negative", "positive"), keys=(), groups=((),), seed=0, diagnosis=DIAGNOSIS, small=40, names=None
):
    """Shares of groups drawn at random around a slow wave."""
    rng = np.random.default_rng(seed)
    k, g = len(classes), len(groups)
    labels = np.array(classes)
    sizes = rng.integers(60, 900, size=g)
    sizes[g // 2] = 25 if g > 1 else 2431
    base = np.sort(rng.dirichlet(np.full(k, 2.0)))
    logits = np.log(base) + 0.25 * rng.normal(size=(g, k)) + 0.35 * np.sin(np.arange(g) / 5)[:, None] * np.arange(k) / k
    estimate = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    total = (sizes / sizes.sum()) @ estimate
    flat = 0.3 / k
    return Shares(
        classes=labels,
        keys=tuple(Key(*key) for key in keys),
        groups=tuple(groups),
        sizes=sizes,
        interval=interval(estimate, sizes, classes=labels),
        counted=0.7 * estimate + flat,
        small=sizes < small,
        total=interval(total, sizes.sum(), classes=labels),
        total_counted=0.7 * total + flat,
        diagnosis=diagnosis,
        skipped={"no text": 3},
        source="new.csv" if names is None else names,
        model={"method": "EMQ", "trained on": "train.csv, 25,000 instances"},
    )


def months(count, start=2023):
    return [f"{start + i // 12}-{i % 12 + 1:02d}" for i in range(count)]


def monthly(count=18, **options):
    return made_shares(keys=[("date", "month")], groups=[(month,) for month in months(count)], **options)


def monthly_by_product(count=12, products=("camera", "phone", "laptop", "watch", "speaker"), **options):
    groups = [(product, month) for product in products for month in months(count)]
    return made_shares(keys=[("product",), ("date", "month")], groups=groups, **options)


def by_product(count=14, **options):
    return made_shares(keys=[("product",)], groups=[(f"product {i}",) for i in range(count)], **options)


def made_results(slope, noise, *, k=2, repeats=8, seed=0, classes=None):
    rng = np.random.default_rng(seed)
    grid = np.repeat(np.r_[0.01, np.linspace(0.1, 0.9, 9), 0.99], repeats)
    truth = np.column_stack([1 - grid, grid]) if k == 2 else rng.dirichlet(np.ones(k), size=len(grid))
    middle = np.full(k, 1 / k)
    estimate = np.clip(middle + slope * (truth - middle) + rng.normal(scale=noise, size=truth.shape), 0, None)
    estimate /= estimate.sum(axis=1, keepdims=True)
    names = np.array(classes or ["negative", "positive"][:k] or [])
    return Results(truth, estimate, names, np.full(len(grid), 500), np.arange(len(grid)))


def made_evaluation(*, k=2, classes=("negative", "positive")):
    names = np.array(classes)
    results = {
        name: made_results(slope, noise, k=k, classes=list(classes))
        for name, slope, noise in (("EMQ", 1.0, 0.012), ("CC", 0.75, 0.02), ("TrainPrevalence", 0.0, 0.0))
    }
    first = results["EMQ"]
    found = interval(first.estimate, first.sizes * 4, classes=names)
    covered = ((found.lower <= first.truth) & (first.truth <= found.upper)).astype(float)
    whole = np.full(k, 1 / k)
    limit = Limit(np.linspace(0.01, 0.99, 9), np.full(9, 0.008)) if k == 2 else None
    return Evaluation(
        results=results,
        interval=found,
        covered=covered,
        prior=np.full(k, 1 / k),
        whole_truth=whole,
        whole=interval(whole + np.linspace(-0.01, 0.01, k), 10_000, classes=names),
        diagnosis=DIAGNOSIS,
        limit=limit,
        protocol="88 bags of 500 at 11 prevalences",
        source="test.csv",
        model={"method": "EMQ"},
    )


def with_drift(evaluation, states, source="from the bias on 8 clusters of the training data, each left out once"):
    """The evaluation with intervals that drift makes 4 points wider, and states of the bags."""
    plain = evaluation.interval
    bags = len(plain.estimate)
    drift = Drift(
        distance=np.zeros(bags),
        variance=np.zeros(bags),
        cost=np.full(plain.estimate.shape, 0.02),
        lower=plain.lower,
        upper=plain.upper,
        state=np.resize(np.array(states, dtype=object), bags),
        labels=np.zeros(bags, dtype=np.intp),
        source=source,
    )
    wide = replace(plain, lower=plain.lower - 0.02, upper=plain.upper + 0.02, drift=drift)
    return replace(evaluation, interval=wide, covered=covers(wide, evaluation.results["EMQ"].truth))


def made_comparison(*, k=2, classes=("negative", "positive"), methods=7):
    results = {
        name: made_results(slope, noise, k=k, classes=list(classes))
        for name, slope, noise in (
            ("QuaNet", 1.0, 0.010),
            ("EMQ", 1.0, 0.0102),
            ("PACC", 1.0, 0.014),
            ("ACC", 1.0, 0.017),
            ("CC", 0.75, 0.02),
            ("PCC", 0.6, 0.02),
            ("TrainPrevalence", 0.0, 0.0),
        )[:methods]
    }
    errors = {metric: np.array([one.error(metric).mean() for one in results.values()]) for metric in ("ae", "rae")}
    p = np.array([np.nan, 0.4, *[0.0001] * (methods - 2)])
    return Comparison(
        classes=np.array(classes),
        results=results,
        errors=errors,
        p_values=dict.fromkeys(errors, p),
        seconds=np.linspace(0.1, 3, methods),
        failed={"SVMQ": "it is for two classes."},
        prior=np.full(k, 1 / k),
        counts=np.full(k, 500),
        limit=Limit(np.linspace(0.01, 0.99, 9), np.full(9, 0.008)) if k == 2 else None,
        protocol="88 bags of 500 at 11 prevalences",
        train="train.csv",
        test="test.csv",
    )


def made_correction(*, groups=5, scores=False):
    classes = np.array(["bad", "good"])
    good = np.linspace(0.55, 0.8, groups)
    estimate = np.column_stack([1 - good, good])
    judged = np.full_like(estimate, np.nan) if scores else 0.8 * estimate + 0.1
    total = np.stack([estimate.mean(0), estimate.mean(0) - 0.02, estimate.mean(0) + 0.02, judged.mean(0)])
    return Correction(
        classes=classes,
        keys=(Key("model"),) if groups > 1 else (),
        groups=tuple((f"model {i}",) for i in range(groups)) if groups > 1 else ((),),
        sizes=np.linspace(300, 900, groups).astype(int),
        estimate=estimate,
        lower=estimate - 0.05,
        upper=estimate + 0.05,
        judged=judged,
        total=total,
        rates=None if scores else np.array([[0.9, 0.1], [0.15, 0.85]]),
        labelled=200,
        level=0.95,
        small=np.arange(groups) == 1,
        source="judged.csv",
        own_labels=np.arange(groups) > 0,
    )


def made_history(*, since=None, k=2, days=30):
    shares = np.linspace(0.2, 0.4, days) + 0.02 * np.sin(np.arange(days))
    both = np.column_stack([1 - shares, shares])
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.02, size=days)
    return History(
        classes=np.array(["no", "yes"]),
        dates=np.datetime64("2026-03-01") + np.arange(days),
        sizes=rng.integers(50, 300, size=days),
        estimate=both + np.column_stack([-noise, noise]),
        windowed=both,
        lower=both - 0.03,
        upper=both + 0.03,
        weighted=both,
        baseline=both,
        batch_lower=both - 0.06,
        batch_upper=both + 0.06,
        changes=() if since is None else (Change(since, since, np.array([0.8, 0.2]), np.array([0.65, 0.35])),),
        level=0.95,
    )

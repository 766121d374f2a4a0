"""Cases for `digits.py`: what is not a method: protocols, metrics, tests, diagnoses, labels, judges, the monitor."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import quanet as q
from digits_cases import clouds, words
from digits_facts import facts, tried
from digits_methods import TINY

PREVALENCES = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
GUESSES = np.random.default_rng(1).dirichlet(np.ones(3), size=20)


def protocols() -> dict[str, Any]:
    """Bags that are drawn, and groups."""
    found: dict[str, Any] = {}
    for k in (2, 3):
        y = clouds(k).y
        for protocol in (
            q.APP(bag_size=20, repeats=1),
            q.APP(bag_size=20, repeats=2, prevalences=[0.1, 0.5]),
            q.UPP(bag_size=400, repeats=10),
            q.NPP(bag_size=30, repeats=10),
            q.Dirichlet(alpha=0.5, bag_size=30, repeats=10),
            q.Dirichlet(alpha=[1.0] * (k - 1) + [5.0], bag_size=30, repeats=10),
        ):
            bags = tried(functools.partial(protocol.draw, y, rng=7))
            found[f"{k} {protocol}"] = bags
            if "raises" not in bags:
                drawn = protocol.draw(y, rng=7)
                found[f"{k} {protocol} indices"] = facts([drawn.flat, drawn.prevalences, drawn.sizes])
    groups = np.array(["x", "y", "", "z"])[np.random.default_rng(2).integers(4, size=len(clouds().y))]
    grouped = q.ByGroup(groups=groups).draw(clouds().y, rng=0)
    found["groups"] = facts([grouped.flat, grouped.prevalences, grouped.labels, grouped.sizes, grouped.pool_size])
    dataset = q.Dataset(words().X, words().y, "words")
    parts = dataset.split(0.3, rng=3)
    found["split"] = facts([[len(part.y), part.prevalence, part.classes, part.X[:3]] for part in parts])
    found["positions"] = facts(dataset.split_positions(0.6, rng=1))
    found["copies"] = facts([len(dataset.without_duplicates().y), dataset.without("good").prevalence])
    for source in (q.Gaussians(k=3), q.WordBags(k=3)):
        X, codes = source.draw([0.2, 0.3, 0.5], 50, rng=9)
        found[type(source).__name__] = facts([X if isinstance(X, np.ndarray) else X[:3], codes, source.log_density(X)])
        found[f"{type(source).__name__} posteriors"] = facts(source.posteriors(X, [0.2, 0.3, 0.5]))
    return found


def metrics() -> dict[str, Any]:
    """Errors, tests of significance, the bound of Cramér and Rao, calibrations."""
    found: dict[str, Any] = {"names": facts(list(q.METRICS))}
    for name, metric in q.METRICS.items():
        more = {"eps": 0.005} if metric.smoothed else {}
        found[name] = facts(metric.function(PREVALENCES, GUESSES, **more))
    errors = np.random.default_rng(3).gamma(2.0, size=(12, 4)) + np.arange(4) / 4
    found["t"] = facts(q.paired_t_test(errors[:, 0], errors[:, 1]))
    found["wilcoxon"] = facts([q.wilcoxon_test(errors[:, 0], errors[:, at]) for at in range(1, 4)])
    found["wilcoxon ties"] = facts(q.wilcoxon_test(errors[:, 0].round(), errors[:, 3].round()))
    friedman = q.friedman_test(errors)
    found["friedman"] = facts(friedman)
    for name in ("critical_difference", "nemenyi", "holm", "pairs"):
        if hasattr(friedman, name):
            found[f"friedman {name}"] = tried(getattr(friedman, name))
    for k in (2, 3):
        data = clouds(k)
        codes = np.unique(data.y, return_inverse=True)[1]
        posteriors = LogisticRegression(C=0.01).fit(data.X, data.y).predict_proba(data.X)
        shares = np.random.default_rng(4).dirichlet(np.ones(k), size=8)
        for fixed in (True, False):
            found[f"bound {k} {fixed}"] = facts(
                q.cramer_rao_error(posteriors, shares, bag_size=100, fixed_counts=fixed)
            )
        for method in ("platt", "temperature", "bcts", "vector", "nbvs", "none"):
            found[f"calibration {k} {method}"] = tried(functools.partial(_calibrated, posteriors, codes, method))
    return found


def _calibrated(posteriors: Any, codes: Any, method: str) -> Any:
    calibration = q.calibrate(posteriors, codes, method=method)
    return [calibration, calibration(posteriors)]


def evaluations() -> dict[str, Any]:
    """`evaluate` with its frames and errors, regions of intervals, `check_quantifier`, searches."""
    found: dict[str, Any] = {}
    for k in (2, 3):
        data = clouds(k)
        for method in (q.CC(), q.EMQ(), q.KDEyML(), q.SVMQ()):
            results = q.evaluate(
                method.fit(data.X, data.y), data.pool, data.y_pool, q.APP(bag_size=50, repeats=1), rng=2
            )
            errors = {name: tried(functools.partial(results.error, name)) for name in q.METRICS}
            errors["in order"] = tried(functools.partial(results.error, "md", order=list("abc"[:k])))
            found[f"{k} {method}"] = {"frame": facts(results.frame()), "errors": errors, "all": facts(results)}
        interval = q.EMQ().fit(data.X, data.y).predict_interval(data.pool[:300])
        found[f"{k} frame"] = facts(interval.frame())
        for kind in ("box", "ellipse", "clr"):
            region = interval.region(kind)
            shares = np.random.default_rng(4).dirichlet(np.ones(k), size=200)
            found[f"{k} {kind}"] = facts([region, region.contains(shares).sum(), interval.width])
        groups = np.array(["x", "y", "z"])[np.arange(3000) % 3]
        bags = q.ByGroup(groups=groups).bags()
        found[f"{k} grouped"] = facts(q.PACC().fit(data.X, data.y).predict_interval_bags(data.pool, bags).frame())
        found[f"{k} function"] = tried(
            lambda data=data: q.predict_interval(q.ACC().fit(data.X, data.y), data.pool[:90])
        )
        held = data.pool[2000:], data.y_pool[2000:]
        found[f"{k} held"] = tried(
            lambda data=data, held=held: q.predict_interval(q.CC().fit(data.X, data.y), data.pool[:90], held_out=held)
        )
    data = clouds()
    auto = q.AutoQuantifier(protocol=q.UPP(bag_size=40, repeats=20)).fit(data.X, data.y)
    found["auto"] = facts(
        [auto.frame(), auto.explain(), auto.predict(data.pool), auto.predict_interval(data.pool[:80])]
    )
    found["contract"] = tried(lambda: q.check_quantifier(q.PACC(), k=3))
    found["listed"] = facts(sorted(str(one.entry.name) for one in q.list_datasets()))
    found["texts"] = tried(lambda: _texts(q.TextClassifier()))
    lstm = {
        "word_size": 8,
        "hidden": 12,
        "dense": 16,
        "embedding_size": 6,
        "lr": 0.01,
        "batch_size": 40,
        "max_steps": 40,
    }
    found["lstm"] = tried(lambda: _texts(q.LSTMClassifier(**lstm, validate_every=20, **TINY)))
    found["stacked"] = tried(
        lambda: _texts(q.StackedClassifier([q.TextClassifier(views=("words",)), q.TextClassifier(1.0)]))
    )
    found["sentences"] = tried(lambda: _sentences(q.SentenceClassifier(device="cpu")))
    found["neighbours"] = facts(q.WeightedNeighbours(5).fit(data.X, data.y).predict_proba(data.pool[:50]))
    found["svm"] = facts(q.QuantificationSVC("q", C=2.0).fit(data.X, data.y).decision_function(data.pool[:50]))
    return found


def _texts(classifier: Any) -> list[Any]:
    fitted = classifier.fit(words().X, words().y)
    return [fitted.predict_proba(words().pool), fitted.transform(words().pool), fitted.predict(words().pool[:20])]


def _sentences(classifier: Any) -> list[Any]:
    """A transformer on few texts; where it is not installed, that is the fact."""
    told = [f"a {word} {thing}" for word in ("superb", "boring") for thing in ("film", "book", "meal", "trip", "song")]
    fitted = classifier.fit(told, np.repeat(["good", "bad"], 5))
    return [fitted.predict_proba([*told, "an awful bicycle"]), fitted.transform(told[:2])]


def labels() -> dict[str, Any]:
    """Diagnoses, plans of labels, refined estimates, corrected rates."""
    found: dict[str, Any] = {}
    for k in (2, 3):
        data = clouds(k)
        unlike = data.pool + 1.5
        for method in (q.EMQ(), q.PACC(), q.KDEyML(), q.SVMQ(), q.TrainPrevalence()):
            fitted = method.fit(data.X, data.y)
            for name, bag in (("like", data.pool[:300]), ("unlike", unlike[:300]), ("small", data.pool[:6])):
                call = functools.partial(q.diagnose, fitted, bag, resamples=99)
                found[f"diagnosis {k} {method} {name}"] = tried(lambda call=call: list(call()))
            held = {"X_held": data.pool[500:900], "y_held": data.y_pool[500:900]}
            told = tried(
                lambda fitted=fitted, held=held, data=data: list(
                    q.diagnose(fitted, data.pool[:200], resamples=99, **held)
                )
            )
            found[f"diagnosis {k} {method} held"] = told
            for width in (0.05, 0.2):
                for design in ("stratified", "random"):
                    plan = functools.partial(q.plan_labels, fitted, data.pool[:800], width, design=design)
                    found[f"plan {k} {method} {width} {design}"] = tried(plan)
            few = np.arange(0, 800, 10)
            for way in ("prediction-powered", "em"):
                call = functools.partial(
                    q.refine, fitted, data.pool[:800], data.pool[few], data.y_pool[few], method=way
                )
                found[f"refined {k} {method} {way}"] = tried(call)
            weights = np.random.default_rng(6).uniform(1, 3, size=len(few))
            found[f"refined {k} {method} weights"] = tried(
                functools.partial(call, method="prediction-powered", design_weights=weights)
            )
    return found


def judges() -> dict[str, Any]:
    """`correct_rate`, for two and three classes, labels and scores, other data or a part."""
    found: dict[str, Any] = {}
    for k in (2, 3):
        rng = np.random.default_rng(k)
        truth = rng.integers(k, size=700)
        judge = np.where(rng.random(700) < 0.25, rng.integers(k, size=700), truth)
        names = np.array(["bad", "good", "middle"])
        for part in (8, 30, 300):
            for calibration in ("apart", "part"):
                for level in (0.8, 0.95):
                    call = functools.partial(
                        q.correct_rate,
                        names[judge],
                        names[truth[:part]],
                        names[judge[:part]],
                        level=level,
                        calibration=calibration,
                    )
                    found[f"{k} {part} {calibration} {level}"] = tried(call)
                    if k == 2:
                        scores = (truth + rng.normal(size=700) / 2).round(3)
                        call = functools.partial(q.correct_rate, scores, truth[:part], scores[:part], scores=True)
                        found[f"scores {part} {calibration} {level}"] = tried(
                            functools.partial(call, level=level, calibration=calibration)
                        )
    return found


def history_of(watch: Any) -> Any:
    """The method that gives a monitor's history: `course` in 0.1.0."""
    return getattr(watch, "history", None) or watch.course


def monitor() -> dict[str, Any]:
    """Estimates and the history of a stream with two changes, in several settings."""
    found: dict[str, Any] = {}
    for k in (2, 3):
        data = clouds(k)
        fitted = q.EMQ().fit(data.X, data.y)
        for name, more in {
            "plain": {},
            "settings": {"level": 0.8, "window": 3, "half_life": 2, "tolerance": 0.02},
        }.items():
            watch = q.Monitor(fitted, **more)
            readings = []
            for at in range(24):
                share = 0.2 if at < 8 else 0.7 if at < 16 else 0.4
                weights = np.where(data.y_pool == "a", share, (1 - share) / (k - 1))
                rows = np.random.default_rng(at).choice(3000, size=60 + at, p=weights / weights.sum())
                date = None if name == "plain" else str(np.datetime64("2024-01-01") + at)
                readings.append(tried(functools.partial(watch.update, data.pool[rows], date)))
            found[f"{k} {name}"] = {
                "readings": readings,
                "course": tried(history_of(watch)),
                "state": facts([watch.spreads_, watch.changes_]),
            }
            watch.restart()
            found[f"{k} {name} restarted"] = tried(history_of(watch))
    return found


def units() -> dict[str, Callable[[], Any]]:
    """All of them, by part and name."""
    made = (protocols, metrics, evaluations, labels, judges, monitor)
    return {f"tools/{one.__name__}": one for one in made}

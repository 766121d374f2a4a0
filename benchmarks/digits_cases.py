"""Cases for `digits.py`: every method on made data, in every way it can be asked."""

import functools
import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import quanet as q
from digits_facts import facts, tried
from digits_methods import ANY, NETWORKS, ORDERED, SMALL_TEXT, TEXTS, TWO

Unit = Callable[[], Any]
KINDS = ("auto", "conformal", "closed", "bootstrap", "bayes")
MORE: dict[str, dict[str, Any]] = {"bags": {}, "80": {"level": 0.8, "resamples": 60}}
MORE |= {"source": {"target": "source", "resamples": 60}, "seed": {"rng": 3, "resamples": 60}}
LEARNT = ("prior_", "shrinkage_", "left_out_", "best_params_", "best_score_", "report_", "cv_results_")
CORE = ("CC()", "PCC()", "ACC()", "PACC()", "EMQ()", "KDEyML()", "DyS()", "HDy()", "MS()", "SVMQ()", "MAPLS()", "EDx()")
SLOW = ("HDx(", "OEMQ(", "RLLS(alpha")  # each of their simulated bags takes long
LONG = ("commands/", "text/AutoQ", "two/Ensemble", "three/Ensemble", "networks/", "two/GridS", "two/KDEyHD", "tools/")


class Data(NamedTuple):
    """Labelled instances to learn from, and a labelled pool of which bags are drawn."""

    X: Any
    y: Any
    pool: Any
    y_pool: Any


@functools.cache
def clouds(k: int = 2, distance: float = 2.0, n: int = 500, names: str = "letters") -> Data:
    """Numbers; a tenth of the training rows occur twice."""
    source = q.Gaussians(k=k, distance=distance)
    X, codes = source.draw(np.arange(1, k + 1) / np.arange(1, k + 1).sum(), n, rng=k)
    pool, pool_codes = source.draw(np.full(k, 1 / k), 3000, rng=100 + k)
    order, mixed = np.random.default_rng(0).permutation(n), np.random.default_rng(1).permutation(3000)
    order = np.concatenate([order, order[: n // 10]])
    called = np.array(list("abcdefg")[:k]) if names == "letters" else 10 * (np.arange(k) + 1)
    return Data(X[order], called[codes[order]], pool[mixed], called[pool_codes[mixed]])


@functools.cache
def words(k: int = 2, n: int = 300) -> Data:
    """Texts, a few of them copies, and one of no words that are known."""
    source = q.WordBags(k=k, preference=4.0)
    texts, codes = source.draw(np.arange(1, k + 1) / np.arange(1, k + 1).sum(), n, rng=k)
    pool, pool_codes = source.draw(np.full(k, 1 / k), 800, rng=100 + k)
    order, mixed = np.random.default_rng(0).permutation(n), np.random.default_rng(1).permutation(800)
    order = np.concatenate([order, order[:15]])
    called = np.array(["bad", "good", "so-so"])
    told = [texts[at].upper() if place >= n else texts[at] for place, at in enumerate(order)]
    return Data(told, called[codes[order]], [*(pool[at] for at in mixed[1:]), "!!! ???"], called[pool_codes[mixed]])


def asked(quantifier: Any, data: Data, ask: str = "some", kinds: tuple[str, ...] = KINDS) -> dict[str, Any]:
    """What a method answers once it is fitted; `ask` for intervals of bags of all sizes, of some, or few questions."""
    fitting = clone(quantifier)
    found = {"fit": tried(lambda: fitting.fit(data.X, data.y).classes_)}
    if "raises" in found["fit"]:
        return found
    found["settings"] = facts(sorted(fitting.get_params()))
    for name in LEARNT:
        if hasattr(fitting, name):
            found[name] = tried(functools.partial(getattr, fitting, name))
    sizes = (5, 200) if ask == "few" else (1, 5, 200, len(data.pool))
    found["rows"] = tried(lambda: fitting.represent(data.pool))
    found["estimates"] = {str(n): tried(lambda n=n: fitting.predict(data.pool[:n])) for n in sizes}
    found["score"] = tried(lambda: fitting.score(data.pool, data.y_pool))
    read = fitting.read(data.pool)
    bags = q.UPP(bag_size=100, repeats=24).draw(data.y_pool, rng=5)
    found["bags"] = tried(lambda: fitting.predict_bags(read, bags))
    ragged = q.Bags([np.arange(1), np.arange(3, 9), np.arange(50, 200), np.arange(7, 47)])
    found["ragged"] = tried(lambda: fitting.predict_bags(read, ragged))
    found["interval"] = intervals(fitting, data, kinds, sizes if ask == "all" else (200,))
    if ask == "all":
        for name, more in MORE.items():
            found["interval"][name] = tried(lambda: fitting.predict_interval_bags(read, ragged, **more))  # noqa: B023
    if ask != "few":
        two = q.Bags([np.arange(200), np.arange(300, 500)])
        found["interval"]["two bags"] = tried(lambda: fitting.predict_interval_bags(read, two, 0.9, resamples=60))
        found["loaded"] = tried(lambda: _loaded(fitting, data.pool[:200]))
    return found


def intervals(fitted: Any, data: Data, kinds: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, Any]:
    """Intervals of every kind, for bags of some sizes."""
    found = {}
    for kind in kinds:
        for n in sizes if kind in ("auto", "closed") else sizes[:3]:
            few = {} if kind in ("conformal", "closed") or (kind == "auto" and n == 200) else {"resamples": 60}
            part = data.pool[:n]
            found[f"{kind} {n}"] = tried(lambda: fitted.predict_interval(part, method=kind, **few))  # noqa: B023
    return found


def _loaded(fitted: Any, part: Any) -> dict[str, Any]:
    """Estimates after saving and loading."""
    with tempfile.TemporaryDirectory() as home:
        q.save(fitted, Path(home) / "model")
        loaded = q.load(Path(home) / "model")
    closed = tried(lambda: loaded.predict_interval(part, method="closed"))
    return {"estimate": loaded.predict(part), "closed": closed, "settings": sorted(loaded.get_params())}


def _named(quantifier: Any) -> str:
    return " ".join(repr(quantifier).split())


def with_classifiers(method: Any) -> dict[str, Any]:
    """A method with posteriors, a frozen and other classifiers, labels that are numbers or truth values, few data."""
    data = clouds()
    classifier = LogisticRegression().fit(data.X, data.y)
    posteriors = data._replace(X=classifier.predict_proba(data.X), pool=classifier.predict_proba(data.pool))
    votes = posteriors._replace(X=posteriors.X.round(1), pool=posteriors.pool.round(1))
    flat = posteriors._replace(X=np.full_like(posteriors.X, 0.5), pool=np.full_like(posteriors.pool, 0.5))
    few = Data(data.X[:14], data.y[:14], data.pool, data.y_pool)
    lone = Data(data.X, np.where(np.arange(len(data.y)) == 3, "lone", data.y), data.pool, data.y_pool)
    truths = Data(data.X, data.y == "b", data.pool, data.y_pool == "b")
    cases = {
        "precomputed": (method("precomputed"), posteriors),
        "votes": (method("precomputed"), votes),
        "flat": (method("precomputed"), flat),
        "frozen": (method(FrozenEstimator(classifier)), data),
        "bayes": (method(GaussianNB()), data),
        "few": (method(), few),
        "lone": (method(), lone),
        "truths": (method(), truths),
        "numbers": (method(), clouds(names="numbers")),
        "weak": (method(), clouds(2, 0.3)),
        "weak three": (method(), clouds(3, 0.4)),
    }
    return {name: asked(*case, "few", ("auto", "closed")) for name, case in cases.items()}


def is_long(key: str) -> bool:
    """Whether a unit is one of those that take longest."""
    return key.startswith(LONG)


def units() -> dict[str, Unit]:
    """Everything that is recorded of the library, by part and name."""
    import digits_tools

    found: dict[str, Unit] = {}
    tried_methods = [*ANY, *TWO, *ORDERED, *NETWORKS]
    known = {type(one) for one in tried_methods}
    new = [one for name in q.__all__ if inspect.isclass(one := getattr(q, name)) and issubclass(one, q.Quantifier)]
    others = [one() for one in new if one not in known and not inspect.isabstract(one)]
    for quantifier in [*ANY, *TWO, *others]:
        found[f"two/{_named(quantifier)}"] = functools.partial(_asked_of, quantifier, "clouds", 2)
        found[f"three/{_named(quantifier)}"] = functools.partial(_asked_of, quantifier, "clouds", 3)
    for quantifier in ORDERED:
        name = _named(quantifier)
        found[f"ordered/{name}"] = functools.partial(_asked_of, quantifier, "numbers", 4)
        ordered = clone(quantifier).set_params(order=["c", "a", "b"])
        found[f"ordered/{name} with an order"] = functools.partial(_asked_of, ordered, "clouds", 3)
    for quantifier in TEXTS:
        found[f"texts/{_named(quantifier)}"] = functools.partial(_asked_of, quantifier, "words", 2)
    found["texts/three classes"] = functools.partial(_asked_of, q.EMQ(SMALL_TEXT), "words", 3)
    for quantifier in NETWORKS:
        for k in (2, 3):
            found[f"networks/{_named(quantifier)} {k}"] = functools.partial(_network, quantifier, k)
    for method in (q.CC, q.ACC, q.PACC, q.EMQ, q.DyS, q.KDEyML, q.MS, q.RLLS, q.OACC, q.TrainPrevalence):
        found[f"classifiers/{method.__name__}"] = functools.partial(with_classifiers, method)
    return found | digits_tools.units()  # the paper's network of QuaNet is left out: an epoch takes minutes


def _asked_of(quantifier: Any, kind: str, k: int) -> dict[str, Any]:
    kinds = ("closed", "bootstrap", "bayes") if repr(quantifier).startswith(SLOW) else KINDS
    if kind == "words":
        return asked(quantifier, words(k), kinds=kinds)
    ask = "all" if k == 2 and repr(quantifier) in CORE else "some"
    return asked(
        quantifier, clouds(k, 2.0 + 0.5 * (k > 2), names="numbers" if kind == "numbers" else "letters"), ask, kinds
    )


def _network(quantifier: Any, k: int) -> dict[str, Any]:
    """Fewer kinds of intervals, as each takes many estimates."""
    data = clouds(k, n=240)
    data = data._replace(pool=data.pool[:600], y_pool=data.y_pool[:600])
    return asked(quantifier, data, "few", ("auto", "closed"))


def units_of_file(file: str | None) -> dict[str, Unit]:
    """The same for real texts: a table with the columns text and label."""
    if file is None:
        return {}

    def of(quantifier: Any) -> dict[str, Any]:
        table = q.read_table(file).sample(frac=1, random_state=0)
        texts, labels = table["text"].astype(str).tolist(), table["label"].astype(str).to_numpy()
        return asked(quantifier, Data(texts[:600], labels[:600], texts[600:2000], labels[600:2000]))

    return {f"file/{_named(one)}": functools.partial(of, one) for one in (q.EMQ(), q.PACC(), q.KDEyML(), q.SVMKLD())}

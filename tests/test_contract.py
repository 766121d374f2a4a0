"""Every method keeps the contract; and every clause of the contract catches a method that breaks it."""

from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import quanet
from quanet import (
    ACC,
    BBSE,
    CC,
    CDE,
    EMQ,
    KMM,
    LEIP,
    MAPLS,
    MAX,
    MS,
    MS2,
    OACC,
    OEMQ,
    OPACC,
    PACC,
    PCC,
    PWK,
    RLLS,
    RUN,
    SMM,
    SORD,
    SVMAE,
    SVMKLD,
    SVMNKLD,
    SVMQ,
    SVMRAE,
    T50,
    TAC,
    UPP,
    AutoQuantifier,
    CvMy,
    DeBias,
    Distances,
    DMy,
    DyS,
    EDx,
    EDy,
    Ensemble,
    FourierFeatures,
    FrankHall,
    Friedman,
    GaussianKernel,
    Gaussians,
    GridSearchQ,
    HDx,
    HDy,
    Histogram,
    KDEyCS,
    KDEyHD,
    KDEyML,
    Labels,
    Matching,
    MatchingX,
    Median,
    Moments,
    ODMy,
    OneVsRest,
    QUANTy,
    ReadMe,
    Tikhonov,
    TrainPrevalence,
    X,
    check_quantifier,
)
from quanet.arrays import check_rows
from quanet.base import Quantifier
from quanet.drift.scale import without_drift
from quanet.errors import InvalidData, InvalidSetting
from quanet.methods.aggregative import AggregativeQuantifier

METHODS = [TrainPrevalence(), CC(), PCC(), ACC(), PACC(), EMQ(), EMQ(solver="em"), EMQ(calibration=None), PACC(cv=0.4)]
METHODS += [SVMKLD(), SVMNKLD(), SVMQ(C=10.0), SVMAE(), SVMRAE(), OneVsRest(EMQ()), OneVsRest(SVMQ())]
METHODS += [GridSearchQ(CC(), {"classifier": [None]}, protocol=UPP(bag_size=20, repeats=30))]
METHODS += [GridSearchQ(SVMNKLD(), {"C": [0.1, 10.0]}, protocol=UPP(bag_size=20, repeats=30))]
METHODS += [DMy(), DMy(divergence="topsoe", cumulative=True), EDx(), KMM(), MatchingX()]
METHODS += [Matching(representation=Distances()), EDy(), EDy(metric="euclidean"), CvMy(), RUN(), Tikhonov()]
METHODS += [KDEyML(), KDEyCS(), KDEyHD(trials=200)]
METHODS += [Matching(representation=Moments(2), divergence="l2"), Matching(representation=GaussianKernel())]
METHODS += [Matching(representation=Labels(), divergence="likelihood")]
METHODS += [Matching(representation=Histogram((4, 6)), divergence="jensen-shannon")]
OF_TWO_CLASSES = [HDy(), DyS(), DyS(bins=8, divergence="hellinger"), SMM(), HDx(), SORD(), QUANTy()]
# With more classes its random features depend on their order, see its docstring.
RANDOM = [Matching(representation=FourierFeatures(50), divergence="l2")]
METHODS += [Friedman(), PWK(), PWK(3, alpha=2)]
METHODS += [ReadMe(), ReadMe(subsets=4, words=1)]
METHODS += [Median(PCC(), {"classifier": [None]}), Ensemble(PCC(), size=3)]
METHODS += [Ensemble(CC(), size=3, policy=policy, kept=2) for policy in ("prevalence", "distribution", "accuracy")]
METHODS += [MAPLS(), LEIP(), EMQ(calibration="nbvs", prior="posteriors"), EMQ(calibration=None, prior="posteriors")]
METHODS += [OneVsRest(T50()), BBSE(), BBSE(outputs="soft"), RLLS(), RLLS(outputs="hard", alpha=0.1)]
METHODS += [AutoQuantifier([TrainPrevalence(), PACC()], [None], protocol=UPP(bag_size=20, repeats=30))]
TWO_CLASSES = [CDE(), DeBias(), T50(), MAX(), X(), TAC(), TAC(threshold=0.3), MS(), MS2(), MS(cv=0.4)]
ORDERED = [
    OACC(),
    OPACC(strength=0.1),
    OEMQ(),
    ODMy(),
    ODMy(bins=(4, 6), strength=1.0),
    FrankHall(PACC()),
    FrankHall(CC()),
    RUN(tau=10.0),
    Tikhonov(tau=0.1),
]
TWO = [("string", 2)]
KINDS = [("string", 2), ("integer", 4)]


def first_of_class(quantifiers):
    """The first quantifier of each class; the others have other settings."""
    return list({type(one): one for one in reversed(quantifiers)}.values())[::-1]


def in_two_folds(quantifier):
    """A copy that fits its classifier in two folds instead of five."""
    folds = {name: 2 for name, cv in quantifier.get_params().items() if name.endswith("cv") and cv == 5}
    return clone(quantifier).set_params(**folds)


# Every method and setting runs the contract for names and two classes; one setting of each for four classes, too.
CASES = [(one, *KINDS[0]) for one in METHODS] + [(in_two_folds(one), *KINDS[1]) for one in first_of_class(METHODS)]


WITH_DRIFT = [one for one in first_of_class(METHODS) if isinstance(one, CC | EMQ | EDx | SVMKLD | GridSearchQ)]


@pytest.fixture(autouse=True)
def drift_once(request):
    """One method of each kind learns a drift scale in the contract; the other tests are faster without it."""
    wanted = request.node.originalname == "test_every_method_keeps_the_contract"
    if wanted and any(request.getfixturevalue("quantifier") is one for one in WITH_DRIFT):
        yield
        return
    with without_drift():
        yield


@pytest.mark.same_lines
@pytest.mark.parametrize(("quantifier", "labels", "k"), CASES, ids=repr)
def test_every_method_keeps_the_contract(quantifier, labels, k):
    check_quantifier(quantifier, k=k, labels=labels)


@pytest.mark.same_lines
@pytest.mark.parametrize("quantifier", OF_TWO_CLASSES + RANDOM, ids=repr)
def test_every_method_of_two_classes_keeps_the_contract(quantifier):
    check_quantifier(quantifier)


@pytest.mark.same_lines
@pytest.mark.parametrize("quantifier", first_of_class(METHODS + OF_TWO_CLASSES + RANDOM + TWO_CLASSES), ids=repr)
def test_numbers_and_booleans_are_labels_as_good_as_names(quantifier):
    X, codes = Gaussians(distance=3.0).draw([0.5, 0.5], 120, rng=0)
    quantifier = in_two_folds(quantifier)
    named = clone(quantifier).fit(X, np.array(["no", "yes"])[codes]).predict(X[:60])
    for labels in (10 * (codes + 1), codes == 1):
        fitted = clone(quantifier).fit(X, labels)
        assert fitted.classes_.tolist() == sorted(set(labels.tolist()))
        np.testing.assert_allclose(fitted.predict(X[:60]), named, atol=1e-9)


@pytest.mark.same_lines
@pytest.mark.parametrize("quantifier", OF_TWO_CLASSES, ids=repr)
def test_a_method_of_two_classes_names_the_way_out_for_more(quantifier):
    X, y = Gaussians(k=3, distance=4).draw([0.3, 0.3, 0.4], 300, rng=0)
    with pytest.raises(InvalidData, match=rf"two classes, but y has 3.*OneVsRest\({type(quantifier).__name__}\(\)\)"):
        quantifier.fit(X, y)
    np.testing.assert_allclose(OneVsRest(quantifier).fit(X, y).predict(X), [0.3, 0.3, 0.4], atol=0.1)


@pytest.mark.same_lines
@pytest.mark.parametrize(("labels", "k"), TWO)
@pytest.mark.parametrize("quantifier", TWO_CLASSES, ids=repr)
def test_every_method_for_two_classes_keeps_the_contract(quantifier, labels, k):
    check_quantifier(quantifier, k=k, labels=labels)


@pytest.mark.same_lines
@pytest.mark.parametrize("quantifier", ORDERED, ids=repr)
def test_every_method_for_ordered_classes_keeps_the_contract(quantifier):
    check_quantifier(in_two_folds(quantifier), k=4, labels="integer")


@pytest.mark.same_lines
@pytest.mark.parametrize("quantifier", first_of_class(ORDERED), ids=repr)
def test_two_ordered_names_keep_the_contract(quantifier):
    check_quantifier(clone(quantifier).set_params(order=["class 00", "class 01"]))


@pytest.mark.parametrize("quantifier", ORDERED, ids=repr)
def test_a_method_for_ordered_classes_asks_for_the_order_of_names(quantifier):
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 60, rng=0)
    name = type(quantifier).__name__
    with pytest.raises(InvalidData, match=rf"{name} needs ordered classes.*{name}\(order="):
        quantifier.fit(X, np.array(["bad", "ok", "good"])[y])


@pytest.mark.same_lines
@pytest.mark.parametrize("quantifier", TWO_CLASSES, ids=repr)
def test_a_method_for_two_classes_refuses_more_and_names_the_way_out(quantifier):
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 60, rng=0)
    name = type(quantifier).__name__
    with pytest.raises(InvalidData, match=rf"{name} is for two classes, but y has 3.*OneVsRest\({name}\(\)\)"):
        quantifier.fit(X, y)
    assert len(OneVsRest(quantifier).fit(X, y).predict(X)) == 3


def test_no_public_method_is_left_out():
    public = {value for name in quanet.__all__ if isinstance(value := getattr(quanet, name), type)}
    methods = {value for value in public if issubclass(value, Quantifier)} - {Quantifier, AggregativeQuantifier}
    # Tested in tests/nn, where training is made short.
    networks = {quanet.QuaNet, quanet.HistNetQ, quanet.GMNet, quanet.DeepSets}
    assert methods == {type(quantifier) for quantifier in METHODS + OF_TWO_CLASSES + TWO_CLASSES + ORDERED} | networks


class Broken(PCC):
    """A method to break."""


class OffTheSimplex(Broken):
    def aggregate(self, rows):
        return 2 * super().aggregate(rows)


class OrderMatters(Broken):
    def aggregate(self, rows):
        return super().aggregate(np.asarray(rows)[..., : np.shape(rows)[-2] // 2 + 1, :])


class ClassesAreUnequal(Broken):
    def aggregate(self, rows):
        tilted = super().aggregate(rows) * np.arange(1, len(self.classes_) + 1)
        return tilted / tilted.sum(axis=-1, keepdims=True)


class NeighboursMatter(Broken):
    def aggregate(self, rows):
        found = super().aggregate(rows)
        return found if found.ndim == 1 else (found + found.mean(axis=0)) / 2


class Unsorted(Broken):
    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.classes_[::-1]
        return self


class Forgetful(Broken):
    runs = 0

    def fit(self, X, y):
        Forgetful.runs += 1
        self.run_ = Forgetful.runs
        return super().fit(X, y)

    def aggregate(self, rows):
        mixed = super().aggregate(rows) + 1e-6 * self.run_
        return mixed / mixed.sum(axis=-1, keepdims=True)


class Scribbles(Broken):
    def represent(self, X):
        rows = super().represent(X)
        X *= 1.5
        return rows


class NeverExact(Broken):
    def aggregate(self, rows):
        found = 0.9 * super().aggregate(rows)
        return found + 0.1 / len(self.classes_)


class NeedsEveryClass(Broken):
    def aggregate(self, rows):
        found = super().aggregate(rows) / np.max(rows, axis=-2)
        return found / found.sum(axis=-1, keepdims=True)


class AnswersUnfitted(Broken):
    def predict(self, X, weights=None):
        return super().predict(X, weights) if hasattr(self, "classes_") else np.array([0.5, 0.5])


class TakesEmptyBags(Broken):
    def predict(self, X, weights=None):
        check_is_fitted(self)
        return np.full(len(self.classes_), 1 / len(self.classes_)) if not len(X) else super().predict(X, weights)


class RaisesTheWrongError(Broken):
    def predict(self, X, weights=None):
        if not len(X):
            raise IndexError("no rows")
        return super().predict(X, weights)


class Prints(Broken):
    def fit(self, X, y):
        print("fitting")  # noqa: T201
        return super().fit(X, y)


class RemembersElsewhere(Broken):
    kept: ClassVar[WeakKeyDictionary] = WeakKeyDictionary()

    def fit(self, X, y):
        super().fit(X, y)
        RemembersElsewhere.kept[self] = 0.9
        return self

    def aggregate(self, rows):
        flatter = np.asarray(rows) ** RemembersElsewhere.kept.get(self, 1)
        return super().aggregate(flatter / flatter.sum(axis=-1, keepdims=True))


class KeepsWhatCannotBeSaved(Broken):
    def fit(self, X, y):
        self.share_ = lambda posteriors: posteriors.mean(axis=-2)
        return super().fit(X, y)

    def aggregate(self, rows):
        return self.share_(check_rows(rows, width=len(self.classes_)))


class SeedsTheWorld(Broken):
    def fit(self, X, y):
        np.random.seed(0)  # noqa: NPY002
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (OffTheSimplex, "sum to 1"),
        (OrderMatters, "order of a bag"),
        (ClassesAreUnequal, "Other names"),
        (NeighboursMatter, "neighbours in the batch"),
        (Unsorted, "`classes_` are the labels"),
        (Forgetful, "to the last bit"),
        (Scribbles, "changes what it is given"),
        (NeverExact, "the estimate is the truth"),
        (NeedsEveryClass, "a class is never named. A warning was raised: divide by zero|invalid value"),
        (AnswersUnfitted, "NotFittedError"),
        (TakesEmptyBags, "QuanetError was due, and nothing was raised"),
        (RaisesTheWrongError, "QuanetError was due, not IndexError"),
        (Prints, "prints"),
        (SeedsTheWorld, "global random state"),
        (RemembersElsewhere, "Saved and loaded, it has the same"),
        (KeepsWhatCannotBeSaved, "It cannot be saved and loaded: share_ contains"),
    ],
)
def test_a_broken_method_is_caught_by_its_law(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_quantifier(broken())


def test_booleans_name_two_classes():
    with pytest.raises(InvalidSetting, match="two classes, not 4"):
        check_quantifier(CC(), k=4, labels="boolean")

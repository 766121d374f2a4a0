"""The methods of distribution matching and kernel densities, with the names and settings of each library."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mlquantify.matching
import numpy as np
import quantificationlib.binary.emd
import quantificationlib.binary.quantiles
import quantificationlib.multiclass.df
import quantificationlib.multiclass.energy
import quapy
from quapy.method.non_aggregative import DMx
from quapy.method.non_aggregative import EDx as TheirEDx
from sklearn.base import BaseEstimator, ClassifierMixin

from quanet import SMM, SORD, CvMy, DMy, DyS, EDx, EDy, HDx, HDy, KDEyCS, KDEyHD, KDEyML, MatchingX, Moments, QUANTy


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
class Method:
    """One method in every library; None where a library has no such method.

    ``every`` says of a slow library that it is given every so many-th bag, and its time multiplied by that number.
    ``pool`` means that quanet works for instances before it does for bags: its time then counts the whole pool's.
    """

    name: str
    quanet: Callable[[Any], Any]
    quapy: Callable[[Any], Any] | None = None
    mlquantify: Callable[[], Any] | None = None
    quantificationlib: Callable[[], Any] | None = None
    soft: bool = True
    features: bool = False
    pool: bool = False
    every: dict[str, int] = field(default_factory=dict)


def _of_posteriors(k: int) -> list[Method]:
    """Any number of classes."""
    theirs, other, library = quapy.method.aggregative, mlquantify.matching, quantificationlib.multiclass
    often = 20 if k == 2 else 50
    kde = {"quapy": 50 if k == 2 else 125, "mlquantify": 50 if k == 2 else 125}
    return [
        Method(
            "DMy, 8 bins, Hellinger",
            DMy,
            lambda c: theirs.DMy(c, fit_classifier=False),
            quantificationlib=library.df.HDy,
            pool=True,
            every={"quapy": 1 if k == 2 else 25, "quantificationlib": 5},
        ),
        Method(
            "DMy, 8 bins, Topsoe",
            lambda c: DMy(c, divergence="topsoe"),
            lambda c: theirs.DMy(c, fit_classifier=False, divergence="topsoe"),
            pool=True,
            every={"quapy": 1 if k == 2 else 25},
        ),
        Method(
            "EDy",
            EDy,
            lambda c: theirs.EDy(c, fit_classifier=False),
            lambda: other.EDy(PassOn()),
            library.energy.EDy,
            pool=True,
            every={"quapy": often, "mlquantify": often, "quantificationlib": often},
        ),
        Method(
            "CvMy",
            CvMy,
            quantificationlib=library.energy.CvMy,
            pool=True,
            every={"quantificationlib": 420 if k == 2 else 250},
        ),
        Method(
            "KDEyML",
            KDEyML,
            lambda c: theirs.KDEyML(c, fit_classifier=False),
            lambda: other.KDEyML(PassOn()),
            pool=True,
            every=kde,
        ),
        Method(
            "KDEyCS",
            KDEyCS,
            lambda c: theirs.KDEyCS(c, fit_classifier=False),
            lambda: other.KDEyCS(PassOn()),
            pool=True,
            every=kde,
        ),
        Method(
            "KDEyHD",
            KDEyHD,
            lambda c: theirs.KDEyHD(c, fit_classifier=False, random_state=0),
            lambda: other.KDEyHD(PassOn(), random_state=0),
            pool=True,
            every={"quapy": 420 if k == 2 else 250, "mlquantify": 420 if k == 2 else 250},
        ),
    ]


def _of_features(k: int) -> list[Method]:
    other, every = mlquantify.matching, 42 if k == 2 else 125
    library = quantificationlib.multiclass.energy
    return [
        Method(
            "EDx",
            lambda _: EDx(),
            lambda _: TheirEDx(distance="euclidean"),
            other.EDx,
            library.EDX,
            features=True,
            pool=True,
            every=dict.fromkeys(("quapy", "mlquantify", "quantificationlib"), every),
        ),
        Method(
            "MatchingX(Moments(), l2), mlquantify's MMD",
            lambda _: MatchingX(representation=Moments(), divergence="l2"),
            mlquantify=other.MMD_RKHS,
            features=True,
            pool=True,
            every={"mlquantify": 5},
        ),
    ]


def _of_two_classes() -> list[Method]:
    theirs, other, library = quapy.method.aggregative, mlquantify.matching, quantificationlib.binary
    hdy = {"pool": True, "every": {"quapy": 10, "mlquantify": 5}}
    return [
        Method("SMM", SMM, lambda c: theirs.SMM(c, fit_classifier=False), lambda: other.SMM(PassOn())),
        Method(
            "DyS, 8 bins, Hellinger (QuaPy's)",
            lambda c: DyS(c, bins=8, divergence="hellinger"),
            lambda c: theirs.DyS(c, fit_classifier=False),
            pool=True,
        ),
        Method(
            "DyS, median over bins, Topsoe (published)",
            DyS,
            mlquantify=lambda: other.DyS(PassOn(), bin_strategy="median"),
            pool=True,
        ),
        Method(
            "HDy, exact minimum",
            HDy,
            lambda c: theirs.HDy(c, fit_classifier=False),
            lambda: other.HDy(PassOn()),
            **hdy,
        ),
        Method(
            "HDy, steps of 1/99 (QuaPy's)",
            lambda c: HDy(c, step=1 / 99),
            lambda c: theirs.HDy(c, fit_classifier=False),
            **hdy,
        ),
        Method(
            "HDy, steps of 0.01 (published)",
            lambda c: HDy(c, step=0.01),
            mlquantify=lambda: other.HDy(PassOn()),
            **hdy,
        ),
        Method(
            "SORD",
            SORD,
            mlquantify=lambda: other.SORD(PassOn()),
            quantificationlib=library.emd.SORDy,
            pool=True,
            every={"mlquantify": 10, "quantificationlib": 420},
        ),
        Method(
            "QUANTy", QUANTy, quantificationlib=library.quantiles.QUANTy, pool=True, every={"quantificationlib": 700}
        ),
        Method(
            "HDx, steps of 1/99 (QuaPy's)",
            lambda _: HDx(step=1 / 99),
            lambda _: DMx.HDx(),
            features=True,
            pool=True,
            every={"quapy": 50},
        ),
        Method(
            "HDx, steps of 0.01 (published)",
            lambda _: HDx(),
            mlquantify=other.HDx,
            features=True,
            pool=True,
            every={"mlquantify": 10},
        ),
    ]


def matching_methods(k: int) -> list[Method]:
    """The methods for any number of classes and, if k is 2, the methods for two."""
    return (_of_two_classes() if k == 2 else []) + _of_posteriors(k) + _of_features(k)

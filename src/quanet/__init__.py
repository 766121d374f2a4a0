"""quanet: how many, not which. Class prevalences in sets of unlabelled items.

>>> import quanet
>>> things = ["film", "plot", "cast", "score", "scene", "start", "end", "camera", "sound", "joke"]
>>> texts = [f"{word} {thing}" for thing in things for word in ("good", "bad")]
>>> quantifier = quanet.EMQ().fit(texts, ["pos", "neg"] * 10)
>>> quantifier.predict(["a good one", "so good", "quite bad", "good fun"]).round(2)
array([0.25, 0.75])
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from quanet.bags import Bags as Bags
    from quanet.base import AggregativeQuantifier as AggregativeQuantifier
    from quanet.base import Quantifier as Quantifier
    from quanet.calibration import calibrate as calibrate
    from quanet.data.dataset import Dataset as Dataset
    from quanet.data.lequa import BagFiles as BagFiles
    from quanet.data.loading import TrainTest as TrainTest
    from quanet.data.loading import fetch_dataset as fetch_dataset
    from quanet.data.loading import list_datasets as list_datasets
    from quanet.data.loading import load_dataset as load_dataset
    from quanet.data.reviews import movie_reviews as movie_reviews
    from quanet.data.synthetic import Gaussians as Gaussians
    from quanet.data.synthetic import WordBags as WordBags
    from quanet.data.tables import read_table as read_table
    from quanet.diagnostics.diagnose import diagnose as diagnose
    from quanet.errors import QuanetError as QuanetError
    from quanet.errors import QuanetWarning as QuanetWarning
    from quanet.evaluation.auto import AutoQuantifier as AutoQuantifier
    from quanet.evaluation.evaluate import evaluate as evaluate
    from quanet.evaluation.limits import cramer_rao_error as cramer_rao_error
    from quanet.evaluation.results import Results as Results
    from quanet.evaluation.selection import GridSearchQ as GridSearchQ
    from quanet.evaluation.significance import friedman_test as friedman_test
    from quanet.evaluation.significance import paired_t_test as paired_t_test
    from quanet.evaluation.significance import wilcoxon_test as wilcoxon_test
    from quanet.methods.baseline import TrainPrevalence as TrainPrevalence
    from quanet.methods.cde import CDE as CDE
    from quanet.methods.counting import ACC as ACC
    from quanet.methods.counting import CC as CC
    from quanet.methods.counting import PACC as PACC
    from quanet.methods.counting import PCC as PCC
    from quanet.methods.divergences import Divergence as Divergence
    from quanet.methods.em import EMQ as EMQ
    from quanet.methods.energy import SORD as SORD
    from quanet.methods.energy import CvMy as CvMy
    from quanet.methods.energy import EDy as EDy
    from quanet.methods.energy import QUANTy as QUANTy
    from quanet.methods.ensemble import Ensemble as Ensemble
    from quanet.methods.ensemble import Median as Median
    from quanet.methods.features import KMM as KMM
    from quanet.methods.features import EDx as EDx
    from quanet.methods.features import MatchingX as MatchingX
    from quanet.methods.frank_hall import FrankHall as FrankHall
    from quanet.methods.friedman import DeBias as DeBias
    from quanet.methods.friedman import Friedman as Friedman
    from quanet.methods.hellinger import HDx as HDx
    from quanet.methods.hellinger import HDy as HDy
    from quanet.methods.kde import KDEyCS as KDEyCS
    from quanet.methods.kde import KDEyHD as KDEyHD
    from quanet.methods.kde import KDEyML as KDEyML
    from quanet.methods.kernel_means import Distances as Distances
    from quanet.methods.kernel_means import GaussianKernel as GaussianKernel
    from quanet.methods.likelihood import LEIP as LEIP
    from quanet.methods.likelihood import MAPLS as MAPLS
    from quanet.methods.matching import SMM as SMM
    from quanet.methods.matching import DMy as DMy
    from quanet.methods.matching import DyS as DyS
    from quanet.methods.matching import Matching as Matching
    from quanet.methods.multiclass import OneVsRest as OneVsRest
    from quanet.methods.neighbours import PWK as PWK
    from quanet.methods.neighbours import WeightedNeighbours as WeightedNeighbours
    from quanet.methods.ordinal import OACC as OACC
    from quanet.methods.ordinal import OEMQ as OEMQ
    from quanet.methods.ordinal import OPACC as OPACC
    from quanet.methods.ordinal_matching import ODMy as ODMy
    from quanet.methods.readme import ReadMe as ReadMe
    from quanet.methods.representations import FourierFeatures as FourierFeatures
    from quanet.methods.representations import Histogram as Histogram
    from quanet.methods.representations import Labels as Labels
    from quanet.methods.representations import Moments as Moments
    from quanet.methods.svm import QuantificationSVC as QuantificationSVC
    from quanet.methods.svm_counting import SVMAE as SVMAE
    from quanet.methods.svm_counting import SVMKLD as SVMKLD
    from quanet.methods.svm_counting import SVMNKLD as SVMNKLD
    from quanet.methods.svm_counting import SVMQ as SVMQ
    from quanet.methods.svm_counting import SVMRAE as SVMRAE
    from quanet.methods.thresholds import MAX as MAX
    from quanet.methods.thresholds import MS as MS
    from quanet.methods.thresholds import MS2 as MS2
    from quanet.methods.thresholds import T50 as T50
    from quanet.methods.thresholds import TAC as TAC
    from quanet.methods.thresholds import X as X
    from quanet.methods.unfolding import RUN as RUN
    from quanet.methods.unfolding import Tikhonov as Tikhonov
    from quanet.methods.weights import BBSE as BBSE
    from quanet.methods.weights import RLLS as RLLS
    from quanet.metrics import METRICS as METRICS
    from quanet.metrics import absolute_error as absolute_error
    from quanet.metrics import bias as bias
    from quanet.metrics import kullback_leibler_divergence as kullback_leibler_divergence
    from quanet.metrics import match_distance as match_distance
    from quanet.metrics import normalized_absolute_error as normalized_absolute_error
    from quanet.metrics import (
        normalized_kullback_leibler_divergence as normalized_kullback_leibler_divergence,
    )
    from quanet.metrics import (
        normalized_relative_absolute_error as normalized_relative_absolute_error,
    )
    from quanet.metrics import relative_absolute_error as relative_absolute_error
    from quanet.metrics import squared_error as squared_error
    from quanet.monitoring import Monitor as Monitor
    from quanet.nn.estimator import QuaNet as QuaNet
    from quanet.nn.lstm import LSTMClassifier as LSTMClassifier
    from quanet.nn.sentences import SentenceClassifier as SentenceClassifier
    from quanet.nn.sets import DeepSets as DeepSets
    from quanet.nn.sets import GMNet as GMNet
    from quanet.nn.sets import HistNetQ as HistNetQ
    from quanet.persist.folder import load as load
    from quanet.persist.folder import save as save
    from quanet.protocols import APP as APP
    from quanet.protocols import NPP as NPP
    from quanet.protocols import UPP as UPP
    from quanet.protocols import ByGroup as ByGroup
    from quanet.protocols import Dirichlet as Dirichlet
    from quanet.stacking import StackedClassifier as StackedClassifier
    from quanet.testing import check_quantifier as check_quantifier
    from quanet.text import TextClassifier as TextClassifier
    from quanet.uncertainty.few_labels import refine as refine
    from quanet.uncertainty.intervals import predict_interval as predict_interval
    from quanet.uncertainty.intervals import predict_interval_bags as predict_interval_bags
    from quanet.uncertainty.judges import correct_rate as correct_rate
    from quanet.uncertainty.label_plans import plan_labels as plan_labels
    from quanet.uncertainty.regions import Interval as Interval

# Where each public name lives. It is imported when it is first used, so that `import quanet` costs next to nothing.
_ROOMS = {
    "bags": ("Bags",),
    "base": ("AggregativeQuantifier", "Quantifier"),
    "calibration": ("calibrate",),
    "data.dataset": ("Dataset",),
    "data.lequa": ("BagFiles",),
    "data.loading": ("TrainTest", "fetch_dataset", "list_datasets", "load_dataset"),
    "data.reviews": ("movie_reviews",),
    "data.synthetic": ("Gaussians", "WordBags"),
    "data.tables": ("read_table",),
    "diagnostics.diagnose": ("diagnose",),
    "errors": ("QuanetError", "QuanetWarning"),
    "evaluation.auto": ("AutoQuantifier",),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.limits": ("cramer_rao_error",),
    "evaluation.results": ("Results",),
    "evaluation.selection": ("GridSearchQ",),
    "evaluation.significance": ("friedman_test", "paired_t_test", "wilcoxon_test"),
    "methods.baseline": ("TrainPrevalence",),
    "methods.cde": ("CDE",),
    "methods.counting": ("ACC", "CC", "PACC", "PCC"),
    "methods.divergences": ("Divergence",),
    "methods.em": ("EMQ",),
    "methods.energy": ("CvMy", "EDy", "QUANTy", "SORD"),
    "methods.features": ("EDx", "KMM", "MatchingX"),
    "methods.hellinger": ("HDx", "HDy"),
    "methods.kde": ("KDEyCS", "KDEyHD", "KDEyML"),
    "methods.kernel_means": ("Distances", "GaussianKernel"),
    "methods.matching": ("DMy", "DyS", "Matching", "SMM"),
    "methods.multiclass": ("OneVsRest",),
    "methods.representations": ("FourierFeatures", "Histogram", "Labels", "Moments"),
    "methods.svm": ("QuantificationSVC",),
    "methods.svm_counting": ("SVMAE", "SVMKLD", "SVMNKLD", "SVMQ", "SVMRAE"),
    "methods.unfolding": ("RUN", "Tikhonov"),
    "methods.ensemble": ("Ensemble", "Median"),
    "methods.friedman": ("DeBias", "Friedman"),
    "methods.likelihood": ("LEIP", "MAPLS"),
    "methods.neighbours": ("PWK", "WeightedNeighbours"),
    "methods.frank_hall": ("FrankHall",),
    "methods.ordinal": ("OACC", "OEMQ", "OPACC"),
    "methods.ordinal_matching": ("ODMy",),
    "methods.readme": ("ReadMe",),
    "methods.thresholds": ("MAX", "MS", "MS2", "T50", "TAC", "X"),
    "methods.weights": ("BBSE", "RLLS"),
    "metrics": (
        "METRICS",
        "absolute_error",
        "bias",
        "kullback_leibler_divergence",
        "match_distance",
        "normalized_absolute_error",
        "normalized_kullback_leibler_divergence",
        "normalized_relative_absolute_error",
        "relative_absolute_error",
        "squared_error",
    ),
    "monitoring": ("Monitor",),
    "nn.estimator": ("QuaNet",),
    "nn.lstm": ("LSTMClassifier",),
    "nn.sentences": ("SentenceClassifier",),
    "nn.sets": ("DeepSets", "GMNet", "HistNetQ"),
    "persist.folder": ("load", "save"),
    "protocols": ("APP", "NPP", "UPP", "ByGroup", "Dirichlet"),
    "testing": ("check_quantifier",),
    "stacking": ("StackedClassifier",),
    "text": ("TextClassifier",),
    "uncertainty.intervals": ("predict_interval", "predict_interval_bags"),
    "uncertainty.regions": ("Interval",),
    "uncertainty.few_labels": ("refine",),
    "uncertainty.judges": ("correct_rate",),
    "uncertainty.label_plans": ("plan_labels",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_ROOM_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'quanet' has no attribute {name!r}")
    try:
        room = import_module(f"quanet.{_ROOM_OF[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from quanet.errors import MissingExtra

        raise MissingExtra(
            f"{name} needs PyTorch, which is not installed. Install it: pip install 'quanet[nn]'"
        ) from None
    value = getattr(room, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Names that can be used here: `help(quanet)` and completion try all of them."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return [name for name in __all__ if not _ROOM_OF.get(name, "").startswith("nn.")]
    return __all__

"""quanet: how many, not which. Class prevalences in sets of unlabelled items.

>>> import quanet
>>> texts = ["good film", "bad film", "good plot", "bad plot"] * 5
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
    from quanet.data.reviews import movie_reviews as movie_reviews
    from quanet.data.synthetic import Gaussians as Gaussians
    from quanet.data.synthetic import WordBags as WordBags
    from quanet.data.tables import read_table as read_table
    from quanet.diagnostics.diagnose import diagnose as diagnose
    from quanet.errors import QuanetError as QuanetError
    from quanet.errors import QuanetWarning as QuanetWarning
    from quanet.evaluation.evaluate import evaluate as evaluate
    from quanet.evaluation.limits import cramer_rao_error as cramer_rao_error
    from quanet.evaluation.results import Results as Results
    from quanet.evaluation.selection import GridSearchQ as GridSearchQ
    from quanet.evaluation.significance import friedman_test as friedman_test
    from quanet.evaluation.significance import paired_t_test as paired_t_test
    from quanet.evaluation.significance import wilcoxon_test as wilcoxon_test
    from quanet.methods.baseline import TrainPrevalence as TrainPrevalence
    from quanet.methods.counting import ACC as ACC
    from quanet.methods.counting import CC as CC
    from quanet.methods.counting import PACC as PACC
    from quanet.methods.counting import PCC as PCC
    from quanet.methods.em import EMQ as EMQ
    from quanet.methods.multiclass import OneVsRest as OneVsRest
    from quanet.methods.svm import SVMAE as SVMAE
    from quanet.methods.svm import SVMKLD as SVMKLD
    from quanet.methods.svm import SVMNKLD as SVMNKLD
    from quanet.methods.svm import SVMQ as SVMQ
    from quanet.methods.svm import SVMRAE as SVMRAE
    from quanet.methods.svm import QuantificationSVC as QuantificationSVC
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
    from quanet.persist.folder import load as load
    from quanet.persist.folder import save as save
    from quanet.protocols import APP as APP
    from quanet.protocols import NPP as NPP
    from quanet.protocols import UPP as UPP
    from quanet.protocols import ByGroup as ByGroup
    from quanet.protocols import Dirichlet as Dirichlet
    from quanet.testing import check_quantifier as check_quantifier
    from quanet.text import TextClassifier as TextClassifier
    from quanet.uncertainty.few_labels import plan_labels as plan_labels
    from quanet.uncertainty.few_labels import refine as refine
    from quanet.uncertainty.judges import correct_rate as correct_rate

# Where each public name lives. It is imported when it is first used, so that `import quanet` costs next to nothing.
_ROOMS = {
    "bags": ("Bags",),
    "base": ("AggregativeQuantifier", "Quantifier"),
    "calibration": ("calibrate",),
    "data.dataset": ("Dataset",),
    "data.reviews": ("movie_reviews",),
    "data.synthetic": ("Gaussians", "WordBags"),
    "data.tables": ("read_table",),
    "diagnostics.diagnose": ("diagnose",),
    "errors": ("QuanetError", "QuanetWarning"),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.limits": ("cramer_rao_error",),
    "evaluation.results": ("Results",),
    "evaluation.selection": ("GridSearchQ",),
    "evaluation.significance": ("friedman_test", "paired_t_test", "wilcoxon_test"),
    "methods.baseline": ("TrainPrevalence",),
    "methods.counting": ("ACC", "CC", "PACC", "PCC"),
    "methods.em": ("EMQ",),
    "methods.multiclass": ("OneVsRest",),
    "methods.svm": ("SVMAE", "SVMKLD", "SVMNKLD", "SVMQ", "SVMRAE", "QuantificationSVC"),
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
    "persist.folder": ("load", "save"),
    "protocols": ("APP", "NPP", "UPP", "ByGroup", "Dirichlet"),
    "testing": ("check_quantifier",),
    "text": ("TextClassifier",),
    "uncertainty.few_labels": ("plan_labels", "refine"),
    "uncertainty.judges": ("correct_rate",),
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
    return __all__

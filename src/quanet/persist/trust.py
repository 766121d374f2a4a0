"""Which types a folder may name: quanet's own, known parts of scikit-learn, and those that the caller vouches for."""

import sys
from collections.abc import Iterable
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

from quanet.base import Quantifier
from quanet.errors import InvalidModel, InvalidSetting
from quanet.persist.trees import check_trees

# Classes that are not public but may be inside a saved quantifier. Public ones are known without an entry here.
PARTS = {
    "Calibration": "quanet.calibration",
    "PrecomputedPosteriors": "quanet.classifiers",
    "Matcher": "quanet.methods.matcher",
    "Epoch": "quanet.nn.loop",
    "RowMaker": "quanet.nn.rows",
    "Statistics": "quanet.nn.statistics",
    "Terms": "quanet.terms",
    # Taken apart like our own: a network may stand in the first two, and skops writes a vocabulary word by word.
    "FrozenEstimator": "sklearn.frozen",
    "Pipeline": "sklearn.pipeline",
    "CountVectorizer": "sklearn.feature_extraction.text",
    "TfidfTransformer": "sklearn.feature_extraction.text",
    "TfidfVectorizer": "sklearn.feature_extraction.text",
}

# Parts of fitted classifiers that skops does not trust by itself. They are listed one by one, not by package: a package
# has functions too, and some of numpy's and scipy's run whatever code they are given.
SKLEARN = frozenset(
    {
        *(
            f"sklearn.calibration.{name}"
            for name in ("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling")
        ),
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        *(
            f"sklearn.gaussian_process.kernels.{name}"
            for name in (
                *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern"),
                *("PairwiseKernel", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
            )
        ),
        *(
            f"sklearn.model_selection._split.{name}"
            for name in (
                *("GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneOut", "PredefinedSplit", "RepeatedKFold"),
                *("RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedGroupKFold", "StratifiedKFold"),
                *("StratifiedShuffleSplit", "TimeSeriesSplit"),
            )
        ),
        "sklearn.multiclass._ConstantPredictor",
        *(f"sklearn.neural_network._stochastic_optimizers.{name}" for name in ("AdamOptimizer", "SGDOptimizer")),
        "sklearn.tree._tree.Tree",
        # Data alone, which skops writes as NumPy's arrays; neighbours of texts keep their terms so.
        "scipy.sparse._csr.csr_matrix",
    }
)


# Not by an import statement: this room uses the public names when it runs, and stands below some of them.
QUANET: Any = import_module("quanet")


@cache
def known(name: str) -> type | None:
    """The class of that short name, if a folder may name it without being trusted; no other one is imported."""
    if name in PARTS:
        return getattr(import_module(PARTS[name]), name)
    found = getattr(QUANET, name) if name in QUANET.__all__ else None
    return found if isinstance(found, type) and (issubclass(found, BaseEstimator) or is_dataclass(found)) else None


def name_of(kind: type) -> str:
    """What a folder calls a class: the short name of a known one, the full name of any other."""
    return kind.__name__ if known(kind.__name__) is kind else full_name(kind)


def full_name(kind: type) -> str:
    """Module and name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def is_ours(value: object) -> bool:
    """Whether an object is taken apart by quanet, not by skops."""
    kind = type(value)
    return known(kind.__name__) is kind or isinstance(value, Quantifier) or has_hooks(kind)


def has_hooks(kind: type) -> bool:
    """Whether a class says itself what to remember; half of the pair is a mistake of its author."""
    pair = [hasattr(kind, name) for name in ("__quanet_state__", "__quanet_restore__")]
    if any(pair) and not all(pair):
        raise InvalidSetting(
            f"{full_name(kind)} needs both __quanet_state__ and __quanet_restore__; it has one of them."
        )
    return all(pair)


class Trust:
    """The types that a caller vouches for, by name or as the classes themselves."""

    def __init__(self, given: Iterable[str | type]) -> None:
        if isinstance(given, str | type):
            raise InvalidSetting(f"trusted is a list of types or of their names, even for one; got {given!r}.")
        given = list(given)
        self._types = {full_name(one): one for one in given if isinstance(one, type)}
        self.names = {one for one in given if isinstance(one, str)} | set(self._types)

    def class_of(self, name: str) -> type:
        """The class of that name, if it is known or trusted."""
        if (kind := known(name)) is not None:
            return kind
        if name in self._types:
            return self._types[name]
        if name not in self.names:
            raise InvalidModel(f"the class {name!r} is not trusted.")
        # The caller named it, so its module may be imported; the folder alone never causes an import.
        module = name.rpartition(".")[0]
        try:
            import_module(module)
        except ImportError as error:
            raise InvalidModel(f"{name} is trusted, but {module} cannot be imported: {error}.") from error
        found = locate(name)
        if not isinstance(found, type):
            raise InvalidModel(f"{name} is trusted, but is no class there. Pass the class itself.")
        return found

    def load_part(self, data: bytes) -> Any:
        """The scikit-learn object in a skops archive, its types checked before it is built and its trees after."""
        import skops.io

        foreign = _foreign_types(data)
        unknown = sorted(name for name in foreign - self.names if not _is_known(name))
        if unknown:
            raise InvalidModel(f"the types {', '.join(unknown)} are not trusted.")
        part = skops.io.loads(data, trusted=sorted(foreign))
        check_trees(part)
        return part


def untrusted_in(data: bytes) -> list[str]:
    """The types in a skops archive that neither skops nor quanet knows."""
    return sorted(name for name in _foreign_types(data) if not _is_known(name))


def _is_known(name: str) -> bool:
    kind = known(name.rpartition(".")[2])
    return name in SKLEARN or (kind is not None and full_name(kind) == name)


def _foreign_types(data: bytes) -> set[str]:
    import skops.io  # when it is needed: it imports all of scikit-learn

    return set(skops.io.get_untrusted_types(data=data))


def locate(name: str) -> Any:
    """What an imported module has under a full name, or None; nothing is imported."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:cut]))
        if found is not None:
            for part in parts[cut:]:
                found = getattr(found, part, None)
            return found
    return None

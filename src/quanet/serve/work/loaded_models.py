"""Models in the memory of a worker, by the name of their folder: loading one takes longer than reading a small file."""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quanet.base import Quantifier
from quanet.corpus.model_inputs import describe_model, load_model

MOST_MODELS = 3  # in memory


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model: the quantifier, the facts saved with it, the name of its folder, and what answers repeat of it."""

    quantifier: Quantifier
    facts: dict[str, Any]
    name: str
    about: dict[str, Any]


class LoadedModels:
    """The models used last."""

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[str, tuple[str, ...]], LoadedModel] = OrderedDict()

    def get(self, folder: Path, names: dict[str, str], shown: str) -> LoadedModel:
        """The model in a folder; its classes have these names, and answers call the folder `shown`."""
        key = (folder.name, tuple(f"{label}={name}" for label, name in names.items()))
        if key not in self._models:
            quantifier, facts = load_model(folder, names)
            about = describe_model(shown, facts, quantifier)
            self._models[key] = LoadedModel(quantifier, facts, folder.name, about)
            while len(self._models) > MOST_MODELS:
                self._models.popitem(last=False)
        self._models.move_to_end(key)
        return self._models[key]

"""A model that travels: the files of its folder as bytes, loaded once in every process."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quanet.base import Quantifier
from quanet.errors import InvalidModel
from quanet.persist.load import load, model_digest
from quanet.persist.save import save

_loaded: dict[str, Quantifier] = {}  # the model of this process, by its digest


@dataclass(frozen=True, slots=True, eq=False)
class ModelFiles:
    """The files of a model folder.

    Attributes
    ----------
    digest : of the model.
    folder : where they are, if every worker can read them there.
    contents : by name, if they travel.
    """

    digest: str
    folder: str = ""
    contents: dict[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, model: Any, *, travel: bool = True) -> "ModelFiles":
        """The files of a model folder, or of a fitted quantifier.

        Parameters
        ----------
        model : folder, or quantifier.
        travel : whether workers are on other machines.
        """
        if not isinstance(model, str | Path):
            with TemporaryDirectory(prefix="quanet-") as folder:
                save(model, Path(folder, "model"))
                return cls.of(Path(folder, "model"))
        place = Path(model)
        digest = model_digest(place)
        contents = (
            {file.name: file.read_bytes() for file in sorted(place.iterdir()) if file.is_file()} if travel else {}
        )
        return cls(digest, str(place), contents)

    def keep(self, quantifier: Quantifier) -> None:
        """Use a model that this process has loaded already."""
        _loaded.clear()
        _loaded[self.digest] = quantifier

    def quantifier(self) -> Quantifier:
        """The model, which this process loads once."""
        if self.digest not in _loaded:
            self.keep(self._load())
        return _loaded[self.digest]

    def _load(self) -> Quantifier:
        if not self.contents:
            return quantifier_in(self.folder)
        with TemporaryDirectory(prefix="quanet-") as folder:
            for name, content in self.contents.items():
                Path(folder, name).write_bytes(content)
            return quantifier_in(folder)


def quantifier_in(folder: str | Path) -> Quantifier:
    """The quantifier in a model folder; of a search, the one that it has selected."""
    loaded = load(folder)
    hashes = getattr(loaded, "training_hashes_", None)
    if not isinstance(loaded, Quantifier):
        raise InvalidModel(f"{folder} contains a {type(loaded).__name__}, which does not estimate shares.")
    loaded = loaded.chosen()
    if hashes is not None:
        loaded.training_hashes_ = hashes
    return loaded

"""Training a quantifier on a labelled table, and the errors to expect: `quanet fit`."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

import quanet
from quanet.base import Quantifier
from quanet.data.columns import ClassNames
from quanet.data.duplicates import RowOrder, hash_training_texts
from quanet.data.instances import InputColumns
from quanet.drift.scale import root_mean_square
from quanet.errors import InvalidPart, brief
from quanet.lab.build import make, prepare
from quanet.persist.save import save
from quanet.workflows.expected_errors import HeldOutErrors, explain_poor, held_out_errors
from quanet.workflows.labelled import Labelled

DEFAULT_METHOD = "QuaNet"
LIMIT_SIZES = (500, 5_000)  # rows for which the smallest share that can be told from 0 is stated


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What came of training a quantifier.

    Attributes
    ----------
    method : name of the quantifier's class.
    files : names of the files.
    inputs, label : columns.
    rows : rows read, and those skipped by reason in `skipped`.
    counts : instances by class.
    duplicates, conflicts : copies of other instances, and instances whose copies have different labels.
    errors : errors to expect, measured on held-out instances; None if unknown.
    holds_out : whether the quantifier has held-out instances at all.
    advice : sentences about a poor model and what would help.
    drift : how the drift scale was learned (`LearnedDrift`).
    names : names of classes by label, as answers show them; labels without an entry are shown as they are.
    seconds : duration of training.
    seed : random seed.
    order : a sentence if labels are related to the order of the rows; otherwise empty.
    limits : by class, the smallest shares that can be told from 0 in `LIMIT_SIZES` rows (`detection_limits`); empty if
        unknown.
    """

    method: str
    files: tuple[str, ...]
    inputs: InputColumns
    label: str
    rows: int
    counts: dict[Any, int]
    skipped: dict[str, int]
    duplicates: int
    conflicts: int
    errors: HeldOutErrors | None
    holds_out: bool
    advice: tuple[str, ...]
    seconds: float
    seed: int
    drift: "LearnedDrift | None" = None
    names: dict[str, str] = field(default_factory=dict)
    order: str = ""
    limits: dict[Any, tuple[float, ...]] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        """Instances trained on."""
        return sum(self.counts.values())

    @property
    def sentence(self) -> str:
        """The training data in a sentence."""
        files = ", ".join(self.files[:5]) + (f" and {len(self.files) - 5} more" if len(self.files) > 5 else "")
        columns = (
            f"texts in `{self.inputs.text}`" if self.inputs.text else f"numbers in `{', '.join(self.inputs.features)}`"
        )
        copies = f" {self.duplicates:,} rows are copies of others." if self.duplicates else ""
        return f"{self.instances:,} rows of {files}: {columns}, labels in `{self.label}`.{copies}"

    @property
    def results(self) -> dict[str, float]:
        """Held-out errors by name."""
        if self.errors is None:
            return {}
        bags = f"mean absolute error, {self.errors.bags} bags of {self.errors.bag_size}"
        return {f"{self.method}, {bags}": self.errors.error, f"CC, {bags}": self.errors.counted}

    def facts(self, command: str) -> dict[str, Any]:
        """Facts that are saved with the model."""
        return {
            "files": list(self.files),
            "text": self.inputs.text,
            "features": list(self.inputs.features),
            "label": self.label,
            "rows": self.instances,
            "skipped": self.skipped,
            "duplicates": self.duplicates,
            "conflicts": self.conflicts,
            "names": self.names,
            "smallest_shares": {
                str(size): {str(name): round(shares[at], 6) for name, shares in self.limits.items()}
                for at, size in enumerate(LIMIT_SIZES)
                if self.limits
            },
            "counts": {str(name): number for name, number in self.counts.items()},
            "held_out": asdict(self.errors) if self.errors else {},
            "drift": asdict(self.drift) if self.drift else {},
            "command": command,
            "method": self.method,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
        }


def new_quantifier(
    method: str,
    settings: Mapping[str, Any] | None = None,
    classifier: str | None = None,
    *,
    seed: int = 0,
    device: str | None = None,
) -> Quantifier:
    """A quantifier that is not yet fitted. Raises `InvalidPart` if a name or setting is unknown; its `word` says which.

    Parameters
    ----------
    method, classifier : names of classes, in any case; a class of another package is "package.module:Class".
    settings : parameters of the method.
    seed, device : of all its parts that have one.
    """
    part: dict[str, Any] = {"kind": _exact_name(method)}
    if classifier is not None:
        part["classifier"] = {"kind": _exact_name(classifier)}
    made = make(part | dict(settings or {}))
    if not isinstance(made, Quantifier):
        raise InvalidPart(f"{brief(method)} does not estimate shares. `quanet methods` lists the methods.", method)
    made = prepare(made, seed=seed, device=device, shared=False)
    chosen = getattr(made, "classifier", None)
    if classifier is not None and (isinstance(chosen, Quantifier) or not hasattr(chosen, "predict")):
        raise InvalidPart(f"{brief(classifier)} is not a classifier.", classifier)
    return made


def _exact_name(name: str) -> str:
    """A name in the case of the code: EMQ for emq."""
    if ":" in name:  # a class of another package
        return name
    first, dot, rest = name.partition(".")
    lowered = {one.lower(): one for one in quanet.__all__}
    if first.lower() not in lowered:
        near = get_close_matches(first.lower(), lowered, n=1)
        hint = f" Did you mean {lowered[near[0]]}?" if near else ""
        raise InvalidPart(f"Unknown name {brief(first)}.{hint} `quanet methods` lists all.", name)
    return lowered[first.lower()] + dot + rest


def train(
    quantifier: Quantifier,
    data: Labelled,
    *,
    files: tuple[str, ...],
    inputs: InputColumns,
    label: str,
    names: Mapping[str, str] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Training:
    """Fit a quantifier in place and measure the errors to expect.

    Parameters
    ----------
    quantifier : not yet fitted.
    data : labelled instances.
    files, inputs, label : names of files and columns, for the record.
    names : names of classes by label (`parse_names`).
    seed : seed of the bags that errors are measured on.
    progress : called with what is done next.
    """
    started = time.perf_counter()
    # Only if they are given: other packages' quantifiers may not accept groups.
    options: dict[str, Any] = {} if data.groups is None else {"groups": data.groups}
    quantifier.fit(data.X, data.y, **options)
    seconds = time.perf_counter() - started
    if progress:
        progress("Measuring errors on held-out instances")
    errors = held_out_errors(quantifier, seed=seed)
    if inputs.text:
        quantifier.training_hashes_ = hash_training_texts(data.X)
    return Training(
        method=type(quantifier).__name__,
        files=tuple(Path(file).name for file in files),
        inputs=inputs,
        label=label,
        rows=len(data.y) + sum(data.skipped.values()),
        counts=data.counts,
        skipped=data.skipped,
        duplicates=data.duplicates,
        conflicts=data.conflicts,
        errors=errors,
        holds_out=quantifier.held_out_ is not None,
        advice=explain_poor(ClassNames.of(quantifier.classes_, names or {}).rename(quantifier), errors),
        seconds=seconds,
        seed=seed,
        drift=learned_drift(quantifier),
        names=dict(names or {}),
        order=RowOrder().add(data.y.tolist()).sentence,
        limits=_limits(quantifier),
    )


def _limits(quantifier: Quantifier) -> dict[Any, tuple[float, ...]]:
    limits = quantifier.detection_limits(LIMIT_SIZES)
    if np.isnan(limits).any():
        return {}
    return dict(zip(quantifier.classes_.tolist(), map(tuple, limits.T.tolist()), strict=True))


def save_training(quantifier: Quantifier, training: Training, folder: Path, *, command: str = "") -> int:
    """Save a fitted quantifier with the facts of its training; return the size of the folder in bytes.

    A model that is already there is replaced.
    """
    save(
        quantifier,
        folder,
        data=training.sentence,
        results=training.results,
        facts=training.facts(command),
        overwrite=True,
    )
    return sum(file.stat().st_size for file in folder.iterdir())


@dataclass(frozen=True, slots=True)
class LearnedDrift:
    """How the drift scale was learned.

    Attributes
    ----------
    kind : "clusters" or "groups" of the training data that were left out; "" if other datasets are used instead.
    parts : number of parts that were left out.
    bias : root mean square of the bias on these parts at a share of 50 %; None without parts.
    sentence : all this in a sentence, or what is unknown.
    """

    kind: str
    parts: int
    bias: float | None
    sentence: str


def learned_drift(quantifier: Quantifier) -> LearnedDrift | None:
    """How the drift scale of a fitted quantifier was learned; None if it has none."""
    scale = quantifier.drift_
    if scale is None:
        return None
    bias = root_mean_square(scale.variances) if len(scale.variances) else None
    return LearnedDrift(scale.kind, len(scale.distances), bias, scale.sentence)

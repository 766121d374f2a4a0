"""Names of classes: how answers show labels such as 0 and 1, and how files may write them."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.arrays import LabelArray
from quanet.data.columns import label_name, nearest_first
from quanet.errors import InvalidSetting, brief


def parse_names(texts: Sequence[str]) -> dict[str, str]:
    """Names by label, from texts such as "0=negative"; raises `InvalidSetting` for anything else.

    Examples
    --------
    >>> parse_names(["0=negative", "1 = positive"])
    {'0': 'negative', '1': 'positive'}
    """
    names: dict[str, str] = {}
    for text in texts:
        label, equals, name = (part.strip() for part in text.partition("="))
        if not (label and equals and name):
            raise InvalidSetting(f"{brief(text)} is not of the form LABEL=NAME, such as 0=negative.")
        label = label_name(label)
        if label in names:
            raise InvalidSetting(f"Label {label!r} has two names, {names[label]!r} and {name!r}. Give one.")
        if name in names.values():
            raise InvalidSetting(f"Two labels have the name {name!r}. Give every class its own name.")
        names[label] = name
    return names


def as_labels_written(written: Iterable[Any], names: Mapping[str, str]) -> list[Any]:
    """Labels of a file, with the names of `parse_names` replaced by the labels that they stand for.

    Examples
    --------
    >>> as_labels_written(["0", "negative", None, "1"], {"0": "negative"})
    ['0', '0', None, '1']
    """
    labels = {label_name(name): label for label, name in names.items()}
    return [labels.get(one, one) for one in written]


@dataclass(frozen=True, slots=True, eq=False)
class ClassNames:
    """Classes and their names.

    Attributes
    ----------
    classes : (k,) labels, as a model or a file has them.
    names : (k,) names that answers show; equal to `classes` if no class was renamed.
    others : other names that files may use, such as those saved with a model: name -> name shown.
    """

    classes: LabelArray
    names: LabelArray
    others: Mapping[str, str]

    @classmethod
    def of(cls, classes: LabelArray, given: Mapping[str, str], saved: Mapping[str, str] | None = None) -> "ClassNames":
        """Names of classes from those given now and those saved with the model, as `parse_names` returns them.

        Examples
        --------
        >>> named = ClassNames.of(np.array([0, 1]), {"positive": "good"}, {"0": "negative", "1": "positive"})
        >>> named.names.tolist(), named.shown(["0", "positive", "good"])
        (['negative', 'good'], ['negative', 'good', 'good'])
        """
        labels = [label_name(label) for label in classes.tolist()]
        known = {label_name(label): name for label, name in (saved or {}).items()}
        shown = [known.get(label, label) for label in labels]
        new = list(shown)
        for label, name in given.items():
            place = (labels if label in labels else shown).index(label) if label in {*labels, *shown} else None
            if place is None:
                choices = ", ".join(map(repr, nearest_first(label, dict.fromkeys([*shown, *labels]))))
                raise InvalidSetting(f"Unknown class {label!r}. The classes are {choices}.")
            new[place] = name
        for place, name in enumerate(new):
            if name in new[:place] or name in labels[:place] + labels[place + 1 :]:
                raise InvalidSetting(f"{name!r} would name two classes. Give every class its own name.")
        if new == labels:
            return cls(classes, classes, {})
        others = {name: final for name, final in zip(shown, new, strict=True) if name not in labels}
        return cls(classes, np.array(new), others)

    def rename(self, fitted: Any) -> Any:
        """A fitted quantifier that shows the names; the same one if no class was renamed."""
        if self.names is self.classes:
            return fitted
        renamed = copy.copy(fitted)
        renamed.classes_ = self.names
        return renamed

    def with_labels(self, renamed: Any) -> Any:
        """A fitted quantifier that `rename` returned, with its labels again."""
        return ClassNames(self.names, self.classes, {}).rename(renamed)

    def shown(self, written: Iterable[Any]) -> list[Any]:
        """Labels of a file as answers show them; unknown ones, and None, are unchanged."""
        if self.names is self.classes:
            return list(written)
        labels = [label_name(label) for label in self.classes.tolist()]
        others = {label_name(name): shown for name, shown in self.others.items()}
        names = others | dict(zip(labels, self.names.tolist(), strict=True))
        return [names.get(one, one) for one in written]

    def find(self, wanted: str | None) -> str | None:
        """The name shown of a class, given its name or its label; raises `InvalidSetting` if it is unknown."""
        if wanted is None:
            return None
        (name,) = self.shown([label_name(wanted)])
        known = [label_name(one) for one in self.names.tolist()]
        if name not in known:
            classes = ", ".join(map(repr, nearest_first(wanted, known)))
            raise InvalidSetting(f"Unknown class {wanted!r}. Choose from {classes}.")
        return str(name)

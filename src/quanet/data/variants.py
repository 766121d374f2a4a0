"""Labels that are probably one class written in several ways: other case, spaces, hyphens or Unicode forms."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import LabelArray

SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015]+")  # white space, underscores, hyphens and dashes
SHOWN = 3  # groups of variants in a message


def label_key(label: str) -> str:
    """What all variants of a label have in common.

    Examples
    --------
    >>> label_key("Negative "), label_key("NOT_SURE"), label_key("not-sure"), label_key("-1")
    ('negative', 'not sure', 'not sure', '-1')
    """
    folded = unicodedata.normalize("NFKC", label).casefold()
    if any(character.isalpha() for character in folded):  # a minus before a number is no hyphen
        folded = SEPARATORS.sub(" ", folded)
    return unicodedata.normalize("NFKC", folded.strip())


def label_variants(labels: Iterable[Any]) -> list[tuple[str, ...]]:
    """Groups of different labels that are probably one, the commonest spelling first in each.

    Examples
    --------
    >>> label_variants(["negative", "NEGATIVE", "Negative ", "negative", "positive"])
    [('negative', 'NEGATIVE', 'Negative ')]
    """
    counts = Counter(label for label in labels if isinstance(label, str))
    groups: dict[str, list[str]] = {}
    for label in sorted(counts, key=lambda one: -counts[one]):  # stable: the first met of equally common ones
        groups.setdefault(label_key(label), []).append(label)
    return [tuple(group) for _, group in sorted(groups.items()) if len(group) > 1]


def normalize_labels(labels: ArrayLike, *, known: Iterable[Any] = ()) -> LabelArray:
    """Labels with one spelling for all variants: that of the `known` classes, or else the commonest one.

    Examples
    --------
    >>> normalize_labels(["negative", "NEGATIVE", "Negative ", "negative", "positive"])
    array(['negative', 'negative', 'negative', 'negative', 'positive'], dtype='<U8')
    """
    values = np.asarray(labels)
    spelling = spellings(values.tolist(), known)
    return np.array([spelling.get(label, label) if isinstance(label, str) else label for label in values.tolist()])


def spellings(labels: Sequence[Any], known: Iterable[Any] = ()) -> dict[str, str]:
    """How every label is spelt once variants are one: label -> label."""
    given = {label_key(label): label for label in known if isinstance(label, str)}
    counts = Counter(label for label in labels if isinstance(label, str))
    for label in sorted(counts, key=lambda one: -counts[one]):
        given.setdefault(label_key(label), label)
    return {label: given[label_key(label)] for label in counts}


def describe_variants(labels: Iterable[Any]) -> str:
    """One sentence about labels that are probably one class, or nothing.

    Examples
    --------
    >>> describe_variants(["yes", "Yes", "no"])
    "These labels look like one class: 'yes', 'Yes'."
    """
    found = label_variants(labels)
    if not found:
        return ""
    groups = "; ".join(", ".join(map(repr, group)) for group in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"These labels look like one class{' each' if len(found) > 1 else ''}: {groups}{more}."

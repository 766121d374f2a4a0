"""Spellings of labels: which ones are probably one class, and one spelling for all of them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from quanet.arrays import LabelArray
from quanet.simplex import label_array

SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015]+")  # white space, underscores, hyphens and dashes
MAX_SHOWN = 3  # groups of spellings in a message


def label_key(label: str) -> str:
    """What all spellings of a label have in common: case, Unicode form and separators are ignored.

    Examples
    --------
    >>> label_key("Negative "), label_key("NOT_SURE"), label_key("not-sure"), label_key("-1")
    ('negative', 'not sure', 'not sure', '-1')
    """
    folded = unicodedata.normalize("NFKC", label).casefold()
    if any(character.isalpha() for character in folded):  # in a number, "-" is a minus sign
        folded = SEPARATORS.sub(" ", folded)
    return unicodedata.normalize("NFKC", folded.strip())


def label_variants(labels: Iterable[Any]) -> list[tuple[str, ...]]:
    """Groups of labels that are probably one class, the most frequent spelling first in each.

    Examples
    --------
    >>> label_variants(["negative", "NEGATIVE", "Negative ", "negative", "positive"])
    [('negative', 'NEGATIVE', 'Negative ')]
    """
    groups: dict[str, list[str]] = {}
    for label in _by_frequency(labels):
        groups.setdefault(label_key(label), []).append(label)
    return [tuple(group) for _, group in sorted(groups.items()) if len(group) > 1]


def normalize_labels(labels: ArrayLike, *, known: Iterable[Any] = ()) -> LabelArray:
    """Labels with one spelling per class: the spelling in `known`, or else the most frequent one.

    Use it before `fit` if labels were typed by hand. Case, white space, hyphens, underscores and the Unicode form are
    ignored; labels that are not strings stay as they are.

    Parameters
    ----------
    labels : (n,) labels.
    known : classes whose spelling is right, such as `classes_` of a model.

    Returns
    -------
    ndarray
        (n,) labels.

    Examples
    --------
    >>> normalize_labels(["negative", "NEGATIVE", "Negative ", "negative", "positive"])
    array(['negative', 'negative', 'negative', 'negative', 'positive'], dtype='<U8')
    >>> normalize_labels(["not sure", "YES"], known=["Not-Sure", "yes"])
    array(['Not-Sure', 'yes'], dtype='<U8')
    """
    values = label_array(labels).tolist()
    spelling = spellings(values, known)
    return label_array([spelling.get(label, label) if isinstance(label, str) else label for label in values])


def spellings(labels: Sequence[Any], known: Iterable[Any] = ()) -> dict[str, str]:
    """The normalized spelling of every label: label -> label, see `normalize_labels`."""
    chosen = {label_key(label): label for label in known if isinstance(label, str)}
    found = _by_frequency(labels)
    for label in found:
        chosen.setdefault(label_key(label), label)
    return {label: chosen[label_key(label)] for label in found}


def describe_variants(labels: Iterable[Any]) -> str:
    """One sentence about labels that are probably one class, or an empty string.

    Examples
    --------
    >>> describe_variants(["yes", "Yes", "no"])
    "These labels look like one class: 'yes', 'Yes'."
    """
    found = label_variants(labels)
    if not found:
        return ""
    groups = "; ".join(", ".join(map(repr, group)) for group in found[:MAX_SHOWN])
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return f"These labels look like one class{' each' if len(found) > 1 else ''}: {groups}{more}."


def _by_frequency(labels: Iterable[Any]) -> list[str]:
    """The distinct labels that are strings, the most frequent first; ties in order of appearance."""
    counts = Counter(label for label in labels if isinstance(label, str))
    return sorted(counts, key=lambda label: -counts[label])

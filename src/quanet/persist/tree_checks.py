"""Decision trees out of a file: scikit-learn follows their nodes without looking, so they are looked at once, here."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.errors import InvalidModel


def check_trees(part: Any) -> None:
    """Refuse an object with decision trees whose nodes point outside of the tree or of the instances' features."""
    for value in _contents(part):
        attributes = getattr(value, "__dict__", {})
        width = attributes.get("n_features_in_", 0)
        if "tree_" in attributes:
            _check_tree(value.tree_, width)
        elif "_predictors" in attributes:  # histogram gradient boosting, one list of trees an iteration
            for predictor in (tree for trees in value._predictors for tree in trees):  # noqa: SLF001
                _check_predictor(predictor, width)
        elif isinstance(estimators := attributes.get("estimators_"), np.ndarray):  # gradient boosting
            for member in estimators.ravel():
                _check_tree(member.tree_, width)


def _check_tree(tree: Any, width: int) -> None:
    nodes = tree.__getstate__()["nodes"]
    inner = nodes["left_child"] != -1
    _check_nodes(nodes["left_child"], nodes["right_child"], nodes["feature"], inner, width)


def _check_predictor(predictor: Any, width: int) -> None:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], inner, width)
    by_category = inner & (nodes["is_categorical"] == 1)
    if (nodes["bitset_idx"][by_category] >= len(predictor.raw_left_cat_bitsets)).any():
        raise InvalidModel("a decision tree refers to categories that do not exist.")


def _check_nodes(
    left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], inner: NDArray[np.bool_], width: int
) -> None:
    at = np.arange(len(left))[inner]
    for child in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        # A child stands after its parent, so every path ends.
        if not ((child > at) & (child < len(left))).all():
            raise InvalidModel("a decision tree has branches without a node.")
    if not ((feature[inner] >= 0) & (feature[inner] < width)).all():
        raise InvalidModel("a decision tree refers to features that do not exist.")


def _contents(part: Any) -> Iterator[Any]:
    """An object and all that its attributes, lists, tuples, dictionaries and object arrays hold."""
    seen: set[int] = set()
    waiting = [part]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, np.ndarray):
            waiting.extend(value.ravel() if value.dtype.kind == "O" else ())
        else:
            waiting.extend(getattr(value, "__dict__", {}).values())

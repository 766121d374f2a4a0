"""The smallest possible errors with the classifiers of an experiment: the Cramér-Rao bounds stored with the cells."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import LabelArray
from quanet.evaluation.limits import Limit, mean_limit, pool_limit
from quanet.lab.store import Metadata, read_all


def bound_of(posteriors: ArrayLike, labels: ArrayLike, classes: LabelArray, protocol: Any) -> Metadata | None:
    """The bound for a pool and the bags of a protocol, as plain data; None if bags have different sizes."""
    bag_size = getattr(protocol, "bag_size", None)
    if not isinstance(bag_size, int):
        return None
    limit = pool_limit(posteriors, labels, classes, bag_size=bag_size)
    return {"prevalences": limit.prevalences.round(6).tolist(), "errors": limit.errors.round(6).tolist()}


def bounds_of(folder: str | Path) -> dict[str, Limit]:
    """The bound of each dataset, averaged over runs, for the first classifier of the plan that has one."""
    found: dict[tuple[str, str], dict[int, Limit]] = defaultdict(dict)
    readers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cell, (_, about) in read_all(folder).items():
        if not (limit := about.get("limit")):
            continue
        place = cell.dataset, about["method"]["classifier"]
        found[place][cell.run] = Limit(np.array(limit["prevalences"]), np.array(limit["errors"]))
        if cell.method not in readers[place]:
            readers[place].append(cell.method)
    bounds: dict[str, Limit] = {}
    for place, limits in found.items():
        if place[0] not in bounds:
            bounds[place[0]] = replace(mean_limit(list(limits.values())), methods=tuple(readers[place]))
    return bounds

"""What the classifiers of an experiment allow: the Cramér-Rao bound of their posteriors, kept with every cell."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import LabelArray
from quanet.evaluation.limits import Limit, mean_limit, pool_limit
from quanet.experiments.manifest import About
from quanet.experiments.store import read_all


def bound_of(posteriors: ArrayLike, labels: ArrayLike, classes: LabelArray, protocol: Any) -> About | None:
    """The bound on a pool for a protocol's bags, as plain data; None where bags have no one size."""
    bag_size = getattr(protocol, "bag_size", None)
    if not isinstance(bag_size, int):
        return None
    limit = pool_limit(posteriors, labels, classes, bag_size=bag_size)
    return {"prevalences": limit.prevalences.round(6).tolist(), "errors": limit.errors.round(6).tolist()}


def bounds_of(folder: str | Path) -> dict[str, Limit]:
    """Every dataset's bound, a mean over runs, for the first of the plan's classifiers that has one."""
    found: dict[tuple[str, str], dict[int, Limit]] = defaultdict(dict)
    readers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cell, (_, about) in read_all(folder).items():
        if not (kept := about.get("limit")):
            continue
        place = cell.dataset, about["method"]["classifier"]
        found[place][cell.run] = Limit(np.array(kept["prevalences"]), np.array(kept["errors"]))
        if cell.method not in readers[place]:
            readers[place].append(cell.method)
    bounds: dict[str, Limit] = {}
    for place, limits in found.items():
        if place[0] not in bounds:
            bounds[place[0]] = replace(mean_limit(list(limits.values())), methods=tuple(readers[place]))
    return bounds

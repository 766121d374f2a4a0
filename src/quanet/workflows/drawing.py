"""Draw bags of labelled instances for `evaluate` and `compare`: protocol, bag size, and notes about both."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import IntArray, LabelArray
from quanet.bags import Bags
from quanet.data.columns import as_number
from quanet.data.periods import Key, parse_key
from quanet.errors import InvalidBags, InvalidSetting, brief
from quanet.protocols import APP, NPP, UPP, ByGroup, Dirichlet, Protocol
from quanet.simplex import count, encode

NAMES = ("app", "upp", "npp", "dirichlet", "by")
BAG_SIZE = 500  # the paper's
BAGS = 2100  # the paper's 21 prevalences, 100 times each
MIN_ALPHA, MAX_ALPHA = 1e-3, 1e6  # of dirichlet; beyond these, bags have one class only or are all alike
MIN_BAG_SIZE = 10


@dataclass(frozen=True, slots=True)
class Drawing:
    """How to draw bags.

    Attributes
    ----------
    protocol : "app", "upp", "npp", "dirichlet" or "by".
    parameter : concentration of "dirichlet", or column (and period) of "by".
    bag_size, repeats : None for the paper's values, or a smaller bag size for a small file.
    """

    protocol: str = "app"
    parameter: str = ""
    bag_size: int | None = None
    repeats: int | None = None

    @classmethod
    def parse(cls, text: str, *, bag_size: int | None = None, repeats: int | None = None) -> "Drawing":
        """Parse a protocol such as ``app``, ``dirichlet:0.5`` or ``by:date:month``.

        Examples
        --------
        >>> Drawing.parse("by:date:month").parameter
        'date:month'
        """
        name, _, parameter = text.strip().partition(":")
        name = name.lower()
        if name not in NAMES:
            near = get_close_matches(name, NAMES, 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise InvalidSetting(
                f"Unknown protocol {brief(name)}.{meant} Choose from app, upp, npp, dirichlet[:ALPHA], "
                "by:COLUMN[:PERIOD]."
            )
        if name == "by" and not parameter:
            raise InvalidSetting("by needs a column, for example by:product or by:date:month.")
        if parameter and name not in ("by", "dirichlet"):
            raise InvalidSetting(f"{name} has no parameter; got {parameter!r}. Remove it.")
        if name == "dirichlet" and parameter:
            alpha = as_number(parameter)
            if alpha is None or not MIN_ALPHA <= alpha <= MAX_ALPHA:
                raise InvalidSetting(
                    f"the concentration of dirichlet must be a number from {MIN_ALPHA:g} to {MAX_ALPHA:g}; "
                    f"got {brief(parameter)}."
                )
        drawing = cls(name, parameter, bag_size, repeats)
        _ = drawing.key  # raises for an unknown period
        return drawing

    @property
    def key(self) -> Key | None:
        """Column and period of the groups, for "by"."""
        return parse_key(self.parameter) if self.protocol == "by" else None


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBags:
    """Bags, how they were drawn in one line, and notes for the reader."""

    bags: Bags
    protocol: str
    notes: tuple[str, ...] = ()

    @property
    def bag_size(self) -> int | None:
        """The common size of all bags; None if sizes differ."""
        sizes = self.bags.sizes
        return int(sizes[0]) if (sizes == sizes[0]).all() else None


def draw_bags(
    drawing: Drawing,
    labels: ArrayLike,
    classes: LabelArray,
    *,
    groups: Sequence[str | None] | None = None,
    rng: int,
) -> LabelledBags:
    """Draw bags of at least two instances from a labelled pool.

    Parameters
    ----------
    drawing : protocol and sizes.
    labels : (n,) labels of the pool.
    classes : (k,) sorted.
    groups : (n,) group of each instance, for "by"; None for an instance without a group.
    rng : seed.

    Examples
    --------
    >>> drawn = draw_bags(Drawing(), ["a", "b"] * 100, np.array(["a", "b"]), rng=0)
    >>> drawn.protocol
    'APP: 21 prevalences x 100 bags of 100'
    >>> drawn.notes
    ('Bags have 100 instances instead of 500, because the file has 200 labelled instances.',)
    """
    codes = encode(labels, classes)
    if drawing.protocol == "by":
        assert groups is not None
        return _by_group(drawing, groups, labels, classes)
    available = count(codes, len(classes))
    size, notes = _bag_size(drawing, len(codes))
    protocol, description = _protocol(drawing, size, len(classes))
    bags = protocol.draw_quietly(labels, rng=rng, classes=classes)
    return LabelledBags(bags, description, (*notes, *_repeating(bags, available, classes)))


def _bag_size(drawing: Drawing, n: int) -> tuple[int, list[str]]:
    """At most half of the pool: bags of the whole pool would all be the same."""
    if drawing.bag_size is not None:
        return drawing.bag_size, []
    if n >= 2 * BAG_SIZE:
        return BAG_SIZE, []
    size = max(MIN_BAG_SIZE, n // 2)
    return size, [f"Bags have {size} instances instead of {BAG_SIZE}, because the file has {n} labelled instances."]


def _protocol(drawing: Drawing, size: int, k: int) -> tuple[Protocol, str]:
    bags = drawing.repeats or BAGS
    if drawing.protocol == "app":
        points = len(APP().grid(k))
        repeats = drawing.repeats or max(1, round(BAGS / points))
        description = f"APP: {points:,} prevalences x {repeats:,} bags of {size:,}"
        return APP(bag_size=size, repeats=repeats), description
    if drawing.protocol == "upp":
        return UPP(bag_size=size, repeats=bags), f"UPP: {bags:,} bags of {size:,}, prevalences uniform"
    if drawing.protocol == "npp":
        return NPP(bag_size=size, repeats=bags), f"NPP: {bags:,} bags of {size:,} drawn at random"
    alpha = float(drawing.parameter or 1)
    description = f"Dirichlet({alpha:g}): {bags:,} bags of {size:,}"
    return Dirichlet(alpha=alpha, bag_size=size, repeats=bags), description


def _repeating(bags: Bags, available: IntArray, classes: LabelArray) -> list[str]:
    size, pool = int(bags.sizes.max()), int(available.sum())
    if size > pool:
        return [f"Bags have {size:,} instances but the file has {pool:,}, so instances occur several times in a bag."]
    most = np.ceil(bags.prevalences.max(axis=0) * bags.sizes.max()).astype(int)
    short = [c for c in range(len(classes)) if available[c] < most[c]]
    if not short:
        return []
    named = ", ".join(f"{classes.tolist()[c]!r} ({available[c]:,})" for c in short[:3])
    more = f" and {len(short) - 3} more" if len(short) > 3 else ""
    return [f"Some bags contain an instance more than once, because the file has few instances of {named}{more}."]


def _by_group(drawing: Drawing, groups: Sequence[str | None], labels: ArrayLike, classes: LabelArray) -> LabelledBags:
    bags = ByGroup(groups=np.array(groups, dtype=object)).draw(labels, rng=0, classes=classes)
    usable = bags.sizes >= 2
    if not usable.any():
        raise InvalidBags(f"every group of {drawing.parameter!r} has only one instance. Choose a coarser group.")
    notes = []
    if not usable.all():
        ends = np.cumsum(bags.sizes)[:-1]
        members = [part for part, wanted in zip(np.split(bags.flat, ends), usable, strict=True) if wanted]
        notes.append(f"Skipped {(~usable).sum()} of {len(usable)} groups: they have only one instance.")
        bags = Bags(members, bags.prevalences[usable], bags.labels[usable])
    low, high = bags.sizes.min(), bags.sizes.max()
    sizes = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return LabelledBags(bags, f"by {drawing.parameter}: {len(bags):,} groups of {sizes}", tuple(notes))

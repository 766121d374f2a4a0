"""Bags of labelled instances as a command asks for them: which protocol, of what size, and what had to give."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from quanet.answers.groups import parse_key
from quanet.answers.shares import Key
from quanet.arrays import IntArray, LabelArray
from quanet.bags import Bags
from quanet.data.columns import as_number
from quanet.errors import InvalidBags, InvalidSetting, brief
from quanet.protocols import APP, NPP, UPP, ByGroup, Dirichlet, Protocol
from quanet.simplex import count, encode

NAMES = ("app", "upp", "npp", "dirichlet", "by")
BAG_SIZE = 500  # the paper's
BAGS = 2100  # the paper's 21 prevalences, 100 times each
LEAST_ALPHA, MOST_ALPHA = 1e-3, 1e6  # of dirichlet; beyond, bags are of one class, or all alike
LEAST = 10  # instances in a bag, however small the file


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is asked: a protocol by its name, its parameter if it has one, and sizes where they are given.

    Attributes
    ----------
    protocol : "app", "upp", "npp", "dirichlet" or "by".
    parameter : the concentration of "dirichlet", the column (and period) of "by".
    bag_size, repeats : None takes the paper's, or less where the file is small.
    """

    protocol: str = "app"
    parameter: str = ""
    bag_size: int | None = None
    repeats: int | None = None

    @classmethod
    def parse(cls, text: str, *, bag_size: int | None = None, repeats: int | None = None) -> "Drawing":
        """The protocol that a text such as ``app``, ``dirichlet:0.5`` or ``by:date:month`` names.

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
                f"no protocol is called {brief(name)}.{meant} There are app, upp, npp, dirichlet[:ALPHA] and "
                "by:COLUMN[:PERIOD]."
            )
        if name == "by" and not parameter:
            raise InvalidSetting("by needs a column, such as by:product, or by:date:month.")
        if parameter and name not in ("by", "dirichlet"):
            raise InvalidSetting(f"{name} takes no parameter; got {parameter!r}.")
        if name == "dirichlet" and parameter:
            alpha = as_number(parameter)
            if alpha is None or not LEAST_ALPHA <= alpha <= MOST_ALPHA:
                raise InvalidSetting(
                    f"the concentration of dirichlet is a number from {LEAST_ALPHA:g} to {MOST_ALPHA:g}; "
                    f"got {brief(parameter)}."
                )
        drawing = cls(name, parameter, bag_size, repeats)
        _ = drawing.key  # a period that there is not is told now
        return drawing

    @property
    def key(self) -> Key | None:
        """What instances are grouped by, for "by"."""
        return parse_key(self.parameter) if self.protocol == "by" else None


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Bags, how they were drawn in one line, and what a reader should know of it."""

    bags: Bags
    protocol: str
    notes: tuple[str, ...] = ()

    @property
    def bag_size(self) -> int | None:
        """That of all bags, if they have one."""
        sizes = self.bags.sizes
        return int(sizes[0]) if (sizes == sizes[0]).all() else None


def draw_bags(
    drawing: Drawing,
    labels: ArrayLike,
    classes: LabelArray,
    *,
    groups: Sequence[str | None] | None = None,
    rng: int,
) -> Drawn:
    """Draw bags of two instances or more from a labelled pool.

    Parameters
    ----------
    drawing : how.
    labels : (n,) of the pool.
    classes : (k,) sorted.
    groups : (n,) the group of every instance, for "by"; None belongs to no bag.
    rng : seed.

    Examples
    --------
    >>> drawn = draw_bags(Drawing(), ["a", "b"] * 100, np.array(["a", "b"]), rng=0)
    >>> drawn.protocol
    'APP: 21 prevalences x 100 bags of 100'
    >>> drawn.notes
    ('There are 200 labelled instances, so bags have 100 instead of 500.',)
    """
    codes = encode(labels, classes)
    if drawing.protocol == "by":
        assert groups is not None
        return _by_group(drawing, groups, labels, classes)
    available = count(codes, len(classes))
    size, notes = _bag_size(drawing, len(codes))
    protocol, told = _protocol(drawing, size, len(classes))
    bags = protocol._drawn(labels, rng=rng, classes=classes)  # noqa: SLF001 - the notes say it
    return Drawn(bags, told, (*notes, *_repeating(bags, available, classes)))


def _bag_size(drawing: Drawing, n: int) -> tuple[int, list[str]]:
    """Half of the pool at most: bags that hold all of it would be the same bag over and over."""
    if drawing.bag_size is not None:
        return drawing.bag_size, []
    if n >= 2 * BAG_SIZE:
        return BAG_SIZE, []
    size = max(LEAST, n // 2)
    return size, [f"There are {n} labelled instances, so bags have {size} instead of {BAG_SIZE}."]


def _protocol(drawing: Drawing, size: int, k: int) -> tuple[Protocol, str]:
    bags = drawing.repeats or BAGS
    if drawing.protocol == "app":
        points = len(APP().grid(k))
        repeats = drawing.repeats or max(1, round(BAGS / points))
        told = f"APP: {points:,} prevalences x {repeats:,} bags of {size:,}"
        return APP(bag_size=size, repeats=repeats), told
    if drawing.protocol == "upp":
        return UPP(bag_size=size, repeats=bags), f"UPP: {bags:,} bags of {size:,}, prevalences uniform"
    if drawing.protocol == "npp":
        return NPP(bag_size=size, repeats=bags), f"NPP: {bags:,} bags of {size:,} drawn at random"
    alpha = float(drawing.parameter or 1)
    told = f"Dirichlet({alpha:g}): {bags:,} bags of {size:,}"
    return Dirichlet(alpha=alpha, bag_size=size, repeats=bags), told


def _repeating(bags: Bags, available: IntArray, classes: LabelArray) -> list[str]:
    size, pool = int(bags.sizes.max()), int(available.sum())
    if size > pool:
        return [f"The bags have {size:,} instances, but the file has {pool:,}: instances occur several times in a bag."]
    most = np.ceil(bags.prevalences.max(axis=0) * bags.sizes.max()).astype(int)
    short = [c for c in range(len(classes)) if available[c] < most[c]]
    if not short:
        return []
    told = ", ".join(f"{classes.tolist()[c]!r} ({available[c]:,})" for c in short[:3])
    more = f" and {len(short) - 3} more" if len(short) > 3 else ""
    return [f"Some bags hold an instance more than once, as there are few of {told}{more}."]


def _by_group(drawing: Drawing, groups: Sequence[str | None], labels: ArrayLike, classes: LabelArray) -> Drawn:
    bags = ByGroup(groups=np.array(groups, dtype=object)).draw(labels, rng=0, classes=classes)
    kept = bags.sizes >= 2
    if not kept.any():
        raise InvalidBags(f"every group of {drawing.parameter!r} has one instance. Choose a coarser column or period.")
    notes = []
    if not kept.all():
        ends = np.cumsum(bags.sizes)[:-1]
        members = [part for part, wanted in zip(np.split(bags.flat, ends), kept, strict=True) if wanted]
        notes.append(f"Left out, as they have one instance only: {(~kept).sum()} of {len(kept)} groups.")
        bags = Bags(members, bags.prevalences[kept], bags.labels[kept])
    low, high = bags.sizes.min(), bags.sizes.max()
    told = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return Drawn(bags, f"by {drawing.parameter}: {len(bags):,} groups of {told}", tuple(notes))

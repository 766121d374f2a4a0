"""Correct one judge or several, and check them: the whole answer of `quanet correct`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from quanet.data.periods import Key
from quanet.errors import InvalidData
from quanet.workflows.correct import Correction, correct_groups
from quanet.workflows.judge_checks import JudgePanel, check_anchor, combine_judges
from quanet.workflows.judgements import Calibration


class CorrectionOptions(TypedDict, total=False):
    """Options of `correct_groups`, which describes them."""

    keys: Sequence[Key]
    groups: Sequence[tuple[str, ...]]
    owner: NDArray[np.integer[Any]] | None
    at_random: bool
    same_errors: bool
    clusters: Sequence[Any] | None
    joint: bool
    level: float
    source: str


def audit_judges(
    judges: Mapping[str, Sequence[Any]],
    human: Sequence[Any],
    *,
    calibration: Calibration | None = None,
    anchor: tuple[Any, ...] | None = None,
    scores: bool = False,
    **options: Unpack[CorrectionOptions],
) -> Correction:
    """Corrected rates by one judge, or by several judges together and each alone; checked on an anchor set.

    Parameters
    ----------
    judges : labels (n,) or scores of each judge, by name.
    human : (n,) human labels, None if missing.
    calibration : human labels (m,) and labels of all judges (b, m) of other rows; with clusters, also these (m,).
    anchor : name of the anchor set, its human labels (a,), the labels of all judges (b, a) and, if known, its clusters
        (a,). Of several judges, the one whose errors differ most clearly is reported.
    scores : True if the judge gives scores; one judge only.
    options : see `correct_groups`.
    """
    columns = list(judges.values())
    pairs: list[Calibration | None] = [None] * len(columns)
    if calibration is not None:
        pairs = [(calibration[0], one, *calibration[2:]) for one in calibration[1]]
    if len(judges) == 1:
        found = correct_groups(
            columns[0], human, calibration=pairs[0], kind="scores" if scores else "labels", **options
        )
    else:
        found = _together(list(judges), columns, human, calibration, pairs, options)
    if anchor is None:
        return found
    name, truth, said, *more = anchor
    level, clusters = options.get("level", 0.95), options.get("clusters") if more else None
    checks = [
        check_anchor(
            one,
            human,
            (truth, now, *more),
            calibration=pair,
            clusters=clusters,
            scores=scores,
            level=level,
            source=name,
        )
        for one, now, pair in zip(columns, said, pairs, strict=True)
    ]
    place = min(int(np.nanargmin([*(one.test.p_value for one in checks), 2.0])), len(checks) - 1)
    worst = checks[place]
    if len(judges) > 1:  # as many tests
        test = replace(worst.test, p_value=min(1.0, len(judges) * worst.test.p_value))
        worst = replace(worst, judge=list(judges)[place], test=test)
    return replace(found, anchor=worst)


def _together(
    names: list[str],
    columns: list[Sequence[Any]],
    human: Sequence[Any],
    calibration: Calibration | None,
    pairs: Sequence[Calibration | None],
    options: CorrectionOptions,
) -> Correction:
    alone = []
    for name, one, pair in zip(names, columns, pairs, strict=True):
        try:
            alone.append(correct_groups(one, human, calibration=pair, **options))
        except InvalidData as error:
            raise InvalidData(f"judge {name!r}: {error}") from None
    judged, combined, kappa = combine_judges(columns, human, calibration=calibration)
    found = correct_groups(judged, human, calibration=combined, kind="patterns", **options)
    return replace(found, panel=JudgePanel(tuple(names), np.stack([one.total for one in alone]), kappa))

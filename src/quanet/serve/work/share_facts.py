"""Shares as small facts for pages: totals, and the first groups with their states and example texts."""

from typing import Any

import numpy as np

from quanet.arrays import FloatArray
from quanet.evaluation.contents import SomeTexts
from quanet.serve.work.read_options import ReadOptions
from quanet.workflows.predict import Shares

MOST_GROUPS = 200
MOST_EXAMPLES = 60  # texts in all groups together
LONGEST = 240  # characters of an example


def share_facts(shares: Shares, texts: SomeTexts, options: ReadOptions) -> dict[str, Any]:
    """What pages show of estimated shares besides charts and tables."""
    facts = {
        "classes": [str(name) for name in shares.classes.tolist()],
        "keys": list(options.by),
        "dates": bool(shares.keys and shares.keys[0].period),
        "level": shares.total.level,
        "n": int(shares.sizes.sum()),
        "total": total_facts(shares),
    }
    if not shares.keys:
        return facts | {"groups": [], "examples": _examples(texts, None, 3)}
    states, labels = shares.states, shares.labels.tolist()
    each = max(1, min(3, MOST_EXAMPLES // len(shares.groups)))
    shown = _groups_with_examples(states)
    groups = [
        {
            "group": list(group),
            "n": int(shares.sizes[g]),
            **_ends(shares.interval.estimate[g], shares.interval.lower[g], shares.interval.upper[g], shares.counted[g]),
            "state": states[g] or "unknown",
            "small": bool(shares.small[g]),
            "labels": labels[g],
            "examples": _examples(texts, g, each) if g in shown else [],
        }
        for g, group in enumerate(shares.groups[:MOST_GROUPS])
    ]
    return facts | {"groups": groups, "all_groups": len(shares.groups)}


def total_facts(shares: Shares) -> dict[str, Any]:
    """The shares of all instances, for lists of batches."""
    total, drift = shares.total, shares.total.drift
    return {
        **_ends(total.estimate, total.lower, total.upper, shares.total_counted),
        "state": "unknown" if drift is None else str(drift.state),
        "labels": 0 if drift is None else int(drift.labels),
    }


def _ends(estimate: FloatArray, lower: FloatArray, upper: FloatArray, counted: FloatArray) -> dict[str, Any]:
    parts = {"estimate": estimate, "lower": lower, "upper": upper, "counted": counted}
    return {name: [_rounded(value) for value in values.tolist()] for name, values in parts.items()}


def _rounded(value: float) -> float | None:
    return round(value, 6) if np.isfinite(value) else None


def _groups_with_examples(states: list[str]) -> set[int]:
    """Groups whose texts are shown: of many, those that are not trusted first."""
    order = sorted(range(len(states)), key=lambda g: states[g] == "trusted")
    return set(order[:MOST_EXAMPLES])


def _examples(texts: SomeTexts, group: int | None, most: int) -> list[str]:
    places = np.arange(len(texts.texts)) if group is None else np.flatnonzero(texts.groups == group)
    found = [" ".join(str(texts.texts[at]).split()) for at in places[:most].tolist()]
    return [text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in found]

"""Shares of groups as plain data: JSON, and the numbers behind the charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.accuracy_section import accuracy_data
from quanet.report.phrases import plain_finding

if TYPE_CHECKING:
    from quanet.arrays import FloatArray
    from quanet.uncertainty.regions import Interval
    from quanet.workflows.predict import Shares


def shares_figures(shares: Shares) -> dict[str, Any]:
    """The numbers behind the charts."""
    states, labels = shares.states, shares.labels
    return {
        "classes": shares.classes,
        "keys": [{"column": key.column, "period": key.period} for key in shares.keys],
        "level": shares.total.level,
        "total": {"n": shares.sizes.sum(), **_weights(shares), **_parts(shares.total, shares.total_counted, ())},
        "groups": [
            {
                "group": group,
                "n": shares.sizes[g],
                **_weights(shares, g),
                **_parts(shares.interval, shares.counted, g),
                "small": shares.small[g],
                "state": states[g],
                "labels": labels[g],
            }
            for g, group in enumerate(shares.groups)
        ],
        "skipped": shares.skipped,
        "source": shares.source,
    }


def _weights(shares: Shares, g: int | None = None) -> dict[str, Any]:
    """The weight and the effective size of a group, or of all instances; empty without weights."""
    if shares.totals is None:
        return {}
    interval = shares.total if g is None else shares.interval
    total = shares.totals.sum() if g is None else shares.totals[g]
    return {"weight": float(total), "effective_n": int(np.asarray(interval.effective_sizes)[() if g is None else g])}


def _parts(interval: Interval, counted: FloatArray, g: Any) -> dict[str, FloatArray]:
    return {
        "estimate": interval.estimate[g],
        "lower": interval.lower[g],
        "upper": interval.upper[g],
        "counted": counted[g],
        "drift": np.full(len(interval.classes), np.nan) if interval.drift is None else interval.drift.cost[g],
    }


def _state(interval: Interval, g: Any) -> dict[str, Any]:
    """The state of a group, and the number of rows to label; empty if intervals do not include drift."""
    drift = interval.drift
    if drift is None:
        return {}
    return {"state": str(np.asarray(drift.state)[g]), "labels": int(np.asarray(drift.labels)[g])}


def shares_json(shares: Shares) -> dict[str, Any]:
    """The answer as JSON has it."""
    groups = [
        {
            "group": dict(zip(shares.key_names, values, strict=True)),
            "n": int(shares.sizes[g]),
            **_weights(shares, g),
            "small": bool(shares.small[g]),
            **_state(shares.interval, g),
            "classes": _classes(shares, shares.interval, shares.counted, g),
        }
        for g, values in enumerate(shares.groups)
    ]
    total = {
        "n": int(shares.sizes.sum()),
        **_weights(shares),
        **_state(shares.total, ()),
        "classes": _classes(shares, shares.total, shares.total_counted, ()),
    }
    return {
        "source": shares.source,
        "model": shares.model,
        **({"weight": shares.weight} if shares.weight else {}),
        "level": shares.total.level,
        "interval": shares.total.method,
        "total": total,
        **({"groups": groups} if shares.keys else {}),
        "diagnosis": [
            plain_finding(one) | {"numbers": {name: _rounded(value) for name, value in one.numbers.items()}}
            for one in shares.diagnosis
        ],
        **accuracy_data(shares.accuracy),
        "skipped": shares.skipped,
    }


def _classes(shares: Shares, interval: Interval, counted: FloatArray, g: Any) -> dict[str, dict[str, float | None]]:
    parts = _parts(interval, counted, g).items()
    return {
        str(name): {part: _rounded(values[c]) for part, values in parts}
        for c, name in enumerate(shares.classes.tolist())
    }


def _rounded(value: float) -> float | None:
    """Six digits are far more than is known; JSON has no infinity."""
    return round(float(value), 6) if abs(value) < float("inf") else None

"""Can the estimates of a file be trusted? The answer of `quanet diagnose`."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quanet.labels.refine import MIN_LABELS
from quanet.uncertainty.widening import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.workflows.predict import Shares

DOUBTFUL = frozenset(STATES) - {"trusted"}


@dataclass(frozen=True, slots=True, eq=False)
class Trustworthiness:
    """Whether the estimates of a file can be trusted, and what to do next.

    Attributes
    ----------
    shares : estimates, states of the groups, findings and expected accuracy.
    steps : commands to run next, each with its reason.
    """

    shares: Shares
    steps: tuple[tuple[str, str], ...]

    @property
    def states(self) -> dict[str, int]:
        """Number of groups in each state; empty if intervals do not include drift."""
        found = Counter(state for state in self.shares.states if state)
        return {state: found[state] for state in STATES if found[state]}

    @property
    def severity(self) -> str:
        """The worst severity among the findings; "ok" without any."""
        return self.shares.diagnosis.severity if len(self.shares.diagnosis) else "ok"


def judge_trust(shares: Shares, *, model: str, files: Sequence[str], by: Sequence[str] = ()) -> Trustworthiness:
    """What follows from estimates, states and findings: commands to run next.

    Parameters
    ----------
    shares : the answer of `estimate_shares`.
    model, files, by : as given on the command line, for the commands.
    """
    return Trustworthiness(shares, tuple(_steps(shares, shlex.quote(model), shlex.join(files), by)))


def _steps(shares: Shares, model: str, files: str, by: Sequence[str]) -> list[tuple[str, str]]:
    keys = "".join(f" --by {shlex.quote(key)}" for key in by)
    found = {finding.severity for finding in shares.diagnosis}
    doubtful = any(state in DOUBTFUL for state in shares.states) or bool(found & {"warning", "alarm"})
    if not doubtful:
        return [(f"quanet predict {model} {files}{keys}", "No problems found: the estimates can be used.")]
    number, some = _labels(shares)
    return [
        (
            f"quanet label plan {model} {files}{f'{keys} --number {number}' if number else ''} -o to-label.csv",
            f"{some}Select the rows to label, and fill in their labels.",
        ),
        (
            f"quanet refine {model} {files} --labels to-label.csv{keys}",
            "Correct the estimates with these labels, whatever has changed since training.",
        ),
    ]


def _labels(shares: Shares) -> tuple[int, str]:
    """How many labels each group needs, 0 if unknown, and how many `quanet label plan` then selects, in a sentence."""
    most = int(shares.labels.max(initial=0))
    if not most:
        return 0, ""
    number = max(most, MIN_LABELS)
    selected = int(np.minimum(shares.sizes, number).sum())
    each = f", up to {number:,} of each group," if shares.keys else ""
    return number, f"{selected:,} labelled rows{each} would make the doubtful estimates reliable. "

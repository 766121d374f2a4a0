"""What a diagnosis says: findings in plain words, each with its numbers and a way out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from quanet.base import Quantifier
from quanet.shrinkage import ADVICE, shrinkage_sentence

SEVERITIES = ("ok", "note", "warning", "alarm")  # from good to bad


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer about a bag.

    Attributes
    ----------
    name : what was asked, such as "prior shift".
    severity : "ok", "note", "warning" or "alarm".
    sentence : the answer.
    advice : what to do; empty where there is nothing to do.
    numbers : what the answer rests on, such as a p-value.
    """

    name: str
    severity: str
    sentence: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence}" + (f" {self.advice}" if self.advice else "")


def shrinkage_findings(quantifier: Quantifier) -> list[Finding]:
    """That estimates are shrunk towards the training prevalence, where they are."""
    chosen: Any = getattr(quantifier, "quantifier_", quantifier)  # by a search
    shrinkage = float(chosen.shrinkage_)
    if not shrinkage:
        return []
    severity = "alarm" if shrinkage > 0.5 else "warning"
    return [Finding("shrinkage", severity, shrinkage_sentence(shrinkage), ADVICE, {"shrinkage": shrinkage})]


class Diagnosis(Sequence[Finding]):
    """Findings about a bag, in the order they were made; printed, one line each.

    Examples
    --------
    >>> diagnosis = Diagnosis([Finding("bag size", "ok", "The bag is large enough.")])
    >>> print(diagnosis)
    ok: The bag is large enough.
    >>> diagnosis.severity, diagnosis["bag size"].sentence
    ('ok', 'The bag is large enough.')
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)

    @overload
    def __getitem__(self, at: int | str) -> Finding: ...
    @overload
    def __getitem__(self, at: slice) -> "Diagnosis": ...
    def __getitem__(self, at: int | str | slice) -> "Finding | Diagnosis":
        """A finding by its place or its name."""
        if isinstance(at, slice):
            return Diagnosis(self._findings[at])
        if isinstance(at, int):
            return self._findings[at]
        for finding in self._findings:
            if finding.name == at:
                return finding
        raise KeyError(f"no finding is called {at!r}; there are {', '.join(one.name for one in self._findings)}.")

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    @property
    def severity(self) -> str:
        """The worst severity among the findings."""
        return max((finding.severity for finding in self), key=SEVERITIES.index)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return f"Diagnosis({len(self)} findings, worst: {self.severity})"

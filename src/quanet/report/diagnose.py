"""The report of `quanet diagnose`: can the estimates be trusted, how accurate are single labels, what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.report.accuracy_section import accuracy_data, accuracy_sections
from quanet.report.groups import shares_table
from quanet.report.phrases import (
    cautions_of,
    diagnosis_section,
    listing,
    many,
    plain_finding,
    reproduction,
    skipped_facts,
)
from quanet.report.summary import Section, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.workflows.diagnose import Trustworthiness

VERDICTS = {
    "ok": "Nothing speaks against the estimates",
    "note": "The estimates can be used; read the notes",
    "warning": "Use the estimates with caution",
    "alarm": "Do not rely on the estimates without labels",
}


def summarize_trust(trust: Trustworthiness, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """The report of a diagnosis.

    Parameters
    ----------
    trust : the answer.
    settings : names and values that reproduce it.
    focus : the class that tables show first.
    """
    shares = trust.shares
    sections = [diagnosis_section(shares.diagnosis)] if len(shares.diagnosis) else []
    if shares.keys:
        sections.append(Section("Groups", (_states(trust),), tables=(shares_table(shares, focus=focus),)))
    sections += accuracy_sections(shares.accuracy, focus=focus)
    steps = tuple(f"{reason.rstrip('.')}: {command}" for command, reason in trust.steps)
    sections.append(Section("What to do next", steps))
    return Summary(
        title=f"Diagnosis of {shares.source}" if shares.source else "Diagnosis",
        answer=_answer(trust),
        cautions=cautions_of(shares.diagnosis),
        facts=(
            ("instances", f"{shares.sizes.sum():,}"),
            ("worst finding", trust.severity),
            *([("groups", f"{len(shares.groups):,}")] if shares.keys else []),
            *skipped_facts(shares.skipped),
        ),
        sections=tuple(sections),
        settings=reproduction(settings, shares.model),
        data=lambda: _data(trust),
        rows=lambda: [plain_finding(one) | {"numbers": None, "examples": None} for one in shares.diagnosis],
        columns=("name", "severity", "sentence", "advice", "numbers", "examples"),
    )


def _answer(trust: Trustworthiness) -> str:
    worst = [finding.name for finding in trust.shares.diagnosis if finding.severity == trust.severity]
    about = "" if trust.severity == "ok" else f" ({trust.severity}: {listing(worst)})"
    return f"{VERDICTS[trust.severity]}{about}. {_states(trust)}".strip()


def _states(trust: Trustworthiness) -> str:
    """How many groups are in which state."""
    if not trust.states:
        return ""
    if not trust.shares.keys:
        return f"The instances as a whole: {next(iter(trust.states))}."
    if len(trust.states) == 1 and len(trust.shares.groups) > 1:
        return f"All {len(trust.shares.groups):,} groups: {next(iter(trust.states))}."
    states = [f"{number:,} {state}" for state, number in trust.states.items()]
    return f"{many(len(trust.shares.groups), 'group')}: {listing(states)}."


def _data(trust: Trustworthiness) -> dict[str, Any]:
    shares = trust.shares
    parts = zip(shares.groups, shares.sizes.tolist(), shares.states, shares.labels.tolist(), strict=True)
    groups = [
        {"group": dict(zip(shares.key_names, group, strict=True)), "n": size, "state": state, "labels": labels}
        for group, size, state, labels in parts
    ]
    return {
        "source": shares.source,
        "model": shares.model,
        "severity": trust.severity,
        "answer": _answer(trust),
        "findings": [plain_finding(one) for one in shares.diagnosis],
        "states": trust.states,
        "groups": groups if shares.keys else [],
        **accuracy_data(shares.accuracy),
        "next": [{"command": command, "reason": reason} for command, reason in trust.steps],
        "skipped": shares.skipped,
    }

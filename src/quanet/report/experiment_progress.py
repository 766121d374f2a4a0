"""The progress of an experiment: which cells are done, missing or failed."""

from quanet.evaluation.findings import Finding
from quanet.lab.runner import ExperimentState
from quanet.report.summary import Column, Section, Summary, Table, TableEntry


def summarize_progress(state: ExperimentState, folder: str) -> Summary:
    """Finished runs of an experiment by method and dataset, and the failed cells."""
    states = state.cells
    datasets = list(dict.fromkeys(cell.dataset for cell in states))
    rows = []
    for method in dict.fromkeys(cell.method for cell in states):
        entries = []
        for dataset in datasets:
            runs = [one for cell, one in states.items() if cell[:2] == (dataset, method)]
            failed = sum(one not in ("done", "missing") for one in runs)
            detail = f"{failed} failed" if failed else ""
            entries.append(TableEntry(f"{runs.count('done')}/{len(runs)}", detail=detail))
        rows.append((method, tuple(entries)))
    table = Table(f"Finished runs in {folder}", tuple(Column(dataset) for dataset in datasets), tuple(rows))
    failures = {cell: one for cell, one in states.items() if one not in ("done", "missing")}
    findings = [
        Finding("cell", "alarm", f"failed: {cell.dataset}, {cell.method}, run {cell.run}: {reason}")
        for cell, reason in failures.items()
    ]
    findings += [
        Finding("rows", "warning", f"{dataset}, run {run}: methods have read different rows of {classifier}.")
        for dataset, run, classifier in state.unlike
    ]
    counted = list(states.values())
    done, missing = counted.count("done"), counted.count("missing")
    seconds = ", ".join(f"{kind} {number:.0f} s" for kind, number in state.seconds.items())
    return Summary(
        "Experiment",
        answer=f"{done} done, {missing} missing, {len(failures)} failed; {seconds}",
        sections=(Section("", findings=tuple(findings), tables=(table,)),),
    )

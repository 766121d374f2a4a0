"""The report of an experiment: tables of errors, ranks, and the paper's figures."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from quanet.data.registry import STAND_INS
from quanet.errors import InvalidData
from quanet.evaluation.evaluate import Cell
from quanet.evaluation.scores import Ranking, Scores, rank
from quanet.evaluation.significance import alike, least_wilcoxon, paired_t_test, runs_for_wilcoxon, wilcoxon_test
from quanet.report.paper_figures import DATASETS, dataset_title, paper_row, published
from quanet.report.phrases import probability
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.uncertainty.differences import holm
from quanet.wording import NONE

LEVELS = (0.005, 0.05)  # significance levels of the daggers
MAX_NAMED = 8  # methods whose missing cells are listed


def summarize_experiment(
    scores: Scores, *, against_paper: bool = False, tests: bool = False, blocks: str = "runs"
) -> Summary:
    """Errors of an experiment, and optionally a comparison with the paper and ranks with tests."""
    tables = experiment_tables(scores, against_paper=against_paper, tests=tests, blocks=blocks)
    rows = [
        {"dataset": dataset, "method": method, "metric": metric, "runs": len(errors), "error": errors.mean()}
        for (metric, dataset, method), errors in scores.errors.items()
    ]
    return Summary(
        "Experiment",
        sections=(Section("", tables=tuple(tables)),),
        data=lambda: {"errors": rows, "missing": [list(cell) for cell in scores.missing]},
        rows=lambda: rows,
        columns=("dataset", "method", "metric", "runs", "error"),
    )


def experiment_tables(
    scores: Scores, *, against_paper: bool = False, tests: bool = False, blocks: str = "runs"
) -> list[Table]:
    """The table of errors and the requested further tables. A table that cannot be made yet is replaced by a note."""
    tables = [error_table(scores)]
    extras: list[tuple[bool, str, Callable[[], Table]]] = [
        (against_paper, "No comparison", lambda: comparison_table(scores)),
        (tests, "No ranks", lambda: ranking_table(scores, blocks=blocks)),
    ]
    for wanted, reason, make in extras:
        if wanted:
            try:
                tables.append(make())
            except InvalidData as error:
                tables[0] = replace(tables[0], notes=(*tables[0].notes, f"{reason}: {error}"))
    return tables


def error_table(scores: Scores) -> Table:
    r"""The paper's Table 1: mean errors by method, dataset and metric, with the best and the distance of the others.

    Daggers mark methods that do not differ significantly from the best by a two-tailed paired t-test over runs: one
    dagger for .005 <= p < .05, two for p >= .05. The paper's caption could also mean the opposite, but its text calls
    PACC comparable exactly where it has two daggers, once at 1 % above the best.
    """
    columns, by_column = [], []
    for dataset in scores.datasets:
        for metric in scores.metrics:
            columns.append(Column(metric.upper(), dataset_title(dataset, scores.stand_ins)))
            by_column.append(_error_column(scores, dataset, metric))
    rows = tuple((method, tuple(column[i] for column in by_column)) for i, method in enumerate(scores.methods))
    return Table("Mean errors", tuple(columns), rows, (*_error_notes(scores), *_missing_note(scores.missing)))


def comparison_table(scores: Scores) -> Table:
    """Our errors, the paper's published errors, and the difference in percent of the paper's.

    Only the paper's own datasets and methods are compared, never a stand-in.
    """
    datasets = [name for name in scores.datasets if name in DATASETS and name not in scores.stand_ins]
    metrics = [name for name in scores.metrics if name in ("ae", "rae", "kld")]
    methods = [name for name in scores.methods if paper_row(name)]
    if not (datasets and metrics and methods):
        raise InvalidData(
            "the paper's table has AE, RAE and KLD of its own methods on IMDB, Kindle and HP. This experiment has "
            f"{', '.join(scores.metrics)} of {', '.join(scores.methods)} on {', '.join(scores.datasets)}. Stand-ins "
            "are not compared."
        )
    columns: list[Column] = []
    by_column: list[Sequence[TableEntry]] = []
    for dataset in datasets:
        for metric in metrics:
            group = f"{dataset_title(dataset, scores.stand_ins)} {metric.upper()}"
            columns += [Column(title, group) for title in ("here", "paper", "difference")]
            places = _places([scores.errors[key].mean() for key in _keys(scores, dataset, metric)])
            by_column += zip(*(_compared(scores, dataset, m, metric, places) for m in methods), strict=True)
    rows = tuple(
        (method if method == paper_row(method) else f"{method} [{paper_row(method)}]", tuple(c[i] for c in by_column))
        for i, method in enumerate(methods)
    )
    notes = [
        "Paper: Esuli, Moreo and Sebastiani (CIKM 2018), Table 1, means of 10 runs, rounded to three decimals; its row "
        "in brackets if the name differs. Difference in % of the paper's figure; negative: a smaller error here."
    ]
    if others := [name for name in scores.methods if name not in methods]:
        notes.append(f"Not in the paper: {', '.join(others)}.")
    if apart := [name for name in scores.datasets if name not in datasets]:
        titles = ", ".join(dataset_title(name, scores.stand_ins) for name in apart)
        notes.append(f"Not compared, because they are not the paper's data: {titles}.")
    return Table("Comparison with the paper", tuple(columns), rows, (*notes, *_missing_note(scores.missing)))


def ranking_table(scores: Scores, *, blocks: str = "runs", alpha: float = 0.05) -> Table:
    """Mean ranks by metric; Wilcoxon's test of the first against the others (Holm); Friedman's and Nemenyi's tests."""
    rankings = {metric: rank(scores, metric, blocks=blocks, alpha=alpha) for metric in scores.metrics}
    columns: list[Column] = []
    by_column: list[Sequence[TableEntry]] = []
    notes = []
    for metric, ranking in rankings.items():
        columns += [Column("mean rank", metric.upper()), Column("Wilcoxon p", metric.upper())]
        by_column += _rank_columns(ranking)
        tested = ranking.friedman
        notes.append(
            f"{metric.upper()}: Friedman chi-squared {tested.statistic:.1f}, p {probability(tested.p)}; "
            f"Iman-Davenport F {tested.f_statistic:.1f}, p {probability(tested.f_p)}; critical distance of mean ranks "
            f"(Nemenyi, {alpha:g}) {ranking.distance:.2f}."
        )
    first = next(iter(rankings.values()))
    order = np.argsort(first.friedman.ranks, kind="stable")
    rows = tuple((first.methods[i], tuple(column[i] for column in by_column)) for i in order)
    unit = "runs of datasets" if blocks == "runs" else "datasets"
    notes.append(
        f"Ranks over {first.friedman.blocks} {unit}; 1 is the best. = : within the critical distance of the first. "
        "Wilcoxon: signed-rank test against the first, two-tailed, Holm's correction over the methods."
    )
    notes += _unreachable(len(first.methods), first.friedman.blocks, first.distance, unit, alpha)
    if first.left_out:
        notes.append(f"Not ranked, because runs are missing: {', '.join(first.left_out)}.")
    return Table("Ranks", tuple(columns), rows, (*notes, *_missing_note(scores.missing)))


def _keys(scores: Scores, dataset: str, metric: str) -> list[tuple[str, str, str]]:
    return [key for m in scores.methods if (key := (metric, dataset, m)) in scores.errors]


def _error_column(scores: Scores, dataset: str, metric: str) -> list[TableEntry]:
    keys = _keys(scores, dataset, metric)
    if not keys:
        return [TableEntry() for _ in scores.methods]
    means = {key: float(scores.errors[key].mean()) for key in keys}
    competing = [key for key in keys if key[2] not in scores.aside]
    best = min(competing or keys, key=means.__getitem__)
    places = _places(list(means.values()))
    column = []
    for method in scores.methods:
        key = (metric, dataset, method)
        if key not in means:
            column.append(TableEntry())
        elif key == best:
            column.append(TableEntry(f"{means[key]:.{places}f}", best=method not in scores.aside))
        else:
            runs, least = scores.errors[key], scores.errors[best]
            tested = len(runs) > 1 and method not in scores.aside
            mark = daggers(float(paired_t_test(runs, least))) if tested else ""
            detail = _percent(means[key] / means[best] - 1) if means[best] > 0 else ""
            column.append(TableEntry(f"{means[key]:.{places}f}", mark, detail))
    return column


def _compared(
    scores: Scores, dataset: str, method: str, metric: str, places: int
) -> tuple[TableEntry, TableEntry, TableEntry]:
    theirs = published(dataset, method, metric)
    paper = TableEntry() if theirs is None else TableEntry(f"{theirs:.3f}")
    if theirs is None or (metric, dataset, method) not in scores.errors:
        return TableEntry(), paper, TableEntry()
    mean = float(scores.errors[metric, dataset, method].mean())
    return TableEntry(f"{mean:.{places}f}"), paper, TableEntry(_percent(mean / theirs - 1))


def _rank_columns(ranking: Ranking) -> tuple[list[TableEntry], list[TableEntry]]:
    ranks = ranking.friedman.ranks
    best = int(ranks.argmin())
    near = next((set(group.tolist()) for group in alike(ranks, ranking.distance) if best in group), {best})
    others = [i for i in range(len(ranks)) if i != best]
    p = dict(
        zip(others, holm([wilcoxon_test(ranking.errors[:, i], ranking.errors[:, best]) for i in others]), strict=True)
    )
    means = [
        TableEntry(f"{r:.2f}", "=" if i in near and i != best else "", best=i == best) for i, r in enumerate(ranks)
    ]
    return means, [TableEntry(probability(p[i])) if i in p else TableEntry() for i in range(len(ranks))]


def _unreachable(methods: int, blocks: int, distance: float, unit: str, alpha: float) -> list[str]:
    """Notes about tests that cannot be significant with so few blocks."""
    tests, notes = methods - 1, []
    least = least_wilcoxon(blocks, tests)
    if least >= alpha:
        notes.append(
            f"Wilcoxon's test cannot be significant here: with {blocks} {unit} and {tests} comparisons its smallest p "
            f"is {probability(least)}. It needs at least {runs_for_wilcoxon(alpha, tests)} {unit}."
        )
    if distance > tests:  # mean ranks lie between 1 and the number of methods
        notes.append(
            f"Nemenyi's test cannot be significant here: mean ranks of {methods} methods differ by {tests} at most, "
            f"and the critical distance is {distance:.2f}. Run more {unit}."
        )
    return notes


def daggers(p: float) -> str:
    """Two daggers if a difference is not significant at .05, one if it is not at .005.

    Examples
    --------
    >>> [daggers(p) for p in (0.2, 0.01, 0.001)]
    ['††', '†', '']
    """
    return "†" * sum(p >= level for level in LEVELS)


def _places(means: list[float]) -> int:
    """Decimals that show three digits of the smallest mean, at least the paper's three."""
    smallest = min((mean for mean in means if mean > 0), default=1.0)
    return min(max(3, 2 - math.floor(math.log10(smallest))), 7)


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %" if abs(share) < 0.0995 else f"{100 * share:+,.0f} %"


def _error_notes(scores: Scores) -> list[str]:
    designs: dict[str, list[str]] = {}
    for dataset in scores.datasets:
        bags, least, largest = scores.bags[dataset]
        sizes = f"{least:,}" if least == largest else f"{least:,} to {largest:,}"
        runs = len(scores.runs[dataset])
        design = f"{runs} run{'s' if runs > 1 else ''} of {bags:,} bags of {sizes}"
        designs.setdefault(design, []).append(dataset_title(dataset, scores.stand_ins))
    listed = "; ".join(design if len(designs) == 1 else f"{', '.join(on)}: {design}" for design, on in designs.items())
    notes = [f"Mean over {listed}. Bold: the smallest error; others: how much larger in %."]
    single = [dataset_title(name, scores.stand_ins) for name in scores.datasets if len(scores.runs[name]) < 2]
    if len(single) < len(scores.datasets):
        notes.append(
            "Two-tailed paired t-test over runs against the smallest error: †† not significantly different at .05 "
            "(p ≥ .05), † not at .005 (.005 ≤ p < .05); no mark: p < .005."
        )
    if single:
        notes.append(f"No t-test, because there is only one run: {', '.join(single)}.")
    if scores.aside:
        notes.append(f"Shown but not competing (neither bold nor tested): {', '.join(scores.aside)}.")
    if standing := [name for name in scores.datasets if name in {**STAND_INS, **scores.stand_ins}]:
        notes.append(f"Stand-ins are not the paper's data: {', '.join(standing)}.")
    return notes


def _missing_note(missing: Iterable[Cell]) -> list[str]:
    """Missing cells by dataset and method: 'imdb / QuaNet: runs 0, 3'."""
    runs: dict[tuple[str, str], list[int]] = {}
    for cell in missing:
        runs.setdefault((cell.dataset, cell.method), []).append(cell.run)
    if not runs:
        return []
    cells = sum(map(len, runs.values()))
    listed = "; ".join(
        f"{dataset} / {method}: run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
        for (dataset, method), numbers in list(runs.items())[:MAX_NAMED]
    )
    if len(runs) > MAX_NAMED:
        listed += f"; and of {len(runs) - MAX_NAMED} more methods"
    return [f"Incomplete: {cells} cell{'s are' if cells > 1 else ' is'} missing ({NONE} above): {listed}."]

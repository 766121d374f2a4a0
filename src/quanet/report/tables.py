"""Tables of an experiment as plain data, so that terminal, Markdown, LaTeX and HTML cannot disagree."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quanet.data.catalogue import STAND_INS
from quanet.errors import InvalidData
from quanet.evaluation.cells import Cell
from quanet.evaluation.scores import Ranking, Scores, rank
from quanet.evaluation.significance import alike, holm, least_wilcoxon, paired_t_test, runs_for_wilcoxon, wilcoxon_test
from quanet.report.published import DATASETS, dataset_title, paper_row, published

NONE = "--"
LEVELS = (0.005, 0.05)  # of the daggers
NAMED = 8  # datasets and methods whose missing cells are listed


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in a table: a figure, daggers, what stands beside it, and whether it is the best of its column."""

    text: str = NONE
    mark: str = ""
    detail: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title, and the group of columns that it belongs to."""

    title: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a title, columns in groups, a name and an entry for every column in every row, notes below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    notes: tuple[str, ...] = ()
    corner: str = "method"

    @property
    def groups(self) -> list[list[int]]:
        """Positions of the columns of every group."""
        names = dict.fromkeys(column.group for column in self.columns)
        return [[i for i, column in enumerate(self.columns) if column.group == name] for name in names]

    def part(self, kept: Sequence[int]) -> "Table":
        """Some columns, without the notes; if they are of one group, its name moves into the title."""
        columns = tuple(self.columns[i] for i in kept)
        title, names = self.title, {column.group for column in columns}
        if len(names) == 1:
            title = ": ".join(filter(None, (title, *names)))
            columns = tuple(Column(column.title) for column in columns)
        rows = tuple((name, tuple(entries[i] for i in kept)) for name, entries in self.rows)
        return replace(self, title=title, columns=columns, rows=rows, notes=())


def experiment_tables(
    scores: Scores, *, against_paper: bool = False, tests: bool = False, blocks: str = "runs"
) -> list[Table]:
    """The table of errors and those asked for beside it; one that cannot be made yet leaves a note of why."""
    tables = [error_table(scores)]
    extras: list[tuple[bool, str, Callable[[], Table]]] = [
        (against_paper, "No comparison", lambda: comparison_table(scores)),
        (tests, "No ranks", lambda: ranking_table(scores, blocks=blocks)),
    ]
    for wanted, absent, make in extras:
        if wanted:
            try:
                tables.append(make())
            except InvalidData as error:
                tables[0] = replace(tables[0], notes=(*tables[0].notes, f"{absent}: {error}"))
    return tables


def error_table(scores: Scores) -> Table:
    r"""The paper's Table 1: mean errors by method, dataset and metric, the best one, how far the others are.

    Daggers mark what is not significantly different from the best by a two-tailed paired t-test over runs: one dagger
    for .005 <= p < .05, two for p >= .05. The paper's caption can be read the other way round as well, but its text
    calls PACC comparable exactly where it has two, once at 1 % above the best.
    """
    columns, by_column = [], []
    for dataset in scores.datasets:
        for metric in scores.metrics:
            columns.append(Column(metric.upper(), dataset_title(dataset, scores.stand_ins)))
            by_column.append(_error_column(scores, dataset, metric))
    rows = tuple((method, tuple(column[i] for column in by_column)) for i, method in enumerate(scores.methods))
    return Table("Mean errors", tuple(columns), rows, (*_error_notes(scores), *_missing_note(scores.missing)))


def comparison_table(scores: Scores) -> Table:
    """Our errors beside those that the paper published, and the difference in percent of the latter.

    Only the paper's own datasets and methods are compared: a stand-in never is.
    """
    datasets = [name for name in scores.datasets if name in DATASETS and name not in scores.stand_ins]
    metrics = [name for name in scores.metrics if name in ("ae", "rae", "kld")]
    methods = [name for name in scores.methods if paper_row(name)]
    if not (datasets and metrics and methods):
        raise InvalidData(
            "nothing here is in the paper's table, which has AE, RAE and KLD of its methods on IMDB, Kindle and HP; "
            f"there are {', '.join(scores.metrics)} of {', '.join(scores.methods)} on {', '.join(scores.datasets)}. "
            "Stand-ins are not compared."
        )
    columns: list[Column] = []
    by_column: list[Sequence[Entry]] = []
    for dataset in datasets:
        for metric in metrics:
            group = f"{dataset_title(dataset, scores.stand_ins)} {metric.upper()}"
            columns += [Column(title, group) for title in ("here", "paper", "difference")]
            places = _places([scores.errors[key].mean() for key in _keys(scores, dataset, metric)])
            by_column += zip(*(_beside(scores, dataset, m, metric, places) for m in methods), strict=True)
    rows = tuple(
        (method if method == paper_row(method) else f"{method} [{paper_row(method)}]", tuple(c[i] for c in by_column))
        for i, method in enumerate(methods)
    )
    notes = [
        "Paper: Esuli, Moreo and Sebastiani (CIKM 2018), Table 1, means of 10 runs, rounded to three decimals; its row "
        "in brackets where the name differs. Difference in % of the paper's figure; below 0 is a smaller error here."
    ]
    if others := [name for name in scores.methods if name not in methods]:
        notes.append(f"Without a row in the paper: {', '.join(others)}.")
    if apart := [name for name in scores.datasets if name not in datasets]:
        told = ", ".join(dataset_title(name, scores.stand_ins) for name in apart)
        notes.append(f"Not compared, as they are not the paper's data: {told}.")
    return Table("Beside the paper's figures", tuple(columns), rows, (*notes, *_missing_note(scores.missing)))


def ranking_table(scores: Scores, *, blocks: str = "runs", alpha: float = 0.05) -> Table:
    """Mean ranks by metric, Wilcoxon's test of the first against each other (Holm), Friedman's and Nemenyi's tests."""
    rankings = {metric: rank(scores, metric, blocks=blocks, alpha=alpha) for metric in scores.metrics}
    columns: list[Column] = []
    by_column: list[Sequence[Entry]] = []
    notes = []
    for metric, ranking in rankings.items():
        columns += [Column("mean rank", metric.upper()), Column("Wilcoxon p", metric.upper())]
        by_column += _rank_columns(ranking)
        tested = ranking.friedman
        notes.append(
            f"{metric.upper()}: Friedman chi-squared {tested.statistic:.1f}, p {_probability(tested.p)}; "
            f"Iman-Davenport F {tested.f_statistic:.1f}, p {_probability(tested.f_p)}; critical distance of mean ranks "
            f"(Nemenyi, {alpha:g}) {ranking.distance:.2f}."
        )
    first = next(iter(rankings.values()))
    order = np.argsort(first.friedman.ranks, kind="stable")
    rows = tuple((first.methods[i], tuple(column[i] for column in by_column)) for i in order)
    unit = "runs of datasets" if blocks == "runs" else "datasets"
    notes.append(
        f"Ranks over {first.friedman.blocks} {unit}, 1 the best. = : within the critical distance of the first. "
        "Wilcoxon: signed-rank test against the first, two-tailed, Holm's correction over the methods."
    )
    notes += _unreachable(len(first.methods), first.friedman.blocks, first.distance, unit, alpha)
    if first.left_out:
        notes.append(f"Not ranked, as they are incomplete: {', '.join(first.left_out)}.")
    return Table("Ranks", tuple(columns), rows, (*notes, *_missing_note(scores.missing)))


def _keys(scores: Scores, dataset: str, metric: str) -> list[tuple[str, str, str]]:
    return [key for m in scores.methods if (key := (metric, dataset, m)) in scores.errors]


def _error_column(scores: Scores, dataset: str, metric: str) -> list[Entry]:
    keys = _keys(scores, dataset, metric)
    if not keys:
        return [Entry() for _ in scores.methods]
    means = {key: float(scores.errors[key].mean()) for key in keys}
    competing = [key for key in keys if key[2] not in scores.aside]
    best = min(competing or keys, key=means.__getitem__)
    places = _places(list(means.values()))
    column = []
    for method in scores.methods:
        key = (metric, dataset, method)
        if key not in means:
            column.append(Entry())
        elif key == best:
            column.append(Entry(f"{means[key]:.{places}f}", best=method not in scores.aside))
        else:
            runs, least = scores.errors[key], scores.errors[best]
            tested = len(runs) > 1 and method not in scores.aside
            mark = daggers(float(paired_t_test(runs, least))) if tested else ""
            detail = _percent(means[key] / means[best] - 1) if means[best] > 0 else ""
            column.append(Entry(f"{means[key]:.{places}f}", mark, detail))
    return column


def _beside(scores: Scores, dataset: str, method: str, metric: str, places: int) -> tuple[Entry, Entry, Entry]:
    theirs = published(dataset, method, metric)
    paper = Entry() if theirs is None else Entry(f"{theirs:.3f}")
    if theirs is None or (metric, dataset, method) not in scores.errors:
        return Entry(), paper, Entry()
    mean = float(scores.errors[metric, dataset, method].mean())
    return Entry(f"{mean:.{places}f}"), paper, Entry(_percent(mean / theirs - 1))


def _rank_columns(ranking: Ranking) -> tuple[list[Entry], list[Entry]]:
    ranks = ranking.friedman.ranks
    best = int(ranks.argmin())
    near = next((set(group.tolist()) for group in alike(ranks, ranking.distance) if best in group), {best})
    others = [i for i in range(len(ranks)) if i != best]
    p = dict(
        zip(others, holm([wilcoxon_test(ranking.errors[:, i], ranking.errors[:, best]) for i in others]), strict=True)
    )
    means = [Entry(f"{r:.2f}", "=" if i in near and i != best else "", best=i == best) for i, r in enumerate(ranks)]
    return means, [Entry(_probability(p[i])) if i in p else Entry() for i in range(len(ranks))]


def _unreachable(methods: int, blocks: int, distance: float, unit: str, alpha: float) -> list[str]:
    """Which tests cannot find any difference with so few blocks."""
    tests, notes = methods - 1, []
    least = least_wilcoxon(blocks, tests)
    if least >= alpha:
        notes.append(
            f"Wilcoxon's test cannot be significant here: with {blocks} {unit} and {tests} comparisons its least p is "
            f"{_probability(least)}. It needs at least {runs_for_wilcoxon(alpha, tests)} {unit}."
        )
    if distance > tests:  # mean ranks lie between 1 and the number of methods
        notes.append(
            f"Nemenyi's test cannot be significant here: mean ranks of {methods} methods differ by {tests} at most, "
            f"and the critical distance is {distance:.2f}. Run more {unit}."
        )
    return notes


def daggers(p: float) -> str:
    """Two where a difference is not significant at .05, one where it is not at .005.

    Examples
    --------
    >>> [daggers(p) for p in (0.2, 0.01, 0.001)]
    ['††', '†', '']
    """
    return "†" * sum(p >= level for level in LEVELS)


def _places(means: list[float]) -> int:
    """Decimals that show three digits of the least mean, and no fewer than the paper's three."""
    least = min((mean for mean in means if mean > 0), default=1.0)
    return min(max(3, 2 - math.floor(math.log10(least))), 7)


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %" if abs(share) < 0.0995 else f"{100 * share:+,.0f} %"


def _probability(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def _error_notes(scores: Scores) -> list[str]:
    designs: dict[str, list[str]] = {}
    for dataset in scores.datasets:
        bags, least, largest = scores.bags[dataset]
        sizes = f"{least:,}" if least == largest else f"{least:,} to {largest:,}"
        runs = len(scores.runs[dataset])
        told = f"{runs} run{'s' if runs > 1 else ''} of {bags:,} bags of {sizes}"
        designs.setdefault(told, []).append(dataset_title(dataset, scores.stand_ins))
    told = "; ".join(design if len(designs) == 1 else f"{', '.join(on)}: {design}" for design, on in designs.items())
    notes = [f"Mean over {told}. Bold: the least; beside the others, how much larger they are."]
    single = [dataset_title(name, scores.stand_ins) for name in scores.datasets if len(scores.runs[name]) < 2]
    if len(single) < len(scores.datasets):
        notes.append(
            "Two-tailed paired t-test over runs against the least: †† not significantly different at .05 (p ≥ .05), "
            "† not at .005 (.005 ≤ p < .05); without a mark p < .005."
        )
    if single:
        notes.append(f"No t-test, as there is one run only: {', '.join(single)}.")
    if scores.aside:
        notes.append(f"Shown but not competing, so neither bold nor tested: {', '.join(scores.aside)}.")
    if standing := [name for name in scores.datasets if name in {**STAND_INS, **scores.stand_ins}]:
        notes.append(f"Stand-ins are other data than the paper's: {', '.join(standing)}.")
    return notes


def _missing_note(missing: Iterable[Cell]) -> list[str]:
    """Which cells are missing, runs gathered: 'imdb / QuaNet: runs 0, 3'."""
    runs: dict[tuple[str, str], list[int]] = {}
    for cell in missing:
        runs.setdefault((cell.dataset, cell.method), []).append(cell.run)
    if not runs:
        return []
    cells = sum(map(len, runs.values()))
    told = "; ".join(
        f"{dataset} / {method}: run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
        for (dataset, method), numbers in list(runs.items())[:NAMED]
    )
    if len(runs) > NAMED:
        told += f"; and of {len(runs) - NAMED} more methods"
    return [f"Incomplete, {cells} cell{'s are' if cells > 1 else ' is'} missing ({NONE} above): {told}."]

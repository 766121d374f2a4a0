"""Run the missing cells of a plan."""

from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from quanet.errors import InvalidExperiment, InvalidPlan, InvalidSetting, QuanetError, nearest
from quanet.evaluation.evaluate import Cell
from quanet.lab.parallel import Engine
from quanet.lab.plan import Place, Plan, PlanText, load
from quanet.lab.store import Metadata, Store, asked_cells, cells_of, read_all
from quanet.lab.work import Failure, Job, make_rows, run_cell


@dataclass(frozen=True, slots=True)
class RowsOf:
    """A task: compute the rows of a dataset with a classifier."""

    dataset: str
    classifier: str
    run: int


Work = Cell | RowsOf


@dataclass(frozen=True, slots=True)
class Fact:
    """A finished task.

    Attributes
    ----------
    work : the task; None for the first fact, before any task.
    seconds : its duration.
    error : why it failed, or empty.
    done, total : cells that finished or failed, and all requested cells.
    left : estimated seconds for the remaining tasks, or None.
    """

    work: Work | None
    seconds: float
    error: str
    done: int
    total: int
    left: float | None


class Selection:
    """Some cells of a plan, such as those of ``dataset=imdb,run=0,run=1``.

    Examples
    --------
    >>> chosen = Selection({"method": ["CC"]})
    >>> Cell("imdb", "CC", 0) in chosen, Cell("imdb", "PCC", 0) in chosen
    (True, False)
    """

    def __init__(self, values: dict[str, list[str]]) -> None:
        self.values = values

    @classmethod
    def parse(cls, text: str, plan: Plan) -> "Selection":
        """Read ``key=value,key=value``; values of one key are alternatives."""
        known = {
            "dataset": [place.name for place in plan.datasets],
            "method": [method.name for method in plan.methods],
            "run": [str(run) for run in plan.runs],
        }
        values: dict[str, list[str]] = defaultdict(list)
        for word in filter(None, text.split(",")):
            key, _, value = (part.strip() for part in word.partition("="))
            if key not in known:
                raise InvalidSetting(f"--only must be key=value,...; unknown key {key!r}. {nearest(key, known)}")
            if value not in known[key]:
                raise InvalidSetting(f"The plan has no {key} {value!r}. {nearest(value, known[key])}")
            values[key].append(value)
        return cls(values)

    def __contains__(self, cell: Cell) -> bool:
        fields = cell._asdict()
        return all(str(fields[key]) in values for key, values in self.values.items())


def run(
    plan: Plan, folder: str | Path, engine: Engine, *, only: Selection | None = None, device: str | None = None
) -> Generator[Fact, None, None]:
    """Run the missing cells, and yield a `Fact` for each finished task. Finished cells are always kept.

    Parameters
    ----------
    plan : see `quanet.lab.plan.read_plan`.
    folder : of the experiment, created if needed. Its finished cells are not run again.
    engine : see `quanet.lab.parallel`.
    only : the cells to run; None: all.
    device : for training networks, if the plan does not set it.
    """
    store = Store(folder)
    with store.locked():
        if store.is_packed():
            raise InvalidExperiment(
                f"{folder} contains packed results, which a run would overwrite. Choose a different --output."
            )
        described = describe_datasets(plan)
        fingerprints = {name: about["fingerprint"] for name, about in described.items()}
        job = Job(plan, str(store.folder.resolve()), fingerprints, device)
        keys = {cell: job.key(cell) for cell in plan.cells}
        wanted = [cell for cell in keys if only is None or cell in only]
        asked = {*wanted, *(asked_cells(store.manifest()) if store.exists() else ())}
        store.write_manifest(
            {
                "name": plan.name,
                "about": plan.about,
                "metrics": list(plan.metrics),
                "datasets": described,
                "aside": [method.name for method in plan.methods if method.leak],  # shown, but not ranked
                "plan": plan.text,
                "cells": [[*cell, key] for cell, key in keys.items()],
                "asked": [cell for cell in keys if cell in asked],
            }
        )
        missing = [cell for cell in wanted if not store.has_cell(cell, keys[cell])]
        yield from _Schedule(job, engine, missing, finished=len(wanted) - len(missing)).run()


def describe_datasets(plan: Plan) -> dict[str, Metadata]:
    """Load each dataset of a plan, and describe its size and content."""
    described = {}
    for place in plan.datasets:
        try:
            parts = load(place)
        except QuanetError as error:
            raise _with_line(plan, place, error) from error
        described[place.name] = {
            "fingerprint": parts.fingerprint,
            "stand_in": parts.stand_in,
            "train": len(parts.train),
            "test": len(parts.test),
            "classes": parts.train.classes.tolist(),
            "prior": parts.train.prevalence.tolist(),
        }
    return described


def _with_line(plan: Plan, place: Place, error: QuanetError) -> InvalidPlan:
    if not plan.text:
        return InvalidPlan(str(error))
    return PlanText(plan.text, plan.file or plan.name).wrong(("datasets",), str(error), place.name)


class _Schedule:
    """The order of tasks: rows before the cells that use them, cells of a run close together."""

    def __init__(self, job: Job, engine: Engine, missing: list[Cell], *, finished: int) -> None:
        self.job, self.engine = job, engine
        self.done, self.total = finished, finished + len(missing)
        self.ready: deque[Work] = deque()
        self.waiting: dict[RowsOf, list[Cell]] = {}
        self.forecast = Forecast()
        of_path: dict[Path, RowsOf | None] = {}
        for cell in missing:
            classifier = job.plan.method(cell.method).classifier
            if classifier is None:
                self.ready.append(cell)
                continue
            path = job.rows_path(cell.dataset, classifier, cell.run)
            if path not in of_path:
                of_path[path] = None if job.store.is_whole(path) else RowsOf(cell.dataset, classifier, cell.run)
                if (rows := of_path[path]) is not None:
                    self.waiting[rows] = []
                    self.ready.append(rows)
            rows = of_path[path]
            (self.ready if rows is None else self.waiting[rows]).append(cell)

    def run(self) -> Generator[Fact, None, None]:
        yield Fact(None, 0.0, "", self.done, self.total, None)
        running: set[Work] = set()
        while self.ready or running:
            while self.ready and len(running) < self.engine.slots:
                work = self.ready.popleft()
                running.add(work)
                if isinstance(work, RowsOf):
                    self.engine.submit(work, make_rows, self.job, work.dataset, work.classifier, work.run)
                else:
                    self.engine.submit(work, run_cell, self.job, work)
            work, outcome = self.engine.next()
            running.remove(work)
            if isinstance(outcome, Failure):
                yield from self._fail(work, outcome)
                continue
            self.forecast.learn(work, outcome)
            if isinstance(work, RowsOf):
                self.ready.extendleft(reversed(self.waiting.pop(work)))  # first, so that a run is complete soon
            else:
                self.done += 1
            yield self._fact(work, outcome, "", running)

    def _fail(self, work: Work, failure: Failure) -> Generator[Fact, None, None]:
        """Report the failure of a cell, or of all cells that need the failed rows."""
        failed = [work] if isinstance(work, Cell) else self.waiting.pop(work)
        for cell in failed:
            if cell is not work:
                self.job.store.write_failure(cell, self.job.key(cell), failure.reason, failure.traceback)
            self.done += 1
            yield self._fact(cell, 0.0, failure.reason, set())

    def _fact(self, work: Work, seconds: float, error: str, running: set[Work]) -> Fact:
        rest = [*self.ready, *running, *(cell for cells in self.waiting.values() for cell in cells)]
        left = self.forecast.of(rest, self.engine.slots)
        return Fact(work, seconds, error, self.done, self.total, left)


class Forecast:
    """Predict the duration of tasks from similar finished tasks.

    Examples
    --------
    >>> forecast = Forecast()
    >>> forecast.learn(Cell("imdb", "CC", 0), 2.0)
    >>> forecast.of([Cell("imdb", "CC", 1), Cell("imdb", "EMQ", 1)], slots=2)
    2.0
    """

    def __init__(self) -> None:
        self.durations: dict[tuple[str, str], list[float]] = defaultdict(list)

    def learn(self, work: Work, seconds: float) -> None:
        """Record the duration of a task."""
        self.durations[work.dataset, _kind(work)].append(seconds)

    def of(self, works: Iterable[Work], slots: int) -> float | None:
        """Predicted seconds for these tasks, `slots` at a time; None if no task has finished."""
        means = {name: sum(times) / len(times) for name, times in self.durations.items()}
        if not means:
            return None
        usual = sum(means.values()) / len(means)
        expected = [means.get((work.dataset, _kind(work)), usual) for work in works]
        return max(sum(expected) / slots, max(expected, default=0.0))


def _kind(work: Work) -> str:
    return work.method if isinstance(work, Cell) else f"rows of {work.classifier}"


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """The state of an experiment.

    Attributes
    ----------
    cells : "done", "missing", or the error, by cell.
    seconds : duration of all finished cells: "rows" (shared rows count once), "fit" and "evaluate".
    unlike : dataset, run and classifier of which methods used different rows, computed on different machines. Such
        methods cannot be paired.
    """

    cells: dict[Cell, str]
    seconds: dict[str, float]
    unlike: list[tuple[str, int, str]]


def state_of(folder: str | Path) -> ExperimentState:
    """The state of the experiment in a folder, packed or not."""
    store, found = Store(folder), read_all(folder)
    cells = {}
    for cell, key in cells_of(store.manifest()).items():
        cells[cell] = "done" if cell in found else store.failure(cell, key) or "missing"
    abouts = [about for _, about in found.values()]
    rows = {about["rows"]: about["seconds"]["rows"] for about in abouts}
    seconds = {kind: sum(about["seconds"][kind] for about in abouts) for kind in ("fit", "evaluate")}
    read = defaultdict(set)
    for cell, (_, about) in found.items():
        if about["rows"]:
            read[cell.dataset, cell.run, about["method"]["classifier"]].add(about["rows"])
    unlike = [place for place, different in read.items() if len(different) > 1]
    return ExperimentState(cells, {"rows": sum(rows.values()), **seconds}, unlike)

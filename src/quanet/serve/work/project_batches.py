"""The batches of a project together: their names, their merged state, and which have to be read again."""

from collections.abc import Sequence
from dataclasses import dataclass

from quanet.corpus.state import Accumulator, State, regroup
from quanet.corpus.state_files import from_bytes
from quanet.errors import InvalidData
from quanet.serve.store.answers import AnswerRow, answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.jobs import enqueue
from quanet.serve.store.projects import ProjectRow
from quanet.serve.store.rows import now
from quanet.serve.store.uploads import BatchRow, done_batches, unmerged
from quanet.serve.work.job_context import JobContext, JobRefused
from quanet.serve.work.loaded_models import LoadedModel
from quanet.serve.work.read_options import MOST_FILES, ReadOptions

PAUSE = 1.0  # seconds before batches are put together


@dataclass(frozen=True)
class BatchFiles:
    """How many batches a project has, and the names of the first ones."""

    number: int
    names: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name of all files together, as the command line calls them."""
        return self.names[0] if self.number == 1 else f"{self.names[0]} and {self.number - 1} more files"


@dataclass(frozen=True, eq=False)
class MergedBatches:
    """The state of all batches that the project's model has read.

    Attributes
    ----------
    merged : the state of those that fit; None if none does.
    last : place of the newest batch in it, in the order in which they were finished.
    outdated : batches whose states do not fit the settings of the project: they have to be read again.
    """

    merged: State | None
    last: int
    outdated: tuple[int, ...]

    @property
    def state(self) -> State:
        """The merged state. Raises if there is none yet."""
        if self.merged is None:
            raise JobRefused("The batches are being read. Try again in a moment.")
        return self.merged


def enqueue_overview(connection: Connection, context: JobContext, project: str) -> None:
    """Queue the overview, after a pause: batches that arrive meanwhile are put together at once.

    The pause grows with the time that the overview takes, so that it never takes most of the worker's time.
    """
    pause = max(PAUSE, 3 * context.memory.get(f"seconds {project}", 0.0))
    enqueue(connection, "overview", project, {}, key=f"overview:{project}", not_before=now() + pause)


def batch_files(connection: Connection, project: str, model: str) -> BatchFiles:
    """The files of the batches that a model has read, in the order of their arrival."""
    found = done_batches(connection, project, model)
    return BatchFiles(len(found), tuple(one.name for one in found[: MOST_FILES + 1]))


def merge_batches(context: JobContext, row: ProjectRow, options: ReadOptions, model: LoadedModel) -> MergedBatches:
    """The merged state of the batches: the stored one with the new ones; or all again, if one was read again."""
    with context.store.read() as connection:
        before = answer(connection, row.id, "overview", "project")
    start = _stored_state(context, before, row, options)
    merged = Accumulator(start[0] if start else None)
    last = start[1] if start else 0
    outdated: list[int] = []
    known = start[0].partitions if start else frozenset()
    while True:
        with context.store.read() as connection:
            new = unmerged(connection, row.id, last, model=row.model)
        if not new:
            break
        if any(partition_of(one.id) in known for one in new):  # it was read again: what it was before must go
            known, last, outdated = frozenset(), 0, []
            merged = Accumulator()
            continue
        for state, one in zip(_states(context, new, options), new, strict=True):
            last = max(last, one.done or 0)
            if state is None or state.header.model != model.facts["digest"]:
                outdated.append(one.id)
            else:
                merged.add(state)
    return MergedBatches(merged.state(), last, tuple(outdated))


def partition_of(batch: int) -> str:
    """The name of a batch in states."""
    return f"batch {batch}"


def _stored_state(
    context: JobContext, before: AnswerRow | None, row: ProjectRow, options: ReadOptions
) -> tuple[State, int] | None:
    """The merged state of the last overview, unless the model or the way of reading has changed since."""
    if before is None or before.data.get("model") != row.model or before.data.get("reading") != reading_of(options):
        return None
    content = context.store.blobs.path(str(before.data["state"])).read_bytes()
    return from_bytes(content), int(before.data["merged"])


def reading_of(options: ReadOptions) -> list[str]:
    """What states depend on, besides the model."""
    return [*options.by, f"weight {options.weight or ''}", f"format {options.date_format or ''}"]


def _states(context: JobContext, rows: Sequence[BatchRow], options: ReadOptions) -> list[State | None]:
    found: list[State | None] = []
    for row in rows:
        try:
            state = from_bytes(context.store.blobs.path(row.state).read_bytes())
            fits = state.header.weight == (options.weight or "")
            found.append(regroup(state, options.keys) if fits else None)
        except (InvalidData, FileNotFoundError):  # other columns, another version, or deleted in the meantime
            found.append(None)
    return found

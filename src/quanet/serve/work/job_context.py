"""What a job may use: the store, its project, and the memory of its worker."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quanet.errors import InvalidData, QuanetError
from quanet.serve.store.connection import Connection, ServiceStore
from quanet.serve.store.jobs import JobRow
from quanet.serve.store.projects import ProjectRow, project
from quanet.serve.store.uploads import FileRow

if TYPE_CHECKING:
    from quanet.data.streams import TableSource
    from quanet.serve.work.loaded_models import LoadedModel
    from quanet.serve.work.read_options import ReadOptions

# What a job has computed becomes visible in one transaction, together with the end of the job.
Finish = Callable[[Connection], None]
MOST_ROWS = 5_000_000  # of a file


class JobRefused(QuanetError):
    """A job that cannot be done, for a reason that the user can fix; the message names files as the user does."""


class NotYet(Exception):
    """A job to be done again at a later time: seconds from now, and why."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds


@dataclass(eq=False)
class JobContext:
    """A job, and what it may use.

    Attributes
    ----------
    store, job : where results go, and what is to be done.
    memory : what the worker keeps between jobs, such as models.
    report : called with the part that is done (0 to 1, or None) and what is being done.
    most_rows : of a file.
    """

    store: ServiceStore
    job: JobRow
    memory: dict[str, Any] = field(default_factory=dict)
    report: Callable[[float | None, str], None] = lambda _done, _what: None
    most_rows: int = MOST_ROWS

    def project(self) -> "tuple[ProjectRow, ReadOptions]":
        """The project of the job, and its settings."""
        from quanet.serve.work.read_options import ReadOptions

        with self.store.read() as connection:
            row = project(connection, str(self.job.project))
        return row, ReadOptions.of(row.settings)

    def model(self, row: ProjectRow, options: "ReadOptions") -> "LoadedModel":
        """The model of a project."""
        from quanet.serve.work.loaded_models import LoadedModels
        from quanet.serve.work.read_options import MODEL

        models = self.memory.setdefault("models", LoadedModels())
        return models.get(self.store.models.path(row.model), options.by_label, MODEL)

    @contextmanager
    def named(self, files: Sequence[FileRow]) -> Iterator[list[str]]:
        """The paths of uploaded files; inside, messages and answers call them as the user did."""
        from quanet.data.file_names import retitled, shown_as

        titles = {str(self.store.blobs.path(file.blob)): file.name for file in files}
        with shown_as(titles):
            try:
                yield list(titles)
            except QuanetError as error:
                raise JobRefused(retitled(str(error))) from error

    def follow(self, options: "ReadOptions") -> "Callable[[TableSource, int, int], None]":
        """What reports how much of a file was read, and stops if it has too many rows."""

        def follow(source: "TableSource", done: int, rows: int) -> None:
            self.check_rows(source.name, rows, options)
            self.report(0.8 * done / max(source.size or 1, 1), f"Reading {source.name}: {rows:,} rows")

        return follow

    def check_rows(self, name: str, rows: int, options: "ReadOptions") -> None:
        """Raise if a file has too many rows."""
        most = min(self.most_rows, options.rows or self.most_rows)
        if rows > most:
            raise InvalidData(f"{name} has more than {most:,} rows. Split it into several files.")

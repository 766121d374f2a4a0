"""What a worker of a cluster sends back: a state, or the error of bad input; and which quanet it has."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import quanet
from quanet import errors
from quanet.corpus.processes import one_core
from quanet.errors import EngineFailed, QuanetError

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("state", "error", "message")


def attempt(function: Callable[..., bytes], *arguments: Any) -> tuple[bytes, str, str]:
    """The result of a function on one core, or the class and message of its error.

    A cluster would repeat an error that the user has to fix, and bury its message.

    Examples
    --------
    >>> def refuse():
    ...     raise errors.InvalidData("no such column")
    >>> attempt(refuse)
    (b'', 'InvalidData', 'no such column')
    """
    try:
        with one_core():
            return function(*arguments), "", ""
    except QuanetError as error:
        return b"", type(error).__name__, str(error)


def as_table(results: list[tuple[bytes, str, str]]) -> "pa.Table":
    """Results as a table. Its binary column is not limited to 2 GB."""
    import pyarrow as pa

    states, names, messages = zip(*results, strict=True)
    arrays = [pa.array(states, pa.large_binary()), pa.array(names), pa.array(messages)]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))


def states_of(table: "pa.Table | pa.RecordBatch") -> Iterator[bytes]:
    """The states in a table of results. Raises the first error that it contains."""
    for row in table.to_pylist():
        if row["error"]:
            raise getattr(errors, row["error"], QuanetError)(row["message"])
        yield bytes(row["state"])


def version_probe() -> Callable[[], str]:
    """A function that returns the version of quanet where it runs, "" if there is none.

    It is local, so that it is sent as code: a worker without quanet can call it.
    """

    def probe() -> str:
        try:
            import quanet
        except ImportError:
            return ""
        return str(quanet.__version__)

    return probe


def check_versions(found: Iterable[str], cluster: str) -> None:
    """Raise `EngineFailed` if workers have no quanet, or not the version that runs here."""
    here = quanet.__version__
    for version in sorted(set(found)):
        if not version:
            raise EngineFailed(
                f"The workers of {cluster} do not have quanet, and this process has version {here}. Install it there: "
                f"pip install quanet=={here}"
            )
        if version != here:
            raise EngineFailed(
                f"The workers of {cluster} have quanet {version}, and this process has {here}. Install the same "
                f"version on both: pip install quanet=={here}"
            )

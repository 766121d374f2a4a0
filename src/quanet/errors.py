"""All errors and warnings of quanet, and how messages quote values."""

from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

_QUOTING = Repr()
_QUOTING.maxstring = _QUOTING.maxother = _QUOTING.maxlong = 80
_QUOTING.maxlevel = 3


def brief(value: Any) -> str:
    """A short representation of a value on one line, for messages.

    Examples
    --------
    >>> brief([[[[1]]]]), len(brief("x" * 1000))
    ('[[[...]]]', 80)
    """
    return _QUOTING.repr(value).replace("\n", " ")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar name, and all names.

    Examples
    --------
    >>> nearest("PAC", ["CC", "ACC", "PACC", "EMQ"])
    "Did you mean 'PACC'? Choose from CC, ACC, PACC, EMQ."
    """
    names = list(known)
    lowered = {known_name.lower(): known_name for known_name in reversed(names)}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    hint = f"Did you mean {lowered[close[0]]!r}? " if close else ""
    return f"{hint}Choose from {', '.join(names)}." if names else f"{hint}None are defined."


class QuanetError(Exception):
    """Base class of all errors that the caller can fix. Catch it to show the message instead of a traceback.

    Subclasses in `quanet.errors` name what is wrong, such as `InvalidData` and `InvalidSetting`. They are also errors
    of Python, such as `ValueError`.

    Examples
    --------
    >>> from quanet import EMQ, QuanetError
    >>> try:
    ...     EMQ().fit(["good", "fine"], [1, 1])
    ... except QuanetError as error:
    ...     print(error)
    y has one class only, 1; at least two are needed. Add labelled instances of another class.
    """


class InvalidData(QuanetError, ValueError):
    """Instances, labels, posteriors or tables that cannot be used."""


class BadFile(InvalidData):
    """A file that cannot be read or has other columns than the others; `file` is its name.

    `partition` is the id of the partition that cannot be read, if it is only one.
    """

    def __init__(self, message: str, file: str = "", partition: str = "") -> None:
        super().__init__(message)
        self.file = file
        self.partition = partition


class EmptyFile(InvalidData):
    """A file without rows and without the names of columns."""


class InvalidBags(QuanetError, ValueError):
    """Bags that cannot be drawn from a pool, or do not match it."""


class InvalidSetting(QuanetError, ValueError):
    """An invalid parameter, metric or classifier; `setting` is the field of a settings class, if it is one."""

    setting = ""


class InvalidModel(QuanetError, ValueError):
    """A model folder that is damaged, has a different format, or contains untrusted types."""


class InvalidPlan(QuanetError, ValueError):
    """An invalid plan of an experiment; the message names the line."""


class InvalidPart(InvalidSetting):
    """An unknown class or setting in a plan; `word` is its name."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


class InvalidExperiment(QuanetError, OSError):
    """An experiment folder that is damaged, in use, full or missing."""


class EngineFailed(QuanetError, RuntimeError):
    """A cluster or a worker process that cannot be used, or was lost."""


class DownloadFailed(QuanetError, OSError):
    """A file that could not be downloaded or has the wrong content."""


class MissingExtra(QuanetError, ImportError):
    """An optional dependency that is not installed; the message names the extra."""


def missing_torch(error: ModuleNotFoundError, name: str) -> ImportError:
    """What to raise after a failed import: `MissingExtra`, for what has this name, if PyTorch is not installed."""
    if error.name != "torch":
        return error
    return MissingExtra(f"{name} needs PyTorch, which is not installed. Install it: pip install 'quanet[nn]'")


class QuanetWarning(UserWarning):
    """The result may differ from what the caller expects; the message explains how.

    Filter it as any warning of Python: ``warnings.simplefilter("error", QuanetWarning)`` stops at the first one.

    Examples
    --------
    >>> import warnings
    >>> from quanet import CC, QuanetWarning
    >>> with warnings.catch_warnings(record=True, category=QuanetWarning, action="always") as found:
    ...     _ = CC().fit([[0.0], [0.1], [1.0], [1.1]], ["no", "no", "yes", "Yes"])
    >>> print(found[0].message)
    These labels look like one class: 'Yes', 'yes'. If so, use one spelling: ...
    """


class Detected(QuanetWarning):
    """Something that was not given was found in the data; the message says what, and how to give it."""

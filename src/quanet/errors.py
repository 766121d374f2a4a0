"""Everything quanet raises or warns of, and how messages quote values."""

from reprlib import Repr
from typing import Any

_QUOTING = Repr()
_QUOTING.maxstring = _QUOTING.maxother = _QUOTING.maxlong = 80
_QUOTING.maxlevel = 3


def brief(value: Any) -> str:
    """A value as a message quotes it: on one line, and short, however long or deep it is.

    Examples
    --------
    >>> brief([[[[1]]]]), len(brief("x" * 1000))
    ('[[[...]]]', 80)
    """
    return _QUOTING.repr(value).replace("\n", " ")


class QuanetError(Exception):
    """Base of every error that tells a caller what to change."""


class InvalidData(QuanetError, ValueError):
    """Instances, labels, posteriors or tables that cannot be used as they are."""


class InvalidBags(QuanetError, ValueError):
    """Bags that cannot be drawn from a pool, or that do not fit it."""


class InvalidSetting(QuanetError, ValueError):
    """A parameter, a metric or a classifier that does not do what is asked of it."""


class InvalidModel(QuanetError, ValueError):
    """A model folder that is damaged, of another format, or holds what is not trusted."""


class InvalidPlan(QuanetError, ValueError):
    """A plan of an experiment that cannot be run as it stands; the message names the line."""


class InvalidPart(InvalidSetting):
    """A class or setting in a plan that there is not; `word` is the one at fault."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


class InvalidExperiment(QuanetError, OSError):
    """A folder of an experiment that is damaged, in use, full or not there."""


class DownloadFailed(QuanetError, OSError):
    """A file that could not be fetched, or that is not the one it should be."""


class MissingExtra(QuanetError, ImportError):
    """An optional dependency that is not installed; the message names the extra."""


class QuanetWarning(UserWarning):
    """Something went on differently from what was asked, and says how."""

"""Parameter checks, declared once: what a value may be, and one message for every value that it may not be.

A class declares its checks in `allowed_values`. `Quantifier.fit` calls `check_parameters`; other classes call it in
`fit` or `__post_init__`. A function checks one value with ``positive().check("width", width)``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

from quanet.errors import InvalidSetting, brief


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a parameter may be.

    Parameters
    ----------
    words : completes the sentence "tol must be ...".
    test : whether a value is allowed; a `TypeError` or `ValueError` means no.
    advice : a sentence at the end of the message.

    Examples
    --------
    >>> positive().check("tol", -1, "EMQ")
    Traceback (most recent call last):
    quanet.errors.InvalidSetting: EMQ: tol must be a number above 0; got -1.
    """

    words: str
    test: Callable[[Any], bool]
    advice: str = ""

    def check(self, name: str, value: Any, owner: str = "") -> None:
        """Raise `InvalidSetting` with the parameter, the value and what is allowed, unless the value is allowed."""
        if not self.allows(value):
            place, advice = f"{owner}: " if owner else "", f" {self.advice}" if self.advice else ""
            raise InvalidSetting(f"{place}{name} must be {self.words}; got {brief(value)}.{advice}")

    def allows(self, value: Any) -> bool:
        """Whether a value is allowed."""
        try:
            return bool(self.test(value))
        except (TypeError, ValueError):
            return False

    def __or__(self, other: "Constraint") -> "Constraint":
        """Either of two: ``whole(2) | one_of("auto")``."""
        return Constraint(
            f"{self.words}, or {other.words}",
            lambda value: self.allows(value) or other.allows(value),
            self.advice or other.advice,
        )

    def such_as(self, example: str) -> "Constraint":
        """The same constraint with an example in its message."""
        return replace(self, words=f"{self.words}, such as {example}")


Constraints = Mapping[str, Constraint]


def positive(*, finite: bool = False) -> Constraint:
    """A number above 0."""
    return Constraint("a number above 0", lambda value: value > 0 and (not finite or value < float("inf")))


def at_least(least: float, *, finite: bool = False) -> Constraint:
    """A number that is not below `least`."""
    return Constraint(
        f"a number of at least {least:g}", lambda value: least <= value and (not finite or value < float("inf"))
    )


def whole(least: int, most: int | None = None) -> Constraint:
    """A whole number from `least` on.

    Examples
    --------
    >>> whole(1).allows(1), whole(1).allows(1.0), whole(1, 16).words
    (True, False, 'a whole number from 1 to 16')
    """
    words = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Constraint(
        words, lambda value: isinstance(value, Integral) and least <= int(value) and (most is None or value <= most)
    )


def between(low: float, high: float, *, including: Literal["neither", "low", "high", "both"] = "neither") -> Constraint:
    """A number between two others.

    Examples
    --------
    >>> between(0, 1).words, between(0, 1, including="both").words
    ('a number between 0 and 1', 'a number from 0 to 1')
    >>> between(0, 1, including="low").words, between(0, 0.5, including="high").words
    ('a number of at least 0 and below 1', 'a number above 0 and at most 0.5')
    """
    words = {
        "neither": f"between {low:g} and {high:g}",
        "low": f"of at least {low:g} and below {high:g}",
        "high": f"above {low:g} and at most {high:g}",
        "both": f"from {low:g} to {high:g}",
    }[including]
    return Constraint(
        f"a number {words}",
        lambda value: (
            (low <= value if including in {"low", "both"} else low < value)
            and (value <= high if including in {"high", "both"} else value < high)
        ),
    )


def one_of(*options: str) -> Constraint:
    """One of several words.

    Examples
    --------
    >>> one_of("newton", "em").words, one_of("ae", "rae", "kld").words
    ("'newton' or 'em'", "one of 'ae', 'rae', 'kld'")
    """
    quoted = [repr(option) for option in options]
    words = " or ".join(quoted) if len(options) < 3 else f"one of {', '.join(quoted)}"
    return Constraint(words, lambda value: isinstance(value, str) and value in options)


def instance_of(kind: type, words: str) -> Constraint:
    """An object of a class."""
    return Constraint(words, lambda value: isinstance(value, kind))


def none_or(constraint: Constraint) -> Constraint:
    """None, or what the constraint allows."""
    return constraint | Constraint("None", lambda value: value is None)


# Nearer to 0 or 1, quantiles and resamples cannot be computed.
LEVEL = replace(between(1e-6, 1 - 1e-6, including="both"), words="a number from 0.000001 to 0.999999").such_as("0.95")


def check_level(level: float) -> None:
    """Raise `InvalidSetting` unless a level of confidence lies between 0 and 1, and not too near to either."""
    LEVEL.check("level", level)


def check_parameters(owner: Any) -> None:
    """Raise `InvalidSetting` if a parameter of an object is not allowed by the `allowed_values` of its class."""
    for name, constraint in allowed_values_of(type(owner)).items():
        if hasattr(owner, name):
            constraint.check(name, getattr(owner, name), type(owner).__name__)


def allowed_values_of(kind: type) -> Constraints:
    """The constraints that a class and its base classes declare; the class itself takes precedence."""
    found: dict[str, Constraint] = {}
    for base in reversed(kind.__mro__):
        found |= vars(base).get("allowed_values", {})
    return found


def settings_of(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    """Every combination of the values in a grid, such as ``{"C": [1, 10]}``.

    Raises `InvalidSetting` if the estimator does not have a parameter of that name, or if it has no list of values.

    Examples
    --------
    >>> from quanet import SVMQ
    >>> settings_of(SVMQ(), {"C": [1, 10]})
    [{'C': 1}, {'C': 10}]
    """
    from sklearn.model_selection import ParameterGrid

    try:
        settings = [dict(setting) for setting in ParameterGrid(grid)]
    except (TypeError, ValueError) as error:
        raise InvalidSetting(
            f"grid must give each parameter a list of values, such as {{'C': [1, 10]}}: {error}"
        ) from error
    known = estimator.get_params()
    unknown = sorted({name for setting in settings for name in setting} - set(known))
    if unknown:
        raise InvalidSetting(
            f"{type(estimator).__name__} has no parameter {unknown[0]!r}. Choose from {', '.join(known) or 'none'}."
        )
    return settings

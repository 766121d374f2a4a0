"""Settings of the verbs, declared once: default, check and help of every option.

The command line (`quanet.cli.options`), Ray, Spark and the service derive their options from these classes. A verb
gets an object, not a list of options. A value that is not allowed raises `InvalidSetting`, which names its setting.
"""

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

from quanet.errors import InvalidSetting
from quanet.parameters import between, check_level, whole

if TYPE_CHECKING:
    from quanet.data.periods import Key

COLUMNS, METHOD, READING = "Columns", "Method", "Reading"  # panels of the help
LARGEST_SEED = 2**32 - 1  # that all libraries accept


def setting(
    text: str,
    default: Any = None,
    *,
    check: Callable[[Any], Any] | None = None,
    metavar: str | None = None,
    panel: str = COLUMNS,
    flag: str = "",
    separated: bool = False,
    show_default: bool = True,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Any:
    """A field of a settings class: all that a surface has to know about an option.

    Parameters
    ----------
    text : what the option does: its help.
    default : its value if it is not given.
    check : returns the value to use; raises `InvalidSetting` for one that is not allowed. None is not checked.
    metavar : what the help shows in place of a value.
    panel : the part of the help that shows it.
    flag : its name on the command line; one that begins with "--no-" switches it off. Else it is that of the field.
    separated : whether one text may have several values, separated by commas.
    show_default : whether the help shows the default.
    bounds : the smallest and the largest value, which are checked.
    """
    facts: dict[str, Any] = {"help": text, "check": check, "metavar": metavar, "panel": panel, "flag": flag}
    return field(
        default=default, metadata=facts | {"separated": separated, "show_default": show_default, "bounds": bounds}
    )


def flag_of(one: Field[Any]) -> str:
    """The name of a setting on the command line.

    Examples
    --------
    >>> [flag_of(one) for one in fields(Estimation)]
    ['--level', '--seed', '--no-drift']
    """
    return one.metadata["flag"] or "--" + one.name.replace("_", "-")


def split_names(texts: "tuple[str, ...] | list[str] | None") -> tuple[str, ...]:
    """Names of a setting that may be repeated or hold several, separated by commas.

    Examples
    --------
    >>> split_names(["rooms, price", "size"])
    ('rooms', 'price', 'size')
    """
    return tuple(name.strip() for text in texts or () for name in text.split(",") if name.strip())


def with_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose settings are keyword arguments, one for each field of a settings class.

    Examples
    --------
    >>> @with_settings
    ... def show(name: str, seed: Seed, estimation: Level) -> str:
    ...     return f"{name}: {estimation.level}, {seed.seed}"
    >>> show("interval", level=0.9)
    'interval: 0.9, 0'
    """
    kinds = settings_classes(function)
    plain = [one for one in inspect.signature(function).parameters.values() if one.name not in kinds]
    options = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for kind in kinds.values()
        for one in fields(kind)
    ]
    first = [one for one in plain if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    signature = inspect.signature(function).replace(
        parameters=[*first, *options, *(one for one in plain if one not in first)]
    )

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        given = signature.bind(*positional, **named).arguments
        settings = {
            name: kind(**{one.name: given.pop(one.name) for one in fields(kind) if one.name in given})
            for name, kind in kinds.items()
        }
        return function(**given, **settings)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def settings_classes(function: Callable[..., Any]) -> "dict[str, type[Settings]]":
    """The parameters of a function that are settings classes."""
    kinds = {name: one.annotation for name, one in inspect.signature(function).parameters.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Settings)}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of settings classes: checks every field once, when an object is made.

    Examples
    --------
    >>> Estimation(level=2)
    Traceback (most recent call last):
    quanet.errors.InvalidSetting: level must be a number from 0.000001 to 0.999999, such as 0.95; got 2.
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            value, facts = getattr(self, one.name), one.metadata
            if facts.get("separated"):
                value = split_names([value] if isinstance(value, str) else value)
            try:
                object.__setattr__(self, one.name, value if value is None or not facts else _checked(one, value))
            except InvalidSetting as error:
                error.setting = one.name
                raise

    def given(self, *names: str) -> list[str]:
        """Settings of these names that differ from their defaults, as options of a command.

        Examples
        --------
        >>> Estimation(level=0.9, drift=False).given("seed", "level", "drift")
        ['--level', '0.9', '--no-drift']
        """
        known, parts = {one.name: one for one in fields(self)}, []
        for one in (known[name] for name in names):
            value, flag = getattr(self, one.name), flag_of(one)
            if value == one.default:
                continue
            if isinstance(value, bool):
                parts += [flag]
            elif isinstance(value, tuple) and not one.metadata["separated"]:
                parts += [part for single in value for part in (flag, single)]
            else:
                parts += [flag, ",".join(value) if isinstance(value, tuple) else str(value)]
        return parts


def _checked(one: Field[Any], value: Any) -> Any:
    """The value to use for a setting."""
    check, (low, high) = one.metadata["check"], one.metadata["bounds"]
    if high is not None:
        allowed = whole(low, high) if isinstance(one.default, int) else between(low, high, including="both")
        allowed.check(one.name, value)
    return value if check is None else check(value)


def _checked_keys(by: Any) -> tuple[str, ...]:
    from quanet.data.periods import parse_key

    texts = (by,) if isinstance(by, str) else tuple(by)
    for text in texts:
        parse_key(text)
    return texts


def _checked_date_format(form: str) -> str:
    from quanet.data.periods import check_date_format

    return check_date_format(form)


def _checked_encoding(name: str) -> str:
    from quanet.data.encodings import check_encoding

    return check_encoding(name)


def _checked_delimiter(character: str) -> str:
    from quanet.data.csv_files import check_delimiter

    return check_delimiter(character)


def _checked_level(level: float) -> float:
    check_level(level)
    return level


def _checked_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    from quanet.data.columns import parse_names

    parse_names(texts)
    return texts


@dataclass(frozen=True, kw_only=True)
class TextForm(Settings):
    """How text files are written."""

    encoding: str = setting(
        "Encoding of the files, such as utf-8, latin-1 or cp1252; auto: detected and reported.",
        "auto",
        check=_checked_encoding,
        metavar="NAME",
    )
    delimiter: str = setting(
        "Delimiter of CSV files, such as ';' or tab; auto: found in the first lines.",
        "auto",
        check=_checked_delimiter,
        metavar="CHARACTER",
    )

    @property
    def table_options(self) -> dict[str, Any]:
        """Options of `TableSource`."""
        return {"encoding": self.encoding, "delimiter": self.delimiter}


@dataclass(frozen=True, kw_only=True)
class DateFormat(Settings):
    """How dates are written."""

    date_format: str | None = setting(
        "Format of dates, such as %d/%m/%Y, excel or unix; detected if only one fits.",
        check=_checked_date_format,
        metavar="FORMAT",
    )


@dataclass(frozen=True, kw_only=True)
class TableFormat(TextForm, DateFormat):
    """How tables are written."""


@dataclass(frozen=True, kw_only=True)
class TextColumn(Settings):
    """Where the texts are."""

    text: str | None = setting("Text column; detected if only one column fits.", metavar="COLUMN")


@dataclass(frozen=True, kw_only=True)
class LabelColumn(Settings):
    """Where the labels are."""

    label: str | None = setting("Label column; detected if only one column fits.", metavar="COLUMN")


@dataclass(frozen=True, kw_only=True)
class LabelSpelling(LabelColumn):
    """Where the labels are, and how they are spelled."""

    normalize_labels: bool = setting(
        "Merge labels that differ only in case, spaces, hyphens or Unicode form.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class Grouping(Settings):
    """What rows are grouped by."""

    by: tuple[str, ...] = setting(
        "Group by a column, or by day, week, month, quarter or year of a date column. Repeatable.",
        (),
        check=_checked_keys,
        metavar="COLUMN[:PERIOD]",
    )

    @property
    def keys(self) -> "list[Key]":
        """The columns to group by."""
        from quanet.data.periods import parse_key

        return [parse_key(text) for text in self.by]


@dataclass(frozen=True, kw_only=True)
class CheckedColumns(TableFormat, Grouping, LabelColumn, TextColumn):
    """What a table is checked for."""


@dataclass(frozen=True, kw_only=True)
class LabelledColumns(TableFormat, LabelSpelling, TextColumn):
    """Where labelled texts are."""


@dataclass(frozen=True, kw_only=True)
class Instances(TextColumn):
    """Where instances and their weights are."""

    features: tuple[str, ...] = setting(
        "Numeric columns, if the model does not record which ones it was trained on.",
        (),
        metavar="COLUMN",
        separated=True,
    )
    weight: str | None = setting(
        "Column of weights, such as views: shares of exposure instead of shares of rows.", metavar="COLUMN"
    )


@dataclass(frozen=True, kw_only=True)
class FileColumns(TableFormat, Instances):
    """The same in files."""


@dataclass(frozen=True, kw_only=True)
class TableReading(DateFormat, Instances, Grouping):
    """What is read of the rows of a table, and by what they are grouped."""


@dataclass(frozen=True, kw_only=True)
class Reading(FileColumns, TableReading):
    """The same of files."""


@dataclass(frozen=True, kw_only=True)
class ClusteredReading(Reading):
    """The same, with clusters."""

    cluster: str | None = setting(
        "Rows with the same value, such as an author, are not independent: wider intervals, of their source.",
        metavar="COLUMN",
    )


@dataclass(frozen=True, kw_only=True)
class BadFiles(Settings):
    """What happens to files that cannot be read."""

    skip_bad_files: bool = setting(
        "Skip and report files that cannot be read or have other columns or types.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class Level(Settings):
    """How confident intervals are."""

    level: float = setting(
        "Confidence level of the intervals, between 0 and 1.", 0.95, check=_checked_level, panel=METHOD
    )


@dataclass(frozen=True, kw_only=True)
class Seed(Settings):
    """What random numbers begin with."""

    seed: int = setting(
        "Random seed: the same seed gives the same result.",
        0,
        panel=METHOD,
        bounds=(0, LARGEST_SEED),
    )


@dataclass(frozen=True, kw_only=True)
class Estimation(Seed, Level):
    """How shares and their intervals are estimated."""

    drift: bool = setting(
        "Intervals without drift, as if only class shares had changed since training.",
        default=True,
        panel=METHOD,
        flag="--no-drift",
    )


@dataclass(frozen=True, kw_only=True)
class Alarm(Settings):
    """When a change of a share is an alarm; None for the default, or for what a saved monitor has."""

    level: float | None = setting("1 - probability of a false alarm; default 0.95.", check=_checked_level, panel=METHOD)
    window: float | None = setting(
        "Smoothing window in days or units of the column; default: a week, or 4 batches.", panel=METHOD
    )
    half_life: float | None = setting(
        "Age at which the weight of a batch is halved; default: the window.", panel=METHOD
    )
    tolerance: float | None = setting(
        "Standard deviation between batches that is not a change, such as 0.01.",
        panel=METHOD,
        bounds=(0, 1),
    )


@dataclass(frozen=True, kw_only=True)
class Naming(Settings):
    """What classes are called, and which one comes first."""

    show: str | None = setting(
        "Class to show first.", metavar="LABEL", panel=METHOD, flag="--class", show_default=False
    )
    names: tuple[str, ...] = setting(
        "Names of classes in the answer: 0=negative,1=positive.",
        (),
        check=_checked_names,
        metavar="LABEL=NAME",
        panel=METHOD,
        separated=True,
    )

    @property
    def by_label(self) -> dict[str, str]:
        """Names of classes by label."""
        from quanet.data.columns import parse_names

        return parse_names(self.names)


@dataclass(frozen=True, kw_only=True)
class SavedNaming(Naming):
    """The same, saved with a model."""

    names: tuple[str, ...] = setting(
        "Names of classes, saved with the model: 0=negative,1=positive.",
        (),
        check=_checked_names,
        metavar="LABEL=NAME",
        panel=METHOD,
        separated=True,
    )

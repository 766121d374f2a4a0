"""The settings of a project as the workflows need them, and the command lines that give the same answers."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quanet.data.columns import parse_names
from quanet.data.periods import Key, parse_key

MODEL = "model"  # the folder of the model in answers and commands; the download has this name
MOST_FILES = 20  # named in a command; of more, a pattern


@dataclass(frozen=True)
class ReadOptions:
    """How files are read and answers are computed; the options of the command line.

    Attributes
    ----------
    text, features, label, weight, date_format, encoding, delimiter, normalize_labels, names, level, method, seed : as
        on the command line; None, empty or a default if they are not set.
    show : the class that sentences are about, as the user wrote it.
    by : columns to group by.
    rows : that a file may have; None for the limit of the service.
    webhook : the address that alarms are sent to.
    """

    text: str | None = None
    features: tuple[str, ...] = ()
    label: str | None = None
    by: tuple[str, ...] = ()
    weight: str | None = None
    date_format: str | None = None
    encoding: str = "auto"
    delimiter: str = "auto"
    normalize_labels: bool = False
    names: tuple[str, ...] = ()
    show: str | None = None
    level: float = 0.95
    method: str | None = None
    seed: int = 0
    webhook: str = ""
    rows: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "ReadOptions":
        """The options in the settings of a project."""
        values = {name: settings[name] for name in cls.__dataclass_fields__ if settings.get(name) is not None}
        values |= {name: tuple(values[name]) for name in ("features", "by", "names") if name in values}
        limits = settings.get("limits") or {}
        return cls(**values | ({"rows": limits["rows"]} if limits.get("rows") else {}))

    @property
    def keys(self) -> list[Key]:
        """What to group by."""
        return [parse_key(key) for key in self.by]

    @property
    def date_key(self) -> Key | None:
        """The first column of dates that is grouped by."""
        return next((key for key in self.keys if key.period), None)

    @property
    def class_names(self) -> dict[str, str]:
        """Names of classes by label."""
        return parse_names(self.names)

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `open_files`. The columns of the instances are those of the model."""
        return {"weight": self.weight, "date_format": self.date_format, **self.text_form}

    @property
    def text_form(self) -> dict[str, Any]:
        """Options of `TableSource`."""
        return {"encoding": self.encoding, "delimiter": self.delimiter}

    @property
    def _text_options(self) -> dict[str, Any]:
        """Those of them that differ from the default, as options of a command."""
        return {name: value for name, value in self.text_form.items() if value != "auto"}

    def command(
        self, verb: str, files: Sequence[str], *, options: Sequence[str] = (), keys: bool = True, seeded: bool = True
    ) -> str:
        """The command that gives the same answer, with the options that differ from the defaults.

        Examples
        --------
        >>> ReadOptions(by=("date:month",), level=0.9).command("predict", ["new reviews.csv"])
        "quanet predict model 'new reviews.csv' --by date:month --level 0.9"
        """
        parts = ["quanet", *verb.split(), MODEL, *files_argument(files), *options]
        parts += [part for key in self.by for part in ("--by", key)] if keys else []
        parts += _given(
            weight=self.weight,
            date_format=self.date_format,
            **self._text_options,
            level=self.level if self.level != 0.95 else None,
            seed=self.seed or None if seeded else None,
            names=",".join(self.names),
        )
        return shlex.join([*parts, *(_given(**{"class": self.show}) if verb != "label plan" else [])])

    def fit_command(self, file: str) -> str:
        """The command that trains the same model."""
        parts = ["quanet", "fit", *files_argument([file]), "-o", MODEL]
        parts += _given(
            text=self.text,
            features=",".join(self.features),
            label=self.label,
            **self._text_options,
            method=self.method,
            names=",".join(self.names),
            seed=self.seed or None,
        )
        return shlex.join([*parts, *(["--normalize-labels"] if self.normalize_labels else [])])

    def check_command(self, file: str) -> str:
        """The command that checks a table in the same way."""
        parts = ["quanet", "check", *files_argument([file])]
        parts += _given(text=self.text, label=self.label)
        parts += [part for key in self.by for part in ("--by", key)]
        return shlex.join([*parts, *_given(date_format=self.date_format, **self._text_options)])


def _given(**options: Any) -> list[str]:
    found = {name.replace("_", "-"): value for name, value in options.items() if value not in (None, "")}
    return [part for name, value in found.items() for part in (f"--{name}", str(value))]


def files_argument(names: Sequence[str]) -> list[str]:
    """File names for a command; a name that looks like an option is a path. Of many files, patterns.

    Examples
    --------
    >>> files_argument(["-x.csv", "b.csv"]), files_argument([f"{n}.csv" for n in range(100)])
    (['./-x.csv', 'b.csv'], ['*.csv'])
    """
    if len(names) > MOST_FILES:
        return sorted({f"*{''.join(Path(name).suffixes[-2:])}" for name in names})
    return [f"./{name}" if name.startswith("-") else name for name in names]

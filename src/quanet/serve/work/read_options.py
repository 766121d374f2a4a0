"""The settings of a project as the workflows need them, and the command lines that give the same answers."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from quanet.data.periods import Key
from quanet.data.settings import LabelSpelling, Level, Naming, Reading, Seed

TEXT_FORM = ("encoding", "delimiter")
MODEL = "model"  # the folder of the model in answers and commands; the download has this name
MOST_FILES = 20  # named in a command; of more, a pattern


@dataclass(frozen=True, kw_only=True)
class ReadOptions(Reading, LabelSpelling, Seed, Level, Naming):
    """How files are read and answers are computed: options of the command line, and what only projects have.

    Attributes
    ----------
    method : as on the command line.
    rows : that a file may have; None for the limit of the service.
    webhook : the address that alarms are sent to.
    """

    method: str | None = None
    webhook: str = ""
    rows: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "ReadOptions":
        """The options in the settings of a project."""
        limits = settings.get("limits") or {}
        values = {one.name: settings[one.name] for one in fields(cls) if settings.get(one.name) is not None}
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**values | ({"rows": limits["rows"]} if limits.get("rows") else {}))

    @property
    def date_key(self) -> Key | None:
        """The first column of dates that is grouped by."""
        return next((key for key in self.keys if key.period), None)

    @property
    def of_batches(self) -> "ReadOptions":
        """How batches are read: the columns of the instances are those of the model."""
        return replace(self, text=None, features=())

    def command(
        self, verb: str, files: Sequence[str], *, options: Sequence[str] = (), keys: bool = True, seeded: bool = True
    ) -> str:
        """The command that gives the same answer, with the options that differ from the defaults.

        Examples
        --------
        >>> ReadOptions(by=("date:month",), level=0.9).command("predict", ["new reviews.csv"])
        "quanet predict model 'new reviews.csv' --by date:month --level 0.9"
        """
        names = ["weight", "date_format", *TEXT_FORM, "level", *(["seed"] if seeded else []), "names"]
        given = self.given(*(["by"] if keys else []), *names, *([] if verb == "label plan" else ["show"]))
        return shlex.join(["quanet", *verb.split(), MODEL, *files_argument(files), *options, *given])

    def fit_command(self, file: str) -> str:
        """The command that trains the same model."""
        parts = ["quanet", "fit", *files_argument([file]), "-o", MODEL]
        parts += self.given("text", "features", "label", *TEXT_FORM)
        parts += ["--method", self.method] if self.method else []
        return shlex.join([*parts, *self.given("names", "seed", "normalize_labels")])

    def check_command(self, file: str) -> str:
        """The command that checks a table in the same way."""
        given = self.given("text", "label", "by", "date_format", *TEXT_FORM)
        return shlex.join(["quanet", "check", *files_argument([file]), *given])


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

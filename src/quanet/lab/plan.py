"""The plan of an experiment: its datasets, methods and runs, and its file in TOML. Errors name the line."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib

from quanet.base import Quantifier
from quanet.classifiers.text import is_text
from quanet.data.dataset import Dataset
from quanet.data.loading import PAIR, load_dataset
from quanet.errors import InvalidData, InvalidPart, InvalidPlan, nearest
from quanet.evaluation.evaluate import Cell, DrawsBags
from quanet.files import parse_toml
from quanet.lab.build import Part, check_grid, fits, make
from quanet.lab.store import digest
from quanet.metrics import METRICS
from quanet.protocols import APP, UPP

Keys = Sequence[str]
FORMAT = 1  # of cells; a new number runs all cells again
GRID_BAGS = 21  # prevalences of APP for two classes; with more classes, UPP draws as many bags
PROTOCOLS = ("APP", "UPP", "NPP", "Dirichlet")


class PlanText:
    r"""A TOML file as data, with the line of each value.

    Parameters
    ----------
    text : content of the file.
    name : used in messages.

    Examples
    --------
    >>> source = PlanText('runs = 3\n[methods.CC]\nclassifier = "lstm"\n', "plan.toml")
    >>> source.line(("methods", "CC", "classifier"))
    3
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        try:
            self.data = parse_toml(text)
        except ValueError as error:
            raise InvalidPlan(f"{name} is not valid TOML: {error}") from error

    @classmethod
    def read(cls, path: Path) -> "PlanText":
        """Read a file."""
        try:
            return cls(path.read_text(encoding="utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise InvalidPlan(f"{path} is not a plan: it is not UTF-8 text ({error.reason}).") from error
        except OSError as error:
            raise InvalidPlan(f"The plan {path} cannot be read: {error.strerror}.") from error

    def line(self, keys: Keys, word: str = "") -> int:
        """The line, counted from 1, of the value at these keys, and of the word in it."""
        lines = self.text.splitlines()
        start = 0  # of the current statement, which may span several lines
        for end in range(1, len(lines) + 1):
            try:
                found = parse_toml("\n".join(lines[:end]))
            except ValueError:
                continue
            if _exists(found, keys):
                return start + 1 + _within(lines[start:end], [word, *reversed(keys)])
            start = end
        return self.line(keys[:-1], word) if keys else 1

    def wrong(self, keys: Keys, message: str, word: str = "") -> InvalidPlan:
        """The error to raise about the value at these keys."""
        return InvalidPlan(f"{self.name}, line {self.line(keys, word)}: {message}")


def _exists(data: Any, keys: Keys) -> bool:
    for key in keys:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _within(lines: list[str], words: list[str]) -> int:
    """The first line of a statement that contains one of the words, in order of preference."""
    code = [line.split("#")[0] for line in lines]
    found = (at for word in words if word for at, line in enumerate(code) if word in line)
    return next(found, len(lines) - 1)


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a dataset: a known name, or a path, see `load_dataset`."""

    name: str
    path: str = ""
    text: str | None = None
    label: str = "label"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A training and a test set; `stand_in` names the dataset that they replace, if any."""

    train: Dataset
    test: Dataset
    stand_in: str

    @property
    def fingerprint(self) -> str:
        """A hash of instances and labels, in their order."""
        return "".join(_digest(part.X, part.y.tolist())[:16] for part in (self.train, self.test))


@lru_cache(maxsize=1)  # cells of one dataset are adjacent in a process
def load(place: Place) -> Parts:
    """Load the training and the test set."""
    found = load_dataset(place.path or place.name, text=place.text, label=place.label)
    if not isinstance(found.test, Dataset):
        raise InvalidData(
            f"{place.name} has predefined test bags, but a plan draws its own. Choose a different dataset."
        )
    return Parts(found.train, found.test, found.stand_in or "")


def _digest(X: Any, labels: list[Any]) -> str:
    if not is_text(X):
        return str(joblib.hash((X, labels), hash_name="sha1"))
    digest = hashlib.sha256()
    for text, label in zip(X, labels, strict=True):
        digest.update(f"{len(text)} {label!r} {text}".encode(errors="surrogatepass"))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Classifier:
    """A classifier that methods share: its class and settings, and a grid to choose from, if any."""

    name: str
    part: Part
    grid: Any = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the experiment, a row in its tables.

    Attributes
    ----------
    name : its name in tables.
    part : the class and settings of the quantifier.
    classifier : the shared classifier whose rows it uses; None: the instances themselves.
    grid : settings to choose from, by the metric `select` on bags of held-out training data.
    refit : whether to fit the chosen setting again to all training data; None: depends on the split.
    leak : whether `fit` also gets the test rows, to show the effect of leakage; no class of quanet accepts them.
    datasets : the datasets to run it on; empty: all.
    """

    name: str
    part: Part
    classifier: str | None = None
    grid: Any = None
    select: str = "ae"
    refit: bool | None = None
    leak: bool = False
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an experiment; docs/how-to/experiments.md describes its file.

    Attributes
    ----------
    learn : fraction of the training data for classifiers; methods use the rest. Or None.
    folds : number of folds for cross-fitting classifiers on all training data. Or None.
    runs : seeds, one per run.
    """

    name: str
    datasets: tuple[Place, ...]
    runs: tuple[int, ...]
    learn: float | None
    folds: int | None
    protocol: Part
    metrics: tuple[str, ...]
    classifiers: Mapping[str, Classifier]
    methods: tuple[Method, ...]
    about: str = ""
    python_path: str | None = None
    text: str = field(default="", compare=False)
    file: str = field(default="", compare=False)

    @property
    def cells(self) -> Iterator[Cell]:
        """All cells; cells of a dataset and run are adjacent, so that early results can be compared."""
        for dataset in self.datasets:
            for run in self.runs:
                for method in self.methods:
                    if not method.datasets or dataset.name in method.datasets:
                        yield Cell(dataset.name, method.name, run)

    def method(self, name: str) -> Method:
        """The method with this name."""
        return next(method for method in self.methods if method.name == name)

    def place(self, name: str) -> Place:
        """The location of the dataset with this name."""
        return next(place for place in self.datasets if place.name == name)

    def draws(self, k: int) -> DrawsBags:
        """The protocol for k classes: that of the plan, but UPP instead of a grid for more than two classes."""
        protocol = make(self.protocol)
        if isinstance(protocol, APP) and k > 2 and protocol.prevalences is None:
            return UPP(bag_size=protocol.bag_size, repeats=GRID_BAGS * protocol.repeats)
        chosen: DrawsBags = protocol
        return chosen

    def key(self, cell: Cell, fingerprint: str) -> str:
        """A key that is equal for cells with the same data, settings and seed."""
        method = self.method(cell.method)
        content = asdict(method)
        del content["name"], content["datasets"]
        content["classifier"] = asdict(self.classifiers[method.classifier]) if method.classifier else None
        content |= {"run": cell.run, "protocol": self.protocol, "learn": self.learn, "folds": self.folds}
        return digest({"format": FORMAT, "data": fingerprint, **content})

    def rows_key(self, classifier: str, fingerprint: str, seed: int | None) -> str:
        """The key of the rows of a classifier; `seed` is None if they are the same in every run."""
        content = {"part": self.classifiers[classifier].part, "grid": self.classifiers[classifier].grid}
        content |= {"seed": seed, "learn": self.learn, "folds": self.folds}
        return digest({"format": FORMAT, "data": fingerprint, **content})


def read_plan(path: str | Path) -> Plan:
    r"""Read a plan, and check everything that can be checked without the data.

    Examples
    --------
    >>> import tempfile
    >>> text = 'datasets = ["imdb"]\nruns = 2\nlearn = 0.6\n[classifiers.lstm]\nkind = "LSTMClassifier"\n'
    >>> with tempfile.TemporaryDirectory() as home:
    ...     file = Path(home) / "small.toml"
    ...     _ = file.write_text(text + '[methods.CC]\nclassifier = "lstm"\n')
    ...     plan = read_plan(file)
    >>> plan.name, list(plan.cells)[0]
    ('small', Cell(dataset='imdb', method='CC', run=0))
    """
    file = Path(path)
    return _Reader(PlanText.read(file), file).plan()


class _Reader:
    """Reads one file, so that each error can name its line."""

    def __init__(self, source: PlanText, file: Path) -> None:
        self.source = source
        self.data = source.data
        self.home = file.resolve().parent
        self.name = file.stem
        self.python_path: str | None = None

    def plan(self) -> Plan:
        self.only(
            (),
            *("name", "about", "datasets", "runs", "learn", "folds", "metrics", "protocol", "python_path"),
            *("classifiers", "methods"),
        )
        if (folder := self.get((), "python_path", str)) is not None:
            self.python_path = str((self.home / folder).resolve())
        learn, folds = self.split()
        datasets = self.datasets()
        classifiers = self.classifiers([place.name for place in datasets])
        return Plan(
            name=self.get((), "name", str) or self.name,
            about=self.get((), "about", str) or "",
            datasets=datasets,
            runs=self.runs(),
            learn=learn,
            folds=folds,
            protocol=self.protocol(),
            metrics=self.metrics(),
            classifiers=classifiers,
            methods=self.methods(classifiers, [place.name for place in datasets]),
            python_path=self.python_path,
            text=self.source.text,
            file=self.source.name,
        )

    def only(self, keys: Keys, *known: str) -> None:
        """Raise `InvalidPlan` for an unknown key."""
        for name in self.table(keys):
            if name not in known:
                place = f"[{'.'.join(keys)}]" if keys else "a plan"
                raise self.source.wrong((*keys, name), f"Unknown key {name!r} in {place}. {nearest(name, known)}")

    def table(self, keys: Keys) -> dict[str, Any]:
        found: Any = self.data
        for at, key in enumerate(keys):
            found = found.get(key, {})
            if not isinstance(found, dict):
                raise self.source.wrong(keys[: at + 1], f"{key} must be a table; got {found!r}.")
        return found

    def get(self, keys: Keys, name: str, kind: Any) -> Any:
        """A value of this type, or None. Raises `InvalidPlan` for a different type."""
        value = self.table(keys).get(name)
        if value is not None and not fits(value, kind):
            wanted = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}[kind]
            raise self.source.wrong((*keys, name), f"{name} must be {wanted}; got {value!r}.")
        return value

    def names(self, keys: Keys, name: str) -> list[Any]:
        """A list that is not empty and has no duplicates."""
        value = self.table(keys).get(name)
        if not isinstance(value, list) or not value:
            raise self.source.wrong((*keys, name), f"{name} must be a list with at least one value; got {value!r}.")
        for at, one in enumerate(value):
            if one in value[:at]:
                raise self.source.wrong((*keys, name), f"{name} contains {one!r} twice.", str(one))
        return value

    def split(self) -> tuple[float | None, int | None]:
        learn, folds = self.get((), "learn", float), self.get((), "folds", int)
        if (learn is None) == (folds is None):
            raise self.source.wrong(
                ("learn",) if learn else (),
                "Set either learn, the fraction of training data for classifiers, or folds.",
            )
        if learn is not None and not 0 < learn < 1:
            raise self.source.wrong(("learn",), f"learn must lie between 0 and 1; got {learn}.")
        if folds is not None and folds < 2:
            raise self.source.wrong(("folds",), f"folds must be at least 2; got {folds}.")
        return learn, folds

    def runs(self) -> tuple[int, ...]:
        value = self.data.get("runs", 1)
        if isinstance(value, list):
            seeds = self.names((), "runs")
            if all(fits(seed, int) and seed >= 0 for seed in seeds):
                return tuple(seeds)
        elif fits(value, int) and value > 0:
            return tuple(range(value))
        raise self.source.wrong(
            ("runs",), f"runs must be a number of runs, or a list of seeds (integers from 0); got {value!r}."
        )

    def datasets(self) -> tuple[Place, ...]:
        found = []
        for one in self.names((), "datasets"):
            if isinstance(one, str):
                found.append(Place(one))
                continue
            known = list(Place.__dataclass_fields__)
            wrong = next((key for key in one if key not in known), "") if isinstance(one, dict) else str(one)
            if wrong:
                raise self.source.wrong(
                    ("datasets",), f"Unknown key {wrong!r} of a dataset. {nearest(wrong, known)}", wrong
                )
            if not {"name", "path"} <= set(one) or not all(isinstance(value, str) for value in one.values()):
                raise self.source.wrong(
                    ("datasets",),
                    "A dataset must be a name, or a table with the strings name and path.",
                    str(one.get("name", "")),
                )
            files = (str((self.home / part).resolve()) for part in one["path"].split(PAIR))
            found.append(Place(**(one | {"path": PAIR.join(files)})))
        twice = [place.name for at, place in enumerate(found) if place.name in [other.name for other in found[:at]]]
        if twice:
            raise self.source.wrong(("datasets",), f"datasets contains {twice[0]!r} twice.", twice[0])
        return tuple(found)

    def protocol(self) -> Part:
        part = {"kind": "APP"} | self.table(("protocol",))
        if part["kind"] not in PROTOCOLS:
            known = nearest(str(part["kind"]), PROTOCOLS)
            raise self.source.wrong(("protocol", "kind"), f"Unknown protocol {part['kind']!r}. {known}")
        self.made(("protocol",), part)
        return part

    def metrics(self) -> tuple[str, ...]:
        if "metrics" not in self.data:
            return ("ae", "rae", "kld")
        for one in (names := self.names((), "metrics")):
            self.metric(("metrics",), one)
        return tuple(names)

    def metric(self, keys: Keys, name: Any) -> None:
        known = [one.name for one in METRICS.values() if not one.per_class]
        if name not in known:
            raise self.source.wrong(keys, f"Unknown metric {name!r}. {nearest(str(name), known)}", str(name))

    def classifiers(self, datasets: list[str]) -> dict[str, Classifier]:
        found = {}
        for name in self.table(("classifiers",)):
            keys = ("classifiers", name)
            part = dict(self.table(keys))
            grid = part.pop("grid", None)
            if part.pop("datasets", None) is not None:
                self.known((*keys, "datasets"), self.names(keys, "datasets"), datasets, "dataset")
            made = self.made(keys, part)
            if not hasattr(made, "predict_proba"):
                raise self.source.wrong((*keys, "kind"), f"{part.get('kind', name)} has no predict_proba.")
            self.grid((*keys, "grid"), made, grid)
            found[name] = Classifier(name, part, grid)
        return found

    def made(self, keys: Keys, part: Part) -> Any:
        try:
            return make(part, self.python_path)
        except InvalidPart as error:
            entries = self.table(keys).items()
            at = next((name for name, value in entries if error.word in (name, value)), "")
            at = at or next((name for name, value in entries if error.word in str(value)), "")
            raise self.source.wrong((*keys, at) if at else keys, str(error), error.word) from error

    def grid(self, keys: Keys, made: Any, grid: Any) -> None:
        if grid is not None:
            try:
                check_grid(made, grid)
            except InvalidPart as error:
                raise self.source.wrong(keys, str(error), error.word) from error

    def methods(self, classifiers: Mapping[str, Classifier], datasets: list[str]) -> tuple[Method, ...]:
        found = [one for name in self.table(("methods",)) for one in self.method(name, classifiers, datasets)]
        if not found:
            raise InvalidPlan(f"{self.source.name} has no methods. Add one: [methods.CC].")
        return tuple(found)

    def method(self, name: str, classifiers: Mapping[str, Classifier], datasets: list[str]) -> Iterator[Method]:
        keys = ("methods", name)
        part = {"kind": name} | self.table(keys)
        grid, only, _ = (part.pop(one, None) for one in ("grid", "datasets", "settings"))
        options = {key: self.get(keys, key, kind) for key, kind in (("select", str), ("refit", bool), ("leak", bool))}
        for key in options:
            part.pop(key, None)
        self.metric((*keys, "select"), options["select"] or "ae")
        if only is not None:
            self.known((*keys, "datasets"), self.names(keys, "datasets"), datasets, "dataset")
        shared: list[str | None] = [None]
        if isinstance(part.get("classifier"), str | list):
            given = part.pop("classifier")
            shared = [given] if isinstance(given, str) else list(self.names(keys, "classifier"))
            self.known((*keys, "classifier"), shared, list(classifiers), "classifier")
        part |= self.table((*keys, "settings"))  # for parameters whose names are also keys of a plan
        made = self.made(keys, part)
        if not isinstance(made, Quantifier):
            raise self.source.wrong((*keys, "kind"), f"{part['kind']} is not a quantifier, so it cannot be a method.")
        if options["leak"] and ":" not in part["kind"]:
            raise self.source.wrong(
                (*keys, "leak"), f"{part['kind']} takes no test data. leak is for your own classes."
            )
        self.grid((*keys, "grid"), made, grid)
        for rows in shared:
            able = self.table(("classifiers", rows)).get("datasets", datasets) if rows else datasets
            chosen = tuple(one for one in only or datasets if one in able)
            if not chosen:
                raise self.source.wrong(
                    (*keys, "classifier"), f"{name} and its classifier {rows!r} have no dataset in common."
                )
            title = f"{name} ({rows})" if len(shared) > 1 else name
            yield Method(
                name=title,
                part=part,
                classifier=rows,
                grid=grid,
                select=options["select"] or "ae",
                refit=options["refit"],
                leak=bool(options["leak"]),
                datasets=chosen,
            )

    def known(self, keys: Keys, names: list[Any], defined: list[str], what: str) -> None:
        """Raise `InvalidPlan` for a name that the plan does not define."""
        for one in names:
            if one not in defined:
                raise self.source.wrong(keys, f"Unknown {what} {one!r}. {nearest(str(one), defined)}", str(one))

"""Calls of the command line, made at random from the commands' own options, so that new options are tried too."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from quanet.cli.main import app

from .hostile import COLUMNS, CONFIGS, NAMES, TEXTS, hostile_plan, hostile_table, plain_table

WEIGHTS = {
    "check": 5,
    "fit": 5,
    "predict": 7,
    "diff": 5,
    "diagnose": 3,
    "evaluate": 4,
    "compare": 2,
    "label plan": 4,
    "refine": 5,
    "correct": 6,
    "monitor": 4,
    "merge": 2,
    "serve": 2,
    "worker": 1,
    "token create": 1,
    "token list": 1,
    "token delete": 1,
    "info": 2,
    "methods": 2,
    "datasets list": 1,
    "datasets show": 3,
    "datasets fetch": 1,
    "experiment run": 3,
    "experiment show": 1,
    "experiment pack": 1,
    "experiment table": 2,
    "experiment figure": 2,
}
COMMAND = typer.main.get_command(app)  # made once: that takes longer than most calls
LEFT_OUT = {"demo"}  # needs the reviews, and minutes
INTEGERS = ("1", "2", "3", "10", "0", "-1", "5", "1e3", "2.5", "nan", "x", "", str(2**31), str(2**63), "9" * 40)
NUMBERS = (
    "0.5",
    "0.9",
    "0.95",
    "0",
    "1",
    "-1",
    "2",
    "nan",
    "inf",
    "-inf",
    "1e300",
    "1e-300",
    "x",
    "",
    "0x1",
    "9" * 400,
)
MODULES = (
    "os:getcwd",
    "..:x",
    ":x",
    "x:",
    "json:JSONDecoder",
    "sklearn.naive_bayes:GaussianNB",
    "quanet.errors:QuanetError",
)
QUICK = (
    "EMQ",
    "CC",
    "ACC",
    "PACC",
    "pcc",
    "HDy",
    "KDEyML",
    "T50",
    "MS",
    "TrainPrevalence",
    "SVMQ",
    "EDy",
    "ReadMe",
    "RLLS",
)
GOOD: dict[str, tuple[str, ...]] = {  # by the parameter's name: values that mean something
    "text": ("text", "text", "a", "date"),
    "label": ("label", "label", "product", "score", "date", "text"),
    "features": ("a,b", "a", "a, b", "score,a", "a,a", ","),
    "by": ("product", "date:month", "date:day", "date", "label", "score", "a:year", "product:", "date:era"),
    "human": ("human", "human", "human", "human", "judge", "text"),
    "judge": ("judge", "judge", "judge", "score", "human", "label"),
    "show": ("pos", "neg", "1"),
    "cluster": ("product", "date", "label", "text", "human"),
    "against": ("rest", "previous", "lamp", "x"),
    "between": ("lamp", "radio", "x"),
    "fail_over": ("0", "0.05", "0.5", "1", "2", "nan", "-1"),
    "method": (
        *QUICK,
        *QUICK,
        "Ensemble",
        "OneVsRest",
        "DyS.x",
        "read_table",
        "OACC",
        "GridSearchQ",
        "KDEyCS",
        *MODULES,
    ),
    "classifier": ("TextClassifier", "StackedClassifier", "EMQ", "Interval", "FrankHall", *MODULES),
    "setting": (
        *("cv=2", "cv=10", "cv=0.5", "cv=0", "cv=1", "cv=-1", "cv=[]", "cv=1979-05-27", "cv=nan", "cv=true", "cv='x'"),
        *("classifier__C=1", "classifier__C=nan", "classifier=3", "classifier='precomputed'", "calibration=x"),
        *("=", "x", "x=1", "__class__=1", "cv=" + "[" * 5000, "cv={a={b=1}}", "cv=" + "{a=" * 3000, "kind=3"),
        *("bandwidth=0", "bandwidth=nan", "bins=0", "bins=1e9", "random_state=-1", "steps=[]", "cv=12:30:00"),
    ),
    "encoding": (
        "auto",
        "utf-8",
        "utf-16",
        "latin-1",
        "cp1252",
        "ascii",
        "undefined",
        "utf\x008",
        "rot13",
        "hex",
        "idna",
        "mbcs",
    ),
    "delimiter": ("auto", ",", ";", "tab", "|", "", '"', "\n", ";;"),
    "date_format": ("%Y-%m-%d", "%d/%m/%Y", "%Y", "%", "%Q", "%Y%Y", "%-d", "x", "%j", "excel", "unix"),
    "protocol": (
        *("app", "upp", "npp", "dirichlet", "dirichlet:0.5", "dirichlet:inf", "dirichlet:1e300", "dirichlet:nan"),
        *("dirichlet:1e-300", "by:product", "by:date:month", "by:text", "by:", "by:x", "APP:3", "dirichlet:0"),
    ),
    "metric": ("ae", "rae", "kld", "nkld", "se", "bias", "x"),
    "methods": ("cc,emq", "cc", "emq,emq", "pcc,acc", "svmq,cc", ",", "cc;x", "pacc", "x", "quick"),
    "jobs": ("1", "1", "1", "1", "1", "0", "-1", "x"),  # others start processes, which takes seconds
    "workers": ("1", "0", "-1", "x"),  # these, too
    "metrics": ("ae", "kld"),
    "family": ("counting", "matching"),
    "name": ("emq", "EMQ", "emqq", "quanet", "read_table"),
    "names": ("imdb", "x", "imdb kindle"),
    "mirror": ("http://127.0.0.1:9", "ftp://x", "x", "http://", "http://[", "http://a b"),
    "only": ("method=CC", "dataset=words,run=0", "run=0", "run=9", "x=1", "=", ",,", "method=CC,method=EMQ"),
    "engine": ("joblib",),
    "device": ("cpu", "cuda", "x"),
    "aside": ("CC", "EMQ"),
    "host": ("127.0.0.1", "localhost", "::1", "0.0.0.0", "256.1.1.1", ":", ""),  # others would be looked up
    "public_url": ("https://quanet.example.org", "http://x", "x", "https://", "https://a/b", "http://[", "ftp://x"),
    "seed": ("0", "1", "-1", str(2**32), str(2**64)),
}
ENDINGS = {
    "plot": (".png", ".svg", ".pdf", ".gif", ""),
    "report": (".html", ".md", ".json", ".txt", ""),
    "bags": (".csv", ".json", ""),
    "save_state": (".arrow", ".arrow", ".csv", ""),
    "output": (".csv", ".json", ".txt", ".html", ".md", ".parquet", ".xlsx", ".png", ".svg", ".tex", ".pdf", ""),
}
NO_FILES = (
    "missing.csv",
    "missing.xlsx#March",
    "#",
    "no-*.db#select * from x",
    ".",
    "/dev/null",
    "*.csv",
    "no-*.csv",
    "a\nb.csv",
    "[x].csv",
    "",
    "~",
)
NO_OUTPUTS = (".", "", "missing/x.csv", "/dev/null", "/proc/x.csv", "a\nb.csv", "\udcff.html", "x" * 300)
SLOW_IF_DEFAULT = {  # or would serve forever, in the folder of this user
    "serve": ("check", "data"),
    "worker": ("once", "data"),
    "token create": ("data",),
    "token list": ("data",),
    "token delete": ("data",),
    "experiment run": ("jobs",),
    "evaluate": ("repeats",),
    "compare": ("repeats", "methods"),
    "fit": ("method",),
}


@dataclass
class Case:
    """A call of the command line in a folder of its own.

    Attributes
    ----------
    verb : the command.
    words : after the program's name.
    files : to write first, by name.
    stdin : what standard input holds.
    """

    verb: str
    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""


@dataclass(frozen=True)
class Shared:
    """What all cases may read: folders of models and of experiments, saved states; right ones and damaged ones."""

    models: tuple[str, ...]
    bad_models: tuple[str, ...]
    experiments: tuple[str, ...]
    states: tuple[str, ...]


def commands() -> Iterator[tuple[str, Any]]:
    """All commands by what is typed, such as "experiment run"."""

    def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                yield from walk(f"{path} {name}".strip(), inner)
        elif path not in LEFT_OUT:
            yield path, command

    return walk("", COMMAND)


def make_case(seed: int, number: int, shared: Shared, verb: str | None = None) -> Case:
    """The same case for the same seed and number."""
    rng = random.Random(f"{seed}:{number}")
    known = dict(commands())
    names = list(known)
    verb = verb or rng.choices(names, [WEIGHTS.get(name, 3) for name in names])[0]
    return _Maker(rng, shared, verb, known[verb]).case()


class _Maker:
    """Makes one case."""

    def __init__(self, rng: random.Random, shared: Shared, verb: str, command: Any) -> None:
        self.rng, self.shared, self.command = rng, shared, command
        self.mild = rng.random() < 0.5  # mostly right, so that the call gets far
        self.made = Case(verb, verb.split())

    def case(self) -> Case:
        arguments = [param for param in self.command.params if param.param_type_name == "argument"]
        options = [param for param in self.command.params if param.param_type_name == "option" and param.name != "help"]
        always = [one for one in options if one.required or one.name in SLOW_IF_DEFAULT.get(self.made.verb, ())]
        others = [one for one in options if one not in always]
        chosen = always + self.rng.sample(others, min(len(others), self.rng.choice((0, 1, 1, 2, 2, 3, 5))))
        words = [word for param in arguments for word in self.argument(param)]
        for param in chosen:
            words += self.option(param)
        if self.odd(0.06):
            words.insert(self.rng.randrange(len(words) + 1), self.rng.choice(TEXTS[1:]))
        if self.odd(0.06):
            self.made.files["quanet.toml"] = self.rng.choice(CONFIGS)
        self.made.words += words
        return self.made

    def odd(self, share: float) -> bool:
        """Now and then, but never in a mild case."""
        return not self.mild and self.rng.random() < share

    def some(self, values: Any, first: int) -> Any:
        """One of the values, in a mild case of the first ones."""
        return self.rng.choice(values[:first] if self.mild else values)

    def argument(self, param: Any) -> list[str]:
        if self.odd(0.02):
            return []
        if param.name == "model":
            return [self.rng.choice(self.shared.bad_models if self.odd(0.2) else self.shared.models)]
        if param.name == "folder":
            return [self.some(self.shared.experiments, 2)]
        if param.name == "plan":
            return [self.plan()]
        if param.name == "states":
            return [self.some(self.shared.states, 2) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        if param.name in ("files", "train", "test"):
            count = self.rng.choice((1, 1, 1, 1, 2)) if param.name == "files" else 1
            return [self.file() for _ in range(count)]
        if param.name == "data":
            return [self.some((self.file(), f"{self.file()}::{self.file()}", "imdb", "x", "."), 2)]
        return [self.string(param.name)] if param.required or self.rng.random() < 0.5 else []

    def file(self) -> str:
        if self.odd(0.1):
            return self.rng.choice((*NO_FILES, *self.shared.states))
        if self.made.verb in ("predict", "monitor", "diagnose") and self.rng.random() < 0.1:
            return self.some(self.shared.states, 2)
        ending, content = plain_table(self.rng) if self.mild and self.rng.random() < 0.6 else hostile_table(self.rng)
        if self.rng.random() < 0.05:
            self.made.stdin = content
            return "-"
        name = self.rng.choice(NAMES) if self.rng.random() < 0.2 else f"table{len(self.made.files)}"
        self.made.files[name + ending] = content
        return name + ending if self.odd(0.2) else f"./{name}{ending}"

    def plan(self) -> str:
        name = f"{self.rng.choice(NAMES)}.toml" if self.odd(0.4) else "plan.toml"
        self.made.files[name] = hostile_plan(self.rng, self.file(), mild=self.mild)
        return f"./{name}"

    def option(self, param: Any) -> list[str]:
        name = self.rng.choice([*param.opts, *param.secondary_opts])
        if param.is_flag:
            return [name]
        times = self.rng.choice((1, 1, 2)) if param.multiple else 1
        return [word for _ in range(times) for word in (name, *(self.value(param) for _ in range(param.nargs)))]

    def value(self, param: Any) -> str:
        kind, choices = _kind(param)
        if self.made.verb == "fit" and param.name == "output":
            return self.some(("model", "plain", "x/y", "[red]", "a\nb", "", "."), 4)
        if kind == "path":
            return self.path(param.name)
        if param.name in GOOD and (param.name in ("jobs", "workers", "engine", "host") or self.rng.random() < 0.8):
            return self.some(GOOD[param.name], 5)
        if choices:
            return self.some([*choices, "x", ""], len(choices))
        if kind == "int":
            return self.some(INTEGERS, 4)
        if kind == "float":
            return self.some(NUMBERS, 3)
        return self.string(param.name)

    def path(self, name: str) -> str:
        if name == "state":
            return self.some(("state", "[x]", "a\nb", "/dev/null", "", "x/y"), 2)
        if name == "limits":
            return self.rng.choice((self.file(), "missing.json"))
        if self.odd(0.2):
            return self.rng.choice(NO_OUTPUTS)
        stem = self.rng.choice(NAMES) if self.rng.random() < 0.1 else f"out-{name}"
        kind = {"experiment figure": "plot", "merge": "save_state"}.get(self.made.verb, name)
        return stem + self.some(ENDINGS.get(kind, (".csv", ".json", ".html", ".png", "")), 3)

    def string(self, name: str) -> str:
        if name in GOOD and self.rng.random() < 0.5:
            return self.some(GOOD[name], 5)
        return self.rng.choice(COLUMNS if self.rng.random() < 0.4 else TEXTS)


def _kind(param: Any) -> tuple[str, list[str]]:
    """What a parameter takes: the name of its type in small letters, and its choices."""
    described = getattr(param, "type_descriptor", None)
    if described is None:  # of typer before 0.20, which takes its types from click
        choices = getattr(param.type, "choices", None) or ()
        name = type(param.type).__name__.lower()
        kind = next((one for one in ("path", "int", "float") if one in name), "str")
        return kind, [str(getattr(one, "value", one)) for one in choices]
    annotation = described.annotation
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "enum", [str(one.value) for one in annotation]
    return getattr(annotation, "__name__", "str").lower(), []


def write_files(case: Case, folder: Path) -> None:
    """Write what a case reads into its folder."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)  # for names such as [/].csv
        path.write_bytes(content)

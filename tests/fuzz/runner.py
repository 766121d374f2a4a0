"""Runs cases in this process and says what was wrong with how they ended."""

import faulthandler
import io
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from quanet import EMQ, save
from quanet.cli import main
from quanet.data import download

from .cases import COMMAND, Case, Shared, make_case, write_files
from .hostile import as_csv, base_rows, posteriors

PROCESSOR, CLOCK = 40.0, 300.0  # seconds that a case may take, of the processor and in all
MEMORY = 6 * 2**30  # bytes that cases may take beyond what is taken before them
PLAN = """datasets = [{ name = "words", path = "train.csv::train.csv" }]
runs = 1
learn = 0.6
[protocol]
bag_size = 10
repeats = 1
[classifiers.one]
kind = "TextClassifier"
embedding_size = 2
[methods.CC]
classifier = "one"
[methods.EMQ]
classifier = "one"
"""


class Hang(BaseException):
    """A case has taken too long."""


@dataclass
class Ended:
    """How a case ended: its exit code, what it printed, and what was wrong, if anything."""

    code: int | None
    out: bytes
    err: str
    wrong: str
    seconds: float


def run_case(case: Case, folder: Path) -> Ended:
    """Run a case in an empty folder."""
    write_files(case, folder)
    started = time.perf_counter()
    with _call(case, folder) as (out, err, unheard):
        code, trace = _ended()
    printed, said = out.getvalue(), err.getvalue().decode("utf-8", "replace")
    seconds = time.perf_counter() - started
    return Ended(code, printed, said, trace or _wrong(case, folder, code, said, unheard), seconds)


def _ended() -> tuple[int | None, str]:
    try:
        with mock.patch.object(main, "app", COMMAND):
            main.run()
    except SystemExit as end:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            return None, traceback.format_exc()
        return (end.code if isinstance(end.code, int) else 0 if end.code is None else 1), ""
    except BaseException:  # noqa: BLE001 - whatever it is, it would be a traceback
        return None, traceback.format_exc()
    return 0, ""


def _wrong(case: Case, folder: Path, code: int | None, err: str, unheard: list[str]) -> str:
    """What is wrong with how a call ended, or nothing."""
    lines = [line for line in err.splitlines() if line.strip()]
    if unheard:
        return f"Printed after the end: {unheard[0]}"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    if code == 3 and not lines[-1].startswith("Failed:"):
        return "exit code 3 without a message"
    if "Traceback" in err:
        return "a traceback on standard error"
    if code == 1 and not any(line.startswith(("Error:", "Failed:")) for line in lines):
        return "exit code 1 without a message"
    if code == 1 and not any(line.startswith("Failed:") for line in lines) and not lines[-1].startswith("Error:"):
        return "a message of several lines"
    if code == 2 and not lines[-1].startswith("Error:"):
        return "exit code 2 without a message of one line"
    if code == 0 and any(line.startswith("Error:") for line in lines):
        return "an error, but exit code 0"
    made = [path for path in folder.rglob(".*") if not path.is_relative_to(folder / "cache")]
    left = [path.name for path in made if path.name not in case.files and not _is_lock(path)]
    return f"left behind: {left}" if left else ""


def _is_lock(path: Path) -> bool:
    """The lock of an experiment that has begun stays, and is free; so does the mark of a folder that can be written."""
    return (path.name == ".lock" and (path.parent / "experiment.json").exists()) or path.name == ".writable"


@contextmanager
def _call(case: Case, folder: Path) -> Iterator[tuple[io.BytesIO, io.BytesIO, list[str]]]:
    """Inside, the process is the called one: its words, streams, folder, limits, and warnings as errors."""
    out, err, unheard = io.BytesIO(), io.BytesIO(), []
    kept: dict[str, Any] = {
        name: getattr(sys, name) for name in ("argv", "stdin", "stdout", "stderr", "unraisablehook")
    }
    before, at, environment = threading.excepthook, Path.cwd(), os.environ.copy()
    modules, path = set(sys.modules), list(sys.path)
    sys.argv = ["quanet", *case.words]
    sys.stdin = io.TextIOWrapper(io.BytesIO(case.stdin))
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="strict", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
    sys.unraisablehook = lambda args: unheard.append(f"{args.exc_value!r} in {args.object!r}")
    threading.excepthook = lambda args: unheard.append(f"{args.exc_value!r} in a thread")
    os.environ.update(COLUMNS="100", QUANET_CACHE=str(folder / "cache"), QUANET_MIRROR="http://127.0.0.1:9")
    os.chdir(folder)
    try:
        with _limited(), warnings.catch_warnings(), mock.patch.object(download, "PAUSE", 0.0):
            warnings.simplefilter("error")
            yield out, err, unheard
    finally:
        os.chdir(at)
        os.environ.clear()
        os.environ.update(environment)
        streams = sys.stdout, sys.stderr
        for name, value in kept.items():
            setattr(sys, name, value)
        threading.excepthook = before
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name in ("x", "a"):
                del sys.modules[name]
        for stream in streams:
            if not stream.closed:
                stream.detach()


@contextmanager
def _limited() -> Iterator[None]:
    """Inside, too much time raises `Hang`, and too much memory a MemoryError."""

    def stop(*_: object) -> None:
        raise Hang("the case takes too long")

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR)
    signal.setitimer(signal.ITIMER_REAL, CLOCK)
    if os.environ.get("PYTEST_CURRENT_TEST") is None:
        faulthandler.dump_traceback_later(2 * CLOCK, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if os.environ.get("PYTEST_CURRENT_TEST") is None:
            faulthandler.cancel_dump_traceback_later()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def make_shared(folder: Path) -> Shared:
    """Models and experiments that cases read, made by the command line itself."""
    import random

    rows = base_rows(random.Random(0), 120)
    (folder / "train.csv").write_text(as_csv(rows))
    for row in rows[::3]:
        row["label"] = "mid"
    (folder / "three.csv").write_text(as_csv(rows))
    (folder / "plan.toml").write_text(PLAN)
    _must("fit", "train.csv", "--text", "text", "--label", "label", "--method", "EMQ", "-o", "words", folder=folder)
    _must(
        "fit", "train.csv", "--features", "a,b", "--label", "label", "--method", "PACC", "-o", "numbers", folder=folder
    )
    _must("fit", "three.csv", "--text", "text", "--label", "label", "--method", "CC", "-o", "three", folder=folder)
    _must("experiment", "run", "plan.toml", "--jobs", "1", "-o", "experiment", folder=folder)
    _must("experiment", "pack", "experiment", "-o", "packed", folder=folder)
    for name, by in {"days": "date:day", "products": "product"}.items():
        words = ("predict", "words", "train.csv", "--text", "text", "--by", by, "--save-state", f"{name}.arrow")
        _must(*words, folder=folder)
    whole = (folder / "days.arrow").read_bytes()
    for name, content in {"cut": whole[:-400], "edited": whole.replace(b"model", b"modem"), "empty": b""}.items():
        (folder / f"{name}.arrow").write_bytes(content)
    save(EMQ("precomputed").fit(*posteriors()), folder / "precomputed")
    words = folder / "words"
    for name, damage in {"no-json": "config.json", "no-state": None}.items():
        shutil.copytree(words, folder / name)
        for file in (folder / name).iterdir():
            if damage in (None, file.name):
                file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    (folder / "nothing").mkdir()
    (folder / "[red]").mkdir()
    bad = ("no-json", "no-state", "nothing", "missing", "a\nb", "train.csv", "experiment", "[red]", "[/]")
    experiments = ("experiment", "packed", "nothing", "missing", "plan.toml", "words", "a\nb", "[/]")
    return Shared(
        models=tuple(str(folder / name) for name in ("words", "words", "nums", "three", "precomputed")),
        bad_models=tuple(str(folder / name) for name in bad),
        experiments=tuple(str(folder / name) for name in experiments),
        states=tuple(str(folder / f"{name}.arrow") for name in ("days", "products", "cut", "edited", "empty", "x")),
    )


def _must(*words: str, folder: Path) -> None:
    ended = run_case(Case(words[0], list(words)), folder)
    if ended.code != 0:
        raise RuntimeError(f"{words}: {ended.err}{ended.wrong}")


def run_number(seed: int, number: int, shared: Shared, verb: str | None = None) -> tuple[Case, Ended]:
    """Make a case and run it in a folder that is gone afterwards."""
    case = make_case(seed, number, shared, verb)
    with tempfile.TemporaryDirectory(prefix="fuzz") as home:
        folder = Path(home, "here")
        folder.mkdir()
        return case, run_case(case, folder)


def told(seed: int, number: int, case: Case, ended: Ended) -> str:
    """What a failure says, with how to see it again."""
    files = "".join(f"\n  {name!r}: {content[:300]!r}" for name, content in case.files.items())
    return (
        f"seed {seed}, case {number}, exit {ended.code}: quanet {' '.join(map(repr, case.words))}\n"
        f"again: python -m tests.fuzz --seed {seed} --only {number}\nfiles:{files}\n{ended.err[-1500:]}\n{ended.wrong}"
    )

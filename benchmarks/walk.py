"""Count the source files that a command passes through, and how often it estimates the same bag.

``python benchmarks/walk.py`` runs ``quanet fit`` and ``quanet predict --report`` on a small generated table, once per
method, and counts

- the files of quanet in which a function is called; importing a module does not count,
- the changes from one file to another on the way,
- the largest number of estimates that one fitted quantifier makes of one bag. A quantifier relearned from other
  held-out instances is another quantifier, and a bag that an interval draws for its own use is another bag.

``--files`` lists the files. ``--check`` exits with 1 if fit passes through more than 30 files, predict through more
than 45, or a quantifier estimates a bag twice. ``--output`` writes the table as Markdown.
"""

import argparse
import hashlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import quanet
from quanet.base import Quantifier
from quanet.cli.main import run

SOURCE = str(Path(quanet.__file__).parent) + "/"
LIMITS = {"fit": 30, "predict": 45}
PRODUCTS = ("red", "green", "blue")


class Walk:
    """The files that calls pass through, and the bags that are estimated."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.changes = 0
        self.estimates: Counter[tuple[int, bytes]] = Counter()
        self._last = ""
        self._alive: list[Any] = []  # quantifiers, so that no two have the same id

    def follow(self, frame: FrameType, event: str, _: Any) -> None:
        """A profile function, see `sys.setprofile`."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(SOURCE) or _importing(frame):
            return
        self.files[name.removeprefix(SOURCE)] += 1
        self.changes += name != self._last
        self._last = name

    def count_estimates(self, quantifier: Any, rows: Any) -> None:
        """Count one estimate of each bag in a stack of rows, by what the rows hold."""
        self._alive.append(quantifier)
        stack = np.asarray(rows, dtype=float)
        for bag in stack.reshape(-1, *stack.shape[-2:]):
            self.estimates[id(quantifier), hashlib.sha1(bag.tobytes(), usedforsecurity=False).digest()] += 1

    @contextmanager
    def recorded(self, method: str) -> Iterator[None]:
        """Record the calls of this thread, and the estimates of a method, while the block runs."""
        kind, original = getattr(quanet, method), Quantifier.aggregate

        def counted(quantifier: Quantifier, rows: Any) -> Any:
            if isinstance(quantifier, kind):
                self.count_estimates(quantifier, rows)
            return original(quantifier, rows)

        Quantifier.aggregate = counted  # type: ignore[method-assign]
        sys.setprofile(self.follow)
        try:
            yield
        finally:
            sys.setprofile(None)
            Quantifier.aggregate = original  # type: ignore[method-assign]


def _importing(frame: FrameType | None) -> bool:
    """Whether a call is part of an import, which reads a file but does not pass through it."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(SOURCE):
            return True
        frame = frame.f_back
    return False


def write_table(path: Path, n: int, *, seed: int) -> None:
    """A table of generated reviews: product, date, text, label."""
    rng = np.random.default_rng(seed)
    words = {"bad": ["poor", "weak", "slow", "broken"], "good": ["great", "fast", "solid", "nice"]}
    common = ["phone", "case", "screen", "price", "box", "works", "day", "week"]
    lines = ["product,date,text,label"]
    for i in range(n):
        label, other = ("bad", "good") if rng.random() < 0.4 else ("good", "bad")
        text = [*rng.choice(words[label], 2), *rng.choice(words[other], 1), *rng.choice(common, 5)]
        date = f"2024-{1 + i * 6 // n:02d}-{1 + i % 28:02d}"
        lines.append(f"{PRODUCTS[i % len(PRODUCTS)]},{date},{' '.join(text)} {i},{label}")
    path.write_text("\n".join(lines) + "\n")


def walk(method: str, *arguments: str) -> Walk:
    """Run a command in this process, without output, and return its walk."""
    before, sys.argv = sys.argv, ["quanet", *arguments]
    found, output = Walk(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(output), redirect_stderr(output), found.recorded(method):
        try:
            run()
        except SystemExit as end:
            if end.code:
                output.flush()
                message = output.buffer.getvalue().decode()  # type: ignore[attr-defined]
                raise SystemExit(f"quanet {' '.join(arguments)} failed:\n{message}") from None
        finally:
            sys.argv = before
    return found


def walks(methods: list[str]) -> Iterator[tuple[str, str, Walk]]:
    """Method, verb and walk of every command."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_table(place / "train.csv", 600, seed=0)
        write_table(place / "new.csv", 600, seed=1)
        for method in methods:
            model, report = str(place / method), str(place / f"{method}.html")
            columns = ("--text", "text", "--label", "label", "--method", method)
            yield method, "fit", walk(method, "fit", str(place / "train.csv"), *columns, "--output", model)
            groups = ("--by", "product", "--by", "date:month")
            arguments = ("predict", model, str(place / "new.csv"), *groups, "--report", report)
            yield method, "predict", walk(method, *arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["PACC", "EMQ"], metavar="NAME")
    parser.add_argument("--files", action="store_true", help="list the files")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is exceeded")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table as Markdown")
    options = parser.parse_args()
    lines = ["| command | method | files | changes of file | estimates per bag |", "|---|---|---|---|---|"]
    exceeded = False
    for method, verb, found in walks(options.methods):
        most = max(found.estimates.values(), default=0)
        name = "quanet predict --report" if verb == "predict" else "quanet fit"
        lines.append(f"| `{name}` | {method} | {len(found.files)} | {found.changes:,} | {most} |")
        exceeded |= len(found.files) > LIMITS[verb] or (verb == "predict" and most > 1)
        if options.files:
            print(f"{name}, {method}:", *sorted(found.files), sep="\n  ")
    print("\n".join(lines))
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    if options.check and exceeded:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""Record every number that the library gives on fixed data, and compare two recordings: a refactor changes no digit.

    python benchmarks/digits.py record before        # with the old code on PYTHONPATH
    python benchmarks/digits.py record after         # with the new code
    python benchmarks/digits.py compare before after

Only public names are used, so that a recording can be made with either code. Differences are of three kinds: "digits"
(numbers, keys, labels, kinds of errors: strict), "sentences" (numbers within messages and prose) and wording (shown
with ``--wording`` only, and no failure). Left out, as they vary by run or machine: times, paths, versions, today's
date, sizes of models, pictures as pixels. Machines may differ in last digits: make both recordings on the same one.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # sums of several threads have no fixed order
os.environ |= {"COLUMNS": "200", "PYTHONHASHSEED": "0"}  # sets are shown in an order, which the hash decides

PROCESSES = 2
ALONE = ("ordered/OEMQ",)  # in a process of its own: its last bits depend on where numpy happens to lay its arrays
SENTENCE = {"numbers", "sentence"}  # the keys of a recorded sentence


def run_unit(key: str, data: str | None) -> tuple[str, Any, float]:
    """Facts of one unit, and its seconds; what breaks the recording itself is shown, and kept as a fact."""
    import digits_cases
    import digits_commands

    begun = time.perf_counter()
    try:
        facts = (digits_cases.units() | digits_commands.units() | digits_cases.units_of_file(data))[key]()
    except Exception:  # noqa: BLE001
        facts = {"broken": traceback.format_exc().strip().splitlines()[-1]}
        sys.stderr.write(f"{key}: {traceback.format_exc()}")
    return key, facts, time.perf_counter() - begun


def record(folder: Path, only: str, data: str | None) -> None:
    """Write a JSON file for every part: its units, each with its facts."""
    import digits_cases
    import digits_commands

    known = digits_cases.units() | digits_commands.units() | digits_cases.units_of_file(data)
    keys = [key for key in known if key.startswith(only) and (only or not key.startswith("demo/"))]
    keys.sort(key=digits_cases.is_long, reverse=True)  # long ones first, which keeps both processes busy
    parts: dict[str, dict[str, Any]] = {}
    for alone in (True, False):
        with ProcessPoolExecutor(
            PROCESSES, multiprocessing.get_context("spawn"), max_tasks_per_child=1 if alone else None
        ) as pool:
            chosen = [key for key in keys if key.startswith(ALONE) == alone]
            for done in as_completed([pool.submit(run_unit, key, data) for key in chosen]):
                key, facts, seconds = done.result()
                part, name = key.split("/", 1)
                parts.setdefault(part, {})[name] = facts
                sys.stderr.write(f"{seconds:7.1f} s  {key}\n")
    folder.mkdir(parents=True, exist_ok=True)
    for part, units in parts.items():
        (folder / f"{part}.json").write_text(json.dumps(units, indent=1, sort_keys=True) + "\n")


class Comparison:
    """Differences of two recordings, by kind, and how many values were compared."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.compared = 0
        self.found: dict[str, list[tuple[str, Any, Any]]] = {"digits": [], "sentences": [], "wording": []}

    def walk(self, path: str, before: Any, after: Any, kind: str = "digits") -> None:
        """Compare two values, and all that is in them."""
        if isinstance(before, dict) and isinstance(after, dict):
            self._walk_keys(path, before, after, kind)
        elif isinstance(before, list) and isinstance(after, list):
            if len(before) != len(after):
                self.found[kind].append((path, f"{len(before)} values", f"{len(after)} values"))
            for place, pair in enumerate(zip(before, after, strict=False)):
                self.walk(f"{path}[{place}]", *pair, kind)
        else:
            self.compared += 1
            if not self.equal(before, after):
                self.found[kind].append((path, before, after))

    def _walk_keys(self, path: str, before: dict[str, Any], after: dict[str, Any], kind: str) -> None:
        if set(before) == set(after) == SENTENCE:
            self.walk(path, before["numbers"], after["numbers"], "sentences")
            if before["sentence"] != after["sentence"]:
                self.found["wording"].append((path, before["sentence"], after["sentence"]))
            return
        for key in sorted(set(before) ^ set(after)):
            there = ("(missing)", "(there)") if key in after else ("(there)", "(missing)")
            self.found[kind].append((f"{path}/{key}", *there))
        for key in sorted(set(before) & set(after)):
            if key != "digest" or not self.tolerance:
                self.walk(f"{path}/{key}", before[key], after[key], kind)

    def equal(self, before: Any, after: Any) -> bool:
        """Whether two values are the same, numbers up to the tolerance; numbers within texts are texts of digits."""
        if type(before) is not type(after):
            return False
        if isinstance(before, float) and self.tolerance:
            return before == after or math.isclose(before, after, rel_tol=self.tolerance, abs_tol=self.tolerance)
        return bool(before == after)


def _files(before: Path, after: Path) -> Iterator[tuple[str, Any, Any]]:
    names = sorted({file.name for folder in (before, after) for file in folder.glob("*.json")})
    for name in names:
        yield (
            name.removesuffix(".json"),
            *(
                json.loads((folder / name).read_text()) if (folder / name).exists() else {}
                for folder in (before, after)
            ),
        )


def compare(before: Path, after: Path, tolerance: float, wording: bool, only: str) -> int:
    """Print every difference; 1 if numbers differ, else 0."""
    comparison = Comparison(tolerance)
    for part, old, new in _files(before, after):
        if part.startswith(only):
            comparison.walk(part, old, new)
    for kind, found in comparison.found.items():
        for path, old, new in found if kind != "wording" or wording else ():
            print(f"{kind}: {path}: {str(old)[:300]} -> {str(new)[:300]}")
    counts = ", ".join(f"{len(found)} of {kind}" for kind, found in comparison.found.items())
    print(f"{comparison.compared:,} values compared. Differences: {counts}.")
    return int(bool(comparison.found["digits"] or comparison.found["sentences"] or not comparison.compared))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="write a recording")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--only", default="", metavar="PREFIX", help="units that begin so, as commands/ or two/EMQ")
    recording.add_argument("--data", metavar="FILE", help="also real texts: a table with the columns text and label")
    comparing = verbs.add_parser("compare", help="compare two recordings")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--tolerance", type=float, default=0.0, help="relative and absolute; 0: the same bits")
    comparing.add_argument("--wording", action="store_true", help="also show sentences that say it in other words")
    comparing.add_argument("--only", default="", metavar="PREFIX", help="parts that begin so")
    chosen = parser.parse_args()
    if chosen.verb == "record":
        record(chosen.folder, chosen.only, chosen.data)
        return 0
    return compare(chosen.before, chosen.after, chosen.tolerance, chosen.wording, chosen.only)


if __name__ == "__main__":
    sys.exit(main())

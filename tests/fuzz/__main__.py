"""A long run: ``python -m tests.fuzz --cases 5000 --seed 0``."""

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from .runner import make_shared, run_number, told


def main() -> int:
    """Run cases, print those that ended wrongly, and count the others by verb and exit code."""
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--cases", type=int, default=5000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--start", type=int, default=0, help="number of the first case")
    words.add_argument("--only", type=int, help="run one case, and print all of it")
    words.add_argument("--verb", help="cases of one command")
    words.add_argument("--slow", type=float, default=20.0, help="also print cases that take more seconds")
    asked = words.parse_args()
    counts: Counter[tuple[str, object]] = Counter()
    causes: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory(prefix="fuzz") as home:
        shared = make_shared(Path(home))
        numbers = range(asked.start, asked.start + asked.cases) if asked.only is None else [asked.only]
        for number in numbers:
            case, ended = run_number(asked.seed, number, shared, asked.verb)
            if number % 500 == 499:
                print(f"{number + 1} ...", flush=True)  # noqa: T201
            counts[case.verb, "wrong" if ended.wrong else ended.code] += 1
            if ended.wrong:
                causes.setdefault(_cause(ended.wrong), []).append(number)
            if ended.wrong or asked.only is not None:
                print(told(asked.seed, number, case, ended), "\n" + "-" * 80, flush=True)  # noqa: T201
            elif ended.seconds > asked.slow:
                print(f"case {number} took {ended.seconds:.0f} s: {case.words!r}", flush=True)  # noqa: T201
    for cause, numbers in sorted(causes.items(), key=lambda one: -len(one[1])):
        print(f"{len(numbers)} x {cause}: {numbers[:8]}")  # noqa: T201
    print(_table(counts), flush=True)  # noqa: T201
    return bool(causes)


def _cause(wrong: str) -> str:
    """The line of quanet's own that a traceback comes from, and its last line."""
    lines = wrong.strip().splitlines()
    own = [line.strip() for line in lines if "src/quanet" in line]
    where = own[-1].partition("src/quanet/")[2] if own else ""
    return f"{where} {lines[-1]}"[:300]


def _table(counts: Counter[tuple[str, object]]) -> str:
    codes = [0, 1, 2, "wrong"]
    verbs = sorted({verb for verb, _ in counts})
    lines = [["verb", *map(str, codes)], *([verb, *(str(counts[verb, code]) for code in codes)] for verb in verbs)]
    lines.append(["all", *(str(sum(counts[verb, code] for verb in verbs)) for code in codes)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())

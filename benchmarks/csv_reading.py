"""CPU time of reading a CSV file of 300,000 rows: by Arrow, and by the csv module, which reads what Arrow cannot.

python benchmarks/csv_reading.py
"""

import csv
import random
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa

from quanet.data.table_files import open_rows, table_chunks

ROWS = 300_000
ROUNDS = 15  # of which the fastest counts
COLUMNS = ["id", "text", "label", "date", "number"]


def write(path: Path) -> None:
    """Texts of 60 characters, every fifth with a comma, and so in quotes."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3000)]
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for row in range(ROWS):
            text = " ".join(rng.choices(words, k=9)).replace(" ", ", " if row % 5 == 0 else " ", 1)[:60].strip()
            day = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            rows.writerow([row, text, rng.choice(["good", "bad", "mixed"]), day, round(rng.random() * 1000, 2)])


def seconds(path: Path, columns: list[str], *, arrow: bool) -> float:
    """CPU seconds until all rows are chunks of cells."""
    start = time.process_time()
    with closing(open_rows(str(path), encoding="auto")) as opened:
        read = sum(len(chunk) for chunk in table_chunks(opened if arrow else replace(opened, batches=None), columns))
    assert read == ROWS
    return time.process_time() - start


def main() -> None:
    """Print the table of `benchmarks/results/csv-reading.md`."""
    print(f"Python {sys.version.split()[0]}, pyarrow {pa.__version__}, pandas {pd.__version__}")
    with tempfile.TemporaryDirectory() as home:
        path = Path(home, "reviews.csv")
        write(path)
        print(f"{ROWS:,} rows, {path.stat().st_size / 1e6:.0f} MB\n")
        print("| columns read | csv module, s | Arrow, s | ratio |\n|---|---:|---:|---:|")
        for columns in (["text"], ["text", "date"], COLUMNS):
            both = [[seconds(path, columns, arrow=arrow) for arrow in (False, True)] for _ in range(ROUNDS)]
            slow, fast = map(min, zip(*both, strict=True))
            print(f"| {', '.join(columns)} | {slow:.3f} | {fast:.3f} | {slow / fast:.1f} |")


if __name__ == "__main__":
    main()

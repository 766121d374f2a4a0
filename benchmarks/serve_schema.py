"""Send requests made from the description of the API, and hostile uploads, to a service in this process.

    python benchmarks/serve_schema.py FOLDER [--cases 5000] [--uploads 500] [--seed 0]

It writes FOLDER/schema.json and FOLDER/hostile.json: answers by status. An answer with status 500, one that does not
match the description, a file outside the data folder or a name that is shown unescaped stops it with an error.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.web.hostile_run import run_hostile
from tests.serve.web.made_service import fill
from tests.serve.web.schema_run import run_schema

from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.integrity import check_integrity


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=Path)
    words.add_argument("--cases", type=int, default=5000)
    words.add_argument("--uploads", type=int, default=500)
    words.add_argument("--seed", type=int, default=0)
    asked = words.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="quanet-") as place:
        store = ServiceStore.open(Path(place) / "data")
        hostile = run_hostile(store, fill(store, Path(place)), asked.uploads, pages=100, first=asked.seed)
        assert check_integrity(store) == []
        _write(asked.folder / "hostile.json", f"{asked.uploads} hostile uploads and names, seed {asked.seed}", hostile)
        schema = {}
        seed = asked.seed
        while sum(schema.values()) < asked.cases:  # schemathesis sends fewer than asked where it finds no new request
            left = asked.cases - sum(schema.values())
            for status, number in run_schema(store, _new(Path(place), seed), max(left, 200), seed).items():
                schema[status] = schema.get(status, 0) + number
            seed += 1
            print(f"{sum(schema.values()):,} requests", flush=True)
        _write(asked.folder / "schema.json", f"{sum(schema.values()):,} requests of schemathesis", schema)
        assert check_integrity(store) == []
        store.close()


def _new(place: Path, seed: int) -> Path:
    folder = place / f"run{seed}"
    folder.mkdir()
    return folder


def _write(path: Path, how: str, counts: dict[str, int]) -> None:
    path.write_text(json.dumps({"how": how, "counts": dict(sorted(counts.items()))}, indent=1) + "\n")
    print(path, dict(sorted(counts.items())), flush=True)


if __name__ == "__main__":
    main()

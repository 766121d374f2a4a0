"""How far commands walk through the source, see `benchmarks/walk.py`."""

import runpy
from pathlib import Path

# As many as there are (benchmarks/results/walk.md). 35 and 45 are the aim: a limit is lowered when files are merged.
MOST_FILES = {"fit": 51, "predict": 77}


def test_commands_pass_through_few_files_and_estimate_each_bag_once():
    walks = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "walk.py"))["walks"]
    for _, verb, found in walks(["PACC", "EMQ", "QuaNet"]):
        assert len(found.files) <= MOST_FILES[verb], sorted(found.files)
        assert verb == "fit" or max(found.estimates.values()) == 1

"""How far commands walk through the source, see `benchmarks/walk.py`."""

import runpy
from pathlib import Path

# `fit` should need 30 files; the rest are concepts of their own (docs/decisions/0017-one-path.md): five about drift,
# three about names and order of classes, and in `predict` three about expected accuracy.
MOST_FILES = {"fit": 42, "predict": 61}


def test_commands_pass_through_few_files_and_estimate_each_bag_once():
    walks = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "walk.py"))["walks"]
    for _, verb, found in walks(["PACC"]):
        assert len(found.files) <= MOST_FILES[verb], sorted(found.files)
        assert verb == "fit" or max(found.estimates.values()) == 1

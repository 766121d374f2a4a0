"""How far commands walk through the source, see `benchmarks/walk.py`."""

import runpy
from pathlib import Path

# `fit` should need 30 files; the rest are concepts of their own (docs/decisions/0017-one-path.md): five about drift,
# three about names and order of classes, four about where files are and whether they fit together, three about reading
# texts fast; in `predict` three about expected accuracy, one about the format of answers, and thirteen about states and
# who reads them (docs/decisions/0020-mergeable-states.md).
MOST_FILES = {"fit": 51, "predict": 77}


def test_commands_pass_through_few_files_and_estimate_each_bag_once():
    walks = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "walk.py"))["walks"]
    for _, verb, found in walks(["PACC"]):
        assert len(found.files) <= MOST_FILES[verb], sorted(found.files)
        assert verb == "fit" or max(found.estimates.values()) == 1

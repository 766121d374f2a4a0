"""What pytest leaves out of docs/: pages that need a cluster (tests/corpus runs them), and what the site builds."""

import pytest

collect_ignore = [
    "how-to/ray.md",
    "how-to/spark.md",
    "conf.py",
    "extensions",
    "gallery",  # run by `make docs`
    "auto_gallery",
    "measurements",
    "_build",
    "changelog.md",
    "contributing.md",
]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """The examples of a page run in a folder of their own, where they may write files."""
    monkeypatch.chdir(tmp_path)

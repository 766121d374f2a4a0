"""Folders in which pages begin, by name. A page says so: `<!-- begins in: reviews -->`."""

import shutil
from contextlib import chdir
from pathlib import Path

from tests.pages.blocks import blocks_of
from tests.pages.commands import ROOT, run_command, terminal

SIX_COMMANDS = ROOT / "docs" / "how-to" / "six-commands.md"


def make_folder(name, folder):
    """Fill an empty folder."""
    with chdir(folder), terminal():
        FOLDERS[name]()


def _fast():
    """The files of the page of six commands, and settings that let `fit` use EMQ, which takes seconds."""
    blocks = blocks_of(SIX_COMMANDS.read_text(encoding="utf-8"))
    exec(next(block.code for block in blocks if block.first), {})  # noqa: S102
    Path("quanet.toml").write_text('[fit]\nmethod = "EMQ"\n', encoding="utf-8")


def _reviews():
    """The files of the page of six commands, and the model that it learns."""
    _fast()
    Path("quanet.toml").unlink()
    code, printed = run_command("quanet fit reviews.csv --label sentiment --method EMQ -o model")
    assert code == 0, printed


def _repository():
    """What a checkout has for experiments: their plans, and the cells of the paper."""
    folder = ROOT / "benchmarks"
    shutil.copytree(folder / "results" / "paper", "benchmarks/results/paper")
    for plan in folder.glob("*.toml"):
        shutil.copy(plan, "benchmarks")


FOLDERS = {"fast": _fast, "reviews": _reviews, "repository": _repository}

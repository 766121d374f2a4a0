"""Run pages and print what their commands print: `python -m tests.pages docs/how-to/labels.md`."""

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from tests.pages.blocks import BEGINS_IN
from tests.pages.folders import make_folder
from tests.pages.problems import problems_of
from tests.pages.running import run_page


def show(command, printed):
    print(f"$ {command}\n{printed}")  # noqa: T201


for page in map(Path, sys.argv[1:]):
    text = page.read_text(encoding="utf-8")
    wrong = problems_of(str(page), text)
    if wrong:
        sys.exit("\n".join(wrong))
    with tempfile.TemporaryDirectory() as home:
        for name in BEGINS_IN.findall(text):
            make_folder(name, Path(home))
        with chdir(home):
            try:
                run_page(str(page), text, show)
            except AssertionError as error:
                sys.exit(str(error))

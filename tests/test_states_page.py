"""The page about states is run as it stands."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from quanet.cli import main
from quanet.cli.console import console, notes

from .test_six_commands import occurs

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "states.md").read_text(encoding="utf-8")


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for one in (console, notes):
        monkeypatch.setattr(one, "width", 120)

    def run(command):
        extra = [] if "fit" in command else ["--format", "table"]
        monkeypatch.setattr(sys, "argv", [*shlex.split(command), *extra])
        with pytest.raises(SystemExit) as ended:
            main.run()
        printed = "".join(capsys.readouterr())
        assert ended.value.code == 0, printed
        return printed

    [made] = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    exec(made, {})  # noqa: S102
    run("quanet fit reviews.csv --label sentiment --method EMQ -o model")
    printed = ""
    for line in "".join(re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)).splitlines():
        if line.startswith("$ "):
            printed = run(line.removeprefix("$ "))
        else:
            assert occurs(line, printed), f"{line} is not in:\n{printed}"

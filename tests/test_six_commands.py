"""The page of six commands is run as it stands."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from quanet.cli import main
from quanet.cli.console import console, notes

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "six-commands.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CLOSE = 0.5  # points, or units of the last digit, by which platforms may differ


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def words_and_numbers(text):
    """A text without its numbers, in one line, and these numbers."""
    numbers = [float(found.replace(",", "")) for found in NUMBER.findall(text)]
    return " ".join(NUMBER.sub("#", text).split()), numbers


def occurs(line, printed):
    """Whether a line of the page is in what was printed, up to the last digits."""
    wanted, numbers = words_and_numbers(line)
    words, found = words_and_numbers(printed)
    at = words.find(wanted)
    while at >= 0:
        before = words[:at].count("#")
        pairs = zip(numbers, found[before : before + len(numbers)], strict=True)
        if all(abs(one - other) <= max(CLOSE, 0.02 * abs(one)) for one, other in pairs):
            return True
        at = words.find(wanted, at + 1)
    return False


@pytest.mark.no_cover
def test_the_page_has_six_commands_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for one in (console, notes):
        monkeypatch.setattr(one, "width", 120)
    make, label = blocks("python")
    exec(make, {})  # noqa: S102
    commands = blocks("console")
    assert len(commands) <= 6
    for block in commands:
        command, *lines = block.removeprefix("$ ").splitlines()
        extra = [] if command.startswith("quanet fit") else ["--format", "table"]
        monkeypatch.setattr(sys, "argv", [*shlex.split(command), *extra])
        with pytest.raises(SystemExit) as ended:
            main.run()
        printed = "".join(capsys.readouterr())
        assert ended.value.code == 0, printed
        for line in lines:
            assert line == "..." or occurs(line, printed), f"{line} is not in:\n{printed}"
        if "label plan" in command:
            exec(label, {})  # noqa: S102
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "refined.html").exists()

from io import StringIO

import pytest
from rich.console import Console

from quanet.cli import console as room
from quanet.cli.console import duration, progress, training_progress


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (125, "2 min 5 s"), (7260, "2 h 1 min")])
def test_durations_are_spoken(seconds, said):
    assert duration(seconds) == said


def test_parts_move_the_bar_by_what_they_take():
    moved = []
    listener = training_progress(lambda done, what, of: moved.append(round(done, 3)), {"words": 1.0, "characters": 3.0})
    for what, done in (
        ("words", 0.0),
        ("words", 1.0),
        ("something else", 0.5),
        ("characters", 0.5),
        ("characters", 1.0),
    ):
        listener(what, done)
    assert moved == [0.0, 0.25, 0.625, 1.0]


def test_on_a_terminal_the_time_left_is_told(monkeypatch):
    shown = StringIO()
    monkeypatch.setattr(room, "notes", Console(file=shown, force_terminal=True, width=100))
    monkeypatch.setattr("rich.progress.Task.elapsed", 30.0)
    with progress("Learning") as move:
        move(0.25, "Learning words", of=1.0)
    assert "Learning words" in shown.getvalue()
    assert "30 s, about 1 min 30 s left" in shown.getvalue()


def test_elsewhere_nothing_moves(monkeypatch):
    shown = StringIO()
    monkeypatch.setattr(room, "notes", Console(file=shown, width=100))
    with progress("Learning", 10) as move:
        move(5)
    assert shown.getvalue().strip() == ""

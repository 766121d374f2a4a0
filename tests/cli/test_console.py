from io import StringIO

import pytest
from rich.console import Console

from quanet.cli import console as room
from quanet.cli.console import progress, training_progress
from quanet.progress import duration


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (125, "2 min 5 s"), (7260, "2 h 1 min")])
def test_durations_are_spoken(seconds, said):
    assert duration(seconds) == said


def test_every_step_of_training_moves_the_bar_from_start_to_end():
    moved = []
    listener = training_progress(lambda done, what, of, part: moved.append((done, what, part)))
    for what, done in (("words", 0.0), ("words", 1.0), ("something else", 0.5), ("network", 0.5)):
        listener(what, done)
    assert moved == [
        (0.0, "Learning words", "words"),
        (1.0, "Learning words", "words"),
        (0.5, "Training the network", "network"),
    ]


@pytest.fixture
def clock(monkeypatch):
    """A terminal whose time is set by hand; returns how to set it, and what is shown last."""
    shown, now = StringIO(), [0.0]
    monkeypatch.setattr(room, "notes", Console(file=shown, force_terminal=True, width=100))
    monkeypatch.setattr(room.time, "perf_counter", lambda: now[0])
    return lambda seconds: now.__setitem__(0, seconds), shown


def test_on_a_terminal_the_time_left_is_shown(clock):
    at, shown = clock
    with progress("Reading", 100) as move:
        at(30.0)
        move(25, "Reading: 25 rows")
    assert "Reading: 25 rows" in shown.getvalue()
    assert "30 s, about 1 min 30 s left" in shown.getvalue()


def test_the_time_left_is_that_of_the_steps_own_work(clock):
    at, shown = clock
    with progress("Training") as update:
        listener = training_progress(update)
        for second, what, done in ((0, "words", 0.0), (20, "words", 1.0), (20, "network", 0.0), (120, "network", 0.25)):
            at(second)
            listener(what, done)
    # A quarter took 100 s. Before, it was an eighth of the time passed whatever had been done.
    assert "2 min 0 s, at most 5 min 0 s left in this step" in shown.getvalue()
    assert "15 s left" not in shown.getvalue()


def test_a_step_that_starts_again_and_one_that_is_over_have_no_time_left(clock):
    at, shown = clock
    with progress("Training") as update:
        listener = training_progress(update)
        for second, done in ((0, 0.0), (50, 1.0), (60, 0.1)):
            at(second)
            listener("lstm", done)
        update(None, "Measuring errors")
    assert "left" not in shown.getvalue()


def test_elsewhere_nothing_moves(monkeypatch):
    shown = StringIO()
    monkeypatch.setattr(room, "notes", Console(file=shown, width=100))
    with progress("Learning", 10) as move:
        move(5)
    assert shown.getvalue().strip() == ""

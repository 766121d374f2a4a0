import pytest

from quanet import TextClassifier
from quanet.errors import QuanetWarning
from quanet.progress import Pace, listening, report

TEXTS, LABELS = ["good film", "bad film"] * 6, ["yes", "no"] * 6


def test_nobody_needs_to_listen():
    report("words", 0.5)


def test_a_listener_hears_what_is_reported_inside_alone():
    heard = []
    with listening(lambda what, done: heard.append((what, done))):
        report("words", 0.5)
    report("words", 1.0)
    assert heard == [("words", 0.5)]


def test_a_failure_ends_listening():
    heard = []
    with pytest.raises(ZeroDivisionError), listening(lambda *fact: heard.append(fact)):
        raise ZeroDivisionError
    report("words", 1.0)
    assert heard == []


def test_every_view_of_texts_goes_from_start_to_end():
    heard = {}
    with listening(lambda what, done: heard.setdefault(what, []).append(done)):
        TextClassifier().fit(TEXTS, LABELS)
    assert list(heard) == ["words", "weighted words", "characters"]
    for done in heard.values():
        assert (done[0], done[-1]) == (0.0, 1.0)
        assert done == sorted(done)


@pytest.fixture
def seconds(monkeypatch):
    """Times of the clock, one for every look."""
    times = []
    monkeypatch.setattr("quanet.progress.time.perf_counter", lambda: times.pop(0))
    return times


def test_long_work_is_announced_from_its_first_steps(seconds):
    seconds.extend([10.0, 10.5, 12.0, 14.0])  # the first step, which took 10 s, is not typical
    pace = Pace("network", 1000, least=105, long=600, advice="Use EMQ.")
    pace.step()
    pace.step()
    with pytest.warns(QuanetWarning, match="Training the network will take 1 min 45 s to 16 min 40 s, .* Use EMQ."):
        pace.step()
    pace.step()  # said once


def test_work_of_known_length_has_one_time_and_short_work_is_not_announced(seconds):
    seconds.extend([0.0, 2.0] * 2)
    pace = Pace("calibration", 1000, long=60)
    pace.step(10)
    with pytest.warns(QuanetWarning, match="will take about 3 min 20 s, at"):
        pace.step(10)
    short = Pace("calibration", 200, long=60)
    short.step(10)
    short.step(10)
    assert short.is_known


def test_every_step_of_a_pace_is_reported(seconds):
    seconds.extend([0.0, 0.1, 0.2])
    heard = []
    with listening(lambda what, done: heard.append((what, done))):
        pace = Pace("lstm", 10)
        for steps in (1, 4, 6):
            pace.step(steps)
    assert heard == [("lstm", 0.1), ("lstm", 0.5), ("lstm", 1.0)]

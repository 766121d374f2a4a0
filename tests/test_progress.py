import pytest

from quanet import TextClassifier
from quanet.progress import listening, report

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

"""Hostile files and options: no call of the command line ends in a traceback or a hang, or with a wrong exit code."""

import time

import pytest

from .cases import WEIGHTS, commands, make_case
from .runner import make_shared, run_number, told

SEEDS, CASES, SECONDS = (11, 12, 13, 14), 40, 10.0  # at most


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    return make_shared(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", SEEDS)
def test_no_call_ends_in_a_traceback(shared, seed):
    ends = time.monotonic() + SECONDS
    for number in range(CASES):
        case, ended = run_number(seed, number, shared)
        assert not ended.wrong, told(seed, number, case, ended)
        if time.monotonic() > ends:
            break


def test_the_same_seed_makes_the_same_calls(shared):
    for number in range(20):
        assert make_case(1, number, shared) == make_case(1, number, shared)
    assert make_case(1, 0, shared) != make_case(2, 0, shared)


def test_every_command_is_tried():
    assert set(WEIGHTS) == {name for name, _ in commands()}

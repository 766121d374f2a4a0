"""Declared parameter checks: what is allowed, and the one message for what is not."""

import inspect
from typing import ClassVar

import numpy as np
import pytest

import quanet
from quanet.errors import InvalidSetting
from quanet.parameters import (
    Constraints,
    allowed_values_of,
    at_least,
    between,
    check_level,
    check_parameters,
    none_or,
    one_of,
    positive,
    whole,
)


@pytest.mark.parametrize(
    ("constraint", "allowed", "refused"),
    [
        (positive(), [1, 0.5, np.float32(2), np.inf], [0, -1, np.nan, "1", None, [1, 2], np.ones(2)]),
        (positive(finite=True), [1e-9], [np.inf]),
        (at_least(0), [0, 0.0, np.inf], [-1e-9, np.nan]),
        (whole(2), [2, np.int64(3)], [1, 2.0, "2", None]),
        (whole(1, 25), [1, 25], [0, 26]),
        (between(0, 1), [0.5], [0, 1, np.nan]),
        (between(0, 1, including="low"), [0], [1]),
        (between(0, 1, including="high"), [1], [0]),
        (between(0, 1, including="both"), [0, 1], [-0.1, 1.1]),
        (one_of("a", "b"), ["a"], ["c", 1, None, ["a"]]),
        (none_or(whole(1)), [None, 1], [0, "None"]),
        (between(0, 1) | one_of("auto"), [0.5, "auto"], [2, "car"]),
    ],
)
def test_a_constraint_allows_and_refuses(constraint, allowed, refused):
    assert all(constraint.allows(value) for value in allowed)
    assert not any(constraint.allows(value) for value in refused)


def test_the_message_names_the_owner_the_parameter_the_value_and_what_is_allowed():
    with pytest.raises(InvalidSetting, match=r"^EMQ: tol must be a number above 0; got -1\.$"):
        positive().check("tol", -1, "EMQ")
    with pytest.raises(
        InvalidSetting, match=r"^level must be a number from 0\.000001 to 0\.999999, such as 0\.95; got 95\.$"
    ):
        check_level(95)


@pytest.mark.parametrize("level", [0.9999999999999999, 1 - 1e-12, 1.0, 0.0, 1e-300, float("nan")])
def test_a_level_whose_quantile_cannot_be_computed_is_refused(level):
    with pytest.raises(InvalidSetting, match="level must be a number from 0"):
        check_level(level)


@pytest.mark.parametrize("level", [1e-6, 0.999999])
def test_the_extreme_levels_have_finite_ends(level):
    quantifier = quanet.EMQ().fit(*quanet.Gaussians().draw([0.5, 0.5], 200, rng=0))
    interval = quantifier.predict_interval(quanet.Gaussians().draw([0.3, 0.7], 50, rng=1)[0], level)
    assert (interval.lower <= interval.estimate).all()
    assert (interval.estimate <= interval.upper).all()


def test_a_subclass_adds_to_what_its_bases_allow_and_takes_precedence():
    class Base:
        allowed_values: ClassVar[Constraints] = {"size": whole(1), "share": between(0, 1)}
        size, share = 0, 0.5

    class Derived(Base):
        allowed_values: ClassVar[Constraints] = {"size": whole(0), "absent": positive()}

    check_parameters(Derived())  # "absent" is not a parameter of it
    with pytest.raises(InvalidSetting, match="Base: size must be a whole number of at least 1; got 0"):
        check_parameters(Base())


DECLARING = [
    kind for kind in map(quanet.__getattr__, quanet.MODULE_OF) if isinstance(kind, type) and allowed_values_of(kind)
]


@pytest.mark.parametrize("kind", DECLARING)
def test_defaults_are_allowed(kind):
    allowed = allowed_values_of(kind)
    for name, parameter in inspect.signature(kind).parameters.items():
        if name in allowed and parameter.default is not parameter.empty:
            assert allowed[name].allows(parameter.default)

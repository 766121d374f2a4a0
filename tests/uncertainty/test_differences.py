import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet.uncertainty.differences import Differences, holm


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holms_probabilities_grow_and_keep_their_order(p):
    raised = holm(p)
    assert (raised >= np.array(p)).all()
    assert (raised <= 1).all()
    assert (np.diff(raised[np.argsort(p, kind="stable")]) >= 0).all()


def three(**more):
    p = np.array([[0.01, 0.01], [0.04, 0.04], [0.03, 0.03]])
    estimate = np.array([[-0.1, 0.1], [0.0, 0.0], [0.2, -0.2]])
    return Differences.of(
        ["a", "a", "b"],
        ["b", "c", "c"],
        estimate,
        estimate - 0.05,
        estimate + 0.05,
        p,
        level=0.95,
        classes=[0, 1],
        **more,
    )


def test_holm_by_hand_counts_two_classes_once():
    # Sorted: 3 x .01, 2 x .03, 1 x .04, which must not be below the one before.
    np.testing.assert_allclose(three().adjusted, [[0.03, 0.03], [0.06, 0.06], [0.06, 0.06]])
    assert three().significant[:, 1].tolist() == [True, False, False]


def test_holm_counts_only_what_is_selected():
    np.testing.assert_allclose(three().take([1, 2]).adjusted[:, 0], [0.06, 0.06])
    one = three(notes=np.array(["", "few", ""], dtype=object)).take([1]).of_classes([1])
    assert one.adjusted == pytest.approx(0.04)
    assert one.notes.tolist() == ["few"]
    assert one.classes.tolist() == [1]


def test_three_classes_count_three_times():
    p = np.array([[0.01, 0.02, 0.5]])
    found = Differences.of(["a"], ["b"], p, p, p, p, level=0.95, classes=["x", "y", "z"])
    np.testing.assert_allclose(found.adjusted, [[0.03, 0.04, 0.5]])


def test_the_frame_has_a_row_per_comparison_and_class():
    table = three(sizes=np.array([[5, 6], [5, 7], [6, 7]])).frame()
    assert table.shape[0] == 6
    assert table["first"].tolist() == ["a", "a", "a", "a", "b", "b"]
    assert table["difference"].tolist() == [-0.1, 0.1, 0.0, 0.0, 0.2, -0.2]
    assert table["drift"].isna().all()


def test_the_text_shows_one_of_two_classes_and_not_too_many_lines():
    assert str(three()).splitlines()[0] == "a -> b: class 1: +10.0 points (+5.0 to +15.0), p = .030"
    assert str(three().take([0] * 30)).endswith("... and 10 more")

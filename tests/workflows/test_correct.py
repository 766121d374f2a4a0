import numpy as np
import pytest

from quanet import correct_rate
from quanet.data.periods import Key
from quanet.errors import InvalidData, InvalidSetting
from quanet.report.judge_errors import assumptions
from quanet.workflows.correct import correct_groups


def judged_rows(k=2, n=2000, seed=0, labelled=0.2):
    """Truth, judgements, human labels of a part, and groups that differ."""
    rng = np.random.default_rng(seed)
    names = np.array(["a", "b", "c"][:k], dtype=object)
    owner = rng.integers(3, size=n)
    shares = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.1, 0.6, 0.3]])[:, :k]
    shares = shares / shares.sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(k, p=shares[g]) for g in owner])
    judge = np.where(rng.random(n) < 0.2, (truth + 1) % k, truth)
    human = np.where(rng.random(n) < labelled, names[truth], None)
    return names[truth], names[judge], human, owner


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("at_random", [True, False])
def test_all_together_is_what_correct_rate_says(k, at_random):
    _, judged, human, _ = judged_rows(k)
    found = correct_groups(judged, human, at_random=at_random)
    known = human != None  # noqa: E711
    beside = judged[~known] if at_random else judged
    expected = correct_rate(
        beside.astype(str),
        human[known].astype(str),
        judged[known].astype(str),
        calibration="part" if at_random else "apart",
    )
    for one, other in zip(found.total, (expected.estimate, expected.lower, expected.upper), strict=False):
        np.testing.assert_allclose(one, other, atol=1e-9)
    np.testing.assert_allclose(found.estimate[0], found.total[0])
    assert found.calibration == ("part" if at_random else "apart")
    assert found.labelled == known.sum()


@pytest.mark.parametrize("k", [2, 3])
def test_groups_are_corrected_towards_the_truth(k):
    truth, judged, human, owner = judged_rows(k, n=6000)
    found = correct_groups(judged, human, keys=[Key("g")], groups=[("x",), ("y",), ("z",)], owner=owner)
    shares = np.array([[(truth[owner == g] == c).mean() for c in found.classes] for g in range(3)])
    assert np.abs(found.estimate - shares).mean() < np.abs(found.judged - shares).mean() / 1.5
    assert ((shares >= found.lower) & (shares <= found.upper)).mean() > 0.85
    np.testing.assert_allclose(found.estimate.sum(axis=1), 1)
    np.testing.assert_allclose(found.rates.sum(axis=1), 1)
    assert found.sizes.tolist() == np.bincount(owner).tolist()


def test_a_group_alone_says_what_it_says_among_others():
    _, judged, human, owner = judged_rows()
    together = correct_groups(judged, human, groups=[("x",), ("y",), ("z",)], owner=owner)
    alone = correct_groups(judged, human, groups=[("y",)], owner=np.where(owner == 1, 0, -1))
    np.testing.assert_allclose(alone.estimate[0], together.estimate[1], atol=1e-9)
    np.testing.assert_allclose(alone.total, together.total, atol=1e-9)
    assert alone.skipped == {"no group": int((owner != 1).sum())}


def test_human_labels_may_come_from_elsewhere():
    _, judged, human, _ = judged_rows()
    known = human != None  # noqa: E711
    found = correct_groups(judged[~known], [None] * int((~known).sum()), calibration=(human[known], judged[known]))
    expected = correct_rate(judged[~known].astype(str), human[known].astype(str), judged[known].astype(str))
    np.testing.assert_allclose(found.total[0], expected.estimate, atol=1e-9)
    assert found.calibration == "apart"


def test_scores_are_put_into_bins():
    truth, _, human, owner = judged_rows()
    scores = (truth == "b") + np.random.default_rng(1).normal(size=len(truth)) / 2
    found = correct_groups(scores, human, groups=[("x",), ("y",), ("z",)], owner=owner, kind="scores")
    assert found.rates is None
    assert np.isnan(found.judged).all()
    np.testing.assert_allclose(found.total[0, 1], (truth == "b").mean(), atol=0.05)


@pytest.mark.parametrize("k", [2, 3])
def test_a_group_that_people_have_labelled_wholly_is_counted(k):
    _, judged, human, owner = judged_rows(k)
    truth, *_ = judged_rows(k)
    human = np.where(owner == 0, truth, human)
    found = correct_groups(judged, human, groups=[("x",), ("y",), ("z",)], owner=owner)
    counted = [(truth[owner == 0] == c).mean() for c in found.classes]
    np.testing.assert_allclose(found.estimate[0], counted, atol=1e-6)


def test_small_groups_are_marked_and_empty_ones_left_out():
    _, judged, human, owner = judged_rows()
    owner = np.where(np.arange(len(owner)) < 6, 3, owner)
    human[:6] = None
    judged = np.where(owner == 2, None, judged)
    found = correct_groups(judged, human, groups=[(name,) for name in "wxyz"], owner=owner)
    assert found.groups == (("w",), ("x",), ("z",))
    assert found.small.tolist() == [False, False, True]
    assert found.skipped == {"no judgement": int((owner == 2).sum())}


MONTHS = [f"2024-{month:02}" for month in range(1, 9)]
SHARES = [0.10, 0.12, 0.14, 0.16, 0.18, 0.25, 0.22, 0.24]  # rising, most of all in June


def judged_months(*, worse=0.4, per_month=2000, labelled=150, seed=0):
    """A judge that finds 85 % of "bad" and, from June on, fewer; and the true shares."""
    rng = np.random.default_rng(seed)
    truth, judged, human, owner = [], [], [], []
    for month, share in enumerate(SHARES):
        bad = rng.random(per_month) < share
        found = 0.85 if month < 5 else worse
        said = np.where(bad, rng.random(per_month) < found, rng.random(per_month) < 0.05)
        known = np.arange(per_month) < labelled
        truth.append(bad)
        judged += np.where(said, "bad", "good").tolist()
        human += [("bad" if one else "good") if known[i] else None for i, one in enumerate(bad.tolist())]
        owner += [month] * per_month
    return np.array([one.mean() for one in truth]), judged, human, np.array(owner)


def by_month(judged, human, owner, **options):
    groups = [(month,) for month in MONTHS]
    return correct_groups(judged, human, keys=[Key("date", "month")], groups=groups, owner=owner, **options)


def test_a_judge_that_got_worse_in_june_does_not_reverse_the_trend():
    truth, judged, human, owner = judged_months()
    found = by_month(judged, human, owner)
    assert found.errors.differ
    assert found.own_labels.all()
    assert found.estimate[5, 0] > found.estimate[4, 0]
    assert ((found.lower[:, 0] <= truth) & (truth <= found.upper[:, 0])).mean() >= 7 / 8
    assert "errors differ between groups" in assumptions(found)[0]
    pooled = by_month(judged, human, owner, same_errors=True)
    assert pooled.estimate[5, 0] < pooled.estimate[4, 0]  # the mistake that is avoided
    assert "which the human labels contradict" in assumptions(pooled)[1]


def test_the_answer_says_by_whose_labels_a_group_is_corrected():
    _, judged, human, owner = judged_months(worse=0.85)
    found = by_month(judged, human, owner)
    assert not found.errors.differ
    assert set(found.labels_used) == {"own", "all"}  # the first months have too few labels of "bad"
    tested, own, rest, _ = assumptions(found)
    assert tested.startswith("The judge's errors do not differ significantly between groups (p = ")
    assert own.startswith("Corrected by their own human labels: ")
    assert "assumes that the judge errs there as it does on average" in rest
    seen = [human[i - i % 2000 : i].count(one) if one else 9 for i, one in enumerate(human)]
    few = by_month(judged, [one if earlier < 3 else None for one, earlier in zip(human, seen, strict=True)], owner)
    assert not few.errors.tested
    assert assumptions(few)[0].startswith("Too few human labels per group to test")
    elsewhere = by_month(judged, [None] * len(judged), owner, calibration=(["bad", "good"] * 40, ["bad", "good"] * 40))
    assert elsewhere.errors is None
    assert "come from another file" in assumptions(elsewhere)[0]


def test_chosen_labels_make_all_together_from_the_groups_where_errors_differ():
    truth, judged, human, owner = judged_months(labelled=400)
    found = by_month(judged, human, owner, at_random=False)
    np.testing.assert_allclose(found.total[0], found.sizes / found.sizes.sum() @ found.estimate)
    assert found.total[1, 0] <= truth.mean() <= found.total[2, 0]


@pytest.mark.no_cover
@pytest.mark.parametrize("worse", [0.85, 0.6])
def test_groups_with_labels_of_their_own_are_covered_whether_the_judge_errs_alike_or_not(worse):
    hits = []
    for seed in range(5):
        truth, judged, human, owner = judged_months(worse=worse, labelled=400, seed=seed)
        found = by_month(judged, human, owner, at_random=False)
        hits.append((found.lower[:, 0] <= truth) & (truth <= found.upper[:, 0]))
    assert np.mean(hits) >= 0.85  # 40 intervals


def test_what_is_missing_is_named():
    _, judged, human, _ = judged_rows()
    none = [None] * len(judged)
    with pytest.raises(InvalidData, match="no row has both a human label and a judgement"):
        correct_groups(judged, none)
    with pytest.raises(InvalidData, match="all 5 human labels are 'a'"):
        correct_groups(judged, ["a"] * 5 + none[5:])
    with pytest.raises(InvalidData, match=r"'b' has 2 human labels.*at least 5"):
        correct_groups(judged, ["a"] * 9 + ["b"] * 2 + none[11:])
    with pytest.raises(InvalidData, match=r"the judge's label 'unsure' \(3 rows\) is not among the human labels"):
        correct_groups(np.r_[judged, ["unsure"] * 3], np.r_[human, none[:3]])
    with pytest.raises(InvalidData, match="no row has a judgement"):
        correct_groups(none, none, calibration=(["a", "b"] * 9, ["a", "b"] * 9))
    with pytest.raises(InvalidData, match="judged has 2000 values but human has 3"):
        correct_groups(judged, none[:3])
    with pytest.raises(InvalidSetting, match="level must be a number from 0"):
        correct_groups(judged, human, level=95)

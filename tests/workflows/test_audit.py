import numpy as np
import pytest

from quanet import correct_rate
from quanet.data.periods import Key
from quanet.errors import InvalidData
from quanet.report.judge_audit import anchor_finding, difference_sentence
from quanet.report.judge_errors import cluster_sentences
from quanet.workflows.audit import audit_judges
from quanet.workflows.correct import correct_groups
from quanet.workflows.judge_checks import check_anchor
from quanet.workflows.judge_differences import compare_rates

NAMES = np.array(["good", "bad"], dtype=object)
GROUPS = {"keys": [Key("g")], "groups": [("x",), ("y",), ("z",)]}


def conversations(n=120, size=8, shares=(0.2, 0.2, 0.5), labelled=0.5, seed=0):
    """Judgements of conversations of three systems; bad answers and errors cluster in them."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n), size)
    owner = unit % 3
    share = rng.beta(2, 2, n)[unit] * 2 * np.array(shares)[owner]
    truth = (rng.random(n * size) < share).astype(int)
    found = rng.beta(6, 1.5, n)[unit]
    judge = (rng.random(n * size) < np.where(truth, found, 0.1)).astype(int)
    human = np.where((rng.random(n) < labelled)[unit], NAMES[truth], None)
    return NAMES[judge], human, owner, unit, NAMES[truth]


def test_clusters_of_one_row_change_nothing_and_this_is_said():
    judged, human, owner, unit, _ = conversations()
    plain = correct_groups(judged, human, owner=owner, **GROUPS)
    alone = correct_groups(judged, human, owner=owner, clusters=np.arange(len(unit)), **GROUPS)
    np.testing.assert_array_equal(plain.lower, alone.lower)
    np.testing.assert_array_equal(plain.total, alone.total)
    assert cluster_sentences(alone)[0].startswith("Every cluster has one row")


def test_clusters_widen_the_intervals_and_keep_the_estimates():
    judged, human, owner, unit, _ = conversations()
    plain = correct_groups(judged, human, owner=owner, **GROUPS)
    clustered = correct_groups(judged, human, owner=owner, clusters=unit, same_errors=True, **GROUPS)
    np.testing.assert_allclose(clustered.total[0], plain.total[0])
    assert clustered.total[2, 0] - clustered.total[1, 0] > 1.2 * (plain.total[2, 0] - plain.total[1, 0])
    assert clustered.clusters.judged == 120
    assert clustered.clusters.effect[0] > 1.3
    assert "times those of as many independent rows" in cluster_sentences(clustered)[0]


def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter():
    judged, human, owner, unit, _ = conversations()
    order = np.random.default_rng(1).permutation(len(unit))
    one = correct_groups(judged, human, owner=owner, clusters=unit, **GROUPS)
    names = np.array([f"c{i}" for i in unit], dtype=object)
    other = correct_groups(judged[order], human[order], owner=owner[order], clusters=names[order], **GROUPS)
    np.testing.assert_allclose(one.lower, other.lower, atol=1e-7)
    np.testing.assert_allclose(one.spread.covariance, other.spread.covariance, rtol=1e-9)


def test_clusters_may_be_in_both_files_or_unknown_for_some_rows():
    judged, human, _, unit, truth = conversations()
    calibration = (truth[:400], judged[:400], unit[:400])
    found = correct_groups(judged, [None] * len(judged), calibration=calibration, clusters=unit)
    assert (found.clusters.labelled, found.clusters.shared) == (50, 50)
    assert "count as one cluster" in cluster_sentences(found)[1]
    apart = correct_groups(
        judged, [None] * len(judged), calibration=(*calibration[:2], unit[:400] - 1000), clusters=unit
    )
    assert apart.clusters.shared == 0
    holes = np.where(np.arange(len(unit)) % 2, unit, None)
    assert correct_groups(judged, human, clusters=holes).clusters.judged == 120 + len(unit) // 2
    with pytest.raises(InvalidData, match="clusters has 3 values but judged has 960"):
        correct_groups(judged, human, clusters=unit[:3])


@pytest.mark.parametrize("at_random", [True, False])
def test_clusters_in_python_are_those_of_the_command(at_random):
    judged, human, _, unit, truth = conversations()
    known = human != None  # noqa: E711
    if at_random:
        found = correct_groups(judged, human, clusters=unit)
        beside, options = ~known, {"calibration": "part"}
    else:
        found = correct_groups(
            judged, [None] * len(unit), calibration=(truth[known], judged[known], unit[known]), clusters=unit
        )
        beside, options = np.ones(len(unit), dtype=bool), {}
    rate = correct_rate(
        judged[beside].astype(str),
        truth[known].astype(str),
        judged[known].astype(str),
        clusters=(unit[beside], unit[known]),
        **options,
    )
    np.testing.assert_allclose([rate.estimate, rate.lower, rate.upper], found.total[:3], atol=1e-6)
    with pytest.raises(InvalidData, match="judged has 960 values but its clusters have 3"):
        correct_rate(judged.astype(str), truth.astype(str), judged.astype(str), clusters=(unit[:3], unit))


def test_a_group_of_one_cluster_has_no_narrow_interval():
    judged, human, owner, unit, _ = conversations()
    owner = np.where(unit == 0, 0, 1 + unit % 2)
    found = correct_groups(judged, human, owner=owner, clusters=unit, same_errors=True, **GROUPS)
    assert found.upper[0, 0] - found.lower[0, 0] > 0.5
    assert found.clusters.few[0]


def test_each_group_is_compared_with_the_rest_a_baseline_or_the_previous_one():
    judged, human, owner, unit, _ = conversations(n=300, seed=2)
    found = correct_groups(judged, human, owner=owner, clusters=unit, joint=True, **GROUPS)
    names = ["x", "y", "z"]
    rest = compare_rates(found, names, against="rest")
    others = found.sizes[:2] @ found.estimate[:2] / found.sizes[:2].sum()
    np.testing.assert_allclose(rest.estimate[2], found.estimate[2] - others)
    assert rest.significant[2].all()
    assert "z" in difference_sentence(rest, 0)
    base = compare_rates(found, names, against="y")
    assert list(zip(base.first, base.second, strict=True)) == [("y", "x"), ("y", "z")]
    np.testing.assert_allclose(base.estimate[1], found.estimate[2] - found.estimate[1])
    previous = compare_rates(found, names, against="previous")
    pair = compare_rates(found, names, between=("x", "y"))
    np.testing.assert_allclose(previous.estimate[0], pair.estimate[0])
    assert pair.sizes.tolist() == [[found.sizes[0], found.sizes[1]]]
    assert "no difference is significant" in difference_sentence(pair, 0)
    for wrong, message in (("w", "no group is named 'w'"), ("", "no group")):
        with pytest.raises(InvalidData, match=message):
            compare_rates(found, names, against=wrong)
    with pytest.raises(InvalidData, match="twice"):
        compare_rates(found, names, between=("x", "x"))
    with pytest.raises(InvalidData, match="at least two groups"):
        compare_rates(correct_groups(judged, human, joint=True), ["all"], against="rest")


def several(n=3000, m=600, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    judges = {
        name: NAMES[(rng.random(n) < np.where(truth, found, 0.1)).astype(int)]
        for name, found in (("one", 0.9), ("two", 0.8), ("three", 0.7))
    }
    return judges, np.where(np.arange(n) < m, NAMES[truth], None)


def test_all_judges_together_know_at_least_as_much_as_the_best():
    judges, human = several()
    found = audit_judges(judges, human)
    widths = found.panel.totals[:, 2, 0] - found.panel.totals[:, 1, 0]
    assert found.total[2, 0] - found.total[1, 0] < widths.min()
    alone = audit_judges({"one": judges["one"]}, human)
    np.testing.assert_allclose(found.panel.totals[0], alone.total)
    assert alone.panel is None
    assert found.panel.names == ("one", "two", "three")
    assert found.panel.kappa[0, 3] > found.panel.kappa[2, 3] > 0.4  # agreement with people


def test_one_judge_twice_is_that_judge():
    judges, human = several()
    twice = audit_judges({"a": judges["one"], "b": judges["one"]}, human)
    once = audit_judges({"a": judges["one"]}, human)
    np.testing.assert_allclose(twice.total[:3], once.total[:3], atol=1e-4)


def test_several_judges_may_be_calibrated_elsewhere_and_miss_labels():
    judges, human = several()
    known = human != None  # noqa: E711
    pairs = (human[known], [one[known] for one in judges.values()])
    elsewhere = audit_judges({name: one[~known] for name, one in judges.items()}, [None] * 2400, calibration=pairs)
    chosen = audit_judges(judges, human, at_random=False)
    np.testing.assert_allclose(elsewhere.total[0], chosen.total[0], atol=0.03)
    judges["two"] = np.where(np.arange(3000) % 3 == 0, None, judges["two"])
    assert audit_judges(judges, human).skipped == {"no judgement": 1000}
    judges["two"] = np.where(known, None, judges["one"])
    with pytest.raises(InvalidData, match=r"no row has both|labels of all judges"):
        audit_judges(judges, human)


def anchor_set(found, n=400, seed=5):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    return NAMES[truth], NAMES[(rng.random(n) < np.where(truth, found, 0.1)).astype(int)]


@pytest.mark.parametrize(("now", "severity"), [(0.9, "ok"), (0.6, "alarm")])
def test_an_anchor_set_shows_whether_the_judge_has_changed(now, severity):
    judges, human = several()
    truth, said = anchor_set(now)
    found = audit_judges({"one": judges["one"]}, human, anchor=("anchor.csv", truth, [said]))
    (finding,) = anchor_finding(found)
    assert finding.severity == severity
    assert "anchor.csv" in finding.sentence
    if severity == "alarm":
        assert "it gives bad to" in finding.sentence
        assert found.anchor.rates[1, 0, 0] > found.anchor.rates[0, 0, 0]


def test_an_anchor_set_works_with_scores_and_several_judges_and_is_checked():
    judges, human = several()
    truth, said = anchor_set(0.5)
    both = {name: judges[name] for name in ("one", "three")}
    found = audit_judges(both, human, anchor=("a", truth, [said, anchor_set(0.7)[1]]))
    assert found.anchor.judge == "one"
    scores = (judges["one"] == "good") + np.random.default_rng(0).normal(size=3000) / 4
    now = (said == "good") + np.random.default_rng(1).normal(size=400) / 4
    assert check_anchor(scores, human, (truth, now), scores=True).test.differ
    few = check_anchor(judges["one"], human, (truth[:4], said[:4]))
    assert not few.test.tested
    assert np.isnan(few.rates).all()
    with pytest.raises(InvalidData, match="no row with a human label and a judgement"):
        check_anchor(judges["one"], human, ([None], ["bad"]), source="a.csv")
    with pytest.raises(InvalidData, match=r"a.csv: the label 'ugly' \(1 rows\) is not among the human labels"):
        check_anchor(judges["one"], human, (["ugly"], ["bad"]), source="a.csv")


def test_clusters_in_the_anchor_set_count_as_clusters():
    judged, human, _, unit, _ = conversations()
    truth, said = (np.repeat(one, 5) for one in anchor_set(0.7, n=60))  # each row five times
    rows = check_anchor(judged, human, (truth, said), clusters=unit)
    whole = check_anchor(judged, human, (truth, said, np.repeat(np.arange(60), 5)), clusters=unit)
    assert whole.test.p_value > 2 * rows.test.p_value

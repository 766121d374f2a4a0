import numpy as np
import pytest

from quanet.errors import InvalidBags, InvalidSetting
from quanet.workflows.drawing import BAGS, Drawing, draw_bags

TWO = np.array(["no", "yes"])


def test_by_default_bags_are_those_of_the_paper():
    drawn = draw_bags(Drawing(), ["no", "yes"] * 600, TWO, rng=0)
    assert drawn.bags.indices.shape == (2100, 500)
    assert len(np.unique(drawn.bags.prevalences[:, 1])) == 21
    assert drawn.notes == ()
    assert drawn.bag_size == 500


def test_more_classes_have_about_as_many_bags():
    labels = np.repeat(["a", "b", "c", "d"], 400)
    drawn = draw_bags(Drawing(), labels, np.unique(labels), rng=0)
    assert BAGS / 2 < len(drawn.bags) < 2 * BAGS
    assert drawn.protocol == "APP: 1,771 prevalences x 1 bags of 500"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("UPP", "UPP: 7 bags of 20, prevalences uniform"),
        ("npp", "NPP: 7 bags of 20 drawn at random"),
        ("dirichlet:0.5", "Dirichlet(0.5): 7 bags of 20"),
        ("app", "APP: 21 prevalences x 7 bags of 20"),
    ],
)
def test_protocols_are_known_by_name(text, told):
    drawn = draw_bags(Drawing.parse(text, bag_size=20, repeats=7), ["no", "yes"] * 30, TWO, rng=0)
    assert drawn.protocol == told
    assert set(drawn.bags.sizes.tolist()) == {20}


def test_a_class_with_fewer_instances_than_bags_need_is_told():
    drawn = draw_bags(Drawing(bag_size=50, repeats=1), ["no"] * 100 + ["yes"] * 9, TWO, rng=0)
    assert drawn.notes == (
        "Some bags contain an instance more than once, because the file has few instances of 'yes' (9).",
    )


def test_groups_are_bags_and_those_of_one_instance_are_left_out():
    groups = ["May", "May", "June", None, "July", "July", "July"]
    labels = ["no", "yes", "no", "no", "yes", "yes", "no"]
    drawn = draw_bags(Drawing.parse("by:month"), labels, TWO, groups=groups, rng=0)
    assert drawn.bags.labels.tolist() == ["July", "May"]
    np.testing.assert_allclose(drawn.bags.prevalences, [[1 / 3, 2 / 3], [0.5, 0.5]])
    assert drawn.protocol == "by month: 2 groups of 2 to 3"
    assert drawn.notes == ("Skipped 2 of 4 groups: they have only one instance.",)
    assert drawn.bag_size is None
    with pytest.raises(InvalidBags, match="every group of 'id' has only one instance"):
        draw_bags(Drawing.parse("by:id"), labels, TWO, groups=list("abcdefg"), rng=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("aapp", "Unknown protocol 'aapp'. Did you mean 'app'"),
        ("by", "by needs a column"),
        ("npp:3", "npp has no parameter"),
        ("dirichlet:many", r"a number from 0.001 to 1e\+06; got 'many'"),
        ("dirichlet:-1", r"a number from 0.001 to 1e\+06; got '-1'"),
    ],
)
def test_what_is_no_protocol_is_refused(text, message):
    with pytest.raises(InvalidSetting, match=message):
        Drawing.parse(text)

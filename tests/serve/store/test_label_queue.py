import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quanet.serve.store import label_queue
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.label_queue import LabelProgress
from quanet.serve.store.store_errors import LeaseLost, NotFound
from tests.serve.store.made_stores import made_batch, made_plan, made_project


@pytest.fixture
def plan(store):
    project = made_project(store).id
    return made_plan(store, project, made_batch(store, project).id).id


def test_people_see_different_items_and_each_the_same_until_it_is_labelled(store, plan):
    with store.write() as c:
        shown = [label_queue.next_item(c, plan, who).position for who in ("Ann", "Bob", "Ann", "Cem")]
    assert shown == [0, 1, 0, 2]


def test_an_item_whose_lease_has_ended_is_shown_to_others(store, plan):
    with store.write() as c:
        left = label_queue.next_item(c, plan, "Ann", lease=0)
        assert label_queue.next_item(c, plan, "Bob").id == left.id
        with pytest.raises(LeaseLost, match="Bob is labelling this item"):
            label_queue.give_label(c, left.id, "Ann", "good")
        label_queue.give_label(c, left.id, "Bob", "bad")
        with pytest.raises(LeaseLost, match="already labelled by Bob"):
            label_queue.skip_item(c, left.id, "Ann")
        assert label_queue.labels(c, plan) == {0: "bad"}


def test_a_label_that_comes_late_counts_if_nobody_else_was_shown_the_item(store, plan):
    with store.write() as c:
        late = label_queue.next_item(c, plan, "Ann", lease=0)
        assert label_queue.give_label(c, late.id, "Ann", "good").label == "good"


def test_a_request_can_be_repeated(store, plan):
    with store.write() as c:
        item = label_queue.next_item(c, plan, "Ann").id
        assert label_queue.give_label(c, item, "Ann", "good") == label_queue.give_label(c, item, "Ann", "good")
        with pytest.raises(LeaseLost):  # a second key on the same screen
            label_queue.give_label(c, item, "Ann", "bad")
        item = label_queue.next_item(c, plan, "Ann").id
        assert label_queue.skip_item(c, item, "Ann") == label_queue.skip_item(c, item, "Ann")
        assert label_queue.progress(c, plan) == LabelProgress(1, 1, 3)


def test_undo_takes_back_ones_own_last_decisions_in_reverse_order(store, plan):
    with store.write() as c:
        for who, label in [("Ann", "good"), ("Bob", "bad"), ("Ann", None)]:
            item = label_queue.next_item(c, plan, who).id
            label_queue.give_label(c, item, who, label) if label else label_queue.skip_item(c, item, who)
        label_queue.next_item(c, plan, "Ann")
        back = label_queue.undo(c, plan, "Ann")
        assert (back.position, back.skipped, back.holder) == (2, 0, "Ann")
        assert label_queue.next_item(c, plan, "Ann").id == back.id
        assert label_queue.undo(c, plan, "Ann").position == 0
        assert label_queue.undo(c, plan, "Ann") is None
        assert label_queue.labels(c, plan) == {1: "bad"}


def test_a_plan_that_is_done_has_no_next_item(store, plan):
    with store.write() as c:
        while item := label_queue.next_item(c, plan, "Ann"):
            label_queue.give_label(c, item.id, "Ann", "good")
        assert label_queue.progress(c, plan) == LabelProgress(5, 0, 0)


def test_any_text_and_label_is_kept(store):
    project = made_project(store).id
    batch = made_batch(store, project).id
    hostile = "<script>\0\ud800 ' -- \U0001f600" + "x" * 5000
    with store.write() as c:
        sheet = store.blobs.put_bytes(b"sheet", "csv")
        plan = label_queue.add_plan(c, project, batch, sheet, {}, [(7, hostile, {"month": float("nan")})])
        item = label_queue.next_item(c, plan.id, "A" * 1000)
        label_queue.give_label(c, item.id, "A" * 1000, hostile)
        assert label_queue.labels(c, plan.id) == {7: item.text}
        assert label_queue.plans(c, batch) == [label_queue.plan(c, plan.id)]
        with pytest.raises(NotFound):
            label_queue.item(c, 12345)
    assert (len(item.text), item.detail, len(item.holder)) == (len(hostile), {"month": None}, 100)


MOVES = st.lists(st.tuples(st.sampled_from(["Ann", "Bob", "Cem"]), st.sampled_from(["label", "skip", "undo", "leave"])))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_whatever_people_do_every_item_is_in_one_place(store, moves):
    project = made_project(store).id
    plan = made_plan(store, project, made_batch(store, project, project.encode()).id).id
    decided = []
    with store.write() as c:
        for who, move in moves:
            if move == "undo":
                back = label_queue.undo(c, plan, who)
                own = [entry for entry in decided if entry[0] == who]
                assert (back and back.id) == (own[-1][1] if own else None)
                decided = [entry for entry in decided if not own or entry is not own[-1]]
                continue
            item = label_queue.next_item(c, plan, who, lease=0 if move == "leave" else 300)
            if item is not None and move != "leave":
                assert item.id not in {entry[1] for entry in decided}
                give = (
                    label_queue.give_label(c, item.id, who, "x")
                    if move == "label"
                    else label_queue.skip_item(c, item.id, who)
                )
                decided.append((who, give.id))
        found = label_queue.progress(c, plan)
        assert found.labelled + found.skipped == len(decided)
        assert found.left == 5 - len(decided)
    assert check_integrity(store, contents=False) == []

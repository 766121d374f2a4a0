"""Labelling through the API: several people, no row twice."""

import pytest


@pytest.fixture
def place(made):
    return f"/api/projects/{made.project}/batches/{made.batch}/label"


def visitor(name):
    return {"x-visitor": name}


def test_two_people_never_see_the_same_row(client, place):
    first = client.get(place, headers=visitor("ann")).json()
    second = client.get(place, headers=visitor("bob")).json()
    assert first["item"]["id"] != second["item"]["id"]
    assert client.get(place, headers=visitor("ann")).json() == {**first, "progress": first["progress"]}
    assert first["classes"] == ["neg", "pos"]


def test_a_label_is_given_once_and_gives_the_next_row(client, place, store, made):
    item = client.get(place, headers=visitor("ann")).json()["item"]["id"]
    given = {"item": item, "label": "pos"}
    answer = client.post(place, json=given, headers=visitor("ann"))
    assert answer.json()["item"]["id"] != item
    assert client.post(place, json=given, headers=visitor("ann")).status_code == 200  # sent again
    refused = client.post(place, json={**given, "label": "neg"}, headers=visitor("bob"))
    assert refused.status_code == 409
    assert "already labelled" in refused.json()["error"]


def test_undo_gives_the_row_back(client, place):
    item = client.get(place).json()["item"]["id"]
    client.post(place, json={"item": item, "skip": True})
    assert client.post(f"{place}/undo").json()["item"]["id"] == item
    assert client.post(f"{place}/undo").status_code == 409


def test_labels_queue_one_refinement(client, place, made):
    for _ in range(3):
        found = client.get(place).json()["item"]
        client.post(place, json={"item": found["id"], "label": "pos"})
    jobs = client.get(f"/api/projects/{made.project}/jobs").json()["jobs"]
    assert [one["kind"] for one in jobs].count("refine") == 1
    assert client.get(place).json()["item"] is None


def test_only_classes_are_labels(client, place):
    item = client.get(place).json()["item"]["id"]
    answer = client.post(place, json={"item": item, "label": "poss"})
    assert answer.status_code == 422
    assert answer.json() == {
        "error": "Unknown class 'poss'. Did you mean 'pos'? Choose from neg, pos.",
        "field": "label",
    }


def test_an_item_of_another_plan_is_refused(client, place):
    assert client.post(place, json={"item": 999, "label": "pos"}).status_code == 404


def test_labels_are_exported_as_the_sheet(client, place, made):
    item = client.get(place).json()["item"]["id"]
    client.post(place, json={"item": item, "label": "pos"})
    answer = client.get(f"/projects/{made.project}/batches/{made.batch}/labels.csv")
    assert answer.text.splitlines()[1] == "Fine film,pos,1,2"
    assert answer.headers["content-disposition"] == f'attachment; filename="labels-{made.batch}.csv"'


def test_a_batch_without_a_plan_says_so(client, made):
    added = client.post(f"/api/projects/{made.project}/batches", content=b"text\nx\n").json()["id"]
    place = f"/api/projects/{made.project}/batches/{added}"
    assert "no plan" in client.get(f"{place}/label").json()["error"]
    assert "no answer yet" in client.post(f"{place}/plan").json()["error"]

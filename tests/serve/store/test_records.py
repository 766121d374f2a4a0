"""Answers, alarms, tokens and the audit log."""

import pytest

from quanet.errors import InvalidSetting
from quanet.serve.store import alarms, answers, audit_log, tokens
from quanet.serve.store.schema import secrets
from quanet.serve.store.schema import tokens as token_table
from quanet.serve.store.store_errors import NotFound
from tests.serve.store.made_stores import made_answer, made_project


def test_an_answer_replaces_the_one_about_the_same(store):
    project = made_project(store).id
    made_answer(store, project, "overview", "project", level=0.9)
    newer = made_answer(store, project, "overview", "project", level=0.95)
    made_answer(store, project, "batch", "batch:1")
    with store.read() as c:
        assert answers.answer(c, project, "overview", "project") == newer == answers.answer_by_id(c, project, newer.id)
        assert [answer.kind for answer in answers.list_answers(c, project)] == ["batch", "overview"]
        assert answers.list_answers(c, project, "overview") == [newer]
        assert answers.answer(c, project, "monitor", "project") is None


def test_files_of_a_replaced_answer_remain_for_those_who_are_reading_them(store):
    project = made_project(store).id
    old = made_answer(store, project, "overview", "project", "old")
    made_answer(store, project, "overview", "project", "new")
    assert set(old.forms.values()) <= set(store.blobs.names())


def test_a_deleted_answer_can_be_about_anything(store):
    project = made_project(store).id
    long = made_answer(store, project, "difference", "2024-05, " * 100 + "|" + "\0")
    with store.write() as c:
        assert answers.answer(c, project, "difference", "2024-05, " * 100 + "|" + "\0") == long
        answers.delete_answer(c, project, long.id)
        assert answers.list_answers(c, project) == []


def test_an_alarm_is_announced_once(store):
    project = made_project(store).id
    with store.write() as c:
        first, new = alarms.add_alarm(c, project, "2024-05:good", "2024-05", "The share of good fell.", {"level": 0.95})
        again, known = alarms.add_alarm(c, project, "2024-05:good", "2024-05", "another sentence", {})
        assert (new, known, again) == (True, False, first)
        alarms.mark_delivered(c, first.id)
        delivered = alarms.alarm(c, first.id).delivered
        alarms.mark_delivered(c, first.id)
        assert alarms.list_alarms(c, project)[0].delivered == delivered
        assert alarms.list_alarms(c, project, before=first.id) == []


def test_a_token_is_found_by_its_secret_which_is_not_stored(store):
    with store.write() as c:
        assert not tokens.has_tokens(c)
        secret = tokens.create_token(c, " nightly import ", "manage")
        token = tokens.find_token(c, secret)
        assert (token.name, token.role, token.used) == ("nightly import", "manage", None)
        assert tokens.find_token(c, secret[:-1]) is tokens.find_token(c, "\ud800") is None
        assert secret not in str(c.execute(token_table.select()).all())
        assert tokens.has_tokens(c)
    tokens.note_use(store, token)
    with store.write() as c:
        used = tokens.list_tokens(c)[0]
        tokens.note_use(store, used)  # within a minute: no second writer
        assert used.used is not None
        tokens.delete_token(c, "nightly import")
        assert tokens.find_token(c, secret) is None
        with pytest.raises(NotFound, match="No token is named 'nightly import'"):
            tokens.delete_token(c, "nightly import")


def test_a_token_needs_a_new_name_and_a_known_role(store):
    with store.write() as c:
        tokens.create_token(c, "Ann", "label")
        for name, role, problem in [
            ("Ann", "read", "already exists"),
            (" ", "read", "name"),
            ("Bob", "mange", "'manage'"),
        ]:
            with pytest.raises(InvalidSetting, match=problem):
                tokens.create_token(c, name, role)


def test_a_secret_key_is_made_once(store):
    key = tokens.secret_key(store)
    assert tokens.secret_key(store) == key
    assert tokens.secret_key(store, "webhooks") != key
    assert len(key) == 32
    with store.read() as c:
        assert len(c.execute(secrets.select()).all()) == 2


def test_the_audit_log_outlives_the_project(store):
    from quanet.serve.store import projects

    project = made_project(store).id
    with store.write() as c:
        audit_log.record(c, "Ann\0", "create project", project, {"name": "Reviews"})
        audit_log.record(c, "Ann", "sign in")
    projects.delete_project(store, project)
    with store.read() as c:
        assert [(entry.who, entry.detail) for entry in audit_log.list_audit(c, project)] == [
            ("Ann\ufffd", {"name": "Reviews"})
        ]
        newest = audit_log.list_audit(c, limit=1)[0]
        assert newest.action == "sign in"
        assert [entry.action for entry in audit_log.list_audit(c, before=newest.id)] == ["create project"]

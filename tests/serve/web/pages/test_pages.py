import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quanet.report.palette import DARK, LIGHT, contrast
from quanet.serve.store.jobs import enqueue, list_jobs
from quanet.serve.store.projects import change_settings, create_project, project
from quanet.serve.store.uploads import add_file
from quanet.serve.web.pages.rendering import TEMPLATES
from tests.serve.web.pages.conftest import HOSTILE
from tests.serve.web.pages.made_pages import fill

STATIC = TEMPLATES.parent / "static"
PLACES = (
    "/",
    "/projects/{0.project}",
    "/projects/{0.project}?compare=3",
    "/projects/{0.project}/setup",
    "/projects/{0.project}/model",
    "/projects/{0.project}/batches",
    "/projects/{0.project}/batches/{0.batch}",
    "/projects/{0.project}/batches/{0.failed}",
    "/projects/{0.project}/batches/{0.batch}/label",
    "/projects/{0.project}/batches/{0.batch}/label/band",
    "/projects/{0.project}/monitor",
    "/projects/{0.project}/settings",
    "/projects/{0.project}/difference?before=2010-01&after=2010-02",
    "/jobs/1",
    "/jobs/1/part",
    "/nowhere",
)
LARGEST = 200_000


class Found(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


@pytest.mark.parametrize("place", PLACES)
def test_a_page_is_complete_and_has_no_inline_script_or_style_whatever_names_are(client, made, place):
    answer = client.get(place.format(made))
    assert answer.status_code == (404 if place == "/nowhere" else 200)
    assert len(answer.content) < LARGEST
    for tag, attributes in Found(answer.text).tags:
        assert tag != "style"
        assert tag != "script" or attributes["src"].startswith("/static/")
        assert tag != "img"
        assert not [name for name in attributes if name == "style" or name.startswith(("on", "hx-on"))]
        assert "javascript:" not in str(attributes.get("href"))
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_names_are_shown_as_they_are(client, made):
    page = client.get(f"/projects/{made.project}").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in page
    assert HOSTILE not in page


def test_every_page_is_small_with_ten_thousand_batches_and_hundreds_of_groups(client, store):
    many = fill(store, "many", number=10_000, months=200, fragment="<section>" + "x" * 90_000 + "</section>")
    for place in PLACES:
        assert len(client.get(place.format(many)).content) < LARGEST, place
    first = client.get(f"/projects/{many.project}/batches").text
    older = re.search(r'href="(/projects/\w+/batches\?before=\d+)"', first)[1]
    second = client.get(older).text
    ids = [set(re.findall(r"/batches/(\d+)\"", page)) for page in (first, second)]
    assert len(ids[0]) == len(ids[1]) == 50
    assert not ids[0] & ids[1]


def test_colours_are_those_of_reports_and_readable():
    styles = (STATIC / "quanet.css").read_text()
    light, dark = styles.split("@media screen and (prefers-color-scheme: dark)")[:2]
    for palette, part in ((LIGHT, light), (DARK, dark)):
        found = dict(re.findall(r"--([\w-]+): (#\w{6});", part))
        assert palette.items() <= found.items()
        assert contrast(found["on-blue"], found["blue"]) >= 4.5
        assert contrast(found["on-blue"], found["note"]) >= 4.5
        assert contrast(found["muted"], found["raised"]) >= 4.5
        assert contrast(found["field"], found["paper"]) >= 3
        for name in ("ok", "note", "warning", "alarm"):
            assert contrast(found[name], found["raised"]) >= 4.5


def test_htmx_is_the_pinned_one():
    from hashlib import sha256

    [file] = STATIC.glob("htmx-*.js")
    assert sha256(file.read_bytes()).hexdigest() in (STATIC / "README.md").read_text()
    assert file.name in (TEMPLATES / "base.html").read_text()
    assert (STATIC / "htmx-LICENSE.txt").read_text().startswith("Zero-Clause BSD")


def test_no_template_trusts_anything_but_stored_fragments():
    for path in TEMPLATES.iterdir():
        text = path.read_text()
        assert "| safe" not in text
        assert "autoescape" not in text
        assert path.name == "parts.html" or "trusted_fragment" not in text


def test_two_clicks_compare_two_periods_and_the_earlier_one_comes_first(client, store, made, form):
    place = f"/projects/{made.project}"
    chosen = client.get(f"{place}?compare=3").text  # the first click
    assert "Compare <strong>2010-04</strong> with which other one?" in chosen
    fields = {"before": '["2010-04"]', "after": '["2010-02"]'}
    sent = form(place, f"{place}/difference", fields)  # the second one
    assert sent.status_code == 303
    assert "before=2010-02&after=2010-04" in sent.headers["location"]
    shown = client.get(sent.headers["location"]).text
    assert "2010-02" in shown
    assert "hx-get" in shown  # it waits for the job
    with store.read() as connection:
        job = next(job for job in list_jobs(connection, made.project) if job.kind == "difference")
    assert job.payload == {"before": ["2010-02"], "after": ["2010-04"]}


def test_corrected_columns_become_settings_and_train_the_project(client, store, made, form):
    place = f"/projects/{made.project}/setup"
    fields = {"role-0": "text", "role-1": "label", "role-2": "by", "period-2": "week", "role-3": "by"}
    sent = form(place, place, fields | {"normalize_labels": "yes", "encoding": "", "do": "train"})
    assert sent.status_code == 303
    with store.read() as connection:
        settings = project(connection, made.project).settings
        kinds = {job.kind for job in list_jobs(connection, made.project, state="queued")}
    assert settings["by"] == ["posted:week", "id"]
    assert settings["normalize_labels"] is True
    assert (settings["text"], settings["label"]) == ("text", "sentiment")
    assert "train" in kinds
    assert "Learning from" in client.get(place).text


def test_training_again_keeps_groups_by_columns_that_only_new_data_have(store, form):
    other = fill(store, "kept groups")
    with store.write() as connection:
        change_settings(connection, other.project, {"by": ["shop", "sold:week"]})
    place = f"/projects/{other.project}/setup"
    assert form(place, place, {"role-0": "text", "role-1": "label", "do": "check"}).status_code == 303
    with store.read() as connection:
        assert project(connection, other.project).settings["by"] == ["shop", "sold:week"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"role-0": "text", "role-1": "text"}, "Choose one column as the text"),
        ({"role-0": "text", "role-1": ""}, "Which column has the labels?"),
    ],
)
def test_a_wrong_choice_of_columns_is_named_where_it_was_made(client, store, form, fields, sentence):
    other = fill(store, f"columns {sentence}")
    place = f"/projects/{other.project}/setup"
    sent = form(place, place, fields)
    assert sent.status_code == 422
    assert sentence in sent.text
    assert sent.text.index(sentence) < sent.text.index('class="columns"')


def test_a_file_that_is_refused_is_named_next_to_the_field(client, made, form):
    for page, action in (("/", "/projects"), (f"/projects/{made.project}", f"/projects/{made.project}/batches")):
        sent = form(page, action, files={"file": ("picture.png", b"\x89PNG\r\n", "image/png")})
        assert sent.status_code == 415
        assert "The file is a picture." in sent.text
        assert 'aria-describedby="file-wrong"' in sent.text


def test_a_project_starts_with_a_dropped_file(client, store, form):
    sent = form("/", "/projects", files={"file": ("customer_reviews.csv", b"text,label\nfine,good\n", "text/csv")})
    assert sent.status_code == 303
    place = sent.headers["location"]
    page = client.get(place).text
    assert "Looking at customer_reviews.csv" in page
    assert 'http-equiv="refresh"' in page  # without a script
    assert "customer reviews" in client.get("/").text
    overview = client.get(place.removesuffix("/setup"), follow_redirects=False)
    assert overview.headers["location"] == place


def test_a_failed_training_is_shown_next_to_its_field(client, store):
    with store.write() as connection:
        made = create_project(connection, "failed", {})
        blob = store.blobs.put_bytes(b"a,b\n1,2\n", "csv")
        file = add_file(connection, made.id, "training", "a.csv", blob, 8)
        enqueue(connection, "check", made.id, {"file": file.id}, key="x")
    from quanet.serve.store.jobs import claim, fail

    while (job := claim(store, "me", "quick")) and job.project != made.id:
        pass
    with store.write() as connection:
        fail(connection, job, "a.csv has no column that looks like a text. Name it with --text COLUMN.")
    page = client.get(f"/projects/{made.id}/setup").text
    assert "a.csv cannot be used" in page
    assert "Name it with --text COLUMN." in page


def test_labels_are_given_skipped_and_undone_without_a_script(client, store, form):
    other = fill(store, "labels")
    place = f"/projects/{other.project}/batches/{other.batch}/label"
    page = client.get(place).text
    assert "40 labels narrow the interval from 9.0 to 5.0 points." in page
    item = re.search(r'name="item" value="(\d+)"', page)[1]
    assert form(place, place, {"item": item, "label": "negative"}).status_code == 303
    page = client.get(place).text
    assert "1 labelled, 39 to go" in page
    item = re.search(r'name="item" value="(\d+)"', page)[1]
    assert form(place, place, {"item": item, "do": "skip"}).status_code == 303
    assert "1 labelled, 38 to go, 1 skipped" in client.get(place).text
    for _ in range(2):
        assert form(place, place, {"do": "undo"}).status_code == 303
    assert "0 labelled, 40 to go" in client.get(place).text
    wrong = form(place, place, {"item": item, "label": "no such class"})
    assert "Unknown class &#39;no such class&#39;" in wrong.text


def test_a_wrong_setting_is_named_next_to_its_field_and_keeps_what_was_typed(client, store, made, form):
    place = f"/projects/{made.project}/settings"
    sent = form(place, place, {"name": "New name", "webhook": "ftp://example.org", "by": "posted:month"})
    assert sent.status_code == 422
    assert "is not an address such as https://example.org/alarms" in sent.text
    assert 'aria-describedby="webhook-wrong"' in sent.text
    assert 'value="ftp://example.org"' in sent.text
    sent = form(
        place, place, {"name": HOSTILE, "webhook": "https://example.org/a", "by": "posted:month", "show": "negative"}
    )
    assert sent.status_code == 303
    saved = client.get(sent.headers["location"]).text
    assert "Saved." in saved
    assert "Messages are signed with the secret" in saved


def test_a_project_is_deleted_once_its_name_was_typed(client, store, form):
    other = fill(store, "to delete")
    place = f"/projects/{other.project}"
    refused = form(f"{place}/settings", f"{place}/delete", {"confirm": "another"})
    assert refused.status_code == 422
    assert "This is not the name of the project." in refused.text
    assert client.get(place).status_code == 200
    assert form(f"{place}/settings", f"{place}/delete", {"confirm": "to delete"}).headers["location"] == "/"
    gone = client.get(place)
    assert gone.status_code == 404
    assert "The project does not exist, or was deleted." in gone.text


def test_a_form_without_its_token_changes_nothing(client, made):
    answer = client.post(
        f"/projects/{made.project}/delete", data={"confirm": HOSTILE}, headers={"origin": "http://localhost"}
    )
    assert answer.status_code == 403
    assert client.get(f"/projects/{made.project}").status_code == 200


def test_parts_of_pages_follow_a_job_to_its_end(client, store, made):
    with store.write() as connection:
        job = enqueue(connection, "train", made.project, {"file": 1}, key="follow", lane="long")
    part = client.get(f"/jobs/{job.id}/part?then=onward")
    assert f'hx-get="/jobs/{job.id}/part?then=onward"' in part.text
    from quanet.serve.store.jobs import claim, finish

    while (held := claim(store, "me", "long")) and held.id != job.id:
        pass
    with store.write() as connection:
        finish(connection, held)
    assert client.get(f"/jobs/{job.id}/part?then=onward").headers["hx-redirect"] == f"/projects/{made.project}/model"
    assert client.get(f"/jobs/{job.id}/part").headers["hx-refresh"] == "true"
    offered = client.get(f"/jobs/{job.id}/part?then=offer")
    assert "New results are ready." in offered.text
    assert offered.headers["hx-trigger"] == "fresh"


def test_the_readme_of_static_files_lists_them_all():
    text = (STATIC / "README.md").read_text()
    for path in Path(STATIC).iterdir():
        assert path.name == "README.md" or f"`{path.name}`" in text

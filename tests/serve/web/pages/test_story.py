"""The whole story in a browser: a dropped file, training, batches, labels by keyboard, the refined result, an alarm."""

import os
import re

import pytest

from tests.report.browser import CHROMIUM

if CHROMIUM is None and os.environ.get("QUANET_BROWSER") != "required":
    pytest.skip("Chromium is not installed", allow_module_level=True)

pytestmark = pytest.mark.no_cover
WEEKS = (0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75)
LABELS = 14
PATIENCE = 120_000  # milliseconds for a job, on a machine that is busy
SIZES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
HIDDEN = ".wide, .samples, svg, .unseen, .skip, .signs, pre"
WIDE = f"""[...document.querySelectorAll('body *')].filter(one => !one.closest({HIDDEN!r})
  && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName + ' ' + one.className)"""
DROP = """([text, name]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name, {type: 'text/csv'}));
  return files;
}"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labelled reviews, and a file of new ones for every week; in the fifth week, opinions change."""
    from tests.cli.made_tables import labelled, stream

    folder = tmp_path_factory.mktemp("files")
    labelled(400, 0.5).to_csv(folder / "lamp_reviews.csv", index=False)
    for number, share in enumerate(WEEKS):
        start = f"2024-0{1 + number // 4}-{1 + 7 * (number % 4):02}"
        stream([share], n=120, start=start, seed=number).to_csv(folder / f"week-{number + 1}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    from tests.serve.web.pages.served import service

    with service(tmp_path_factory.mktemp("service") / "data") as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    from tests.serve.web.pages.served import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture
def visit(browser, address):
    """Open pages as somebody sees them; at the end, there were no errors in the console."""
    troubles, contexts = [], []

    def opened(width=1280, scheme="light", script=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script, base_url=address
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def story(browser, address, files):
    """What happens once; the tests look at what it has left."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=address).new_page()
    page.set_default_timeout(PATIENCE)
    told = {"project": _train(page, files)}
    told["batch"] = _estimate(page, told["project"], files)
    told |= _label(page, f"{told['project']}/batches/{told['batch']}")
    told |= _compare(page, told["project"])
    page.goto(f"{told['project']}/monitor")
    page.wait_for_selector(".findings .alarm")
    told["alarm"] = page.inner_text(".findings")
    return told


def _train(page, files):
    """A dropped file becomes a project; the label is corrected with a click."""
    page.goto("/")
    text = (files / "lamp_reviews.csv").read_text()
    dropped = page.evaluate_handle(DROP, [text, "lamp_reviews.csv"])
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped})
    page.wait_for_selector("text=Is this right?")
    page.locator("fieldset", has_text="sentiment").get_by_text("Label", exact=True).click()
    page.locator("fieldset", has_text="product").get_by_text("Leave out", exact=True).click()
    page.locator("fieldset", has_text="date").locator("select").select_option("week")
    page.select_option("#method", "EMQ")
    page.click("button:has-text('Train')")
    page.wait_for_url(re.compile(r"/model$"))  # when training has ended
    return page.url.rpartition("/")[0]


def _estimate(page, project, files):
    """A file for each week, all at once; then the chart."""
    page.goto(project)
    page.set_input_files("#file", sorted(files.glob("week-*.csv")))
    page.click("button:has-text('Estimate')")
    page.wait_for_url(re.compile(r"/batches$"))
    page.goto(project)
    page.wait_for_selector(f"form .lines > li:nth-child({len(WEEKS)})")  # the page loads itself again until then
    page.wait_for_selector(".working", state="detached")
    page.click("a:has-text('week-7.csv')")
    return page.url.rpartition("/")[2]


def _label(page, batch):
    """Label by keyboard: keys for classes, one skipped, one undone."""
    from playwright.sync_api import expect

    told = {"promise": ""}
    page.fill("#number", str(LABELS))
    page.keyboard.press("Enter")
    page.wait_for_selector("#item")
    told["promise"] = page.inner_text(".lead")
    for key in ("1", "u", "s", *("2" if number % 4 else "1" for number in range(LABELS - 1))):
        counts = page.locator(".meter .figures span")
        before = counts.inner_text()
        page.keyboard.press(key)
        expect(counts).not_to_have_text(before, timeout=PATIENCE)
    page.wait_for_selector("text=All done")
    told["done"] = page.inner_text(".meter .figures span")
    page.wait_for_selector("#band .second")  # the refined interval appears by itself
    page.goto(batch)
    page.wait_for_selector(".bands .second")
    return told


def _compare(page, project):
    """Two clicks."""
    page.goto(project)
    page.locator(".lines .deed a").first.click()
    page.locator(".lines .deed button").last.click()
    page.wait_for_selector("text=Take it with you")
    return {"difference": page.url, "changed": page.inner_text(".answer")}


def test_the_story_ends_with_a_refined_result_a_difference_and_an_alarm(story):
    assert f"{LABELS} labels" in story["promise"]
    assert story["done"] == f"{LABELS - 1} labelled, 0 to go, 1 skipped"
    assert "rose by" in story["changed"] or "fell by" in story["changed"]
    assert "2024-W0" in story["changed"]
    assert "2024-0" in story["alarm"]


def places(story):
    batch = f"{story['project']}/batches/{story['batch']}"
    project = story["project"]
    parts = ("", "?compare=1", "/setup", "/model", "/batches", "/monitor", "/settings")
    return ["/", *(project + part for part in parts), batch, f"{batch}/label", story["difference"]]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_pages_fit_and_are_accessible(visit, story, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(width, scheme)
    for place in places(story):
        page.goto(place)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place
        assert page.evaluate(WIDE) == [], place
        if (width == 1280) == (scheme == "light"):
            found = Axe().run(page).response["violations"]
            serious = [one for one in found if one["impact"] in {"serious", "critical"}]
            assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == [], place


def test_a_project_can_be_used_with_the_keyboard_alone(visit, story):
    page = visit()
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(60):
        page.keyboard.press("Tab")
        style = page.evaluate("""(() => { const one = document.activeElement, look = getComputedStyle(one);
          return [one.textContent.trim(), look.outlineStyle, parseFloat(look.outlineWidth), one.tagName]; })()""")
        if style[3] == "BODY":
            break
        assert style[1] != "none", style
        assert style[2] >= 2, style
        if style[0] == "lamp reviews":
            page.keyboard.press("Enter")
            break
    page.wait_for_url(story["project"])
    for text, then in (("Compare", r"compare=0"), ("with this", r"difference\?")):
        page.locator(".lines .deed a, .lines .deed button", has_text=text).first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(then))


def test_pages_can_be_read_and_used_without_a_script(visit, story):
    page = visit(390, script=False)
    for place in places(story):
        page.goto(place)
        assert page.locator("h1").count() >= 1
    page.goto(f"{story['project']}/settings")
    page.fill("#field-name", "lamp reviews, renamed")
    page.click("button:has-text('Save')")
    page.get_by_text("Saved.").wait_for()
    page.goto(f"{story['project']}/batches/{story['batch']}/label")
    page.click("button:has-text('Undo')")  # nothing of this visitor: said, not hidden
    page.get_by_text("There is nothing to undo.").wait_for()


def test_a_page_that_does_not_exist_says_so(browser, address):
    page = browser.new_page(base_url=address)
    answer = page.goto("/nowhere")
    assert answer.status == 404
    assert page.inner_text(".lead") == "This address does not exist."
    page.close()

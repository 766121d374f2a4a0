"""Take the pictures of the web page for README and the how-to, with the film reviews of the demo project.

python docs/make_screenshots.py [--folder docs/images] [--data FOLDER]

Starts `quanet serve` on an empty folder (or on one of an earlier run, whose project it uses), clicks through the demo
in Chromium, labels with the keyboard, and writes one picture per page. Needs Chromium, playwright and the dataset imdb;
takes some minutes.
"""

import argparse
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 1120, 800
PATIENCE = 600_000  # milliseconds
LABELS = 120
MOST_BYTES = 200_000


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--data", type=Path, help="data folder to keep and use again; by default a temporary one")
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, socket.socket() as free, sync_playwright() as playwright:
        data = str(options.data or temporary)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        process = subprocess.Popen([sys.executable, "-m", "quanet", "serve", "--data", data, "--port", str(port)])
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            size = {"width": WIDTH, "height": HEIGHT}
            page = browser.new_page(viewport=size, base_url=f"http://127.0.0.1:{port}")
            page.set_default_timeout(PATIENCE)
            wait_for(f"http://127.0.0.1:{port}/ready")
            take_all(page, folder)
            phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark", device_scale_factor=2)
            phone.goto(page.url)
            take(phone, folder / "web-phone.png")
            browser.close()
        finally:
            process.terminate()
            process.wait(30)


def wait_for(address: str) -> None:
    """Wait until the service answers."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(address)


def take_all(page: Page, folder: Path) -> None:
    """The story of the how-to, with a picture of each page; ends on the overview."""
    page.goto("/")
    take(page, folder / "web-start.png", height=640)
    known = page.locator(".card h3 a", has_text="Film reviews")
    (known if known.count() else page.get_by_text("Try it with film reviews")).first.click()
    page.wait_for_selector("form .lines > li:nth-child(12)")
    page.wait_for_selector(".working", state="detached")
    project = page.url
    take(page, folder / "web-overview.png", height=980)
    page.goto(f"{project}/setup")
    take(page, folder / "web-setup.png", height=900)
    page.goto(f"{project}/model")
    take(page, folder / "web-model.png", height=640)
    page.goto(project)
    page.click("text=reviews 2025-12.csv")
    batch = page.url
    label(page, folder)
    page.goto(batch)
    page.wait_for_selector(".bands .second")
    take(page, folder / "web-batch.png", height=760)
    page.goto(f"{project}/monitor")
    page.wait_for_selector(".findings .alarm")
    take(page, folder / "web-changes.png", height=940)
    page.goto(project)


def label(page: Page, folder: Path) -> None:
    """Label with the keyboard, as the reviewers of the dataset did."""
    from quanet.data.reviews import movie_reviews

    reviews = movie_reviews("imdb")
    known = {" ".join(text.split()): str(opinion) for text, opinion in zip(reviews.X, reviews.y, strict=True)}
    if page.locator("#number").count():
        page.fill("#number", str(LABELS))
        page.click("text=Choose texts to label")
    else:
        page.goto(f"{page.url}/label")
    page.wait_for_selector("#item")
    keys = {
        one.inner_text().split()[-1]: one.get_attribute("data-key") for one in page.locator(".choices button").all()
    }
    counts = page.locator(".meter .figures span")
    for number in range(int(counts.inner_text().split()[0]), LABELS):
        text = " ".join(page.locator("#item").evaluate("one => one.firstChild.textContent").split())
        before = counts.inner_text()
        if number == LABELS - 20:
            expect(page.locator("#band")).to_contain_text(re.compile("have narrowed|relies on"), timeout=PATIENCE)
            page.wait_for_timeout(15_000)  # the refined share of all labels so far
            take(page, folder / "web-label.png", height=960)
        page.keyboard.press(keys[known[text]] or "s")
        expect(counts).not_to_have_text(before, timeout=PATIENCE)
    page.wait_for_selector("text=All done")
    page.wait_for_timeout(15_000)


def take(page: Page, path: Path, height: int | None = None) -> None:
    """The top of a page, as a picture of at most 200 KB."""
    if height:
        page.set_viewport_size({"width": WIDTH, "height": height})
    page.screenshot(path=path)
    size = path.stat().st_size
    assert size < MOST_BYTES, f"{path.name} has {size:,} bytes; make it smaller."
    sys.stdout.write(f"{path} ({size:,} bytes)\n")


if __name__ == "__main__":
    main()

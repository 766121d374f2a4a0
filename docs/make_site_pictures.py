"""Take the pictures of the documentation site for README, after `make docs`: python docs/make_site_pictures.py."""

import argparse
import shutil
from pathlib import Path

from check_site import served
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
PAGES = {  # file, page, width, height, theme
    "site-start": ("index", 1280, 800, "light"),
    "site-gallery": ("auto_gallery/index", 1280, 800, "light"),
    "site-reference": ("reference/api/EMQ", 1280, 800, "dark"),
}


def main() -> None:
    """Write one picture per page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=HERE / "_build" / "html")
    parser.add_argument("--folder", type=Path, default=HERE / "images")
    given = parser.parse_args()
    with served(given.site.resolve()) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (path, width, height, theme) in PAGES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
            page.goto(f"{address}/{path}.html", wait_until="networkidle")
            page.screenshot(path=given.folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()

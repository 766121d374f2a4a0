"""Check the built site: links and pictures, no request to other servers, and a search that finds every public name.

    python docs/check_site.py docs/_build/html

Without Chromium, the index of the search is checked, but not the search itself.
"""

import functools
import http.server
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import quanet

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
FIRST = 5  # results of a search among which a name must be
SEARCH = """names => names.map(name => [name, Search._performSearch(...Search._parseQuery(name))
    .sort((a, b) => a[4] - b[4]).reverse().map(result => result[0])])"""


class Page(HTMLParser):
    """Anchors, links and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.anchors.add(value)
            elif tag == "a" and name == "href" and value:
                self.links.add(value)
            elif (tag, name) in LOADED and value and ("rel", "canonical") not in attrs:
                self.loaded.add(value)


def broken_links(site: Path) -> Iterator[str]:
    """Links, pictures and scripts that lead nowhere, or to other servers without being a link."""
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    for path, page in pages.items():
        where = path.relative_to(site)
        for address in page.loaded | page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    yield f"{where} loads {address}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{where}: {address} does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{where}: {address} has no such place"


def missing_in_index(site: Path) -> Iterator[str]:
    """Public names that the index of the search does not contain."""
    found = re.search(r"Search\.setIndex\((.*)\)", (site / "searchindex.js").read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        yield "searchindex.js has no index"
        return
    objects = json.loads(found[1])["objects"]
    known = {f"{module}.{entry[-1]}" for module, entries in objects.items() for entry in entries}
    yield from (f"quanet.{name} is not in the search" for name in quanet.MODULE_OF if f"quanet.{name}" not in known)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    server.handle_error = lambda *_: None  # a browser may close a connection
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def not_found(site: Path, browser: str) -> Iterator[str]:
    """Public names whose page is not among the first results of a search in a browser."""
    from playwright.sync_api import sync_playwright

    names = list(quanet.MODULE_OF)
    with served(site) as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.goto(f"{address}/search.html?q=EMQ")
        page.wait_for_function("typeof Search !== 'undefined' && Search._index !== null")
        page.wait_for_selector("#search-results li a")
        for name, results in page.evaluate(SEARCH, names):
            if f"reference/api/{name}" not in results[:FIRST]:
                yield f"a search for {name} finds {results[:FIRST] or 'nothing'}"
        chromium.close()


def main(site: Path) -> int:
    """Print problems; the number of them."""
    problems = [*broken_links(site), *missing_in_index(site)]
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is not None:
        problems += not_found(site, browser)
    elif os.environ.get("QUANET_BROWSER") == "required":
        problems.append("QUANET_BROWSER=required, but no Chromium was found")
    print("\n".join(problems) or f"{site}: links lead somewhere, and the search finds all public names.")
    return len(problems)


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1]).resolve()), 1))

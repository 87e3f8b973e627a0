"""python tools/site/check_site.py FOLDER: whether every link in the pages of the built site leads somewhere.

A link within the site has to name a file that is there, and an anchor that the file has. Scripts, styles and pictures
from elsewhere are faults, since the site has to work without a network.
"""

from __future__ import annotations

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """Links and anchors of one page."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []  # the target, and whether the page is not whole without it
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.update(found[key] for key in ("id", "name") if found.get(key))
        for key in ("href", "src"):
            if found.get(key):
                self.links.append((found[key], key == "src" or tag == "link"))


def faults(folder: pathlib.Path) -> list[str]:
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link, needed in dict.fromkeys(page.links):
            parts = urllib.parse.urlsplit(link)
            where = f"{path.relative_to(folder)}: {link}"
            if parts.scheme or parts.netloc:
                if needed and parts.scheme != "data":
                    found.append(f"{where}: is not part of the site")
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{where}: there is no such file")
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: the page has no such anchor")
    return found


def main(folder: pathlib.Path) -> int:
    found = faults(folder.resolve())
    print("\n".join(found) or f"{len(list(folder.rglob('*.html')))} pages, every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

"""Programs of a page, each named by the first line of its block, and the output that the page shows."""

import re

from engines import ROOT

BLOCK = re.compile(r"^```(python|output)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def programs(page):
    """Each program's text and its output (None if the page shows none), by its name, for a page of docs/howto."""
    found = {}
    for kind, text in BLOCK.findall((ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")):
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)[1]
            found[name] = (text, None)
        else:
            found[name] = (found[name][0], text)
    return found


def is_as_shown(printed, shown):
    """Whether all lines that a page shows were printed, in their order."""
    return [line for line in printed.splitlines() if line in shown.splitlines()] == shown.splitlines()

"""The page of a report: one file without anything from the network."""

from __future__ import annotations

import base64
import hashlib
import html
import pathlib
from typing import Any

from .. import _core
from ._data import encoded

_FOLDER = pathlib.Path(__file__).parent
_CODE = ("helpers.js", "boxes.js", "flame.js", "heat.js", "charts.js", "page.js")
_DRAWN = ("times", "trace", "pushes", "explanation")  # data of which d3 makes drawings


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def page(data: dict[str, Any]) -> str:
    """The page that shows `data`: those of its parts for which there is something. It runs no code but its own, whatever the
    names in a model are, and asks nothing of any server.
    """
    text = _text("page.html")
    scripts = ["".join(map(_text, _CODE))]
    credits = ""
    if any(data.get(name) for name in _DRAWN):
        scripts.insert(0, _text("d3.min.js").strip())
        licence = html.escape(_text("d3.LICENSE").strip())
        credits = f"<details><summary>Drawn with d3 5.16: its licence</summary><pre>{licence}</pre></details>"
    style = text[text.index("<style>") + len("<style>") : text.index("</style>")]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; base-uri 'none'"
    )
    # The parts that come from a model go in last, so that nothing in them is taken for a place of another part.
    for name, part in {
        "policy": html.escape(policy),
        "version": html.escape(_core.version()),
        "credits": credits,
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
        "data": encoded(data),
    }.items():
        text = text.replace(f"@{name}@", part, 1)
    return text

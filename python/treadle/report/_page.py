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


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def page(data: dict[str, Any]) -> str:
    """The page that shows `data`. It runs no code but its own, whatever the names in a model are, and asks nothing of any
    server.
    """
    text = _text("page.html")
    library, code = _text("d3.min.js").strip(), _text("page.js").strip()
    style = text[text.index("<style>") + len("<style>") : text.index("</style>")]
    policy = f"default-src 'none'; script-src {_hash(library)} {_hash(code)}; style-src {_hash(style)}; base-uri 'none'"
    # The parts that come from a model go in last, so that nothing in them is taken for a place of another part.
    for name, part in {
        "policy": html.escape(policy),
        "version": html.escape(_core.version()),
        "licence": html.escape(_text("d3.LICENSE").strip()),
        "library": library,
        "code": code,
        "data": encoded(data),
    }.items():
        text = text.replace(f"@{name}@", part, 1)
    return text

"""GET /v2/models/NAME/page: a page that streams a microphone or a file to the model's WebSocket route, and draws both."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
from collections.abc import Awaitable, Callable
from typing import Any

from ._sdk import starlette

FILE = pathlib.Path(__file__).with_name("page.html")
RATE = '<meta name="sample-rate" content="16000">'


def page_route(sample_rate: int) -> Callable[[Any], Awaitable[Any]]:
    """What answers a GET with the page; `sample_rate`: of the model's input, in samples per second.

    The headers forbid the page all code but its own, and every address but its server's.
    """
    page = FILE.read_text(encoding="utf-8")
    headers = {
        "Content-Security-Policy": _policy(page),
        "Permissions-Policy": "microphone=(self)",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }
    text = page.replace(RATE, RATE.replace("16000", str(sample_rate)))

    async def answer(request: Any) -> Any:
        return starlette.responses.HTMLResponse(text, headers=headers)

    return answer


def _policy(page: str) -> str:
    """What the page may run and ask; code is known by its hash, and blob: is for the worklet that the page itself makes."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(page, 'script')}' blob:",
            f"style-src '{_hash(page, 'style')}'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def _hash(page: str, element: str) -> str:
    """The hash of the text inside an element that the page has once."""
    [text] = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

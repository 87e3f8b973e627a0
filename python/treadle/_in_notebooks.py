"""What notebooks show of treadle's objects. The package `treadle.report` draws it and knows the classes of the objects, so
that these do not import it: they ask here.
"""

from __future__ import annotations

import importlib


def drawn(by: str, *parts: object) -> str:
    """The HTML that the function `by` of treadle.report._notebook makes of these parts. Its import takes a while."""
    notebook = importlib.import_module(".report._notebook", __package__)
    html: str = getattr(notebook, by)(*parts)
    return html

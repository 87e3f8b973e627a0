"""What was asked for and has no effect is said once."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection

_said: set[str] = set()
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def warn_once(message: str) -> None:
    """`warn`, where the same message comes once in a process."""
    if message not in _said:
        _said.add(message)
        warn(message)


def warn(message: str) -> None:
    """A UserWarning at the line outside of this package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def suggestion(name: str, known: Collection[str]) -> str:
    """ "; did you mean 'sess_options'?", or nothing where no known name is near."""
    import difflib  # rare, and takes a while to import

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean '{near[0]}'?" if near else ""

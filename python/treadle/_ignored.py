"""What was asked for and has no effect is said: to a program's own function, or once as a warning."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection
from types import FrameType

from . import _core

_said: set[str] = set()
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_WARNING = 2  # onnxruntime's number of the severity of all of treadle's messages

_Listener = Callable[[int, str, str, str, str], object]
_listener: _Listener | None = None
_least_severity = _WARNING
_being_told = threading.local()


def listen(listener: _Listener | None) -> None:
    """Gives messages to `listener` from here on; None: messages become warnings again."""
    global _listener
    _listener = listener


def set_least_severity(severity: int) -> None:
    """Keeps messages of less severity from the listener; from 0 (verbose) to 4 (fatal errors)."""
    global _least_severity
    check_severity(severity)
    _least_severity = severity


def check_severity(severity: int) -> None:
    """RuntimeError when `severity` is not between 0 and 4."""
    if not 0 <= severity <= 4:
        raise RuntimeError(f"Invalid logging severity {severity}. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")


def warn_once(message: str) -> None:
    """Tells the listener, if messages are severe enough; without one, or where it raises, `warn`, once in a process."""
    if not _is_heard(message) and message not in _said:
        _said.add(message)
        warn(message)


def _is_heard(message: str) -> bool:
    if _listener is None or getattr(_being_told, "now", False):
        return False
    if _least_severity > _WARNING:
        return True
    _, frame = _caller()
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    _being_told.now = True
    try:
        return _core.tell(_listener, (_WARNING, "treadle", "", place, message))
    finally:
        _being_told.now = False


def _caller() -> tuple[int, FrameType]:
    """The first frame outside of this package, and how many frames lie below it."""
    level, frame = 0, sys._getframe()
    while frame.f_back is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level, frame


def warn(message: str) -> None:
    """A UserWarning at the line outside of this package that led here."""
    warnings.warn(message, UserWarning, stacklevel=_caller()[0])


def suggestion(name: str, known: Collection[str]) -> str:
    """ "; did you mean 'sess_options'?", or nothing where no known name is near."""
    import difflib  # rare, and takes a while to import

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean '{near[0]}'?" if near else ""

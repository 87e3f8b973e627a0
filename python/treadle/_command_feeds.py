"""Inputs as the tool hands them to the commands that this package does for it (cli/in_python.h)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _core


def feeds_of(words: Iterable[str]) -> dict[str, Any]:
    """Inputs by name; each word is a name, =, and the file of a TensorProto or another value."""
    files = (word.rpartition("=") for word in words)
    return {name: _core.Value.from_pb(_core.read_file(path)).numpy() for name, _, path in files}

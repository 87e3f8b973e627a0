"""Models without running them."""

from __future__ import annotations

import os
from typing import Any

from . import _core


def model_source(model: Any) -> tuple[str | None, bytes | None]:
    """(path, None) or (None, bytes) of a path, bytes, or a ModelProto."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return None, bytes(model)
    if hasattr(model, "SerializeToString"):
        return None, model.SerializeToString()
    raise TypeError(f"Unable to load from type '{type(model)}'")


def check(model: Any) -> list[str]:
    """Raises what is wrong with a model (a path, bytes or a ModelProto), with its place; returns what is doubtful."""
    return _core.check_model(*model_source(model)).splitlines()


def infer_shapes(model: Any) -> Any:
    """The model with the types of all its values, in bodies too: a ModelProto for a ModelProto, else bytes."""
    typed = _core.infer_model(*model_source(model))
    return type(model).FromString(typed) if hasattr(model, "SerializeToString") else typed

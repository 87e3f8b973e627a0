"""Models as ONNX text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._types import PathOrBytes, Serializable

_PARTS = {"ModelProto": 0, "GraphProto": 1, "FunctionProto": 2, "NodeProto": 3}


def _parse(part: str, text: str | bytes) -> bytes:
    return _core.parse_text(_PARTS[part], text.encode() if isinstance(text, str) else bytes(text))


def parse_model(text: str | bytes) -> bytes:
    """The serialised model that a text says; InvalidProtobuf, with line and column, where it is none."""
    return _parse("ModelProto", text)


def parse_graph(text: str | bytes) -> bytes:
    """The serialised GraphProto that a text says; InvalidProtobuf, with line and column, where it is none."""
    return _parse("GraphProto", text)


def parse_function(text: str | bytes) -> bytes:
    """The serialised FunctionProto that a text says; InvalidProtobuf, with line and column, where it is none."""
    return _parse("FunctionProto", text)


def parse_node(text: str | bytes) -> bytes:
    """The serialised NodeProto that a text says; InvalidProtobuf, with line and column, where it is none."""
    return _parse("NodeProto", text)


def to_text(model: PathOrBytes | Serializable, max_elements: int | None = None) -> str:
    """The text of a model (a path, bytes or a ModelProto), or of a GraphProto, FunctionProto or NodeProto. Tensors of
    more than `max_elements` elements are written without their values."""
    part = "ModelProto"
    if isinstance(model, (str, os.PathLike)):
        message = _core.read_file(os.fspath(model))
    elif isinstance(model, (bytes, bytearray, memoryview)):
        message = bytes(model)
    elif hasattr(model, "SerializeToString"):
        part = type(model).__name__
        if part not in _PARTS:
            raise TypeError(f"expected a model, graph, function or node, found a {part}")
        message = model.SerializeToString()
    else:
        raise TypeError(f"expected a model, found a {type(model).__name__}")
    if part == "ModelProto" and _core.is_text(message):
        message = parse_model(message)
    return _core.print_text(_PARTS[part], message, -1 if max_elements is None else max_elements).decode()

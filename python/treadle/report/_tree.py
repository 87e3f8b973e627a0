"""The nodes of a model as a tree of bodies, read from its bytes; the model need not be able to run."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from .._proto import _contents, _fields, _varint

# Numbers of fields, from onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_OUTPUT, _GRAPH_INPUT, _GRAPH_VALUE_INFO = 1, 2, 12, 11, 13
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE = 1, 2, 3, 4, 5
_ATTRIBUTE_NAME, _FLOAT, _INT, _TEXT, _TENSOR, _GRAPH, _FLOATS, _INTS, _TEXTS, _GRAPHS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11
_TENSOR_DIMS = 1
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TYPE_SEQUENCE = 1, 4
_ELEMENT, _SHAPE, _DIMENSION, _SIZE, _SYMBOL = 1, 2, 1, 1, 2
_ELEMENTS = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}  # fmt: skip
_MOST_LETTERS = 60  # of an attribute's value


def _text(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "replace")


def _numbers(message: memoryview, number: int) -> list[int]:
    """Of a repeated field of integers, packed or not."""
    found: list[int] = []
    for field, whole, contents in _fields(message):
        if field != number:
            continue
        if len(contents):
            at = 0
            while at < len(contents):
                value, at = _varint(contents, at)
                found.append(value)
        else:
            found.append(_varint(whole, 1)[0])
    return [v - (1 << 64) if v >> 63 else v for v in found]


def _dims(shape: memoryview) -> str:
    sizes = []
    for dimension in _contents(shape, _DIMENSION):
        size = "?"
        for field, whole, contents in _fields(dimension):
            size = str(_varint(whole, 1)[0]) if field == _SIZE else _text(contents) if field == _SYMBOL else size
        sizes.append(size)
    return "[" + ",".join(sizes) + "]"


def _type(message: memoryview) -> str:
    for field, _, contents in _fields(message):
        if field == _TYPE_TENSOR:
            element = _ELEMENTS.get((_numbers(contents, _ELEMENT) or [0])[0], "?")
            shapes = [_dims(shape) for shape in _contents(contents, _SHAPE)]
            return element + (shapes[0] if shapes else "")
        if field == _TYPE_SEQUENCE:
            return "sequence of " + "".join(_type(inner) for inner in _contents(contents, 1))
    return ""


def _attribute(message: memoryview) -> tuple[str, str]:
    """Its name and its value as a short text; bodies are left out."""
    name, value = "", ""
    for field, whole, contents in _fields(message):
        if field == _ATTRIBUTE_NAME:
            name = _text(contents)
        elif field == _FLOAT:
            value = f"{struct.unpack('<f', bytes(whole[-4:]))[0]:.6g}"
        elif field == _INT:
            value = str(_numbers(message, _INT)[0])
        elif field == _TEXT:
            value = _text(contents)
        elif field == _TENSOR:
            value = f"tensor{_numbers(contents, _TENSOR_DIMS)}"
        elif field == _INTS:
            value = str(_numbers(message, _INTS))
        elif field == _FLOATS:
            packed = bytes(contents)
            value = str([round(x, 6) for x in struct.unpack(f"<{len(packed) // 4}f", packed)])
        elif field == _TEXTS:
            value = str([_text(text) for text in _contents(message, _TEXTS)])
    return name, value if len(value) <= _MOST_LETTERS else value[: _MOST_LETTERS - 3] + "..."


def _bodies(node: memoryview) -> Iterator[tuple[str, memoryview]]:
    for attribute in _contents(node, _NODE_ATTRIBUTE):
        for field, _, contents in _fields(attribute):
            if field in (_GRAPH, _GRAPHS):
                yield _attribute(attribute)[0], contents


def _graph(graph: memoryview, path: str) -> list[dict[str, Any]]:
    types = {}
    for field, _, contents in _fields(graph):
        if field in (_GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO):
            kinds = _contents(contents, _VALUE_TYPE)
            types[_text(_contents(contents, _VALUE_NAME)[0])] = _type(kinds[0]) if kinds else ""
    nodes = []
    for i, node in enumerate(_contents(graph, _GRAPH_NODE)):
        op = "".join(map(_text, _contents(node, _NODE_OPERATOR)))
        given = "".join(map(_text, _contents(node, _NODE_NAME)))
        name = f"{path}/{given.removeprefix('/') or f'{op}_{i}'}"
        outputs = [_text(v) for v in _contents(node, _NODE_OUTPUT)]
        made: dict[str, Any] = {
            "name": name,
            "op": op,
            "inputs": [[v, types.get(v, "")] for v in map(_text, _contents(node, _NODE_INPUT))],
            "outputs": [[v, types.get(v, "")] for v in outputs],
            "attributes": [a for a in map(_attribute, _contents(node, _NODE_ATTRIBUTE)) if a[1]],
        }
        bodies = [{"name": body, "nodes": _graph(inner, f"{name}:{body}")} for body, inner in _bodies(node)]
        if bodies:
            made["bodies"] = bodies
        nodes.append(made)
    return nodes


def tree(model: bytes) -> list[dict[str, Any]]:
    """The nodes of the model's graph: "name" (the path), "op", "inputs" and "outputs" (names and types), "attributes", and
    "bodies" with their nodes. ValueError for bytes that are no model.
    """
    try:
        return [node for graph in _contents(memoryview(model), _MODEL_GRAPH) for node in _graph(graph, "")]
    except (IndexError, struct.error) as problem:
        raise ValueError("the bytes are no model") from problem

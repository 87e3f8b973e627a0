"""The nodes of a model as a tree of bodies and called functions, read from its bytes; the model need not be able to run."""

from __future__ import annotations

import collections
import dataclasses
import mmap
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from .._proto import _contents, _fields, _varint

# Numbers of fields, from onnx.proto.
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_OUTPUT, _GRAPH_INPUT, _GRAPH_VALUE_INFO = 1, 12, 11, 13
_FUNCTION_NAME, _FUNCTION_NODE, _FUNCTION_DOMAIN, _FUNCTION_DEFAULT, _FUNCTION_VALUE_INFO, _FUNCTION_OVERLOAD = (
    1, 7, 10, 11, 12, 13,
)  # fmt: skip
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN, _NODE_OVERLOAD = (
    1, 2, 3, 4, 5, 7, 8,
)  # fmt: skip
_ATTRIBUTE_NAME, _FLOAT, _INT, _TEXT, _TENSOR, _GRAPH, _FLOATS, _INTS, _TEXTS, _GRAPHS, _PARAMETER = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 21,
)  # fmt: skip
_TENSOR_DIMS = 1
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TYPE_SEQUENCE, _TYPE_OPTIONAL = 1, 4, 9
_ELEMENT, _SHAPE, _DIMENSION, _SIZE, _SYMBOL = 1, 2, 1, 1, 2
_ELEMENTS = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
_MOST_LETTERS = 60  # of an attribute's value
_MOST_INSIDE = 50_000  # nodes of functions, counted at each call; later calls are not opened
_MOST_DEEP = 64  # calls in calls


def _text(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "replace")


def only_text(message: memoryview, number: int) -> str:
    """Of a field that may be missing."""
    return "".join(map(_text, _contents(message, number)))


def _integers(found: list[tuple[memoryview, memoryview]]) -> list[int]:
    """Of a field of integers, packed or not; of a long list the beginning."""
    numbers: list[int] = []
    for whole, contents in found:
        if not len(contents):
            numbers.append(_varint(whole, _varint(whole, 0)[1])[0])
            continue
        at = 0
        while at < len(contents) and len(numbers) <= _MOST_LETTERS:
            value, at = _varint(contents, at)
            numbers.append(value)
    return [v - (1 << 64) if v >> 63 else v for v in numbers]


def _floats(found: list[tuple[memoryview, memoryview]]) -> list[float]:
    most = 4 * _MOST_LETTERS
    packed = b"".join(bytes(contents[:most]) if len(contents) else bytes(whole[-4:]) for whole, contents in found)
    return [float(f"{x:.6g}") for x in struct.unpack(f"<{len(packed) // 4}f", packed)]


def _by_number(message: memoryview) -> dict[int, list[tuple[memoryview, memoryview]]]:
    """Whole bytes and contents of each field."""
    found: dict[int, list[tuple[memoryview, memoryview]]] = {}
    for number, whole, contents in _fields(message):
        found.setdefault(number, []).append((whole, contents))
    return found


def _numbers(message: memoryview, number: int) -> list[int]:
    return _integers(_by_number(message).get(number, []))


def _dims(shape: memoryview) -> str:
    sizes = []
    for dimension in _contents(shape, _DIMENSION):
        size = _numbers(dimension, _SIZE)
        sizes.append(str(size[0]) if size else only_text(dimension, _SYMBOL) or "?")
    return "[" + ",".join(sizes) + "]"


def _type(message: memoryview) -> str:
    for field, _, contents in _fields(message):
        if field == _TYPE_TENSOR:
            element = _ELEMENTS.get((_numbers(contents, _ELEMENT) or [0])[0], "?")
            shapes = [_dims(shape) for shape in _contents(contents, _SHAPE)]
            return element + (shapes[0] if shapes else "")
        if field in (_TYPE_SEQUENCE, _TYPE_OPTIONAL):
            kind = "sequence of " if field == _TYPE_SEQUENCE else "optional "
            return kind + "".join(_type(inner) for inner in _contents(contents, 1))
    return ""


def _types(message: memoryview, fields: tuple[int, ...]) -> dict[str, str]:
    """Of values that a graph or a function declares."""
    types = {}
    for field, _, contents in _fields(message):
        if field in fields:
            kinds = _contents(contents, _VALUE_TYPE)
            types[only_text(contents, _VALUE_NAME)] = _type(kinds[0]) if kinds else ""
    return types


Parts = Mapping[int, list[tuple[memoryview, memoryview]]]  # whole bytes and contents of fields, by their numbers


def attribute_parts(attribute: memoryview) -> Parts:
    """The fields of an attribute; of a long list of numbers or texts the beginning, which is as much as is shown."""
    found: dict[int, list[tuple[memoryview, memoryview]]] = collections.defaultdict(list)
    for number, whole, contents in _fields(attribute):
        found[number].append((whole, contents))
        if number in (_INTS, _FLOATS, _TEXTS) and len(found[number]) > _MOST_LETTERS:
            break  # what else there is comes first
    return found


def _text_of(parts: Parts, number: int) -> str:
    return "".join(_text(contents) for _, contents in parts.get(number, ()))


def _value(found: Parts) -> str:
    """An attribute's value as a short text; empty for bodies."""
    value = ""
    if _FLOAT in found:
        value = f"{_floats(found[_FLOAT])[0]:g}"
    elif _INT in found:
        value = str(_integers(found[_INT])[0])
    elif _TEXT in found:
        value = _text(found[_TEXT][0][1][: 4 * _MOST_LETTERS])
    elif _TENSOR in found:
        value = f"tensor{_numbers(found[_TENSOR][0][1], _TENSOR_DIMS)}"
    elif _INTS in found:
        value = str(_integers(found[_INTS]))
    elif _FLOATS in found:
        value = str(_floats(found[_FLOATS]))
    elif _TEXTS in found:
        value = str([_text(text) for _, text in found[_TEXTS]])
    return value if len(value) <= _MOST_LETTERS else value[: _MOST_LETTERS - 3] + "..."


Attributes = Mapping[str, str]  # values by name


def _attributes(attributes: list[Parts], parameters: Attributes) -> dict[str, str]:
    """Values by name, without bodies; those that a function takes from its call are the call's (`parameters`)."""
    found = {}
    for attribute in attributes:
        parameter = _text_of(attribute, _PARAMETER)
        value = parameters.get(parameter, "") if parameter else _value(attribute)
        if value:
            found[_text_of(attribute, _ATTRIBUTE_NAME)] = value
    return found


def _bodies(attributes: list[Parts]) -> Iterator[tuple[str, memoryview]]:
    for attribute in attributes:
        for field in (_GRAPH, _GRAPHS):
            for _, contents in attribute.get(field, ()):
                yield _text_of(attribute, _ATTRIBUTE_NAME), contents


class NodeNames:
    """Paths of nodes, as the engine makes them: a name that comes again gets a number."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.used: dict[str, int] = {}

    def make(self, given: str, op: str, index: int) -> str:
        name = given.removeprefix("/") or f"{op}_{index}"
        if name in self.used:
            while (candidate := f"{name}#{self.used[name]}") in self.used:
                self.used[name] += 1
            self.used[name] += 1
            name = candidate
        self.used[name] = 2
        return f"{self.prefix}/{name}"


@dataclasses.dataclass
class _Around:
    """What a node may refer to, and how deep it lies."""

    types: collections.ChainMap[str, str]
    parameters: Attributes  # attributes of the call of the function
    depth: int = 0


class TooManyNodes(ValueError):
    """A model has more nodes than were asked for."""


class _Reader:
    """The nodes of one model, at most `most`."""

    def __init__(self, model: memoryview, most: int | None) -> None:
        self.left = most
        self.functions = {
            (
                only_text(function, _FUNCTION_DOMAIN),
                only_text(function, _FUNCTION_NAME),
                only_text(function, _FUNCTION_OVERLOAD),
            ): function
            for function in _contents(model, _MODEL_FUNCTION)
        }
        self.inside = 0  # nodes of functions so far

    def graph(self, graph: memoryview, path: str, around: _Around) -> list[dict[str, Any]]:
        types = _types(graph, (_GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO))
        inside = dataclasses.replace(around, types=collections.ChainMap(types, *around.types.maps))
        return self._nodes(_contents(graph, _GRAPH_NODE), path, inside)

    def _nodes(self, found: list[memoryview], path: str, around: _Around) -> list[dict[str, Any]]:
        if self.left is not None:
            self.left -= len(found)
            if self.left < 0:
                raise TooManyNodes("the model has more nodes than that")
        names = NodeNames(path)
        return [self._node(node, names, i, around) for i, node in enumerate(found)]

    def _node(self, node: memoryview, names: NodeNames, index: int, around: _Around) -> dict[str, Any]:
        parts: dict[int, list[memoryview]] = collections.defaultdict(list)
        for number, _, contents in _fields(node):
            parts[number].append(contents)
        given, op, domain, overload = (
            "".join(map(_text, parts[number])) for number in (_NODE_NAME, _NODE_OPERATOR, _NODE_DOMAIN, _NODE_OVERLOAD)
        )
        name = names.make(given, op, index)
        written = [attribute_parts(attribute) for attribute in parts[_NODE_ATTRIBUTE]]
        attributes = _attributes(written, around.parameters)
        made: dict[str, Any] = {
            "name": name,
            "op": op,
            "inputs": [[v, around.types.get(v, "")] for v in map(_text, parts[_NODE_INPUT])],
            "outputs": [[v, around.types.get(v, "")] for v in map(_text, parts[_NODE_OUTPUT])],
            "attributes": list(attributes.items()),
        }
        bodies = [
            {"name": body, "nodes": self.graph(inner, f"{name}:{body}", around)} for body, inner in _bodies(written)
        ]
        kind = (domain, op, overload)
        if kind in self.functions and around.depth < _MOST_DEEP and self.inside < _MOST_INSIDE:
            made["function"] = kind[0]
            bodies.append({"name": "function", "nodes": self._call(self.functions[kind], name, attributes, around)})
        if bodies:
            made["bodies"] = bodies
        return made

    def _call(self, function: memoryview, path: str, given: Attributes, around: _Around) -> list[dict[str, Any]]:
        defaults = {
            _text_of(default, _ATTRIBUTE_NAME): _value(default)
            for default in map(attribute_parts, _contents(function, _FUNCTION_DEFAULT))
        }
        nodes = _contents(function, _FUNCTION_NODE)
        self.inside += len(nodes)
        types = _types(function, (_FUNCTION_VALUE_INFO,))
        return self._nodes(nodes, path, _Around(collections.ChainMap(types), {**defaults, **given}, around.depth + 1))


def tree(model: bytes | mmap.mmap, most: int | None = None) -> list[dict[str, Any]]:
    """The nodes of the model's graph: "name" (the path), "op", "inputs" and "outputs" (names and types), "attributes", and
    "bodies" with their nodes. A node that calls a function of the model has the function's domain as "function", and its
    nodes as a body. ValueError for bytes that are no model; TooManyNodes for a model with more nodes than `most`.
    """
    whole = memoryview(model)
    try:
        reader = _Reader(whole, most)
        return [
            node
            for graph in _contents(whole, _MODEL_GRAPH)
            for node in reader.graph(graph, "", _Around(collections.ChainMap(), {}))
        ]
    except (IndexError, struct.error, RecursionError) as problem:
        raise ValueError("the bytes are no model") from problem

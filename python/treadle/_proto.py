"""What is read and changed in the bytes of a model without the package onnx: nodes, inputs and outputs, and where the
elements of weights lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

# Numbers of fields, from onnx.proto.
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_FUNCTION_NODE = 7
_NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 3, 4, 5, 7
_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 6, 11
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TENSOR_SHAPE, _SHAPE_SIZE, _SIZE_NUMBER = 1, 2, 1, 1
_TENSOR_NAME, _TENSOR_RAW, _TENSOR_EXTERNAL, _TENSOR_LOCATION = 8, 9, 13, 14
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_EXTERNAL = 1  # TensorProto.DataLocation

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ALIGNMENT = 64  # of elements in the file of weights


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Number, whole bytes and contents of each field; of fields that are no bytes the contents are empty."""
    at = 0
    while at < len(message):
        key, begin = _varint(message, at)
        number, wire = key >> 3, key & 7
        end = begin
        if wire == _VARINT:
            _, end = _varint(message, begin)
        elif wire == _BYTES:
            size, begin = _varint(message, begin)
            end = begin + size
        elif wire in (_FIXED64, _FIXED32):
            end = begin + (8 if wire == _FIXED64 else 4)
        else:
            raise ValueError(f"a field of a model has wire type {wire}")
        yield number, message[at:end], message[begin:end] if wire == _BYTES else message[end:end]
        at = end


def _number(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _field(number: int, contents: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(contents)) + contents


def _contents(message: memoryview, number: int) -> list[memoryview]:
    return [contents for found, _, contents in _fields(message) if found == number]


def nodes(model: bytes) -> list[tuple[str, str, str]]:
    """Name, domain and operator of each node of the model's graph."""
    found = []
    for graph in _contents(memoryview(model), _MODEL_GRAPH):
        for node in _contents(graph, _GRAPH_NODE):
            texts = dict.fromkeys((_NODE_NAME, _NODE_DOMAIN, _NODE_OPERATOR), "")
            texts.update({n: bytes(contents).decode() for n, _, contents in _fields(node) if n in texts})
            found.append((texts[_NODE_NAME], texts[_NODE_DOMAIN], texts[_NODE_OPERATOR]))
    return found


def initializers(model: bytes) -> dict[str, bytes]:
    """The serialized tensors of the main graph, by their names, in the order of the file."""
    found = {}
    for graph in _contents(memoryview(model), _MODEL_GRAPH):
        for tensor in _contents(graph, _GRAPH_INITIALIZER):
            name = b"".join(bytes(text) for text in _contents(tensor, _TENSOR_NAME)).decode("utf-8", "replace")
            found[name] = bytes(tensor)
    return found


def operators(model: bytes) -> set[str]:
    """The operators of all nodes of the model, in bodies and functions too."""
    waiting = [(graph, _GRAPH_NODE) for graph in _contents(memoryview(model), _MODEL_GRAPH)]
    waiting += [(function, _FUNCTION_NODE) for function in _contents(memoryview(model), _MODEL_FUNCTION)]
    found = set()
    while waiting:
        graph, number = waiting.pop()
        for node in _contents(graph, number):
            for field, _, contents in _fields(node):
                if field == _NODE_OPERATOR:
                    found.add(bytes(contents).decode())
                elif field == _NODE_ATTRIBUTE:
                    waiting += [
                        (body, _GRAPH_NODE)
                        for part, _, body in _fields(contents)
                        if part in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS)
                    ]
    return found


# By names of values the sizes of their axes. None is an unknown size; of what is no tensor there are no sizes.
Sizes: TypeAlias = dict[str, tuple[int | None, ...]]


def _size(dimension: memoryview) -> int | None:
    """A size that is 0 counts as unknown, since exporters write it for sizes that they do not know."""
    for number, whole, _ in _fields(dimension):
        if number == _SIZE_NUMBER:
            return _varint(whole, 1)[0] or None
    return None


def _sizes(graph: memoryview, role: int) -> Sizes:
    found: Sizes = {}
    for value in _contents(graph, role):
        [name] = _contents(value, _VALUE_NAME)
        shapes = [
            shape
            for kind in _contents(value, _VALUE_TYPE)
            for tensor in _contents(kind, _TYPE_TENSOR)
            for shape in _contents(tensor, _TENSOR_SHAPE)
        ]
        found[bytes(name).decode()] = tuple(_size(d) for shape in shapes for d in _contents(shape, _SHAPE_SIZE))
    return found


def signature(model: bytes) -> tuple[Sizes, Sizes]:
    """Inputs and outputs of the model; inputs that have a value in the model are none."""
    [graph] = _contents(memoryview(model), _MODEL_GRAPH)
    inputs, outputs = (_sizes(graph, role) for role in (_GRAPH_INPUT, _GRAPH_OUTPUT))
    for tensor in _contents(graph, _GRAPH_INITIALIZER):
        for name in _contents(tensor, _TENSOR_NAME):
            inputs.pop(bytes(name).decode(), None)
    return inputs, outputs


class _Weights:
    """The contents of a file of weights."""

    def __init__(self, file_name: str, min_size: int) -> None:
        self._file_name = file_name
        self._min_size = min_size
        self.data = bytearray()

    def moved(self, tensor: memoryview) -> bytes:
        """The tensor with its elements in the file, or as it is where they are few or not in one run of bytes."""
        raw = _contents(tensor, _TENSOR_RAW)
        if len(raw) != 1 or len(raw[0]) < self._min_size:
            return bytes(tensor)
        self.data += bytes(-len(self.data) % _ALIGNMENT)
        where = {"location": self._file_name, "offset": str(len(self.data)), "length": str(len(raw[0]))}
        self.data += raw[0]
        parts = [bytes(whole) for number, whole, _ in _fields(tensor) if number != _TENSOR_RAW]
        for key, value in where.items():
            entry = _field(_ENTRY_KEY, key.encode()) + _field(_ENTRY_VALUE, value.encode())
            parts.append(_field(_TENSOR_EXTERNAL, entry))
        parts.append(_number(_TENSOR_LOCATION << 3 | _VARINT) + _number(_EXTERNAL))
        return b"".join(parts)


def with_weights_apart(model: bytes, file_name: str, min_size: int) -> tuple[bytes, bytes]:
    """The model with the elements of its initialisers of at least `min_size` bytes in a file, and the contents of that."""
    weights = _Weights(file_name, min_size)

    def graph_of(graph: memoryview) -> bytes:
        return b"".join(
            _field(number, weights.moved(contents)) if number == _GRAPH_INITIALIZER else bytes(whole)
            for number, whole, contents in _fields(graph)
        )

    changed = b"".join(
        _field(number, graph_of(contents)) if number == _MODEL_GRAPH else bytes(whole)
        for number, whole, contents in _fields(memoryview(model))
    )
    return changed, bytes(weights.data)

"""The model with what a report knows of each node as metadata, which Netron and other programs show."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._model import model_source
from .._proto import _contents, _field, _fields
from .._text import parse_model
from ._tree import (
    _ATTRIBUTE_NAME,
    _GRAPH,
    _GRAPH_NODE,
    _GRAPHS,
    _MODEL_GRAPH,
    _NODE_ATTRIBUTE,
    NodeNames,
    attribute_parts,
    only_text,
)

if TYPE_CHECKING:
    from .._trace import Trace
    from .._types import PathOrBytes

PREFIX = "treadle."
_GRAPH_INITIALIZER, _TENSOR_EXTERNAL = 5, 13
_NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_METADATA = 2, 3, 4, 9
_ENTRY_KEY, _ENTRY_VALUE = 1, 2

Facts = Mapping[str, str]


class Knowledge:
    """What is known of nodes, by their paths, and of values."""

    def __init__(self, data: Mapping[str, Any], trace: Trace | None) -> None:
        """Of a report's data, and of the trace that it was made from."""
        self.times = data["times"] or {"nodes": [], "profiled_ns": 0.0}
        self.trace = trace
        explanation = data["explanation"] or {}
        self.rewritten: dict[str, list[str]] = explanation.get("rewritten", {})
        self.loops = {loop["node"]: loop for loop in explanation.get("loops", [])}
        self.ns: dict[str, float] = {}
        for node in self.times["nodes"]:
            for path in _prefixes(node["node"] or node["loop"]):
                self.ns[path] = self.ns.get(path, 0.0) + node["ns"]

    def of(self, path: str, outputs: list[str]) -> dict[str, str]:
        """Of a node: what is known, by name."""
        found = {}
        if path in self.ns and self.times["profiled_ns"] > 0:
            found["time_us"] = f"{self.ns[path] / 1e3:.3f}"
            found["share"] = f"{100 * self.ns[path] / self.times['profiled_ns']:.2f} %"
        if path in self.loops:
            loop = self.loops[path]
            if loop.get("iterations") is not None:
                found["iterations"] = str(loop["iterations"])
            found["tier"] = loop["tier"]
            if loop.get("why_not_native"):
                found["why_not_native"] = loop["why_not_native"]
        if path in self.rewritten:
            found["rewritten"] = ", ".join(dict.fromkeys(self.rewritten[path]))
        body = path.rpartition("/")[0]
        for i, name in enumerate(outputs):
            seen = self._range(f"{body}/{name}" if body else name)
            if seen:
                found["range" if len(outputs) == 1 else f"range.{i}"] = f"{name}: {seen}"
        return found

    def _range(self, value: str) -> str:
        if self.trace is None or value not in self.trace:
            return ""
        series = self.trace[value]
        low, high = np.fmin.reduce(series.minimum), np.fmax.reduce(series.maximum)
        text = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}" if low < high else "no numbers"
        for count, kind in ((series.nan.sum(), "NaN"), (series.inf.sum(), "infinite")):
            if count:
                text += f", {count:.0f} {kind}"
        return text


def _prefixes(path: str) -> Iterator[str]:
    """ "/Loop_1:body/LSTM_2", "/Loop_1:body" and "/Loop_1"."""
    at = len(path)
    while at > 0:
        yield path[:at]
        at = max(path.rfind("/", 0, at), path.rfind(":", 0, at))


def with_metadata(model: bytes, known: Knowledge) -> bytes:
    """The model, whose nodes have what is known of them as `metadata_props`; their names begin with PREFIX."""
    return b"".join(
        _field(number, _graph(contents, "", known)) if number == _MODEL_GRAPH else bytes(whole)
        for number, whole, contents in _fields(memoryview(model))
    )


def _graph(graph: memoryview, path: str, known: Knowledge) -> bytes:
    names, index, parts = NodeNames(path), 0, []
    for number, whole, contents in _fields(graph):
        if number != _GRAPH_NODE:
            parts.append(bytes(whole))
            continue
        name = names.make(only_text(contents, _NODE_NAME), only_text(contents, _NODE_OPERATOR), index)
        parts.append(_field(number, _node(contents, name, known)))
        index += 1
    return b"".join(parts)


def _node(node: memoryview, path: str, known: Knowledge) -> bytes:
    parts, outputs = [], []
    for number, whole, contents in _fields(node):
        if number == _NODE_OUTPUT:
            outputs.append(bytes(contents).decode("utf-8", "replace"))
        if number == _NODE_ATTRIBUTE:
            parts.append(_field(number, _attribute(contents, path, known)))
        elif number != _NODE_METADATA or not only_text(contents, _ENTRY_KEY).startswith(PREFIX):
            parts.append(bytes(whole))
    for key, value in known.of(path, outputs).items():
        entry = _field(_ENTRY_KEY, (PREFIX + key).encode()) + _field(_ENTRY_VALUE, value.encode())
        parts.append(_field(_NODE_METADATA, entry))
    return b"".join(parts)


def _attribute(attribute: memoryview, path: str, known: Knowledge) -> bytes:
    parts = attribute_parts(attribute)
    if _GRAPH not in parts and _GRAPHS not in parts:
        return bytes(attribute)
    name = only_text(attribute, _ATTRIBUTE_NAME)
    return b"".join(
        _field(number, _graph(contents, f"{path}:{name}", known)) if number in (_GRAPH, _GRAPHS) else bytes(whole)
        for number, whole, contents in _fields(attribute)
    )


def model_for(model: PathOrBytes, path: str | os.PathLike[str]) -> bytes:
    """The bytes of a model that is to be written as `path`; ValueError where its weights would lie in another folder."""
    place, data = model_source(model)
    if data is None:
        data = _core.read_file(place or "")
    if _core.is_text(data):
        data = parse_model(data)
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if place is not None and folder != os.path.dirname(os.path.abspath(place)) and _has_weights_apart(data):
        raise ValueError(
            f"{os.fspath(path)}: the weights of {place} lie in files beside it, so this file has to be written there too"
        )
    return data


def _has_weights_apart(model: bytes) -> bool:
    return any(
        _contents(tensor, _TENSOR_EXTERNAL)
        for graph in _contents(memoryview(model), _MODEL_GRAPH)
        for tensor in _contents(graph, _GRAPH_INITIALIZER)
    )

"""RNN, LSTM and GRU as operators, and what a roof for them is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .registry import OPSET, Class, numbers, uniform

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SMALL = Class("RNN, LSTM, GRU operators, batch 1: H=64", 1.3, 1.3)
MIDDLE = Class("RNN, LSTM, GRU operators, batch 1: H=128", 1.3, 1.15)
LARGE = Class("RNN, LSTM, GRU operators, batch 1: H=256", 1.1, 1.15)
BATCH = Class("RNN, LSTM, GRU operators, batch 8 to 16", 1.0, 1.25)
OTHER = Class("RNN, LSTM, GRU operators, other sizes")
THREADS = Class("two threads")
HALF = Class("f16 weights, H=512 and above")


@dataclasses.dataclass(frozen=True)
class Operator:
    op: str
    steps: int
    batch: int
    width: int
    group: Class
    layers: int = 1
    inputs: int = 0  # columns of X; 0: as many as units

    @property
    def name(self) -> str:
        stack = f"{self.layers} stacked " if self.layers > 1 else ""
        return f"{stack}{self.op} T={self.steps} B={self.batch} H={self.width}"

    def build(self) -> tuple[bytes, dict[str, np.ndarray]]:
        rng, gates = numbers(self.name), GATES[self.op] * self.width
        weights, nodes, x = [], [], "X"
        for k in range(self.layers):
            columns = self.inputs if k == 0 and self.inputs else self.width
            shapes = {f"W{k}": (1, gates, columns), f"R{k}": (1, gates, self.width), f"B{k}": (1, 2 * gates)}
            scale = self.width**-0.5
            weights += [numpy_helper.from_array(uniform(rng, *s, scale=scale), name) for name, s in shapes.items()]
            nodes.append(helper.make_node(self.op, [x, *shapes], [f"Y{k}"], hidden_size=self.width))
            nodes.append(helper.make_node("Squeeze", [f"Y{k}", "axis"], [f"y{k}"]))
            x = f"y{k}"
        weights.append(numpy_helper.from_array(np.array([1], np.int64), "axis"))
        value, float32 = helper.make_tensor_value_info, TensorProto.FLOAT
        sizes = [self.steps, self.batch, self.inputs or self.width]
        made = [self.steps, self.batch, self.width]
        graph = helper.make_graph(nodes, "g", [value("X", float32, sizes)], [value(x, float32, made)], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return model.SerializeToString(), {"X": uniform(rng, *sizes)}


def operators() -> Iterator[Operator]:
    for op in GATES:
        yield Operator(op, 100, 1, 64, SMALL)
        yield Operator(op, 500, 1, 128, MIDDLE)
        yield Operator(op, 100, 1, 256, LARGE)
        yield Operator(op, 100, 8, 128, BATCH)
        yield Operator(op, 100, 16, 256, BATCH)
    for op in ("GRU", "LSTM"):
        yield Operator(op, 100, 4, 128, OTHER)
        yield Operator(op, 50, 32, 128, OTHER)
        yield Operator(op, 50, 1, 512, OTHER)
    yield Operator("LSTM", 100, 1, 256, OTHER, layers=4)

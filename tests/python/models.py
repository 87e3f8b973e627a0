"""Small models for the tests here."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64

# y[t] = tanh(y[t - 1] + x[t])
SUMS = """<ir_version: 10, opset_import: ["" : 22]> g (float[T] x) => (float[T] y) <float zero = {0}> {
  last, y = Scan <num_scan_inputs = 1, body = b (float s, float e) => (float t, float o) {
    sum = Add (s, e)
    t = Tanh (sum)
    o = Identity (t)
  }> (zero, x)
}"""


def value(name: str, element: int = FLOAT, shape=None):
    return helper.make_tensor_value_info(name, element, shape)


def model(nodes, inputs, outputs, *, opset: int = 21, initializers=(), functions=(), **fields) -> bytes:
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, **fields)
    return proto.SerializeToString()


def node(op: str, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def add() -> bytes:
    """z[n,3] = x[n,3] + y[3]"""
    return model(
        [node("Add", ["x", "y"], ["z"])],
        [value("x", shape=["n", 3]), value("y", shape=[3])],
        [value("z", shape=["n", 3])],
        producer_name="tests",
        producer_version="1.5",
        doc_string="adds",
    )


def identity(element: int, shape=None) -> bytes:
    return model([node("Identity", ["x"], ["y"])], [value("x", element, shape)], [value("y", element, shape)])


def of_type(op: str, type_in, type_out, **attributes) -> bytes:
    """One node between an input x and an output y of any types."""
    x = helper.make_value_info("x", type_in)
    y = helper.make_value_info("y", type_out)
    return model([node(op, ["x"], ["y"], **attributes)], [x], [y])


def endless() -> bytes:
    """A loop that goes on while there is patience."""
    body = helper.make_graph(
        [node("Add", ["s", "one"], ["s_out"]), node("Identity", ["c"], ["c_out"])],
        "body",
        [value("i", INT64, []), value("c", TensorProto.BOOL, []), value("s", shape=[])],
        [value("c_out", TensorProto.BOOL, []), value("s_out", shape=[])],
        [helper.make_tensor("one", FLOAT, [], [1.0])],
    )
    return model(
        [node("Loop", ["", "go", "s0"], ["total"], body=body)],
        [value("go", TensorProto.BOOL, []), value("s0", shape=[])],
        [value("total", shape=[])],
    )


def division() -> bytes:
    """y = 100 / x over integers, in the body of a loop over the elements of x."""
    body = helper.make_graph(
        [
            node("Gather", ["x", "i"], ["element"]),
            node("Div", ["hundred", "element"], ["quotient"], name="divide"),
            node("Identity", ["c"], ["c_out"]),
        ],
        "body",
        [value("i", INT64, []), value("c", TensorProto.BOOL, [])],
        [value("c_out", TensorProto.BOOL, []), value("quotient", INT64, [])],
        [helper.make_tensor("hundred", INT64, [], [100])],
    )
    return model(
        [
            node("Size", ["x"], ["iterations"]),
            node("Loop", ["iterations", ""], ["y"], body=body, name="loop"),
        ],
        [value("x", INT64, ["n"])],
        [value("y", INT64, ["n"])],
    )


def accumulator(window: int | None = None) -> bytes:
    """Sums of windows: total[1] = sum(x[1,T]) over time, running = state + total, carried as state -> stateN."""
    return model(
        [
            node("ReduceSum", ["x", "axis"], ["total"], keepdims=0),
            node("Add", ["state", "total"], ["stateN"]),
            node("Mul", ["stateN", "gain"], ["level"]),
            node("Mul", ["x", "two"], ["doubled"]),
        ],
        [
            value("x", shape=["batch", window or "T"]),
            value("state", shape=["batch"]),
            value("gain", shape=[]),
        ],
        [
            value("level", shape=["batch"]),
            value("doubled", shape=["batch", window or "T"]),
            value("stateN", shape=["batch"]),
        ],
        initializers=[
            helper.make_tensor("axis", INT64, [1], [1]),
            helper.make_tensor("two", FLOAT, [], [2.0]),
        ],
    )


def parse(data: bytes) -> onnx.ModelProto:
    return onnx.load_from_string(data)

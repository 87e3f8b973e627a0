"""Models of as many nodes as one likes, of kinds whose planning could grow faster than the model does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

Feed = dict[str, np.ndarray]
WIDTH = 8
FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def value(name: str, element: int = FLOAT, sizes: tuple[int, ...] = (WIDTH,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, sizes)


def branch(op: str, inputs: list[str], result: str) -> onnx.GraphProto:
    return helper.make_graph([helper.make_node(op, inputs, [result])], f"{result}_branch", [], [value(result)])


def choice(condition: str, yes: onnx.GraphProto, no: onnx.GraphProto, result: str) -> onnx.NodeProto:
    return helper.make_node("If", [condition], [result], then_branch=yes, else_branch=no)


def loop_body(index: int, nodes: list[onnx.NodeProto], state: str, result: str) -> onnx.GraphProto:
    """One state; the condition goes through."""
    through = helper.make_node("Identity", [f"on{index}"], [f"still{index}"])
    inputs = [value(f"iteration{index}", INT64, ()), value(f"on{index}", BOOL, ()), value(state)]
    return helper.make_graph(
        [*nodes, through], f"body{index}", inputs, [value(f"still{index}", BOOL, ()), value(result)]
    )


def model(nodes: list[onnx.NodeProto], result: str, inputs: Feed) -> bytes:
    kinds = {"f": FLOAT, "b": BOOL, "i": INT64}
    graph = helper.make_graph(
        nodes,
        "growth",
        [value(name, kinds[array.dtype.kind], array.shape) for name, array in inputs.items()],
        [value(result)],
        [helper.make_tensor("half", FLOAT, [], [0.5]), helper.make_tensor("limit", FLOAT, [], [1.0])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def start() -> np.ndarray:
    return np.linspace(-1, 1, WIDTH, dtype=np.float32)


def chosen_by_inputs(count: int) -> tuple[bytes, Feed]:
    """If after If; four inputs decide."""
    feed = {"x0": start()} | {f"c{k}": np.array(k % 2 == 0) for k in range(4)}
    nodes = [
        choice(
            f"c{i % 4}",
            branch("Sub", [f"x{i}", "half"], f"y{i}"),
            branch("Mul", [f"x{i}", "half"], f"n{i}"),
            f"x{i + 1}",
        )
        for i in range(count)
    ]
    return model(nodes, f"x{count}", feed), feed


def chosen_by_data(count: int) -> tuple[bytes, Feed]:
    """If after If; what the one before made decides."""
    nodes = []
    for i in range(count):
        nodes.append(helper.make_node("ReduceMax", [f"x{i}"], [f"m{i}"], keepdims=0))
        nodes.append(helper.make_node("Greater", [f"m{i}", "limit"], [f"c{i}"]))
        yes, no = branch("Mul", [f"x{i}", "half"], f"y{i}"), branch("Add", [f"x{i}", "half"], f"n{i}")
        nodes.append(choice(f"c{i}", yes, no, f"x{i + 1}"))
    feed = {"x0": start()}
    return model(nodes, f"x{count}", feed), feed


def captured(count: int) -> tuple[bytes, Feed]:
    """As many sums, then If after If: one branch reads the sum of the same number, the other the one from the end."""
    nodes = [helper.make_node("Add", [f"v{i - 1}" if i else "x0", "limit"], [f"v{i}"]) for i in range(count)]
    for i in range(count):
        yes, no = branch("Max", [f"x{i}", f"v{i}"], f"y{i}"), branch("Min", [f"x{i}", f"v{count - 1 - i}"], f"n{i}")
        nodes.append(choice("c", yes, no, f"x{i + 1}"))
    feed = {"x0": start(), "c": np.array(False)}
    return model(nodes, f"x{count}", feed), feed


def loops(count: int) -> tuple[bytes, Feed]:
    """Loop after Loop."""
    feed = {"x0": start(), "iterations": np.array(3)}
    nodes = []
    for i in range(count):
        inside = [helper.make_node("Add", [f"s{i}", "x0"], [f"a{i}"]), helper.make_node("Tanh", [f"a{i}"], [f"b{i}"])]
        body = loop_body(i, inside, f"s{i}", f"b{i}")
        nodes.append(helper.make_node("Loop", ["iterations", "", f"x{i}"], [f"x{i + 1}"], body=body))
    return model(nodes, f"x{count}", feed), feed


def one_body(count: int) -> tuple[bytes, Feed]:
    """All nodes in the body of one Loop."""
    feed = {"x0": start(), "iterations": np.array(3)}
    return model([_loop_over(chain_nodes("s", "x0", count), f"n{count - 1}")], "y", feed), feed


def _loop_over(nodes: list[onnx.NodeProto], result: str) -> onnx.NodeProto:
    return helper.make_node("Loop", ["iterations", "", "x0"], ["y"], body=loop_body(0, nodes, "s", result))


def chain_nodes(first: str, other: str, count: int) -> list[onnx.NodeProto]:
    nodes = []
    for i in range(count):
        op = ("Tanh", "Add", "Mul", "Sigmoid", "Sub")[i % 5]
        inputs = [f"n{i - 1}" if i else first] + ([] if op in ("Tanh", "Sigmoid") else [other])
        nodes.append(helper.make_node(op, inputs, [f"n{i}"]))
    return nodes


def chain(count: int) -> tuple[bytes, Feed]:
    """Elementwise nodes, one after the other."""
    feed = {"x0": start()}
    return model(chain_nodes("x0", "x0", count), f"n{count - 1}", feed), feed


def recurrent(count: int) -> tuple[bytes, Feed]:
    """GRU after GRU."""
    feed = {"x0": start(), "w": np.full((1, 3 * WIDTH, WIDTH), 0.1, np.float32), "axes": np.array([0, 1])}
    nodes = [helper.make_node("Unsqueeze", ["x0", "axes"], ["s0"])]
    for i in range(count):
        nodes.append(helper.make_node("GRU", [f"s{i}", "w", "w"], ["", f"s{i + 1}"], hidden_size=WIDTH))
    nodes.append(helper.make_node("Squeeze", [f"s{count}", "axes"], ["y"]))
    return model(nodes, "y", feed), feed


KINDS: dict[str, Callable[[int], tuple[bytes, Feed]]] = {
    "If in a row, inputs decide": chosen_by_inputs,
    "If in a row, data decides": chosen_by_data,
    "If that read outer values": captured,
    "Loop in a row": loops,
    "one Loop, nodes in its body": one_body,
    "GRU in a row": recurrent,
    "elementwise nodes in a row": chain,
}

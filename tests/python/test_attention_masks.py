"""Attention of random sizes, as exporters write it, with masks between scale and softmax: the same bits whether it
becomes one node or stays many, and onnxruntime's results."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

F = np.float32
LOWEST = np.finfo(F).min


class Attention:
    """softmax(masks(scale * q k)) v; `masks` are of random kinds and shapes, some constants, some inputs."""

    def __init__(self, seed: int):
        self.rng = rng = np.random.default_rng(seed)
        self.batch, self.heads, self.size = (int(n) for n in rng.integers([1, 1, 3], [4, 5, 70]))
        self.rows, self.columns = (int(n) for n in rng.integers([32, 1], [300, 300]))
        self.nodes, self.constants, self.feeds = [], [], {}
        self.fused = True

    def given(self, array: np.ndarray, constant: bool) -> str:
        name = f"g{len(self.constants) + len(self.feeds)}"
        if constant:
            self.constants.append(numpy_helper.from_array(array, name))
        else:
            self.feeds[name] = array
        return name

    def numbers(self, *shape: int, constant: bool = False) -> str:
        return self.given(self.rng.standard_normal(shape).astype(F), constant)

    def node(self, op: str, *inputs: str, **attributes) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def spread(self) -> tuple[int, ...]:
        """Sizes of an operand that spreads over the scores."""
        whole = [self.batch, self.heads, self.rows, self.columns]
        sizes = [n if self.rng.random() < 0.6 else 1 for n in whole]
        return tuple(sizes[int(self.rng.integers(0, 4)) :])

    def masked(self, scores: str) -> str:
        constant = bool(self.rng.integers(2))
        if self.rng.random() < 0.5:
            addends = self.numbers(*self.spread(), constant=constant)
            return self.node("Add", *((scores, addends) if self.rng.random() < 0.5 else (addends, scores)))
        condition = self.given(self.rng.random(self.spread()) < 0.5, constant)
        shape = self.spread() if self.rng.random() < 0.3 else ()
        others = self.given(np.full(shape, self.rng.choice([LOWEST, -np.inf, -1e4]), F), True)
        return self.node("Where", condition, *((scores, others) if self.rng.random() < 0.5 else (others, scores)))

    def model(self, masks: int) -> bytes:
        query = self.numbers(self.batch, self.rows, self.heads, self.size)
        key, value = (self.numbers(self.batch, self.columns, self.heads, self.size) for _ in range(2))
        query = self.node("Transpose", query, perm=[0, 2, 1, 3])
        key = self.node("Transpose", key, perm=[0, 2, 3, 1])
        value = self.node("Transpose", value, perm=[0, 2, 1, 3])
        scores = self.node("MatMul", query, key)
        scale = self.rng.choice(["Mul", "Div", "none"])
        if scale != "none":
            scores = self.node(str(scale), scores, self.given(np.array(8 if scale == "Div" else 0.3, F), True))
        for _ in range(masks):
            scores = self.masked(scores)
        self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        types = {np.dtype(F): TensorProto.FLOAT, np.dtype(bool): TensorProto.BOOL}
        inputs = [helper.make_tensor_value_info(n, types[v.dtype], v.shape) for n, v in self.feeds.items()]
        output = helper.make_tensor_value_info(f"v{len(self.nodes) - 1}", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "attention", inputs, [output], self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(made.SerializeToString())


def run(model: bytes, feeds: dict[str, np.ndarray], threads: int = 2, **entries) -> np.ndarray:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    for name, value in entries.items():
        options.add_session_config_entry(f"treadle.{name}", value)
    return treadle.InferenceSession(model, options).run(None, feeds)[0]


@pytest.mark.parametrize("seed", range(60))
def test_masks_of_random_shapes(seed):
    attention = Attention(seed)
    model = attention.model(seed % 4)
    fused = run(model, attention.feeds)
    np.testing.assert_array_equal(fused, run(model, attention.feeds, passes_off="fuse-attention"))
    np.testing.assert_array_equal(fused, run(model, attention.feeds, threads=1, optimize="0"))
    theirs = onnxruntime.InferenceSession(model).run(None, attention.feeds)[0]
    np.testing.assert_allclose(fused, theirs, rtol=1e-3, atol=1e-4)


def test_a_mask_that_is_scaled_is_no_scale_of_the_scores():
    q, k, v, mask = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [40, 40]) for n in "qkvm")
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    third = numpy_helper.from_array(np.array(0.3, F), "third")
    nodes = [
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("Mul", ["r", "third"], ["scaled"]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Add", ["scaled", "scores"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"]),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "attention", [q, k, v, mask], [y], [third])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    feeds = {n: np.random.default_rng(i).standard_normal((40, 40)).astype(F) for i, n in enumerate("qkvm")}
    np.testing.assert_array_equal(run(model, feeds), run(model, feeds, optimize="0"))

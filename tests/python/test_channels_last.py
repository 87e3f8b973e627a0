"""Chains of convolutions of random shapes: the same bits whether channels are last between them or second, and
onnxruntime's results."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

F = np.float32


class Chain:
    """A random network over images; `values` are the results so far, with their channels and sizes."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []
        self.batch, channels = int(self.rng.integers(1, 3)), int(self.rng.choice([3, 8, 16, 17, 32, 40]))
        self.sizes = tuple(int(n) for n in self.rng.integers(5, 24, 2))
        self.values = [("x", channels, self.sizes)]
        self.outputs = []

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array.astype(F), name))
        return name

    def node(self, op: str, inputs: list[str], **attributes) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def pick(self):
        return self.values[int(self.rng.integers(max(0, len(self.values) - 3), len(self.values)))]

    def conv(self) -> None:
        x, channels, sizes = self.pick()
        kind = self.rng.choice(["dense", "pointwise", "depthwise", "grouped"])
        kernel = 1 if kind == "pointwise" else int(self.rng.choice([1, 2, 3, 5, 7]))
        stride, dilation = int(self.rng.choice([1, 1, 2])), int(self.rng.choice([1, 1, 2]))
        pads = [int(p) for p in self.rng.integers(0, kernel, 4)]
        group = channels if kind == "depthwise" else 2 if kind == "grouped" and channels % 2 == 0 else 1
        out = channels if kind == "depthwise" else int(self.rng.choice([2, 16, 24, 30, 32, 64]))
        reach = (kernel - 1) * dilation + 1
        after = tuple((n + pads[i] + pads[i + 2] - reach) // stride + 1 for i, n in enumerate(sizes))
        if min(after) < 1:
            return
        filters = self.constant(self.rng.standard_normal((out, channels // group, kernel, kernel)) / kernel)
        inputs = [x, filters] + ([self.constant(self.rng.standard_normal(out))] if self.rng.random() < 0.7 else [])
        y = self.node("Conv", inputs, pads=pads, strides=[stride] * 2, dilations=[dilation] * 2, group=group)
        self.values.append((y, out, after))

    def transposed(self) -> None:
        x, channels, sizes = self.pick()
        kernel, stride, out = int(self.rng.integers(1, 5)), int(self.rng.integers(1, 4)), int(self.rng.choice([8, 32]))
        after = tuple((n - 1) * stride + kernel for n in sizes)
        if max(after) > 48:
            return
        filters = self.constant(self.rng.standard_normal((channels, out, kernel, kernel)) / kernel)
        y = self.node("ConvTranspose", [x, filters], strides=[stride] * 2)
        self.values.append((y, out, after))

    def pool(self) -> None:
        x, channels, sizes = self.pick()
        kernel, stride = int(self.rng.choice([2, 3])), int(self.rng.choice([1, 2]))
        pads = [int(p) for p in self.rng.integers(0, 2, 4)]
        after = tuple((n + pads[i] + pads[i + 2] - kernel) // stride + 1 for i, n in enumerate(sizes))
        if min(after) < 1:
            return
        op = str(self.rng.choice(["MaxPool", "AveragePool"]))
        more = {"count_include_pad": int(self.rng.integers(2))} if op == "AveragePool" else {}
        y = self.node(op, [x], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **more)
        self.values.append((y, channels, after))

    def elementwise(self) -> None:
        x, channels, sizes = self.pick()
        partners = [v for v, c, s in self.values if (c, s) == (channels, sizes)]
        choice = self.rng.choice(["Relu", "Sigmoid", "Add", "Mul", "scale"])
        if choice in ("Add", "Mul"):
            y = self.node(str(choice), [x, str(self.rng.choice(partners))])
        elif choice == "scale":
            y = self.node("Mul", [x, self.constant(self.rng.standard_normal((channels, 1, 1)))])
        else:
            y = self.node(str(choice), [x])
        self.values.append((y, channels, sizes))

    def concat(self) -> None:
        x, channels, sizes = self.pick()
        others = [(v, c) for v, c, s in self.values if s == sizes]
        other, more = others[int(self.rng.integers(len(others)))]
        self.values.append((self.node("Concat", [x, other], axis=1), channels + more, sizes))

    def model(self) -> onnx.ModelProto:
        for _ in range(12):
            steps = [self.conv, self.conv, self.conv, self.transposed, self.pool, self.elementwise, self.concat]
            self.rng.choice(steps)()
        last = self.values[-1]
        kept = {last[0], self.values[len(self.values) // 2][0]} - {"x"}
        average = self.node("GlobalAveragePool", [last[0]])
        outputs = [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in sorted({average, *kept})]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.batch, self.values[0][1], *self.sizes])
        graph = helper.make_graph(self.nodes, "chain", [x], outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model: bytes, x: np.ndarray, **entries) -> list[np.ndarray]:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 2
    for name, value in entries.items():
        options.add_session_config_entry(f"treadle.{name}", value)
    return treadle.InferenceSession(model, options).run(None, {"x": x})


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_random_shapes(seed):
    chain = Chain(seed)
    model = chain.model().SerializeToString()
    x = np.random.default_rng(seed).standard_normal((chain.batch, chain.values[0][1], *chain.sizes)).astype(F)
    last, second = run(model, x), run(model, x, passes_off="lay-channels-last")
    for a, b in zip(last, second, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(last, onnxruntime.InferenceSession(model).run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max())))
    x.flat[:: x.size // 3] = np.nan
    for a, b in zip(run(model, x), run(model, x, passes_off="lay-channels-last"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_layout_is_taken_only_if_its_methods_cost_less():
    # A convolution of one channel fits the methods for channels last. They are slow here: a vector holds one channel.
    rng = np.random.default_rng(3)
    nodes, weights, name = [], [], "x"
    for i in range(3):
        weights.append(numpy_helper.from_array(rng.standard_normal((1, 1, 1, 256)).astype(F), f"w{i}"))
        nodes.append(helper.make_node("Conv", [name, f"w{i}"], [f"v{i}"], strides=[1, 2]))
        name = f"v{i}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, 8000])
    y = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "long", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = {"x": rng.standard_normal((1, 1, 1, 8000)).astype(F)}
    session = treadle.InferenceSession(model.SerializeToString())
    methods = {row["method"] for row in session.explain(feeds, json=True)["methods"]}
    assert methods and not any("nhwc" in method for method in methods)

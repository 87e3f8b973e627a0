"""Random nodes of onnxruntime's own operators (com.microsoft), run by treadle and by onnxruntime.

An operator's maker draws a Node for a seed. Where onnxruntime has a kernel for CPUs, it is the judge: it runs the node
in float32, whatever narrow type treadle is given, and what treadle makes of the narrow type has to be near. Elsewhere
the maker states what is expected, computed by numpy in float64.
"""

import dataclasses

import ml_dtypes
import numpy as np
import onnxruntime
from one_node import EPSILON, PROTO, treadle
from onnx import helper, numpy_helper

NARROW = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


@dataclasses.dataclass
class Node:
    op: str
    inputs: list  # arrays, None where one is left out
    outputs: list  # numpy types; None: left out
    attributes: dict = dataclasses.field(default_factory=dict)
    expected: list | None = None  # by numpy; None: onnxruntime computes it
    domain: str = "com.microsoft"
    version: int = 1
    constants: tuple = ()  # inputs that are initialisers
    symbolic: bool = False  # the model's inputs have a symbol for each size
    units: float = 16  # allowed distance of a result, in roundings
    compared: list | None = None  # outputs to be compared; None: all

    def model(self, inputs, outputs, ends_early=False) -> bytes:
        """With `ends_early`, inputs that are left out at the end are not named at all, instead of by ""."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        results = ["" if t is None else f"y{i}" for i, t in enumerate(outputs)]
        named = names[: self.last_input() + 1] if ends_early else names
        node = helper.make_node(self.op, named, results, domain=self.domain, **self.attributes)
        values = [
            helper.make_tensor_value_info(
                name, PROTO[x.dtype], [f"{name}_{k}" for k in range(x.ndim)] if self.symbolic else x.shape
            )
            for i, (name, x) in enumerate(zip(names, inputs, strict=True))
            if name and i not in self.constants
        ]
        initialisers = [numpy_helper.from_array(inputs[i], names[i]) for i in self.constants if inputs[i] is not None]
        made = [
            helper.make_tensor_value_info(name, PROTO[np.dtype(t)], None)
            for name, t in zip(results, outputs, strict=True)
            if name
        ]
        graph = helper.make_graph([node], "one", values, made, initialisers)
        imports = {"": 17 if self.domain else self.version, "com.microsoft": 1}
        opsets = [helper.make_opsetid(d, v) for d, v in imports.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    def last_input(self) -> int:
        return max((i for i, x in enumerate(self.inputs) if x is not None), default=-1)

    def feeds(self, inputs) -> dict:
        return {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in self.constants}


def widened(x):
    return x.astype(np.float32) if x is not None and x.dtype in NARROW else x


def by_treadle(node: Node, ends_early=False) -> list:
    session = treadle.InferenceSession(node.model(node.inputs, node.outputs, ends_early))
    results = iter(session.run(None, node.feeds(node.inputs)))
    return [None if t is None else next(results) for t in node.outputs]


def by_onnxruntime(node: Node) -> list:
    inputs = [widened(x) for x in node.inputs]
    outputs = [None if t is None else np.float32 if np.dtype(t) in NARROW else t for t in node.outputs]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(node.model(inputs, outputs), options, providers=["CPUExecutionProvider"])
    results = iter(session.run(None, node.feeds(inputs)))
    return [None if t is None else next(results) for t in outputs]


def near(actual, expected, units, what=""):
    """Within `units` roundings of the largest element, or of its own."""
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    epsilon = EPSILON.get(actual.dtype.name)
    if epsilon is None:
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    wanted = np.asarray(expected, np.float64)
    finite = np.abs(wanted[np.isfinite(wanted)])
    largest = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(
        actual.astype(np.float64), wanted, rtol=units * epsilon, atol=units * epsilon * largest, err_msg=what
    )


def check(node: Node):
    expected = node.expected if node.expected is not None else by_onnxruntime(node)
    both_ways = [False, True] if node.last_input() + 1 < len(node.inputs) else [False]
    for ends_early in both_ways:
        compare(node, by_treadle(node, ends_early), expected)


def compare(node: Node, results: list, expected: list):
    for i, (actual, wanted) in enumerate(zip(results, expected, strict=True)):
        if actual is None or wanted is None or (node.compared is not None and i not in node.compared):
            continue
        near(actual, wanted, node.units, f"{node.op} output {i}, attributes {node.attributes}")

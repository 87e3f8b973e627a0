"""Random models of one RNN, GRU or LSTM node, with inputs and the results of the plain loops."""

import dataclasses

import ml_dtypes
import numpy as np
import onnx
from gru import gru
from lstm import lstm
from onnx import TensorProto, helper
from recurrence import ALPHA, BETA
from rnn import rnn

VERSIONS = {"RNN": [1, 7, 14, 22], "GRU": [1, 3, 7, 14, 22], "LSTM": [1, 7, 14, 22]}
LOOPS = {"RNN": rnn, "GRU": gru, "LSTM": lstm}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
INPUTS = {
    "RNN": ["X", "W", "R", "B", "sequence_lens", "initial_h"],
    "GRU": ["X", "W", "R", "B", "sequence_lens", "initial_h"],
    "LSTM": ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"],
}
OUTPUTS = {"RNN": ["Y", "Y_h"], "GRU": ["Y", "Y_h"], "LSTM": ["Y", "Y_h", "Y_c"]}
NAMES = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
         "Softsign", "Softplus"]  # fmt: skip
TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16,
    np.dtype(np.int32): TensorProto.INT32,
}
# Relative to the largest value: the rounding errors of the lowered graph over a few steps, eight roundings to float16
# and bfloat16.
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "float16": 8e-3, "bfloat16": 6e-2}


@dataclasses.dataclass
class Draw:
    op: str
    version: int
    dtype: np.dtype
    attributes: dict
    inputs: dict  # name -> array, in the operator's order; left out: None
    initializers: set
    outputs: list  # names, "" where left out
    expected: dict

    def describe(self):
        shapes = {k: None if v is None else list(v.shape) for k, v in self.inputs.items()}
        return f"{self.op}-{self.version} {self.dtype} {self.attributes} {shapes} -> {self.outputs}"

    def model(self):
        names = ["" if v is None else k for k, v in self.inputs.items()]
        while names[-1] == "":
            names.pop()
        node = helper.make_node(self.op, names, self.outputs, name="cell", **self.attributes)
        given, constants = [], []
        for name, array in self.inputs.items():
            if array is None:
                continue
            kind = TYPES[array.dtype]
            if name in self.initializers:
                constants.append(helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True))
            else:
                given.append(helper.make_tensor_value_info(name, kind, array.shape))
        results = [helper.make_tensor_value_info(name, TYPES[self.dtype], None) for name in self.outputs if name]
        graph = helper.make_graph([node], "recurrent", given, results, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.version)],
                                 ir_version=10).SerializeToString()  # fmt: skip

    def feeds(self):
        return {k: v for k, v in self.inputs.items() if v is not None and k not in self.initializers}


def random_case(rng, name):
    return "".join(c.upper() if rng.random() < 0.5 else c.lower() for c in name)


def draw_activations(rng, op, directions, attributes):
    count = FUNCTIONS[op] * directions
    names = [str(rng.choice(NAMES)) for _ in range(count)]
    keys = [name.lower() for name in names]
    needed = {table: [k for k in keys if k in values] for table, values in (("alpha", ALPHA), ("beta", BETA))}
    for table, users in needed.items():
        # ScaledTanh has no defaults: the list has to reach it.
        least = max((i + 1 for i, k in enumerate(users) if k == "scaledtanh"), default=0)
        size = int(rng.integers(least, len(users) + 2))
        if size:
            attributes[f"activation_{table}"] = [round(float(v), 3) for v in rng.uniform(0.1, 0.9, size)]
    names += ["Tanh"] * int(rng.integers(0, 2))  # surplus
    attributes["activations"] = [random_case(rng, name) for name in names]


def draw_attributes(rng, op, version, hidden):
    attributes = {}
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    if direction != "forward" or rng.random() < 0.5:
        attributes["direction"] = direction
    if rng.random() < 0.7:
        attributes["hidden_size"] = hidden
    if version >= 14 and rng.random() < 0.5:
        attributes["layout"] = int(rng.integers(0, 2))
    if rng.random() < 0.3:
        attributes["clip"] = round(float(rng.uniform(0.1, 1.5)), 3)
    if rng.random() < 0.5:
        draw_activations(rng, op, directions, attributes)
    if op == "LSTM" and rng.random() < 0.3:
        attributes["input_forget"] = int(rng.integers(0, 2))
    if op == "GRU" and version >= 3 and rng.random() < 0.5:
        attributes["linear_before_reset"] = int(rng.integers(0, 2))
    return attributes, directions


def draw_inputs(rng, op, dtype, attributes, directions, sizes):
    steps, batch, width, hidden = sizes

    def values(*shape, scale=1.0):
        return (rng.uniform(-1, 1, shape) * scale).astype(dtype)

    scale = 1 / np.sqrt(hidden)
    by_batch = attributes.get("layout") == 1
    state = (batch, directions, hidden) if by_batch else (directions, batch, hidden)
    inputs = {
        "X": values(*((batch, steps, width) if by_batch else (steps, batch, width))),
        "W": values(directions, GATES[op] * hidden, width, scale=scale),
        "R": values(directions, GATES[op] * hidden, hidden, scale=scale),
        "B": values(directions, 2 * GATES[op] * hidden),
        "sequence_lens": rng.integers(0, steps + 1, batch).astype(np.int32),
        "initial_h": values(*state),
        "initial_c": values(*state),
        "P": values(directions, 3 * hidden),
    }
    for name in INPUTS[op][3:]:
        if rng.random() < 0.5:
            inputs[name] = None
    return {name: inputs[name] for name in INPUTS[op]}


def draw_outputs(rng, op, version):
    outputs = [name if rng.random() < 0.75 else "" for name in OUTPUTS[op]]
    if op == "GRU" and version == 1:
        outputs[1] = "Y_h"
    if not any(outputs):
        outputs[int(rng.integers(len(outputs)))] = OUTPUTS[op][0]
        outputs = [OUTPUTS[op][i] if name else "" for i, name in enumerate(outputs)]
    while outputs[-1] == "":
        outputs.pop()
    return outputs


def draw_once(rng, op):
    version = int(rng.choice(VERSIONS[op]))
    types = [np.float32, np.float32, np.float64, np.float16] + ([ml_dtypes.bfloat16] if version >= 22 else [])
    dtype = np.dtype(types[int(rng.integers(len(types)))])
    steps = int(rng.integers(0, 8)) if rng.random() < 0.9 else 0
    batch = int(rng.integers(1, 5)) if rng.random() < 0.9 else 0
    sizes = (steps, batch, int(rng.integers(1, 7)), int(rng.choice([1, 2, 3, 5, 8, 17, 40])))
    attributes, directions = draw_attributes(rng, op, version, sizes[3])
    inputs = draw_inputs(rng, op, dtype, attributes, directions, sizes)
    outputs = draw_outputs(rng, op, version)
    initializers = {name for name in ("W", "R", "B", "P", "initial_h") if rng.random() < 0.6}
    margins = []
    options = {k: v for k, v in attributes.items() if k != "hidden_size"}
    with np.errstate(over="ignore", invalid="ignore"):  # unbounded activations; draw() rejects results that grow
        results = LOOPS[op](*inputs.values(), margins=margins, **options)
    if version == 1 and rng.random() < 0.5:
        attributes["output_sequence"] = int(outputs[0] == "Y")
    if op == "GRU" and version == 1 and attributes.get("direction") == "forward" and rng.random() < 0.5:
        attributes["direction"] = "foward"  # as the specification's default spells it
    expected = {k: v for k, v in zip(OUTPUTS[op], results, strict=True) if k in outputs}
    case = Draw(op, version, dtype, attributes, inputs, initializers, outputs, expected)
    return case, min(margins, default=np.inf)


def draw(seed):
    """The case of a seed. A case so close to ThresholdedRelu's jump that rounding decides is drawn again, and so is a
    case that grows by unbounded activations.
    """
    rng = np.random.default_rng(seed)
    op = ["RNN", "GRU", "LSTM"][seed % 3]
    while True:
        case, margin = draw_once(rng, op)
        largest = max((np.abs(v.astype(np.float64)).max(initial=0) for v in case.expected.values()), default=0)
        if margin > 10 * TOLERANCE[case.dtype.name] and largest < 50:
            return case


def check(case, results):
    """Compares what an engine returned (in the order of the outputs that are named) with the plain loop."""
    names = [name for name in case.outputs if name]
    assert len(results) == len(names)
    for name, actual in zip(names, results, strict=True):
        wanted = case.expected[name]
        assert actual.dtype == wanted.dtype, f"{name} has type {actual.dtype}: {case.describe()}"
        assert actual.shape == wanted.shape, f"{name} has shape {actual.shape}: {case.describe()}"
        wanted, actual = wanted.astype(np.float64), actual.astype(np.float64)
        limit = TOLERANCE[case.dtype.name] * (1 + np.max(np.abs(wanted), initial=0))
        worst = np.max(np.abs(wanted - actual), initial=0)
        assert worst <= limit, f"{name} differs by {worst} (limit {limit}): {case.describe()}"


def load(case):
    return onnx.load_from_string(case.model())

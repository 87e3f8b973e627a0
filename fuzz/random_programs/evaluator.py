"""Evaluates a model in plain numpy, node by node, with no code of an engine: the reference interpreter of random programs.

Only what `generator.py` emits is known. The loop operators are those of tests/equations, written from the specification.
Sequences are lists, an empty optional is None. NoAnswer: the specification leaves open what the value is.
"""

from __future__ import annotations

import functools
import math
import pathlib
import re
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "equations"))

from gru import gru
from loop import loop
from lstm import lstm
from rnn import rnn
from scan import scan, scan8

from random_programs import philox


class NoAnswer(Exception):
    """Nothing can be said about this program."""


class Node:
    def __init__(self, proto: onnx.NodeProto) -> None:
        self.op, self.domain = proto.op_type, proto.domain
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.attributes: dict = {}
        self.references: dict[str, str] = {}
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                self.references[attribute.name] = attribute.ref_attr_name
            elif attribute.type == onnx.AttributeProto.GRAPH:
                self.attributes[attribute.name] = Graph(attribute.g)
            else:
                self.attributes[attribute.name] = helper.get_attribute_value(attribute)


class Graph:
    """A graph or a function's body, read once."""

    def __init__(self, proto: onnx.GraphProto | onnx.FunctionProto) -> None:
        self.nodes = [Node(node) for node in proto.node]
        if isinstance(proto, onnx.FunctionProto):
            self.inputs, self.outputs, self.infos, self.initializers = list(proto.input), list(proto.output), {}, {}
            self.opset = next(o.version for o in proto.opset_import if o.domain == "")
            return
        self.inputs = [info.name for info in proto.input]
        self.outputs = [info.name for info in proto.output]
        self.infos = list(proto.output)
        self.initializers = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.initializer}


class Frame:
    """The values that a body sees; `outer` is the frame around it, None at the top and in functions."""

    def __init__(self, outer: Frame | None, opset: int, functions: dict, attributes: dict) -> None:
        self.outer, self.opset, self.functions, self.attributes = outer, opset, functions, attributes
        self.values: dict = {}

    def find(self, name: str):
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            frame = frame.outer
        raise KeyError(name)

    def body(self, graph: Graph):
        """A Python function that runs `graph` with this frame around it."""

        def call(*arguments):
            inner = Frame(self, self.opset, self.functions, self.attributes)
            inner.values.update(graph.initializers)
            inner.values.update(zip(graph.inputs, arguments, strict=True))
            return run_graph(graph, inner)

        return call


class Call:
    """One node about to be evaluated."""

    def __init__(self, node: Node, frame: Frame) -> None:
        self.node, self.frame = node, frame
        self.inputs = [frame.find(name) if name else None for name in node.inputs]

    def attribute(self, name: str, default=None):
        if name in self.node.references:
            return self.frame.attributes.get(self.node.references[name], default)
        return self.node.attributes.get(name, default)

    def input(self, i: int):
        return self.inputs[i] if i < len(self.inputs) else None


def run_graph(graph: Graph, frame: Frame) -> list:
    for node in graph.nodes:
        call = Call(node, frame)
        function = frame.functions.get((node.domain, node.op))
        if node.op in TAKES_SEQUENCE and not isinstance(call.inputs[0], list):
            raise TypeError(f"{node.op} takes a sequence")
        results = run_function(function, call) if function else OPERATORS[node.op](call)
        if not isinstance(results, tuple):
            results = (results,)
        frame.values.update((name, value) for name, value in zip(node.outputs, results, strict=False) if name)
    return [frame.find(name) for name in graph.outputs]


def run_function(graph: Graph, call: Call) -> tuple:
    given = {name: call.attribute(name) for name in [*call.node.attributes, *call.node.references]}
    inner = Frame(None, graph.opset, call.frame.functions, given)
    inner.values.update(zip(graph.inputs, call.inputs, strict=False))
    return tuple(run_graph(graph, inner))


def evaluate(model: onnx.ModelProto, feeds: dict) -> list:
    functions = {(f.domain, f.name): Graph(f) for f in model.functions}
    opset = next(o.version for o in model.opset_import if o.domain == "")
    frame = Frame(None, opset, functions, {})
    graph = Graph(model.graph)
    frame.values.update(graph.initializers)
    frame.values.update(feeds)
    with np.errstate(all="ignore"):
        return run_graph(graph, frame)


# Control flow --------------------------------------------------------------------------------------------------------


def declared_empty(info: onnx.ValueInfoProto):
    """What a Loop's scan output is without an iteration: the declared element's sizes; None where they are not all known."""
    tensor = info.type.tensor_type
    dims = [d.dim_value if d.WhichOneof("value") == "dim_value" else None for d in tensor.shape.dim]
    if not tensor.HasField("shape") or None in dims:
        return None
    return np.zeros((0, *dims), helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def run_if(call: Call) -> tuple:
    taken = call.attribute("then_branch" if bool(np.asarray(call.inputs[0]).reshape(())) else "else_branch")
    return tuple(call.frame.body(taken)())


def run_loop(call: Call) -> tuple:
    graph = call.attribute("body")
    states = call.inputs[2:]
    body = call.frame.body(graph)
    empty = [declared_empty(info) for info in graph.infos[1 + len(states) :]]
    results = loop(lambda iteration, go, *s: body(np.array(iteration, np.int64), np.array(go), *s), call.inputs[0],
                   call.inputs[1], states, empty)  # fmt: skip
    if any(result is None for result in results[len(states) :]):
        raise NoAnswer("an element's sizes are not declared")
    return tuple(results)


def run_scan(call: Call) -> tuple:
    graph = call.attribute("body")
    count = call.attribute("num_scan_inputs")
    inputs = call.inputs[1:] if call.frame.opset < 9 else call.inputs
    states, whole = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    outputs = []
    for info in graph.infos[len(states) :]:
        empty = declared_empty(info)
        if empty is None:
            raise NoAnswer("an element's sizes are not declared")
        outputs.append((empty.shape[1:], empty.dtype))
    body = call.frame.body(graph)
    if call.frame.opset < 9:
        lengths = call.inputs[0]
        results = scan8(body, states, whole, outputs, sequence_lens=lengths, directions=call.attribute("directions"))
    else:
        results = scan(body, states, whole, outputs,
                       **{key: call.attribute(f"scan_{key}") for key in ("input_axes", "output_axes",
                                                                         "input_directions",
                                                                         "output_directions")})  # fmt: skip
    return tuple(results)


def run_sequence_map(call: Call) -> tuple:
    body = call.frame.body(call.attribute("body"))
    columns = [body(*[x[i] if isinstance(x, list) else x for x in call.inputs]) for i in range(len(call.inputs[0]))]
    return tuple([row[k] for row in columns] for k in range(len(call.node.outputs)))


def run_recurrent(call: Call) -> tuple:
    options = {"direction": call.attribute("direction", b"forward").decode(), "layout": call.attribute("layout", 0)}
    function = {"RNN": rnn, "GRU": gru, "LSTM": lstm}[call.node.op]
    if call.node.op == "GRU":
        options["linear_before_reset"] = call.attribute("linear_before_reset", 0)
    return tuple(function(*call.inputs, **options))


# Everything else -----------------------------------------------------------------------------------------------------


NARROW_FLOATS = (np.float16, helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))


def elementwise(function):
    def run(call: Call):
        result = function(*call.inputs)
        return np.asarray(result, result.dtype if result.dtype == np.bool_ else call.inputs[0].dtype)

    return run


def folded(function):
    """Of any number of operands, from left to right."""

    def run(call: Call):
        dtype = call.inputs[0].dtype
        wide = [x.astype(np.float32) if dtype in NARROW_FLOATS else x for x in call.inputs]
        return np.asarray(function(wide)).astype(dtype)

    return run


def in_float(function):
    """Computed in float where the element is narrower, then rounded."""

    def run(call: Call):
        (x,) = call.inputs
        wide = x.astype(np.float32) if x.dtype in NARROW_FLOATS else x
        return np.asarray(function(wide)).astype(x.dtype)

    return run


def leaky_relu(call: Call):
    (x,) = call.inputs
    alpha = x.dtype.type(call.attribute("alpha", 0.01))
    return np.asarray(np.where(x >= 0, x, alpha * x)).astype(x.dtype)


def axes_of(call: Call):
    axes = call.attribute("axes")
    if axes is None and call.input(1) is not None:
        axes = call.inputs[1].tolist()
    return None if axes is None else tuple(axes)


def reduction(function):
    def run(call: Call):
        x = call.inputs[0]
        keep = bool(call.attribute("keepdims", 1))
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        return np.asarray(function(wide, axis=axes_of(call), keepdims=keep)).astype(x.dtype)

    return run


def log_sum_exp(x, axis, keepdims):
    """Shifted by the largest element, by nothing where that is infinite or there is none."""
    highest = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isinf(highest), x.dtype.type(0), highest)
    result = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return result if keepdims else np.squeeze(result, axis)


def mean(x, axis, keepdims):
    """Of integers: their sum, which wraps around in 64 bits, divided towards 0."""
    if x.dtype.kind not in "iu":
        return np.mean(x, axis=axis, keepdims=keepdims)
    total = np.asarray(np.sum(x, axis=axis, keepdims=keepdims))
    count = total.dtype.type(x.size // total.size)
    return total // count + ((total < 0) & (total % count != 0))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def clip(call: Call):
    """Min(max, Max(x, min)), as the specification has it; bounds that are left out are the largest finite numbers."""
    x = call.inputs[0]
    if call.frame.opset < 11:
        low, high = (np.array(call.attribute(name, sign * 3.4028235e38)).astype(x.dtype)
                     for name, sign in (("min", -1), ("max", 1)))  # fmt: skip
    else:
        info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else np.finfo(x.dtype)
        low = info.min if call.input(1) is None else call.inputs[1]
        high = info.max if call.input(2) is None else call.inputs[2]
    return np.asarray(np.minimum(np.maximum(x, low), high)).astype(x.dtype)


def gemm(call: Call):
    a, b, c = call.inputs
    b = b.T if call.attribute("transB", 0) else b
    alpha, beta = (a.dtype.type(call.attribute(name, 1.0)) for name in ("alpha", "beta"))
    return np.asarray(alpha * (a @ b) + beta * c)


def is_infinite(call: Call):
    x = call.inputs[0]
    return np.asarray((np.isposinf(x) & bool(call.attribute("detect_positive", 1)))
                      | (np.isneginf(x) & bool(call.attribute("detect_negative", 1))))  # fmt: skip


def elu(x):
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


erf = np.vectorize(math.erf, otypes=[np.float64])


def unsqueeze(call: Call):
    x, axes = call.inputs[0], axes_of(call)
    rank = x.ndim + len(axes)
    return np.expand_dims(x, tuple(a % rank for a in axes))


def divide(x, y):
    if x.dtype.kind == "u":
        return x // y
    if x.dtype.kind != "i":
        return x / y
    quotient = np.abs(x.astype(object)) // np.abs(y.astype(object)) * np.sign(x).astype(object) * np.sign(y)
    return np.asarray(quotient).astype(x.dtype)


def bit_shift(call: Call):
    """By the width of an element and more, nothing is left."""
    x, by = call.inputs
    wide = x.astype(np.uint64) << by if call.attribute("direction") == b"LEFT" else x >> by
    return np.asarray(np.where(by < 8 * x.dtype.itemsize, wide, 0)).astype(x.dtype)


def constant(call: Call):
    for name, convert in (
        ("value", lambda v: numpy_helper.to_array(v)),
        ("value_float", lambda v: np.array(v, np.float32)),
        ("value_int", lambda v: np.array(v, np.int64)),
    ):
        value = call.attribute(name)
        if value is not None:
            return convert(value)
    raise KeyError("Constant")


def reshape(call: Call):
    shape = call.inputs[1].tolist()
    return call.inputs[0].reshape(shape)


def cut(call: Call):
    """Bounds that reach beyond the first element backwards leave nothing out, as in the specification."""
    x = call.inputs[0]
    if call.frame.opset < 10:
        starts, ends = call.attribute("starts"), call.attribute("ends")
    else:
        starts, ends = call.inputs[1].tolist(), call.inputs[2].tolist()
    axes = range(len(starts)) if call.input(3) is None else call.inputs[3].tolist()
    steps = [1] * len(starts) if call.input(4) is None else call.inputs[4].tolist()
    whole = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        whole[axis] = slice(start, end, step)
    return x[tuple(whole)]


def pad(call: Call):
    pads = call.inputs[1].tolist() if call.frame.opset >= 11 else call.attribute("pads")
    rank = len(pads) // 2
    mode = call.attribute("mode", b"constant")
    return np.pad(call.inputs[0], list(zip(pads[:rank], pads[rank:], strict=True)), mode=mode.decode())


def spelled(call: Call):
    """Cast from and to strings included."""
    x, dtype = call.inputs[0], helper.tensor_dtype_to_np_dtype(call.attribute("to"))
    if call.attribute("to") == onnx.TensorProto.STRING:
        return np.array([str(v) for v in x.ravel().tolist()], object).reshape(x.shape)
    return np.array([int(v) for v in x.ravel()], dtype).reshape(x.shape) if x.dtype == object else x.astype(dtype)


def filled(call: Call):
    value = numpy_helper.to_array(call.attribute("value"))
    return np.full(call.inputs[0], value[0], value.dtype)


def drawn(function, low: str, high: str):
    """Numbers of a node with a seed; of one without, some numbers of its distribution."""

    def run(call: Call):
        like = call.input(0)
        shape = tuple(call.attribute("shape")) if like is None else like.shape
        element = call.attribute("dtype")
        dtype = like.dtype if element is None else helper.tensor_dtype_to_np_dtype(element)
        options = [call.attribute(name) for name in (low, high)]
        return function(call.attribute("seed", 0), dtype, math.prod(shape), *options).reshape(shape)

    return run


def split_texts(call: Call) -> tuple:
    x = call.inputs[0]
    delimiter = call.attribute("delimiter", b"").decode() or None
    parts = [text.split(delimiter, call.attribute("maxsplit", -1)) for text in x.ravel()]
    most = max(map(len, parts), default=0)
    whole = np.array([p + [""] * (most - len(p)) for p in parts], object).reshape(*x.shape, most)
    return whole, np.array([len(p) for p in parts], np.int64).reshape(x.shape)


def normalize_texts(call: Call):
    """One empty text where all are stop words."""
    x = call.inputs[0]
    stop = {word.decode() for word in call.attribute("stopwords", [])}
    change = {b"LOWER": str.lower, b"UPPER": str.upper}.get(call.attribute("case_change_action"), str)
    kept = [change(text) for text in x.ravel() if text not in stop] or [""]
    return np.array(kept, object).reshape((1,) * (x.ndim - 1) + (-1,))


def full_match(call: Call):
    pattern = re.compile(call.attribute("pattern").decode())
    return np.array([pattern.fullmatch(text) is not None for text in call.inputs[0].ravel()], bool).reshape(
        call.inputs[0].shape)  # fmt: skip


def sequence_insert(call: Call):
    items, item = list(call.inputs[0]), call.inputs[1]
    where = len(items) if call.input(2) is None else int(call.inputs[2])
    items.insert(where, item)
    return items


def sequence_erase(call: Call):
    items = list(call.inputs[0])
    del items[-1 if call.input(1) is None else int(call.inputs[1])]
    return items


def split_to_sequence(call: Call):
    return [
        row if call.attribute("keepdims", 1) else row[0] for row in np.split(call.inputs[0], call.inputs[0].shape[0])
    ]


def stack_or_join(call: Call):
    items = call.inputs[0]
    return np.stack(items) if call.attribute("new_axis", 0) else np.concatenate(items, axis=call.attribute("axis"))


TAKES_SEQUENCE = {"SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "ConcatFromSequence"}
OPERATORS = {
    "If": run_if, "Loop": run_loop, "Scan": run_scan, "SequenceMap": run_sequence_map,
    "RNN": run_recurrent, "GRU": run_recurrent, "LSTM": run_recurrent,
    "Add": elementwise(np.add), "Sub": elementwise(np.subtract), "Mul": elementwise(np.multiply),
    "Div": elementwise(divide), "Mod": elementwise(np.mod), "Max": folded(lambda xs: functools.reduce(np.maximum, xs)),
    "Min": folded(lambda xs: functools.reduce(np.minimum, xs)), "Sum": folded(lambda xs: functools.reduce(np.add, xs)),
    "Mean": folded(lambda xs: functools.reduce(np.add, xs) / xs[0].dtype.type(len(xs))), "Clip": clip,
    "IsNaN": lambda c: np.isnan(c.inputs[0]), "IsInf": is_infinite, "Exp": in_float(np.exp), "Sin": in_float(np.sin),
    "Cos": in_float(np.cos), "Softplus": in_float(lambda x: np.logaddexp(x, x.dtype.type(0))), "Elu": in_float(elu),
    "HardSigmoid": in_float(lambda x: np.minimum(np.maximum(x.dtype.type(0.2) * x + x.dtype.type(0.5), 0), 1)),
    "Relu": in_float(lambda x: np.maximum(x, x.dtype.type(0))), "Erf": in_float(erf), "Gemm": gemm,
    "Softmax": in_float(softmax), "LogSoftmax": in_float(log_softmax),
    "Einsum": lambda c: np.asarray(np.einsum(c.attribute("equation").decode(), *c.inputs)),
    "Neg": elementwise(np.negative), "Abs": elementwise(np.abs),
    "And": elementwise(np.logical_and), "Or": elementwise(np.logical_or), "Xor": elementwise(np.logical_xor),
    "Not": elementwise(np.logical_not), "Less": lambda c: np.asarray(c.inputs[0] < c.inputs[1]),
    "Greater": lambda c: np.asarray(c.inputs[0] > c.inputs[1]),
    "Equal": lambda c: np.asarray(c.inputs[0] == c.inputs[1]).astype(np.bool_),
    "BitwiseAnd": elementwise(np.bitwise_and), "BitwiseOr": elementwise(np.bitwise_or),
    "BitwiseXor": elementwise(np.bitwise_xor), "BitwiseNot": elementwise(np.invert), "BitShift": bit_shift,
    "Sign": elementwise(np.sign), "Tanh": in_float(np.tanh), "Sigmoid": in_float(lambda x: x.dtype.type(0.5) * (1 + np.tanh(x.dtype.type(0.5) * x))),
    "LeakyRelu": leaky_relu, "Identity": lambda c: c.inputs[0], "Constant": constant,
    "Cast": spelled,
    "Where": lambda c: np.asarray(np.where(*c.inputs), c.inputs[1].dtype),
    "ReduceMax": reduction(np.max), "ReduceMin": reduction(np.min), "ReduceSum": reduction(np.sum),
    "ReduceMean": reduction(mean), "ReduceProd": reduction(np.prod), "ReduceLogSumExp": reduction(log_sum_exp),
    "ReduceLogSum": reduction(lambda x, **how: np.log(np.sum(x, **how))),
    "ReduceL1": reduction(lambda x, **how: np.sum(np.abs(x), **how)),
    "ReduceL2": reduction(lambda x, **how: np.sqrt(np.sum(x * x, **how))),
    "ReduceSumSquare": reduction(lambda x, **how: np.sum(x * x, **how)),
    "MatMul": lambda c: np.asarray(np.matmul(*c.inputs)), "Transpose": lambda c: np.transpose(c.inputs[0]),
    "Reshape": reshape, "Expand": lambda c: c.inputs[0] * np.ones(c.inputs[1], c.inputs[0].dtype),
    "Unsqueeze": unsqueeze, "Squeeze": lambda c: np.squeeze(c.inputs[0], axes_of(c)),
    "Concat": lambda c: np.concatenate(c.inputs, axis=c.attribute("axis")), "Slice": cut, "Pad": pad,
    "Gather": lambda c: np.asarray(np.take(c.inputs[0], c.inputs[1], axis=0), c.inputs[0].dtype),
    "Shape": lambda c: np.array(c.inputs[0].shape, np.int64), "Size": lambda c: np.array(c.inputs[0].size, np.int64),
    "SequenceEmpty": lambda c: [], "SequenceConstruct": lambda c: list(c.inputs), "SequenceInsert": sequence_insert,
    "SequenceErase": sequence_erase, "SequenceAt": lambda c: c.inputs[0][int(c.inputs[1])],
    "SequenceLength": lambda c: np.array(len(c.inputs[0]), np.int64), "SplitToSequence": split_to_sequence,
    "ConcatFromSequence": stack_or_join,
    "Optional": lambda c: c.inputs[0] if c.inputs else None,
    "OptionalHasElement": lambda c: np.array(c.input(0) is not None),
    "OptionalGetElement": lambda c: c.inputs[0],
    "Range": lambda c: np.arange(*[int(x) for x in c.inputs], dtype=np.int64), "Floor": elementwise(np.floor),
    "NonZero": lambda c: np.array(np.nonzero(np.atleast_1d(c.inputs[0])), np.int64),
    "Compress": lambda c: np.compress(c.inputs[1], c.inputs[0], axis=c.attribute("axis")),
    "Tile": lambda c: np.tile(c.inputs[0], c.inputs[1]), "ConstantOfShape": filled,
    "RandomUniform": drawn(philox.uniform, "low", "high"), "RandomUniformLike": drawn(philox.uniform, "low", "high"),
    "RandomNormal": drawn(philox.normal, "mean", "scale"), "RandomNormalLike": drawn(philox.normal, "mean", "scale"),
    "StringConcat": lambda c: np.asarray(c.inputs[0] + c.inputs[1], object), "StringSplit": split_texts,
    "StringNormalizer": normalize_texts, "RegexFullMatch": full_match,
}  # fmt: skip

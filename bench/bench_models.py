"""The models that bench.py measures; each maker gives bytes and inputs, makers of loops the number of trips as well."""

from __future__ import annotations

import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper, parser

OPSET = 17
LOOPS: dict = {}
RECURRENT: dict = {}


def assemble(text: str, weights: dict[str, np.ndarray]) -> bytes:
    graph = parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in weights.items())
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8).SerializeToString()


def numbers(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def loop(trips: int):
    """Registers a maker of (text, weights, inputs) under its name; `trips` is what it runs at scale 1."""

    def register(make):
        def scaled(scale: int):
            text, weights, inputs = make(trips * scale)
            return assemble(text, weights), inputs, trips * scale

        LOOPS[make.__name__] = scaled
        return make

    return register


@loop(2000)
def counter(n: int):
    text = """
    g (int64 m, int64 x) => (int64 y) {
      y = Loop <body = b (int64 i, bool c, int64 s) => (bool c2, int64 s2) {
        s2 = Add(s, one)
        c2 = Less(s2, far) }> (m, yes, x) }"""
    weights = {"one": np.array(1, np.int64), "far": np.array(1 << 60, np.int64), "yes": np.array(True)}
    return text, weights, {"m": np.array(n, np.int64), "x": np.array(0, np.int64)}


@loop(2000)
def fibonacci(n: int):
    text = """
    g (int64 m, int64 x, int64 z) => (int64 a, int64 b, int64[k] all) {
      a, b, all = Loop <body = b (int64 i, bool c, int64 p, int64 q) => (bool c2, int64 p2, int64 q2, int64 e) {
        c2 = Identity(c)
        p2 = Identity(q)
        q2 = Add(p, q)
        e = Identity(q) }> (m, yes, x, z) }"""
    inputs = {"m": np.array(n, np.int64), "x": np.array(0, np.int64), "z": np.array(1, np.int64)}
    return text, {"yes": np.array(True)}, inputs


@loop(1000)
def branches(n: int):
    text = """
    g (int64 m, float x) => (float y) {
      y = Loop <body = b (int64 i, bool c, float s) => (bool c2, float s2) {
        c2 = Identity(c)
        r = Mod(i, two)
        odd = Equal(r, one)
        s2 = If (odd) <then_branch = t () => (float u) { u = Add(s, step) },
                       else_branch = e () => (float v) { v = Mul(s, shrink) }> }> (m, yes, x) }"""
    weights = {
        "two": np.array(2, np.int64),
        "one": np.array(1, np.int64),
        "step": np.array(0.5, np.float32),
        "shrink": np.array(0.9, np.float32),
        "yes": np.array(True),
    }
    return text, weights, {"m": np.array(n, np.int64), "x": np.array(1, np.float32)}


@loop(500)
def newton(n: int):
    text = """
    g (int64 m, float[16] x, float[16] a) => (float[16] y) {
      y = Loop <body = b (int64 i, bool c, float[16] s) => (bool c2, float[16] s2) {
        c2 = Identity(c)
        q = Div(a, s)
        t = Add(s, q)
        s2 = Mul(t, half) }> (m, yes, x) }"""
    weights = {"half": np.array(0.5, np.float32), "yes": np.array(True)}
    a = numbers("newton").uniform(1, 9, 16).astype(np.float32)
    return text, weights, {"m": np.array(n, np.int64), "x": np.ones(16, np.float32), "a": a}


def scan_over(n: int, width: int, body: str, weights: dict[str, np.ndarray], name: str):
    text = f"""
    g (float[{width}] h0, float[{n},{width}] x) => (float[{width}] h, float[{n},{width}] y) {{
      h, y = Scan <num_scan_inputs = 1, body = b (float[{width}] s, float[{width}] e)
          => (float[{width}] s2, float[{width}] o) {{ {body} }}> (h0, x) }}"""
    rng = numbers(name)
    x = rng.uniform(-1, 1, (n, width)).astype(np.float32)
    return text, weights, {"h0": np.zeros(width, np.float32), "x": x}


@loop(1000)
def running_sum(n: int):
    return scan_over(n, 4, "s2 = Add(s, e)\n o = Identity(s2)", {}, "running_sum")


@loop(1000)
def moving_average(n: int):
    body = "p = Mul(s, keep)\n q = Mul(e, take)\n s2 = Add(p, q)\n o = Sub(e, s2)"
    weights = {"keep": np.array(0.9, np.float32), "take": np.array(0.1, np.float32)}
    return scan_over(n, 8, body, weights, "moving_average")


@loop(1000)
def oscillator(n: int):
    body = "t = Tanh(s)\n d = Mul(t, keep)\n s2 = Add(d, e)\n o = Sigmoid(s2)"
    return scan_over(n, 64, body, {"keep": np.array(0.7, np.float32)}, "oscillator")


@loop(50)
def nested(n: int):
    text = """
    g (int64 m, float x) => (float y) {
      y = Loop <body = b (int64 i, bool c, float s) => (bool c2, float s2) {
        c2 = Identity(c)
        s2 = Loop <body = d (int64 j, bool e, float u) => (bool e2, float u2) {
          e2 = Identity(e)
          p = Mul(u, keep)
          u2 = Add(p, step) }> (twenty, yes, s) }> (m, yes, x) }"""
    weights = {
        "keep": np.array(0.9, np.float32),
        "step": np.array(0.1, np.float32),
        "twenty": np.array(20, np.int64),
        "yes": np.array(True),
    }
    return text, weights, {"m": np.array(n, np.int64), "x": np.array(1, np.float32)}


def recurrent(operator: str, gates: int, steps: int, batch: int, width: int) -> None:
    name = f"{operator} T{steps} B{batch} H{width}"

    def make() -> tuple[bytes, dict[str, np.ndarray]]:
        rng = numbers(name)
        scale = width**-0.5

        def weights(*shape: int) -> np.ndarray:
            return rng.uniform(-scale, scale, shape).astype(np.float32)

        initializers = [
            numpy_helper.from_array(weights(1, gates * width, width), "W"),
            numpy_helper.from_array(weights(1, gates * width, width), "R"),
            numpy_helper.from_array(weights(1, 2 * gates * width), "B"),
        ]
        node = helper.make_node(operator, ["X", "W", "R", "B"], ["Y", "Y_h"], hidden_size=width)
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [node],
            "g",
            [value("X", TensorProto.FLOAT, [steps, batch, width])],
            [value("Y", TensorProto.FLOAT, None), value("Y_h", TensorProto.FLOAT, None)],
            initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        x = rng.uniform(-1, 1, (steps, batch, width)).astype(np.float32)
        return model.SerializeToString(), {"X": x}

    RECURRENT[name] = make


for _operator, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    for _steps, _batch, _width in ((100, 1, 64), (500, 1, 128), (100, 1, 256), (100, 16, 256)):
        recurrent(_operator, _gates, _steps, _batch, _width)

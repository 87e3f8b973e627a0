"""Models of many kinds with inputs, for looking at their reports (`treadle.report`): in tests, and in bench_looking.py."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import treadle
from onnx import TensorProto, helper

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
sys.path += [str(EXAMPLES), str(EXAMPLES / "vad")]

import gallery  # noqa: E402
import vad  # noqa: E402

# An If whose branches differ in rank and a Loop, in a Loop; a NaN from iteration 4 on.
NESTED = """<ir_version: 10, opset_import: ["" : 22]>
g (int64 m, float[2] x) => (float[2] last, float[k,2] rows) <float three = {3}, float zero = {0}, bool go = {1}, int64[1] axis = {0}> {
  last, rows = Loop (m, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] row) {
    f = Cast <to = 1> (i)
    q = Sub (three, f)
    l = Log (q)
    positive = Greater (q, zero)
    u = If (positive) <then_branch = yes () => (float[2] y) { y = Add (s, l) },
                       else_branch = no () => (float z) { z = Add (l, zero) }>
    inner = Loop (i, go, s) <body = e (int64 j, bool c2, float[2] a) => (bool d2, float[2] b) {
      b = Tanh (a)
      d2 = Identity (go)
    }>
    t = Add (inner, u)
    row = Mul (t, three)
    d = Identity (go)
  }>
}"""

# Rows of a table: distances to all others, each row sorted by a Loop of its own in a Loop.
LOOPS_OF_LOOPS = """<ir_version: 10, opset_import: ["" : 22]>
rows (float[n,16] x, int64 times) => (float[n,16] sorted) <bool go = {1}, int64 zero = {0}, int64 two = {2}, int64[1] first = {0}> {
  shape = Shape (x)
  rows = Gather (shape, zero)
  none, sorted = Loop (rows, go, zero) <body = over_rows (int64 i, bool c, int64 k0) => (bool c1, int64 k1, float[16] row) {
    x0 = Gather (x, i)
    row = Loop (times, go, x0) <body = settle (int64 j, bool d, float[16] v) => (bool d1, float[16] w) {
      left = Slice (v, first, fifteen)
      right = Slice (v, one, sixteen)
      least = Min (left, right)
      most = Max (left, right)
      low = Slice (least, first, one)
      rest = Sum (most)
      both = Concat <axis = 0> (low, rest)
      w = Mul (both, shrinks)
      d1 = Identity (d)
    }>
    k1 = Add (k0, two)
    c1 = Identity (c)
  }>
}""".replace(
    "int64[1] first = {0}",
    "int64[1] first = {0}, int64[1] one = {1}, int64[1] fifteen = {15}, int64[1] sixteen = {16}, float shrinks = {0.99}",
)

# Pieces of a signal, as a list that a Loop makes and another one reads.
LISTS = """<ir_version: 10, opset_import: ["" : 22]>
pieces (float[n] x, int64 parts) => (seq(float[k]) pieces, float[j] all, int64 count)
<bool go = {1}, int64[1] first = {0}, int64 axis = {0}> {
  none = SequenceEmpty <dtype = 1> ()
  pieces = Loop (parts, go, none) <body = cut (int64 i, bool c, seq(float[k]) had) => (bool c1, seq(float[k]) has) {
    i1 = Unsqueeze (i, first)
    tail = Slice (x, i1, far)
    loud = Mul (tail, tail)
    has = SequenceInsert (had, loud)
    c1 = Identity (c)
  }>
  all = ConcatFromSequence <axis = 0> (pieces)
  count = SequenceLength (pieces)
}""".replace("int64 axis = {0}", "int64[1] far = {1000000}")

# A function that calls a function, whose node takes its attribute from the call.
FUNCTIONS = """<ir_version: 10, opset_import: ["" : 22, "house" : 1]>
gated (float[batch, 8] x) => (float[batch, 8] y) <float[8,8] w, float half = {0.5}> {
  a = house.Gate <slope = 0.25> (x, w)
  b = house.Gate (a, w)
  y = house.Mix (b, a)
}
<domain: "house", opset_import: ["" : 22, "house" : 1]>
Gate <slope: float = 0.125> (v, w) => (g) {
  product = MatMul (v, w)
  leaky = LeakyRelu <alpha: float = @slope> (product)
  g = house.Mix (leaky, product)
}
<domain: "house", opset_import: ["" : 22]>
Mix (p, q) => (m) {
  gate = Sigmoid (p)
  m = Mul (gate, q)
}
"""

# A recurrence over more iterations than the heat map has columns.
LONG = """<ir_version: 10, opset_import: ["" : 22]>
long (float[4000,1,8] x, float[1,1,16] h0, float[1,1,16] c0) => (float[4000,1,1,16] y, float[4000,1,16] level)
<float[1,64,8] w, float[1,64,16] r, float[1,16] start = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, float keep = {0.98}, float take = {0.02}, int64[1] one = {1}> {
  y, h, c = LSTM <hidden_size = 16> (x, w, r, , , h0, c0)
  flat = Squeeze (y, one)
  last, level = Scan <num_scan_inputs = 1, body = follow (float[1,16] s, float[1,16] e) => (float[1,16] t, float[1,16] o) {
    loud = Abs (e)
    kept = Mul (s, keep)
    taken = Mul (loud, take)
    t = Add (kept, taken)
    o = Identity (t)
  }> (start, flat)
}"""

# Texts over iterations.
TEXTS = """<ir_version: 10, opset_import: ["" : 22]>
texts (string[n] words, int64 times) => (string[n] joined, string[k,n] rows) <bool go = {1}, string[1] dot = {"."}> {
  joined, rows = Loop (times, go, words) <body = b (int64 i, bool c, string[n] s) => (bool d, string[n] t, string[n] row) {
    t = StringConcat (s, dot)
    row = StringNormalizer <case_change_action = "UPPER"> (t)
    d = Identity (c)
  }>
}"""

# A level that rises at once and falls slowly, for a stream.
LEVEL = """<ir_version: 10, opset_import: ["" : 20]>
level (float[n] x, float before) => (float[n] y, float after) <float keep = {0.999}> {
  loud = Abs (x)
  after, y = Scan <num_scan_inputs = 1, body = step (float h, float e) => (float k, float o) {
    slow = Mul (h, keep)
    k = Max (slow, e)
    o = Identity (k)
  }> (before, loud)
}"""

HOSTILE = "</script><script>document.title='broken'</script>"
IMAGE = "<img src=x onerror=document.title='broken'>"


def hostile() -> bytes:
    """A model whose names are HTML and script."""
    graph = helper.make_graph(
        [helper.make_node("Log", ["x"], [IMAGE], name=HOSTILE, domain="")],
        "@code@",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info(IMAGE, TensorProto.FLOAT, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


def network(count: int) -> bytes:
    """Elementwise nodes one after the other."""
    nodes = "\n".join(f"v{i + 1} = {'Tanh' if i % 2 else 'Neg'} (v{i})" for i in range(count))
    text = f'<ir_version: 10, opset_import: ["" : 22]> g (float[4] v0) => (float[4] v{count}) {{\n{nodes}\n}}'
    return treadle.parse_model(text)


def detector() -> dict[str, Any]:
    """Silero VAD of examples/vad, on its recording as a stream."""
    feeds = {
        "input": vad.read_wav(vad.RECORDING)[None, : 16000 * 8],
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(vad.RATE),
    }
    stream = {"time": {"input": 1}, "state": {"state": "stateN"}, "hop": vad.HOP, "context": vad.CONTEXT}
    return {"model": vad.MODEL, "input_feed": feeds, "stream": stream, "rate": vad.RATE}


def transducer() -> dict[str, Any]:
    """A greedy decoder of a transducer, on frames that say something."""
    model, sound = gallery.transducer("time flows in pieces")
    return {"model": model, "input_feed": {"sound": sound}}


def long() -> dict[str, Any]:
    """An LSTM and a Scan over 4,000 frames."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.normal(0, 0.3, (1, 64, 8)), "r": rng.normal(0, 0.3, (1, 64, 16))}
    model = gallery.model(LONG, **{name: value.astype(np.float32) for name, value in weights.items()})
    x = rng.normal(0, 1, (4000, 1, 8)) * (1 + np.sin(np.arange(4000) / 300))[:, None, None]
    zero = np.zeros((1, 1, 16), np.float32)
    return {"model": model, "input_feed": {"x": x.astype(np.float32), "h0": zero, "c0": zero}}


def functions() -> dict[str, Any]:
    """Calls of functions of the model."""
    rng = np.random.default_rng(2)
    model = gallery.model(FUNCTIONS, w=rng.normal(0, 1, (8, 8)).astype(np.float32))
    return {"model": model, "input_feed": {"x": rng.normal(0, 1, (4, 8)).astype(np.float32)}}


def stream() -> dict[str, Any]:
    """A level, pushed in pieces."""
    x = np.random.default_rng(3).normal(0, 1, 16000).astype(np.float32)
    return {
        "model": treadle.parse_model(LEVEL),
        "input_feed": {"x": x, "before": np.float32(0)},
        "stream": {"time": {"x": 0}, "state": {"before": "after"}, "hop": 160},
        "rate": 16000,
    }


NESTED_FEEDS = {"m": np.int64(6), "x": np.float32([1, 2])}
ROWS = np.random.default_rng(4).normal(0, 1, (24, 16)).astype(np.float32)

# By name: the arguments of `treadle.report.report`.
MODELS: dict[str, Callable[[], dict[str, Any]]] = {
    "nested": lambda: {"model": treadle.parse_model(NESTED), "input_feed": NESTED_FEEDS},
    "loop in a loop": lambda: {
        "model": treadle.parse_model(LOOPS_OF_LOOPS),
        "input_feed": {"x": ROWS, "times": np.int64(12)},
    },
    "voice detector": detector,
    "transducer": transducer,
    "lists": lambda: {
        "model": treadle.parse_model(LISTS),
        "input_feed": {"x": np.arange(64, dtype=np.float32), "parts": np.int64(40)},
    },
    "texts": lambda: {
        "model": treadle.parse_model(TEXTS),
        "input_feed": {"words": np.array(["wind", "<b>rain</b>"]), "times": np.int64(20)},
    },
    "functions": functions,
    "long recurrence": long,
    "stream": stream,
    "20,000 nodes": lambda: {
        "model": network(20_000),
        "input_feed": {"v0": np.ones(4, np.float32)},
        "runs": 1,
    },
    "hostile": lambda: {
        "model": hostile(),
        "input_feed": {"x": np.float32([1, -1])},
        "title": "</title><script>document.title='broken'</script>",
    },
    "broken": lambda: {"model": b"\x08\x0anonsense"},
    "unknown operator": lambda: {"model": treadle.parse_model(NESTED.replace("Tanh", "Nope"))},
    "without inputs": lambda: {"model": treadle.parse_model(NESTED)},
}

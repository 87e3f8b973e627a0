"""Models for firmware, plugins and controllers, each at one size: what `./dev bench compiled` writes as C."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Iterator

import convolutional
import models
import numpy as np
import onnx
import quantized
import realtime_models
import transformers
from onnx import helper, numpy_helper, parser
from realtime_models import drawn

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools" / "devtool"))
import environment  # noqa: E402

F = np.float32
UNITS = (8, 16, 32, 64, 128, 256)
STEPS = 64  # of recurrent operators


@dataclasses.dataclass(frozen=True)
class Case:
    """`loops`: most of the time goes to a loop or a recurrence. `fixed`: inputs that become part of the code."""

    name: str
    loops: bool
    make: Callable[[], tuple[bytes, dict[str, np.ndarray]]]
    fixed: tuple[str, ...] = ()
    absent: str = ""  # why there is no model


def absent(name: str, loops: bool, why: str) -> Case:
    return Case(name, loops, lambda: (b"", {}), absent=why)


def of_text(text: str, feeds: dict[str, np.ndarray], weights: dict[str, np.ndarray]):
    graph = parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), feeds


def from_shared(name: str, folder: str, loops: bool) -> Case:
    """A model of SHARED/models on its first set of inputs."""
    shared = environment.shared_folder()
    place = shared / "models" / folder if shared else None
    if place is None or not (place / "model.onnx").exists():
        return absent(name, loops, f"there is no SHARED/models/{folder}")

    def make():
        model = (place / "model.onnx").read_bytes()
        names = [i.name for i in onnx.load_from_string(model).graph.input]
        inside = {t.name for t in onnx.load_from_string(model).graph.initializer}
        names = [n for n in names if n not in inside]
        feeds = {}
        for k, input_name in enumerate(names):
            tensor = onnx.TensorProto.FromString((place / "test_data_set_0" / f"input_{k}.pb").read_bytes())
            feeds[input_name] = numpy_helper.to_array(tensor)
        return model, feeds

    return Case(name, loops, make)


def gtcrn() -> Case:
    name, path = "GTCRN, a hop of 16 ms", os.environ.get("TREADLE_GTCRN")
    if not path:
        return absent(name, True, "TREADLE_GTCRN names no file of its streaming form")

    def make():
        model = pathlib.Path(path).read_bytes()
        sizes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(path).graph.input}
        return model, {name: realtime_models.drawn(np.random.default_rng(0), *size) for name, size in sizes.items()}

    return Case(name, True, make)


def silero():
    """512 samples behind 64 of context, at 16 kHz."""
    model = (ROOT / "examples" / "vad" / "silero_vad.onnx").read_bytes()
    sound = np.random.default_rng(0).uniform(-0.1, 0.1, (1, 576)).astype(F)
    return model, {"input": sound, "state": np.zeros((2, 1, 128), F), "sr": np.array(16000)}


def recurrent(layer: Callable[[int], realtime_models.Model], units: int):
    """STEPS steps from a state that is given."""
    model = layer(units)
    made, states = model.stepping(STEPS)
    zeros = {name: np.zeros(sizes, F) for name, sizes in states.items()}
    return made, {"x": model.laid_out(model.signal(STEPS)), **zeros}


def a_loop(name: str):
    built = models.LOOPS[name].make(1)
    return built.model(), built.inputs


def mamba_step(width: int = 64, inner: int = 128, states: int = 16, kernel: int = 4, rank: int = 4):
    """One token through a block of Mamba: a window of a convolution and the state of the scan go from step to step."""
    text = f"""
    g (float[1,{width}] token, float[{inner},{kernel - 1}] window, float[{inner},{states}] state)
        => (float[1,{width}] y, float[{inner},{kernel - 1}] window_out, float[{inner},{states}] state_out) {{
      both = MatMul(token, w_in)
      x, gate = Split<axis = 1>(both, halves)
      column = Transpose<perm = [1, 0]>(x)
      seen = Concat<axis = 1>(window, column)
      window_out = Slice(seen, one, four, one)
      tapped = Mul(seen, taps)
      sums = ReduceSum<keepdims = 0>(tapped, one)
      biased = Add(sums, taps_bias)
      open = Sigmoid(biased)
      u = Mul(biased, open)
      u_row = Unsqueeze(u, zero)
      parts = MatMul(u_row, w_x)
      low, b, c = Split<axis = 1>(parts, sizes)
      dt_raw = MatMul(low, w_dt)
      dt_biased = Add(dt_raw, dt_bias)
      dt = Softplus(dt_biased)
      dt_column = Transpose<perm = [1, 0]>(dt)
      da = Mul(dt_column, a)
      decay = Exp(da)
      kept = Mul(decay, state)
      u_column = Unsqueeze(u, one)
      du = Mul(dt_column, u_column)
      db = Mul(du, b)
      state_out = Add(kept, db)
      shown = Mul(state_out, c)
      o = ReduceSum<keepdims = 0>(shown, one)
      skipped = Mul(u, d)
      whole = Add(o, skipped)
      gate_open = Sigmoid(gate)
      gated = Mul(gate, gate_open)
      row = Unsqueeze(whole, zero)
      out = Mul(row, gated)
      y = MatMul(out, w_out) }}"""
    rng = np.random.default_rng(0)
    weights = {
        "w_in": drawn(rng, width, 2 * inner), "taps": drawn(rng, inner, kernel), "taps_bias": drawn(rng, inner),
        "w_x": drawn(rng, inner, rank + 2 * states), "w_dt": drawn(rng, rank, inner), "dt_bias": drawn(rng, inner),
        "a": -np.broadcast_to(np.arange(1, states + 1, dtype=F), (inner, states)).copy(), "d": np.ones(inner, F),
        "w_out": drawn(rng, inner, width), "zero": np.array([0]), "one": np.array([1]), "four": np.array([kernel]),
        "halves": np.array([inner, inner]), "sizes": np.array([rank, states, states]),
    }  # fmt: skip
    feeds = {"token": drawn(rng, 1, width), "window": drawn(rng, inner, kernel - 1), "state": drawn(rng, inner, states)}
    return of_text(text, feeds, weights)


def conv_lstm(frames: int = 8, channels: int = 8, hidden: int = 16, plane: int = 16):
    """A LSTM whose products are convolutions, over pictures."""
    state = f"float[1,{hidden},{plane},{plane}]"
    text = f"""
    g (float[{frames},1,{channels},{plane},{plane}] x, {state} h0, {state} c0) => ({state} h, {state} c) {{
      h, c = Scan <num_scan_inputs = 1, body = step ({state} hp, {state} cp, float[1,{channels},{plane},{plane}] now)
          => ({state} hn, {state} cn) {{
        both = Concat<axis = 1>(now, hp)
        gates = Conv<pads = [1, 1, 1, 1]>(both, w, b)
        gi, gf, go, gc = Split<axis = 1>(gates, parts)
        i = Sigmoid(gi)
        f = Sigmoid(gf)
        o = Sigmoid(go)
        candidate = Tanh(gc)
        kept = Mul(f, cp)
        added = Mul(i, candidate)
        cn = Add(kept, added)
        shown = Tanh(cn)
        hn = Mul(o, shown) }}> (h0, c0, x) }}"""
    rng = np.random.default_rng(0)
    weights = {
        "w": drawn(rng, 4 * hidden, channels + hidden, 3, 3) / F(3), "b": drawn(rng, 4 * hidden),
        "parts": np.array([hidden] * 4),
    }  # fmt: skip
    zeros = np.zeros((1, hidden, plane, plane), F)
    return of_text(text, {"x": drawn(rng, frames, 1, channels, plane, plane), "h0": zeros, "c0": zeros}, weights)


def decoder_step(past: int = 63, layers: int = 2, heads: int = 4, width: int = 128, tokens: int = 512):
    """One token behind `past` others, whose keys and values are inputs."""
    b, x = transformers.Builder(), "x"
    feeds = {"x": transformers.numbers(1, 1, width)}
    size = width // heads
    for layer in range(layers):
        names = (f"key{layer}", f"value{layer}")
        shapes = ((1, heads, size, past), (1, heads, past, size))
        feeds |= {name: transformers.numbers(*shape) for name, shape in zip(names, shapes, strict=True)}
        x = b("Add", x, b.attention(b.normalized(x, width), heads, width, past=names))
        x = b("Add", x, b.feed_forward(b.normalized(x, width), width))
    return b.finish(feeds, b("MatMul", b.normalized(x, width), b.random(width, tokens)))


def sine():
    """The network of TensorFlow Lite micro's first example: 1, 16, 16 and 1 units."""
    b = transformers.Builder()
    x = b("Relu", b.linear("x", 1, 16))
    x = b("Relu", b.linear(x, 16, 16))
    return b.finish({"x": transformers.numbers(1, 1)}, b.linear(x, 16, 1))


def byte_lstm():
    model = quantized.lstm(64, 1)
    return model.data, model.feeds


def all_cases() -> Iterator[Case]:
    yield gtcrn()
    yield Case("Silero VAD, 32 ms", True, silero, ("sr",))
    for name, layer in (("LSTM", realtime_models.lstm), ("GRU", realtime_models.gru)):
        for units in UNITS:
            yield Case(f"{name} {units}, {STEPS} steps", True, lambda f=layer, u=units: recurrent(f, u))
    yield Case("Kalman, 300 steps", True, lambda: a_loop("kalman"))
    yield Case("Viterbi, 50 steps of 32 states", True, lambda: a_loop("viterbi"))
    yield Case("selective scan, 64 steps", True, lambda: a_loop("selective_scan"), ("m",))
    yield Case("Mamba, one step", False, mamba_step)
    yield Case("ConvLSTM, 8 pictures", True, conv_lstm)
    yield Case("decoder with a cache, 64th token", False, decoder_step)
    yield from_shared("MNIST", "mnist_cntk", False)
    yield Case("MobileNetV2, 224 x 224", False, convolutional.mobilenet_v2)
    yield Case("LSTM 64 of bytes, 24 steps", True, byte_lstm)
    yield from_shared("tree ensemble, xgboost", "tract_xgboost_classifier_tree", False)
    yield from_shared("tree ensemble, random forest", "skl_rf_cls", False)
    yield Case("sine, 1-16-16-1", False, sine)

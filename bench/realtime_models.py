"""Models for audio and control, sample by sample: layers as RTNeural has them, amplifiers as Neural Amp Modeler has them.

Each is built twice from the same weights: over a whole signal, which treadle streams as it is, and with its state as inputs
and outputs, which other engines need. Weights also come as the peers take them.
"""

from __future__ import annotations

import dataclasses
import functools
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 20, 10
KERNEL = 3
UNITS = (8, 16, 32, 64, 128)


class Graph:
    """Nodes in a row; with `stateful`, states are inputs and outputs instead of being carried along time."""

    def __init__(self, stateful: bool) -> None:
        self.stateful = stateful
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.states: dict[str, tuple[int, ...]] = {}  # inputs; outputs have `_out` behind the name

    def weight(self, array) -> str:
        name = f"w{len(self.weights)}"
        array = np.asarray(array)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int64)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes) -> str | list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names if outputs > 1 else names[0]

    def state(self, *sizes: int) -> str:
        name = f"state{len(self.states)}"
        self.states[name] = sizes
        return name

    def keep(self, state: str, value: str) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [f"{state}_out"]))

    def recurrent(self, op: str, x: str, w: np.ndarray, r: np.ndarray, b: np.ndarray, **attributes) -> str:
        """x: [time, 1, features]; weights as ONNX has them, without the axis of directions."""
        units, lstm = r.shape[1], op == "LSTM"
        states = [self.state(1, 1, units) for _ in range(2 if lstm else 1)] if self.stateful else []
        weights = [self.weight(a[None]) for a in (w, r, b)]
        given = [x, *weights, *(["", *states] if states else [])]
        steps, *last = self.add(op, *given, outputs=3 if lstm else 2, hidden_size=units, **attributes)
        for state, value in zip(states, last, strict=False):
            self.keep(state, value)
        return self.add("Squeeze", steps, self.weight(np.array([1])))

    def conv(self, x: str, w: np.ndarray, b: np.ndarray | None = None, dilation: int = 1) -> str:
        """Causal, over x: [1, channels, time]."""
        back = (w.shape[2] - 1) * dilation
        weights = [self.weight(w), *([] if b is None else [self.weight(b)])]
        pads = [back, 0]
        if self.stateful and back:
            state = self.state(1, w.shape[1], back)
            x = self.add("Concat", state, x, axis=2)
            begin, end, axis = (self.weight(np.array([k])) for k in (-back, np.iinfo(np.int64).max, 2))
            self.keep(state, self.add("Slice", x, begin, end, axis))
            pads = [0, 0]
        return self.add("Conv", x, *weights, dilations=[dilation], pads=pads)

    def model(self, sizes: list, result: list, value: str) -> bytes:
        self.nodes.append(helper.make_node("Identity", [value], ["y"]))
        typed = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)  # noqa: E731
        states = list(self.states.items())
        inputs = [typed("x", sizes), *(typed(name, dims) for name, dims in states)]
        outputs = [typed("y", result), *(typed(f"{name}_out", dims) for name, dims in states)]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.weights)
        made = helper.make_model(graph, ir_version=IR, opset_imports=[helper.make_opsetid("", OPSET)])
        return made.SerializeToString()


@dataclasses.dataclass(frozen=True)
class Model:
    """`axis`: of time, in x and y. `rtneural`: a kind and units; `nam`: the text of a .nam file."""

    name: str
    axis: int
    channels: int
    build: object
    rtneural: tuple[str, int, list[np.ndarray]] | None = None
    nam: str = ""

    @functools.cached_property
    def over_time(self) -> bytes:
        return self._made(Graph(stateful=False), "T")

    def stepping(self, frames: int) -> tuple[bytes, dict[str, tuple[int, ...]]]:
        graph = Graph(stateful=True)
        made = self._made(graph, frames)
        return made, graph.states

    def _made(self, graph: Graph, frames) -> bytes:
        value, outputs = self.build(graph)
        return graph.model(self.sizes(frames), self.sizes(frames, outputs), value)

    def sizes(self, frames, channels: int | None = None) -> list:
        channels = channels or self.channels
        return [frames, 1, channels] if self.axis == 0 else [1, channels, frames]

    def signal(self, frames: int, seed: int = 0) -> np.ndarray:
        """[frames, channels]"""
        return np.random.default_rng(seed).uniform(-0.5, 0.5, (frames, self.channels)).astype(np.float32)

    def laid_out(self, signal: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(signal[:, None] if self.axis == 0 else signal.T[None])

    def frames_of(self, y: np.ndarray) -> np.ndarray:
        return y[:, 0] if self.axis == 0 else y[0].T


def drawn(rng: np.random.Generator, *sizes: int) -> np.ndarray:
    """Weights with which values stay within bounds."""
    return (rng.standard_normal(sizes) / np.sqrt(sizes[-1])).astype(np.float32)


def by_gates(array: np.ndarray, order: list[int]) -> np.ndarray:
    """[gates * units, ...] with the gates in this order."""
    return np.concatenate([np.split(array, len(order))[gate] for gate in order])


def lstm(units: int) -> Model:
    rng = np.random.default_rng(units)
    w, r, b = drawn(rng, 4 * units, units), drawn(rng, 4 * units, units), drawn(rng, 4 * units)

    def build(graph: Graph):
        return graph.recurrent("LSTM", "x", w, r, np.concatenate([b, 0 * b])), units

    keras = [0, 2, 3, 1]  # input, forget, cell, output; ONNX: input, output, forget, cell
    weights = [by_gates(w, keras).T, by_gates(r, keras).T, by_gates(b, keras)]
    return Model(f"LSTM {units}", 0, units, build, ("lstm", units, weights))


def gru(units: int) -> Model:
    rng = np.random.default_rng(units)
    w, r = drawn(rng, 3 * units, units), drawn(rng, 3 * units, units)
    b = drawn(rng, 2, 3 * units)

    def build(graph: Graph):
        return graph.recurrent("GRU", "x", w, r, b.ravel(), linear_before_reset=1), units

    return Model(f"GRU {units}", 0, units, build, ("gru", units, [w.T, r.T, b]))  # the gates stand as in ONNX


def dense(units: int) -> Model:
    rng = np.random.default_rng(units)
    w, b = drawn(rng, units, units), drawn(rng, units)

    def build(graph: Graph):
        return graph.add("Add", graph.add("MatMul", "x", graph.weight(w.T)), graph.weight(b)), units

    return Model(f"dense {units}", 0, units, build, ("dense", units, [w, b, b]))


def conv1d(units: int) -> Model:
    rng = np.random.default_rng(units)
    w, b = drawn(rng, units, units, KERNEL), drawn(rng, units)
    return Model(
        f"conv {units}, kernel {KERNEL}",
        2,
        units,
        lambda graph: (graph.conv("x", w, b), units),
        ("conv1d", units, [w[..., ::-1], b, b]),  # the newest sample first
    )


def nam_text(architecture: str, config: dict, weights: list[np.ndarray]) -> str:
    flat = np.concatenate([np.ravel(w) for w in weights]).tolist()
    whole = {"version": "0.5.4", "architecture": architecture, "config": config, "weights": flat, "sample_rate": 48000}
    return json.dumps(whole)


def nam_lstm(units: int, layers: int = 1) -> Model:
    rng = np.random.default_rng(units)
    cells = []
    for k in range(layers):
        seen = 1 if k == 0 else units
        cells.append((drawn(rng, 4 * units, seen + units), drawn(rng, 4 * units), np.zeros(2 * units)))
    head, offset = drawn(rng, units), drawn(rng, 1)

    def build(graph: Graph):
        value, order = "x", [0, 3, 1, 2]  # input, output, forget, cell; PyTorch: input, forget, cell, output
        for w, b, _ in cells:
            wide, bias = by_gates(w, order), by_gates(b, order)
            seen = w.shape[1] - units
            both = np.concatenate([bias, 0 * bias])
            value = graph.recurrent("LSTM", value, wide[:, :seen], wide[:, seen:], both)
        product = graph.add("MatMul", value, graph.weight(head[:, None]))
        return graph.add("Add", product, graph.weight(offset)), 1

    config = {"input_size": 1, "hidden_size": units, "num_layers": layers}
    weights = [part for cell in cells for part in cell] + [head, offset]
    name = f"NAM LSTM {units}" + (f", {layers} layers" if layers > 1 else "")
    return Model(name, 0, 1, build, nam=nam_text("LSTM", config, weights))


def nam_wavenet(name: str, arrays: list[dict], scale: float = 0.02) -> Model:
    """Two or more stacks of dilated convolutions; each passes its signal and its head on to the next."""
    rng = np.random.default_rng(len(arrays))
    drawn_arrays = []
    for a in arrays:
        channels, wide = a["channels"], a["channels"] * (2 if a["gated"] else 1)
        layers = [
            (
                drawn(rng, wide, channels, a["kernel_size"]),
                drawn(rng, wide),
                drawn(rng, wide, a["condition_size"]),
                drawn(rng, channels, channels),
                drawn(rng, channels),
            )
            for _ in a["dilations"]
        ]
        head = [drawn(rng, a["head_size"], channels), *([drawn(rng, a["head_size"])] if a["head_bias"] else [])]
        drawn_arrays.append((drawn(rng, channels, a["input_size"]), layers, head))

    def build(graph: Graph):
        value, total = "x", None
        for a, (first, layers, head) in zip(arrays, drawn_arrays, strict=True):
            value = graph.conv(value, first[:, :, None])
            for dilation, (w, b, mix, one, one_b) in zip(a["dilations"], layers, strict=True):
                z = graph.add("Add", graph.conv(value, w, b, dilation), graph.conv("x", mix[:, :, None]))
                if a["gated"]:
                    z, gate = graph.add("Split", z, outputs=2, axis=1, num_outputs=2)
                    z = graph.add("Mul", graph.add("Tanh", z), graph.add("Sigmoid", gate))
                else:
                    z = graph.add("Tanh", z)
                total = graph.add("Add", total, z) if total else z
                value = graph.add("Add", value, graph.conv(z, one[:, :, None], one_b))
            total = graph.conv(total, head[0][:, :, None], *head[1:])
        return graph.add("Mul", total, graph.weight(np.float32(scale))), 1

    weights = [np.array([scale])]
    for first, layers, head in reversed(drawn_arrays):
        weights = [first, *(part for layer in layers for part in layer), *head, *weights]
    config = {"layers": arrays, "head": None, "head_scale": scale}
    return Model(name, 2, 1, build, nam=nam_text("WaveNet", config, weights))


def stack(input_size: int, channels: int, head_size: int, gated: bool, head_bias: bool) -> dict:
    return {
        "input_size": input_size,
        "condition_size": 1,
        "head_size": head_size,
        "channels": channels,
        "kernel_size": 3,
        "dilations": [2**k for k in range(10)],
        "activation": "Tanh",
        "gated": gated,
        "head_bias": head_bias,
    }


def all_models() -> list[Model]:
    layers = [make(units) for make in (lstm, gru, dense, conv1d) for units in UNITS]
    standard = [stack(1, 16, 8, False, False), stack(16, 8, 1, False, True)]
    gated = [stack(1, 16, 8, True, False), stack(16, 8, 1, True, True)]
    amplifiers = [
        nam_lstm(16),
        nam_lstm(24, 2),
        nam_wavenet("NAM WaveNet, standard", standard),
        nam_wavenet("NAM WaveNet, gated", gated),
    ]
    return [*layers, *amplifiers]

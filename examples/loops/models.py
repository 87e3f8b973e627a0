"""Three models that loop, with inputs: what `./dev run` measures beside onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser


@dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    iterations: int


def vad_loop(vad: onnx.ModelProto, audio: np.ndarray, hop: int, context: int, rate: int) -> Case:
    """The voice detector as the body of one Loop over all windows of the recording; its state is a loop state."""
    count = len(audio) // hop
    padded = np.concatenate([np.zeros(context, np.float32), audio[: count * hop]])
    windows = np.stack([padded[i * hop : i * hop + hop + context] for i in range(count)])[:, None]
    value = helper.make_tensor_value_info
    float32, int64, boolean = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
    nodes = [
        helper.make_node("Gather", ["windows", "window_number"], ["input"], axis=0),
        helper.make_node("Identity", ["continues"], ["go_on_next"]),
        *vad.graph.node,
    ]
    body = helper.make_graph(
        nodes,
        "window",
        [value("window_number", int64, []), value("continues", boolean, []), value("state", float32, None)],
        [value("go_on_next", boolean, []), value("stateN", float32, None), value("output", float32, None)],
    )
    loop = helper.make_node("Loop", ["count", "always", "state0"], ["last_state", "probability"], body=body)
    initializers = [
        numpy_helper.from_array(np.array(count, np.int64), "count"),
        numpy_helper.from_array(np.array(True), "always"),
        numpy_helper.from_array(np.array(rate, np.int64), "sr"),
        numpy_helper.from_array(np.zeros((2, 1, 128), np.float32), "state0"),
        *vad.graph.initializer,
    ]
    graph = helper.make_graph(
        [loop],
        "vad_loop",
        [value("windows", float32, [count, 1, hop + context])],
        [value("last_state", float32, None), value("probability", float32, None)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=vad.opset_import, ir_version=vad.ir_version)
    return Case("voice detector over the recording", model, {"windows": windows}, count)


def _parse(text: str, weights: dict[str, np.ndarray], opset: int = 17) -> onnx.ModelProto:
    graph = parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in weights.items())
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def selective_scan(steps: int = 256, channels: int = 96, states: int = 16) -> Case:
    """The recurrence of Mamba, h = exp(dt*A)*h + dt*x*B, y = h.C, as exporters write it: Gathers by the iteration counter."""
    t, d, n = steps, channels, states
    text = f"""
    selective_scan (float[{t},{d}] x, float[{t},{d}] delta, float[{t},{n}] B, float[{t},{n}] C)
        => (float[{d},{n}] last, float[{t},{d}] y) {{
      last, y = Loop <body = step (int64 i, bool c, float[{d},{n}] h) => (bool c2, float[{d},{n}] h2, float[{d}] yt) {{
        c2 = Identity(c)
        xt = Gather(x, i)
        dt = Gather(delta, i)
        bt = Gather(B, i)
        ct = Gather(C, i)
        dt1 = Unsqueeze(dt, one)
        da = Mul(dt1, A)
        decay = Exp(da)
        kept = Mul(decay, h)
        dx = Mul(dt, xt)
        dx1 = Unsqueeze(dx, one)
        bt1 = Unsqueeze(bt, zero)
        new = Mul(dx1, bt1)
        h2 = Add(kept, new)
        hc = Mul(h2, ct)
        yt = ReduceSum<keepdims = 0>(hc, one) }}> (steps, yes, h0)
    }}"""
    rng = np.random.default_rng(1)
    weights = {
        "A": -np.exp(rng.uniform(-1, 1, (d, n))).astype(np.float32),
        "h0": np.zeros((d, n), np.float32),
        "steps": np.array(t, np.int64),
        "yes": np.array(True),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
    }
    inputs = {
        "x": rng.standard_normal((t, d)).astype(np.float32),
        "delta": rng.uniform(0.001, 0.1, (t, d)).astype(np.float32),
        "B": rng.standard_normal((t, n)).astype(np.float32),
        "C": rng.standard_normal((t, n)).astype(np.float32),
    }
    return Case(f"selective scan, {t} x {d} x {n}", _parse(text, weights), inputs, t)


def greedy_decoder(steps: int = 256, width: int = 64, vocabulary: int = 512) -> Case:
    """One attention layer that decodes greedily; keys and values of all earlier tokens are loop states that grow."""
    d, v = width, vocabulary
    text = f"""
    greedy_decoder (int64[1] first) => (int64[1] last, float[n,{d}] keys, float[n,{d}] values, int64[s,1] tokens) {{
      last, keys, values, tokens = Loop <body = step (int64 i, bool c, int64[1] token, float[p,{d}] K, float[p,{d}] V)
          => (bool c2, int64[1] next, float[q,{d}] K2, float[q,{d}] V2, int64[1] emitted) {{
        e = Gather(embedding, token)
        q = MatMul(e, Wq)
        k = MatMul(e, Wk)
        w = MatMul(e, Wv)
        K2 = Concat<axis = 0>(K, k)
        V2 = Concat<axis = 0>(V, w)
        Kt = Transpose<perm = [1, 0]>(K2)
        s = MatMul(q, Kt)
        scaled = Mul(s, scale)
        a = Softmax<axis = 1>(scaled)
        o = MatMul(a, V2)
        r = Add(o, e)
        logits = MatMul(r, Wo)
        next = ArgMax<axis = 1, keepdims = 0>(logits)
        emitted = Identity(next)
        same = Equal(next, end)
        other = Not(same)
        c2 = Squeeze(other) }}> (steps, yes, first, K0, V0)
    }}"""
    rng = np.random.default_rng(2)
    scale = d**-0.5

    def matrix(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    weights = {
        "embedding": rng.standard_normal((v, d)).astype(np.float32),
        "Wq": matrix(d, d),
        "Wk": matrix(d, d),
        "Wv": matrix(d, d),
        "Wo": matrix(d, v),
        "K0": np.zeros((0, d), np.float32),
        "V0": np.zeros((0, d), np.float32),
        "scale": np.array(scale, np.float32),
        "end": np.array([-1], np.int64),
        "steps": np.array(steps, np.int64),
        "yes": np.array(True),
    }
    return Case(f"greedy decoder, {steps} tokens", _parse(text, weights), {"first": np.array([1], np.int64)}, steps)

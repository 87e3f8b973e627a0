"""Recurrent cells written out in a Scan."""

from __future__ import annotations

import numpy as np

from .registry import I64, Built, Class, loop, numbers, uniform


def cell_class(what: str, times: float) -> Class:
    return Class(f"cells in a Scan, batch 1: {what}", times, 1.15)


CELL_GREEDY = cell_class("greedy decode", 2.4)
BATCHED = Class("cells in a Scan, batch 16", 1.0)
OVER_LISTS = Class("cells in a Loop over a list")


def rnn_body(x: str, h: str, out: str, k: str = "") -> str:
    return f"""
        a = MatMul({x}, W{k})
        r = MatMul({h}, R{k})
        s = Add(a, r)
        {out} = Tanh(s)"""


def gru_body(x: str, h: str, out: str) -> str:
    return f"""
        a0 = MatMul({x}, W)
        a = Add(a0, bias)
        r0 = MatMul({h}, R)
        az, ar, an = Split <axis = 1> (a, gates)
        rz, rr, rn = Split <axis = 1> (r0, gates)
        sz = Add(az, rz)
        z = Sigmoid(sz)
        sr = Add(ar, rr)
        r = Sigmoid(sr)
        rrn = Mul(r, rn)
        sn = Add(an, rrn)
        n = Tanh(sn)
        d = Sub({h}, n)
        zd = Mul(z, d)
        {out} = Add(n, zd)"""


def gated_weights(rng: np.random.Generator, gates: int, width: int) -> dict[str, np.ndarray]:
    scale = width**-0.5
    weights = {name: uniform(rng, width, gates * width, scale=scale) for name in ("W", "R")}
    return weights | {"bias": uniform(rng, gates * width, scale=0.1), "gates": np.full(gates, width, I64)}


@loop(cell_class("RNN H=64", 8), 50, 1, 64, name="rnn_cell H=64")
@loop(cell_class("RNN H=256", 2.4), 50, 1, 256, name="rnn_cell H=256")
@loop(BATCHED, 50, 16, 256, name="rnn_cell B=16 H=256")
def rnn_cell(n: int, batch: int, width: int) -> Built:
    h = f"float[{batch},{width}]"
    text = f"""
    g ({h} h0, float[{n},{batch},{width}] x) => ({h} last, float[{n},{batch},{width}] y) {{
      last, y = Scan <num_scan_inputs = 1, body = b ({h} h, {h} xt) => ({h} h2, {h} yt) {{ {rnn_body("xt", "h", "h2")}
        yt = Identity(h2) }}> (h0, x) }}"""
    rng = numbers("rnn_cell")
    weights = {name: uniform(rng, width, width, scale=width**-0.5) for name in ("W", "R")}
    inputs = {"h0": uniform(rng, batch, width), "x": uniform(rng, n, batch, width)}
    return Built(text, weights, inputs, n, (n, batch, width), "h0 x W R", tolerance=1e-3)


@loop(OVER_LISTS, 50, 1, 64, name="rnn_cell H=64, list", yardstick="rnn_cell", jax="rnn_cell")
def rnn_over_list(n: int, batch: int, width: int) -> Built:
    """The same cell as TorchScript writes it: rows come from a list, `x.unbind(0)`, and results are appended to one."""
    h = f"float[{batch},{width}]"
    built = rnn_cell(n, batch, width)
    built.text = f"""
    g ({h} h0, float[{n},{batch},{width}] x) => ({h} last, float[{n},{batch},{width}] y) <bool yes = {{1}}> {{
      rows = SplitToSequence <axis = 0, keepdims = 0> (x)
      count = SequenceLength(rows)
      none = SequenceEmpty()
      last, made = Loop(count, yes, h0, none) <body = b (int64 i, bool go, {h} h, seq({h}) ys) => (bool on, {h} h2, seq({h}) all) {{
        on = Identity(go)
        xt = SequenceAt(rows, i) {rnn_body("xt", "h", "h2")}
        all = SequenceInsert(ys, h2) }}>
      y = ConcatFromSequence <axis = 0, new_axis = 1> (made) }}"""
    return built


@loop(cell_class("LSTM H=64", 7), 50, 64, name="lstm_cell H=64")
@loop(cell_class("LSTM H=256", 2.1), 50, 256, name="lstm_cell H=256")
def lstm_cell(n: int, width: int) -> Built:
    h = f"float[1,{width}]"
    text = f"""
    g ({h} h0, {h} c0, float[{n},1,{width}] x) => ({h} h, {h} c, float[{n},1,{width}] y) {{
      h, c, y = Scan <num_scan_inputs = 1, body = b ({h} s, {h} m, {h} xt) => ({h} s2, {h} m2, {h} yt) {{
        a = MatMul(xt, W)
        r = MatMul(s, R)
        ar = Add(a, r)
        g = Add(ar, bias)
        gi, go, gf, gc = Split <axis = 1> (g, gates)
        i = Sigmoid(gi)
        o = Sigmoid(go)
        f = Sigmoid(gf)
        z = Tanh(gc)
        fm = Mul(f, m)
        iz = Mul(i, z)
        m2 = Add(fm, iz)
        t = Tanh(m2)
        s2 = Mul(o, t)
        yt = Identity(s2) }}> (h0, c0, x) }}"""
    rng = numbers("lstm_cell")
    inputs = {"h0": uniform(rng, 1, width), "c0": uniform(rng, 1, width), "x": uniform(rng, n, 1, width)}
    weights = gated_weights(rng, 4, width)
    return Built(text, weights, inputs, n, (n, width), "h0 c0 x W R bias", tolerance=1e-3)


@loop(cell_class("GRU H=128", 4), 50, 128, name="gru_cell H=128")
def gru_cell(n: int, width: int) -> Built:
    h = f"float[1,{width}]"
    text = f"""
    g ({h} h0, float[{n},1,{width}] x) => ({h} last, float[{n},1,{width}] y) {{
      last, y = Scan <num_scan_inputs = 1, body = b ({h} h, {h} xt) => ({h} h2, {h} yt) {{ {gru_body("xt", "h", "h2")}
        yt = Identity(h2) }}> (h0, x) }}"""
    rng = numbers("gru_cell")
    inputs = {"h0": uniform(rng, 1, width), "x": uniform(rng, n, 1, width)}
    return Built(text, gated_weights(rng, 3, width), inputs, n, (n, width), "h0 x W R bias", tolerance=1e-3)


@loop(cell_class("two stacked", 2.7), 50, 128)
def stacked_cells(n: int, width: int) -> Built:
    """Two Scans, the second over what the first puts out; an iteration is a step of one of them."""
    h, hs = f"float[1,{width}]", f"float[{n},1,{width}]"

    def layer(k: int, x: str) -> str:
        return f"""
      last{k}, y{k} = Scan <num_scan_inputs = 1, body = b{k} ({h} h, {h} xt) => ({h} h2, {h} yt) {{
        {rnn_body("xt", "h", "h2", str(k))}
        yt = Identity(h2) }}> (h0, {x})"""

    text = f"g ({h} h0, {hs} x) => ({h} last1, {h} last2, {hs} y2) {{ {layer(1, 'x')} {layer(2, 'y1')} }}"
    rng = numbers("stacked_cells")
    weights = {name: uniform(rng, width, width, scale=width**-0.5) for name in ("W1", "R1", "W2", "R2")}
    inputs = {"h0": uniform(rng, 1, width), "x": uniform(rng, n, 1, width)}
    return Built(text, weights, inputs, 2 * n, (n, width), "h0 x W1 R1 W2 R2", tolerance=1e-3)

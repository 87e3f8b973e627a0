"""Recurrences over few or many independent lanes: filters, averages, scans."""

from __future__ import annotations

import numpy as np

from .programming import WIDE
from .registry import F32, I64, YES, Built, Class, constants, loop, numbers, uniform

EMA = Class("scan_ema", 150, 1.5)
TWO_AXES = Class("scan_two_axes", 30, 1.5)
WIDE_SUM = Class("scan_sum N=256", 20, 1.5)
MANDELBROT = Class("mandelbrot", 18, 1.5)
SELECTIVE = Class("selective scan", 8, 1.5)


def scan_over(name: str, n: int, width: int, body: str, weights: dict[str, np.ndarray], arrays: str = "") -> Built:
    text = f"""
    g (float[{width}] h0, float[{n},{width}] x) => (float[{width}] h, float[{n},{width}] y) {{
      h, y = Scan <num_scan_inputs = 1, body = b (float[{width}] s, float[{width}] e)
          => (float[{width}] s2, float[{width}] o) {{ {body} }}> (h0, x) }}"""
    inputs = {"h0": np.zeros(width, F32), "x": uniform(numbers(name), n, width)}
    return Built(text, weights, inputs, n, (n, width), f"h0 x {arrays}")


@loop(WIDE_SUM, 500, 256, name="running_sum N=256")
@loop(WIDE, 2000, 2, name="running_sum N=2")
def running_sum(n: int, width: int) -> Built:
    return scan_over("running_sum", n, width, "s2 = Add(s, e)\n o = Identity(s2)", {})


@loop(EMA, 2000, 8, name="moving_average N=8")
@loop(WIDE, 500, 512, name="moving_average N=512")
def moving_average(n: int, width: int) -> Built:
    body = "p = Mul(s, keep)\n q = Mul(e, take)\n s2 = Add(p, q)\n o = Sub(e, s2)"
    return scan_over("moving_average", n, width, body, constants(F32, keep=0.9, take=0.1), "keep take")


@loop(WIDE, 500, 64)
def oscillator(n: int, width: int) -> Built:
    body = "t = Tanh(s)\n d = Mul(t, keep)\n s2 = Add(d, e)\n o = Sigmoid(s2)"
    return scan_over("oscillator", n, width, body, constants(F32, keep=0.7), "keep")


@loop(TWO_AXES, 200, 4, 8)
def two_axes(n: int, rows: int, width: int) -> Built:
    """Scan inputs and outputs along axis 1 and, backwards, along the last one."""
    a, b = f"float[{rows},{n},{width}]", f"float[{rows},{width},{n}]"
    s = f"float[{rows},{width}]"
    text = f"""
    g ({s} s0, {a} p, {b} q) => ({s} last, {a} y, {b} z) {{
      last, y, z = Scan <num_scan_inputs = 2, scan_input_axes = [1, -1], scan_input_directions = [0, 1],
          scan_output_axes = [1, -1], scan_output_directions = [0, 1],
          body = b ({s} s, {s} pt, {s} qt) => ({s} s2, {s} yt, {s} zt) {{
        product = Mul(pt, qt)
        less = Mul(s, half)
        s2 = Add(less, product)
        yt = Relu(s2)
        zt = Sub(s2, qt) }}> (s0, p, q) }}"""
    rng = numbers("two_axes")
    shapes = {"s0": (rows, width), "p": (rows, n, width), "q": (rows, width, n)}
    inputs = {name: uniform(rng, *shape) for name, shape in shapes.items()}
    return Built(text, constants(F32, half=0.5), inputs, n, (n, rows, width), "s0 p q")


@loop(MANDELBROT, 20, 64)
def mandelbrot(n: int, size: int) -> Built:
    """Escape times on a square of points. They are chaotic: a few counts may differ between engines."""
    t = f"float[{size},{size}]"
    text = f"""
    g (int64 m, {t} cr, {t} ci) => ({t} count) {{
      zr, zi, count = Loop <body = b (int64 i, bool c, {t} r, {t} m, {t} k) => (bool c2, {t} r2, {t} m2, {t} k2) {{
        c2 = Identity(c)
        rr = Mul(r, r)
        mm = Mul(m, m)
        size = Add(rr, mm)
        inside = LessOrEqual(size, four)
        one = Cast <to = 1> (inside)
        k2 = Add(k, one)
        d = Sub(rr, mm)
        rn = Add(d, cr)
        p = Mul(r, m)
        p2 = Add(p, p)
        mn = Add(p2, ci)
        r2 = Where(inside, rn, r)
        m2 = Where(inside, mn, m) }}> (m, yes, cr, ci, zeros) }}"""
    cr, ci = (v.astype(F32) for v in np.meshgrid(np.linspace(-2, 0.6, size), np.linspace(-1.2, 1.2, size)))
    weights = YES | constants(F32, four=4) | {"zeros": np.zeros((size, size), F32)}
    inputs = {"m": np.array(n, I64), "cr": cr, "ci": ci}
    return Built(text, weights, inputs, n, (n, size * size), "cr ci", allowed_mismatch=0.01)


@loop(MANDELBROT, 20, 64, name="mandelbrot, literals", yardstick="mandelbrot", jax="mandelbrot")
def mandelbrot_with_literals(n: int, size: int) -> Built:
    """The same as onnxscript writes it: what is converted gets the type of what it meets, by CastLike."""
    built = mandelbrot(n, size)
    for written, by_type in {
        "inside = LessOrEqual(size, four)": "limit = CastLike(four, size)\n        inside = LessOrEqual(size, limit)",
        "Cast <to = 1> (inside)": "CastLike(inside, k)",
    }.items():
        built.text = built.text.replace(written, by_type)
    built.weights["four"] = np.array(4, I64)
    return built


@loop(SELECTIVE, 64, 96, 16)
def selective_scan(n: int, channels: int, states: int) -> Built:
    """Mamba's recurrence as exporters write it: a Loop that gathers its inputs by the iteration counter."""
    s = f"float[{channels},{states}]"
    text = f"""
    g (int64 m, {s} h0, float[{n},{channels}] delta, float[{n},{channels}] x, float[{n},{states}] B,
       float[{n},{states}] C) => ({s} h, float[{n},{channels}] y) {{
      h, y = Loop <body = b (int64 i, bool c, {s} s) => (bool c2, {s} s2, float[{channels}] o) {{
        c2 = Identity(c)
        dt = Gather <axis = 0> (delta, i)
        xt = Gather <axis = 0> (x, i)
        bt = Gather <axis = 0> (B, i)
        ct = Gather <axis = 0> (C, i)
        column = Unsqueeze(dt, axis1)
        da = Mul(column, A)
        decay = Exp(da)
        dx = Mul(dt, xt)
        dxc = Unsqueeze(dx, axis1)
        db = Mul(dxc, bt)
        kept = Mul(decay, s)
        s2 = Add(kept, db)
        seen = Mul(s2, ct)
        o = ReduceSum <keepdims = 0> (seen, axis1) }}> (m, yes, h0) }}"""
    rng = numbers("selective_scan")
    a = -np.broadcast_to(np.arange(1, states + 1, dtype=F32), (channels, states)).copy()
    inputs = {"m": np.array(n, I64), "h0": np.zeros((channels, states), F32)}
    inputs["delta"] = np.abs(uniform(rng, n, channels, scale=0.1))
    inputs |= {"x": uniform(rng, n, channels), "B": uniform(rng, n, states), "C": uniform(rng, n, states)}
    weights = YES | {"A": a, "axis1": np.array([1], I64)}
    return Built(text, weights, inputs, n, (n, channels, states), "h0 delta x B C A")


@loop(WIDE, 1000, 2, name="biquad")
def biquad(n: int, channels: int) -> Built:
    """A second-order filter in transposed direct form II."""
    v = f"float[{channels}]"
    text = f"""
    g ({v} z1, {v} z2, float[{n},{channels}] x) => ({v} s1, {v} s2, float[{n},{channels}] y) {{
      s1, s2, y = Scan <num_scan_inputs = 1, body = b ({v} p, {v} q, {v} e) => ({v} p2, {v} q2, {v} o) {{
        d = Mul(b0, e)
        o = Add(d, p)
        f1 = Mul(b1, e)
        r1 = Mul(a1, o)
        g1 = Sub(f1, r1)
        p2 = Add(g1, q)
        f2 = Mul(b2, e)
        r2 = Mul(a2, o)
        q2 = Sub(f2, r2) }}> (z1, z2, x) }}"""
    weights = constants(F32, b0=0.2, b1=0.4, b2=0.2, a1=-0.37, a2=0.195)
    zero = np.zeros(channels, F32)
    inputs = {"z1": zero, "z2": zero, "x": uniform(numbers("biquad"), n, channels)}
    return Built(text, weights, inputs, n, (n, channels), "z1 z2 x b0 b1 b2 a1 a2")


@loop(WIDE, 300)
def kalman(n: int) -> Built:
    """A Kalman filter of four states and one measurement, by its matrix equations."""
    text = f"""
    g (float[4] x0, float[4,4] P0, float[{n}] z) => (float[4] x, float[4,4] P, float[{n},4] path) {{
      x, P, path = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4,4] V, float e)
          => (float[4] s2, float[4,4] V2, float[4] o) {{
        sp = MatMul(M, s)
        MV = MatMul(M, V)
        MVM = MatMul(MV, Mt)
        Vp = Add(MVM, Q)
        Vh = MatMul(Vp, h)
        seen = MatMul(h, sp)
        hVh = MatMul(h, Vh)
        noise = Add(hVh, r)
        K = Div(Vh, noise)
        surprise = Sub(e, seen)
        Ke = Mul(K, surprise)
        s2 = Add(sp, Ke)
        hV = MatMul(h, Vp)
        Kc = Unsqueeze(K, axis1)
        KhV = Mul(Kc, hV)
        V2 = Sub(Vp, KhV)
        o = Identity(s2) }}> (x0, P0, z) }}"""
    dt = 0.1
    m = np.array([[1, dt, 0, 0], [0, 1, 0, 0], [0, 0, 0.9, dt], [0, 0, -dt, 0.9]], F32)
    weights = {"M": m, "Mt": m.T.copy(), "Q": np.eye(4, dtype=F32) * F32(0.01), "h": np.array([1, 0, 1, 0], F32)}
    weights |= constants(F32, r=0.5) | {"axis1": np.array([1], I64)}
    rng = numbers("kalman")
    inputs = {"x0": np.zeros(4, F32), "P0": np.eye(4, dtype=F32), "z": uniform(rng, n)}
    return Built(text, weights, inputs, n, (n,), "x0 P0 z M Q h r", tolerance=1e-3)

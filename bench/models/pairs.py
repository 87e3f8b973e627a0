"""Every element with every other, and what is left of a population: broadcasts whose results are summed or counted at
once."""

from __future__ import annotations

import numpy as np

from .programming import WIDE
from .registry import F32, I64, YES, Built, constants, loop, numbers, uniform


@loop(WIDE, 20, 256, name="bodies N=256")
@loop(WIDE, 100, 100, name="bodies N=100")
def bodies(n: int, count: int) -> Built:
    """Gravity in the plane, with softening."""
    v = f"float[{count}]"
    text = f"""
    g (int64 m, {v} x0, {v} y0, {v} u0, {v} w0) => ({v} x, {v} y, {v} u, {v} w) {{
      x, y, u, w = Loop <body = b (int64 i, bool t, {v} xs, {v} ys, {v} us, {v} ws)
          => (bool t2, {v} x2, {v} y2, {v} u2, {v} w2) {{
        t2 = Identity(t)
        xc = Unsqueeze(xs, axis1)
        yc = Unsqueeze(ys, axis1)
        dx = Sub(xs, xc)
        dy = Sub(ys, yc)
        dx2 = Mul(dx, dx)
        dy2 = Mul(dy, dy)
        d2 = Add(dx2, dy2)
        soft = Add(d2, softening)
        root = Sqrt(soft)
        cube = Mul(soft, root)
        weight = Div(mass, cube)
        fx = Mul(dx, weight)
        fy = Mul(dy, weight)
        ax = ReduceSum <keepdims = 0> (fx, axis1)
        ay = ReduceSum <keepdims = 0> (fy, axis1)
        du = Mul(ax, dt)
        dw = Mul(ay, dt)
        u2 = Add(us, du)
        w2 = Add(ws, dw)
        xv = Mul(u2, dt)
        yv = Mul(w2, dt)
        x2 = Add(xs, xv)
        y2 = Add(ys, yv) }}> (m, yes, x0, y0, u0, w0) }}"""
    rng = numbers("bodies")
    weights = YES | constants(F32, softening=0.01, mass=0.01, dt=0.001) | {"axis1": np.array([1], I64)}
    inputs = {"m": np.array(n, I64)} | {name: uniform(rng, count) for name in ("x0", "y0", "u0", "w0")}
    return Built(text, weights, inputs, n, (n, count), "x0 y0 u0 w0", tolerance=1e-3)


@loop(WIDE, 10, 512, name="mean_shift N=512")
@loop(WIDE, 50, 200, name="mean_shift N=200")
def mean_shift(n: int, count: int) -> Built:
    """Points climb the density that a Gaussian kernel gives to fixed samples, on a line."""
    v = f"float[{count}]"
    text = f"""
    g (int64 m, {v} x0, {v} samples) => ({v} x, float[{n}] density) {{
      x, density = Loop <body = b (int64 i, bool t, {v} s) => (bool t2, {v} s2, float d) {{
        t2 = Identity(t)
        column = Unsqueeze(s, axis1)
        far = Sub(column, samples)
        square = Mul(far, far)
        scaled = Mul(square, minus)
        weight = Exp(scaled)
        mass = ReduceSum <keepdims = 0> (weight, axis1)
        pull = Mul(weight, samples)
        moment = ReduceSum <keepdims = 0> (pull, axis1)
        goal = Div(moment, mass)
        step = Sub(goal, s)
        some = Mul(step, rate)
        s2 = Add(s, some)
        d = ReduceMean <axes = [0], keepdims = 0> (mass) }}> (m, yes, x0) }}"""
    rng = numbers("mean_shift")
    weights = YES | constants(F32, minus=-2.0, rate=0.1) | {"axis1": np.array([1], I64)}
    inputs = {"m": np.array(n, I64), "x0": uniform(rng, count, scale=3), "samples": uniform(rng, count, scale=3)}
    return Built(text, weights, inputs, n, (n, count), "x0 samples", tolerance=1e-3)


@loop(WIDE, 10, 256, name="particle_filter N=256")
@loop(WIDE, 10, 1000, name="particle_filter N=1000")
def particle_filter(n: int, count: int) -> Built:
    """Weights by how near particles are to an observation, then systematic resampling: a particle is taken as often as
    points of a comb fall into its part of the sum."""
    v = f"float[{count}]"
    text = f"""
    g (int64 m, {v} x0, float[{n}] observed, float[{n},{count}] noise) => ({v} x, float[{n}] mean) {{
      x, mean = Loop <body = b (int64 i, bool t, {v} s) => (bool t2, {v} s2, float e) {{
        t2 = Identity(t)
        shock = Gather <axis = 0> (noise, i)
        z = Gather <axis = 0> (observed, i)
        moved = Mul(s, decay)
        fresh = Add(moved, shock)
        far = Sub(fresh, z)
        square = Mul(far, far)
        scaled = Mul(square, minus)
        weight = Exp(scaled)
        sum = CumSum(weight, zero)
        total = ReduceSum <keepdims = 0> (weight)
        share = Div(sum, total)
        less = Less(share, comb)
        number = Cast <to = 7> (less)
        index = ReduceSum <keepdims = 0> (number, axis1)
        in_range = Min(index, last)
        s2 = Gather <axis = 0> (fresh, in_range)
        e = ReduceMean <axes = [0], keepdims = 0> (s2) }}> (m, yes, x0) }}"""
    rng = numbers("particle_filter")
    weights = YES | constants(F32, minus=-2.0, decay=0.95) | constants(I64, zero=0, last=count - 1)
    weights |= {"axis1": np.array([1], I64), "comb": ((np.arange(count) + 0.5) / count).astype(F32)[:, None]}
    inputs = {"m": np.array(n, I64), "x0": uniform(rng, count), "observed": uniform(rng, n)}
    inputs |= {"noise": uniform(rng, n, count, scale=0.3)}
    # A sum that is rounded otherwise takes one particle twice, which gives all behind it another one's noise: only the
    # means stay what they are, up to the noise of so many particles.
    return Built(text, weights, inputs, n, (n, count), "x0 observed noise", tolerance=0.1, compared=(1,))

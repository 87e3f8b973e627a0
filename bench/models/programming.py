"""Dynamic programming: tables filled by loops."""

from __future__ import annotations

import numpy as np

from .registry import F32, I64, Built, Class, constants, loop, numbers, uniform
from .scalars import SCALAR

WIDE = Class("other loops")
FAR = 1e30


@loop(SCALAR, 16, 64)
def edit_distance(n: int, width: int) -> Built:
    """Levenshtein's distance, a Scan over the one text with a Scan over the other inside."""
    text = f"""
    g (int64[{n}] a, int64[{width}] b, int64[{width}] row0) => (int64[{width}] row, int64[{n},{width}] table) {{
      count, row, table = Scan <num_scan_inputs = 1,
          body = outer (int64 k, int64[{width}] above, int64 ai) => (int64 k2, int64[{width}] above2, int64[{width}] e) {{
        k2 = Add(k, one)
        l, d, above2 = Scan <num_scan_inputs = 2,
            body = inner (int64 left, int64 corner, int64 up, int64 bj) => (int64 left2, int64 corner2, int64 o) {{
          ne = Equal(ai, bj)
          cost = Where(ne, zero, one)
          replaced = Add(corner, cost)
          removed = Add(up, one)
          added = Add(left, one)
          m = Min(removed, added)
          left2 = Min(m, replaced)
          corner2 = Identity(up)
          o = Identity(left2) }}> (k2, k, above, b)
        e = Identity(above2) }}> (zero, row0, a) }}"""
    rng = numbers("edit_distance")
    inputs = {"a": rng.integers(0, 4, n), "b": rng.integers(0, 4, width), "row0": np.arange(1, width + 1, dtype=I64)}
    return Built(text, constants(I64, zero=0, one=1), inputs, n * width, (n, width), "a b row0")


@loop(SCALAR, 16, 128)
def warping(n: int, width: int) -> Built:
    """Dynamic time warping, a Scan over scalars in a Scan over the rows."""
    text = f"""
    g (float[{n}] x, float[{width}] y) => (float[{width}] row, float[{n},{width}] table) {{
      corner, row, table = Scan <num_scan_inputs = 1,
          body = outer (float corner0, float[{width}] above, float xi) =>
                       (float corner1, float[{width}] above2, float[{width}] e) {{
        l, d, above2 = Scan <num_scan_inputs = 2,
            body = inner (float left, float diagonal, float up, float yj) => (float left2, float diagonal2, float o) {{
          difference = Sub(xi, yj)
          cost = Abs(difference)
          m = Min(left, up, diagonal)
          left2 = Add(m, cost)
          diagonal2 = Identity(up)
          o = Identity(left2) }}> (far, corner0, above, y)
        corner1 = Identity(far)
        e = Identity(above2) }}> (zero, row0, x) }}"""
    rng = numbers("warping")
    walk = [np.cumsum(uniform(rng, k)).astype(F32) for k in (n, width)]
    weights = constants(F32, zero=0, far=FAR) | {"row0": np.full(width, FAR, F32)}
    return Built(text, weights, {"x": walk[0], "y": walk[1]}, n * width, (n, width), "x y row0")


@loop(SCALAR, 50, 128)
def warping_by_diagonals(n: int, width: int) -> Built:
    """The same table by antidiagonals: vectors, slices and a concatenation."""
    text = f"""
    g (float[{n},{width}] cost) => (float[{width + 1}] last, float[{n},{width + 1}] diagonals) {{
      last, before, diagonals = Scan <num_scan_inputs = 1,
          body = b (float[{width + 1}] p, float[{width + 1}] q, float[{width}] ct) =>
                   (float[{width + 1}] p2, float[{width + 1}] q2, float[{width + 1}] e) {{
        up = Slice(p, at0, to_n)
        left = Slice(p, at1, to_end)
        corner = Slice(q, at0, to_n)
        m = Min(up, left, corner)
        v = Add(m, ct)
        p2 = Concat <axis = 0> (edge, v)
        q2 = Identity(p)
        e = Identity(p2) }}> (start1, start2, cost) }}"""
    start = np.full(width + 1, FAR, F32)
    start2 = start.copy()
    start2[0] = 0
    weights = {
        name: np.array([at], I64) for name, at in (("at0", 0), ("at1", 1), ("to_n", width), ("to_end", width + 1))
    }
    weights |= {"edge": np.array([FAR], F32), "start1": start, "start2": start2}
    cost = np.abs(uniform(numbers("diagonals"), n, width))
    return Built(text, weights, {"cost": cost}, n, (n, width), "cost start1 start2")


@loop(WIDE, 50, 32)
def viterbi(n: int, states: int) -> Built:
    """Scores of the best paths through a hidden Markov model, and the way back."""
    text = f"""
    g (float[{states}] start, float[{n},{states}] emissions) => (float[{states}] last, int64[{n},{states}] back) {{
      last, back = Scan <num_scan_inputs = 1,
          body = b (float[{states}] v, float[{states}] e) => (float[{states}] v2, int64[{states}] from) {{
        column = Unsqueeze(v, axis1)
        scores = Add(column, moves)
        best = ReduceMax <axes = [0], keepdims = 0> (scores)
        from = ArgMax <axis = 0, keepdims = 0> (scores)
        v2 = Add(best, e) }}> (start, emissions) }}"""
    rng = numbers("viterbi")
    weights = {"moves": -np.abs(uniform(rng, states, states)), "axis1": np.array([1], I64)}
    inputs = {"start": uniform(rng, states), "emissions": -np.abs(uniform(rng, n, states))}
    return Built(text, weights, inputs, n, (n, states), "start emissions moves")

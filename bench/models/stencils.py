"""Loops over neighbours on a line or in a plane: Pad, then Slices of it that are shifted against each other."""

from __future__ import annotations

import numpy as np

from .programming import WIDE
from .registry import F32, I64, YES, Built, constants, loop, numbers, uniform


def shifts(name: str, source: str, starts: list[tuple[int, ...]]) -> str:
    """Slices `name`0, `name`1, ... of the size of the unpadded array, from each of `starts` on."""
    return "\n".join(f"{name}{k} = Slice({source}, start_{k}, end_{k})" for k in range(len(starts)))


def bounds(starts: list[tuple[int, ...]], sizes: tuple[int, ...]) -> dict[str, np.ndarray]:
    found = {}
    for k, start in enumerate(starts):
        found[f"start_{k}"] = np.array(start, I64)
        found[f"end_{k}"] = np.array(start, I64) + np.array(sizes, I64)
    return found


PLUS = [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2)]
AROUND = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]


@loop(WIDE, 200, 1000, name="heat_line N=1000")
def heat_line(n: int, size: int) -> Built:
    """Diffusion along a rod between two cold ends."""
    v = f"float[{size}]"
    starts = [(0,), (2,)]
    text = f"""
    g (int64 m, {v} x0) => ({v} x) {{
      x = Loop <body = b (int64 i, bool t, {v} s) => (bool t2, {v} s2) {{
        t2 = Identity(t)
        padded = Pad(s, pads)
        {shifts("p", "padded", starts)}
        sum = Add(p0, p1)
        twice = Add(s, s)
        bend = Sub(sum, twice)
        flow = Mul(bend, rate)
        s2 = Add(s, flow) }}> (m, yes, x0) }}"""
    weights = YES | constants(F32, rate=0.2) | {"pads": np.array([1, 1], I64)} | bounds(starts, (size,))
    inputs = {"m": np.array(n, I64), "x0": uniform(numbers("heat_line"), size)}
    return Built(text, weights, inputs, n, (n, size), "x0")


@loop(WIDE, 50, 64, name="heat_plane 64 x 64")
@loop(WIDE, 10, 200, name="heat_plane 200 x 200")
def heat_plane(n: int, size: int) -> Built:
    """Diffusion in a plate with cold edges, by the cross of four neighbours."""
    v = f"float[{size},{size}]"
    text = f"""
    g (int64 m, {v} x0) => ({v} x) {{
      x = Loop <body = b (int64 i, bool t, {v} s) => (bool t2, {v} s2) {{
        t2 = Identity(t)
        padded = Pad(s, pads)
        {shifts("p", "padded", PLUS)}
        rows = Add(p1, p2)
        columns = Add(p3, p4)
        sum = Add(rows, columns)
        four = Mul(p0, middle)
        bend = Sub(sum, four)
        flow = Mul(bend, rate)
        s2 = Add(p0, flow) }}> (m, yes, x0) }}"""
    weights = YES | constants(F32, rate=0.2, middle=4) | {"pads": np.array([1, 1, 1, 1], I64)}
    weights |= bounds(PLUS, (size, size))
    inputs = {"m": np.array(n, I64), "x0": uniform(numbers("heat_plane"), size, size)}
    return Built(text, weights, inputs, n, (n, size), "x0")


@loop(WIDE, 200, 1000, name="wave_line N=1000")
def wave_line(n: int, size: int) -> Built:
    """A wave on a string whose ends are free (reflecting)."""
    v = f"float[{size}]"
    starts = [(0,), (2,)]
    text = f"""
    g (int64 m, {v} x0, {v} v0) => ({v} x, {v} v) {{
      x, v = Loop <body = b (int64 i, bool t, {v} s, {v} u) => (bool t2, {v} s2, {v} u2) {{
        t2 = Identity(t)
        padded = Pad <mode = "edge"> (s, pads)
        {shifts("p", "padded", starts)}
        sum = Add(p0, p1)
        twice = Add(s, s)
        bend = Sub(sum, twice)
        force = Mul(bend, rate)
        u2 = Add(u, force)
        s2 = Add(s, u2) }}> (m, yes, x0, v0) }}"""
    rng = numbers("wave_line")
    weights = YES | constants(F32, rate=0.2) | {"pads": np.array([1, 1], I64)} | bounds(starts, (size,))
    inputs = {"m": np.array(n, I64), "x0": uniform(rng, size), "v0": uniform(rng, size, scale=0.1)}
    return Built(text, weights, inputs, n, (n, size), "x0 v0", tolerance=1e-3)


@loop(WIDE, 50, 64, name="wave_plane 64 x 64")
def wave_plane(n: int, size: int) -> Built:
    """A membrane on a torus: the neighbours beyond an edge are those of the other one, by Concat of Slices."""
    v = f"float[{size},{size}]"
    rolls = "\n".join(
        f"""{name}a = Slice(s, {low}, {high}, axis{axis})
        {name}b = Slice(s, zero, {low}, axis{axis})
        {name} = Concat <axis = {axis}> ({name}a, {name}b)"""
        for name, low, high, axis in (
            ("up", "one", "size", 0),
            ("down", "size1", "size", 0),
            ("left", "one", "size", 1),
            ("right", "size1", "size", 1),
        )
    )
    text = f"""
    g (int64 m, {v} x0, {v} v0) => ({v} x, {v} v) {{
      x, v = Loop <body = b (int64 i, bool t, {v} s, {v} u) => (bool t2, {v} s2, {v} u2) {{
        t2 = Identity(t)
        {rolls}
        rows = Add(up, down)
        columns = Add(left, right)
        sum = Add(rows, columns)
        four = Mul(s, middle)
        bend = Sub(sum, four)
        force = Mul(bend, rate)
        u2 = Add(u, force)
        s2 = Add(s, u2) }}> (m, yes, x0, v0) }}"""
    rng = numbers("wave_plane")
    weights = YES | constants(F32, rate=0.1, middle=4)
    weights |= {name: np.array([k], I64) for name, k in (("zero", 0), ("one", 1), ("size1", size - 1), ("size", size))}
    weights |= {"axis0": np.array([0], I64), "axis1": np.array([1], I64)}
    inputs = {"m": np.array(n, I64), "x0": uniform(rng, size, size), "v0": uniform(rng, size, size, scale=0.1)}
    return Built(text, weights, inputs, n, (n, size), "x0 v0", tolerance=1e-3)


@loop(WIDE, 50, 64, name="life 64 x 64")
@loop(WIDE, 20, 150, name="life 150 x 150")
def life(n: int, size: int) -> Built:
    """Conway's automaton on int32 cells, and how many live after each step."""
    v = f"int32[{size},{size}]"
    adds = "\n".join(f"n{k} = Add(n{k - 1}, p{k})" for k in range(2, 8))
    text = f"""
    g (int64 m, {v} x0) => ({v} x, int32[{n}] living) {{
      x, living = Loop <body = b (int64 i, bool t, {v} s) => (bool t2, {v} s2, int32 count) {{
        t2 = Identity(t)
        padded = Pad(s, pads)
        {shifts("p", "padded", AROUND)}
        n1 = Add(p0, p1)
        {adds}
        three = Equal(n7, i3)
        two = Equal(n7, i2)
        lives = Equal(s, i1)
        stays = And(two, lives)
        next = Or(three, stays)
        s2 = Cast <to = 6> (next)
        count = ReduceSum <keepdims = 0> (s2) }}> (m, yes, x0) }}"""
    rng = numbers("life")
    weights = YES | constants(np.int32, i1=1, i2=2, i3=3) | {"pads": np.array([1, 1, 1, 1], I64)}
    weights |= bounds(AROUND, (size, size))
    inputs = {"m": np.array(n, I64), "x0": (rng.random((size, size)) < 0.4).astype(np.int32)}
    return Built(text, weights, inputs, n, (n, size), "x0")


@loop(WIDE, 200, 1000, name="rule_110 N=1000")
def rule_110(n: int, size: int) -> Built:
    """An elementary automaton on bools, whose rows are all kept."""
    v = f"bool[{size}]"
    starts = [(0,), (2,)]
    text = f"""
    g (int64 m, {v} x0) => ({v} x, bool[{n},{size}] rows) {{
      x, rows = Loop <body = b (int64 i, bool t, {v} s) => (bool t2, {v} s2, {v} row) {{
        t2 = Identity(t)
        padded = Pad(s, pads, off)
        {shifts("p", "padded", starts)}
        either = Or(s, p1)
        both = And(s, p1)
        all = And(both, p0)
        none = Not(all)
        s2 = And(either, none)
        row = Identity(s) }}> (m, yes, x0) }}"""
    weights = YES | {"off": np.array(False), "pads": np.array([1, 1], I64)} | bounds(starts, (size,))
    inputs = {"m": np.array(n, I64), "x0": numbers("rule_110").random(size) < 0.5}
    return Built(text, weights, inputs, n, (n, size), "x0")

"""Loops whose bodies are a few operations on single numbers."""

from __future__ import annotations

import numpy as np

from .registry import F32, I64, YES, Built, Class, constants, loop, numbers, uniform

SCALAR = Class("scalar loops, If in loops, dynamic programming", 100, 1.5)
NESTED = Class("nested loops", 70, 1.5)


@loop(SCALAR, 4000)
def counter(n: int) -> Built:
    text = """
    g (int64 m, int64 x) => (int64 y) {
      y = Loop <body = b (int64 i, bool c, int64 s) => (bool c2, int64 s2) {
        s2 = Add(s, one)
        c2 = Less(s2, far) }> (m, yes, x) }"""
    weights = YES | constants(I64, one=1, far=1 << 60)
    return Built(text, weights, constants(I64, m=n, x=0), n, arrays="m x far")


@loop(SCALAR, 4000)
def fibonacci(n: int) -> Built:
    text = f"""
    g (int64 m, int64 x, int64 z) => (int64 a, int64 b, int64[{n}] all) {{
      a, b, all = Loop <body = b (int64 i, bool c, int64 p, int64 q) => (bool c2, int64 p2, int64 q2, int64 e) {{
        c2 = Identity(c)
        p2 = Identity(q)
        s = Add(p, q)
        q2 = Mod(s, prime)
        e = Identity(p) }}> (m, yes, x, z) }}"""
    weights = YES | constants(I64, prime=10**9 + 7)
    return Built(text, weights, constants(I64, m=n, x=0, z=1), n, arrays="m x z prime")


@loop(SCALAR, 2000)
def newton(n: int) -> Built:
    """A damped Newton iteration for the square root; the data decide when it ends, after about `n` iterations."""
    text = """
    g (float a, float x0, float rate) => (float x, int64 iterations) {
      x, iterations = Loop <body = b (int64 i, bool c, float s, int64 k) => (bool c2, float s2, int64 k2) {
        q = Div(a, s)
        d = Sub(q, s)
        step = Mul(d, rate)
        s2 = Add(s, step)
        size = Abs(step)
        far = Mul(rate, tolerance)
        c2 = Greater(size, far)
        k2 = Add(k, one) }> (, yes, x0, zero) }"""
    weights = YES | constants(I64, one=1, zero=0) | constants(F32, tolerance=0.01)
    a, x, rate, tolerance = F32(2), F32(1000), F32(3 / n), F32(0.01)
    inputs = {"a": np.array(a), "x0": np.array(x), "rate": np.array(rate)}
    iterations = 0
    while True:
        step = (a / x - x) * rate
        x, iterations = x + step, iterations + 1
        if not abs(step) > rate * tolerance:
            break
    return Built(text, weights, inputs, iterations, arrays="a x0 rate tolerance")


@loop(SCALAR, 2000)
def hailstone(n: int) -> Built:
    """Halves what is even, takes 3 x + 1 of what is odd, adds a number modulo a prime, until a value comes that the
    data name."""
    prime, start, offset = 10**15 + 37, 27182818284, 314159265358979
    seen, x = set(), start
    for _ in range(n):
        x = ((x // 2 if x % 2 == 0 else 3 * x + 1) + offset) % prime
        assert x not in seen
        seen.add(x)
    text = """
    g (int64 x0, int64 last) => (int64 x, int64 iterations) {
      x, iterations = Loop <body = b (int64 i, bool c, int64 s, int64 k) => (bool c2, int64 s2, int64 k2) {
        half = Div(s, two)
        odd = Mod(s, two)
        even = Equal(odd, zero)
        t = Mul(s, three)
        t1 = Add(t, one)
        w = Where(even, half, t1)
        z = Add(w, offset)
        s2 = Mod(z, prime)
        same = Equal(s2, last)
        c2 = Not(same)
        k2 = Add(k, one) }> (, yes, x0, zero) }"""
    weights = YES | constants(I64, one=1, two=2, three=3, zero=0, prime=prime, offset=offset)
    return Built(text, weights, constants(I64, x0=start, last=x), n, arrays="x0 last prime offset")


@loop(SCALAR, 2000)
def branches(n: int) -> Built:
    text = f"""
    g (int64 m, int64 x) => (int64 y, int64[{n}] all) {{
      y, all = Loop <body = b (int64 i, bool c, int64 s) => (bool c2, int64 s2, int64 e) {{
        c2 = Identity(c)
        r = Mod(s, two)
        odd = Equal(r, one)
        w = If (odd) <then_branch = t () => (int64 u) {{ p = Mul(s, three)
                                                        u = Add(p, one) }},
                      else_branch = f () => (int64 v) {{ v = Div(s, two) }}>
        z = Add(w, seven)
        s2 = Mod(z, prime)
        e = Identity(s2) }}> (m, yes, x) }}"""
    weights = YES | constants(I64, one=1, two=2, three=3, seven=7, prime=1000003)
    return Built(text, weights, constants(I64, m=n, x=12345), n, arrays="m x prime")


@loop(SCALAR, 500, 8)
def chain_of_ifs(n: int, links: int) -> Built:
    """`links` Ifs in a row in each iteration, each asked for by a number of its own."""
    lines, state = [], "s"
    for k in range(links):
        result = "s2" if k == links - 1 else f"v{k}"
        lines.append(f"""
        b{k} = Mod(i, m{k})
        t{k} = Less(b{k}, one)
        {result} = If (t{k}) <then_branch = y{k} () => (float p{k}) {{ p{k} = Add({state}, step) }},
                              else_branch = n{k} () => (float q{k}) {{ q{k} = Mul({state}, shrink) }}>""")
        state = result
    text = f"""
    g (int64 m, float x) => (float y) {{
      y = Loop <body = b (int64 i, bool c, float s) => (bool c2, float s2) {{
        c2 = Identity(c){"".join(lines)} }}> (m, yes, x) }}"""
    periods = {f"m{k}": np.array(k + 2, I64) for k in range(links)}
    weights = YES | constants(I64, one=1) | constants(F32, step=0.5, shrink=0.9) | periods
    return Built(text, weights, {"m": np.array(n, I64), "x": np.array(1, F32)}, n, (links,), "m x step shrink")


@loop(NESTED, 20, 100, 8)
def nested(n: int, inner: int, width: int) -> Built:
    text = f"""
    g (int64 m, float[{width}] x) => (float[{width}] y, float[{n},{width}] all) {{
      y, all = Loop <body = b (int64 i, bool c, float[{width}] v) => (bool c2, float[{width}] v2, float[{width}] e) {{
        c2 = Identity(c)
        fi = Cast <to = 1> (i)
        w = Loop <body = d (int64 j, bool cc, float[{width}] a) => (bool cc2, float[{width}] a2) {{
          cc2 = Identity(cc)
          p = Mul(a, keep)
          q = Add(p, v)
          a2 = Tanh(q) }}> (inner, yes, x)
        z = Add(w, fi)
        v2 = Mul(z, small)
        e = Identity(v2) }}> (m, yes, x) }}"""
    weights = YES | constants(F32, keep=0.9, small=1e-3) | constants(I64, inner=inner)
    inputs = {"m": np.array(n, I64), "x": uniform(numbers("nested"), width)}
    return Built(text, weights, inputs, n * inner, (n, inner, width), "x keep small")


@loop(NESTED, 50, 20)
def nested_scalars(n: int, inner: int) -> Built:
    text = """
    g (int64 m, float x) => (float y) {
      y = Loop <body = b (int64 i, bool c, float s) => (bool c2, float s2) {
        c2 = Identity(c)
        s2 = Loop <body = d (int64 j, bool e, float u) => (bool e2, float u2) {
          e2 = Identity(e)
          p = Mul(u, keep)
          u2 = Add(p, step) }> (inner, yes, s) }> (m, yes, x) }"""
    weights = YES | constants(F32, keep=0.9, step=0.1) | constants(I64, inner=inner)
    inputs = {"m": np.array(n, I64), "x": np.array(1, F32)}
    return Built(text, weights, inputs, n * inner, (n, inner), "x keep step")

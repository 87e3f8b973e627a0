"""Loops whose sizes change from iteration to iteration: a state grows, shrinks or is regrouped, the data decide how long a piece is."""

from __future__ import annotations

import numpy as np

from .registry import F32, I64, YES, Built, Class, constants, loop, numbers, uniform

SIZES = Class("sizes that the loop decides", yardstick=3)
LOWEST = np.iinfo(I64).min


@loop(SIZES, 40)
def levinson(n: int) -> Built:
    """Levinson and Durbin's recursion: a filter that grows by one coefficient in each iteration."""
    text = f"""
    g (int64 m, float[{n + 1}] r, float[1] a0, float e0) => (float[k] a, float e, float[{n},1] reflections) {{
      a, e, reflections = Loop <body = b (int64 i, bool c, float[k] s, float e1)
          => (bool c2, float[k2] s2, float e2, float[1] out) {{
        c2 = Identity(c)
        at = Add(i, one)
        start = Unsqueeze(at, axis0)
        window = Slice(r, start, zero1, axis0, back)
        products = Mul(s, window)
        sum = ReduceSum(products, axis0)
        quotient = Div(sum, e1)
        k = Neg(quotient)
        longer = Concat <axis = 0> (s, nothing)
        turned = Slice(longer, last, lowest, axis0, back)
        change = Mul(turned, k)
        s2 = Add(longer, change)
        kk = Mul(k, k)
        rest = Sub(unit, kk)
        e3 = Mul(rest, e1)
        e2 = Squeeze(e3, axis0)
        out = Identity(k) }}> (m, yes, a0, e0) }}"""
    rng = numbers("levinson")
    x = np.convolve(uniform(rng, 4 * n + 64), np.hanning(9))
    r = np.array([x[: x.size - k] @ x[k:] for k in range(n + 1)])
    weights = YES | constants(I64, one=1) | constants(F32, unit=1)
    weights |= {"axis0": np.zeros(1, I64), "zero1": np.zeros(1, I64), "back": np.full(1, -1, I64)}
    weights |= {"last": np.full(1, -1, I64), "lowest": np.full(1, LOWEST, I64), "nothing": np.zeros(1, F32)}
    r = (r / r[0] * 0.98).astype(F32)
    r[0] = 1
    inputs = {"m": np.array(n, I64), "r": r, "a0": np.ones(1, F32), "e0": np.array(1, F32)}
    return Built(text, weights, inputs, n, (n,), "r a0 e0", tolerance=1e-2)


@loop(SIZES, 40, 64)
def beam_pruning(n: int, words: int) -> Built:
    """Every survivor is followed by each of `words` tokens; what is far below the best is given up."""
    text = f"""
    g (int64 m, float[1] s0, int64[1] t0) => (float[k] scores, int64[k] tokens, int64[{n}] widths) {{
      scores, tokens, widths = Loop <body = b (int64 i, bool c, float[k] s, int64[k] t)
          => (bool c2, float[k2] s2, int64[k2] t2, int64 width) {{
        c2 = Identity(c)
        next = Gather <axis = 0> (logp, t)
        before = Unsqueeze(s, axis1)
        sums = Add(next, before)
        flat = Reshape(sums, minus1)
        best = ReduceMax <keepdims = 1> (flat)
        limit = Sub(best, beam)
        near = Greater(flat, limit)
        where = NonZero(near)
        at = Squeeze(where, axis0)
        kept = Gather <axis = 0> (flat, at)
        s2 = Sub(kept, best)
        t2 = Mod(at, words)
        size = Shape(s2)
        width = Squeeze(size, axis0) }}> (m, yes, s0, t0) }}"""
    rng = numbers("beam_pruning")
    table = np.log(rng.dirichlet(np.full(words, 0.1), words) + 1e-9).astype(F32)
    weights = YES | constants(I64, words=words) | constants(F32, beam=2.0) | {"logp": table}
    weights |= {"axis0": np.zeros(1, I64), "axis1": np.ones(1, I64), "minus1": np.full(1, -1, I64)}
    inputs = {"m": np.array(n, I64), "s0": np.zeros(1, F32), "t0": np.zeros(1, I64)}
    return Built(text, weights, inputs, n, (n, words), "s0 t0 logp", tolerance=1e-3)


@loop(SIZES, 32, 256)
def butterflies(n: int, size: int) -> Built:
    """Fourier transforms of `size` complex numbers, a stage in an iteration: the groups of a stage double. What a transform
    gives, scaled, goes into the next one."""
    stages = size.bit_length() - 1
    x = f"float[{size}]"
    text = f"""
    g (int64 m, {x} re0, {x} im0) => ({x} re, {x} im) {{
      re, im, h = Loop <body = b (int64 i, bool c, {x} p, {x} q, int64[1] half)
          => (bool c2, {x} p2, {x} q2, int64[1] half2) {{
        c2 = Identity(c)
        groups = Concat <axis = 0> (minus1, two, half)
        ps = Reshape(p, groups)
        qs = Reshape(q, groups)
        pe, po = Split <axis = 1> (ps)
        qe, qo = Split <axis = 1> (qs)
        count = Squeeze(half)
        steps = Range(zero, count, one)
        turn = Cast <to = 1> (steps)
        width = Cast <to = 1> (half)
        part = Div(turn, width)
        angle = Mul(part, minus_pi)
        cosine = Cos(angle)
        sine = Sin(angle)
        a1 = Mul(po, cosine)
        a2 = Mul(qo, sine)
        tp = Sub(a1, a2)
        b1 = Mul(po, sine)
        b2 = Mul(qo, cosine)
        tq = Add(b1, b2)
        pu = Add(pe, tp)
        pv = Sub(pe, tp)
        qu = Add(qe, tq)
        qv = Sub(qe, tq)
        pj = Concat <axis = 1> (pu, pv)
        qj = Concat <axis = 1> (qu, qv)
        pf = Reshape(pj, minus1)
        qf = Reshape(qj, minus1)
        p2 = Mul(pf, scale)
        q2 = Mul(qf, scale)
        doubled = Mul(half, two)
        done = Equal(doubled, whole)
        half2 = Where(done, two_halves, doubled) }}> (m, yes, re0, im0, two_halves) }}"""
    rng = numbers("butterflies")
    weights = YES | constants(I64, zero=0, one=1) | constants(F32, minus_pi=-np.pi, scale=2**-0.5)
    weights |= {"two": np.full(1, 2, I64), "minus1": np.full(1, -1, I64), "whole": np.full(1, size, I64)}
    weights |= {"two_halves": np.ones(1, I64)}
    inputs = {"m": np.array(n, I64), "re0": uniform(rng, size), "im0": uniform(rng, size)}
    return Built(text, weights, inputs, n, (n, size, stages), "re0 im0", tolerance=1e-3)


@loop(SIZES, 100)
def pieces(n: int) -> Built:
    """A signal is cut into pieces of 1 to 15 samples; each is centred, and their squares go to a list."""
    text = f"""
    g (int64[{n}] lengths, float[{16 * n}] x, int64[1] from0, int64 m) => (float[total] y, int64[1] last) {{
      empty = SequenceEmpty <dtype = 1> ()
      last, list = Loop <body = b (int64 i, bool c, int64[1] from, seq(float[k]) s)
          => (bool c2, int64[1] to, seq(float[k]) s2) {{
        c2 = Identity(c)
        place = Unsqueeze(i, axis0)
        length = Gather <axis = 0> (lengths, place)
        to = Add(from, length)
        piece = Slice(x, from, to, axis0)
        mean = ReduceMean <axes = [0], keepdims = 1> (piece)
        centred = Sub(piece, mean)
        squares = Mul(centred, centred)
        s2 = SequenceInsert(s, squares) }}> (m, yes, from0, empty)
      y = ConcatFromSequence <axis = 0> (list) }}"""
    rng = numbers("pieces")
    weights = YES | {"axis0": np.zeros(1, I64)}
    lengths = rng.integers(1, 16, n).astype(I64)
    inputs = {"m": np.array(n, I64), "lengths": lengths, "x": uniform(rng, 16 * n), "from0": np.zeros(1, I64)}
    return Built(text, weights, inputs, n, (n,), "lengths x from0")


@loop(SIZES, 40, 64, 4)
def drafts(n: int, width: int, count: int) -> Built:
    """A small recurrence drafts `count` tokens in a loop inside; a prefix of them, as long as another rule agrees, is
    appended to what has been said."""
    h = f"float[1,{width}]"
    text = f"""
    g (int64 m, int64[1] t0, {h} h0) => (int64[k] tokens, {h} h, int64[{n}] accepted) {{
      tokens, h, accepted = Loop <body = b (int64 i, bool c, int64[k] said, {h} s)
          => (bool c2, int64[k2] said2, {h} s2, int64 agreed) {{
        c2 = Identity(c)
        token = Slice(said, minus1, far, axis0)
        t, s2, drafted = Loop <body = draft (int64 j, bool d, int64[1] u, {h} g1)
            => (bool d2, int64[1] u2, {h} g2, int64[1] e) {{
          d2 = Identity(d)
          x = Gather <axis = 0> (E, u)
          gR = MatMul(g1, R)
          sum = Add(x, gR)
          g2 = Tanh(sum)
          logits = MatMul(g2, Wo)
          u2 = ArgMax <axis = 1, keepdims = 0> (logits)
          e = Identity(u2) }}> (drafts, yes, token, s)
        flat = Reshape(drafted, minus1)
        odd = Mod(flat, modulus)
        good = Less(odd, allowed)
        number = Cast <to = 7> (good)
        bad = Sub(one, number)
        worse = CumSum(bad, zero)
        none = Equal(worse, zero)
        prefix = Cast <to = 7> (none)
        agreed = ReduceSum <keepdims = 0> (prefix, axis0)
        one_more = Add(agreed, one)
        to = Min(one_more, most)
        to1 = Unsqueeze(to, axis0)
        taken = Slice(flat, zero1, to1, axis0)
        said2 = Concat <axis = 0> (said, taken) }}> (m, yes, t0, h0) }}"""
    rng = numbers("drafts")
    words = 32
    weights = YES | constants(I64, drafts=count, most=count, one=1, zero=0, modulus=5, allowed=4)
    weights |= {"minus1": np.full(1, -1, I64), "far": np.full(1, 2**62, I64), "axis0": np.zeros(1, I64)}
    weights |= {"zero1": np.zeros(1, I64), "E": uniform(rng, words, width, scale=2)}
    weights |= {"R": uniform(rng, width, width, scale=1.5 * width**-0.5), "Wo": uniform(rng, width, words)}
    inputs = {"m": np.array(n, I64), "t0": np.ones(1, I64), "h0": uniform(rng, 1, width)}
    return Built(text, weights, inputs, n, (n, width, count, words), "t0 h0 E R Wo", tolerance=1e-3)

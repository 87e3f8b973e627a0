"""Clustering, searching and decoding."""

from __future__ import annotations

import numpy as np

from .cells import CELL_GREEDY, gru_body
from .programming import WIDE
from .registry import F32, I64, YES, Built, constants, loop, numbers, uniform


@loop(WIDE, 10, 512, 16, 8)
def clustering(n: int, points: int, width: int, clusters: int) -> Built:
    """Lloyd's k-means by matrix products."""
    text = f"""
    g (int64 m, float[{points},{width}] p, float[{clusters},{width}] c0) => (float[{clusters},{width}] c) {{
      c = Loop <body = b (int64 i, bool t, float[{clusters},{width}] s) => (bool t2, float[{clusters},{width}] s2) {{
        t2 = Identity(t)
        squares = Mul(s, s)
        norms = ReduceSum <keepdims = 0> (squares, axis1)
        columns = Transpose <perm = [1, 0]> (s)
        dot = MatMul(p, columns)
        twice = Add(dot, dot)
        distances = Sub(norms, twice)
        nearest = ArgMin <axis = 1, keepdims = 1> (distances)
        equal = Equal(nearest, ids)
        member = Cast <to = 1> (equal)
        count = ReduceSum <keepdims = 0> (member, axis0)
        some = Max(count, one)
        divisor = Unsqueeze(some, axis1)
        members = Transpose <perm = [1, 0]> (member)
        total = MatMul(members, p)
        s2 = Div(total, divisor) }}> (m, yes, c0) }}"""
    rng = numbers("clustering")
    centres = rng.standard_normal((clusters, width)) * 2
    p = (centres[rng.integers(0, clusters, points)] + rng.standard_normal((points, width))).astype(F32)
    weights = YES | constants(F32, one=1) | {"axis0": np.array([0], I64), "axis1": np.array([1], I64)}
    weights["ids"] = np.arange(clusters, dtype=I64)[None]
    inputs = {"m": np.array(n, I64), "p": p, "c0": p[:clusters].copy()}
    return Built(text, weights, inputs, n, (n, points, width, clusters), "p c0", tolerance=1e-3)


@loop(WIDE, 50, 4, 256)
def beam_search(n: int, beams: int, words: int) -> Built:
    """The best `beams` continuations by a table of log probabilities."""
    text = f"""
    g (int64 m, int64[{beams}] t0, float[{beams}] v0)
        => (float[{beams}] v, int64[{n},{beams}] tokens, int64[{n},{beams}] parents) {{
      t, v, tokens, parents = Loop <body = b (int64 i, bool c, int64[{beams}] token, float[{beams}] score)
          => (bool c2, int64[{beams}] token2, float[{beams}] score2, int64[{beams}] to, int64[{beams}] from) {{
        c2 = Identity(c)
        next = Gather <axis = 0> (logp, token)
        before = Unsqueeze(score, axis1)
        sums = Add(next, before)
        flat = Reshape(sums, minus1)
        best, at = TopK <axis = 0> (flat, k)
        score2 = Identity(best)
        token2 = Mod(at, words)
        from = Div(at, words)
        to = Identity(token2) }}> (m, yes, t0, v0) }}"""
    rng = numbers("beam_search")
    table = np.log(rng.dirichlet(np.full(words, 0.2), words) + 1e-9).astype(F32)
    weights = YES | {
        "logp": table,
        "axis1": np.array([1], I64),
        "minus1": np.array([-1], I64),
        "k": np.array([beams], I64),
    }
    weights |= constants(I64, words=words)
    inputs = {"m": np.array(n, I64), "t0": np.arange(beams, dtype=I64), "v0": np.zeros(beams, F32)}
    return Built(text, weights, inputs, n, (n, beams, words), "t0 v0 logp")


@loop(CELL_GREEDY, 20, 1000, 128)
def greedy_decode(n: int, words: int, width: int) -> Built:
    """Embedding, GRU cell, logits, ArgMax; it ends at a token that does not come here before the `n`-th."""
    h = f"float[1,{width}]"
    text = f"""
    g (int64 m, int64[1] first, {h} h0) => (int64[n,1] tokens, {h} h) {{
      t, h, tokens = Loop <body = b (int64 i, bool c, int64[1] token, {h} s)
          => (bool c2, int64[1] token2, {h} s2, int64[1] e) {{
        x = Gather <axis = 0> (E, token)
        {gru_body("x", "s", "s2")}
        logits = MatMul(s2, Wo)
        token2 = ArgMax <axis = 1, keepdims = 0> (logits)
        e = Identity(token2)
        end = Equal(token2, eos)
        more = Not(end)
        c2 = Squeeze(more) }}> (m, yes, first, h0) }}"""
    rng, scale = numbers("greedy_decode"), width**-0.5
    weights = YES | {"E": uniform(rng, words, width, scale=3), "W": uniform(rng, width, 3 * width, scale=2 * scale)}
    weights |= {"R": uniform(rng, width, 3 * width, scale=0.5 * scale), "bias": uniform(rng, 3 * width, scale=0.1)}
    weights |= {"Wo": uniform(rng, width, words), "gates": np.full(3, width, I64), "eos": np.array([words], I64)}
    inputs = {"m": np.array(n, I64), "first": np.array([1], I64), "h0": uniform(rng, 1, width)}
    return Built(text, weights, inputs, n, (n, words, width), "first h0 E W R bias Wo eos", tolerance=1e-3)


@loop(WIDE, 20, 4, 16)
def attention_decoder(n: int, heads: int, depth: int) -> Built:
    """Attention of one query over keys and values that grow by one each iteration."""
    width = heads * depth
    cache = f"float[{heads},k,{depth}]"
    text = f"""
    g (int64 m, float[1,{width}] x0, float[{heads},0,{depth}] K0, float[{heads},0,{depth}] V0)
        => (float[1,{width}] x, float[{n},1,{width}] y) {{
      x, K, V, y = Loop <body = b (int64 i, bool c, float[1,{width}] s, {cache} Ks, {cache} Vs)
          => (bool c2, float[1,{width}] s2, {cache} K2, {cache} V2, float[1,{width}] e) {{
        c2 = Identity(c)
        q0 = MatMul(s, Wq)
        k0 = MatMul(s, Wk)
        v0 = MatMul(s, Wv)
        q = Reshape(q0, split)
        k = Reshape(k0, split)
        v = Reshape(v0, split)
        K2 = Concat <axis = 1> (Ks, k)
        V2 = Concat <axis = 1> (Vs, v)
        Kt = Transpose <perm = [0, 2, 1]> (K2)
        scores = MatMul(q, Kt)
        scaled = Mul(scores, scale)
        p = Softmax <axis = -1> (scaled)
        mixed = MatMul(p, V2)
        flat = Reshape(mixed, join)
        out = MatMul(flat, Wo)
        sum = Add(out, s)
        s2 = Tanh(sum)
        e = Identity(s2) }}> (m, yes, x0, K0, V0) }}"""
    rng = numbers("attention_decoder")
    weights = YES | {name: uniform(rng, width, width, scale=2 * width**-0.5) for name in ("Wq", "Wk", "Wv", "Wo")}
    weights |= {"split": np.array([heads, 1, depth], I64), "join": np.array([1, width], I64)}
    weights |= constants(F32, scale=depth**-0.5)
    empty = np.zeros((heads, 0, depth), F32)
    inputs = {"m": np.array(n, I64), "x0": uniform(rng, 1, width), "K0": empty, "V0": empty}
    return Built(text, weights, inputs, n, (n, heads, depth), "x0 Wq Wk Wv Wo", tolerance=1e-3)

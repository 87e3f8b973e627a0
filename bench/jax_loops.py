"""The loops of models/ written for jax, as a user of it would: fori_loop, while_loop and scan. Arguments are the inputs
and weights of the model, by their names. Loops with values whose length only the data tell are left out: jax has to
know shapes before."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

LOOPS: dict[str, Callable] = {}


def loop(function: Callable) -> Callable:
    LOOPS[function.__name__] = function
    return function


def arguments(function: Callable) -> list[str]:
    return list(inspect.signature(function).parameters)


@loop
def counter(m, x, far):
    def more(state):
        i, s, c = state
        return (i < m) & c

    def body(state):
        i, s, _ = state
        return i + 1, s + 1, s + 1 < far

    return [lax.while_loop(more, body, (jnp.int64(0), x, True))[1]]


@loop
def newton(a, x0, rate, tolerance):
    def body(state):
        x, k, _ = state
        step = (a / x - x) * rate
        return x + step, k + 1, jnp.abs(step) > rate * tolerance

    x, k, _ = lax.while_loop(lambda s: s[2], body, (x0, jnp.int64(0), True))
    return [x, k]


@loop
def hailstone(x0, last, prime, offset):
    def body(state):
        x, k = state
        return (jnp.where(x % 2 == 0, x // 2, 3 * x + 1) + offset) % prime, k + 1

    first = body((x0, jnp.int64(0)))
    return list(lax.while_loop(lambda s: s[0] != last, body, first))


@loop
def chain_of_ifs(m, x, step, shrink):
    def body(i, s):
        for k in range(8):
            s = lax.cond(i % (k + 2) < 1, lambda v: v + step, lambda v: v * shrink, s)
        return s

    return [lax.fori_loop(0, m, body, x)]


@loop
def nested_scalars(m, inner, x, keep, step):
    return [lax.fori_loop(0, m, lambda i, s: lax.fori_loop(0, inner, lambda j, u: u * keep + step, s), x)]


@loop
def edit_distance(a, b, row0):
    def outer(state, ai):
        k, above = state

        def inner(carry, item):
            left, corner = carry
            up, bj = item
            left = jnp.minimum(jnp.minimum(up + 1, left + 1), corner + (ai != bj))
            return (left, up), left

        _, row = lax.scan(inner, (k + 1, k), (above, b))
        return (k + 1, row), row

    (_, row), table = lax.scan(outer, (jnp.int64(0), row0), a)
    return [row, table]


@loop
def warping(x, y, row0):
    far = jnp.float32(1e30)

    def outer(state, xi):
        corner, above = state

        def inner(carry, item):
            left, diagonal = carry
            up, yj = item
            left = jnp.minimum(jnp.minimum(left, up), diagonal) + jnp.abs(xi - yj)
            return (left, up), left

        _, row = lax.scan(inner, (far, corner), (above, y))
        return (far, row), row

    (_, row), table = lax.scan(outer, (jnp.float32(0), row0), x)
    return [row, table]


@loop
def warping_by_diagonals(cost, start1, start2):
    def body(state, ct):
        p, q = state
        v = jnp.minimum(jnp.minimum(p[:-1], p[1:]), q[:-1]) + ct
        new = jnp.concatenate([jnp.full(1, 1e30, jnp.float32), v])
        return (new, p), new

    (last, _), diagonals = lax.scan(body, (start1, start2), cost)
    return [last, diagonals]


@loop
def viterbi(start, emissions, moves):
    def body(v, e):
        scores = v[:, None] + moves
        return scores.max(0) + e, scores.argmax(0)

    return list(lax.scan(body, start, emissions))


@loop
def running_sum(h0, x):
    return list(lax.scan(lambda s, e: (s + e, s + e), h0, x))


@loop
def moving_average(h0, x, keep, take):
    def body(s, e):
        s = s * keep + e * take
        return s, e - s

    return list(lax.scan(body, h0, x))


@loop
def oscillator(h0, x, keep):
    def body(s, e):
        s = jnp.tanh(s) * keep + e
        return s, jax.nn.sigmoid(s)

    return list(lax.scan(body, h0, x))


@loop
def two_axes(s0, p, q, half):
    def body(s, item):
        pt, qt = item
        s = s * half + pt * qt
        return s, (jnp.maximum(s, 0), s - qt)

    last, (y, z) = lax.scan(body, s0, (jnp.moveaxis(p, 1, 0), jnp.moveaxis(q, 2, 0)[::-1]))
    return [last, jnp.moveaxis(y, 0, 1), jnp.moveaxis(z[::-1], 0, 2)]


@loop
def mandelbrot(m, cr, ci):
    def body(i, state):
        r, k, n = state
        inside = r * r + k * k <= 4
        nr, nk = r * r - k * k + cr, r * k + r * k + ci
        return jnp.where(inside, nr, r), jnp.where(inside, nk, k), n + inside.astype(jnp.float32)

    return [lax.fori_loop(0, m, body, (cr, ci, jnp.zeros_like(cr)))[2]]


@loop
def selective_scan(h0, delta, x, B, C, A):
    def body(s, item):
        dt, xt, bt, ct = item
        s = jnp.exp(dt[:, None] * A) * s + (dt * xt)[:, None] * bt
        return s, (s * ct).sum(1)

    return list(lax.scan(body, h0, (delta, x, B, C)))


@loop
def biquad(z1, z2, x, b0, b1, b2, a1, a2):
    def body(state, e):
        p, q = state
        y = b0 * e + p
        return (b1 * e - a1 * y + q, b2 * e - a2 * y), y

    (p, q), y = lax.scan(body, (z1, z2), x)
    return [p, q, y]


@loop
def kalman(x0, P0, z, M, Q, h, r):
    def body(state, e):
        s, v = state
        sp, vp = M @ s, M @ v @ M.T + Q
        gain = vp @ h / (h @ vp @ h + r)
        s = sp + gain * (e - h @ sp)
        return (s, vp - gain[:, None] * (h @ vp)), s

    (s, v), path = lax.scan(body, (x0, P0), z)
    return [s, v, path]


@loop
def clustering(m, p, c0):
    def body(i, c):
        nearest = ((c * c).sum(1) - 2 * (p @ c.T)).argmin(1)
        member = jax.nn.one_hot(nearest, c.shape[0], dtype=jnp.float32)
        return (member.T @ p) / jnp.maximum(member.sum(0), 1)[:, None]

    return [lax.fori_loop(0, m, body, c0)]


@loop
def rnn_cell(h0, x, W, R):
    def body(h, a):
        h = jnp.tanh(a + h @ R)
        return h, h

    return list(lax.scan(body, h0, x @ W))


@loop
def stacked_cells(h0, x, W1, R1, W2, R2):
    def layer(R):
        def body(h, a):
            h = jnp.tanh(a + h @ R)
            return h, h

        return body

    last1, y1 = lax.scan(layer(R1), h0, x @ W1)
    last2, y2 = lax.scan(layer(R2), h0, y1 @ W2)
    return [last1, last2, y2]


@loop
def lstm_cell(h0, c0, x, W, R, bias):
    def body(state, a):
        h, c = state
        i, o, f, g = jnp.split(a + h @ R + bias, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    (h, c), y = lax.scan(body, (h0, c0), x @ W)
    return [h, c, y]


def gru_step(h, a, R):
    az, ar, an = jnp.split(a, 3, axis=1)
    rz, rr, rn = jnp.split(h @ R, 3, axis=1)
    z = jax.nn.sigmoid(az + rz)
    n = jnp.tanh(an + jax.nn.sigmoid(ar + rr) * rn)
    return n + z * (h - n)


@loop
def gru_cell(h0, x, W, R, bias):
    def body(h, a):
        h = gru_step(h, a, R)
        return h, h

    return list(lax.scan(body, h0, x @ W + bias))

"""GRU, all versions. Gates z, r, h in that order in W, R and B."""

import numpy as np
from recurrence import clipper, read_activations, rounder, run_directions


def gru(x, w, r, b=None, sequence_lens=None, initial_h=None, *, direction="forward", layout=0, activations=None,
        activation_alpha=None, activation_beta=None, clip=None, linear_before_reset=0, margins=None):  # fmt: skip
    dtype = x.dtype
    directions, hidden = r.shape[0], r.shape[2]
    w = w.astype(np.float64).reshape(directions, 3, hidden, -1) if w.size else np.zeros((directions, 3, hidden, 0))
    r = r.astype(np.float64).reshape(directions, 3, hidden, hidden)
    b = np.zeros((directions, 2, 3, hidden)) if b is None else b.astype(np.float64).reshape(directions, 2, 3, hidden)
    functions = read_activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh"], directions,
                                 margins)  # fmt: skip
    limit, rounded = clipper(clip), rounder(dtype)

    def step(d, x_t, states):
        (h,) = states
        f, g = functions[d]
        (wz, wr, wh), (rz, rr, rh) = w[d], r[d]
        (wbz, wbr, wbh), (rbz, rbr, rbh) = b[d]
        z = f(limit(wz @ x_t + rz @ h + wbz + rbz))
        reset = f(limit(wr @ x_t + rr @ h + wbr + rbr))
        if linear_before_reset:
            candidate = g(limit(wh @ x_t + reset * (rh @ h + rbh) + wbh))
        else:
            candidate = g(limit(wh @ x_t + rh @ (reset * h) + rbh + wbh))
        return [rounded((1 - z) * candidate + z * h)]

    return run_directions(x, direction, layout, sequence_lens, [initial_h], hidden, step, dtype)

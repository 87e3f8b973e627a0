"""RNN, all versions: Ht = f(Xt·W^T + Ht-1·R^T + Wb + Rb)."""

import numpy as np
from recurrence import clipper, read_activations, rounder, run_directions


def rnn(x, w, r, b=None, sequence_lens=None, initial_h=None, *, direction="forward", layout=0, activations=None,
        activation_alpha=None, activation_beta=None, clip=None, margins=None):  # fmt: skip
    dtype = x.dtype
    w, r = w.astype(np.float64), r.astype(np.float64)
    directions, hidden = r.shape[0], r.shape[2]
    b = np.zeros((directions, 2 * hidden)) if b is None else b.astype(np.float64)
    functions = read_activations(activations, activation_alpha, activation_beta, ["Tanh"], directions, margins)
    limit, rounded = clipper(clip), rounder(dtype)

    def step(d, x_t, states):
        (h,) = states
        (f,) = functions[d]
        return [rounded(f(limit(w[d] @ x_t + r[d] @ h + b[d][:hidden] + b[d][hidden:])))]

    return run_directions(x, direction, layout, sequence_lens, [initial_h], hidden, step, dtype)

"""LSTM, all versions. Gates i, o, f, c in that order in W, R and B; peepholes i, o, f."""

import numpy as np
from recurrence import clipper, read_activations, rounder, run_directions


def lstm(x, w, r, b=None, sequence_lens=None, initial_h=None, initial_c=None, p=None, *, direction="forward", layout=0,
         activations=None, activation_alpha=None, activation_beta=None, clip=None, input_forget=0,
         margins=None):  # fmt: skip
    dtype = x.dtype
    directions, hidden = r.shape[0], r.shape[2]
    w = w.astype(np.float64).reshape(directions, 4, hidden, -1) if w.size else np.zeros((directions, 4, hidden, 0))
    r = r.astype(np.float64).reshape(directions, 4, hidden, hidden)
    b = np.zeros((directions, 2, 4, hidden)) if b is None else b.astype(np.float64).reshape(directions, 2, 4, hidden)
    p = np.zeros((directions, 3, hidden)) if p is None else p.astype(np.float64).reshape(directions, 3, hidden)
    functions = read_activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh", "Tanh"],
                                 directions, margins)  # fmt: skip
    limit, rounded = clipper(clip), rounder(dtype)

    def step(d, x_t, states):
        h, c = states
        f, g, out = functions[d]
        preactivation = [w[d][k] @ x_t + r[d][k] @ h + b[d][0][k] + b[d][1][k] for k in range(4)]
        p_i, p_o, p_f = p[d]
        i = f(limit(preactivation[0] + p_i * c))
        forget = 1 - i if input_forget else f(limit(preactivation[2] + p_f * c))
        candidate = g(limit(preactivation[3]))
        c = forget * c + i * candidate
        o = f(limit(preactivation[1] + p_o * c))
        return [rounded(o * out(c)), rounded(c)]

    return run_directions(x, direction, layout, sequence_lens, [initial_h, initial_c], hidden, step, dtype)

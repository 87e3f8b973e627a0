"""Common parts of the plain loops of rnn.py, gru.py and lstm.py: activations, gates, and the walk over directions,
batch entries and steps. Written from the equations of the specification, in float64, one step of one entry at a time.
"""

import numpy as np


def activation(name, alpha, beta, margins=None):
    """One of the eleven functions. `margins` collects how close ThresholdedRelu came to its jump."""
    name = name.lower()

    def thresholded(x):
        if margins is not None and x.size:
            margins.append(float(np.min(np.abs(x - alpha))))
        return np.where(x >= alpha, x, 0.0)

    return {
        "relu": lambda x: np.maximum(x, 0.0),
        "tanh": np.tanh,
        "sigmoid": lambda x: 0.5 * (1.0 + np.tanh(0.5 * x)),
        "affine": lambda x: alpha * x + beta,
        "leakyrelu": lambda x: np.where(x >= 0, x, alpha * x),
        "thresholdedrelu": thresholded,
        "scaledtanh": lambda x: alpha * np.tanh(beta * x),
        "hardsigmoid": lambda x: np.minimum(np.maximum(alpha * x + beta, 0.0), 1.0),
        "elu": lambda x: np.where(x >= 0, x, alpha * (np.exp(np.minimum(x, 0.0)) - 1.0)),
        "softsign": lambda x: x / (1.0 + np.abs(x)),
        "softplus": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0),
    }[name]


ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": None, "hardsigmoid": 0.2, "elu": 1.0}
BETA = {"affine": 0.0, "scaledtanh": None, "hardsigmoid": 0.5}


def read_activations(names, alphas, betas, defaults, directions, margins=None):
    """One list of functions per direction. Only a function that has an alpha (beta) takes one, in order."""
    count = len(defaults)
    names = list(names) if names else list(defaults) * directions
    alphas, betas = list(alphas or []), list(betas or [])
    functions = []
    for name in names[: count * directions]:
        key = name.lower()
        alpha = (alphas.pop(0) if alphas else ALPHA[key]) if key in ALPHA else None
        beta = (betas.pop(0) if betas else BETA[key]) if key in BETA else None
        alpha, beta = (None if v is None else float(np.float32(v)) for v in (alpha, beta))  # attributes are floats
        functions.append(activation(name, alpha, beta, margins))
    return [functions[d * count : (d + 1) * count] for d in range(directions)]


def clipper(threshold):
    if threshold is None:
        return lambda x: x
    limit = float(np.float32(threshold))
    return lambda x: np.minimum(np.maximum(x, -limit), limit)


def rounder(dtype):
    """Values of the element type, held in float64."""
    return lambda x: np.asarray(x).astype(dtype).astype(np.float64)


def run_directions(x, direction, layout, lengths, initial, hidden, step, dtype):
    """Walks every direction, entry and step; returns Y and one final array per state.

    x: [T, B, I] ([B, T, I] for layout 1). initial: per state an array [D, B, H] ([B, D, H]) or None.
    step(d, x_t, states) -> states, h first, for one entry.
    """
    x = np.asarray(x).astype(np.float64)
    if layout == 1:
        x = x.swapaxes(0, 1)
    steps, batch = x.shape[:2]
    reverse = {"forward": [False], "foward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    y = np.zeros((steps, len(reverse), batch, hidden))
    finals = [np.zeros((len(reverse), batch, hidden)) for _ in initial]
    for d, backwards in enumerate(reverse):
        for b in range(batch):
            states = []
            for given in initial:
                if given is None:
                    states.append(np.zeros(hidden))
                else:
                    given = np.asarray(given).astype(np.float64)
                    states.append(given[b, d] if layout == 1 else given[d, b])
            length = steps if lengths is None else int(lengths[b])
            times = range(length)
            for t in reversed(times) if backwards else times:
                states = step(d, x[t, b], states)
                y[t, d, b] = states[0]
            for final, state in zip(finals, states, strict=True):
                final[d, b] = state
    if layout == 1:
        y = y.transpose(2, 0, 1, 3)
        finals = [final.swapaxes(0, 1) for final in finals]
    return [y.astype(dtype)] + [final.astype(dtype) for final in finals]

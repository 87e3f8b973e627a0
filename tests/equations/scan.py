"""Scan, version 9 and later, and version 8."""

import numpy as np


def scan(body, states, inputs, outputs, *, input_axes=None, output_axes=None, input_directions=None,
         output_directions=None):  # fmt: skip
    """body(*states, *elements) -> (*states, *elements). `outputs`: per scan output the sizes and type of an element,
    for a scan without any iteration."""
    input_axes = input_axes or [0] * len(inputs)
    output_axes = output_axes or [0] * len(outputs)
    input_directions = input_directions or [0] * len(inputs)
    output_directions = output_directions or [0] * len(outputs)
    lengths = {x.shape[axis] for x, axis in zip(inputs, input_axes, strict=True)}
    if len(lengths) != 1:
        raise ValueError(f"scan inputs have lengths {lengths}")
    (length,) = lengths
    states = list(states)
    collected = [[] for _ in outputs]
    for t in range(length):
        elements = [
            np.asarray(np.take(x, length - 1 - t if backwards else t, axis=axis), x.dtype)
            for x, axis, backwards in zip(inputs, input_axes, input_directions, strict=True)
        ]
        results = body(*states, *elements)
        for old, new in zip(states, results, strict=False):
            if old.shape != new.shape:
                raise ValueError(f"iteration {t}: a state changed from {old.shape} to {new.shape}")
        states = list(results[: len(states)])
        for i, element in enumerate(results[len(states) :]):
            collected[i].insert(0 if output_directions[i] else len(collected[i]), element)
    whole = []
    for elements, axis, (shape, dtype) in zip(collected, output_axes, outputs, strict=True):
        if elements:
            whole.append(np.stack(elements, axis=axis))
        else:
            rank = len(shape) + 1
            position = axis + rank if axis < 0 else axis
            whole.append(np.zeros((*shape[:position], 0, *shape[position:]), dtype))
    return states + whole


def scan8(body, states, inputs, outputs, *, sequence_lens=None, directions=None):
    """Batch axis 0 and sequence axis 1, which the body does not see; elements past an entry's length are zero."""
    batch, longest = inputs[0].shape[:2]
    finals = [np.zeros_like(s) for s in states]
    whole = [np.zeros((batch, longest, *shape), dtype) for shape, dtype in outputs]
    for b in range(batch):
        length = longest if sequence_lens is None else int(sequence_lens[b])
        results = scan(body, [s[b] for s in states], [x[b, :length] for x in inputs], outputs,
                       input_directions=directions)  # fmt: skip
        for final, state in zip(finals, results, strict=False):
            final[b] = state
        for out, elements in zip(whole, results[len(states) :], strict=True):
            out[b, :length] = elements
    return finals + whole

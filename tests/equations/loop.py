"""Loop, all versions, as the specification's pseudo-code has it."""

import numpy as np


def one_value(array, what):
    """M and cond are scalars or hold one element."""
    array = np.asarray(array)
    if array.size != 1:
        raise ValueError(f"{what} holds {array.size} elements")
    return array.reshape(())[()]


def loop(body, m=None, cond=None, states=(), empty=()):
    """body(iteration, condition, *states) -> (condition, *states, *elements). `empty`: each scan output of a loop
    without iterations. Returns the final states and the stacked elements. Without `cond` the body's condition is
    ignored.
    """
    limit = None if m is None else int(one_value(m, "M"))
    continues = True if cond is None else bool(one_value(cond, "cond"))
    states = list(states)
    elements = [[] for _ in empty]
    iteration = 0
    while continues and (limit is None or iteration < limit):
        condition, *results = body(iteration, continues, *states)
        if cond is not None:
            continues = bool(one_value(condition, "the body's condition"))
        states, new = results[: len(states)], results[len(states) :]
        for collected, element in zip(elements, new, strict=True):
            if collected and collected[0].shape != element.shape:
                raise ValueError(
                    f"iteration {iteration}: an element changed from {collected[0].shape} to {element.shape}"
                )
            collected.append(element)
        iteration += 1
    return states + [np.stack(c) if c else e for c, e in zip(elements, empty, strict=True)]

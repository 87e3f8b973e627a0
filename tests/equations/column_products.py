"""Products with one column, which loops compute as sums of products (src/opt/products.cc), and of a column by a row: for
contrib_tiers.py."""

import ml_dtypes
import numpy as np
from contrib import Node

STEPS = [1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100]


def numbers(rng, shape, dtype):
    """Some of them 0 of either sign."""
    x = rng.normal(size=shape) * 5
    x[rng.random(shape) < 0.2] *= 0
    return x.astype(dtype)


def maker_of(dtype, steps: int):
    def product(rng) -> Node:
        rows = int(rng.integers(1, 40))
        shapes = [((rows, steps), (steps,)), ((rows, steps), (steps, 1)), ((3, rows, steps), (3, steps, 1))]
        shapes += [((rows, steps), (steps, 2)), ((steps,), (steps,)), ((rows, 1), (1, steps))]
        a, b = shapes[rng.integers(len(shapes))]
        constants = (1,) if rng.random() < 0.3 else ()
        return Node("MatMul", [numbers(rng, a, dtype), numbers(rng, b, dtype)], [dtype], domain="", constants=constants)

    product.__name__ = f"{np.dtype(dtype).name}, {steps} steps"
    return product


MAKERS = [
    maker_of(dtype, steps)
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64)
    for steps in STEPS
]

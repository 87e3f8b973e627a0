"""How fast a recurrent operator could be on this machine at most, from rates that are measured in the same run."""

from __future__ import annotations

import dataclasses
import functools

import engines
import measure
import numpy as np
import onnx
import yardsticks
from models import GATES, Operator

# Sigmoids and tanhs in a step, per unit.
ACTIVATIONS = {"RNN": (0, 1), "GRU": (2, 1), "LSTM": (3, 2)}


def vector_bits() -> int:
    return int(yardsticks.number("vector_bits", result=yardsticks.ctypes.c_int64))


@functools.cache
def multiply_add_rate() -> float:
    """Operations a second."""
    return max(yardsticks.number("multiply_add_rate", 100_000) for _ in range(20))


@functools.cache
def read_rate(size: int) -> float:
    """Bytes a second, of `size` bytes that are read over and over."""
    data = np.ones(max(size, 1024) // 4, np.float32)
    rounds = max(1, 20_000_000 // data.nbytes)
    return max(yardsticks.number("read_rate", data, data.nbytes, rounds) for _ in range(10))


@functools.cache
def activation_seconds(op: str) -> float:
    """An element of the engine's own Sigmoid or Tanh: a slope, so that it is without the call."""
    times = []
    for size in (2048, 8192):
        text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[{size}] x) => (float[{size}] y) {{ y = {op}(x) }}'
        session = engines.open_ours(onnx.parser.parse_model(text).SerializeToString())
        times.append(measure.best_of(engines.bind(session, {"x": np.linspace(-4, 4, size, dtype=np.float32)}), 0.2))
    return (times[1] - times[0]) / (8192 - 2048)


@dataclasses.dataclass(frozen=True)
class Roof:
    """Seconds of a whole run: the products at the rate of multiply-adds, the recurrent weights at the rate at which
    memory of their size is read, activations as the engine computes them."""

    products: float
    weights: float
    activations: float

    @property
    def total(self) -> float:
        return self.products + self.weights + self.activations


def roof(o: Operator) -> Roof:
    matrix = GATES[o.op] * o.width * o.width
    product = 2 * matrix * o.batch / multiply_add_rate()
    stream = 4 * matrix / read_rate(4 * matrix)
    sigmoids, tanhs = ACTIVATIONS[o.op]
    units = o.batch * o.width
    activations = units * (sigmoids * activation_seconds("Sigmoid") + tanhs * activation_seconds("Tanh"))
    if o.batch > 1:  # what is streamed is used for all entries: the slower of the two
        product, stream = product + max(product, stream), 0.0
    steps = o.steps * o.layers
    return Roof(steps * product, steps * stream, steps * activations)

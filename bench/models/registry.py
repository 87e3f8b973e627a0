"""What a model of the benchmarks is, and the lists that the makers enter themselves in."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np
from onnx import helper, numpy_helper, parser

OPSET = 17
F32, I64 = np.float32, np.int64


@dataclasses.dataclass(frozen=True)
class Class:
    """A row of the table of targets: how many times faster than onnxruntime, at most how many times the hand-written
    loop (or, for operators, the roof). None: nothing is promised."""

    title: str
    onnxruntime: float | None = None
    yardstick: float | None = None


@dataclasses.dataclass
class Built:
    """A model at one size. The yardstick gets `sizes`, then the arrays that `arrays` names (inputs or weights), then
    room for the outputs in the model's order."""

    text: str
    weights: dict[str, np.ndarray]
    inputs: dict[str, np.ndarray]
    iterations: int
    sizes: tuple[int, ...] = ()
    arrays: str = ""
    tolerance: float = 1e-4
    allowed_mismatch: float = 0.0  # part of the elements that may differ: where results are chaotic
    compared: tuple[int, ...] | None = None  # numbers of the outputs that engines have to agree on; None: all
    opset: int = OPSET

    def model(self) -> bytes:
        graph = parser.parse_graph(self.text)
        graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in self.weights.items())
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    def yardstick_arrays(self) -> list[np.ndarray]:
        return [self.inputs[name] if name in self.inputs else self.weights[name] for name in self.arrays.split()]


@dataclasses.dataclass(frozen=True)
class Loop:
    name: str
    group: Class
    make: Callable[[int], Built]  # of the scale: 1 or 10 times the iterations
    yardstick: str
    jax: str


LOOPS: dict[str, Loop] = {}


def loop(
    group: Class, iterations: int, *args, name: str | None = None, yardstick: str | None = None, jax: str | None = None
):
    """Enters `make(iterations, *args)`, made for `iterations` at scale 1; the yardstick and the jax version have the maker's
    name where nothing else is said."""

    def register(make: Callable[..., Built]):
        own = make.__name__
        entry = Loop(name or own, group, lambda scale: make(iterations * scale, *args), yardstick or own, jax or own)
        LOOPS[entry.name] = entry
        return make

    return register


def numbers(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def uniform(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return rng.uniform(-scale, scale, shape).astype(F32)


def constants(dtype, **values) -> dict[str, np.ndarray]:
    return {name: np.array(value, dtype) for name, value in values.items()}


YES = {"yes": np.array(True)}

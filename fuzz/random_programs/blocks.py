"""What random programs are made of: values, and the bodies that they grow in.

A program is straight-line code between nested If, Loop, Scan, SequenceMap and recurrent nodes over small tensors of all
sorts of elements, sequences and optionals, with captured and shadowed names and model-local functions. Sizes are known
while it grows as far as that is possible, so that nearly every program is valid and gives a result. Floats stay within
[-1, 1] and are never compared, so that rounding decides nothing. In half of the programs some of them are infinite,
NaN, zero of either sign or too small to be normal; some programs have tensors without elements, and some have tensors
that are large enough for several threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
INT64, INT32, BOOL, STRING = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING
BRAIN = TensorProto.BFLOAT16
FLOATS, INTS = (FLOAT, DOUBLE, HALF), (INT64, INT32)
UINT32, UINT64 = TensorProto.UINT32, TensorProto.UINT64
NARROW = (TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, UINT32, UINT64)
WRAPPING = (*NARROW, UINT32, UINT64)  # integers that fewer operators know than INTS
IN_SEQUENCES = (*FLOATS, *INTS, *WRAPPING, BOOL, STRING)
ANY = (*IN_SEQUENCES, BRAIN)
OPSETS = tuple(range(7, 26))
LOCAL = "local"  # the domain of a model's own functions
SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, "least", "-least", "below normal")


@dataclass(frozen=True)
class Value:
    """`shape`: None as a whole or in part where it is known at run time only. Of a sequence: its elements' (None where
    they differ), and `least` elements that it has at least; of an optional: `least` 1 where it surely holds one."""

    name: str
    element: int
    shape: tuple[int | None, ...] | None = None
    kind: str = "tensor"
    least: int = 0

    @property
    def known(self) -> bool:
        return self.shape is not None and None not in self.shape


def numpy_type(element: int) -> np.dtype:
    return np.dtype(object) if element == STRING else helper.tensor_dtype_to_np_dtype(element)


def type_of(value: Value, shape) -> onnx.TypeProto:
    tensor = helper.make_tensor_type_proto(value.element, shape)
    if value.kind == "sequence":
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(value.element, None))
    return helper.make_optional_type_proto(tensor) if value.kind == "optional" else tensor


def special_number(name: float | str, dtype: np.dtype):
    if not isinstance(name, str):
        return dtype.type(name)
    least = np.finfo(dtype).smallest_subnormal
    return {"least": least, "-least": -least, "below normal": np.finfo(dtype).tiny / dtype.type(3)}[name]


@dataclass
class Draw:
    """What all blocks of a model share."""

    rng: np.random.Generator
    names: int = 0
    budget: int = 60  # nodes that may still be drawn
    copies: bool = True  # bodies return copies only
    special: bool = False  # floats that are no ordinary numbers occur
    empty: bool = False  # tensors without elements occur
    rows: int = 2  # sizes that most tensors have
    width: int = 3

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def array(self, element: int, shape: tuple[int, ...]) -> np.ndarray:
        if element in (*FLOATS, BRAIN):
            x = np.asarray(self.rng.uniform(-1, 1, shape).astype(numpy_type(element)))
            if self.special and element != BRAIN:
                x.ravel()[self.rng.random(x.size) < 0.12] = special_number(self.pick(SPECIAL), x.dtype)
            return x
        if element == BOOL:
            return np.asarray(self.rng.integers(0, 2, shape).astype(np.bool_))
        if element == STRING:
            words = [self.pick(["", "a", "bc", "é", "loop"]) for _ in range(int(np.prod(shape)))]
            return np.array(words, object).reshape(shape)
        info = np.iinfo(numpy_type(element))
        low, high = (info.min, info.max) if self.chance(0.25) else (max(info.min, -9), 9)
        return np.asarray(self.rng.integers(low, high, shape, numpy_type(element), endpoint=True))


@dataclass(frozen=True)
class Reference:
    """An attribute of a node that is an attribute of the function around it."""

    attribute: str
    type: int


class Function:
    """A model-local function of one tensor: what a call has to know."""

    def __init__(self, name: str, argument: Value, result: Value) -> None:
        self.name, self.argument, self.result = name, argument, result


class Block:
    """The nodes of one body as they grow, and the values that they may use."""

    def __init__(self, draw: Draw, opset: int, depth: int, scope: list[Value], functions: list[Function]) -> None:
        self.draw, self.opset, self.depth, self.functions = draw, opset, depth, functions
        self.scope = scope
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] | None = []  # None: all constants are nodes
        self.attributes: set[str] = set()  # of the function around it

    def inner(self) -> Block:
        block = Block(self.draw, self.opset, self.depth - 1, list(self.scope), self.functions)
        block.attributes = self.attributes
        return block

    # Names and values

    def emit(self, op: str, inputs: list[str], count: int = 1, domain: str = "", **attributes) -> list[str]:
        outputs = [self.draw.name("v") for _ in range(count)]
        references = {k: v for k, v in attributes.items() if isinstance(v, Reference)}
        node = helper.make_node(op, inputs, outputs, domain=domain,
                                **{k: v for k, v in attributes.items() if k not in references})  # fmt: skip
        for name, reference in references.items():
            node.attribute.append(
                onnx.AttributeProto(name=name, type=reference.type, ref_attr_name=reference.attribute)
            )
        self.nodes.append(node)
        return outputs

    def add(self, op: str, inputs: list[str], like: Value, **attributes) -> Value:
        value = replace(like, name=self.emit(op, inputs, **attributes)[0])
        self.scope.append(value)
        return value

    def constant(self, array: np.ndarray) -> str:
        name = self.draw.name("k")
        tensor = numpy_helper.from_array(np.asarray(array), name)
        if self.initializers is None or self.draw.chance(0.2):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(tensor)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: int) -> str:
        return self.constant(np.array(value, np.int64))

    def fresh(self, element: int, *shape: int) -> Value:
        return Value(self.constant(self.draw.array(element, shape)), element, shape)

    def weights(self, element: int, *shape: int) -> Value:
        """Ordinary numbers, whose sums with the last axis stay as small as with a short one."""
        array = self.draw.rng.uniform(-1, 1, shape) * np.sqrt(3 / max(shape[-1], 3))
        return Value(self.constant(array.astype(numpy_type(element))), element, shape)

    def some(self, test) -> Value | None:
        found = [v for v in self.scope if test(v)]
        return self.draw.pick(found) if found else None

    def tensor(self, elements, test=lambda v: True) -> Value | None:
        return self.some(lambda v: v.kind == "tensor" and v.element in elements and test(v))

    def flag(self) -> str:
        found = self.tensor((BOOL,), lambda v: v.shape in ((), (1,)))
        return found.name if found else self.constant(np.array(True))

    def like(self, other: Value) -> Value:
        """A value that can stand for `other`: same type, and same sizes where these are known."""
        return self.some(
            lambda v: (
                (v.kind, v.element, v.shape) == (other.kind, other.element, other.shape)
                and v.least >= other.least
                and (v.known or v.kind != "tensor" or v.name == other.name)
            )
        )

    def info(self, value: Value, honest: bool = True) -> onnx.ValueInfoProto:
        """What a body declares; the rank is left out at times where nothing hangs on it."""
        shape = None if value.shape is None or (not honest and self.draw.chance(0.3)) else value.shape
        return helper.make_value_info(value.name, type_of(value, shape))

    def graph(self, name: str, inputs: list, outputs: list) -> onnx.GraphProto:
        return helper.make_graph(self.nodes, self.draw.name(name), inputs, outputs, self.initializers or [])

    def bounded(self, value: Value) -> Value:
        """Within [-1, 1]; at times infinities stay what they are."""
        if value.element not in FLOATS:
            self.scope.append(value)
            return value
        small = self.add("Tanh", [value.name], value)
        if not self.draw.special or self.opset < 10 or value.element == HALF or self.draw.chance(0.6):
            return small
        (infinite,) = self.emit("IsInf", [value.name])
        return self.add("Where", [infinite, value.name, small.name], value)

    def small(self, op: str, inputs: list[str], like: Value, **attributes) -> Value:
        """What the operator gives, bounded: as it is nobody sees it, lest rounding grow from function to function."""
        return self.bounded(replace(like, name=self.emit(op, inputs, **attributes)[0]))

    def partner(self, x: Value) -> Value:
        """A second operand for x, elementwise."""
        return self.tensor(
            (x.element,), lambda v: (v.shape == x.shape and v.known) or v.shape == () or v.name == x.name
        )

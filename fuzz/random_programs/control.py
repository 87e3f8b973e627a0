"""Statements of random programs that hold bodies: If, Loop, Scan of both kinds, SequenceMap.

What a body returns is drawn from all that it sees: its own inputs (swapped, listed twice), captured values, constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from random_programs.blocks import (
    ANY,
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    IN_SEQUENCES,
    INT64,
    NARROW,
    STRING,
    Block,
    Reference,
    Value,
)
from random_programs.changing import has_rows, limited
from random_programs.statements import STRAIGHT, unsqueeze

LARGEST = np.iinfo(np.int64).max


def grow(block: Block, count: int) -> None:
    """Draws `count` statements, as far as the model's budget goes."""
    draw = block.draw
    kinds = [s for s in STATEMENTS if s[1] <= block.opset and (block.depth > 0 or not s[3])]
    weights = np.array([s[2] for s in kinds], float)
    for _ in range(count):
        if draw.budget > 0:
            draw.budget -= 1
            kinds[int(draw.rng.choice(len(kinds), p=weights / weights.sum()))][0](block)


def body_input(block: Block, like: Value, stem: str = "s") -> Value:
    """A body's input; at times its name hides an outer value's."""
    outer = [v for v in block.scope if v.name[0] in "vabfdhnmkucoilg"]
    name = block.draw.name(stem)
    if outer and block.draw.chance(0.06):
        name = block.draw.pick(outer).name
    block.scope = [v for v in block.scope if v.name != name]
    return replace(like, name=name)


@dataclass
class Body:
    """A body under construction: its inputs, and what its outputs mean to the node around it."""

    block: Block
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)

    def take(self, like: Value, declared: Value | None = None, visible: bool = True) -> Value:
        value = body_input(self.block, like)
        if any(info.name == value.name for info in self.inputs):
            value = replace(value, name=self.block.draw.name("s"))
        self.inputs.append(self.block.info(replace(declared or like, name=value.name), honest=False))
        if visible:
            self.block.scope.append(value)
        return value

    def give(self, value: Value, declared: Value | None = None) -> None:
        """The value itself, or a copy of it: onnxruntime refuses bodies that return captured values as they are."""
        copied = self.block.draw.copies or self.block.draw.chance(0.5)
        if copied and (value.kind != "sequence" or self.block.opset >= 14):  # Identity takes sequences from 14 on
            value = replace(value, name=self.block.emit("Identity", [value.name])[0])
        self.outputs.append(self.block.info(replace(declared or value, name=value.name)))

    def graph(self) -> onnx.GraphProto:
        return self.block.graph("body", self.inputs, self.outputs)


def branch(block: Block) -> None:
    containers = block.opset >= 13
    target = block.some(lambda v: v.kind == "tensor" or (containers and (v.kind == "sequence" or block.opset >= 16)))
    count = int(block.draw.rng.integers(1, 3)) if block.draw.chance(0.4) else 1
    targets = [target] + [block.some(lambda v: v.kind == "tensor") for _ in range(count - 1)]
    unlike = [block.opset >= 11 and t.kind == "tensor" and block.draw.chance(0.3) for t in targets]
    graphs, given = [], []
    for _ in range(2):
        inner = block.inner()
        grow(inner, int(block.draw.rng.integers(0, 4)))
        body = Body(inner)
        results = []
        for t, free in zip(targets, unlike, strict=True):
            result = inner.tensor((t.element,)) if free else inner.like(t)
            body.give(result, None if free else replace(t, least=0))
            results.append(result)
        graphs.append(body.graph())
        given.append(results)
    names = block.emit("If", [block.flag()], count, then_branch=graphs[0], else_branch=graphs[1])
    for name, t, x, y in zip(names, targets, *given, strict=True):
        least = min(x.least, y.least)
        block.scope.append(Value(name, t.element, common_shape(x.shape, y.shape), t.kind, least))


def common_shape(x, y):
    if x is None or y is None or len(x) != len(y):
        return None
    return tuple(a if a == b else None for a, b in zip(x, y, strict=True))


def iteration_limit(block: Block) -> tuple[str, int | None]:
    """M as a name, and how many iterations it is where that is known: absent (""), a constant, computed; a scalar or one
    element."""
    draw = block.draw
    kind = draw.rng.integers(8)
    if kind == 0:
        return "", LARGEST
    if kind == 1:
        return block.number(LARGEST), LARGEST
    most = 2 + block.depth
    n = block.tensor((INT64,), lambda v: v.shape == ())
    if kind <= 3 and n is not None and block.opset >= 10:
        (limited,) = block.emit("Mod", [n.name, block.number(most)])
        return limited, None
    count = int(draw.rng.integers(-1, most + 1))
    if kind == 4 and "iterations" in block.attributes and block.opset >= 12:
        return block.emit("Constant", [], value_int=Reference("iterations", onnx.AttributeProto.INT))[0], None
    return (block.integers(count) if draw.chance(0.2) else block.number(count)), max(count, 0)


def loop(block: Block) -> None:
    draw = block.draw
    limit, iterations = iteration_limit(block)
    endless = iterations == LARGEST
    condition = block.flag() if endless or draw.chance(0.5) else ""
    body = Body(block.inner())
    inner = body.block
    iteration = body.take(Value("", INT64, ()))
    go = body.take(Value("", BOOL, ()))
    states = [State(body, block) for _ in range(int(draw.rng.integers(1 if block.opset < 13 else 0, 4)))]
    if block.opset < 11 and not states:
        return
    grow(inner, int(draw.rng.integers(1, 6)))
    ends = int(draw.rng.integers(0, 4)) if endless else None
    body.give(next_condition(inner, iteration, go, ends))
    exact = None if condition or iterations == LARGEST else iterations
    finals = [state.finish(body, exact) for state in states]
    stacked = []
    for _ in range(int(draw.rng.integers(0, 3)) if states or draw.chance(0.9) else 0):
        element = inner.tensor(ANY, lambda v: v.known)
        if element is not None:
            body.give(element)
            stacked.append(Value("", element.element, (exact, *element.shape)))
    results = finals + stacked
    if not results:
        return
    names = block.emit("Loop", [limit, condition, *[s.start for s in states]], len(results), body=body.graph())
    kept = [not draw.chance(0.05) or i == 0 for i in range(len(results))]
    for i, (name, value) in enumerate(zip(names, results, strict=True)):
        if kept[i]:
            block.scope.append(replace(value, name=name))
        else:
            block.nodes[-1].output[i] = ""  # an output that nobody wants


def next_condition(inner: Block, iteration: Value, go: Value, ends: int | None) -> Value:
    """What the body says about going on; with `ends` it stops after that many iterations at the latest."""
    kind = inner.draw.rng.integers(6)
    if ends is None and kind == 0:
        return go
    if ends is None and kind == 1:
        return Value(inner.flag(), BOOL, ())
    bound = inner.number(int(inner.draw.rng.integers(0, 5)) if ends is None else ends)
    if inner.opset >= 9:
        stop = inner.emit("Less", [iteration.name, bound])[0]
    else:
        same = inner.emit("Equal", [iteration.name, bound])[0]
        stop = inner.emit("Not", [same])[0]
    return Value(stop, BOOL, ())


GROWING = (FLOAT, FLOAT, FLOAT, DOUBLE, HALF, INT64, NARROW[0], NARROW[3], BOOL, STRING)


class State:
    """A loop state: of fixed sizes, growing, of other sizes or another shape from iteration to iteration, a list of which
    all elements have one shape, any sequence, or an optional."""

    def __init__(self, body: Body, block: Block) -> None:
        draw, inner = block.draw, body.block
        kinds = ["fixed"] * 4 + ["grown", "grown", "changing", "turned"]
        kinds += (["list", "sequence"] if block.opset >= 13 else []) + (["optional"] if block.opset >= 16 else [])
        self.kind, self.axis = draw.pick(kinds), 0
        start = getattr(self, f"start_{self.kind}")(block)
        if start is None:
            self.kind = "fixed"
            start = self.start_fixed(block)
        self.start = start.name
        # Exporters declare what the first iteration sees, and are wrong from the second on.
        moving = start.shape
        if self.kind in ("grown", "changing"):
            moving = tuple(None if d == self.axis else n for d, n in enumerate(start.shape))
        elif self.kind in ("turned", "sequence"):
            moving = (None, None) if self.kind == "turned" else None
        self.like = replace(start, shape=moving, least=0 if self.kind == "optional" else start.least)
        self.declared = start if draw.chance(0.3) else self.like
        self.value = body.take(self.like, self.declared, visible=self.kind != "turned")
        self.inner = inner

    def start_fixed(self, block: Block) -> Value | None:
        return block.tensor(ANY, lambda v: v.known)

    def start_grown(self, block: Block) -> Value | None:
        width, rows = block.draw.width, int(block.draw.rng.integers(0, 3))
        self.axis = int(block.draw.chance(0.25))
        return block.fresh(block.draw.pick(GROWING), *((width, rows) if self.axis else (rows, width)))

    def start_changing(self, block: Block) -> Value | None:
        movable = [e for e in ANY if e != STRING or block.opset >= 13]
        return block.tensor(movable, lambda v: has_rows(v) and None not in v.shape[1:]) if block.opset >= 10 else None

    def start_turned(self, block: Block) -> Value | None:
        return block.tensor(ANY, lambda v: v.known and len(v.shape) == 2)

    def start_list(self, block: Block) -> Value | None:
        item = block.tensor(IN_SEQUENCES, lambda v: v.known)
        if block.draw.chance(0.5):
            (name,) = block.emit("SequenceEmpty", [], dtype=item.element)
            return Value(name, item.element, item.shape, "sequence", 0)
        (name,) = block.emit("SequenceConstruct", [item.name])
        return Value(name, item.element, item.shape, "sequence", 1)

    def start_sequence(self, block: Block) -> Value | None:
        return block.some(lambda v: v.kind == "sequence")

    def start_optional(self, block: Block) -> Value | None:
        return block.some(lambda v: v.kind == "optional")

    def finish(self, body: Body, iterations: int | None) -> Value:
        """Draws what the state becomes; returns what the loop gives for it after `iterations` iterations."""
        end = getattr(self, f"end_{self.kind}", self.end_fixed)(self.inner, self.value)
        if end is None:  # a shadowed name took the state away
            end = replace(self.like, name=self.value.name)
            if end.kind != "sequence" or self.inner.opset >= 14:  # Identity takes sequences from 14 on
                end = replace(end, name=self.inner.emit("Identity", [end.name])[0])
        body.give(end, replace(self.declared, name=""))
        appended = iterations if self.kind == "list" and iterations is not None else 0
        return replace(self.like, least=self.like.least + appended)

    def end_fixed(self, inner: Block, value: Value) -> Value | None:
        return inner.tensor((value.element,), lambda v: v.shape == value.shape)

    def end_grown(self, inner: Block, value: Value) -> Value:
        draw, width = inner.draw, inner.draw.width
        shape = (width, 1) if self.axis else (1, width)
        row = inner.tensor((value.element,), lambda v: v.shape == (width,))
        part = unsqueeze(inner, row, self.axis, Value("", value.element, shape)) if row else inner.fresh(
            value.element, *shape)  # fmt: skip
        parts = [value.name, part.name]
        return replace(
            self.like, name=inner.emit("Concat", parts if draw.chance(0.8) else parts[::-1], axis=self.axis)[0]
        )

    def end_changing(self, inner: Block, value: Value) -> Value:
        """Without its first row, or anything with as many axes."""
        if inner.draw.chance(0.3):
            bounds = [inner.integers(1), inner.integers(LARGEST)]
            return replace(self.like, name=inner.emit("Slice", [value.name, *bounds])[0])
        other = inner.tensor((value.element,), lambda v: has_rows(v) and v.shape[1:] == value.shape[1:])
        if other is None or other.shape[0] is not None:
            return other
        return replace(other, name=limited(inner, other.name, other.element))

    def end_turned(self, inner: Block, value: Value) -> Value:
        return replace(self.like, name=inner.emit("Transpose", [value.name])[0])

    def end_list(self, inner: Block, value: Value) -> Value | None:
        item = inner.tensor((value.element,), lambda v: v.shape == value.shape)
        return item and replace(value, name=inner.emit("SequenceInsert", [value.name, item.name])[0])

    def end_sequence(self, inner: Block, value: Value) -> Value:
        same = inner.some(lambda v: v.kind == "sequence" and v.element == value.element and v.least >= value.least)
        item = inner.tensor((value.element,))
        if item is not None and inner.draw.chance(0.6):
            return replace(value, name=inner.emit("SequenceInsert", [value.name, item.name])[0])
        return same or value

    def end_optional(self, inner: Block, value: Value) -> Value | None:
        return inner.some(lambda v: v.kind == "optional" and v.element == value.element and v.shape == value.shape)


def constants_for_scan(block: Block, rank: int, axis: int, length: int) -> Value:
    draw = block.draw
    element = draw.pick([FLOAT, FLOAT, INT64, BOOL, STRING] if block.opset >= 13 else [FLOAT, FLOAT, INT64])
    shape = [draw.width] * rank
    shape[axis] = length
    return block.fresh(element, *shape)


def scan(block: Block) -> None:
    draw = block.draw
    count, length = int(draw.rng.integers(1, 3)), int(draw.rng.integers(0, 5))
    lowest = block.opset >= 11
    body = Body(block.inner())
    starts = [block.tensor(ANY, lambda v: v.known) for _ in range(int(draw.rng.integers(0, 3)))]
    states = [body.take(start) for start in starts]
    wholes, axes = [], []
    for _ in range(count):
        fitting = block.tensor(ANY, lambda v: v.known and length in v.shape)
        if fitting is not None and draw.chance(0.4):
            axis, whole = fitting.shape.index(length), fitting
        else:
            axis = int(draw.rng.integers(2))
            whole = constants_for_scan(block, 2, axis, length)
        rank = len(whole.shape)
        wholes.append(whole)
        axes.append(axis - rank if lowest and draw.chance(0.3) else axis)
        body.take(Value("", whole.element, (*whole.shape[:axis], *whole.shape[axis + 1 :])))
    inner = body.block
    grow(inner, int(draw.rng.integers(1, 5)))
    for state in states:
        end = inner.tensor((state.element,), lambda v, s=state: v.shape == s.shape) or state
        body.give(end)
    elements = [inner.tensor(ANY, lambda v: v.known) for _ in range(int(draw.rng.integers(0 if states else 1, 3)))]
    output_axes, results = [], []
    for element in elements:
        body.give(element)
        rank = len(element.shape) + 1
        axis = int(draw.rng.integers(rank))
        shape = (*element.shape[:axis], length, *element.shape[axis:])
        output_axes.append(axis - rank if lowest and draw.chance(0.3) else axis)
        results.append(Value("", element.element, shape))
    options = {
        "scan_input_axes": axes,
        "scan_input_directions": [int(draw.rng.integers(2)) for _ in range(count)],
        "scan_output_axes": output_axes,
        "scan_output_directions": [int(draw.rng.integers(2)) for _ in elements],
    }
    options = {name: given for name, given in options.items() if given}
    if draw.chance(0.2) and all(axis == 0 for axis in axes + output_axes):
        options = {name: given for name, given in options.items() if "axes" not in name}
    inputs = [v.name for v in starts + wholes]
    results = [replace(s, name="") for s in starts] + results
    names = block.emit("Scan", inputs, len(results), body=body.graph(), num_scan_inputs=count, **options)
    block.scope.extend(replace(value, name=name) for name, value in zip(names, results, strict=True))


def scan8(block: Block) -> None:
    """Scan of opset 8: states and scan inputs have a batch axis that the body does not see."""
    draw = block.draw
    batch, longest, count = 2, int(draw.rng.integers(1, 5)), int(draw.rng.integers(1, 3))
    body = Body(block.inner())
    starts = [block.tensor((FLOAT, INT64), lambda v: v.known and v.shape[:1] == (batch,)) or block.fresh(FLOAT, batch, draw.width)
              for _ in range(int(draw.rng.integers(0, 3)))]  # fmt: skip
    states = [body.take(replace(start, shape=start.shape[1:])) for start in starts]
    wholes = [block.fresh(draw.pick([FLOAT, INT64]), batch, longest, draw.width) for _ in range(count)]
    for whole in wholes:
        body.take(Value("", whole.element, (draw.width,)))
    inner = body.block
    grow(inner, int(draw.rng.integers(1, 5)))
    for state in states:
        body.give(inner.tensor((state.element,), lambda v, s=state: v.shape == s.shape) or state)
    numbers = [e for e in ANY if e != STRING]
    elements = [inner.tensor(numbers, lambda v: v.known) for _ in range(int(draw.rng.integers(0 if states else 1, 3)))]
    for element in elements:
        body.give(element)
    lengths = block.integers(*draw.rng.integers(0, longest + 1, batch)) if draw.chance(0.5) else ""
    results = [replace(s, name="") for s in starts]
    results += [Value("", e.element, (batch, longest, *e.shape)) for e in elements]
    directions = {"directions": [int(draw.rng.integers(2)) for _ in range(count)]} if draw.chance(0.6) else {}
    inputs = [lengths, *[v.name for v in starts + wholes]]
    names = block.emit("Scan", inputs, len(results), body=body.graph(), num_scan_inputs=count, **directions)
    block.scope.extend(replace(value, name=name) for name, value in zip(names, results, strict=True))


def some_scan(block: Block) -> None:
    (scan8 if block.opset == 8 else scan)(block)


def sequence_map(block: Block) -> None:
    q = block.some(lambda v: v.kind == "sequence" and v.shape is not None)
    if q is None:
        return
    body = Body(block.inner())
    body.take(Value("", q.element, q.shape))
    inputs = [q.name]
    if block.draw.chance(0.4):
        other = block.tensor(ANY, lambda v: v.shape is not None)
        body.take(replace(other, name=""))
        inputs.append(other.name)
    grow(body.block, int(block.draw.rng.integers(1, 4)))
    results = [body.block.tensor(IN_SEQUENCES) for _ in range(int(block.draw.rng.integers(1, 3)))]
    for result in results:
        body.give(result)
    names = block.emit("SequenceMap", inputs, len(results), body=body.graph())
    for name, result in zip(names, results, strict=True):
        shape = result.shape if result.known else None
        block.scope.append(Value(name, result.element, shape, "sequence", q.least))


STATEMENTS = [
    *STRAIGHT,
    (branch, 7, 3, True),
    (loop, 7, 4.5, True),
    (some_scan, 8, 3.5, True),
    (sequence_map, 17, 1.2, True),
]

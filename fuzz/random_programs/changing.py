"""Statements whose results are as long as the data say: ranges, parts, what a condition keeps, repetitions, regroupings."""

from __future__ import annotations

import numpy as np
from onnx import helper

from random_programs.blocks import ANY, BOOL, BRAIN, FLOAT, FLOATS, INT64, INTS, STRING, Block, Value

MOST_ROWS = 12  # of what a loop may make longer in every iteration


def count(block: Block, most: int) -> str | None:
    """A scalar below `most` that the data decide."""
    i = block.tensor((INT64,), lambda v: v.shape == ())
    return block.emit("Mod", [i.name, block.number(most)])[0] if i else None


def lifted(block: Block, name: str) -> str:
    """A scalar as one element."""
    if block.opset >= 13:
        return block.emit("Unsqueeze", [name, block.integers(0)])[0]
    return block.emit("Unsqueeze", [name], axes=[0])[0]


def counts(block: Block, *most: int) -> list[str] | None:
    found = [count(block, each) for each in most]
    return None if None in found else [lifted(block, name) for name in found]


def has_rows(v: Value) -> bool:
    return v.shape is not None and len(v.shape) > 0


def limited(block: Block, name: str, element: int) -> str:
    """No more rows than a state may have."""
    if element == STRING and block.opset < 13:
        return name
    return block.emit("Slice", [name, block.integers(0), block.integers(MOST_ROWS)])[0]


def ranged(block: Block) -> None:
    """Up or down, as integers or as floats."""
    draw = block.draw
    end = count(block, draw.pick([2, 5, 9]))
    if end is None:
        return
    first, last, step = draw.pick([(block.number(0), end, 1), (end, block.number(-1), -1), (block.number(1), end, 3)])
    steps = Value(block.emit("Range", [first, last, block.number(step)])[0], INT64, (None,))
    block.scope.append(steps)
    if draw.chance(0.4):
        block.bounded(Value(block.emit("Cast", [steps.name], to=FLOAT)[0], FLOAT, (None,)))


def part_by_data(block: Block) -> None:
    """A Slice between bounds that the data decide, forwards or backwards, at times of the last axis."""
    draw = block.draw
    x = block.tensor(ANY, has_rows)
    bounds = counts(block, 5, 9)
    if x is None or bounds is None or (x.element == STRING and block.opset < 13):
        return
    axis = len(x.shape) - 1 if draw.chance(0.3) else 0
    step = draw.pick([1, 1, 1, 2, -1, -2])
    if step < 0:
        bounds[0] = block.integers(-1)
        bounds[1] = bounds[1] if draw.chance(0.5) else block.integers(np.iinfo(np.int64).min)
    elif draw.chance(0.5):
        bounds[draw.pick([0, 1])] = block.integers(draw.pick([0, 1, 2, -1]))
    shape = tuple(None if d == axis else n for d, n in enumerate(x.shape))
    inputs = [x.name, *bounds, block.integers(axis), block.integers(step)]
    block.add("Slice", inputs, Value("", x.element, shape))


def kept(block: Block) -> None:
    """Rows that a condition keeps, by Compress or by the places where it holds."""
    draw = block.draw
    x = block.tensor(ANY, lambda v: has_rows(v) and v.shape[0] is not None)
    if x is None:
        return
    holds = block.tensor((BOOL,), lambda v: v.shape == (x.shape[0],)) or block.fresh(BOOL, x.shape[0])
    like = Value("", x.element, (None, *x.shape[1:]))
    if x.element != BRAIN and draw.chance(0.5):
        block.add("Compress", [x.name, holds.name], like, axis=0)
        return
    places = Value(block.emit("NonZero", [holds.name])[0], INT64, (1, None))
    if block.opset >= 13:
        places = block.add("Squeeze", [places.name, block.integers(0)], Value("", INT64, (None,)))
    else:
        places = block.add("Squeeze", [places.name], Value("", INT64, (None,)), axes=[0])
    block.add("Gather", [x.name, places.name], like, axis=0)


def places(block: Block) -> None:
    if x := block.tensor((*FLOATS, *INTS, BOOL), has_rows):
        block.add("NonZero", [x.name], Value("", INT64, (len(x.shape), None)))


def repeated(block: Block) -> None:
    """Rows some times over, or as many zeros or ones."""
    draw = block.draw
    times = counts(block, 4)
    x = block.tensor(ANY, has_rows)
    if times is None or x is None:
        return
    if draw.chance(0.4) and block.opset >= 9:
        element = draw.pick([FLOAT, INT64, BOOL])
        value = helper.make_tensor("value", element, [1], [draw.pick([0, 1])])
        block.add("ConstantOfShape", times, Value("", element, (None,)), value=value)
        return
    if x.element == BRAIN:
        return
    ones = [block.integers(*[1] * (len(x.shape) - 1))] if len(x.shape) > 1 else []
    times = block.emit("Concat", [*times, *ones], axis=0)[0] if ones else times[0]
    (made,) = block.emit("Tile", [x.name, times])
    block.scope.append(Value(limited(block, made, x.element), x.element, (None, *x.shape[1:])))


def regrouped(block: Block) -> None:
    """Rows of a length that the data decide; what is done with them; one row again."""
    draw = block.draw
    x = block.tensor((*FLOATS, *INTS), lambda v: v.known and 0 not in v.shape)
    if x is None:
        return
    size = int(np.prod(x.shape))
    lengths = [n for n in range(1, size + 1) if size % n == 0][:5]
    which = count(block, len(lengths))
    if which is None:
        return
    (length,) = block.emit("Gather", [block.integers(*lengths), lifted(block, which)], axis=0)
    (shape,) = block.emit("Concat", [block.integers(-1), length], axis=0)
    rows = block.add("Reshape", [x.name, shape], Value("", x.element, (None, None)))
    (other,) = block.emit("Transpose", [rows.name])
    if draw.chance(0.5) and (y := block.tensor((x.element,), lambda v: v.shape == ())) and x.element in INTS:
        (other,) = block.emit("Add", [other, y.name])
    block.add("Reshape", [other, block.integers(*x.shape)], x)


def summed(block: Block) -> None:
    """Rows of any number become one."""
    x = block.tensor((*FLOATS, *INTS), lambda v: v.shape is not None and v.shape[:1] == (None,))
    if x is None or None in x.shape[1:]:
        return
    like = Value("", x.element, x.shape[1:])
    if block.opset >= 13:
        block.small("ReduceSum", [x.name, block.integers(0)], like, keepdims=0)
    else:
        block.small("ReduceSum", [x.name], like, axes=[0], keepdims=0)


CHANGING = [
    (ranged, 11, 0.8, False),
    (part_by_data, 10, 1.2, False),
    (kept, 11, 1.2, False),
    (places, 9, 0.4, False),
    (repeated, 10, 0.5, False),
    (regrouped, 10, 0.6, False),
    (summed, 7, 0.8, False),
]

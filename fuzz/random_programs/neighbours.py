"""Statements over grids of some hundred elements: neighbours of each other, and every element with every other."""

from __future__ import annotations

from random_programs.blocks import DOUBLE, FLOAT, INT64, Block, Value

SIZES = ((1, 300), (20, 30), (24, 16), (7, 61), (2, 200), (170, 3), (33, 5), (64, 8))


def scalar(block: Block, element: int) -> str | None:
    """Some number that the program has computed."""
    found = block.tensor((element,), lambda v: v.shape in ((), (1,)))
    return found.name if found else None


def grid(block: Block, element: int, *shape: int) -> str | None:
    number = scalar(block, element)
    if number is None:
        return None
    weights = block.weights(element, *shape) if element != INT64 else block.fresh(element, *shape)
    return block.emit("Add", [weights.name, number])[0]


def reduce(block: Block, op: str, name: str, element: int, shape: tuple[int, ...]) -> None:
    """Along one axis or all of them."""
    axes = block.draw.pick([(0,), (1,), (0, 1)])
    keep = int(block.draw.chance(0.3))
    rest = [n for d, n in enumerate(shape) if d not in axes]
    like = Value("", element, tuple(1 if d in axes else n for d, n in enumerate(shape)) if keep else tuple(rest))
    if block.opset >= (13 if op == "ReduceSum" else 18):
        block.small(op, [name, block.integers(*axes)], like, keepdims=keep)
    else:
        block.small(op, [name], like, axes=list(axes), keepdims=keep)


def padded(block: Block, name: str, pads: list[int]) -> str:
    mode = block.draw.pick(["constant", "constant", "edge", "reflect"])
    if block.opset >= 11:
        return block.emit("Pad", [name, block.integers(*pads)], mode=mode)[0]
    return block.emit("Pad", [name], pads=pads, mode=mode)[0]


def cut(block: Block, name: str, starts: list[int], sizes: tuple[int, ...]) -> str:
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    if block.opset >= 10:
        return block.emit("Slice", [name, block.integers(*starts), block.integers(*ends)])[0]
    return block.emit("Slice", [name], starts=starts, ends=ends)[0]


def rolled(block: Block, name: str, shape: tuple[int, ...]) -> str:
    rows, columns = shape
    at = int(block.draw.rng.integers(1, columns))
    pieces = [cut(block, name, [0, at], (rows, columns - at)), cut(block, name, [0, 0], (rows, at))]
    return block.emit("Concat", pieces, axis=1)[0]


def stencil(block: Block) -> None:
    """Shifted parts of a padded grid, combined and at times reduced."""
    draw = block.draw
    shape = draw.pick(SIZES)
    element = draw.pick([FLOAT, FLOAT, DOUBLE, INT64] if block.opset >= 12 else [FLOAT, DOUBLE])
    name = grid(block, element, *shape)
    if name is None:
        return None
    most = [min(2, n - 1) for n in shape]  # that a reflection has
    pads = [int(draw.rng.integers(0, n + 1)) for n in (*most, *most)]
    around = padded(block, name, pads)
    result = name
    for _ in range(int(draw.rng.integers(1, 5))):
        starts = [int(draw.rng.integers(0, pads[d] + pads[d + 2] + 1)) for d in range(2)]
        next_one = cut(block, around, starts, shape) if draw.chance(0.8) else rolled(block, name, shape)
        (result,) = block.emit(draw.pick(["Add", "Sub"]), [result, next_one])
    if draw.chance(0.6):
        return reduce(block, draw.pick(["ReduceSum", "ReduceMax", "ReduceMean"]), result, element, shape)
    corner = Value(cut(block, result, [0, 0], (1, 3)), element, (1, 3))
    return block.bounded(corner)


def pairs(block: Block) -> None:
    """A column against a row, and what is left of all pairs."""
    draw = block.draw
    rows, columns = shape = draw.pick(SIZES)
    element = draw.pick([FLOAT, DOUBLE, INT64])
    column, row = grid(block, element, rows, 1), block.weights(element, 1, columns)
    if column is None:
        return None
    if element == INT64:
        row = block.fresh(element, 1, columns)
        (less,) = block.emit(draw.pick(["Less", "Equal"]) if block.opset >= 9 else "Equal", [row.name, column])
        (count,) = block.emit("Cast", [less], to=INT64)
        return reduce(block, "ReduceSum", count, INT64, shape)
    (far,) = block.emit("Sub", [row.name, column])
    (value,) = block.emit("Mul", [far, far]) if draw.chance(0.5) else block.emit("Tanh", [far])
    kinds = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"]
    for _ in range(int(draw.rng.integers(1, 3))):
        reduce(block, draw.pick(kinds), value, element, shape)
    return None

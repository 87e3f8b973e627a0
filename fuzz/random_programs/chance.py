"""Statements that draw random numbers: from a seed, as the evaluator draws them, or of which only the range is known."""

from __future__ import annotations

from random_programs.blocks import BOOL, BRAIN, DOUBLE, FLOAT, HALF, Block, Value


def drawn(block: Block) -> None:
    """Numbers that follow from a seed."""
    draw = block.draw
    kind = draw.pick(["RandomUniform", "RandomNormal"])
    options = {"seed": float(draw.rng.integers(1, 1000))}
    options |= {"low": -0.75, "high": 1.0} if kind == "RandomUniform" else {"mean": 0.125, "scale": 0.5}
    element = draw.pick([FLOAT, FLOAT, DOUBLE, HALF] + ([BRAIN] if block.opset >= 22 else []))
    if draw.chance(0.4):
        shape = draw.pick([(1,), (draw.width,), (draw.rows, draw.width), (40,)])
        (made,) = block.emit(kind, [], shape=list(shape), dtype=element, **options)
        block.bounded(Value(made, element, shape))
    elif x := block.tensor((FLOAT, DOUBLE, HALF)):
        (made,) = block.emit(kind + "Like", [x.name], dtype=element, **options)
        block.bounded(Value(made, element, x.shape))


def tossed(block: Block) -> None:
    """Numbers without a seed, which differ from run to run: what is made of them does not."""
    x = block.tensor((FLOAT, DOUBLE))
    if x is None:
        return
    if block.draw.chance(0.5):
        (uniform,) = block.emit("RandomUniformLike", [x.name], low=2.0, high=3.0)
        (two,) = block.emit("Floor", [uniform])
        (half,) = block.emit("Div", [two, two])
        block.add("Mul", [x.name, half], x)
    else:
        (normal,) = block.emit("RandomNormalLike", [x.name], mean=-100.0, scale=0.5)
        (negative,) = block.emit("Less", [normal, block.emit("Neg", [normal])[0]])
        block.scope.append(Value(negative, BOOL, x.shape))


CHANCE = [
    (drawn, 7, 0.7, False),
    (tossed, 9, 0.5, False),
]

"""Whole random programs: functions, a graph, inputs. Everything follows from the seed."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from random_programs.blocks import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT32,
    INT64,
    LOCAL,
    NARROW,
    OPSETS,
    STRING,
    UINT32,
    UINT64,
    Block,
    Draw,
    Function,
    Value,
    type_of,
)
from random_programs.control import grow


def make_function(draw: Draw, opset: int, depth: int, functions: list[Function]) -> tuple[Function, onnx.FunctionProto]:
    """A function of one float tensor and the attributes `alpha` and `iterations`, and what it returns."""
    shape = draw.pick([(draw.rows, draw.width), (draw.width,)])
    argument = Value("x", FLOAT, shape)
    block = Block(draw, opset, depth, [argument, Value("w", FLOAT, (draw.width,))], functions)
    block.initializers = None
    block.attributes = {"alpha", "iterations"}
    block.nodes.append(helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(
        draw.array(FLOAT, (draw.width,)))))  # fmt: skip
    grow(block, int(draw.rng.integers(1, 5)))
    result = block.tensor((FLOAT,), lambda v: v.known and v.name not in ("x", "w")) or block.add(
        "Neg", ["x"], argument)  # fmt: skip
    name = draw.name("F")
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(LOCAL, 1)]
    proto = helper.make_function(
        LOCAL, name, ["x"], [result.name], block.nodes, imports, attributes=["alpha", "iterations"]
    )
    return Function(name, argument, result), proto


def possible_inputs(draw: Draw) -> list[Value]:
    rows, width = draw.rows, draw.width
    inputs = [
        Value("a", FLOAT, (rows, width)), Value("b", FLOAT, (width,)), Value("f", FLOAT, ()),
        Value("d", DOUBLE, (width,)), Value("h", HALF, (width,)), Value("n", INT64, ()), Value("m", INT64, ()),
        Value("k", INT32, (width,)), Value("p", BOOL, ()), Value("q", BOOL, (1,)), Value("s", STRING, (2,)),
        Value("r", FLOAT, (None, width)),
    ]  # fmt: skip
    u8, i8, u16, i16 = NARROW
    inputs += [Value("u", u8, (width,)), Value("c", i8, ()), Value("o", u16, (rows, width)), Value("i", i16, (width,))]
    inputs += [Value("l", UINT32, (width,)), Value("g", UINT64, ())]
    if draw.empty:
        inputs += [Value("e", FLOAT, (0, width)), Value("z", DOUBLE, (0,)), Value("y", INT64, (rows, 0))]
    return inputs


def make_program(seed: int, opset: int, size: int = 1) -> tuple[onnx.ModelProto, list[dict[str, np.ndarray]]]:
    """The model and two sets of inputs, which differ in the length of `r`, too. `size`: times as many nodes."""
    draw = Draw(np.random.default_rng([seed, opset]))
    draw.copies = draw.chance(0.7)
    draw.special, draw.empty = draw.chance(0.5), draw.chance(0.25)
    if draw.chance(0.06):
        draw.rows, draw.width = 64, 160
    functions: list[Function] = []
    protos = []
    for _ in range(int(draw.rng.integers(0, 3)) if draw.chance(0.4) else 0):
        own = opset if draw.chance(0.5) else draw.pick([v for v in OPSETS if v >= 12])
        function, proto = make_function(draw, own, 2, functions)
        functions.append(function)
        protos.append(proto)
    # Most programs leave some kinds of values out, so that the others meet more often.
    kept = [v for v in possible_inputs(draw) if v.name in "afnp" or draw.chance(0.5)]
    block = Block(draw, opset, int(draw.rng.integers(1, 4)), list(kept), functions)
    draw.budget = size * int(draw.rng.integers(15, 60))
    grow(block, size * int(draw.rng.integers(3, 9)))
    made = [v for v in block.scope if v not in kept]
    outputs = made[-5:] if made else [block.add("Identity", ["a"], kept[0])]
    if len(made) > 8:
        outputs += [draw.pick(made[:-5])]
    graph = helper.make_graph(
        block.nodes, "program", [helper.make_value_info(v.name, type_of(v, v.shape)) for v in kept],
        [helper.make_value_info(v.name, type_of(v, None)) for v in outputs], block.initializers)  # fmt: skip
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(LOCAL, 1)] if protos else [])
    model = helper.make_model(graph, opset_imports=imports, functions=protos, ir_version=10)
    feeds = []
    for rows in (draw.rows, draw.rows + 1 if draw.chance(0.7) else 0):
        shapes = {v.name: tuple(rows if size is None else size for size in v.shape) for v in kept}
        feed = {v.name: draw.array(v.element, shapes[v.name]) for v in kept}
        feeds.append({**feed, **{name: np.array(draw.rng.integers(-3, 9)) for name in ("n", "m") if name in feed}})
    return model, feeds

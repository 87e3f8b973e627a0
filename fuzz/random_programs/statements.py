"""Straight-line statements of random programs: each draws its operands from a block and adds what it makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx

from random_programs.blocks import (
    ANY,
    BOOL,
    BRAIN,
    DOUBLE,
    FLOAT,
    FLOATS,
    HALF,
    IN_SEQUENCES,
    INT64,
    INTS,
    LOCAL,
    NARROW,
    STRING,
    UNSIGNED,
    WRAPPING,
    Block,
    Reference,
    Value,
    numpy_type,
)
from random_programs.chance import CHANCE
from random_programs.changing import CHANGING
from random_programs.neighbours import pairs, stencil
from random_programs.words import WORDS


def float_pair(block: Block) -> None:
    x = block.tensor(FLOATS)
    if x is None:
        return
    y = block.partner(x)
    kinds = ["Add", "Sub", "Mul"] + (["Max", "Min"] if block.opset >= 8 else [])
    block.bounded(block.add(block.draw.pick(kinds), block.draw.pick([[x.name, y.name], [x.name, x.name]]), x))


def many(block: Block) -> None:
    """Operands one after the other, each of which may be a scalar."""
    if x := block.tensor(FLOATS):
        operands = [x.name] + [block.partner(x).name for _ in range(int(block.draw.rng.integers(0, 4)))]
        block.small(block.draw.pick(["Max", "Min", "Sum", "Mean"]), operands, x)


def float_single(block: Block) -> None:
    if x := block.tensor(FLOATS):
        block.add(block.draw.pick(["Neg", "Sigmoid", "Abs", "Identity", "Tanh", "Relu"]), [x.name], x)


def smooth(block: Block) -> None:
    kinds = ["Exp", "Softplus", "Sin", "Cos", "Elu", "HardSigmoid"] + (["Erf"] if block.opset >= 9 else [])
    if x := block.tensor(FLOATS):
        block.small(block.draw.pick(kinds), [x.name], x)


def clipped(block: Block) -> None:
    """Bounds may be missing, the wrong way round, or no numbers."""
    draw = block.draw
    x = block.tensor((*FLOATS, *INTS) if block.opset >= 12 else FLOATS)
    if x is None:
        return
    if block.opset < 11:
        bounds = {name: float(draw.array(FLOAT, ())) for name in ("min", "max") if draw.chance(0.7)}
        block.small("Clip", [x.name], x, **bounds)
        return
    bounds = []
    for _ in range(2):
        found = block.tensor((x.element,), lambda v: v.shape == ())
        if draw.special and x.element in FLOATS and draw.chance(0.25):
            bounds.append(block.constant(np.array(np.nan, numpy_type(x.element))))
        else:
            bounds.append(draw.pick(["", block.fresh(x.element).name, found.name if found else ""]))
    block.small("Clip", [x.name, *bounds], x)


def special(block: Block) -> None:
    """What is no number decides, rounding does not."""
    kinds = ["IsNaN"] + (["IsInf"] if block.opset >= 10 else [])
    kind = block.draw.pick(kinds)
    x = block.tensor((FLOAT, HALF) if kind == "IsNaN" and block.opset < 13 else FLOATS)
    if x is None or (kind == "IsInf" and x.element == HALF and block.opset < 20):
        return
    which = block.draw.pick([{}, {"detect_negative": 0}, {"detect_positive": 0}]) if kind == "IsInf" else {}
    block.add(kind, [x.name], Value("", BOOL, x.shape), **which)


def leaky(block: Block) -> None:
    """The slope is the block's own, or an attribute of the function around it."""
    if x := block.tensor(FLOATS):
        slope = float(np.float32(block.draw.rng.uniform(0, 0.5)))
        bound = "alpha" in block.attributes and block.draw.chance(0.7)
        block.add("LeakyRelu", [x.name], x, alpha=Reference("alpha", onnx.AttributeProto.FLOAT) if bound else slope)


def int_pair(block: Block) -> None:
    """Wraps where it overflows."""
    if x := block.tensor(INTS):
        y = block.partner(x)
        kinds = ["Add", "Sub", "Mul"] + (["Max", "Min"] if block.opset >= 12 else [])
        block.add(block.draw.pick(kinds), [x.name, y.name], x)


def int_single(block: Block) -> None:
    if x := block.tensor(INTS):
        divisor = block.constant(np.array(block.draw.pick([2, 3, 7, -5, 1000]), numpy_type(x.element)))
        kinds = ["Neg", "Abs", "Div", "Identity"] + (["Mod", "Mod"] if block.opset >= 10 else [])
        kind = block.draw.pick(kinds)
        block.add(kind, [x.name, divisor] if kind in ("Div", "Mod") else [x.name], x)


def comparison(block: Block) -> None:
    if x := block.tensor(INTS):
        y = block.partner(x)
        kinds = ["Equal"] + (["Less", "Greater"] if block.opset >= 9 else [])
        block.add(block.draw.pick(kinds), [x.name, y.name], Value("", BOOL, x.shape))


def logic(block: Block) -> None:
    if x := block.tensor((BOOL,)):
        y = block.partner(x)
        if block.draw.chance(0.3):
            block.add("Not", [x.name], x)
        else:
            block.add(block.draw.pick(["And", "Or", "Xor"]), [x.name, y.name], x)


def cast(block: Block) -> None:
    x = block.tensor((*FLOATS, *INTS, *WRAPPING, BOOL))
    if x is None:
        return
    # A wider float would be held to what a narrower one's rounding decides.
    targets = {DOUBLE: (FLOAT, HALF), FLOAT: (HALF,), HALF: ()}.get(x.element, (*FLOATS, *INTS, *WRAPPING))
    targets = [t for t in targets if t != x.element]
    if not targets:
        return
    to = block.draw.pick(targets)
    made = Value(block.emit("Cast", [x.name], to=to)[0], to, x.shape)
    if to in FLOATS:
        block.bounded(made)
    else:
        block.scope.append(made)


def narrow_pair(block: Block) -> None:
    """Integers of few bits, and without a sign, wrap where they overflow."""
    if x := block.tensor(WRAPPING):
        kinds = ["Add", "Sub", "Mul", "Max", "Min"]
        kinds += ["BitwiseAnd", "BitwiseOr", "BitwiseXor"] if block.opset >= 18 else []
        block.add(block.draw.pick(kinds), [x.name, block.partner(x).name], x)


def narrow_single(block: Block) -> None:
    x = block.tensor(WRAPPING)
    if x is None:
        return
    kinds = ["Abs", "Div", "Mod", "Sign"] + (["BitwiseNot"] if block.opset >= 18 else [])
    kinds.append("BitShift" if x.element in UNSIGNED else "Neg")
    kind = block.draw.pick(kinds)
    if kind == "BitShift":
        by = block.constant(np.array(block.draw.pick([0, 1, 4, 7, 15]), numpy_type(x.element)))
        block.add(kind, [x.name, by], x, direction=block.draw.pick(["LEFT", "RIGHT"]))
        return
    divisor = block.constant(np.array(block.draw.pick([2, 3, 7, 100]), numpy_type(x.element)))
    block.add(kind, [x.name, divisor] if kind in ("Div", "Mod") else [x.name], x)


def narrow_choice(block: Block) -> None:
    """A comparison, and what it chooses."""
    if x := block.tensor(WRAPPING):
        y = block.partner(x)
        chosen = block.add(block.draw.pick(["Equal", "Less", "Greater"]), [x.name, y.name], Value("", BOOL, x.shape))
        block.add("Where", [chosen.name, x.name, y.name], x)


def table(block: Block) -> None:
    """A table of small elements by what a narrow integer says."""
    x = block.tensor(WRAPPING, lambda v: v.known)
    if x is None:
        return
    element = block.draw.pick([*WRAPPING, HALF])
    entries = block.fresh(element, 7)
    (wide,) = block.emit("Cast", [x.name], to=INT64)
    (index,) = block.emit("Mod", [wide, block.number(7)])
    block.add("Gather", [entries.name, index], Value("", element, x.shape), axis=0)


def narrow_extreme(block: Block) -> None:
    if x := block.tensor(NARROW[:2], lambda v: v.known and 0 not in v.shape):
        block.add(block.draw.pick(["ReduceMax", "ReduceMin"]), [x.name], Value("", x.element, ()), keepdims=0)


def brain(block: Block) -> None:
    """bfloat16, which nothing wider is made of."""
    x = block.tensor((BRAIN,))
    if x is None or block.draw.chance(0.2):
        if source := block.tensor((FLOAT,)):
            block.add("Cast", [source.name], replace(source, element=BRAIN), to=BRAIN)
        return
    if block.draw.chance(0.4):
        block.add(block.draw.pick(["Neg", "Abs", "Relu", "Sigmoid"]), [x.name], x)
        return
    (made,) = block.emit(block.draw.pick(["Add", "Sub", "Mul", "Max", "Min"]), [x.name, block.partner(x).name])
    block.add("Tanh", [made], x)


def total(block: Block) -> None:
    """A scalar of all elements; the largest and the smallest only where there is one."""
    if x := block.tensor((*FLOATS, *INTS)):
        whole = x.known and 0 not in x.shape
        sums = x.element in INTS or whole
        kinds = (["ReduceMax", "ReduceMin"] if whole else []) + (["ReduceSum"] if sums else [])
        if kinds:
            block.small(block.draw.pick(kinds), [x.name], Value("", x.element, ()), keepdims=0)


def reduced(block: Block) -> None:
    """Along some axes. What has no elements has sums only."""
    draw = block.draw
    x = block.tensor(FLOATS, lambda v: v.known and len(v.shape) > 0)
    if x is None:
        return
    kinds = ["ReduceSum", *["ReduceLogSumExp"] * 4, "ReduceLogSum", "ReduceL1", "ReduceSumSquare",
             "ReduceL2", "ReduceProd"]  # fmt: skip
    kinds += [] if 0 in x.shape else ["ReduceMax", "ReduceMin", "ReduceMean"]
    kind = draw.pick(kinds)
    axes = sorted({int(draw.rng.integers(len(x.shape))) for _ in range(2)})
    keep = int(draw.chance(0.5))
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)] if keep else [
        n for d, n in enumerate(x.shape) if d not in axes]  # fmt: skip
    if draw.chance(0.3):
        axes = [a - len(x.shape) for a in axes] if block.opset >= 11 else axes
    name = block.emit("Sigmoid", [x.name])[0] if kind == "ReduceLogSum" else x.name  # sums that are far from zero
    like = Value("", x.element, tuple(shape))
    if block.opset >= (13 if kind == "ReduceSum" else 18):
        block.small(kind, [name, block.integers(*axes)], like, keepdims=keep)
    else:
        block.small(kind, [name], like, axes=axes, keepdims=keep)


def repeated(block: Block) -> None:
    """Many copies of a value, which operations read where the one is, down to its own size again."""
    x = block.tensor(FLOATS, lambda v: v.known and 0 not in v.shape)
    if x is None:
        return
    many = block.draw.pick([3, 200])
    (wide,) = block.emit("Expand", [x.name, block.integers(many, *x.shape)])
    if block.draw.chance(0.5):
        (wide,) = block.emit("Sub", [wide, x.name])
    (wide,) = block.emit(block.draw.pick(["Tanh", "Abs", "Neg"]), [wide])
    if block.opset >= 18:
        block.small("ReduceMax", [wide, block.integers(0)], x, keepdims=0)
    else:
        block.small("ReduceMax", [wide], x, keepdims=0, axes=[0])


def softmax(block: Block) -> None:
    """Along the last axis, which all versions agree on."""
    if x := block.tensor(FLOATS, lambda v: v.known and len(v.shape) > 0 and 0 not in v.shape):
        block.small(block.draw.pick(["Softmax", "LogSoftmax"]), [x.name], x, axis=len(x.shape) - 1)


def size(block: Block) -> None:
    """Sizes known only at run time become integers."""
    if x := block.tensor(ANY):
        if block.draw.chance(0.5) or x.shape is None:
            block.add("Size", [x.name], Value("", INT64, ()))
        else:
            block.add("Shape", [x.name], Value("", INT64, (len(x.shape),)))


def rearranged(block: Block) -> None:
    x = block.tensor(ANY, lambda v: v.shape is not None)
    if x is None:
        return
    kind = block.draw.rng.integers(4)
    if kind == 0 and len(x.shape) == 2:
        block.add("Transpose", [x.name], Value("", x.element, x.shape[::-1]))
    elif kind == 1 and x.known:
        flat = (int(np.prod(x.shape)),)
        block.add("Reshape", [x.name, block.integers(-1)], Value("", x.element, flat))
    elif kind == 2 and len(x.shape) < 3:
        axis = int(block.draw.rng.integers(len(x.shape) + 1))
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        unsqueeze(block, x, axis, Value("", x.element, shape))
    elif x.shape and x.shape[0] == 1:
        like = Value("", x.element, x.shape[1:])
        if block.opset >= 13:
            block.add("Squeeze", [x.name, block.integers(0)], like)
        else:
            block.add("Squeeze", [x.name], like, axes=[0])


def unsqueeze(block: Block, x: Value, axis: int, like: Value) -> Value:
    if block.opset >= 13:
        return block.add("Unsqueeze", [x.name, block.integers(axis)], like)
    return block.add("Unsqueeze", [x.name], like, axes=[axis])


def joined(block: Block) -> None:
    x = block.tensor(ANY, lambda v: v.shape is not None and len(v.shape) > 0)
    if x is None:
        return
    y = block.tensor((x.element,), lambda v: v.shape is not None and len(v.shape) == len(x.shape)
                     and v.shape[1:] == x.shape[1:] and (None not in x.shape[1:] or v.name == x.name))  # fmt: skip
    rows = None if x.shape[0] is None or y.shape[0] is None else x.shape[0] + y.shape[0]
    if rows is None or rows <= 6 * block.draw.rows:
        block.add("Concat", [x.name, y.name], Value("", x.element, (rows, *x.shape[1:])), axis=0)


def part(block: Block) -> None:
    x = block.tensor(ANY, lambda v: v.shape is not None and len(v.shape) > 0)
    if x is None or (x.element == STRING and block.opset < 13):
        return
    start, stop = block.draw.pick([(0, 2), (1, 9), (-1, 9), (0, 0), (1, 2)])
    rows = None if x.shape[0] is None else len(range(x.shape[0])[start:stop])
    like = Value("", x.element, (rows, *x.shape[1:]))
    if block.opset >= 10:
        block.add("Slice", [x.name, block.integers(start), block.integers(stop)], like)
    else:
        block.add("Slice", [x.name], like, starts=[start], ends=[stop])


def gathered(block: Block) -> None:
    """A row by an index computed from an integer: in range whatever the integer is."""
    x = block.tensor(ANY, lambda v: v.shape is not None and len(v.shape) > 0 and (v.shape[0] or 0) > 0)
    i = block.tensor((INT64,), lambda v: v.shape == ())
    if x and i:
        (index,) = block.emit("Mod", [i.name, block.number(x.shape[0])])
        block.add("Gather", [x.name, index], Value("", x.element, x.shape[1:]), axis=0)


def chosen(block: Block) -> None:
    if x := block.tensor((*FLOATS, INT64, STRING), lambda v: v.known):
        y = block.tensor((x.element,), lambda v: v.shape == x.shape)
        found = block.tensor((BOOL,), lambda v: v.shape == ())
        if found:
            block.add("Where", [found.name, x.name, y.name], x)


def product(block: Block) -> None:
    width = block.draw.width
    if x := block.tensor((FLOAT, DOUBLE), lambda v: v.shape is not None and v.shape[-1:] == (width,)):
        weights = block.weights(x.element, width, width)
        if x.known and len(x.shape) == 2 and block.draw.chance(0.4):
            bias = block.weights(x.element, width)
            options = {"alpha": 0.5, "beta": -0.5, "transB": 1} if block.draw.chance(0.5) else {}
            block.small("Gemm", [x.name, weights.name, bias.name], x, **options)
        else:
            block.small("MatMul", [x.name, weights.name], x)


def vectors(block: Block) -> None:
    """Products with a vector, and of two."""
    x = block.tensor((FLOAT, DOUBLE), lambda v: v.known and len(v.shape) in (1, 2) and 0 not in v.shape)
    if x is None:
        return
    n = x.shape[-1]
    y = block.tensor((x.element,), lambda v: v.shape == (n,)) or block.weights(x.element, n)
    if len(x.shape) == 1 and block.draw.chance(0.4):
        column, row = Value("", x.element, (n, 1)), Value("", x.element, (1, n))
        names = [unsqueeze(block, x, 1, column).name, unsqueeze(block, y, 0, row).name]
        block.small("MatMul", names, Value("", x.element, (n, n)))
    else:
        block.small("MatMul", [x.name, y.name], Value("", x.element, x.shape[:-1]))


def column(block: Block) -> None:
    """A product of a matrix and one column; loops compute it as a sum of products."""
    x = block.tensor((FLOAT, DOUBLE, HALF), lambda v: v.known and len(v.shape) == 2 and 0 not in v.shape)
    if x is None:
        return
    rows, n = x.shape
    times = block.draw.pick([1, 2, 3, 6, 11, 21]) if n < 4 else 1
    if times > 1:
        x = block.add("Concat", [x.name] * times, Value("", x.element, (rows, times * n)), axis=1)
    y = block.weights(x.element, times * n, 1)
    block.small("MatMul", [x.name, y.name], Value("", x.element, (rows, 1)))


def einsum(block: Block) -> None:
    x = block.tensor((FLOAT, DOUBLE), lambda v: v.known and len(v.shape) in (1, 2) and 0 not in v.shape)
    if x is None:
        return
    sizes = dict(zip("ij", x.shape, strict=False)) | {"k": 2}
    equation = block.draw.pick(
        ["i,i->i", "i,i->", "i,i", "i,k->ik", "i,k->ki", "i->"] if len(x.shape) == 1 else
        ["ij,kj->ik", "ij,jk->ik", "ij,jk->ki", "ij,j->i", "ij,ij->j", "ij,i->ij", "ij->ji", "ij->j", "ij,ij->"]
    )  # fmt: skip
    terms, _, result = equation.partition("->")
    others = [block.weights(x.element, *[sizes[c] for c in term]).name for term in terms.split(",")[1:]]
    shape = tuple(sizes[c] for c in result)
    block.small("Einsum", [x.name, *others], Value("", x.element, shape), equation=equation)


def sequence(block: Block) -> None:
    kind = block.draw.rng.integers(9)
    q = block.some(lambda v: v.kind == "sequence")
    if q is None or kind == 0:
        x = block.tensor(IN_SEQUENCES)
        if block.draw.chance(0.5):
            block.add("SequenceConstruct", [x.name], Value("", x.element, x.shape, "sequence", 1))
        else:
            block.add("SequenceEmpty", [], Value("", x.element, x.shape, "sequence", 0), dtype=x.element)
    elif kind <= 2:
        x = block.tensor((q.element,), lambda v: v.shape == q.shape) or block.tensor((q.element,))
        if x is not None:
            shape = q.shape if x.shape == q.shape else None
            where = [block.number(block.draw.pick([0, q.least]))] if block.draw.chance(0.3) else []
            made = Value("", q.element, shape, "sequence", q.least + 1)
            block.add("SequenceInsert", [q.name, x.name, *where], made)
    elif kind == 3:
        block.add("SequenceLength", [q.name], Value("", INT64, ()))
    elif kind in (4, 8) and q.least > 0:
        where = block.number(block.draw.pick([0, -1, q.least - 1, -q.least]))
        if i := block.tensor((INT64,), lambda v: v.shape == () and kind == 8 and block.opset >= 10):
            (length,) = block.emit("SequenceLength", [q.name])
            (where,) = block.emit("Mod", [i.name, length])
        block.add("SequenceAt", [q.name, where], Value("", q.element, q.shape))
    elif kind == 5 and q.least > 0:
        where = [block.number(block.draw.pick([0, -1]))] if block.draw.chance(0.6) else []
        made = Value("", q.element, q.shape, "sequence", q.least - 1)
        block.add("SequenceErase", [q.name, *where], made)
    elif kind == 6 and q.least > 0 and q.shape and None not in q.shape[1:]:
        block.add("ConcatFromSequence", [q.name], Value("", q.element, (None, *q.shape[1:])), axis=0)
    elif kind == 7:
        x = block.tensor((FLOAT, INT64), lambda v: v.shape is not None and len(v.shape) > 1 and (v.shape[0] or 0) > 0)
        if x is not None:
            made = Value("", x.element, (1, *x.shape[1:]), "sequence", x.shape[0])
            block.add("SplitToSequence", [x.name], made, axis=0)


def optional(block: Block) -> None:
    o = block.some(lambda v: v.kind == "optional")
    kind = block.draw.rng.integers(4)
    if o is None or kind == 0:
        x = block.tensor((FLOAT, INT64))
        if block.draw.chance(0.6):
            block.add("Optional", [x.name], Value("", x.element, x.shape, "optional", 1))
        else:
            kind = onnx.helper.make_tensor_type_proto(x.element, None)
            block.add("Optional", [], Value("", x.element, x.shape, "optional", 0), type=kind)
    elif kind <= 2:
        block.add("OptionalHasElement", [o.name], Value("", BOOL, ()))
    elif o.least:
        block.add("OptionalGetElement", [o.name], Value("", o.element, o.shape))


def recurrent(block: Block) -> None:
    """RNN, LSTM or GRU over the rows of a float matrix."""
    draw, hidden = block.draw, 2
    width = draw.width
    x = block.tensor((FLOAT,), lambda v: v.shape is not None and len(v.shape) == 2 and v.shape[1] == width)
    if x is None:
        return
    op, gates = draw.pick([("RNN", 1), ("LSTM", 4), ("GRU", 3)])
    direction = draw.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    lifted = unsqueeze(block, x, 1, Value("", FLOAT, (x.shape[0], 1, width)))
    inputs = [lifted.name, block.weights(FLOAT, ways, gates * hidden, width).name,
              block.weights(FLOAT, ways, gates * hidden, hidden).name]  # fmt: skip
    if draw.chance(0.5):
        inputs.append(block.weights(FLOAT, ways, 2 * gates * hidden).name)
    extra = {"linear_before_reset": 1} if op == "GRU" and draw.chance(0.5) else {}
    y, h, *_ = block.emit(op, inputs, 3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction, **extra)
    block.scope.append(Value(y, FLOAT, (x.shape[0], ways, 1, hidden)))
    block.scope.append(Value(h, FLOAT, (ways, 1, hidden)))


def call(block: Block) -> None:
    if block.functions:
        function = block.draw.pick(block.functions)
        x = block.like(function.argument) or block.fresh(FLOAT, *function.argument.shape)
        given = {
            "alpha": float(np.float32(block.draw.rng.uniform(0, 0.5))),
            "iterations": int(block.draw.rng.integers(0, 4)),
        }
        block.add(function.name, [x.name], function.result, domain=LOCAL, **given)


# (statement, first opset, weight, whether it holds bodies)
STRAIGHT = [
    (float_pair, 7, 4, False),
    (float_single, 7, 2, False),
    (smooth, 7, 1, False),
    (many, 8, 1, False),
    (clipped, 7, 1.2, False),
    (special, 9, 0.5, False),
    (reduced, 7, 2, False),
    (softmax, 7, 0.5, False),
    (repeated, 8, 0.7, False),
    (vectors, 7, 0.6, False),
    (column, 7, 0.6, False),
    (einsum, 12, 0.7, False),
    (leaky, 7, 1, False),
    (int_pair, 7, 2, False),
    (int_single, 7, 2, False),
    (comparison, 7, 1.5, False),
    (logic, 7, 1, False),
    (cast, 7, 1, False),
    (narrow_pair, 14, 3, False),
    (narrow_single, 14, 2, False),
    (narrow_choice, 11, 1.5, False),
    (table, 11, 1, False),
    (narrow_extreme, 12, 0.5, False),
    (brain, 16, 1.5, False),
    (total, 7, 1, False),
    (size, 7, 0.7, False),
    (rearranged, 7, 1.5, False),
    (joined, 7, 0.7, False),
    (part, 7, 0.7, False),
    (gathered, 10, 1, False),
    (chosen, 9, 0.7, False),
    (product, 7, 0.7, False),
    (sequence, 11, 3, False),
    (optional, 15, 1.2, False),
    (recurrent, 7, 0.4, False),
    (call, 8, 1, False),
    (stencil, 7, 1, False),
    (pairs, 7, 1, False),
    *CHANGING,
    *CHANCE,
    *WORDS,
]

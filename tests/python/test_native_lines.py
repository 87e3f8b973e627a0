"""Values that loops make and reduce at once, and operands that they read in place (shifted, in strides, from behind a
border): native code gives the bits of the program tier and the values of numpy.
"""

import numpy as np
import pytest
from test_native import run_all, session
from test_native_tensors import feeds, scan

LINES = ((200, 3), (3, 200), (16, 37), (1, 700), (5, 512), (2, 1300), (64, 80), (700, 1), (23, 40))
KINDS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")
FLOATS, INTEGERS = ("float", "double"), ("int32", "int64", "uint32", "uint64")


def agrees(text, given, expected, tolerance=2e-5):
    ours = run_all(text, given)[1:]
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(b)))))


def pair(dtype, rows, columns):
    return [("a", dtype, (rows, 1)), ("b", dtype, (1, columns))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_pairs_are_reduced(kind, dtype):
    """Reductions of all numbers, infinities and NaNs included."""
    if kind == "ReduceL2" and dtype in INTEGERS:
        return
    opset = 18
    for rows, columns in LINES:
        for axis, rest in ((0, (columns,)), (1, (rows,))):
            body = f"""d = Sub(a, b)
            e = Mul(d, d)
            axes = Constant <value = int64[1] {{{axis}}}> ()
            y = {kind} <keepdims = 0> (e, axes)"""
            inputs = pair(dtype, rows, columns)
            run_all(scan(body, inputs, [("y", dtype, rest)], opset=opset), feeds(inputs))


@pytest.mark.parametrize("shape", LINES)
def test_pairs_are_counted(shape):
    """Comparisons, as integers of any width and as floats."""
    rows, columns = shape
    inputs = pair("float", rows, columns)
    given = feeds(inputs, plain=True)
    less = given["as"] < given["bs"]
    for axis, rest in ((0, (columns,)), (1, (rows,))):
        expected = less.sum(axis + 1)
        for to, dtype in ((7, "int64"), (6, "int32"), (1, "float"), (12, "uint32")):
            body = f"""less = Less(a, b)
            n = Cast <to = {to}> (less)
            axes = Constant <value = int64[1] {{{axis}}}> ()
            y = ReduceSum <keepdims = 0> (n, axes)"""
            agrees(scan(body, inputs, [("y", dtype, rest)], opset=18), given, [expected])


def test_two_sums_of_one_group():
    """Reductions of two values, one of which is also a result."""
    inputs = pair("float", 40, 33)
    given = feeds(inputs, plain=True)
    body = """far = Sub(a, b)
    z = Exp(far)
    weighted = Mul(z, b)
    axes = Constant <value = int64[1] {1}> ()
    y = ReduceSum <keepdims = 0> (z, axes)
    w = ReduceSum <keepdims = 0> (weighted, axes)
    top = ReduceMax <keepdims = 0> (z, axes)
    one_axis = Constant <value = int64[1] {0}> ()
    down = ReduceSum <keepdims = 0> (weighted, one_axis)"""
    outputs = [("y", "float", (40,)), ("w", "float", (40,)), ("top", "float", (40,)), ("down", "float", (33,))]
    outputs += [("z", "float", (40, 33))]
    z = np.exp(given["as"] - given["bs"])
    weighted = z * given["bs"]
    expected = [z.sum(2), weighted.sum(2), z.max(2), weighted.sum(1), z]
    text = scan(body, inputs, outputs, opset=18)
    agrees(text, given, expected)
    native = session(text, jit="always")
    native.run(None, given)
    (loop,) = native.explain(given, json=True)["loops"]
    assert loop["tier"] == "native"
    assert [call["op"] if isinstance(call, dict) else call for call in loop["calls"]] in ([], ["ReduceSum"])


def test_a_softmax_by_hand():
    """The reduced values are needed again once the sum is known."""
    inputs = [("x", "float", (30, 70))]
    given = feeds(inputs, plain=True)
    body = """axes = Constant <value = int64[1] {1}> ()
    twice = Add(x, x)
    top = ReduceMax(twice, axes)
    shifted = Sub(twice, top)
    e = Exp(shifted)
    sum = ReduceSum(e, axes)
    y = Div(e, sum)"""
    x = 2 * given["xs"]
    e = np.exp(x - x.max(2, keepdims=True))
    agrees(scan(body, inputs, [("y", "float", (30, 70))], opset=18), given, [e / e.sum(2, keepdims=True)])


SLICES = (
    ((20, 30), [0, 0], [20, 28], [1, 1]), ((20, 30), [1, 2], [19, 30], [1, 1]), ((20, 30), [0, 1], [20, 30], [2, 2]),
    ((20, 30), [-1, -1], [-99, -99], [-1, -1]), ((20, 30), [19, 3], [-99, 28], [-1, 3]), ((700,), [3], [690], [1]),
    ((700,), [699], [-999], [-3]), ((4, 9, 20), [1, 0, 2], [4, 9, 19], [1, 2, 1]),
)  # fmt: skip


def integers(name, values):
    return f"{name} = Constant <value = int64[{len(values)}] {{{', '.join(map(str, values))}}}> ()"


@pytest.mark.parametrize("case", range(len(SLICES)))
def test_slices_are_read_where_they_come_from(case):
    shape, starts, ends, steps = SLICES[case]
    cuts = tuple(slice(s, None if e <= -99 else e, k) for s, e, k in zip(starts, ends, steps, strict=True))
    for dtype in ("float", "double", "int32", "int64"):
        inputs = [("x", dtype, shape)]
        given = feeds(inputs, plain=True)
        expected = given["xs"][(slice(None), *cuts)] * 2
        expected = expected * 3
        body = f"""{integers("from", starts)}
        {integers("to", ends)}
        {integers("axes", list(range(len(shape))))}
        {integers("steps", steps)}
        twice = Add(x, x)
        part = Slice(twice, from, to, axes, steps)
        again = Add(part, part)
        y = Add(again, part)"""
        text = scan(body, inputs, [("y", dtype, expected.shape[1:])])
        agrees(text, given, [expected])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("shape", [(20, 30), (1, 300), (170, 3), (900,), (5, 9, 11)])
def test_stencils(mode, shape):
    """Pad, then all shifts of it by one."""
    pads = [1 if n > 1 else 0 for n in shape]
    kinds = ("float", "int64", "bool")
    for dtype in kinds:
        inputs = [("x", dtype, shape)]
        given = feeds(inputs, plain=True)
        around = np.pad(given["xs"], [(0, 0), *((p, p) for p in pads)], mode=mode)
        text, sums = "", []
        for k, shift in enumerate([[0] * len(shape), [2 * p for p in pads], pads]):
            ends = [s + n for s, n in zip(shift, shape, strict=True)]
            text += f"{integers(f'from{k}', shift)}\n{integers(f'to{k}', ends)}\np{k} = Slice(around, from{k}, to{k})\n"
            sums.append(around[(slice(None), *(slice(s, e) for s, e in zip(shift, ends, strict=True)))])
        add, plus = ("Or", np.logical_or) if dtype == "bool" else ("Add", np.add)
        body = f"""{integers("pads", pads * 2)}
        same = Identity(x)
        around = Pad <mode = "{mode}"> (same, pads)
        {text}
        two = {add}(p0, p1)
        y = {add}(two, p2)"""
        agrees(scan(body, inputs, [("y", dtype, shape)]), given, [plus(plus(sums[0], sums[1]), sums[2])])


def test_rolled_grids():
    """Concat of Slices, along either axis; a Slice is needed as it is, too."""
    inputs = [("x", "float", (20, 30))]
    given = feeds(inputs, plain=True)
    x = given["xs"] * 2
    for axis, n in ((0, 20), (1, 30)):
        body = f"""{integers("zero", [0])}
        {integers("at", [7])}
        {integers("all", [n])}
        {integers("axis", [axis])}
        twice = Add(x, x)
        low = Slice(twice, zero, at, axis)
        high = Slice(twice, at, all, axis)
        rolled = Concat <axis = {axis}> (high, low)
        y = Sub(rolled, twice)
        z = Identity(high)"""
        rolled = np.roll(x, -7, axis + 1)
        rest = x[:, 7:] if axis == 0 else x[:, :, 7:]
        outputs = [("y", "float", (20, 30)), ("z", "float", rest.shape[1:])]
        agrees(scan(body, inputs, outputs), given, [rolled - x, rest])


def test_a_group_does_not_wait_for_itself():
    """A transposed operand of the group that makes it; and a sum that the next nodes need."""
    inputs = [("x", "float", (4, 16, 16))]
    given = feeds(inputs, plain=True)
    body = f"""{integers("axes", [2])}
    a = Add(x, x)
    t = Transpose <perm = [1, 0, 2]> (a)
    back = Transpose <perm = [1, 0, 2]> (t)
    s = ReduceSum <keepdims = 1> (a, axes)
    b = Sub(a, s)
    y = Mul(b, back)"""
    a = given["xs"] * 2
    expected = (a - a.sum(3, keepdims=True)) * a
    agrees(scan(body, inputs, [("y", "float", (4, 16, 16))], opset=18), given, [expected], tolerance=1e-4)

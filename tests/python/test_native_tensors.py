"""Native loops over small tensors: broadcasting, reductions, products and moves have the bits of the program tier."""

import numpy as np
import pytest
from test_native import DTYPES, FLOATS, INTEGERS, interesting, run_all, session

NUMBERS = FLOATS + INTEGERS


def text_of(shape):
    return ",".join(str(d) for d in shape)


def dims(shape):
    return f"[{text_of(shape)}]" if shape else ""


def scan(body, inputs, outputs, iterations=4, opset=22, constants=""):
    """A Scan over slices of the inputs; inputs and outputs are (name, type, shape of a slice)."""

    def declared(values, suffix="", leading=()):
        return ", ".join(f"{t}{dims(leading + s)} {n}{suffix}" for n, t, s in values)

    names = ", ".join(f"{n}s" for n, _, _ in inputs)
    results = ", ".join(f"{n}s" for n, _, _ in outputs)
    return f"""<ir_version: 10, opset_import: ["" : {opset}]>
    g (float[1] start, {declared(inputs, "s", (iterations,))}) => (float[1] last, {declared(outputs, "s", (iterations,))}) {{
      last, {results} = Scan <num_scan_inputs = {len(inputs)}, body = b (float[1] state, {declared(inputs)})
          => (float[1] next, {declared(outputs)}) {{
        one = Constant <value = float[1] {{1}}> ()
        next = Add(state, one)
        {constants}
        {body}
      }}> (start, {names})
    }}"""


def feeds(inputs, iterations=4, plain=False):
    result = {"start": np.zeros(1, np.float32)}
    for seed, (name, dtype, shape) in enumerate(inputs):
        x = interesting(DTYPES[dtype], (iterations, *shape), seed)
        if plain and dtype in FLOATS:
            x = np.random.default_rng(seed).standard_normal((iterations, *shape)).astype(DTYPES[dtype])
        result[f"{name}s"] = x
    return result


def check(body, inputs, outputs, plain=False, **options):
    run_all(scan(body, inputs, outputs, **options), feeds(inputs, plain=plain))


SHAPES = (
    ((7, 1), (1, 5)), ((96, 16), (96, 1)), ((96, 16), (16,)), ((40, 3), (3,)), ((40, 3), (40, 1)), ((5, 1, 7), (1, 6, 1)),
    ((2, 300), (300,)), ((33, 2), (33, 1)), ((1,), (9, 50)), ((3, 1, 70), (3, 5, 1)), ((19, 20), (20,)), ((257, 2), (2,)),
    ((4, 1, 3, 1), (1, 5, 1, 11)), ((6, 70), (1, 1)),
)  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcasting(shapes):
    out = np.broadcast_shapes(*shapes)
    for dtype in ("float", "double", "int32", "int64"):
        inputs = [("x", dtype, shapes[0]), ("y", dtype, shapes[1])]
        body = "s = Add(x, y)\n p = Mul(s, x)\n z = Sub(p, y)\n c = Less(x, y)\n w = Where(c, z, s)"
        check(body, inputs, [("z", dtype, out), ("c", "bool", out), ("w", dtype, out)])
    inputs = [("x", "float", shapes[0]), ("y", "float", shapes[1])]
    check("s = Mul(x, y)\n e = Exp(s)\n z = Tanh(e)", inputs, [("z", "float", out)])


def test_groups_over_unlike_shapes_of_as_many_elements():
    body = """shape = Constant <value = int64[2] {20, 8}> ()
        a = Add(x, y)
        b = Reshape(a, shape)
        z = Mul(b, w)"""
    check(body, [("x", "float", (4, 40)), ("y", "float", (40,)), ("w", "float", (20, 1))], [("z", "float", (20, 8))])


REDUCED = (
    ((5,), (0,)), ((16,), (0,)), ((100,), (0,)), ((7, 3), (1,)), ((7, 3), (0,)), ((4, 16), (1,)), ((3, 33), (1,)),
    ((2, 3, 4), (0, 2)), ((2, 3, 4), (1,)), ((96, 16), (1,)), ((513,), (0,)), ((70, 5), (1,)), ((31, 21), (1,)), ((1, 1), (0, 1)),
    ((16, 16), (0,)), ((8, 40), (0,)), ((2, 50, 3), (1,)), ((600, 2), (0,)), ((24, 100), (0,)), ((3, 20, 70), (1,)),
)  # fmt: skip


@pytest.mark.parametrize("op", ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"))
def test_reductions(op):
    for shape, axes in REDUCED:
        kept = tuple(d for i, d in enumerate(shape) if i not in axes)
        constants = f"axes = Constant <value = int64[{len(axes)}] {{{text_of(axes)}}}> ()"
        for dtype in NUMBERS:
            body = f"y = Reduce{op} <keepdims = 0> (x, axes)"
            for plain in (False, True):
                check(body, [("x", dtype, shape)], [("y", dtype, kept)], plain, constants=constants)


def test_a_reduction_of_a_product():
    body = "p = Mul(x, c)\n q = Add(p, d)\n y = ReduceSum <keepdims = 0> (q, axes)"
    constants = "axes = Constant <value = int64[1] {1}> ()"
    for rows, n in ((96, 16), (10, 3), (33, 20), (5, 64), (130, 8), (3, 100)):
        for extra in ((("y", "float", (rows,)),), (("y", "float", (rows,)), ("q", "float", (rows, n)))):
            inputs = [("x", "float", (rows, n)), ("c", "float", (n,)), ("d", "float", (rows, 1))]
            check(body, inputs, list(extra), True, constants=constants)
            check(body, inputs, list(extra), constants=constants)


@pytest.mark.parametrize("op", ("ArgMax", "ArgMin"))
@pytest.mark.parametrize("last", (0, 1))
def test_places_of_extremes(op, last):
    for shape, axis in (
        ((9,), 0),
        ((64,), 0),
        ((3, 33), 1),
        ((5, 8), 1),
        ((5, 8), 0),
        ((64, 8), 1),
        ((40, 30), 1),
        ((2, 7, 3), 1),
        ((16, 16), 0),
        ((3, 20, 70), 1),
    ):
        kept = shape[:axis] + shape[axis + 1 :]
        body = f"y = {op} <axis = {axis}, keepdims = 0, select_last_index = {last}> (x)"
        for dtype in NUMBERS:
            check(body, [("x", dtype, shape)], [("y", "int64", kept)])


PRODUCTS = (
    ((4, 4), (4, 4)), ((4, 4), (4, 1)), ((1, 4), (4, 2)), ((3,), (3,)), ((7,), (7, 5)), ((5, 7), (7,)), ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 2)), ((1, 20), (20, 1)), ((2, 70), (70, 1)), ((6, 1), (1, 6)), ((3, 17), (17, 3)), ((8, 8), (8, 16)),
    ((3, 1, 2, 5), (4, 5, 2)),
)  # fmt: skip


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products(shapes):
    out = np.matmul(np.zeros(shapes[0]), np.zeros(shapes[1])).shape
    for dtype in NUMBERS:
        inputs = [("a", dtype, shapes[0]), ("b", dtype, shapes[1])]
        for plain in (False, True):
            check("y = MatMul(a, b)", inputs, [("y", dtype, out)], plain)
    tiny = {"start": np.zeros(1, np.float32)}
    for name, shape in zip("ab", shapes, strict=True):
        tiny[f"{name}s"] = np.full((4, *shape), -1e-30 if name == "a" else 1e-30, np.float32)
    inputs = [("a", "float", shapes[0]), ("b", "float", shapes[1])]
    run_all(scan("y = MatMul(a, b)", inputs, [("y", "float", out)]), tiny)  # products that round to -0


def test_gemm():
    for bias in ((), (1,), (5,), (4, 1), (4, 5)):
        for alpha, beta in ((1, 1), (0.5, 2), (1, 0)):
            for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)):
                a, b = (3, 4) if ta else (4, 3), (5, 3) if tb else (3, 5)
                body = (
                    f"y = Gemm <alpha = {float(alpha)}, beta = {float(beta)}, transA = {ta}, transB = {tb}> (a, b, c)"
                )
                inputs = [("a", "float", a), ("b", "float", b), ("c", "float", bias)]
                check(body, inputs, [("y", "float", (4, 5))], True)


MOVES = (
    ("y = Transpose <perm = [1, 0]> (x)", (5, 7), (7, 5)),
    ("y = Transpose <perm = [2, 0, 1]> (x)", (3, 4, 5), (5, 3, 4)),
    ("y = Concat <axis = 1> (x, one_row)", (3, 2), (3, 4)),
    ("y = Slice(x, from, to, axis, by)", (9, 2), (3, 2)),
    ("y = Expand(x, wide)", (1, 6), (4, 6)),
    ("y = Tile(x, twice)", (3, 3), (6, 6)),
    ("y = Pad(x, pads)", (3, 2), (5, 4)),
    ('y = Pad <mode = "reflect"> (x, pads)', (3, 2), (5, 4)),
    ("y = Gather <axis = 1> (x, picked)", (4, 4), (4, 3)),
    ("y = Trilu(x)", (5, 5), (5, 5)),
    ("y = DepthToSpace <blocksize = 2> (x)", (1, 8, 2, 3), (1, 2, 4, 6)),
    ("y = Transpose <perm = [1, 0]> (x)", (20, 40), (40, 20)),
)


@pytest.mark.parametrize("case", range(len(MOVES)))
def test_moves(case):
    body, shape, out = MOVES[case]
    values = {
        "from": "int64[1] {7}", "to": "int64[1] {0}", "axis": "int64[1] {0}", "by": "int64[1] {-3}", "wide": "int64[2] {4, 6}",
        "twice": "int64[2] {2, 2}", "pads": "int64[4] {1, 1, 1, 1}", "picked": "int64[3] {3, -4, 1}",
    }  # fmt: skip
    constants = "\n".join(f"{name} = Constant <value = {value}> ()" for name, value in values.items() if name in body)
    for dtype in DTYPES:
        inputs = [("x", dtype, shape)]
        if "one_row" in body:
            inputs.append(("one_row", dtype, (3, 2)))
        check(body, inputs, [("y", dtype, out)], constants=constants)


def test_split():
    body = "a, b, c = Split <axis = 1, num_outputs = 3> (x)\n y = Add(a, b)"
    check(body, [("x", "float", (4, 6))], [("y", "float", (4, 2)), ("c", "float", (4, 2))])


LONG_MOVES = (
    ("a, b, c, d = Split <axis = 1, num_outputs = 4> (s)\n e = Mul(a, d)\n y = Add(e, c)", (1, 256), (1, 64)),
    ("a, b, c = Split <axis = 0, num_outputs = 3> (s)\n y = Sub(c, a)", (3, 300), (1, 300)),
    ("a = Slice(s, from, to, axis)\n y = Neg(a)", (1, 700), (1, 333)),
    ("y = Concat <axis = 0> (s, s)", (200,), (400,)),
    ("y = Concat <axis = 0> (s, x, s)", (37,), (111,)),
    ("a, b = Split <axis = 1, num_outputs = 2> (s)\n y = Concat <axis = 1> (b, a)", (1, 500), (1, 500)),
    ("a, b = Split <axis = 1, num_outputs = 2> (s)\n y = Add(a, b)", (9, 34), (9, 17)),
    ("y = Transpose <perm = [1, 0]> (s)", (20, 40), (40, 20)),
)


@pytest.mark.parametrize("case", range(len(LONG_MOVES)))
def test_long_moves(case):
    body, shape, out = LONG_MOVES[case]
    values = {"from": "int64[1] {9}", "to": "int64[1] {342}", "axis": "int64[1] {1}"}
    constants = "\n".join(f"{name} = Constant <value = {value}> ()" for name, value in values.items() if name in body)
    for dtype in NUMBERS:
        if "Neg" in body and dtype.startswith("uint"):
            continue
        check(f"s = Add(x, x)\n{body}", [("x", dtype, shape)], [("y", dtype, out)], constants=constants)


def test_pieces_of_rows_are_no_calls():
    body, shape, out = LONG_MOVES[0]
    inputs = [("x", "float", shape)]
    native = session(scan(f"s = Add(x, x)\n{body}", inputs, [("y", "float", out)]), jit="always")
    native.run(None, feeds(inputs))
    (loop,) = native.explain(feeds(inputs), json=True)["loops"]
    assert loop["tier"] == "native"
    assert loop["calls"] == []


def test_clip():
    for dtype in ("float", "double", "int32", "int64", "uint32", "uint64"):
        for shape in ((9,), (300,)):
            inputs = [("x", dtype, shape), ("low", dtype, ()), ("high", dtype, ())]
            check("y = Clip(x, low, high)", inputs, [("y", dtype, shape)])
            check("y = Clip(x, low)", inputs, [("y", dtype, shape)])
            check("y = Clip(x, , high)", inputs, [("y", dtype, shape)])


def test_a_state_that_products_and_moves_work_on():
    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (float[4,4] P0, float[20,4,1] zs) => (float[4,4] P, float[20,4,4] all) {
      P, all = Scan <num_scan_inputs = 1, body = b (float[4,4] p, float[4,1] z) => (float[4,4] q, float[4,4] o) {
        half = Constant <value = float {0.25}> ()
        t = Transpose <perm = [1, 0]> (p)
        s = MatMul(p, t)
        zt = Transpose <perm = [1, 0]> (z)
        zz = MatMul(z, zt)
        sum = Add(s, zz)
        m = ReduceMax <keepdims = 1> (sum)
        n = Div(sum, m)
        q = Mul(n, half)
        o = Sub(q, p)
      }> (P0, zs)
    }"""
    rng = np.random.default_rng(0)
    run_all(text, {"P0": np.eye(4, dtype=np.float32), "zs": rng.standard_normal((20, 4, 1)).astype(np.float32)})

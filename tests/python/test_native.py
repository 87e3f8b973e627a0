"""Loops as native code: their results are those of the program tier, to the last bit."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

FLOATS = ("float", "double")
INTEGERS = ("int32", "int64", "uint32", "uint64")
DTYPES = {
    "float": np.float32, "double": np.float64, "bool": np.bool_,
    "int32": np.int32, "int64": np.int64, "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
COUNTS = (
    1,
    3,
    16,
    21,
    128,
    155,
    200,
    1000,
)  # elements: less than a vector, whole ones and rest, written out and in a loop
UNARY_FLOAT = (
    "Abs Neg Sign Ceil Floor Round Sqrt Reciprocal Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf "
    "Sigmoid Relu LeakyRelu Elu Selu Celu Softplus Softsign HardSigmoid HardSwish ThresholdedRelu Shrink Mish Gelu IsNaN IsInf"
).split()
FLOAT_ONLY_32 = ("Celu",)
UNARY_INTEGER = ("Abs", "Neg", "Sign", "Relu", "Shrink", "BitwiseNot")
BINARY_NUMBER = ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "PRelu", "Equal", "Less", "Greater", "LessOrEqual")
BINARY_NUMBER += ("GreaterOrEqual", "Mod")
BINARY_INTEGER = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
BINARY_BOOL = ("And", "Or", "Xor", "Equal")


def session(text, **entries):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", str(value))
    return treadle.InferenceSession(text.encode(), options)


def assert_same_bits(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(a, b)
            assert not np.any((np.signbit(a) != np.signbit(b)) & ~np.isnan(b))
        else:
            np.testing.assert_array_equal(a, b)


def run_all(text, feeds, compilations=1):
    """The results, which are those of every way to run the loop."""
    expected = session(text, jit="off").run(None, feeds)
    for iteration in (0, 2):
        native = session(text, jit="always", jit_iteration=iteration)
        assert_same_bits(native.run(None, feeds), expected)
        assert_same_bits(native.run(None, feeds), expected)
        if compilations is not None:
            assert native.counters()["compilations"] == compilations
    return expected


def scan(body, inputs, out_type, iterations, count, opset=22):
    """A Scan whose body maps slices of the inputs to a slice of the output; a counter is carried along."""
    outer = ", ".join(f"{dtype}[{iterations},{count}] {name}s" for name, dtype in inputs)
    inner = ", ".join(f"{dtype}[{count}] {name}" for name, dtype in inputs)
    names = ", ".join(f"{name}s" for name, _ in inputs)
    return f"""<ir_version: 10, opset_import: ["" : {opset}]>
    g (float[1] start, {outer}) => (float[1] last, {out_type}[{iterations},{count}] ys) {{
      last, ys = Scan <num_scan_inputs = {len(inputs)}, body = b (float[1] s, {inner}) => (float[1] t, {out_type}[{count}] y) {{
        one = Constant <value = float[1] {{1}}> ()
        t = Add(s, one)
        {body}
      }}> (start, {names})
    }}"""


def interesting(dtype, shape, seed):
    random = np.random.default_rng(seed)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        x = (random.standard_normal(shape) * 10 ** random.uniform(-3, 2, shape)).astype(dtype)
        special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1e-40, 1e30, -88, 20000], dtype)
        mask = random.random(shape) < 0.3
        return np.where(mask, random.choice(special, shape), x).astype(dtype)
    info = np.iinfo(dtype)
    x = random.integers(-20 if info.min else 0, 20, shape).astype(dtype)
    special = np.array([info.min, info.max, 0, 1, 2], dtype)
    return np.where(random.random(shape) < 0.2, random.choice(special, shape), x).astype(dtype)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("op", UNARY_FLOAT)
def test_unary_of_floats(op, count):
    for dtype in FLOATS:
        if op in FLOAT_ONLY_32 and dtype == "double":
            continue
        out = "bool" if op in ("IsNaN", "IsInf") else dtype
        x = interesting(DTYPES[dtype], (5, count), 1)
        run_all(scan(f"y = {op}(x)", [("x", dtype)], out, 5, count), {"start": np.zeros(1, np.float32), "xs": x})


@pytest.mark.parametrize("op", UNARY_INTEGER)
def test_unary_of_integers(op):
    for dtype in INTEGERS:
        if op in ("Neg", "Relu") and dtype.startswith("u"):
            continue
        for count in (1, 21, 200):
            x = interesting(DTYPES[dtype], (4, count), 2)
            run_all(scan(f"y = {op}(x)", [("x", dtype)], dtype, 4, count), {"start": np.zeros(1, np.float32), "xs": x})


@pytest.mark.parametrize("count", (1, 3, 21, 200))
@pytest.mark.parametrize("op", BINARY_NUMBER + BINARY_INTEGER + BINARY_BOOL)
def test_binary(op, count):
    for dtype in (("bool",) if op in BINARY_BOOL else ()) + (() if op in ("And", "Or", "Xor") else FLOATS + INTEGERS):
        if (op in BINARY_INTEGER and dtype not in INTEGERS) or (op == "Pow" and dtype.startswith("u")):
            continue
        a, b = (interesting(DTYPES[dtype], (5, count), seed) for seed in (3, 4))
        if op in ("Div", "Mod") and dtype in INTEGERS:
            b = np.where(b == 0, 7, b).astype(b.dtype)
        call = f"{op} <fmod = 1> (a, b)" if op == "Mod" and dtype in FLOATS else f"{op}(a, b)"
        out = (
            "bool"
            if op in BINARY_BOOL or op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
            else dtype
        )
        text = scan(f"y = {call}", [("a", dtype), ("b", dtype)], out, 5, count)
        run_all(text, {"start": np.zeros(1, np.float32), "as": a, "bs": b})


@pytest.mark.parametrize("direction", ("LEFT", "RIGHT"))
def test_shifts(direction):
    for dtype in ("uint32", "uint64"):
        a = interesting(DTYPES[dtype], (4, 40), 5)
        b = np.random.default_rng(0).integers(0, 80, (4, 40)).astype(DTYPES[dtype])
        text = scan(f'y = BitShift <direction = "{direction}"> (a, b)', [("a", dtype), ("b", dtype)], dtype, 4, 40)
        run_all(text, {"start": np.zeros(1, np.float32), "as": a, "bs": b})


@pytest.mark.parametrize("source", tuple(DTYPES))
@pytest.mark.parametrize("target", tuple(DTYPES))
def test_casts(source, target):
    numbers = dict(zip(DTYPES, (1, 11, 9, 6, 7, 12, 13), strict=True))
    for count in (1, 21, 200):
        x = interesting(DTYPES[source], (4, count), 6)
        if source in FLOATS:
            x[0, 0] = 3e9
            x[1, 0] = 1.5e19
        text = scan(f"y = Cast <to = {numbers[target]}> (x)", [("x", source)], target, 4, count)
        run_all(text, {"start": np.zeros(1, np.float32), "xs": x})


def test_where_clip_and_broadcasts():
    for count in (1, 5, 48, 300):
        text = scan(
            f"""low = Constant <value = float {{-0.5}}> ()
            c = Greater(x, w)
            v = Where(c, x, w)
            row = Reshape(v, shape)
            column = ReduceSum <keepdims = 1> (row, axes)
            d = Sub(row, column)
            flat = Reshape(d, {"whole"})
            y = Max(flat, low)""",
            [("x", "float"), ("w", "float")], "float", 6, count,
        ).replace(
            "one = Constant",
            f"shape = Constant <value = int64[2] {{1, {count}}}> () whole = Constant <value = int64[1] {{{count}}}> () "
            "axes = Constant <value = int64[1] {1}> () one = Constant", 1,
        )  # fmt: skip
        x, w = (interesting(np.float32, (6, count), seed) for seed in (7, 8))
        run_all(text, {"start": np.zeros(1, np.float32), "xs": x, "ws": w})


LOOP = """<ir_version: 10, opset_import: ["" : 22]>
g (int64 iterations, int64[2] divisors, float[N] x) => (float[N] y, float[T,N] all, int64 quotient) {
  yes = Constant <value = bool {1}> ()
  first = Constant <value = int64 {1000}> ()
  y, quotient, all = Loop <body = b (int64 i, bool go, float[N] s, int64 q) => (bool continues, float[N] t, int64 r, float[N] o) {
    zero = Constant <value = int64 {0}> ()
    two = Constant <value = int64 {2}> ()
    half = Constant <value = float {0.5}> ()
    continues = Identity(go)
    which = Mod(i, two)
    odd = Equal(which, two)
    u = Mul(s, half)
    t = If(odd) <
      then_branch = p () => (float[N] v) { v = Neg(u) },
      else_branch = n () => (float[N] w) { w = Tanh(u) }>
    d = Gather(divisors, which)
    quo = Div(q, d)
    r = Add(quo, two)
    o = Identity(t)
  }> (iterations, yes, x, first)
}"""


def feeds_of(iterations=9, divisors=(3, 1), n=8):
    x = np.linspace(-2, 2, n, dtype=np.float32)
    return {"iterations": np.int64(iterations), "divisors": np.array(divisors, np.int64), "x": x}


def test_a_loop_with_a_branch_and_a_row_by_index():
    for iterations in (0, 1, 2, 3, 50, 5000):
        run_all(LOOP, feeds_of(iterations), None)


def test_errors_name_the_same_place():
    messages = set()
    for entries in ({"jit": "off"}, {"jit": "always"}, {"jit": "always", "jit_iteration": 1}):
        with pytest.raises(Exception, match="division by zero") as caught:
            session(LOOP, **entries).run(None, feeds_of(divisors=(3, 0)))
        messages.add(str(caught.value))
    assert len(messages) == 1 and "iteration 1" in messages.pop()


FAILING = {
    # the body, and its error behind the iteration
    "in a branch": (
        """late = Greater(i, two)
        y = If (late) <then_branch = t () => (float p) { p = Gather(x, i) }, else_branch = e () => (float q) { q = Identity(s) }>
        r = Identity(y)""",
        "body, iteration 5: /Loop_1:body/If_2:then_branch/Gather_0 (Gather-13): index 5 is out of range, expected -5 to 4",
    ),
    "rows that change": (
        """half = Div(i, two)  one = Constant <value = int64[1] {1}> ()  zero = Constant <value = int64[1] {0}> ()
        end = Add(half, one)  y = Slice(x, zero, end)  r = ReduceSum(y)""",
        "body, iteration 2: an element of a scan output has shape [2], in iteration 0 it had [1]",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_errors_of_bodies_are_the_same_in_every_tier(name):
    body, expected = FAILING[name]
    text = f"""<ir_version: 10, opset_import: ["" : 22]> g (float[n] x, int64 m, float s0) => (float last, float[k,j] rows) {{
      two = Constant <value = int64 {{2}}> ()
      last, rows = Loop <body = b (int64 i, bool c, float s) => (bool d, float t, float[j] y) {{
        d = Identity(c)
        {body}
        t = Squeeze(r) }}> (m, , s0) }}"""
    feeds = {"x": np.arange(5, dtype=np.float32), "m": np.array(9), "s0": np.float32(1)}
    messages = set()
    for entries in ({"tier": "reference"}, {"jit": "off"}, {"jit": "off", "optimize": 0}, {"jit": "always"}):
        with pytest.raises(Exception) as caught:
            session(text, **entries).run(None, feeds)
        messages.add(str(caught.value))
    assert len(messages) == 1, messages
    assert expected in messages.pop()


def test_limits_stop_native_code():
    options = treadle.RunOptions()
    options.iteration_limit = 1000
    for entries in ({"jit": "off"}, {"jit": "always"}):
        with pytest.raises(Exception, match="limit of 1000 iterations"):
            session(LOOP, **entries).run(None, feeds_of(10**9), options)
    options = treadle.RunOptions()
    options.time_limit = 0.05
    with pytest.raises(Exception, match="time limit"):
        session(LOOP, jit="always").run(None, feeds_of(10**9, n=1), options)


def test_trip_counts_need_one_compilation():
    native = session(LOOP, jit="always")
    reference = session(LOOP, jit="off")
    for iterations in range(1, 60):
        assert_same_bits(native.run(None, feeds_of(iterations)), reference.run(None, feeds_of(iterations)))
    assert native.counters()["plans"] <= 2
    assert native.counters()["compilations"] <= 2


def test_auto_compiles_in_the_background():
    s = session(LOOP, jit="auto")
    expected = session(LOOP, jit="off").run(None, feeds_of(3000))
    assert s.counters()["compilations"] == 0
    for _ in range(200):
        assert_same_bits(s.run(None, feeds_of(3000)), expected)
    s.wait_compiled()
    assert s.counters()["compilations"] == 1
    assert_same_bits(s.run(None, feeds_of(3000)), expected)


def nest(depth, iterations):
    """Loops inside of loops, of so many iterations each."""
    body = "t = Mul (s, keep) out = Add (t, step)"
    for _ in range(depth):
        body = (
            f"""out = Loop <body = level (int64 i, bool c, float s) => (bool c, float out) {{ {body} }}> (m, yes, s)"""
        )
    constants = "keep = Constant <value_float = 0.99> () step = Constant <value_float = 0.5> ()"
    constants += f" yes = Constant <value = bool {{1}}> () m = Constant <value = int64 {{{iterations}}}> ()"
    head = '<ir_version: 10, opset_import: ["" : 22]>'
    return f"{head} g (float s) => (float out) {{ {constants} {body} }}"


# A Scan in a Loop; the iterations of the Loop take their time in the Scan.
SCAN_IN_LOOP = """<ir_version: 10, opset_import: ["" : 22]>
g (int64 m, float[16,8] e, float[8,8] w, float[8] a) => (float[8] last) {
  yes = Constant <value = bool {1}> ()
  zero = Constant <value = int64[1] {0}> ()
  last = Loop <body = outer (int64 i, bool c, float[8] s) => (bool c, float[8] next) {
    h, rows = Scan <num_scan_inputs = 1, body = inner (float[8] s1, float[8] x) => (float[8] s2, float[8] y) {
      u = Unsqueeze (s1, zero)
      p = MatMul (u, w)
      q = Squeeze (p, zero)
      s2 = Tanh (q)
      y = Mul (s2, x)
    }> (s, e)
    r = ReduceMean <keepdims = 0> (rows, zero)
    next = Add (r, h)
  }> (m, yes, a)
}"""


def scan_in_loop_feeds():
    rng = np.random.default_rng(3)
    e, w, a = (rng.standard_normal(s).astype(np.float32) for s in ((16, 8), (8, 8), (8,)))
    return {"m": np.int64(5), "e": e, "w": w, "a": a}


# The number of runs follows from the gain that the plan expects of native code: about 10 ms of work here.
@pytest.mark.parametrize(
    ("text", "feeds", "runs"),
    (
        (nest(3, 16), {"s": np.float32(1)}, 1000),
        (nest(4, 8), {"s": np.float32(1)}, 800),
        (nest(6, 4), {"s": np.float32(1)}, 600),
        (nest(1, 10), {"s": np.float32(1)}, 300_000),
        (SCAN_IN_LOOP, scan_in_loop_feeds(), 3000),
    ),
)
def test_auto_counts_the_time_of_inner_loops(text, feeds, runs):
    options = {"jit_cache": "off"}
    expected = session(text, jit="off", **options).run(None, feeds)
    s = session(text, jit="auto", **options)
    for _ in range(runs):
        s.run(None, feeds)
    s.wait_compiled()
    assert s.counters()["compilations"] >= 1
    assert_same_bits(s.run(None, feeds), expected)


def test_auto_takes_over_inside_of_a_long_iteration():
    text = nest(2, 2).replace("(m, yes, s) }> (m", "(long, yes, s) }> (m")
    text = text.replace("yes = Const", "long = Constant <value = int64 {30000000}> () yes = Const")
    s = session(text, jit="auto", jit_cache="off")
    s.run(None, {"s": np.float32(1)})
    s.wait_compiled()
    assert s.counters()["compilations"] >= 1


# A sort and a product of matrices stay calls of their kernels.
@pytest.mark.parametrize("step", ("v, p = TopK (h, n) next = Relu (v)", "next = MatMul (h, w)"))
def test_auto_does_not_compile_loops_that_spend_their_time_in_kernels(step):
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, float[64,128] x, float[128,128] w) => (float[64,128] y) {{
      yes = Constant <value = bool {{1}}> ()
      n = Constant <value = int64[1] {{128}}> ()
      y = Loop <body = b (int64 i, bool c, float[64,128] h) => (bool c, float[64,128] next) {{ {step} }}> (m, yes, x)
    }}"""
    s = session(text, jit="auto", jit_cache="off")
    feeds = {"m": np.int64(200), "x": np.ones((64, 128), np.float32), "w": np.eye(128, dtype=np.float32)}
    for _ in range(5):
        s.run(None, feeds)
    s.wait_compiled()
    assert s.counters()["compilations"] == 0


def run_script(code, **env):
    script = textwrap.dedent(code)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


SCRIPT = f"""
import numpy as np, treadle
feeds = {{"iterations": np.int64(9), "divisors": np.array([3, 1]), "x": np.linspace(-2, 2, 8, dtype=np.float32)}}
session = treadle.InferenceSession({LOOP!r}.encode())
y = session.run(None, feeds)[0]
print(session.counters()["compilations"], y.tobytes().hex())
"""


def test_the_environment_takes_the_place_of_the_option():
    off, always = (run_script(SCRIPT, TREADLE_JIT=mode).split() for mode in ("off", "always"))
    assert (off[0], always[0]) == ("0", "1")
    assert off[1] == always[1]


def test_without_the_compiler_the_program_runs():
    missing = run_script(SCRIPT, TREADLE_JIT="always", TREADLE_JIT_LIBRARY="/nowhere/libtreadle_jit.so").split()
    assert missing[0] == "0"
    assert missing[1] == run_script(SCRIPT, TREADLE_JIT="always").split()[1]


@pytest.mark.parametrize("isa", ("baseline", "avx2"))
def test_every_instruction_set(isa):
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    if isa == "avx2" and "avx2" not in flags:
        pytest.skip("this machine has no AVX2")
    off, always = (run_script(SCRIPT, TREADLE_JIT=mode, TREADLE_ISA=isa).split() for mode in ("off", "always"))
    assert (off[0], always[0]) == ("0", "1")
    assert off[1] == always[1]


def test_a_fork_compiles_again():
    code = (
        SCRIPT
        + """
import os
import pathlib
child = os.fork()
if child == 0:
    other = treadle.InferenceSession(LOOP.encode())
    same = other.run(None, feeds)[0].tobytes() == y.tobytes()
    for _ in range(3000):
        other.run(None, feeds)
    other.wait_compiled()
    os._exit(0 if same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    )
    run_script(f"LOOP = {LOOP!r}\n" + code, TREADLE_JIT="auto")


def test_a_process_may_end_while_it_compiles():
    code = SCRIPT + "\nfor _ in range(600):\n    session.run(None, feeds)\n"
    for _ in range(8):
        run_script(code.replace("np.int64(9)", "np.int64(2000)"), TREADLE_JIT="auto")


def test_a_session_may_end_while_it_is_compiled():
    code = """
    import numpy as np, treadle
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0).standard_normal

    def model(width):
        shapes = {"W": [1, 4 * width, 4], "R": [1, 4 * width, width], "B": [1, 8 * width]}
        weights = [numpy_helper.from_array(draw(shape).astype(np.float32), name) for name, shape in shapes.items()]
        node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["", "h"], hidden_size=width)
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [300, 1, 4])
        h = helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 1, width])
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(helper.make_graph([node], "g", [x], [h], weights), opset_imports=opsets, ir_version=8)

    one_thread = treadle.SessionOptions()
    one_thread.intra_op_num_threads = 1
    x = np.zeros((300, 1, 4), np.float32)
    for turn in range(150):
        session = treadle.InferenceSession(model((64, 96, 128)[turn % 3]).SerializeToString(), one_thread)
        for _ in range((1, 30, 3, 30, 10)[turn % 5]):
            session.run(None, {"x": x})
    """
    run_script(code, TREADLE_JIT="auto")

"""Loops of dynamic shape as native code give the results of the engine instruction by instruction, to the last bit."""

import threading

import numpy as np
import onnx
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'

# Bodies of loops with a state s: name -> (element type, sizes of the state, more outputs of the body, text)
BODIES = {
    "a filter that grows, against itself turned round": """
        g (int64 m, T[n] s0) => (T[k] s, T[p, 1] sums) <int64[1] back = {-1}, int64[1] low = {-9223372036854775807},
          int64[1] axis = {0}, T[1] more = {0.25}> {
          s, sums = Loop (m, , s0) <body = b (int64 i, bool c, T[j] t) => (bool c, T[l] u, T[1] sum) {
            turned = Slice (t, back, low, axis, back)
            product = Mul (t, turned)
            sum = ReduceSum (product, axis)
            longer = Concat <axis = 0> (t, more)
            other = Slice (longer, back, low, axis, back)
            small = Mul (other, more)
            u = Sub (longer, small) }> }""",
    "pieces that are appended": """
        g (int64 m, T[n] s0) => (T[k] all) <int64[1] axis = {0}, int64[1] one = {1}, int64 seven = {7}, T[1] none = {0}> {
          all = Loop (m, , none) <body = b (int64 i, bool c, T[j] t) => (bool c, T[l] u) {
            length = Mod (i, seven)
            start = Unsqueeze (i, axis)
            more = Unsqueeze (length, axis)
            end = Add (start, more)
            ends = Add (end, one)
            piece = Slice (s0, start, ends, axis)
            most = ReduceMax <keepdims = 1> (piece)
            mean = ReduceMean <keepdims = 1> (piece)
            far = Sub (piece, most)
            near = Add (far, mean)
            u = Concat <axis = 0> (t, near) }> }""",
    "rows that are regrouped": """
        g (int64 m, T[n] s0) => (T[k] s, T[p, 1] firsts) <int64[1] minus1 = {-1}, int64[1] first = {0}, int64[1] one = {1},
          int64 zero = {0}, int64 step = {1}, int64 three = {3}, T tenth = {0.1}> {
          s, firsts = Loop (m, , s0) <body = b (int64 i, bool c, T[j] t) => (bool c, T[j] u, T[1] begin) {
            kind = Mod (i, three)
            next = Add (kind, step)
            count = Unsqueeze (next, first)
            shape = Concat <axis = 0> (minus1, count)
            rows = Reshape (t, shape)
            steps = Range (zero, next, step)
            angle = CastLike (steps, tenth)
            wave = Cos (angle)
            other = Sin (angle)
            x = Mul (rows, wave)
            y = Mul (rows, other)
            z = Sub (x, y)
            w = Mul (z, tenth)
            joined = Concat <axis = 1> (w, y)
            halves = Slice (joined, first, count, one)
            u = Reshape (halves, minus1)
            begin = Slice (u, first, one, first) }> }""",
    "halves and every other element": """
        g (int64 m, T[n] s0) => (T[k] s) <int64[1] first = {0}, int64[1] one = {1}, int64[1] far = {1000}, int64[1] two = {2},
          int64[1] minus2 = {-2}, int64[1] last = {-1}, int64[1] low = {-1000}, int64[2] pair = {2, -1}> {
          s = Loop (m, , s0) <body = b (int64 i, bool c, T[j] t) => (bool c, T[l] u) {
            rows = Reshape (t, pair)
            a, b2 = Split <axis = 0, num_outputs = 2> (rows)
            wide = Squeeze (a, first)
            deep = Squeeze (b2, first)
            sum = Add (wide, deep)
            even = Slice (sum, first, far, first, two)
            odd = Slice (sum, last, low, first, minus2)
            lifted = Unsqueeze (odd, first)
            square = Mul (lifted, lifted)
            flat = Squeeze (square, first)
            u = Concat <axis = 0> (even, t, flat, wide) }> }""",
    "parts that are put together, scaled, and read again": """
        g (int64 m, T[n] s0) => (T[k] s, T[p, q] all) <int64[1] minus1 = {-1}, int64[1] first = {0}, int64 step = {1},
          int64 three = {3}, int64[1] two = {2}, T tenth = {0.1}> {
          s, all = Loop (m, , s0) <body = b (int64 i, bool c, T[j] t) => (bool c, T[j] u, T[l] v) {
            kind = Mod (i, three)
            next = Add (kind, step)
            count = Unsqueeze (next, first)
            shape = Concat <axis = 0> (minus1, two, count)
            groups = Reshape (t, shape)
            x, y = Split <axis = 1, num_outputs = 2> (groups)
            sum = Add (x, y)
            less = Sub (x, y)
            low = Mul (sum, tenth)
            joined = Concat <axis = 1> (low, less)
            flat = Reshape (joined, minus1)
            half = Mul (flat, tenth)
            u = Sub (half, tenth)
            ends = Concat <axis = 2> (less, sum)
            other = Reshape (ends, minus1)
            v = Add (other, u) }> }""",
    "planned values in one place with other sizes": """
        g (int64 m, T[n] s0) => (T[k] s) <int64[1] first = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] sixty = {-60},
          int64[1] far = {9223372036854775807}, int64 step = {1}, int64 three = {3}, T tenth = {0.1}> {
          s = Loop (m, , s0) <body = b (int64 i, bool c, T[j] t) => (bool c, T[l] u) {
            kind = Mod (i, three)
            count = Add (kind, step)
            begin = Unsqueeze (count, first)
            weight = CastLike (count, tenth)
            row = Unsqueeze (weight, first)
            column = Unsqueeze (row, one)
            tail = Slice (t, begin, far, first)
            deep = Unsqueeze (tail, one)
            scaled = Mul (deep, column)
            rows = Sub (scaled, row)
            most = ReduceMax <keepdims = 1> (rows, last)
            total = ReduceSum <keepdims = 0> (rows, last)
            flat = Squeeze (most, one)
            sum = Add (flat, total)
            less = Less (sum, row)
            picked = Where (less, tail, sum)
            joined = Concat <axis = 0> (picked, row, t)
            u = Slice (joined, sixty, far, first) }> }""",
}


def model(text: str, element: str) -> bytes:
    return onnx.parser.parse_model(
        HEAD + text.replace("T[", f"{element}[").replace("T tenth", f"{element} tenth")
    ).SerializeToString()


def open_session(data: bytes, **entries):
    options = treadle.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(data, options)


def run(data: bytes, feed: dict, **entries):
    session = open_session(data, **entries)
    return [np.asarray(x) for _ in range(2) for x in session.run(None, feed)]


@pytest.mark.parametrize("size", [2, 6, 12, 24, 60, 516])
@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("name", BODIES)
def test_native_code_gives_the_same_bits(name, element, size):
    data = model(BODIES[name], element)
    rng = np.random.default_rng(size)
    dtype = np.float32 if element == "float" else np.float64
    feed = {"m": np.array(5 if "every" in name else 40), "s0": rng.uniform(-1, 1, size).astype(dtype)}
    try:
        expected = run(data, feed, jit="off")
    except (treadle.RuntimeException, treadle.InvalidArgument) as problem:
        with pytest.raises(type(problem)) as found:
            run(data, feed, jit="always")
        assert str(found.value) == str(problem)
        return
    for got, wanted in zip(run(data, feed, jit="always"), expected, strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", BODIES)
def test_native_code_computes_all_nodes(name):
    session = open_session(model(BODIES[name], "float"), jit="always")
    feed = {"m": np.array(3), "s0": np.ones(12, np.float32)}
    session.run(None, feed)
    (loop,) = session.explain(feed, json=True)["loops"]
    assert loop["tier"] == "native"
    assert {obstacle["op"] for obstacle in loop["obstacles"]} <= {"Loop"}


def test_a_session_takes_one_size_after_another():
    data = model(BODIES["pieces that are appended"], "float")
    native, program = (open_session(data, jit=jit) for jit in ("always", "off"))
    for size, iterations in [(12, 5), (40_000, 9), (1, 30), (0, 3), (60, 60)]:
        feed = {"m": np.array(iterations), "s0": np.linspace(-1, 1, size, dtype=np.float32)}
        try:
            (expected,) = program.run(None, feed)
        except (treadle.RuntimeException, treadle.InvalidArgument) as problem:
            with pytest.raises(type(problem)) as found:
                native.run(None, feed)
            assert str(found.value) == str(problem)
            continue
        assert native.run(None, feed)[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("limit", [{"memory_limit": 1 << 20}, {"time_limit": 0.05}, {"iteration_limit": 1000}])
def test_a_state_that_grows_is_stopped_by_the_limits(jit, limit):
    session = open_session(model(BODIES["a filter that grows, against itself turned round"], "float"), jit=jit)
    options = treadle.RunOptions()
    for name, value in limit.items():
        setattr(options, name, value)
    with pytest.raises(treadle.LimitExceeded, match="limit of 1000 iterations|memory limit|time limit"):
        session.run(None, {"m": np.array(10**9), "s0": np.ones(2, np.float32)}, options)


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("name", ["rows that are regrouped", "planned values in one place with other sizes"])
def test_a_run_is_terminated_from_another_thread(name, jit):
    session = open_session(model(BODIES[name], "float"), jit=jit)
    options = treadle.RunOptions()
    timer = threading.Timer(0.1, setattr, (options, "terminate", True))
    timer.start()
    try:
        with pytest.raises(Exception, match="cancelled"):
            session.run(None, {"m": np.array(10**9), "s0": np.ones(12, np.float32)}, options)
    finally:
        timer.join()

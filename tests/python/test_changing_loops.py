"""Loops whose sizes change, as native code: what the engine gives for them instruction by instruction, to the last bit."""

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
}


def model(text: str, element: str) -> bytes:
    return onnx.parser.parse_model(HEAD + text.replace("T[", f"{element}[").replace("T tenth", f"{element} tenth")).SerializeToString()


def run(data: bytes, feed: dict, **entries):
    options = treadle.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    session = treadle.InferenceSession(data, options)
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

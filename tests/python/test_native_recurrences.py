"""Native code that takes a loop apart in another order than the program: long states block by block, and minima that
wait for the iteration before taken last."""

import numpy as np
import pytest
from test_native import assert_same_bits, interesting, run_all, session

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

HEAD = '<ir_version: 10, opset_import: ["" : 22]>'


def long_states(count, iterations_type="int64 m"):
    t = f"float[{count}]"
    return f"""{HEAD}
    g ({iterations_type}, bool go, {t} a0, {t} b0, int64[{count}] k0, {t} c) => ({t} a, {t} b, int64[{count}] k) {{
      a, b, k = Loop <body = body (int64 i, bool c0, {t} x, {t} y, int64[{count}] n)
          => (bool c1, {t} x1, {t} y1, int64[{count}] n1) {{
        c1 = Identity(c0)
        one = Constant <value = int64 {{1}}> ()
        half = Constant <value = float {{0.5}}> ()
        xx = Mul(x, half)
        x1 = Add(xx, c)
        inside = Less(x, y)
        y1 = Where(inside, x1, y)
        counted = Add(n, i)
        n1 = Where(inside, counted, n) }}> (m, go, a0, b0, k0) }}"""


@pytest.mark.parametrize("count", (129, 200, 256, 1000))
def test_long_states_in_blocks(count):
    rng = np.random.default_rng(count)
    feeds = {name: interesting(np.float32, count, seed) for seed, name in enumerate(("a0", "b0", "c"))}
    feeds |= {"k0": rng.integers(0, 9, count), "go": np.array(True)}
    for iterations in (1, 2, 3, 50):
        run_all(long_states(count), feeds | {"m": np.array(iterations)}, compilations=1)
    for nothing in ({"m": np.array(0)}, {"m": np.array(4), "go": np.array(False)}):
        run_all(long_states(count), feeds | nothing, compilations=None)


def test_limits_stop_blocks():
    feeds = {"a0": np.zeros(200, np.float32), "b0": np.ones(200, np.float32), "c": np.ones(200, np.float32)}
    feeds |= {"k0": np.zeros(200, np.int64), "go": np.array(True), "m": np.array(10**9)}
    options = treadle.RunOptions()
    options.iteration_limit = 100_000
    with pytest.raises(Exception, match="limit of 100000 iterations"):
        session(long_states(200), jit="always").run(None, feeds, options)
    options = treadle.RunOptions()
    options.time_limit = 0.05
    with pytest.raises(Exception, match="time limit"):
        session(long_states(200), jit="always").run(None, feeds, options)


def test_blocks_inside_another_loop():
    t = "float[300]"
    text = f"""{HEAD}
    g (int64 m, int64 n, {t} x) => ({t} y, {t} z) {{
      y, z = Loop <body = outer (int64 i, bool c0, {t} v, {t} w) => (bool c1, {t} v1, {t} w1) {{
        c1 = Identity(c0)
        p, q = Loop <body = inner (int64 j, bool d0, {t} a, {t} b) => (bool d1, {t} a1, {t} b1) {{
          d1 = Identity(d0)
          half = Constant <value = float {{0.5}}> ()
          s = Mul(a, half)
          a1 = Add(s, w)
          b1 = Identity(a) }}> (n, , v, x)
        v1 = Sin(p)
        w1 = Add(q, v) }}> (m, , x, x) }}"""
    x = np.linspace(-3, 3, 300, dtype=np.float32)
    for m, n in ((3, 0), (3, 1), (2, 2), (4, 7)):
        run_all(text, {"m": np.array(m), "n": np.array(n), "x": x}, compilations=None)


def chain(dtype, op, order):
    names = [("s", "a", "b", "c")[k] for k in order]
    return f"""{HEAD}
    g ({dtype} s0, {dtype}[25] as, {dtype}[25] bs, {dtype}[25] cs) => ({dtype} last, {dtype}[25] all) {{
      last, all = Scan <num_scan_inputs = 3, body = body ({dtype} s, {dtype} a, {dtype} b, {dtype} c)
          => ({dtype} s1, {dtype} e) {{
        m = {op}({", ".join(names)})
        s1 = Add(m, a)
        e = Identity(s1) }}> (s0, as, bs, cs) }}"""


@pytest.mark.parametrize("op", ("Min", "Max"))
@pytest.mark.parametrize("dtype", (np.float32, np.float64, np.int32, np.int64, np.uint32))
def test_chains_of_minima(op, dtype):
    name = {"float32": "float", "float64": "double"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    rows = {"as": interesting(dtype, 300, 1), "bs": interesting(dtype, 300, 2), "cs": interesting(dtype, 300, 3)}
    for order in ((0, 1, 2, 3), (1, 0, 2, 3), (3, 2, 0, 1), (2, 0, 0, 1)):
        text = chain(name, op, order)
        program, native = session(text, jit="off"), session(text, jit="always")
        for start in range(0, 300, 25):  # NaN stays: begin anew
            feeds = {key: row[start : start + 25] for key, row in rows.items()} | {"s0": np.array(3, dtype)}
            expected = program.run(None, feeds)
            assert_same_bits(native.run(None, feeds), expected)
            plain = getattr(np, {"Min": "minimum", "Max": "maximum"}[op])
            state = feeds["s0"]
            with np.errstate(all="ignore"):
                for k, row in enumerate(zip(feeds["as"], feeds["bs"], feeds["cs"], strict=True)):
                    values = [(state, *row)[i] for i in order]
                    state = dtype(plain.reduce(values) + row[0])
                    np.testing.assert_array_equal(expected[1][k], state)


def test_short_loops_inside_are_counted_whole():
    text = f"""{HEAD}
    g (int64 m, float s0, float[8] xs) => (float s) {{
      s = Loop <body = outer (int64 i, bool c0, float v) => (bool c1, float v1) {{
        c1 = Identity(c0)
        v1 = Scan <num_scan_inputs = 1, body = inner (float a, float x) => (float b) {{
          p = Mul(a, x)
          b = Sub(x, p) }}> (v, xs) }}> (m, , s0)
    }}"""
    feeds = {"m": np.array(50), "s0": np.float32(0.5), "xs": np.linspace(0.1, 0.9, 8, dtype=np.float32)}
    run_all(text, feeds, compilations=None)
    for jit in ("off", "always"):
        several = session(text, jit=jit)
        options = treadle.RunOptions()
        options.iteration_limit = 50 * (1 + 8)
        several.run(None, feeds, options)
        options.iteration_limit -= 1
        with pytest.raises(Exception, match="limit of 449 iterations"):
            several.run(None, feeds, options)


@pytest.mark.parametrize("iterations", (1, 3, 4, 6, 64, 301))
def test_short_scans_inside_of_any_length(iterations):
    text = f"""{HEAD}
    g (int64[5] a, int64[{iterations}] b, int64[{iterations}] row0) => (int64 k, int64[{iterations}] row, int64[5,{iterations}] table)
    <int64 one = {{1}}> {{
      zero = Sub(one, one)
      k, row, table = Scan <num_scan_inputs = 1, body = outer (int64 n, int64[{iterations}] above, int64 x)
          => (int64 n1, int64[{iterations}] above1, int64[{iterations}] e) {{
        n1 = Add(n, one)
        last, above1 = Scan <num_scan_inputs = 2, body = inner (int64 left, int64 up, int64 y)
            => (int64 left1, int64 o) {{
          quotient = Div(x, y)
          more = Add(left, one)
          lower = Add(up, quotient)
          left1 = Min(lower, more)
          o = Identity(left1) }}> (n1, above, b)
        e = Identity(above1) }}> (zero, row0, a)
    }}"""
    rng = np.random.default_rng(iterations)
    feeds = {"a": rng.integers(-9, 9, 5), "b": rng.integers(1, 5, iterations), "row0": rng.integers(0, 50, iterations)}
    run_all(text, feeds, compilations=None)
    feeds["b"][-1 if iterations < 7 else 6] = 0
    places = []
    for jit in ("off", "always"):
        with pytest.raises(Exception, match="zero") as failed:
            session(text, jit=jit).run(None, feeds)
        places.append(str(failed.value))
    assert places[0] == places[1]

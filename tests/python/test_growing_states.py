"""Loop states that grow by Concat, along any axis, and their readers."""

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 22]> '

# Attention over a cache of keys and values. `keys`: the values that an iteration appends, and the state; `kt`: keys as
# columns.
LAYOUTS = {
    # Positions in front of heads; keys are transposed when they are read.
    "rows": {
        "cache": "float[2,3,k,8]",
        "k": "k",
        "axis": 2,
        "read": "kt = Transpose <perm = [0, 1, 3, 2]> (K2)",
        "shape": (2, 3, 0, 8),
    },
    # Keys lie transposed already.
    "columns": {"cache": "float[2,3,8,k]", "k": "kc", "axis": 3, "read": "kt = Identity(K2)", "shape": (2, 3, 8, 0)},
    # Positions before heads.
    "outer": {
        "cache": "float[2,k,3,8]",
        "k": "kp",
        "axis": 1,
        "read": "kt = Transpose <perm = [0, 2, 3, 1]> (K2)",
        "shape": (2, 0, 3, 8),
    },
}


def decoder(layout: str, extra: str = "") -> bytes:
    at = LAYOUTS[layout]
    text = f"""{HEAD}
    g (int64 m, float[2,24] x0, {at["cache"].replace("k", "k0")} K0, float[2,3,v0,8] V0, float[24,24] Wq, float[24,24] Wk)
        => (float[2,24] x, {at["cache"].replace("k", "kn")} K, float[2,3,vn,8] V, float[t,2,24] y)
    <bool yes = {{1}}, int64[4] split = {{2, 3, 1, 8}}, int64[4] column = {{2, 3, 8, 1}}, int64[4] place = {{2, 1, 3, 8}},
     int64[2] join = {{2, 24}}> {{
      x, K, V, y = Loop <body = b (int64 i, bool c, float[2,24] s, {at["cache"]} Ks, float[2,3,k,8] Vs)
          => (bool c2, float[2,24] s2, {at["cache"]} K2, float[2,3,k,8] V2, float[2,24] e) {{
        c2 = Identity(c)
        q0 = MatMul(s, Wq)
        k0 = MatMul(s, Wk)
        q = Reshape(q0, split)
        k = Reshape(k0, split)
        kc = Reshape(k0, column)
        kp = Reshape(k0, place)
        v = Tanh(k)
        K2 = Concat <axis = {at["axis"]}> (Ks, {at["k"]})
        V2 = Concat <axis = -2> (Vs, v)
        {at["read"]}
        scores = MatMul(q, kt)
        p = Softmax <axis = -1> (scores)
        mixed = MatMul(p, V2)
        flat = Reshape(mixed, join)
        {"sum = Add(flat, s)" if not extra else f"sum0 = Add(flat, s) {extra} sum = Add(sum0, more)"}
        s2 = Tanh(sum)
        e = Identity(s2) }}> (m, yes, x0, K0, V0) }}"""
    return text.encode()


# Every iteration rounds its values, of about 1, and passes them to all later iterations: up to 300 of them. The
# reference interpreter and numpy sum in other orders than wide vectors; 1.3e-5 was measured.
FED_BACK = 5e-5


def feed(layout: str, iterations: int, begin: int = 0) -> dict:
    rng = np.random.default_rng(7)
    shape = [begin if n == 0 else n for n in LAYOUTS[layout]["shape"]]
    given = {"m": np.array(iterations), "x0": rng.standard_normal((2, 24)), "K0": rng.standard_normal(shape)}
    given |= {"V0": rng.standard_normal((2, 3, begin, 8))}
    given |= {"Wq": rng.standard_normal((24, 24)) / 5, "Wk": rng.standard_normal((24, 24)) / 5}
    return {name: a if name == "m" else a.astype(np.float32) for name, a in given.items()}


def session(model: bytes, tier: str = "program", jit: str = "off") -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", tier)
    options.add_session_config_entry("treadle.jit", jit)
    return treadle.InferenceSession(model, options)


def expected(layout: str, given: dict) -> list[np.ndarray]:
    x, keys, values = given["x0"], given["K0"], given["V0"]
    axis, rows = LAYOUTS[layout]["axis"], []
    for _ in range(int(given["m"])):
        q, k = (x @ given["Wq"]).reshape(2, 3, 1, 8), x @ given["Wk"]
        piece = list(LAYOUTS[layout]["shape"])
        piece[axis] = 1
        keys = np.concatenate([keys, k.reshape(piece)], axis)
        values = np.concatenate([values, np.tanh(k.reshape(2, 3, 1, 8))], 2)
        columns = {"rows": (0, 1, 3, 2), "columns": (0, 1, 2, 3), "outer": (0, 2, 3, 1)}[layout]
        scores = q @ keys.transpose(columns)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        x = np.tanh((p / p.sum(-1, keepdims=True) @ values).reshape(2, 24) + x)
        rows.append(x)
    return [x, keys, values, np.stack(rows) if rows else np.zeros((0, 2, 24), np.float32)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_caches_that_grow_along_any_axis(layout):
    model = decoder(layout)
    runs = [session(model), session(model, jit="always"), session(model, tier="reference")]
    for iterations, begin in ((50, 0), (1, 3), (0, 2), (70, 5), (300, 0)):
        given = feed(layout, iterations, begin)
        program, native, reference = (s.run(None, given) for s in runs)
        for a, b, c, d in zip(program, native, reference, expected(layout, given), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, atol=FED_BACK)
            np.testing.assert_allclose(a, d, atol=FED_BACK)


@pytest.mark.parametrize(
    "extra",
    [
        "n = Shape(K2) long = Gather(n, two) more = Cast <to = 1> (long)",
        "more = ReduceMean <keepdims = 0> (K2)",
        "twice = Concat <axis = 2> (K2, k) more = ReduceMean <keepdims = 0> (twice)",
        "squares = Mul(Ks, Ks) more = ReduceSum <keepdims = 0> (squares)",
        "flipped = Transpose(K2) first = Gather(flipped, one) more = ReduceMean <keepdims = 0> (first)",
        "part = Slice(K2, zeros, ones, twos) more = ReduceMean <keepdims = 0> (part)",
        "again = If (c) <then_branch = t () => (float[2,3,k,8] u) { u = Identity(K2) }, "
        "else_branch = f () => (float[2,3,k,8] w) { w = Neg(K2) }> more = ReduceMean <keepdims = 0> (again)",
    ],
)
def test_other_readers_of_a_cache(extra):
    constants = b"<int64 one = {1}, int64 two = {2}, int64[1] zeros = {0}, int64[1] ones = {1}, int64[1] twos = {2}, "
    model = decoder("rows", extra).replace(b"<bool yes", constants + b"bool yes")
    program, reference, given = session(model), session(model, tier="reference"), feed("rows", 30, 1)
    for a, b in zip(program.run(None, given), reference.run(None, given), strict=True):
        np.testing.assert_allclose(a, b, atol=FED_BACK)


def test_a_base_that_two_nodes_append_to():
    model = f"""{HEAD}
    g (int64 m, float[3,0,2] s0, float[3,1,2] a, float[3,1,2] b) => (float[3,n,2] s, float[t,3,1] y) <bool yes = {{1}}> {{
      s, y = Loop <body = b (int64 i, bool c, float[3,k,2] s1) => (bool c2, float[3,k,2] s2, float[3,1] e) {{
        c2 = Identity(c)
        s2 = Concat <axis = 1> (s1, a)
        other = Concat <axis = 1> (s1, b)
        both = Mul(s2, other)
        e = ReduceSum <keepdims = 0> (both, axes) }}> (m, yes, s0) }}"""
    model = model.replace("<bool yes", "<int64[1] axes = {1}, bool yes").replace("float[3,1] e", "float[3,2] e")
    model = model.replace("float[t,3,1] y", "float[t,3,2] y").encode()
    rng = np.random.default_rng(3)
    given = {"s0": np.zeros((3, 0, 2), np.float32), "m": np.array(20)}
    given |= {name: rng.standard_normal((3, 1, 2)).astype(np.float32) for name in "ab"}
    a, b = given["a"], given["b"]
    state, rows = session(model).run(None, given)
    np.testing.assert_array_equal(state, np.repeat(a, 20, 1))
    sums = [(t * a * a + a * b).sum(1) for t in range(20)]
    np.testing.assert_allclose(rows, sums, rtol=1e-5)


def test_results_of_a_run_stay_when_the_next_one_begins():
    model = session(decoder("rows"))
    first = model.run(None, feed("rows", 20))
    kept = [a.copy() for a in first]
    model.run(None, feed("rows", 35, 4))
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sizes_that_do_not_fit_are_errors():
    given = feed("rows", 3) | {"V0": np.zeros((2, 3, 4, 8), np.float32)}
    with pytest.raises(treadle.InvalidArgument, match="as many columns of A as rows of B"):
        session(decoder("rows")).run(None, given)


def test_each_iteration_costs_as_much_as_its_reading():
    """Appending copies nothing: the memory that a run allocates does not grow with the number of iterations."""
    model, counts = session(decoder("rows")), []
    for iterations in (100, 1600):
        model.run(None, feed("rows", iterations))
        counts.append(model.counters()["allocations_last_run"])
    assert counts[1] < counts[0] + 60

"""Nodes whose sizes change from iteration to iteration: kernels that take the sizes at hand give what the reference
interpreter gives, short or long, and errors are reported as elsewhere.
"""

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 22]>'

# The first is long: prepared kernels take over. A size comes again, is 0, is 1.
LENGTHS = [3, 7, 0, 1, 2, 40, 3, 17, 18000, 1, 9, 64, 5]

# The results of an iteration from v, the first n elements of x, and w, n rows of three; n1 is n as a list, e an index
# below n.
NODES = {
    "Add": "y = Add(v, v)",
    "Add of a column and a row": "c = Unsqueeze(v, axis1)  y = Add(c, small)",
    "Mul of rows and a row": "y = Mul(w, three)",
    "Mul of rows and a column": "c = Unsqueeze(v, axis1)  y = Mul(w, c)",
    "Mul of pairs": "p = Reshape(v2, pairs)  y = Mul(p, pair)",
    "Mul of four dimensions": "a = Reshape(v2, outer)  b = Reshape(small, inner)  y = Mul(a, b)",
    "Sub of a number": "y = Sub(v, half)",
    "Sub from a number": "y = Sub(half, v)",
    "Less": "y = Less(v, half)",
    "Tanh": "y = Tanh(v)",
    "Where": "m = Less(v, half)  y = Where(m, v, half)",
    "Where of columns": "m = Less(v, half)  c = Unsqueeze(m, axis1)  y = Where(c, w, three)",
    "Clip": "y = Clip(v, zero, half)",
    "Cast": "y = Cast <to = 7> (v)",
    "Cast to bool": "y = Cast <to = 9> (v)",
    "Mod of integers": "r = Range(i0, n, i1)  y = Mod(r, i3)",
    "Slice": "y = Slice(v, one1, n1)",
    "Slice backwards": "y = Slice(v, minus1, lowest, axis0, minus1)",
    "Slice of bools backwards": "m = Less(v, half)  t = Slice(m, minus1, lowest, axis0, minus1)  y = Cast <to = 7> (t)",
    "Slice of halves": "h = Cast <to = 10> (w)  t = Slice(h, both_from, both_to, both_axes, both_steps)  y = Cast <to = 1> (t)",
    "Slice of doubles": "d = Cast <to = 11> (v)  t = Slice(d, minus1, lowest, axis0, minus1)  y = Cast <to = 1> (t)",
    "Slice by steps": "y = Slice(w, one1, far, axis0, two1)",
    "Slice of columns": "y = Slice(w, one1, far, axis1)",
    "Slice of both": "y = Slice(w, both_from, both_to, both_axes, both_steps)",
    "Concat": "y = Concat <axis = 0> (v, small, v)",
    "Concat of columns": "c = Unsqueeze(v, axis1)  y = Concat <axis = -1> (w, c, w)",
    "Gather": "y = Gather(v, last)",
    "Gather by what varies": "k = Range(i0, n, i1)  y = Gather <axis = 0> (w, k)",
    "Gather of columns": "y = Gather <axis = 1> (w, columns)",
    "Gather from a table": "k = Range(i0, n, i1)  j = Mod(k, i3)  y = Gather <axis = 0> (small, j)",
    "Reshape": "y = Reshape(w, flat)",
    "Reshape that keeps a size": "y = Reshape(w, kept)",
    "Squeeze": "c = Unsqueeze(v, axis1)  y = Squeeze(c, axis1)",
    "Squeeze of what is one": "c = Unsqueeze(v, ends)  y = Squeeze(c, ends)",
    "Unsqueeze": "y = Unsqueeze(v, ends)",
    "Flatten": "y = Flatten <axis = 0> (w)",
    "Identity": "y = Identity(v)",
    "Shape": "y = Shape(w)",
    "Shape of a part": "y = Shape <start = -1> (w)",
    "Size": "y = Size(w)",
    "Range": "y = Range(i0, n, i1)",
    "Range backwards": "y = Range(n, i0, im1)",
    "Range of floats": "f = Cast <to = 1> (n)  y = Range(zero, f, half)",
    "NonZero": "m = Less(v, half)  y = NonZero(m)",
    "NonZero of a matrix": "y = NonZero(w)",
    "NonZero of integers": "k = Range(i0, n, i1)  j = Mod(k, i3)  y = NonZero(j)",
    "Compress": "m = Less(v, half)  y = Compress <axis = 0> (w, m)",
    "Compress of all": "m = Less(v, half)  y = Compress (v, m)",
    "Expand": "c = Unsqueeze(v, axis1)  y = Expand(c, four)",
    "Expand by what varies": "y = Expand(half, n1)",
    "Transpose": "y = Transpose(w)",
    "Transpose of three": "c = Unsqueeze(w, axis1)  y = Transpose <perm = [2, 0, 1]> (c)",
    "Split": "y, rest = Split <axis = 1> (w, sizes)",
    "Split in two": "y, rest = Split <axis = 0, num_outputs = 2> (v2)",
    "ReduceSum": "y = ReduceSum(w, axis0)",
    "ReduceSum of rows": "y = ReduceSum <keepdims = 0> (w, axis1)",
    "ReduceSum of all": "y = ReduceSum(w)",
    "ReduceMax": "y = ReduceMax <keepdims = 0> (w, axis1)",
    "ReduceMean": "y = ReduceMean(w, axis1)",
    "ReduceL2": "y = ReduceL2(w, axis1)",
    "ReduceProd of integers": "z = Shape(w)  y = ReduceProd(z)",
    "CumSum": "y = CumSum(v, i0)",
    "CumSum of rows": "y = CumSum <reverse = 1, exclusive = 1> (w, i1)",
    "ArgMax": "y = ArgMax <axis = 1> (w)",
    "ArgMin without the axis": "y = ArgMin <axis = -1, keepdims = 0, select_last_index = 1> (w)",
}
SUMS = ("Reduce", "CumSum", "Tanh")  # the reference interpreter adds in another order


def model(node: str, prefix: str = "") -> bytes:
    statements = "\n".join(part for part in node.split("  "))
    return f"""{HEAD} g (int64[k] lengths, float[m] x, float[m,3] rows) => (seq(T) ys)
    <bool yes = {{1}}, int64[1] axis0 = {{0}}, int64[1] axis1 = {{1}}, int64[1] one1 = {{1}}, int64[1] two1 = {{2}},
     int64[1] minus1 = {{-1}}, int64[1] lowest = {{-9223372036854775808}}, int64[1] far = {{9223372036854775807}},
     int64[2] ends = {{0, 2}}, int64[2] both_from = {{-1, 0}}, int64[2] both_to = {{-1000000, 2}},
     int64[2] both_axes = {{0, 1}}, int64[2] both_steps = {{-2, 1}}, int64[1] flat = {{-1}}, int64[2] kept = {{0, -1}},
     int64[2] pairs = {{-1, 2}}, int64[4] outer = {{-1, 2, 1, 1}}, int64[4] inner = {{1, 1, 1, -1}},
     int64[2] four = {{1, 4}}, int64[2] sizes = {{2, 1}}, int64[2] columns = {{2, -3}}, int64[1] last = {{-1}},
     float half = {{0.5}}, float zero = {{0}}, float[2] pair = {{2, 3}}, float[3] three = {{1, 2, 3}},
     float[5] small = {{1, -2, 3, -4, 5}}, int64 i0 = {{0}}, int64 i1 = {{1}}, int64 i3 = {{3}}, int64 im1 = {{-1}}> {{
      iterations1 = Shape(lengths)
      iterations = Squeeze(iterations1)
      empty = SequenceEmpty <dtype = TYPE> ()
      ys = Loop <body = b (int64 i, bool go, seq(T) s) => (bool go2, seq(T) s2) {{
        go2 = Identity(go)
        n = Gather <axis = 0> (lengths, i)
        n1 = Unsqueeze(n, axis0)
        v = Slice(x, axis0, n1)
        v2 = Concat <axis = 0> (v, v)
        w = Slice(rows, axis0, n1)
        {statements}
        s2 = SequenceInsert(s, y) }}> (iterations, yes, empty) }}""".encode()


def typed(node: str) -> bytes:
    """The model, with the type that the last node makes."""
    text = model(node)
    wide = ("Shape", "Size", "NonZero", "Arg", "Mod(r", "Range(i0", "Range(n", "ReduceProd", "to = 7")
    last = node.split("  ")[-1]
    if "Less(" in last or "to = 9" in last:
        name, number = "bool", 9
    elif any(part in last for part in wide):
        name, number = "int64", 7
    else:
        name, number = "float", 1
    return text.replace(b"seq(T)", f"seq({name}[?])".replace("[?]", "").encode()).replace(b"TYPE", str(number).encode())


def run(data: bytes, feeds: dict, tier: str = "program", jit: str = "off") -> list:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.tier", tier)
    options.add_session_config_entry("treadle.jit", jit)
    session = treadle.InferenceSession(data, options)
    session.run(None, feeds)
    return session.run(None, feeds)[0]  # with the memory of the first run


def given(lengths: list[int]) -> dict:
    rng = np.random.default_rng(11)
    x = rng.standard_normal(max(lengths) + 1).astype(np.float32)
    return {"lengths": np.array(lengths), "x": x, "rows": rng.standard_normal((x.size, 3)).astype(np.float32)}


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("name", NODES)
def test_sizes_of_an_iteration(name, jit):
    lengths = [n for n in LENGTHS if n > 0 or name not in ("Gather", "Split in two", "Reshape that keeps a size")]
    feeds = given(lengths)
    ours = run(typed(NODES[name]), feeds, jit=jit)
    theirs = run(typed(NODES[name]), feeds, "reference")
    assert len(ours) == len(lengths)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if any(part in NODES[name] for part in SUMS):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NODES)
def test_short_and_long_values_have_the_same_bits(name):
    """A value that a dynamic kernel makes, and the same value among those that prepared kernels make."""
    if name == "Gather":
        pytest.skip("the last of so many")
    short = run(typed(NODES[name]), given([40]))
    beside = run(typed(NODES[name]), given([40, 39, 41, 40]))
    rows = min(len(short[0]), 40) if short[0].ndim else 1
    assert rows >= 0
    if not any(part in NODES[name] for part in ("Reduce", "CumSum", "Range(n", "exclusive")):
        np.testing.assert_array_equal(beside[0], beside[3])


WRONG = {
    "Gather": ("y = Gather(v, columns)", [5, 2], "out of range"),
    "Reshape": ("y = Reshape(v, pairs)", [4, 3], "expected a multiple of 2"),
    "Add": ("y = Add(v, small)", [5, 4], "5"),
    "Concat": ("c = Reshape(small, inner)  y = Concat <axis = 0> (v, c)", [4], "rank"),
    "Squeeze": ("y = Squeeze(v, axis0)", [1, 3], "expected 1: no other axis can be squeezed"),
    "Mod": ("r = Range(i0, n, i1)  y = Mod(r, i0)", [0, 3], "division by zero"),
    "Compress": ("m = Less(small, half)  y = Compress <axis = 0> (v, m)", [5, 2], "slices"),
    "ArgMax": ("y = ArgMax <axis = 0> (v)", [3, 0], "empty"),
}


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("name", WRONG)
def test_errors_name_node_and_iteration(name, jit):
    node, lengths, says = WRONG[name]
    data = typed(node)
    with pytest.raises(Exception, match=says) as ours:
        run(data, given(lengths), jit=jit)
    with pytest.raises(Exception, match=says) as theirs:
        run(data, given(lengths), "reference")
    assert str(ours.value) == str(theirs.value)


# A state that an iteration makes anew, one that is handed on, two that change places.
STATES = {
    "made anew": "a2 = Concat <axis = 0> (a, b)  b2 = Slice(b, axis0, two1)",
    "handed on": "a2 = Concat <axis = 0> (b, b)  b2 = Identity(b)",
    "change places": "a2 = Identity(b)  b2 = Identity(a)",
    "the same value twice": "a2 = Concat <axis = 0> (a, one)  b2 = Identity(a2)",
    "from outside": "a2 = Identity(outside)  b2 = Concat <axis = 0> (a, b)",
    "under other sizes": "r = Reshape(a, pairs)  f = Reshape(r, flat)  a2 = Concat <axis = 0> (f, f)  b2 = Identity(f)",
    "read later": "a2 = Mul(a, b)  b2 = Add(a, b)",
    "by a branch": """t = Less(i, i1)  a2 = If (t) <then_branch = p () => (float[k] u) { u = Concat <axis = 0> (a, b) },
                      else_branch = q () => (float[k] u) { u = Slice(a, axis0, two1) }>  b2 = Slice(a2, axis0, two1)""",
}


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("name", STATES)
def test_states_of_changing_sizes(name, jit):
    body = "\n".join(STATES[name].split("  "))
    data = f"""{HEAD} g (float[4] x, float[4] outside) => (float[n] a, float[m] b, float[t,1] firsts)
    <bool yes = {{1}}, int64 iterations = {{5}}, int64[1] axis0 = {{0}}, int64[1] two1 = {{2}}, float[1] one = {{1}},
     int64[2] pairs = {{-1, 2}}, int64[1] flat = {{-1}}, int64 i1 = {{2}}> {{
      y = Add(x, x)
      a, b, firsts = Loop <body = body (int64 i, bool c, float[k] a, float[l] b)
          => (bool c2, float[k2] a2, float[l2] b2, float[1] first) {{
        c2 = Identity(c)
        {body}
        first = Slice(a2, axis0, place) }}> (iterations, yes, x, y) }}""".replace(
        "bool yes", "int64[1] place = {1}, bool yes"
    ).encode()
    feeds = {"x": np.arange(1, 5, dtype=np.float32), "outside": np.full(4, 7, np.float32)}

    def all_of(tier, jit):
        options = treadle.SessionOptions()
        options.add_session_config_entry("treadle.tier", tier)
        options.add_session_config_entry("treadle.jit", jit)
        session = treadle.InferenceSession(data, options)
        first = session.run(None, feeds)
        second = session.run(None, feeds)
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
        return first

    for a, b in zip(all_of("program", jit), all_of("reference", "off"), strict=True):
        np.testing.assert_array_equal(a, b)

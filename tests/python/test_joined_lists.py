"""Lists to which a loop only appends and that are joined behind it become tensors that grow: the results are those of
the reference interpreter, which makes the lists.
"""

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 22]>'

# The piece of an iteration, made of v (n elements), its type, and the joined list.
LISTS = {
    "lines": ("p = Mul(v, v)", "float[a]", "y = ConcatFromSequence <axis = 0> (list)"),
    "from the end": ("p = Neg(v)", "float[a]", "y = ConcatFromSequence <axis = -1> (list)"),
    "integers": ("p = Range(i0, n, i1)", "int64[a]", "y = ConcatFromSequence <axis = 0> (list)"),
    "bools": ("p = Less(v, half)", "bool[a]", "y = ConcatFromSequence <axis = 0> (list)"),
    "rows": ("p = Reshape(v3, rows)", "float[a,3]", "y = ConcatFromSequence <axis = 0> (list)"),
    "columns": ("p = Reshape(v3, columns)", "float[3,a]", "y = ConcatFromSequence <axis = 1> (list)"),
    "the same size": ("p = Slice(x, axis0, two1)", "float[2]", "y = ConcatFromSequence <axis = 0> (list)"),
    "stacked": ("p = Slice(x, axis0, two1)", "float[2]", "y = ConcatFromSequence <axis = 0, new_axis = 1> (list)"),
    "joined twice": (
        "p = Neg(v)",
        "float[a]",
        "y1 = ConcatFromSequence <axis = 0> (list) y2 = ConcatFromSequence <axis = -1> (list) y = Sub(y1, y2)",
    ),
    "measured as well": (
        "p = Neg(v)",
        "float[a]",
        "y1 = ConcatFromSequence <axis = 0> (list) z = SequenceLength(list) f = Cast <to = 1> (z) y = Add(y1, f)",
    ),
    "picked as well": (
        "p = Neg(v)",
        "float[a]",
        "y1 = ConcatFromSequence <axis = 0> (list) y2 = SequenceAt(list, i0) y = Concat <axis = 0> (y1, y2)",
    ),
    "any rank": ("p = Expand(half, n1)", "float", "y = ConcatFromSequence <axis = 0> (list)"),
}


def model(name: str, inner: str = "go2 = Identity(go)") -> bytes:
    piece, kind, joined = LISTS[name]
    element, number = kind.split("[")[0], {"float": 1, "int64": 7, "bool": 9}[kind.split("[")[0]]
    return f"""{HEAD} g (int64[k] lengths, float[m] x) => ({element} y)
    <bool yes = {{1}}, int64[1] axis0 = {{0}}, int64[1] two1 = {{2}}, int64[2] rows = {{-1, 3}}, float half = {{0.5}},
     int64[2] columns = {{3, -1}}, int64 i0 = {{0}}, int64 i1 = {{1}}, int64 stop = {{6}}> {{
      iterations1 = Shape(lengths)
      iterations = Squeeze(iterations1)
      empty = SequenceEmpty <dtype = {number}> ()
      list = Loop <body = b (int64 i, bool go, seq({element}) s) => (bool go2, seq({element}) s2) {{
        {inner}
        n = Gather <axis = 0> (lengths, i)
        n1 = Unsqueeze(n, axis0)
        v = Slice(x, axis0, n1)
        v3 = Concat <axis = 0> (v, v, v)
        {piece}
        s2 = SequenceInsert(s, p) }}> (iterations, yes, empty)
      {joined} }}""".encode()


def run(data: bytes, feeds: dict, tier: str, jit: str) -> list:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.tier", tier)
    options.add_session_config_entry("treadle.jit", jit)
    session = treadle.InferenceSession(data, options)
    first, second = session.run(None, feeds), session.run(None, feeds)
    np.testing.assert_array_equal(first[0], second[0])
    return first[0]


def given(lengths: list[int]) -> dict:
    x = np.random.default_rng(3).standard_normal(4000).astype(np.float32)
    return {"lengths": np.array(lengths, np.int64), "x": x}


@pytest.mark.parametrize("jit", ["off", "always"])
@pytest.mark.parametrize("name", LISTS)
def test_joined_lists(name, jit):
    for lengths in ([3, 1, 0, 15, 2, 4000, 7, 0, 1], [5], [2] * 300):
        ours = run(model(name), given(lengths), "program", jit)
        theirs = run(model(name), given(lengths), "reference", "off")
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", LISTS)
def test_loops_that_end_early(name):
    data = model(name, "go2 = Less(i, stop)")
    ours, theirs = (run(data, given([3, 4, 5] * 5), tier, "off") for tier in ("program", "reference"))
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", LISTS)
def test_nothing_to_join(name):
    said = []
    for tier in ("program", "reference"):
        with pytest.raises(Exception, match="the sequence is empty") as error:
            run(model(name), given([]), tier, "off")
        said.append(str(error.value))
    assert said[0] == said[1]

"""Sizes that do not fit in a body that never runs: the model loads, and a run that reaches the node fails.

Types and ranks, and sizes in what surely runs, are refused when the model is loaded.
"""

import warnings

import numpy as np
import pytest
import treadle
from treadle import _ignored

WAYS = {
    "default": {},
    "native": {"treadle.jit": "always"},
    "reference": {"treadle.tier": "reference"},
    "unoptimised": {"treadle.optimize": "0"},
}
HEAD = '<ir_version: 8, opset_import: ["" : 17]>\ng '

# The nodes of a body whose `row` of 4 numbers cannot be made of `x`, which has others.
NODES = {
    "reshape": "four = Constant <value = int64[1] {4}> ()  row = Reshape (x, four)",
    "slice": """one = Constant <value = int64[1] {1}> ()  start = Reshape (i, one)  end = Add (start, one)
        piece = Slice (x, start, end)  four = Constant <value = int64[1] {4}> ()  row = Reshape (piece, four)""",
    "broadcast": "four = Constant <value = float[4] {1, 2, 3, 4}> ()  row = Add (x, four)",
    "product": """w = Constant <value = float[5,4] {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> ()
        row = MatMul (x, w)""",
    "concat": """one = Constant <value = int64[1] {0}> ()  u = Unsqueeze (x, one)
        w = Constant <value = float[1,4] {1, 2, 3, 4}> ()  both = Concat <axis = 0> (u, w)
        first = Constant <value = int64 {1}> ()  row = Gather (both, first)""",
    "in a branch": """c2 = Identity (c0)
        row = If (c2) <then_branch = t () => (float[4] p) { f = Constant <value = int64[1] {4}> ()  p = Reshape (x, f) },
                       else_branch = e () => (float[4] q) { g = Constant <value = int64[1] {4}> ()  q = Reshape (x, g) }>""",
}
LOOP = """s = Loop (m, c) <body = b (int64 i, bool c0) => (bool c1, float[4] row) {{
    {nodes}
    c1 = Identity (c0)
}}>"""


def session_of(text, way="default"):
    options = treadle.SessionOptions()
    for key, value in WAYS[way].items():
        options.add_session_config_entry(key, value)
    _ignored._said.clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        session = treadle.InferenceSession((HEAD + text).encode(), options)
    return session, [str(warning.message) for warning in told]


def looped(nodes, count):
    """A model whose Loop makes as many iterations as `x` has rows of 0, or a given number."""
    if count == "known":
        head, first = "(float[0] x, bool c) => (float[n,4] s)", "m = Size (x)"
    else:
        head, first = "(float[3] x, int64 m, bool c) => (float[n,4] s)", ""
    return f"{head} {{ {first} {LOOP.format(nodes=nodes)} }}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NODES)
def test_a_loop_without_iterations_runs(name, way):
    session, told = session_of(looped(NODES[name], "known"), way)
    assert not told
    for _ in range(2):
        assert session.run(None, {"x": np.zeros(0, np.float32), "c": np.array(True)})[0].shape == (0, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NODES)
def test_a_run_that_comes_to_the_node_fails(name, way):
    session, told = session_of(looped(NODES[name], "open"), way)
    if name != "slice":  # whose size is not known before the run
        assert any("Loop_0:body/" in message and "a run that reaches this node fails" in message for message in told)
    feed = {"x": np.zeros(3, np.float32), "c": np.array(True)}
    for _ in range(2):
        assert session.run(None, {**feed, "m": np.array(0)})[0].shape == (0, 4)
        assert session.run(None, {**feed, "m": np.array(3), "c": np.array(False)})[0].shape == (0, 4)
        with pytest.raises(Exception, match="Loop_0:body/"):
            session.run(None, {**feed, "m": np.array(2)})


BRANCH = """(float[3] x, bool b) => (float[n] y) {
    y = If (b) <
        then_branch = t () => (float[4] p) { four = Constant <value = int64[1] {4}> ()  p = Reshape (x, four) },
        else_branch = e () => (float[3] q) { q = Neg (x) }
    >
}"""


@pytest.mark.parametrize("way", WAYS)
def test_a_branch_that_is_not_taken(way):
    session, told = session_of(BRANCH, way)
    assert any("then_branch" in message for message in told)
    x = np.array([1, 2, 3], np.float32)
    for _ in range(2):
        assert session.run(None, {"x": x, "b": np.array(False)})[0].tolist() == [-1, -2, -3]
        with pytest.raises(Exception, match="then_branch"):
            session.run(None, {"x": x, "b": np.array(True)})


def test_check_and_inference_say_so():
    for text in (looped(NODES["reshape"], "open"), looped(NODES["reshape"], "known"), BRANCH):
        problems = treadle.check((HEAD + text).encode(), full=True)
        assert [p.severity for p in problems if p.code == "sizes-in-body"] == ["warning"]
        assert not [p for p in problems if p.severity == "error"]
        treadle.infer_shapes((HEAD + text).encode())


# Errors for any sizes, and errors of sizes in bodies that certainly run.
REFUSED = {
    "type": looped("row = And (x, x)", "known").replace("float[4] row", "bool[4] row"),
    "rank": looped("a = Constant <value = int64[1] {3}> ()  row = Unsqueeze (x, a)", "open"),
    "attribute": looped("row = Softmax <axis = 7> (x)", "open"),
    "count": looped(NODES["reshape"], "open")
    .replace("{  s =", "{ m1 = Constant <value = int64 {2}> ()  s =")
    .replace("Loop (m, c)", 'Loop (m1, "")'),
    "scan": """(float[T,3] x) => (float[T,4] s) {
        s = Scan <num_scan_inputs = 1, body = b (float[3] e) => (float[4] row) {
            four = Constant <value = int64[1] {4}> ()
            row = Reshape (e, four)
        }> (x)
    }""",
    "taken branch": BRANCH.replace("y = If (b)", "t = Constant <value = bool {1}> ()  y = If (t)"),
    "outside": "(float[3] x) => (float[4] y) { four = Constant <value = int64[1] {4}> ()  y = Reshape (x, four) }",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_when_a_model_is_loaded(name):
    with pytest.raises(Exception, match="_[0-9]"):
        session_of(REFUSED[name])
    with pytest.raises(Exception, match="_"):
        treadle.infer_shapes((HEAD + REFUSED[name]).encode())
    assert [p for p in treadle.check((HEAD + REFUSED[name]).encode(), full=True) if p.severity == "error"]


OUTER = """(float[3] x, bool[3] k, int64 n, bool c) => (s, z) {
    t = Compress <axis = 0> (x, k)
    s = Loop (n, c) <body = b (int64 i, bool c0) => (bool c0, float[2] t) { }>
    z = If (c) <then_branch = p () => (float[2] t) { }, else_branch = e () => (float[2] t) { }>
}"""


@pytest.mark.parametrize("way", WAYS)
def test_sizes_that_a_body_declares_of_an_outer_value(way):
    """They are known in the body alone, and are the sizes of rows that no iteration has made."""
    session, _ = session_of(OUTER, way)
    x = np.arange(3, dtype=np.float32)
    for kept, count in (([1, 0, 1], 0), ([0, 1, 1], 2), ([1, 1, 0], 0)):
        k = np.array(kept, bool)
        rows, row = session.run(None, {"x": x, "k": k, "n": np.array(count), "c": np.array(True)})
        np.testing.assert_array_equal(rows, np.tile(x[k], (count, 1)).reshape(count, 2))
        np.testing.assert_array_equal(row, x[k])

"""Errors of runs are the same in every tier: the place (body, iteration, operator of the model) and the problem. Nodes
that are not reached do not fail: in loops without iterations, in branches that are not taken.
"""

import numpy as np
import onnx
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

TIERS = {
    "reference": ({"tier": "reference"}, 1),
    "program": ({"jit": "off"}, 1),
    "not optimised": ({"jit": "off", "optimize": "0"}, 1),
    "native": ({"jit": "always"}, 1),
    "native from iteration 2": ({"jit": "always", "jit_iteration": "2"}, 1),
    "two threads": ({"jit": "off"}, 2),
    "native, two threads": ({"jit": "always"}, 2),
}


HEAD = '<ir_version: 10, opset_import: ["" : 22]>\ng '


def outcomes(graph: str, feeds: dict) -> dict:
    """The outcome of a run in each tier: the error's class and text, or the shapes of the results."""
    model = onnx.parser.parse_model(HEAD + graph).SerializeToString()
    found = {}
    for tier, (entries, threads) in TIERS.items():
        options = treadle.SessionOptions()
        options.intra_op_num_threads = threads
        for key, value in entries.items():
            options.add_session_config_entry("treadle." + key, value)
        session = treadle.InferenceSession(model, options)
        for _ in range(2):  # a plan fails each time that it is run
            try:
                outcome = [np.shape(value) for value in session.run(None, feeds)]
            except Exception as error:
                outcome = (type(error).__name__, str(error))
            assert found.setdefault(tier, outcome) == outcome, tier
    return found


def error_of(graph: str, feeds: dict) -> str:
    found = outcomes(graph, feeds)
    (name, message) = found["reference"]
    assert all(outcome == (name, message) for outcome in found.values()), found
    return message


def runs(graph: str, feeds: dict):
    found = outcomes(graph, feeds)
    assert isinstance(found["reference"], list), found
    assert all(outcome == found["reference"] for outcome in found.values()), found


def zeros(*shape):
    return np.zeros(shape, np.float32)


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.parametrize("lengths", [[2, -1], [2, 6]], ids=["negative", "too long"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
def test_lengths_that_no_sequence_has(op, direction, lengths):
    count, gates = 2 if direction == "bidirectional" else 1, GATES[op]
    graph = f"""(float[T,2,3] x, float[{count},{4 * gates},3] w, float[{count},{4 * gates},4] r, int32[2] n) => (float y)
    {{ [cell] y = {op} <hidden_size = 4, direction = "{direction}"> (x, w, r, , n) }}"""
    feeds = {
        "x": zeros(5, 2, 3),
        "w": zeros(count, 4 * gates, 3),
        "r": zeros(count, 4 * gates, 4),
        "n": np.array(lengths, np.int32),
    }
    since = {"RNN": 22, "GRU": 22, "LSTM": 22}[op]
    assert error_of(graph, feeds) == f"/cell ({op}-{since}): sequence_lens[1] is {lengths[1]}, expected 0 to 5"


SCAN = """(float[N,2] x, float[M,2] z, float[2] h0) => (float y) {
  [scan] h, y = Scan <num_scan_inputs = 2, body = b (float[2] h, float[2] p, float[2] q) => (float[2] next, float[2] row) {
    r = Mul(p, q) next = Add(h, r) row = Identity(next) }> (h0, x, z) }"""


@pytest.mark.parametrize("lengths", [(5, 3), (3, 5), (0, 1)])
def test_scan_inputs_of_unequal_lengths(lengths):
    feeds = {"x": zeros(lengths[0], 2), "z": zeros(lengths[1], 2), "h0": zeros(2)}
    expected = f"/scan (Scan-21): scan input 1 has length {lengths[1]}, expected that of the scan inputs before it, {lengths[0]}"
    assert error_of(SCAN, feeds) == expected


def test_scan_inputs_of_unequal_lengths_found_in_the_run():
    graph = """(float[N,2] x, float[M,2] z, int64 k, float[2] h0) => (float y) {
      first = Constant <value = int64[1] {0}> ()  end = Unsqueeze(k, first)
      some = Slice(z, first, end)
      [scan] h, y = Scan <num_scan_inputs = 3, body = b (float[2] h, float[2] p, float[2] q, float[2] u) => (float[2] next, float[2] row) {
        r = Mul(p, q) next = Add(h, r) row = Add(next, u) }> (h0, some, x, some) }"""
    feeds = {"x": zeros(5, 2), "z": zeros(5, 2), "h0": zeros(2), "k": np.array(3)}
    assert (
        error_of(graph, feeds)
        == "/scan (Scan-21): scan input 1 has length 5, expected that of the scan inputs before it, 3"
    )


# Nodes that fail for the given sizes, which a plan can tell beforehand, and their messages.
MISFITS = {
    "Add": (
        "[op] made = Add(s, k)",
        "A and B: shapes [4] and [3] do not broadcast: 4 against 3 at axis 0, expected equal sizes or 1",
    ),
    "Reshape": (
        "shape = Shape(k)  [op] made = Reshape(s, shape)",
        "an input of shape [4] has 4 elements and cannot become [3], expected 3",
    ),
    "TopK": (
        "five = Constant <value = int64[1] {5}> ()  [op] made, places = TopK(s, five)",
        "k is 5, expected 0 to 4: the size of axis 0",
    ),
    "CumSum": ("three = Size(k)  [op] made = CumSum(s, three)", "axis is 3, expected -1 to 0 for rank 1"),
}
VERSIONS = {"Add": 14, "Reshape": 21, "TopK": 11, "CumSum": 14}
FEEDS = {"s0": zeros(4), "k": zeros(3)}


@pytest.mark.parametrize("op", MISFITS)
@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_what_does_not_fit_fails_in_its_iteration_only(op, iterations):
    body, message = MISFITS[op]
    loop = f"""(int64 m, float[n] s0, float[a] k) => (float[n] y, float rows) {{
      yes = Constant <value = bool {{1}}> ()
      [loop] y, rows = Loop <body = b (int64 i, bool c, float[n] s) => (bool d, float[n] t, float row) {{
        d = Identity(c)  {body}  row = Neg(made)  t = Tanh(s) }}> (m, yes, s0) }}"""
    scan = f"""(float[m,2] x, float[n] s0, float[a] k) => (float[n] y, float rows) {{
      [loop] y, rows = Scan <num_scan_inputs = 1, body = b (float[n] s, float[2] e) => (float[n] t, float row) {{
        {body}  row = Neg(made)  t = Tanh(s) }}> (s0, x) }}"""
    for graph, whole, feeds in (
        (loop, "Loop-21", FEEDS | {"m": np.array(iterations)}),
        (scan, "Scan-21", FEEDS | {"x": zeros(iterations, 2)}),
    ):
        if iterations == 0:
            runs(graph, feeds)
        else:
            expected = f"/loop ({whole}) body, iteration 0: /loop:body/op ({op}-{VERSIONS[op]}): {message}"
            assert error_of(graph, feeds) == expected


@pytest.mark.parametrize("op", MISFITS)
def test_what_does_not_fit_fails_in_the_branch_that_is_taken(op):
    body, message = MISFITS[op]
    graph = f"""(float c, float[n] s0, float[a] k) => (float y) {{
      zero = Constant <value = float {{0}}> ()  taken = Greater(c, zero)  s = Tanh(s0)
      [choice] y = If(taken) <
        then_branch = p () => (float v) {{ {body}  v = Neg(made) }},
        else_branch = q () => (float w) {{ w = Neg(s) }}> }}"""
    runs(graph, FEEDS | {"c": np.float32(-1)})
    expected = f"/choice:then_branch/op ({op}-{VERSIONS[op]}): {message}"
    assert error_of(graph, FEEDS | {"c": np.float32(1)}) == expected


def test_what_is_made_of_a_failure_is_of_no_type():
    graph = """(int64 m, float[n] s0, float[a] k) => (float[3] y) {
      yes = Constant <value = bool {1}> ()  three = Constant <value = int64[1] {3}> ()  first = Constant <value = float[3] {0, 0, 0}> ()
      [loop] y = Loop <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
        d = Identity(c)  [op] u = Add(s0, k)  v = Reshape(u, three)  w = Neg(v)  t = Add(s, w) }> (m, yes, first) }"""
    runs(graph, FEEDS | {"m": np.array(0)})
    assert "/loop:body/op (Add-14): A and B: shapes" in error_of(graph, FEEDS | {"m": np.array(1)})


def test_the_first_of_two_errors_is_reported():
    graph = """(int64 m, int64 at, float[n] s0, float[a] k) => (float[n] y) {
      yes = Constant <value = bool {1}> ()
      [loop] y = Loop <body = b (int64 i, bool c, float[n] s) => (bool d, float[n] t) {
        d = Identity(c)  [pick] e = Gather(s, at)  [join] u = Add(s, k)  t = Add(u, e) }> (m, yes, s0) }"""
    feeds = FEEDS | {"m": np.array(2), "at": np.array(9)}
    assert "/loop:body/pick (Gather-13): index 9 is out of range" in error_of(graph, feeds)
    assert "/loop:body/join (Add-14)" in error_of(graph, feeds | {"at": np.array(1)})


def test_a_loop_that_fails_before_its_iterations():
    # The shape of a Scan's state must not change; a Scan without iterations changes nothing.
    graph = """(float[m,2] x, float[n] s0, float[a] k) => (float y) {
      [loop] y = Scan <num_scan_inputs = 1, body = b (float[n] s, float[2] e) => (float[o] t) {
        t = Concat <axis = 0> (s, k) }> (s0, x) }"""
    runs(graph, FEEDS | {"x": zeros(0, 2)})
    assert "/loop (Scan-21)" in error_of(graph, FEEDS | {"x": zeros(2, 2)})


def test_errors_in_what_is_run_as_loops_name_the_operator_of_the_model():
    graph = """(int64[n] x, float[4] w) => (float[k] y) {
      list = SplitToSequence <axis = 0, keepdims = 0> (x)
      [map] made = SequenceMap(list, w) <body = b (int64 i, float[4] v) => (float[k] r) { first = Constant <value = int64[1] {0}> ()  j = Unsqueeze(i, first)  [pick] r = Gather(v, j) }>
      y = ConcatFromSequence <axis = 0> (made) }"""
    expected = (
        "/map (SequenceMap-17) body, iteration 2: /map:body/pick (Gather-13): index 4 is out of range, expected -4 to 3"
    )
    assert error_of(graph, {"x": np.array([0, 1, 4, 9]), "w": zeros(4)}) == expected


def test_a_loop_counted_by_its_iterations_keeps_its_name():
    graph = """(float[T,4] x, int64[T] at) => (float rows) {
      length = Shape <end = 1> (x)  first = Constant <value = int64[1] {0}> ()  m = Squeeze(length, first)
      [loop] rows = Loop <body = b (int64 i, bool c) => (bool d, float row) {
        d = Identity(c)  e = Gather(x, i)  j = Gather(at, i)  [pick] row = Gather(e, j) }> (m, ) }"""
    expected = (
        "/loop (Loop-21) body, iteration 2: /loop:body/pick (Gather-13): index 7 is out of range, expected -4 to 3"
    )
    assert error_of(graph, {"x": zeros(5, 4), "at": np.array([0, 1, 7, 3, 9])}) == expected


def test_a_shape_that_data_decides_is_looked_at_where_sizes_follow_without_it():
    graph = """(int64[T] at, float[4] s0) => (float[4] y) {
      [loop] y = Scan <num_scan_inputs = 1, body = b (float[4] s, int64 n) => (float[4] t) {
        first = Constant <value = int64[1] {0}> ()  size = Unsqueeze(n, first)
        [op] e = Expand(s, size)  t = Add(s, e) }> (s0, at) }"""
    runs(graph, {"at": np.array([4, 1, 4]), "s0": zeros(4)})
    place = "/loop (Scan-21) body, iteration 1: /loop:body/op (Expand-13): "
    expected = place + "the shape of input and the contents of shape: shapes [4] and [3] do not broadcast"
    assert error_of(graph, {"at": np.array([4, 3, 4]), "s0": zeros(4)}).startswith(expected)


def test_an_axis_that_data_decides_stays_in_its_loop():
    graph = """(int64 m, int64 axis, float[4] s0) => (float[4] y) {
      yes = Constant <value = bool {1}> ()  other = Neg(axis)
      [loop] y = Loop <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t) {
        d = Identity(c)  [op] sums = CumSum(s0, other)  t = Add(s, sums) }> (m, yes, s0) }"""
    runs(graph, {"m": np.array(0), "axis": np.array(-1), "s0": zeros(4)})
    assert "iteration 0: /loop:body/op (CumSum-14): axis is 1" in error_of(
        graph, {"m": np.array(2), "axis": np.array(-1), "s0": zeros(4)}
    )


@pytest.mark.parametrize("made", ["Add(i, i)", "Cast <to = 1> (c)", "Expand(c, two)"])
@pytest.mark.parametrize("condition", ["", "yes"], ids=["without cond", "with cond"])
def test_the_condition_of_a_body_is_one_bool(made, condition):
    text = f"""{HEAD}(int64 m, bool yes, float[2] s0) => (float[2] y) {{
      two = Constant <value = int64[1] {{2}}> ()
      [loop] y = Loop <body = b (int64 i, bool c, float[2] s) => (go, float[2] t) {{
        go = {made}  t = Tanh(s) }}> (m, {condition}, s0) }}"""
    problems = [p for p in treadle.check(text.encode(), full=True) if p.severity == "error"]
    assert len(problems) == 1 and problems[0].path == "/loop"
    assert 'the body\'s condition "go" is ' in problems[0].message and "expected one bool" in problems[0].message
    with pytest.raises(treadle.InvalidGraph, match="expected one bool"):
        treadle.InferenceSession(text.encode())


def test_a_limit_names_the_place_in_every_tier():
    graph = """(float[n] s0) => (float[n] y) {
      m = Constant <value = int64 {3}> ()
      [loop] y = Loop <body = b (int64 i, bool c, float[n] s) => (bool d, float[n] t) {
        d = Identity(c)  [op] u = Tanh(s)  t = Neg(u) }> (m, , s0) }"""
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", "reference")
    limits = treadle.RunOptions()
    limits.memory_limit = 40_000
    with pytest.raises(
        treadle.LimitExceeded, match=r"/loop \(Loop-21\) body, iteration \d+: /loop:body/\S+ \(\w+-13\): the memory"
    ):
        treadle.InferenceSession((HEAD + graph).encode(), options).run(None, {"s0": zeros(4000)}, limits)

"""Loops that are rewritten give what the reference interpreter gives, in every tier, and explain reports the changes."""

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

TIERS = ({"jit": "off"}, {"jit": "always"}, {"jit": "off", "threads": 2})


def session(text, threads=1, **entries):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in {"jit_cache": "off", **entries}.items():
        options.add_session_config_entry(f"treadle.{key}", str(value))
    return treadle.InferenceSession(text.encode(), options)


def model(signature, nodes):
    return f'<ir_version: 10, opset_import: ["" : 22]> g {signature} {{ {nodes} }}'


def changes(text, **entries):
    """(change, operator) in all loops."""
    loops = session(text, jit="off", **entries).explain(json=True)["loops"]
    return {(entry["change"], entry["op"]) for loop in loops for entry in loop["rewrites"]}


def check(text, inputs, rtol=1e-5):
    """Tiers agree to the last bit, and with the reference interpreter up to rounding."""
    expected = session(text, tier="reference").run(None, inputs)
    results = [session(text, **entries).run(None, inputs) for entries in TIERS]
    for found in results:
        for a, b, first in zip(found, expected, results[0], strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
            np.testing.assert_array_equal(a, first)
    return results[0]


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# --- loops that pick by the trip counter

BY_COUNTER = """
  size = Shape <start = {axis}, end = {end}> (x)
  zero = Constant <value = int64[1] {{0}}> ()
  one = Constant <value = int64[1] {{1}}> ()
  yes = Constant <value = bool {{1}}> ()
  iterations = Squeeze(size, zero)
  h, y = Loop <body = b (int64 i, bool go, float[2,8] s) => (bool continues, float[2,8] t, float[2,8] o) {{
    continues = Identity(go)
    {pick}
    p = MatMul(e, w)
    q = Add(p, s)
    t = Tanh(q)
    o = Identity(t)
  }}> (iterations, yes, h0)
"""
PICKS = {
    "scalar": "e = Gather <axis = {axis}> (x, i)",
    "one element": "j = Unsqueeze(i, zero)\n e0 = Gather <axis = {axis}> (x, j)\n a = Constant <value = int64[1] {{{axis}}}> ()"
    "\n e = Squeeze(e0, a)",
    "slice": "j = Unsqueeze(i, zero)\n k = Add(j, one)\n a = Constant <value = int64[1] {{{axis}}}> ()"
    "\n e0 = Slice(x, j, k, a)\n e = Squeeze(e0, a)",
    "backwards": "last = Sub(size, one)\n j = Sub(last, i)\n l = Squeeze(j, zero)\n e = Gather <axis = {axis}> (x, l)",
}


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("axis", [0, 1])
def test_picking_by_the_counter_is_scanning(pick, axis):
    shape = "T,2,12" if axis == 0 else "2,T,12"
    signature = f"(float[2,8] h0, float[{shape}] x, float[12,8] w) => (float[2,8] h, float[N,2,8] y)"
    nodes = BY_COUNTER.format(axis=axis, end=axis + 1, pick=PICKS[pick].format(axis=axis))
    text = model(signature, nodes)
    tiers = [session(text, **entries) for entries in (*TIERS, {"tier": "reference"})]
    for steps in (9, 4, 1, 0):
        x = floats(steps, 2, 12) if axis == 0 else floats(2, steps, 12)
        inputs = {"h0": floats(2, 8, seed=2), "x": x, "w": floats(12, 8, seed=3)}
        *results, expected = [s.run(None, inputs) for s in tiers]
        for found in results:
            for a, b, first in zip(found, expected, results[0], strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(a, first)
    done = {(e["change"], e["op"]) for loop in tiers[0].explain(json=True)["loops"] for e in loop["rewrites"]}
    assert {("scanned", "Gather"), ("batched", "MatMul")} <= done


@pytest.mark.parametrize("iterations", [5, 6])
def test_an_index_beyond_the_end_fails_in_its_iteration(iterations):
    text = model(
        "(float[8] h0, float[5,8] x) => (float[8] h)",
        f"""iterations = Constant <value = int64 {{{iterations}}}> ()
        yes = Constant <value = bool {{1}}> ()
        h = Loop <body = b (int64 i, bool go, float[8] s) => (bool continues, float[8] t) {{
          continues = Identity(go)
          e = Gather(x, i)
          t = Add(s, e)
        }}> (iterations, yes, h0)""",
    )
    inputs = {"h0": floats(8), "x": floats(5, 8)}
    if iterations == 5:
        check(text, inputs)
        assert ("scanned", "Gather") in changes(text)
        return
    assert changes(text) == set() or ("scanned", "Gather") not in changes(text)
    messages = []
    for entries in ({"tier": "reference"}, *TIERS):
        with pytest.raises(Exception, match="iteration 5") as caught:
            session(text, **entries).run(None, inputs)
        messages.append(str(caught.value))
    assert len(set(messages)) == 1


# --- iterations and indices that only a run knows

GUARDED = """
  zero = Constant <value = int64 {{0}}> ()
  one = Constant <value = int64 {{1}}> ()
  size = Shape <start = 0, end = 1> (x)
  n = Squeeze(size)
  {before}
  h, {counted} y = Loop <body = b (int64 i, bool go, float[2,8] s {state}) =>
      (bool continues, float[2,8] t {next} , float[2,8] o) {{
    {pick}
    p = MatMul(e, w)
    q = Add(p, s)
    t = Tanh(q)
    o = Identity(t)
  }}> ({m}, {cond}, h0 {initial})
"""
COUNTER = {"state": ", int64 k", "next": ", int64 more", "initial": ", from", "counted": "k_last,"}
GUARDED_LOOPS = {
    "iterations": {"m": "m", "pick": "continues = Identity(go)\n e = Gather(x, i)"},
    "offset": {"m": "m", "pick": "continues = Identity(go)\n j = Add(from, i)\n e = Gather(x, j)"},
    "condition": {"m": "m", "cond": "c", "pick": "continues = Identity(go)\n e = Gather(x, i)"},
    "state": {"m": "m", "pick": "continues = Identity(go)\n e = Gather(x, k)\n more = Add(k, one)", **COUNTER},
    "down": {"m": "m", "pick": "continues = Identity(go)\n e = Gather(x, k)\n more = Sub(k, one)", **COUNTER},
    "while": {"cond": "c", "pick": "e = Gather(x, k)\n more = Add(k, one)\n continues = Less(more, n)", **COUNTER},
    "while not below": {
        "cond": "c",
        "pick": "e = Gather(x, k)\n more = Sub(k, one)\n continues = GreaterOrEqual(more, zero)",
        **COUNTER,
    },
    "while and at most": {
        "m": "m",
        "cond": "c",
        "pick": "e = Gather(x, k)\n more = Add(k, one)\n less = Greater(n, more)\n continues = And(go, less)",
        **COUNTER,
    },
}


def guarded(name):
    parts = {"m": "", "cond": "", "before": "", "state": "", "next": "", "initial": "", "counted": ""}
    return model(
        "(float[2,8] h0, float[T,2,12] x, float[12,8] w, int64 m, int64 from, bool c)"
        " => (float[2,8] h, float[N,2,8] y)",
        GUARDED.format(**{**parts, **GUARDED_LOOPS[name]}),
    )


@pytest.mark.parametrize("name", GUARDED_LOOPS)
def test_what_a_run_decides_is_looked_at_before_the_loop(name):
    text = guarded(name)
    tiers = [session(text, **entries) for entries in ({"tier": "reference"}, *TIERS)]
    done = 0
    for steps, iterations, first, condition in (
        (9, 9, 0, True),
        (9, 5, 3, True),
        (9, 6, 8, True),
        (6, 6, 1, True),
        (6, 0, 2, True),
        (6, 4, 5, False),
        (6, -1, -2, True),
        (1, 1, 0, True),
        (6, 2**62, 2**62, True),
    ):
        inputs = {"h0": floats(2, 8), "x": floats(steps, 2, 12, seed=2), "w": floats(12, 8, seed=3)}
        inputs |= {"m": np.array(iterations, np.int64), "from": np.array(first, np.int64), "c": np.array(condition)}
        outcomes = []
        for s in tiers:
            try:
                outcomes.append(s.run(None, inputs))
            except Exception as failure:
                outcomes.append(str(failure))
        expected, *results = outcomes
        for found in results:
            if isinstance(expected, str):
                assert found == expected and "Gather" in found and "iteration" in found
                continue
            done += 1
            for a, b, same in zip(found, expected, results[0], strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(a, same)
    assert done > 3
    kinds = {
        (entry["change"], entry["op"]) for loop in tiers[1].explain(json=True)["loops"] for entry in loop["rewrites"]
    }
    assert {("guarded", "Loop"), ("batched", "MatMul")} <= kinds


def test_a_while_loop_with_known_numbers_needs_no_guard():
    text = guarded("while").replace("(float[2,8] h0, float[T,", "(float[2,8] h0, float[9,")
    text = text.replace(", int64 from, bool c)", ")").replace(
        "n = Squeeze(size)", "n = Squeeze(size)\n from = Identity(zero)\n c = Less(from, n)"
    )
    inputs = {"h0": floats(2, 8), "x": floats(9, 2, 12), "w": floats(12, 8), "m": np.array(0, np.int64)}
    check(text, inputs)
    loops = session(text, jit="off").explain(json=True)["loops"]
    assert [loop["op"] for loop in loops] == ["Scan"] and loops[0]["states"] == 1


# --- nodes that only scan outputs need

PROJECTION = """
  h, y = Scan <num_scan_inputs = 1, scan_input_directions = [{back}], scan_output_directions = [{back}],
      body = b (float[{rows},24] s, float[{rows},24] e) => (float[{rows},24] t, float[{rows},{out}] o) {{
    r = MatMul(s, R)
    q = Add(e, r)
    t = Tanh(q)
    {row}
  }}> (h0, x)
"""
ROWS = {
    "projection": ("p = MatMul(t, W)\n o = Add(p, b)", {"MatMul", "Add"}, 40),
    "classes": ("p = MatMul(t, W)\n l = Add(p, b)\n o = Softmax <axis = 1> (l)", {"MatMul", "Softmax"}, 40),
    "gated": ("g = Sigmoid(e)\n m = Mul(g, t)\n p = MatMul(m, W)\n o = Relu(p)", {"MatMul", "Relu"}, 40),
    "row": ("o = LogSoftmax <axis = -1> (t)", {"LogSoftmax"}, 24),
    "two of one": (
        "p = MatMul(t, W)\n c, d = Split <axis = 1, num_outputs = 2> (p)\n z = Exp(c)\n o = Concat <axis = 1> (z, d)",
        {"Split", "Exp"},
        40,
    ),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("back", [0, 1])
def test_nodes_that_only_outputs_need_run_after_the_loop(row, rows, back):
    body, ops, out = ROWS[row]
    nodes = PROJECTION.format(rows=rows, out=out, row=body, back=back)
    signature = (
        f"(float[{rows},24] h0, float[T,{rows},24] x, float[24,24] R, float[24,40] W, float[40] b)"
        f" => (float[{rows},24] h, float[T,{rows},{out}] y)"
    )
    weights = {"R": floats(24, 24) / 5, "W": floats(24, 40, seed=2), "b": floats(40, seed=3)}
    text = model(signature, nodes)
    for steps in (11, 4, 0):
        check(text, {"h0": floats(rows, 24, seed=4), "x": floats(steps, rows, 24, seed=5), **weights})
    fixed = text.replace("[T,", "[11,")
    assert {("sunk", op) for op in ops} <= changes(fixed)


def test_a_loop_that_ends_early_has_rows_for_its_iterations():
    text = model(
        "(float[1,16] h0, float[16,16] R, float[16,20] W, int64 stop) => (float[1,16] h, float[N,1,20] y)",
        """yes = Constant <value = bool {1}> ()
        iterations = Constant <value = int64 {50}> ()
        h, y = Loop <body = b (int64 i, bool go, float[1,16] s) => (bool continues, float[1,16] t, float[1,20] o) {
          continues = Less(i, stop)
          r = MatMul(s, R)
          t = Tanh(r)
          o = MatMul(t, W)
        }> (iterations, yes, h0)""",
    )
    for stop in (0, 7, 100):
        inputs = {"h0": floats(1, 16), "R": floats(16, 16) / 4, "W": floats(16, 20), "stop": np.array(stop, np.int64)}
        assert check(text, inputs)[1].shape == (min(stop + 1, 50), 1, 20)
    assert ("sunk", "MatMul") in changes(text)


# --- lists

LIST = """
  zero = Constant <value = int64[1] {{0}}> ()
  size = Shape <start = 0, end = 1> (x)
  iterations = Squeeze(size, zero)
  empty = SequenceEmpty <dtype = 1> ()
  h, list = Loop <body = b (int64 i, bool go, float[2,6] s, seq(float[2,6]) l) =>
      (bool continues, float[2,6] t, seq(float[2,6]) longer) {{
    continues = Identity(go)
    e = Gather(x, i)
    q = Add(e, s)
    t = Tanh(q)
    longer = SequenceInsert(l, t)
  }}> (iterations, , h0, empty)
  y = ConcatFromSequence <axis = {axis}, new_axis = {new_axis}> (list)
  last = SequenceAt(list, zero0)
"""


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 1), (1, 1), (-1, 1), (0, 0), (-1, 0)])
def test_lists_that_a_loop_appends_to_are_scan_outputs(axis, new_axis):
    signature = "(float[2,6] h0, float[T,2,6] x, int64 zero0) => (float[2,6] h, float[N,M,K] y, float[2,6] last)"
    signature = signature if new_axis else signature.replace("N,M,K", "N,M")
    text = model(signature, LIST.format(axis=axis, new_axis=new_axis))
    fixed = text.replace("[T,", "[7,")
    zero = np.array(0, np.int64)
    check(fixed, {"h0": floats(2, 6), "x": floats(7, 2, 6), "zero0": zero})
    assert {("fused", "SequenceInsert"), ("scanned", "Gather")} <= changes(fixed)
    sessions = [session(text, **entries) for entries in ({"tier": "reference"}, *TIERS)]
    for steps in (3, 1, 5, 0):
        inputs = {"h0": floats(2, 6), "x": floats(steps, 2, 6), "zero0": zero}
        if steps == 0:
            for s in sessions:
                with pytest.raises(Exception, match="ConcatFromSequence"):
                    s.run(None, inputs)
            continue
        expected, *results = [s.run(None, inputs) for s in sessions]
        for found in results:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# --- maps


@pytest.mark.parametrize("steps", [12, 5, 1, 0])
def test_a_loop_that_carries_nothing_runs_for_all_iterations_at_once(steps):
    text = model(
        f"(float[{steps},3,10] x, float[10,7] w, float[7] b) => (float[{steps},3,7] y, float[{steps},3,1] m)",
        """y, m = Scan <num_scan_inputs = 1, body = f (float[3,10] e) => (float[3,7] o, float[3,1] top) {
          p = MatMul(e, w)
          q = Add(p, b)
          o = Softmax <axis = -1> (q)
          axis = Constant <value = int64[1] {1}> ()
          top = ReduceMax <keepdims = 1> (o, axis)
        }> (x)""",
    )
    check(text, {"x": floats(steps, 3, 10), "w": floats(10, 7, seed=2), "b": floats(7, seed=3)})
    explained = session(text, jit="off").explain(json=True)
    if steps >= 4:
        assert not explained["loops"]
        assert [entry["op"] for entry in explained["maps"]] == ["Scan"]
        assert "no loop any more" in session(text, jit="off").explain()
    else:
        assert len(explained["loops"]) == (0 if steps == 1 else 1)  # one step needs no loop
        assert not explained["maps"]


def test_a_map_over_the_counter():
    text = model(
        "(float[6] x) => (float[20,6] y)",
        """iterations = Constant <value = int64 {20}> ()
        y = Loop <body = b (int64 i, bool go) => (bool continues, float[6] o) {
          continues = Identity(go)
          t = Cast <to = 1> (i)
          p = Mul(x, t)
          o = Sin(p)
        }> (iterations, )""",
    )
    check(text, {"x": floats(6)})
    assert not session(text, jit="off").explain(json=True)["loops"]


# --- linear recurrences

EMA = "k = Constant <value = float {0.1}> ()\n one = Constant <value = float {1}> ()\n keep = Sub(one, k)\n"
LINEAR = {
    "decay": ("t", EMA + "a = Mul(keep, s)\n b = Mul(k, e)\n t = Add(a, b)"),
    "towards": ("t", EMA + "d = Sub(e, s)\n f = Mul(k, d)\n t = Add(s, f)"),
    "gated": ("t", "g = Sigmoid(e)\n a = Mul(g, s)\n t = Sub(a, e)"),
    "sum": ("t", "t = Add(s, e)"),
    "product": ("t", "g = Sigmoid(e)\n t = Mul(g, s)"),
    "before": ("o", EMA + "a = Mul(keep, s)\n t = Add(a, e)\n o = Mul(s, e)"),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("lanes", [0, 1, 3, 4])
@pytest.mark.parametrize("back", [0, 1])
def test_linear_recurrences_run_in_blocks_where_that_is_allowed(name, lanes, back):
    row, body = LINEAR[name]
    lane = f"[{lanes}]" if lanes else ""
    tail = f",{lanes}" if lanes else ""
    copy = "" if row == "o" else f"o = Identity({row})"
    text = model(
        f"(float{lane} h0, float[T{tail}] x) => (float{lane} h, float[T{tail}] y)",
        f"""h, y = Scan <num_scan_inputs = 1, scan_input_directions = [{back}], scan_output_directions = [{back}],
            body = b (float{lane} s, float{lane} e) => (float{lane} t, float{lane} o) {{ {body} {copy} }}> (h0, x)""",
    )
    shape = (lanes,) if lanes else ()
    entries = {"associative_math": 1, "jit": "off"}
    sessions = [session(text, threads=threads, **entries) for threads in (1, 2)]
    plain = session(text, jit="off")
    for steps in (1031, 512, 300, 5, 1, 0):
        inputs = {"h0": floats(*shape), "x": floats(steps, *shape, seed=2) / 8}
        expected = plain.run(None, inputs)
        for found in (s.run(None, inputs) for s in sessions):
            for a, b in zip(found, expected, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)  # sums of 1031 steps in another order
    assert not sessions[0].explain(json=True)["loops"]
    assert [entry["change"] for entry in sessions[0].explain(json=True)["maps"]] == ["reassociated"]
    assert plain.explain(json=True)["loops"]


def test_threads_do_not_change_a_long_recurrence():
    text = model(
        "(float[2] h0, float[T,2] x) => (float[2] h, float[T,2] y)",
        """h, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] o) {
          g = Sigmoid(e)  a = Mul(g, s)  t = Add(a, e)  o = Identity(t) }> (h0, x)""",
    )
    inputs = {"h0": floats(2), "x": floats(500_000, 2)}
    one, two = (session(text, threads=n, associative_math=1).run(None, inputs) for n in (1, 2))
    for a, b, plain in zip(one, two, session(text).run(None, inputs), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_integers_run_in_blocks_and_wrap(kind):
    text = model(
        f"({kind}[3] h0, {kind}[2000,3] x) => ({kind}[3] h, {kind}[2000,3] y)",
        f"""h, y = Scan <num_scan_inputs = 1, body = b ({kind}[3] s, {kind}[3] e) => ({kind}[3] t, {kind}[3] o) {{
          a = Mul(e, s)  t = Add(a, e)  o = Sub(s, t) }}> (h0, x)""",
    )
    inputs = {"h0": np.array([1, -2, 3], kind), "x": np.random.default_rng(1).integers(-99, 99, (2000, 3)).astype(kind)}
    expected = session(text, tier="reference").run(None, inputs)
    for entries in TIERS:
        blocks = session(text, associative_math=1, **entries)
        for a, b in zip(blocks.run(None, inputs), expected, strict=True):
            np.testing.assert_array_equal(a, b)
        assert not blocks.explain(json=True)["loops"]


def test_other_recurrences_stay_loops():
    for body in ("t = Mul(s, s)", "r = Tanh(s)\n t = Add(r, e)", "t = Max(s, e)"):
        text = model(
            "(float[2] h0, float[900,2] x) => (float[2] h)",
            "h = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t) { "
            + body
            + " }> (h0, x)",
        )
        assert session(text, associative_math=1).explain(json=True)["loops"]


# --- branches that become selects

BRANCHES = {
    # both branches, the state and the values to pick from, whether both may run
    "two results": ("p = Add(s, e) q = Mul(s, e)", "p = Sub(s, e) q = Neg(e)", True),
    "a constant divisor": ("p = Div(s, three) q = Mod(e, three)", "p = Sub(s, e) q = Neg(e)", True),
    "a divisor that may be zero": ("p = Div(s, e) q = Add(s, e)", "p = Sub(s, e) q = Neg(e)", False),
    "an index that may be outside": ("r = Gather(e, i) p = Add(s, r) q = Add(s, r)", "p = Sub(s, e) q = Neg(e)", False),
}


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("nested", [False, True])
def test_only_branches_that_cannot_fail_become_selects(name, nested):
    yes, no, selects = BRANCHES[name]
    choice = f"""c = Equal(k, three)
        t, o = If(c) <then_branch = a () => (int64[4] p, int64[4] q) {{ {yes} }},
                     else_branch = b () => (int64[4] p, int64[4] q) {{ {no} }}>"""
    scan = f"""Scan <num_scan_inputs = 2, body = f (int64[4] s, int64[4] e, int64 k) => (int64[4] t, int64[4] o) {{
        i = Mul(k, four)  {choice} }}>"""
    if nested:
        nodes = f"""h, y = Scan <num_scan_inputs = 2, body = g (int64[4] hs, int64[6,4] xs, int64[6] ks) =>
            (int64[4] ht, int64[6,4] ys) {{ ht, ys = {scan} (hs, xs, ks) }}> (h0, x, n)"""
        lead, kept = "[2,6,4]", "[2,6]"
    else:
        nodes, lead, kept = f"h, y = {scan} (h0, x, n)", "[6,4]", "[6]"
    text = model(
        f"(int64[4] h0, int64{lead} x, int64{kept} n) => (int64[4] h, int64{lead} y)",
        "three = Constant <value = int64 {3}> () four = Constant <value = int64 {4}> ()" + nodes,
    )
    shape = [int(n) for n in lead[1:-1].split(",")]
    x = np.random.default_rng(5).integers(1, 9, shape)
    x[..., 2, :] = 0
    n = np.zeros(shape[:-1], np.int64)
    n[..., 3:5] = 3 if selects or "divisor" in name else 0  # nodes that could fail do not run, or do not fail
    inputs = {"h0": np.arange(4), "x": x, "n": n}
    check(text, inputs)
    assert (("selected", "If") in changes(text)) == selects
    if selects:
        return
    n[..., 2] = 3  # it fails now: divides by zero, or picks row 12 of 4
    messages = []
    for entries in ({"tier": "reference"}, *TIERS):
        with pytest.raises(Exception, match="iteration 2") as caught:
            session(text, **entries).run(None, inputs)
        messages.append(str(caught.value))
    op = "Div" if "divisor" in name else "Gather"
    assert all(f":then_branch/{op}_0 ({op}-" in message for message in messages)
    assert len(set(messages[1:])) == 1


# --- loops over lists

LISTS = {
    "rows": "s = SplitToSequence <axis = 0, keepdims = 0> (x)",
    "columns": "s = SplitToSequence <axis = 1, keepdims = 0> (x)",
    "kept": "s = SplitToSequence <axis = 0> (x)",
    "pairs": "two = Constant <value = int64 {2}> () s = SplitToSequence <axis = 0> (x, two)",
    "written out": "a = Neg(x) s0 = SequenceConstruct(x, a, a) b = Exp(x) s = SequenceInsert(s0, b)",
}
OVER_LISTS = """
  {list}
  t, n = SequenceMap <body = b (float[N] e, float[N] f, float o) => (float[N] r, float[N] q) {{
    p = Mul(e, f)
    r = Add(p, o)
    q = ReduceSum <keepdims = 0> (p)
  }}> (s, s, offset)
  u = SequenceMap <body = c (float[N] e, float m) => (float[N] r) {{ h = Tanh(e) r = Sub(h, m) }}> (t, n)
  y = ConcatFromSequence <axis = 0, new_axis = 1> (u)
  z = ConcatFromSequence <axis = 0, new_axis = 1> (n)
"""


@pytest.mark.parametrize("name", LISTS)
def test_maps_over_lists_run_for_all_elements_at_once(name):
    text = model("(float[T,I] x, float offset) => (float[A] y, float[B] z)", OVER_LISTS.format(list=LISTS[name]))
    inputs = {"x": floats(6, 8), "offset": np.float32(0.5)}
    check(text, inputs)
    tiers = [session(text, **entries) for entries in (*TIERS, {"tier": "reference"})]
    for shape in ((6, 8), (4, 8), (2, 3), (8, 1)):  # planned for one size, then for any
        inputs["x"] = floats(*shape, seed=shape[0])
        *results, expected = [s.run(None, inputs) for s in tiers]
        for found in results:
            for a, b, first in zip(found, expected, results[0], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(a, first)
    s = session(text, jit="off")
    s.run(None, inputs | {"x": floats(8, 8)})
    assert [entry["change"] for entry in s.explain(json=True)["maps"]] == ["mapped", "mapped"]


def test_what_a_list_cannot_give_fails_in_its_iteration():
    nodes = """s = SplitToSequence <axis = 0, keepdims = 0> (x)
      none = SequenceEmpty <dtype = 1> ()
      t = Loop <body = b (int64 i, bool go, seq(float[4]) l) => (bool continues, seq(float[4]) m) {
        continues = Identity(go) e = SequenceAt(s, i) r = Neg(e) m = SequenceInsert(l, r)
      }> (n, , none)
      y = ConcatFromSequence <axis = 0, new_axis = 1> (t)"""
    text = model("(float[T,4] x, int64 n) => (float[A,4] y)", nodes)
    check(text, {"x": floats(5, 4), "n": np.array(5)})
    for entries in (*TIERS, {"tier": "reference"}):
        with pytest.raises(Exception, match="iteration 5.*SequenceAt|SequenceAt.*iteration 5"):
            session(text, **entries).run(None, {"x": floats(5, 4), "n": np.array(7)})


GIVEN = """
  t, n = SequenceMap <body = b (float[N] e, float o) => (float[N] r, float[N] q) {
    r = Mul(e, o)  q = ReduceSum <keepdims = 0> (e)
  }> (s, offset)
  u = SequenceMap <body = c (float[N] e, float[N] f, float m) => (float[N] r) {
    h = Tanh(e) g = Add(h, f) r = Sub(g, m)
  }> (t, s, n)
  count = SequenceLength(u)
"""


def test_lists_that_are_given_are_planned_by_the_shape_of_their_elements():
    text = model("(seq(float[A]) s, float offset) => (seq(float[B]) u, seq(float[B]) n, int64 count)", GIVEN)
    tiers = [session(text, **entries) for entries in (*TIERS, {"tier": "reference"})]

    def check_list(*shapes):
        inputs = {"s": [floats(*shape, seed=i) for i, shape in enumerate(shapes)], "offset": np.float32(2)}
        *results, expected = [s.run(None, inputs) for s in tiers]
        for found in results:
            assert found[2] == expected[2] == len(shapes)
            for a, b, first in zip(found[:2], expected[:2], results[0][:2], strict=True):
                assert len(a) == len(b) == len(first)
                for x, y, z in zip(a, b, first, strict=True):
                    assert x.dtype == y.dtype and x.shape == y.shape
                    np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
                    np.testing.assert_array_equal(x, z)

    for count in (7, 5, 1, 12, 33):
        check_list(*[(4, 3)] * count)
    assert all(s.counters()["plans"] == 2 for s in tiers[:-1])  # for this length, for any
    check_list()
    check_list((4, 3), (2, 3))
    check_list((1, 2), (5,), ())
    assert all(s.counters()["plans"] == 3 for s in tiers[:-1])
    check_list(*[(4, 3)] * 6)
    assert all(s.counters()["plans"] == 3 for s in tiers[:-1])
    for shape in ((2, 8), (), (0, 3), (9,)):
        check_list(*[shape] * 5)
        check_list(*[(4, 3)] * 6)
    assert all(s.counters()["plans"] == 4 for s in tiers[:-1])
    check_list((4, 3), (2, 3))
    assert all(s.counters()["plans"] == 4 for s in tiers[:-1])

    s = session(text, jit="off")
    s.run(None, {"s": [floats(4, 3)] * 5, "offset": np.float32(2)})
    with pytest.raises(Exception, match="double"):
        s.run(None, {"s": [floats(4, 3).astype(np.float64)] * 5, "offset": np.float32(2)})
    assert [entry["change"] for entry in s.explain(json=True)["maps"]] == ["mapped", "mapped"]


# --- products with few weights


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("depth, width", [(12, 8), (9, 33), (32, 32), (40, 64)])
def test_small_products_give_the_same_inside_and_outside(rows, depth, width):
    nodes = """h, y = Scan <num_scan_inputs = 1, body = b (float[R,N] s, float[R,K] e) => (float[R,N] t, float[R,N] o) {
        p = MatMul(e, w) q = MatMul(s, r) u = Add(p, q) t = Tanh(u) v = MatMul(e, w) o = Sub(v, t)
      }> (h0, x)"""
    sizes = {"R": rows, "K": depth, "N": width}
    for name, size in sizes.items():
        nodes = nodes.replace(f"[{name},", f"[{size},").replace(f",{name}]", f",{size}]")
    text = model(
        f"(float[{rows},{width}] h0, float[T,{rows},{depth}] x, float[{depth},{width}] w, float[{width},{width}] r)"
        f" => (float[{rows},{width}] h, float[T,{rows},{width}] y)",
        nodes,
    )
    inputs = {
        "h0": floats(rows, width),
        "x": floats(23, rows, depth),
        "w": floats(depth, width, seed=2) / 4,
        "r": floats(width, width, seed=3) / 9,
    }
    check(text, inputs)
    loops = session(text, jit="always")
    loops.run(None, inputs)
    rewrites = [entry["change"] for loop in loops.explain(json=True)["loops"] for entry in loop["rewrites"]]
    assert ("batched" in rewrites) == (rows > 1 or depth * width >= 2048)


CLIPS = {
    "both": ("Clip (x, lo, hi)", (-1.0, 2.0)),
    "low": ("Clip (x, lo)", (-1.0, 2.0)),
    "high": ("Clip (x, , hi)", (-1.0, 2.0)),
    "low is nan": ("Clip (x, lo, hi)", (np.nan, 2.0)),
    "high is nan": ("Clip (x, lo, hi)", (-1.0, np.nan)),
    "low is above": ("Clip (x, lo, hi)", (2.0, -1.0)),
    "infinite": ("Clip (x, lo, hi)", (-np.inf, np.inf)),
}


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("element", ["float", "double", "float16"])
def test_clip_is_the_same_in_loops_and_outside(name, element):
    """To the last bit, in all tiers: in loops it is Max and Min, elsewhere a kernel of its own."""
    node, bounds = CLIPS[name]
    dtype = {"float": np.float32, "double": np.float64, "float16": np.float16}[element]
    text = model(
        f"({element}[7, 5] X, {element} lo, {element} hi, float s0) => (float s, {element}[7, 5] Y, {element}[7, 5] Z)",
        f"s, Y = Scan <num_scan_inputs = 1, body = b (float si, {element}[5] x) => (float so, {element}[5] y) "
        f"{{ so = Cos (si) y = {node} }}> (s0, X) Z = {node.replace('x', 'X')}",
    )
    values = np.resize(np.array([np.nan, np.inf, -np.inf, 5, -5, -0.0, 0.5, 1, 65000]), (7, 5)).astype(dtype)
    feeds = {"X": values, "lo": dtype(bounds[0]), "hi": dtype(bounds[1]), "s0": np.float32(0)}
    _, inside, outside = check(text, feeds)
    np.testing.assert_array_equal(inside, outside)
    judged = session(text, tier="reference").run(None, feeds)
    np.testing.assert_array_equal(judged[1], inside)
    if any(np.isnan(bounds)):
        assert np.isnan(inside).all()


@pytest.mark.parametrize("element", ["float", "double"])
def test_log_sum_exp_of_infinite_rows(element):
    """A row whose largest element is infinite has no NaN of infinity less infinity; one with NaN has it."""
    dtype = np.float32 if element == "float" else np.float64
    text = model(
        f"({element}[6, 4] X, float s0) => (float s, {element}[6] Y)",
        f"""s, Y = Scan <num_scan_inputs = 1, body = b (float si, {element}[4] x) => (float so, {element} y) {{
            so = Cos (si)
            y = ReduceLogSumExp <keepdims = 0> (x)
        }}> (s0, X)""",
    )
    inf, nan = np.inf, np.nan
    rows = [[0, inf, 1, 2], [-inf] * 4, [inf, -inf, 0, 0], [-inf, 1, -inf, 1], [nan, inf, 0, 0], [1, 2, 3, 4]]
    _, found = check(text, {"X": np.array(rows, dtype), "s0": np.float32(0)})
    np.testing.assert_allclose(found, [inf, -inf, inf, 1 + np.log(2), nan, 4.440189698561196], rtol=1e-6)

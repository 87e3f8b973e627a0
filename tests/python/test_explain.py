"""The report of `explain` about loops: before and after each rewrite, and why they run as they do."""

import json
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")


def session(text, **entries):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    for key, value in {"jit_cache": "off", **entries}.items():
        options.add_session_config_entry(f"treadle.{key}", str(value))
    return treadle.InferenceSession(text.encode(), options)


def model(body, signature="(float[8] x) => (float[8] y)", before="", call="(iterations, yes, x)", opset=22):
    """A Loop of 9 iterations over the state s."""
    return f"""<ir_version: 10, opset_import: ["" : {opset}]>
    g {signature} {{
      yes = Constant <value = bool {{1}}> ()
      iterations = Constant <value = int64 {{9}}> ()
      {before}
      y = Loop <body = b (int64 i, bool go, float[8] s) => (bool continues, float[8] t) {{
        continues = Identity(go)
        {body}
      }}> {call}
    }}"""


def explained(text, **entries):
    (loop,) = session(text, **entries).explain(json=True)["loops"]
    return loop


def changes(loop):
    return {(r["change"], r["op"]) for r in loop["rewrites"]}


def test_a_plain_loop_has_been_left_alone():
    loop = explained(model("t = Tanh(s)"), jit="off")
    assert changes(loop) == {("folded", "Identity")}
    assert (loop["op"], loop["iterations"], loop["states"], loop["state_bytes"]) == ("Loop", 9, 1, 32)
    assert loop["tier"] == "chain"
    assert loop["why_not_native"] == "jit is off"
    assert loop["obstacles"] == []


def test_invariants_are_hoisted():
    loop = explained(model("e = Exp(x)\n t = Add(s, e)"))
    assert ("hoisted", "Exp") in changes(loop)
    (entry,) = [r for r in loop["rewrites"] if r["op"] == "Exp"]
    assert entry["node"]
    assert ("hoisted", "Exp") not in changes(explained(model("e = Exp(s)\n t = Add(s, e)")))


def test_constants_are_folded_and_equal_nodes_merged():
    body = """one = Constant <value = float {1}> ()
        two = Add(one, one)
        a = Tanh(s)
        b = Tanh(s)
        c = Add(a, b)
        t = Mul(c, two)"""
    found = changes(explained(model(body)))
    assert ("folded", "Add") in found
    assert ("merged", "Tanh") in found


def test_nothing_is_rewritten_without_optimisation():
    found = changes(explained(model("e = Exp(x)\n t = Add(s, e)"), optimize=0))
    assert ("hoisted", "Exp") not in found


def test_nodes_without_readers_are_dropped():
    assert ("dropped", "Exp") in changes(explained(model("e = Exp(s)\n t = Tanh(s)")))


def test_a_known_branch_is_taken():
    body = """no = Constant <value = bool {0}> ()
        t = If(no) < then_branch = p () => (float[8] v) { v = Neg(s) }, else_branch = n () => (float[8] w) { w = Tanh(s) }>"""
    loop = explained(model(body))
    assert ("decided", "If") in changes(loop)
    assert [r.get("into") for r in loop["rewrites"] if r["op"] == "If"] == ["else_branch"]


def test_cheap_branches_are_selected():
    body = """two = Constant <value = int64 {2}> ()
        rest = Mod(i, two)
        odd = Equal(rest, two)
        t = If(odd) < then_branch = p () => (float[8] v) { v = Neg(s) }, else_branch = n () => (float[8] w) { w = Abs(s) }>"""
    assert ("selected", "If") in changes(explained(model(body)))


SCAN = """<ir_version: 10, opset_import: ["" : 22]>
g (float[5,2000] xs, float[64] h) => (float[64] last, float[5,64] ys) {
  last, ys = Scan <num_scan_inputs = 1, body = b (float[64] s, float[2000] x) => (float[64] t, float[64] y) {
    p = MatMul(x, w)
    q = Add(s, p)
    t = Tanh(q)
    y = Identity(t)
  }> (h, xs)
}"""


def scan_with_weights():
    return SCAN.replace("(float[5,2000] xs, float[64] h)", "(float[5,2000] xs, float[64] h, float[2000,64] w)")


def test_products_of_scan_inputs_are_batched():
    loop = explained(scan_with_weights())
    assert ("batched", "MatMul") in changes(loop)
    assert not loop["calls"]
    kept = explained(scan_with_weights(), optimize=0)
    assert ("batched", "MatMul") not in changes(kept)
    assert [call["op"] for call in kept["calls"]] == ["MatMul"]


def test_nodes_that_run_outside_of_the_loop_count_with_their_part_of_an_iteration():
    narrow, wide = (session(scan_with_weights().replace("2000", str(size))) for size in (1000, 4000))
    (few,), (many,), (left,) = (
        s.explain(json=True)["loops"] for s in (narrow, wide, session(scan_with_weights(), optimize=0))
    )
    assert few["outside_ns_per_iteration"] > 0 and left["outside_ns_per_iteration"] == 0
    assert many["outside_ns_per_iteration"] > 3 * few["outside_ns_per_iteration"]
    # The products are the whole difference between the two.
    grown = many["estimated_ns_per_iteration"] - few["estimated_ns_per_iteration"]
    assert grown == pytest.approx(many["outside_ns_per_iteration"] - few["outside_ns_per_iteration"], rel=0.01)
    assert few["roof_ns_per_iteration"] <= few["estimated_ns_per_iteration"]
    assert "of it for 1 node of the body, run outside of the loop for all iterations at once" in narrow.explain(
        width=160
    )
    # With inputs, the estimate holds the time that the product took in a run.
    feeds = {"xs": np.ones((5, 4000), np.float32), "h": np.ones(64, np.float32), "w": np.ones((4000, 64), np.float32)}
    (measured,) = wide.explain(feeds, json=True)["loops"]
    assert 0 < measured["outside_ns_per_iteration"] <= measured["measured_ns_per_iteration"]


def test_recurrent_operators_are_loops():
    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (float[7,1,16] x, float[1,32,16] w, float[1,32,8] r) => (float[7,1,1,8] y) {
      y = LSTM <hidden_size = 8> (x, w, r)
    }"""
    loop = explained(text)
    assert ("lowered", "LSTM") in changes(loop)
    assert (loop["op"], loop["iterations"]) == ("Scan", 7)


def test_the_tier_and_what_is_called():
    loop = explained(scan_with_weights(), optimize=0, jit="always")
    assert (loop["tier"], loop["compiled"], loop["from_cache"]) == ("native", True, False)
    assert loop["compile_ms"] > 0
    assert loop["code_bytes"] > 0
    assert loop["why_not_native"] == ""
    (call,) = loop["calls"]
    assert call["op"] == "MatMul"
    assert call["why"]
    assert loop["operations"] >= 2


def test_a_loop_that_has_not_run_for_long_is_no_native_code():
    s = session(model("t = Tanh(s)"), jit="auto")
    feeds = {"x": np.zeros(8, np.float32)}
    s.run(None, feeds)
    (loop,) = s.explain(json=True)["loops"]
    assert loop["tier"] == "chain"
    assert re.fullmatch(r"it will be after about \d[\d.e+]* runs? of this size", loop["why_not_native"])
    assert loop["runs_until_native"] >= 1
    s.compile()
    (loop,) = s.explain(json=True)["loops"]
    assert loop["tier"] == "native"


def test_loops_inside_are_part_of_the_code_around_them():
    inner = """inner_iterations = Constant <value = int64 {3}> ()
        again = Constant <value = bool {1}> ()
        t = Loop <body = c (int64 j, bool go2, float[8] u) => (bool go3, float[8] v) {
          go3 = Identity(go2)
          v = Tanh(u)
        }> (inner_iterations, again, s)"""
    outer, inside = session(model(inner), jit="always").explain(json=True)["loops"]
    assert (outer["parent"], inside["parent"]) == (None, 0)
    assert (outer["tier"], inside["tier"]) == ("native", "inside")
    assert (outer["iterations"], inside["iterations"]) == (9, 3)
    assert outer["flops_per_iteration"] >= 3 * inside["flops_per_iteration"] > 0


def test_sizes_that_only_the_run_knows_are_named():
    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, float[1,8] x) => (float[N,8] y, float[m,1,1] z) {
      yes = Constant <value = bool {1}> ()
      axis = Constant <value = int64 {0}> ()
      y, z = Loop <body = b (int64 i, bool go, float[N,8] cache) => (bool continues, float[M,8] longer, float[1,1] most) {
        continues = Identity(go)
        row = Tanh(x)
        longer = Concat <axis = 0> (cache, row)
        sums = CumSum(cache, axis)
        most = ReduceMax(sums)
      }> (m, yes, x)
    }"""
    s = session(text, jit="always")
    feeds = {"m": np.int64(3), "x": np.ones((1, 8), np.float32)}
    s.run(None, feeds)
    (loop,) = s.explain(feeds, json=True)["loops"]
    assert loop["tier"] == "native"
    assert loop["is_complete"]
    reasons = {(o["op"], o["why"]) for o in loop["obstacles"]}
    assert ("Loop", "the size of state 'cache' is known only at run time") in reasons
    assert any(op == "CumSum" and "'cache' is known only at run time" in why for op, why in reasons)
    assert not any(op == "Concat" for op, _ in reasons)  # native code appends


def test_estimates_grow_with_the_work():
    small, large = (
        explained(
            f"""<ir_version: 10, opset_import: ["" : 22]>
            g (float[{n}] x, float[{n},{n}] w) => (float[{n}] y) {{
              yes = Constant <value = bool {{1}}> ()
              iterations = Constant <value = int64 {{9}}> ()
              y = Loop <body = b (int64 i, bool go, float[{n}] s) => (bool continues, float[{n}] t) {{
                continues = Identity(go)
                p = MatMul(s, w)
                t = Tanh(p)
              }}> (iterations, yes, x)
            }}"""
        )
        for n in (16, 256)
    )
    assert small["bytes_per_iteration"] == 16 * 16 * 4 + 3 * 16 * 4
    assert large["bytes_per_iteration"] == 256 * 256 * 4 + 3 * 256 * 4
    assert large["flops_per_iteration"] > 2 * 256 * 256 > small["flops_per_iteration"] > 2 * 16 * 16
    for loop in (small, large):
        assert loop["estimated_ns_per_iteration"] >= loop["roof_ns_per_iteration"] > 0
    assert large["roof_ns_per_iteration"] > small["roof_ns_per_iteration"]


def scan_of(body: str, width: int) -> str:
    return f"""<ir_version: 10, opset_import: ["" : 22]>
    g (float[{width}] s0, float[100,{width}] xs) => (float[{width}] last, float[100,{width}] ys) {{
      last, ys = Scan <num_scan_inputs = 1, body = b (float[{width}] s, float[{width}] x) => (float[{width}] t, float[{width}] y) {{
        {body}
        y = Identity (t)
      }}> (s0, xs)
    }}"""


def test_what_bounds_an_iteration():
    short = explained(scan_of("a = Mul (s, x)  b = Add (a, x)  t = Tanh (b)", 1))
    one = explained(scan_of("t = Add (s, x)", 1))
    assert short["bound_by"] == one["bound_by"] == "states"
    assert short["roof_ns_per_iteration"] > 3 * one["roof_ns_per_iteration"]
    wide = explained(scan_of("a = Tanh (x)  b = Exp (a)  c = Sin (b)  t = Add (s, c)", 4096), optimize=0)
    assert wide["bound_by"] == "arithmetic"


def test_branches_count_half():
    branch = """zero = Constant <value = float {0.0}> ()
        sum = ReduceSum <keepdims = 0> (x)
        c = Greater (sum, zero)
        t = If (c) <then_branch = p () => (float[256] a) { a = Sin (s) },
                    else_branch = q () => (float[256] b) { b = Cos (s) }>"""
    both = explained(scan_of("a = Sin (s)  b = Cos (s)  t = Add (a, b)", 256))
    either = explained(scan_of(branch, 256), optimize=0)
    assert (
        0.3 * both["flops_per_iteration"] < either["flops_per_iteration"] < 0.9 * both["flops_per_iteration"] + 8 * 256
    )


def growing(n, operator="CumSum(cache, axis)"):
    """A loop of n iterations around a node whose size only the run knows."""
    return f"""<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, float[1,8] x) => (float[N,8] y, float[m,1,1] z) {{
      yes = Constant <value = bool {{1}}> ()
      axis = Constant <value = int64 {{0}}> ()
      y, z = Loop <body = b (int64 i, bool go, float[N,8] cache) => (bool continues, float[M,8] longer, float[1,1] most) {{
        continues = Identity(go)
        row = Tanh(x)
        longer = Concat <axis = 0> (cache, row)
        sums = {operator}
        most = ReduceMax(sums)
      }}> (m, yes, x)
    }}"""


def test_what_is_not_known_is_not_counted_without_a_word():
    s = session(growing(3), jit="off")
    (loop,) = s.explain(json=True)["loops"]
    assert (loop["iterations"], loop["is_complete"], loop["bound_by"]) == (None, False, None)
    assert "CumSum" in {node["op"] for node in loop["unsized"]}
    text = s.explain()
    assert "at least" in text and "as only the run knows the sizes or iterations of" in text and "about" not in text
    assert "1 state (of sizes that only the run knows)" in text and loop["unsized_states"] == 1


def test_a_run_with_the_inputs_supplies_the_sizes_that_the_plan_lacks():
    s = session(growing(3), jit="off")
    feeds = {"m": np.int64(300), "x": np.ones((1, 8), np.float32)}
    (loop,) = s.explain(feeds, json=True)["loops"]
    assert (loop["iterations"], loop["is_complete"], loop["unsized"]) == (300, True, [])
    assert 0 < loop["measured_ns_per_iteration"] < loop["estimated_ns_per_iteration"]
    assert "CumSum" in {node["op"] for node in loop["not_in_roof"]}
    assert loop["bound_by"] is None
    text = s.explain(feeds, width=160)
    assert "300 iterations" in text and "of it measured in a run; the machine's roof is at least" in text


def test_where_the_run_fails_nothing_is_measured():
    s = session(growing(3, "Squeeze(cache, axis)"), jit="off")
    (loop,) = s.explain({"m": np.int64(300), "x": np.ones((1, 8), np.float32)}, json=True)["loops"]
    assert not loop["is_complete"] and loop["measured_ns_per_iteration"] == 0


def test_iterations_of_loops_inside_are_those_of_the_run():
    inner = """y2, t = Loop <body = c (int64 j, bool go2, float[8] u, float[8] w) => (bool go3, float[8] u2, float[8] v) {
          u2 = Identity(u)
          v = Tanh(w)
          m = ReduceMax <keepdims = 0> (v)
          one = Constant <value = float {0.2}> ()
          go3 = Greater(m, one)
        }> ("", go, x, s)"""
    feeds = {"x": np.full(8, 2, np.float32)}
    s = session(model(inner))
    outer, inside = s.explain(feeds, json=True)["loops"]
    assert outer["iterations"] == 9
    assert inside["iterations"] > 1
    assert outer["is_complete"] and inside["is_complete"]
    counted = {loop["node"]: loop for loop in s.profile(feeds, runs=1).loops}
    assert counted[inside["node"]]["times"] == 9
    assert round(counted[inside["node"]]["iterations"] / 9) == inside["iterations"]


def test_the_text_says_the_same():
    s = session(scan_with_weights(), optimize=0, jit="always")
    text = s.explain()
    assert "(Scan), 5 iterations" in text
    assert "native code, " in text
    assert "(MatMul): " in text
    assert "the machine's roof is" in text
    assert (
        "No loops"
        in session('<ir_version: 10, opset_import: ["" : 22]> g (float[2] x) => (float[2] y) { y = Tanh(x) }').explain()
    )


@pytest.fixture
def tool():
    path = (
        pathlib.Path(os.environ.get("TREADLE_BIN_DIR", pathlib.Path(__file__).parents[2] / "build" / "bin")) / "treadle"
    )
    if not path.exists():
        pytest.skip("the command-line tool is not built")
    return str(path)


def test_the_tool_explains(tmp_path, tool):
    path = tmp_path / "m.onnxtxt"
    path.write_text(scan_with_weights())
    run = [tool, "explain", str(path)]
    assert "(Scan), 5 iterations" in subprocess.run(run, capture_output=True, text=True, check=True).stdout
    done = subprocess.run([*run, "--random", "1", "--json"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["is_specific"]
    assert report["loops"][0]["tier"] == "native"
    assert report["machine"]["flops_per_ns"] > 0


def test_the_tool_lists_rewrites_when_asked(tmp_path, tool):
    path = tmp_path / "m.onnxtxt"
    path.write_text(scan_with_weights())
    run = [tool, "explain", str(path)]
    brief, full = (
        subprocess.run([*run, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--rewritten"])
    )
    assert "what would help" in brief and "batched   " not in brief and "batched   " in full
    assert max(map(len, brief.splitlines())) <= 100


def test_a_text_is_as_wide_as_asked():
    s = session(scan_with_weights(), jit="off")
    for width in (60, 100, 160):
        text = s.explain(width=width)
        assert max(map(len, text.splitlines())) <= width
        assert "what would help\n  native code, which is switched off" in text
    assert "1 batched" in s.explain() and "batched   " in s.explain(rewritten=True)


def test_the_time_of_a_run_is_measured_with_inputs():
    s = session(scan_with_weights())
    feeds = {"xs": np.ones((5, 2000), np.float32), "h": np.ones(64, np.float32), "w": np.ones((2000, 64), np.float32)}
    measured, estimated = s.explain(feeds, json=True), s.explain(json=True)
    assert measured["measured_ns_per_run"] > 0
    assert measured["estimated_ns_per_run"] > 0 and not measured["assumes_iterations"]
    assert measured["nodes"][0]["op"] == "MatMul"
    assert [n["ns"] for n in measured["nodes"]] == sorted((n["ns"] for n in measured["nodes"]), reverse=True)
    assert measured["loops"][0]["iterations_per_run"] == 5 == estimated["loops"][0]["iterations_per_run"]


def test_check_says_whether_loops_pay(tmp_path, tool):
    path = tmp_path / "m.onnxtxt"
    path.write_text(model("t = Tanh(s)"))
    done = subprocess.run([tool, "check", str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].startswith("  will profit: 1 loop carries state, 9 iterations known; ")


def test_the_tool_profiles(tmp_path, tool):
    path = tmp_path / "m.onnxtxt"
    path.write_text(scan_with_weights())
    trace = tmp_path / "trace.json"
    run = [tool, "profile", str(path), "--random", "1", "--runs", "3", "--out", str(trace)]
    assert "share" in subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert json.loads(trace.read_text())["traceEvents"]


# --- profile


def profiled(text, feeds, runs=1, **entries):
    s = session(text, **entries)
    return s, s.profile(feeds, runs=runs)


def test_every_node_of_every_iteration():
    feeds = {"x": np.ones(8, np.float32), "w": np.full((8, 8), 0.1, np.float32)}
    text = model("p = MatMul(s, w)\n t = Softmax(p)", "(float[8] x, float[8,8] w) => (float[8] y)")
    _, profile = profiled(text, feeds, runs=2)
    counts = {node["op"]: node["count"] for node in profile.nodes if not node["is_glue"]}
    assert counts == {"MatMul": 9, "Softmax": 9}  # of one run, the median
    assert {node["loop"] for node in profile.nodes if node["op"] == "MatMul"} != {""}
    assert profile.total_ns > 0
    assert sum(node["ns"] for node in profile.nodes) == pytest.approx(profile.total_ns)
    assert [n["ns"] for n in profile.nodes] == sorted((n["ns"] for n in profile.nodes), reverse=True)
    assert "MatMul" in str(profile)


def test_the_table_names_spread_and_loops():
    feeds = {"x": np.ones(8, np.float32), "w": np.full((8, 8), 0.1, np.float32)}
    text = model("p = MatMul(s, w)\n t = Softmax(p)", "(float[8] x, float[8,8] w) => (float[8] y)")
    _, profile = profiled(text, feeds, runs=5)
    assert all(node["least_ns"] <= node["ns"] <= node["most_ns"] for node in profile.nodes)
    assert 0 <= profile.interrupted_runs <= 5
    (loop,) = profile.loops
    assert (loop["op"], loop["times"], loop["iterations"], loop["parent"]) == ("Loop", 1, 9, None)
    table = str(profile)
    assert "each node's median of 5 runs" in table and "fastest slowest" in table
    assert f"{loop['node']} (Loop)  9 iterations" in table
    shares = [float(share) for share in re.findall(r"(\d+) %", table)]
    assert len(shares) == len(profile.nodes) + 1 and shares[-1] == 100  # the last is the whole run
    assert abs(sum(shares[:-1]) - 100) < len(shares)


def test_slices_of_the_trace_lie_in_each_other(tmp_path):
    feeds = {"x": np.ones(8, np.float32), "w": np.full((8, 8), 0.1, np.float32)}
    text = model("p = MatMul(s, w)\n t = Softmax(p)", "(float[8] x, float[8,8] w) => (float[8] y)")
    s = session(text)
    profile = s.profile(feeds, tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == profile.trace()
    open_slices, iterations, nodes, last = [], 0, 0, 0.0
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            continue
        assert event["ts"] >= last
        last = event["ts"]
        if event["ph"] == "B":
            open_slices.append(event["cat"])
            iterations += event["cat"] == "iteration"
        elif event["ph"] == "E":
            open_slices.pop()
        else:
            assert event["ph"] == "X"
            nodes += 1
            if event["name"] in ("MatMul", "Softmax"):
                assert open_slices == ["loop", "iteration"]
                assert event["args"]["iteration"] == iterations - 1
    assert open_slices == []
    assert iterations == 9
    assert nodes >= 18


def test_a_profile_changes_no_result():
    feeds = {"x": np.linspace(-1, 1, 8, dtype=np.float32)}
    s, _ = profiled(model("t = Tanh(s)"), feeds, jit="always")
    before = s.counters()
    np.testing.assert_array_equal(s.run(None, feeds)[0], session(model("t = Tanh(s)"), jit="off").run(None, feeds)[0])
    assert s.counters()["compilations"] == before["compilations"] == 1


def test_errors_in_a_profiled_run_are_those_of_runs():
    text = """<ir_version: 10, opset_import: ["" : 22]>
    g (int64[3] a, int64[3] b) => (int64[3] y) { y = Div(a, b) }"""
    with pytest.raises(Exception, match="zero"):
        session(text).profile({"a": np.ones(3, np.int64), "b": np.zeros(3, np.int64)})
    with pytest.raises(treadle.InvalidArgument, match="reference"):
        session(text, tier="reference").profile({"a": np.ones(3, np.int64), "b": np.ones(3, np.int64)})


def test_a_loop_without_iterations():
    text = model("t = Tanh(s)").replace("int64 {9}", "int64 {0}")
    _, profile = profiled(text, {"x": np.ones(8, np.float32)}, optimize=0)
    phases = [event["ph"] for event in profile.trace()["traceEvents"]]
    assert phases.count("B") == phases.count("E")


def test_products_are_restated():
    weights = "w = Constant <value = float[2, 8] {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}> ()"
    loop = explained(
        model('p = Einsum <equation = "ji,i->j"> (w, s)\n m = ReduceMax(p)\n t = Add(s, m)', before=weights)
    )
    (entry,) = [r for r in loop["rewrites"] if r["change"] == "restated"]
    assert entry["op"] == "Einsum"
    assert "ReduceSum" in entry["into"] or "MatMul" in entry["into"]


def test_calls_name_the_type_that_is_in_the_way():
    body = "c = Cast <to = 17> (s)\n d = Cast <to = 1> (c)\n t = Add(s, d)"
    loop = explained(model(body), jit="always")
    assert {call["why"] for call in loop["calls"]} == {
        "native code does not compute with elements of type float8e4m3fn"
    }

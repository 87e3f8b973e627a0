"""Loops that run at the same time, strip of iterations by strip of iterations: stacked layers, directions, and the
nodes between them. With any number of threads, the results are those of one.
"""

import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_native import assert_same_bits

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, WIDTH = 220, 2, 48


def session(proto, threads, **entries):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", str(value))
    return treadle.InferenceSession(proto if isinstance(proto, bytes) else proto.encode(), options)


def stacked(op, layers=3, *, direction="forward", lengths=False, states=False, between=(), layout=0):
    """Layers of one operator; `between`: operators of one operand between them, with their attributes."""
    rng = np.random.default_rng(layers)
    directions = 2 if direction == "bidirectional" else 1
    value = helper.make_tensor_value_info
    nodes, weights, x, width = [], [], "x", WIDTH
    inputs = [value("x", TensorProto.FLOAT, [STEPS, BATCH, WIDTH])]
    if lengths:
        inputs.append(value("lengths", TensorProto.INT32, [BATCH]))
    if states:
        inputs.append(value("h0", TensorProto.FLOAT, [layers * directions, BATCH, WIDTH]))
        cuts = numpy_helper.from_array(np.full(layers, directions, np.int64), "cuts")
        weights.append(cuts)
        nodes.append(helper.make_node("Split", ["h0", "cuts"], [f"h0_{k}" for k in range(layers)], axis=0))
    for k in range(layers):
        rows = GATES[op] * WIDTH
        for name, shape in (("W", (rows, width)), ("R", (rows, WIDTH)), ("B", (2 * rows,))):
            data = rng.uniform(-0.3, 0.3, (directions, *shape)).astype(np.float32)
            weights.append(numpy_helper.from_array(data, f"{name}{k}"))
        nodes.append(
            helper.make_node(
                op,
                [x, f"W{k}", f"R{k}", f"B{k}", "lengths" if lengths else "", f"h0_{k}" if states else ""],
                [f"y{k}", f"end{k}"],
                hidden_size=WIDTH,
                direction=direction,
            )
        )
        nodes.append(helper.make_node("Transpose", [f"y{k}"], [f"t{k}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{k}", "rows"], [f"r{k}"]))
        x, width = f"r{k}", directions * WIDTH
        for i, (middle, attributes) in enumerate(between):
            nodes.append(helper.make_node(middle, [x], [f"m{k}_{i}"], **attributes))
            x = f"m{k}_{i}"
    weights.append(numpy_helper.from_array(np.array([STEPS, BATCH, directions * WIDTH], np.int64), "rows"))
    outputs = [value(x, TensorProto.FLOAT, None)] + [value(f"end{k}", TensorProto.FLOAT, None) for k in range(layers)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    feeds = {"x": rng.uniform(-1, 1, (STEPS, BATCH, WIDTH)).astype(np.float32)}
    if lengths:
        feeds["lengths"] = np.array([STEPS - 11, 17], np.int32)
    if states:
        feeds["h0"] = rng.uniform(-1, 1, (layers * directions, BATCH, WIDTH)).astype(np.float32)
    return model.SerializeToString(), feeds


def pipelines(plan):
    return [line for line in plan.splitlines() if " pipeline " in line]


def check(proto, feeds, count=1):
    """Runs both ways, with 1 to 4 threads, interpreted and native from any iteration."""
    alone = session(proto, 1, jit="off")
    assert not pipelines(alone.dump_plan(feeds))
    expected = alone.run(None, feeds)
    for threads in (2, 3, 4):
        for entries in ({"jit": "off"}, {"jit": "always"}, {"jit": "always", "jit_iteration": 7}):
            several = session(proto, threads, **entries)
            assert len(pipelines(several.dump_plan(feeds))) == count
            # The first runs are pipelines, later ones run the instructions one after the other.
            for _ in range(6):
                assert_same_bits(several.run(None, feeds), expected)
    return expected


@pytest.mark.parametrize("op", GATES)
def test_stacked_layers(op):
    check(*stacked(op))
    proto, feeds = stacked(op, states=True)
    check(proto, feeds)
    [line] = pipelines(session(proto, 2).dump_plan(feeds))
    # Each layer waits for the strip of the layer below, not for all of it.
    assert "(rows of" in line
    assert " after 0)" in line
    assert " after 1)" in line
    assert "all of" not in line


@pytest.mark.parametrize("op", GATES)
def test_two_directions(op):
    proto, feeds = stacked(op, layers=1, direction="bidirectional")
    check(proto, feeds)
    # Two layers: the second one begins when both directions of the first are through.
    check(*stacked(op, layers=2, direction="bidirectional", states=True))


@pytest.mark.parametrize("op", GATES)
def test_lengths(op):
    proto, feeds = stacked(op, lengths=True)
    check(proto, feeds)
    check(*stacked(op, layers=1, lengths=True, direction="bidirectional"))
    for lengths in ((STEPS, STEPS), (3, 1), (1, STEPS)):
        feeds["lengths"] = np.array(lengths, np.int32)
        check(proto, feeds)
    feeds["lengths"] = np.array([STEPS + 1, 3], np.int32)
    message = []
    for threads in (1, 3):
        with pytest.raises(Exception, match=str(STEPS + 1)) as error:
            session(proto, threads).run(None, feeds)
        message.append(str(error.value))
    assert message[0] == message[1]


def test_reverse_layers_wait_for_each_other():
    proto, feeds = stacked("GRU", direction="reverse")
    expected = session(proto, 1).run(None, feeds)
    several = session(proto, 3)
    assert not pipelines(several.dump_plan(feeds))
    assert_same_bits(several.run(None, feeds), expected)


def test_what_stands_between_layers():
    check(*stacked("LSTM", between=[("Relu", {})]))
    check(*stacked("LSTM", between=[("Softmax", {}), ("Transpose", {"perm": [0, 1, 2]})]))
    # Softmax over the steps needs all of them: each layer is waited for.
    proto, feeds = stacked("LSTM", between=[("Softmax", {"axis": 0})])
    expected = session(proto, 1).run(None, feeds)
    several = session(proto, 3)
    assert not pipelines(several.dump_plan(feeds))
    assert_same_bits(several.run(None, feeds), expected)


HEAD = '<ir_version: 10, opset_import: ["" : 22]>'
N, T = 64, 200


def scans(divisor="int32[200] d"):
    """Two Scans; the second reads the first one's rows. The first can fail on its data, and so can the second."""
    return f"""{HEAD}
    g (float[{N}] h0, float[{T},{N}] x, int32[{T},{N}] a, {divisor}, float[{N},{N}] r)
      => (float[{N}] last1, float[{N}] last2, float[{T},{N}] z, int32[{T},{N}] b) {{
      last1, y, b = Scan <num_scan_inputs = 3, body = one (float[{N}] h, float[{N}] u, int32[{N}] n, int32 m)
          => (float[{N}] h1, float[{N}] e, int32[{N}] q) {{
        p = MatMul(h, r)
        s = Add(p, u)
        h1 = Tanh(s)
        e = Mul(h1, u)
        q = Div(n, m) }}> (h0, x, a, d)
      last2, z = Scan <num_scan_inputs = 2, body = two (float[{N}] h, float[{N}] u, int32[{N}] n)
          => (float[{N}] h1, float[{N}] e) {{
        p = MatMul(h, r)
        s = Add(p, u)
        c = Cast<to = 1>(n)
        v = Sin(c)
        h1 = Tanh(s)
        e = Add(h1, v) }}> (h0, y, b) }}"""


def scan_feeds():
    rng = np.random.default_rng(5)
    return {
        "h0": rng.uniform(-1, 1, N).astype(np.float32),
        "x": rng.uniform(-1, 1, (T, N)).astype(np.float32),
        "a": rng.integers(-99, 99, (T, N)).astype(np.int32),
        "d": np.full(T, 3, np.int32),
        "r": rng.uniform(-0.2, 0.2, (N, N)).astype(np.float32),
    }


def test_scans():
    check(scans(), scan_feeds())


@pytest.mark.parametrize("iteration", (0, 3, 120, T - 1))
def test_errors_name_the_first_iteration_that_fails(iteration):
    feeds = scan_feeds()
    feeds["d"][iteration] = 0
    messages = set()
    for threads in (1, 2, 4):
        for jit in ("off", "always"):
            with pytest.raises(Exception, match=f"iteration {iteration}:") as error:
                session(scans(), threads, jit=jit).run(None, feeds)
            messages.add(str(error.value))
    assert len(messages) == 1
    feeds["d"][iteration] = 1
    several = session(scans(), 2)
    assert_same_bits(several.run(None, feeds), session(scans(), 1).run(None, feeds))


def test_limits_count_iterations_in_their_order():
    options = treadle.RunOptions()
    options.iteration_limit = T + 20
    messages = set()
    for threads in (1, 3):
        with pytest.raises(Exception, match=f"limit of {T + 20} iterations") as error:
            session(scans(), threads).run(None, scan_feeds(), options)
        messages.add(str(error.value))
    assert len(messages) == 1


@pytest.mark.parametrize("threads", (2, 4))
def test_a_pipeline_stops_when_it_is_told_to(threads):
    proto, feeds = stacked("LSTM", layers=4)
    several = session(proto, threads)
    expected = several.run(None, feeds)
    options = treadle.RunOptions()
    options.time_limit = 1e-5
    with pytest.raises(Exception, match="time limit"):
        several.run(None, feeds, options)
    # Cancelled at some point of many runs, from another thread.
    options = treadle.RunOptions()
    timer = threading.Timer(0.03, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(treadle.Fail, match="cancelled"):
        deadline = time.perf_counter() + 20
        while time.perf_counter() < deadline:
            several.run(None, feeds, options)
    timer.join()
    assert_same_bits(several.run(None, feeds), expected)


def test_sessions_share_the_pool():
    cases = [stacked("LSTM"), stacked("GRU", direction="bidirectional", layers=1), (scans(), scan_feeds())]
    expected = [session(proto, 1).run(None, feeds) for proto, feeds in cases]
    shared = [session(proto, 3) for proto, _ in cases]
    wrong = []

    def work(first):
        for i in range(20):
            k = (first + i) % len(cases)
            results = shared[k].run(None, cases[k][1])
            if any(not np.array_equal(a, b) for a, b in zip(results, expected[k], strict=True)):
                wrong.append(k)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong

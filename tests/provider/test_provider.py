"""treadle as an execution provider inside onnxruntime: the nodes that it claims, and that results are onnxruntime's
own.
"""

import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import onnxruntime_ep_treadle
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "dropin" / "clients"))
from levels import assert_close, rounds_to_levels  # noqa: E402

SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared"))
NAME = onnxruntime_ep_treadle.get_ep_name()
VERSION = int(onnxruntime.__version__.split(".")[1])
HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

CAPTURES = (
    HEAD
    + """g (int64 n, float[N,3] x, float[3] step) => (float[N,3] y, float[iterations,N] sums)
<float[3] scale = {0.5, 2.0, -1.0}> {
  yes = Constant <value = bool {1}> ()
  moved = Mul(x, scale)
  y, sums = Loop <body = b (int64 i, bool go, float[N,3] s) => (bool on, float[N,3] t, float[N] sum) {
    on = Identity(go)
    u = Add(s, step)
    v = Mul(u, scale)
    w = Add(v, moved)
    t = Tanh(w)
    axes = Constant <value_ints = [1]> ()
    sum = ReduceSum <keepdims = 0> (t, axes)
  }> (n, yes, moved)
}"""
)

SEQUENCES = (
    HEAD
    + """g (int64 n, float[2] x) => (float[M] y) {
  yes = Constant <value = bool {1}> ()
  none = SequenceEmpty ()
  last, parts = Loop <body = b (int64 i, bool go, float[2] s, seq(float[2]) l) => (bool on, float[2] t, seq(float[2]) m) {
    on = Identity(go)
    t = Add(s, s)
    m = SequenceInsert(l, t)
  }> (n, yes, x, none)
  y = ConcatFromSequence <axis = 0> (parts)
}"""
)

GIVES_A_SEQUENCE = (
    HEAD
    + """g (int64 n, float[2] x) => (seq(float[2]) parts) {
  yes = Constant <value = bool {1}> ()
  none = SequenceEmpty ()
  parts = Loop <body = b (int64 i, bool go, seq(float[2]) l) => (bool on, seq(float[2]) m) {
    on = Identity(go)
    m = SequenceInsert(l, x)
  }> (n, yes, none)
}"""
)

LOOP_IN_IF = (
    HEAD
    + """g (bool c, int64 n, float[2] x) => (float[2] y) {
  yes = Constant <value = bool {1}> ()
  y = If <then_branch = t () => (float[2] a) {
    a = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] r) {
      on = Identity(go)
      r = Add(s, x)
    }> (n, yes, x)
  }, else_branch = e () => (float[2] b) { b = Neg(x) }> (c)
}"""
)

TEXTS = (
    HEAD
    + """g (int64 n, string[2] words) => (string[2] last, string[iterations,2] all) {
  yes = Constant <value = bool {1}> ()
  last, all = Loop <body = b (int64 i, bool go, string[2] s) => (bool on, string[2] t, string[2] u) {
    on = Identity(go)
    t = Identity(words)
    u = Identity(s)
  }> (n, yes, words)
}"""
)

GATHERS = (
    HEAD
    + """g (int64 n, float[3] x) => (float y) {
  yes = Constant <value = bool {1}> ()
  zero = Constant <value = float {0}> ()
  y, same = Loop <body = b (int64 i, bool go, float s, float[3] v) => (bool on, float t, float[3] w) {
    on = Identity(go)
    u = Gather(v, i)
    t = Add(s, u)
    w = Identity(v)
  }> (n, yes, zero, x)
}"""
)

NEGATES = HEAD + "g (float[2] x) => (float[2] y) { y = Neg(x) }"

# The Relu comes between the two loops, so they cannot be one claim without it.
TWO_LOOPS = (
    HEAD
    + """g (int64 n, float[2] x) => (float[2] z) {
  yes = Constant <value = bool {1}> ()
  y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go) t = Add(s, s) }> (n, yes, x)
  r = Relu(y)
  z = Loop <body = c (int64 j, bool ho, float[2] p) => (bool pn, float[2] q) { pn = Identity(ho) q = Sub(p, r) }> (n, yes, y)
}"""
)

INPUTS = {
    "captures": (CAPTURES, {"n": np.array(5), "x": np.ones((2, 3), "f4"), "step": np.float32([0.1, 0.2, 0.3])}),
    "sequences": (SEQUENCES, {"n": np.array(3), "x": np.float32([1, 2])}),
    "loop_in_if": (LOOP_IN_IF, {"c": np.array(True), "n": np.array(3), "x": np.float32([1, 2])}),
    "texts": (TEXTS, {"n": np.array(2), "words": np.array(["é", ""], object)}),
    "gathers": (GATHERS, {"n": np.array(3), "x": np.float32([1, 2, 4])}),
    "two_loops": (TWO_LOOPS, {"n": np.array(3), "x": np.float32([1, -2])}),
}


# Once in a process: a worker of pytest may come back to this module after other modules, and sessions that a failed
# test left behind must not outlive the library. The page about the provider registers it as well.
@pytest.fixture(scope="session", autouse=True)
def registered():
    if not devices():
        onnxruntime.register_execution_provider_library(NAME, onnxruntime_ep_treadle.get_library_path())


def devices() -> list:
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]


def serialised(model) -> bytes | str:
    if isinstance(model, pathlib.Path):
        return str(model)
    return (onnx.parser.parse_model(model) if isinstance(model, str) else model).SerializeToString()


def on_treadle(model, options=None, entries=None, threads=1):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in (entries or {}).items():
        settings.add_session_config_entry(key, value)
    providers = [(NAME, options or {}), "CPUExecutionProvider"]
    if VERSION < 25:
        settings.add_provider_for_devices(devices(), options or {})
        providers = None
    session = onnxruntime.InferenceSession(serialised(model), settings, providers=providers, enable_fallback=False)
    session.disable_fallback()
    return session


def on_cpu(model):
    return onnxruntime.InferenceSession(serialised(model), providers=["CPUExecutionProvider"])


def expected_outputs(case):
    model, feeds = INPUTS[case]
    if case == "texts":  # onnxruntime 1.31's Loop leaves the first text of the second iteration empty
        return [feeds["words"], np.stack([feeds["words"]] * int(feeds["n"]))]
    return on_cpu(model).run(None, feeds)


def groups_of(session) -> list:
    if VERSION < 24:
        pytest.skip("onnxruntime 1.23 does not say what providers take")
    return session.get_provider_graph_assignment_info()


def claimed(session) -> list[str]:
    return sorted(node.op_type for group in groups_of(session) if group.ep_name == NAME for node in group.get_nodes())


def assert_same(got, want, levels=False):
    for ours, theirs in zip(got, want, strict=True):
        if isinstance(theirs, list):  # of maps, as classifiers give
            assert_same([np.array(list(m.values())) for m in ours], [np.array(list(m.values())) for m in theirs])
        elif isinstance(theirs, np.ndarray) and theirs.dtype.kind == "f":
            assert_close(ours, theirs, levels)
        else:
            np.testing.assert_array_equal(ours, theirs)


def test_the_package_names_the_provider_that_onnxruntime_lists():
    assert onnxruntime_ep_treadle.get_ep_names() == [NAME]
    assert devices()
    if VERSION >= 25:
        assert NAME in onnxruntime.get_available_providers()


@pytest.mark.parametrize("case", INPUTS)
def test_loops_are_claimed_and_give_the_same(case):
    model, feeds = INPUTS[case]
    session = on_treadle(model, {"claim": "loops"})
    want = expected_outputs(case)
    for _ in range(3):
        assert_same(session.run(None, feeds), want)
    expected = {"sequences": ["ConcatFromSequence", "Loop", "SequenceEmpty"]}
    if VERSION >= 27:  # older ones hand no captures to providers
        expected |= {"loop_in_if": ["If"], "two_loops": ["Loop"] * 2}
    else:
        expected |= {"captures": []}
    assert claimed(session) == expected.get(case, ["Loop"])


@pytest.mark.parametrize("claim", ["cost", "all"])
@pytest.mark.parametrize("case", INPUTS)
def test_whole_graphs(case, claim):
    model, feeds = INPUTS[case]
    session = on_treadle(model, {"claim": claim})
    assert_same(session.run(None, feeds), expected_outputs(case))
    if VERSION < 27 and case in ("captures", "loop_in_if"):
        pytest.skip("older ones hand no captures to providers")
    assert {group.ep_name for group in groups_of(session)} == {NAME}


def test_sequences_do_not_cross_the_border():
    session = on_treadle(GIVES_A_SEQUENCE)
    assert claimed(session) == []
    feeds = {"n": np.array(2), "x": np.float32([1, 2])}
    assert_same(session.run(None, feeds)[0], on_cpu(GIVES_A_SEQUENCE).run(None, feeds)[0])


def test_no_iterations_and_other_sizes_on_one_session():
    session, reference = on_treadle(CAPTURES), on_cpu(CAPTURES)
    for iterations, rows in [(0, 1), (3, 4), (7, 2), (0, 3)]:
        x = np.random.default_rng(rows).normal(size=(rows, 3)).astype("f4")
        feeds = {"n": np.array(iterations), "x": x, "step": np.float32([1, 2, 3])}
        assert_same(session.run(None, feeds), reference.run(None, feeds))


@pytest.mark.skipif(VERSION < 27, reason="older ones hand no captures to providers")
def test_the_body_of_a_loop_without_condition_ends_it():
    text = (
        HEAD
        + """g (int64 m, int64 e) => (float last, int64[n] s) {
  z = Constant <value = float {0.0}> ()
  last, s = Loop <body = b (int64 i, bool c0, float a) => (bool c1, float a1, int64 j) {
    c1 = Less(i, e)
    f = Cast <to = 1> (i)
    a1 = Add(a, f)
    j = Identity(i)
  }> (m, "", z)
}"""
    )
    feeds = {"m": np.array(5), "e": np.array(2)}
    session = on_treadle(text)
    assert claimed(session) == ["Loop"]
    assert_same(session.run(None, feeds), on_cpu(text).run(None, feeds))
    assert session.run(None, feeds)[1].tolist() == [0, 1, 2]
    ignored = on_treadle(text, {"loop_condition": "ignored"})
    assert ignored.run(None, feeds)[1].tolist() == [0, 1, 2, 3, 4]


def test_several_sessions_and_threads():
    sessions = [on_treadle(CAPTURES), on_treadle(TWO_LOOPS), on_treadle(CAPTURES, {"threads": "2"})]
    feeds = [INPUTS["captures"][1], INPUTS["two_loops"][1], INPUTS["captures"][1]]
    wanted = [on_cpu(CAPTURES), on_cpu(TWO_LOOPS), on_cpu(CAPTURES)]
    wanted = [reference.run(None, feed) for reference, feed in zip(wanted, feeds, strict=True)]
    failures = []

    def use(index):
        try:
            for _ in range(50):
                assert_same(sessions[index].run(None, feeds[index]), wanted[index])
        except Exception as failure:  # of a thread, told below
            failures.append(failure)

    threads = [threading.Thread(target=use, args=(index,)) for index in (0, 0, 1, 1, 2, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


MULTIPLIES = HEAD + "g (float[512,512] x, float[512,512] w) => (float[512,512] y) { y = MatMul(x, w) }"

COUNTS = """
import os, sys
import numpy, onnxruntime, onnxruntime_ep_treadle as provider

name = provider.get_ep_name()
onnxruntime.register_execution_provider_library(name, provider.get_library_path())
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = int(sys.argv[2])
devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == name]
settings.add_provider_for_devices(devices, dict(option.split("=") for option in sys.argv[3:]))
session = onnxruntime.InferenceSession(sys.argv[1], settings)
for _ in range(3):
    session.run(None, {key: numpy.ones((512, 512), "f4") for key in "xw"})
tasks = os.listdir("/proc/self/task")
print(sum(open(f"/proc/self/task/{task}/comm").read().strip() == "treadle" for task in tasks))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
@pytest.mark.parametrize(("threads", "options", "helpers"), [(1, [], 0), (2, [], 1), (2, ["threads=1"], 0)])
def test_a_claim_uses_as_many_threads_as_the_session(tmp_path, threads, options, helpers):
    path = tmp_path / "model.onnx"
    path.write_bytes(serialised(MULTIPLIES))
    command = [sys.executable, "-c", COUNTS, path, str(threads), "claim=all", *options]
    for _ in range(5):  # on a busy machine a thread may come too late to be counted
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.stdout.split() == [str(helpers)]:
            return
    pytest.fail(f"{done.stdout} threads {done.stderr}")


def test_errors_of_runs_say_where_and_why():
    session = on_treadle(GATHERS)
    with pytest.raises(Exception, match=r"Gather.*out of (range|bounds)|index") as failure:
        session.run(None, {"n": np.array(5), "x": np.float32([1, 2, 4])})
    assert "EP_FAIL" not in str(failure.value)
    assert_same(session.run(None, INPUTS["gathers"][1]), [np.float32(7)])


def test_limits_of_runs():
    session = on_treadle(GATHERS, {"iteration_limit": "2"})
    with pytest.raises(Exception, match="2"):
        session.run(None, INPUTS["gathers"][1])


@pytest.mark.parametrize("prefix", ["ep.treadle.", f"ep.{NAME.lower()}."])
def test_options_of_the_session(prefix):
    session = on_treadle(NEGATES, entries={f"{prefix}claim": "all", f"{prefix}jit": "off"})
    assert claimed(session) == ["Neg"]
    with pytest.raises(Exception, match=r"no option 'speed' .*threads.*claim, recurrent_weights"):
        on_treadle(LOOP_IN_IF, entries={f"{prefix}speed": "1"})


@pytest.mark.parametrize(
    ("key", "value"), [("claim", "some"), ("recurrent_weights", "many"), ("time_limit", "-1"), ("tier", "x")]
)
def test_values_of_options(key, value):
    with pytest.raises(Exception, match=rf"{key}.*{value}"):
        on_treadle(LOOP_IN_IF, {key: value})


def lstm(hidden: int) -> onnx.ModelProto:
    node = onnx.helper.make_node("LSTM", ["x", "W", "R"], ["y", "", "c"], hidden_size=hidden)
    return with_weights([node], hidden, onnx.numpy_helper.from_array)


def with_weights(nodes, hidden: int, tensor_of) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    shape = (1, 4 * hidden, hidden)
    tensors = [tensor_of(rng.normal(size=shape, scale=0.1).astype("f4"), name) for name in ("W", "R")]
    value = onnx.helper.make_tensor_value_info
    x, y, c = (value(n, onnx.TensorProto.FLOAT, None) for n in "xyc")
    x = value("x", onnx.TensorProto.FLOAT, ["T", 1, hidden])
    graph = onnx.helper.make_graph(nodes, "g", [x], [y, c], tensors)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def test_lone_recurrent_operators_from_some_size_on():
    assert claimed(on_treadle(lstm(4))) == []
    assert claimed(on_treadle(lstm(4), {"recurrent_weights": "0"})) == ["LSTM"]
    model = lstm(64)
    session = on_treadle(model)
    assert claimed(session) == ["LSTM"]
    feeds = {"x": np.random.default_rng(1).normal(size=(9, 1, 64)).astype("f4")}
    assert_same(session.run(None, feeds), on_cpu(model).run(None, feeds))


@pytest.mark.parametrize(("steps", "expected"), [(1, []), (2, ["RNN"]), ("T", ["RNN"])])
def test_a_single_step_without_a_state_is_left_to_onnxruntime(steps, expected):
    rng = np.random.default_rng(0)
    tensors = [onnx.numpy_helper.from_array(rng.normal(size=(1, 64, 64)).astype("f4"), name) for name in "WR"]
    node = onnx.helper.make_node("RNN", ["x", "W", "R"], ["y"], hidden_size=64)
    value = onnx.helper.make_tensor_value_info
    x, y = value("x", onnx.TensorProto.FLOAT, [steps, 1, 64]), value("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", [x], [y], tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    assert claimed(on_treadle(model)) == expected
    assert claimed(on_treadle(model, {"recurrent_weights": "0"})) == ["RNN"]


def quantised(array, name):
    return onnx.numpy_helper.from_array((array * 300).astype(np.int8), name)


def dequantise(name: str, result: str) -> list:
    scale = onnx.helper.make_node("Constant", [], [f"{result}_scale"], value_float=1 / 300)
    return [scale, onnx.helper.make_node("DequantizeLinear", [name, f"{result}_scale"], [result])]


def test_weights_that_constants_make_are_claimed_with_their_operator():
    node = onnx.helper.make_node("LSTM", ["x", "w", "r"], ["y", "", "c"], hidden_size=32)
    model = with_weights([*dequantise("W", "w"), *dequantise("R", "r"), node], 32, quantised)
    session = on_treadle(model)
    assert claimed(session) == ["DequantizeLinear", "DequantizeLinear", "LSTM"]
    feeds = {"x": np.random.default_rng(1).normal(size=(9, 1, 32)).astype("f4")}
    assert_same(session.run(None, feeds), on_cpu(model).run(None, feeds))


def test_weights_that_others_use_leave_their_operator_to_onnxruntime():
    node = onnx.helper.make_node("LSTM", ["x", "w", "r"], ["y", "", "c"], hidden_size=32)
    negate = onnx.helper.make_node("Neg", ["v"], ["w"])
    model = with_weights([*dequantise("W", "v"), negate, *dequantise("R", "r"), node], 32, quantised)
    model.graph.output.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, None))
    assert claimed(on_treadle(model, {"claim": "loops"})) == []
    assert claimed(on_treadle(model, {"claim": "loops", "recurrent_weights": "0"})) == ["DequantizeLinear", "LSTM"]


def test_stacked_operators_are_one_claim():
    first = onnx.helper.make_node("LSTM", ["x", "W", "R"], ["h", "", ""], hidden_size=32)
    squeezed = onnx.helper.make_node("Squeeze", ["h", "one"], ["z"])
    second = onnx.helper.make_node("LSTM", ["z", "W", "R"], ["y", "", "c"], hidden_size=32)
    axis = onnx.helper.make_node("Constant", [], ["one"], value_ints=[1])
    model = with_weights([axis, first, squeezed, second], 32, onnx.numpy_helper.from_array)
    session = on_treadle(model)
    groups = [group for group in groups_of(session) if group.ep_name == NAME]
    assert len(groups) == 1 and claimed(session) == ["LSTM", "LSTM", "Squeeze"]
    feeds = {"x": np.random.default_rng(1).normal(size=(9, 1, 32)).astype("f4")}
    assert_same(session.run(None, feeds), on_cpu(model).run(None, feeds))


def branch(name: str) -> onnx.GraphProto:
    """An LSTM of one step, of the frame f and the states h and c of the body around it."""
    node = onnx.helper.make_node(
        "LSTM", ["f", "W", "R", "", "", "h", "c"], ["", name + "h", name + "c"], hidden_size=64
    )
    values = [onnx.helper.make_tensor_value_info(name + k, onnx.TensorProto.FLOAT, [1, 1, 64]) for k in "hc"]
    return onnx.helper.make_graph([node], name, [], values)


CHOOSES = (
    HEAD
    + """g (int64 n, float[N,64] x, float[1,1,64] h0) => (float[1,1,64] h1, float[1,1,64] c1, float[N,M] y) {
  yes = Constant <value = bool {1}> ()
  h1, c1, y = Loop <body = b (int64 i, bool go, float[1,1,64] h, float[1,1,64] c) => (bool on, float[1,1,64] hn, float[1,1,64] cn, float[M] row) {
    on = Identity(go)
    g = Gather(x, i)
    shape = Constant <value_ints = [1, 1, 64]> ()
    f = Reshape(g, shape)
    m = ReduceMean <keepdims = 0> (g)
    none = Constant <value = float {0}> ()
    up = Greater(m, none)
    hn, cn = If(up)
    row = Flatten(hn)
  }> (n, yes, h0, h0)
}"""
)


def chooses() -> onnx.ModelProto:
    """A Loop whose body chooses by If between two LSTMs."""
    model = onnx.parser.parse_model(CHOOSES)
    [body] = (a.g for a in model.graph.node[1].attribute)
    [choice] = (node for node in body.node if node.op_type == "If")
    for name in ("then", "else"):
        choice.attribute.append(onnx.helper.make_attribute(f"{name}_branch", branch(name[0])))
    body.output[3].type.tensor_type.shape.dim.insert(0, onnx.TensorShapeProto.Dimension(dim_value=1))
    model.graph.output[2].type.tensor_type.shape.dim.insert(1, onnx.TensorShapeProto.Dimension(dim_value=1))
    rng = np.random.default_rng(0)
    for name in "WR":
        weights = rng.normal(size=(1, 256, 64), scale=0.1).astype("f4")
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return model


FRAMES = {
    "n": np.array(7),
    "x": np.random.default_rng(2).normal(size=(7, 64)).astype("f4"),
    "h0": np.zeros((1, 1, 64), "f4"),
}


@pytest.mark.skipif(VERSION < 27, reason="older ones hand no captures to providers")
@pytest.mark.parametrize("claim", ["cost", "loops", "all"])
def test_a_loop_is_claimed_with_the_recurrent_operators_in_its_body(claim):
    model = chooses()
    session = on_treadle(model, {"claim": claim})
    assert "Loop" in claimed(session) and "LSTM" not in claimed(session)
    assert_same(session.run(None, FRAMES), on_cpu(model).run(None, FRAMES))


@pytest.mark.skipif(VERSION < 27, reason="older ones hand no captures to providers")
def test_a_node_of_a_body_is_claimed_where_the_loop_around_it_is_not():
    model = chooses()
    [body] = (a.g for a in model.graph.node[1].attribute)
    nodes = list(body.node)
    [greater] = (node for node in nodes if node.op_type == "Greater")
    greater.input[0] = "mean"
    noise = onnx.helper.make_node("RandomNormalLike", ["m"], ["noise"], seed=1.0, scale=1e-9)  # onnxruntime's numbers
    nodes[nodes.index(greater) : 0] = [noise, onnx.helper.make_node("Add", ["m", "noise"], ["mean"])]
    del body.node[:]
    body.node.extend(nodes)
    session = on_treadle(model)
    assert "Loop" not in claimed(session) and "If" in claimed(session)
    assert_same(session.run(None, FRAMES), on_cpu(model).run(None, FRAMES))


# The state begins with no element, and its body says that it has none.
GROWS = (
    HEAD
    + """g (int64 n, float[1] x) => (float[M] y) {
  yes = Constant <value = bool {1}> ()
  none = Constant <value = float[0] {}> ()
  y = Loop <body = b (int64 i, bool go, float[0] s) => (bool on, float[0] t) {
    on = Identity(go)
    noise = RandomNormalLike <seed = 1.0, scale = 1e-9> (x)
    a = Add(x, noise)
    b = Add(a, a)
    c = Tanh(b)
    d = Add(c, c)
    f = Concat <axis = 0> (s, d)
    t = Identity(f)
  }> (n, yes, none)
}"""
)


@pytest.mark.skipif(VERSION < 27, reason="older ones claim loops alone in bodies")
def test_a_claim_in_a_body_takes_states_of_other_sizes_than_the_body_says():
    session, feeds = on_treadle(GROWS), {"n": np.array(3), "x": np.float32([0.3])}
    assert "Concat" in claimed(session) and "Loop" not in claimed(session)
    assert_same(session.run(None, feeds), on_cpu(GROWS).run(None, feeds))


@pytest.mark.parametrize("claim", ["cost", "loops", "all"])
def test_weights_in_a_file_of_their_own(tmp_path, claim):
    model, path = chooses(), tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    session = on_treadle(path, {"claim": claim})
    if VERSION >= 27:
        assert "Loop" in claimed(session)
    assert_same(session.run(None, FRAMES), on_cpu(path).run(None, FRAMES))


def test_nothing_is_taken_where_claims_should_be_saved(tmp_path):
    entries = {"ep.context_enable": "1", "ep.context_file_path": str(tmp_path / "saved.onnx")}
    assert claimed(on_treadle(TWO_LOOPS, entries=entries)) == []


@pytest.mark.skipif(VERSION not in range(24, 27), reason="others hand captures to providers, or do not tell bodies")
def test_recurrent_operators_of_a_loop_that_captures_are_claimed_alone():
    model = chooses()
    session = on_treadle(model)
    assert claimed(session).count("LSTM") == 2
    assert_same(session.run(None, FRAMES), on_cpu(model).run(None, FRAMES))


def shared_models() -> list[pathlib.Path]:
    return sorted(path.parent for path in SHARED.glob("models/*/model.onnx"))


def recorded(folder: pathlib.Path, kind: str) -> list:
    files = sorted(folder.glob(f"test_data_set_0/{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return [onnx.numpy_helper.to_array(onnx.load_tensor(str(file))) for file in files]


def expected_of(folder: pathlib.Path, feeds: dict) -> list:
    """The results of onnxruntime's own kernels; if they fail, as in some versions, the results recorded beside the
    model.
    """
    try:
        return on_cpu(folder / "model.onnx").run(None, feeds)
    except Exception as failure:
        known = [] if VERSION < 24 else recorded(folder, "output")  # 1.23 does not say whether its kernels run all
        return known or pytest.skip(f"onnxruntime: {failure}")


@pytest.mark.parametrize("claim", ["cost", "loops", "all"])
@pytest.mark.parametrize("folder", shared_models(), ids=lambda folder: folder.name)
def test_shared_models(folder, claim):
    try:
        session = on_treadle(folder / "model.onnx", {"claim": claim})
    except Exception as failure:
        if "HasExternalDataInMemory" not in str(failure):  # a message of some versions with and without treadle
            raise
        pytest.skip(str(failure))
    if VERSION >= 24 and not claimed(session):
        pytest.skip("nothing to claim")
    names = [value.name for value in session.get_inputs()]
    feeds = dict(zip(names, recorded(folder, "input"), strict=False))
    levels = rounds_to_levels(onnx.load(folder / "model.onnx"))
    want = expected_of(folder, feeds)
    assert_same(session.run(None, feeds), want, levels)

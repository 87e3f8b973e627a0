"""Products in front of a loop that run in strips of its iterations: results do not depend on it in any tier, and limits,
stops, profiles and errors are those of any loop."""

import json
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
WIDTH, DEPTH = 32, 12
TIERS = (
    {"jit": "off"},
    {"jit": "always"},
    {"jit": "off", "threads": 2},
    {"jit": "always", "threads": 2},
)


def session(proto, threads=1, **entries):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in {"jit_cache": "off", **entries}.items():
        options.add_session_config_entry(f"treadle.{key}", str(value))
    return treadle.InferenceSession(proto, options)


def recurrent(op, direction="forward", lengths=False, depth=DEPTH):
    rng = np.random.default_rng(4)
    directions = 2 if direction == "bidirectional" else 1
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, ["T", "B", depth])]
    if lengths:
        inputs.append(value("lengths", TensorProto.INT32, ["B"]))
    weights = []
    for name, shape in (
        ("W", (GATES[op] * WIDTH, depth)),
        ("R", (GATES[op] * WIDTH, WIDTH)),
        ("B", (2 * GATES[op] * WIDTH,)),
    ):
        data = rng.uniform(-0.3, 0.3, (directions, *shape)).astype(np.float32)
        weights.append(numpy_helper.from_array(data, name))
    names = ["x", "W", "R", "B", "lengths" if lengths else ""]
    node = helper.make_node(op, names, ["y", "h"], hidden_size=WIDTH, direction=direction)
    outputs = [value(name, TensorProto.FLOAT, None) for name in ("y", "h")]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString()


def feed(steps, batch=1, lengths=False, depth=DEPTH):
    rng = np.random.default_rng(steps)
    inputs = {"x": rng.standard_normal((steps, batch, depth)).astype(np.float32)}
    if lengths:
        inputs["lengths"] = rng.integers(1, steps * 3 // 4, batch).astype(np.int32)
    return inputs


def loops_of(found):
    return found.explain(json=True)["loops"]


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_results_are_those_of_all_iterations_at_once(op, direction):
    proto = recurrent(op, direction)
    inputs = feed(8500 if op == "RNN" else 4500)
    expected = session(proto, tier="reference").run(None, inputs)
    any_length = session(proto, jit="off")  # a plan for any length has no strips
    for steps in (5, 6):
        any_length.run(None, feed(steps))
    whole = any_length.run(None, inputs)
    assert all(loop["strip_iterations"] == 0 for loop in loops_of(any_length))
    for entries in TIERS:
        found = session(proto, **entries)
        for _ in range(2):
            results = found.run(None, inputs)
            for a, b, c in zip(results, expected, whole, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(a, c)
        if direction != "bidirectional" or "threads" not in entries:
            assert all(loop["strip_iterations"] > 0 for loop in loops_of(found))


def test_strips_are_longer_where_threads_share_their_products():
    proto, inputs = recurrent("LSTM", depth=1500), feed(4000, depth=1500)
    alone, together = (session(proto, threads, jit="off") for threads in (1, 2))
    for a, b in zip(alone.run(None, inputs), together.run(None, inputs), strict=True):
        np.testing.assert_array_equal(a, b)
    assert 0 < loops_of(alone)[0]["strip_iterations"] < loops_of(together)[0]["strip_iterations"]


@pytest.mark.parametrize("iteration", [1500, 2048])
def test_native_code_takes_over_within_a_strip(monkeypatch, iteration):
    proto, inputs = recurrent("LSTM"), feed(4500)
    expected = session(proto, jit="off").run(None, inputs)
    monkeypatch.setenv("TREADLE_JIT", f"always,{iteration}")
    for a, b in zip(session(proto).run(None, inputs), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op", ["GRU", "LSTM"])
def test_lengths_end_in_the_middle_of_a_strip(op):
    proto = recurrent(op, lengths=True)
    inputs = feed(3000, 2, lengths=True)
    expected = session(proto, tier="reference").run(None, inputs)
    for entries in TIERS:
        for a, b in zip(session(proto, **entries).run(None, inputs), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_memory_does_not_grow_with_the_sequence():
    found = session(recurrent("LSTM"), jit="off")
    found.run(None, feed(50_000))
    assert found.counters()["peak_bytes_last_run"] < 1 << 20  # beside inputs and outputs


def test_explain_and_profile_name_the_nodes_that_run_in_strips(tmp_path):
    found = session(recurrent("LSTM"), jit="off")
    inputs = feed(5000)
    found.run(None, inputs)
    [loop] = loops_of(found)
    assert loop["in_strips"][0]["op"] == "Gemm" and 64 <= loop["strip_iterations"] <= 2500
    assert "iterations at a time" in found.explain()
    profile = found.profile(inputs, str(tmp_path / "trace.json"))
    strips = -(-5000 // loop["strip_iterations"])
    [product] = [n for n in profile.nodes if n["node"] == loop["in_strips"][0]["node"]]
    assert product["count"] % strips == 0 and product["count"] > 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


@pytest.mark.parametrize("jit", ["off", "always"])
def test_limits_and_stops(jit):
    found = session(recurrent("RNN"), jit=jit)
    inputs = feed(20_000)
    options = treadle.RunOptions()
    options.iteration_limit = 20_000
    first = found.run(None, inputs, options)
    options.iteration_limit = 19_999
    with pytest.raises(treadle.LimitExceeded, match="limit of 19999 iterations"):
        found.run(None, inputs, options)
    options = treadle.RunOptions()
    options.time_limit = 1e-4
    with pytest.raises(treadle.LimitExceeded, match="time limit"):
        found.run(None, inputs, options)
    for a, b in zip(found.run(None, inputs), first, strict=True):
        np.testing.assert_array_equal(a, b)


def test_many_threads_run_one_session():
    found = session(recurrent("GRU"), jit="always")
    inputs = [feed(4000 + 4 * k) for k in range(2)]
    expected = [found.run(None, i) for i in inputs]
    wrong = []

    def work(k):
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            for a, b in zip(found.run(None, inputs[k % 2]), expected[k % 2], strict=True):
                if not np.array_equal(a, b):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong

"""Beside the kernels of a run: threads, memory, plans, limits."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import threading
import time

import models
import numpy as np
import onnx
import pytest
import treadle
from models import FLOAT, INT64, model, node, value
from onnx import TensorProto, helper

BOOL = TensorProto.BOOL
TIERS = ["program", "reference"]
# How many times longer kernels may take than in a release build.
SLOWNESS = float(os.environ.get("TREADLE_TEST_SLOWNESS", "1"))


def session(proto: bytes, *, threads: int = 1, tier: str = "program") -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("treadle.tier", tier)
    return treadle.InferenceSession(proto, options)


def run_options(**limits) -> treadle.RunOptions:
    options = treadle.RunOptions()
    for name, limit in limits.items():
        setattr(options, name, limit)
    return options


# ---- Threads


def large_cases():
    """(name, model, inputs), each with enough work for several threads."""
    rng = np.random.default_rng(3)

    def floats(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def one(op, inputs, outputs=1, opset=21, **attributes):
        names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
        given = [(n, x) for n, x in zip(names, inputs, strict=True) if x is not None]
        elements = [helper.np_dtype_to_tensor_dtype(x.dtype) for _, x in given]
        results = [f"o{k}" for k in range(outputs)]
        kinds = {"MatMulInteger": TensorProto.INT32, "Equal": BOOL}
        proto = model(
            [node(op, names, results, **attributes)],
            [value(n, e, list(x.shape)) for (n, x), e in zip(given, elements, strict=True)],
            [value(r, kinds.get(op, elements[0])) for r in results],
            opset=opset,
        )
        return proto, dict(given)

    x = floats(64, 96, 128)
    yield "matmul", *one("MatMul", [floats(300, 257), floats(257, 190)])
    yield "matmul of stacks", *one("MatMul", [floats(24, 64, 96), floats(24, 96, 80)])
    yield "matrix times vector", *one("MatMul", [floats(1, 2048), floats(2048, 1500)])
    yield "gemm", *one("Gemm", [floats(200, 300), floats(300, 150), floats(150)], alpha=0.5)
    yield "half precision", *one("MatMul", [floats(200, 300).astype(np.float16), floats(300, 250).astype(np.float16)])
    yield (
        "quantised",
        *one("MatMulInteger", [rng.integers(0, 255, (300, 400), np.uint8), rng.integers(-9, 9, (400, 250), np.int8)]),
    )
    yield "conv", *one("Conv", [floats(2, 16, 60, 61), floats(24, 16, 3, 3), floats(24)])
    yield "grouped conv", *one("Conv", [floats(1, 64, 70, 71), floats(64, 1, 5, 5)], group=64)
    yield "conv transpose", *one("ConvTranspose", [floats(2, 16, 40, 41), floats(16, 12, 4, 4)], strides=[2, 2])
    yield "pool", *one("MaxPool", [floats(4, 32, 80, 80)], kernel_shape=[3, 3])
    yield "global pool", *one("GlobalAveragePool", [floats(8, 256, 30, 30)])
    yield "exp", *one("Exp", [x])
    yield "add", *one("Add", [x, floats(96, 1)])
    yield "mul by a scalar", *one("Mul", [floats(1 << 20), floats()])
    yield "transposed add", *one("Equal", [x, x])
    yield "integers", *one("Div", [rng.integers(-99, 99, (1 << 20,)), rng.integers(1, 9, (1 << 20,))])
    yield "reduce rows", *one("ReduceSum", [x, np.array([2])])
    yield "reduce columns", *one("ReduceMax", [x, np.array([0])])
    yield "reduce the middle", *one("ReduceL2", [x, np.array([1])])
    yield "softmax", *one("Softmax", [x])
    yield "softmax along the middle", *one("LogSoftmax", [x], axis=1)
    yield "layer norm", *one("LayerNormalization", [x, floats(128), floats(128)])
    yield "group norm", *one("GroupNormalization", [floats(4, 32, 50, 50), floats(32), floats(32)], num_groups=8)
    yield "batch norm", *one("BatchNormalization", [floats(4, 32, 50, 50), *(np.abs(floats(32)) for _ in range(4))])
    yield (
        "resize",
        *one(
            "Resize",
            [floats(2, 8, 60, 60), np.zeros(0, np.float32), np.array([1, 1, 2.5, 2.5], np.float32)],
            mode="linear",
        ),
    )
    yield "nearest", *one("Resize", [floats(2, 8, 90, 90), np.zeros(0, np.float32), np.array([1, 1, 3, 3], np.float32)])
    yield "transpose", *one("Transpose", [x], perm=[2, 0, 1])
    yield "lrn", *one("LRN", [floats(2, 40, 50, 51)], size=5)
    image, grid = floats(2, 8, 40, 40), rng.uniform(-1.2, 1.2, (2, 70, 81, 2)).astype(np.float32)
    for mode in ("linear", "nearest", "cubic"):
        yield f"sampled {mode}", *one("GridSample", [image, grid], mode=mode)
    heads = [floats(2, 6, n, 32) for n in (150, 90, 90)]
    past = [None, *(floats(2, 6, 70, 32) for _ in range(2))]
    yield "attention", *one("Attention", heads, opset=23)
    yield (
        "attention of packed heads",
        *one(
            "Attention",
            [h.transpose(0, 2, 1, 3).reshape(2, -1, 192) for h in heads],
            opset=23,
            q_num_heads=6,
            kv_num_heads=6,
            is_causal=1,
        ),
    )
    halves = [h.astype(np.float16) for h in heads]
    yield "attention in half precision", *one("Attention", halves, opset=23)
    yield "attention with a past", *one("Attention", [*heads, *past], outputs=3, opset=23)
    yield "lstm", *one("LSTM", [floats(3, 64, 40), floats(1, 800, 40), floats(1, 800, 200)], outputs=3, hidden_size=200)
    body = [node("Add", ["x", "y"], ["a"]), node("Tanh", ["a"], ["b"]), node("Mul", ["b", "x"], ["z"])]
    ends = [value(n, FLOAT, [64, 96, 128]) for n in "xyz"]
    yield "fused", model(body, ends[:2], ends[2:]), {"x": x, "y": floats(64, 96, 128)}


@pytest.mark.parametrize("case", list(large_cases()), ids=lambda case: case[0])
def test_results_do_not_depend_on_the_number_of_threads(case):
    _, proto, inputs = case
    expected = session(proto).run(None, inputs)
    for threads in (2, 3, 8):
        several = session(proto, threads=threads)
        for _ in range(3):
            for a, b in zip(expected, several.run(None, inputs), strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape
                assert a.tobytes() == b.tobytes()


def test_the_first_of_several_errors_is_reported_with_any_number_of_threads():
    proto = model(
        [node("Gather", ["x", "i"], ["y"]), node("Div", ["y", "d"], ["z"])],
        [value("x", INT64, ["n"]), value("i", INT64, ["m"]), value("d", INT64, ["m"])],
        [value("z", INT64, ["m"])],
    )
    count = 1 << 20
    inputs = {"x": np.arange(10), "i": np.zeros(count, np.int64), "d": np.ones(count, np.int64)}
    inputs["d"][[5, count - 1]] = 0
    for threads in (1, 4):
        several = session(proto, threads=threads)
        with pytest.raises(Exception, match="division by zero"):
            several.run(None, inputs)
        ones = dict(inputs, d=np.ones(count, np.int64))
        assert not several.run(None, ones)[0].any()


def test_a_session_works_after_a_fork():
    proto = model([node("MatMul", ["x", "y"], ["z"])], [value(n, shape=["n", "n"]) for n in "xy"], [value("z")])
    matrix = np.random.default_rng(0).normal(size=(400, 400)).astype(np.float32)
    several = session(proto, threads=3)
    expected = several.run(None, {"x": matrix, "y": matrix})[0]
    child = os.fork()
    if child == 0:
        same = all((several.run(None, {"x": matrix, "y": matrix})[0] == expected).all() for _ in range(3))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (several.run(None, {"x": matrix, "y": matrix})[0] == expected).all()


@pytest.mark.skipif(
    "LD_PRELOAD" in os.environ, reason="a sanitizer's own locks may be held by another thread at the fork"
)
def test_forks_while_other_threads_run():
    """The child makes threads of its own, independent of the state of the parent's; streams go on from where they were."""
    proto = model([node("MatMul", ["x", "y"], ["z"])], [value(n, shape=["n", "n"]) for n in "xy"], [value("z")])
    matrix = np.random.default_rng(0).normal(size=(200, 200)).astype(np.float32)
    feed = {"x": matrix, "y": matrix}
    several = session(proto, threads=3)
    [expected] = several.run(None, feed)
    stream = treadle.InferenceSession(models.accumulator()).stream(time={"x": 1}, hop=2, bind={"gain": np.float32(1)})
    stream.push(np.ones((1, 4), np.float32))
    ended = threading.Event()

    def run_on():
        while not ended.is_set():
            several.run(None, feed)

    def same_in_the_child():
        with concurrent.futures.ThreadPoolExecutor(3) as callers:
            found = list(callers.map(lambda _: several.run(None, feed)[0], range(6)))
        level, _ = stream.push(np.ones((1, 2), np.float32))
        return all((one == expected).all() for one in found) and level.ravel().tolist() == [6]

    busy = [threading.Thread(target=run_on) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if same_in_the_child() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        for thread in busy:
            thread.join()


COUNTS_THREADS = """
import os, sys, warnings
import numpy as np
import treadle
ort = treadle.as_onnxruntime() if sys.argv[2] == "alias" else treadle
options = ort.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
warnings.simplefilter("always")
run = ort.InferenceSession(sys.argv[1], options).run
before = len(os.listdir("/proc/self/task"))
run(None, {"x": np.ones((500, 500), np.float32), "y": np.ones((500, 500), np.float32)})
print(len(os.listdir("/proc/self/task")) - before + 1)
"""


@pytest.mark.parametrize("name", ["treadle", "alias"])
@pytest.mark.parametrize(
    ("omp", "asked", "expected"),
    [("1", 0, 1), ("1,4", 0, 1), ("1", 2, 2), ("64", 0, None), ("", 0, None), ("x", 0, None)],
)
def test_threads_that_the_environment_says(tmp_path, name, omp, asked, expected):
    """OMP_NUM_THREADS counts where the options leave the number open, and no more than the CPUs that there are."""
    proto = model([node("MatMul", ["x", "y"], ["z"])], [value(n, shape=["n", "n"]) for n in "xy"], [value("z")])
    (tmp_path / "model.onnx").write_bytes(proto)
    environment = {**os.environ, "OMP_NUM_THREADS": omp, "PYTHONPATH": str(pathlib.Path(treadle.__file__).parents[1])}
    command = [sys.executable, "-c", COUNTS_THREADS, tmp_path / "model.onnx", name, str(asked)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    cpus = len(os.sched_getaffinity(0))
    found = int(done.stdout)
    assert found == expected if expected else 1 <= found <= cpus
    assert ("OMP_NUM_THREADS = x has no effect" in done.stderr) == (omp == "x"), done.stderr


def test_sessions_share_the_threads_from_many_callers():
    proto = model([node("MatMul", ["x", "y"], ["z"])], [value(n, shape=["n", "n"]) for n in "xy"], [value("z")])
    sessions = [session(proto, threads=n) for n in (1, 2, 4)]
    rng = np.random.default_rng(1)
    wrong = []

    def work(seed):
        for i in range(10):
            n = 100 + 30 * ((seed + i) % 4)
            matrix = matrices[n]
            if not (sessions[seed % 3].run(None, {"x": matrix, "y": matrix})[0] == expected[n]).all():
                wrong.append((seed, i))

    matrices = {n: rng.normal(size=(n, n)).astype(np.float32) for n in (100, 130, 160, 190)}
    expected = {n: sessions[0].run(None, {"x": m, "y": m})[0] for n, m in matrices.items()}
    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_one_thread_starts_none():
    proto = model([node("MatMul", ["x", "y"], ["z"])], [value(n, shape=["n", "n"]) for n in "xy"], [value("z")])
    matrix = np.ones((500, 500), np.float32)
    child = os.fork()
    if child == 0:
        before = len(os.listdir("/proc/self/task"))
        session(proto).run(None, {"x": matrix, "y": matrix})
        alone = len(os.listdir("/proc/self/task")) == before
        session(proto, threads=3).run(None, {"x": matrix, "y": matrix})
        os._exit(0 if alone and len(os.listdir("/proc/self/task")) == before + 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- Memory


def chain(length: int) -> bytes:
    """Elementwise steps over x[n], each a value of its own: Cast stands between them so that none are taken together."""
    nodes, last = [], "x"
    for i in range(length):
        nodes.append(node("CumSum", [last, "axis"], [f"v{i}"]))
        last = f"v{i}"
    return model(
        nodes,
        [value("x", shape=["n"])],
        [value(last, shape=["n"])],
        initializers=[helper.make_tensor("axis", INT64, [], [0])],
    )


def test_tensors_are_given_up_after_their_last_use():
    several = session(chain(20))
    size = 1 << 18  # floats
    for n in (4, 8, size):  # the last one runs in a plan for any size
        several.run(None, {"x": np.ones(n, np.float32)})
    assert several.counters()["plans"] == 2
    assert 2 * 4 * size <= several.counters()["peak_bytes_last_run"] <= 4 * 4 * size
    limited = run_options(memory_limit=5 * 4 * size)
    several.run(None, {"x": np.ones(size, np.float32)}, limited)
    with pytest.raises(treadle.LimitExceeded):
        several.run(None, {"x": np.ones(size, np.float32)}, run_options(memory_limit=4 * size))
    several.run(None, {"x": np.ones(size, np.float32)}, limited)


def looped_chain(length: int) -> bytes:
    nodes, last = [], "s"
    for i in range(length):
        nodes.append(node("CumSum", [last, "axis"], [f"v{i}"]))
        last = f"v{i}"
    body = helper.make_graph(
        [*nodes, node("Identity", [last], ["s_out"]), node("Identity", ["c"], ["c_out"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("s", shape=["n"])],
        [value("c_out", BOOL, []), value("s_out", shape=["n"])],
        [helper.make_tensor("axis", INT64, [], [0])],
    )
    return model(
        [node("Loop", ["m", "", "x"], ["y"], body=body)],
        [value("m", INT64, []), value("x", shape=["n"])],
        [value("y", shape=["n"])],
    )


def test_tensors_are_given_up_inside_loops():
    several = session(looped_chain(12))
    size = 1 << 18
    for n in (4, 8):
        several.run(None, {"m": np.int64(2), "x": np.ones(n, np.float32)})
    x = np.ones(size, np.float32) * np.float32(1e-9)
    for _ in range(2):
        [y] = several.run(None, {"m": np.int64(3), "x": x}, run_options(memory_limit=7 * 4 * size))
    expected = x
    for _ in range(36):
        expected = session(chain(1)).run(None, {"x": expected})[0]
    assert (y == expected).all()
    # Three iterations of twelve nodes go round in a few pieces of memory.
    assert several.counters()["allocations_last_run"] < 8


def test_values_outlive_branches_and_loops_that_use_them():
    """A value is used in one branch only, before another use behind the branch, and in a later loop."""
    then = helper.make_graph([node("Add", ["a", "a"], ["t"])], "then", [], [value("t")])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [], [value("e")])
    body = helper.make_graph(
        [node("Add", ["s", "a"], ["s_out"]), node("Identity", ["c"], ["c_out"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("s")],
        [value("c_out", BOOL, []), value("s_out")],
    )
    proto = model(
        [
            node("CumSum", ["x", "axis"], ["a"]),
            node("If", ["go"], ["b"], then_branch=then, else_branch=other),
            node("Loop", ["m", "", "b"], ["y"], body=body),
        ],
        [value("x", shape=["n"]), value("go", BOOL, []), value("m", INT64, [])],
        [value("y")],
        initializers=[helper.make_tensor("axis", INT64, [], [0])],
    )
    several, reference = session(proto), session(proto, tier="reference")
    for n in (3, 5, 100_000, 7):
        x = np.ones(n, np.float32)
        for go in (True, False):
            for m in (0, 1, 4):
                feed = {"x": x, "go": np.array(go), "m": np.int64(m)}
                assert (several.run(None, feed)[0] == reference.run(None, feed)[0]).all()


def test_large_states_outlive_an_inner_loop_that_alone_reads_them():
    def inner(read: str):
        return helper.make_graph(
            [
                node("ReduceSum", [read], ["p"], keepdims=0),
                node("Add", ["t_", "p"], ["t_out"]),
                node("Identity", ["d"], ["d_out"]),
            ],
            "inner",
            [value("j", INT64, []), value("d", BOOL, []), value("t_", shape=[])],
            [value("d_out", BOOL, []), value("t_out", shape=[])],
        )

    body = helper.make_graph(
        [
            node("Loop", ["three", "", "zero"], ["a"], body=inner("s_")),
            node("Concat", ["s_", "x"], ["s_out"], axis=0),
            node("Identity", ["c"], ["c_out"]),
        ],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("s_", shape=["k"])],
        [value("c_out", BOOL, []), value("s_out", shape=["l"]), value("a", shape=[])],
    )
    row = helper.make_graph(
        [node("Loop", ["three", "", "zero"], ["b"], body=inner("e")), node("Identity", ["u_"], ["u_out"])],
        "row",
        [value("u_", shape=[]), value("e", shape=["n"])],
        [value("u_out", shape=[]), value("b", shape=[])],
    )
    proto = model(
        [
            node("Loop", ["m", "", "x"], ["grown", "sums"], body=body),
            node("Scan", ["zero", "rows"], ["u", "row_sums"], body=row, num_scan_inputs=1),
        ],
        [value("m", INT64, []), value("x", shape=["n"]), value("rows", shape=["r", "n"])],
        [value("sums"), value("row_sums")],
        initializers=[helper.make_tensor("three", INT64, [], [3]), helper.make_tensor("zero", FLOAT, [], [0.0])],
    )
    several, reference = session(proto), session(proto, tier="reference")
    for n in (4, 8, 1 << 15):
        feed = {"m": np.int64(3), "x": np.ones(n, np.float32), "rows": np.ones((4, n), np.float32)}
        for a, b in zip(several.run(None, feed), reference.run(None, feed), strict=True):
            assert (a == b).all()


def test_sequences_inside_optionals_are_left_as_the_caller_has_them():
    tensor_type = helper.make_tensor_type_proto(FLOAT, None)
    sequence = helper.make_sequence_type_proto(tensor_type)
    graph = helper.make_graph(
        [
            node("OptionalGetElement", ["o"], ["q"]),
            node("SequenceInsert", ["q", "x"], ["q2"]),
            node("SequenceLength", ["q2"], ["n"]),
        ],
        "g",
        [helper.make_value_info("o", helper.make_optional_type_proto(sequence)), value("x")],
        [value("n", INT64, [])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()
    several = session(proto)
    given = [np.ones(2, np.float32)]
    for _ in range(3):
        assert several.run(None, {"o": given, "x": np.zeros(2, np.float32)})[0] == 2
    assert len(given) == 1


# ---- Plans


def varying_models():
    """(name, model, inputs for a length)."""
    rng = np.random.default_rng(5)
    w, r = rng.normal(size=(1, 32, 3)).astype(np.float32), rng.normal(size=(1, 32, 8)).astype(np.float32)
    yield (
        "lstm",
        model(
            [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=8)],
            [value("x", shape=["t", 1, 3])],
            [value("y")],
            initializers=[onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(r, "r")],
        ),
        lambda n: {"x": np.ones((n, 1, 3), np.float32)},
    )
    step = helper.make_graph(
        [node("Add", ["s", "e"], ["s_out"]), node("Identity", ["s_out"], ["y_out"])],
        "body",
        [value("s", shape=[2]), value("e", shape=[2])],
        [value("s_out", shape=[2]), value("y_out", shape=[2])],
    )
    yield (
        "scan",
        model(
            [node("Scan", ["s0", "x"], ["s", "y"], body=step, num_scan_inputs=1)],
            [value("s0", shape=[2]), value("x", shape=["t", 2])],
            [value("s"), value("y")],
        ),
        lambda n: {"s0": np.zeros(2, np.float32), "x": np.ones((n, 2), np.float32)},
    )
    yield (
        "loop",
        looped_chain(2),
        lambda n: {"m": np.int64(n), "x": np.ones(3, np.float32)},
    )
    grow = helper.make_graph(
        [node("Concat", ["cache", "k"], ["cache_out"], axis=0), node("Identity", ["c"], ["c_out"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("cache", shape=["n", 2])],
        [value("c_out", BOOL, []), value("cache_out", shape=["m", 2])],
    )
    yield (
        "growing cache",
        model(
            [node("Loop", ["m", "", "x"], ["y"], body=grow)],
            [value("m", INT64, []), value("x", shape=["n", 2]), value("k", shape=[1, 2])],
            [value("y", shape=["o", 2])],
        ),
        lambda n: {"m": np.int64(n % 5), "x": np.ones((n, 2), np.float32), "k": np.ones((1, 2), np.float32)},
    )


@pytest.mark.parametrize("case", list(varying_models()), ids=lambda case: case[0])
def test_a_thousand_lengths_take_two_plans(case):
    _, proto, inputs = case
    several = session(proto)
    for n in range(1000):
        several.run(None, inputs(n))
    assert several.counters()["plans"] <= 2


# ---- Limits


def nested(depth: int, *, inner_iterations: int, work: int = 0) -> bytes:
    """Endless outer loop around loops of `inner_iterations`, the innermost one multiplying matrices of `work` rows."""
    nodes = [node("Add", ["s0_", "one"], ["s0_out"]), node("Identity", ["c0"], ["c0_out"])]
    if work:
        nodes[0] = node("Max", ["s0_", "peak"], ["s0_out"])
        nodes.insert(0, node("ReduceMax", ["product"], ["peak"], keepdims=0))
        nodes.insert(0, node("MatMul", ["varied", "big"], ["product"]))
        nodes.insert(0, node("Add", ["big", "s0_"], ["varied"]))
    for level in range(depth):
        body = helper.make_graph(
            nodes,
            f"body{level}",
            [value(f"i{level}", INT64, []), value(f"c{level}", BOOL, []), value(f"s{level}_", shape=[])],
            [value(f"c{level}_out", BOOL, []), value(f"s{level}_out", shape=[])],
        )
        up = level + 1
        iterations = "iterations" if up < depth else ""
        source, target = (f"s{up}_", f"s{up}_out") if up < depth else ("s", "y")
        nodes = [node("Loop", [iterations, "yes", source], [target], body=body)]
        if up < depth:
            nodes.append(node("Identity", [f"c{up}"], [f"c{up}_out"]))
    return model(
        nodes,
        [value("s", shape=[]), value("yes", BOOL, []), value("big", shape=["n", "n"])],
        [value("y", shape=[])],
        initializers=[
            helper.make_tensor("one", FLOAT, [], [1.0]),
            helper.make_tensor("iterations", INT64, [], [inner_iterations]),
        ],
    )


def nested_feed(work: int = 1):
    return {"s": np.float32(0), "yes": np.array(True), "big": np.ones((work, work), np.float32)}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("depth", "inner", "work"), [(1, 0, 0), (3, 50, 0), (2, 1, 300), (2, 1000, 16)])
def test_an_endless_body_stops_soon_after_it_is_cancelled(tier, threads, depth, inner, work):
    several = session(nested(depth, inner_iterations=inner, work=work), threads=threads, tier=tier)
    feed = nested_feed(max(work, 1))
    # A loaded machine delays any one run: one of many has to stop in time.
    for _ in range(20):
        options = run_options()
        cancelled = []

        def cancel(options=options, cancelled=cancelled):
            cancelled.append(time.perf_counter())
            options.terminate = True

        timer = threading.Timer(0.03, cancel)
        timer.start()
        with pytest.raises(treadle.Fail):
            several.run(None, feed, options)
        late = time.perf_counter() - cancelled[0]
        timer.join()
        if late < 0.01 * SLOWNESS:
            break
    else:
        pytest.fail(f"stopped {late:.3f} s after it was cancelled")
    stopped = dict(feed, yes=np.array(False), s=np.float32(7))
    assert several.run(None, stopped)[0] == 7


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("threads", [1, 3])
def test_limits_hold_in_nested_loops(tier, threads):
    several = session(nested(3, inner_iterations=50), threads=threads, tier=tier)
    begin = time.perf_counter()
    with pytest.raises(treadle.LimitExceeded, match="time limit"):
        several.run(None, nested_feed(), run_options(time_limit=0.05))
    assert 0.05 <= time.perf_counter() - begin < 2
    with pytest.raises(treadle.LimitExceeded, match="1000 iterations"):
        several.run(None, nested_feed(), run_options(iteration_limit=1000))
    assert several.run(None, dict(nested_feed(), yes=np.array(False)))[0] == 0


def counted(iterations: int) -> bytes:
    """Two loops of `iterations`, one after the other: the limit counts both."""
    body = helper.make_graph(
        [node("Add", ["s_", "one"], ["s_out"]), node("Identity", ["c"], ["c_out"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("s_", shape=[])],
        [value("c_out", BOOL, []), value("s_out", shape=[])],
    )
    return model(
        [
            node("Loop", ["iterations", "", "s"], ["t"], body=body),
            node("Loop", ["iterations", "", "t"], ["y"], body=body),
        ],
        [value("s", shape=[])],
        [value("y", shape=[])],
        initializers=[
            helper.make_tensor("one", FLOAT, [], [1.0]),
            helper.make_tensor("iterations", INT64, [], [iterations]),
        ],
    )


@pytest.mark.parametrize("tier", TIERS)
def test_the_limit_of_iterations_is_exact(tier):
    several = session(counted(5000), tier=tier)
    assert several.run(None, {"s": np.float32(0)}, run_options(iteration_limit=10_000))[0] == 10_000
    with pytest.raises(treadle.LimitExceeded, match="9999 iterations"):
        several.run(None, {"s": np.float32(0)}, run_options(iteration_limit=9_999))
    assert several.run(None, {"s": np.float32(0)})[0] == 10_000


def test_a_long_kernel_stops_when_cancelled():
    proto = model([node("MatMul", ["x", "x"], ["z"])], [value("x", shape=["n", "n"])], [value("z")])
    matrix = np.ones((3000, 3000), np.float32)
    for threads in (1, 3):
        several = session(proto, threads=threads)
        options = run_options()
        timer = threading.Timer(0.02, lambda options=options: setattr(options, "terminate", True))
        timer.start()
        with pytest.raises(treadle.Fail):
            several.run(None, {"x": matrix}, options)
        timer.join()


def test_a_session_is_usable_after_the_memory_limit():
    several = session(models.endless())
    with pytest.raises(treadle.LimitExceeded):
        several.run(None, {"go": np.array(True), "s0": np.float32(0)}, run_options(memory_limit=1))
    assert several.run(None, {"go": np.array(False), "s0": np.float32(3)})[0] == 3


def test_the_memory_limit_comes_before_the_memory_of_a_plan():
    """More memory than any machine has: the first request for it is refused."""
    text = """
      <ir_version: 8, opset_import: ["" : 17]>
      huge (float[1, 1] x) => (float y) <int64[2] sizes = {1073741824, 4194304}> {
        wide = Expand (x, sizes)
        steep = Exp (wide)
        y = ReduceSum <keepdims = 0> (steep)
      }"""
    session = treadle.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    with pytest.raises(treadle.LimitExceeded, match="the memory limit of 1048576 bytes is below what the plan needs"):
        session.run(None, {"x": np.ones((1, 1), np.float32)}, run_options(memory_limit=1 << 20))
    with pytest.raises(treadle.LimitExceeded, match="too little for what the plan holds"):
        session.run(None, {"x": np.ones((1, 1), np.float32)})


def test_sizes_of_an_earlier_run_are_not_prepared_again():
    text = b"""<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, float[2,1,4] x, float[2,0,4] none) => (float[2,n,4] cache, float[k,2,1,4] ys)
    <bool yes = {1}> {
      cache, ys = Loop <body = b (int64 i, bool go, float[2,p,4] s) => (bool again, float[2,q,4] t, float[2,1,4] y) {
        again = Identity(go)
        t = Concat <axis = 1> (s, x)
        keys = Transpose <perm = [0, 2, 1]> (t)
        scores = MatMul(x, keys)
        weights = Hardmax(scores)
        mixed = MatMul(weights, t)
        y = Add(mixed, x) }> (m, yes, none)
    }"""
    several, reference = session(text), session(text, tier="reference")
    feed = {"x": np.random.default_rng(1).standard_normal((2, 1, 4)).astype(np.float32)}
    feed["none"] = np.zeros((2, 0, 4), np.float32)
    allocations = []
    for m in (40, 40, 25, 40, 60):
        given = feed | {"m": np.int64(m)}
        for a, b in zip(several.run(None, given), reference.run(None, given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        allocations.append(several.counters()["allocations_last_run"])
    first, again, shorter, once_more, longer = allocations
    assert first > 40
    assert max(again, shorter, once_more) < 40
    assert longer < first

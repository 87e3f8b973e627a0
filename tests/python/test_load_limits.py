"""Loading and planning under limits: folding, time, memory, cancelling, Ctrl-C, small stacks."""

import copy
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import treadle

HEADER = '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>\n'


def doubling(first, op, count):
    nodes = " ".join(f"a{i + 1} = {op}(a{i}, a{i})" for i in range(count))
    return (HEADER + f"g () => (y) {{ a0 = {first} {nodes} y = Identity(a{count}) }}").encode()


TEXTS = 'Constant<value_string="abcdefghij">()', "StringConcat"
FLOATS = "Constant<value_floats=[1.0,2.0]>()", "Concat<axis=0>"


def slow_to_fold(products=400):
    """Large products of constants, one after the other."""
    nodes = " ".join(f"a{i + 1} = MatMul(a{i}, a0)" for i in range(products))
    return (
        HEADER
        + "g () => (y) { n = Constant<value_ints=[1000,1000]>() a0 = ConstantOfShape(n) "
        + f"{nodes} y = Identity(a{products}) }}"
    ).encode()


def in_own_process(code, **arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, **arguments
    )


@pytest.mark.parametrize("links", [26, 40])
@pytest.mark.parametrize("first, op", [TEXTS, FLOATS], ids=["texts", "floats"])
def test_values_that_double_from_node_to_node_are_left_to_the_run(links, first, op):
    """Loading takes little memory; the run, which would need all of it, is stopped by its limit."""
    code = f"""
        import re, treadle
        session = treadle.InferenceSession({doubling(first, op, links)!r})
        options = treadle.RunOptions()
        options.memory_limit = 50 << 20
        try:
            session.run(None, {{}}, options)
        except treadle.LimitExceeded as error:
            print(error)
        # Not ru_maxrss, which begins with what the process that started this one had.
        print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)
        """
    done = in_own_process(code)
    assert done.returncode == 0, done.stderr
    *said, peak = done.stdout.splitlines()
    assert "memory limit" in said[0]
    assert int(peak) < 400  # MB, of which Python and numpy take the larger part


def test_the_bound_can_be_turned_off():
    model = doubling(*FLOATS, 22)  # 32 MB at the end, twice that on the way
    bounded = treadle.InferenceSession(model)
    options = treadle.SessionOptions()
    options.bounded_load = False
    whole = treadle.InferenceSession(model, options)
    assert "Concat" in bounded.dump_graph()
    assert "Concat" not in whole.dump_graph()
    np.testing.assert_array_equal(bounded.run(None, {})[0], whole.run(None, {})[0])


def test_a_time_limit_of_loading():
    options = treadle.SessionOptions()
    options.bounded_load = False
    options.load_time_limit = 0.2
    with pytest.raises(treadle.LimitExceeded, match=r"time limit of 0\.2 s for loading was reached"):
        treadle.InferenceSession(slow_to_fold(), options)


def test_work_is_bounded_as_bytes_are():
    session = treadle.InferenceSession(slow_to_fold())
    assert "MatMul" in session.dump_graph()


def test_a_memory_limit_of_loading():
    options = treadle.SessionOptions()
    options.load_memory_limit = 1 << 20
    weights = np.zeros(1 << 20, np.float32)
    onnx = pytest.importorskip("onnx")
    made = onnx.numpy_helper.from_array(weights, "w")
    made.float_data.extend(weights.tolist())  # which cannot stay in the file
    made.ClearField("raw_data")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [1 << 20])],
        [onnx.helper.make_tensor_value_info("y", 1, [1 << 20])],
        [made],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    data = model.SerializeToString()
    with pytest.raises(treadle.LimitExceeded, match=r"memory limit of 1048576 bytes"):
        treadle.InferenceSession(data, options)
    options.load_memory_limit = 64 << 20
    treadle.InferenceSession(data, options)


def test_nodes_count_as_memory():
    functions = "".join(
        f'<domain: "l", opset_import: ["" : 21, "l" : 1]>\nf{i} (a) => (b) {{ c = l.f{i + 1}(a) b = l.f{i + 1}(c) }}\n'
        for i in range(16)
    )
    model = (
        HEADER
        + "g (float x) => (y) { y = l.f0(x) }\n"
        + functions
        + '<domain: "l", opset_import: ["" : 21]>\nf16 (a) => (b) { b = Sin(a) }\n'
    ).encode()
    options = treadle.SessionOptions()
    options.load_memory_limit = 2 << 20
    with pytest.raises(treadle.LimitExceeded, match="memory limit of 2097152 bytes was reached by the model"):
        treadle.InferenceSession(model, options)
    treadle.InferenceSession(model)


def test_cancelling_from_another_thread():
    options = treadle.SessionOptions()
    options.bounded_load = False
    timer = threading.Timer(0.3, options.set_load_cancellation_flag, [True])
    timer.start()
    with pytest.raises(treadle.ModelLoadCanceled, match="the loading was cancelled"):
        treadle.InferenceSession(slow_to_fold(), options)
    timer.join()
    with pytest.raises(treadle.ModelLoadCanceled):
        treadle.InferenceSession(doubling(*FLOATS, 1), options)
    options.set_load_cancellation_flag(False)
    session = treadle.InferenceSession(doubling(*FLOATS, 1), options)
    options.set_load_cancellation_flag(True)  # of loading only
    np.testing.assert_array_equal(session.run(None, {})[0], [1, 2, 1, 2])


def test_ctrl_c_while_loading():
    options = treadle.SessionOptions()
    options.bounded_load = False
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        treadle.InferenceSession(slow_to_fold(), options)
    timer.join()


TOOL = (
    pathlib.Path(os.environ.get("TREADLE_BIN_DIR", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))
    / "treadle"
)


@pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
def test_the_tool_takes_the_limits(tmp_path):
    path = tmp_path / "slow.onnxtxt"
    path.write_bytes(slow_to_fold())

    def said(*arguments):
        done = subprocess.run([TOOL, "show", path, *arguments], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stderr

    code, error = said("--unbounded-load", "--load-time-limit", "0.2")
    assert code == 1
    assert "the time limit of 0.2 s for loading was reached" in error
    code, error = said("--load-memory-limit", "1000")
    assert code == 1
    assert "the memory limit of 1000 bytes was reached" in error
    assert said("--load-time-limit", "200", "--load-memory-limit", "1000000000") == (0, "")


def many_branches(count):
    """Planning takes more than in proportion to the branches."""
    text = "".join(
        f"v{i + 1} = If(c) <then_branch = t{i} () => (p{i}) {{ p{i} = Erf(v{i}) }}, "
        f"else_branch = e{i} () => (q{i}) {{ r{i} = Sin(v{i}) q{i} = Cos(r{i}) }}> "
        for i in range(count)
    )
    return (HEADER + f"g (bool c, float[N] x) => (y) {{ v0 = Identity(x) {text} y = Identity(v{count}) }}").encode()


@pytest.fixture(scope="module")
def branches():
    return treadle.InferenceSession(many_branches(20_000))


def feed(size):
    return {"c": np.array(True), "x": np.zeros(size, np.float32)}


def test_a_run_that_plans_obeys_its_own_time_limit(branches):
    options = treadle.RunOptions()
    options.time_limit = 0.02
    with pytest.raises(treadle.LimitExceeded, match=r"time limit of 0\.02 s was reached"):
        branches.run(None, feed(3), options)
    assert branches.counters()["plans"] == 0


def test_ctrl_c_while_planning(branches):
    def press():
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        for _ in range(100):
            branches.explain(feed(5))
            branches.run(None, feed(4))
    thread.join()


def test_terminate_while_planning(branches):
    options = treadle.RunOptions()
    options.terminate = True
    with pytest.raises(treadle.Fail, match="the run was cancelled"):
        branches.run(None, feed(6), options)


def nested_loops(depth):
    text = f"o{depth} = Sin(s{depth})"
    for i in range(depth, 0, -1):
        text = (
            f"o{i - 1} = Loop(m, , s{i - 1}) <body = b{i} (int64 i{i}, bool c{i}, s{i}) => (d{i}, p{i}) "
            f"{{ d{i} = Identity(c{i}) {text} p{i} = Identity(o{i}) }}>"
        )
    return HEADER + f"g (float s0) => (y) {{ m = Constant<value_int=1>() {text} y = Identity(o0) }}\n"


def nested_functions(depth):
    text = HEADER + "g (float s0) => (y) { y = l.f0(s0) }\n"
    for i in range(depth):
        text += (
            f'<domain: "l", opset_import: ["" : 21, "l" : 1]>\nf{i} (a) => (b) {{ m = Constant<value_int=1>() '
            f"b = Loop(m, , a) <body = q (int64 i, bool c, float s) => (bool d, float o) "
            f"{{ d = Identity(c) o = l.f{i + 1}(s) }}> }}\n"
        )
    return text + f'<domain: "l", opset_import: ["" : 21]>\nf{depth} (a) => (b) {{ b = Sin(a) }}\n'


@pytest.mark.parametrize("nest, depth", [(nested_loops, 60), (nested_functions, 98)], ids=["bodies", "functions"])
@pytest.mark.parametrize("kilobytes", [160, 256, 384, 512, 1024, 8192])
def test_a_thread_with_a_small_stack_runs_nested_models_or_refuses_them(nest, depth, kilobytes):
    """In a process of its own, which would not survive a stack that overflows."""
    code = f"""
        import sys, threading
        import numpy as np, treadle
        model = sys.stdin.read().encode()

        def work():
            try:
                session = treadle.InferenceSession(model)
                print("ran", session.run(None, {{"s0": np.float32(1)}})[0])
            except treadle.LimitExceeded as error:
                print(error)
            treadle.check(model)

        threading.stack_size({kilobytes} << 10)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """
    done = in_own_process(code, input=nest(depth))
    assert done.returncode == 0, done.stderr
    if kilobytes == 8192:
        assert done.stdout.startswith("ran 0.84")
    else:
        assert done.stdout.startswith("ran 0.84") or "too deep for the" in done.stdout


def test_options_are_copied_with_a_flag_of_their_own():
    options = treadle.SessionOptions()
    options.load_time_limit = 5.0
    options.set_load_cancellation_flag(True)
    for made in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert made.load_time_limit == 5.0
        treadle.InferenceSession(doubling(*FLOATS, 1), made)
    with pytest.raises(treadle.ModelLoadCanceled):
        treadle.InferenceSession(doubling(*FLOATS, 1), options)

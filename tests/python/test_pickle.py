"""Sessions, options, streams and values go through pickle: into processes that are spawned, and from machine to machine."""

import concurrent.futures
import copy
import multiprocessing
import os
import pickle

import models
import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 22]> '
# A window's sum times a factor, and the state that grows by it.
WINDOWS = (
    HEAD
    + """g (float[T] x, float state, float factor) => (float y, float stateN) {
    sum = ReduceSum <keepdims = 0> (x)
    scaled = Mul (sum, factor)
    stateN = Add (state, scaled)
    y = Neg (stateN)
  }"""
)
X = np.float32([[1, 2, 3], [4, 5, 6]])
Y = np.float32([10, 20, 30])


def again(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("as_path", [True, False])
def test_sessions(tmp_path, monkeypatch, as_path):
    (tmp_path / "add.onnx").write_bytes(models.add())
    monkeypatch.chdir(tmp_path)
    session = treadle.InferenceSession("add.onnx" if as_path else models.add())
    pickled = pickle.dumps(session)
    assert (len(pickled) > len(models.add())) or as_path
    monkeypatch.chdir("/")
    for other in (pickle.loads(pickled), again(pickle.loads(pickled)), copy.deepcopy(session)):
        np.testing.assert_array_equal(other.run(None, {"x": X, "y": Y})[0], X + Y)
        assert [repr(info) for info in other.get_inputs()] == [repr(info) for info in session.get_inputs()]


def test_options_of_a_session_go_with_it():
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.load_time_limit = 20.0
    options.add_session_config_entry("treadle.jit", "off")
    options.add_free_dimension_override_by_name("T", 8)
    session = again(treadle.InferenceSession(models.SUMS.encode(), options, weights="f16"))
    found = session.get_session_options()
    assert repr(found) == repr(options)
    assert session.get_inputs()[0].shape == [8]
    assert session._weights == "f16"


def test_a_file_that_is_not_there_is_told_of(tmp_path):
    path = tmp_path / "add.onnx"
    path.write_bytes(models.add())
    pickled = pickle.dumps(treadle.InferenceSession(path))
    path.unlink()
    with pytest.raises(treadle.NoSuchFile, match=f"{path} is not on .* make the session from its bytes"):
        pickle.loads(pickled)


class Named(treadle.InferenceSession):
    """With an attribute, and another signature."""

    def __init__(self, name):
        super().__init__(models.SUMS.encode())
        self.name = name


def test_classes_of_ones_own():
    other = again(Named("first"))
    assert (type(other), other.name) == (Named, "first")
    assert other.run(None, {"x": np.zeros(3, np.float32)})[0].shape == (3,)


def test_run_options():
    options = treadle.RunOptions()
    options.time_limit, options.iteration_limit, options.logid = 20.0, 5, "mine"
    for other in (again(options), copy.copy(options), copy.deepcopy(options)):
        assert repr(other) == repr(options)
        session = treadle.InferenceSession(models.SUMS.encode())
        with pytest.raises(treadle.LimitExceeded):
            session.run(None, {"x": np.zeros(50, np.float32)}, other)
    options.terminate = True
    assert again(options).terminate


def signal(length):
    return np.sin(np.arange(length, dtype=np.float32))


@pytest.mark.parametrize("begun", [0, 1, 37])
def test_streams_over_time(begun):
    stream = treadle.InferenceSession(models.SUMS.encode()).stream(time={"x": 0})
    stream.push(signal(begun))
    other = again(stream)
    np.testing.assert_array_equal(other.push(signal(20)), stream.push(signal(20)))
    assert str(other) == str(stream)


def test_streams_of_windows():
    session = treadle.InferenceSession(WINDOWS.encode())
    factor = np.float32(3)
    stream = session.stream({"state": "stateN"}, {"factor": factor}, {"x": 0}, 4, initial={"state": np.float32(7)})
    stream.push(signal(10))
    other = again(stream)
    assert other.pending == stream.pending == 2
    np.testing.assert_array_equal(other.push(signal(10)), stream.push(signal(10)))
    other.reset()
    assert other.state["state"] == 7


def test_streams_of_a_pool_and_the_pool():
    pool = treadle.InferenceSession(models.SUMS.encode()).streams(4, time={"x": 0})
    pool.push({"a": signal(5)})
    other = treadle.InferenceSession(models.SUMS.encode()).streams(4, time={"x": 0})
    other.join("a", again(pool.fork("a")))
    np.testing.assert_array_equal(other.push({"a": signal(5)})["a"], pool.push({"a": signal(5)})["a"])
    with pytest.raises(TypeError, match="pickle its streams, which `fork` gives"):
        pickle.dumps(pool)


def test_closed_streams_are_refused():
    stream = treadle.InferenceSession(models.SUMS.encode()).stream(time={"x": 0})
    stream.close()
    with pytest.raises(ValueError, match="the stream is closed"):
        pickle.dumps(stream)


def test_values():
    for array in (X, np.array(["a", "b"]), np.zeros((0, 3), np.int8), np.float16(2)):
        value = again(treadle.OrtValue.ortvalue_from_numpy(array))
        np.testing.assert_array_equal(value.numpy(), array)
    half = treadle.OrtValue.ortvalue_from_numpy_with_onnx_type(np.uint16([0x3F80]), 16)
    assert again(half).element_type() == 16


def test_a_process_that_is_spawned(tmp_path):
    session = treadle.InferenceSession(models.SUMS.encode())
    stream = session.stream(time={"x": 0})
    stream.push(signal(7))
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        assert processes.submit(os.getpid).result() != os.getpid()
        ran = processes.submit(session.run, None, {"x": signal(30)}).result()[0]
        pushed = processes.submit(treadle.Stream.push, stream, signal(30)).result()
    np.testing.assert_array_equal(ran, session.run(None, {"x": signal(30)})[0])
    np.testing.assert_array_equal(pushed, stream.push(signal(30)))

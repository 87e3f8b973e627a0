"""Streams that are made ready before their first push, and that are used by one thread at a time."""

import threading

import numpy as np
import onnx
import pytest
import treadle
from onnx import numpy_helper
from test_stream_over_time import CASES, convolution_and_gru, loop_case, models, node, stack_of_lstms, value


def plans(session):
    return session.counters()["plans"]


@pytest.mark.parametrize("make", [convolution_and_gru, stack_of_lstms])
@pytest.mark.parametrize("sizes", [True, 160, (1, 7, 480)])
def test_warm_changes_nothing_that_is_given(make, sizes):
    case = make()
    session = treadle.InferenceSession(case.model)
    cold = session.stream(time={"x": case.axis})
    warm = session.stream(time={"x": case.axis}, warm=sizes)
    x = case.signal(40)
    for a in (0, 13, 26):
        want, got = (s.push(x=case.part(x, a, a + 13)) for s in (cold, warm))
        for w, g in zip(*([want], [got]) if isinstance(want, np.ndarray) else (want, got), strict=True):
            np.testing.assert_array_equal(w, g)


def accumulator():
    return models.model(
        [node("ReduceSum", ["x"], ["total"], keepdims=0), node("Add", ["state", "total"], ["stateN"])],
        [value("x", shape=["T"]), value("state", shape=[])],
        [value("stateN", shape=[]), value("total", shape=[])],
    )


def test_windows_are_planned_before():
    session = treadle.InferenceSession(accumulator())
    stream = session.stream(time={"x": 0}, hop=4, context=2, warm=True)
    before = plans(session)
    assert before == 1
    stream.push(x=np.ones(9, np.float32))
    stream.flush()
    assert plans(session) == before


def test_what_stands_against_it_is_said():
    session = treadle.InferenceSession(accumulator())
    with pytest.raises(treadle.InvalidArgument, match="at least one sample, not 0"):
        session.stream(time={"x": 0}, hop=4, warm=[4, 0])
    with pytest.raises(treadle.InvalidArgument, match="at least one sample, not -3"):
        treadle.InferenceSession(CASES["sums"].model).stream(time={"x": 1}, warm=-3)


def test_loops_that_stop_are_warmed_too():
    case = loop_case(node("Less", ["i", "limit"], ["c2"]))
    stream = treadle.InferenceSession(case.model).stream(time={"x": 1}, warm=[1, 50])
    assert not stream.done
    stream.push(x=case.signal(200))
    assert stream.done


def test_a_second_thread_is_sent_away():
    """Two threads push for as long as it takes until one of them comes while the other is inside."""
    case = stack_of_lstms()
    stream = treadle.InferenceSession(case.model).stream(time={"x": 0}, warm=4000)
    x, refused = case.signal(4000), threading.Event()

    def push():
        for _ in range(2000):
            if refused.is_set():
                return
            try:
                stream.push(x=x)
            except treadle.Busy as error:
                assert "another thread is using it" in str(error)
                refused.set()

    threads = [threading.Thread(target=push) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused.is_set()


def test_mapped_weights_break_real_time(tmp_path):
    path = tmp_path / "model.onnx"
    weights = np.full((512, 512), 0.5, np.float32)
    product = models.model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", shape=["T", 512])],
        [value("y", shape=["T", 512])],
        initializers=[numpy_helper.from_array(weights, "w")],
    )
    onnx.save_model(onnx.load_from_string(product), path, save_as_external_data=True, size_threshold=0)
    said = {}
    for files in ("map", "copy"):
        options = treadle.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("treadle.jit", "off")
        options.add_session_config_entry("treadle.weight_files", files)
        stream = treadle.InferenceSession(str(path), options).stream(time={"x": 0}, warm=1)
        said[files] = stream.breaks_realtime(1)
        stream.bind(x=np.ones((1, 512), np.float32))
        assert stream.breaks_realtime(1) is None, files  # steps do not ask
    assert said["copy"] is None
    assert said["map"] == (
        "each run asks the system whether a mapped file of weights has changed: set weight_files to copy, or bind"
    )

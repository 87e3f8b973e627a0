"""The backend for Triton Inference Server: the wheel's server, models of our own, tritonclient's calls.

What a sequence gives is held against a stream of treadle's that runs alone in the test.
"""

import concurrent.futures

import numpy as np
import pytest
import treadle
import triton_models
from triton_server import BACKENDS, TritonServer, environment

pytestmark = pytest.mark.skipif(
    not (BACKENDS / "treadle" / "libtriton_treadle.so").exists(), reason="the backend is not built"
)
WAYS = ("json", "binary", "grpc", "stream")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    environment()
    repository = triton_models.repository(tmp_path_factory.mktemp("triton") / "models")
    with TritonServer(repository) as running:
        yield running


@pytest.fixture(params=WAYS)
def caller(server, request):
    from triton_client import Caller

    with Caller(server, request.param) as calling:
        yield calling


@pytest.fixture
def binary(server):
    from triton_client import Caller

    with Caller(server, "binary") as calling:
        yield calling


def session(server, model):
    return treadle.InferenceSession(str(server.repository / model / "1" / "model.onnx"))


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def flags(step, steps):
    return {"sequence_start": step == 0, "sequence_end": step == steps - 1}


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("model", ["step", "step_direct", "step_instances"])
@pytest.mark.parametrize("names", [(7, 8, 2**62 + 5), ("a", "b", "ein langer Name")], ids=["numbers", "texts"])
def test_sequences_that_take_turns_are_streams_of_their_own(server, caller, model, names):
    chunks = {name: rows(i, 5, 1, 4) for i, name in enumerate(names)}
    streams = {name: session(server, model).stream() for name in names}
    for step in range(5):
        for name in names:
            answer = caller.infer(model, {"x": chunks[name][step]}, ["y"], sequence_id=name, **flags(step, 5))
            close(answer["y"], streams[name].push(chunks[name][step]))


def test_windows_take_chunks_of_any_length(server, caller):
    stream = session(server, "windows").stream(
        time={"input": 1}, hop=4, context=2, bind={"sr": np.int64(16000)}, state={"state": "stateN"}
    )
    sizes = [8, 3, 1, 9, 6]
    for step, size in enumerate(sizes):
        chunk = rows(step, 1, size)
        answer = caller.infer("windows", {"input": chunk}, ["output"], sequence_id=3, **flags(step, len(sizes)))
        expected = stream.push(chunk)
        if step == len(sizes) - 1:  # what the flush brings comes with the end
            expected = np.concatenate([expected, stream.flush()])
        close(answer["output"], expected.swapaxes(0, 1))


def test_a_sequence_over_time_gives_what_a_run_over_the_signal_gives(server, caller):
    signal = rows(1, 1, 2, 50)
    [expected] = session(server, "signal").run(None, {"x": signal})
    pieces = np.split(signal, [7, 8, 30], axis=2)
    found = [
        caller.infer("signal", {"x": np.ascontiguousarray(piece)}, ["y"], sequence_id=9, **flags(i, len(pieces)))["y"]
        for i, piece in enumerate(pieces)
    ]
    close(np.concatenate(found, axis=2), expected)


def test_without_sequences_a_request_is_a_whole_signal(server, caller):
    signal = rows(2, 1, 2, 33)
    [expected] = session(server, "signal").run(None, {"x": signal})
    close(caller.infer("signal_whole", {"x": signal})["y"], expected)


@pytest.mark.parametrize("model", ["step", "step_direct", "step_instances", "windows", "signal"])
def test_many_callers_at_once(server, model):
    from triton_client import Caller

    steps, inputs = 12, {"windows": ("input", (1, 5)), "signal": ("x", (1, 2, 4))}
    name, shape = inputs.get(model, ("x", (1, 4)))
    options = {
        "windows": {"time": {"input": 1}, "hop": 4, "context": 2, "bind": {"sr": np.int64(16000)}},
        "signal": {"time": {"x": 2}},
    }.get(model, {})
    axis = {"windows": 1, "signal": 2}.get(model, 0)

    def call(caller_id):
        stream = session(server, model).stream(**options)
        with Caller(server, ("binary", "grpc")[caller_id % 2]) as calling:
            for step in range(steps):
                chunk = rows([caller_id, step], *shape)
                end = flags(step, steps)
                found = calling.infer(model, {name: chunk}, sequence_id=100 + caller_id, **end)
                expected = stream.push(chunk)
                if end["sequence_end"] and options:
                    tail = stream.flush()
                    expected = np.concatenate([expected, tail], axis=0 if model == "windows" else axis)
                if model == "windows":
                    expected = expected.swapaxes(0, 1)
                close(next(value for key, value in found.items() if key != "treadle_state"), expected)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(call, range(32)))

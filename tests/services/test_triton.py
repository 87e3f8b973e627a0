"""The backend for Triton Inference Server: the wheel's server, models of our own, tritonclient's calls.

A sequence's results are compared with a stream of treadle's that runs alone in the test.
"""

import concurrent.futures
import os
import time

import numpy as np
import pytest
import triton_models
from comparing import close, flags, refusal, rows, session
from triton_server import TritonServer


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
        if step == len(sizes) - 1:  # frames from the flush come with the end
            expected = np.concatenate([expected, stream.flush()])
        close(answer["output"], expected.swapaxes(0, 1))


def test_a_sequence_over_time_equals_a_run_over_the_signal(server, caller):
    signal = rows(1, 1, 2, 50)
    [expected] = session(server, "signal").run(None, {"x": signal})
    pieces = np.split(signal, [7, 8, 30], axis=2)
    found = [
        caller.infer("signal", {"x": np.ascontiguousarray(piece)}, ["y"], sequence_id=9, **flags(i, len(pieces)))["y"]
        for i, piece in enumerate(pieces)
    ]
    close(np.concatenate(found, axis=2), expected)


def test_a_model_without_a_batch_is_served_in_sequences(caller):
    signal = rows(4, 2, 12)
    first, second = (np.ascontiguousarray(signal[:, part]) for part in (slice(0, 5), slice(5, 12)))
    begun = caller.infer("flat", {"x": first}, sequence_id=1, sequence_start=True)
    resumed = {"x": second, "treadle_state": begun["treadle_state"]}
    ended = caller.infer("flat", resumed, ["y"], sequence_id=2, sequence_start=True, sequence_end=True)
    close(np.concatenate([begun["y"], ended["y"]], axis=1), np.cumsum(signal, axis=1))


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


def test_a_sequence_without_a_start_is_refused(caller):
    said = refusal(caller.infer, "step", {"x": rows(1, 1, 4)}, sequence_id=4711)
    assert "sequence 4711" in said and "must specify the START flag on the first request of the sequence" in said


def test_after_its_end_a_sequence_is_unknown(caller):
    caller.infer("step", {"x": rows(1, 1, 4)}, sequence_id="once", sequence_start=True, sequence_end=True)
    assert "must specify the START flag" in refusal(caller.infer, "step", {"x": rows(1, 1, 4)}, sequence_id="once")


def test_a_live_sequence_that_starts_again_begins_anew(server, caller):
    stream = session(server, "step").stream()
    for start in (True, False, True):
        if start:
            stream.reset()
        found = caller.infer("step", {"x": rows(1, 1, 4)}, ["y"], sequence_id=81, sequence_start=start)["y"]
        close(found, stream.push(rows(1, 1, 4)))
    assert (
        "sequence 81 lives and is started again" in server.text()
        or "sequence 81 for model 'step' has a conflict" in (server.text())
    )


@pytest.mark.parametrize("model", ["step", "step_direct", "step_instances"])
def test_a_snapshot_goes_on(server, caller, model):
    chunks = rows(3, 6, 1, 4)
    stream = session(server, model).stream()
    expected = [stream.push(chunk) for chunk in chunks]
    for step in range(3):
        answer = caller.infer(model, {"x": chunks[step]}, ["y", "treadle_state"], sequence_id=5, **flags(step, 6))
    snapshot = answer["treadle_state"]
    assert snapshot.shape[0] == 1 and snapshot.dtype == np.uint8
    for name in (6, "another"):
        for step in range(3, 6):
            inputs = {"x": chunks[step]} | ({"treadle_state": snapshot} if step == 3 else {})
            found = caller.infer(
                model, inputs, ["y"], sequence_id=name, sequence_start=step == 3, sequence_end=step == 5
            )
            close(found["y"], expected[step])


def test_treadle_loads_snapshots_of_the_server(server, binary):
    answer = binary.infer("step", {"x": rows(1, 1, 4)}, ["treadle_state"], sequence_id=5, sequence_start=True)
    stream, alone = session(server, "step").stream(), session(server, "step").stream()
    alone.push(rows(1, 1, 4))
    stream.load(answer["treadle_state"].tobytes())
    close(stream.state["h"], alone.state["h"])


@pytest.mark.parametrize("snapshot", [b"", b"abc", bytes(1000)], ids=["empty", "short", "zeros"])
def test_bytes_that_are_no_snapshot_are_refused(binary, snapshot):
    given = np.frombuffer(snapshot, np.uint8).reshape(1, -1)
    said = refusal(
        binary.infer, "step", {"x": rows(1, 1, 4), "treadle_state": given}, ["y"], sequence_id=1, sequence_start=True
    )
    assert "'treadle_state' is no snapshot of a stream of this model" in said


def test_a_snapshot_of_another_model_is_refused(binary):
    given = binary.infer("signal", {"x": rows(1, 1, 2, 5)}, ["treadle_state"], sequence_id=1, sequence_start=True)
    said = refusal(binary.infer, "step", {"x": rows(1, 1, 4), **given}, ["y"], sequence_id=1, sequence_start=True)
    assert "is no snapshot of a stream of this model" in said


def test_a_snapshot_in_the_middle_is_refused_and_changes_nothing(server, binary):
    stream = session(server, "step").stream()
    first = binary.infer("step", {"x": rows(1, 1, 4)}, sequence_id=1, sequence_start=True)
    close(first["y"], stream.push(rows(1, 1, 4)))
    again = {"x": rows(2, 1, 4), "treadle_state": first["treadle_state"]}
    assert "goes with the START flag" in refusal(binary.infer, "step", again, sequence_id=1)
    close(binary.infer("step", {"x": rows(2, 1, 4)}, sequence_id=1)["y"], stream.push(rows(2, 1, 4)))


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"x": np.zeros((1, 5), np.float32)}, "unexpected shape"),
        ({"x": np.zeros((2, 4), np.float32)}, "must specify batch-size 1"),
        ({"x": np.zeros((1, 4), np.float64)}, "data-type"),
        ({"y": np.zeros((1, 4), np.float32)}, "unexpected inference input"),
    ],
    ids=["shape", "batch", "type", "name"],
)
def test_a_refused_request_changes_nothing(server, binary, inputs, said):
    stream = session(server, "step").stream()
    close(
        binary.infer("step", {"x": rows(1, 1, 4)}, sequence_id=1, sequence_start=True)["y"], stream.push(rows(1, 1, 4))
    )
    assert said in refusal(binary.infer, "step", inputs, sequence_id=1)
    close(binary.infer("step", {"x": rows(2, 1, 4)}, sequence_id=1)["y"], stream.push(rows(2, 1, 4)))


def test_a_bad_step_spoils_no_other_of_its_batch(server):
    """Half of the callers send texts that are no numbers; the model has them cast."""
    from triton_client import Caller

    def call(number):
        text = "x" if number % 2 else str(number)
        with Caller(server, "grpc") as calling:
            for _ in range(20):
                inputs = {name: np.full((1, 16), text.encode(), object) for name in ("INPUT0", "INPUT1")}
                if number % 2:
                    assert "is 'x', expected the text of a number" in refusal(calling.infer, "texts", inputs)
                else:
                    found = calling.infer("texts", inputs)["OUTPUT0"]
                    assert found.tolist() == [[str(2 * number).encode()] * 16]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))


def test_a_full_pool_refuses_and_makes_room(server, binary):
    for name in (1, 2):
        binary.infer("step_few", {"x": rows(1, 1, 4)}, sequence_id=name, sequence_start=True)
    said = refusal(binary.infer, "step_few", {"x": rows(1, 1, 4)}, sequence_id=3, sequence_start=True)
    assert "has no room for sequence 3: all of its 2 streams live (parameter 'capacity')" in said
    assert server.metric("treadle_streams_refused", model="step_few") == 1
    binary.infer("step_few", {"x": rows(1, 1, 4)}, sequence_id=2, sequence_end=True)
    binary.infer("step_few", {"x": rows(1, 1, 4)}, sequence_id=4, sequence_start=True)
    deadline = time.monotonic() + 30
    while True:  # once the first is idle it leaves
        try:
            binary.infer("step_few", {"x": rows(1, 1, 4)}, sequence_id=5, sequence_start=True, sequence_end=True)
            break
        except Exception as refused:
            assert "has no room" in str(refused) and time.monotonic() < deadline
            time.sleep(0.2)
    assert server.metric("treadle_streams_idle", model="step_few") >= 1


def test_metrics_count_streams(server, binary):
    def values():
        return {
            name: server.metric(f"treadle_{name}", model="step_instances")
            for name in ("streams", "streams_started", "streams_resumed", "snapshots")
        }

    before = values()
    x = {"x": rows(1, 1, 4)}
    snapshot = binary.infer("step_instances", x, ["treadle_state"], sequence_id=21, sequence_start=True)
    binary.infer("step_instances", {**x, **snapshot}, ["y"], sequence_id=22, sequence_start=True)
    binary.infer("step_instances", x, ["y"], sequence_id=22, sequence_end=True)
    found = values()
    assert {name: found[name] - before[name] for name in found} == {
        "streams": 1,
        "streams_started": 2,
        "streams_resumed": 1,
        "snapshots": 1,
    }


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_the_server_keeps_states_of_its_own(caller, strategy):
    for start in range(2):  # a sequence that begins again begins at zero
        for name in (1, 2):
            for step in range(1, 4):
                given = {"INPUT": np.int32([[step * name]])}
                answer = caller.infer(f"implicit_{strategy}", given, sequence_id=name, **flags(step - 1, 3))
                assert answer["OUTPUT"].tolist() == [[name * step * (step + 1) // 2]], start


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_states_of_the_server_in_batches(server, strategy):
    from triton_client import Caller

    def call(name):
        with Caller(server, "grpc") as calling:
            for step in range(1, 30):
                given = {"INPUT": np.int32([[step * name]])}
                answer = calling.infer(f"implicit_{strategy}", given, sequence_id=name, **flags(step - 1, 29))
                assert answer["OUTPUT"].tolist() == [[name * step * (step + 1) // 2]]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(1, 9)))


def test_what_the_batcher_says_is_an_input(caller):
    for step, expected in enumerate([8, 7, 7]):
        answer = caller.infer("controlled", {"INPUT": np.int32([[7]])}, sequence_id=31, **flags(step, 3))
        assert answer["OUTPUT"].tolist() == [[expected]]


@pytest.mark.parametrize("name", ["a name", "x" * 100, 77])
def test_the_correlation_id_as_a_text(caller, name):
    answer = caller.infer("named", {"INPUT": np.int32([[1]])}, sequence_id=name, sequence_start=True, sequence_end=True)
    assert answer["OUTPUT"].tolist() == [[str(name).encode()]]


@pytest.mark.parametrize("entries", [1, 3, 8])
def test_models_without_sequences_take_batches(caller, entries):
    a, b = (np.random.default_rng(i).integers(0, 100, (entries, 16), np.int32) for i in range(2))
    answer = caller.infer("simple", {"INPUT0": a, "INPUT1": b})
    assert (answer["OUTPUT0"] == a + b).all() and (answer["OUTPUT1"] == a - b).all()
    assert list(caller.infer("simple", {"INPUT0": a, "INPUT1": b}, ["OUTPUT1"])) == ["OUTPUT1"]


def test_batches_of_several_callers_run_together(server):
    from triton_client import Caller

    before = [server.metric(f"nv_inference_{what}", model="simple") for what in ("count", "exec_count")]

    def call(number):
        with Caller(server, "grpc") as calling:
            for step in range(20):
                a = np.full((1 + number % 3, 16), number, np.int32)
                answer = calling.infer("simple", {"INPUT0": a, "INPUT1": np.full_like(a, step)})
                assert (answer["OUTPUT0"] == number + step).all() and answer["OUTPUT0"].shape == a.shape

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    after = [server.metric(f"nv_inference_{what}", model="simple") for what in ("count", "exec_count")]
    requests, runs = (new - old for new, old in zip(after, before, strict=True))
    assert requests == sum(20 * (1 + number % 3) for number in range(8)) and runs < 160


def test_texts_go_there_and_back(caller):
    numbers = np.arange(32).reshape(2, 16)
    texts = {f"INPUT{i}": np.array([[str(n).encode() for n in row] for row in numbers], object) for i in range(2)}
    answer = caller.infer("texts", texts)
    assert answer["OUTPUT0"].astype(int).tolist() == (2 * numbers).tolist()


def test_a_warm_model_is_ready_and_has_no_streams_left(server, binary):
    assert server.metric("treadle_streams", model="step_warm") == 0
    binary.infer("step_warm", {"x": rows(1, 1, 4)}, sequence_id=1, sequence_start=True, sequence_end=True)


def test_sequences_outlive_the_server_by_snapshots(tmp_path, backend):
    """SIGKILL after random steps of 64 sequences, again and again; each caller goes on from its last snapshot."""
    from triton_client import Caller

    repository = tmp_path / "models"
    triton_models.save(repository, "step", triton_models.STEP, triton_models.STEP_CONFIG)
    rng = np.random.default_rng(11)
    deaths = 50 if os.environ.get("TREADLE_TEST_LONG") else 3
    with TritonServer(repository) as server:
        streams = {name: session(server, "step").stream() for name in range(1, 65)}
        snapshots: dict[int, dict] = {name: {} for name in streams}
        for _ in range(deaths):
            with Caller(server, "binary") as calling:
                for name, stream in streams.items():
                    x = rows(int(rng.integers(1000)), 1, 4)
                    if snapshots[name]:
                        said = refusal(calling.infer, "step", {"x": x}, sequence_id=name)
                        assert "must specify the START flag" in said
                    for step in range(1 + int(rng.integers(3))):
                        given = {"x": x} | (snapshots[name] if step == 0 else {})
                        answer = calling.infer("step", given, sequence_id=name, sequence_start=step == 0)
                        close(answer.pop("y"), stream.push(x))
                        snapshots[name] = answer
            server.kill()
            server.start()


def test_the_server_ends_in_order(tmp_path, backend):
    """After good and bad requests nothing is left in flight."""
    from triton_client import Caller

    repository = tmp_path / "models"
    triton_models.save(repository, "step", triton_models.STEP, triton_models.STEP_CONFIG)
    triton_models.save(repository, "texts", triton_models.TEXTS, triton_models.TEXTS_CONFIG)
    with TritonServer(repository) as server:
        with Caller(server, "grpc") as calling:
            calling.infer("step", {"x": rows(1, 1, 4)}, sequence_id=1, sequence_start=True, sequence_end=True)
            refusal(calling.infer, "step", {"x": rows(1, 1, 4)}, sequence_id=2)
            given = {"x": rows(1, 1, 4), "treadle_state": np.zeros((1, 3), np.uint8)}
            refusal(calling.infer, "step", given, sequence_id=3, sequence_start=True, sequence_end=True)
            texts = {f"INPUT{i}": np.full((1, 16), b"x", object) for i in range(2)}
            refusal(calling.infer, "texts", texts)
        server.stop()
        assert server.process.returncode == 0, server.text()[-3000:]
        assert "successfully unloaded 'step' version 1" in server.text()

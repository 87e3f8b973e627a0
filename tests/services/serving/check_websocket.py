"""A stream per WebSocket, in the same pool as REST and gRPC."""

import base64
import json
import os
import signal
import socket
import time

import numpy as np
import pytest
from servers import Served, levels, samples
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

RNG = np.random.default_rng(4)
ASK = json.dumps({"parameters": {"snapshot": True}})
END = json.dumps({"parameters": {"sequence_end": True}})


def opened(served, model="sums", **request):
    ws = connect(f"ws://{served.url}/v2/models/{model}/stream", max_size=None)
    ws.send(json.dumps(request))
    return ws, json.loads(ws.recv(60))


def step(ws, array, dtype=np.float32):
    ws.send(array.tobytes())
    reply = ws.recv(60)
    assert isinstance(reply, bytes), reply
    return np.frombuffer(reply, dtype)


def snapshot(ws):
    ws.send(ASK)
    return json.loads(ws.recv(60))["parameters"]["treadle_state"]


def refused(ws):
    """The error and the code that a connection ends with."""
    said = json.loads(ws.recv(60))["error"]
    with pytest.raises(ConnectionClosed) as raised:
        ws.recv(60)
    return said, raised.value.rcvd.code


def test_a_stream(served):
    ws, said = opened(served)
    assert said == {"model_name": "sums", "outputs": [{"name": "level", "datatype": "FP32", "shape": [-1, -1, 1]}]}
    with ws:
        chunks = [samples(RNG, n) for n in (4, 3, 5, 1, 0, 8)]
        found = np.concatenate([step(ws, chunk) for chunk in chunks])
        assert found.tolist() == levels(chunks).tolist()
        ws.send(END)
        assert np.frombuffer(ws.recv(60), np.float32).size == 1  # waiting samples, padded
        with pytest.raises(ConnectionClosed) as raised:
            ws.recv(60)
        assert raised.value.rcvd.code == 1000


def test_over_time(served, alone):
    signal_ = RNG.standard_normal((1, 1, 50)).astype(np.float32)
    stream = alone["smooth"].stream(time={"x": 2})
    whole = np.concatenate([stream.push(signal_), stream.flush()], axis=2).ravel()
    ws, _ = opened(served, "smooth")
    with ws:
        found = [step(ws, signal_[..., a : a + 7]) for a in range(0, 50, 7)]
        ws.send(END)
        found.append(np.frombuffer(ws.recv(60), np.float32))
    np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-5)


def test_inputs_and_outputs_that_are_said(served):
    ws, said = opened(
        served,
        "quotients",
        inputs=[{"name": "x", "datatype": "INT32", "shape": [1, 2]}],
        outputs=[{"name": "level"}],
        parameters={"sequence_start": True},
    )
    with ws:
        assert [output["name"] for output in said["outputs"]] == ["level"]
        assert step(ws, np.array([1, 2], np.int32), np.int32).tolist() == [7560]
        for bad in (np.array([1], np.int32), np.array([0, 1], np.int32)):  # a size, and a division
            ws.send(bad.tobytes())
            assert "error" in json.loads(ws.recv(60))
        assert step(ws, np.array([1, 1], np.int32), np.int32).tolist() == [7560 + 10080]


def test_a_snapshot_goes_on_in_another_connection(served):
    chunks = [samples(RNG, 6) for _ in range(4)]
    ws, _ = opened(served)
    with ws:
        for chunk in chunks[:2]:
            step(ws, chunk)
        state = snapshot(ws)
    ws, _ = opened(served, parameters={"treadle_state": state, "sequence_start": True})
    with ws:
        found = np.concatenate([step(ws, chunk) for chunk in chunks[2:]])
    assert found.tolist() == levels(chunks).tolist()[3:]


def test_a_snapshot_goes_on_by_rest(served):
    ws, _ = opened(served)
    with ws:
        step(ws, np.ones((1, 4), np.float32))
        state = list(base64.b64decode(snapshot(ws)))
    body = {
        "parameters": {"sequence_id": "from a socket", "sequence_start": True, "sequence_end": True},
        "inputs": [
            {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]},
            {"name": "treadle_state", "shape": [1, len(state)], "datatype": "UINT8", "data": state},
        ],
    }
    found = json.loads(served.get("/v2/models/sums/infer", json.dumps(body).encode())[1])
    assert found["outputs"][0]["data"] == [8]


def test_a_closed_connection_leaves(served):
    before = served.metric("treadle_streams", "sums")
    ws, _ = opened(served)
    step(ws, samples(RNG, 4))
    assert served.metric("treadle_streams", "sums") == before + 1
    ws.close()
    while served.metric("treadle_streams", "sums") > before:
        time.sleep(0.01)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "is not JSON"),
        ("[]", "expected an object"),
        ('{"inputs": 5}', "'inputs' is no list"),
        ('{"inputs": [{"name": "x", "datatype": "FP32", "shape": ["a"]}]}', "expected sizes"),
        ('{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]}', "a frame decides one size"),
        ('{"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1, -1]}]}', "holds texts"),
        ('{"inputs": [{"name": "x", "datatype": "FP9", "shape": [1, -1]}]}', "the datatype 'FP9'"),
        ('{"outputs": [{"name": "z"}]}', "has no output 'z'"),
        ('{"parameters": {"sequence_id": 7}}', "the connection is the sequence"),
        ('{"parameters": {"treadle_state": "?"}}', "is not base64"),
        ('{"parameters": 7}', "'parameters' is no object"),
    ],
)
def test_openings_that_are_wrong(served, text, said):
    with connect(f"ws://{served.url}/v2/models/sums/stream") as ws:
        ws.send(text)
        found, code = refused(ws)
        assert said in found and code == 1008


def test_samples_in_front_of_the_opening(served):
    with connect(f"ws://{served.url}/v2/models/sums/stream") as ws:
        ws.send(b"\0" * 16)
        assert refused(ws) == ("a stream begins with a text frame: a v2 request without data", 1008)


def test_a_snapshot_of_another_model(served):
    ws, _ = opened(served, "quotients")
    with ws:
        step(ws, np.ones(2, np.int32), np.int32)
        state = snapshot(ws)
    ws, _ = opened(served, parameters={"treadle_state": state})
    with ws:
        ws.send(np.ones(4, np.float32).tobytes())
        found, code = refused(ws)
        assert "is none of a stream of model 'sums'" in found and code == 1008


@pytest.mark.parametrize("text", ["{}", '{"parameters": {"other": 1}}', '{"parameters": {"snapshot": 1}}', "no"])
def test_texts_in_the_middle_that_are_wrong(served, text):
    ws, _ = opened(served)
    with ws:
        step(ws, samples(RNG, 4))
        ws.send(text)
        assert refused(ws)[1] == 1008


def test_oversize_frames_end_their_connection_alone(served):
    other, _ = opened(served)
    ws, _ = opened(served)
    with ws, other:
        step(other, np.ones(4, np.float32))
        with pytest.raises(ConnectionClosed) as raised:
            ws.send(bytes(17 << 20))
            ws.recv(60)
        assert raised.value.rcvd is None or raised.value.rcvd.code == 1009
        assert step(other, np.ones(4, np.float32)).tolist() == [8]


def test_a_slow_reader_delays_no_other_client(served):
    """A peer that sends and takes in nothing: answers pile up in its own socket, then nothing more of it is read."""
    ws, _ = opened(served, "smooth")
    ws.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    ws.socket.settimeout(2)
    sent = 0
    try:
        while sent < 2000:  # beside the library, which would read
            payload = bytes(40_000)
            ws.socket.sendall(b"\x82\xfe" + len(payload).to_bytes(2, "big") + bytes(4) + payload)
            sent += 1
    except TimeoutError:
        pass
    other, _ = opened(served)
    with other:
        assert step(other, np.ones(4, np.float32)).tolist() == [4]
    ws.socket.close()


def test_a_full_server_says_so(tmp_path):
    with Served(tmp_path, capacity=1) as served:
        first, _ = opened(served)
        second, _ = opened(served)
        with first, second:
            step(first, np.ones(4, np.float32))
            second.send(np.ones(4, np.float32).tobytes())
            said, code = refused(second)
            assert said.startswith("model 'sums' has room for 1 sequences: ") and code == 1013


def test_an_idle_connection_is_closed(tmp_path):
    with Served(tmp_path, idle_s=1) as served:
        ws, _ = opened(served)
        with ws:
            step(ws, np.ones(4, np.float32))
            assert refused(ws) == ("nothing came for 1.0 seconds", 1008)


def test_a_graceful_end_hands_snapshots_out(tmp_path):
    """Connections get theirs at once; sequences of requests get theirs with the answer to their next step."""
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    with Served(tmp_path / "a", drain_s=30) as served, Served(tmp_path / "b") as other:
        ws, _ = opened(served)
        step(ws, np.ones(4, np.float32))
        body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]}]}

        def post(server, *more, **place):
            text = json.dumps({"inputs": [*body["inputs"], *more], "parameters": {"sequence_id": 5, **place}})
            status, found = server.get("/v2/models/sums/infer", text.encode())
            return status, json.loads(found)

        assert post(served, sequence_start=True)[0] == 200
        os.kill(served.process.pid, signal.SIGTERM)
        last = json.loads(ws.recv(60))["parameters"]
        assert last["treadle_moved"] is True
        with pytest.raises(ConnectionClosed) as raised:
            while True:
                ws.recv(60)
        assert raised.value.rcvd.code == 1012
        assert served.get("/v2/health/ready")[0] == 503
        assert post(served, sequence_id=6, sequence_start=True)[0] == 503
        status, found = post(served)
        assert status == 200 and found["parameters"] == {"treadle_moved": True}
        level, state = found["outputs"]
        assert level["data"] == [8] and state["name"] == "treadle_state"
        assert served.process.wait(30) == 0  # all have gone
        assert post(other, state, sequence_start=True)[1]["outputs"][0]["data"] == [12]
        ws, _ = opened(other, parameters={"treadle_state": last["treadle_state"]})
        assert step(ws, np.ones(4, np.float32)).tolist() == [8]
        ws.close()


def test_pages_of_other_sites(tmp_path):
    """A browser says whose page connects: one of the server, one that is allowed, or another one, which is kept out."""
    with Served(tmp_path, None, "--allow_origin", "https://example.org") as served:
        url = f"ws://{served.url}/v2/models/sums/stream"
        for origin in (None, f"http://{served.url}", f"https://{served.url}", "https://example.org"):
            with connect(url, origin=origin) as ws:
                ws.send("{}")
                assert "outputs" in ws.recv(60)
        wrong = (
            "http://example.org",
            "https://example.org:8443",
            "https://example.org.evil",
            "http://127.0.0.1",
            "null",
        )
        for origin in (*wrong, f"http://{served.url}.evil", "", f"http://evil@{served.url}"):
            with pytest.raises(InvalidStatus, match="403"):
                connect(url, origin=origin)

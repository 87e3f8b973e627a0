"""Wrong requests get 400, 413, 503 and gRPC's statuses, and change nothing for other clients."""

import json
import pickle
import socket
import struct

import numpy as np
import pytest
import tritonclient.grpc as grpc
from servers import Served
from tritonclient.utils import InferenceServerException

SEQUENCE = {"sequence_id": "steady"}
PATH = "/v2/models/sums/infer"


def tensor(name="x", shape=(1, 4), datatype="FP32", data=(1, 1, 1, 1), **more):
    return {"name": name, "shape": list(shape), "datatype": datatype, "data": data, **more}


def post(served, body, headers=(), path=PATH):
    status, text = served.get(path, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)
    return status, json.loads(text)


class Steady:
    """A stream that lives while other clients send wrong requests."""

    def __init__(self, served):
        self.served, self.count = served, 0
        self.step(sequence_start=True)

    def step(self, **place):
        self.count += 1
        status, found = post(self.served, {"inputs": [tensor()], "parameters": {**SEQUENCE, **place}})
        assert status == 200, found
        assert found["outputs"][0]["data"] == [4 * self.count]


@pytest.fixture
def steady(served):
    stream = Steady(served)
    yield stream
    stream.step(sequence_end=True)


BODIES = {
    "unknown id": ({"inputs": [tensor()], "parameters": {"sequence_id": 5}}, "must specify the START flag"),
    "unknown text id": ({"inputs": [tensor()], "parameters": {"sequence_id": "?"}}, "sequence ? to model 'sums' must"),
    "an id that is a number": ({"inputs": [tensor()], "parameters": {"sequence_id": 1.5}}, "not 1.5"),
    "an id that is an object": ({"inputs": [tensor()], "parameters": {"sequence_id": {"a": 1}}}, "a sequence id is"),
    "a negative id": ({"inputs": [tensor()], "parameters": {"sequence_id": -1}}, "not -1"),
    "a long id": ({"inputs": [tensor()], "parameters": {"sequence_id": "x" * 129}}, "128 bytes at most"),
    "a flag that is a text": (
        {"inputs": [tensor()], "parameters": {"sequence_id": 5, "sequence_start": "yes"}},
        "'sequence_start' is 'yes'",
    ),
    "a start of nothing": ({"inputs": [tensor()], "parameters": {"sequence_start": True}}, "lacks sequence_id"),
    "a wrong type": (
        {"inputs": [tensor(datatype="INT32")], "parameters": SEQUENCE},
        "input 'x' is int32 [1, 4], expected tensor(float) ['B', 'N']",
    ),
    "an unknown type": (
        {"inputs": [tensor(datatype="FP8")], "parameters": SEQUENCE},
        "datatype 'FP8', expected one of",
    ),
    "a wrong rank": ({"inputs": [tensor(shape=[4])], "parameters": SEQUENCE}, "input 'x' is float32 [4]"),
    "two entries": (
        {"inputs": [tensor(shape=[2, 4], data=[1] * 8)], "parameters": SEQUENCE},
        "has 2 entries along axis 0",
    ),
    "a wrong size": (
        {"inputs": [tensor(shape=[1, 5])], "parameters": SEQUENCE},
        "has 4 elements, expected FP32 [1, 5]",
    ),
    "a negative size": ({"inputs": [tensor(shape=[1, -4])], "parameters": SEQUENCE}, "expected sizes"),
    "a size that is a text": ({"inputs": [tensor(shape=[1, "4"])], "parameters": SEQUENCE}, "expected sizes"),
    "a huge size": ({"inputs": [tensor(shape=[1, 2**62])], "parameters": SEQUENCE}, "has 4 elements"),
    "a text for a number": (
        {"inputs": [tensor(data=["NaN", 1, 1, 1])], "parameters": SEQUENCE},
        "hold what is no FP32",
    ),
    "a null": ({"inputs": [tensor(data=[None, 1, 1, 1])], "parameters": SEQUENCE}, "hold what is no FP32"),
    "ragged data": ({"inputs": [tensor(data=[[1, 2], [1]])], "parameters": SEQUENCE}, "are no array"),
    "another input": ({"inputs": [tensor(name="z")], "parameters": SEQUENCE}, "a step brings 'x', not z"),
    "an input twice": ({"inputs": [tensor(), tensor()], "parameters": SEQUENCE}, "'x' is given twice"),
    "no inputs": ({"inputs": [], "parameters": SEQUENCE}, "a step brings 'x', not nothing"),
    "inputs of no kind": ({"inputs": 5}, "'inputs' is int"),
    "a list": ([1], "expected an object"),
    "a bool among numbers": (
        {"inputs": [tensor(name="x", datatype="BOOL", data=[1, 0, 1, 0])], "parameters": SEQUENCE},
        "hold what is no BOOL",
    ),
    "a snapshot in the middle": (
        {"inputs": [tensor(), tensor("treadle_state", [1, 2], "UINT8", [1, 2])], "parameters": SEQUENCE},
        "goes on already",
    ),
    "a snapshot of nothing": (
        {
            "inputs": [tensor(), tensor("treadle_state", [1, 2], "UINT8", [1, 2])],
            "parameters": {"sequence_id": 5, "sequence_start": True},
        },
        "is none of a stream of model 'sums'",
    ),
    "a snapshot of another type": (
        {
            "inputs": [tensor(), tensor("treadle_state", [1, 2], "INT32", [1, 2])],
            "parameters": {"sequence_id": 5, "sequence_start": True},
        },
        "'treadle_state' of one sequence is UINT8",
    ),
    "ids of no kind": (
        {"inputs": [tensor(), tensor("sequence_id", [1], "FP32", [1.5])]},
        "'sequence_id' holds whole numbers",
    ),
    "one id twice": (
        {"inputs": [tensor(shape=[2, 4], data=[1] * 8), tensor("sequence_id", [2], "INT64", [1, 1])]},
        "each another one",
    ),
    "fewer ids than rows": (
        {"inputs": [tensor(shape=[2, 4], data=[1] * 8), tensor("sequence_id", [1], "INT64", [1])]},
        "no row for each of 1 sequences",
    ),
    "flags without ids": ({"inputs": [tensor(), tensor("sequence_start", [1], "BOOL", [True])]}, "goes together with"),
    "ids as both": (
        {"inputs": [tensor(), tensor("sequence_id", [1], "INT64", [1])], "parameters": SEQUENCE},
        "give one kind",
    ),
}


@pytest.mark.parametrize("body, said", BODIES.values(), ids=BODIES)
def test_bad_requests(served, steady, body, said):
    status, found = post(served, body)
    assert status == 400 and said in found["error"], (status, found)
    steady.step()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP32","data":[NaN]}]}',
        b'{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP32","data":[Infinity]}]}',
        b"[" * 100_000,
        pickle.dumps({"inputs": []}),
    ],
)
def test_text_that_is_no_json_is_refused(served, steady, text):
    status, found = post(served, text)
    assert status == 400 and "is not JSON" in found["error"]
    steady.step()


@pytest.mark.parametrize("size", ["-1", "x", "1e3", "99999999999"])
def test_a_header_that_is_no_length(served, size):
    assert post(served, b"{}", {"Inference-Header-Content-Length": size})[0] == 400


@pytest.mark.parametrize("count, left", [(15, 16), (16, 15), (16, 17), (-1, 16), (True, 16)])
def test_binary_data_of_a_wrong_length(served, steady, count, left):
    entry = tensor(parameters={"binary_data_size": count})
    del entry["data"]
    head = json.dumps({"inputs": [entry], "parameters": SEQUENCE}).encode()
    assert post(served, head + bytes(left), {"Inference-Header-Content-Length": str(len(head))})[0] == 400
    steady.step()


def test_data_that_make_an_operator_fail(served):
    def step(data, **place):
        body = {"inputs": [tensor(shape=[1, 2], datatype="INT32", data=data)]}
        return post(served, {**body, "parameters": {"sequence_id": 8, **place}}, path="/v2/models/quotients/infer")

    assert step([1, 1], sequence_start=True)[1]["outputs"][0]["data"] == [10080]
    status, found = step([0, 1])
    assert status == 400 and "sequence 8 of model 'quotients'" in found["error"]
    assert step([1, 1], sequence_end=True)[1]["outputs"][0]["data"] == [20160]


def test_a_snapshot_of_another_model(served):
    x = tensor(shape=[1, 2], datatype="INT32", data=[1, 1])
    body = {
        "inputs": [x],
        "outputs": [{"name": "treadle_state"}],
        "parameters": {"sequence_id": 1, "sequence_start": True},
    }
    state = post(served, body, path="/v2/models/quotients/infer")[1]["outputs"][0]
    status, found = post(
        served,
        {"inputs": [tensor(), state], "parameters": {"sequence_id": 1, "sequence_start": True}},
    )
    assert status == 400 and "the snapshot of sequence 1 is none of a stream of model 'sums'" in found["error"]


def test_nan_is_the_business_of_its_own_stream(served, steady):
    entry = tensor(parameters={"binary_data_size": 16})
    del entry["data"]
    parameters = {"sequence_id": "nan", "sequence_start": True, "sequence_end": True}
    head = json.dumps({"inputs": [entry], "parameters": parameters}).encode()
    status, found = post(
        served, head + np.full(4, np.nan, np.float32).tobytes(), {"Inference-Header-Content-Length": str(len(head))}
    )
    assert status == 200 and found["outputs"][0]["data"] == [None]
    steady.step()


def test_unknown_models_and_methods(served):
    assert served.get("/v2/models/none/infer", b"{}")[0] in (400, 404, 422)
    assert served.get(PATH)[0] == 405


@pytest.mark.parametrize("length", [b"Content-Length: 17825792", b"Transfer-Encoding: chunked"])
def test_a_body_that_is_too_large(served, steady, length):
    """Refused as soon as it is known to be."""
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    with socket.create_connection(("127.0.0.1", served.http)) as s:
        s.sendall(b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\n" + length + b"\r\n\r\n")
        if b"chunked" in length:
            s.sendall(chunk * 17)
        s.settimeout(30)
        assert s.recv(1000).startswith(b"HTTP/1.1 413")
    steady.step()


def test_a_half_open_request_delays_no_other_client(served, steady):
    """A caller that announces more data, and sends no more."""
    with socket.create_connection(("127.0.0.1", served.http)) as s:
        s.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        steady.step()
    steady.step()


def grpc_tensor(name, array, kind):
    found = grpc.InferInput(name, list(array.shape), kind)
    found.set_data_from_numpy(array)
    return found


def test_grpc_statuses(served, steady):
    client = grpc.InferenceServerClient(served.grpc_url)
    x = np.ones((1, 4), np.float32)
    for inputs, sequence, said in (
        ([grpc_tensor("x", x, "FP32")], 5, "must specify the START flag"),
        ([grpc_tensor("x", x.astype(np.int32), "INT32")], "steady", "expected tensor\\(float\\)"),
        ([grpc_tensor("x", x[0], "FP32")], "steady", "is float32 \\[4\\]"),
        ([grpc_tensor("z", x, "FP32")], "steady", "a step brings 'x', not z"),
    ):
        with pytest.raises(InferenceServerException, match=said) as raised:
            client.infer("sums", inputs, sequence_id=sequence)
        assert raised.value.status() == "StatusCode.INVALID_ARGUMENT"
    with pytest.raises(InferenceServerException) as raised:
        client.infer("none", [grpc_tensor("x", x, "FP32")])
    assert raised.value.status() == "StatusCode.NOT_FOUND"
    short = grpc_tensor("x", x, "FP32")
    short._raw_content = short._raw_content[:-1]
    with pytest.raises(InferenceServerException, match="has 15 bytes, expected FP32 \\[1, 4\\]"):
        client.infer("sums", [short], sequence_id="steady")
    bytes_cut = grpc_tensor("x", np.array([[b"a"]], object), "BYTES")
    bytes_cut._raw_content = struct.pack("<I", 1 << 30) + b"a"
    with pytest.raises(InferenceServerException, match="is cut off"):
        client.infer("sums", [bytes_cut], sequence_id="steady")
    steady.step()


def test_capacity_and_idle_times(tmp_path):
    """503 and UNAVAILABLE where there is no room; a stream that was idle for too long is unknown."""
    with Served(tmp_path, capacity=2, idle_s=1.5) as served:
        for i in (1, 2):
            body = {"inputs": [tensor()], "parameters": {"sequence_id": i, "sequence_start": True}}
            assert post(served, body)[0] == 200
        body["parameters"]["sequence_id"] = 3
        status, found = post(served, body)
        if status == 200:
            pytest.skip("this machine was too slow: a stream has been idle")
        assert status == 503 and found["error"] == "model 'sums' has room for 2 sequences: sequence 3 cannot start"
        client = grpc.InferenceServerClient(served.grpc_url)
        with pytest.raises(InferenceServerException, match="has room for 2") as raised:
            x = np.ones((1, 4), np.float32)
            client.infer("sums", [grpc_tensor("x", x, "FP32")], sequence_id=3, sequence_start=True)
        assert raised.value.status() == "StatusCode.UNAVAILABLE"
        while post(served, body)[0] == 503:
            pass
        status, found = post(served, {"inputs": [tensor()], "parameters": {"sequence_id": 1}})
        assert status == 400 and "must specify the START flag" in found["error"]
        assert served.metric("treadle_streams_idled_total", "sums") >= 1

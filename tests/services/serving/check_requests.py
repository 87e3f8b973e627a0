"""Sequences by REST, REST with binary data and gRPC, as tritonclient sends them."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from servers import TOKEN, Served, levels, samples
from tritonclient.utils import InferenceServerException

RNG = np.random.default_rng(1)
ALLOWED = {"Authorization": f"Bearer {TOKEN}".encode()}


class Client:
    """tritonclient's clients as one: steps of a model by any transport."""

    def __init__(self, served, transport):
        self.transport = transport
        self.module = grpc if transport == "grpc" else http
        self.client = self.module.InferenceServerClient(served.grpc_url if transport == "grpc" else served.url)

    def tensor(self, name, array):
        kind = {"f": "FP32", "b": "BOOL", "O": "BYTES", "u": "UINT8"}.get(array.dtype.kind, f"INT{array.itemsize * 8}")
        tensor = self.module.InferInput(name, list(array.shape), kind)
        if self.transport == "json":
            tensor.set_data_from_numpy(array, binary_data=False)
        else:
            tensor.set_data_from_numpy(array)
        return tensor

    def wanted(self, name):
        if self.module is grpc:
            return grpc.InferRequestedOutput(name)
        return http.InferRequestedOutput(name, binary_data=self.transport == "binary")

    def infer(self, model, inputs, outputs=None, **parameters):
        tensors = [self.tensor(name, array) for name, array in inputs.items()]
        asked = [self.wanted(name) for name in outputs] if outputs else None
        return self.client.infer(model, tensors, outputs=asked, **parameters)


@pytest.fixture(params=["json", "binary", "grpc"])
def client(served, request):
    return Client(served, request.param)


@pytest.mark.parametrize("sequence", [7, 2**62, "caller 7", "é", "7"])
def test_a_sequence(client, sequence):
    chunks = [samples(RNG, 4) for _ in range(6)]
    found = []
    for k, chunk in enumerate(chunks):
        place = {"sequence_start": k == 0, "sequence_end": k == 5}
        result = client.infer("sums", {"x": chunk}, ["level"], sequence_id=sequence, **place)
        assert result.as_numpy("level").shape == (1, 1, 1)
        found.append(result.as_numpy("level").item())
    assert found == levels(chunks).tolist()
    with pytest.raises(InferenceServerException, match="must specify the START flag"):
        client.infer("sums", {"x": chunks[0]}, sequence_id=sequence)


def test_sequences_beside_each_other(client):
    ids = [11, 12, "a", "b"]
    chunks = {i: [samples(RNG, 4) for _ in range(5)] for i in ids}
    found = {i: [] for i in ids}
    for k in range(5):
        for i in ids:
            place = {"sequence_start": k == 0, "sequence_end": k == 4}
            result = client.infer("sums", {"x": chunks[i][k]}, sequence_id=i, **place)
            found[i].append(result.as_numpy("level").item())
    assert all(found[i] == levels(chunks[i]).tolist() for i in ids)


def test_the_end_of_a_sequence_returns_the_waiting_samples(client, alone):
    signal = RNG.standard_normal((1, 1, 30)).astype(np.float32)
    stream = alone["smooth"].stream(time={"x": 2})
    whole = np.concatenate([stream.push(signal), stream.flush()], axis=2)
    found = []
    for a in range(0, 30, 10):
        place = {"sequence_start": a == 0, "sequence_end": a == 20}
        found.append(client.infer("smooth", {"x": signal[..., a : a + 10]}, sequence_id=3, **place).as_numpy("y"))
    assert [part.shape[2] for part in found] == [8, 10, 12]
    np.testing.assert_allclose(np.concatenate(found, axis=2), whole, rtol=1e-5)
    assert np.array_equal(client.infer("smooth", {"x": signal}).as_numpy("y"), whole)  # no sequence: all in one


def test_a_snapshot_goes_on_elsewhere(client):
    chunks = [samples(RNG, 6) for _ in range(4)]  # with two samples that wait
    both = ["level", "treadle_state"]
    client.infer("sums", {"x": chunks[0]}, sequence_id="s", sequence_start=True)
    result = client.infer("sums", {"x": chunks[1]}, both, sequence_id="s")
    state = result.as_numpy("treadle_state")
    assert state.dtype == np.uint8 and state.shape[0] == 1 and state.shape[1] > 100
    given = {"x": chunks[2], "treadle_state": state}
    result = client.infer("sums", given, both, sequence_id="t", sequence_start=True)
    result = client.infer("sums", {"x": chunks[3]}, both, sequence_id="t", sequence_end=True)
    assert result.as_numpy("treadle_state").shape == (1, 0)  # nothing to go on from
    assert result.as_numpy("level").ravel()[0] == levels(chunks)[4]


@pytest.mark.parametrize("ids", [[21, 22, 23], ["u", "v", "w"]])
def test_many_streams_in_one_request(client, ids):
    kind = np.array(ids, np.int64) if isinstance(ids[0], int) else np.array([i.encode() for i in ids], object)
    chunks = [[samples(RNG, 4) for _ in ids] for _ in range(4)]
    for k, row in enumerate(chunks):
        inputs = {"x": np.concatenate(row), "sequence_id": kind}
        inputs |= {"sequence_start": np.array([k == 0] * 3), "sequence_end": np.array([k == 3] * 3)}
        result = client.infer("sums", inputs, ["level"]).as_numpy("level")
        if k < 3:
            assert result.shape == (1, 3, 1)
        wanted = [levels([chunks[n][i] for n in range(k + 1)])[-1] for i in range(3)]
        assert result[0, :, 0].tolist() == wanted
    with pytest.raises(InferenceServerException, match="must specify the START flag"):
        client.infer("sums", {"x": np.concatenate(chunks[0]), "sequence_id": kind})


def test_many_streams_that_are_not_equally_far(client):
    ids = np.array([51, 52, 53])
    client.infer("sums", {"x": samples(RNG, 2)}, sequence_id=51, sequence_start=True)
    client.infer("sums", {"x": samples(RNG, 9)}, sequence_id=52, sequence_start=True)
    given = {"x": np.ones((3, 3), np.float32), "sequence_id": ids, "sequence_start": np.array([False, False, True])}
    with pytest.raises(InferenceServerException, match="ask for their lengths"):
        client.infer("sums", given, ["level"])
    result = client.infer("sums", given, ["level", "treadle_lengths"])
    assert result.as_numpy("treadle_lengths").tolist() == [[1], [1], [0]]
    assert result.as_numpy("level").shape == (1, 3, 1) and result.as_numpy("level")[0, 2, 0] == 0
    result = client.infer("sums", {"x": np.ones((3, 6), np.float32), "sequence_id": ids}, ["level", "treadle_lengths"])
    assert result.as_numpy("treadle_lengths").tolist() == [[1], [1], [2]]  # 1, 0 and 3 samples had waited
    level = result.as_numpy("level")
    assert level.shape == (2, 3, 1) and level[:, 2, 0].tolist() == [4, 8] and level[1, :2, 0].tolist() == [0, 0]
    with pytest.raises(InferenceServerException, match="goes together with a tensor 'sequence_id'"):
        client.infer("sums", {"x": samples(RNG, 4)}, ["treadle_lengths"], sequence_id=51)


def test_snapshots_of_many_streams(client):
    if client.transport == "json":
        pytest.skip("snapshots of many streams are bytes, which JSON has not")
    x, ids = np.concatenate([samples(RNG, 4) for _ in range(3)]), np.array([31, 32, 33])
    start = np.array([True] * 3)
    first = client.infer("sums", {"x": x, "sequence_id": ids, "sequence_start": start}, ["level", "treadle_state"])
    states = first.as_numpy("treadle_state")
    assert states.shape == (3,) and states.dtype == object
    given = {"x": x, "sequence_id": ids + 10, "sequence_start": start, "treadle_state": states}
    second = client.infer("sums", given)
    assert (second.as_numpy("level") == 2 * first.as_numpy("level")).all()


def test_metadata(client):
    if client.transport == "grpc":
        server, model = (
            client.client.get_server_metadata(as_json=True),
            client.client.get_model_metadata("sums", as_json=True),
        )
        shape = ["-1", "-1"]
    else:
        server, model, shape = client.client.get_server_metadata(), client.client.get_model_metadata("sums"), [-1, -1]
    assert {"sequence", "sequence(string_id)", "binary_tensor_data"} <= set(server["extensions"])
    assert model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": shape}]
    assert [output["name"] for output in model["outputs"]] == ["level"]
    assert client.client.is_server_live() and client.client.is_server_ready() and client.client.is_model_ready("sums")
    assert not client.client.is_model_ready("none") if client.transport != "grpc" else True


def test_texts_and_no_sequence(client):
    a = np.array([[str(n).encode() for n in range(16)]], object)
    b = np.full((1, 16), 3, np.int32)
    result = client.infer("texts", {"a": a, "b": b}, ["d", "c"])
    assert result.as_numpy("d").tolist() == [[n - 3 for n in range(16)]]
    assert [bytes(v) if isinstance(v, bytes) else v.encode() for v in result.as_numpy("c")[0]] == [
        str(n + 3).encode() for n in range(16)
    ]
    with pytest.raises(InferenceServerException, match="not UTF-8|utf-8|UTF-8"):
        client.infer("texts", {"a": np.array([[b"\xff"]], object), "b": b[:, :1]})


def test_requests_that_are_sent_together(served):
    """Answers of one connection's requests, which tritonclient sends side by side, are those of each alone."""
    client = Client(served, "binary").module.InferenceServerClient(served.url, concurrency=8)
    tensors = [Client(served, "binary").tensor("x", np.full((1, 1, 8), n, np.float32)) for n in range(32)]
    sent = [client.async_infer("smooth", [tensor]) for tensor in tensors]
    for n, request in enumerate(sent):
        assert request.get_result().as_numpy("y")[0, 0, 0] == 7 * n


def test_a_request_has_its_id_back(client):
    for given in ("", "mine"):
        result = client.infer("sums", {"x": samples(RNG, 4)}, request_id=given)
        found = result.get_response()
        assert (found.id if client.transport == "grpc" else found["id"]) == given


def test_outputs_by_name(client):
    with pytest.raises(InferenceServerException, match="model 'sums' has no output 'z': it has level, treadle_state"):
        client.infer("sums", {"x": samples(RNG, 4)}, ["z"])


def test_a_start_of_a_live_id_drops_the_old_stream(served, client):
    x = np.ones((1, 4), np.float32)
    before = served.metric("treadle_streams_replaced_total", "sums")
    for _ in range(2):
        result = client.infer("sums", {"x": x}, sequence_id="again", sequence_start=True)
    assert result.as_numpy("level").item() == 4
    client.infer("sums", {"x": x}, sequence_id="again", sequence_end=True)
    assert served.metric("treadle_streams_replaced_total", "sums") == before + 1
    assert "sequence again of model 'sums' starts while it is live" in served.log.read_text()


def test_metrics(served):
    client = Client(served, "grpc")
    before = {name: served.metric(name, "sums") for name in ("treadle_steps_total", "treadle_batch_size_count")}
    client.infer("sums", {"x": samples(RNG, 4)}, sequence_id=99, sequence_start=True)
    client.infer("sums", {"x": samples(RNG, 4)}, sequence_id=99, sequence_end=True)
    assert served.metric("treadle_steps_total", "sums") == before["treadle_steps_total"] + 2
    assert served.metric("treadle_batch_size_count", "sums") == before["treadle_batch_size_count"] + 1
    text = served.get("/metrics")[1].decode()
    for name in ("treadle_streams", "treadle_capacity", "treadle_push_seconds_bucket", "treadle_refused_total"):
        assert f"\n{name}{{" in text


def test_reload_keeps_streams(served):
    client = Client(served, "binary")
    x = np.ones((1, 4), np.float32)
    client.infer("sums", {"x": x}, sequence_id="kept", sequence_start=True)
    path = served.folder / "sums.onnxtxt"
    text = path.read_text()
    try:
        assert json.loads(served.get("/v2/repository/models/sums/load", b"", ALLOWED)[1])["load"] is True
        path.write_text("this is no model")
        status, body = served.get("/v2/repository/models/sums/load", b"", ALLOWED)
        assert status == 503 and b"sums" in body
    finally:
        path.write_text(text)
    assert client.infer("sums", {"x": x}, sequence_id="kept").as_numpy("level").item() == 8


REPOSITORY = [f"/v2/repository/models/sums/{action}" for action in ("load", "unload")]


def ask_by_grpc(served, action, **metadata):
    """The status of a call that loads or unloads a model."""
    client = grpc.InferenceServerClient(served.grpc_url)
    try:
        getattr(client, f"{action}_model")("sums", headers=metadata)
    except InferenceServerException as e:
        return e.status()
    return "StatusCode.OK"


def test_loading_and_unloading_models_is_off_unless_the_server_permits_it(tmp_path):
    with Served(tmp_path) as server:
        for path in REPOSITORY:
            for headers in ({}, ALLOWED, {"Authorization": "Bearer "}):
                status, body = server.get(path, b"", headers)
                assert status == 403 and b"is off" in body
        for action in ("load", "unload"):
            assert ask_by_grpc(server, action) == "StatusCode.PERMISSION_DENIED"
            assert ask_by_grpc(server, action, authorization="Bearer x") == "StatusCode.PERMISSION_DENIED"
        assert server.get("/v2/models/sums/ready")[0] == 200


def test_only_callers_with_the_token_load_and_unload_models(served):
    for given in ("", "Bearer", "Bearer open", TOKEN, f"bearer {TOKEN}", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
        for path in REPOSITORY:
            status, body = served.get(path, b"", {"Authorization": given.encode()} if given else {})
            assert status == 401 and b"Authorization: Bearer TOKEN" in body, given
    for action in ("load", "unload"):
        assert ask_by_grpc(served, action) == "StatusCode.UNAUTHENTICATED"
        assert ask_by_grpc(served, action, authorization="Bearer open") == "StatusCode.UNAUTHENTICATED"
    assert served.get("/v2/models/sums/ready")[0] == 200
    assert served.get(REPOSITORY[1], b"", ALLOWED)[0] == 200
    assert served.get("/v2/models/sums/ready")[0] != 200

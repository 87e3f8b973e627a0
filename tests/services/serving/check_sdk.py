"""StreamModel in a server of the SDK's own: its requests and responses, and its errors."""

import asyncio

import numpy as np
import pytest
from kserve import InferInput, InferRequest
from kserve.errors import InvalidInput, ModelNotReady
from servers import SUMS
from treadle.serving.kserve import StreamModel


@pytest.fixture
def model():
    return StreamModel("sums", SUMS.encode(), capacity=1, time={"x": 1}, hop=4, state={"state": "stateN"})


def ask(model, from_grpc, **parameters):
    given = InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(np.ones((1, 4), np.float32), binary_data=from_grpc)
    request = InferRequest("sums", [given], from_grpc=from_grpc, parameters=parameters)
    return asyncio.run(model.predict(request))


@pytest.mark.parametrize("from_grpc", [False, True])
def test_requests_of_the_sdk(model, from_grpc):
    for k, expected in enumerate([4, 8, 12]):
        response = ask(model, from_grpc, sequence_id="a", sequence_start=k == 0)
        assert response.outputs[0].as_numpy().item() == expected
        found = response.to_grpc() if from_grpc else response.to_rest()[0]
        assert (found.outputs[0].name if from_grpc else found["outputs"][0]["name"]) == "level"
    with pytest.raises(InvalidInput, match="must specify the START flag"):
        ask(model, from_grpc, sequence_id="b")
    with pytest.raises(ModelNotReady, match="has room for 1 sequences"):
        ask(model, from_grpc, sequence_id="b", sequence_start=True)
    with pytest.raises(InvalidInput, match="Open Inference Protocol v2"):
        asyncio.run(model.predict({"instances": []}))


def test_what_the_sdk_calls(model):
    assert model.ready and asyncio.run(model.healthy())
    ask(model, False, sequence_id=1, sequence_start=True)
    assert model.load() and ask(model, False, sequence_id=1).outputs[0].as_numpy().item() == 8
    assert repr(model) == "<treadle.serving.kserve.StreamModel 'sums': <treadle.serving.Streams of 'sums': 1 of 1>>"
    asyncio.run(model.retire())
    assert not model.ready
    answer = ask(model, False, sequence_id=1)
    assert [output.name for output in answer.outputs] == ["level", "treadle_state"]
    model.stop()
    assert len(model.streams) == 0

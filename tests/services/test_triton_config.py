"""Models that the server loads: faults are reported, and the server accepts the files of triton-config."""

import re
import subprocess
import time

import numpy as np
import pytest
import triton_models
from comparing import rows
from triton_server import ROOT, TritonServer

STEP, CONFIG = triton_models.STEP, triton_models.STEP_CONFIG


@pytest.mark.parametrize(
    ("model", "config", "said"),
    [
        (STEP, CONFIG.replace("dims: [ 4 ]", "dims: [ 5 ]"), "input 'x' has dims [5] behind the batch"),
        (STEP, CONFIG.replace("TYPE_FP32 dims: [ 4 ]", "TYPE_FP64 dims: [ 4 ]"), "input 'x' has data_type FP64"),
        (STEP, CONFIG.replace('"x"', '"z"'), "has an input 'z', and the model has inputs x, h"),
        (STEP, CONFIG.replace('"y"', '"hn"'), "has an output 'hn', which is a state, and streams of the model give y"),
        (STEP, CONFIG.replace('"y"', '"z"'), "has an output 'z', and streams of the model give y"),
        (STEP, CONFIG.replace("optional: true ", ""), "input 'treadle_state' is to have data_type: TYPE_UINT8"),
        (STEP, CONFIG + triton_models.parameters(hops=3), "there is no parameter 'hops'; there are bind, capacity"),
        (STEP, CONFIG + triton_models.parameters(capacity="many"), "parameter 'capacity' is to be a number from 1 on"),
        (STEP, CONFIG + triton_models.parameters(idle_s=3), "parameter 'idle_s' is 3, and the server takes requests"),
        (STEP, CONFIG + triton_models.parameters(time="x"), "parameter 'time' is to be NAME=VALUE"),
        (STEP, CONFIG + triton_models.parameters(state="h=y"), "h"),
        (STEP, CONFIG + triton_models.parameters(bind="q=1"), "parameter 'bind' names 'q'"),
        (STEP, CONFIG + triton_models.parameters(tier="fast"), "fast"),
        (STEP, CONFIG + "instance_group [ { kind: KIND_GPU } ]", "GPU"),
        (
            triton_models.WINDOWS,
            triton_models.WINDOWS_CONFIG.replace("bind", "capacity").replace("sr=16000", "5"),
            "nothing gives the model's input 'sr'",
        ),
        (triton_models.WINDOWS, triton_models.WINDOWS_CONFIG.replace("16000", "1.5"), "'1.5' for input 'sr'"),
        (triton_models.SIMPLE, triton_models.SIMPLE_CONFIG + triton_models.parameters(capacity=3), "is one of streams"),
        (
            triton_models.SIMPLE.replace("[B,16]", "[1,16]"),
            triton_models.SIMPLE_CONFIG,
            "max_batch_size is 8, and the model's input 'INPUT0' (tensor(int32)[1,16]) takes 1 entries",
        ),
        (
            triton_models.IMPLICIT,
            triton_models.IMPLICIT_CONFIG.replace("STRATEGY", "oldest") + triton_models.parameters(hop=3),
            "the server keeps the states of this model",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_at_load(tmp_path, loader, model, config, said):
    from triton_client import Error

    name = f"wrong{abs(hash((model, config)))}"
    triton_models.save(loader.server.repository, name, model, config)
    with pytest.raises(Error) as found:
        loader.client.load_model(name)
    assert said in found.value.message()


def test_settings_for_all_models_are_refused(tmp_path, backend):
    triton_models.save(tmp_path / "models", "step", STEP, CONFIG)
    with pytest.raises(RuntimeError, match="--backend-config=treadle,threads=2: treadle has no settings"):
        TritonServer(tmp_path / "models", "--backend-config=treadle,threads=2")


def test_a_model_that_is_not_there_is_told_of(loader):
    from triton_client import Error

    triton_models.save(loader.server.repository, "empty", STEP, CONFIG)
    (loader.server.repository / "empty" / "1" / "model.onnx").unlink()
    with pytest.raises(Error, match="empty/1/model.onnx"):
        loader.client.load_model("empty")


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("step", []),
        ("step", ["--strategy", "direct", "--instances", 2]),
        ("step", ["--server-state", "--state", "h=hn"]),
        ("step", ["--no-sequences"]),
        ("windows", ["--time", "input=1", "--hop", 4, "--context", 2, "--bind", "sr=16000"]),
        ("signal", ["--time", "x=T", "--threads", 2]),
        ("signal", ["--time", "x=2", "--no-sequences"]),
        ("simple", []),
        ("texts", []),
    ],
)
def test_the_tool_writes_repositories_that_triton_serves(server, loader, model, options):
    tool = ROOT / "build" / "bin" / "treadle"
    name = re.sub(r"\W", "", "_".join([model, *map(str, options)]))
    source = server.repository / model / "1" / "model.onnx"
    command = [tool, "triton-config", source, "--name", name, "--repository", loader.server.repository, *options]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    loader.client.load_model(name)
    inputs = {
        "step": {"x": rows(1, 1, 4)} | ({"h": rows(2, 1, 3)} if "--no-sequences" in options else {}),
        "windows": {"input": rows(1, 1, 9)},
        "signal": {"x": rows(1, 1, 2, 9)},
        "simple": {"INPUT0": np.zeros((1, 16), np.int32), "INPUT1": np.zeros((1, 16), np.int32)},
        "texts": {"INPUT0": np.full((1, 16), b"1", object), "INPUT1": np.full((1, 16), b"1", object)},
    }[model]
    is_sequence = model in ("step", "windows", "signal") and "--no-sequences" not in options
    sequence = {"sequence_id": 1, "sequence_start": True, "sequence_end": True} if is_sequence else {}
    answer = loader.infer(name, inputs, **sequence)
    expected = {"step": ["y"], "windows": ["output"], "signal": ["y"]}.get(model, ["OUTPUT0", "OUTPUT1"])
    assert set(expected) <= set(answer)


def test_a_model_is_unloaded_and_loaded_again(loader):
    triton_models.save(loader.server.repository, "again", STEP, CONFIG)
    for _ in range(3):
        loader.client.load_model("again")
        loader.infer("again", {"x": rows(1, 1, 4)}, sequence_id=1, sequence_start=True)
        loader.client.unload_model("again")
        deadline = time.monotonic() + 30
        while loader.client.is_model_ready("again") and time.monotonic() < deadline:
            time.sleep(0.05)

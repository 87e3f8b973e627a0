"""The tool knows the models that `treadle.recipes` knows by the names of their inputs and outputs."""

import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper
from test_cli import TOOL

treadle = pytest.importorskip("treadle", reason="the Python package is not built")
from treadle import recipes  # noqa: E402

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
TABLE = pathlib.Path(__file__).parents[2] / "cli" / "known_models.inc"


def values(sizes):
    texts = (f"{name}[{','.join('?' if n is None else str(n) for n in dims)}]" for name, dims in sizes.items())
    return ", ".join(sorted(texts))


def rows():
    """A row for each fingerprint with names of its own."""
    for name in recipes.names():
        recipe = recipes.get(name)
        for print_ in recipe.fingerprints:
            if "" not in print_.inputs:
                fields = (name, recipe.title, values(print_.inputs), values(print_.outputs), recipe.command)
                yield "{" + ", ".join(f'"{field}"' for field in fields) + "},\n"


def test_the_table_is_that_of_the_recipes():
    """With the variable TREADLE_TEST_BLESS set, writes it."""
    text = "// clang-format off\n" + "".join(rows()) + "// clang-format on\n"
    if os.environ.get("TREADLE_TEST_BLESS"):
        TABLE.write_text(text)
    assert TABLE.read_text() == text


def detector(state, *, rate=True, width=128):
    """A model with the inputs and outputs of Silero VAD, and no weights of it."""
    nodes = [
        helper.make_node("Identity", ["state"], ["stateN"]),
        helper.make_node("ReduceMean", ["input"], ["output"], axes=[1], keepdims=1),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", "samples"]),
        helper.make_tensor_value_info(state, TensorProto.FLOAT, [2, "batch", width]),
    ]
    if rate:
        inputs.append(helper.make_tensor_value_info("sr", TensorProto.INT64, []))
    outputs = [
        helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 1]),
        helper.make_tensor_value_info("stateN", TensorProto.FLOAT, [2, "batch", width]),
    ]
    nodes[0].input[0] = state
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 16)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def tool(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("rate", [True, False])
def test_a_known_model_is_named_and_streamed(tmp_path, rate):
    model, signal = tmp_path / "vad.onnx", tmp_path / "x.npy"
    model.write_bytes(detector("state", rate=rate))
    np.save(signal, np.zeros((1, 2048), np.float32))
    given = "sr=16000 " if rate else ""
    text = re.sub(r"\s+", " ", tool("explain", model).stdout)
    assert f"x.wav {given}--time input=1 --hop 512 --context 64" in text
    assert 'treadle.recipes.open("silero-vad")' in text
    done = tool("stream", model, f"input={signal}")
    assert done.returncode == 0, done.stderr
    assert f"Silero VAD 5 and 6: {given}--time input=1 --hop 512 --context 64" in done.stderr
    assert "a run per 512 samples, 64 of context" in done.stdout


def test_a_missing_context_is_told(tmp_path):
    model, signal = tmp_path / "vad.onnx", tmp_path / "x.npy"
    model.write_bytes(detector("state"))
    np.save(signal, np.zeros((1, 2048), np.float32))
    done = tool("stream", model, f"input={signal}", "sr=16000", "--time", "input=1", "--hop", "512")
    assert done.returncode == 0 and "--context 64" in done.stderr
    done = tool(*f"stream {model} input={signal} sr=16000 --time input=1 --hop 512 --context 64".split())
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("unlike", [{"state": "memory"}, {"state": "state", "width": 64}])
def test_an_unlike_model_is_not_named(tmp_path, unlike):
    model = tmp_path / "m.onnx"
    model.write_bytes(detector(**unlike))
    assert "recipes" not in tool("explain", model).stdout
    assert "time" in tool("stream", model, "x.wav").stderr  # asks which axis is time

"""treadle triton-config: the files that it writes for models. tests/services/ has a server read them."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
MODELS = {
    "step": "m (float[B,4] x, float[B,4] h) => (float[B,4] y, float[B,4] hn) { hn = Add(x, h) y = Neg(hn) }",
    "windows": """m (float[B,6] input, float[B,1] state, int64 sr) => (float[B,1] output, float[B,1] stateN)
        <int64[1] axes = {1}> {
            sum = ReduceSum(input, axes)
            stateN = Add(sum, state)
            rate = Cast<to = 1>(sr)
            output = Div(stateN, rate)
        }""",
    "signal": "m (float[2,T] x) => (float[2,T] y) <int64 axis = {1}> { y = CumSum(x, axis) }",
    "pair": "m (float[B,4] INPUT0) => (float[B,4] OUTPUT0) { OUTPUT0 = Neg(INPUT0) }",
    "fixed": "m (float[3,4] x) => (float[3,4] y) { y = Neg(x) }",
    "scalar": "m (float x) => (float y) { y = Neg(x) }",
}


@pytest.fixture
def tool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in MODELS.items():
        (tmp_path / f"{name}.onnx").write_text(HEADER + text)

    def run(*arguments, status=0):
        command = [TOOL, "triton-config", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


def lines(text):
    return [line.strip() for line in text.splitlines()]


def test_a_model_with_a_state_is_served_in_sequences(tool):
    assert lines(tool("step.onnx")) == [
        'name: "step"',
        'backend: "treadle"',
        "max_batch_size: 64",
        'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]',
        'input [ { name: "treadle_state" data_type: TYPE_UINT8 dims: [ -1 ] optional: true allow_ragged_batch: true } ]',
        'output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]',
        'output [ { name: "treadle_state" data_type: TYPE_UINT8 dims: [ -1 ] } ]',
        "sequence_batching {",
        "max_sequence_idle_microseconds: 60000000",
        "oldest { max_candidate_sequences: 4096 }",
        "}",
        "instance_group [ { count: 1 kind: KIND_CPU } ]",
        'parameters { key: "capacity" value { string_value: "4096" } }',
    ]


def test_windows_take_any_number_of_samples(tool):
    text = tool("windows.onnx", "--time", "input=1", "--hop", 4, "--context", 2, "--bind", "sr=16000", "--name", "vad",
                "--no-snapshots")  # fmt: skip
    assert 'name: "vad"' in text
    assert 'input [ { name: "input" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]' in text
    assert 'output [ { name: "output" data_type: TYPE_FP32 dims: [ -1, 1 ] } ]' in text
    for key, value in {"time": "input=1", "hop": 4, "context": 2, "bind": "sr=16000"}.items():
        assert f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' in text
    assert "treadle_state" not in text and '"state"' not in text and '"sr"' not in text


def test_a_signal_without_a_batch_has_none(tool):
    text = tool("signal.onnx", "--time", "x=-1", "--no-sequences", "--threads", 2)
    assert "max_batch_size: 0" in text and "sequence_batching" not in text and "dynamic_batching" not in text
    assert 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, -1 ] allow_ragged_batch: true } ]' in text
    assert 'parameters { key: "threads" value { string_value: "2" } }' in text


def test_names_that_look_like_a_state_are_none_where_nothing_else_comes(tool):
    text = tool("pair.onnx")
    assert 'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]' in text
    assert "dynamic_batching { }" in text and "sequence_batching" not in text


def test_sizes_that_are_fixed_are_no_batch(tool):
    text = tool("fixed.onnx")
    assert "max_batch_size: 0" in text and "dims: [ 3, 4 ]" in text
    assert 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] reshape: { shape: [ ] } } ]' in tool("scalar.onnx")


def test_the_server_keeps_states(tool):
    text = tool("step.onnx", "--server-state", "--state", "h=hn", "--strategy", "direct", "--idle", 5, "--instances", 3)
    assert 'state [ { input_name: "h" output_name: "hn" data_type: TYPE_FP32 dims: [ 4 ]' in text
    assert 'initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 4 ] zero_data: true }' in text
    assert "direct { }" in text and "max_sequence_idle_microseconds: 5000000" in text
    assert "instance_group [ { count: 3 kind: KIND_CPU } ]" in text and "treadle_state" not in text


def test_a_repository_holds_the_model_and_its_config(tool, tmp_path):
    assert tool("step.onnx", "--name", "counter", "--repository", "models") == "models/counter\n"
    assert (tmp_path / "models/counter/1/model.onnx").read_bytes() == (tmp_path / "step.onnx").read_bytes()
    assert (tmp_path / "models/counter/config.pbtxt").read_text() == tool("step.onnx", "--name", "counter")
    assert "is there already" in tool("step.onnx", "--name", "counter", "--repository", "models", status=1)
    tool("step.onnx", "-o", "config.pbtxt")
    assert 'name: "step"' in (tmp_path / "config.pbtxt").read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["step.onnx", "--time", "x"], 2, "--time takes NAME=VALUE, not 'x'"),
        (["step.onnx", "--bind", "x=a.npy"], 2, "--bind takes NAME=NUMBER or NAME=[NUMBER,...], not 'x=a.npy'"),
        (["step.onnx", "--server-state"], 2, "--server-state goes with --state"),
        (["step.onnx", "--no-sequences", "--capacity", "5"], 2, "--capacity is for sequences"),
        (["step.onnx", "--no-sequences", "--state", "h=hn"], 2, "--state does nothing with --no-sequences"),
        (["pair.onnx", "--no-snapshots"], 2, "--no-snapshots is for sequences"),
        (["fixed.onnx", "--max-batch-size", "4"], 2, "--max-batch-size needs a model whose inputs all have a batch"),
        (["step.onnx", "--context", "4"], 2, "--context"),
        (["signal.onnx", "--time", "x=5"], 1, "the time axis of 'x'"),
        (["absent.onnx"], 1, "absent.onnx"),
    ],
)
def test_invalid_arguments_are_refused(tool, arguments, status, said):
    assert said in tool(*arguments, status=status)

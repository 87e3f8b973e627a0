"""Finds the speech in a recording: a stream over a trained model that carries its state from window to window."""

from __future__ import annotations

import pathlib
import sys
import time
import wave
from dataclasses import dataclass

import numpy as np
import treadle

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from drawing import Picture  # noqa: E402

MODEL = HERE / "silero_vad.onnx"
RECORDING = HERE / "recording.wav"
RATE = 16000  # samples per second
HOP = 512  # samples per window
CONTEXT = 64  # samples before a window that the model sees with it


@dataclass
class Segment:
    """A stretch of speech, in seconds."""

    start: float
    end: float


def read_wav(path: pathlib.Path) -> np.ndarray:
    """Samples of a mono 16-bit file, in [-1, 1)."""
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            raise ValueError(f"{path}: expected mono, 16 bit, {RATE} Hz")
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def open_stream() -> treadle.Stream:
    session = treadle.InferenceSession(MODEL)
    return session.stream(
        state={"state": "stateN"},
        bind={"sr": np.array(RATE, np.int64)},
        time={"input": 1},
        hop=HOP,
        context=CONTEXT,
    )


def speech_probability(stream: treadle.Stream, audio: np.ndarray, chunk: int) -> np.ndarray:
    """Probability of speech per window; `audio` arrives in pieces of `chunk` samples, as from a microphone."""
    pieces = [stream.push(input=audio[None, i : i + chunk]) for i in range(0, len(audio), chunk)]
    pieces.append(stream.flush())
    return np.concatenate([p.reshape(-1) for p in pieces if p is not None and p.size])


def segments(probability: np.ndarray, on: float = 0.5, off: float = 0.35, shortest: float = 0.25, gap: float = 0.3):
    """Stretches that rise above `on` and last until they fall below `off` for at least `gap` seconds."""
    seconds = HOP / RATE
    found: list[Segment] = []
    start = end = None
    for i, p in enumerate(probability):
        if start is None:
            if p >= on:
                start = end = i
        elif p >= off:
            end = i
        elif (i - end) * seconds >= gap:
            found.append(Segment(start * seconds, (end + 1) * seconds))
            start = None
    if start is not None:
        found.append(Segment(start * seconds, (end + 1) * seconds))
    return [s for s in found if s.end - s.start >= shortest]


def draw(path: pathlib.Path, audio: np.ndarray, probability: np.ndarray, found: list[Segment]) -> None:
    """The signal, the probability of speech with its threshold, and the stretches of speech over time."""
    picture = Picture("The speech in a recording", len(audio) / RATE, "s")
    picture.wave("Recording", audio)
    picture.lines(
        "Probability of speech, and the speech found", probability, limit=0.5, found=[(s.start, s.end) for s in found]
    )
    picture.axis()
    picture.save(path)


def main(picture: pathlib.Path) -> None:
    audio = read_wav(RECORDING)
    stream = open_stream()
    print(stream)
    start = time.perf_counter()
    probability = speech_probability(stream, audio, chunk=1600)
    seconds = time.perf_counter() - start
    found = segments(probability)
    print(f"\n{RECORDING.name}: {len(audio) / RATE:.1f} s, {len(found)} stretches of speech")
    for s in found:
        print(f"  {s.start:6.2f} s  to {s.end:6.2f} s")
    print(
        f"real-time factor {seconds / (len(audio) / RATE):.5f} ({len(audio) / RATE / seconds:.0f} times faster than real time)"
    )
    draw(picture, audio, probability, found)
    print(f"picture: {picture}")

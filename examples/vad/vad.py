"""Finds the speech in a recording: a stream over a trained model that carries its state from window to window."""

from __future__ import annotations

import pathlib
import time
import wave
from dataclasses import dataclass

import numpy as np
import treadle

HERE = pathlib.Path(__file__).resolve().parent
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


def write_svg(path: pathlib.Path, audio: np.ndarray, probability: np.ndarray, found: list[Segment]) -> None:
    """Waveform, probability and segments over time."""
    width, height, margin = 1200, 320, 40
    length = len(audio) / RATE

    def x(t: float) -> float:
        return margin + t / length * (width - 2 * margin)

    columns = np.array_split(np.abs(audio), width - 2 * margin)
    peak = float(np.abs(audio).max()) or 1.0
    bars = "".join(
        f"M{margin + i},{100 - 70 * c.max() / peak:.1f}V{100 + 70 * c.max() / peak:.1f}" for i, c in enumerate(columns)
    )
    line = " ".join(f"{x((i + 0.5) * HOP / RATE):.1f},{290 - 90 * p:.1f}" for i, p in enumerate(probability))
    boxes = "".join(
        f'<rect x="{x(s.start):.1f}" y="20" width="{x(s.end) - x(s.start):.1f}" height="270" fill="#cfe8cf"/>'
        for s in found
    )
    ticks = "".join(
        f'<text x="{x(t):.1f}" y="310" font-size="12" text-anchor="middle">{t} s</text>'
        for t in range(0, int(length) + 1, 5)
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">'
        f'<rect width="{width}" height="{height}" fill="white"/>{boxes}'
        f'<path d="{bars}" stroke="#555" stroke-width="1" fill="none"/>'
        f'<polyline points="{line}" fill="none" stroke="#c33" stroke-width="1.5"/>{ticks}'
        f'<text x="{margin}" y="15" font-size="12">waveform; probability of speech (red); speech (green)</text></svg>\n'
    )


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
    write_svg(picture, audio, probability, found)
    print(f"picture: {picture}")

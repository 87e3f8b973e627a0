"""Silero VAD 6 for many windows in one run, as faster-whisper calls it over whole recordings."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import numpy as np

from ._audio import AudioStream, floats
from ._recipe import Fingerprint, Recipe, session_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._options import SessionOptions
    from .._session import InferenceSession

_CONTEXT = 64


class SileroVadSequence(AudioStream["NDArray[np.float32]"]):
    """The probability of speech in each window of 512 samples at 16 kHz; all windows of a push are one run."""

    rate = 16000
    hop = 512
    _signal: NDArray[np.float32]  # the context of the next window, and what waits

    def __init__(self, session: InferenceSession) -> None:
        """Not for callers: `treadle.recipes.open("silero-vad-sequence")` makes streams."""
        self._stream = session.stream({"h": "hn", "c": "cn"})
        self.reset()

    def push(self, samples: ArrayLike) -> NDArray[np.float32]:
        """Probabilities of shape [windows], of the windows that the samples of shape [n] complete."""
        signal = np.concatenate([self._signal, floats(samples)])
        count = (len(signal) - _CONTEXT) // self.hop
        self._signal = signal[count * self.hop :]
        if not count:
            return np.zeros(0, np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(signal, _CONTEXT + self.hop)[:: self.hop]
        found: NDArray[np.float32] = self._stream.push(np.ascontiguousarray(windows))
        return found.reshape(-1)

    def flush(self) -> NDArray[np.float32]:
        """The probability of the last window, filled up with zeros, of shape [1], or [0] where no sample waits."""
        waiting = len(self._signal) - _CONTEXT
        found = self.push(np.zeros(-waiting % self.hop, np.float32))
        self.reset()
        return found

    def reset(self) -> None:
        """Begins a new signal; samples that wait are dropped."""
        self._signal = np.zeros(_CONTEXT, np.float32)
        self._stream.reset()


def _make(path: pathlib.Path | None, options: SessionOptions | None) -> SileroVadSequence:
    return SileroVadSequence(session_of(RECIPE, path, options))


_STATE = (1, 1, 128)

RECIPE: Recipe = Recipe(
    name="silero-vad-sequence",
    title="Silero VAD 6 for sequences",
    takes="samples at 16 kHz",
    gives="the probability of speech in each window of 512 samples: [windows]",
    method="all windows of a push, each with 64 samples before it, are the rows of one run; `h` and `c` go from run to run",
    package="silero-vad",
    files=("silero_vad/data/silero_vad_16k_sequence.onnx", "faster_whisper/assets/silero_vad_v6.onnx"),
    fingerprints=(
        Fingerprint(
            {"input": (None, 576), "h": _STATE, "c": _STATE},
            {"speech_probs": (None,), "hn": (1, None, 128), "cn": (1, None, 128)},
            frozenset({"Conv", "LSTM"}),
        ),
    ),
    make=_make,
)

"""Basic Pitch: the notes of music, in windows of two seconds whose edges are cut off."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._audio import AudioStream, floats
from ._recipe import Fingerprint, Recipe, session_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._options import SessionOptions
    from .._session import InferenceSession

_WINDOW = 43844  # samples, which give 172 frames
_STEP = 256  # samples between two frames
_EDGE = 15  # frames at either end of a window that are cut off
_FRAMES = 172 - 2 * _EDGE  # that are left of a window
_PER_SECOND = 86  # frames that the model's authors count, of signals as a whole
# The model's outputs and how wide they are, in the order of Notes.
_OUTPUTS = {"StatefulPartitionedCall:1": 88, "StatefulPartitionedCall:2": 88, "StatefulPartitionedCall:0": 264}


class Notes(NamedTuple):
    """Probabilities for each frame, all from 27.5 Hz upwards."""

    note: NDArray[np.float32]  # [frames, 88]: each key of a piano sounds
    onset: NDArray[np.float32]  # [frames, 88]: it begins to sound
    contour: NDArray[np.float32]  # [frames, 264]: each third of a semitone sounds


class BasicPitch(AudioStream[Notes]):
    """The notes in music at 22.05 kHz: 142 frames for each 36164 samples, about two seconds late."""

    rate = 22050
    hop = _WINDOW - 2 * _EDGE * _STEP
    _signal: NDArray[np.float32]  # what no window has begun with
    _taken: int  # samples
    _given: int  # frames

    def __init__(self, session: InferenceSession) -> None:
        """Not for callers: `treadle.recipes.open("basic-pitch")` makes streams."""
        self._session = session
        self._input = session.get_inputs()[0].name
        self.reset()

    def push(self, samples: ArrayLike) -> Notes:
        """The frames of the windows that the samples of shape [n] complete."""
        given = floats(samples)
        self._taken += len(given)
        self._signal = np.concatenate([self._signal, given])
        windows = []
        while len(self._signal) >= _WINDOW:
            windows.append(self._run(self._signal[:_WINDOW]))
            self._signal = self._signal[self.hop :]
        found = _joined(windows)
        self._given += len(found.note)
        return found

    def _run(self, window: NDArray[np.float32]) -> Notes:
        outputs = self._session.run(list(_OUTPUTS), {self._input: window[None, :, None]})
        return Notes(*(frames[0, _EDGE:-_EDGE] for frames in outputs))

    def flush(self) -> Notes:
        """The frames that are left, of windows filled up with zeros: 86 frames for each second of the whole signal."""
        windows = []
        while self._taken and len(self._signal):
            rest = self._signal[:_WINDOW]
            windows.append(self._run(np.pad(rest, (0, _WINDOW - len(rest)))))
            self._signal = self._signal[self.hop :]
        left = max(self._taken * _PER_SECOND // self.rate - self._given, 0)
        found = _joined(windows)
        self.reset()
        return Notes(*(frames[:left] for frames in found))

    def reset(self) -> None:
        """Begins a new signal; samples that wait are dropped."""
        self._signal = np.zeros(_EDGE * _STEP, np.float32)
        self._taken = self._given = 0

    def seconds(self, frame: int) -> float:
        """When a frame is, in seconds from the beginning of the signal; frames are counted from 0."""
        window, inside = divmod(frame, _FRAMES)
        return (window * self.hop + inside * _STEP) / self.rate


def _joined(windows: list[Notes]) -> Notes:
    empty = Notes(*(np.zeros((0, size), np.float32) for size in _OUTPUTS.values()))
    return Notes(*(np.concatenate(parts) for parts in zip(empty, *windows, strict=True)))


def _make(path: pathlib.Path | None, options: SessionOptions | None) -> BasicPitch:
    return BasicPitch(session_of(RECIPE, path, options))


RECIPE: Recipe = Recipe(
    name="basic-pitch",
    title="Basic Pitch",
    takes="samples at 22.05 kHz",
    gives="the notes in each frame: `note` [frames, 88], `onset` [frames, 88] and `contour` [frames, 264]",
    method="windows of 43844 samples, 36164 apart; of the 172 frames of a window 15 are cut off at either end; "
    "`seconds(frame)` says when a frame is",
    package="basic-pitch",
    files=("basic_pitch/saved_models/icassp_2022/nmp.onnx",),
    fingerprints=(
        Fingerprint(
            {"serving_default_input_2:0": (None, _WINDOW, 1)},
            {name: (None, 172, size) for name, size in _OUTPUTS.items()},
            frozenset({"Conv", "Sigmoid"}),
        ),
    ),
    make=_make,
)

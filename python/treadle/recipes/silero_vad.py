"""Silero VAD 5 and 6: the probability of speech, 31 times a second."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import numpy as np

from .._errors import InvalidArgument
from ._audio import Windows
from ._recipe import Fingerprint, Recipe, session_of

if TYPE_CHECKING:
    from .._options import SessionOptions
    from .._session import InferenceSession

_WINDOWS = {16000: (512, 64), 8000: (256, 32)}  # rate -> samples of a window, and samples before it that it sees


class SileroVad(Windows):
    """The probability of speech in each window: of 512 samples at 16 kHz, of 256 at 8 kHz.

    The model sees 64 (or 32) samples before each window with it. It runs without them too, and gives other values.
    """

    def __init__(self, session: InferenceSession, rate: int) -> None:
        """Not for callers: `treadle.recipes.open("silero-vad")` makes streams."""
        takes = [info.name for info in session.get_inputs()]
        if rate not in _WINDOWS or (rate != 16000 and "sr" not in takes):
            known = " or ".join(map(str, _WINDOWS)) if "sr" in takes else "16000"
            raise InvalidArgument(f"this model takes a rate of {known} samples per second, found {rate}")
        self.rate = rate
        self.hop, self.context = _WINDOWS[rate]
        bound = {"sr": np.array(rate, np.int64)} if "sr" in takes else {}
        self._stream = session.stream(
            {"state": "stateN"},
            bound,
            {"input": 1},
            self.hop,
            self.context,
            initial={"state": np.zeros((2, 1, 128), np.float32)},
        )


def _make(path: pathlib.Path | None, options: SessionOptions | None, rate: int = 16000) -> SileroVad:
    return SileroVad(session_of(RECIPE, path, options), rate)


_STATE = (2, None, 128)
_VALUES = {"input": (None, None), "state": _STATE}
_OUTPUTS = {"output": (None, None), "stateN": (None, None, None)}
_OPERATORS = frozenset({"Conv", "Sigmoid"})

RECIPE: Recipe = Recipe(
    name="silero-vad",
    title="Silero VAD 5 and 6",
    takes="samples at 16 kHz, or at 8 kHz with `rate=8000`",
    gives="the probability of speech in each window of 512 samples (256 at 8 kHz): [windows]",
    method="64 samples (32 at 8 kHz) before each window are put in front of it; the state goes from window to window",
    package="silero-vad",
    files=("silero_vad/data/silero_vad.onnx",),
    fingerprints=(
        Fingerprint({**_VALUES, "sr": ()}, _OUTPUTS, _OPERATORS),
        Fingerprint(_VALUES, _OUTPUTS, _OPERATORS),  # for 16 kHz alone
    ),
    make=_make,
    command="sr=16000 --time input=1 --hop 512 --context 64",
)

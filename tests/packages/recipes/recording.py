"""What the programs here share: python PROGRAM RECORDING OUT [MODEL], where OUT takes the arrays that the loop gave."""

import sys
import types
import wave

import numpy as np


def samples() -> np.ndarray:
    """The samples of the recording, int16."""
    with wave.open(sys.argv[1]) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def floats() -> np.ndarray:
    return samples().astype(np.float32) / 32768


def save(**arrays) -> None:
    np.savez(sys.argv[2], **arrays)


def stand_in(name: str, **members) -> None:
    """A module in the place of one that the loop imports and does not need."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)

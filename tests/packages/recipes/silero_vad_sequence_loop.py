"""The loop of silero-vad over its model that takes many windows."""

import sys

import recording
import tensors  # noqa: F401 - before silero_vad, which imports torch
from silero_vad.sequence_vad import SileroVADSequence

signal = recording.floats()
found = SileroVADSequence(sys.argv[3], max_frames=100).audio_forward(signal)
recording.save(signal=signal, expected=found.reshape(-1))

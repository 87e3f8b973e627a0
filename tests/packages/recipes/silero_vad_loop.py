"""The loop of silero-vad over a model that takes one window."""

import sys

import recording
import tensors
from silero_vad.utils_vad import OnnxWrapper

model, rate = sys.argv[3], int(sys.argv[4])
signal = recording.floats()[:: 16000 // rate]
found = OnnxWrapper(model, force_onnx_cpu=True).audio_forward(tensors.from_numpy(signal), rate)
recording.save(signal=signal, expected=found.reshape(-1))

"""The speech that sherpa-onnx finds: MODEL RECORDING."""

import json
import sys
import wave

import numpy as np
import sherpa_onnx

config = sherpa_onnx.VadModelConfig()
config.silero_vad.model = sys.argv[1]
config.sample_rate = 16000
detector = sherpa_onnx.VoiceActivityDetector(config, buffer_size_in_seconds=60)
with wave.open(sys.argv[2]) as file:
    assert file.getframerate() == config.sample_rate
    audio = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
for begin in range(0, audio.size, 512):
    detector.accept_waveform(audio[begin : begin + 512])
detector.flush()
found = []
while not detector.empty():
    found.append([detector.front.start, len(detector.front.samples)])
    detector.pop()
print(json.dumps(found))

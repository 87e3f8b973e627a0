"""The loop of openWakeWord over its voice detector, in windows of 480 samples."""

import numpy as np
import recording
from openwakeword.vad import VAD

signal = recording.samples()
detector = VAD()
hop = 480
found = [detector.predict(signal[a : a + hop], hop) for a in range(0, len(signal) - hop + 1, hop)]
recording.save(signal=(signal / 32767).astype(np.float32), expected=np.array(found, np.float32))

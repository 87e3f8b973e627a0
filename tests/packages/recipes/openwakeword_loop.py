"""The loop of openWakeWord over each of its words."""

import sys

import numpy as np
import recording
from openwakeword import Model

signal = recording.samples()
model = Model(wakeword_model_paths=[sys.argv[3]])
[labels] = model.class_mapping.values()
found = [model.predict(signal[a : a + 1280]) for a in range(0, len(signal) - 1279, 1280)]
names = list(labels.values()) if len(labels) > 1 else list(found[0])
scores = np.array([[step[name] for name in names] for step in found], np.float32)
[frames] = model.model_inputs.values()
recording.save(signal=signal, expected=scores, features=model.preprocessor.get_features(frames)[0])

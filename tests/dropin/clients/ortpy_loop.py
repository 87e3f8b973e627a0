"""Inputs, providers, and results of the loop in MODEL, by ortpy."""

import json
import sys

import numpy as np
import ortpy

session = ortpy.Session(sys.argv[1], ortpy.SessionOptions())
results = session.run({"n": np.array(5), "x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)})
inputs = sorted(session.get_input_info())
print(
    json.dumps([inputs, ortpy.get_available_providers(), *(results[name].numpy().tolist() for name in ("y", "sums"))])
)

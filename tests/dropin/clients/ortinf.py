"""Results of the loop in MODEL, run by onnx-extended."""

import json
import sys

import numpy as np
from onnx_extended.ortcy.wrap.ortinf import OrtSession

session = OrtSession(sys.argv[1])
results = session.run([np.array(5), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)])
print(json.dumps([result.tolist() for result in results]))

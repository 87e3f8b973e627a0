"""Results of models with operators of a library: ENGINE (treadle or onnxruntime) PACKAGE MODEL..."""

import importlib
import json
import sys

import numpy as np

engine, package, *models = sys.argv[1:]
if engine == "treadle":
    import treadle

    treadle.as_onnxruntime()
import onnxruntime  # noqa: E402

if package == "onnxruntime_extensions":
    libraries = [importlib.import_module(package).get_library_path()]
else:
    libraries = importlib.import_module("onnx_extended.ortops.tutorial.cpu").get_ort_ext_libs()

FEEDS = {
    "words": np.array(["a loop", "Ünïcode", ""], object),
    "n": np.array(3),
    "x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
}
found = []
for model in models:
    options = onnxruntime.SessionOptions()
    for library in libraries:
        options.register_custom_ops_library(library)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    results = session.run(None, {value.name: FEEDS[value.name] for value in session.get_inputs()})
    found.append([result.tolist() for result in results])
print(json.dumps(found))

"""Runs the models of FOLDER... on treadle's execution provider inside whichever onnxruntime is imported.

Prints a JSON object: by folder, what onnxruntime's own kernels say in place of a result, what the provider's session says
or where its results differ, and how many of the provider's nodes ran, by onnxruntime's own profile.
"""

import json
import os
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import onnxruntime_ep_treadle as provider
from levels import assert_close, rounds_to_levels
from onnx import numpy_helper

NAME = provider.get_ep_name()
onnxruntime.register_execution_provider_library(NAME, provider.get_library_path())
onnxruntime.set_default_logger_severity(4)


def options_of(on_provider: bool):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if on_provider:
        devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
        options.add_provider_for_devices(devices, {"recurrent_weights": "0"})
        options.enable_profiling = True
        options.profile_file_prefix = "provider_models"
    return options


def nodes_run(profile: str) -> int:
    events = json.loads(pathlib.Path(profile).read_text())
    os.remove(profile)
    return sum(event.get("args", {}).get("provider") == NAME for event in events)


def recorded(folder: pathlib.Path, kind: str) -> list:
    files = sorted(folder.glob(f"test_data_set_0/{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return [numpy_helper.to_array(onnx.load_tensor(str(file))) for file in files]


def feeds_of(folder: pathlib.Path, session) -> dict:
    names = [value.name for value in session.get_inputs()]
    return dict(zip(names, recorded(folder, "input"), strict=False))


def difference(got, want, levels: bool) -> str:
    for ours, theirs in zip(got, want, strict=True):
        try:
            if isinstance(theirs, np.ndarray) and theirs.dtype.kind == "f":
                assert_close(ours, theirs, levels)
            elif isinstance(theirs, np.ndarray):
                np.testing.assert_array_equal(ours, theirs)
        except AssertionError as failure:
            return str(failure)
    return ""


def run(folder: pathlib.Path) -> dict:
    file = str(folder / "model.onnx")
    result = {"reference": "", "provider": "", "nodes": 0}
    try:
        reference = onnxruntime.InferenceSession(file, options_of(False), providers=["CPUExecutionProvider"])
        want = reference.run(None, feeds_of(folder, reference))
    except Exception as failure:  # of onnxruntime's own kernels
        result["reference"], want = str(failure), recorded(folder, "output") or None
    try:
        session = onnxruntime.InferenceSession(file, options_of(True))
    except Exception as failure:
        result["provider"] = str(failure)
        return result
    session.disable_fallback()
    try:
        got = session.run(None, feeds_of(folder, session))
        result["provider"] = "" if want is None else difference(got, want, rounds_to_levels(onnx.load(file)))
    except Exception as failure:
        result["provider"] = str(failure)
    result["nodes"] = nodes_run(session.end_profiling())
    return result


print(json.dumps({folder.name: run(folder) for folder in map(pathlib.Path, sys.argv[1:])}))

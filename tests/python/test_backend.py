"""treadle.backend, by onnx's own suite of models for backends and by programs that set options."""

import pathlib
import re
import subprocess
import sys

import models
import numpy as np
import onnx
import onnx.backend.test
import pytest
import treadle
import treadle.backend

X, Y = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)

# Some cases of each kind of value and body; another file runs the whole conformance suite.
CASES = r"^test_(add|loop1[13]|scan9|if|if_seq|gru|lstm|sequence_insert|identity_sequence|optional_get|argmax|einsum)\w*_cpu$"
_cases = onnx.backend.test.BackendTest(treadle.backend, __name__).test_cases["OnnxBackendNodeModelTest"]
for _name in [name for name in dir(_cases) if name.startswith("test_") and not re.match(CASES, name)]:
    delattr(_cases, _name)
TestCasesOfOnnx = _cases


def test_forms_of_models_and_inputs(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.add())
    for model in (str(path), path, models.add(), models.parse(models.add()), treadle.InferenceSession(models.add())):
        representation = treadle.backend.prepare(model, "CPU", logid="")
        assert treadle.backend.prepare(representation) is representation
        for inputs in ([X, Y], (X, Y)):
            (z,) = representation.run(inputs)
            np.testing.assert_array_equal(z, X + Y)
    (y,) = treadle.backend.run_model(models.identity(onnx.TensorProto.FLOAT, [2, 3]), X, logid="")
    np.testing.assert_array_equal(y, X)


def test_a_single_node():
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    np.testing.assert_array_equal(treadle.backend.run_node(node, [X, Y])[0], X + Y)
    with pytest.raises(RuntimeError, match="2 inputs, found 1"):
        treadle.backend.run_node(node, [X])


def test_a_backend_refuses_other_devices_and_options():
    assert treadle.backend.supports_device("CPU") and not treadle.backend.supports_device("CUDA")
    assert treadle.backend.is_compatible(models.add()) and not treadle.backend.is_compatible(models.add(), "CUDA")
    representation = treadle.backend.prepare(models.add())
    for call, words in (
        (lambda: treadle.backend.prepare(models.add(), "CUDA"), "Incompatible device"),
        (lambda: treadle.backend.prepare(models.add(), optimized_model_filepath="m"), "not permitted"),
        (lambda: representation.run([X, Y], terminate=True), "not permitted"),
        (lambda: representation.run(X), "expect 2 inputs"),
        (lambda: representation.run([X, Y, Y]), "expect 2 inputs, found 3"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.warns(UserWarning, match="'colour' = 'red' of a backend has no effect"):
        treadle.backend.prepare(models.add(), colour="red")


def test_under_the_name_onnxruntime():
    folder = str(pathlib.Path(treadle.__file__).parent.parent)
    code = f"""
import sys; sys.path.insert(0, {folder!r})
import treadle; treadle.as_onnxruntime()
import onnxruntime.backend as backend
from onnxruntime.backend.backend import OnnxRuntimeBackend
from onnxruntime.backend.backend_rep import OnnxRuntimeBackendRep
import treadle.backend
assert OnnxRuntimeBackend is treadle.backend.Backend and OnnxRuntimeBackendRep is treadle.backend.BackendRep
assert backend.prepare == treadle.backend.prepare and backend.supports_device("CPU")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

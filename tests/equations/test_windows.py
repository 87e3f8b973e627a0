"""Windows that are longer than the table that a plan keeps, against numpy."""

import numpy as np
import onnx
import pytest
import treadle

COSINES = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}


@pytest.mark.parametrize("tier", ["reference", "program"])
@pytest.mark.parametrize("size", [65_536, 70_001])
@pytest.mark.parametrize("op", COSINES)
def test_long_windows(op, size, tier):
    text = f"""
      <ir_version: 10, opset_import: ["" : 17]>
      windows (int64 n) => (double[m] periodic, float[m] symmetric) {{
        periodic = {op} <output_datatype = 11> (n)
        symmetric = {op} <periodic = 0> (n)
      }}"""
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", tier)
    session = treadle.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options)
    constant, first, second = COSINES[op]
    for found, period in zip(session.run(None, {"n": np.int64(size)}), (size, size - 1), strict=True):
        t = 2 * np.pi * np.arange(size) / period
        np.testing.assert_allclose(found, constant - first * np.cos(t) + second * np.cos(2 * t), atol=1e-6)

"""Programs that random ones were shrunk to once they had shown a fault: each runs in both tiers."""

import numpy as np
import onnx
import pytest
import treadle

STRINGS_AS_ELEMENTS = """
  <ir_version: 10, opset_import: ["" : 21]>
  agraph (float f) => (string y, float g) <string[2, 2] words = {"a", "b", "c", "d"}> {
    g, y = Scan <body = b (float s, string[2] e) => (float t, string[2] o) { t = Tanh (s) o = Identity (e) },
      num_scan_inputs = 1, scan_input_axes = [1], scan_output_directions = [1]> (f, words)
  }"""

CAPTURED_AS_STATE = """
  <ir_version: 10, opset_import: ["" : 22]>
  agraph (float[3, 2] a, int64 n) => (int64 y) {
    q = SplitToSequence <axis = 0> (a)
    length = SequenceLength (q)
    y = Scan <body = b (int64 s, float[2] e) => (int64 length) {}, num_scan_inputs = 1> (n, a)
  }"""

STATE_UNDER_TWO_SHAPES = """
  <ir_version: 10, opset_import: ["" : 8]>
  agraph (float[2, 3] a, int64 n, bool p) => (float[2, 1, 3] wide, float[r, c] y) {
    v = Neg (a)
    y = Loop <body = b (int64 i, bool go, float[k, l] s) => (bool continues, float[l, k] t) {
      continues = Identity (go)
      t = Transpose (s)
    }> (n, p, v)
    wide = Unsqueeze <axes = [1]> (v)
  }"""


@pytest.mark.parametrize("tier", ["reference", "program"])
@pytest.mark.parametrize(
    "text, feeds, expected",
    [
        (
            STRINGS_AS_ELEMENTS,
            {"f": np.float32(0)},
            [np.array([["b", "d"], ["a", "c"]], object), np.array(0, np.float32)],
        ),
        (CAPTURED_AS_STATE, {"a": np.zeros((3, 2), np.float32), "n": np.array(8)}, [np.array(3)]),
        (
            STATE_UNDER_TWO_SHAPES,
            {"a": np.ones((2, 3), np.float32), "n": np.array(1), "p": np.array(True)},
            [-np.ones((2, 1, 3), np.float32), -np.ones((3, 2), np.float32)],
        ),
    ],
    ids=[
        "constant strings as scan input",
        "a captured value of unknown size as state",
        "a state that is also an output",
    ],
)
def test_found(tier, text, feeds, expected):
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.tier", tier)
    session = treadle.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options)
    for _ in range(2):
        results = session.run(None, feeds)
        assert len(results) == len(expected)
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, value)
            assert result.dtype == value.dtype

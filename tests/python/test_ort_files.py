"""Models in onnxruntime's own format, which onnxruntime writes here, against the ONNX models that they were made of."""

import numpy as np
import pytest
import treadle

onnxruntime = pytest.importorskip("onnxruntime", reason="it writes the files")

MODELS = {
    "loop": """
<ir_version: 8, opset_import: ["" : 17], metadata_props: ["author" : "me", "empty" : ""]>
g (int64 n, float[batch, 2] x) => (float[batch, 2] y, float[steps, batch, 2] all) <float[2] w = {0.5, -1.5}> {
  on = Constant <value = bool {1}> ()
  y, all = Loop (n, on, x) <body = step (int64 i, bool go, float[batch, 2] h) => (bool go_out, float[batch, 2] h_out, float[batch, 2] o) {
    half = Constant <value = float {0.5}> ()
    scaled = Mul (h, w)
    h_out = Add (scaled, half)
    o = Tanh (h_out)
    go_out = Identity (go)
  }>
}
""",
    "branches": """
<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[n] x) => (float[m] y) {
  y = If (c) <
    then_branch = a () => (float[k] p) {
      d = ReduceSum <keepdims = 0> (x)
      zero = Constant <value_float = 0.0> ()
      big = Greater (d, zero)
      p = If (big) <then_branch = b () => (float[u] q) { q = Neg (x) }, else_branch = e () => (float[v] r) { r = Concat <axis = 0> (x, x) }>
    },
    else_branch = f () => (float[l] s) { s = Exp (x) }>
}
""",
    "texts": """
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
g (string[n] x) => (string[m] y, int64[n] z) <string[2] more = {"a", "b"}> {
  y = Concat <axis = 0> (x, more)
  z = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "longer word"], values_int64s = [3, 4], default_int64 = -7> (x)
}
""",
    "sequences": """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 3] x) => (seq(float[a, b]) y, float[c, d] z) {
  y = SplitToSequence <axis = 0> (x)
  z = ConcatFromSequence <axis = 1> (y)
}
""",
    "recurrent": """
<ir_version: 8, opset_import: ["" : 17]>
g (float[t, 1, 2] x, float[1, 8, 2] w, float[1, 8, 2] r) => (float[t, 1, 1, 2] y, float[1, 1, 2] h) {
  y, h = LSTM <hidden_size = 2, activations = ["Sigmoid", "Tanh", "Relu"]> (x, w, r)
}
""",
}
FEEDS = {
    "loop": {"n": np.array(4), "x": np.array([[1, 2], [3, 4.5]], np.float32)},
    "branches": {"c": np.array(True), "x": np.array([-1, 0.25], np.float32)},
    "texts": {"x": np.array(["longer word", "ü", ""], object)},
    "sequences": {"x": np.arange(6, dtype=np.float32).reshape(2, 3)},
    "recurrent": {
        "x": np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 1, 2),
        "w": np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 8, 2),
        "r": np.linspace(0.5, -1, 16, dtype=np.float32).reshape(1, 8, 2),
    },
}
LEVELS = onnxruntime.GraphOptimizationLevel


def ort_file(model: bytes, path, level=LEVELS.ORT_ENABLE_BASIC) -> bytes:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = level
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


def equal(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a.dtype == b.dtype and a.shape == b.shape and (np.array_equal(a, b) or np.allclose(a, b, rtol=1e-6))


@pytest.mark.parametrize("level", [LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_BASIC], ids=["as written", "basic"])
@pytest.mark.parametrize("name", MODELS)
def test_the_model_that_was_converted(name, level, tmp_path):
    model = treadle.parse_model(MODELS[name])
    path = tmp_path / "model.ort"
    ort_file(model, path, level)
    session, original = treadle.InferenceSession(str(path)), treadle.InferenceSession(model)
    for found, expected in (
        (session.get_inputs(), original.get_inputs()),
        (session.get_outputs(), original.get_outputs()),
    ):
        assert [(v.name, v.type) for v in found] == [(v.name, v.type) for v in expected]
    assert [v.shape for v in session.get_inputs()] == [v.shape for v in original.get_inputs()]
    assert session.get_modelmeta().custom_metadata_map == original.get_modelmeta().custom_metadata_map
    found, expected = session.run(None, FEEDS[name]), original.run(None, FEEDS[name])
    assert all(map(equal, found, expected))
    assert all(map(equal, treadle.InferenceSession(path.read_bytes()).run(None, FEEDS[name]), found))


def test_tools_read_it(tmp_path):
    path = tmp_path / "model.ort"
    ort_file(treadle.parse_model(MODELS["loop"]), path)
    assert not [p for p in treadle.check(str(path), full=True) if p.severity == "error"]
    assert b"Loop" in treadle.infer_shapes(path.read_bytes())


@pytest.mark.parametrize("name", MODELS)
def test_broken_files_are_refused(name, tmp_path):
    """No file, however broken, does more than raise an error that says where."""
    whole = ort_file(treadle.parse_model(MODELS[name]), tmp_path / "model.ort")
    for size in [8, 9, 30, len(whole) // 2, len(whole) - 5]:
        with pytest.raises(treadle.Error if hasattr(treadle, "Error") else Exception, match="model"):
            treadle.InferenceSession(whole[:size])
    rng = np.random.default_rng(3)
    for _ in range(400):
        broken = bytearray(whole)
        for at in rng.integers(8, len(whole), rng.integers(1, 6)):
            broken[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))])
        try:
            treadle.InferenceSession(bytes(broken))
        except Exception as e:
            assert type(e).__module__.startswith("treadle") or isinstance(e, ValueError)


def test_other_versions_are_refused(tmp_path):
    whole = bytearray(ort_file(treadle.parse_model(MODELS["texts"]), tmp_path / "model.ort"))
    at = whole.rindex(b"\x01\x00\x00\x006\x00")  # the text "6" with its length
    whole[at + 4 : at + 5] = b"9"
    with pytest.raises(treadle.NotImplemented, match='version "9" of onnxruntime'):
        treadle.InferenceSession(bytes(whole))

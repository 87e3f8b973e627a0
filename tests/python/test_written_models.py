"""optimized_model_filepath: folded and fused as by onnxruntime's basic level, standard ONNX, and the same results."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import treadle
from onnx import numpy_helper

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def whole(*numbers):
    return np.array(numbers, np.int64)


def norm(channels):
    return {"s": floats(channels), "b": floats(channels), "m": floats(channels), "v": np.abs(floats(channels))}


IMAGE = "g (float[1,4,8,8] x) => (float[1,6,6,6] y)"
ROWS = "g (float[2,3] x) => (float[2,4] y)"
SAME = "g (float[2,3] x) => (float[2,3] y)"
W = {"w": floats(6, 4, 3, 3)}
M = {"w": floats(3, 4)}
FILTERS = {"w": floats(4, 3, 3, 3), **norm(6)}
# By name: the graph, its constants, and the operators that are left.
FUSED = {
    "constants": (f"{SAME} {{ c = Add (a, b) y = Mul (x, c) }}", {"a": floats(3), "b": floats(3)}, "Mul"),
    "identities": (f"{SAME} {{ a = Identity (x) b = Relu (a) y = Identity (b) }}", {}, "Relu"),
    "dropout": (f"{SAME} {{ a = Dropout (x) y = Relu (a) }}", {}, "Relu"),
    "same_cast": (f"{SAME} {{ a = Cast <to = 1> (x) y = Relu (a) }}", {}, "Relu"),
    "casts": (f"{SAME} {{ a = Cast <to = 11> (x) b = Cast <to = 1> (a) y = Relu (b) }}", {}, "Relu"),
    "unsqueezed": (f"{SAME} {{ a = Unsqueeze (w, i) y = Add (x, a) }}", {"w": floats(3), "i": whole(0)}, "Add"),
    "shape": (f"{SAME} {{ s = Shape (x) c = ConstantOfShape (s) y = Add (x, c) }}", {}, "Add"),
    "size": (f"{SAME} {{ s = Shape (x) g = Gather (s, i) c = Cast <to = 1> (g) y = Div (x, c) }}", {"i": np.int64(1)}, "Div"),
    "twice": (f"{SAME} {{ a = Sin (x) b = Sin (x) y = Add (a, b) }}", {}, "Sin Add"),
    "decided": (
        f"{SAME} {{ c = Constant <value = bool {{1}}> () y = If (c) <then_branch = t () => (float[2,3] a) {{ a = Sin (x) }},"
        " else_branch = e () => (float[2,3] b) { b = Cos (x) }> }", {}, "Sin",
    ),
    "matmul_add": (f"{ROWS} {{ a = MatMul (x, w) y = Add (a, b) }}", {**M, "b": floats(4)}, "Gemm"),
    "add_matmul": (f"{ROWS} {{ a = MatMul (x, w) y = Add (b, a) }}", {**M, "b": floats(2, 4)}, "Gemm"),
    "open_rows": ("g (float[N,3] x) => (float[N,4] y) { a = MatMul (x, w) y = Add (a, b) }", {**M, "b": floats(4)}, "Gemm"),
    "matmul_norm": (f"{ROWS} {{ a = MatMul (x, w) y = BatchNormalization (a, s, b, m, v) }}", {**M, **norm(4)}, "Gemm"),
    "gemm_transpose": ("g (float[3,2] x) => (float[2,4] y) { t = Transpose (x) y = Gemm (t, w) }", M, "Gemm"),
    "conv_norm": (f"{IMAGE} {{ a = Conv (x, w) y = BatchNormalization (a, s, b, m, v) }}", {**W, **norm(6)}, "Conv"),
    "conv_add": (f"{IMAGE} {{ a = Conv (x, w) y = Add (a, b) }}", {**W, "b": floats(1, 6, 1, 1)}, "Conv"),
    "conv_mul": (f"{IMAGE} {{ a = Conv (x, w, c) y = Mul (a, b) }}", {**W, "c": floats(6), "b": floats(6, 1, 1)}, "Conv"),
    "conv_scaled": (f"{IMAGE} {{ a = Conv (x, w) y = Mul (a, b) }}", {**W, "b": np.float32(3)}, "Conv"),
    "transposed_norm": (
        "g (float[1,4,5,5] x) => (float[1,6,7,7] y) { a = ConvTranspose <group = 2> (x, w)"
        " y = BatchNormalization (a, s, b, m, v) }", FILTERS, "ConvTranspose",
    ),
    "padded": (
        "g (float[1,4,8,8] x) => (float[1,6,9,8] y) { a = Pad (x, p) y = Conv <pads = [1,0,0,1]> (a, w) }",
        {**W, "p": whole(0, 0, 1, 0, 0, 0, 1, 1)}, "Conv",
    ),
}  # fmt: skip
# What must not be fused: numbers that are no channels', results that others read, sizes that would grow.
KEPT = {
    "rows_added": (f"{IMAGE} {{ a = Conv (x, w) y = Add (a, b) }}", {**W, "b": floats(6, 1)}, "Conv Add"),
    "read_twice": (
        f"{IMAGE} {{ a = Conv (x, w) c = Mul (a, b) y = Add (c, a) }}", {**W, "b": floats(6, 1, 1)}, "Conv Mul Add"
    ),
    "other_padding": (
        "g (float[1,4,8,8] x) => (float[1,6,8,8] y) { a = Pad (x, p, one) y = Conv (a, w) }",
        {**W, "p": whole(0, 0, 1, 1, 0, 0, 1, 1), "one": np.float32(1)}, "Pad Conv",
    ),
    "wide_addend": ("g (float[1,3] x) => (float[2,4] y) { a = MatMul (x, w) y = Add (a, b) }", {**M, "b": floats(2, 4)},
                    "MatMul Add"),
    "mask_is_read": (f"{SAME} {{ a, k = Dropout (x) c = Cast <to = 1> (k) y = Add (a, c) }}", {}, "Dropout Cast Add"),
    "narrow_cast": (f"{SAME} {{ a = Cast <to = 10> (x) b = Cast <to = 1> (a) y = Relu (b) }}", {}, "Cast Cast Relu"),
}  # fmt: skip


def model_of(graph, constants):
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}')
    for name, value in constants.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return made.SerializeToString()


def written(data, path, module=treadle, level="ORT_ENABLE_BASIC"):
    options = module.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = getattr(module.GraphOptimizationLevel, level)
    session = module.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    made = onnx.load(path)
    onnx.checker.check_model(made, full_check=True)
    return session, made


def feeds_of(session):
    return {
        a.name: RNG.standard_normal([d if isinstance(d, int) else 3 for d in a.shape]).astype(np.float32)
        for a in session.get_inputs()
    }


def signature(session):
    return [[(a.name, a.type, a.shape) for a in args] for args in (session.get_inputs(), session.get_outputs())]


def compare(data, path, feeds, session):
    """The written model and the given one, in onnxruntime and in treadle."""
    expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    for module in (onnxruntime, treadle):
        again = module.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        for got, want in zip(again.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert signature(again) == signature(session)


@pytest.mark.parametrize("name", [*FUSED, *KEPT])
def test_patterns(name, tmp_path):
    graph, constants, left = (FUSED | KEPT)[name]
    data = model_of(graph, constants)
    session, made = written(data, tmp_path / "ours.onnx")
    assert " ".join(node.op_type for node in made.graph.node) == left
    compare(data, tmp_path / "ours.onnx", feeds_of(session), session)
    if name in FUSED:
        _, theirs = written(data, tmp_path / "theirs.onnx", onnxruntime)
        assert [node.op_type for node in theirs.graph.node] == [node.op_type for node in made.graph.node]


def test_no_rewrites_where_none_are_wanted(tmp_path):
    graph, constants, _ = FUSED["matmul_add"]
    _, made = written(model_of(graph, constants), tmp_path / "m.onnx", level="ORT_DISABLE_ALL")
    assert [node.op_type for node in made.graph.node] == ["MatMul", "Add"]


def test_results_that_are_inputs_constants_or_one_value_keep_their_names(tmp_path):
    graph = "g (float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] c, float[3] d) {"
    graph += " a = Identity (x) t = Sin (x) b = Identity (t) c = Identity (t) d = Add (k, k) }"
    data = model_of(graph, {"k": floats(3)})
    session, _ = written(data, tmp_path / "m.onnx")
    compare(data, tmp_path / "m.onnx", feeds_of(session), session)


def test_bodies_have_results_of_their_own(tmp_path):
    """Nodes that a body loses, states that it hands on as they are, and results that nobody reads."""
    graph = """g (float[4,3] x, float[3] h) => (float[4,3] y) {
      s, k, y, u = Scan (h, h, x) <num_scan_inputs = 1, body = b (float[3] s, float[3] k, float[3] e) =>
        (float[3] s2, float[3] k2, float[3] o, float[3] u2) {
          k2 = Identity (k)  a = Add (s, e)  s2 = Identity (a)  o = Mul (a, k)  u2 = Sin (e) }>
    }"""
    data = model_of(graph, {})
    session, made = written(data, tmp_path / "m.onnx")
    assert [node.op_type for node in made.graph.node] == ["Scan"]
    compare(data, tmp_path / "m.onnx", feeds_of(session), session)


@pytest.mark.parametrize("axes", [[256], [1]])
def test_bytes_stay_bytes_by_standard_operators(axes, tmp_path):
    """Weights of an LSTM that are dequantised, which sessions keep as bytes."""
    graph = """g (float[5,1,64] x) => (float[5,1,1,64] y) {
      wf = DequantizeLinear <axis = 1> (w, s, z)  y, h, c = LSTM <hidden_size = 64> (x, wf, r) }"""
    count = axes[0]
    scale = np.abs(floats(count)) * 0.01 if count > 1 else np.float32(0.01)
    zero = np.zeros(count, np.int8) if count > 1 else np.int8(0)
    w = RNG.integers(-99, 99, (1, 256, 64)).astype(np.int8)
    data = model_of(graph, {"w": w, "s": scale, "z": zero, "r": floats(1, 256, 64) * 0.1})
    session, made = written(data, tmp_path / "m.onnx")
    assert {node.domain for node in made.graph.node} <= {"", "ai.onnx"}
    compare(data, tmp_path / "m.onnx", feeds_of(session), session)


# Prepares a model as onnxruntime's tools do, quantises it twice, and prints the operators.
TOOLS = """
import json, pathlib, sys
import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

folder = pathlib.Path(sys.argv[1])
class Reader(CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.left = [{"x": rng.standard_normal((1, 4, 8, 8)).astype(np.float32)} for _ in range(4)]
    def get_next(self):
        return self.left.pop() if self.left else None

def operators(name):
    return sorted(node.op_type for node in onnx.load(folder / name).graph.node)

quant_pre_process(str(folder / "m.onnx"), str(folder / "prepared.onnx"))
quantize_static(str(folder / "prepared.onnx"), str(folder / "static.onnx"), Reader(), quant_format=QuantFormat.QDQ)
quantize_dynamic(str(folder / "prepared.onnx"), str(folder / "dynamic.onnx"))
print(json.dumps({name: operators(name + ".onnx") for name in ("prepared", "static", "dynamic")}))
"""


def test_the_tools_of_quantisation_find_their_patterns(tmp_path):
    graph = """g (float[1,4,8,8] x) => (float[1,5] y) {
      i = Identity (x)  c = Conv (i, w)  n = BatchNormalization (c, s, b, m, v)  r = Relu (n)
      p = GlobalAveragePool (r)  f = Flatten (p)  d = Dropout (f)  q = MatMul (d, w2)  y = Add (q, b2) }"""
    data = model_of(graph, {**W, **norm(6), "w2": floats(6, 5), "b2": floats(5)})
    found = []
    for name, alias in (("theirs", []), ("ours", ["-m", "treadle.as_onnxruntime"])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "m.onnx").write_bytes(data)
        folders = [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        command = [sys.executable, *alias, "-c", TOOLS, str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.splitlines()[-1])
    assert found[1] == found[0]

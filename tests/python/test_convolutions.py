"""Convolutions of all kinds of sizes beside onnxruntime: channels that fill vectors and channels that do not, axes of size
1, kernels that begin in the padding, rows of any length."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper

SEEDS = range(60)
CHANNELS = [1, 3, 4, 8, 15, 16, 24, 31, 32, 33, 48, 64, 96]


def random_convolution(rng: np.random.Generator, transposed: bool) -> tuple[bytes, dict]:
    rank = int(rng.integers(1, 4))
    groups = int(rng.choice([1, 1, 1, 1, 2, 4]))
    channels, filters = (int(rng.choice(CHANNELS)) * groups for _ in range(2))
    if rng.random() < 0.15:  # depthwise
        groups, filters = channels, channels * int(rng.integers(1, 3))
    kernel = rng.integers(1, 6 if rank < 3 else 4, rank)
    strides, dilations = rng.integers(1, 4, rank), rng.integers(1, 3, rank)
    if rng.random() < 0.5:
        strides, dilations = np.ones(rank, int), np.ones(rank, int)
    sizes = rng.integers(1, (60, 26, 9)[rank - 1], rank)
    sizes[rng.random(rank) < 0.25] = 1
    pads = rng.integers(0, kernel.repeat(2).reshape(rank, 2).T.ravel() * (1 if transposed else 2))
    reach = (kernel - 1) * dilations + 1
    short = reach - (sizes + pads[:rank] + pads[rank:])
    pads[rank:] += np.maximum(short, 0)
    if transposed:
        pads = np.minimum(pads, np.tile(((sizes - 1) * strides + reach - 1) // 2, 2))
    shape = (channels, filters // groups, *kernel) if transposed else (filters, channels // groups, *kernel)
    weights = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32) if rng.random() < 0.5 else None
    batch = int(rng.integers(1, 3))
    node = helper.make_node(
        "ConvTranspose" if transposed else "Conv",
        ["x", "w", "b"] if bias is not None else ["x", "w"],
        ["y"],
        kernel_shape=kernel.tolist(),
        strides=strides.tolist(),
        dilations=dilations.tolist(),
        pads=pads.tolist(),
        group=groups,
    )
    constants = [onnx.numpy_helper.from_array(weights, "w")]
    if bias is not None:
        constants.append(onnx.numpy_helper.from_array(bias, "b"))
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, channels, *sizes.tolist()])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", given, made, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    feeds = {"x": rng.standard_normal((batch, channels, *sizes)).astype(np.float32)}
    return model.SerializeToString(), feeds


def run(model: bytes, feeds: dict, threads: int) -> np.ndarray:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    session = treadle.InferenceSession(model, options)
    session.run(None, feeds)
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("transposed", [False, True], ids=["Conv", "ConvTranspose"])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_size(seed, transposed):
    model, feeds = random_convolution(np.random.default_rng([seed, transposed]), transposed)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    ours = run(model, feeds, threads=1)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(run(model, feeds, threads=2), ours)


SCRIPT = """
import json, sys
import numpy as np, treadle
session = treadle.InferenceSession(sys.stdin.buffer.read())
x = np.arange(2 * 9 * 9, dtype=np.float32).reshape(1, 2, 9, 9)
[y] = session.run(None, {"x": x})
explanation = session.explain({"x": x}, json=True)
print(json.dumps({"methods": explanation["methods"], "text": session.explain({"x": x}), "y": y.tolist()}))
"""


def run_with_method(method):
    w = np.arange(3 * 2 * 3 * 3, dtype=np.float32).reshape(3, 2, 3, 3) / 7
    graph = onnx.parser.parse_graph(
        "g (float[1, 2, 9, 9] x) => (float[1, 3, 9, 9] y) { y = Conv<pads = [1, 1, 1, 1]>(x, w) }"
    )
    graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    env = os.environ | {"TREADLE_CONV": method, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = [sys.executable, "-c", SCRIPT]
    return subprocess.run(script, input=model.SerializeToString(), env=env, capture_output=True, check=False)


def test_the_method_that_the_environment_names_computes_what_it_fits():
    free, named = (json.loads(run_with_method(method).stdout) for method in ("", "implicit-gemm-flat"))
    assert named["methods"] == [{"op": "Conv", "method": "implicit-gemm-flat", "count": 1}]
    assert "1 by implicit-gemm-flat" in named["text"]
    assert [entry["op"] for entry in free["methods"]] == ["Conv"]
    np.testing.assert_allclose(named["y"], free["y"], rtol=1e-6)


def test_a_method_that_there_is_not_is_refused():
    refused = run_with_method("winograd")
    assert refused.returncode != 0
    assert b"TREADLE_CONV names a method of convolution (im2col, " in refused.stderr
    assert b"found 'winograd'" in refused.stderr

"""Weights of few bits are onnxruntime's to the last bit, by its functions and by its tools on treadle."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime.capi._pybind_state as theirs
import pytest
import treadle
from treadle import _few_bits as ours

CASES = 3000 if os.environ.get("TREADLE_TEST_LONG") else 250
COLUMNS = {"quantize_matmul_2bits": 2, "quantize_matmul_4bits": 4, "quantize_matmul_8bits": 8}
ROWS = ("quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits")
BLOCKS = (16, 32, 64, 128, 256)
# Where a case has one of these: scales of 0, zeros of both signs, and numbers that a division takes out of range.
ODD_VALUES = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1e-40, 6e4, -6e4, 1e38, 1e-7])


def weight(rng, rows, columns, dtype):
    found = rng.standard_normal((rows, columns)) * rng.choice([1e-3, 1, 100])
    kind = rng.integers(5)
    if kind == 0:  # few values, many of them equal
        found = rng.integers(-2, 3, (rows, columns)) * 0.5
    elif kind == 1:
        found = np.abs(found)
    elif kind == 2:
        found[rng.random((rows, columns)) < 0.1] = rng.choice(ODD_VALUES)
    elif kind == 3:  # halves, which are rounded away from zero
        found = rng.integers(-16, 15, (rows, columns)) / 2
    with np.errstate(over="ignore"):
        return found.astype(dtype)


def filled(rng, *counts):
    """Arrays to fill that hold something already, and some elements more than are needed."""
    return [rng.integers(0, 256, count + 3).astype(np.uint8) for count in counts]


def both(name, given, arguments):
    """The results of each package's function, and the arrays that it has filled, as bytes."""
    found = []
    for package in (theirs, ours):
        arrays = [array.copy() for array in given]
        packed, *others = arrays
        result = getattr(package, name)(packed, arguments[0], *others, *arguments[1:])
        found.append((result, [array.tobytes() for array in arrays]))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", COLUMNS)
def test_blocks_of_columns(name, dtype):
    rng = np.random.default_rng(COLUMNS[name])
    for _ in range(CASES):
        rows, columns, block = int(rng.integers(1, 300)), int(rng.integers(1, 6)), int(rng.choice(BLOCKS))
        blocks, each = -(-rows // block), 8 // COLUMNS[name]
        packed, zeros = filled(rng, columns * blocks * block // each, columns * -(-blocks // each))
        scales = np.zeros(columns * blocks + 2, dtype)
        arguments = (weight(rng, rows, columns, dtype), block, columns, rows, bool(rng.integers(2)))
        their, our = both(name, (packed, scales, zeros), arguments)
        assert our == their, arguments


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ROWS)
def test_weights_that_stay_in_their_order(name, dtype):
    rng = np.random.default_rng(0)
    for _ in range(CASES):
        rows, columns, block = int(rng.integers(1, 40)), int(rng.integers(1, 300)), int(rng.integers(1, 50))
        blocks = -(-rows // block)
        packed, zeros = filled(rng, (rows * columns + 1) // 2, (blocks * columns + 1) // 2)
        scales = np.zeros(columns * blocks + 2, dtype)
        arguments = (weight(rng, rows, columns, dtype), block, columns, rows, bool(rng.integers(2)))
        their, our = both(name, (packed, scales, zeros), arguments)
        assert our == their, arguments


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("kind", [0, 1])
def test_weights_of_bitsandbytes(kind, dtype):
    rng = np.random.default_rng(kind)
    for _ in range(CASES):
        rows, columns, block = int(rng.integers(1, 60)), int(rng.integers(1, 30)), int(rng.choice(BLOCKS))
        (packed,) = filled(rng, (rows * columns + 1) // 2)
        absmax = np.zeros(-(-rows * columns // block) + 2, dtype)
        arguments = (weight(rng, rows, columns, dtype), block, kind, columns, rows)
        their, our = both("quantize_matmul_bnb4", (packed, absmax), arguments)
        assert our == their, arguments


def test_a_large_weight_is_quantised_a_part_at_a_time(monkeypatch):
    monkeypatch.setattr(ours, "_AT_ONCE", 1 << 10)
    rng = np.random.default_rng(5)
    w = rng.standard_normal((200, 33)).astype(np.float32)
    for name, each in (("quantize_matmul_4bits", 2), ("quantize_matmul_8bits", 1)):
        given = (np.zeros(33 * 256 // each, np.uint8), np.zeros(33 * 4, np.float32), np.zeros(33 * 4 // each, np.uint8))
        their, our = both(name, given, (w, 64, 33, 200, False))
        assert our == their
    given = (np.zeros(33 * 100, np.uint8), np.zeros(33 * 4, np.float32), np.zeros(66, np.uint8))
    assert (lambda pair: pair[0] == pair[1])(both("quantize_qdq_matmul_4bits", given, (w, 64, 33, 200, False)))
    given = (np.zeros(33 * 100, np.uint8), np.zeros(104, np.float32))
    assert (lambda pair: pair[0] == pair[1])(both("quantize_matmul_bnb4", given, (w, 64, 1, 33, 200)))


def test_arrays_that_do_not_fit_are_refused():
    w = np.ones((32, 2), np.float32)
    packed, scales, zeros = np.zeros(32, np.uint8), np.zeros(4, np.float32), np.zeros(2, np.uint8)
    for arguments, error, message in (
        ((packed, w, scales, zeros, 12, 2, 32, True), RuntimeError, "block size of 16, 32, 64, 128, 256, found 12"),
        ((packed[:9], w, scales, zeros, 16, 2, 32, True), ValueError, "at least 32 elements, found 9"),
        ((packed, w, scales[:3], zeros, 16, 2, 32, True), ValueError, "scales to have at least 4"),
        ((packed, w, scales, zeros[:1], 16, 2, 32, False), ValueError, "zero points to have at least 2"),
        ((packed, w[:1], scales, zeros, 16, 2, 32, True), ValueError, "weight of 32 rows and 2 columns"),
        ((packed.view(np.int8), w, scales, zeros, 16, 2, 32, True), TypeError, "array of uint8, found int8"),
        ((np.zeros(64, np.uint8)[::2], w, scales, zeros, 16, 2, 32, True), TypeError, "contiguous"),
        ((packed, w, scales.astype(np.float64), zeros, 16, 2, 32, True), TypeError, "float32, found float64"),
        ((packed, w, scales, zeros, 16, 2.0, 32, True), TypeError, "float"),
    ):
        with pytest.raises(error, match=message):
            ours.quantize_matmul_4bits(*arguments)
    with pytest.raises(RuntimeError, match=r"quant_type 0 \(FP4\) or 1 \(NF4\), found 2"):
        ours.quantize_matmul_bnb4(packed, w, scales, 16, 2, 2, 32)


# Quantises a model by each of onnxruntime's tools, and writes the results.
TOOLS = """
import pathlib, sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

folder = pathlib.Path(sys.argv[1])
def model():
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in ((96, 40), (40, 33))]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["t"], "first"), helper.make_node("MatMul", ["t", "w1"], ["y"], "second")]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", s]) for n, s in (("x", 96), ("y", 33))]
    weights = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

for bits in (2, 4, 8):
    for symmetric in (True, False):
        for format in (QuantFormat.QOperator, QuantFormat.QDQ):
            if format == QuantFormat.QDQ and bits != 4:
                continue
            config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, quant_format=format, bits=bits)
            made = MatMulNBitsQuantizer(model(), algo_config=config)
            made.process()
            onnx.save(made.model.model, folder / f"{bits}_{symmetric}_{format}.onnx")
for kind in (0, 1):
    made = MatMulBnb4Quantizer(model(), kind, 32)
    made.process()
    onnx.save(made.model.model, folder / f"bnb4_{kind}.onnx")
"""


def test_the_tools_make_the_same_models_on_treadle(tmp_path):
    written = []
    for name, alias in (("theirs", []), ("ours", ["-m", "treadle.as_onnxruntime"])):
        folder = tmp_path / name
        folder.mkdir()
        folders = [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        command = [sys.executable, *alias, "-c", TOOLS, str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[1] == written[0] and len(written[0]) == 10
    x = np.random.default_rng(1).standard_normal((3, 96)).astype(np.float32)
    for path in (tmp_path / "ours").iterdir():
        (y,) = treadle.InferenceSession(path).run(None, {"x": x})
        assert y.shape == (3, 33)

"""Convolutions whose filters are symmetric or antisymmetric (src/kernels/fold.h), against numpy in float64."""

import numpy as np
import onnx
import pytest
import treadle
from onnx import helper

RANDOM = np.random.default_rng(19)


def transform(length: int, window: np.ndarray) -> np.ndarray:
    """The filters of a windowed transform: real parts, then imaginary ones, [filters, 1, length]."""
    basis = np.fft.fft(np.eye(length))[: length // 2 + 1]
    return (np.concatenate([basis.real, basis.imag]) * window)[:, None].astype(np.float32)


def cosines(count: int, length: int) -> np.ndarray:
    """The filters of a cosine transform, [count, 1, length]."""
    angle = np.pi / length * np.outer(np.arange(count), np.arange(length) + 0.5)
    return np.cos(angle)[:, None].astype(np.float32)


def linear_phase(count: int, channels: int, length: int) -> np.ndarray:
    """Every third filter is symmetric, every third antisymmetric, the others neither."""
    w = RANDOM.standard_normal((count, channels, length)).astype(np.float32)
    half = length // 2
    w[::3, :, -half:] = w[::3, :, :half][..., ::-1]
    w[1::3, :, -half:] = -w[1::3, :, :half][..., ::-1]
    return w


BANKS = {
    "hann": transform(256, np.hanning(257)[:-1]),
    "hamming": transform(400, np.hamming(400)),
    "padded window": transform(512, np.pad(np.hanning(401)[:-1], 56)),
    "cosine": cosines(40, 200),
    "linear phase": linear_phase(96, 3, 101),
    "neither": RANDOM.standard_normal((64, 1, 64)).astype(np.float32),
}


def model(weights: np.ndarray, **attributes: list[int]) -> bytes:
    tensor = onnx.numpy_helper.from_array(weights, "w")
    bias = onnx.numpy_helper.from_array(np.linspace(-1, 1, len(weights), dtype=np.float32), "b")
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", weights.shape[1], "samples"])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "bank", inputs, outputs, [tensor, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def expected(weights: np.ndarray, x: np.ndarray, stride: int, pad: int, dilation: int) -> np.ndarray:
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad, pad)])
    reach = (weights.shape[2] - 1) * dilation + 1
    frames = np.lib.stride_tricks.sliding_window_view(x, reach, 2)[:, :, ::stride, ::dilation]
    sums = np.einsum("bcpk,fck->bfp", frames, weights.astype(np.float64))
    return np.maximum(sums + np.linspace(-1, 1, len(weights))[:, None], 0)


def session(weights: np.ndarray, tier: str, threads: int = 1, **attributes: list[int]) -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("treadle.tier", tier)
    return treadle.InferenceSession(model(weights, **attributes), options)


@pytest.mark.parametrize("tier", ["reference", "program"])
@pytest.mark.parametrize("bank", BANKS)
def test_against_float64(bank, tier):
    weights = BANKS[bank]
    for stride, pad, dilation, batch in [(1, 50, 1, 1), (64, 0, 1, 5), (16, 60, 2, 2)]:
        run = session(weights, tier, strides=[stride], pads=[pad, pad], dilations=[dilation])
        x = RANDOM.standard_normal((batch, weights.shape[1], 1100)).astype(np.float32)
        want = expected(weights, x, stride, pad, dilation)
        np.testing.assert_allclose(run.run(None, {"x": x})[0], want, atol=3e-6 * np.abs(want).max(), rtol=0)


@pytest.mark.parametrize("bank", BANKS)
def test_rows_depend_neither_on_the_batch_nor_on_threads(bank):
    weights = BANKS[bank]
    x = RANDOM.standard_normal((40, weights.shape[1], 900)).astype(np.float32)
    alone, threads = (session(weights, "program", count, strides=[128]) for count in (1, 2))
    each = np.concatenate([alone.run(None, {"x": row[None]})[0] for row in x])
    np.testing.assert_array_equal(alone.run(None, {"x": x})[0], each)
    np.testing.assert_array_equal(threads.run(None, {"x": x})[0], each)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_comes_through(special):
    weights = BANKS["hann"]
    x = RANDOM.standard_normal((1, 1, 640)).astype(np.float32)
    x[0, 0, 300] = special
    y = session(weights, "program", strides=[128]).run(None, {"x": x})[0]
    assert np.isfinite(y[..., 0]).all()
    assert np.isnan(y[0, 129, 1:3]).all()  # the sine of frequency 0 is 0 everywhere
    if np.isnan(special):
        assert np.isnan(y[..., 1:3]).all()

"""Convolutions of floats beside onnxruntime and the machine's roof, one core.

TREADLE_ISA picks the instruction set; onnxruntime takes the widest that it knows.
"""

from __future__ import annotations

import dataclasses
import math

import engines
import measure
import numpy as np
import roof
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class Case:
    """A convolution of `channels[0]` planes of sizes `plane`, padded so that strides alone make planes smaller."""

    kind: str
    name: str
    channels: tuple[int, int]
    plane: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int = 1
    group: int = 1
    batch: int = 1
    transposed: bool = False

    def pads(self) -> list[int]:
        if self.transposed:
            return [(k - self.stride) // 2 for k in self.kernel] * 2
        return [k // 2 for k in self.kernel] * 2

    def positions(self) -> int:
        """At which the whole kernel is multiplied."""
        if self.transposed:
            return math.prod(self.plane)
        return math.prod(
            (n + 2 * (k // 2) - k) // self.stride + 1 for n, k in zip(self.plane, self.kernel, strict=True)
        )

    def operations(self) -> float:
        weights = self.channels[0] * self.channels[1] // self.group * math.prod(self.kernel)
        return 2.0 * self.batch * weights * self.positions()

    def feed(self) -> np.ndarray:
        shape = (self.batch, self.channels[0], *self.plane)
        return np.random.default_rng(1).standard_normal(shape).astype(np.float32)

    def model(self) -> bytes:
        rng = np.random.default_rng(2)
        outside, inside = self.channels if self.transposed else self.channels[::-1]
        filters = rng.standard_normal((outside, inside // self.group, *self.kernel)).astype(np.float32)
        bias = rng.standard_normal(self.channels[1]).astype(np.float32)
        attributes = {"pads": self.pads(), "strides": [self.stride] * len(self.plane), "group": self.group}
        op = "ConvTranspose" if self.transposed else "Conv"
        nodes = [helper.make_node(op, ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (self.batch, self.channels[0], *self.plane))
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        tensors = [numpy_helper.from_array(filters, "w"), numpy_helper.from_array(bias, "b")]
        graph = helper.make_graph(nodes, "convolution", [x], [y], tensors)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(made.SerializeToString())


def square(kind: str, channels: tuple[int, int], size: int, kernel: int = 3, stride: int = 1, group: int = 1) -> Case:
    step = f" stride {stride}" if stride > 1 else ""
    many = f"{channels[0]}" if channels[0] == channels[1] else f"{channels[0]}-{channels[1]}"
    name = f"{kernel}x{kernel}{step} {many} @{size}"
    return Case(kind, name, channels, (size, size), (kernel, kernel), stride, group)


def plane(kind: str, name: str, channels: tuple[int, int], sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Case:
    return Case(kind, name, channels, sizes, kernel)


def transposed(channels: tuple[int, int], size: int, kernel: int, stride: int) -> Case:
    name = f"{kernel}x{kernel} stride {stride} {channels[0]}-{channels[1]} @{size}"
    return Case("ConvTranspose", name, channels, (size, size), (kernel, kernel), stride, transposed=True)


CASES = (
    square("ResNet", (64, 64), 56),
    square("ResNet", (64, 128), 56, stride=2),
    square("ResNet", (128, 128), 28),
    square("ResNet", (256, 256), 14),
    square("ResNet", (512, 512), 7),
    square("ResNet", (3, 64), 224, 7, 2),
    square("ResNet", (64, 256), 56, 1),
    square("ResNet", (256, 64), 56, 1),
    square("ResNet", (1024, 256), 14, 1),
    square("ResNet", (512, 2048), 7, 1),
    square("ResNet", (256, 512), 56, 1, 2),
    square("ResNet", (16, 16), 32),
    square("MobileNet", (3, 32), 224, 3, 2),
    square("MobileNet", (32, 32), 112, 3, 1, 32),
    square("MobileNet", (96, 96), 112, 3, 2, 96),
    square("MobileNet", (576, 576), 14, 3, 1, 576),
    square("MobileNet", (960, 960), 7, 3, 1, 960),
    square("MobileNet", (120, 120), 28, 5, 1, 120),
    square("MobileNet", (96, 24), 56, 1),
    square("MobileNet", (32, 16), 112, 1),
    square("MobileNet", (576, 96), 14, 1),
    square("MobileNet", (160, 960), 7, 1),
    square("MobileNet", (320, 1280), 7, 1),
    square("U-Net", (96, 32), 64),
    square("U-Net", (32, 32), 64),
    square("U-Net", (64, 64), 32),
    square("U-Net", (64, 64), 128),
    square("U-Net", (256, 256), 20),
    square("super-resolution", (1, 64), 224, 5),
    square("super-resolution", (64, 64), 224),
    square("super-resolution", (64, 32), 224),
    square("super-resolution", (32, 9), 224),
    square("super-resolution", (48, 48), 100),
    plane("rows", "3x3 256 @8x25", (256, 256), (8, 25), (3, 3)),
    plane("rows", "3x3 64-128 @16x50", (64, 128), (16, 50), (3, 3)),
    plane("rows", "3x3 512 @4x26", (512, 512), (4, 26), (3, 3)),
    plane("rows", "3x3 96 @13x37", (96, 96), (13, 37), (3, 3)),
    plane("rows", "3x3 64 @40x10", (64, 64), (40, 10), (3, 3)),
    plane("size 1", "5x1 256-512 @128x1", (256, 512), (128, 1), (5, 1)),
    plane("size 1", "3x1 128 @200x1", (128, 128), (200, 1), (3, 1)),
    plane("size 1", "1x3 128 @1x200", (128, 128), (1, 200), (1, 3)),
    plane("size 1", "3x1x1 64 @100x1x1", (64, 64), (100, 1, 1), (3, 1, 1)),
    plane("size 1", "3x3 128 @64x1", (128, 128), (64, 1), (3, 3)),
    plane("1-D", "5 256 @100", (256, 256), (100,), (5,)),
    plane("1-D", "3 64 @2000", (64, 64), (2000,), (3,)),
    plane("1-D", "3 128 @32", (128, 128), (32,), (3,)),
    plane("1-D", "7 512 @50", (512, 512), (50,), (7,)),
    transposed((32, 16), 64, 2, 2),
    transposed((64, 32), 32, 4, 2),
    transposed((256, 128), 14, 2, 2),
    transposed((128, 64), 28, 4, 2),
    transposed((64, 64), 32, 3, 1),
    plane("3-D", "3x3x3 32 @16x16x16", (32, 32), (16, 16, 16), (3, 3, 3)),
)


def measure_case(case: Case, options) -> float:
    """Prints a row; how many times as fast as onnxruntime."""
    feeds = {"x": case.feed()}
    runs = [engines.bind(opened(case.model()), feeds) for opened in (engines.open_ours, engines.open_theirs)]
    [ours], [theirs] = (run() for run in runs)
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * float(np.abs(theirs).max()), err_msg=case.name)
    taken = [min(times) for times in measure.in_turns(runs, options.rounds, options.seconds or 0.005)]
    rates = [case.operations() / seconds for seconds in taken]
    ratio, share = rates[0] / rates[1], rates[0] / roof.multiply_add_rate()
    row = [case.kind, case.name, f"{rates[1] / 1e9:.0f}", f"{rates[0] / 1e9:.0f}", f"{ratio:.2f}", f"{share:.0%}"]
    print(f"| {' | '.join(row)} |", flush=True)
    return ratio


def bench_convolutions(options) -> None:
    print(f"\nroof: {roof.multiply_add_rate() / 1e9:.0f} billions of operations a second")
    print("\n| of | convolution | onnxruntime, 1e9/s | treadle, 1e9/s | ratio | of the roof |")
    print("| --- | --- | --- | --- | --- | --- |")
    cases = [case for case in CASES if options.match in f"{case.kind} {case.name}"]
    ratios = [measure_case(case, options) for case in cases]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean {mean:.2f}, least {min(ratios):.2f} ({cases[ratios.index(min(ratios))].name})")

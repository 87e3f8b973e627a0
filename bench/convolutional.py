"""Convolutional networks of real sizes with random weights, as exporters write them: normalisation is in the weights.

ResNet-50, MobileNetV2 and a U-Net for images, and an OCR network of convolutions and two bidirectional LSTMs.
"""

from __future__ import annotations

import functools

import numpy as np
from transformers import Builder, F, numbers


class Network(Builder):
    """Convolutions, beside what the builder of transformers has."""

    def weights(self, *shape: int) -> str:
        """Scaled so that results stay of size 1 behind a rectifier."""
        return self.constant((self.rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(F))

    def bias(self, channels: int) -> str:
        return self.constant((self.rng.standard_normal(channels) * 0.1).astype(F))

    def conv(self, x: str, channels: tuple[int, int], kernel: int, stride: int = 1, group: int = 1) -> str:
        filters = self.weights(channels[1], channels[0] // group, kernel, kernel)
        attributes = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
        return self("Conv", x, filters, self.bias(channels[1]), **attributes)

    def rectified(self, x: str, channels: tuple[int, int], kernel: int, stride: int = 1) -> str:
        return self("Relu", self.conv(x, channels, kernel, stride))

    def clipped(self, x: str) -> str:
        return self("Clip", x, self.constant(np.array(0, F)), self.constant(np.array(6, F)))

    def twice(self, x: str, inside: int, outside: int) -> str:
        return self.rectified(self.rectified(x, (inside, outside), 3), (outside, outside), 3)

    def pooled(self, x: str, kernel: tuple[int, int], stride: tuple[int, int], pad: int = 0) -> str:
        return self("MaxPool", x, kernel_shape=list(kernel), strides=list(stride), pads=[pad] * 4)

    def classified(self, x: str, channels: int) -> str:
        flat = self("Flatten", self("GlobalAveragePool", x))
        return self("Gemm", flat, self.random(channels, 1000), self.bias(1000))


def resnet50():
    """Strides are in the 3x3 convolutions."""
    b = Network()
    x = b.pooled(b.rectified("x", (3, 64), 7, 2), (3, 3), (2, 2), 1)
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            inner = b.rectified(b.rectified(x, (inside, width), 1), (width, width), 3, step)
            branch = b.conv(x, (inside, 4 * width), 1, step) if block == 0 else x
            x = b("Relu", b("Add", b.conv(inner, (width, 4 * width), 1), branch))
            inside = 4 * width
    return b.finish({"x": numbers(1, 3, 224, 224)}, b.classified(x, inside))


def mobilenet_v2():
    b = Network()
    x = b.clipped(b.conv("x", (3, 32), 3, 2))
    inside = 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, outside, blocks, stride in stages:
        for block in range(blocks):
            wide, step = inside * expansion, stride if block == 0 else 1
            inner = b.clipped(b.conv(x, (inside, wide), 1)) if expansion > 1 else x
            inner = b.clipped(b.conv(inner, (wide, wide), 3, step, wide))
            inner = b.conv(inner, (wide, outside), 1)
            x = b("Add", x, inner) if step == 1 and inside == outside else inner
            inside = outside
    return b.finish({"x": numbers(1, 3, 224, 224)}, b.classified(b.clipped(b.conv(x, (inside, 1280), 1)), 1280))


def unet(size: int, width: int):
    """Four times down and up."""
    b = Network()
    x, skipped = b.twice("x", 3, width), []
    for level in range(4):
        skipped.append(x)
        x = b.twice(b.pooled(x, (2, 2), (2, 2)), width << level, width << (level + 1))
    for level in reversed(range(4)):
        channels = width << level
        filters = b.weights(2 * channels, channels, 2, 2)
        up = b("ConvTranspose", x, filters, b.bias(channels), strides=[2, 2])
        x = b.twice(b("Concat", skipped[level], up, axis=1), 2 * channels, channels)
    return b.finish({"x": numbers(1, 3, size, size)}, b("Sigmoid", b.conv(x, (width, 1), 1)))


def crnn(width: int):
    """Lines of 32 rows."""
    b = Network()
    x = b.pooled(b.rectified("x", (1, 64), 3), (2, 2), (2, 2))
    x = b.pooled(b.rectified(x, (64, 128), 3), (2, 2), (2, 2))
    x = b.pooled(b.twice(x, 128, 256), (2, 1), (2, 1))
    x = b.pooled(b.twice(x, 256, 512), (2, 1), (2, 1))
    x = b("Relu", b("Conv", x, b.weights(512, 512, 2, 2), b.bias(512)))
    x = b("Transpose", b("Squeeze", x, b.constant(np.array([2]))), perm=[2, 0, 1])
    hidden = 256
    for inside in (512, 2 * hidden):
        weights = [b.constant((b.rng.standard_normal(shape) / 16).astype(F))
                   for shape in ((2, 4 * hidden, inside), (2, 4 * hidden, hidden), (2, 8 * hidden))]  # fmt: skip
        both = b("LSTM", x, *weights, hidden_size=hidden, direction="bidirectional")
        flat = b.constant(np.array([0, 0, 2 * hidden], np.int64))
        x = b("Reshape", b("Transpose", both, perm=[0, 2, 1, 3]), flat)
    return b.finish({"x": numbers(1, 1, 32, width)}, b("LogSoftmax", b.linear(x, 2 * hidden, 97), axis=-1))


NETWORKS = {
    "ResNet-50, 224 x 224": resnet50,
    "MobileNetV2, 224 x 224": mobilenet_v2,
    "U-Net, 32 to 512 channels, 256 x 256": functools.partial(unet, 256, 32),
    "U-Net, 16 to 256 channels, 128 x 128": functools.partial(unet, 128, 16),
    "OCR, 32 x 320": functools.partial(crnn, 320),
    "OCR, 32 x 100": functools.partial(crnn, 100),
}

"""Transformers of real sizes with random weights: encoders of BERT-base width, encoder and decoder step of Whisper-tiny.

Nodes are those that exporters write: attention as products, softmax and transpositions.
"""

from __future__ import annotations

import functools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F = np.float32


class Builder:
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.nodes: list = []
        self.constants: list = []
        self.count = 0
        self.mask: str | None = None  # what is added to all scores

    def constant(self, value: np.ndarray) -> str:
        self.count += 1
        self.constants.append(numpy_helper.from_array(value, f"c{self.count}"))
        return f"c{self.count}"

    def __call__(self, op: str, *inputs: str, **attributes) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def random(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(F))

    def linear(self, x: str, inside: int, outside: int) -> str:
        return self("Add", self("MatMul", x, self.random(inside, outside)), self.random(outside))

    def normalized(self, x: str, width: int) -> str:
        ones, zeros = self.constant(np.ones(width, F)), self.constant(np.zeros(width, F))
        return self("LayerNormalization", x, ones, zeros, axis=-1)

    def heads(self, x: str, heads: int, width: int, perm: list[int]) -> str:
        shape = self.constant(np.array([0, 0, heads, width // heads], np.int64))
        return self("Transpose", self("Reshape", x, shape), perm=perm)

    def attention(self, x: str, heads: int, width: int, past: tuple[str, str] | None = None) -> str:
        """`past`: keys and values of earlier tokens, split into heads and, the keys, transposed."""
        query = self.heads(self.linear(x, width, width), heads, width, [0, 2, 1, 3])
        key = self.heads(self.linear(x, width, width), heads, width, [0, 2, 3, 1])
        value = self.heads(self.linear(x, width, width), heads, width, [0, 2, 1, 3])
        if past:
            key = self("Concat", past[0], key, axis=3)
            value = self("Concat", past[1], value, axis=2)
        return self.attend(query, key, value, heads, width)

    def attend(self, query: str, key: str, value: str, heads: int, width: int) -> str:
        scale = self.constant(np.array(1 / np.sqrt(width / heads), F))
        scores = self("Mul", self("MatMul", query, key), scale)
        weights = self("Softmax", self("Add", scores, self.mask) if self.mask else scores, axis=-1)
        joined = self("Transpose", self("MatMul", weights, value), perm=[0, 2, 1, 3])
        flat = self("Reshape", joined, self.constant(np.array([0, 0, width], np.int64)))
        return self.linear(flat, width, width)

    def feed_forward(self, x: str, width: int) -> str:
        inner = self.linear(x, width, 4 * width)
        half = self("Mul", inner, self.constant(np.array(0.5, F)))
        erf = self("Erf", self("Mul", inner, self.constant(np.array(np.sqrt(0.5), F))))
        return self.linear(self("Mul", half, self("Add", erf, self.constant(np.array(1, F)))), 4 * width, width)

    def encoder(self, x: str, layers: int, heads: int, width: int) -> str:
        for _ in range(layers):
            x = self("Add", x, self.attention(self.normalized(x, width), heads, width))
            x = self("Add", x, self.feed_forward(self.normalized(x, width), width))
        return x

    def finish(self, feeds: dict[str, np.ndarray], output: str) -> tuple[bytes, dict[str, np.ndarray]]:
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in feeds.items()]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "transformer", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return model.SerializeToString(), feeds


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(F)


def bert(batch: int, tokens: int, masked: bool = False):
    """6 layers of BERT-base width. `masked`: the last eighth of the tokens is padding."""
    b, feeds = Builder(), {"x": numbers(batch, tokens, 768)}
    if masked:
        b.mask = "mask"
        feeds["mask"] = np.where(np.arange(tokens) < tokens * 7 // 8, 0, np.finfo(F).min).astype(F)[None, None, None]
    return b.finish(feeds, b.encoder("x", 6, 12, 768))


WHISPER = {"layers": 4, "heads": 6, "width": 384}
WHISPER_FRAMES, WHISPER_TOKENS = 1500, 51865


def whisper_encoder():
    """What stands behind the convolutions."""
    b = Builder()
    return b.finish({"x": numbers(1, WHISPER_FRAMES, WHISPER["width"])}, b.encoder("x", **WHISPER))


def whisper_step(past: int):
    """One token behind `past` others: attention to them, attention to the encoder's keys and values, the logits."""
    b, heads, width = Builder(), WHISPER["heads"], WHISPER["width"]
    feeds, x = {"x": numbers(1, 1, width)}, "x"
    for layer in range(WHISPER["layers"]):
        names = [f"{kind}{layer}" for kind in ("key", "value", "audio_key", "audio_value")]
        size = width // heads
        shapes = [(size, past), (past, size), (size, WHISPER_FRAMES), (WHISPER_FRAMES, size)]
        feeds |= {n: numbers(1, heads, *shape) for n, shape in zip(names, shapes, strict=True)}
        normal = b.normalized(x, width)
        x = b("Add", x, b.attention(normal, heads, width, past=(names[0], names[1])))
        query = b.heads(b.linear(b.normalized(x, width), width, width), heads, width, [0, 2, 1, 3])
        x = b("Add", x, b.attend(query, names[2], names[3], heads, width))
        x = b("Add", x, b.feed_forward(b.normalized(x, width), width))
    return b.finish(feeds, b("MatMul", b.normalized(x, width), b.random(width, WHISPER_TOKENS)))


NETWORKS = {
    "BERT-base, 6 layers, 16 tokens": functools.partial(bert, 1, 16),
    "BERT-base, 6 layers, 64 tokens": functools.partial(bert, 1, 64),
    "BERT-base, 6 layers, 128 tokens": functools.partial(bert, 1, 128),
    "BERT-base, 6 layers, 4 x 64 tokens": functools.partial(bert, 4, 64),
    "BERT-base, 6 layers, 384 tokens": functools.partial(bert, 1, 384),
    "BERT-base, 6 layers, 384 tokens, masked": functools.partial(bert, 1, 384, True),
    "Whisper-tiny, encoder": whisper_encoder,
    "Whisper-tiny, decoder, 64th token": functools.partial(whisper_step, 63),
}

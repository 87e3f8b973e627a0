"""A language model of two layers with random weights, in the folder that onnxruntime-genai opens."""

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, KEY_HEADS, HEAD, LAYERS, CONTEXT = 64, 32, 4, 2, 16, 2, 64
FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


class Graph:
    def __init__(self):
        self.random = np.random.default_rng(5)
        self.nodes, self.weights = [], []

    def constant(self, value) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape) -> str:
        return self.constant((self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def add(self, operator: str, *inputs: str, outputs=None, domain: str = "", **attributes) -> str:
        outputs = outputs or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def linear(self, x: str, width: int, wanted: int, **named) -> str:
        return self.add("MatMul", x, self.weight(width, wanted), **named)

    def norm(self, x: str) -> str:
        scale = self.constant(np.ones(HIDDEN, np.float32))
        return self.add("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-5, stash_type=1)

    def lengths(self) -> tuple[str, str]:
        """The form in which GroupQueryAttention takes a mask: the last position of each row, and the longest row."""
        one = self.constant(np.array([1], np.int64))
        count = self.add("ReduceSum", "attention_mask", one, keepdims=1)
        last = self.add("Cast", self.add("Sub", count, one), to=INT32)
        longest = self.add("Gather", self.add("Shape", "attention_mask"), self.constant(np.int64(1)))
        return last, self.add("Cast", longest, to=INT32)

    def layer(self, x: str, index: int, lengths: tuple[str, str], rotations: tuple[str, str]) -> str:
        y = self.norm(x)
        projected = [self.linear(y, HIDDEN, heads * HEAD) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
        caches = [f"past_key_values.{index}.{name}" for name in ("key", "value")]
        y = self.add(
            "GroupQueryAttention",
            *projected,
            *caches,
            *lengths,
            *rotations,
            outputs=[f"attention.{index}", f"present.{index}.key", f"present.{index}.value"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=KEY_HEADS,
            do_rotary=1,
        )
        x = self.add("Add", x, self.linear(y, HEADS * HEAD, HIDDEN))
        y = self.norm(x)
        gate = self.linear(y, HIDDEN, 2 * HIDDEN)
        gate = self.add("Mul", gate, self.add("Sigmoid", gate))
        y = self.add("Mul", gate, self.linear(y, HIDDEN, 2 * HIDDEN))
        return self.add("Add", x, self.linear(y, 2 * HIDDEN, HIDDEN))


def cached(name: str, length: str):
    return {
        f"{name}.{i}.{part}": (FLOAT, ["batch", KEY_HEADS, length, HEAD])
        for i in range(LAYERS)
        for part in ("key", "value")
    }


def values(types):
    return [helper.make_tensor_value_info(name, *value) for name, value in types.items()]


def write_model(path: pathlib.Path) -> None:
    g = Graph()
    x = g.add("Gather", g.weight(VOCABULARY, HIDDEN), "input_ids")
    angles = np.outer(np.arange(CONTEXT), 1e4 ** (-np.arange(HEAD // 2) / (HEAD // 2)))
    rotations = tuple(g.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
    lengths = g.lengths()
    for i in range(LAYERS):
        x = g.layer(x, i, lengths, rotations)
    g.linear(g.norm(x), HIDDEN, VOCABULARY, outputs=["logits"])
    inputs = {
        "input_ids": (INT64, ["batch", "sequence"]),
        "attention_mask": (INT64, ["batch", "total"]),
        **cached("past_key_values", "past"),
    }
    outputs = {"logits": (FLOAT, ["batch", "sequence", VOCABULARY]), **cached("present", "total")}
    graph = helper.make_graph(g.nodes, "llama", values(inputs), values(outputs), g.weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def write(folder: pathlib.Path) -> None:
    """model.onnx, and the configuration that names its inputs and outputs."""
    write_model(folder / "model.onnx")
    names = {f"{kind}_names": f"past_key_values.%d.{kind.removeprefix('past_')}" for kind in ("past_key", "past_value")}
    presents = {f"present_{kind}_names": f"present.%d.{kind}" for kind in ("key", "value")}
    decoder = {
        "session_options": {"provider_options": []},
        "filename": "model.onnx",
        "head_size": HEAD,
        "hidden_size": HIDDEN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "num_hidden_layers": LAYERS,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **names},
        "outputs": {"logits": "logits", **presents},
    }
    model = {
        "type": "llama",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "context_length": CONTEXT,
        "vocab_size": VOCABULARY,
        "decoder": decoder,
    }
    search = {"max_length": CONTEXT, "min_length": 0, "past_present_share_buffer": False}
    (folder / "genai_config.json").write_text(json.dumps({"model": model, "search": search}))

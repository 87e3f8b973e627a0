"""Small models that search for tokens: decoders and encoders with random weights as the searches of com.microsoft take
them, of plain operators."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

HIDDEN_BY_MASK = np.float32(-1e4)


class Body:
    """Collects the nodes of a body; each call appends one and gives the name of its result."""

    def __init__(self, seed: int, heads: int, head_size: int):
        self.heads, self.head_size, self.width = heads, head_size, heads * head_size
        self.nodes: list = []
        self.constants: list = []
        self.random = np.random.default_rng(seed)

    def name(self) -> str:
        return f"v{len(self.nodes) + len(self.constants)}"

    def constant(self, value) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), self.name()))
        return self.constants[-1].name

    def ints(self, *values: int) -> str:
        return self.constant(np.int64(values))

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def weights(self, *shape: int, scale: float | None = None) -> str:
        scale = shape[0] ** -0.5 if scale is None else scale
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def __call__(self, op: str, *inputs: str, result: str | None = None, **attributes) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [result or self.name()], **attributes))
        return self.nodes[-1].output[0]

    def split(self, x: str, parts: int) -> list[str]:
        names = [f"{self.name()}_{i}" for i in range(parts)]
        self.nodes.append(helper.make_node("Split", [x], names, axis=-1, num_outputs=parts))
        return names

    # --- parts of transformers

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        return self("Add", self("MatMul", x, self.weights(inputs, outputs)), self.weights(outputs, scale=0.1))

    def norm(self, x: str) -> str:
        return self("LayerNormalization", x, self.weights(self.width, scale=1.0))

    def by_heads(self, x: str) -> str:
        return self("Transpose", self("Reshape", x, self.ints(0, 0, self.heads, self.head_size)), perm=[0, 2, 1, 3])

    def attend(self, q: str, k: str, v: str, bias: str | None) -> str:
        scores = self(
            "Mul", self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2])), self.number(self.head_size**-0.5)
        )
        weights = self("Softmax", self("Add", scores, bias) if bias else scores, axis=-1)
        return self(
            "Reshape", self("Transpose", self("MatMul", weights, v), perm=[0, 2, 1, 3]), self.ints(0, 0, self.width)
        )

    def feed_forward(self, x: str) -> str:
        return self(
            "Add",
            x,
            self.linear(
                self("Tanh", self.linear(self.norm(x), self.width, 2 * self.width)), 2 * self.width, self.width
            ),
        )

    def bias_of(self, seen: str) -> str:
        return self("Where", seen, self.number(0), self.constant(HIDDEN_BY_MASK))

    def positions(self, of: str, axis: int) -> str:
        size = self("Squeeze", self("Shape", of, start=axis, end=axis + 1))
        return self("Range", self.constant(np.int64(0)), size, self.constant(np.int64(1)))

    def graph(self, name: str, inputs: dict, outputs: dict):
        def values(described: dict) -> list:
            return [helper.make_tensor_value_info(n, *value) for n, value in described.items()]

        return helper.make_graph(self.nodes, name, values(inputs), values(outputs), self.constants)


INT32, FLOAT = TensorProto.INT32, TensorProto.FLOAT


def decoder_only(seed: int, vocabulary: int, layers: int = 2, heads: int = 2, head_size: int = 8, longest: int = 128):
    """As GPT-2: tokens, positions, mask and pasts to logits and presents."""
    b = Body(seed, heads, head_size)
    x = b(
        "Add",
        b("Gather", b.weights(vocabulary, b.width, scale=1.0), "input_ids"),
        b("Gather", b.weights(longest, b.width, scale=0.5), "position_ids"),
    )
    keys, queries = b.positions("attention_mask", 1), b.positions("input_ids", 1)
    before = b("Sub", b("Shape", "attention_mask", start=1, end=2), b("Shape", "input_ids", start=1, end=2))
    last = b("Unsqueeze", b("Add", queries, before), b.ints(1))
    causal = b("LessOrEqual", b("Unsqueeze", keys, b.ints(0)), last)
    shown = b("Unsqueeze", b("Cast", "attention_mask", to=TensorProto.BOOL), b.ints(1, 2))
    bias = b.bias_of(b("And", b("Unsqueeze", causal, b.ints(0, 1)), shown))
    key_or_value = [b.constant(np.int64(i)) for i in range(2)]
    for layer in range(layers):
        q, *made = (b.by_heads(part) for part in b.split(b.linear(b.norm(x), b.width, 3 * b.width), 3))
        k, v = (
            b("Concat", b("Gather", f"past_{layer}", i), new, axis=2) for i, new in zip(key_or_value, made, strict=True)
        )
        b("Concat", b("Unsqueeze", k, b.ints(0)), b("Unsqueeze", v, b.ints(0)), axis=0, result=f"present_{layer}")
        x = b("Add", x, b.linear(b.attend(q, k, v, bias), b.width, b.width))
        x = b.feed_forward(x)
    b("MatMul", b.norm(x), b.weights(b.width, vocabulary, scale=0.5), result="logits")
    past, present = ((FLOAT, [2, "b", b.heads, size, b.head_size]) for size in ("p", "t"))
    inputs = {
        "input_ids": (INT32, ["b", "s"]),
        "position_ids": (INT32, ["b", "s"]),
        "attention_mask": (INT32, ["b", "t"]),
    }
    return b.graph(
        "decoder",
        inputs | {f"past_{i}": past for i in range(layers)},
        {"logits": (FLOAT, ["b", "s", vocabulary])} | {f"present_{i}": present for i in range(layers)},
    )


def decoder_layers(
    b: Body, x: str, layers: int, pasts: list[str] | None, cross: list[str], biases: list[str | None]
) -> list[str]:
    """Appends `layers` layers; gives the names of their keys and values."""
    made = []
    for i in range(layers):
        h = b.norm(x)
        q, k, v = (b.by_heads(b.linear(h, b.width, b.width)) for _ in range(3))
        if pasts:
            k, v = b("Concat", pasts[2 * i], k, axis=2), b("Concat", pasts[2 * i + 1], v, axis=2)
        made += [b("Identity", part, result=f"present_{kind}_self_{i}") for kind, part in (("key", k), ("value", v))]
        x = b("Add", x, b.linear(b.attend(q, k, v, biases[0]), b.width, b.width))
        q = b.by_heads(b.linear(b.norm(x), b.width, b.width))
        x = b("Add", x, b.linear(b.attend(q, cross[2 * i], cross[2 * i + 1], biases[1]), b.width, b.width))
        x = b.feed_forward(x)
    return [x, *made]


def pairs(layers: int, name: str) -> list[str]:
    return [name.format(kind, i) for i in range(layers) for kind in ("key", "value")]


def encoder_and_decoder(
    seed: int,
    vocabulary: int,
    layers: int = 2,
    *,
    encoder_decodes: bool = True,
    takes_hidden: bool = False,
    whole_sequence: bool = False,
    features: int = 0,
    heads: int = 2,
    head_size: int = 8,
):
    """As T5; with `features` of sounds in place of tokens as Whisper."""
    e = Body(seed, heads, head_size)
    if features:
        x = e.linear(e("Transpose", "encoder_input_ids", perm=[0, 2, 1]), features, e.width)
    else:
        x = e("Gather", e.weights(vocabulary, e.width, scale=1.0), "encoder_input_ids")

    def source_bias(b: Body) -> str | None:
        if features:
            return None
        return b.bias_of(b("Unsqueeze", b("Cast", "encoder_attention_mask", to=TensorProto.BOOL), b.ints(1, 2)))

    bias = source_bias(e)
    h = e.norm(x)
    q, k, v = (e.by_heads(e.linear(h, e.width, e.width)) for _ in range(3))
    hidden = e("Add", x, e.attend(q, k, v, bias), result="encoder_hidden_states")
    cross = [
        e("Identity", e.by_heads(e.linear(hidden, e.width, e.width)), result=name)
        for name in pairs(layers, "present_{}_cross_{}")
    ]

    def decode(b: Body, ids: str, pasts: list[str] | None, crossed: list[str], biases: list[str | None]) -> list[str]:
        b.random = np.random.default_rng(seed + 1)  # the decoder's weights, also in the encoder
        x = b("Gather", b.weights(vocabulary, b.width, scale=1.0), ids)
        x, *made = decoder_layers(b, x, layers, pasts, crossed, biases)
        b("MatMul", b.norm(x), b.weights(b.width, vocabulary, scale=0.5), result="logits")
        return made

    def kept(size: str) -> tuple:
        return FLOAT, ["b", e.heads, size, e.head_size]

    sources = {"encoder_input_ids": (FLOAT, ["b", features, "f"]) if features else (INT32, ["b", "f"])}
    mask = {} if features else {"encoder_attention_mask": (INT32, ["b", "f"])}
    starts, first = {}, {}
    if encoder_decodes:
        starts = {"decoder_input_ids": (INT32, ["b", "s"])}
        order = e.positions("decoder_input_ids", 1)
        causal = e("LessOrEqual", e("Unsqueeze", order, e.ints(0)), e("Unsqueeze", order, e.ints(1)))
        made = decode(e, "decoder_input_ids", None, cross, [e.bias_of(causal), bias])
        first = {"logits": (FLOAT, ["b", "s", vocabulary]), "encoder_hidden_states": (FLOAT, ["b", "f", e.width])}
        first |= {name: kept("s") for name in made}
    encoder = e.graph("encoder", sources | mask | starts, first | {name: kept("f") for name in cross})

    d = Body(seed, heads, head_size)
    pasts, crossed = pairs(layers, "past_{}_self_{}"), pairs(layers, "past_{}_cross_{}")
    ids = "input_ids"
    if whole_sequence:
        ids = d("Slice", ids, d.ints(-1), d.ints(2**31), d.ints(1))
    made = decode(d, ids, pasts, crossed, [None, source_bias(d)])
    inputs = {"input_ids": (INT32, ["b", "s" if whole_sequence else 1])} | mask
    if takes_hidden:
        inputs["encoder_hidden_states"] = (FLOAT, ["b", "f", d.width])
    inputs |= {name: kept("p") for name in pasts} | {name: kept("f") for name in crossed}
    decoder = d.graph("decoder", inputs, {"logits": (FLOAT, ["b", 1, vocabulary])} | {name: kept("t") for name in made})
    return {"encoder": encoder, "decoder": decoder}


BEGIN = ["input_ids", "max_length", "min_length"]
MASKS = ["repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask"]
BEAMS = [*BEGIN, "num_beams", "num_return_sequences", "length_penalty", *MASKS, "decoder_input_ids", "logits_processor"]
INPUTS = {
    "GreedySearch": [*BEGIN, *MASKS],
    "Sampling": [*BEGIN, *MASKS, "presence_mask", "seed"],
    "BeamSearch": BEAMS,
    "WhisperBeamSearch": [*BEAMS, "cross_qk_layer_head", "extra_decoding_ids", "temperature"],
}


def search(op: str, bodies: dict, feeds: dict, attributes: dict, outputs: int, constant: bool) -> tuple[bytes, dict]:
    """The model and its feeds. Numbers among `feeds` become one element each, or constants of the model if `constant`."""
    inputs, constants, fed = [], [], {}
    for name in [n for n in INPUTS[op] if n in feeds]:
        value = feeds[name]
        is_number = isinstance(value, int | float)
        array = np.array([value], np.float32 if isinstance(value, float) else np.int32) if is_number else value
        if is_number and constant:
            constants.append(numpy_helper.from_array(array, name))
            continue
        fed[name] = array
        dims = [1] if is_number else [f"{name}_{axis}" for axis in range(array.ndim)]
        inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims))
    names = [name if name in feeds else "" for name in INPUTS[op]]
    results = {"sequences": INT32, "sequences_scores": FLOAT, "scores": FLOAT}
    results = dict(list(results.items())[:outputs])
    node = helper.make_node(op, names, list(results), "search", domain="com.microsoft", **bodies, **attributes)
    made = [helper.make_tensor_value_info(name, element, None) for name, element in results.items()]
    graph = helper.make_graph([node], "g", inputs, made, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), fed

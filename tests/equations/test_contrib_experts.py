"""Mixtures of experts, gates, streams, tables of few bits and rotations of com.microsoft, against onnxruntime or numpy."""

import ml_dtypes
import numpy as np
import pytest
from contrib import Node, by_onnxruntime, by_treadle, check
from one_node import treadle
from test_contrib_norms import BFLOAT, FLOAT, HALF, draw, maybe, pick, sigmoid, sizes, wide

INT32, INT64, UINT8 = (np.dtype(t) for t in (np.int32, np.int64, np.uint8))


# ---- Experts


def probabilities(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def swiglu(g, linear, alpha, beta, limit):
    g, linear = np.minimum(g, limit), np.clip(linear, -limit, limit)
    return g * sigmoid(alpha * g) * (linear + beta)


def expert(layer, e):
    """Expert e's result for a vector in one layer: weights [experts, rows, columns], bias [experts, rows] or None."""
    weights, bias = layer
    return lambda v: weights[e] @ v + (0 if bias is None else bias[e])


def by_numpy(x, scores, layers, attributes, weights=None):
    """The expected output, of float64 layers: weights [experts, rows, columns] and bias [experts, rows] or None.

    The third layer may be None.
    """
    rows, k = x.reshape(-1, x.shape[-1]), attributes["k"]
    odds = probabilities(scores)
    y = np.zeros_like(rows)
    for t, row in enumerate(rows):
        chosen = np.argsort(-odds[t], kind="stable")[:k]
        shares = (odds if weights is None else weights)[t][chosen]
        if attributes["normalize_routing_weights"]:
            shares = shares / shares.sum()
        for e, share in zip(chosen, shares, strict=True):
            first, second, third = (None if layer is None else expert(layer, e) for layer in layers)
            h = first(row)
            kind = attributes["activation_type"]
            if kind == "swiglu":
                more = [attributes[n] for n in ("activation_alpha", "activation_beta", "swiglu_limit")]
                fusion = attributes["swiglu_fusion"]
                gate, linear = (h, third(row)) if fusion == 0 else (h[::2], h[1::2]) if fusion == 1 else np.split(h, 2)
                h = swiglu(gate, linear, *more)
            else:
                gelu = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
                h = {"relu": np.maximum(h, 0), "silu": h * sigmoid(h), "gelu": gelu, "identity": h}[kind]
                h = h if third is None else h * third(row)
            y[t] += share * second(h)
    return y.reshape(x.shape)


def routing(rng, fusion=1):
    attributes = {"k": int(rng.integers(1, 3)), "normalize_routing_weights": int(rng.integers(2))}
    attributes["activation_type"] = pick(rng, "relu", "silu", "gelu", "identity", "swiglu")
    if attributes["activation_type"] == "swiglu":
        attributes |= {"swiglu_fusion": fusion, "activation_alpha": 1.5, "activation_beta": 0.5, "swiglu_limit": 2.0}
    return attributes


def operands(rng, dtype, attributes, third=False):
    tokens, size, inner, experts = (int(n) for n in (*rng.integers(1, 9, 3), rng.integers(2, 6)))
    x = draw(rng, pick(rng, (tokens, size), (1, tokens, size)), dtype, -1, 1)
    fused = attributes["activation_type"] == "swiglu" and attributes["swiglu_fusion"] != 0
    shapes = [(experts, inner * (2 if fused else 1), size), (experts, size, inner), (experts, inner, size)]
    layers = [
        [draw(rng, s, dtype, -1, 1), maybe(rng, draw(rng, s[:2], dtype, -1, 1))] for s in shapes[: 3 if third else 2]
    ]
    return x, draw(rng, (tokens, experts), dtype), layers


def experts(rng):
    attributes = routing(rng)
    x, scores, layers = operands(rng, FLOAT, attributes)
    constants = pick(rng, (), (2, 4))
    return Node("MoE", [x, scores, *layers[0], *layers[1]], [FLOAT], attributes, constants=constants, units=64)


def gated_experts(rng):
    """With a third layer, or fused side by side, which onnxruntime's CPU kernel does not run."""
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    fusion = pick(rng, 0, 2)
    attributes = routing(rng, fusion)
    has_third = attributes["activation_type"] != "swiglu" or fusion == 0
    x, scores, layers = operands(rng, dtype, attributes, has_third)
    given = [[None if v is None else wide(v) for v in layer] for layer in layers] + ([] if has_third else [None])
    expected = by_numpy(wide(x), wide(scores), given, attributes)
    inputs = [x, scores, *(v for layer in layers for v in layer)]
    return Node("MoE", inputs, [dtype], attributes, expected=[expected], units=64)


def quantised_experts(rng):
    bits, block = int(pick(rng, 4, 8)), pick(rng, None, 16, 32)
    attributes = routing(rng) | {"expert_weight_bits": bits}
    if block:
        attributes["block_size"] = block
    tokens, experts = int(rng.integers(1, 6)), int(rng.integers(2, 5))
    size, inner = (int(n) * 32 for n in rng.integers(1, 3, 2))
    fused = 2 if attributes["activation_type"] == "swiglu" else 1
    inputs = [draw(rng, (tokens, size), FLOAT, -1, 1), draw(rng, (tokens, experts), FLOAT)]
    shapes = [(experts, fused * inner, size), (experts, size, inner)]
    for e, rows, columns in shapes:
        inputs.append(rng.integers(0, 256, (e, rows, columns * bits // 8)).astype(UINT8))
        inputs.append(draw(rng, (e, rows, columns // block) if block else (e, rows), FLOAT, 0.001, 0.01))
        inputs.append(maybe(rng, draw(rng, (e, rows), FLOAT, -1, 1)))
    inputs += [None] * 3
    if rng.integers(2):
        for e, rows, columns in shapes:
            packed = (e, rows, -(-(columns // block) * bits // 8)) if block else (e, -(-rows * bits // 8))
            inputs.append(rng.integers(0, 256, packed).astype(UINT8))
        inputs.append(None)
    else:
        inputs += [None] * 3
    inputs.append(maybe(rng, draw(rng, (tokens, experts), FLOAT, 0, 1)))
    # Blocks of 8 bits meet rows that onnxruntime rounds to 8 bits as well.
    units = 200_000 if bits == 8 and block else 64
    return Node("QMoE", inputs, [FLOAT], attributes, constants=tuple(range(2, 14)), units=units)


# ---- Tables of few bits


def gathered_blocks(rng):
    kind = pick(rng, "uint8", "int4", "uint4", "fp8")
    rank = int(rng.integers(2, 4))
    block = 16
    shape = [*sizes(rng, rank - 1, 5), int(rng.integers(1, 4)) * 16 + int(pick(rng, 0, 8))]
    gather_axis, quantize_axis = (0, rank - 1) if kind == "uint8" else (int(rng.integers(rank)), rank - 1)
    bits = int(pick(rng, 2, 4, 8)) if kind == "uint8" else 4
    scales_shape = [*shape[:-1], -(-shape[-1] // block)]
    count = pick(rng, INT32, INT64)
    at = rng.integers(-shape[gather_axis] - 1, shape[gather_axis] + 2, sizes(rng, int(rng.integers(0, 3)), 4)).astype(
        count
    )
    scale_type = pick(rng, FLOAT, HALF)
    scales = draw(rng, tuple(scales_shape), scale_type, 0.01, 1)
    zeros = None
    if kind == "uint8":
        packed = [*shape[:-1], shape[-1] * bits // 8]
        data = rng.integers(0, 256, packed).astype(UINT8)
        zeros = maybe(rng, rng.integers(0, 256, [*shape[:-1], -(-scales_shape[-1] * bits // 8)]).astype(UINT8))
    elif kind == "fp8":
        data = draw(rng, tuple(shape), np.dtype(ml_dtypes.float8_e4m3fn))
    else:
        dtype = np.dtype(getattr(ml_dtypes, kind))
        low = -8 if kind == "int4" else 0
        data = rng.integers(low, low + 16, shape).astype(dtype)
        zeros = maybe(rng, rng.integers(low, low + 16, scales_shape).astype(dtype))
    attributes = {"gather_axis": gather_axis, "quantize_axis": quantize_axis, "block_size": block}
    if kind == "uint8":
        attributes["bits"] = bits
    return Node(
        "GatherBlockQuantized",
        [data, at, scales, zeros],
        [scale_type],
        attributes,
        constants=() if kind == "uint8" else (0, 3),
    )


# Formats of GGUF files by their numbers: of a block how many numbers, how many bytes, and where the scales begin.
FORMATS = {
    0: (1, 4, None), 1: (1, 2, 0), 2: (32, 18, 0), 6: (32, 22, 0), 8: (32, 34, 0), 13: (256, 176, 0), 14: (256, 210, 208),
    16: (256, 66, 0), 17: (256, 74, 0), 18: (256, 98, 0), 20: (32, 18, 0), 22: (256, 82, 0), 23: (256, 136, 0),
    30: (1, 2, None), 42: (64, 18, 0),
}  # fmt: skip


def packed_table(rng, packed_type, blocks, rows):
    """Rows of random bits with finite scales."""
    _, width, scales = FORMATS[packed_type]
    table = rng.integers(0, 256, (rows, blocks, width), UINT8)
    if packed_type in (0, 30):
        dtype = np.float32 if packed_type == 0 else ml_dtypes.bfloat16
        table = rng.standard_normal((rows, blocks, 1)).astype(dtype).view(UINT8)
    else:
        count = 2 if packed_type == 13 else 1
        halves = rng.standard_normal((rows, blocks, count)).astype(np.float16)
        table[:, :, scales : scales + 2 * count] = halves.view(UINT8)
    return table.reshape(rows, -1)


def gathered_packed(rng, packed_type=None):
    packed_type = int(rng.choice(list(FORMATS))) if packed_type is None else packed_type
    blocks, rows = (int(n) for n in rng.integers(1, 5, 2))
    table = packed_table(rng, packed_type, blocks, rows)
    shape = pick(rng, (), (3,), (2, 3))
    at = np.asarray(rng.integers(-2, rows + 2, shape), pick(rng, INT32, INT64))
    attributes = {"packed_type": packed_type, "K": blocks * FORMATS[packed_type][0], "output_dtype": 1}
    node = Node("GatherPacked", [table, at], [FLOAT], attributes, units=0)
    number, dtype = pick(rng, (1, FLOAT), (10, HALF), (16, BFLOAT))
    if number == 1:
        return node
    expected = [by_onnxruntime(node)[0].astype(dtype)]
    return Node("GatherPacked", [table, at], [dtype], attributes | {"output_dtype": number}, expected, units=0)


def routed_groups(rng):
    groups, size = (int(n) for n in rng.integers(1, 5, 2))
    experts, dtype = groups * size, pick(rng, FLOAT, HALF, BFLOAT)
    shape = pick(rng, (3,), (2, 2), (1, 0))
    logits, bias = draw(rng, (*shape, experts), dtype, -4, 4), draw(rng, (experts,), FLOAT)
    attributes = {"top_k": int(rng.integers(1, experts + 1)), "router_sentinel": -9.0}
    if pick(rng, True, False):
        return Node("MoEGroupRouter", [logits, bias], [None, FLOAT, FLOAT], attributes)
    attributes |= {
        "n_group": groups, "topk_group": int(rng.integers(1, groups + 1)), "group_topk": int(rng.integers(1, size + 2)),
    }  # fmt: skip
    return Node("MoEGroupRouter", [logits, bias], [dtype], attributes)


def routed_projections(rng):
    experts, dtype = int(rng.integers(2, 9)), pick(rng, FLOAT, HALF, BFLOAT)
    x, w = draw(rng, (int(rng.integers(0, 5)), 256), dtype, -1, 1), draw(rng, (experts, 256), dtype, -0.1, 0.1)
    return Node("MoEGroupRouter", [x, draw(rng, (experts,), FLOAT), w], [None, FLOAT, FLOAT], {"top_k": 2}, units=64)


# ---- Gates and streams


def linear_gate(rng):
    shape = sizes(rng, 3)
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    b = maybe(rng, draw(rng, shape, dtype))
    inputs = [draw(rng, shape, dtype), draw(rng, shape[-1:], FLOAT), draw(rng, shape[-1:], FLOAT), b]
    return Node("LinearAttentionGate", inputs, [dtype] if b is None else [dtype, dtype])


def engram_gate(rng):
    b, t, c, h = sizes(rng, 4)
    dtype = pick(rng, FLOAT, HALF, BFLOAT)
    conv = maybe(rng, draw(rng, (c, h), dtype))
    inputs = [draw(rng, (b, t, c, h), dtype), draw(rng, (b, t, c, h), dtype), draw(rng, (b, t, h), dtype)]
    inputs += [draw(rng, (c, h), dtype), draw(rng, (c, h), dtype), conv]
    return Node(
        "EngramGate", inputs, [dtype] if conv is None else [dtype, dtype], pick(rng, {}, {"epsilon": 0.01}), units=32
    )


def streams(rng, dtype):
    leading, c, h = sizes(rng, int(rng.integers(0, 3)), 4), int(rng.integers(2, 5)), int(rng.integers(2, 7))
    flat = bool(rng.integers(2))
    x = draw(rng, (*leading, c * h) if flat else (*leading, c, h), dtype)
    return leading, c, h, x, {"num_branches": c} if flat else {}


def pre_mix(rng):
    dtype, gate_type = pick(rng, FLOAT, HALF), pick(rng, FLOAT, HALF, BFLOAT)
    leading, c, h, x, attributes = streams(rng, dtype)
    shape = pick(rng, (c,), (c, 1), (c, h), (c * h,) if attributes else (c,))
    node = Node("HyperConnectionPreMix", [x, draw(rng, (*leading, *shape), gate_type)], [dtype])
    node.attributes = attributes | pick(rng, {}, {"reduction_scale": 0.25})
    return node


def post_mix(rng):
    dtype, gate_type = pick(rng, FLOAT, HALF), pick(rng, FLOAT, HALF, BFLOAT)
    leading, c, h, x, attributes = streams(rng, dtype)
    gate = draw(rng, (*leading, *pick(rng, (c,), (c, 1), (c, h))), gate_type)
    mix = maybe(rng, draw(rng, (*leading, c, c), gate_type))
    return Node("HyperConnectionPostMix", [x, draw(rng, (*leading, h), dtype), gate, mix], [dtype], attributes)


def rotated_by_three(rng):
    b, s, heads = sizes(rng, 3, 5)
    sections = [int(n) for n in rng.integers(1, 4, 3)]
    half = sum(sections)
    turned = 2 * half
    size = turned + int(pick(rng, 0, 4))
    packed = bool(rng.integers(2))
    positions = s + int(rng.integers(6))
    x = draw(rng, (b, s, heads * size) if packed else (b, heads, s, size), pick(rng, FLOAT, HALF))
    inputs = [
        x,
        rng.integers(0, positions, (3, b, s)),
        draw(rng, (positions, half), x.dtype, -1, 1),
        draw(rng, (positions, half), x.dtype, -1, 1),
    ]
    attributes = {
        "mrope_section": sections,
        "num_heads": heads,
        "interleaved": int(rng.integers(2)),
        "mrope_layout": int(rng.integers(2)),
    }
    if size != turned:
        attributes["rotary_embedding_dim"] = turned
    return Node("MRotaryEmbedding", inputs, [x.dtype], attributes)


# ---- Hashes of n-grams


def hash_options(rng, tokens, batch, most, heads, dtype):
    """past_ids, head_offsets, eos_token_id, segment_ids."""
    past = maybe(rng, rng.integers(0, 4, (batch, most - 1)).astype(dtype))
    offsets = maybe(rng, rng.integers(0, 99, (most - 1) * heads).astype(dtype))
    end = maybe(rng, np.array(rng.integers(0, 4), dtype))
    return [past, offsets, end, maybe(rng, np.sort(rng.integers(0, 3, tokens), axis=-1).astype(INT32))]


def hash_attributes(rng):
    return {
        "max_ngram_size": int(rng.integers(2, 5)), "n_head_per_ngram": int(rng.integers(1, 4)), "pad_id": 3,
        "reset_on_eos": int(rng.integers(2)),
    }  # fmt: skip


def hash_tables(rng, attributes, dtype):
    most, heads = attributes["max_ngram_size"], attributes["n_head_per_ngram"]
    multipliers = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, most, dtype)
    return [multipliers, rng.integers(2, 999, (most - 1) * heads).astype(dtype)]


def ngram_hashes(rng):
    dtype, attributes = pick(rng, INT32, INT64), hash_attributes(rng)
    tokens = sizes(rng, 2)
    options = hash_options(rng, tokens, tokens[0], attributes["max_ngram_size"], attributes["n_head_per_ngram"], dtype)
    ids = rng.integers(0, 4, tokens).astype(dtype)
    return Node("NGramHashMapping", [ids, *hash_tables(rng, attributes, dtype), *options], [dtype, dtype], attributes)


def packed_ngram_hashes(rng):
    dtype, attributes = pick(rng, INT32, INT64), hash_attributes(rng)
    lengths = rng.integers(1, 6, rng.integers(1, 4))
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(INT32)
    tokens, batch, most = (int(ends[-1]),), len(lengths), attributes["max_ngram_size"]
    options = hash_options(rng, tokens, batch, most, attributes["n_head_per_ngram"], dtype)
    past_segments = maybe(rng, rng.integers(0, 2, (batch, most - 1)).astype(INT32)) if options[3] is not None else None
    capacity = int(rng.integers(0, 4))
    captured = rng.integers(0, 5, batch).astype(INT32) if capacity else None
    inputs = [
        rng.integers(0, 4, tokens).astype(dtype),
        *hash_tables(rng, attributes, dtype),
        ends,
        *options,
        past_segments,
        captured,
    ]
    outputs = [dtype, dtype, INT32 if options[3] is not None else None, dtype if capacity else None]
    while outputs[-1] is None:
        outputs.pop()
    return Node("VarlenNGramHashMapping", inputs, outputs, attributes | {"state_update_capacity": capacity})


MAKERS = [
    experts, gated_experts, quantised_experts, gathered_blocks, gathered_packed, routed_groups, routed_projections, linear_gate, engram_gate, pre_mix, post_mix,
    rotated_by_three, ngram_hashes, packed_ngram_hashes,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_random_nodes(maker, seed):
    check(maker(np.random.default_rng([seed, *maker.__name__.encode()])))


@pytest.mark.parametrize("symbolic", [False, True])
def test_router_weights_are_those_of_all_tokens_and_experts(symbolic):
    for seed in range(100):
        node = quantised_experts(np.random.default_rng(seed))
        if len(node.inputs) > 14 and node.inputs[14] is not None:
            break
    node.symbolic, node.inputs[14] = symbolic, node.inputs[14][:0]
    with pytest.raises((treadle.InvalidArgument, treadle.InvalidGraph), match="router_weights have shape"):
        by_treadle(node)


@pytest.mark.parametrize("packed_type", FORMATS)
def test_every_packed_format_has_the_bits_of_onnxruntime(packed_type):
    for seed in range(20):
        check(gathered_packed(np.random.default_rng(seed), packed_type))


def test_of_equal_experts_and_groups_the_first_count():
    logits = np.float32([[0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 2, 1, 2, 1, 0, 0], [3, 3, 3, 3, 2, 4, 4, 2]])
    attributes = {"n_group": 4, "topk_group": 2, "router_sentinel": -9.0}
    for k in (1, 3, 4, 6):
        check(Node("MoEGroupRouter", [logits, np.zeros(8, FLOAT)], [FLOAT], attributes | {"top_k": k}))


def test_a_logit_that_is_no_number_is_chosen_last():
    """onnxruntime chooses it where it stands among the first `top_k`."""
    logits = np.float32([[0, np.nan, 1, np.inf], [np.nan] * 4, [-1, np.nan, -1, 2]])
    with np.errstate(invalid="ignore"):
        logs = -np.log1p(np.exp(-logits.astype(np.float64)))
    for k, chosen in {1: [[3], [0], [3]], 3: [[3, 2, 0], [0, 1, 2], [3, 0, 2]], 4: [range(4)] * 3}.items():
        expected = np.full((3, 4), -9.0)
        for row, experts_of_row in enumerate(chosen):
            for expert_of_row in experts_of_row:
                expected[row, expert_of_row] = logs[row, expert_of_row]
        attributes = {"top_k": k, "router_sentinel": -9.0}
        check(Node("MoEGroupRouter", [logits, np.zeros(4, FLOAT)], [FLOAT], attributes, [expected]))


ROUTES = [np.zeros((2, 8), FLOAT), np.zeros(8, FLOAT)]
PROJECTED = [np.zeros((2, 256), FLOAT), np.zeros(8, FLOAT), np.zeros((8, 256), FLOAT)]
ALL_SCORES = [None, FLOAT, FLOAT]
ROWS = [np.zeros((3, 34), UINT8), np.zeros(2, INT64)]
ROW = {"packed_type": 8, "K": 32, "output_dtype": 1}
REFUSED = [
    ("GatherPacked", ROWS, [FLOAT], ROW | {"packed_type": 12}, "packed_type is 12, expected one of 0 .F32.*42 .Q2_0."),
    ("GatherPacked", ROWS, [FLOAT], ROW | {"K": 48}, "K is 48, expected a multiple of 32, the numbers of a block of Q8_0"),
    ("GatherPacked", ROWS, [FLOAT], ROW | {"K": 0}, "K is 0, expected a multiple of 32"),
    ("GatherPacked", ROWS, [FLOAT], ROW | {"output_dtype": 11}, "output_dtype is 11, expected 1 .float., 10 .float16. or 16"),
    ("GatherPacked", ROWS, [FLOAT], ROW | {"K": 64}, r"data has shape \[3,34\], expected \[rows,68\]: 2 blocks of Q8_0 with 34"),
    ("GatherPacked", [ROWS[0][0], ROWS[1]], [FLOAT], ROW, r"data has shape \[34\], expected \[rows,34\]"),
    ("GatherPacked", [ROWS[0][:0], ROWS[1]], [FLOAT], ROW, "expected at least one row for indices of shape"),
    ("MoEGroupRouter", ROUTES, [FLOAT], {"top_k": 0}, "attribute top_k is 0, expected at least 1"),
    ("MoEGroupRouter", ROUTES, [FLOAT], {"top_k": 9}, "8 experts, expected at least as many as top_k says, which is 9"),
    ("MoEGroupRouter", ROUTES, [FLOAT], {"top_k": 1, "group_topk": 0}, "attribute group_topk is 0, expected at least 1"),
    ("MoEGroupRouter", ROUTES, [FLOAT], {"top_k": 1, "n_group": 3}, "8 experts, expected a multiple of n_group, which is 3"),
    ("MoEGroupRouter", ROUTES, [FLOAT], {"top_k": 1, "topk_group": 2}, "topk_group is 2, expected at most n_group, which is 1"),
    ("MoEGroupRouter", [ROUTES[0][0], ROUTES[1]], [FLOAT], {"top_k": 1}, r"logits have shape \[8\], expected \[...,experts\]"),
    ("MoEGroupRouter", [ROUTES[0], ROUTES[1][:4]], [FLOAT], {"top_k": 1}, r"expert_bias has shape \[4\], expected \[8\]"),
    ("MoEGroupRouter", ROUTES, [None, FLOAT], {"top_k": 1}, "selection_scores are asked for, expected router_weights with them"),
    ("MoEGroupRouter", ROUTES, [FLOAT, FLOAT, FLOAT], {"top_k": 1}, "output 0 .router_probs. is named, but"),
    ("MoEGroupRouter", ROUTES, ALL_SCORES, {"top_k": 1, "n_group": 2}, "with 2 groups, expected n_group = 1"),
    ("MoEGroupRouter", [np.zeros((1, 520), FLOAT), np.zeros(520, FLOAT)], ALL_SCORES, {"top_k": 1}, "expected at most 512"),
    ("MoEGroupRouter", PROJECTED, [FLOAT], {"top_k": 1}, "projection_weight is given, expected selection_scores among the outputs"),
    ("MoEGroupRouter", [PROJECTED[0][None], *PROJECTED[1:]], ALL_SCORES, {"top_k": 1}, r"expected \[tokens,width\]"),
    ("MoEGroupRouter", [*PROJECTED[:2], PROJECTED[2][:, :9]], ALL_SCORES, {"top_k": 1}, r"expected \[experts,256\]"),
    ("MoEGroupRouter", [np.zeros((2, 9), FLOAT), PROJECTED[1], np.zeros((8, 9), FLOAT)], ALL_SCORES, {"top_k": 1},
     "logits have a width of 9, expected a multiple of 256"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes", "message"), REFUSED)
def test_what_packed_rows_and_routers_refuse(op, inputs, outputs, attributes, message):
    with pytest.raises(
        (treadle.InvalidArgument, treadle.InvalidGraph, treadle.NotImplemented, treadle.Fail), match=message
    ):
        by_treadle(Node(op, inputs, outputs, attributes))

"""Mixtures of experts, gates, streams, tables of few bits and rotations of com.microsoft, against onnxruntime or numpy."""

import ml_dtypes
import numpy as np
import pytest
from contrib import Node, by_treadle, check
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
    """What expert e makes of a vector by a layer: weights [experts, rows, columns], bias [experts, rows] or None."""
    weights, bias = layer
    return lambda v: weights[e] @ v + (0 if bias is None else bias[e])


def by_numpy(x, scores, layers, attributes, weights=None):
    """Of float64 layers (weights [experts, rows, columns] and bias [experts, rows] or None), the third perhaps None."""
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
    experts, gated_experts, quantised_experts, gathered_blocks, linear_gate, engram_gate, pre_mix, post_mix,
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

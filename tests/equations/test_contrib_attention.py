"""Attentions of com.microsoft against onnxruntime, or numpy where it has no kernel for CPUs."""

import dataclasses

import numpy as np
import onnxruntime
import pytest
from contrib import Node, by_onnxruntime, by_treadle, check, near
from test_contrib_norms import BFLOAT, FLOAT, HALF, draw, maybe, pick, sizes, wide

INT = np.int32


def angles(rng, positions, half, dtype):
    turns = rng.uniform(-3, 3, (positions, half))
    return np.cos(turns).astype(np.float32).astype(dtype), np.sin(turns).astype(np.float32).astype(dtype)


def group_query(rng):
    """A first prompt, whose entries may be padded behind; a step of one token; or a longer step of one entry."""
    dtype = pick(rng, FLOAT, FLOAT, HALF)
    shared, groups, size = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4)) * 16
    heads, kind = shared * groups, pick(rng, "prompt", "step", "chunk")
    batch = 1 if kind == "chunk" else int(rng.integers(1, 4))
    length = 1 if kind == "step" else int(rng.integers(2, 9))
    before = np.zeros(batch, INT) if kind == "prompt" else rng.integers(0, 9, batch).astype(INT)
    lengths = before + length
    total = int(lengths.max())
    if kind == "prompt" and rng.integers(2):
        lengths = rng.integers(1, length + 1, batch).astype(INT)
        lengths[0] = length
    capacity = pick(rng, total - length, total, total + 5)
    q, k, v = (draw(rng, (batch, length, n * size), dtype) for n in (heads, shared, shared))
    past = [None, None]
    if kind != "prompt" or rng.integers(2):
        past = [draw(rng, (batch, shared, capacity, size), dtype) for _ in range(2)]
    if rng.integers(2):
        q, k, v = np.concatenate([q, k, v], -1), None, None
    attributes = {"num_heads": heads, "kv_num_heads": shared}
    cos = sin = positions = None
    if rng.integers(2):
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(2))}
        cos, sin = angles(rng, 40, pick(rng, size, 16) // 2, dtype)
        if rng.integers(2):
            positions = np.maximum(before[:, None] + np.arange(length), 0).astype(np.int64)
    attributes |= pick(rng, {}, {"local_window_size": int(rng.integers(1, 9))}, {"causal": 0})
    attributes |= pick(rng, {}, {"softcap": 2.0}, {"scale": 0.3})
    sink = None
    if rng.integers(3) == 0:
        sink = maybe(rng, draw(rng, (heads,), dtype))
        attributes |= {} if sink is not None else {"smooth_softmax": 1}
    bias = None
    if rng.integers(3) == 0:
        bias = draw(rng, (pick(rng, 1, batch), pick(rng, 1, heads), length, total), dtype)
    inputs = [q, k, v, *past, lengths - 1, np.array(total, INT), cos, sin, positions, bias, sink]
    outputs = [dtype] * 3
    if kind != "prompt" and rng.integers(2):
        outputs.append(dtype)
        attributes["qk_output"] = int(rng.integers(1, 3))
    return Node("GroupQueryAttention", inputs, outputs, attributes, units=64 if dtype == FLOAT else 8)


def multi_head(rng):
    """Queries, keys and values apart, keys and values in one, all in one, or keys and values of another sequence."""
    dtype, how = pick(rng, FLOAT, FLOAT, HALF, BFLOAT), pick(rng, "apart", "nested keys", "nested", "heads", "cross")
    batch, heads, size = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 4)) * 8
    length = int(rng.integers(1, 7))
    other = length if how in ("nested", "apart") else int(rng.integers(1, 7))
    values = size if how in ("nested", "nested keys", "heads") else pick(rng, size, 16)
    q = draw(rng, (batch, length, heads * size), dtype)
    k, v = draw(rng, (batch, other, heads * size), dtype), draw(rng, (batch, other, heads * values), dtype)
    past = [None, None]
    if how == "apart" and rng.integers(2):
        values, rows = size, int(rng.integers(1, 6))
        v = draw(rng, (batch, other, heads * size), dtype)
        past = [draw(rng, (batch, heads, rows, size), dtype) for _ in range(2)]
    total = other + (0 if past[0] is None else past[0].shape[2])
    bias = maybe(rng, draw(rng, (heads * (2 * size + values),), dtype)) if how in ("apart", "cross") else None
    mask = pick(
        rng, None, None, rng.integers(1, total + 1, batch).astype(INT),
        rng.integers(0, 2, (batch, total)).astype(INT), rng.integers(0, 2, (batch, length, total)).astype(INT),
    )  # fmt: skip
    if mask is not None and mask.ndim > 1:
        mask[..., 0] = 1  # without a key, rounding removes scores beside -10000
    added = maybe(rng, draw(rng, (pick(rng, 1, batch), pick(rng, 1, heads), length, total), dtype))
    attributes = {"num_heads": heads} | pick(rng, {}, {"scale": 0.3}, {"mask_filter_value": -5.0})
    attributes |= {"unidirectional": 1} if how == "apart" and rng.integers(2) else {}
    outputs = [dtype] * (3 if past[0] is not None else pick(rng, 1, 3 if how in ("apart", "cross") else 1))
    node = Node(
        "MultiHeadAttention", [q, k, v, bias, mask, added, *past], outputs, attributes,
        units=64 if dtype == FLOAT else 8,
    )  # fmt: skip
    if how in ("nested", "nested keys", "heads"):
        node.expected = by_onnxruntime(node)
        q, k, v = (x.reshape(batch, -1, heads, size) for x in (q, k, v))
        packed = {
            "nested": [np.stack([q, k, v], 3), None, None] if how == "nested" else None,
            "nested keys": [node.inputs[0], np.stack([k, v], 3), None],
            "heads": [node.inputs[0], *(np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (k, v))],
        }
        node.inputs[:3] = packed[how]
    return node


def rotary(rng):
    dtype = pick(rng, FLOAT, FLOAT, HALF)
    batch, heads, length = sizes(rng, 3)
    size, turned = pick(rng, (8, 8), (16, 16), (16, 8), (32, 16))
    shape = pick(rng, (batch, length, heads * size), (batch, heads, length, size))
    cos, sin = angles(rng, 20, turned // 2, dtype)
    positions = pick(rng, rng.integers(0, 10, 1), rng.integers(0, 20, (batch, length)))
    attributes = {"interleaved": int(rng.integers(2))}
    if turned != size or (len(shape) == 3 and rng.integers(2)):
        attributes |= {"num_heads": heads, "rotary_embedding_dim": turned if turned != size else 0}
    return Node("RotaryEmbedding", [draw(rng, shape, dtype), positions, cos, sin], [dtype], attributes)


def gemma_rotary(rng):
    batch, heads, length, size = sizes(rng, 4)
    emb = draw(rng, (batch, length, size), FLOAT)
    parts = [draw(rng, (batch, heads, length, size), HALF) for _ in range(4)]
    sine, cosine = (wide(f(emb).astype(HALF))[:, None] for f in (np.sin, np.cos))
    q, q_rot, k, k_rot = (wide(p) for p in parts)
    expected = [q * cosine + q_rot * sine, k * cosine + k_rot * sine]
    return Node("GemmaRotaryEmbedding", [emb, *parts], [HALF, HALF], expected=expected)


def projected(rng):
    dtype = pick(rng, FLOAT, FLOAT, HALF)
    batch, heads, size = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4)) * 8
    length, width, before = int(rng.integers(1, 7)), int(rng.integers(4, 20)), 0
    values, past = pick(rng, size, 2 * size), None
    if rng.integers(2):
        values, before = size, int(rng.integers(1, 5))
        past = draw(rng, (2, batch, heads, before, size), dtype)
    total = before + length
    hidden = heads * (2 * size + values)
    x, w, bias = (
        draw(rng, (batch, length, width), dtype),
        draw(rng, (width, hidden), dtype, -0.5, 0.5),
        draw(rng, (hidden,), dtype),
    )
    begins = rng.integers(0, total, batch)
    mask = pick(
        rng, None, rng.integers(1, total + 1, batch), np.concatenate([rng.integers(begins + 1, total + 1), begins]),
        rng.integers(0, 2, (batch, total)), rng.integers(0, 2, (batch, length, total)),
        rng.integers(0, 2, (batch, 1, total + 2, total + 2)),
    )  # fmt: skip
    causal = int(rng.integers(2))
    if mask is not None:
        mask = mask.astype(INT)
        if mask.ndim > 1:
            mask[..., 0] = 1
        elif causal:
            mask = None
    added = (
        maybe(rng, draw(rng, (pick(rng, 1, batch), pick(rng, 1, heads), length, total), dtype)) if not before else None
    )
    attributes = {"num_heads": heads, "unidirectional": causal} | pick(
        rng, {}, {"scale": 0.3}, {"mask_filter_value": -50.0}
    )
    if values != size or rng.integers(2):
        attributes["qkv_hidden_sizes"] = [heads * size, heads * size, heads * values]
    outputs = [dtype, dtype] if past is not None or (values == size and rng.integers(2)) else [dtype]
    node = Node("Attention", [x, w, bias, mask, past, added], outputs, attributes, units=128 if dtype == FLOAT else 16)
    if mask is not None and mask.ndim == 4:  # which onnxruntime has on GPUs only
        node.inputs[3] = np.ascontiguousarray(mask[:, 0, before:total, :total])
        node.expected = by_onnxruntime(node)
        node.inputs[3] = mask
    return node


def packed(rng, op):
    """Sequences without their padding; the judge is MultiHeadAttention's result for the padded ones."""
    batch, heads, size = sizes(rng, 2)[0], int(rng.integers(1, 4)), 8
    lengths = rng.integers(1, 6, batch)
    longest, hidden = int(lengths.max()) + 1, heads * size
    kept = np.arange(longest) < lengths[:, None]
    places = np.arange(batch * longest).reshape(batch, longest)
    offsets = np.concatenate([places[kept], places[~kept]]).reshape(batch, longest).astype(INT)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(INT)
    added = maybe(rng, draw(rng, (1, heads, longest, longest), FLOAT))
    bias = draw(rng, (3 * hidden,), FLOAT)
    if op == "PackedAttention":
        x, w = draw(rng, (batch, longest, 12), FLOAT), draw(rng, (12, 3 * hidden), FLOAT, -0.5, 0.5)
        judge = Node("Attention", [x, w, bias, lengths.astype(INT), None, added], [FLOAT], {"num_heads": heads})
        inputs = [x[kept], w, bias]
    else:
        factors = [draw(rng, (batch, longest, hidden), FLOAT) for _ in range(3)]
        nested = bool(rng.integers(2))
        bias = None if nested else maybe(rng, bias)
        judge = Node("MultiHeadAttention", [*factors, bias, lengths.astype(INT), added], [FLOAT], {"num_heads": heads})
        inputs = [f[kept] for f in factors]
        if nested:
            inputs = [np.stack([f.reshape(-1, heads, size) for f in inputs], 2), None, None]
        inputs.append(bias)
    expected = by_onnxruntime(judge)[0][kept]
    return Node(op, [*inputs, offsets, ends, added], [FLOAT], {"num_heads": heads}, expected=[expected], units=128)


def packed_attention(rng):
    return packed(rng, "PackedAttention")


def packed_multi_head(rng):
    return packed(rng, "PackedMultiHeadAttention")


def decoder_masked(rng):
    batch, heads, size, before = int(rng.integers(1, 3)), int(rng.integers(1, 4)), 8, int(rng.integers(1, 6))
    width = pick(rng, 1, 2)
    rows, shares = batch * width, bool(rng.integers(2))
    capacity = before + 4 if shares else before
    q, k, v = (draw(rng, (rows, 1, heads * size), FLOAT) for _ in range(3))
    past = [draw(rng, (rows, heads, capacity, size), FLOAT) for _ in range(2)]
    bias = maybe(rng, draw(rng, (3 * heads * size,), FLOAT))
    mask = maybe(rng, rng.integers(0, 2, (rows, before + 1)).astype(INT))
    if mask is not None:
        mask[:, 0] = 1
    length = np.array([before], INT)
    indirection = beams = None
    if shares and width > 1:
        beams = np.array([width], INT)
        indirection = rng.integers(0, width, (batch, width, capacity)).astype(INT)
    attributes = {"num_heads": heads, "past_present_share_buffer": int(shares)}
    inputs = [q, k, v, mask, None, *past, length, beams, indirection, bias]
    node = Node("DecoderMaskedMultiHeadAttention", inputs, [FLOAT] * 3, attributes, units=64)
    if not shares:  # which onnxruntime has on GPUs only
        judge = [q, k, v, bias, mask, None, *past]
        node.inputs[7] = None
        node.expected = by_onnxruntime(Node("MultiHeadAttention", judge, [FLOAT] * 3, {"num_heads": heads}))
    return node


def linear_attention(rng):
    rule, (batch, length, shared) = pick(rng, "linear", "gated", "delta", "gated_delta"), sizes(rng, 3, 5)
    heads = shared * pick(rng, 1, 2)
    q, k = draw(rng, (batch, length, heads * 8), FLOAT, -1, 1), draw(rng, (batch, length, shared * 8), FLOAT, -0.3, 0.3)
    v, past = draw(rng, (batch, length, shared * 4), FLOAT), maybe(rng, draw(rng, (batch, shared, 8, 4), FLOAT))
    decay = draw(rng, (batch, length, shared * pick(rng, 1, 8)), FLOAT, -1, 0) if rule.startswith("gated") else None
    beta = draw(rng, (batch, length, shared), FLOAT, 0, 1) if rule.endswith("delta") else None
    attributes = {"q_num_heads": heads, "kv_num_heads": shared, "update_rule": rule}
    return Node("LinearAttention", [q, k, v, past, decay, beta], [FLOAT, FLOAT], attributes, units=64)


def causal_conv(rng):
    batch, channels, length, taps = sizes(rng, 4, 6)
    x, w = draw(rng, (batch, channels, length), FLOAT), draw(rng, (channels, 1, taps), FLOAT)
    bias, past = maybe(rng, draw(rng, (channels,), FLOAT)), maybe(rng, draw(rng, (batch, channels, taps - 1), FLOAT))
    attributes = pick(rng, {}, {"activation": "silu"})
    return Node("CausalConvWithState", [x, w, bias, past], [FLOAT, FLOAT], attributes, units=32)


def padding(rng):
    batch, longest, size = sizes(rng, 3)
    lengths = rng.integers(0, longest + 1, batch)
    lengths[0] = longest
    kept = np.arange(longest) < lengths[:, None]
    places = np.arange(batch * longest).reshape(batch, longest)
    offsets = np.concatenate([places[kept], places[~kept]]).reshape(batch, longest).astype(INT)
    x = draw(rng, (batch, longest, size), pick(rng, FLOAT, HALF))
    if rng.integers(2):
        return Node("RestorePadding", [x[kept], offsets], [x.dtype], expected=[np.where(kept[..., None], x, 0)])
    expected = [x[kept], offsets, np.concatenate([[0], np.cumsum(lengths)]), np.array([longest])]
    return Node("RemovePadding", [x, lengths.astype(INT)], [x.dtype, INT, INT, INT], expected=expected)


def relative_position_bias(rng):
    buckets, heads, queries, keys = 8 * int(rng.integers(1, 5)), *sizes(rng, 3, 20)
    both, most = int(rng.integers(2)), pick(rng, 20, 128)
    table = draw(rng, (buckets, heads), FLOAT)
    distance = np.arange(queries)[:, None] - np.arange(keys)
    count = buckets // 2 if both else buckets
    away = np.abs(distance) if both else np.maximum(distance, 0)
    far = np.log(np.maximum(away, 1).astype(np.float32) / np.float32(count // 2)) / np.float32(
        np.log(most / (count // 2))
    )
    far = np.minimum(count // 2 + (far * np.float32(count - count // 2)).astype(np.int64), count - 1)
    bucket = np.where(away < count // 2, away, far) + (count * (distance < 0) if both else 0)
    expected = table[bucket].transpose(2, 0, 1)[None]
    lengths = [np.array([n], np.int64) for n in (queries, keys)]
    attributes = {"max_distance": most, "is_bidirectional": both}
    return Node("RelativePositionBias", [table, *lengths], [FLOAT], attributes, expected=[expected], constants=(1, 2))


def block_layouts(rng, layouts, blocks):
    """The rows and columns of random layouts, and the layouts: each block of queries at least sees its own block."""
    seen = np.tril(rng.random((layouts, blocks, blocks)) < 0.5) | np.eye(blocks, dtype=bool)
    rows = np.concatenate([np.zeros((layouts, 1)), seen.sum(2).cumsum(1)], 1).astype(INT)
    columns = np.full((layouts, rows.max()), -1, INT)
    for layout, marked in enumerate(seen):
        found = np.nonzero(marked)[1]
        columns[layout, : len(found)] = found
    return rows, columns, seen


def sparse_attention(rng):
    """A first prompt, or a step of one token. onnxruntime writes new keys and values over those of the past."""
    shared, groups, size, block = (int(rng.integers(1, 4)), int(rng.integers(1, 3)), 16, 16)
    heads, batch, is_prompt = shared * groups, int(rng.integers(1, 4)), bool(rng.integers(2))
    layouts = pick(rng, *[n for n in range(1, heads + 1) if heads % n == 0])
    capacity = block * int(rng.integers(2, 5))
    length = int(rng.integers(2, capacity + 1)) if is_prompt else 1
    lengths = np.full(batch, length, INT) if is_prompt else rng.integers(1, capacity + 1, batch).astype(INT)
    rows, columns, _ = block_layouts(rng, layouts, capacity // block)
    q, k, v = (draw(rng, (batch, length, n * size), FLOAT) for n in (heads, shared, shared))
    past = [draw(rng, (batch, shared, capacity, size), FLOAT) for _ in range(2)]
    if rng.integers(2):
        q, k, v = np.concatenate([q, k, v], -1), None, None
    attributes = {"num_heads": heads, "kv_num_heads": shared, "sparse_block_size": block}
    attributes |= pick(rng, {}, {"scale": 0.3})
    cos = sin = None
    if rng.integers(2):
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(2))}
        cos, sin = angles(rng, capacity, size // 2, FLOAT)
    inputs = [q, k, v, *past, rows, columns, np.array([lengths.max()], INT), lengths, cos, sin]
    return Node("SparseAttention", inputs, [FLOAT] * 3, attributes, units=64)


def valid_rows(node, i, results):
    """The part that is not padding: of queries, keys, values and scores [batch, heads, queries, keys]."""
    axis = (1, 2, 2, 3)[i]
    for entry, length in enumerate(node.inputs[5] + 1):
        yield results[entry].take(range(min(length, results.shape[axis])), axis - 1)


MAKERS = [
    multi_head, rotary, gemma_rotary, projected, packed_attention, packed_multi_head, decoder_masked, linear_attention,
    causal_conv, padding, relative_position_bias,
]  # fmt: skip


DAMAGED = [*MAKERS, group_query, sparse_attention]


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_random_nodes(maker, seed):
    check(maker(np.random.default_rng([seed, MAKERS.index(maker)])))


def by_onnxruntime_in_place(node):
    """Outputs 1 and 2 take the memory of inputs 3 and 4."""
    session = onnxruntime.InferenceSession(node.model(node.inputs, node.outputs), providers=["CPUExecutionProvider"])
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in node.feeds(node.inputs).items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    binding.bind_ortvalue_output("y1", values["x3"])
    binding.bind_ortvalue_output("y2", values["x4"])
    session.run_with_iobinding(binding)
    return [value.numpy() for value in binding.get_outputs()]


def entry_alone(node, entry):
    inputs = [x[entry : entry + 1] if x is not None and i in (0, 1, 2, 3, 4, 8) else x
              for i, x in enumerate(node.inputs)]  # fmt: skip
    inputs[7] = inputs[8]
    return dataclasses.replace(node, inputs=inputs)


@pytest.mark.parametrize("seed", range(40))
def test_sparse_attention(seed):
    """onnxruntime is asked entry by entry: among entries of several lengths it reads weights of other keys."""
    node = sparse_attention(np.random.default_rng(seed))
    node.symbolic = bool(seed % 2) and node.inputs[1] is not None
    entries = [by_onnxruntime_in_place(entry_alone(node, entry)) for entry in range(len(node.inputs[0]))]
    node.expected = [np.concatenate(parts) for parts in zip(*entries, strict=True)]
    check(node)


@pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT])
def test_sparse_attention_of_a_prompt_that_is_padded_behind(dtype):
    """The equations, since onnxruntime reads other rows than those of the prompt where one is shorter."""
    rng = np.random.default_rng(1)
    rows, columns, seen = block_layouts(rng, 2, 3)
    q, k, v = (draw(rng, (2, 40, 4, 16), dtype) for _ in range(3))
    lengths = np.array([40, 30], INT)
    order = np.arange(40)
    hidden = (order[:, None] < order) | ~seen[:, order // 16][..., order // 16]
    scores = np.einsum("bihd,bjhd->bhij", wide(q), wide(k)) / 4
    scores = np.where(hidden[[0, 1, 0, 1]], -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), wide(v))
    past = [np.zeros((2, 4, 48, 16), dtype)] * 2
    inputs = [*(x.reshape(2, 40, 64) for x in (q, k, v)), *past, rows, columns, np.array([40], INT), lengths]
    attributes = {"num_heads": 4, "kv_num_heads": 4, "sparse_block_size": 16}
    made = by_treadle(Node("SparseAttention", inputs, [dtype] * 3, attributes))[0].reshape(expected.shape)
    for entry, length in enumerate(lengths):
        near(made[entry, :length], expected[entry, :length], 64 if dtype == FLOAT else 8)


@pytest.mark.parametrize("seed", range(60))
def test_group_query(seed):
    node = group_query(np.random.default_rng(seed))
    for i, (actual, expected) in enumerate(zip(by_treadle(node), by_onnxruntime(node), strict=True)):
        assert actual.shape == expected.shape
        rows = zip(valid_rows(node, i, actual), valid_rows(node, i, expected), strict=True)
        for one, other in rows:
            near(one, other, node.units, f"output {i}, {node.attributes}")


def test_group_query_normalises_heads():
    """onnxruntime has this on GPUs only: the judge gets heads that are normalised already."""
    rng = np.random.default_rng(1)
    q, k, v = (draw(rng, (2, 3, n * 16), FLOAT) for n in (4, 2, 2))
    weights = [draw(rng, (16,), FLOAT) for _ in range(2)]

    def normalised(x, weight):
        heads = x.reshape(2, 3, -1, 16)
        return (heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-6) * weight).reshape(x.shape)

    attributes = {"num_heads": 4, "kv_num_heads": 2}
    lengths = [np.array([2, 2], INT), np.array(3, INT)]
    judge = Node("GroupQueryAttention", [normalised(q, weights[0]), normalised(k, weights[1]), v, None, None, *lengths],
                 [FLOAT] * 3, attributes)  # fmt: skip
    inputs = [q, k, v, None, None, *lengths, *[None] * 7, *weights]
    check(Node("GroupQueryAttention", inputs, [FLOAT] * 3, attributes, by_onnxruntime(judge), units=64))

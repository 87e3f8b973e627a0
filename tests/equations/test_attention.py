"""Attention and its relatives against plain numpy, over drawn options, in every version and element type."""

import itertools

import numpy as np
import pytest
from one_node import run, schemas, treadle, types_of
from onnx import TensorProto, helper
from test_elementwise import draw, wide

# Relative error that sums and the exponential leave, by element type: four roundings to float16 and bfloat16.
TOLERANCE = {"float32": 2e-5, "float64": 1e-10, "float16": 4e-3, "bfloat16": 3e-2}


def near(actual, expected):
    scale = max(1.0, float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected))))
    tolerance = TOLERANCE[actual.dtype.name]
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance * scale)


def versions(op, parameter="T1", domain=""):
    return [(s.since_version, t) for s in schemas(op, domain) for t in types_of(s, parameter)]


# ---- Attention


def softmax(x):
    largest = x.max(-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(largest), largest, 0))
    total = e.sum(-1, keepdims=True)
    return np.where(total > 0, e / np.where(total > 0, total, 1), 0)


def attention(q, k, v, mask, past_k, past_v, lengths, *, causal=0, scale=None, softcap=0.0, left=-1, right=-1, mode=0):
    """All of rank 4, in float64. Returns Y, present key and value, and the scores of `mode`."""
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    batch, heads, rows, size = q.shape
    keys = k.shape[2]
    group = heads // k.shape[1]
    scores = q @ np.repeat(k, group, 1).swapaxes(2, 3) * (1 / np.sqrt(size) if scale is None else scale)
    stages = [scores]
    if softcap > 0:
        scores = np.tanh(scores / softcap) * softcap
    stages.append(scores)
    bias = np.zeros((batch, heads, rows, keys))
    if mask is not None:
        missing = keys - mask.shape[-1]
        if mask.dtype == bool:
            mask = np.where(mask, 0.0, -np.inf)
        mask = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf)
        bias = bias + mask
    offset = np.zeros(batch) + (past_k.shape[2] if past_k is not None else 0)
    if lengths is not None:
        offset = lengths - rows
    position = offset[:, None, None, None] + np.arange(rows)[:, None]
    key = np.arange(keys)
    allowed = np.ones((batch, 1, rows, keys), bool)
    if causal:
        allowed &= key <= position
    if left >= 0:
        allowed &= key >= position - left
    if right >= 0:
        allowed &= key <= position + right
    if lengths is not None:
        allowed &= key < lengths[:, None, None, None]
    bias = np.where(allowed, bias, -np.inf)
    stages.append(scores + bias)
    weights = np.where(np.isneginf(bias.max(-1, keepdims=True, initial=-np.inf)), 0, softmax(scores + bias))
    stages.append(weights)
    return weights @ np.repeat(v, group, 1), k, v, stages[mode]


def pack(x):
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1))


def draw_mask(rng, kind, shape, dtype):
    if kind == "bool":
        return rng.random(shape) < 0.7
    return None if kind is None else draw(rng, shape, dtype)


@pytest.mark.parametrize("version, dtype", versions("Attention"), ids=str)
@pytest.mark.parametrize("seed", range(24))
def test_attention(version, dtype, seed):
    rng = np.random.default_rng(seed)
    batch, shared, group = (int(rng.integers(1, 4)) for _ in range(3))
    rows, fresh, size, v_size = (int(rng.integers(1, 9)) for _ in range(4))
    if seed >= 20:  # more rows and keys than a block holds
        rows, fresh = 150, 700
    cache = rng.choice(["none", "past", "lengths"] if version >= 24 else ["none", "past"])
    past = int(rng.integers(0, 6)) if cache == "past" else 0
    q = draw(rng, (batch, shared * group, rows, size), dtype)
    k, v = draw(rng, (batch, shared, fresh, size), dtype), draw(rng, (batch, shared, fresh, v_size), dtype)
    past_k = draw(rng, (batch, shared, past, size), dtype) if cache == "past" else None
    past_v = draw(rng, (batch, shared, past, v_size), dtype) if cache == "past" else None
    lengths = rng.integers(0, fresh + 1, batch) if cache == "lengths" else None
    keys = int(rng.integers(1, past + fresh + 1))
    shape = [(rows, keys), (1, rows, keys), (batch, 1, 1, keys), (batch, shared * group, rows, keys)][rng.integers(4)]
    mask = draw_mask(rng, rng.choice([None, "bool", "float"]), shape, dtype)
    mode = int(rng.integers(4))
    options = {"is_causal": int(rng.integers(2)), "qk_matmul_output_mode": mode}
    if rng.random() < 0.3:
        options["scale"] = 0.5
    if rng.random() < 0.3:
        options["softcap"] = 2.0
    if version >= 25:
        options |= {side: int(rng.integers(-1, 5)) for side in ("left_window_size", "right_window_size")}
    expected = attention(
        *(None if x is None else wide(x) if x.dtype != bool else x for x in (q, k, v, mask, past_k, past_v)), lengths,
        causal=options["is_causal"], scale=options.get("scale"), softcap=options.get("softcap", 0.0), mode=mode,
        left=options.get("left_window_size", -1), right=options.get("right_window_size", -1),
    )  # fmt: skip
    packed = bool(rng.integers(2))
    inputs = [q, k, v]
    if packed:
        inputs = [pack(x) for x in inputs]
        options |= {"q_num_heads": shared * group, "kv_num_heads": shared}
    inputs += [mask, past_k, past_v] + ([lengths] if version >= 24 else [])
    wanted = 4 if lengths is None and rng.random() < 0.5 else 1
    if wanted == 1 and rng.random() < 0.3 and cache != "past":
        wanted = 4 if lengths is None or version < 25 else 1  # lengths and present keys exclude each other
    actual = run("Attention", version, inputs, [dtype] * wanted, options)
    near(actual[0], pack(expected[0]) if packed else expected[0])
    if wanted == 4:
        np.testing.assert_array_equal(wide(actual[1]), expected[1])
        np.testing.assert_array_equal(wide(actual[2]), expected[2])
        near(actual[3], expected[3])


def test_attention_with_values_of_another_type():
    rng = np.random.default_rng(0)
    q, k = (draw(rng, (1, 2, 3, 4), np.dtype(np.float16)) for _ in range(2))
    v = draw(rng, (1, 2, 3, 5), np.dtype(np.float64))
    y, _, present = run("Attention", 23, [q, k, v], [np.float16, np.float16, np.float64])
    near(y, attention(wide(q), wide(k), v, *[None] * 4)[0])
    assert present.dtype == np.float64


@pytest.mark.parametrize("dtype", types_of(schemas("Attention")[-1], "U"), ids=str)
@pytest.mark.parametrize("version", [23, 24, 25])
def test_attention_masks_of_every_type(version, dtype):
    rng = np.random.default_rng(0)
    q, k, v = (draw(rng, (1, 2, 3, 4), np.dtype(np.float32)) for _ in range(3))
    mask = draw(rng, (3, 3), dtype) if dtype.kind != "b" else np.tril(np.ones((3, 3), bool))
    (y,) = run("Attention", version, [q, k, v, mask], [np.float32])
    near(y, attention(*map(wide, (q, k, v)), mask if dtype.kind == "b" else mask.astype(float), *[None] * 3)[0])


@pytest.mark.parametrize(
    "shapes, options, message",
    [
        ([(1, 2, 3), (1, 2, 3), (1, 2, 3)], {}, "num_heads"),
        (
            [(1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)],
            {},
            "3 heads of queries, expected a multiple of the heads of keys, 2",
        ),
        ([(1, 2, 2, 4), (1, 2, 2, 5), (1, 2, 2, 4)], {}, "expected equal batches"),
        ([(1, 2, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)], {"left_window_size": -2}, "left_window_size"),
        ([(1, 2, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4), (3, 2)], {}, "attn_mask has shape"),
    ],
    ids=str,
)
def test_attention_refuses(shapes, options, message):
    with pytest.raises((treadle.InvalidArgument, treadle.InvalidGraph), match=message):
        run("Attention", 25, [np.zeros(s, np.float32) for s in shapes], [np.float32], options)


# ---- FlexAttention


def body(name, operator, constant, element):
    """A body that applies `operator` with a constant to its input."""
    x, y = (helper.make_tensor_value_info(n, element, ["B", "H", "L", "S"]) for n in ("x", "y"))
    c = helper.make_tensor("c", element, [], [constant])
    return helper.make_graph([helper.make_node(operator, ["x", "c"], ["y"])], name, [x], [y], [c])


@pytest.mark.parametrize("version, dtype", versions("FlexAttention", domain="ai.onnx.preview"), ids=str)
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("bodies", [(), ("score_mod",), ("prob_mod",), ("score_mod", "prob_mod")], ids=str)
def test_flex_attention(version, dtype, group, bodies):
    rng = np.random.default_rng(0)
    q, k = draw(rng, (2, 2 * group, 3, 4), dtype), draw(rng, (2, 2, 5, 4), dtype)
    v = draw(rng, (2, 2, 5, 6), dtype)
    element = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
    graphs = {b: body(b, "Max" if b == "score_mod" else "Mul", 0.25, element) for b in bodies}
    names = ["q", "k", "v"]
    types = {n: helper.np_dtype_to_tensor_dtype(dtype) for n in names}
    graph = helper.make_graph(
        [helper.make_node("FlexAttention", names, ["y"], domain="ai.onnx.preview", **graphs)], "flex",
        [helper.make_tensor_value_info(n, types[n], x.shape) for n, x in zip(names, (q, k, v), strict=True)],
        [helper.make_tensor_value_info("y", types["q"], None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid("ai.onnx.preview", version)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    (y,) = treadle.InferenceSession(model.SerializeToString()).run(None, {"q": q, "k": k, "v": v})
    scores = wide(q) @ np.repeat(wide(k), group, 1).swapaxes(2, 3) / 2
    weights = softmax(np.maximum(scores, 0.25) if "score_mod" in bodies else scores)
    weights = weights * 0.25 if "prob_mod" in bodies else weights
    near(y, weights @ np.repeat(wide(v), group, 1))


# ---- LinearAttention


def linear_attention(q, k, v, state, decay, beta, rule, scale):
    """All as [batch, length, heads, size] but the state, [batch, heads, d_k, d_v]."""
    group = q.shape[2] // k.shape[2]
    state, rows = state.copy(), []
    for t in range(q.shape[1]):
        if "gated" in rule:
            state *= np.exp(decay[:, t])[..., None]
        value = v[:, t]
        if "delta" in rule:
            value = beta[:, t] * (value - np.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state += k[:, t][..., None] * value[..., None, :]
        rows.append(scale * np.einsum("bhkv,bhk->bhv", np.repeat(state, group, 1), q[:, t]))
    return np.stack(rows, 1), state


LINEAR = schemas("LinearAttention")[0]
LINEAR_TYPES = [(t, state) for t in types_of(LINEAR, "T") for state in types_of(LINEAR, "S")]


@pytest.mark.parametrize("dtype, state_type", LINEAR_TYPES, ids=str)
@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("wide_decay, wide_beta, past", list(itertools.product([False, True], repeat=3)))
def test_linear_attention(dtype, state_type, rule, wide_decay, wide_beta, past):
    rng = np.random.default_rng(0)
    batch, length, shared, group, d_k, d_v = 2, 5, 2, 3, 4, 6
    q = draw(rng, (batch, length, shared * group, d_k), dtype)
    k, v = draw(rng, (batch, length, shared, d_k), dtype, -0.5, 0.5), draw(rng, (batch, length, shared, d_v), dtype)
    state = draw(rng, (batch, shared, d_k, d_v), state_type) if past else None
    decay = draw(rng, (batch, length, shared, d_k if wide_decay else 1), dtype, -1, 0) if "gated" in rule else None
    beta = draw(rng, (batch, length, shared if wide_beta else 1, 1), dtype, 0, 1) if "delta" in rule else None
    flat = [None if x is None else x.reshape(batch, length, -1) for x in (q, k, v, decay, beta)]
    options = {"q_num_heads": shared * group, "kv_num_heads": shared, "update_rule": rule}
    kept = state_type if past else dtype
    y, last = run("LinearAttention", 27, [*flat[:3], state, *flat[3:]], [dtype, kept], options)
    before = np.zeros((batch, shared, d_k, d_v)) if state is None else wide(state)
    factors = [None if x is None else wide(x) for x in (decay, beta)]
    expected, expected_last = linear_attention(*map(wide, (q, k, v)), before, *factors, rule, 1 / np.sqrt(d_k))
    near(y, expected.reshape(batch, length, -1))
    near(last, expected_last)


def test_linear_attention_in_two_parts_is_one():
    rng = np.random.default_rng(0)
    q, k, v = (draw(rng, (1, 7, 8), np.dtype(np.float32)) for _ in range(3))
    options = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear", "scale": 0.3}
    types = [np.float32, np.float32]
    whole, last = run("LinearAttention", 27, [q, k, v], types, options)
    first, state = run("LinearAttention", 27, [x[:, :3] for x in (q, k, v)], types, options)
    second, end = run("LinearAttention", 27, [*(x[:, 3:] for x in (q, k, v)), state], types, options)
    np.testing.assert_array_equal(np.concatenate([first, second], 1), whole)
    np.testing.assert_array_equal(end, last)


# ---- CausalConvWithState


@pytest.mark.parametrize("dtype", types_of(schemas("CausalConvWithState")[0], "T"), ids=str)
@pytest.mark.parametrize("length, taps", [(6, 4), (2, 4), (5, 1), (0, 3)])
@pytest.mark.parametrize("bias, past, activation", list(itertools.product([0, 1], [0, 1], ["none", "silu", "swish"])))
def test_causal_conv(dtype, length, taps, bias, past, activation):
    rng = np.random.default_rng(0)
    x, w = draw(rng, (2, 3, length), dtype), draw(rng, (3, 1, taps), dtype)
    b = draw(rng, (3,), dtype) if bias else None
    state = draw(rng, (2, 3, taps - 1), dtype) if past else None
    y, last = run("CausalConvWithState", 27, [x, w, b, state], [dtype, dtype], {"activation": activation})
    row = np.concatenate([wide(state) if past else np.zeros((2, 3, taps - 1)), wide(x)], 2)
    expected = sum(wide(w)[:, 0, j, None] * row[:, :, j : j + length] for j in range(taps))
    expected = expected + (wide(b)[:, None] if bias else 0)
    if activation != "none":
        expected = expected / (1 + np.exp(-expected))
    near(y, expected)
    np.testing.assert_array_equal(wide(last), row[:, :, length:])


# ---- RotaryEmbedding and SwiGLU


@pytest.mark.parametrize("dtype", types_of(schemas("RotaryEmbedding")[0], "T"), ids=str)
@pytest.mark.parametrize("packed, positions, interleaved", list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize("turned", [0, 4])
def test_rotary_embedding(dtype, packed, positions, interleaved, turned):
    rng = np.random.default_rng(0)
    batch, heads, length, size = 2, 3, 4, 6
    half = (turned or size) // 2
    x = draw(rng, (batch, heads, length, size), dtype)
    caches = [draw(rng, (9, half) if positions else (batch, length, half), dtype) for _ in range(2)]
    ids = rng.integers(0, 9, (batch, length)) if positions else None
    options = {"interleaved": int(interleaved), "rotary_embedding_dim": turned} | (
        {"num_heads": heads} if packed else {}
    )
    (y,) = run("RotaryEmbedding", 23, [pack(x) if packed else x, *caches, ids], [dtype], options)
    c, s = (wide(a)[ids] if positions else wide(a) for a in caches)
    c, s = c[:, None], s[:, None]
    expected = wide(x).copy()
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(half), slice(half, 2 * half))
    )
    a, b = wide(x)[..., first], wide(x)[..., second]
    expected[..., first], expected[..., second] = c * a - s * b, s * a + c * b
    near(y, pack(expected) if packed else expected)


def test_rotary_embedding_checks_positions():
    x, cache = np.zeros((1, 1, 2, 4), np.float32), np.zeros((3, 2), np.float32)
    with pytest.raises(treadle.RuntimeException, match="index 3 is out of range"):
        run("RotaryEmbedding", 23, [x, cache, cache, np.array([[0, 3]])], [np.float32])


@pytest.mark.parametrize("dtype", types_of(schemas("SwiGLU")[0], "T"), ids=str)
def test_swiglu(dtype):
    rng = np.random.default_rng(0)
    a, b = (draw(rng, (3, 5), dtype) for _ in range(2))
    (y,) = run("SwiGLU", 28, [a, b], [dtype], {"alpha": 1.5})
    near(y, wide(a) / (1 + np.exp(-1.5 * wide(a))) * wide(b))
    with pytest.raises((treadle.InvalidArgument, treadle.InvalidGraph), match="A and B have shapes|A has shape"):
        run("SwiGLU", 28, [a, b[:1]], [dtype])

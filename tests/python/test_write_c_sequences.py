"""Models as C: attention, products and what else goes over sequences, with drawn sizes and attributes."""

import itertools

import numpy as np
import pytest
from onnx import helper
from test_write_c import PROCESSORS, model_of, pytestmark, run_both, usable

__all__ = ["pytestmark"]


def one_of(random, *values):
    return values[int(random.integers(len(values)))]


def drawn_attention(random):
    """Heads, lengths and types; masks, windows, caches, valid lengths and shown scores, each or none."""

    dtype = one_of(random, np.float32, np.float32, np.float16, np.float64)
    batch, heads, group = one_of(random, 1, 2), one_of(random, 1, 2, 3), one_of(random, 1, 1, 2)
    queries, keys, past = one_of(random, 1, 2, 7, 9, 70), one_of(random, 1, 2, 5, 20, 130), one_of(random, 0, 0, 1, 12)
    size, width = one_of(random, 1, 3, 8, 16, 33), one_of(random, 1, 2, 5, 16, 40)
    total = past + keys
    packed, with_lengths = bool(random.integers(2)), not past and one_of(random, True, False, False)

    def tensor(*shape):
        return random.standard_normal(shape).astype(dtype)

    def of_heads(count, length, last):
        return tensor(batch, length, count * last) if packed else tensor(batch, count, length, last)

    inputs = {
        "q": of_heads(heads * group, queries, size),
        "k": of_heads(heads, keys, size),
        "v": of_heads(heads, keys, width),
    }
    names = ["q", "k", "v", "", "", "", ""]
    if kind := one_of(random, "", "bool", "float", "short"):
        shape = [one_of(random, 1, batch), one_of(random, 1, heads * group), queries, total][one_of(random, 0, 1, 2) :]
        if kind == "short" and total > 1:
            shape[-1] = int(random.integers(1, total))
        mask = random.standard_normal(shape).astype(dtype)
        inputs["mask"] = mask > -0.3 if kind == "bool" else np.where(mask > -1, mask, -np.inf).astype(dtype)
        names[3] = "mask"
    if past:
        inputs |= {"past_k": tensor(batch, heads, past, size), "past_v": tensor(batch, heads, past, width)}
        names[4:6] = ["past_k", "past_v"]
    if with_lengths:
        inputs["lengths"] = random.integers(0, total + 1, batch)
        names[6] = "lengths"
    attributes = {"is_causal": int(random.integers(2)), "qk_matmul_output_mode": int(random.integers(4))}
    if packed:
        attributes |= {"q_num_heads": heads * group, "kv_num_heads": heads}
    attributes |= one_of(random, {}, {"softcap": 2.0}) | one_of(random, {}, {"scale": 0.3})
    attributes |= one_of(random, {}, {}, {"left_window_size": 3}, {"right_window_size": 2, "left_window_size": 0})
    presents = ["present_k", "present_v"] if past or (not with_lengths and random.integers(2)) else ["", ""]
    outputs = ["y", *presents, *one_of(random, ["scores"], [])]
    while not names[-1]:
        names.pop()
    while not outputs[-1]:
        outputs.pop()
    node = helper.make_node("Attention", names, outputs, **attributes)
    return model_of([node], inputs, [o for o in outputs if o], opset=25), inputs


def drawn_linear_attention(random):
    rule = one_of(random, "linear", "gated", "delta", "gated_delta")
    batch, length, shared, group = (
        one_of(random, 1, 2),
        one_of(random, 1, 5),
        one_of(random, 1, 2),
        one_of(random, 1, 3),
    )
    d_k, d_v = one_of(random, 1, 4, 9), one_of(random, 1, 3, 8, 17)
    dtype, state = one_of(random, (np.float32, np.float32), (np.float16, np.float16), (np.float16, np.float32))

    def tensor(*shape, of=dtype):
        return (random.standard_normal(shape) / 2).astype(of)

    inputs = {
        "q": tensor(batch, length, shared * group * d_k),
        "k": tensor(batch, length, shared * d_k),
        "v": tensor(batch, length, shared * d_v),
    }
    names = [*inputs, "", "", ""]
    if random.integers(2) or state != dtype:
        inputs["past"] = tensor(batch, shared, d_k, d_v, of=state)
        names[3] = "past"
    if "gated" in rule:
        inputs["decay"] = -abs(tensor(batch, length, shared * one_of(random, 1, d_k)))
        names[4] = "decay"
    if "delta" in rule:
        inputs["beta"] = abs(tensor(batch, length, one_of(random, 1, shared)))
        names[5] = "beta"
    node = helper.make_node(
        "LinearAttention",
        names,
        ["y", "state"],
        q_num_heads=shared * group,
        kv_num_heads=shared,
        update_rule=rule,
        **one_of(random, {}, {"scale": 0.3}),
    )
    return model_of([node], inputs, ["y", "state"], opset=27), inputs


def drawn_causal_conv(random):
    batch, channels, length, taps = (
        one_of(random, 1, 2),
        one_of(random, 1, 3),
        one_of(random, 1, 2, 19),
        one_of(random, 1, 4),
    )
    dtype = one_of(random, np.float32, np.float16)
    shapes = {
        "x": (batch, channels, length),
        "w": (channels, 1, taps),
        "b": (channels,),
        "p": (batch, channels, taps - 1),
    }
    kept = [name for name in shapes if name in "xw" or random.integers(2)]
    inputs = {name: random.standard_normal(shapes[name]).astype(dtype) for name in kept}
    names = [name if name in kept else "" for name in shapes]
    node = helper.make_node(
        "CausalConvWithState", names, ["y", "state"], activation=one_of(random, "none", "silu", "swish")
    )
    return model_of([node], inputs, ["y", "state"], opset=27), inputs


def drawn_rotary(random):
    batch, heads, length, size = (
        one_of(random, 1, 2),
        one_of(random, 1, 3),
        one_of(random, 1, 5),
        one_of(random, 2, 8, 22),
    )
    turned, packed, table = one_of(random, 0, 2, size), random.integers(2), one_of(random, 0, 7)
    dtype = one_of(random, np.float32, np.float16)
    half = (turned or size) // 2
    angles = random.standard_normal([table, half] if table else [batch, length, half])
    x = random.standard_normal([batch, length, heads * size] if packed else [batch, heads, length, size])
    inputs = {"x": x.astype(dtype), "c": np.cos(angles).astype(dtype), "s": np.sin(angles).astype(dtype)}
    if table:
        inputs["p"] = random.integers(0, table, (batch, length))
    attributes = {"num_heads": heads} if packed else {}
    node = helper.make_node(
        "RotaryEmbedding",
        list(inputs),
        ["y"],
        rotary_embedding_dim=turned,
        interleaved=int(random.integers(2)),
        **attributes,
    )
    return model_of([node], inputs, ["y"], opset=23), inputs


def drawn_product(random):
    """Stacks of matrices of each type, transposed by nodes of their own, and Gemm."""
    dtype = one_of(random, np.float32, np.float64, np.float16, np.float16, np.int32, np.uint64)
    m, n, k = (one_of(random, 1, 2, 3, 5, 17, 40) for _ in range(3))
    stack = one_of(random, [], [2], [3, 2])

    def tensor(*shape):
        return (random.standard_normal(shape) * 3).astype(np.int32 if dtype == np.uint64 else dtype).astype(dtype)

    inputs = {"a": tensor(*stack, m, k), "b": tensor(*(stack if random.integers(2) else []), k, n)}
    nodes, names = [], ["a", "b"]
    for i, name in enumerate(names):
        if random.integers(2):
            x = inputs[name]
            order = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
            inputs[name] = np.ascontiguousarray(x.transpose(order))
            nodes.append(helper.make_node("Transpose", [name], [f"t{i}"], perm=order))
            names[i] = f"t{i}"
    if not stack and dtype != np.int32 and random.integers(2):
        inputs["c"] = tensor(*one_of(random, [n], [m, 1], [1]))
        scales = {} if dtype == np.uint64 else {"alpha": one_of(random, 1.0, 0.7), "beta": one_of(random, 1.0, 0.3)}
        nodes.append(helper.make_node("Gemm", [*names, "c"], ["y"], **scales))
    else:
        nodes.append(helper.make_node("MatMul", names, ["y"]))
    return model_of(nodes, inputs, ["y"]), inputs


def drawn_byte_product(random):
    """Stacks of matrices of bytes with zero points for all, for rows and for columns."""
    m, n, k = (one_of(random, 1, 2, 3, 17, 40) for _ in range(3))
    stack = one_of(random, [], [2], [3, 2])
    kinds = [one_of(random, np.int8, np.uint8) for _ in range(3)]

    def tensor(kind, *shape):
        limits = np.iinfo(kind)
        return random.integers(limits.min, limits.max + 1, shape).astype(kind)

    a, b = tensor(kinds[0], *stack, m, k), tensor(kinds[1], *(stack if random.integers(2) else []), k, n)
    columns = one_of(random, [], [n])
    if random.integers(2):
        inputs = {"a": a, "b": b, "az": tensor(kinds[0], *one_of(random, [], [m])), "bz": tensor(kinds[1], *columns)}
        return model_of([helper.make_node("MatMulInteger", list(inputs), ["y"])], inputs, ["y"]), inputs
    inputs = {"a": a, "as": np.float32(0.02), "az": tensor(kinds[0])}
    inputs |= {"b": b, "bs": (random.random(columns) / 50).astype(np.float32), "bz": tensor(kinds[1], *columns)}
    inputs |= {"ys": np.float32(0.3), "yz": tensor(kinds[2])}
    inputs = {name: np.asarray(value) for name, value in inputs.items()}
    return model_of([helper.make_node("QLinearMatMul", list(inputs), ["y"])], inputs, ["y"], opset=21), inputs


DRAWN = {
    drawn_product: 16,
    drawn_byte_product: 10,
    drawn_attention: 16,
    drawn_linear_attention: 8,
    drawn_causal_conv: 6,
    drawn_rotary: 6,
}


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(
    ("draw", "seed"), list(itertools.chain(*(itertools.product([draw], range(n)) for draw, n in DRAWN.items())))
)
def test_bits_are_the_engines(tmp_path, draw, seed, processor):
    if not usable(PROCESSORS[processor][0]):
        pytest.skip("the processor has no fused multiply-add")
    model, feeds = draw(np.random.default_rng(seed))
    assert run_both(tmp_path, model, feeds, processor) == ""

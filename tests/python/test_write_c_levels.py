"""Models as C: quantised levels, products with bytes, and elements of 8 bits and less give the engine's bits."""

import itertools

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper
from test_write_c import PROCESSORS, model_of, run_both, usable

INTEGERS = ["INT8", "UINT8", "INT16", "UINT16", "INT4", "UINT4", "INT2", "UINT2"]
NARROW_FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
NARROW = [*INTEGERS[4:], *NARROW_FLOATS, "FLOAT8E8M0"]
SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 64, 100]


def newest(model):
    """The model with the versions that have all element types."""
    model.ir_version = 13
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", 25), helper.make_opsetid("com.microsoft", 1)])
    return model


def number(name: str) -> int:
    return TensorProto.DataType.Value(name)


def values(random, shape, dtype=np.float32) -> np.ndarray:
    """Numbers of all sizes, among them halves, numbers out of range, infinities and NaN."""
    x = random.standard_normal(shape) * 10.0 ** random.integers(-3, 4, shape)
    half = random.random(shape)
    x = np.where(half < 0.2, random.integers(-40, 40, shape) / 2, x)
    x = np.where(half > 0.97, random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e9, 4.3e9, -5e10], shape), x)
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def drawn_levels(random):
    """Levels of floats, moved, and floats of these levels; one scale, or along an axis, or by blocks."""
    shape = [int(random.choice(SIZES[:8])) for _ in range(3)]
    to = str(random.choice(INTEGERS + NARROW_FLOATS))
    kind, axis = str(random.choice(["tensor", "axis", "blocks"])), int(random.integers(3))
    block = int(random.integers(1, shape[axis] + 1)) if kind == "blocks" else 0
    scales = {
        "tensor": [],
        "axis": [shape[axis]],
        "blocks": [-(-size // block) if d == axis else size for d, size in enumerate(shape)] if block else [],
    }[kind]
    dtype = random.choice([np.float32, np.float16])
    scale = (random.random(scales) * 3 + 0.01).astype(dtype)
    x = values(random, shape, dtype)
    attributes = {"axis": axis, "block_size": block}
    zero = []
    constants = {"scale": np.asarray(scale)}
    graph_constants = []
    if to in INTEGERS:
        low, high = {"U": (0, 4)}.get(to[0], (-2, 2))
        levels = helper.tensor_dtype_to_np_dtype(number(to))
        made = np.asarray(random.integers(low, high, scales)).astype(levels)
        graph_constants = [numpy_helper.from_array(made, "zero")]
        zero = ["zero"]
    else:
        attributes |= {"output_dtype": number(to)}
    quantize = dict(attributes)
    if to in NARROW_FLOATS:
        quantize["saturate"] = int(random.integers(2))
    attributes.pop("output_dtype", None)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", *zero], ["levels"], **quantize),
        helper.make_node("DequantizeLinear", ["levels", "scale", *zero], ["y"], **attributes),
        helper.make_node("Transpose", ["levels"], ["turned"], perm=[2, 0, 1]),
        helper.make_node("Cast", ["turned"], ["t"], to=TensorProto.FLOAT),
    ]
    model = newest(model_of(nodes, {"x": x}, ["y", "t"], constants, opset=25))
    model.graph.initializer.extend(graph_constants)
    return model, {"x": x}


def drawn_range(random):
    x = values(random, [int(random.choice(SIZES)), int(random.choice(SIZES))])
    if random.integers(3) > 0:
        x = np.nan_to_num(x, posinf=1, neginf=-1)
    if random.integers(4) == 0:
        x = np.abs(x)
    if random.integers(6) == 0:
        x[:] = 0
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    return model_of([node], {"x": x}, ["y", "scale", "zero"]), {"x": x}


def drawn_narrow(random):
    """Conversions to a narrow type, moves of its elements, and conversions back."""
    shape = [int(random.choice([1, 2, 5, 8])), int(random.choice([4, 7, 16]))]
    dtype = random.choice([np.float32, np.float64, np.float16, np.int64, np.uint8, np.int8, np.bool_])
    with np.errstate(invalid="ignore"):
        x = values(random, shape, np.float64).astype(dtype)
    first, second = (str(random.choice(NARROW)) for _ in range(2))
    moves = [
        ("Transpose", [], {"perm": [1, 0]}),
        ("Reshape", ["flat"], {}),
        ("Identity", [], {}),
        ("Flatten", [], {}),
        ("Unsqueeze", ["axes"], {}),
    ]
    op, more, attributes = moves[int(random.integers(len(moves)))]
    constants = {
        "flat": np.array([-1]),
        "axes": np.array([1]),
    }

    def cast(a, b, to):
        options = {"saturate": int(random.integers(2))} if to.startswith("FLOAT8") else {}
        if to == "FLOAT8E8M0":
            options["round_mode"] = str(random.choice(["up", "down", "nearest"]))
        return helper.make_node("Cast", [a], [b], to=number(to), **options)

    nodes = [
        cast("x", "narrow", first),
        helper.make_node(op, ["narrow", *more], ["moved"], **attributes),
        cast("moved", "again", second),
        helper.make_node("Cast", ["moved"], ["a"], to=int(random.choice([1, 10, 11, 16, 6, 7, 2, 9, 13]))),
        helper.make_node("Cast", ["again"], ["b"], to=TensorProto.FLOAT),
    ]
    if nodes[3].attribute[0].i == TensorProto.BFLOAT16:  # numpy's files hold none
        nodes.insert(4, helper.make_node("Cast", ["a"], ["c"], to=TensorProto.FLOAT))
    used = {name: constants[name] for name in more if name in constants}
    outputs = ["c" if len(nodes) == 6 else "a", "b"]
    return newest(model_of(nodes, {"x": x}, outputs, used, opset=25)), {"x": x}


def drawn_weights(random):
    """Products with constant weights that stay bytes."""
    m, n = int(random.choice([1, 2, 4, 5])), int(random.choice([1, 2, 3, 8, 17, 40]))
    k = (1 << 15) // n + int(random.integers(1, 9))
    dtype = random.choice([np.int8, np.uint8])
    transposed = bool(random.integers(2))
    weights = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (n, k) if transposed else (k, n)).astype(dtype)
    scales = [n] if random.integers(2) else []
    constants = {
        "bytes": weights,
        "scale": np.asarray((random.random(scales) / 50 + 0.001).astype(np.float32)),
        "zero": np.asarray(random.integers(0, 100, scales).astype(dtype)),
        "bias": random.standard_normal(n).astype(np.float32),
    }
    x = random.standard_normal((m, k)).astype(np.float32)
    attributes = {"alpha": float(random.choice([1, 0.5])), "beta": float(random.choice([1, 2]))}
    nodes = [
        helper.make_node("DequantizeLinear", ["bytes", "scale", "zero"], ["w"], axis=0 if transposed else 1),
        helper.make_node("Gemm", ["x", "w", "bias"], ["y"], transB=int(transposed), **attributes),
    ]
    return model_of(nodes, {"x": x}, ["y"], constants), {"x": x}


def drawn_blocks(random):
    """Products with weights of few bits, in blocks with scales and zero points."""
    k, n, m = (
        int(random.choice([16, 33, 70, 128])),
        int(random.choice([1, 3, 8, 17, 33])),
        int(random.choice([1, 2, 3, 7])),
    )
    block, bits = int(random.choice([16, 32, 64])), int(random.choice([2, 4, 8]))
    blocks = -(-k // block)
    dtype = random.choice([np.float32, np.float16])
    constants = {
        "weights": random.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
        "scales": (random.random(n * blocks) / 9).astype(dtype),
        "bias": random.standard_normal(n).astype(dtype),
    }
    zeros = str(random.choice(["", "packed", "floats"]))
    if zeros == "packed":
        constants["zeros"] = random.integers(0, 256, n * -(-blocks * bits // 8)).astype(np.uint8)
    if zeros == "floats":
        constants["zeros"] = (random.random(n * blocks) * 4).astype(dtype)
    x = random.standard_normal((2, m, k)).astype(dtype)
    given = ["x", "weights", "scales", "zeros" if zeros else "", "", "bias" if random.integers(2) else ""]
    node = helper.make_node("MatMulNBits", given, ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
    model = model_of([], {"x": x}, ["y"], constants, opset=25)
    model.graph.node.append(node)
    model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return newest(model), {"x": x}


def drawn_lstm(random):
    """An LSTM with weights of 8 bits, whose steps are quantised as they come."""
    hidden, steps, directions = int(random.choice([1, 5, 16])), int(random.choice([1, 7])), int(random.integers(1, 3))
    dtype = random.choice([np.int8, np.uint8])

    def weights(rows):
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (directions, rows, 4 * hidden)).astype(dtype)

    scales = [directions, 4 * hidden] if random.integers(2) else [directions]
    constants = {"W": weights(3), "R": weights(hidden), "B": random.standard_normal((directions, 8 * hidden))}
    for of in "WR":
        constants[f"{of}_scale"] = random.random(scales) / 60
        constants[f"{of}_zero"] = random.integers(0, 20, scales).astype(dtype)
    constants = {n: a.astype(np.float32) if a.dtype == np.float64 else a for n, a in constants.items()}
    x = random.standard_normal((steps, 2, 3)).astype(np.float32)
    given = ["x", "W", "R", "B" if random.integers(2) else "", "", "", "", ""]
    given += ["W_scale", "W_zero", "R_scale", "R_zero"]
    attributes = {"direction": "bidirectional"} if directions == 2 else {}
    node = helper.make_node(
        "DynamicQuantizeLSTM", given, ["y", "h", "c"], domain="com.microsoft", hidden_size=hidden, **attributes
    )
    model = model_of([], {"x": x}, ["y", "h", "c"], constants, opset=25)
    model.graph.node.append(node)
    for output in model.graph.output:
        output.type.tensor_type.elem_type = TensorProto.FLOAT
    return newest(model), {"x": x}


DRAWN = {drawn_levels: 12, drawn_range: 4, drawn_narrow: 16, drawn_weights: 5, drawn_blocks: 10, drawn_lstm: 4}


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("draw", "seed"), [(d, s) for d, n in DRAWN.items() for s in range(n)])
def test_bits_are_the_engines(tmp_path, draw, seed, processor):
    if not usable(PROCESSORS[processor][0]):
        pytest.skip("the processor has no fused multiply-add")
    model, feeds = draw(np.random.default_rng(seed))
    assert run_both(tmp_path, model, feeds, processor) == ""


@pytest.mark.parametrize(
    ("dtype", "to"),
    list(itertools.product([np.float32, np.float64], ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32"])),
)
def test_integers_of_floats_out_of_range(tmp_path, dtype, to):
    x = np.array([3e9 + 1, -3e9 - 1, 4.3e9, 1e10 + 77, 2.0**31, -(2.0**31), 300.7, -1.5, np.nan, np.inf, 1e30], dtype)
    node = helper.make_node("Cast", ["x"], ["y"], to=number(to))
    assert run_both(tmp_path, model_of([node], {"x": x}, ["y"]), {"x": x}, "baseline") == ""


def test_weights_stay_bytes():
    model, _ = drawn_weights(np.random.default_rng(0))
    source, _ = treadle.InferenceSession(model.SerializeToString()).write_c()
    assert "int8_t" in source
    assert "product_of_" in source or "dot_" in source


def test_the_header_says_how_narrow_elements_lie():
    text = """<ir_version: 13, opset_import: ["" : 25]>
g (int4[3] x, uint2[3] z, float8e4m3fn[2] like, string[1] note) => (int4[3] y, uint2[3] w) {
  y = Identity (x)
  w = Identity (z)
}"""
    _, header = treadle.InferenceSession(treadle.parse_model(text)).write_c()
    assert 'const int8_t *x; /* "x": tensor(int4)[3], 3 elements, one in each byte, with its sign */' in header
    assert 'const uint8_t *z; /* "z": tensor(uint2)[3], 3 elements, one in the low bits of each byte */' in header
    # Inputs that nothing reads may be of any type.
    assert '/* "like" has no influence. */' in header
    assert '/* "note" has no influence. */' in header


def test_loops_and_branches_carry_narrow_elements(tmp_path):
    text = """<ir_version: 13, opset_import: ["" : 25]>
g (float[3] x, float[3] f, bool c) => (float[3] y, float[5,3] rows, float[3] chosen) {
  n = Constant <value = int64 {5}> ()
  on = Constant <value = bool {1}> ()
  x4 = Cast <to = 22> (x)
  f8 = Cast <to = 17> (f)
  y4, last, rows8 = Loop (n, on, x4, f8) <body = b (int64 i, bool cc, int4[3] a, float8e4m3fn[3] q)
                                           => (bool d, int4[3] a2, float8e4m3fn[3] q2, float8e4m3fn[3] row) {
    d = Identity (cc)
    by = Constant <value = float {1.5}> ()
    af = Cast <to = 1> (a)
    less = Sub (af, by)
    a2 = Cast <to = 22> (less)
    qf = Cast <to = 1> (q)
    more = Mul (qf, by)
    q2 = Cast <to = 17> (more)
    row = Identity (q2)
  }>
  z4 = If (c) <then_branch = th () => (int4[3] tt) { tt = Identity (x4) },
               else_branch = el () => (int4[3] ee) { ee = Identity (y4) }>
  y = Cast <to = 1> (y4)
  rows = Cast <to = 1> (rows8)
  chosen = Cast <to = 1> (z4)
}"""
    model = onnx.load_from_string(treadle.parse_model(text))
    for c in (True, False):
        feeds = {"x": np.array([-3, 2, 7], np.float32), "f": np.array([1, -2.5, 300], np.float32), "c": np.array(c)}
        folder = tmp_path / str(c)
        folder.mkdir()
        assert run_both(folder, model, feeds, "baseline") == ""

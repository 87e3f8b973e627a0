"""Models of one operator whose weights are constants that its preparation packs: KINDS, by what is special, and
draw_kind() for any number more.

`scale` says how large the weights are: 1 is some 4 MB, which take a few milliseconds to pack.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import treadle
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 22, "com.microsoft": 1}
MEGABYTE = 1 << 20
WEIGHTS = 4 * MEGABYTE  # at scale 1


class Model:
    """Nodes on inputs that are fed and constants."""

    def __init__(self, seed: int = 1):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.feeds, self.constants = [], {}, []

    def floats(self, *shape, dtype=np.float32) -> np.ndarray:
        return (self.rng.random(shape, np.float32) - 0.5).astype(dtype)

    def integers(self, low, high, *shape, dtype=np.uint8) -> np.ndarray:
        return self.rng.integers(low, high, shape, dtype)

    def fed(self, value) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = np.asarray(value)
        return name

    def constant(self, value) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def call(self, op: str, *inputs, outputs=1, domain="", **attributes) -> str:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def build(self, in_run: bool = False) -> tuple[bytes, dict]:
        """The result of the last node is that of the model. `in_run`: no plan knows the first size of the feeds, so
        that a run prepares the nodes.
        """
        nodes, feeds = self.nodes, self.feeds
        if in_run:
            kept = {f"all_{name}": np.ones(len(x), bool) for name, x in feeds.items()}
            whole = [node for name, x in feeds.items() for node in kept_whole(name, x.dtype == ml_dtypes.bfloat16)]
            nodes, feeds = [*whole, *nodes], {f"of_{name}": x for name, x in feeds.items()} | kept
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), [f"{name}_{i}" for i in range(x.ndim)]
            )
            for name, x in feeds.items()
        ]
        results = [helper.make_empty_tensor_value_info(self.nodes[-1].output[0])]
        graph = helper.make_graph(nodes, "packed", inputs, results, self.constants)
        opsets = [helper.make_opsetid(d, v) for d, v in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def kept_whole(name: str, narrow: bool) -> list:
    """`name` of the feeds as of_<name>. Compress does not take bfloat16, which is `narrow`."""
    if not narrow:
        return [helper.make_node("Compress", [f"of_{name}", f"all_{name}"], [name], axis=0)]
    return [
        helper.make_node("Cast", [f"of_{name}"], [f"wide_{name}"], to=TensorProto.FLOAT),
        helper.make_node("Compress", [f"wide_{name}", f"all_{name}"], [f"kept_{name}"], axis=0),
        helper.make_node("Cast", [f"kept_{name}"], [name], to=TensorProto.BFLOAT16),
    ]


def edge(scale: float, width: int = 4, columns: int | None = None) -> int:
    """Rows of a matrix of WEIGHTS * scale bytes: square, or of so many columns."""
    elements = WEIGHTS * scale / width
    return max(int(elements / columns if columns else elements**0.5) // 16 * 16, 16)


# ---- products


def product(dtype=np.float32, columns: int | None = None, rows: int = 3, stack: int = 1):
    def make(m: Model, scale: float):
        width = np.dtype(dtype).itemsize
        k = edge(scale / stack, width, columns)
        n = columns or k
        made = m.floats if np.dtype(dtype).kind not in "iu" else lambda *s, dtype: m.integers(0, 99, *s, dtype=dtype)
        w = made(*([stack] if stack > 1 else []), k, n, dtype=dtype)
        a = made(*([stack] if stack > 1 else []), rows, k, dtype=dtype)
        m.call("MatMul", m.fed(a), m.constant(w))

    return make


def gemm(dtype=np.float32, **attributes):
    def make(m: Model, scale: float):
        k = edge(scale, np.dtype(dtype).itemsize)
        a = m.floats(*((k, 5) if attributes.get("transA") else (5, k)), dtype=dtype)
        m.call(
            "Gemm",
            m.fed(a),
            m.constant(m.floats(k, k, dtype=dtype)),
            m.constant(m.floats(k, dtype=dtype)),
            **attributes,
        )

    return make


def half_floats(m: Model, scale: float):
    """Weights that lose nothing as float16 numbers."""
    k = edge(scale)
    m.call("MatMul", m.fed(m.floats(2, k)), m.constant(m.floats(k, k).astype(np.float16).astype(np.float32)))


def folded(m: Model, scale: float):
    k = edge(scale)
    m.call(
        "MatMul",
        m.fed(m.floats(2, k)),
        m.call("Mul", m.call("Transpose", m.constant(m.floats(k, k))), m.constant(np.float32(2))),
    )


def einsum(m: Model, scale: float):
    k = edge(scale)
    m.call("Einsum", m.fed(m.floats(2, 3, k)), m.constant(m.floats(k, k)), equation="abk,nk->abn")


def contrib_product(op: str, **attributes):
    def make(m: Model, scale: float):
        k = edge(scale)
        m.call(op, m.fed(m.floats(3, k)), m.constant(m.floats(k, k)), domain="com.microsoft", **attributes)

    return make


def dequantized(dtype, per_column: bool, op: str = "MatMul", **attributes):
    def make(m: Model, scale: float):
        k = edge(scale, 1)
        low, high = (0, 255) if dtype == np.uint8 else (-128, 127)
        w = m.constant(m.integers(low, high, k, k, dtype=dtype))
        scales = m.constant(m.floats(k) + 1 if per_column else np.float32(0.1))
        zero = np.full(k if per_column else (), 128 if dtype == np.uint8 else 0, dtype)
        axis = 0 if attributes.get("transB") else 1
        made = m.call("DequantizeLinear", w, scales, m.constant(zero), **({"axis": axis} if per_column else {}))
        m.call(op, m.fed(m.floats(4, k)), made, **attributes)

    return make


def matmul_integer(signed: bool, fits: bool):
    def make(m: Model, scale: float):
        k = edge(scale, 1)
        most = 60 if fits else 127
        w = m.integers(-most, most, k, k, dtype=np.int8) if signed else m.integers(0, 2 * most, k, k)
        m.call("MatMulInteger", m.fed(m.integers(0, 255, 3, k)), m.constant(w))

    return make


def qlinear_matmul(m: Model, scale: float):
    k = edge(scale, 1)
    s, z = m.constant(np.float32(0.01)), m.constant(np.uint8(128))
    m.call("QLinearMatMul", m.fed(m.integers(0, 255, 3, k)), s, z, m.constant(m.integers(0, 255, k, k)), s, z, s, z)


def dynamic_quantized(m: Model, scale: float):
    k = edge(scale, 1)
    w = m.constant(m.integers(0, 255, k, k))
    m.call(
        "DynamicQuantizeMatMul",
        m.fed(m.floats(3, k)),
        w,
        m.constant(np.float32(0.01)),
        m.constant(np.uint8(128)),
        domain="com.microsoft",
    )


def few_bits(bits: int, zeros: bool, dtype=np.float32, block: int = 32):
    def make(m: Model, scale: float):
        k = edge(scale * 8 / bits, 1)
        n, blocks = k, (k + block - 1) // block
        inputs = [m.fed(m.floats(3, k, dtype=dtype)), m.constant(m.integers(0, 255, n, blocks, block * bits // 8))]
        inputs.append(m.constant(m.floats(n * blocks, dtype=dtype)))
        if zeros:
            inputs.append(m.constant(m.integers(0, 255, n, (blocks * bits + 7) // 8)))
        m.call("MatMulNBits", *inputs, domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)

    return make


def experts(m: Model, scale: float):
    k = edge(scale / 8)
    w = m.constant(m.floats(8, k, k))
    m.call("MoE", m.fed(m.floats(6, k)), m.fed(m.floats(6, 8)), w, "", w, domain="com.microsoft", k=2)


def quantized_experts(m: Model, scale: float):
    k = edge(scale / 8, 1)
    w, s = m.constant(m.integers(0, 255, 8, k, k)), m.constant(m.floats(8, k))
    m.call(
        "QMoE",
        m.fed(m.floats(6, k)),
        m.fed(m.floats(6, 8)),
        w,
        s,
        "",
        w,
        s,
        domain="com.microsoft",
        k=2,
        expert_weight_bits=8,
        activation_type="gelu",
    )


# ---- convolutions


def convolution(
    x: tuple, kernel: tuple, out: int | None = None, dtype=np.float32, transposed=False, channels=None, **attributes
):
    """Channels so that the weights are as large as they should be: as many in as out, or `out` and the rest in."""

    def make(m: Model, scale: float):
        group = attributes.get("group", 1)
        taps, width = int(np.prod(kernel)), np.dtype(dtype).itemsize
        elements = WEIGHTS * scale / width / taps * group
        c = channels or max(int(elements / out if out else elements**0.5) // (4 * group) * 4 * group, group)
        o = out or (max(int(elements / c), group) if channels else c)
        shape = (c, o // group, *kernel) if transposed else (o, c // group, *kernel)
        op = "ConvTranspose" if transposed else "Conv"
        m.call(op, m.fed(m.floats(1, c, *x, dtype=dtype)), m.constant(m.floats(*shape, dtype=dtype)), **attributes)

    return make


def normalized(op: str):
    """Weights that a rewrite multiplies by the scales of a normalisation."""

    def make(m: Model, scale: float):
        convolution((6, 6), (3, 3), transposed=op == "ConvTranspose")(m, scale)
        c = m.constants[0].dims[1]
        parameters = [m.constant(m.floats(c) + 1) for _ in range(4)]
        m.call("BatchNormalization", m.nodes[0].output[0], *parameters)

    return make


def bytes_transposed(m: Model, scale: float):
    """Weights that become those of a product of bytes."""
    k = edge(scale, 1)
    s, z = m.constant(np.float32(0.01)), m.constant(np.uint8(128))
    x = m.call("DequantizeLinear", m.fed(m.integers(0, 255, 3, k)), s, z)
    w = m.call("DequantizeLinear", m.constant(m.integers(0, 255, k, k)), s, z)
    m.call("QuantizeLinear", m.call("Gemm", x, w, transB=1), s, z)


def depthwise(last: bool = False):
    def make(m: Model, scale: float):
        c = int(WEIGHTS * scale / 4 / 25)
        if last:
            m.call(
                "NhwcConv",
                m.fed(m.floats(1, 3, 3, c)),
                m.constant(m.floats(c, 1, 5, 5)),
                domain="com.microsoft",
                group=c,
                pads=[2] * 4,
            )
        else:
            m.call("Conv", m.fed(m.floats(1, c, 3, 3)), m.constant(m.floats(c, 1, 5, 5)), group=c, pads=[2] * 4)

    return make


def last_channels(kernel: int):
    def make(m: Model, scale: float):
        c = edge(scale / kernel**2)
        m.call(
            "NhwcConv", m.fed(m.floats(1, 5, 5, c)), m.constant(m.floats(c, c, kernel, kernel)), domain="com.microsoft"
        )

    return make


def transform(m: Model, scale: float):
    """The filters of a windowed Fourier transform."""
    n = max(edge(scale) // 32 * 32, 64)
    t, f = np.arange(n), np.arange(n // 2)[:, None]
    angle = 2 * np.pi * t * f / n
    filters = np.concatenate([np.cos(angle), np.sin(angle)]) * np.hanning(n + 1)[:n]
    m.call("Conv", m.fed(m.floats(1, 1, 4 * n)), m.constant(filters[:, None].astype(np.float32)), strides=[n // 4])


def byte_convolution(op: str, channels: int | None, kernel: int, fits: bool = True, group: bool = False):
    def make(m: Model, scale: float):
        taps = kernel * kernel
        elements = WEIGHTS * scale
        most = 60 if fits else 127
        if group:
            c = int(elements / taps)
            shape, attributes = (c, 1, kernel, kernel), {"group": c}
        else:
            c = channels or edge(scale / taps, 1)
            shape, attributes = (int(elements / taps / c) if channels else c, c, kernel, kernel), {}
        x, w = (
            m.fed(m.integers(0, 255, 1, c, kernel + 2, kernel + 2)),
            m.constant(m.integers(-most, most, *shape, dtype=np.int8)),
        )
        if op == "ConvInteger":
            m.call(op, x, w, **attributes)
        else:
            s, z, zw = m.constant(np.float32(0.01)), m.constant(np.uint8(128)), m.constant(np.int8(0))
            m.call(op, x, s, z, w, s, zw, s, z, **attributes)

    return make


# ---- recurrences and attention


def recurrent(op: str, gates: int):
    def make(m: Model, scale: float):
        h = edge(scale / gates / 2)
        weights = [m.constant(m.floats(1, gates * h, h) / 99) for _ in range(2)]
        m.call(op, m.fed(m.floats(3, 2, h)), *weights, hidden_size=h)

    return make


def quantized_lstm(m: Model, scale: float):
    h = edge(scale / 8, 1)
    w = [m.constant(m.integers(0, 255, 1, h, 4 * h)) for _ in range(2)]
    s, z = m.constant(np.full(1, 0.001, np.float32)), m.constant(np.full(1, 128, np.uint8))
    m.call(
        "DynamicQuantizeLSTM",
        m.fed(m.floats(3, 2, h)),
        *w,
        "",
        "",
        "",
        "",
        "",
        s,
        z,
        s,
        z,
        domain="com.microsoft",
        hidden_size=h,
    )


def attention(op: str):
    def make(m: Model, scale: float):
        quantized = op == "QAttention"
        h = max(edge(scale / 3, 1 if quantized else 4) // 64 * 64, 64)
        bias = m.constant(m.floats(3 * h))
        if not quantized:
            m.call(
                op, m.fed(m.floats(1, 4, h)), m.constant(m.floats(h, 3 * h)), bias, domain="com.microsoft", num_heads=8
            )
            return
        s, z = m.constant(np.float32(0.01)), m.constant(np.uint8(128))
        x, w = m.fed(m.integers(0, 255, 1, 4, h)), m.constant(m.integers(0, 255, h, 3 * h))
        m.call(op, x, w, bias, s, s, "", z, z, domain="com.microsoft", num_heads=8)

    return make


KINDS: dict[str, Callable[[Model, float], None]] = {
    "MatMul": product(),
    "MatMul: three columns": product(columns=3),
    "MatMul: one column": product(columns=1),
    "MatMul: two columns": product(columns=2),
    "MatMul: few rows of B": product(columns=WEIGHTS // 256),
    "MatMul: stacked": product(stack=64),
    "MatMul: double": product(np.float64),
    "MatMul: one column of doubles": product(np.float64, columns=1),
    "MatMul: float16": product(np.float16),
    "MatMul: bfloat16": product(ml_dtypes.bfloat16),
    "MatMul: int32": product(np.int32),
    "MatMul: uint64": product(np.uint64),
    "MatMul: many rows": product(rows=65),
    "MatMul: half floats": half_floats,
    "MatMul: folded constants": folded,
    "Gemm": gemm(),
    "Gemm: transB": gemm(transB=1),
    "Gemm: transA": gemm(transA=1),
    "Gemm: double transB": gemm(np.float64, transB=1),
    "Gemm: float16 transB": gemm(np.float16, transB=1),
    "Einsum": einsum,
    "FusedMatMul": contrib_product("FusedMatMul", alpha=0.5),
    "FusedMatMul: transB": contrib_product("FusedMatMul", transB=1),
    "FusedGemm": contrib_product("FusedGemm", activation="Relu"),
    "DequantizeLinear, MatMul": dequantized(np.int8, True),
    "DequantizeLinear of uint8, MatMul": dequantized(np.uint8, False),
    "DequantizeLinear, Gemm": dequantized(np.int8, True, "Gemm", transB=1),
    "MatMulInteger": matmul_integer(False, False),
    "MatMulInteger: int8": matmul_integer(True, True),
    "MatMulInteger: int8 of all sizes": matmul_integer(True, False),
    "QLinearMatMul": qlinear_matmul,
    "DynamicQuantizeMatMul": dynamic_quantized,
    "MatMulNBits": few_bits(4, False),
    "MatMulNBits: zero points": few_bits(4, True),
    "MatMulNBits: 2 bits": few_bits(2, False, block=16),
    "MatMulNBits: 8 bits of float16": few_bits(8, True, np.float16),
    "MoE": experts,
    "QMoE": quantized_experts,
    "Conv": convolution((6, 6), (3, 3)),
    "Conv: few filters": convolution((8, 8), (3, 3), out=6),
    "Conv: one filter": convolution((4, 4), (3, 3), out=1),
    "Conv: one channel": convolution((70, 70), (64, 64), out=None, channels=1),
    "Conv: 1x1": convolution((5, 5), (1, 1)),
    "Conv: one position": convolution((3, 3), (3, 3)),
    "Conv: lines": convolution((20,), (9,)),
    "Conv: lines of one channel": convolution((4096,), (1024,), channels=1, out=512, strides=[64]),
    "Conv: volumes": convolution((4, 4, 4), (3, 3, 3)),
    "Conv: strides": convolution((12, 12), (3, 3), strides=[2, 2]),
    "Conv: dilations": convolution((12, 12), (3, 3), dilations=[3, 3]),
    "Conv: groups": convolution((7, 7), (3, 3), group=4),
    "Conv: many groups": convolution((4, 4), (3, 3), group=64),
    "Conv: taps in padding": convolution((1, 9), (7, 5), pads=[3, 2, 3, 2]),
    "Conv: double": convolution((6, 6), (3, 3), dtype=np.float64),
    "Conv: float16": convolution((6, 6), (3, 3), dtype=np.float16),
    "Conv: a transform": transform,
    "Conv: depthwise": depthwise(),
    "Conv, BatchNormalization": normalized("Conv"),
    "ConvTranspose, BatchNormalization": normalized("ConvTranspose"),
    "Gemm of bytes": bytes_transposed,
    "NhwcConv": last_channels(3),
    "NhwcConv: 1x1": last_channels(1),
    "NhwcConv: depthwise": depthwise(last=True),
    "ConvTranspose": convolution((5, 5), (3, 3), transposed=True, strides=[2, 2]),
    "ConvTranspose: few filters": convolution((5, 5), (3, 3), out=3, transposed=True),
    "ConvTranspose: lines": convolution((9,), (5,), transposed=True, strides=[3]),
    "ConvTranspose: double": convolution((5, 5), (3, 3), dtype=np.float64, transposed=True),
    "ConvInteger": byte_convolution("ConvInteger", None, 3),
    "ConvInteger: all sizes": byte_convolution("ConvInteger", None, 3, fits=False),
    "ConvInteger: two channels": byte_convolution("ConvInteger", 2, 7),
    "ConvInteger: two channels of all sizes": byte_convolution("ConvInteger", 2, 7, fits=False),
    "ConvInteger: 1x1": byte_convolution("ConvInteger", None, 1),
    "ConvInteger: depthwise": byte_convolution("ConvInteger", None, 5, group=True),
    "QLinearConv": byte_convolution("QLinearConv", None, 3),
    "QLinearConv: depthwise": byte_convolution("QLinearConv", None, 5, group=True),
    "LSTM": recurrent("LSTM", 4),
    "GRU": recurrent("GRU", 3),
    "RNN": recurrent("RNN", 1),
    "DynamicQuantizeLSTM": quantized_lstm,
    "Attention": attention("Attention"),
    "QAttention": attention("QAttention"),
}  # fmt: skip


def build(kind: str, scale: float = 1, in_run: bool = False) -> tuple[bytes, dict]:
    model = Model()
    KINDS[kind](model, scale)
    return model.build(in_run)


def draw_kind(seed: int, scale: float = 1) -> tuple[str, bytes, dict]:
    """A convolution or a product of drawn sizes, layout and type: how it is told, and the model."""
    rng = np.random.default_rng(seed)
    dtype = rng.choice(np.array([np.float32, np.float64, np.float16], object), p=[0.6, 0.2, 0.2])
    if rng.random() < 0.3:
        columns = int(rng.choice([0, 1, 2, 3, 17, 1000])) or None
        what = {"columns": columns, "rows": int(rng.integers(1, 40)), "stack": int(rng.choice([1, 3, 16]))}
        make, told = product(dtype, **what), f"MatMul {np.dtype(dtype).name} {what}"
    else:
        axes = int(rng.integers(1, 4))
        kernel = tuple(int(k) for k in rng.integers(1, 6, axes))
        x = tuple(int(k + rng.integers(0, 9)) for k in kernel)
        what = {"transposed": bool(rng.random() < 0.3), "group": int(rng.choice([1, 1, 1, 2, 4]))}
        what["strides"] = [int(s) for s in rng.integers(1, 4, axes)]
        if rng.random() < 0.3:
            what["pads"] = [int(p) for p in np.tile(np.minimum(rng.integers(0, 3, axes), np.array(kernel) - 1), 2)]
        if rng.random() < 0.3 and what["group"] == 1:
            what["out"] = int(rng.choice([1, 3, 8, 24]))
        make, told = convolution(x, kernel, dtype=dtype, **what), f"Conv {np.dtype(dtype).name} {x} {kernel} {what}"
    model = Model(seed)
    make(model, scale)
    return told, *model.build(bool(rng.random() < 0.3))


def open_session(model: bytes, threads: int = 1) -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    return treadle.InferenceSession(model, options)

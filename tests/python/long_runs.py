"""A run that takes long, for every operator that treadle runs: CASES.

Operators that work element by element need no recipe: their record says what they take, and each input gets BIG elements
of the first type that it may have. The others have a recipe in RECIPES, or stand in NO_LONG_RUN with the reason why none
can be made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import treadle
from onnx import TensorProto, helper

BIG = 40_000_000  # floats of a tensor whose size alone makes a run long
OPSETS = {
    "": 29,
    "ai.onnx.ml": 5,
    "ai.onnx.preview": 1,
    "ai.onnx.preview.training": 1,
    "com.microsoft": 1,
}
SEED = np.random.default_rng(1)


def floats(*shape) -> np.ndarray:
    return SEED.random(shape, np.float32) + 0.1


def integers(below: int, *shape, dtype=np.int64) -> np.ndarray:
    return SEED.integers(0, below, shape, dtype)


def flags(*shape) -> np.ndarray:
    return integers(2, *shape, dtype=np.uint8).astype(bool)


def texts(count: int, length: int = 12, different: int = 1000) -> np.ndarray:
    """Texts of ten digits and letters after them."""
    words = np.array([f"{i * 7919 % 10**10:010d}".ljust(length, "x")[:length] for i in range(different)], object)
    return words[integers(different, count)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A model as text, and its feeds. Text, because it leaves out the types of results."""

    nodes: str  # whose result is y
    feeds: Callable[[], dict]
    opsets: dict[str, int] = dataclasses.field(default_factory=dict)  # older ones than OPSETS

    def build(self) -> tuple[bytes, dict]:
        """The model, and inputs that are the engine's already."""
        feeds = self.feeds()
        opsets = ", ".join(f'"{d}" : {v}' for d, v in (OPSETS | self.opsets).items())
        inputs = ", ".join(f"{type_text(value)} {name}" for name, value in feeds.items())
        text = f"<ir_version: 13, opset_import: [{opsets}]>\ng ({inputs}) => (y) {{ {self.nodes} }}"
        return text.encode(), {name: to_value(value) for name, value in feeds.items()}


def to_value(fed):
    """As the engine holds it, where that is possible, so that no run has to convert it."""
    if isinstance(fed, dict):
        return fed
    if not isinstance(fed, list):
        return treadle.OrtValue.ortvalue_from_numpy(fed)._value
    text = f'<ir_version: 10, opset_import: ["" : 21]>\ng ({type_text(fed)} x) => (y) {{ y = Identity(x) }}'
    [value] = treadle.InferenceSession(text.encode())._engine.run_values(None, {"x": fed}, [], None)
    return value


def type_text(value) -> str:
    if isinstance(value, list):
        return f"seq({type_text(value[0])})"
    if isinstance(value, dict):
        key, element = next(iter(value.items()))
        return f"map({'string' if isinstance(key, str) else 'int64'}, {type_text(np.asarray(element))})"
    element = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(value.dtype)).lower()
    return f"{element}[{', '.join(map(str, value.shape))}]" if value.ndim else element


# The reasons why some operators take no time worth stopping, for any input.
REFERENCES = "hands on a reference to its input"
NO_LONG_RUN = {
    "Constant": "takes nothing and is made when a model is loaded",
    "If": "does what one of its bodies does",
    "Optional": REFERENCES,
    "OptionalGetElement": REFERENCES,
    "OptionalHasElement": "looks at one value",
    "SequenceAt": REFERENCES,
    "SequenceConstruct": "has as many inputs as are written in the model, and refers to them",
    "SequenceEmpty": "makes an empty list",
    "ai.onnx.preview.training.Gradient": "becomes operators that have a case each",
    "SequenceLength": "looks at one value",
    "Shape": "looks at the sizes of a tensor",
    "Size": "looks at the sizes of a tensor",
}


def ints(*values: int) -> str:
    """A constant of a model's text."""
    return f"Constant<value_ints = [{', '.join(map(str, values))}]>()"


def attribute_text(attributes: dict) -> str:
    def text(value):
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, np.ndarray):
            return f"{type_text(value)} {{{', '.join(map(str, value.tolist()))}}}"
        return f"[{', '.join(map(text, value))}]" if isinstance(value, list) else str(value)

    kinds = {np.ndarray: ": tensor"}
    return ", ".join(f"{name}{kinds.get(type(value), '')} = {text(value)}" for name, value in attributes.items())


TREE_DEPTH = 11


def complete_tree() -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the nodes of a binary tree, and which of them are leaves. Node i has the children 2i + 1 and 2i + 2."""
    number = np.arange(2**TREE_DEPTH - 1)
    return number, number >= 2 ** (TREE_DEPTH - 1) - 1


def old_tree(kind: str, **more) -> str:
    number, leaf = complete_tree()
    leaves = number[leaf].tolist()
    return attribute_text(
        {
            "nodes_treeids": [0] * len(number),
            "nodes_nodeids": number.tolist(),
            "nodes_featureids": (number % 8).tolist(),
            "nodes_modes": ["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf],
            "nodes_values": (number * 37 % 101 / 101).tolist(),
            "nodes_truenodeids": np.where(leaf, 0, 2 * number + 1).tolist(),
            "nodes_falsenodeids": np.where(leaf, 0, 2 * number + 2).tolist(),
            f"{kind}_treeids": [0] * len(leaves),
            f"{kind}_nodeids": leaves,
            f"{kind}_ids": [i % 3 for i in leaves],
            f"{kind}_weights": [i % 11 / 11 for i in leaves],
        }
        | more
    )


def new_tree() -> str:
    number, leaf = complete_tree()
    inner = number[~leaf]
    below = (2 * inner + 1 >= len(inner)).astype(int).tolist()  # whether the children are leaves
    first = np.where(below, 2 * inner + 1 - len(inner), 2 * inner + 1)
    leaves = int(leaf.sum())
    return attribute_text(
        {
            "n_targets": 3,
            "nodes_featureids": (inner % 8).tolist(),
            "nodes_modes": np.zeros(len(inner), np.uint8),
            "nodes_splits": (inner * 37 % 101 / 101).astype(np.float32),
            "nodes_truenodeids": first.tolist(),
            "nodes_trueleafs": below,
            "nodes_falsenodeids": (first + 1).tolist(),
            "nodes_falseleafs": below,
            "tree_roots": [0],
            "leaf_targetids": [i % 3 for i in range(leaves)],
            "leaf_weights": (np.arange(leaves) % 11 / 11).astype(np.float32),
        }
    )


def svm(vectors: int, features: int) -> dict:
    return {
        "kernel_type": "RBF",
        "kernel_params": [0.1, 0.0, 3.0],
        "support_vectors": floats(vectors * features).tolist(),
    }


IMAGE = (1, 64, 256, 256)
PLANES = (2, 64, 512, 512)
RECURRENT = {"x": (2000, 8, 256)}  # steps, batch, inputs


def recurrent(op: str, gates: int):
    h = 256
    return (
        f"y, z = {op}<hidden_size = {h}>(x, w, r)",
        lambda: {"x": floats(*RECURRENT["x"]), "w": floats(1, gates * h, 256) / 99, "r": floats(1, gates * h, h) / 99},
    )


def windows(op: str):
    return f"y = {op}<kernel_shape = [5, 5]>(x)", lambda: {"x": floats(*PLANES)}


def optimizer(op: str, attributes: str, states: int):
    names = [f"s{i}" for i in range(states)]
    results = ", ".join(["y", *(f"z{i}" for i in range(states))])
    return (
        f"{results} = ai.onnx.preview.training.{op}{attributes}(r, t, x, g, {', '.join(names)})",
        lambda: (
            {"r": np.float32(0.1).reshape(()), "t": np.array(3)}
            | {name: floats(BIG // 2) for name in ("x", "g", *names)}
        ),
    )


def square(n: int, dtype=np.float32):
    return lambda: {"a": integers(9, n, n).astype(dtype), "b": integers(9, n, n).astype(dtype)}


def boxes(n: int) -> np.ndarray:
    return np.sort(floats(1, n, 4), axis=-1)


def grams(skips: int) -> str:
    return attribute_text(
        {
            "mode": "TF",
            "min_gram_length": 1,
            "max_gram_length": 3,
            "max_skip_count": skips,
            "ngram_counts": [0, 1, 3],
            "ngram_indexes": [0, 1, 2],
            "pool_int64s": [1, 1, 1, 1, 1, 1],
        }
    )


def large() -> dict:
    return {"x": floats(6000, 6000)}


def rows_of_three() -> dict:
    return {"x": floats(BIG // 3, 3)}


def words(count: int = 1_000_000, length: int = 12):
    return lambda: {"x": texts(count, length)}


# Searches whose tokens never end: the end is forbidden by scores that fall with a token's number.
SEARCHED = "eos_token_id = 99999, pad_token_id = 1"
LOGITS = """f = Cast<to = 1>(ids) z = Constant<value_ints = [2]>() u = Unsqueeze(f, z) logits = Sub(w, u)
  h = Constant<value_ints = [1]>() k0 = Unsqueeze(u, h)"""
DECODER = f"""decoder = d (int32[b,s] ids, int32[b,s] pos, int32[b,t] mask, float[2,b,1,p,1] past) =>
  (float[b,s,100000] logits, float[2,b,1,q,1] present) {{
  {LOGITS} a = Constant<value_ints = [0]>() v = Unsqueeze(k0, a) kv = Concat<axis = 0>(v, v)
  present = Concat<axis = 3>(past, kv) }}"""
WHISPER = f"""encoder = e (float[b,f,g] x, int32[b,s] ids) => (float[b,s,100000] logits, float[b,g,f] hid,
  float[b,1,s,1] k0, float[b,1,s,1] v0, float[b,1,s,1] k1, float[b,1,s,1] v1) {{
  {LOGITS} hid = Transpose<perm = [0, 2, 1]>(x) v0 = Neg(k0) k1 = Abs(k0) v1 = Abs(k0) }},
  decoder = d (int32[b,1] ids, float[b,1,p,1] pk, float[b,1,p,1] pv, float[b,1,g,1] ck, float[b,1,g,1] cv) =>
  (float[b,1,100000] logits, float[b,1,q,1] nk, float[b,1,q,1] nv) {{
  {LOGITS} nk = Concat<axis = 2>(pk, k0) nv = Concat<axis = 2>(pv, k0) }}"""


def tokens_to_search() -> dict:
    return {"x": np.int32([[5]]), "n": np.int32([4000]), "w": -np.arange(100_000, dtype=np.float32) / 1000}


QUANTIZED = "sx, zx, sx, zx, sx, zx"
SCALES = {"sx": np.float32(0.1).reshape(()), "zx": np.uint8(3).reshape(())}


def bytes_to_scale() -> dict:
    return {"x": integers(255, *PLANES, dtype=np.uint8)} | SCALES


def dropped(names: str) -> dict:
    """The inputs of these names, of a node that drops half of a sum of them."""
    rows = BIG // 1500
    inputs = {"x": floats(rows, 1000), "b": floats(1000), "z": floats(rows, 1000)}
    return {name: inputs[name] for name in names.split(", ")} | {
        "r": np.float32(0.5).reshape(()),
        "t": np.array(True),
    }


def tokens_in_line(tokens: int) -> dict:
    """Where the tokens of one sequence lie, which is not padded."""
    return {"o": np.arange(tokens, dtype=np.int32)[None], "c": np.int32([0, tokens])}


# Nodes and feeds, by operator; "Operator: variant" if one is not enough.
RECIPES: dict[str, tuple[str, Callable[[], dict]]] = {
    # ---- moving elements -----
    "Cast: to strings": ("y = Cast<to = 8>(x)", lambda: {"x": floats(2_000_000)}),
    "Cast: from strings": ("y = Cast<to = 1>(x)", words(3_000_000, 10)),
    "Cast": ("y = Cast<to = 11>(x)", lambda: {"x": floats(BIG)}),
    "CastLike": ("y = CastLike(x, t)", lambda: {"x": floats(BIG), "t": np.zeros(1)}),
    "CastLike: to strings": ("y = CastLike(x, t)", lambda: {"x": floats(2_000_000), "t": texts(1)}),
    "BitCast": ("y = BitCast<to = 6>(x)", lambda: {"x": floats(BIG)}),
    "CenterCropPad": (f"s = {ints(6200, 6200)} y = CenterCropPad(x, s)", large),
    "Compress": ("y = Compress(x, c)", lambda: {"x": floats(BIG), "c": flags(BIG)}),
    "Concat": ("y = Concat<axis = 1>(x, x)", large),
    "ConcatFromSequence": ("y = ConcatFromSequence<axis = 0>(x)", lambda: {"x": [floats(100_000)] * 300}),
    "ConstantOfShape": ("y = ConstantOfShape(s)", lambda: {"s": np.array([2 * BIG])}),
    "DepthToSpace": ("y = DepthToSpace<blocksize = 4>(x)", lambda: {"x": floats(1, 128, 500, 500)}),
    "Expand": (f"s = {ints(30, BIG // 10)} y = Expand(x, s)", lambda: {"x": floats(BIG // 10)}),
    "EyeLike": ("y = EyeLike<dtype = 1>(x)", lambda: {"x": integers(2, 10_000, 10_000, dtype=np.int8)}),
    "Flatten": ("y = Flatten(x)", large),
    "Gather": ("y = Gather(x, i)", lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4)}),
    "Gather: rows": ("y = Gather(x, i)", lambda: {"x": floats(50_000, 100), "i": integers(50_000, 300_000)}),
    "GatherElements": ("y = GatherElements(x, i)", lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4)}),
    "GatherND": ("y = GatherND(x, i)", lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4, 1)}),
    "GroupedMatMul": (
        "y = GroupedMatMul(x, w, g)",
        lambda: {"x": floats(8000, 64), "w": floats(8, 64, 64), "g": integers(8, 8000, 2)},
    ),
    "com.microsoft.GatherPacked": (
        "y = com.microsoft.GatherPacked<packed_type = 23, K = 4096, output_dtype = 1>(x, i)",
        lambda: {"x": integers(255, 1000, 16 * 136, dtype=np.uint8), "i": integers(1000, 20_000)},
    ),
    "NonZero": ("y = NonZero(x)", lambda: {"x": flags(4, 4_000_000)}),
    "OneHot": (f"d = {ints(100)} v = {ints(0, 1)} y = OneHot(x, d, v)", lambda: {"x": integers(100, BIG // 40)}),
    "Pad": (f"p = {ints(500, 500, 500, 500)} y = Pad(x, p)", large),
    "Pad: reflected": (f'p = {ints(500, 500, 500, 500)} y = Pad<mode = "reflect">(x, p)', large),
    "Range": ("y = Range(a, b, c)", lambda: {"a": np.array(0), "b": np.array(BIG), "c": np.array(1)}),
    "Reshape": (f"s = {ints(-1)} y = Reshape(x, s)", large),
    "ReverseSequence": (
        "y = ReverseSequence(x, n)",
        lambda: {"x": floats(5000, 5000), "n": np.full(5000, 4999)},
    ),
    "Scatter": (
        "y = Scatter(x, i, u)",
        lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4), "u": floats(BIG // 4)},
        {"": 10},
    ),
    "ScatterElements": (
        "y = ScatterElements(x, i, u)",
        lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4), "u": floats(BIG // 4)},
    ),
    "ScatterElements: sums": (
        'y = ScatterElements<reduction = "add">(x, i, u)',
        lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4), "u": floats(BIG // 4)},
    ),
    "ScatterND": (
        "y = ScatterND(x, i, u)",
        lambda: {"x": floats(BIG), "i": integers(BIG, BIG // 4, 1), "u": floats(BIG // 4)},
    ),
    "Slice": (
        f"a = {ints(0, 5999)} b = {ints(6000, -7000)} c = {ints(0, 1)} d = {ints(1, -1)} y = Slice(x, a, b, c, d)",
        large,
    ),
    "SpaceToDepth": ("y = SpaceToDepth<blocksize = 4>(x)", lambda: {"x": floats(1, 4, 3000, 3000)}),
    "Split": ("y, z = Split<axis = 1, num_outputs = 2>(x)", lambda: {"x": floats(9000, 9000)}),
    "SplitToSequence": ("y = SplitToSequence(x)", lambda: {"x": floats(400_000, 4)}),
    "Squeeze": ("y = Squeeze(x)", lambda: {"x": floats(1, 6000, 6000)}),
    "TensorScatter": (
        "y = TensorScatter(x, u)",
        lambda: {"x": floats(1, 64, 4000, 128), "u": floats(1, 64, 1000, 128)},
    ),
    "Tile": (f"n = {ints(2, 2)} y = Tile(x, n)", lambda: {"x": floats(6000, 6000)}),
    "Transpose": ("y = Transpose(x)", large),
    "Trilu": ("y = Trilu(x)", large),
    "Unsqueeze": (f"a = {ints(0)} y = Unsqueeze(x, a)", large),
    "Where": ("y = Where(c, x, z)", lambda: {"c": flags(BIG), "x": floats(BIG), "z": floats(BIG)}),
    "ai.onnx.ml.ArrayFeatureExtractor": (
        "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
        lambda: {"x": floats(100, 200_000), "i": integers(200_000, 200_000)},
    ),
    # ---- moving texts -----
    "Compress: texts": ("y = Compress(x, c)", lambda: words(2_000_000)() | {"c": np.ones(2_000_000, bool)}),
    "Concat: texts": ("y = Concat<axis = 0>(x, x, x)", words(400_000, 40)),
    "ConcatFromSequence: texts": ("y = ConcatFromSequence<axis = 0>(x)", lambda: {"x": [texts(50_000, 40)] * 20}),
    "DepthToSpace: texts": (
        "y = DepthToSpace<blocksize = 2>(x)",
        lambda: {"x": texts(1_000_000, 40).reshape(1, 4, 500, 500)},
    ),
    "Expand: texts": (f"s = {ints(20, 50_000)} y = Expand(x, s)", words(50_000, 40)),
    "Gather: texts": ("y = Gather(x, i)", lambda: words()() | {"i": integers(1_000_000, 2_000_000)}),
    "Pad: texts": (f"p = {ints(500_000, 500_000)} y = Pad(x, p)", words(1_000_000, 40)),
    "Split: texts": ("y, z = Split<num_outputs = 2>(x)", words(1_000_000, 40)),
    "SplitToSequence: texts": ("y = SplitToSequence(x)", words(200_000, 40)),
    "Tile: texts": (f"n = {ints(20)} y = Tile(x, n)", words(50_000, 40)),
    "Transpose: texts": ("y = Transpose(x)", lambda: {"x": texts(1_000_000, 40).reshape(1000, 1000)}),
    "Where: texts": ("y = Where(c, x, x)", lambda: words(1_000_000, 40)() | {"c": flags(1_000_000)}),
    # ---- texts -----
    "Equal: texts": ("y = Equal(x, x)", words(6_000_000, 40)),
    "RegexFullMatch": ('y = RegexFullMatch<pattern = "([0-9]+x*)+">(x)', words(1_000_000, 40)),
    "RegexFullMatch: one text": (
        'y = RegexFullMatch<pattern = "(.*[0-9]+x*)+">(x)',
        lambda: {"x": np.array(["1234567890x" * 2_000_000], object)},
    ),
    "StringConcat": ("y = StringConcat(x, x)", words(1_000_000, 40)),
    "StringNormalizer": ('y = StringNormalizer<case_change_action = "UPPER">(x)', words(300_000, 80)),
    "StringNormalizer: one text": (
        'y = StringNormalizer<case_change_action = "UPPER">(x)',
        lambda: {"x": np.array(["abcdefghij" * 2_000_000], object)},
    ),
    "StringSplit": ('y, z = StringSplit<delimiter = "x">(x)', words(200_000, 20)),
    "TfIdfVectorizer": (f"y = TfIdfVectorizer<{grams(1)}>(x)", lambda: {"x": integers(5, 8_000_000)}),
    "TfIdfVectorizer: skips": (f"y = TfIdfVectorizer<{grams(10000)}>(x)", lambda: {"x": np.ones(60_000, np.int64)}),
    # ---- sorting, selecting -----
    "NonMaxSuppression": (
        f"m = {ints(1_000_000)} i = Constant<value_floats = [0.999]>() y = NonMaxSuppression(b, s, m, i)",
        lambda: {"b": boxes(15_000), "s": floats(1, 1, 15_000)},
    ),
    "NonMaxSuppression: sorting": (
        f"m = {ints(5)} y = NonMaxSuppression(b, s, m)",
        lambda: {"b": boxes(2_000_000), "s": floats(1, 1, 2_000_000)},
    ),
    "TopK": (f"k = {ints(2_000_000)} y, z = TopK(x, k)", lambda: {"x": floats(4_000_000)}),
    "TopK: few": (f"k = {ints(5)} y, z = TopK(x, k)", lambda: {"x": floats(100, 400_000)}),
    "TopK: columns": (f"k = {ints(5)} y, z = TopK<axis = 0>(x, k)", large),
    "Unique": ("y = Unique(x)", lambda: {"x": floats(3_000_000)}),
    "Unique: unsorted": ("y, a, b, c = Unique<sorted = 0>(x)", lambda: {"x": floats(3_000_000)}),
    "Unique: rows": ("y = Unique<axis = 0>(x)", lambda: {"x": floats(1_000_000, 4)}),
    "Unique: texts": ("y = Unique(x)", lambda: {"x": texts(1_000_000, different=1_000_000)}),
    # ---- sums and products -----
    "ArgMax": ("y = ArgMax<axis = 1>(x)", rows_of_three),
    "ArgMin": ("y = ArgMin<axis = 0>(x)", large),
    "CumProd": (f"a = {ints(0)} y = CumProd(x, a)", lambda: {"x": floats(BIG)}),
    "CumSum": (f"a = {ints(0)} y = CumSum(x, a)", lambda: {"x": floats(BIG)}),
    "CumSum: columns": (f"a = {ints(0)} y = CumSum(x, a)", large),
    "DFT": ("y = DFT(x)", lambda: {"x": floats(1, 1_000_003, 1)}),
    "DFT: columns": ("a = Constant<value_int = 1>() y = DFT(x, , a)", lambda: {"x": floats(1, 1000, 2000, 2)}),
    "Det": ("y = Det(a)", lambda: {"a": floats(1500, 1500)}),
    "Det: small": ("y = Det(a)", lambda: {"a": floats(400_000, 5, 5)}),
    "Einsum": ('y = Einsum<equation = "ij,kj->ik">(a, b)', square(2500)),
    "Einsum: sums": (
        'y = Einsum<equation = "ijk,ikl,lj->ij">(a, b, c)',
        lambda: {"a": floats(100, 400, 400), "b": floats(100, 400, 400), "c": floats(400, 400)},
    ),
    "Gemm": ("y = Gemm(a, b)", square(2500)),
    "MatMul": ("y = MatMul(a, b)", square(2500)),
    "MatMul: integers": ("y = MatMul(a, b)", square(1000, np.int64)),
    "MatMul: double": ("y = MatMul(a, b)", square(2000, np.float64)),
    "MatMulInteger": ("y = MatMulInteger(a, b)", square(4000, np.uint8)),
    "QLinearMatMul": (
        "y = QLinearMatMul(a, sx, zx, b, sx, zx, sx, zx)",
        lambda: square(4000, np.uint8)() | SCALES,
    ),
    "STFT": (
        "s = Constant<value_int = 64>() n = Constant<value_int = 1024>() y = STFT(x, s, , n)",
        lambda: {"x": floats(1, 1_000_000, 1)},
    ),
    **{
        f"Reduce{name}": (f"y = Reduce{name}(x, a)", lambda: rows_of_three() | {"a": np.array([1])})
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
    # ---- windows and images -----
    "AffineGrid": (f"s = {ints(1, 1, 4000, 4000)} y = AffineGrid(x, s)", lambda: {"x": floats(1, 2, 3)}),
    "AveragePool": windows("AveragePool"),
    "CausalConvWithState": (
        "y, z = CausalConvWithState(x, w)",
        lambda: {"x": floats(4, 512, 8000), "w": floats(512, 1, 4)},
    ),
    "Col2Im": (
        f"s = {ints(500, 500)} b = {ints(5, 5)} y = Col2Im(x, s, b)",
        lambda: {"x": floats(1, 4 * 25, 496 * 496)},
    ),
    "Conv": ("y = Conv(x, w)", lambda: {"x": floats(*IMAGE), "w": floats(128, 64, 5, 5)}),
    "Conv: one channel": ("y = Conv(x, w)", lambda: {"x": floats(1, 1, 3000, 3000), "w": floats(1, 1, 15, 15)}),
    "Conv: three axes": ("y = Conv(x, w)", lambda: {"x": floats(1, 32, 40, 64, 64), "w": floats(64, 32, 3, 3, 3)}),
    "ConvInteger": (
        "y = ConvInteger(x, w)",
        lambda: {"x": integers(99, *IMAGE, dtype=np.uint8), "w": integers(99, 128, 64, 5, 5, dtype=np.uint8)},
    ),
    "ConvTranspose": ("y = ConvTranspose(x, w)", lambda: {"x": floats(1, 64, 192, 192), "w": floats(64, 128, 5, 5)}),
    "DeformConv": (
        "y = DeformConv(x, w, o)",
        lambda: {"x": floats(1, 64, 160, 160), "w": floats(64, 64, 3, 3), "o": floats(1, 18, 158, 158)},
    ),
    "GlobalAveragePool": ("y = GlobalAveragePool(x)", lambda: {"x": floats(BIG // 4, 1, 2, 2)}),
    "GlobalLpPool": ("y = GlobalLpPool(x)", lambda: {"x": floats(BIG // 4, 1, 2, 2)}),
    "GlobalMaxPool": ("y = GlobalMaxPool(x)", lambda: {"x": floats(BIG // 4, 1, 2, 2)}),
    "GridSample": ("y = GridSample(x, g)", lambda: {"x": floats(1, 16, 500, 500), "g": floats(1, 700, 700, 2) - 0.5}),
    "GridSample: cubic": (
        'y = GridSample<mode = "cubic">(x, g)',
        lambda: {"x": floats(1, 4, 500, 500), "g": floats(1, 700, 700, 2) - 0.5},
    ),
    "LRN": ("y = LRN<size = 5>(x)", lambda: {"x": floats(*PLANES)}),
    "LpPool": windows("LpPool"),
    "MaxPool": windows("MaxPool"),
    "MaxRoiPool": (
        "y = MaxRoiPool<pooled_shape = [20, 20]>(x, r)",
        lambda: {"x": floats(1, 16, 256, 256), "r": np.float32([[0, 0, 0, 255, 255]] * 200)},
    ),
    "MaxUnpool": (
        "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i)",
        lambda: {"x": floats(1, 16, 700, 700), "i": integers(16 * 1400 * 1400, 1, 16, 700, 700)},
    ),
    "QLinearConv": (
        "y = QLinearConv(x, sx, zx, w, sx, zx, sx, zx)",
        lambda: {"x": integers(99, *IMAGE, dtype=np.uint8), "w": integers(99, 128, 64, 5, 5, dtype=np.uint8)} | SCALES,
    ),
    "Resize": (
        f'n = {ints(1, 1, 5000, 5000)} y = Resize<mode = "cubic">(x, , , n)',
        lambda: {"x": floats(1, 1, 3000, 3000)},
    ),
    "Resize: nearest": (f"n = {ints(1, 1, 6000, 6000)} y = Resize(x, , , n)", lambda: {"x": floats(1, 1, 3000, 3000)}),
    "Resize: linear": (
        f'n = {ints(1, 1, 6000, 6000)} y = Resize<mode = "linear">(x, , , n)',
        lambda: {"x": floats(1, 1, 3000, 3000)},
    ),
    "RoiAlign": (
        "y = RoiAlign<output_height = 20, output_width = 20, sampling_ratio = 4>(x, r, i)",
        lambda: {
            "x": floats(1, 16, 256, 256),
            "r": np.float32([[0, 0, 255, 255]] * 200),
            "i": np.zeros(200, np.int64),
        },
    ),
    "Upsample": (
        "y = Upsample(x, s)",
        lambda: {"x": floats(1, 3, 1000, 1000), "s": np.float32([1, 1, 3, 3])},
        {"": 9},
    ),
    # ---- norms and losses -----
    "BatchNormalization": (
        "y = BatchNormalization(x, s, s, s, s)",
        lambda: {"x": floats(8, 64, 300, 300), "s": floats(64)},
    ),
    "BatchNormalization: training": (
        "y, a, b = BatchNormalization<training_mode = 1>(x, s, s, s, s)",
        lambda: {"x": floats(8, 64, 300, 300), "s": floats(64)},
    ),
    "GroupNormalization": (
        "y = GroupNormalization<num_groups = 1>(x, s, s)",
        lambda: {"x": floats(1, 64, 500, 700), "s": floats(64)},
    ),
    "InstanceNormalization": (
        "y = InstanceNormalization(x, s, s)",
        lambda: {"x": floats(1, 4, 2000, 3000), "s": floats(4)},
    ),
    "LayerNormalization": ("y = LayerNormalization(x, s)", lambda: {"x": floats(6000, 6000), "s": floats(6000)}),
    "LogSoftmax": ("y = LogSoftmax(x)", lambda: {"x": floats(BIG)}),
    "LpNormalization": ("y = LpNormalization(x)", lambda: {"x": floats(BIG)}),
    "MeanVarianceNormalization": ("y = MeanVarianceNormalization(x)", lambda: {"x": floats(4, 64, 300, 300)}),
    "NegativeLogLikelihoodLoss": (
        "y = NegativeLogLikelihoodLoss(x, t)",
        lambda: {"x": floats(1, 2, BIG // 4), "t": integers(2, 1, BIG // 4)},
    ),
    "RMSNormalization": ("y = RMSNormalization(x, s)", lambda: {"x": floats(6000, 6000), "s": floats(6000)}),
    "Softmax": ("y = Softmax(x)", lambda: {"x": floats(BIG)}),
    "Softmax: columns": ("y = Softmax<axis = 0>(x)", large),
    "SoftmaxCrossEntropyLoss": (
        "y = SoftmaxCrossEntropyLoss(x, t)",
        lambda: {"x": floats(1, 2, BIG // 4), "t": integers(2, 1, BIG // 4)},
    ),
    # ---- quantisation -----
    "DequantizeLinear": (
        "y = DequantizeLinear(x, s)",
        lambda: {"x": integers(99, 2 * BIG, dtype=np.uint8), "s": np.float32(0.1).reshape(())},
    ),
    "DynamicQuantizeLinear": ("y, s, z = DynamicQuantizeLinear(x)", lambda: {"x": floats(BIG)}),
    "QuantizeLinear": ("y = QuantizeLinear(x, sx, zx)", lambda: {"x": floats(BIG)} | SCALES),
    **{
        f"com.microsoft.{op}": (f"y = com.microsoft.{op}(x, sx, zx, x, sx, zx, sx, zx)", bytes_to_scale)
        for op in ("QLinearAdd", "QLinearMul")
    },
    **{
        f"com.microsoft.{op}": (f"y = com.microsoft.{op}{named}(x, sx, zx, sx, zx)", bytes_to_scale)
        for op, named in (
            ("QLinearSigmoid", ""),
            ("QLinearLeakyRelu", ""),
            ("QLinearSoftmax", "<opset = 13>"),
            ("QLinearReduceMean", "<axes = [1], keepdims = 0>"),
            ("QLinearGlobalAveragePool", ""),
            ("QLinearAveragePool", "<kernel_shape = [5, 5]>"),
        )
    },
    "com.microsoft.QLinearWhere": (
        "y = com.microsoft.QLinearWhere(c, x, sx, zx, x, sx, zx, sx, zx)",
        lambda: bytes_to_scale() | {"c": flags(*PLANES)},
    ),
    "com.microsoft.QLinearConcat": (
        "y = com.microsoft.QLinearConcat<axis = 1>(sx, zx, x, sx, zx, x, sx, zx)",
        bytes_to_scale,
    ),
    "com.microsoft.QuantizeLinear": (
        "y = com.microsoft.QuantizeLinear(x, sx, zx)",
        lambda: {"x": floats(BIG)} | SCALES,
    ),
    "com.microsoft.DequantizeLinear": ("y = com.microsoft.DequantizeLinear(x, sx, zx)", bytes_to_scale),
    "com.microsoft.MatMulIntegerToFloat": (
        "y = com.microsoft.MatMulIntegerToFloat(a, b, sx, sx, zx, zx)",
        lambda: square(4000, np.uint8)() | SCALES,
    ),
    "com.microsoft.DynamicQuantizeMatMul": (
        "y = com.microsoft.DynamicQuantizeMatMul(x, b, sx, zx)",
        lambda: {"x": floats(4000, 4000), "b": square(4000, np.uint8)()["b"]} | SCALES,
    ),
    "com.microsoft.MatMulInteger16": ("y = com.microsoft.MatMulInteger16(a, b)", square(2000, np.int16)),
    "com.microsoft.MulInteger": (
        "y = com.microsoft.MulInteger(x, zx, x, zx)",
        lambda: {"x": integers(255, BIG, dtype=np.uint8), "zx": SCALES["zx"]},
    ),
    "com.microsoft.ReduceSumInteger": (
        "y = com.microsoft.ReduceSumInteger<axes = [1], keepdims = 0>(x)",
        lambda: {"x": integers(255, *PLANES, dtype=np.uint8)},
    ),
    "com.microsoft.QGemm": (
        "y = com.microsoft.QGemm(a, sx, zx, b, sx, zx, , sx, zx)",
        lambda: square(4000, np.uint8)() | SCALES,
    ),
    "com.microsoft.QLinearConv": (
        "y = com.microsoft.QLinearConv(x, sx, zx, w, sx, zx, sx, zx)",
        lambda: {"x": integers(255, *IMAGE, dtype=np.uint8), "w": integers(255, 64, 64, 3, 3, dtype=np.uint8)} | SCALES,
    ),
    "com.microsoft.QAttention": (
        "y = com.microsoft.QAttention<num_heads = 8>(x, w, b, sx, sx, , zx, zx)",
        lambda: (
            {"x": integers(9, 1, 3000, 512, dtype=np.uint8), "w": integers(9, 512, 1536, dtype=np.uint8)}
            | {"b": floats(1536)}
            | SCALES
        ),
    ),
    # ---- experiments that ended -----
    **{
        op: (f"y = {op}{named}(x)", lambda: {"x": floats(*PLANES)}, {"": 8})
        for op, named in (
            ("Affine", "<alpha = 2.0>"),
            ("Scale", "<scale = 2.0>"),
            ("ParametricSoftplus", "<alpha = 2.0, beta = 0.5>"),
            ("ScaledTanh", "<alpha = 2.0, beta = 0.5>"),
            ("ImageScaler", f"<bias = [{', '.join(['1.0'] * PLANES[1])}]>"),
            ("Crop", "<border = [1, 1, 1, 1]>"),
        )
    },
    "DynamicSlice": (
        "y = DynamicSlice(x, a, b)",
        lambda: {"x": floats(*PLANES), "a": np.zeros(1, np.int64), "b": np.array([2])},
        {"": 8},
    ),
    # ---- recurrences, attention, loops -----
    "Attention": ("y = Attention(x, x, x)", lambda: {"x": floats(1, 8, 3000, 64)}),
    "Attention: one query": (
        "y = Attention(q, x, x)",
        lambda: {"q": floats(1, 1, 1, 64), "x": floats(1, 1, 800_000, 64)},
    ),
    "ai.onnx.preview.FlexAttention": (
        "y = ai.onnx.preview.FlexAttention(x, x, x)",
        lambda: {"x": floats(1, 8, 1200, 64)},
    ),
    "GRU": recurrent("GRU", 3),
    "LSTM": recurrent("LSTM", 4),
    "RNN": recurrent("RNN", 1),
    "LinearAttention": (
        'y, z = LinearAttention<q_num_heads = 8, kv_num_heads = 8, update_rule = "linear">(x, x, x)',
        lambda: {"x": floats(1, 8000, 512)},
    ),
    "Loop": (
        """n = Constant<value_int = 100000>()
        y = Loop(n, , x) <body = b (int64 i, bool c, float[4096] s) => (bool d, float[4096] t) {
          d = Identity(c) t = Tanh(s) }>""",
        lambda: {"x": floats(4096)},
    ),
    "Loop: rows": (
        """n = Constant<value_int = 5000>()
        z, y = Loop(n, , x) <body = b (int64 i, bool c, float[10000] s) => (bool d, float[10000] t, float[10000] u) {
          d = Identity(c) t = Neg(s) u = Identity(t) }>""",
        lambda: {"x": floats(10_000)},
    ),
    "Loop: sizes of the data": (
        """n = Constant<value_int = 1000000>()
        y = Loop(n, , x) <body = b (int64 i, bool c, float[k] s) => (bool d, float[m] t) {
          d = Identity(c) z = NonZero(s) w = Squeeze(z) t = Cast<to = 1>(w) }>""",
        lambda: {"x": floats(1000)},
    ),
    "SimplifiedLayerNormalization": (
        "y = SimplifiedLayerNormalization(x, g)",
        lambda: {"x": floats(BIG // 1000, 1000), "g": floats(1000)},
    ),
    "RotaryEmbedding": (
        "y = RotaryEmbedding(x, c, c)",
        lambda: {"x": floats(1, 128, 2000, 128), "c": floats(1, 2000, 64)},
    ),
    "Scan": (
        """z, y = Scan<num_scan_inputs = 1, body = b (float[64] s, float[64] e) => (float[64] t, float[64] u) {
          a = Add(s, e) t = Tanh(a) u = Identity(t) }>(s, x)""",
        lambda: {"s": floats(64), "x": floats(500_000, 64)},
    ),
    "SequenceErase": ("y = SequenceErase(x)", lambda: {"x": [np.zeros(1, np.float32)] * 150_000}),
    "SequenceInsert": (
        "y = SequenceInsert(x, e)",
        lambda: {"x": [np.zeros(1, np.float32)] * 150_000, "e": floats(1)},
    ),
    "SequenceMap": (
        "y = SequenceMap(x) <body = b (float[k] e) => (float[k] r) { r = Tanh(e) }>",
        lambda: {"x": [floats(100_000)] * 1000},
    ),
    "com.microsoft.DynamicQuantizeLSTM": (
        "y, z = com.microsoft.DynamicQuantizeLSTM<hidden_size = 256>(x, w, r, , , , , , sw, zx, sw, zx)",
        lambda: {
            "x": floats(2000, 8, 256),
            "w": integers(255, 1, 256, 1024, dtype=np.uint8),
            "r": integers(255, 1, 256, 1024, dtype=np.uint8),
            "sw": np.float32([0.001]),
            "zx": np.uint8([128]),
        },
    ),
    **{
        f"com.microsoft.{name}": (
            f"y = com.microsoft.{name}(x, x, g)",
            lambda: {"x": floats(40, 1000, 1000), "g": floats(1000)},
        )
        for name in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
    },
    "com.microsoft.GreedySearch": (f"y = com.microsoft.GreedySearch<{SEARCHED}, {DECODER}>(x, n)", tokens_to_search),
    "com.microsoft.Sampling": (f"y = com.microsoft.Sampling<{SEARCHED}, {DECODER}>(x, n)", tokens_to_search),
    "com.microsoft.BeamSearch": (
        f"y = com.microsoft.BeamSearch<{SEARCHED}, {DECODER}>(x, n, , k, k)",
        lambda: tokens_to_search() | {"k": np.int32([2])},
    ),
    "com.microsoft.WhisperBeamSearch": (
        f"y = com.microsoft.WhisperBeamSearch<{SEARCHED}, decoder_start_token_id = 2, {WHISPER}>(x, n, , k, k)",
        lambda: tokens_to_search() | {"x": floats(1, 4, 4), "k": np.int32([2])},
    ),
    "com.microsoft.MatMulNBits": (
        "y = com.microsoft.MatMulNBits<K = 4096, N = 4096, block_size = 32>(x, w, s)",
        lambda: {"x": floats(256, 4096), "w": integers(255, 4096, 128, 16, dtype=np.uint8), "s": floats(4096, 128)},
    ),
    "com.microsoft.BifurcationDetector": (
        "y, z = com.microsoft.BifurcationDetector<min_ngram_size = 20000, max_ngram_size = 20000>(x, c, m)",
        lambda: {
            "x": np.ones(60_000, np.int64),
            "c": np.ones(20_000, np.int64) + np.arange(20_000) // 19_999,
            "m": np.zeros(1, np.int64),
        },
    ),
    "com.microsoft.Attention": (
        "y = com.microsoft.Attention<num_heads = 8>(x, w, b)",
        lambda: {"x": floats(1, 2048, 512), "w": floats(512, 1536), "b": floats(1536)},
    ),
    "com.microsoft.MultiHeadAttention": (
        "y = com.microsoft.MultiHeadAttention<num_heads = 8>(q, q, q)",
        lambda: {"q": floats(1, 3000, 512)},
    ),
    "com.microsoft.GroupQueryAttention": (
        "y, k, v = com.microsoft.GroupQueryAttention<num_heads = 8, kv_num_heads = 2>(q, p, p, , , l, t)",
        lambda: {
            "q": floats(1, 3000, 512),
            "p": floats(1, 3000, 128),
            "l": np.int32([2999]),
            "t": np.array(3000, np.int32),
        },
    ),
    "com.microsoft.BiasGelu": (
        "y = com.microsoft.BiasGelu(x, b)",
        lambda: {"x": floats(BIG // 1000, 1000), "b": floats(1000)},
    ),
    "com.microsoft.FastGelu": ("y = com.microsoft.FastGelu(x)", lambda: {"x": floats(BIG)}),
    "com.microsoft.QuickGelu": ("y = com.microsoft.QuickGelu(x)", lambda: {"x": floats(BIG)}),
    "com.microsoft.Gelu": ("y = com.microsoft.Gelu(x)", lambda: {"x": floats(BIG)}),
    "com.microsoft.BiasSoftmax": (
        "y = com.microsoft.BiasSoftmax<axis = 1, is_inner_broadcast = 0>(x, b)",
        lambda: {"x": floats(10_000, 1000), "b": floats(10_000, 1000)},
    ),
    "com.microsoft.FusedMatMul": ("y = com.microsoft.FusedMatMul<transB = 1>(a, b)", square(1500)),
    "com.microsoft.TransposeMatMul": ("y = com.microsoft.TransposeMatMul<transB = 1>(a, b)", square(1500)),
    "com.microsoft.FusedGemm": ('y = com.microsoft.FusedGemm<activation = "Relu">(a, b)', square(1500)),
    "com.microsoft.GemmFastGelu": ("y = com.microsoft.GemmFastGelu(a, b)", square(1500)),
    "com.microsoft.FusedConv": (
        'y = com.microsoft.FusedConv<activation = "Relu">(x, w)',
        lambda: {"x": floats(1, 64, 200, 200), "w": floats(64, 64, 3, 3)},
    ),
    "com.microsoft.NhwcConv": (
        "y = com.microsoft.NhwcConv(x, w)",
        lambda: {"x": floats(1, 200, 200, 64), "w": floats(64, 64, 3, 3)},
    ),
    "com.microsoft.NhwcFusedConv": (
        'y = com.microsoft.NhwcFusedConv<activation = "Relu">(x, w)',
        lambda: {"x": floats(1, 200, 200, 64), "w": floats(64, 64, 3, 3)},
    ),
    "com.microsoft.NhwcMaxPool": (
        "y = com.microsoft.NhwcMaxPool<kernel_shape = [9, 9]>(x)",
        lambda: {"x": integers(255, 1, 2000, 1000, 8, dtype=np.uint8)},
    ),
    "com.microsoft.GridSample": (
        "y = com.microsoft.GridSample(x, g)",
        lambda: {"x": floats(1, 8, 500, 500), "g": floats(1, 1000, 1000, 2)},
    ),
    "com.microsoft.ConvTransposeWithDynamicPads": (
        "y = com.microsoft.ConvTransposeWithDynamicPads(x, w, p)",
        lambda: {"x": floats(1, 64, 150, 150), "w": floats(64, 64, 3, 3), "p": np.zeros(4, np.int64)},
    ),
    "com.microsoft.RotaryEmbedding": (
        "y = com.microsoft.RotaryEmbedding(x, p, c, s)",
        lambda: {"x": floats(4, 4096, 1024), "p": np.zeros(1, np.int64), "c": floats(4096, 64), "s": floats(4096, 64)},
    ),
    "com.microsoft.SkipGroupNorm": (
        "y = com.microsoft.SkipGroupNorm<groups = 8, activation = 0>(x, w, w, z)",
        lambda: {"x": floats(1, 800, 800, 16), "w": floats(16), "z": floats(1, 800, 800, 16)},
    ),
    "com.microsoft.GroupNorm": (
        "y = com.microsoft.GroupNorm<groups = 8, activation = 1>(x, w, w)",
        lambda: {"x": floats(1, 800, 800, 16), "w": floats(16)},
    ),
    "com.microsoft.Unique": ("y, i, c = com.microsoft.Unique(x)", lambda: {"x": floats(2_000_000)}),
    "com.microsoft.Pad": ("y = com.microsoft.Pad(x, p)", lambda: {"x": floats(1, BIG), "p": np.array([0, 1, 0, 1])}),
    "com.microsoft.Trilu": ("y = com.microsoft.Trilu(x)", lambda: {"x": floats(6000, 6000)}),
    "com.microsoft.GatherND": (
        "y = com.microsoft.GatherND(x, i)",
        lambda: {"x": floats(1000, 16), "i": integers(1000, 4_000_000, 1)},
    ),
    "com.microsoft.BiasSplitGelu": (
        "y = com.microsoft.BiasSplitGelu(x, b)",
        lambda: {"x": floats(2, 4096, 2560), "b": floats(2560)},
    ),
    "com.microsoft.BiasAdd": (
        "y = com.microsoft.BiasAdd(x, b, z)",
        lambda: {"x": floats(8, 8192, 320), "b": floats(320), "z": floats(8, 8192, 320)},
    ),
    "com.microsoft.CDist": ("y = com.microsoft.CDist(a, b)", square(1500)),
    "com.microsoft.CropAndResize": (
        f"l = {ints(200, 200)} s = Cast<to = 6>(l) y = com.microsoft.CropAndResize(x, r, i, s)",
        lambda: {
            "x": floats(1, 16, 256, 256),
            "r": np.float32([[0, 0, 1, 1]] * 100),
            "i": np.zeros(100, np.int32),
        },
    ),
    "com.microsoft.DynamicTimeWarping": ("y = com.microsoft.DynamicTimeWarping(x)", lambda: {"x": floats(6000, 6000)}),
    "com.microsoft.Inverse": ("y = com.microsoft.Inverse(a)", lambda: {"a": floats(1000, 1000)}),
    "com.microsoft.Inverse: small": ("y = com.microsoft.Inverse(a)", lambda: {"a": floats(200_000, 5, 5)}),
    "com.microsoft.MoE": (
        "y = com.microsoft.MoE<k = 2>(x, r, w, , w)",
        lambda: {"x": floats(400, 512), "r": floats(400, 8), "w": floats(8, 512, 512)},
    ),
    "com.microsoft.NGramHashMapping": (
        "y = com.microsoft.NGramHashMapping<max_ngram_size = 4, n_head_per_ngram = 8, pad_id = 0>(x, m, v)",
        lambda: {"x": integers(1000, 8, 50_000), "m": integers(1000, 4), "v": integers(1000, 24) + 1},
    ),
    "com.microsoft.VarlenNGramHashMapping": (
        "y = com.microsoft.VarlenNGramHashMapping<max_ngram_size = 4, n_head_per_ngram = 8, pad_id = 0>(x, m, v, c)",
        lambda: {
            "x": integers(1000, 400_000),
            "m": integers(1000, 4),
            "v": integers(1000, 24) + 1,
            "c": np.int32([0, 400_000]),
        },
    ),
    "com.microsoft.MaxpoolWithMask": (
        "y = com.microsoft.MaxpoolWithMask<kernel_shape = [9, 9]>(x, m)",
        lambda: {"x": floats(4, 4, 800, 800), "m": np.ones((1, 1, 800, 800), np.int32)},
    ),
    "com.microsoft.MurmurHash3": ("y = com.microsoft.MurmurHash3(x)", large),
    "com.microsoft.MurmurHash3: texts": ("y = com.microsoft.MurmurHash3(x)", words(4_000_000, 20)),
    "com.microsoft.NGramRepeatBlock": (
        "y = com.microsoft.NGramRepeatBlock<ngram_size = 4000>(x, s)",
        lambda: {"x": np.ones((8, 40_000), np.int64), "s": floats(8, 10)},
    ),
    "com.microsoft.Tokenizer": (
        'y = com.microsoft.Tokenizer<mark = 0, mincharnum = 1, pad_value = "", separators = ["x"]>(x)',
        words(200_000, 20),
    ),
    "com.microsoft.UnfoldTensor": ("y = com.microsoft.UnfoldTensor<size = 50>(x)", lambda: {"x": floats(BIG // 50)}),
    **{
        f"com.microsoft.{op}": (f"y = com.microsoft.{op}({names}, r, t)", lambda names=names: dropped(names))
        for op, names in (
            ("BiasDropout", "x, b, z"),
            ("BitmaskBiasDropout", "x, b, z"),
            ("BitmaskDropout", "x"),
        )
    },
    "com.microsoft.BranchwiseRMSNorm": (
        "y = com.microsoft.BranchwiseRMSNorm<num_branches = 4>(x, s)",
        lambda: {"x": floats(16_000, 4000), "s": floats(4, 1000)},
    ),
    "com.microsoft.CausalConvWithState": (
        'y, z = com.microsoft.CausalConvWithState<activation = "silu">(x, w, b)',
        lambda: {"x": floats(12, 512, 10_000), "w": floats(512, 1, 4), "b": floats(512)},
    ),
    "com.microsoft.DecoderMaskedMultiHeadAttention": (
        "y, k, v = com.microsoft.DecoderMaskedMultiHeadAttention<num_heads = 8, past_present_share_buffer = 1>"
        "(q, q, q, , , p, p, n)",
        lambda: {"q": floats(64, 1, 512), "p": floats(64, 8, 2000, 64), "n": np.int32([1999])},
    ),
    "com.microsoft.EmbedLayerNormalization": (
        "y, m = com.microsoft.EmbedLayerNormalization(x, , w, p, , s, s)",
        lambda: {
            "x": integers(20_000, 128, 512, dtype=np.int32),
            "w": floats(20_000, 512),
            "p": floats(512, 512),
            "s": floats(512),
        },
    ),
    "com.microsoft.QEmbedLayerNormalization": (
        "y, m = com.microsoft.QEmbedLayerNormalization(x, , w, p, , s, s, , c, c, , c, c, z, z, , z, z)",
        lambda: {
            "x": integers(20_000, 128, 512, dtype=np.int32),
            "w": integers(99, 20_000, 512, dtype=np.int8),
            "p": integers(99, 512, 512, dtype=np.int8),
            "s": integers(99, 512, dtype=np.int8),
            "c": np.float32(0.1).reshape(()),
            "z": np.int8(3).reshape(()),
        },
    ),
    "com.microsoft.EngramGate": (
        "y = com.microsoft.EngramGate(k, k, v, s, s)",
        lambda: {"k": floats(8, 4000, 4, 256), "v": floats(8, 4000, 256), "s": floats(4, 256)},
    ),
    "com.microsoft.ExpandDims": (
        "y = com.microsoft.ExpandDims(x, a)",
        lambda: {"x": floats(2 * BIG), "a": np.array(1, np.int32)},
    ),
    "com.microsoft.FusedMatMulActivation": (
        'y = com.microsoft.FusedMatMulActivation<activation = "Relu">(a, b)',
        square(1500),
    ),
    "com.microsoft.GatedAdd": (
        "y = com.microsoft.GatedAdd(x, x, g)",
        lambda: {"x": floats(BIG // 1000, 1000), "g": floats(BIG // 1000, 1)},
    ),
    "com.microsoft.GatedRMSNorm": (
        "y = com.microsoft.GatedRMSNorm(x, s, x)",
        lambda: {"x": floats(BIG // 1000, 1000), "s": floats(1000)},
    ),
    "com.microsoft.GatherBlockQuantized": (
        "y = com.microsoft.GatherBlockQuantized<bits = 8, block_size = 32>(x, i, s)",
        lambda: {
            "x": integers(255, 10_000, 512, dtype=np.uint8),
            "i": integers(10_000, 60_000),
            "s": floats(10_000, 16),
        },
    ),
    "com.microsoft.MoEGroupRouter": (
        "y = com.microsoft.MoEGroupRouter<top_k = 8, n_group = 8, topk_group = 4>(x, b)",
        lambda: {"x": floats(60_000, 256), "b": floats(256)},
    ),
    "com.microsoft.GemmaRotaryEmbedding": (
        "y, z = com.microsoft.GemmaRotaryEmbedding(e, q, q, q, q)",
        lambda: {"e": floats(1, 8192, 256), "q": floats(1, 24, 8192, 256).astype(np.float16)},
    ),
    "com.microsoft.HyperConnectionPostMix": (
        "y = com.microsoft.HyperConnectionPostMix<num_branches = 4>(x, z, w, m)",
        lambda: {
            "x": floats(8000, 4096),
            "z": floats(8000, 1024),
            "w": floats(8000, 4, 1),
            "m": floats(8000, 4, 4),
        },
    ),
    "com.microsoft.HyperConnectionPreMix": (
        "y = com.microsoft.HyperConnectionPreMix<num_branches = 4>(x, w)",
        lambda: {"x": floats(16_000, 4096), "w": floats(16_000, 4, 1)},
    ),
    "com.microsoft.LinearAttention": (
        'y, z = com.microsoft.LinearAttention<kv_num_heads = 8, q_num_heads = 8, update_rule = "gated_delta">'
        "(q, q, q, , q, b)",
        lambda: {"q": floats(1, 4000, 512) / 99, "b": floats(1, 4000, 8) / 99},
    ),
    "com.microsoft.LinearAttentionGate": (
        "y, z = com.microsoft.LinearAttentionGate(x, s, s, x)",
        lambda: {"x": floats(16, 4000, 512), "s": floats(512)},
    ),
    "com.microsoft.MRotaryEmbedding": (
        "y = com.microsoft.MRotaryEmbedding<mrope_section = [16, 24, 24], num_heads = 8>(x, p, c, c)",
        lambda: {"x": floats(8, 8, 4096, 128), "p": integers(4096, 3, 8, 4096), "c": floats(4096, 64)},
    ),
    "com.microsoft.MatMulBnb4": (
        "y = com.microsoft.MatMulBnb4<K = 4096, N = 4096, block_size = 64, quant_type = 1>(x, w, s)",
        lambda: {"x": floats(16, 4096), "w": integers(255, 2**23, dtype=np.uint8), "s": floats(2**18)},
    ),
    "com.microsoft.PackedAttention": (
        "y = com.microsoft.PackedAttention<num_heads = 8>(x, w, b, o, c)",
        lambda: tokens_in_line(2048) | {"x": floats(2048, 512), "w": floats(512, 1536), "b": floats(1536)},
    ),
    "com.microsoft.PackedMultiHeadAttention": (
        "y = com.microsoft.PackedMultiHeadAttention<num_heads = 8>(x, , , , o, c)",
        lambda: tokens_in_line(3000) | {"x": floats(3000, 8, 3, 64)},
    ),
    "com.microsoft.QMoE": (
        'y = com.microsoft.QMoE<activation_type = "gelu", expert_weight_bits = 8, k = 2>(x, r, w, s, , w, s)',
        lambda: {
            "x": floats(2000, 512),
            "r": floats(2000, 8),
            "w": integers(255, 8, 512, 512, dtype=np.uint8),
            "s": floats(8, 512),
        },
    ),
    "com.microsoft.Range": (
        "y = com.microsoft.Range(a, b)",
        lambda: {"a": np.array(0), "b": np.array(BIG)},
    ),
    "com.microsoft.RelativePositionBias": (
        "y = com.microsoft.RelativePositionBias<is_bidirectional = 1, max_distance = 128>(x, n, n)",
        lambda: {"x": floats(32, 8), "n": np.array([2500])},
    ),
    "com.microsoft.RemovePadding": (
        "y, o, c, m = com.microsoft.RemovePadding(x, n)",
        lambda: {"x": floats(150, 1000, 512), "n": np.full(150, 900, np.int32)},
    ),
    "com.microsoft.RestorePadding": (
        "y = com.microsoft.RestorePadding(x, o)",
        lambda: {"x": floats(40_000, 512), "o": np.arange(64_000, dtype=np.int32).reshape(64, 1000)},
    ),
    "com.microsoft.SparseAttention": (
        "y, k, v = com.microsoft.SparseAttention<num_heads = 8, kv_num_heads = 8, sparse_block_size = 64>"
        "(q, q, q, p, p, r, c, t, n)",
        lambda: {
            "q": floats(1, 2048, 512),
            "p": floats(1, 8, 2048, 64),
            "r": np.cumsum(np.arange(33, dtype=np.int32))[None].astype(np.int32),
            "c": np.concatenate([np.arange(i + 1, dtype=np.int32) for i in range(32)])[None],
            "t": np.int32([2048]),
            "n": np.int32([2048]),
        },
    ),
    "com.microsoft.SparseToDenseMatMul": (
        "a = Constant<sparse_value = sparse_tensor(float[2000, 2000]) (float[2] {1, 2}, int64[2] {5, 7})>() "
        "y = com.microsoft.SparseToDenseMatMul(a, b)",
        lambda: {"b": floats(2000, 2000)},
    ),
    "com.microsoft.WordConvEmbedding": (
        "y = com.microsoft.WordConvEmbedding(x, w, b, e)",
        lambda: {
            "x": integers(255, 20_000, 16, dtype=np.int32) + np.int32(1),
            "w": floats(256, 1, 5, 64),
            "b": floats(256),
            "e": floats(256, 64),
        },
    ),
    # ---- made of nothing -----
    "Bernoulli": ("y = Bernoulli(x)", lambda: {"x": floats(BIG) / 2}),
    **{
        name: (f"y = {name}(n)", lambda: {"n": np.array(BIG)})
        for name in ("BlackmanWindow", "HammingWindow", "HannWindow")
    },
    "Dropout": (
        "y = Dropout(x, r, t)",
        lambda: {"x": floats(BIG // 4), "r": np.float32(0.5).reshape(()), "t": np.array(True)},
    ),
    "MelWeightMatrix": (
        "y = MelWeightMatrix(m, n, r, a, b)",
        lambda: (
            {"m": np.array(2000), "n": np.array(40_000), "r": np.array(48_000)}
            | {"a": np.float32(0).reshape(()), "b": np.float32(24_000).reshape(())}
        ),
    ),
    "Multinomial": ("y = Multinomial<sample_size = 2000000>(x)", lambda: {"x": floats(1, 1000)}),
    "Multinomial: classes": ("y = Multinomial(x)", lambda: {"x": floats(10, 1_000_000)}),
    "RandomNormal": (f"y = RandomNormal<shape = [{BIG}]>()", dict),
    "RandomUniform": (f"y = RandomUniform<shape = [{2 * BIG}]>()", dict),
    # ---- elementwise with more than its inputs -----
    "BitShift": (
        'y = BitShift<direction = "LEFT">(x, z)',
        lambda: {"x": integers(9, 4 * BIG, dtype=np.uint8), "z": integers(7, 4 * BIG, dtype=np.uint8)},
    ),
    "Clip": (
        "y = Clip(x, a, b)",
        lambda: {"x": floats(BIG), "a": np.float32(0.2).reshape(()), "b": np.float32(0.5).reshape(())},
    ),
    "Mod: floats": ("y = Mod<fmod = 1>(x, z)", lambda: {"x": floats(BIG // 2), "z": floats(BIG // 2)}),
    "Mod": ("y = Mod(x, z)", lambda: {"x": integers(99, BIG // 4), "z": integers(9, BIG // 4) + 1}),
    # ---- machine learning -----
    "ai.onnx.ml.CastMap": (
        "y = ai.onnx.ml.CastMap(x)",
        lambda: {"x": dict.fromkeys(range(1_000_000), np.float32(0.5))},
    ),
    "ai.onnx.ml.CategoryMapper": (
        'y = ai.onnx.ml.CategoryMapper<cats_int64s = [1, 2], cats_strings = ["a", "b"]>(x)',
        words(3_000_000),
    ),
    "ai.onnx.ml.DictVectorizer": (
        f"y = ai.onnx.ml.DictVectorizer<{attribute_text({'int64_vocabulary': list(range(300_000))})}>(x)",
        lambda: {"x": dict.fromkeys(range(300_000), np.float32(0.5))},
    ),
    "ai.onnx.ml.FeatureVectorizer": (
        "y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [4, 4]>(x, x)",
        lambda: {"x": floats(4_000_000, 4)},
    ),
    "ai.onnx.ml.Imputer": (
        "y = ai.onnx.ml.Imputer<imputed_value_floats = [1.0], replaced_value_float = 0.5>(x)",
        lambda: {"x": floats(BIG, 1)},
    ),
    "ai.onnx.ml.LabelEncoder": (
        'y = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "b"], values_int64s = [1, 2]>(x)',
        words(3_000_000),
    ),
    "ai.onnx.ml.LabelEncoder: to texts": (
        'y = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2], values_strings = ["a", "b"]>(x)',
        lambda: {"x": integers(4, 2_000_000)},
    ),
    "ai.onnx.ml.LinearClassifier": (
        f"y, z = ai.onnx.ml.LinearClassifier<{attribute_text({'coefficients': [0.1] * 12, 'classlabels_ints': [1, 2, 3], 'intercepts': [0.0] * 3})}>(x)",
        lambda: {"x": floats(3_000_000, 4)},
    ),
    "ai.onnx.ml.LinearRegressor": (
        f"y = ai.onnx.ml.LinearRegressor<{attribute_text({'coefficients': [0.1] * 4})}>(x)",
        lambda: {"x": floats(6_000_000, 4)},
    ),
    "ai.onnx.ml.Normalizer": ('y = ai.onnx.ml.Normalizer<norm = "L2">(x)', rows_of_three),
    "ai.onnx.ml.OneHotEncoder": (
        f"y = ai.onnx.ml.OneHotEncoder<{attribute_text({'cats_int64s': list(range(20))})}>(x)",
        lambda: {"x": integers(20, 1_500_000)},
    ),
    "ai.onnx.ml.SVMClassifier": (
        f"y, z = ai.onnx.ml.SVMClassifier<{attribute_text(svm(400, 20) | {'coefficients': [0.1] * 400, 'rho': [0.1], 'vectors_per_class': [200, 200], 'classlabels_ints': [0, 1]})}>(x)",
        lambda: {"x": floats(100_000, 20)},
    ),
    "ai.onnx.ml.SVMRegressor": (
        f"y = ai.onnx.ml.SVMRegressor<{attribute_text(svm(400, 20) | {'coefficients': [0.1] * 400, 'rho': [0.1], 'n_supports': 400})}>(x)",
        lambda: {"x": floats(100_000, 20)},
    ),
    "ai.onnx.ml.Scaler": (
        "y = ai.onnx.ml.Scaler<offset = [0.5], scale = [2.0]>(x)",
        lambda: {"x": floats(BIG, 1)},
    ),
    "ai.onnx.ml.TreeEnsemble": (f"y = ai.onnx.ml.TreeEnsemble<{new_tree()}>(x)", lambda: {"x": floats(2_000_000, 8)}),
    "ai.onnx.ml.TreeEnsembleClassifier": (
        f"y, z = ai.onnx.ml.TreeEnsembleClassifier<{old_tree('class', classlabels_int64s=[0, 1, 2])}>(x)",
        lambda: {"x": floats(2_000_000, 8)},
        {"ai.onnx.ml": 3},
    ),
    "ai.onnx.ml.TreeEnsembleRegressor": (
        f"y = ai.onnx.ml.TreeEnsembleRegressor<{old_tree('target', n_targets=3)}>(x)",
        lambda: {"x": floats(2_000_000, 8)},
        {"ai.onnx.ml": 3},
    ),
    "ai.onnx.ml.ZipMap": (
        "y = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2, 3]>(x)",
        lambda: {"x": floats(300_000, 3)},
    ),
    # ---- training -----
    "ai.onnx.preview.training.Adagrad": optimizer("Adagrad", "", 1),
    "ai.onnx.preview.training.Adam": optimizer("Adam", "", 2),
    "ai.onnx.preview.training.Momentum": optimizer(
        "Momentum", '<alpha = 0.9, beta = 0.1, mode = "standard", norm_coefficient = 0.1>', 1
    ),
}


def full_name(op: dict) -> str:
    return f"{op['domain']}.{op['name']}" if op["domain"] else op["name"]


def elementwise(op: dict) -> Case | None:
    """A node on BIG elements, if the operator's record asks for tensors only."""
    version = op["versions"][-1]
    allowed = {t["name"]: t["types"] for t in version["types"]}
    makers = {
        "tensor(float)": floats,
        "tensor(bool)": flags,
        "tensor(uint64)": lambda n: integers(99, n, dtype=np.uint64),
        "tensor(int64)": lambda n: integers(99, n),
    }
    widths = {floats: 4, flags: 1}
    names, makes = [], {}
    for formal in version["inputs"]:
        make = next((m for t, m in makers.items() if t in allowed.get(formal["type"], [formal["type"]])), None)
        if make is None or any(a["required"] for a in version["attributes"]):
            return None
        for i in range(2 if formal["option"] == "variadic" else formal["option"] == "single"):
            names.append(f"{formal['name']}{i}")
            makes[names[-1]] = make
    if not names:
        return None
    node = f"y = {full_name(op)}({', '.join(names)})"

    def feeds() -> dict:
        elements = 4 * BIG // max(widths.get(make, 8) for make in makes.values())
        arrays = {make: make(elements) for make in makes.values()}
        return {name: arrays[make] for name, make in makes.items()}

    return Case(node, feeds)


def cases() -> dict[str, Case]:
    """Long runs of every operator, by its name and variant; none for operators of NO_LONG_RUN and those that lack a
    recipe."""
    found = {}
    for op in treadle.operators():
        name = full_name(op)
        if not op["tiers"] or name in NO_LONG_RUN:
            continue
        own = {key: Case(*recipe) for key, recipe in RECIPES.items() if key.split(":")[0] == name}
        found |= own or {name: elementwise(op)}
    return found

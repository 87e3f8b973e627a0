"""Rows of `bench.py costs` for src/kernels/costs.h and src/ops/costs.h: a small model for each constant, at two sizes,
and how many units it counts there. ROWS: by the name that the constant's comment has."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
import sys
from collections.abc import Callable
from math import log2

import engines
import measure
import numpy as np
import onnx
import treadle
from onnx import numpy_helper

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
import long_runs
from long_runs import boxes, flags, floats, grams, integers, ints, old_tree, svm

SOURCE = pathlib.Path(__file__).parents[1] / "src"
Count = Callable[[int], float]
Arrays = Callable[[int], dict]
Nodes = str | Callable[[int], str]


def none(size: int) -> dict:
    return {}


@dataclasses.dataclass(frozen=True)
class Row:
    """A model whose run at a size counts `units(size)` of the constant, and `beside` of others that are measured too."""

    nodes: Nodes  # whose result is y
    feeds: Arrays
    units: Count
    sizes: tuple[int, int]
    beside: dict[str, Count] = dataclasses.field(default_factory=dict)
    weights: Arrays = none  # constants
    opsets: dict[str, int] = dataclasses.field(default_factory=dict)  # older ones than those of long_runs
    # What a load takes, with the first run, less the same of nodes that leave out what is measured.
    without: str | None = None
    narrow: bool = False  # the load that is measured rounds weights to float16

    def model(self, size: int, nodes: Nodes) -> tuple[bytes, dict]:
        weights, feeds = self.weights(size), self.feeds(size)
        case = long_runs.Case(
            nodes if isinstance(nodes, str) else nodes(size), lambda: feeds | weights, {"treadle": 1} | self.opsets
        )
        text, values = case.build()
        model = onnx.ModelProto.FromString(treadle.parse_model(text.decode()))
        fed = [argument for argument in model.graph.input if argument.name in feeds]
        del model.graph.input[:]
        model.graph.input.extend(fed)
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
        return model.SerializeToString(), {name: values[name] for name in feeds}

    def run(self, size: int) -> Callable[[], object]:
        model, feeds = self.model(size, self.nodes)
        session = engines.open_ours(model)
        return functools.partial(session._engine.run_values, None, feeds, [], None)

    def load(self, size: int, nodes: Nodes, weights: str = "f32") -> Callable[[], object]:
        model, feeds = self.model(size, nodes)
        return lambda: engines.open_ours(model, weights=weights)._engine.run_values(None, feeds, [], None)

    def seconds(self, rounds: int, each: float) -> tuple[float, float]:
        """Of a run at each of both sizes."""
        if self.without is None:
            runs = [self.run(size) for size in self.sizes]
            short, long = (min(taken) for taken in measure.in_turns(runs, rounds, each))
            return short, long
        weights = "f16" if self.narrow else "f32"
        loads = [
            load
            for size in self.sizes
            for load in (self.load(size, self.nodes, weights), self.load(size, self.without))
        ]
        times = [min(taken) for taken in measure.in_turns(loads, rounds, each)]
        return times[0] - times[1], times[2] - times[3]

    def ns(self, known: dict[str, float], rounds: int, each: float) -> float:
        """Of a unit. `known`: of the constants beside."""
        short, long = self.seconds(rounds, each)

        def more(count: Count) -> float:
            return count(self.sizes[1]) - count(self.sizes[0])

        others = sum(known[constant] * more(count) for constant, count in self.beside.items())
        return (1e9 * (long - short) - others) / more(self.units)


def line(name: str = "x", *more: int) -> Arrays:
    """`name`, of as many floats as the size says."""
    return lambda n: {name: floats(n, *more)}


def bytes_of(count: int, *more: int) -> np.ndarray:
    return integers(99, count, *more, dtype=np.uint8)


def scalar(value, dtype=np.float32) -> np.ndarray:
    return np.array(value, dtype)


def lots(count: int, text: str) -> np.ndarray:
    return np.array([text] * count, object)


def per(units: float = 1) -> Count:
    return lambda n: units * n


def of_type(dtype) -> Arrays:
    return lambda n: {"x": floats(n, 256).astype(dtype)}


def linear(name: str) -> str:
    return f"y = ai.onnx.ml.{name}"


# Sizes of what runs over a list, over a table with rows of some hundred, and over few large things: with them the longer
# run takes a fraction of a millisecond or a few, as long as work that threads begin to share. LONG and TALL are for what
# takes less than a nanosecond.
LINE, TABLE, FEW = (50_000, 200_000), (500, 2000), (20, 80)
LONG, TALL = (400_000, 1_600_000), (2000, 8000)
SCALES = {"s": scalar(0.1), "z": scalar(3, np.uint8)}
WORD = "x" * 24  # too long to be kept without memory of its own
CHAIN = "a = Mul(x, b) c = Add(a, b) d = Mul(c, b) e = Add(d, b) f = Mul(e, b) y = Add(f, b)"
OPERATIONS = re.findall(r"^  X\((\w+),", (SOURCE / "kernels" / "elementwise_ops.h").read_text(encoding="utf-8"), re.M)
CELL = long_runs.attribute_text(
    {"functions": [OPERATIONS.index(op) for op in ("Sigmoid", "Tanh", "Tanh")]}
    | {"alphas": [0.0] * 3, "betas": [0.0] * 3}
)
TRAINING = {"r": scalar(0.5), "t": np.array(True)}

KERNELS = {
    "element of a short line, moved": Row("y = Transpose(x)", line("x", 512), per(512), TABLE),
    "byte of a long line, moved": Row(
        f"a = {ints(1)} b = {ints(401)} y = Slice(x, a, b, a)", line("x", 512), per(1600), TALL
    ),
    "element of a border, repeated": Row(
        f'p = {ints(0, 32, 0, 32)} y = Pad<mode = "reflect">(x, p)', line("x", 33), per(64), (5000, 20_000)
    ),
    "element converted": Row("y = Cast<to = 1>(x)", lambda n: {"x": floats(n).astype(np.float16)}, per(), LONG),
    "text numbered": Row(f"a = {ints(0)} b = {ints(1)} y = Slice(x, a, b)", lambda n: {"x": lots(n, "a")}, per(), LINE),
    "text made": Row(
        "y = Concat<axis = 0>(x, x)",
        lambda n: {"x": lots(n, "x" * 40)},
        per(2),
        (2000, 8000),
        {"kNumberedTextNs": per(2)},
    ),
    "byte of an operand of an elementwise node": Row(
        "y = BitwiseAnd(x, x)",
        lambda width: {"x": integers(99, 400_000, dtype=np.dtype(f"u{width}"))},
        per(1_200_000),
        (1, 8),
    ),
    "element of a sum, apart from bytes": Row("y = Add(x, x)", line(), per(), LONG, {"kElementwiseByteNs": per(12)}),
    # Exp takes a third of it, Pow ten times as much.
    "element of a function, apart from bytes": Row(
        "y = Softplus(x)", line(), per(), LINE, {"kElementwiseByteNs": per(8)}
    ),
    "operation of a fused chain, on an element": Row(CHAIN, lambda n: {"x": floats(n), "b": scalar(0.9)}, per(6), LONG),
    "element reduced": Row("a = Constant<value_ints = [1]>() y = ReduceSum(x, a)", of_type(np.float16), per(256), TALL),
    "step of a running sum": Row(f"a = {ints(0)} y = CumSum(x, a)", line(), per(), LINE),
    "element of a step of running sums": Row(
        f"a = {ints(0)} y = CumSum(x, a)", line("x", 128), per(128), TALL, {"kScanStepNs": per()}
    ),
    "element searched for an extreme": Row("y = ArgMax<axis = 1>(x)", line("x", 256), per(256), TALL),
    "element converted and searched for an extreme": Row(
        "y = ArgMax<axis = 1>(x)", of_type(np.float16), per(256), TABLE
    ),
    "element normalised": Row(
        "y = LayerNormalization(x, s)", lambda n: {"x": floats(n, 256), "s": floats(256)}, per(256), TABLE
    ),
    "lane of a step of a linear recurrence": Row(
        "y, z = treadle.LinearRecurrence(h, a, b)",
        lambda n: {"h": floats(4), "a": 1 - floats(n, 4) / 1000, "b": floats(n, 4)},
        per(4),
        LINE,
    ),
    "comparison of a sort": Row(
        lambda n: f"k = {ints(n)} y, z = TopK(x, k)", line(), lambda n: n * log2(n), (20_000, 80_000)
    ),
    "tap of a pool": Row(
        "y = MaxPool<kernel_shape = [3, 3]>(x)", lambda n: {"x": floats(1, n, 58, 58)}, per(56 * 56 * 9), FEW
    ),
    "tap of a pool with indices": Row(
        "y, z = MaxPool<kernel_shape = [3, 3]>(x)", lambda n: {"x": floats(1, n, 58, 58)}, per(56 * 56 * 9), FEW
    ),
    "byte of a row of a product, widened": Row(
        "y = MatMulInteger(x, b)",
        lambda n: {"x": bytes_of(n, 512)},
        per(512),
        TABLE,
        {"kByteProductNs": per(512 * 16)},
        lambda n: {"b": bytes_of(512, 16)},
    ),
    "word of block weights, packed": Row(
        lambda n: f"y = com.microsoft.MatMulNBits<K = 1024, N = {n}, block_size = 32>(x, w, s)",
        lambda n: {"x": floats(1, 1024), "w": bytes_of(n, 32, 16), "s": floats(n, 32)},
        per(32 * 5),
        TABLE,
        {"kBlockWeightNs": per(1024), "kBlockProductNs": per(1024)},
    ),
    "weight of a filter, read for folding": Row(
        "y = Conv(x, w)",
        lambda n: {"x": floats(1, 1, 1000), "z": floats(1, 100, 10)},
        per(400),
        FEW,
        weights=lambda n: {"w": floats(n, 1, 400), "v": floats(n, 100, 4)},
        without="y = Conv(z, v)",  # short kernels are not folded
    ),
    "pair of weights of a filter, compared": Row(
        "y = Conv(x, w)",
        lambda n: {"x": floats(1, 1, 1000)},
        per(800),  # pairs are compared with a factor and without one, and the halves are added
        FEW,
        weights=lambda n: {"w": symmetric(n, 400), "v": floats(n, 1, 400)},
        without="y = Conv(x, v)",
    ),
}


def symmetric(count: int, length: int) -> np.ndarray:
    """Filters of which half are the mirror of the other half."""
    half = floats(count, 1, length // 2)
    return np.concatenate([half, half[..., ::-1]], axis=-1)


def tokens_of(length: int, **more) -> dict:
    """What TokenScores gets for four rows; `more` by name."""
    return {"x": floats(4, more.pop("vocabulary", 1000)), "t": integers(1000, 4, length, dtype=np.int32)} | more


def image(*shape: int, **more) -> Arrays:
    return lambda n: {"x": floats(1, *shape)} | {name: make(n) for name, make in more.items()}


def points(count: int) -> np.ndarray:
    return floats(1, count, 100, 2) - 0.6


OPERATORS = {
    # --- Attention
    "score of attention": Row(
        "y = Attention(x, x, x)",
        lambda n: {"x": floats(1, 8, n, 64)},
        lambda n: 8 * n * n,
        (256, 512),
        {"kAttentionProductNs": lambda n: 8 * n * n * 128},
    ),
    "product of attention": Row(
        "y = Attention(x, x, x)", lambda n: {"x": floats(1, 8, 512, n)}, per(8 * 512 * 512 * 2), (64, 256)
    ),
    "tap of a causal convolution": Row(
        "y, z = CausalConvWithState(x, w)",
        lambda n: {"x": floats(1, 64, n), "w": floats(64, 1, 4)},
        per(64 * 4),
        (1000, 4000),
    ),
    "element of a state of linear attention, in a pass": Row(
        'y, z = LinearAttention<q_num_heads = 8, kv_num_heads = 8, update_rule = "linear">(x, x, x)',
        lambda n: {"x": floats(1, n, 512)},
        per(8 * 64 * 64 * 3),
        FEW,
    ),
    "element rotated": Row(
        "y = RotaryEmbedding(x, c, c)",
        lambda n: {"x": floats(1, 8, n, 128), "c": floats(1, n, 64)},
        per(8 * 128),
        (100, 400),
    ),
    # --- Searching for tokens
    "hash of an n-gram": Row(
        "y = com.microsoft.NGramHashMapping<max_ngram_size = 4, n_head_per_ngram = 8, pad_id = 0>(x, m, v)",
        lambda n: {"x": integers(1000, 1, n), "m": integers(1000, 4), "v": integers(1000, 24) + 1},
        per(28),
        (2000, 8000),
    ),
    "token of an n-gram, compared": Row(
        "y = com.microsoft.NGramRepeatBlock<ngram_size = 400>(x, s)",
        lambda n: {"x": np.ones((8, n), np.int64), "s": floats(8, 10)},
        per(8 * 400),
        (600, 2000),
    ),
    "score of a token, copied": Row(
        "y = treadle.TokenScores(x, t, l)",
        lambda n: tokens_of(8, vocabulary=n, l=np.array(0)),
        per(4),
        LINE,
    ),
    "score of a token, changed": Row(
        "y = treadle.TokenScores(x, t, l, , m, , , w)",
        lambda n: tokens_of(8, vocabulary=n, l=np.array(0), m=np.ones(n, np.int32), w=np.full(1, 0.5, np.float32)),
        per(8),
        LINE,
        {"kTokenScoreCopyNs": per(4)},
    ),
    # --- Images
    "point of an affine grid": Row(
        lambda n: f"s = {ints(1, 1, n, 100)} y = AffineGrid(x, s)", lambda n: {"x": floats(1, 2, 3)}, per(100), TABLE
    ),
    "element of a crop, resized": Row(
        f"l = {ints(64, 64)} s = Cast<to = 6>(l) y = com.microsoft.CropAndResize(x, r, i, s)",
        image(4, 128, 128, r=lambda n: np.float32([[0, 0, 1, 1]] * n), i=lambda n: np.zeros(n, np.int32)),
        per(4 * 64 * 64),
        (2, 8),
    ),
    "point of a grid, located": Row(
        "y = GridSample(x, g)", image(1, 100, 100, g=points), per(100), TABLE, {"kGridSampleTapNs": per(400)}
    ),
    "tap of a grid sample": Row(
        "y = GridSample(x, g)",
        lambda n: {"x": floats(1, n, 100, 100), "g": points(100)},
        per(10_000 * 4),
        (8, 32),
    ),
    "bin of a MaxRoiPool": Row(
        "y = MaxRoiPool<pooled_shape = [32, 32]>(x, r)",
        image(16, 32, 32, r=lambda n: np.float32([[0, 0, 0, 31, 31]] * n)),
        per(16 * 1024),
        (4, 16),
        {"kMaxRoiElementNs": per(16 * 1024)},
    ),
    "element of a region of a MaxRoiPool": Row(
        "y = MaxRoiPool<pooled_shape = [2, 2]>(x, r)",
        image(16, 128, 128, r=lambda n: np.float32([[0, 0, 0, 127, 127]] * n)),
        per(16 * 128 * 128),
        (4, 16),
    ),
    "sample of a RoiAlign": Row(
        "y = RoiAlign<output_height = 20, output_width = 20, sampling_ratio = 40>(x, r, i)",
        image(1, 128, 128, r=lambda n: np.float32([[0, 0, 127, 127]] * n), i=lambda n: np.zeros(n, np.int64)),
        per(400 * 1600),
        (1, 3),
    ),
    "sample of a RoiAlign with its weights kept": Row(
        "y = RoiAlign<output_height = 7, output_width = 7, sampling_ratio = 4>(x, r, i)",
        image(64, 64, 64, r=lambda n: np.float32([[0, 0, 63, 63]] * n), i=lambda n: np.zeros(n, np.int64)),
        per(64 * 49 * 16),
        (4, 16),
    ),
    "box compared with a box that was kept": Row(
        f"m = {ints(100_000)} t = Constant<value_floats = [0.999]>() y = NonMaxSuppression(b, s, m, t)",
        lambda n: {"b": boxes(n), "s": floats(1, 1, n)},
        lambda n: n * n / 2,
        (1000, 2000),
    ),
    "tap of a Resize": Row(
        lambda n: f'n = {ints(1, n, 128, 128)} y = Resize<mode = "linear">(x, , , n)',
        lambda n: {"x": floats(1, n, 64, 64)},
        per(12 * 64 * 64),
        FEW,
    ),
    "run of columns of a Col2Im": Row(
        lambda n: f"s = {ints(n, 4)} b = {ints(1, 1)} y = Col2Im(x, s, b)",
        lambda n: {"x": floats(1, 1, n * 4)},
        per(),
        (20_000, 80_000),
        {"kCol2ImColumnNs": per(4)},
    ),
    "column of a Col2Im": Row(
        lambda n: f"s = {ints(n, 500)} b = {ints(1, 1)} y = Col2Im(x, s, b)",
        lambda n: {"x": floats(1, 1, n * 500)},
        per(500),
        TABLE,
    ),
    "tap of a pool with channels last": Row(
        "y = treadle.PoolNhwc<kernel_shape = [3, 3]>(x)",
        lambda n: {"x": floats(1, 58, 58, n)},
        per(56 * 56 * 9),
        (32, 128),
    ),
    "element of a global pool": Row(
        "y = GlobalAveragePool(x)", lambda n: {"x": floats(1, n, 32, 32)}, per(1024), (400, 1600)
    ),
    "place of a deformed kernel": Row(
        "y = DeformConv(x, w, o)",
        lambda n: {"x": floats(n, 1, 34, 34), "w": floats(1, 1, 3, 3), "o": floats(n, 18, 32, 32)},
        per(9 * 1024),
        (4, 16),
        {"kDeformCornerNs": per(9 * 1024 * 4)},
    ),
    "corner of a place of a deformed kernel": Row(
        "y = DeformConv(x, w, o)",
        lambda n: {"x": floats(1, n, 34, 34), "w": floats(1, n, 3, 3), "o": floats(1, 18, 32, 32)},
        per(9 * 1024 * 4),
        (16, 64),
    ),
    # --- Mathematics
    "step of a distance of a CDist": Row(
        "y = com.microsoft.CDist(a, b)",
        lambda n: {"a": floats(n, 64), "b": floats(256, 64)},
        per(256 * 64),
        (100, 400),
    ),
    "element of a DynamicTimeWarping": Row(
        "y = com.microsoft.DynamicTimeWarping(x)", line("x", 500), per(500), (200, 800)
    ),
    "element of a pass of a Fourier transform": Row(
        "y = DFT(x)", lambda n: {"x": floats(1, n, 2)}, lambda n: n * (log2(n) + 3), (2**12, 2**14)
    ),
    "root of unity": Row(
        "y = DFT(x)",
        lambda n: {"x": floats(1, n, 2)},
        per(0.5),
        (2**12, 2**14),
        {"kFourierElementNs": lambda n: n * (log2(n) + 3)},
        without="y = Neg(x)",
    ),
    "weight of a MelWeightMatrix": Row(
        "y = MelWeightMatrix(m, n, r, a, b)",
        lambda n: mel(100, 2 * n),
        per(100),
        TABLE,
        {"kConvertedElementNs": per(100)},
    ),
    "edge of a MelWeightMatrix": Row(
        "y = MelWeightMatrix(m, n, r, a, b)", lambda n: mel(n, 2), per(), LINE, {"kMelWeightNs": per(2)}
    ),
    "number read or printed": Row("y = Cast<to = 8>(x)", line(), per(), (5000, 20_000)),
    "element of a window function": Row(
        "y = HannWindow(n)", lambda n: {"n": np.array(n)}, per(), LINE, without="y = Identity(n)"
    ),
    "element eliminated": Row("y = Det(a)", lambda n: {"a": floats(n, n)}, lambda n: n**3 / 3, (64, 128)),
    "matrix of a Det": Row("y = Det(a)", line("a", 2, 2), per(), LINE, {"kDetElementNs": per(8 / 3)}),
    "element of a step of an optimizer": Row(
        "y, a, b = ai.onnx.preview.training.Adam(r, t, x, g, m, v)",
        lambda n: {"r": scalar(0.1), "t": np.array(3)} | {name: floats(n) for name in "xgmv"},
        per(),
        LINE,
    ),
    # --- Machine learning
    "element of a Binarizer": Row(f"{linear('Binarizer')}<threshold = 0.5>(x)", line(), per(), LONG),
    "element of an ArrayFeatureExtractor": Row(
        f"{linear('ArrayFeatureExtractor')}(x, i)",
        lambda n: {"x": floats(100, 2000), "i": integers(2000, n)},
        per(100),
        TABLE,
    ),
    "row of an input of a FeatureVectorizer": Row(
        f"{linear('FeatureVectorizer')}<inputdimensions = [1, 1]>(x, x)", line("x", 1), per(2), LINE
    ),
    "step down a tree": Row(
        f"{linear('TreeEnsembleRegressor')}<{old_tree('target', n_targets=3)}>(x)",
        line("x", 8),
        per(11),
        (5000, 20_000),
        {"kPredictedRowNs": per()},
        opsets={"ai.onnx.ml": 3},
    ),
    "label looked up": Row(
        f"{linear('LabelEncoder')}<keys_int64s = [1, 2], values_int64s = [5, 6]>(x)",
        lambda n: {"x": integers(4, n)},
        per(),
        LINE,
    ),
    "row predicted, apart from its model": Row(
        f"{linear('LinearRegressor')}<coefficients = [0.5]>(x)", line("x", 1), per(), LINE
    ),
    "feature of a support vector": Row(
        lambda n: f"{linear('SVMRegressor')}<{vectors(n)}>(x)",
        lambda n: {"x": floats(100, n)},
        per(100 * 400),
        (20, 80),
    ),
    "kernel function of a support vector": Row(
        lambda _: f"{linear('SVMRegressor')}<{vectors(1)}>(x)",
        line("x", 1),
        per(400),
        (100, 400),
        {"kSvmTermNs": per(400)},
    ),
    "key of a DictVectorizer": Row(
        lambda n: f"{linear('DictVectorizer')}<int64_vocabulary = {list(range(20_000))}>(x)",
        lambda n: {"x": dict.fromkeys(range(n), np.float32(0.5))},
        per(),
        (5000, 20_000),
    ),
    "entry of a CastMap": Row(
        f"{linear('CastMap')}(x)", lambda n: {"x": dict.fromkeys(range(n), np.float32(0.5))}, per(), (5000, 20_000)
    ),
    "map of a ZipMap": Row(
        f"{linear('ZipMap')}<classlabels_int64s = [1, 2, 3]>(x)", line("x", 3), per(), (5000, 20_000)
    ),
    # --- Networks
    "element of a Dropout": Row("y = Dropout(x, r, t)", lambda n: {"x": floats(n)} | TRAINING, per(), LINE),
    "element of a mask of a Dropout that drops nothing": Row("z, y = Dropout(x)", line(), per(), LONG),
    "label of a loss": Row(
        "y = NegativeLogLikelihoodLoss(x, t)",
        lambda n: {"x": floats(1, 2, n), "t": integers(2, 1, n)},
        per(),
        LINE,
    ),
    "element of the statistics of a BatchNormalization": Row(
        "y, a, b = BatchNormalization<training_mode = 1>(x, s, s, s, s)",
        lambda n: {"x": floats(8, 16, n), "s": floats(16)},
        per(256),
        TABLE,
        {"kRowElementNs": per(128)},
    ),
    "element of a row, scaled and shifted": Row(
        "y = BatchNormalization(x, s, s, s, s)",
        lambda n: {"x": floats(8, 16, n), "s": floats(16)},
        per(128),
        TALL,
    ),
    "power of an LRN": Row(
        "y = LRN<size = 5>(x)",
        lambda n: {"x": floats(1, 16, n, 32)},
        per(16 * 32),
        FEW,
        {"kRowElementNs": per(16 * 32 * 6)},
    ),
    "element of a SkipLayerNormalization": Row(
        "y = com.microsoft.SkipLayerNormalization(x, x, g)",
        lambda n: {"x": floats(1, n, 256), "g": floats(256)},
        per(256),
        TABLE,
    ),
    "element of a Softmax": Row("y = Softmax(x)", line("x", 256), per(256), TABLE),
    "lane of a recurrent cell, all gates": Row(
        f"y, z = treadle.LstmCell<{CELL}>(g, c)",
        lambda n: {"g": floats(n, 1024), "c": floats(n, 256)},
        per(256),
        (50, 200),
    ),
    # --- Quantisation
    "byte looked up in a table": Row(
        "y = com.microsoft.QLinearSigmoid(x, s, z, s, z)", lambda n: {"x": bytes_of(n)} | SCALES, per(), LONG
    ),
    "element of a DynamicQuantizeLinear": Row("y, s, z = DynamicQuantizeLinear(x)", line(), per(), LONG),
    "element of a QuantizeLinear": Row("y = QuantizeLinear(x, s, z)", lambda n: {"x": floats(n)} | SCALES, per(), LONG),
    "number of a block, unpacked": Row(
        "y = com.microsoft.GatherPacked<K = 256, output_dtype = 1, packed_type = 14>(x, i)",
        lambda n: {"x": bytes_of(1000, 210), "i": integers(1000, n)},
        per(256),
        TABLE,
    ),
    "product of bytes": Row(
        "y = MatMulInteger(x, b)",
        lambda n: {"x": bytes_of(n, 512)},
        per(512 * 512),
        (50, 200),
        weights=lambda n: {"b": bytes_of(512, 512)},
    ),
    "weight of a MatMulNBits, made a float": Row(
        lambda n: f"y = com.microsoft.MatMulNBits<K = 1024, N = {n}, block_size = 32>(x, w, s)",
        lambda n: {"x": floats(1, 1024)},
        per(1024),
        TABLE,
        {"kBlockProductNs": per(1024)},
        lambda n: {"w": bytes_of(n, 32, 16), "s": floats(n, 32)},
    ),
    "product of a MatMulNBits": Row(
        "y = com.microsoft.MatMulNBits<K = 1024, N = 512, block_size = 32>(x, w, s)",
        lambda n: {"x": floats(n, 1024)},
        per(1024 * 512),
        (24, 96),
        weights=lambda n: {"w": bytes_of(512, 32, 16), "s": floats(512, 32)},
    ),
    "byte of a scale, hashed": Row(
        lambda n: f"y = com.microsoft.MatMulNBits<K = 1024, N = {n}, block_size = 16>(x, w, s)",
        lambda n: {"x": floats(1, 1024)},
        per(64 * 4),
        TABLE,
        {"kBlockWordNs": per(64 * 3)},
        lambda n: {"w": bytes_of(n, 64, 8), "s": floats(n, 64)},
        without="y = Neg(x)",
    ),
    # --- Random numbers
    "uniform number": Row(lambda n: f"y = RandomUniform<shape = [{n}]>()", none, per(), LINE),
    "normal number": Row(lambda n: f"y = RandomNormal<shape = [{n}]>()", none, per(), LINE),
    "element of a Bernoulli": Row("y = Bernoulli(x)", line(), per(), LINE),
    "class of a Multinomial, in a pass": Row("y = Multinomial(x)", lambda n: {"x": floats(1, n)}, per(2), LINE),
    "number drawn by a Multinomial": Row(
        lambda n: f"y = Multinomial<sample_size = {n}>(x)", lambda n: {"x": floats(1, 1000)}, per(), (5000, 20_000)
    ),
    # --- Selecting elements
    "index looked up": Row("y = GatherElements(x, i)", lambda n: {"x": floats(n), "i": integers(n, n)}, per(), LINE),
    "element looked at, and perhaps kept": Row("y = NonZero(x)", lambda n: {"x": flags(n)}, per(2.5), LINE),
    "element of a Unique": Row("y, a, b, c = Unique<sorted = 0>(x)", lambda n: {"x": integers(1000, n)}, per(), LINE),
    "key of a Unique, moved to a larger table": Row(
        "y, a, b, c = Unique<sorted = 0>(x)",
        lambda n: {"x": np.arange(n)},
        per(),
        (2**13, 2**15),
        {"kUniqueKeyNs": per()},
    ),
    "group of a Unique, put in order": Row(
        "y, a, b, c = Unique(x)", lambda n: {"x": integers(1000, n)}, per(), LINE, {"kUniqueKeyNs": per()}
    ),
    "comparison of slices": Row("y = Unique<axis = 0>(x)", line("x", 4), lambda n: n * (log2(n) + 3), (5000, 20_000)),
    "64 elements of a TopK, searched for a bound": Row(
        f"k = {ints(5)} y, z = TopK(x, k)", lambda n: {"x": floats(20, n)}, per(2 * 20 / 64), (5000, 20_000)
    ),
    "64 elements of a TopK of few": Row(
        f"k = {ints(5)} y, z = TopK(x, k)",
        lambda n: {"x": floats(20, n).astype(np.float64)},
        per(20 / 64),
        (5000, 20_000),
    ),
    "64 elements of a TopK of some": Row(
        f"k = {ints(100)} y, z = TopK(x, k)", lambda n: {"x": floats(4, n)}, per(4 / 64), (50_000, 200_000)
    ),
    "element of a column of a TopK": Row(
        f"k = {ints(5)} y, z = TopK<axis = 0>(x, k)",
        line("x", 100),
        per(100),
        (1000, 4000),
        {"kTopKBoundBlockNs": per(100 * 2 / 64)},
    ),
    "step of a ReverseSequence": Row(
        "y = ReverseSequence<batch_axis = 1, time_axis = 0>(x, l)",
        lambda n: {"x": floats(n, 64), "l": np.full(64, n)},
        per(64),
        TABLE,
    ),
    "tensor of a SplitToSequence": Row("y = SplitToSequence(x)", line("x", 4), per(), (5000, 20_000)),
    "element of a Range of halves": Row(
        "y = Range(a, b, c)",
        lambda n: {"a": scalar(0, np.float16), "b": scalar(n, np.float16), "c": scalar(1, np.float16)},
        per(),
        (15_000, 60_000),
    ),
    # --- Texts
    "hash of a number": Row("y = com.microsoft.MurmurHash3(x)", line(), per(), LINE),
    "character hashed": Row(
        "y = com.microsoft.MurmurHash3(x)", lambda n: {"x": lots(5000, "x" * n)}, per(5000), (100, 400)
    ),
    "word looked up by a TfIdfVectorizer": Row(
        f"y = TfIdfVectorizer<{grams(0)}>(x)", lambda n: {"x": integers(5, n) + 2}, per(), LINE
    ),
    "position of a row of a TfIdfVectorizer": Row(
        f"y = TfIdfVectorizer<{grams(0)}>(x)",
        lambda n: {"x": np.ones(n, np.int64)},
        per(4),  # looked at twice for words, and for pairs
        LINE,
        {"kGramFindNs": per()},
    ),
    "edge followed by a TfIdfVectorizer": Row(
        f"y = TfIdfVectorizer<{grams(0)}>(x)",
        lambda n: {"x": np.ones((n, 7), np.int64)},  # rows so short that words are followed from each position
        per(7 * 2),
        (5000, 20_000),
        {"kGramFindNs": per(7), "kGramPlaceNs": per(7)},
    ),
    "64 positions of a word of an n-gram": Row(
        f"y = TfIdfVectorizer<{grams(10_000)}>(x)",
        lambda n: {"x": np.ones(n, np.int64)},
        lambda n: n / 2 * (n / 64 + 2) * 3,
        (2000, 8000),
    ),
    "character matched by a RegexFullMatch": Row(
        'y = RegexFullMatch<pattern = "([0-9]+x*)+">(x)',
        lambda n: {"x": lots(500, "1234567890x" * n)},
        per(5500),
        (10, 40),
    ),
    "character whose case is changed": Row(
        'y = StringNormalizer<case_change_action = "UPPER">(x)',
        lambda n: {"x": lots(500, "x" * n)},
        per(500),
        (100, 400),
    ),
    "part of a StringSplit": Row(
        "y, z = StringSplit(x)",
        lambda n: {"x": lots(20, f"{WORD} " * n)},
        per(20),
        TABLE,
        {"kSplitCharacterNs": per(20 * 25), "kTextNs": per(20)},
    ),
    "character of a StringSplit": Row(
        "y, z = StringSplit(x)", lambda n: {"x": lots(500, f"{'a' * n} {'b' * n}")}, per(1000), (100, 400)
    ),
    "token of a Tokenizer": Row(
        'y = com.microsoft.Tokenizer<mark = 0, mincharnum = 1, pad_value = "", separators = [" "]>(x)',
        lambda n: {"x": lots(n, " ".join([WORD] * 8))},
        per(8),
        TABLE,
        {"kTokenizerCharacterNs": per(8 * 25), "kTextNs": per(8)},
    ),
    "character of a Tokenizer": Row(
        'y = com.microsoft.Tokenizer<mark = 0, mincharnum = 1, pad_value = "", separators = [" "]>(x)',
        lambda n: {"x": lots(500, "x" * n)},
        per(500),
        (100, 400),
    ),
    # --- Constants that passes compute with
    "weight scaled by its channel": Row(
        "m = MatMul(x, w) y = Mul(m, b)",
        lambda n: {"x": floats(1, 1024)},
        per(1024),
        TABLE,
        weights=lambda n: {"w": floats(1024, n), "b": floats(n)},
        without="y = MatMul(x, w)",
    ),
    "weight of a convolution, normalised": Row(
        "c = Conv(x, w) y = BatchNormalization(c, b, b, b, b)",
        lambda n: {"x": floats(1, 512, 3, 3)},
        per(512 * 9),
        (100, 400),
        weights=lambda n: {"w": floats(n, 512, 3, 3), "b": floats(n)},
        without="y = Conv(x, w)",
    ),
    "byte of a matrix, transposed": Row(
        "a = DequantizeLinear(x, s, z) v = DequantizeLinear(w, s, z) y = Gemm<transB = 1>(a, v)",
        lambda n: {"x": bytes_of(1, 512)},
        per(512),
        TABLE,
        weights=lambda n: {"w": bytes_of(n, 512), "t": bytes_of(512, n)} | SCALES,
        without="a = DequantizeLinear(x, s, z) v = DequantizeLinear(t, s, z) y = Gemm(a, v)",
    ),
    "weight rounded to 16 bits": Row(
        "y = MatMul(x, w)",
        lambda n: {"x": floats(1, 1024)},
        per(1024),
        TABLE,
        weights=lambda n: {"w": floats(1024, n)},
        without="y = Neg(x)",
        narrow=True,
    ),
}


def mel(bins: int, length: int) -> dict:
    return {"m": np.array(bins), "n": np.array(length), "r": np.array(48_000), "a": scalar(0), "b": scalar(24_000)}


def vectors(features: int) -> str:
    machine = svm(400, features) | {"coefficients": [0.1] * 400, "rho": [0.1], "n_supports": 400}
    return long_runs.attribute_text(machine)


ROWS = KERNELS | OPERATORS

"""Operators of com.microsoft that move, pick, make and transform tensors, against onnxruntime or numpy."""

import numpy as np
import pytest
from contrib import Node, by_treadle, check
from test_contrib_norms import BFLOAT, DOUBLE, FLOAT, HALF, draw, maybe, pick, sizes

INT16, INT32, INT64 = (np.dtype(t) for t in (np.int16, np.int32, np.int64))
TEXT = np.dtype(object)


def scalars(rng, *values):
    """Each as a scalar or as a vector of one element."""
    return [np.asarray(v).reshape(pick(rng, (), (1,))) for v in values]


def texts(rng, shape, words=("", "a", "ab", "κόσμος", "x y", "ab c ab", " ab", "b  b ")):
    return np.array([pick(rng, *words) for _ in range(int(np.prod(shape)))], object).reshape(shape)


def anything(rng, shape):
    """Elements of any type."""
    dtype = pick(rng, FLOAT, DOUBLE, HALF, INT64, INT32, np.dtype(np.uint8), np.dtype(np.bool_), TEXT)
    return texts(rng, shape) if dtype == TEXT else rng.integers(0, 100, shape).astype(dtype)


# ---- Operators from which those of ai.onnx came


def trilu(rng):
    dtype, shape = pick(rng, FLOAT, DOUBLE, INT64), sizes(rng, int(rng.integers(2, 5)))
    k = maybe(rng, np.array(rng.integers(-6, 7)))
    x = rng.integers(1, 9, shape).astype(dtype)
    return Node("Trilu", [x, k], [dtype], {"upper": int(rng.integers(2))}, symbolic=bool(rng.integers(2)))


def trilu_of_other_types(rng):
    dtype = pick(rng, HALF, BFLOAT, INT32, np.dtype(np.uint8), np.dtype(np.bool_))
    x = rng.integers(0, 2, (2, 4, 5)).astype(dtype)
    return Node("Trilu", [x, np.array(1)], [dtype], {"upper": 0}, expected=[np.tril(x, 1)])


def numbers_of_a_range(rng):
    dtype = pick(rng, FLOAT, DOUBLE, INT16, INT32, INT64)
    step = pick(rng, 1, 2, -3) * (1 if dtype.kind == "i" else 0.25)
    start, limit = int(rng.integers(-9, 9)), int(rng.integers(-9, 20))
    start, limit, step = scalars(rng, dtype.type(start), dtype.type(limit), dtype.type(step))
    constants = pick(rng, (), (0, 1, 2))
    return Node("Range", [start, limit, maybe(rng, step)], [dtype], constants=constants)


def pad(rng):
    mode, rank = pick(rng, "constant", "reflect", "edge"), int(rng.integers(1, 4))
    x = draw(rng, sizes(rng, rank, 6) if mode != "reflect" else tuple(rng.integers(4, 7, rank)), FLOAT)
    pads = rng.integers(-1 if mode == "constant" else 0, 3, 2 * rank)
    value = maybe(rng, draw(rng, pick(rng, (), (1,)), FLOAT)) if mode == "constant" else None
    pads = pads.reshape(pick(rng, (-1,), (1, -1)))
    return Node("Pad", [x, pads, value], [FLOAT], {"mode": mode}, constants=pick(rng, (), (1,)))


def pad_of_doubles(rng):
    x = draw(rng, (2, 3), DOUBLE)
    return Node("Pad", [x, np.array([0, 1, 2, 0]), None], [DOUBLE], expected=[np.pad(x, ((0, 2), (1, 0)))])


def unique(rng):
    return Node("Unique", [rng.integers(0, 5, rng.integers(0, 12)).astype(FLOAT)], [FLOAT, INT64, INT64])


def unique_texts(rng):
    x = texts(rng, (9,))
    first = list(dict.fromkeys(x.tolist()))
    places = np.array([first.index(t) for t in x.tolist()])
    expected = [np.array(first, object), places, np.bincount(places)]
    return Node("Unique", [x], [TEXT, INT64, INT64], expected=expected)


def expand_dims(rng):
    x = anything(rng, sizes(rng, int(rng.integers(0, 4)), 4))
    axis = np.array(rng.integers(-x.ndim - 1, x.ndim + 1), np.int32).reshape(pick(rng, (), (1,)))
    return Node(
        "ExpandDims",
        [x, axis],
        [x.dtype],
        constants=pick(rng, (), (1,)),
        expected=[np.expand_dims(x, int(axis.item()))],
    )


def gather_nd(rng):
    x = anything(rng, sizes(rng, int(rng.integers(1, 4)), 5))
    depth = int(rng.integers(1, x.ndim + 1))
    rows = sizes(rng, int(rng.integers(0, 3)), 4)
    picked = np.stack([rng.integers(-n, n, rows) for n in x.shape[:depth]], -1).astype(pick(rng, INT32, INT64))
    return Node("GatherND", [x, picked], [x.dtype])


def grid_sample(rng):
    n, c, h, w = (int(v) for v in rng.integers(1, 6, 4))
    grid = draw(rng, (n, *rng.integers(1, 5, 2), 2), FLOAT, -1.4, 1.4)
    attributes = {
        "mode": pick(rng, "bilinear", "nearest", "bicubic"),
        "padding_mode": pick(rng, "zeros", "border", "reflection"),
        "align_corners": int(rng.integers(2)),
    }
    if attributes["mode"] == "bicubic" and attributes["padding_mode"] == "border":
        # onnxruntime moves a point to the border before it looks for its neighbours, onnx's reference the neighbours.
        attributes["padding_mode"] = "zeros"
    return Node("GridSample", [draw(rng, (n, c, h, w), FLOAT), grid], [FLOAT], attributes, units=64)


def sample(rng):
    return Node("SampleOp", [draw(rng, sizes(rng, 3), FLOAT)], [FLOAT])


# ---- Others that move elements


def unfold(rng):
    x = anything(rng, tuple(rng.integers(3, 7, int(rng.integers(1, 4)))))
    attributes = {
        "size": int(rng.integers(1, 4)),
        "step": int(rng.integers(1, 4)),
        "dim": int(rng.integers(-x.ndim, x.ndim)),
    }
    windows = np.lib.stride_tricks.sliding_window_view(x, attributes["size"], attributes["dim"])
    expected = windows.take(
        range(0, windows.shape[attributes["dim"] % x.ndim], attributes["step"]), attributes["dim"] % x.ndim
    )
    return Node("UnfoldTensor", [x], [x.dtype], attributes, expected=[expected])


def unfold_by_onnxruntime(rng):
    x = draw(rng, tuple(rng.integers(3, 7, int(rng.integers(1, 4)))), pick(rng, FLOAT, DOUBLE))
    attributes = {
        "size": int(rng.integers(1, 4)),
        "step": int(rng.integers(1, 4)),
        "dim": int(rng.integers(-x.ndim, x.ndim)),
    }
    return Node("UnfoldTensor", [x], [x.dtype], attributes, symbolic=bool(rng.integers(2)))


def crop_and_resize(rng):
    n, c, h, w = (int(v) for v in rng.integers(1, 7, 4))
    count = int(rng.integers(0, 5))
    regions = rng.uniform(-0.2, 1.2, (count, 4)).astype(FLOAT)
    size = np.array(rng.integers(1, 5, 2), np.int32)
    attributes = {"mode": pick(rng, "bilinear", "nearest"), "extrapolation_value": pick(rng, 0.0, 7.5)}
    images = rng.integers(0, n, count).astype(np.int32)
    return Node("CropAndResize", [draw(rng, (n, c, h, w), FLOAT), regions, images, size], [FLOAT], attributes, units=64)


# ---- Matrices


def inverse(rng):
    dtype, n = pick(rng, FLOAT, DOUBLE, HALF), int(rng.integers(1, 9))
    x = (draw(rng, (*sizes(rng, int(rng.integers(0, 3)), 4), n, n), DOUBLE, -1, 1) + 3 * np.eye(n)).astype(dtype)
    return Node("Inverse", [x], [dtype], expected=[np.linalg.inv(x.astype(np.float64))], units=32)


def inverse_by_onnxruntime(rng):
    n = int(rng.integers(1, 9))
    x = draw(rng, (2, n, n), FLOAT, -1, 1) + rng.permutation(3 * np.eye(n, dtype=FLOAT))
    return Node("Inverse", [x], [FLOAT], units=256)


def distances(rng):
    dtype, (m, k, n) = pick(rng, FLOAT, DOUBLE), sizes(rng, 3, 40)
    a, b = draw(rng, (m, n), dtype), draw(rng, (k, n), dtype)
    # onnxruntime takes products from squares, which leaves fewer digits.
    metric = pick(rng, "euclidean", "sqeuclidean")
    squared = ((a.astype(np.float64)[:, None] - b.astype(np.float64)[None]) ** 2).sum(-1)
    return Node(
        "CDist", [a, b], [dtype], {"metric": metric}, expected=[np.sqrt(squared) if metric[0] == "e" else squared]
    )


def distances_by_onnxruntime(rng):
    m, k, n = sizes(rng, 3, 12)
    return Node("CDist", [draw(rng, (m, n), DOUBLE), draw(rng, (k, n), DOUBLE)], [DOUBLE], units=2000)


def warping(rng):
    m, n = (int(v) for v in rng.integers(1, 12, 2))
    costs = pick(rng, draw(rng, (m, n), FLOAT, 0, 1), rng.integers(0, 3, (m, n)).astype(FLOAT))
    return Node("DynamicTimeWarping", [costs.reshape(pick(rng, (m, n), (1, m, n)))], [INT32])


# ---- Convolutions and pools


def transposed_with_pads(rng):
    axes, group = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    n, c, m = (int(v) for v in rng.integers(1, 4, 3))
    x = draw(rng, (n, group * c, *rng.integers(3, 6, axes)), FLOAT)
    w = draw(rng, (group * c, m, *rng.integers(2, 4, axes)), FLOAT, -1, 1)
    bias = maybe(rng, draw(rng, (group * m,), FLOAT))
    pads = rng.integers(0, 2, 2 * axes)
    attributes = {"group": group, "strides": [int(s) for s in rng.integers(1, 3, axes)]}
    if rng.integers(2):
        attributes["dilations"] = [2] * axes
    return Node(
        "ConvTransposeWithDynamicPads", [x, w, pads, bias], [FLOAT], attributes, units=32, constants=pick(rng, (), (2,))
    )


def masked_pool(rng):
    axes = int(rng.integers(1, 4))
    n, c, *space = (int(v) for v in (*rng.integers(1, 4, 2), *rng.integers(3, 7, axes)))
    x = draw(rng, (n, c, *space), FLOAT)
    mask = rng.integers(0, 3, (1, 1, *space)).clip(0, 1).astype(np.int32)
    attributes = {"kernel_shape": [int(k) for k in rng.integers(1, 4, axes)]}
    if rng.integers(2):
        attributes["strides"] = [int(s) for s in rng.integers(1, 3, axes)]
    pads = [int(p) for p in rng.integers(0, attributes["kernel_shape"] * 2)]
    attributes |= pick(rng, {}, {"pads": pads}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "VALID"})
    return Node("MaxpoolWithMask", [x, mask], [FLOAT], attributes)


def words(rng):
    count, length = int(rng.integers(1, 6)), int(rng.integers(3, 8))
    vocabulary, size, filters, width = (int(v) for v in (*rng.integers(2, 9, 3), rng.integers(1, 4)))
    # Words of characters above 0, filled up with zeros; onnxruntime leaves the vectors of empty words as they come.
    lengths = rng.integers(1, length + 1, count)
    given = np.where(np.arange(length) < lengths[:, None], rng.integers(1, vocabulary, (count, length)), 0).astype(
        np.int32
    )
    w, bias = draw(rng, (filters, 1, width, size), FLOAT, -1, 1), draw(rng, (filters,), FLOAT)
    table = draw(rng, (vocabulary, size), FLOAT)
    attributes = pick(rng, {}, {"embedding_size": filters, "conv_window_size": width, "char_embedding_size": size})
    return Node("WordConvEmbedding", [given, w, bias, table], [FLOAT], attributes, units=32)


# ---- Texts and tokens


def murmur(rng):
    dtype = pick(rng, FLOAT, DOUBLE, INT32, INT64, np.dtype(np.uint32), np.dtype(np.uint64), TEXT)
    shape = sizes(rng, int(rng.integers(0, 3)))
    x = texts(rng, shape) if dtype == TEXT else rng.integers(0, 2**31, shape).astype(dtype)
    positive = int(rng.integers(2))
    attributes = {"positive": positive} | pick(rng, {}, {"seed": int(rng.integers(2**31))})
    return Node("MurmurHash3", [x], [np.uint32 if positive else np.int32], attributes)


def tokens(rng):
    x = texts(rng, pick(rng, (3,), (1,), (2, 3)))
    rules = pick(
        rng, {"separators": [" "]}, {"separators": ["a", " "]}, {"separators": ["[ab]+", "c"]}, {"separators": [""]},
        {"separators": ["a|ab"]}, {"tokenexp": "."}, {"tokenexp": "[a-c]+"}, {"tokenexp": r"\pL"}, {"tokenexp": "a|ab"},
        {"tokenexp": "b.*"},
    )  # fmt: skip
    by_character = rules in ({"separators": [""]}, {"tokenexp": "."})
    least = 1 if by_character else int(rng.integers(1, 4))
    attributes = {"mark": int(rng.integers(2)), "pad_value": pick(rng, "#", ""), "mincharnum": least} | rules
    return Node("Tokenizer", [x], [TEXT], attributes)


def blocked_ngrams(rng):
    rows, length, vocabulary = int(rng.integers(1, 4)), int(rng.integers(1, 12)), int(rng.integers(2, 5))
    given = rng.integers(0, vocabulary, (rows, length))
    return Node(
        "NGramRepeatBlock",
        [given, draw(rng, (rows, vocabulary), FLOAT)],
        [FLOAT],
        {"ngram_size": int(rng.integers(1, 4))},
    )


def bifurcation(rng):
    source, current = rng.integers(0, 3, rng.integers(1, 9)), rng.integers(0, 3, rng.integers(0, 6))
    match = int(rng.integers(0, len(source) + 1))
    predicted = np.append(source[match:], 1)
    predicted[rng.integers(len(predicted))] = rng.integers(3)
    least = int(rng.integers(1, 3))
    attributes = {"min_ngram_size": least, "max_ngram_size": least + int(rng.integers(3))}
    inputs = [source, current, np.array([match]), maybe(rng, predicted)]
    return Node("BifurcationDetector", inputs, [INT64, INT64], attributes)


MAKERS = [
    trilu, trilu_of_other_types, numbers_of_a_range, pad, pad_of_doubles, unique, unique_texts, expand_dims, gather_nd,
    grid_sample, sample, unfold, unfold_by_onnxruntime, crop_and_resize, inverse, inverse_by_onnxruntime, distances, distances_by_onnxruntime,
    warping, transposed_with_pads, masked_pool, words, murmur, tokens, blocked_ngrams, bifurcation,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_random_nodes(maker, seed):
    check(maker(np.random.default_rng([seed, *maker.__name__.encode()])))


# ---- Refused inputs


@pytest.mark.parametrize(
    ("node", "complaint"),
    [
        (Node("CDist", [np.ones((2, 3), FLOAT)] * 2, [FLOAT], {"metric": "cosine"}), "metric is 'cosine'"),
        (Node("CDist", [np.ones((2, 3), FLOAT), np.ones((2, 2), FLOAT)], [FLOAT]), "rows of equal lengths"),
        (Node("Inverse", [np.ones((2, 3), FLOAT)], [FLOAT]), "square matrices"),
        (Node("UnfoldTensor", [np.ones(3, FLOAT)], [FLOAT], {"size": 4}), "at least attribute size"),
        (Node("UnfoldTensor", [np.ones(3, FLOAT)], [FLOAT], {"size": 1, "step": 0}), "step is 0"),
        (Node("Unique", [np.ones((2, 2), FLOAT)], [FLOAT, INT64, INT64]), "expected one dimension"),
        (Node("ExpandDims", [np.ones(2, FLOAT), np.int32([3])], [FLOAT], constants=(1,)), "axis is 3"),
        (Node("Pad", [np.ones(2, FLOAT), np.ones(3, INT64)], [FLOAT]), "expected two for each axis"),
        (Node("Pad", [np.ones(2, FLOAT), np.ones(2, INT64)], [FLOAT], {"mode": "wrap"}), "mode is 'wrap'"),
        (Node("GridSample", [np.ones((1, 1, 3), FLOAT), np.ones((1, 2, 1), FLOAT)], [FLOAT]), r"expected \[N,C,H,W\]"),
        (Node("Range", [np.ones(2, FLOAT), np.ones(1, FLOAT)], [FLOAT]), "start has 2 elements"),
        (
            Node(
                "CropAndResize",
                [np.ones((1, 1, 2, 2), FLOAT), np.ones((1, 4), FLOAT), np.int32([1]), np.int32([1, 1])],
                [FLOAT],
            ),
            r"batch_indices\[0\] is 1, expected 0 to 0",
        ),
        (
            Node("NGramRepeatBlock", [np.int64([[9, 1, 9]]), np.ones((1, 2), FLOAT)], [FLOAT], {"ngram_size": 1}),
            r"input_ids\[0\] is 9, expected 0 to 1",
        ),
        (
            Node("BifurcationDetector", [np.ones(3, INT64), np.ones(1, INT64), np.int64([0]), np.ones(2, INT64)], [INT64] * 2),
            "2 pred_tokens, expected 4",
        ),
        (
            Node(
                "ConvTransposeWithDynamicPads",
                [np.ones((1, 1, 2), FLOAT), np.ones((1, 1, 1), FLOAT), np.int64([2, 2])],
                [FLOAT],
            ),
            "larger than the result by 2",
        ),
        (
            Node("MaxpoolWithMask", [np.ones((1, 1, 3), FLOAT), np.ones((1, 1, 2), np.int32)], [FLOAT], {"kernel_shape": [1]}),
            "expected the spatial axes",
        ),
        (
            Node("Tokenizer", [texts(np.random.default_rng(0), (2,))], [TEXT], {"mark": 0, "mincharnum": 1, "pad_value": ""}),
            "expected one of the attributes separators and tokenexp, found neither",
        ),
        (
            Node(
                "Tokenizer",
                [texts(np.random.default_rng(0), (2,))],
                [TEXT],
                {"mark": 0, "mincharnum": 1, "pad_value": "", "tokenexp": "(a"},
            ),
            "expected a regular expression of RE2",
        ),
    ],
    ids=lambda value: value.op if isinstance(value, Node) else None,
)  # fmt: skip
def test_refusals(node, complaint):
    with pytest.raises(Exception, match=complaint):
        by_treadle(node)


def test_masks_with_channels():
    """Each channel reads its own part of a mask with channels; onnxruntime reads other elements."""
    x = np.arange(6, dtype=FLOAT).reshape(1, 2, 3)
    mask = np.int32([[[1, 1, 1], [1, 0, 1]]])
    [y] = by_treadle(Node("MaxpoolWithMask", [x, mask], [FLOAT], {"kernel_shape": [3]}))
    np.testing.assert_array_equal(y, [[[2], [3]]])


def test_empty_words():
    """A word without characters gets zeros (onnxruntime leaves its vector as the memory was)."""
    given = np.int32([[0, 0, 0], [1, 2, 0]])
    weights = [np.ones((2, 1, 2, 2), FLOAT), np.zeros(2, FLOAT), np.ones((3, 2), FLOAT)]
    [y] = by_treadle(Node("WordConvEmbedding", [given, *weights], [FLOAT]))
    np.testing.assert_array_equal(y[0], [0, 0])
    assert (y[1] > 0.99).all()


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_texts(shape):
    attributes = {"mark": 1, "mincharnum": 1, "pad_value": "", "separators": [" "]}
    check(Node("Tokenizer", [np.zeros(shape, object)], [TEXT], attributes))

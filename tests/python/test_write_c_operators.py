"""Models as C: operators of single families, with drawn sizes and attributes, give the engine's bits."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from test_write_c import PROCESSORS, run_both, sizes, usable

OPSETS = {"": 22, "ai.onnx.ml": 5, "ai.onnx.preview.training": 1, "com.microsoft": 1}


def one_node(op: str, inputs: dict, outputs: list[str], constants: dict | None = None, domain: str = "", **attributes):
    """A model of one node, whose operands are the inputs and then the constants, and its feeds."""
    opsets = {**OPSETS, "": attributes.pop("opset", OPSETS[""]), "ai.onnx.ml": attributes.pop("ml", 5)}
    constants = constants or {}

    def info(name, array):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    node = helper.make_node(op, [*inputs, *constants], outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "drawn",
        [info(name, array) for name, array in inputs.items() if name],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid(name, version) for name, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), inputs


def small(random, most: int = 6) -> int:
    return int(random.integers(1, most + 1))


def numbers(random, shape, dtype=np.float32):
    return (random.standard_normal(shape) * 3).astype(dtype)


FLOATS = [np.float32, np.float64, np.float16]


def drawn_log_sum_exp(random):
    shape = [small(random, 3), sizes(random), int(random.choice([1, 2, 5, 17]))]
    random.shuffle(shape)
    axes = random.choice(3, size=int(random.integers(1, 4)), replace=False)
    x = numbers(random, shape, random.choice([np.float32, np.float64, np.float16, np.int32, np.int64]))
    keep = int(random.integers(2))
    return one_node("ReduceLogSumExp", {"x": x}, ["y"], {"axes": np.array(axes, np.int64)}, keepdims=keep)


def drawn_nothing(random):
    op = random.choice(["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
    x = np.zeros((2, 0, 3), random.choice([np.float32, np.float64, np.int32]))
    return one_node(f"Reduce{op}", {"x": x}, ["y"], {"axes": np.array([random.choice([0, 1])], np.int64)}, opset=18)


def drawn_lp_pool(random):
    shape = [small(random, 2), small(random, 3), *(int(random.integers(5, 24)) for _ in range(2))]
    x = numbers(random, shape, random.choice(FLOATS))
    if random.integers(3) == 0:
        return one_node("GlobalLpPool", {"x": x}, ["y"], p=int(random.integers(1, 5)))
    kernel = [int(random.integers(1, 5)) for _ in range(2)]
    strides = [int(random.integers(1, 3)) for _ in range(2)]
    return one_node("LpPool", {"x": x}, ["y"], kernel_shape=kernel, strides=strides, p=int(random.integers(1, 5)))


def drawn_power(random):
    bases, exponents = [np.float32, np.float64, np.float16, np.int32, np.int64], [np.float32, np.float64, np.int32]
    base = np.abs(numbers(random, [3, small(random), 4], random.choice(bases)))
    shape = [int(random.choice([1, d])) for d in base.shape]
    exponent = random.choice([2, 3, 0.5, 1.5, 4], size=shape).astype(random.choice([*exponents, np.uint64]))
    return one_node("Pow", {"x": base, "e": exponent}, ["y"])


def drawn_many(random):
    op = str(random.choice(["Sum", "Mean", "Max", "Min"]))
    shape = [small(random), small(random), 4]
    dtype = random.choice(FLOATS)
    inputs = {
        f"x{i}": numbers(random, [int(random.choice([1, d])) for d in shape[int(random.integers(2)) :]], dtype)
        for i in range(int(random.integers(1, 5)))
    }
    return one_node(op, inputs, ["y"])


def drawn_empty_parts(random):
    sizes_of = np.array([0, 3, 0], np.int64)
    x = numbers(random, [2, 3, small(random)], random.choice(FLOATS))
    if random.integers(2):
        return one_node("Split", {"x": x}, ["a", "b", "c"], {"s": sizes_of}, axis=1)
    bounds = {"b": np.array([5], np.int64), "e": np.array([9], np.int64), "a": np.array([1], np.int64)}
    return one_node("Slice", {"x": x}, ["y"], bounds)


def drawn_sequences(random):
    """Recurrences over sequences of different lengths."""
    op, hidden, batch, steps = str(random.choice(["LSTM", "GRU", "RNN"])), small(random, 9), small(random, 3), 7
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    dtype = random.choice([np.float32, np.float64])
    directions = small(random, 2)
    inputs = {"x": numbers(random, [steps, batch, 3], dtype) / 3}
    weights = {
        "W": numbers(random, [directions, gates * hidden, 3], dtype) / 6,
        "R": numbers(random, [directions, gates * hidden, hidden], dtype) / 6,
        "B": numbers(random, [directions, 2 * gates * hidden], dtype),
    }
    lengths = {"n": random.integers(1, steps + 1, batch).astype(np.int32)}
    model, feeds = one_node(
        op,
        {**inputs, **weights, **lengths},
        ["y", "h"],
        hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward",
    )
    if random.integers(2):  # weights that are known
        kept = [i for i in model.graph.input if i.name not in weights]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in weights.items())
        feeds = {**inputs, **lengths}
    return model, feeds


def drawn_lrn(random):
    x = numbers(random, [2, small(random, 9), 3, small(random)], random.choice(FLOATS))
    beta = float(random.choice([0.75, 1, 0.5, 2, -0.5]))
    return one_node("LRN", {"x": x}, ["y"], size=small(random, 7), beta=beta, alpha=0.3, bias=1.5)


def drawn_triangle(random):
    x = numbers(random, [small(random, 2), small(random, 9), small(random, 9)], random.choice([*FLOATS, np.int32]))
    k = np.array(random.integers(-10, 11), np.int64)
    return one_node("Trilu", {"x": x}, ["y"], {"k": k}, upper=int(random.integers(2)))


def drawn_one_hot(random):
    depth = small(random, 9)
    indices = random.integers(-depth - 2, depth + 2, [small(random), small(random)])
    values = numbers(random, [2], random.choice([*FLOATS, np.int8]))
    inputs = {"i": indices.astype(random.choice([np.int64, np.int32, np.float32])), "d": np.array([depth]), "v": values}
    model, feeds = one_node("OneHot", {"i": inputs["i"]}, ["y"], {"d": inputs["d"], "v": values}, axis=-1)
    axis = int(random.integers(-3, 3))
    model.graph.node[0].attribute[0].i = axis
    return model, feeds


def drawn_reversed(random):
    batch = int(random.integers(2))
    shape = [small(random, 5), small(random, 5), *([small(random)] * int(random.integers(2)))]
    x = numbers(random, shape, random.choice([*FLOATS, np.int8]))
    lengths = random.integers(0, shape[1 - batch] + 1, shape[batch]).astype(np.int64)
    return one_node("ReverseSequence", {"x": x, "n": lengths}, ["y"], batch_axis=batch, time_axis=1 - batch)


def drawn_matrix(random):
    n = small(random, 7)
    x = numbers(random, [small(random, 3), n, n], random.choice(FLOATS))
    if random.integers(2):
        return one_node("Det", {"x": x}, ["y"])
    return one_node("Inverse", {"x": x}, ["y"], domain="com.microsoft")


def drawn_features(random):
    columns = small(random)
    x = numbers(random, [small(random), columns], random.choice([np.float32, np.float64, np.int32, np.int64]))
    of_columns = [float(v) for v in random.standard_normal(int(random.choice([1, columns])))]
    op = random.choice(["Scaler", "Normalizer", "Binarizer", "Imputer", "ArrayFeatureExtractor"])
    attributes = {
        "Scaler": {"offset": of_columns, "scale": of_columns},
        "Normalizer": {"norm": str(random.choice(["MAX", "L1", "L2"]))},
        "Binarizer": {"threshold": of_columns[0]},
    }.get(op, {})
    inputs = {"x": x}
    if op == "Imputer" and x.dtype.kind == "f":
        x[x > 2] = np.nan
        attributes = {"imputed_value_floats": of_columns, "replaced_value_float": float("nan")}
    elif op == "Imputer":
        attributes = {"imputed_value_int64s": [int(4 * v) for v in of_columns], "replaced_value_int64": 1}
    if op == "ArrayFeatureExtractor":
        inputs["i"] = random.integers(0, columns, small(random))
    return one_node(op, inputs, ["y"], domain="ai.onnx.ml", **attributes)


def drawn_affine_grid(random):
    rank = int(random.integers(2, 4))
    theta = numbers(random, [2, rank, rank + 1], random.choice(FLOATS))
    size = np.array([2, 3, *(small(random) for _ in range(rank))], np.int64)
    return one_node("AffineGrid", {"t": theta}, ["y"], {"s": size}, align_corners=int(random.integers(2)))


def drawn_grid_sample(random):
    rank = int(random.integers(1, 4))
    x = numbers(random, [2, 3, *(small(random) for _ in range(rank))], random.choice([*FLOATS, np.int32]))
    grid = random.uniform(-2.5, 2.5, [2, *(small(random) for _ in range(rank)), rank])
    grid[random.random(grid.shape) < 0.1] = random.choice([np.nan, np.inf, -1, 1, 0, 1e30])
    return one_node(
        "GridSample",
        {"x": x, "g": grid.astype(random.choice(FLOATS))},
        ["y"],
        mode=str(random.choice(["nearest", "linear", "cubic"])),
        padding_mode=str(random.choice(["zeros", "border", "reflection"])),
        align_corners=int(random.integers(2)),
    )


def drawn_roi_align(random):
    dtype = random.choice(FLOATS)
    x = numbers(random, [2, 3, small(random, 9), small(random, 9)], dtype)
    count = small(random)
    rois = random.uniform(-3, 12, [count, 4]).astype(dtype)
    return one_node(
        "RoiAlign",
        {"x": x, "r": rois, "b": random.integers(0, 2, count)},
        ["y"],
        mode=str(random.choice(["avg", "max"])),
        output_height=small(random),
        output_width=small(random),
        sampling_ratio=int(random.integers(4)),
        spatial_scale=float(random.choice([1, 0.5])),
        coordinate_transformation_mode=str(random.choice(["half_pixel", "output_half_pixel"])),
    )


def drawn_regions(random):
    count, out = small(random), [small(random), small(random)]
    if random.integers(2):
        dtype = random.choice(FLOATS)
        x = numbers(random, [2, 3, small(random, 9), small(random, 9)], dtype)
        rois = random.uniform(-3, 12, [count, 5]).astype(dtype)
        rois[:, 0] = random.integers(0, 2, count)
        return one_node("MaxRoiPool", {"x": x, "r": rois}, ["y"], pooled_shape=out, spatial_scale=0.75)
    dtype = random.choice([np.float32, np.float16])
    x = numbers(random, [2, 3, small(random, 9), small(random, 9)], dtype)
    inputs = {
        "x": x,
        "r": random.uniform(-0.2, 1.2, [count, 4]).astype(dtype),
        "b": random.integers(0, 2, count).astype(np.int32),
    }
    return one_node(
        "CropAndResize",
        inputs,
        ["y"],
        {"s": np.array(out, np.int32)},
        domain="com.microsoft",
        mode=str(random.choice(["nearest", "bilinear"])),
        extrapolation_value=1.5,
    )


def drawn_columns(random):
    """Col2Im, whose windows leave the image on some sides."""
    rank = int(random.integers(1, 4))
    image, block = [int(random.integers(4, 9)) for _ in range(rank)], [small(random, 3) for _ in range(rank)]
    strides, dilations = [small(random, 2) for _ in range(rank)], [small(random, 2) for _ in range(rank)]
    pads = [int(random.integers(2)) for _ in range(2 * rank)]
    counts = [
        (image[d] + pads[d] + pads[rank + d] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1 for d in range(rank)
    ]
    x = numbers(random, [2, 2 * int(np.prod(block)), int(np.prod(counts))], random.choice([*FLOATS, np.int8]))
    sizes = {"i": np.array(image, np.int64), "b": np.array(block, np.int64)}
    return one_node("Col2Im", {"x": x}, ["y"], sizes, strides=strides, dilations=dilations, pads=pads)


def drawn_unpool(random):
    x = numbers(random, [2, 2, small(random, 4), small(random, 4)], random.choice(FLOATS))
    indices = random.integers(0, 4 * x.size, x.shape)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if random.integers(2):
        return one_node("MaxUnpool", {"x": x, "i": indices}, ["y"], **attributes)
    shape = np.array([*x.shape[:2], 2 * x.shape[2] + 1, 2 * x.shape[3] + 2], np.int64)
    return one_node("MaxUnpool", {"x": x, "i": indices}, ["y"], {"s": shape}, **attributes)


def drawn_deform_conv(random):
    dtype = random.choice(FLOATS)
    groups, offset_groups = small(random, 2), small(random, 2)
    x = numbers(random, [2, 4, small(random, 5) + 3, small(random, 5) + 3], dtype)
    kernel = [small(random, 3), small(random, 3)]
    weights = numbers(random, [2 * groups, 4 // groups, *kernel], dtype)
    strides, pads = [small(random, 2), small(random, 2)], [int(random.integers(2)) for _ in range(4)]
    out = [(x.shape[d + 2] + pads[d] + pads[d + 2] - kernel[d]) // strides[d] + 1 for d in range(2)]
    taps = offset_groups * kernel[0] * kernel[1]
    inputs = {"x": x, "w": weights, "o": numbers(random, [2, 2 * taps, *out], dtype)}
    inputs["b" if random.integers(2) else ""] = numbers(random, [2 * groups], dtype)
    if random.integers(2):
        inputs["m"] = numbers(random, [2, taps, *out], dtype)
    model, _ = one_node(
        "DeformConv",
        inputs,
        ["y"],
        group=groups,
        offset_group=offset_groups,
        strides=strides,
        pads=pads,
        kernel_shape=kernel,
    )
    return model, {name: value for name, value in inputs.items() if name}


def drawn_transform(random):
    inverse, onesided = int(random.integers(2)), int(random.integers(2))
    n, axis = int(random.choice([1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 64])), int(random.integers(1, 3))
    parts = 2 if inverse or (not onesided and random.integers(2)) else 1
    shape = [2, 3, 3, parts]
    shape[axis] = n // 2 + 1 if inverse and onesided else n
    x = numbers(random, shape, random.choice(FLOATS))
    x[random.random(shape) < 0.02] = random.choice([np.inf, np.nan, -np.inf, 0])
    constants = {
        "n": np.array(n + int(random.integers(-1, 2)) if n > 2 else n, np.int64),
        "a": np.array(axis, np.int64),
    }
    return one_node("DFT", {"x": x}, ["y"], constants, inverse=inverse, onesided=onesided)


def drawn_frames(random):
    n = int(random.choice([4, 5, 8, 15, 16]))
    dtype = random.choice(FLOATS)
    x = numbers(random, [2, 40, int(random.integers(1, 3))], dtype)
    onesided = int(random.integers(2)) if x.shape[2] == 1 else 0
    step = np.array(small(random, 9), np.int64)
    if random.integers(2):
        window = numbers(random, [n], dtype)
        return one_node("STFT", {"x": x}, ["y"], {"s": step, "w": window}, onesided=onesided)
    constants = {"s": step, "": np.zeros(0, dtype), "n": np.array(n, np.int64)}
    model, feeds = one_node("STFT", {"x": x}, ["y"], constants, onesided=onesided)
    del model.graph.initializer[1]
    return model, feeds


def drawn_ngrams(random):
    words, lengths = [], [0]
    for n in range(1, 4):
        grams = {tuple(int(w) for w in random.integers(0, 4, n)) for _ in range(small(random))}
        words += [word for gram in sorted(grams) for word in gram]
        lengths.append(len(words))
    count = sum((lengths[n] - lengths[n - 1]) // n for n in range(1, 4))
    shortest = small(random, 3)
    x = random.integers(-1, 6, [small(random, 3), int(random.integers(1, 30))])
    return one_node(
        "TfIdfVectorizer",
        {"x": x.astype(random.choice([np.int32, np.int64]))},
        ["y"],
        mode=str(random.choice(["TF", "IDF", "TFIDF"])),
        min_gram_length=shortest,
        max_gram_length=int(random.integers(shortest, 4)),
        max_skip_count=int(random.integers(5)),
        ngram_counts=lengths[:3],
        ngram_indexes=[int(i) for i in random.permutation(count)],
        pool_int64s=words,
        weights=[float(w) for w in random.standard_normal(count)],
    )


def drawn_optimizer(random):
    op = str(random.choice(["Adagrad", "Adam", "Momentum"]))
    parts = {"Adagrad": 3, "Adam": 4, "Momentum": 3}[op]
    dtype, tensors = random.choice([np.float32, np.float64]), small(random, 2)
    inputs = {"r": np.array(0.1, np.float32), "t": np.array(random.integers(0, 4), np.int64)}
    for part in range(parts):
        for tensor in range(tensors):
            inputs[f"p{part}_{tensor}"] = np.abs(numbers(random, [3 + tensor, 5], dtype))
    attributes = {
        "Adagrad": {"decay_factor": 0.1, "epsilon": 1e-5, "norm_coefficient": 0.2},
        "Adam": {"alpha": 0.8, "beta": 0.9, "epsilon": 1e-5, "norm_coefficient": 0.1, "norm_coefficient_post": 0.3},
        "Momentum": {"alpha": 0.8, "beta": 0.7, "mode": "nesterov", "norm_coefficient": 0.01},
    }[op]
    if op == "Momentum" and random.integers(2):
        attributes["mode"] = "standard"
    outputs = [f"y{i}" for i in range((parts - 1) * tensors)]
    return one_node(op, inputs, outputs, domain="ai.onnx.preview.training", **attributes)


def drawn_transform_filters(random):
    """Filters of a discrete Fourier transform, which kernels fold by their symmetry."""
    n, channels = int(random.choice([256, 300, 401])), small(random, 2)
    frequencies = n // 2 + 1
    angles = 2 * np.pi / n * np.outer(np.arange(frequencies), np.arange(n))
    rows = np.concatenate([np.cos(angles), np.sin(angles)])
    if random.integers(2):
        rows *= np.hanning(n + 1)[:n]
    rows = rows[random.permutation(len(rows))]
    dtype = random.choice([np.float32, np.float64])
    weights = np.repeat(rows[:, None], channels, 1).astype(dtype)
    x = numbers(random, [2, channels, n + int(random.choice([0, 40, 700]))], dtype)
    bias = {"b": numbers(random, [len(rows)], dtype)} if random.integers(2) else {}
    pads = [int(random.integers(3)), int(random.integers(3))]
    return one_node("Conv", {"x": x}, ["y"], {"w": weights, **bias}, strides=[int(random.choice([1, 16]))], pads=pads)


def drawn_linear_model(random):
    features, rows = small(random), small(random, 5)
    x = numbers(random, [small(random, 9), features], random.choice([np.float32, np.float64, np.int32, np.int64]))
    post = str(random.choice(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]))
    coefficients = [float(c) / 9 for c in random.standard_normal(rows * features)]
    attributes = {"coefficients": coefficients, "post_transform": post}
    if random.integers(2):
        attributes["intercepts"] = [float(i) / 9 for i in random.standard_normal(rows)]
    if random.integers(2):
        return one_node("LinearRegressor", {"x": x}, ["y"], domain="ai.onnx.ml", targets=rows, **attributes)
    labels = [int(i) for i in random.integers(-9, 9, 2 if rows == 1 else rows)]
    attributes.setdefault("intercepts", [0.0] * rows)
    return one_node(
        "LinearClassifier", {"x": x}, ["y", "z"], domain="ai.onnx.ml", classlabels_ints=labels, **attributes
    )


def drawn_support_vectors(random):
    features, classes = small(random), int(random.integers(2, 5))
    x = numbers(random, [small(random, 9), features], random.choice([np.float32, np.float64, np.int32]))
    kernel = str(random.choice(["LINEAR", "POLY", "RBF", "SIGMOID"]))
    attributes = {
        "kernel_type": kernel,
        "kernel_params": [0.25, 0.5, 3.0],
        "post_transform": str(random.choice(["NONE", "SOFTMAX", "LOGISTIC"])),
    }

    def floats(count):
        return [float(v) for v in random.standard_normal(count)]

    if random.integers(2):
        supports = int(random.integers(4))
        attributes |= {"n_supports": supports, "one_class": int(random.integers(2)), "rho": floats(1)}
        attributes |= {"coefficients": floats(supports or features), "support_vectors": floats(supports * features)}
        return one_node("SVMRegressor", {"x": x}, ["y"], domain="ai.onnx.ml", **attributes)
    per_class = [small(random, 3) for _ in range(classes)]
    supports, pairs = sum(per_class), classes * (classes - 1) // 2
    attributes |= {"coefficients": floats((classes - 1) * supports), "support_vectors": floats(supports * features)}
    attributes |= {
        "vectors_per_class": per_class,
        "rho": floats(pairs),
        "classlabels_ints": list(range(5, 5 + classes)),
    }
    if random.integers(2):
        attributes |= {"prob_a": floats(pairs), "prob_b": floats(pairs)}
    return one_node("SVMClassifier", {"x": x}, ["y", "z"], domain="ai.onnx.ml", **attributes)


def drawn_trees(random):
    """Trees of random shape, whose leaves have weights for some targets."""
    features, targets = small(random), small(random, 3)
    columns = {name: [] for name in ["treeids", "nodeids", "featureids", "values", "truenodeids", "falsenodeids"]}
    modes, missing, weights = [], [], {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    kinds = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]

    def node(tree, depth, number):
        """Adds a node and those below it; returns the number behind them."""
        leaf = depth == 0 or random.random() < 0.2
        at = len(modes)
        modes.append("LEAF" if leaf else str(random.choice(kinds)))
        missing.append(int(random.integers(2)))
        for name, value in zip(columns, [tree, number, int(random.integers(features)), 0.0, 0, 0], strict=True):
            columns[name].append(value)
        columns["values"][at] = float(random.choice([-2, -1, 0, 0.5, 1, 2]))
        if leaf:
            for target in range(targets):
                if random.random() < 0.7:
                    for name, value in zip(weights, [tree, number, target, random.standard_normal()], strict=True):
                        weights[name].append(float(value) if name == "weights" else value)
            return number + 1
        columns["truenodeids"][at] = number + 1
        middle = node(tree, depth - 1, number + 1)
        columns["falsenodeids"][at] = middle
        return node(tree, depth - 1, middle)

    for tree in range(small(random)):
        node(tree, int(random.integers(0, 5)), 0)
    x = random.choice([-2, -1, 0, 0.5, 1, 2, 3, 0.1], [small(random, 20), features])
    x = x.astype(random.choice([np.float32, np.float64, np.int32]))
    if x.dtype.kind == "f":
        x[random.random(x.shape) < 0.1] = np.nan
    classifies = bool(random.integers(2)) and targets > 1
    prefix = "class" if classifies else "target"
    attributes = {f"nodes_{name}": value for name, value in columns.items()}
    attributes |= {f"{prefix}_{name}": value for name, value in weights.items()}
    attributes |= {"nodes_modes": modes, "nodes_missing_value_tracks_true": missing}
    attributes["post_transform"] = str(random.choice(["NONE", "SOFTMAX", "LOGISTIC"]))
    if random.integers(2):
        attributes["base_values"] = [float(v) for v in random.standard_normal(targets)]
    attributes = {name: value for name, value in attributes.items() if value != []}
    if classifies:
        attributes["classlabels_int64s"] = list(range(3, 3 + targets))
        return one_node("TreeEnsembleClassifier", {"x": x}, ["y", "z"], domain="ai.onnx.ml", ml=3, **attributes)
    attributes |= {"n_targets": targets, "aggregate_function": str(random.choice(["SUM", "AVERAGE", "MIN", "MAX"]))}
    return one_node("TreeEnsembleRegressor", {"x": x}, ["y"], domain="ai.onnx.ml", ml=3, **attributes)


def drawn_labels(random):
    keys = random.choice([-1.5, -1, -0.0, 0, 2, 3, 7, 8], small(random, 6))
    x = random.choice([-1.5, -1, -0.0, 0, 2, 3, 7, 8, 9], [small(random), small(random)])
    if random.integers(3) == 0:
        attributes = {"cats_int64s": [int(k) for k in keys], "zeros": 1}
        x = x.astype(random.choice([np.float32, np.float64, np.int32, np.int64]))
        return one_node("OneHotEncoder", {"x": x}, ["y"], domain="ai.onnx.ml", **attributes)
    if random.integers(3) == 0:
        inputs = {"x": x.astype(np.float64), "w": numbers(random, [x.shape[0], small(random)], np.float64)}
        dims = [small(random), small(random)]
        return one_node("FeatureVectorizer", inputs, ["y"], domain="ai.onnx.ml", inputdimensions=dims)
    dtype = random.choice([np.float32, np.float64, np.int64, np.int32, np.int16])
    if dtype in (np.float32, np.float64):
        keys[-1] = x[0, 0] = np.nan
    values = numbers(random, [len(keys) + 1], random.choice([np.float32, np.float64, np.int64, np.int32, np.int16]))
    attributes = {
        "keys_tensor": numpy_helper.from_array(keys.astype(dtype)),
        "values_tensor": numpy_helper.from_array(values[1:]),
        "default_tensor": numpy_helper.from_array(values[:1]),
    }
    return one_node("LabelEncoder", {"x": x.astype(dtype)}, ["y"], domain="ai.onnx.ml", ml=4, **attributes)


def drawn_random_numbers(random):
    kinds = ["RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli"]
    kinds += ["Multinomial", "Dropout"]
    op = str(random.choice(kinds))
    shape, seed = [small(random), 37], float(random.choice([0, 1.5, -3]))
    dtype = random.choice(FLOATS)
    dtypes = {np.float32: 1, np.float16: 10, np.float64: 11}
    low, high = float(random.choice([0, -2, 1])), float(random.choice([1, 3, 1.5]))
    if op in ("RandomUniform", "RandomNormal"):
        limits = {"low": low, "high": high} if op == "RandomUniform" else {"mean": low, "scale": high}
        return one_node(op, {}, ["y"], seed=seed, dtype=dtypes[dtype], shape=shape, **limits)
    x = random.random(shape).astype(dtype)
    if op == "RandomUniformLike":
        return one_node(op, {"x": x}, ["y"], seed=seed, low=low, high=high)
    if op == "RandomNormalLike":
        return one_node(op, {"x": x}, ["y"], seed=seed, mean=low, scale=high)
    if op == "Multinomial":
        return one_node(
            op, {"x": 9 * x}, ["y"], seed=seed, sample_size=small(random, 9), dtype=int(random.choice([6, 7]))
        )
    if op == "Bernoulli":
        return one_node(op, {"x": x}, ["y"], seed=seed, dtype=int(random.choice([1, 6, 9, 10])))
    ratio = {"r": np.array(random.choice([0, 0.25, 0.75]), np.float32)}
    inputs = {"x": x}
    (inputs if random.integers(2) else ratio)["t"] = np.array(bool(random.integers(2)))
    if "t" in inputs:
        inputs = {"x": x, "r": ratio.pop("r"), "t": inputs["t"]}
    return one_node(op, inputs, ["y", "m"], ratio, seed=int(seed))


DRAWN = [
    drawn_log_sum_exp,
    drawn_nothing,
    drawn_lp_pool,
    drawn_power,
    drawn_many,
    drawn_empty_parts,
    drawn_sequences,
    drawn_lrn,
    drawn_triangle,
    drawn_one_hot,
    drawn_reversed,
    drawn_matrix,
    drawn_features,
    drawn_affine_grid,
    drawn_grid_sample,
    drawn_roi_align,
    drawn_regions,
    drawn_columns,
    drawn_unpool,
    drawn_deform_conv,
    drawn_transform,
    drawn_frames,
    drawn_ngrams,
    drawn_optimizer,
    drawn_transform_filters,
    drawn_linear_model,
    drawn_support_vectors,
    drawn_trees,
    drawn_labels,
    drawn_random_numbers,
]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("draw", "seed"), list(itertools.product(DRAWN, range(3))))
def test_bits_are_the_engines(tmp_path, draw, seed, processor):
    if not usable(PROCESSORS[processor][0]):
        pytest.skip("the processor has no fused multiply-add")
    model, feeds = draw(np.random.default_rng(seed))
    assert run_both(tmp_path, model, feeds, processor) == ""

"""optimized_model_filepath: folded and fused as by onnxruntime's basic level, standard ONNX, and the same results."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import treadle
from onnx import numpy_helper

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def whole(*numbers):
    return np.array(numbers, np.int64)


def norm(channels):
    return {"s": floats(channels), "b": floats(channels), "m": floats(channels), "v": np.abs(floats(channels))}


IMAGE = "g (float[1,4,8,8] x) => (float[1,6,6,6] y)"
ROWS = "g (float[2,3] x) => (float[2,4] y)"
SAME = "g (float[2,3] x) => (float[2,3] y)"
W = {"w": floats(6, 4, 3, 3)}
M = {"w": floats(3, 4)}
FILTERS = {"w": floats(4, 3, 3, 3), **norm(6)}
CUBE = "g (float[2,3,4] x) => (float[2,3,4] y)"
TURNED = "a = Transpose <perm = [0,2,1]> (x)"
BACK = "y = Transpose <perm = [0,2,1]> (r)"
OPEN = "g (float[N,M,12] x)"
SIZES = "s = Shape (x)  n = Gather (s, i0)  m = Gather (s, i1)  un = Unsqueeze (n, z)  um = Unsqueeze (m, z)"
PLACES = {"i0": np.int64(0), "i1": np.int64(1), "z": whole(0)}
POOL = "AveragePool <kernel_shape = [2,2], strides = [2,2]>"
ROWS_OF_IMAGE = "g (float[1,4,8,8] x) => (float[1,4,5,5] y)"
AROUND = {"p": whole(0, 0, 1, 1, 0, 0, 1, 1)}
LABELS = 'a = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2], default_int64 = 0> (x)'
CHOICE = "g (bool[2,3] c, float[2,3] x, float[2,3] z) => (float[2,3] y"


def layer_norm(axes="axes = [-1]", square="Pow (d, two)", before="", tail="", given=""):
    return (
        f"m = ReduceMean <{axes}> (x{given})  d = Sub (x, m)  {before}  p = {square}"
        f"  v = ReduceMean <{axes}> (p{given})  e = Add (v, eps)"
        f"  s = Sqrt (e)  q = Div (d, s)  a = Mul (q, w)  y = Add (a, b) {tail}"
    )


def gelu(product):
    return f"{SAME} {{ d = Div (x, root)  e = Erf (d)  a = Add (e, one)  {product} }}"


def blocks(order):
    parts = " ".join(f"a{i} = Slice (x, s{i}, e, axes, steps)" for i in range(4))
    joined = ", ".join(f"a{i}" for i in order)
    return f"g (float[N,4,8,8] x) => (float[N,16,4,4] y) {{ {parts} y = Concat <axis = 1> ({joined}) }}"


NORM_OF_ROWS = {"two": np.float32(2), "eps": np.float32(1e-5), "w": floats(3), "b": floats(3)}
ERF = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
BLOCKS = {
    **{f"s{i}": whole(i // 2, i % 2) for i in range(4)}, "e": whole(2**31, 2**31), "axes": whole(2, 3), "steps": whole(2, 2),
}  # fmt: skip
PIXELS = "g (float[2,5,3] x) => (float[2,5,3] y)"
# By name: the graph, its constants, and the operators that are left.
FUSED = {
    "constants": (f"{SAME} {{ c = Add (a, b) y = Mul (x, c) }}", {"a": floats(3), "b": floats(3)}, "Mul"),
    "identities": (f"{SAME} {{ a = Identity (x) b = Relu (a) y = Identity (b) }}", {}, "Relu"),
    "dropout": (f"{SAME} {{ a = Dropout (x) y = Relu (a) }}", {}, "Relu"),
    "same_cast": (f"{SAME} {{ a = Cast <to = 1> (x) y = Relu (a) }}", {}, "Relu"),
    "casts": (f"{SAME} {{ a = Cast <to = 11> (x) b = Cast <to = 1> (a) y = Relu (b) }}", {}, "Relu"),
    "unsqueezed": (f"{SAME} {{ a = Unsqueeze (w, i) y = Add (x, a) }}", {"w": floats(3), "i": whole(0)}, "Add"),
    "shape": (f"{SAME} {{ s = Shape (x) c = ConstantOfShape (s) y = Add (x, c) }}", {}, "Add"),
    "size": (f"{SAME} {{ s = Shape (x) g = Gather (s, i) c = Cast <to = 1> (g) y = Div (x, c) }}", {"i": np.int64(1)}, "Div"),
    "twice": (f"{SAME} {{ a = Sin (x) b = Sin (x) y = Add (a, b) }}", {}, "Sin Add"),
    "decided": (
        f"{SAME} {{ c = Constant <value = bool {{1}}> () y = If (c) <then_branch = t () => (float[2,3] a) {{ a = Sin (x) }},"
        " else_branch = e () => (float[2,3] b) { b = Cos (x) }> }", {}, "Sin",
    ),
    "matmul_add": (f"{ROWS} {{ a = MatMul (x, w) y = Add (a, b) }}", {**M, "b": floats(4)}, "Gemm"),
    "add_matmul": (f"{ROWS} {{ a = MatMul (x, w) y = Add (b, a) }}", {**M, "b": floats(2, 4)}, "Gemm"),
    "open_rows": ("g (float[N,3] x) => (float[N,4] y) { a = MatMul (x, w) y = Add (a, b) }", {**M, "b": floats(4)}, "Gemm"),
    "matmul_norm": (f"{ROWS} {{ a = MatMul (x, w) y = BatchNormalization (a, s, b, m, v) }}", {**M, **norm(4)}, "Gemm"),
    "gemm_transpose": ("g (float[3,2] x) => (float[2,4] y) { t = Transpose (x) y = Gemm (t, w) }", M, "Gemm"),
    "conv_norm": (f"{IMAGE} {{ a = Conv (x, w) y = BatchNormalization (a, s, b, m, v) }}", {**W, **norm(6)}, "Conv"),
    "conv_add": (f"{IMAGE} {{ a = Conv (x, w) y = Add (a, b) }}", {**W, "b": floats(1, 6, 1, 1)}, "Conv"),
    "conv_mul": (f"{IMAGE} {{ a = Conv (x, w, c) y = Mul (a, b) }}", {**W, "c": floats(6), "b": floats(6, 1, 1)}, "Conv"),
    "conv_scaled": (f"{IMAGE} {{ a = Conv (x, w) y = Mul (a, b) }}", {**W, "b": np.float32(3)}, "Conv"),
    "transposed_norm": (
        "g (float[1,4,5,5] x) => (float[1,6,7,7] y) { a = ConvTranspose <group = 2> (x, w)"
        " y = BatchNormalization (a, s, b, m, v) }", FILTERS, "ConvTranspose",
    ),
    "padded": (
        "g (float[1,4,8,8] x) => (float[1,6,9,8] y) { a = Pad (x, p) y = Conv <pads = [1,0,0,1]> (a, w) }",
        {**W, "p": whole(0, 0, 1, 0, 0, 0, 1, 1)}, "Conv",
    ),
    "padded_average": (f"{ROWS_OF_IMAGE} {{ a = Pad (x, p) y = {POOL} (a) }}", AROUND, "AveragePool"),
    "column_added": (f"{ROWS} {{ a = MatMul (x, w) y = Add (a, b) }}", {**M, "b": floats(2, 1)}, "Gemm"),
    "rows_of_three_axes": (
        "g (float[2,5,3] x) => (float[2,5,4] y) { a = MatMul (x, w) y = Add (a, b) }", {**M, "b": floats(4)},
        "Reshape Gemm Reshape",
    ),
    "rows_of_four_axes": (
        "g (float[2,2,5,3] x) => (float[2,2,5,4] y) { a = MatMul (x, w) y = Add (b, a) }", {**M, "b": floats(4)},
        "Reshape Gemm Reshape",
    ),
    "row_of_one_axis": (
        "g (float[3] x) => (float[4] y) { a = MatMul (x, w) y = Add (a, b) }", {**M, "b": floats(4)}, "Reshape Gemm Reshape",
    ),
    "gemm_sum": ("g (float[2,3] x, float[2,4] z) => (float[2,4] y) { a = Gemm (x, w) y = Sum (a, z) }", M, "Gemm"),
    "sum_gemm": (f"{ROWS} {{ a = Gemm <alpha = 0.5, beta = 3.0> (x, w) y = Sum (b, a) }}", {**M, "b": floats(4)}, "Gemm"),
    "gemm_turned": ("g (float[2,3] x) => (float[4,2] y) { a = Gemm (x, w) y = Transpose (a) }", M, "Gemm"),
    "gemm_turned_twice": (
        "g (float[3,2] x) => (float[4,2] y) { a = Gemm <transA = 1> (x, w) y = Transpose (a) }", M, "Gemm",
    ),
    "matmul_reshape_norm": (
        "g (float[2,3] x) => (float[2,4,1] y) { a = MatMul (x, w) r = Reshape (a, k) y = BatchNormalization (r, s, b, m, v) }",
        {**M, **norm(4), "k": whole(2, 4, 1)}, "Gemm Reshape",
    ),
    "matmul_transpose_norm": (
        "g (float[10,3] x) => (float[2,4,5] y) { a = MatMul (x, w) r = Reshape (a, k) t = Transpose <perm = [0,2,1]> (r)"
        " y = BatchNormalization (t, s, b, m, v) }", {**M, **norm(4), "k": whole(2, 5, 4)}, "Gemm Reshape Transpose",
    ),
    "wide_cast": (f"{SAME} {{ a = Cast <to = 11> (x) b = Cast <to = 10> (a) c = Cast <to = 1> (b) y = Relu (c) }}", {},
                  "Cast Cast Relu"),
    "cast_of_integers": ("g (int32[2,3] x) => (float[2,3] y) { a = Cast <to = 7> (x) y = Cast <to = 1> (a) }", {}, "Cast"),
    "cast_of_bools": ("g (bool[2,3] x) => (float[2,3] y) { a = Cast <to = 7> (x) y = Cast <to = 1> (a) }", {}, "Cast"),
    "cast_of_halves": ("g (float16[2,3] x) => (double[2,3] y) { a = Cast <to = 1> (x) y = Cast <to = 11> (a) }", {}, "Cast"),
    "shape_of_cast": ("g (float[N,3] x) => (int64[2] y) { a = Cast <to = 7> (x) y = Shape (a) }", {}, "Shape"),
    "reciprocal": ("g (float[2,3] x, float[2,3] z) => (float[2,3] y) { a = Div (one, x) y = Mul (a, z) }",
                   {"one": np.float32(1)}, "Div"),
    "times_reciprocal": ("g (float[2,3] x, float[3] z) => (float[2,3] y) { a = Div (one, x) y = Mul (z, a) }",
                         {"one": np.ones((1, 1), np.float32)}, "Div"),
    "relu_clip": (f"{SAME} {{ a = Relu (x) y = Clip (a, lo, hi) }}", {"lo": np.float32(-1), "hi": np.float32(1)}, "Clip"),
    "relu_clip_above": (f"{SAME} {{ a = Relu (x) y = Clip (a, lo) }}", {"lo": np.float32(0.5)}, "Clip"),
    "relu_clip_below": (f"{SAME} {{ a = Relu (x) y = Clip (a, , hi) }}", {"hi": np.float32(1)}, "Clip"),
    "relu_clip_open": (f"{SAME} {{ a = Relu (x) y = Clip (a) }}", {}, "Clip"),
    "relu_clip_halves": ("g (float16[2,3] x) => (float16[2,3] y) { a = Relu (x) y = Clip (a, lo) }",
                         {"lo": np.float16(-1)}, "Clip"),
    "relu_clip_attributes": (f"{SAME} {{ a = Relu (x) y = Clip <min = -1.0, max = 1.0> (a) }}", {}, "Clip", 10),
    "not_where": (f"{CHOICE}) {{ n = Not (c) y = Where (n, x, z) }}", {}, "Where"),
    "not_wheres": (f"{CHOICE}, float[2,3] u) {{ n = Not (c) y = Where (n, x, z) u = Where (n, z, x) }}", {}, "Where Where"),
    "labels": (f"g (string[N] x) => (int64[N] y) {{ {LABELS}"
               " y = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_int64s = [5, 6], default_int64 = 9> (a) }",
               {}, "LabelEncoder"),
    "labels_of_texts": (f"g (string[N] x) => (string[N] y) {{ {LABELS}"
                        " y = ai.onnx.ml.LabelEncoder <keys_int64s = [2, 0], values_strings = [\"p\", \"q\"]> (a) }",
                        {}, "LabelEncoder"),
    "sizes_of_two_shapes": (
        f"{OPEN} => (float[N,M,3,4] y) {{ {SIZES} c = Concat <axis = 0> (un, um, k) y = Reshape (x, c) }}",
        {**PLACES, "k": whole(3, 4)}, "Reshape",
    ),
    "sizes_left_open": (f"{OPEN} => (float[N,M,K] y) {{ {SIZES} c = Concat <axis = 0> (un, um, k) y = Reshape (x, c) }}",
                        {**PLACES, "k": whole(-1)}, "Reshape"),
    "sizes_of_another": (
        "g (float[N,12] x, float[N,3] t) => (float[N,3,4] y) { s = Shape (t) n = Gather (s, i0) u = Unsqueeze (n, z)"
        " c = Concat <axis = 0> (u, k) y = Reshape (x, c) }", {**PLACES, "k": whole(3, 4)}, "Reshape",
    ),
    "sizes_sliced": (
        "g (float[N,12] x) => (float[N,3,4] y) { s = Shape (x) n = Slice (s, z, o) c = Concat <axis = 0> (n, k)"
        " y = Reshape (x, c) }", {"z": whole(0), "o": whole(1), "k": whole(3, 4)}, "Reshape",
    ),
    "reshapes": ("g (float[2,12] x) => (float[4,6] y) { a = Reshape (x, s) b = Unsqueeze (a, z) c = Squeeze (b, z)"
                 " y = Reshape (c, t) }", {"s": whole(2, 3, 4), "t": whole(4, 6), "z": whole(0)}, "Reshape"),
    "layer_norm": (f"{PIXELS} {{ {layer_norm()} }}", NORM_OF_ROWS, "LayerNormalization"),
    "layer_norm_of_open_sizes": (f"g (float[N,M,3] x) => (float[N,M,3] y) {{ {layer_norm()} }}", NORM_OF_ROWS,
                                 "LayerNormalization"),
    "layer_norm_by_inputs": (
        f"g (float[2,3] x, float[3] w, float[3] b) => (float[2,3] y) {{ {layer_norm('axes = [1], keepdims = 1')} }}",
        {"two": np.float32(2), "eps": np.float32(0.1)}, "LayerNormalization",
    ),
    "layer_norm_of_two_differences": (f"{PIXELS} {{ {layer_norm(square='Pow (f, two)', before='f = Sub (x, m)')} }}",
                                      NORM_OF_ROWS, "LayerNormalization"),
    "layer_norm_18": (f"{PIXELS} {{ {layer_norm('keepdims = 1', given=', ax')} }}", {**NORM_OF_ROWS, "ax": whole(-1)},
                      "LayerNormalization", 18),
    "gelu": (gelu("p = Mul (x, a)  y = Mul (p, half)"), ERF, "Gelu", 20),
    "gelu_of_half": (gelu("p = Mul (half, x)  y = Mul (p, a)"), ERF, "Gelu", 20),
    "hard_swish": (f"{SAME} {{ y = HardSwish (x) }}", {}, "HardSigmoid Mul"),
    "mish": (f"{SAME} {{ y = Mish (x) }}", {}, "Softplus Tanh Mul", 18),
    "blocks": (blocks([0, 1, 2, 3]), BLOCKS, "SpaceToDepth"),
    "blocks_in_another_order": (blocks([0, 2, 1, 3]), BLOCKS, "SpaceToDepth Gather"),
    "transposes": (f"{CUBE} {{ {TURNED} r = Relu (a) {BACK} }}", {}, "Relu"),
    "transposes_of_two": (
        "g (float[2,3,4] x, float[2,3,4] z) => (float[2,3,4] y) { a = Transpose <perm = [0,2,1]> (x)"
        " b = Transpose <perm = [0,2,1]> (z) r = Add (a, b) y = Transpose <perm = [0,2,1]> (r) }", {}, "Add",
    ),
    "transposed_constant": (f"{CUBE} {{ {TURNED} r = Add (a, b) {BACK} }}", {"b": floats(3)}, "Add"),
    "transposed_softmax": (f"{CUBE} {{ {TURNED} r = Softmax <axis = 1> (a) {BACK} }}", {}, "Softmax"),
    "transposed_slice": (f"g (float[2,3,4] x) => (float[2,3,2] y) {{ {TURNED} r = Slice (a, s, e, ax) {BACK} }}",
                         {"s": whole(1), "e": whole(3), "ax": whole(1)}, "Slice"),
    "transposed_pad": (f"g (float[2,3,4] x) => (float[2,3,7] y) {{ {TURNED} r = Pad (a, p) {BACK} }}",
                       {"p": whole(0, 1, 0, 0, 2, 0)}, "Pad"),
    "transposed_mean": (f"g (float[2,3,4] x) => (float[2,3] y) {{ {TURNED} b = ReduceMean <axes = [1], keepdims = 0> (a)"
                        " y = Relu (b) }", {}, "ReduceMean Relu"),
    "transposed_argmax": (f"g (float[2,3,4] x) => (int64[2,3] y) {{ {TURNED} y = ArgMax <axis = 1, keepdims = 0> (a) }}",
                          {}, "ArgMax"),
    "transposed_pick": ("g (float[2,3,4] x) => (float[2,3] y) { a = Transpose <perm = [2,0,1]> (x) y = Gather (a, i) }",
                        {"i": np.int64(1)}, "Gather"),
    "transposed_split": (
        f"g (float[2,3,4] x) => (float[2,3,2] y, float[2,3,2] z) {{ {TURNED} r, q = Split <axis = 1> (a) {BACK}"
        " z = Transpose <perm = [0,2,1]> (q) }", {}, "Split",
    ),
    "transposed_concat": (
        "g (float[2,3,4] x, float[2,3,4] z) => (float[2,6,4] y) { a = Transpose <perm = [0,2,1]> (x)"
        " b = Transpose <perm = [0,2,1]> (z) r = Concat <axis = 2> (a, b) y = Transpose <perm = [0,2,1]> (r) }", {}, "Concat",
    ),
    "transposed_beside": (f"g (float[2,3,4] x) => (float[2,3,4] y, float[2,12] z) {{ {TURNED} r = Relu (a) {BACK}"
                          " z = Flatten (r) }", {}, "Relu Transpose Flatten"),
    "transposed_choice": (
        "g (bool[2,4,3] c, float[2,3,4] x, float[2,3,4] z) => (float[2,3,4] y) { a = Transpose <perm = [0,2,1]> (x)"
        " b = Transpose <perm = [0,2,1]> (z) r = Where (c, a, b) y = Transpose <perm = [0,2,1]> (r) }", {},
        "Transpose Where",
    ),
    "permuted_twice": ("g (float[2,3,4] x) => (float[4,2,3] y) { a = Transpose <perm = [0,2,1]> (x)"
                       " y = Transpose <perm = [1,0,2]> (a) }", {}, "Transpose"),
}  # fmt: skip
# Models that onnxruntime leaves as they are.
ALSO = {
    "whole_slice": ("g (float[N,3] x) => (float[N,3] y) { a = Slice (x, s, e, ax, st) y = Relu (a) }",
                    {"s": whole(0), "e": whole(2**63 - 1), "ax": whole(0), "st": whole(1)}, "Relu"),
}  # fmt: skip
# Nodes that must not be fused: numbers that are not one per channel, results with other readers, sizes that would grow.
KEPT = {
    "rows_added": (f"{IMAGE} {{ a = Conv (x, w) y = Add (a, b) }}", {**W, "b": floats(6, 1)}, "Conv Add"),
    "read_twice": (
        f"{IMAGE} {{ a = Conv (x, w) c = Mul (a, b) y = Add (c, a) }}", {**W, "b": floats(6, 1, 1)}, "Conv Mul Add"
    ),
    "other_padding": (
        "g (float[1,4,8,8] x) => (float[1,6,8,8] y) { a = Pad (x, p, one) y = Conv (a, w) }",
        {**W, "p": whole(0, 0, 1, 1, 0, 0, 1, 1), "one": np.float32(1)}, "Pad Conv",
    ),
    "wide_addend": ("g (float[1,3] x) => (float[2,4] y) { a = MatMul (x, w) y = Add (a, b) }", {**M, "b": floats(2, 4)},
                    "MatMul Add"),
    "mask_is_read": (f"{SAME} {{ a, k = Dropout (x) c = Cast <to = 1> (k) y = Add (a, c) }}", {}, "Dropout Cast Add"),
    "narrow_cast": (f"{SAME} {{ a = Cast <to = 10> (x) b = Cast <to = 1> (a) y = Relu (b) }}", {}, "Cast Cast Relu"),
    "rounded_twice": ("g (double[2,3] x) => (float16[2,3] y) { a = Cast <to = 1> (x) y = Cast <to = 10> (a) }", {}, "Cast Cast"),
    "scalar_addend": (f"{ROWS} {{ a = MatMul (x, w) y = Add (a, b) }}", {**M, "b": np.float32(2)}, "MatMul Add"),
    "rows_of_open_sizes": ("g (float[N,5,3] x) => (float[N,5,4] y) { a = MatMul (x, w) y = Add (a, b) }",
                           {**M, "b": floats(4)}, "MatMul Add"),
    "attention": (
        "g (float[1,8,3] x) => (float[1,8,3] y) { t = Sin (x) i = Add (t, x) h = LayerNormalization (i, b, b) q0 = MatMul (h, w)"
        " q = Add (q0, b) k0 = MatMul (h, u) k = Add (k0, b) v0 = MatMul (h, n) v = Add (v0, b) s = Add (q, k) m = Mul (s, v)"
        " o0 = MatMul (m, w) o = Add (o0, b) y = Add (o, h) }",
        {"w": floats(3, 3), "u": floats(3, 3), "n": floats(3, 3), "b": floats(3)},
        "Sin Add LayerNormalization MatMul Add MatMul Add MatMul Add Add Mul MatMul Add Add",
    ),
    "gemm_with_addend": ("g (float[2,3] x) => (float[4,2] y) { a = Gemm (x, w, b) y = Transpose (a) }", {**M, "b": floats(4)},
                         "Gemm Transpose"),
    "other_channels": (
        "g (float[2,3] x) => (float[4,2,1] y) { a = MatMul (x, w) r = Reshape (a, k) y = BatchNormalization (r, s, b, m, v) }",
        {**M, **norm(2), "k": whole(4, 2, 1)}, "MatMul Reshape BatchNormalization",
    ),
    "reciprocal_of_integers": (
        "g (int64[2,3] x, int64[2,3] z) => (int64[2,3] y) { a = Div (one, x) y = Mul (a, z) }", {"one": np.int64(1)}, "Div Mul",
    ),
    "reciprocal_of_more_axes": (
        "g (float[2,3] x, float[2,3] z) => (float[1,2,3] y) { a = Div (one, x) y = Mul (a, z) }",
        {"one": np.ones((1, 1, 1), np.float32)}, "Div Mul",
    ),
    "relu_is_read": ("g (float[2,3] x) => (float[2,3] y, float[2,3] z) { a = Relu (x) y = Clip (a, lo) z = Sin (a) }",
                     {"lo": np.float32(-1)}, "Relu Clip Sin"),
    "bound_from_outside": ("g (float[2,3] x, float lo) => (float[2,3] y) { a = Relu (x) y = Clip (a, lo) }", {}, "Relu Clip"),
    "not_is_read": (f"{CHOICE}, bool[2,3] u) {{ n = Not (c) y = Where (n, x, z) u = And (n, c) }}", {}, "Not Where And"),
    "pool_with_padding": (
        "g (float[1,4,8,8] x) => (float[1,4,6,6] y) { a = Pad (x, p)"
        " y = AveragePool <kernel_shape = [2,2], strides = [2,2], pads = [1,1,1,1]> (a) }", AROUND, "Pad AveragePool",
    ),
    "pool_beyond_padding": (
        "g (float[1,4,8,8] x) => (float[1,4,5,5] y) { a = Pad (x, p)"
        " y = AveragePool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1> (a) }",
        {"p": whole(0, 0, 1, 1, 0, 0, 0, 0)}, "Pad AveragePool",
    ),
    "largest_of_padded": (f"{ROWS_OF_IMAGE} {{ a = Pad (x, p) y = MaxPool <kernel_shape = [2,2], strides = [2,2]> (a) }}",
                          AROUND, "Pad MaxPool"),
    "sizes_of_no_entries": (  # -1 beside a copied size means nothing where the latter is 0
        f"{OPEN} => (float[N,K] y) {{ {SIZES} e = Mul (um, k) c = Concat <axis = 0> (un, e) y = Reshape (x, c) }}",
        {**PLACES, "k": whole(12)}, "Shape Gather Gather Unsqueeze Unsqueeze Mul Concat Reshape",
    ),
    "sizes_exchanged": (f"{OPEN} => (float[M,N,12] y) {{ {SIZES} c = Concat <axis = 0> (um, un, k) y = Reshape (x, c) }}",
                        {**PLACES, "k": whole(12)}, "Shape Gather Gather Unsqueeze Unsqueeze Concat Reshape"),
    "layer_norm_of_cubes": (f"{PIXELS} {{ {layer_norm()} }}", {**NORM_OF_ROWS, "two": np.float32(3)},
                            "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add"),
    "layer_norm_of_planes": (f"{PIXELS} {{ {layer_norm('axes = [1,2]')} }}", {**NORM_OF_ROWS, "w": floats(5, 3)},
                             "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add"),
    "layer_norm_is_read": (f"{PIXELS[:-1]}, float[2,5,3] z) {{ {layer_norm(tail='z = Sin (a)')} }}", NORM_OF_ROWS,
                           "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add Sin"),
    "layer_norm_16": (f"{PIXELS} {{ {layer_norm()} }}", NORM_OF_ROWS, "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add", 16),
    "gelu_17": (gelu("p = Mul (x, a)  y = Mul (p, half)"), ERF, "Div Erf Add Mul Mul"),
    "labels_of_floats": (f"g (string[N] x) => (float[N] y) {{ {LABELS}"
                         " y = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_floats = [5.0, 6.0]> (a) }", {},
                         "LabelEncoder LabelEncoder"),
    "one_transpose": (f"g (float[2,3,4] x) => (float[2,4,3] y) {{ {TURNED} r = Add (a, b) y = Sin (r) }}", {"b": floats(3)},
                      "Transpose Add Sin"),
}  # fmt: skip


def model_of(graph, constants, opset=17):
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : 4]> {graph}')
    for name, value in constants.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return made.SerializeToString()


def written(data, path, module=treadle, level="ORT_ENABLE_BASIC"):
    options = module.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = getattr(module.GraphOptimizationLevel, level)
    session = module.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    made = onnx.load(path)
    onnx.checker.check_model(made, full_check=True)
    return session, made


def feed_of(arg):
    numbers = RNG.standard_normal([d if isinstance(d, int) else 3 for d in arg.shape])
    if arg.type == "tensor(string)":
        return np.where(numbers > 0, "a", "b").astype(object)
    if arg.type in ("tensor(int32)", "tensor(int64)"):
        numbers = np.where(numbers > 0, 1, -2)
    kinds = {"float": np.float32, "float16": np.float16, "double": np.float64, "bool": np.bool_}
    kinds |= {"int32": np.int32, "int64": np.int64}
    return (numbers > 0 if arg.type == "tensor(bool)" else numbers).astype(kinds[arg.type[7:-1]])


def feeds_of(session):
    return {a.name: feed_of(a) for a in session.get_inputs()}


def signature(session):
    return [[(a.name, a.type, a.shape) for a in args] for args in (session.get_inputs(), session.get_outputs())]


def compare(data, path, feeds, session):
    """The written model and the given one, in onnxruntime and in treadle."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # some rewrites are wrong
    expected = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    for module, how in ((onnxruntime, options), (treadle, None)):
        again = module.InferenceSession(str(path), how, providers=["CPUExecutionProvider"])
        for got, want in zip(again.run(None, feeds), expected, strict=True):
            if got.dtype == object:
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert signature(again) == signature(session)


@pytest.mark.parametrize("name", [*FUSED, *ALSO, *KEPT])
def test_patterns(name, tmp_path):
    graph, constants, left, *opset = (FUSED | ALSO | KEPT)[name]
    data = model_of(graph, constants, *opset)
    session, made = written(data, tmp_path / "ours.onnx")
    assert " ".join(node.op_type for node in made.graph.node) == left
    compare(data, tmp_path / "ours.onnx", feeds_of(session), session)
    if name in FUSED:
        _, theirs = written(data, tmp_path / "theirs.onnx", onnxruntime)
        assert [node.op_type for node in theirs.graph.node] == [node.op_type for node in made.graph.node]


def test_no_rewrites_where_none_are_wanted(tmp_path):
    graph, constants, _ = FUSED["matmul_add"]
    _, made = written(model_of(graph, constants), tmp_path / "m.onnx", level="ORT_DISABLE_ALL")
    assert [node.op_type for node in made.graph.node] == ["MatMul", "Add"]


def test_results_that_are_inputs_constants_or_one_value_keep_their_names(tmp_path):
    graph = "g (float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] c, float[3] d) {"
    graph += " a = Identity (x) t = Sin (x) b = Identity (t) c = Identity (t) d = Add (k, k) }"
    data = model_of(graph, {"k": floats(3)})
    session, _ = written(data, tmp_path / "m.onnx")
    compare(data, tmp_path / "m.onnx", feeds_of(session), session)


def test_bodies_have_results_of_their_own(tmp_path):
    """Nodes that a body loses, states that it passes on unchanged, and results without readers."""
    graph = """g (float[4,3] x, float[3] h) => (float[4,3] y) {
      s, k, y, u = Scan (h, h, x) <num_scan_inputs = 1, body = b (float[3] s, float[3] k, float[3] e) =>
        (float[3] s2, float[3] k2, float[3] o, float[3] u2) {
          k2 = Identity (k)  a = Add (s, e)  s2 = Identity (a)  o = Mul (a, k)  u2 = Sin (e) }>
    }"""
    data = model_of(graph, {})
    session, made = written(data, tmp_path / "m.onnx")
    assert [node.op_type for node in made.graph.node] == ["Scan"]
    compare(data, tmp_path / "m.onnx", feeds_of(session), session)


@pytest.mark.parametrize("axes", [[256], [1]])
def test_bytes_stay_bytes_by_standard_operators(axes, tmp_path):
    """Weights of an LSTM that are dequantised, which sessions keep as bytes."""
    graph = """g (float[5,1,64] x) => (float[5,1,1,64] y) {
      wf = DequantizeLinear <axis = 1> (w, s, z)  y, h, c = LSTM <hidden_size = 64> (x, wf, r) }"""
    count = axes[0]
    scale = np.abs(floats(count)) * 0.01 if count > 1 else np.float32(0.01)
    zero = np.zeros(count, np.int8) if count > 1 else np.int8(0)
    w = RNG.integers(-99, 99, (1, 256, 64)).astype(np.int8)
    data = model_of(graph, {"w": w, "s": scale, "z": zero, "r": floats(1, 256, 64) * 0.1})
    session, made = written(data, tmp_path / "m.onnx")
    assert {node.domain for node in made.graph.node} <= {"", "ai.onnx"}
    compare(data, tmp_path / "m.onnx", feeds_of(session), session)


QDQ = {"s": np.float32(0.02), "z": np.uint8(120), "w": RNG.integers(0, 255, (3, 4)).astype(np.uint8), "c": floats(4)}
FILTER_BYTES = {"w": RNG.integers(0, 255, (6, 4, 3, 3)).astype(np.uint8), "c": floats(6)}


@pytest.mark.parametrize(
    ("signature_text", "product", "constants"),
    [
        (ROWS, "MatMul (b, f)", {}), (ROWS, "Gemm (b, f, c)", {}), (ROWS, "Gemm <transB = 1> (b, f, c)", {"w": QDQ["w"].T}),
        (IMAGE, "Conv (b, f, c)", FILTER_BYTES),
    ],
)  # fmt: skip
def test_products_of_bytes_are_written_between_dequantize_and_quantize(signature_text, product, constants, tmp_path):
    """A session sums such products in integers, by an operator of its own."""
    data = model_of(
        f"{signature_text} {{ a = QuantizeLinear (x, s, z) b = DequantizeLinear (a, s, z) f = DequantizeLinear (w, s, z)"
        f" r = {product} q = QuantizeLinear (r, s, z) y = DequantizeLinear (q, s, z) }}", QDQ | constants,
    )  # fmt: skip
    session, made = written(data, tmp_path / "m.onnx")
    kind = product.split()[0]
    names = ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", kind, "QuantizeLinear", "DequantizeLinear"]
    assert [node.op_type for node in made.graph.node] == names
    assert np.dtype(np.uint8) in {numpy_helper.to_array(t).dtype for t in made.graph.initializer if len(t.dims) > 1}
    feeds = feeds_of(session)
    step = QDQ["s"] * 1.01  # a sum of floats may round to the byte beside
    original = treadle.InferenceSession(data).run(None, feeds)
    for module in (onnxruntime, treadle):
        again = module.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(again.run(None, feeds)[0], original[0], atol=step)


# Prepares a model as onnxruntime's tools do, quantises it twice, and prints the operators.
TOOLS = """
import json, pathlib, sys
import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

folder = pathlib.Path(sys.argv[1])
class Reader(CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(0)
        shape = json.loads(sys.argv[2])
        self.left = [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(4)]
    def get_next(self):
        return self.left.pop() if self.left else None

def operators(name):
    return sorted(node.op_type for node in onnx.load(folder / name).graph.node)

quant_pre_process(str(folder / "m.onnx"), str(folder / "prepared.onnx"))
quantize_static(str(folder / "prepared.onnx"), str(folder / "static.onnx"), Reader(), quant_format=QuantFormat.QDQ)
quantize_dynamic(str(folder / "prepared.onnx"), str(folder / "dynamic.onnx"))
print(json.dumps({name: operators(name + ".onnx") for name in ("prepared", "static", "dynamic")}))
"""


TOOLED = {
    "image": (
        """g (float[1,4,8,8] x) => (float[1,5] y) {
        i = Identity (x)  c = Conv (i, w)  n = BatchNormalization (c, s, b, m, v)  r = Relu (n)
        p = GlobalAveragePool (r)  f = Flatten (p)  d = Dropout (f)  q = MatMul (d, w2)  y = Add (q, b2) }""",
        {**W, **norm(6), "w2": floats(6, 5), "b2": floats(5)}, [1, 4, 8, 8], "Conv Relu GlobalAveragePool Flatten Gemm",
    ),
    "rows": (
        f"g (float[2,5,3] x) => (float[2,5,3] y) {{ {layer_norm().replace('y = Add', 'n = Add')}"
        " p1 = MatMul (n, w1) s1 = Add (p1, b1) r = Relu (s1) t = Clip (r, , six) p2 = MatMul (t, w2) y = Add (p2, b2) }",
        {**NORM_OF_ROWS, "w1": floats(3, 6), "b1": floats(6), "w2": floats(6, 3), "b2": floats(3), "six": np.float32(6)},
        [2, 5, 3], "LayerNormalization Reshape Gemm Reshape Clip Reshape Gemm Reshape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLED)
def test_the_tools_of_quantisation_find_their_patterns(name, tmp_path):
    graph, constants, shape, prepared = TOOLED[name]
    data = model_of(graph, constants)
    found = []
    for who, alias in (("theirs", []), ("ours", ["-m", "treadle.as_onnxruntime"])):
        folder = tmp_path / who
        folder.mkdir()
        (folder / "m.onnx").write_bytes(data)
        folders = [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        command = [sys.executable, *alias, "-c", TOOLS, str(folder), json.dumps(shape)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout.splitlines()[-1]))
    assert found[1] == found[0]
    assert found[0]["prepared"] == sorted(prepared.split())

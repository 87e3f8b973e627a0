"""Operators that choose, count, make or combine elements, against numpy, for every version and element type; sequences
and optionals of every type; resampling against the onnx package's evaluator over random options."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

NEWEST = onnx.defs.onnx_opset_version()
DRAWS = 400 if os.environ.get("TREADLE_TEST_LONG") else 60


def model_of(op, feeds, outputs, version, attributes=None, output_types=None):
    feeds = {k: v for k, v in feeds.items() if v is not None}
    count = max((int(k[1:]) for k in feeds), default=-1) + 1
    names = [f"i{i}" if f"i{i}" in feeds else "" for i in range(count)]
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **(attributes or {}))
    inputs = []
    for name in names:
        if name:
            kind = helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, feeds[name].shape))
    kinds = output_types or [None] * outputs
    infos = [
        helper.make_tensor_value_info(r, k or 0, None) if k else onnx.ValueInfoProto(name=r)
        for r, k in zip(results, kinds, strict=True)
    ]
    graph = helper.make_graph([node], "g", inputs, infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])


def run(op, *inputs, outputs=1, version=NEWEST, output_types=None, **attributes):
    feeds = {f"i{i}": None if x is None else np.asarray(x) for i, x in enumerate(inputs)}
    model = model_of(op, feeds, outputs, version, attributes, output_types)
    feeds = {k: v for k, v in feeds.items() if v is not None}
    return treadle.InferenceSession(model.SerializeToString()).run(None, feeds)


def each(op, constraint):
    """(version, element type) for every one that the specification lists."""
    found = []
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.name != op or schema.domain or schema.since_version > NEWEST or schema.deprecated:
            continue
        rows = {row.type_param_str: row.allowed_type_strs for row in schema.type_constraints}
        for text in rows.get(constraint, []):
            if text.startswith("tensor("):
                found.append((schema.since_version, getattr(TensorProto, text[7:-1].upper())))
    return [pytest.param(v, k, id=f"{v}-{TensorProto.DataType.Name(k).lower()}") for v, k in sorted(found)]


def of_type(kind, values):
    if kind == TensorProto.STRING:
        return np.array([str(v) if v else "" for v in np.ravel(values)], object).reshape(np.shape(values))
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    values = np.asarray(values)
    if kind in (TensorProto.UINT2, TensorProto.INT2):
        values = values % 2
    return values.astype(np.float32).astype(dtype) if "float" in dtype.name else values.astype(dtype)


def as_numbers(array):
    return np.asarray(array).astype(np.float64)


@pytest.mark.parametrize(("version", "kind"), each("TopK", "T"))
def test_top_k(version, kind):
    x = of_type(kind, [[3, 1, 3, 2], [0, 3, 1, 1]])
    inputs = [x] if version < 10 else [x, np.array([3])]
    attributes = {"k": 3} if version < 10 else {}
    values, indices = run("TopK", *inputs, outputs=2, version=version, **attributes)
    np.testing.assert_array_equal(indices, [[0, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(as_numbers(values), [[3, 3, 2], [3, 1, 1]])
    if version >= 11:
        values, indices = run("TopK", x, np.array([1]), outputs=2, version=version, largest=0, axis=0)
        np.testing.assert_array_equal(indices, [[1, 0, 1, 1]])
        np.testing.assert_array_equal(as_numbers(values), [[0, 1, 1, 1]])


def test_top_k_takes_nan_for_the_largest():
    x = np.array([1, np.nan, 3, np.nan], np.float32)
    np.testing.assert_array_equal(run("TopK", x, np.array([3]), outputs=2)[1], [1, 3, 2])
    np.testing.assert_array_equal(run("TopK", x, np.array([3]), outputs=2, largest=0)[1], [0, 2, 1])


@pytest.mark.parametrize("largest", (0, 1))
@pytest.mark.parametrize(("shape", "axis"), (((3, 200), 1), ((300, 2), 0), ((1, 64), 1), ((2, 65), 1), ((5, 17), 1)))
def test_top_k_of_long_rows(shape, axis, largest):
    rng = np.random.default_rng(shape[axis])
    x = np.where(rng.random(shape) < 0.02, np.nan, rng.integers(0, 60, shape)).astype(np.float32)
    for kind in (x, np.sort(x, axis), np.nan_to_num(x).astype(np.int64), x.astype(np.float64)):
        key = np.nan_to_num(kind.astype(np.float64), nan=np.inf)
        order = np.argsort(-key if largest else key, axis, kind="stable")
        for k in (1, 2, 4, 16, 17):
            values, indices = run("TopK", kind, np.array([k]), outputs=2, axis=axis, largest=largest)
            expected = np.take(order, np.arange(k), axis)
            np.testing.assert_array_equal(indices, expected)
            np.testing.assert_array_equal(values, np.take_along_axis(kind, expected, axis))


@pytest.mark.parametrize(("version", "kind"), each("Unique", "T"))
def test_unique(version, kind):
    limit = 2 if kind == TensorProto.BOOL else 4
    x = of_type(kind, np.array([1, 0, 3, 1, 0, 2, 3]) % limit)
    y, first, inverse, counts = run("Unique", x, outputs=4, version=version)
    expected = np.unique(x, True, True, True)
    for got, want in zip((y, first, inverse, counts), expected, strict=True):
        assert got.tolist() == want.tolist()
    y, first, inverse, _ = run("Unique", x, outputs=4, version=version, sorted=0)
    assert first.tolist() == sorted(expected[1].tolist())
    assert y[inverse].tolist() == x.tolist()


def test_unique_slices():
    x = np.array([[[1.0, 1], [0, 1], [2, 1], [0, 1]]] * 2, np.float32)
    y, first, inverse, counts = run("Unique", x, outputs=4, axis=1)
    np.testing.assert_array_equal(y, x[:, [1, 0, 2]])
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 0, 2], [1, 0, 2, 0], [2, 1, 1])


@pytest.mark.parametrize(("version", "kind"), each("NonZero", "T"))
def test_non_zero(version, kind):
    x = of_type(kind, [[1, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(run("NonZero", x, version=version)[0], [[0, 0, 1], [0, 2, 2]])


def test_non_zero_counts_minus_zero_as_zero_and_scalars_as_one_column():
    np.testing.assert_array_equal(run("NonZero", np.array([-0.0, np.nan], np.float32))[0], [[1]])
    assert run("NonZero", np.array(5))[0].shape == (0, 1)


@pytest.mark.parametrize(("version", "kind"), each("Range", "T"))
def test_range(version, kind):
    def bounds(*values):
        return [of_type(kind, v) for v in values]

    np.testing.assert_array_equal(as_numbers(run("Range", *bounds(3, 10, 3), version=version)[0]), [3, 6, 9])
    np.testing.assert_array_equal(as_numbers(run("Range", *bounds(4, -4, -3), version=version)[0]), [4, 1, -2])
    assert run("Range", *bounds(4, 4, 1), version=version)[0].shape == (0,)
    with pytest.raises(Exception, match="delta is 0|make a range"):
        run("Range", *bounds(0, 4, 0), version=version)


@pytest.mark.parametrize(("version", "kind"), each("EyeLike", "T2"))
def test_eye_like(version, kind):
    (y,) = run("EyeLike", np.zeros((3, 4), np.int32), version=version, dtype=int(kind), k=-1)
    assert y.dtype == helper.tensor_dtype_to_np_dtype(kind)
    np.testing.assert_array_equal(as_numbers(y), np.eye(3, 4, -1))


@pytest.mark.parametrize(("version", "kind"), each("ConstantOfShape", "T2"))
def test_constant_of_shape(version, kind):
    value = of_type(kind, [1])
    (y,) = run("ConstantOfShape", np.array([2, 0]), version=version, value=onnx.numpy_helper.from_array(value))
    assert y.shape == (2, 0) and y.dtype == value.dtype
    (y,) = run("ConstantOfShape", np.array([2, 3]), version=version, value=onnx.numpy_helper.from_array(value))
    np.testing.assert_array_equal(y.view(np.uint8), np.tile(value, (2, 3)).view(np.uint8))


@pytest.mark.parametrize(("version", "kind"), each("Constant", "T"))
def test_constant(version, kind):
    value = of_type(kind, [[1, 0], [0, 1]])
    (y,) = run("Constant", version=version, value=onnx.numpy_helper.from_array(value), output_types=[kind])
    assert y.dtype == value.dtype or kind == TensorProto.STRING
    assert repr(y.tolist()) == repr(value.tolist())  # float8e8m0 has no zero, but NaN


def test_constant_forms():
    for name, value in {"value_int": 3, "value_float": 1.5, "value_ints": [1, 2], "value_floats": [0.5]}.items():
        assert run("Constant", **{name: value})[0].tolist() == value
    assert run("Constant", value_strings=["a", ""])[0].tolist() == ["a", ""]


COMBINED = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
NUMBERS = "float16 float double bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64".upper().split()


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("reduction", COMBINED)
def test_scatter_reductions_take_duplicates_in_order(kind, reduction):
    kind = getattr(TensorProto, kind)
    data, updates = of_type(kind, [1, 5, 3, 2]), of_type(kind, [2, 7, 4])
    expected = data.copy()
    for i, u in zip([1, 1, 3], updates, strict=True):
        expected[i] = COMBINED[reduction](expected[i], u)
    (y,) = run("ScatterElements", data, np.array([1, -3, 3]), updates, version=18, reduction=reduction)
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))
    (y,) = run("ScatterND", data, np.array([[1], [1], [3]]), updates, version=18, reduction=reduction)
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
@pytest.mark.parametrize("index", [3, -4, 2**62])
def test_indices_are_checked(op, index):
    data = np.zeros(3, np.float32)
    indices = np.array([[index]] if op.endswith("ND") else [index])
    inputs = [data, indices] + ([np.ones(1, np.float32)] if op.startswith("Scatter") else [])
    with pytest.raises(Exception, match=f"index {index} is out of range"):
        run(op, *inputs)


def scattered_indices(rng, shape, depth):
    """Tuples of positions: a box, a box with a hole, any order, one position twice, positions from the end."""
    starts = [rng.integers(0, n) for n in shape[:depth]]
    axes = [np.arange(s, rng.integers(s, n) + 1) for s, n in zip(starts, shape[:depth], strict=True)]
    box = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, depth)
    return {
        "box": box,
        "hole": np.delete(box, len(box) // 2, 0),
        "any order": rng.permutation(box),
        "twice": np.concatenate([box, box[: len(box) // 2 + 1]]),
        "from the end": box - np.array(shape[:depth]),
    }


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT8, TensorProto.DOUBLE])
def test_scatters_by_constant_indices(seed, kind):
    """Constant indices are written range by range, with the results of indices that only a run knows."""
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(1, 7, rng.integers(1, 5))]
    depth = int(rng.integers(1, len(shape) + 1))
    data = of_type(kind, rng.integers(-9, 9, shape))
    for name, indices in scattered_indices(rng, shape, depth).items():
        updates = of_type(kind, rng.integers(10, 99, (len(indices), *shape[depth:])))
        expected = data.copy()
        for at, update in zip(indices, updates, strict=True):
            expected[tuple(at)] = update
        node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
        constant = helper.make_node("Constant", [], ["i"], value=numpy_helper.from_array(indices))
        feeds = {"x": data, "u": updates}
        for nodes, given in (([node], {**feeds, "i": indices}), ([constant, node], feeds)):
            (y,) = sequence_run(nodes, given, ["y"], 18)
            np.testing.assert_array_equal(y, expected, err_msg=name)


def test_constant_indices_out_of_range_fail_in_the_run():
    indices = np.array([[0], [1], [2], [3], [9]])
    constant = helper.make_node("Constant", [], ["i"], value=numpy_helper.from_array(indices))
    nodes = [constant, helper.make_node("ScatterND", ["x", "i", "u"], ["y"])]
    with pytest.raises(Exception, match="index 9 is out of range"):
        sequence_run(nodes, {"x": np.zeros(5, np.float32), "u": np.ones(5, np.float32)}, ["y"], 18)


def sequence_run(nodes, feeds, outputs, version):
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=o) for o in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    return treadle.InferenceSession(model.SerializeToString()).run(None, feeds)


@pytest.mark.parametrize(("version", "kind"), each("SequenceConstruct", "T"))
def test_sequences(version, kind):
    a, b = of_type(kind, [[1, 0]]), of_type(kind, [[0, 1], [1, 1]])
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s0"]),
        helper.make_node("Constant", [], ["zero"], value_int=0),
        helper.make_node("Constant", [], ["last"], value_int=-1),
        helper.make_node("SequenceInsert", ["s0", "b", "zero"], ["s1"]),  # b a b
        helper.make_node("SequenceErase", ["s1", "last"], ["s2"]),  # b a
        helper.make_node("SequenceLength", ["s2"], ["n"]),
        helper.make_node("SequenceAt", ["s2", "last"], ["y"]),
        helper.make_node("ConcatFromSequence", ["s2"], ["c"], axis=0),
        helper.make_node("SplitToSequence", ["c"], ["parts"], axis=1, keepdims=0),
        helper.make_node("SequenceEmpty", [], ["none"], dtype=int(kind)),
        helper.make_node("SequenceInsert", ["none", "a"], ["one"]),
    ]
    found = sequence_run(nodes, {"a": a, "b": b}, ["n", "y", "c", "parts", "one"], 13)
    joined = np.concatenate([b, a])
    assert found[0] == 2
    assert found[1].tolist() == a.tolist()
    assert found[2].tolist() == joined.tolist()
    assert [p.tolist() for p in found[3]] == [joined[:, 0].tolist(), joined[:, 1].tolist()]
    assert [p.tolist() for p in found[4]] == [a.tolist()]


@pytest.mark.parametrize(("version", "kind"), each("OptionalGetElement", "V"))
def test_optionals(version, kind):
    a = of_type(kind, [1, 0])
    nodes = [
        helper.make_node("Optional", ["a"], ["full"]),
        helper.make_node("OptionalHasElement", ["full"], ["has"]),
        helper.make_node("OptionalGetElement", ["full"], ["y"]),
    ]
    has, y = sequence_run(nodes, {"a": a}, ["has", "y"], version)
    assert bool(has) and repr(y.tolist()) == repr(a.tolist())


def resize_draw(rng):
    rank = int(rng.integers(1, 4))
    shape = rng.integers(2, 6, rank)
    options = {
        "mode": str(rng.choice(["nearest", "linear", "cubic"])),
        "coordinate_transformation_mode": str(
            # Not half_pixel_symmetric: its positions often miss an integer by the last bit, where the evaluator takes
            # weights from one side and elements from the other.
            rng.choice(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"])
        ),
        "nearest_mode": str(rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])),
        "extrapolation_value": 7.0,
    }
    if options["mode"] != "nearest":
        options["antialias"] = int(rng.integers(0, 2))
        options["exclude_outside"] = int(rng.integers(0, 2))
    roi = None
    if options["coordinate_transformation_mode"] == "tf_crop_and_resize":
        roi = np.concatenate([rng.uniform(-0.2, 0.4, rank), rng.uniform(0.6, 1.2, rank)]).astype(np.float32)
    scales = sizes = None
    if rng.integers(0, 2):
        scales = rng.choice([0.5, 0.75, 1.0, 1.5, 2.0, 2.25], rank).astype(np.float32)
    else:
        sizes = rng.integers(1, 9, rank)
        options["keep_aspect_ratio_policy"] = str(rng.choice(["stretch", "not_larger", "not_smaller"]))
    return [rng.uniform(-1, 1, shape).astype(np.float32), roi, scales, sizes], options


@pytest.mark.parametrize("seed", range(DRAWS))
def test_resize_as_the_evaluator(seed):
    inputs, options = resize_draw(np.random.default_rng(seed))
    feeds = {f"i{i}": x for i, x in enumerate(inputs)}
    model = model_of("Resize", feeds, 1, 19, options, [TensorProto.FLOAT])
    feeds = {k: v for k, v in feeds.items() if v is not None}
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = treadle.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=str(options))


@pytest.mark.parametrize(("version", "kind"), each("Resize", "T1"))
def test_resize_interpolates_every_number(version, kind):
    if kind in (TensorProto.STRING, TensorProto.BOOL):
        pytest.skip("not numbers")
    x = of_type(kind, [0, 4, 8])
    (y,) = run(
        "Resize",
        x,
        np.zeros(0, np.float32),
        np.zeros(0, np.float32),
        np.array([5]),
        version=version,
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )
    np.testing.assert_array_equal(y.astype(np.complex128), [0, 2, 4, 6, 8])


@pytest.mark.parametrize("seed", range(DRAWS))
def test_grid_sample_as_the_evaluator(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    x = rng.uniform(-1, 1, (2, 2, *rng.integers(1, 5, rank))).astype(np.float32)
    grid = rng.uniform(-1.6, 1.6, (2, *rng.integers(1, 4, rank), rank)).astype(np.float32)
    options = {
        "mode": str(rng.choice(["nearest", "linear", "cubic"])),
        "padding_mode": str(rng.choice(["zeros", "border", "reflection"])),
        "align_corners": int(rng.integers(0, 2)) if min(x.shape[2:]) > 1 else 0,
    }
    model = model_of("GridSample", {"i0": x, "i1": grid}, 1, 20, options, [TensorProto.FLOAT])
    (want,) = ReferenceEvaluator(model).run(None, {"i0": x, "i1": grid})
    (got,) = treadle.InferenceSession(model.SerializeToString()).run(None, {"i0": x, "i1": grid})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=str(options))


@pytest.mark.parametrize("kind", ["FLOAT16", "FLOAT", "DOUBLE", "BFLOAT16"])
def test_determinants(kind):
    kind = getattr(TensorProto, kind)
    x = of_type(kind, [[[0, 2], [3, 1]], [[1, 2], [2, 4]]])
    np.testing.assert_allclose(as_numbers(run("Det", x)[0]), [-6, 0], atol=1e-6)


def test_first_versions():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    two, one = np.array([2], np.float32), np.array([1], np.float32)
    np.testing.assert_array_equal(run("Tile", x, two, one, version=1)[0], np.tile(x, (1, 2)))
    left, right = run("Split", x, outputs=2, version=1, axis=1, split=[1, 2])
    np.testing.assert_array_equal(left, x[:, :1])
    np.testing.assert_array_equal(right, x[:, 1:])
    upper, lower = run("Split", x, outputs=2, version=1)
    np.testing.assert_array_equal([upper[0], lower[0]], x)
    np.testing.assert_array_equal(run("Concat", x, x, version=1)[0], np.concatenate([x, x], 1))
    image = x.reshape(1, 1, 2, 3)
    (y,) = run("Upsample", image, version=1, height_scale=2.0, width_scale=1.0, mode="nearest")
    np.testing.assert_array_equal(y, image.repeat(2, 2))
    (y,) = run("Pad", x, version=2, pads=[0, 1, 0, 0], value=9.0)
    np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (1, 0)], constant_values=9))


def as_evaluated(op, inputs, version, options, tolerance=1e-5, kind=None):
    feeds = {f"i{i}": x for i, x in enumerate(inputs)}
    kind = kind or helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    model = model_of(op, feeds, 1, version, options, [kind])
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = treadle.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(as_numbers(got), as_numbers(want), rtol=tolerance, atol=tolerance, err_msg=str(options))


@pytest.mark.parametrize("seed", range(DRAWS // 3))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_roi_align_as_the_evaluator(dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (2, 2, 7, 6)).astype(dtype)
    corner = rng.uniform(-1, 5, (3, 2))
    rois = np.concatenate([corner, corner + rng.uniform(0.5, 4, (3, 2))], 1).astype(dtype)
    options = {
        "mode": str(rng.choice(["avg", "max"])),
        "coordinate_transformation_mode": str(rng.choice(["half_pixel", "output_half_pixel"])),
        "output_height": int(rng.integers(1, 4)),
        "output_width": int(rng.integers(1, 4)),
        "sampling_ratio": int(rng.integers(1, 3)),
        "spatial_scale": 0.75,
    }
    as_evaluated("RoiAlign", [x, rois, rng.integers(0, 2, 3)], 16, options, 1e-3 if dtype == np.float16 else 1e-5)


@pytest.mark.parametrize("seed", range(DRAWS // 3))
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.complex64])
def test_col2im_as_the_evaluator(dtype, seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 3))
    image, block = rng.integers(4, 7, rank), rng.integers(1, 3, rank)
    options = {
        "dilations": rng.integers(1, 3, rank).tolist(),
        "pads": rng.integers(0, 2, 2 * rank).tolist(),
        "strides": rng.integers(1, 3, rank).tolist(),
    }
    counts = [
        (image[d] + options["pads"][d] + options["pads"][rank + d] - options["dilations"][d] * (block[d] - 1) - 1)
        // options["strides"][d]
        + 1
        for d in range(rank)
    ]
    x = rng.integers(0, 9, (2, 2 * int(np.prod(block)), int(np.prod(counts)))).astype(dtype)
    feeds = {"i0": x, "i1": image, "i2": block}
    model = model_of("Col2Im", feeds, 1, 18, options, [helper.np_dtype_to_tensor_dtype(x.dtype)])
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = treadle.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 3, 300), (2, 3, 2, 3, 4), (2, 1, 2, 3, 129)])
def test_affine_grids_as_the_evaluator(size, align):
    rank = len(size) - 2
    theta = np.random.default_rng(0).uniform(-1, 1, (2, rank, rank + 1)).astype(np.float32)
    as_evaluated("AffineGrid", [theta, np.array(size)], 20, {"align_corners": align})


@pytest.mark.parametrize("seed", range(DRAWS // 3))
def test_non_max_suppression_as_the_evaluator(seed):
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(0, 4, (2, 12, 4)).astype(np.float32)
    scores = rng.choice(np.linspace(0, 1, 9), (2, 3, 12)).astype(np.float32)
    limits = [np.array([4]), np.array([rng.uniform(0, 0.6)], np.float32), np.array([0.3], np.float32)]
    options = {"center_point_box": int(rng.integers(0, 2))}
    as_evaluated("NonMaxSuppression", [boxes, scores, *limits], 11, options, kind=TensorProto.INT64)


F32 = np.float32
BIG = 2**62
EMPTY = [
    ("Gather", [np.zeros((0, 3), F32), np.zeros(0, np.int64)], {}, (0, 3)),
    ("Concat", [np.zeros((0, 3), F32), np.ones((2, 3), F32)], {"axis": 0}, (2, 3)),
    ("ScatterND", [np.zeros((2, 3), F32), np.zeros((1, 0), np.int64), np.ones((1, 2, 3), F32)], {}, (2, 3)),
    ("TopK", [np.zeros((2, 0), F32), np.array([0])], {}, (2, 0)),
    ("Unique", [np.zeros((2, 0), F32)], {"axis": 1}, (2, 0)),
    ("Tile", [np.ones(2, F32), np.array([0])], {}, (0,)),
    ("Trilu", [np.ones((0, 2), F32)], {}, (0, 2)),
    ("OneHot", [np.zeros(2, np.int64), np.array(0), np.zeros(2, F32)], {}, (2, 0)),
    ("Resize", [np.zeros((1, 0), F32), None, np.array([2, 2], F32)], {}, (2, 0)),
    ("Expand", [np.zeros((1, 3), F32), np.array([0, 3])], {}, (0, 3)),
    ("Det", [np.zeros((2, 0, 0), F32)], {}, (2,)),
    ("AffineGrid", [np.zeros((1, 2, 3), F32), np.array([1, 1, 0, 2])], {}, (1, 0, 2, 2)),
    ("NonMaxSuppression", [np.zeros((1, 0, 4), F32), np.zeros((1, 1, 0), F32)], {}, (0, 3)),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "shape"), EMPTY, ids=[row[0] for row in EMPTY])
def test_nothing_in_or_out(op, inputs, attributes, shape):
    outputs = 2 if op == "TopK" else 1
    assert run(op, *inputs, outputs=outputs, **attributes)[0].shape == shape


def test_extreme_numbers():
    assert run("Range", np.array(-(2**63)), np.array(2**63 - 1), np.array(BIG))[0].shape == (4,)
    np.testing.assert_array_equal(run("Trilu", np.ones((2, 2), F32), np.array(-(2**63)), upper=0)[0], np.zeros((2, 2)))
    np.testing.assert_array_equal(run("EyeLike", np.ones((2, 2), F32), k=BIG)[0], np.zeros((2, 2)))
    indices = np.array([np.nan, 1, 1e30], F32)
    (y,) = run("OneHot", indices, np.array(3), np.array([0, 1], F32))
    np.testing.assert_array_equal(y, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    for value in (np.nan, 1e38):
        grid = np.full((1, 1, 1, 2), value, F32)
        assert run("GridSample", np.ones((1, 1, 3, 3), F32), grid, padding_mode="reflection")[0].shape == (1, 1, 1, 1)
    assert run("Pad", np.ones(1, F32), np.array([3, 1]), mode="reflect")[0].tolist() == [1] * 5


REFUSED = [
    ("DepthToSpace", [np.zeros((1, 4, 1, 1), F32)], {"blocksize": 2**32}, "blocksize is 4294967296"),
    ("SpaceToDepth", [np.zeros((1, 4, 1, 1), F32)], {"blocksize": 0}, "blocksize is 0"),
    ("Transpose", [np.zeros((4, 3), F32)], {"perm": [0, 0]}, "axis 0 twice"),
    ("Slice", [np.zeros(4, F32), np.array([0, 0]), np.array([1])], {}, "expected equal"),
    ("ConstantOfShape", [np.array([2**40, 2**40])], {}, "more elements"),
    ("Compress", [np.zeros(2, F32), np.array([True] * 3)], {}, "one of the 2 slices"),
    ("ReverseSequence", [np.zeros((4, 1), F32), np.array([5])], {}, r"sequence_lens\[0\] is 5, expected 0 to 4"),
    ("Resize", [np.zeros((2, 2), F32), None, np.array([np.nan, 1], F32)], {}, "a scale is nan"),
    ("Resize", [np.zeros((0, 2), F32), None, None, np.array([2, 2])], {}, "nothing to resize"),
    ("Resize", [np.zeros((2, 2), F32)], {}, "scales or sizes"),
    (
        "RoiAlign",
        [np.zeros((1, 1, 3, 3), F32), np.zeros((1, 4), F32), np.array([1])],
        {},
        r"batch_indices\[0\] is 1, expected 0 to 0",
    ),
    ("RoiAlign", [np.zeros((1, 1, 3, 3), F32), np.zeros((1, 4), F32), np.array([0])], {"sampling_ratio": BIG}, "4096"),
    (
        "MaxUnpool",
        [np.zeros((1, 1, 1, 1), F32), np.array([[[[9]]]])],
        {"kernel_shape": [2, 2]},
        r"I\[0\] is 9, expected 0 to 3",
    ),
    (
        "TensorScatter",
        [np.zeros((1, 3, 1), F32), np.ones((1, 2, 1), F32), np.array([2])],
        {"axis": 1},
        r"write_indices\[0\] is 2, expected 0 to 1",
    ),
    ("Col2Im", [np.zeros((1, 4, 4), F32), np.array([3, 3]), np.array([0, 2])], {}, "block_shape holds 0"),
    ("TopK", [np.zeros(3, F32), np.array([1, 2])], {}, "k has 2 elements"),
    ("ScatterElements", [np.zeros(2, F32), np.array([0]), np.ones(2, F32)], {}, "expected equal"),
    ("GatherElements", [np.zeros((2, 2), F32), np.zeros((3, 1), np.int64)], {"axis": 1}, "at most that of data, 2"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_bad_inputs_are_refused(op, inputs, attributes, message):
    with pytest.raises(Exception, match=message):
        run(op, *inputs, outputs=2 if op == "TopK" else 1, **attributes)


def many(kind, count, seed):
    """Numbers of which some are alike; among floats zeros of both signs, infinities and NaNs."""
    rng = np.random.default_rng(seed)
    if np.issubdtype(kind, np.floating):
        x = np.round(rng.standard_normal(count) * 5, 1).astype(kind)
        x[rng.random(count) < 0.2] = 0
        x[rng.random(count) < 0.05] = -0.0
        x[rng.random(count) < 0.05] = np.nan
        x[rng.random(count) < 0.02] = np.inf
        return x
    return rng.integers(0, 100, count).astype(kind)


MANY = (np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint64)


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("count", [0, 1, 63, 500, 3000])
def test_unique_numbers(kind, count):
    x = many(kind, count, count)
    sorted_ = run("Unique", x, outputs=4, sorted=1)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for got, expected in zip(sorted_, want, strict=True):
        np.testing.assert_array_equal(got, expected.reshape(-1))
    values, first, inverse, counts = run("Unique", x, outputs=4, sorted=0)
    order = np.argsort(want[1])
    np.testing.assert_array_equal(first, want[1][order])
    np.testing.assert_array_equal(values, x[first])
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(counts, want[3][order])


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (1000,), (40, 30), (7, 11, 13), (3, 0, 2)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
def test_which_are_kept(kind, shape, share):
    rng = np.random.default_rng(1)
    x = many(kind, int(np.prod(shape)), 2).reshape(shape)
    kept = rng.random(shape) < share
    np.testing.assert_array_equal(
        run("NonZero", np.where(kept, x, 0).astype(kind))[0], np.nonzero(np.where(kept, x, 0))
    )
    np.testing.assert_array_equal(run("NonZero", kept)[0], np.nonzero(kept))
    flags = kept.reshape(-1)
    np.testing.assert_array_equal(run("Compress", x, flags)[0], x.reshape(-1)[flags])
    for axis in range(x.ndim):
        flags = rng.random(shape[axis]) < share
        np.testing.assert_array_equal(run("Compress", x, flags, axis=axis)[0], np.compress(flags, x, axis))


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize(("count", "k"), [(1000, 1), (1000, 16), (1000, 17), (1000, 125), (1000, 126), (1000, 1000), (5000, 40)])  # fmt: skip
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_of_many(kind, count, k, largest):
    x = many(kind, count, k)
    values, indices = run("TopK", x, np.array([k]), outputs=2, largest=largest)
    numbers = x.astype(np.float64)
    keys = np.where(np.isnan(numbers), np.inf, numbers)  # a NaN is more than infinity
    nan = np.isnan(numbers)
    order = np.lexsort((np.arange(count), ~nan if largest else nan, -keys if largest else keys))
    np.testing.assert_array_equal(indices, order[:k])
    np.testing.assert_array_equal(values, x[order[:k]])

"""Operators that compute, in every version and element type, against the onnx package's reference evaluator.

The data are small whole numbers, exact in every type. The evaluator runs the newest version of the operator on them in
double or int64; the results agree up to the rounding of the element type, with integers exactly.
"""

import dataclasses

import numpy as np
import onnx
import pytest
from one_node import NUMBERS, run, schemas
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

NEWEST = onnx.defs.onnx_opset_version()
# Relative to the largest value: a few roundings to the type, at 1e-3 for float16 and 8e-3 for bfloat16. onnx's
# evaluator, which computes the expected results, rounds between its steps where treadle computes in float32. Some of
# its functions are float32 for float64 as well.
TOLERANCE = {"float64": 1e-6, "float32": 2e-5, "float16": 6e-3, "bfloat16": 5e-2}


def numbers(*shape, low=-2, high=3):
    rng = np.random.default_rng(shape)
    return rng.integers(low, high + 1, shape)


@dataclasses.dataclass
class Case:
    """One call. `inputs`: (type parameter, data), where a dtype in place of the parameter is fixed; None: left out.
    `attributes` may be a function of the version; the evaluator takes those of the newest version. `result`: the type
    parameter of the outputs, or a fixed dtype."""

    op: str
    inputs: list
    attributes: object = dataclasses.field(default_factory=dict)
    versions: range = range(1, 1000)
    result: object = "T"
    outputs: int = 1
    more: tuple = ()  # fixed dtypes of further outputs
    oracle: object = None  # a function of the data in double, in place of the evaluator
    name: str = ""

    def attributes_of(self, version):
        return self.attributes(version) if callable(self.attributes) else self.attributes


def pooling(version):
    return {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 0, 0, 1]}


def lp(version):
    return pooling(version) | ({"p": 3.0} if version == 1 else {"p": 3})


def lp_pool(x):
    """By windows of 2 x 3, with strides 1 and 2."""
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(x) ** 3, (2, 3), (2, 3))[:, :, :, ::2]
    return windows.sum((-2, -1)) ** (1 / 3)


def window(op):
    n = np.arange(10)
    a = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}[op]
    return a[0] - a[1] * np.cos(2 * np.pi * n / 10) + a[2] * np.cos(4 * np.pi * n / 10)


X = ("T", numbers(1, 2, 5, 6))
INT64 = np.dtype(np.int64)
INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
CASES = [
    Case("MaxPool", [X], pooling),
    Case("AveragePool", [X], pooling),
    Case("AveragePool", [X], lambda v: pooling(v) | {"count_include_pad": 1}, versions=range(7, 1000), name="padded"),
    Case(
        "LpPool",
        [X],
        lp,
        oracle=lambda x: lp_pool(np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 1)])),
    ),
    Case("GlobalMaxPool", [X]),
    Case("GlobalAveragePool", [X]),
    Case(
        "GlobalLpPool",
        [X],
        lambda v: {"p": 3.0 if v == 1 else 3},
        oracle=lambda x: (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** (1 / 3),
    ),
    Case("Conv", [X, ("T", numbers(4, 1, 2, 3)), ("T", numbers(4))], {"group": 2, "strides": [2, 1], "pads": [0, 1, 1, 0]}),
    Case("ConvTranspose", [X, ("T", numbers(2, 3, 2, 3)), ("T", numbers(3))], {"strides": [2, 1]}),
    Case("Det", [("T", numbers(2, 3, 3))]),
    Case("Einsum", [("T", numbers(2, 3)), ("T", numbers(3, 4))], {"equation": "ij,jk->ki"}),
    Case("BitwiseNot", [("T", numbers(7, low=0))], versions=range(18, 19)),
    Case("Pow", [("T", numbers(5, low=0)), ("T", numbers(5, low=0))], versions=range(1, 12), name="one type"),
    Case("Pow", [("T", numbers(5, low=0)), (INT64, numbers(5, low=0))], versions=range(12, 1000), name="base"),
    Case("Col2Im", [("T", numbers(1, 8, 9, low=0, high=1)), (INT64, np.array([4, 4])), (INT64, np.array([2, 2]))]),
    Case("OneHot", [("T1", np.array([0, 2, 1])), ("T2", np.array(3)), ("T3", np.array([1, 2]))], result="T3"),
    Case("DFT", [("T1", numbers(2, 6, 1)), ("T2", np.array(5))], {"axis": 1}, versions=range(17, 20), result="T1", oracle=lambda x, n: dft(x)),
    Case("DFT", [("T1", numbers(2, 6, 1)), ("T2", np.array(5)), (INT64, np.array(1))], versions=range(20, 1000), result="T1", oracle=lambda x, n, axis: dft(x)),
    Case(
        "STFT",
        [("T1", numbers(1, 8, 1)), ("T2", np.array(2)), ("T1", np.ones(4)), ("T2", np.array(4))],
        result="T1",
        oracle=lambda x, step, w, n: parts(np.stack([np.fft.rfft(x[:, i : i + 4, 0]) for i in (0, 2, 4)], 1)),
    ),
    Case("RoiAlign", [("T1", numbers(2, 1, 4, 4)), ("T1", np.array([[0, 0, 2, 2], [1, 0, 3, 3]])), (INT64, np.array([0, 1]))], {"output_height": 2, "output_width": 2, "sampling_ratio": 2, "coordinate_transformation_mode": "half_pixel"}, versions=range(16, 1000), result="T1"),
    Case("AffineGrid", [("T1", np.array([[[1, 0, 1], [0, 2, 0]]])), (INT64, np.array([1, 1, 2, 3]))], {"align_corners": 1}, result="T1"),
    Case("GridSample", [("T1", numbers(1, 1, 3, 3, low=0, high=1)), ("T2", np.array([[[[0, 0], [1, -1]]]]))], lambda v: {"mode": "nearest", "align_corners": 1}, result="T1"),
    Case("Dropout", [("T", numbers(4))], lambda v: {"is_test": 1} if v < 7 else {}, versions=range(1, 12)),
    Case("Dropout", [("T", numbers(4))], versions=range(10, 12), more=(np.dtype(bool),), oracle=lambda x: (x, np.ones(4, bool)), name="mask"),
    Case("Dropout", [("T", numbers(4)), ("T1", np.array(0)), (np.dtype(bool), np.array(True))], versions=range(12, 1000)),
    Case("Where", [(np.dtype(bool), np.array([True, False])), ("T", numbers(2)), ("T", numbers(2, low=0))]),
    Case("CenterCropPad", [(np.dtype(np.float32), numbers(4)), ("Tind", np.array([2]))], result=np.dtype(np.float32)),
    Case("Pad", [(np.dtype(np.float32), numbers(2, 2)), (INT64, np.array([1, 1])), None, ("Tind", np.array([1]))], versions=range(18, 1000), result=np.dtype(np.float32)),
    Case("CumSum", [(np.dtype(np.float32), numbers(2, 3)), ("T2", np.array(1))], result=np.dtype(np.float32)),
    Case("CumProd", [(np.dtype(np.float32), numbers(2, 3)), ("T2", np.array(1))], result=np.dtype(np.float32)),
    Case("Resize", [("T1", numbers(1, 1, 2, 2, low=0, high=1)), None, (np.dtype(np.float32), np.array([1, 1, 2, 2]))], {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}, versions=range(13, 1000), result="T1"),
    Case("Pow", [(np.dtype(np.float32), numbers(5, low=1)), ("T1", numbers(5, low=0))], versions=range(12, 1000), result=np.dtype(np.float32), name="exponent"),
    Case("EyeLike", [("T1", numbers(2, 3))], {"k": 1}, result="T1", oracle=lambda x: np.eye(2, 3, 1)),
    Case("RoiAlign", [("T1", numbers(1, 1, 4, 4)), ("T1", np.array([[0, 0, 3, 3]])), (INT64, np.array([0]))], {"output_height": 1, "output_width": 1, "sampling_ratio": 1}, versions=range(1, 16), result="T1", oracle=lambda x, r, b: x[:, :, 1:3, 1:3].mean((2, 3), keepdims=True)),
    Case("Resize", [(np.dtype(np.float32), numbers(1, 1, 4, 4)), ("T2", np.array([0, 0, 0, 0, 1, 1, 1, 1])), (np.dtype(np.float32), np.array([1, 1, 0.5, 0.5]))], {"coordinate_transformation_mode": "tf_crop_and_resize"}, versions=range(11, 1000), result=np.dtype(np.float32)),
    Case("ScatterElements", [(np.dtype(np.float32), numbers(4)), ("Tind", np.array([2, 0])), (np.dtype(np.float32), np.array([7, 8]))], result=np.dtype(np.float32)),
    Case("Scatter", [(np.dtype(np.float32), np.zeros(3)), ("Tind", np.array([2, 0])), (np.dtype(np.float32), np.array([7, 8]))], versions=range(9, 10), result=np.dtype(np.float32), oracle=lambda *_: np.array([8, 0, 7])),
    Case("MaxPool", [X], pooling, versions=range(8, 1000), more=(INT64,), name="indices"),
    Case("Split", [("T", numbers(4)), ("T", np.array([1, 3]))], {"axis": 0}, versions=range(1, 2), outputs=2, oracle=lambda x, n: (x[:1], x[1:])),
    Case("Tile", [("T", numbers(2)), ("T", np.array(2)), ("T", np.array(0))], versions=range(1, 6), oracle=lambda x, n, axis: np.tile(x, 2)),
    Case("Upsample", [("T", numbers(1, 1, 2, 2, low=0, high=1))], {"height_scale": 2.0, "width_scale": 2.0}, versions=range(1, 7), oracle=lambda x: x.repeat(2, 2).repeat(2, 3)),
    Case("MelWeightMatrix", [("T1", np.array(4)), ("T1", np.array(8)), ("T1", np.array(100)), ("T2", np.array(0)), ("T2", np.array(40))], lambda v: {"output_datatype": TensorProto.FLOAT}, result=np.dtype(np.float32)),
    Case("ConvInteger", [("T1", numbers(1, 1, 3, 3, low=0)), ("T2", numbers(1, 1, 2, 2, low=0)), ("T1", np.array(1)), ("T2", np.array([1]))], result="T3"),
]  # fmt: skip
CASES += [
    Case(op, [("T1", np.array(10))], {"output_datatype": getattr(TensorProto, kind.upper())}, result=np.dtype(NUMBERS[kind]), oracle=lambda n, op=op: window(op), name=kind)
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow")
    for kind in ("float", "double", "float16", "bfloat16", *INTEGERS)
]  # fmt: skip
CASES += [
    Case("MelWeightMatrix", [(INT64, np.array(v)) for v in (4, 8, 100)] + [(np.dtype(np.float32), np.array(v)) for v in (0, 40)], {"output_datatype": getattr(TensorProto, kind.upper())}, result=np.dtype(NUMBERS[kind]), name=kind)
    for kind in ("double", "float16", "bfloat16", *INTEGERS)
]  # fmt: skip


def dft(x):
    return parts(np.fft.fft(x[..., 0], 5, 1))


def parts(z):
    return np.stack([z.real, z.imag], -1)


def typed(data, dtype):
    """Data of one sign for unsigned types, and small enough for narrow types."""
    if dtype.kind == "u":
        data = np.abs(data)
    return np.asarray(data).astype(np.float64).astype(dtype)


def choices(schema, parameter):
    for row in schema.type_constraints:
        if row.type_param_str == parameter:
            names = [t[len("tensor(") : -1] for t in row.allowed_type_strs if t.startswith("tensor(")]
            return [np.dtype(NUMBERS[n]) for n in sorted(names) if n in NUMBERS]
    raise KeyError(parameter)


def assignments(case, schema):
    """Every type of every parameter at least once: the others stay at their first float (or first) type meanwhile."""
    parameters = {p for p, _ in filter(None, case.inputs) if isinstance(p, str)}
    if isinstance(case.result, str):
        parameters.add(case.result)
    lists = {p: choices(schema, p) for p in sorted(parameters)}
    default = {p: next((t for t in ts if t == np.float32), ts[0]) for p, ts in lists.items()}
    yield default
    for p, types in lists.items():
        for t in types:
            if t != default[p]:
                yield default | {p: t}


def wide(array):
    return array.astype(np.int64 if array.dtype.kind == "b" else np.float64) if array.dtype.kind not in "iu" else array


def expected(case, data):
    """`data`: wide, None where an input is left out."""
    if case.oracle:
        results = case.oracle(*[d.astype(np.float64) for d in data if d is not None])
        return results if isinstance(results, tuple) else [results]
    feeds = {f"x{i}": d for i, d in enumerate(data) if d is not None}
    names = [n if (n := f"x{i}") in feeds else "" for i in range(len(data))]
    node = helper.make_node(
        case.op, names, [f"y{i}" for i in range(case.outputs + len(case.more))], **case.attributes_of(NEWEST)
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(d.dtype), d.shape) for n, d in feeds.items()],
        [onnx.ValueInfoProto(name=n) for n in node.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST)])
    return ReferenceEvaluator(model).run(None, feeds)


def check(case, schema, types):
    data = [g and typed(g[1], types.get(g[0], g[0])) for g in case.inputs]
    result = types[case.result] if isinstance(case.result, str) else case.result
    version = schema.since_version
    results = [result] * case.outputs + list(case.more)
    actual = run(case.op, version, data, results, case.attributes_of(version))
    oracle = expected(case, [None if d is None else wide(d) for d in data])
    for a, e, kind in zip(actual, oracle, results, strict=True):
        assert a.dtype == kind and a.shape == np.shape(e), (a.dtype, a.shape, np.shape(e))
        tolerance = TOLERANCE.get(a.dtype.name)
        if tolerance is None:
            np.testing.assert_array_equal(wide(a), wide(np.asarray(e).astype(a.dtype)))
        else:
            scale = max(1.0, float(np.abs(e).max(initial=0)))
            np.testing.assert_allclose(wide(a), np.asarray(e, np.float64), rtol=tolerance, atol=tolerance * scale)


PARAMETERS = [
    pytest.param(case, schema, id=f"{case.op}-{schema.since_version}" + (f"-{case.name}" if case.name else ""))
    for case in CASES
    for schema in schemas(case.op)
    if schema.since_version in case.versions and not schema.deprecated
]


@pytest.mark.parametrize("case, schema", PARAMETERS)
def test_results(case, schema):
    failures = []
    for types in assignments(case, schema):
        try:
            check(case, schema, types)
        except Exception as problem:
            failures.append(f"{ ({k: v.name for k, v in types.items()}) }: {type(problem).__name__}: {problem}")
    assert not failures, "\n".join(failures)

"""A model of one node in a given version and element type, run by treadle."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

NUMBERS = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu, "float4e2m1": ml_dtypes.float4_e2m1fn,
    "float6e2m3": ml_dtypes.float6_e2m3fn, "float6e3m2": ml_dtypes.float6_e3m2fn,
    "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2,
}  # fmt: skip
PROTO = {np.dtype(v): getattr(TensorProto, k.upper()) for k, v in NUMBERS.items()}
PROTO[np.dtype(object)] = TensorProto.STRING
# Half a unit in the last place of 1.0, doubled: the largest relative change by one rounding.
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def schemas(op, domain=""):
    """All versions of an operator, oldest first."""
    found = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == domain]
    return sorted(found, key=lambda s: s.since_version)


def types_of(schema, parameter="T"):
    """The numpy types that a schema's type parameter allows for tensors."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == parameter:
            names = [t[len("tensor(") : -1] for t in constraint.allowed_type_strs if t.startswith("tensor(")]
            return [np.dtype(NUMBERS[n]) for n in sorted(names) if n in NUMBERS]
    raise KeyError(parameter)


def run(op, version, inputs, outputs, attributes=None, domain=""):
    """Outputs of the node for `inputs` (None: left out); `outputs` are their numpy types, in order."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, names, results, domain=domain, **(attributes or {}))
    graph = helper.make_graph(
        [node],
        "one",
        [
            helper.make_tensor_value_info(n, PROTO[x.dtype], x.shape)
            for n, x in zip(names, inputs, strict=True)
            if x is not None
        ],
        [helper.make_tensor_value_info(n, PROTO[np.dtype(t)], None) for n, t in zip(results, outputs, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version)], ir_version=10)
    session = treadle.InferenceSession(model.SerializeToString())
    return session.run(None, {n: x for n, x in zip(names, inputs, strict=True) if x is not None})


def close(actual, expected, units=4):
    """`actual` is within `units` roundings of `expected` (any wider type), and of its largest element (which an
    operator's own sums may cancel); integers and infinities exactly.
    """
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    epsilon = EPSILON.get(actual.dtype.name)
    if epsilon is None:
        np.testing.assert_array_equal(actual.astype(np.float64), np.asarray(expected, np.float64))
        return
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(expected, np.float64).astype(actual.dtype).astype(np.float64)
    finite = np.abs(rounded[np.isfinite(rounded)])
    largest = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(actual.astype(np.float64), rounded, rtol=units * epsilon, atol=epsilon * largest)

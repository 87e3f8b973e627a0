"""Operators that move elements, for every version and every element type that the specification lists.

The expected result comes from positions: each case says with numpy which positions of the data stand in the result, and
the elements at these positions must come out, bit by bit. Position -1 is the zero (or empty string) of the type.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

NEWEST = onnx.defs.onnx_opset_version()


@dataclasses.dataclass
class Case:
    """One way to call an operator. `data` are the shapes of the inputs of type T, in order; `other` holds the other
    inputs by place; `expected` maps position arrays (one per entry of `data`) to those of the outputs."""

    op: str
    data: list[tuple[int, ...]]
    expected: Callable
    other: dict = dataclasses.field(default_factory=dict)
    attributes: dict = dataclasses.field(default_factory=dict)
    versions: range = range(1, 1000)
    outputs: int = 1
    name: str = ""
    type_name: str = "T"


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def scattered(data, index, updates):
    out = data.copy()
    out[index] = updates
    return out


def padded(mode, **options):
    def expected(p, *value):
        fill = value[0].reshape(()) if value else -1
        more = {"constant_values": fill} if mode == "constant" else {}
        return np.pad(p, [(1, 0), (2, 3)], mode=mode, **more, **options)

    return expected


def space_to_depth(p, b=2):
    n, c, h, w = p.shape
    return p.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


def depth_to_space(p, order, b=2):
    n, c, h, w = p.shape
    if order == "DCR":
        q = p.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        q = p.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return q.reshape(n, c // (b * b), h * b, w * b)


def reversed_sequences(p):
    out = p.copy()
    out[:2, 0] = p[1::-1, 0]
    out[:3, 1] = p[2::-1, 1]
    return out


def one_hot(values):
    out = np.full((3, 4), values[0])
    out[0, 1] = out[1, 3] = values[1]  # the third index is out of range
    return out


def triangle(keep, k):
    return lambda p: np.where(keep(np.ones_like(p), k) > 0, p, -1)


CASES = [
    Case("Reshape", [(2, 6)], lambda p: p.reshape(3, 4), attributes={"shape": [3, -1]}, versions=range(1, 5)),
    Case("Reshape", [(2, 6)], lambda p: p.reshape(2, 3, 2), other={1: ints(0, -1, 2)}, versions=range(5, 1000)),
    Case("Flatten", [(2, 3, 2)], lambda p: p.reshape(6, 2), attributes={"axis": 2}),
    Case("Squeeze", [(1, 3, 1)], lambda p: p.reshape(3, 1), attributes={"axes": [0]}, versions=range(1, 13)),
    Case("Squeeze", [(1, 3, 1)], lambda p: p.reshape(1, 3), other={1: ints(-1)}, versions=range(13, 1000)),
    Case("Squeeze", [(1, 3, 1)], lambda p: p.reshape(3), name="all"),
    Case("Unsqueeze", [(3,)], lambda p: p.reshape(1, 3, 1), attributes={"axes": [0, 2]}, versions=range(1, 13)),
    Case("Unsqueeze", [(3,)], lambda p: p.reshape(1, 3, 1), other={1: ints(-1, 0)}, versions=range(13, 1000)),
    Case("Transpose", [(2, 3, 4)], lambda p: p.transpose(2, 0, 1), attributes={"perm": [2, 0, 1]}),
    Case("Transpose", [(5, 7)], lambda p: p.T, name="reversed"),
    Case("Concat", [(2, 3), (2, 1), (2, 2)], lambda *p: np.concatenate(p, 1), attributes={"axis": 1}),
    Case("Split", [(2, 6)], lambda p: np.split(p, 3, 1), attributes={"axis": 1}, outputs=3, versions=range(2, 18)),
    Case(
        "Split",
        [(7, 2)],
        lambda p: (p[:3], p[3:6], p[6:]),
        attributes={"num_outputs": 3},
        outputs=3,
        versions=range(18, 1000),
    ),
    Case(
        "Split",
        [(5,)],
        lambda p: (p[:1], p[1:]),
        other={1: ints(1, 4)},
        outputs=2,
        versions=range(13, 1000),
        name="sizes",
    ),
    Case(
        "Slice",
        [(4, 5)],
        lambda p: p[1:3, -3:],
        attributes={"starts": [1, -3], "ends": [3, 1000]},
        versions=range(1, 10),
    ),
    Case(
        "Slice",
        [(4, 5)],
        lambda p: p[::-2, 1:4],
        other={1: ints(1000, 1), 2: ints(-1000, 4), 3: ints(0, 1), 4: ints(-2, 1)},
        versions=range(10, 1000),
    ),
    Case(
        "Slice",
        [(4, 5)],
        lambda p: p[2:2],
        other={1: ints(2, dtype=np.int32), 2: ints(2, dtype=np.int32)},
        versions=range(10, 1000),
        name="empty",
    ),
    Case("Gather", [(3, 4)], lambda p: p[:, [[3, -4]]], other={1: ints([3, -4])}, attributes={"axis": 1}),
    Case("Gather", [(3, 4)], lambda p: p[2], other={1: np.array(-1, np.int32)}, name="scalar"),
    Case(
        "GatherElements",
        [(3, 3)],
        lambda p: np.take_along_axis(p, ints([1, 2, 0], [2, 0, 0]), 0),
        other={1: ints([1, -1, 0], [2, 0, -3])},
    ),
    Case(
        "GatherElements",
        [(2, 3)],
        lambda p: np.take_along_axis(p, ints([1, 2], [0, 0]), 1),
        other={1: ints([1, 2], [0, 0], dtype=np.int32)},
        attributes={"axis": 1},
        name="last_axis",
    ),
    Case("GatherND", [(2, 2, 3)], lambda p: p[[0, 1], [1, 0]], other={1: ints([0, -1], [1, 0])}),
    Case(
        "GatherND",
        [(2, 3)],
        lambda p: p[[0, 1], [2, 0]],
        other={1: ints([2], [0])},
        attributes={"batch_dims": 1},
        versions=range(12, 1000),
        name="batch",
    ),
    Case(
        "Scatter",
        [(3, 2), (1, 2)],
        lambda d, u: scattered(d, ([2, 0], [0, 1]), u[0]),
        other={1: ints([2, 0])},
        versions=range(9, 11),
    ),
    Case(
        "ScatterElements", [(3, 2), (1, 2)], lambda d, u: scattered(d, ([2, 0], [0, 1]), u[0]), other={1: ints([-1, 0])}
    ),
    Case(
        "ScatterElements",
        [(5,), (3,)],
        lambda d, u: scattered(d, [1, 1, 4], u),
        other={1: ints(1, 1, 4)},
        name="last_wins",
    ),
    Case("ScatterND", [(4, 2), (2, 2)], lambda d, u: scattered(d, [3, 0], u), other={1: ints([3], [-4])}),
    Case("Pad", [(2, 3)], padded("constant"), attributes={"paddings": [1, 2, 0, 3]}, versions=range(1, 2)),
    Case("Pad", [(2, 3)], padded("edge"), attributes={"pads": [1, 2, 0, 3], "mode": "edge"}, versions=range(2, 11)),
    Case("Pad", [(2, 3)], padded("constant"), other={1: ints(1, 2, 0, 3)}, versions=range(11, 1000)),
    Case("Pad", [(2, 3), ()], padded("constant"), other={1: ints(1, 2, 0, 3)}, versions=range(11, 1000), name="value"),
    Case(
        "Pad",
        [(2, 3)],
        padded("reflect"),
        other={1: ints(1, 2, 0, 3)},
        attributes={"mode": "reflect"},
        versions=range(11, 1000),
        name="reflect",
    ),
    Case(
        "Pad",
        [(2, 3)],
        padded("wrap"),
        other={1: ints(1, 2, 0, 3)},
        attributes={"mode": "wrap"},
        versions=range(19, 1000),
        name="wrap",
    ),
    Case(
        "Pad",
        [(3, 4)],
        lambda p: p[:, 1:-1],
        other={1: ints(-1, -1), 3: ints(-1)},
        versions=range(18, 1000),
        name="crop",
    ),
    Case("Tile", [(2, 3)], lambda p: np.tile(p, (2, 3)), other={1: ints(2, 3)}, versions=range(6, 1000), type_name="T"),
    Case("Expand", [(3, 1)], lambda p: np.broadcast_to(p, (2, 3, 4)), other={1: ints(2, 1, 4)}),
    Case("Trilu", [(2, 3, 4)], triangle(np.triu, 1), other={1: np.array(1)}),
    Case("Trilu", [(4, 3)], triangle(np.tril, 0), attributes={"upper": 0}, name="lower"),
    Case("ReverseSequence", [(4, 2, 2)], reversed_sequences, other={1: ints(2, 3)}),
    Case("DepthToSpace", [(1, 8, 2, 3)], lambda p: depth_to_space(p, "DCR"), attributes={"blocksize": 2}),
    Case(
        "DepthToSpace",
        [(1, 8, 2, 3)],
        lambda p: depth_to_space(p, "CRD"),
        attributes={"blocksize": 2, "mode": "CRD"},
        versions=range(11, 1000),
        name="crd",
    ),
    Case("SpaceToDepth", [(2, 2, 4, 6)], space_to_depth, attributes={"blocksize": 2}),
    Case("Compress", [(3, 2)], lambda p: p[[0, 2]], other={1: np.array([True, False, True])}, attributes={"axis": 0}),
    Case("Compress", [(3, 2)], lambda p: p.ravel()[[1, 2]], other={1: np.array([False, True, True])}, name="flat"),
    Case("OneHot", [(2,)], one_hot, other={0: ints(1, -1, 7), 1: np.array(4)}, type_name="T3"),
    Case(
        "CenterCropPad",
        [(3, 4)],
        lambda p: np.pad(p[:, 1:3], [(1, 1), (0, 0)], constant_values=-1),
        other={1: ints(5, 2)},
    ),
    Case(
        "Resize",
        [(1, 1, 2, 3)],
        lambda p: p.repeat(2, 2).repeat(2, 3),
        type_name="T",
        other={1: ints(1, 1, 2, 2, dtype=np.float32)},
        versions=range(10, 11),
    ),
    Case(
        "Resize",
        [(2, 3)],
        lambda p: p.repeat(2, 0)[:, [0, 2]],
        type_name="T1",
        other={1: ints(dtype=np.float32), 2: ints(dtype=np.float32), 3: ints(4, 2)},
        attributes={"coordinate_transformation_mode": "align_corners", "nearest_mode": "round_prefer_ceil"},
        versions=range(11, 1000),
    ),
    Case(
        "Upsample",
        [(1, 1, 2, 2)],
        lambda p: p.repeat(2, 2).repeat(3, 3),
        versions=range(7, 9),
        attributes={"scales": [1.0, 1.0, 2.0, 3.0]},
    ),
    Case(
        "Upsample",
        [(1, 1, 2, 2)],
        lambda p: p.repeat(2, 2).repeat(3, 3),
        versions=range(9, 10),
        other={1: ints(1, 1, 2, 3, dtype=np.float32)},
    ),
    Case(
        "GridSample",
        [(1, 1, 2, 2)],
        lambda p: ints([[[3, 0, -1]]]),
        type_name="T1",
        versions=range(16, 1000),
        other={1: np.array([[[[0.5, 0.5], [-0.5, -0.5], [5, 0]]]], np.float32)},
        attributes={"mode": "nearest"},
    ),
    Case("Where", [(2,), (2,)], lambda a, b: ints(a[0], b[1]), other={0: np.array([True, False])}),
    Case(
        "MaxUnpool",
        [(1, 1, 1, 2)],
        lambda p: ints([[[-1, 0, -1, -1], [1, -1, -1, -1]]]),
        type_name="T1",
        other={1: ints([[[1, 4]]])},
        attributes={"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    Case(
        "TensorScatter",
        [(2, 4, 1), (2, 2, 1)],
        lambda d, u: scattered(d, ([[0], [1]], [[1, 2], [3, 0]]), u),
        other={2: ints(1, 3)},
        attributes={"mode": "circular", "axis": 1},
    ),
]


def schemas(op):
    found = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == ""]
    return sorted((s for s in found if s.since_version <= NEWEST), key=lambda s: s.since_version)


def element_types(schema, constraint):
    for row in schema.type_constraints:
        if row.type_param_str == constraint:
            names = [t[len("tensor(") : -1] for t in row.allowed_type_strs if t.startswith("tensor(")]
            return [getattr(TensorProto, name.upper()) for name in names]
    raise AssertionError(f"{schema.name}-{schema.since_version} has no constraint {constraint}")


def parameters():
    for case in CASES:
        for schema in schemas(case.op):
            if schema.since_version in case.versions and not schema.deprecated:
                label = f"{case.op}-{schema.since_version}" + (f"-{case.name}" if case.name else "")
                yield pytest.param(case, schema, id=label)


def elements(kind, count, start):
    """`count` values; neighbours differ, and the last one is the type's zero."""
    dtype = np.dtype(object) if kind == TensorProto.STRING else helper.tensor_dtype_to_np_dtype(kind)
    if kind == TensorProto.STRING:
        return np.array([f"s{start + i}" for i in range(count)] + [""], object)
    values = (np.arange(start, start + count) * 7 + 1) % (2 if kind == TensorProto.BOOL else 4)
    if kind in (TensorProto.UINT2, TensorProto.INT2):
        values %= 2
    out = np.zeros(count + 1, dtype)
    out[:count] = values.astype(np.float32).astype(dtype) if "float" in dtype.name else values.astype(dtype)
    return np.concatenate([out[:count], np.zeros(1, np.uint8 if dtype.itemsize == 1 else dtype).view(dtype)])


def bits(array):
    if array.dtype == object or array.dtype.kind in "US":
        return array.astype(object)
    return np.ascontiguousarray(array).view(np.uint8)


def check(case, schema, kind):
    shapes = case.data
    sizes = [int(np.prod(s, dtype=np.int64)) for s in shapes]
    pool = elements(kind, sum(sizes), 0)
    starts = np.cumsum([0, *sizes])
    positions = [np.arange(starts[i], starts[i + 1]).reshape(s) for i, s in enumerate(shapes)]
    places = [i for i in range(8) if i not in case.other]
    feeds = {f"i{places[i]}": pool[p.ravel()].reshape(p.shape) for i, p in enumerate(positions)}
    types = dict.fromkeys(feeds, kind)
    for place, value in case.other.items():
        feeds[f"i{place}"] = np.asarray(value)
        types[f"i{place}"] = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
    count = max(int(name[1:]) for name in feeds) + 1
    names = [f"i{i}" if f"i{i}" in feeds else "" for i in range(count)]
    outputs = [f"o{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, **case.attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, types[n], list(feeds[n].shape)) for n in names if n],
        [helper.make_tensor_value_info(o, kind, None) for o in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", schema.since_version)])
    found = treadle.InferenceSession(model.SerializeToString()).run(None, feeds)
    expected = case.expected(*positions)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    for got, want in zip(found, expected, strict=True):
        assert got.shape == np.shape(want)
        np.testing.assert_array_equal(bits(got), bits(pool[np.asarray(want)]))


@pytest.mark.parametrize(("case", "schema"), list(parameters()))
def test_elements(case, schema):
    failures = []
    for kind in element_types(schema, case.type_name):
        try:
            check(case, schema, kind)
        except Exception as problem:
            failures.append(f"{TensorProto.DataType.Name(kind)}: {problem}")
    assert not failures, "\n".join(failures)

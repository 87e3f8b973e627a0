"""Operators that pass values on, in every version, for every type that they allow: tensors, sequences and optionals."""

import itertools
import re

import numpy as np
import onnx
import pytest
from one_node import schemas, treadle
from onnx import TensorProto, helper
from test_element_types import bits, elements

INT64, BOOL = (helper.make_tensor_type_proto(t, None) for t in (TensorProto.INT64, TensorProto.BOOL))


def sample(text, start=0):
    """The type that a schema writes as `text`, and a value of it."""
    kind, inner = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    if kind == "tensor":
        element = getattr(TensorProto, inner.upper())
        return helper.make_tensor_type_proto(element, [3]), elements(element, 3, start)[:3]
    type_proto, value = sample(inner, start)
    if kind == "seq":
        return helper.make_sequence_type_proto(type_proto), [value, sample(inner, start + 1)[1]]
    assert kind == "optional"
    return helper.make_optional_type_proto(type_proto), value


def same(found, expected):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
        return
    assert found.shape == expected.shape
    np.testing.assert_array_equal(bits(found), bits(expected))


def info(name, type_proto):
    return helper.make_value_info(name, type_proto)


def run(version, nodes, inputs, outputs):
    """`inputs`: name to (type, value); `outputs`: name to type, which may be unknown (None)."""
    results = [info(n, t) if t else onnx.ValueInfoProto(name=n) for n, t in outputs.items()]
    graph = helper.make_graph(nodes, "g", [info(n, t) for n, (t, _) in inputs.items()], results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    session = treadle.InferenceSession(model.SerializeToString())
    return session.run(None, {n: v for n, (_, v) in inputs.items()})


def types_of(schema, parameter, kinds=("tensor", "seq", "optional")):
    for row in schema.type_constraints:
        if row.type_param_str == parameter:
            return [t for t in row.allowed_type_strs if t.startswith(kinds)]
    raise KeyError(parameter)


def cases(op, parameter):
    return [pytest.param(s, t, id=f"{s.since_version}-{t}") for s in schemas(op) for t in types_of(s, parameter)]


@pytest.mark.parametrize("schema, text", cases("If", "V"))
def test_if(schema, text):
    (t, x), (_, y) = sample(text), sample(text, 5)
    branches = {
        name: helper.make_graph([], name, [], [info(value, t)])
        for name, value in (("then_branch", "x"), ("else_branch", "y"))
    }
    node = helper.make_node("If", ["c"], ["z"], **branches)
    for condition in (True, False):
        inputs = {"c": (BOOL, np.array(condition)), "x": (t, x), "y": (t, y)}
        same(run(schema.since_version, [node], inputs, {"z": t})[0], x if condition else y)


@pytest.mark.parametrize("schema, text", cases("Loop", "V"))
def test_loop(schema, text):
    t, x = sample(text)
    tensor = text.startswith("tensor")
    results = ["c", "s", "s"] if tensor else ["c", "s"]
    types = {"i": INT64, "c": BOOL, "s": t}
    body = helper.make_graph([], "body", [info(n, types[n]) for n in "ics"], [info(n, types[n]) for n in results])
    node = helper.make_node("Loop", ["m", "", "x"], ["z", "all"] if tensor else ["z"], body=body)
    outputs = {"z": t} | ({"all": helper.make_tensor_type_proto(t.tensor_type.elem_type, None)} if tensor else {})
    found = run(schema.since_version, [node], {"m": (INT64, np.array(2)), "x": (t, x)}, outputs)
    same(found[0], x)
    if tensor:
        same(found[1], np.stack([x, x]))


@pytest.mark.parametrize("schema, text", cases("Scan", "V"))
def test_scan(schema, text):
    t, x = sample(text)
    element = t.tensor_type.elem_type
    row = helper.make_tensor_type_proto(element, [])
    body = helper.make_graph([], "body", [info("s", t), info("r", row)], [info("s", t), info("r", row)])
    old = schema.since_version == 8  # with a batch and lengths
    inputs = {"s0": (t, x), "rows": (helper.make_tensor_type_proto(element, [3]), x[::-1].copy())}
    if old:
        inputs = {n: (helper.make_tensor_type_proto(element, [1, 3]), v[None]) for n, (_, v) in inputs.items()}
    node = helper.make_node("Scan", [""] * old + list(inputs), ["z", "all"], body=body, num_scan_inputs=1)
    any_shape = helper.make_tensor_type_proto(element, None)
    z, rows = run(schema.since_version, [node], inputs, {"z": any_shape, "all": any_shape})
    same(z, inputs["s0"][1])
    same(rows, inputs["rows"][1])


IDENTITY = [
    pytest.param(s, t, id=f"{s.since_version}-{t}")
    for s in schemas("Identity")
    for t in types_of(s, "T" if s.since_version < 14 else "V")
]


@pytest.mark.parametrize("schema, text", IDENTITY)
def test_identity(schema, text):
    t, x = sample(text)
    same(run(schema.since_version, [helper.make_node("Identity", ["x"], ["y"])], {"x": (t, x)}, {"y": t})[0], x)


@pytest.mark.parametrize("schema, text", cases("Shape", "T") + cases("Size", "T"))
def test_shape_and_size(schema, text):
    t, x = sample(text)
    x = np.stack([x, x])
    t.tensor_type.shape.dim.add().dim_value = 3
    t.tensor_type.shape.dim[0].dim_value = 2
    node = helper.make_node(schema.name, ["x"], ["y"])
    (y,) = run(schema.since_version, [node], {"x": (t, x)}, {"y": INT64})
    np.testing.assert_array_equal(y, [2, 3] if schema.name == "Shape" else 6)


@pytest.mark.parametrize("schema, text", cases("Optional", "V"))
def test_optional(schema, text):
    t, x = sample(text)
    whole = helper.make_optional_type_proto(t)
    y, has = run(
        schema.since_version,
        [helper.make_node("Optional", ["x"], ["y"]), helper.make_node("OptionalHasElement", ["y"], ["has"])],
        {"x": (t, x)},
        {"y": whole, "has": BOOL},
    )
    same(y, x)
    assert has
    node = helper.make_node("Optional", [], ["y"], type=t)
    assert run(schema.since_version, [node], {}, {"y": whole}) == [None]


@pytest.mark.parametrize("schema, text", cases("OptionalGetElement", "O"))
def test_optional_get_element(schema, text):
    t, x = sample(text)
    whole = t.optional_type.elem_type if text.startswith("optional") else t
    node = helper.make_node("OptionalGetElement", ["x"], ["y"])
    same(run(schema.since_version, [node], {"x": (t, x)}, {"y": whole})[0], x)
    if text.startswith("optional"):
        with pytest.raises((treadle.RuntimeException, treadle.InvalidArgument)):
            run(schema.since_version, [node], {"x": (t, None)}, {"y": whole})


@pytest.mark.parametrize("schema, text", cases("OptionalHasElement", "O"))
def test_optional_has_element(schema, text):
    t, x = sample(text)
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    assert run(schema.since_version, [node], {"x": (t, x)}, {"y": BOOL})[0]
    if text.startswith("optional"):
        assert not run(schema.since_version, [node], {"x": (t, None)}, {"y": BOOL})[0]


@pytest.mark.parametrize("schema, text", cases("SequenceMap", "V"))
def test_sequence_map(schema, text):
    (t, x), (floats, pair) = sample(text), sample("seq(tensor(float))")
    sequence = text.startswith("seq")
    element = t.sequence_type.elem_type if sequence else t
    body = helper.make_graph(
        [], "body", [info("f", floats.sequence_type.elem_type), info("e", element)], [info("e", element)]
    )
    node = helper.make_node("SequenceMap", ["pair", "x"], ["y"], body=body)
    inputs = {"pair": (floats, pair), "x": (t, x)}
    (y,) = run(schema.since_version, [node], inputs, {"y": helper.make_sequence_type_proto(element)})
    same(y, x if sequence else [x, x])


@pytest.mark.parametrize("schema, text", cases("SplitToSequence", "T"))
@pytest.mark.parametrize("kind", [None, np.int32, np.int64], ids=str)
def test_split_to_sequence(schema, text, kind):
    t, x = sample(text)
    inputs = {"x": (t, x)}
    if kind:
        lengths = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [2])
        inputs["n"] = (lengths, np.array([2, 1], kind))
    whole = helper.make_sequence_type_proto(helper.make_tensor_type_proto(t.tensor_type.elem_type, None))
    node = helper.make_node("SplitToSequence", list(inputs), ["y"])
    (y,) = run(schema.since_version, [node], inputs, {"y": whole})
    same(y, [x[:2], x[2:]] if kind else [x[i : i + 1] for i in range(3)])


def castable(schema):
    """Each type once as the source and once as the target."""
    sources, targets = types_of(schema, "T1"), types_of(schema, "T2")
    return sorted({(a, "tensor(float)") for a in sources} | {("tensor(float)", b) for b in targets})


@pytest.mark.parametrize("schema", schemas("CastLike"), ids=lambda s: str(s.since_version))
def test_cast_like_is_cast(schema):
    for a, b in castable(schema):
        (t, x), (like, y) = sample(a), sample(b)
        if a == "tensor(string)":
            x = np.array(["1", "-2.5", "1e3"], object)
        number = like.tensor_type.elem_type
        nodes = [helper.make_node("CastLike", ["x", "y"], ["z"]), helper.make_node("Cast", ["x"], ["w"], to=number)]
        z, w = run(schema.since_version, nodes, {"x": (t, x), "y": (like, y)}, {"z": like, "w": like})
        same(z, w)


WIDTHS = {1: "uint8 int8 bool float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e8m0"}
WIDTHS |= {2: "uint16 int16 float16 bfloat16", 4: "uint32 int32 float", 8: "uint64 int64 double complex64"}
WIDTHS |= {16: "complex128", "four bits": "uint4 int4 float4e2m1", "two bits": "uint2 int2"}


@pytest.mark.parametrize(
    "a, b", [pair for names in WIDTHS.values() for pair in itertools.product(names.split(), repeat=2)]
)
def test_bit_cast(a, b):
    allowed = types_of(schemas("BitCast")[0], "T1")
    if f"tensor({a})" not in allowed or f"tensor({b})" not in allowed:
        pytest.skip("the operator has no such type")
    t, x = sample(f"tensor({a})")
    to = getattr(TensorProto, b.upper())
    target = helper.make_tensor_type_proto(to, [3])
    (y,) = run(26, [helper.make_node("BitCast", ["x"], ["y"], to=to)], {"x": (t, x)}, {"y": target})
    narrow = {"four bits": 0x0F, "two bits": 0x03}
    mask = next((m for k, m in narrow.items() if a in WIDTHS[k].split()), 0xFF)
    np.testing.assert_array_equal(bits(y) & mask, bits(x) & mask)

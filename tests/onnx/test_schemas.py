"""Every operator record against the onnx package's registry: all versions, every field."""

import re

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

# Operators of other domains, which other engines' exporters write.
EXTENSIONS = {("com.microsoft", "DynamicQuantizeLSTM")}
MAX_ARGUMENTS = 2**31 - 1


def ours() -> dict:
    return {
        (op["domain"], op["name"], version["since"]): version
        for op in treadle.operators()
        for version in op["versions"]
    }


def theirs() -> dict:
    return {(s.domain, s.name, s.since_version): s for s in onnx.defs.get_all_schemas_with_history()}


OURS, THEIRS = ours(), theirs()


def formals(parameters) -> list[dict]:
    return [
        {
            "name": p.name,
            "type": p.type_str,
            "option": p.option.name.lower(),
            "homogeneous": p.is_homogeneous or p.option.name != "Variadic",
            "min_arity": p.min_arity,
        }
        for p in parameters
    ]


def float_value(value):
    """As our JSON has floats: rounded to float32; infinities and NaN are texts there."""
    return np.float32(value)


def default_value(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.TENSOR:
        array = numpy_helper.to_array(value)
        return {
            "type": onnx.TensorProto.DataType.Name(value.data_type).lower(),
            "dims": list(array.shape),
            "values": [v if isinstance(v, str) else np.float32(v) for v in array.ravel().tolist()],
        }
    if attribute.type == onnx.AttributeProto.STRING:
        return value.decode()
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [v.decode() for v in value]
    if attribute.type == onnx.AttributeProto.FLOAT:
        return float_value(value)
    if attribute.type == onnx.AttributeProto.FLOATS:
        return [float_value(v) for v in value]
    return list(value) if attribute.type == onnx.AttributeProto.INTS else value


def their_attributes(schema) -> dict:
    attributes = {}
    for name, a in schema.attributes.items():
        attributes[name] = {"type": a.type.name.lower(), "required": a.required}
        if a.default_value.type != onnx.AttributeProto.UNDEFINED:
            attributes[name]["default"] = default_value(a.default_value)
    return attributes


def our_attributes(version) -> dict:
    def value(attribute):
        default = attribute["default"]
        if attribute["type"] == "float":
            return np.float32(default)
        if attribute["type"] == "floats":
            return [np.float32(v) for v in default]
        if attribute["type"] == "tensor":
            return default | {
                "values": [v if default["type"] == "string" else np.float32(v) for v in default["values"]]
            }
        return default

    return {
        a["name"]: {"type": a["type"], "required": a["required"]} | ({"default": value(a)} if "default" in a else {})
        for a in version["attributes"]
    }


def type_name(text: str) -> str:
    """Some schemas name the values of a map by their element type, as their tensors are meant."""
    return re.sub(r"map\((\w+),(\w+)\)", r"map(\1,tensor(\2))", text.replace(" ", ""))


def their_types(schema) -> dict:
    return {t.type_param_str: sorted(map(type_name, t.allowed_type_strs)) for t in schema.type_constraints}


def our_types(version) -> dict:
    return {t["name"]: sorted(map(type_name, t["types"])) for t in version["types"]}


def most(count: int):
    return None if count == MAX_ARGUMENTS else count


def test_number_of_versions():
    assert len(THEIRS) == 659


def test_no_version_is_missing_or_invented():
    own = {key for key in OURS if key[:2] not in EXTENSIONS}
    assert sorted(set(THEIRS) - own) == []
    assert sorted(own - set(THEIRS)) == []


@pytest.mark.parametrize(
    "key", sorted(set(OURS) & set(THEIRS)), ids=lambda key: f"{key[0] or 'ai.onnx'}.{key[1]}-{key[2]}"
)
def test_every_field(key):
    version, schema = OURS[key], THEIRS[key]
    assert version["deprecated"] == schema.deprecated
    assert version["inputs"] == formals(schema.inputs)
    assert version["outputs"] == formals(schema.outputs)
    assert our_attributes(version) == their_attributes(schema)
    assert our_types(version) == their_types(schema)
    arguments = [version[k] for k in ("min_inputs", "max_inputs", "min_outputs", "max_outputs")]
    assert arguments == [schema.min_input, most(schema.max_input), schema.min_output, most(schema.max_output)]


def test_extensions_are_there():
    assert {key[:2] for key in OURS} >= EXTENSIONS


def test_random_operators_are_marked():
    random = {op["name"] for op in treadle.operators() if op["effects"] == "random"}
    assert random == {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }

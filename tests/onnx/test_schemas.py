"""Every operator record against the onnx package's registry, all versions, every field; and the records of operators
that only onnxruntime has against its own registry.
"""

import re

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

# Operators that the onnx package does not know: onnxruntime's own, by domain and name...
EXTENSIONS: set[tuple[str, str]] = set()
EXTENDED_DOMAINS = {"com.microsoft"}
# ... and versions of its own in the standard's domain.
EXTENDED_VERSIONS = {("", "LayerNormalization", 1), ("", "SimplifiedLayerNormalization", 1)}
# ... experiments in the standard's domain, which ended with operator set 10 or became operators.
EXPERIMENTS = ("Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh")
EXTENDED_VERSIONS |= {("", name, since) for name in EXPERIMENTS for since in (1, 10)}
EXTENDED_VERSIONS |= {("", "MeanVarianceNormalization", 1), ("", "ThresholdedRelu", 1)}
# Operators of onnxruntime's whose sparse operand is a constant here, which a model reads as the dense tensor it stands for:
# the operand has the type of the others.
OF_SPARSE_CONSTANTS = {("com.microsoft", "SparseToDenseMatMul", 1)}
# Arguments and attributes of onnxruntime's operators that treadle refuses: they came with onnxruntime 1.32, most of them for
# CUDA alone (docs/contrib-operators.md).
REFUSED = {
    "CausalConvWithState": {
        "input_channel_offset",
        "input_channels",
        "state_channels_last",
        "state_length",
        "state_update",
        "state_update_capacity",
    },
    "GatedAdd": {"gate_weight"},
    "GroupQueryAttention": {"k_norm_epsilon", "q_norm_epsilon", "query_seqlens"},
    "MoE": {"swiglu_limit_after_activation"},
    "QMoE": {"swiglu_limit_after_activation"},
}
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


def is_newer(key, opset: int) -> bool:
    """Whether a schema is newer than `opset`: development wheels of the onnx package know more sets than releases."""
    return key[0] == "" and key[2] > opset


def is_extension(key) -> bool:
    return key[:2] in EXTENSIONS or key[0] in EXTENDED_DOMAINS or key in EXTENDED_VERSIONS


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
    assert len([key for key in THEIRS if not is_newer(key, 28)]) == 659


def test_no_version_is_missing_or_invented():
    own = {key for key in OURS if not is_extension(key) and not is_newer(key, onnx.defs.onnx_opset_version())}
    assert sorted(set(THEIRS) - own) == []
    assert sorted(own - set(THEIRS)) == []


def check_fields(version, schema):
    assert version["inputs"] == formals(schema.inputs)
    assert version["outputs"] == formals(schema.outputs)
    assert our_attributes(version) == their_attributes(schema)
    assert our_types(version) == their_types(schema)
    arguments = [version[k] for k in ("min_inputs", "max_inputs", "min_outputs", "max_outputs")]
    assert arguments == [schema.min_input, most(schema.max_input), schema.min_output, most(schema.max_output)]


def names(keys):
    return {"argvalues": keys, "ids": [f"{domain or 'ai.onnx'}.{name}-{version}" for domain, name, version in keys]}


@pytest.mark.parametrize("key", **names(sorted(set(OURS) & set(THEIRS))))
def test_every_field(key):
    version, schema = OURS[key], THEIRS[key]
    assert version["deprecated"] == schema.deprecated
    check_fields(version, schema)


class OnnxruntimeSchema:
    """A schema of onnxruntime under the names of the onnx package's."""

    def __init__(self, schema):
        self.schema = schema
        refused = REFUSED.get(schema.name, set()) if schema.domain == "com.microsoft" else set()
        self.inputs, self.outputs = (
            [Formal(p) for p in list(side) if p.name not in refused] for side in (schema.inputs, schema.outputs)
        )
        self.max_input = schema.max_input - (len(list(schema.inputs)) - len(self.inputs))
        self.max_output = schema.max_output - (len(list(schema.outputs)) - len(self.outputs))
        self.attributes = {name: Attribute(a) for name, a in schema.attributes.items() if name not in refused}

    def __getattr__(self, name):
        return getattr(self.schema, name)


class Formal:
    def __init__(self, formal):
        self.name, self.type_str, self.option = formal.name, formal.typeStr, formal.option
        self.is_homogeneous = formal.isHomogeneous
        self.min_arity = 1


class Attribute:
    def __init__(self, attribute):
        self.type, self.required = attribute.type, attribute.required
        self.default_value = onnx.AttributeProto.FromString(attribute._default_value)


def onnxruntime_schemas() -> dict:
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    return {(s.domain, s.name, s.since_version): s for s in state.get_all_operator_schema()}


def of_onnxruntimes_own() -> list:
    return sorted(key for key in OURS if is_extension(key) and key[:2] not in EXTENSIONS)


@pytest.mark.parametrize("key", **names([key for key in of_onnxruntimes_own() if key not in OF_SPARSE_CONSTANTS]))
def test_every_field_of_onnxruntimes_own(key):
    check_fields(OURS[key], OnnxruntimeSchema(onnxruntime_schemas()[key]))


@pytest.mark.parametrize("key", **names(sorted(OF_SPARSE_CONSTANTS)))
def test_every_field_but_the_sparse_operands_type(key):
    version, schema = OURS[key], OnnxruntimeSchema(onnxruntime_schemas()[key])
    dense = {formal.type_str for formal in schema.outputs}
    for formal in (*schema.inputs, *schema.outputs):
        formal.type_str = "T"
    assert version["inputs"] == formals(schema.inputs)
    assert version["outputs"] == formals(schema.outputs)
    assert our_attributes(version) == their_attributes(schema)
    assert our_types(version) == {"T": their_types(schema)[dense.pop()]}


def test_extensions_are_there():
    assert {key[:2] for key in OURS} >= EXTENSIONS


def test_random_operators_are_marked():
    random = {op["name"] for op in treadle.operators() if op["effects"] == "random"}
    assert random == {
        "Bernoulli",
        "BiasDropout",
        "BitmaskBiasDropout",
        "BitmaskDropout",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }

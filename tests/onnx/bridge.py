"""treadle under the names of the onnx package's functions, for corpora of recorded calls.

A replay of such a corpus imports this module and calls

    check(kind, data, context, flags)
    infer_shapes(data, check_type, strict_mode, data_prop) -> bytes
    parse(kind, text) -> bytes

Each raises where the onnx package would.
"""

from __future__ import annotations

import onnx
import treadle


class CheckFailed(Exception):
    pass


# Models that onnx.checker refuses, while treadle runs them and warns.
_ERRORS_OF_ONNX = {"operator-replaced"}


def infer_shapes(data: bytes, check_type: bool, strict_mode: bool, data_prop: bool) -> bytes:
    return treadle.infer_shapes(data, check_type, strict_mode, data_prop, rules="onnx")


def check(kind: str, data: bytes, context: dict | None, flags: list[bool]) -> None:
    """kind: the function of onnx.checker. Data that is not a whole model is put into one."""
    full, skip_opset_compatibility, custom_domains = [*flags, False, False, False][:3]
    if kind.startswith("check_model"):
        model = data
    else:
        model = _WRAPPERS[kind](data, _model_around(context or {})).SerializeToString()
    problems = treadle.check(
        model, full, custom_domains=custom_domains, skip_opset_compatibility=skip_opset_compatibility
    )
    errors = [str(p) for p in problems if p.severity == "error" or p.code in _ERRORS_OF_ONNX]
    if errors:
        raise CheckFailed("\n".join(errors))


def parse(kind: str, text: str) -> bytes:
    """kind: the function of onnx.parser."""
    return getattr(treadle, kind)(text)


def _model_around(context: dict) -> onnx.ModelProto:
    model = onnx.ModelProto(ir_version=context.get("ir_version", onnx.IR_VERSION))
    imports = context.get("opset_imports", {"": onnx.defs.onnx_opset_version()})
    if model.ir_version >= 3:
        model.opset_import.extend(onnx.helper.make_opsetid(*item) for item in imports.items())
    model.graph.name = "bridge"
    return model


def _in_value_info(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.input.add().ParseFromString(data)
    return model


def _in_tensor(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    tensor = model.graph.initializer.add()
    tensor.ParseFromString(data)
    tensor.name = tensor.name or "bridge"
    return model


def _in_sparse_tensor(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    sparse = model.graph.sparse_initializer.add()
    sparse.ParseFromString(data)
    sparse.values.name = sparse.values.name or "bridge"
    return model


def _in_attribute(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    model.opset_import.append(onnx.helper.make_opsetid("bridge", 1))
    node = model.graph.node.add(op_type="Bridge", domain="bridge", output=["bridge"])
    node.attribute.add().ParseFromString(data)
    return model


def _in_node(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    node = model.graph.node.add()
    node.ParseFromString(data)
    for name in dict.fromkeys(filter(None, node.input)):
        model.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        model.graph.input[-1].type.tensor_type.shape.SetInParent()
    return model


def _in_graph(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.ParseFromString(data)
    return model


def _in_function(data: bytes, model: onnx.ModelProto) -> onnx.ModelProto:
    model.functions.add().ParseFromString(data)
    return model


_WRAPPERS = {
    "check_value_info": _in_value_info,
    "check_tensor": _in_tensor,
    "check_sparse_tensor": _in_sparse_tensor,
    "check_attribute": _in_attribute,
    "check_node": _in_node,
    "check_graph": _in_graph,
    "check_function": _in_function,
}

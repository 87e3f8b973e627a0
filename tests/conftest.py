"""Counts which rows of the specification the Python tests run: (operator, version, type parameter, type).

The table goes to the file that TREADLE_TYPE_TABLE names; ./dev test prints it. Types are read off the models that
sessions are made of.
"""

import collections
import contextlib
import json
import os
import pathlib
import signal

import pytest

# A shell that starts tests in the background has them ignore interrupts, which tests of Ctrl-C send to themselves.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests neither read nor write the user's folder of compiled loops.
os.environ.setdefault("TREADLE_JIT_CACHE", "off")

try:
    import onnx
    import treadle
    from google.protobuf.message import DecodeError
except ImportError:
    onnx = treadle = None

LARGEST = 1 << 20  # bytes of a model whose types are counted
NOT_RUN = {"ImageDecoder"}

seen: set[tuple] = set()


def schemas() -> dict:
    by_name = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        by_name[schema.domain, schema.name].append(schema)
    return {key: sorted(versions, key=lambda s: s.since_version) for key, versions in by_name.items()}


def type_text(t) -> str:
    """As schemas write types; empty for unknown types."""
    kind = t.WhichOneof("value")
    if kind is None:
        return ""
    inner = getattr(t, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        name = onnx.TensorProto.DataType.Name(inner.elem_type).lower()
        return f"{kind.removesuffix('_type')}({name})"
    if kind == "map_type":
        key, value = onnx.TensorProto.DataType.Name(inner.key_type).lower(), type_text(inner.value_type)
        return f"map({key},{value[len('tensor(') : -1]})"
    return f"{'seq' if kind == 'sequence_type' else 'optional'}({type_text(inner.elem_type)})"


def visit(graph, opsets, types, known) -> None:
    for value in [*graph.input, *graph.value_info, *graph.output]:
        types[value.name] = type_text(value.type)
    for tensor in graph.initializer:
        types[tensor.name] = f"tensor({onnx.TensorProto.DataType.Name(tensor.data_type).lower()})"
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        versions = [s for s in known.get((domain, node.op_type), []) if s.since_version <= opsets.get(domain, 0)]
        for formals, names in (
            ((versions[-1].inputs, node.input), (versions[-1].outputs, node.output)) if versions else ()
        ):
            for i, name in enumerate(names if formals else []):
                formal = formals[min(i, len(formals) - 1)]
                seen.add((domain, node.op_type, versions[-1].since_version, formal.type_str, types.get(name, "")))
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                visit(attribute.g, opsets, dict(types), known)


def record(model, known) -> None:
    if isinstance(model, (str, os.PathLike)):
        model = pathlib.Path(model).read_bytes() if pathlib.Path(model).stat().st_size <= LARGEST else b""
    if not isinstance(model, (bytes, bytearray)) or not 0 < len(model) <= LARGEST:
        return
    if bytes(model[4:8]) == b"ORTM":  # onnxruntime's own format
        return
    try:
        proto = onnx.load_from_string(bytes(model))
    except DecodeError:  # a text
        proto = onnx.load_from_string(treadle.parse_model(bytes(model).decode()))
    # Some tests run models for which onnx's inference fails.
    with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError):
        proto = onnx.shape_inference.infer_shapes(proto)
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
    visit(proto.graph, opsets, {}, known)


def rows(known):
    """Every row of the schemas that treadle runs."""
    for (domain, name), versions in known.items():
        for schema in versions:
            if schema.deprecated or name in NOT_RUN:
                continue
            used = {p.type_str for p in [*schema.inputs, *schema.outputs]}
            for constraint in schema.type_constraints:
                if constraint.type_param_str in used:
                    for text in constraint.allowed_type_strs:
                        key = (domain, name, schema.since_version, constraint.type_param_str)
                        yield *key, text.replace(" ", "")


def table() -> str:
    missing, total, count = collections.Counter(), 0, 0
    for row in rows(schemas()):
        total += 1
        if row not in seen:
            missing[row[1]] += 1
        count += row in seen
    lines = [f"rows of the specification (operator, version, type) with a case: {count} of {total}"]
    if missing:
        lines.append("without: " + ", ".join(f"{name} {n}" for name, n in missing.most_common()))
    return "\n".join(lines)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session) -> None:
    if treadle is None or not os.environ.get("TREADLE_TYPE_TABLE"):
        return
    known, node_args = schemas(), treadle.InferenceSession._node_args

    # Records the models that could be loaded. Does not wrap __init__: its signature and its caller's place are tested.
    def recording(self, *arguments):
        if not hasattr(self, "_inputs_meta"):
            record(self._model_path or self._model_bytes, known)
        return node_args(self, *arguments)

    treadle.InferenceSession._node_args = recording


def pytest_sessionfinish(session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["types"] = json.dumps(sorted(seen))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    seen.update(map(tuple, json.loads(getattr(node, "workeroutput", {}).get("types", "[]"))))


def pytest_unconfigure(config) -> None:
    path = os.environ.get("TREADLE_TYPE_TABLE")
    if path and treadle is not None and not hasattr(config, "workeroutput"):
        pathlib.Path(path).write_text(table() + "\n", encoding="utf-8")

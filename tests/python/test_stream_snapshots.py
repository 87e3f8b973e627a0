"""A snapshot belongs to one model and one stream: streams that compute something else refuse it, streams that compute
the same take it, however the model was written down, whatever the session's options are, and in another process."""

from __future__ import annotations

import copy
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.inliner
import pytest
import treadle
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from treadle.serving.streams import Step, Streams

HEAD = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '

SCAN = """g (float[T,2] x, float[2] s, float gain) => (float[T,2] y, float[2] sN) <float[2] w = {0.5, 0.25}> {
  sN, y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] xi) => (float[2] hn, float[2] yi) {
    m = Sub (h, w)  a = Add (m, xi)  l = LeakyRelu <alpha = 0.1> (a)  hn = Tanh (l)  yi = Mul (hn, gain)
  }> (s, x)
}"""

STEPS = """g (float[1,2,1,4] x, float[1,2,P,4] past_keys, bool loud) => (float[1,2,1,4] y, float[1,2,Q,4] present_keys)
  <float[4,4] w = {1,2,3,4, 5,6,7,8, 9,8,7,6, 5,4,3,2}, float[1] scale = {0.125}> {
  k = MatMul (x, w)
  present_keys = Concat <axis = 2> (past_keys, k)
  t = Transpose <perm = [0, 1, 3, 2]> (present_keys)
  scores = MatMul (x, t)
  scaled = own.Scaled <power = 2.0> (scores, scale)
  weights = Softmax <axis = -1> (scaled)
  a = MatMul (weights, present_keys)
  y = If (loud) <
    then_branch = t () => (float[1,2,1,4] p) { b = Exp (a)  p = Sub (b, a) },
    else_branch = e () => (float[1,2,1,4] q) { q = Neg (a) }>
}
<domain: "own", opset_import: ["" : 21]>
Scaled <power> (v, by) => (r) { e = Constant <value_float: float = @power> ()  b = Pow (by, e)  r = Mul (v, b) }"""

OVER_TIME = """g (float[1,3,T] x) => (float[1,2,U] y, float z) <float[2,3,3] w = {
    1,2,3, 4,5,6, 7,8,9, 9,8,7, 6,5,4, 3,2,1}, float[2] b = {0.5, -0.5}, int64 axis = {2}> {
  c = Conv <pads = [2, 0], strides = [1]> (x, w, b)
  s = CumSum (c, axis)
  t = Tanh (s)
  p = AveragePool <kernel_shape = [2], strides = [2]> (t)
  y = Add (p, p)
  z = Constant <value_float = 2.0> ()
}"""

MODELS = {
    "scan": (SCAN, {"time": {"x": 0}, "hop": 4, "bind": {"gain": np.float32(2)}}, {"x": (11, 2)}),
    "steps": (STEPS, {"bind": {"loud": np.array(True)}}, {"x": (1, 2, 1, 4)}),
    "over time": (OVER_TIME, {"time": {"x": 2}}, {"x": (1, 3, 9)}),
}


def parsed(text: str) -> onnx.ModelProto:
    return onnx.load_model_from_string(treadle.parse_model(HEAD + text))


def session(model: onnx.ModelProto | bytes | str, **entries) -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    for name, value in entries.items():
        options.add_session_config_entry(f"treadle.{name}", value)
    return treadle.InferenceSession(model.SerializeToString() if isinstance(model, onnx.ModelProto) else model, options)


def fed(shapes: dict) -> dict:
    random = np.random.default_rng(0)
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def snapshot_of(kind: str) -> bytes:
    text, roles, shapes = MODELS[kind]
    stream = session(parsed(text)).stream(**roles)
    stream.push(**fed(shapes))
    return stream.save()


# --- Different streams are refused


def graphs(model: onnx.ModelProto) -> list:
    """The graph, its bodies, and the functions: whatever has nodes."""
    found = [model.graph, *model.functions]
    for graph in found:
        for node in graph.node:
            found += [a.g for a in node.attribute if a.type == AttributeProto.GRAPH]
    return found


OTHER_OP = {"Tanh": "Sigmoid", "Exp": "Abs", "Neg": "Exp", "Add": "Mul", "Mul": "Add", "Sub": "Add", "LeakyRelu": "Elu",
            "Softmax": "LogSoftmax", "AveragePool": "LpPool", "Pow": "Mul"}  # fmt: skip


def change_attribute(a: AttributeProto) -> bool:
    if a.ref_attr_name:
        return False
    if a.type == AttributeProto.INT:
        a.i += 1
    elif a.type == AttributeProto.FLOAT:
        a.f *= 1.5
    elif a.type == AttributeProto.INTS:
        a.ints[0], a.ints[-1] = a.ints[-1], a.ints[0] + (len(a.ints) == 1)
    else:
        return False
    return True


def changed_tensor(tensor: TensorProto) -> TensorProto:
    values = numpy_helper.to_array(tensor).copy()
    values.reshape(-1)[values.size // 2] += 1
    return numpy_helper.from_array(values, tensor.name)


def variants(model: onnx.ModelProto):
    """(change, model) for each single change of an operator, an attribute, an order, a constant, a type."""

    def places():
        other = copy.deepcopy(model)
        return other, graphs(other)

    for g, graph in enumerate(graphs(model)):
        for n, node in enumerate(graph.node):
            if node.op_type in OTHER_OP:
                other, found = places()
                found[g].node[n].op_type = OTHER_OP[node.op_type]
                yield f"{OTHER_OP[node.op_type]} for {node.op_type}", other
            if len(node.input) > 1 and node.input[0] != node.input[1]:
                other, found = places()
                inputs = found[g].node[n].input
                inputs[0], inputs[1] = inputs[1], inputs[0]
                yield f"operands of {node.op_type} swapped", other
            for a, attribute in enumerate(node.attribute):
                other, found = places()
                if change_attribute(found[g].node[n].attribute[a]):
                    yield f"attribute {attribute.name} of {node.op_type}", other
        for t in range(len(getattr(graph, "initializer", ()))):
            other, found = places()
            found[g].initializer[t].CopyFrom(changed_tensor(found[g].initializer[t]))
            yield f"constant {found[g].initializer[t].name}", other


@pytest.mark.parametrize("kind", list(MODELS))
def test_models_that_differ_in_one_place(kind):
    text, roles, _ = MODELS[kind]
    model, snapshot = parsed(text), snapshot_of(kind)
    tried = 0
    for what, other in variants(model):
        try:
            stream = session(other).stream(**roles)
        except Exception:  # noqa: S112: not every change leaves a model
            continue
        with pytest.raises(treadle.InvalidArgument, match=r"belongs to (another model|a model with other weights)"):
            stream.load(snapshot)
            raise AssertionError(f"{what}: taken")
        tried += 1
    assert tried >= 8, tried


@pytest.mark.parametrize("elements", [16_000, 300_000])
def test_one_weight_of_many(elements):
    """Up to 64 KB each weight counts; of more the weights at the beginning, in the middle and at the end."""

    def stream(values):
        nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "s"], ["sN"])]
        info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [elements]) for name in ("x", "s", "sN")]
        graph = helper.make_graph(nodes, "g", info[:2], info[2:], [numpy_helper.from_array(values, "w")])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return session(made).stream(state={"s": "sN"})

    values = np.linspace(0, 1, elements, dtype=np.float32)
    snapshot = stream(values).save()
    stream(values).load(snapshot)
    for place in (0, elements // 3, elements - 1) if elements < 100_000 else (0, elements // 2, elements - 1):
        other = values.copy()
        other[place] += 1
        with pytest.raises(treadle.InvalidArgument, match="other weights"):
            stream(other).load(snapshot)
        stream(other).load(snapshot, other_weights=True)
    with pytest.raises(treadle.InvalidArgument, match="another model"):
        session(parsed(SCAN)).stream(**MODELS["scan"][1]).load(snapshot, other_weights=True)


@pytest.mark.parametrize(
    ("kind", "roles", "message"),
    [
        ("scan", {"hop": 2}, "another stream"),
        ("scan", {"context": 1}, "another stream"),
        ("scan", {"bind": {"gain": np.float32(3)}}, "bound inputs hold something else"),
        ("scan", {"bind": {}}, "another stream"),
        ("scan", {"state": {}, "find_state": False}, "another stream"),
        ("steps", {"bind": {"loud": np.array(False)}}, "bound inputs hold something else"),
        ("over time", {"hop": 1}, "another stream"),
    ],
)
def test_streams_that_were_made_otherwise(kind, roles, message):
    text, own, _ = MODELS[kind]
    other = session(parsed(text)).stream(**own | roles)
    with pytest.raises(treadle.InvalidArgument, match=message):
        other.load(snapshot_of(kind))


def test_pools_and_servers_refuse_as_streams_do():
    other = SCAN.replace("Tanh", "Sigmoid")
    roles = MODELS["scan"][1]
    stream = session(parsed(SCAN)).stream(**roles)
    stream.push(x=np.ones((5, 2), np.float32))
    with pytest.raises(treadle.InvalidArgument, match="the stream belongs to another model"):
        session(parsed(other)).streams(4, **roles).join("a", stream)
    louder = session(parsed(SCAN)).streams(4, **roles | {"bind": {"gain": np.float32(9)}})
    with pytest.raises(treadle.InvalidArgument, match="bound inputs hold something else"):
        louder.join("a", stream)
    session(parsed(SCAN)).streams(4, **roles).join("a", stream)
    server = Streams(session(parsed(other)), capacity=4, **roles)
    [answer] = server.step([Step("a", {"x": np.ones((4, 2), np.float32)}, start=True, state=stream.save())])
    assert "another model" in str(answer)


def test_a_snapshot_of_an_earlier_format_says_so():
    stream = session(parsed(SCAN)).stream(**MODELS["scan"][1])
    for earlier in (b"treadle stream 3\n" + bytes(64), b"treadle stream 9\n"):
        with pytest.raises(treadle.InvalidProtobuf, match="of another format than this version of treadle reads"):
            stream.load(earlier)
    with pytest.raises(treadle.InvalidProtobuf, match="no snapshot of a stream"):
        stream.load(b"nonsense")


# --- Equal streams are accepted


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Other names for all values and nodes inside of the model, and the nodes of bodies named."""
    other = copy.deepcopy(model)
    kept = {v.name for v in [*other.graph.input, *other.graph.output]}

    def name(old: str) -> str:
        return old if not old or old in kept else f"/renamed/{old}"

    for graph in graphs(other):
        is_function = isinstance(graph, onnx.FunctionProto)
        for node in graph.node:
            node.name = f"node {node.op_type}"
            for list_of in (node.input, node.output):
                list_of[:] = [name(n) for n in list_of]
        if is_function:
            for list_of in (graph.input, graph.output):
                list_of[:] = [name(n) for n in list_of]
            continue
        for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
            value.name = name(value.name)
    return other


@pytest.mark.parametrize("kind", list(MODELS))
def test_other_names_other_files_other_options(kind, tmp_path):
    text, roles, shapes = MODELS[kind]
    model, snapshot = parsed(text), snapshot_of(kind)
    onnx.save(model, tmp_path / "external.onnx", save_as_external_data=True, size_threshold=0)
    (tmp_path / "model.onnxtxt").write_text(HEAD + text)
    inlined = onnx.inliner.inline_local_functions(model)
    entries = [{"optimize": "0"}, {"tier": "reference"}, {"jit": "always"}, {"jit": "off"}, {"threads": "1"}]
    same = {
        "again": session(model),
        "other names": session(renamed(model)),
        "functions in place": session(inlined),
        "external data": session(str(tmp_path / "external.onnx")),
        "text": session(str(tmp_path / "model.onnxtxt")),
        **{str(entry): session(model, **entry) for entry in entries},
    }
    stream = session(model).stream(**roles)
    stream.load(snapshot)
    following = fed(shapes)
    expected = stream.push(**following)
    for what, made in same.items():
        other = made.stream(**roles)
        other.load(snapshot), what
        found = other.push(**following)
        for a, b in zip(*(x if isinstance(x, list) else [x] for x in (expected, found)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=what)


def test_another_process(tmp_path):
    (tmp_path / "snapshot").write_bytes(snapshot_of("scan"))
    here = str(pathlib.Path(__file__).parent)
    code = (
        f"import sys; sys.path.insert(0, {here!r}); from test_stream_snapshots import *\n"
        "stream = session(parsed(SCAN)).stream(**MODELS['scan'][1])\n"
        f"stream.load(open({str(tmp_path / 'snapshot')!r}, 'rb').read()); print(stream.pending)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "3", done.stderr


def test_files_of_onnxruntime(tmp_path):
    """A model that onnxruntime wrote down without changing it is the same model."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    text, roles, _ = MODELS["scan"]
    model = parsed(text)
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session(str(tmp_path / "model.ort")).stream(**roles).load(snapshot_of("scan"))

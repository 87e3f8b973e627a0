"""treadle.open_sizes and `treadle convert --open`: fixed sizes of inputs that become symbols."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared")) / "models"
TOOL = ROOT / "build" / "bin" / "treadle"
sys.path.insert(0, str(ROOT / "fuzz"))

from random_programs.generator import make_program  # noqa: E402


def graph(inputs, outputs, body, opset=17):
    return treadle.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {body}')


def sizes(model):
    session = treadle.InferenceSession(model)
    return {value.name: value.shape for value in [*session.get_inputs(), *session.get_outputs()]}


def targets(model):
    """Shapes that Reshape nodes of the graph state, by constant."""
    model = onnx.load_model_from_string(model)
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    return [constants[n.input[1]].tolist() for n in model.graph.node if n.op_type == "Reshape"]


# --- what follows


@pytest.mark.parametrize(
    ("shape", "target", "becomes"),
    [
        ([1, 10, 64], [1, 640], [0, 640]),
        ([1, 10, 64], [1, -1], [0, 640]),
        ([1, 10, 64], [1, 10, 8, 8], [0, 10, 8, 8]),
        ([1, 10, 64], [-1, 64], [-1, 64]),
        ([1, 10, 64], [10, 64], [-1, 64]),
        ([1, 1, 64], [1, 1, 64], [0, 1, 64]),
        ([16, 10], [16, 1, 10], [0, 1, 10]),
        ([16, 16, 4], [16, 64], [0, 64]),
        ([6, 5], [30], [-1]),
    ],
)
def test_a_reshape_follows(shape, target, becomes):
    text = ",".join(map(str, shape))
    rank = f"float[{','.join('abcd'[: len(target)])}] y"
    model = graph(
        f"float[{text}] x",
        rank,
        f"<int64[{len(target)}] s = {{{','.join(map(str, target))}}}> {{ y = Reshape (x, s) }}",
    )
    opened = treadle.open_sizes(model, "x:0=batch")
    assert targets(opened) == [becomes]
    x = np.random.default_rng(1).standard_normal([3 * shape[0], *shape[1:]]).astype(np.float32)
    y = treadle.InferenceSession(opened).run(None, {"x": x})[0]
    assert np.array_equal(y.ravel(), x.ravel())


def test_two_sizes_are_taken_apart_again():
    """[B,T,3] becomes [B*T,3] and [B,T,3]; the second shape cannot be said with 0 and -1."""
    model = graph(
        "float[2,5,3] x",
        "float[2,5,3] y",
        "<int64[2] one = {10, 3}, int64[3] two = {2, 5, 3}> { a = Reshape (x, one) b = Tanh (a) y = Reshape (b, two) }",
    )
    opened = treadle.open_sizes(model, "x:0=batch", "x:1=time")
    assert sizes(opened) == {"x": ["batch", "time", 3], "y": ["batch", "time", 3]}
    x = np.random.default_rng(1).standard_normal((4, 7, 3)).astype(np.float32)
    assert np.allclose(treadle.InferenceSession(opened).run(None, {"x": x})[0], np.tanh(x), atol=1e-6)


def lstm(batch, hidden=4, first=0.0):
    """As torch exports an LSTM with batch_first and no first state: the states are constants."""
    rng = np.random.default_rng(0)

    def tensor(name, shape):
        return onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)

    state = onnx.numpy_helper.from_array(np.full((1, batch, hidden), first, np.float32), "h0")
    tensors = [
        tensor("w", (1, 4 * hidden, 3)),
        tensor("r", (1, 4 * hidden, hidden)),
        tensor("b", (1, 8 * hidden)),
        state,
    ]
    tensors.append(onnx.numpy_helper.from_array(np.array([batch, 6 * hidden]), "flat"))
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        onnx.helper.make_node("LSTM", ["t", "w", "r", "b", "", "h0", "h0"], ["all"], hidden_size=hidden),
        onnx.helper.make_node("Transpose", ["all"], ["a"], perm=[2, 0, 1, 3]),
        onnx.helper.make_node("Reshape", ["a", "flat"], ["y"]),
    ]
    value = onnx.helper.make_tensor_value_info
    inputs, outputs = [value("x", 1, [batch, 6, 3])], [value("y", 1, [batch, 6 * hidden])]
    made = onnx.helper.make_graph(nodes, "g", inputs, outputs, tensors)
    made.value_info.append(value("t", 1, [6, batch, 3]))
    return onnx.helper.make_model(made, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])


@pytest.mark.parametrize("batch", [1, 3])
def test_states_of_a_recurrence_follow(batch):
    model = lstm(batch, first=0.5)
    opened = treadle.open_sizes(model, "x:0=batch")
    assert isinstance(opened, onnx.ModelProto)
    assert [d.dim_param or d.dim_value for d in opened.graph.value_info[0].type.tensor_type.shape.dim] == [
        6,
        "batch",
        3,
    ]
    session = treadle.InferenceSession(opened.SerializeToString())
    assert session.get_outputs()[0].shape == ["batch", 24]
    x = np.random.default_rng(1).standard_normal((2 * batch + 1, 6, 3)).astype(np.float32)
    single = treadle.InferenceSession(lstm(1, first=0.5).SerializeToString())
    expected = np.concatenate([single.run(None, {"x": row[None]})[0] for row in x])
    for engine in (session, onnxruntime.InferenceSession(opened.SerializeToString())):
        assert np.allclose(engine.run(None, {"x": x})[0], expected, atol=1e-5)


LOOP = """<int64 n = {{4}}, float[{0},2] start, int64[2] s = {{{0}, 2}}> {{
  y = Loop (n, , start) <body = step (int64 i, bool c, float[{0},2] h) => (bool d, float[{0},2] k) {{
    d = Identity (c)
    a = Add (h, x)
    k = Reshape (a, s)
  }}>
}}"""


@pytest.mark.parametrize("batch", [1, 3])
def test_states_and_shapes_in_a_body_follow(batch):
    zeros = LOOP.format(batch).replace("start,", f"start = {{{','.join(['0'] * 2 * batch)}}},")
    opened = treadle.open_sizes(graph(f"float[{batch},2] x", f"float[{batch},2] y", zeros), "x:0=batch")
    assert sizes(opened) == {"x": ["batch", 2], "y": ["batch", 2]}
    body = onnx.load_model_from_string(opened).graph.node[-1].attribute[0].g
    assert [d.dim_param for d in body.input[2].type.tensor_type.shape.dim] == ["batch", ""]
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    assert np.array_equal(treadle.InferenceSession(opened).run(None, {"x": x})[0], 4 * x)


FUNCTION = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
g (float[1,6] x, float[1,6] z) => (float[1,2,3] y, float[1,2,3] w) { y = own.cut (x) w = own.cut (z) }
<domain: "own", opset_import: ["" : 17]> cut (a) => (b) { s = Constant <value = int64[3] {1, 2, 3}> () b = Reshape (a, s) }"""


def test_a_function_follows_where_all_its_calls_agree():
    model = treadle.parse_model(FUNCTION)
    opened = treadle.open_sizes(model, "x:0=batch", "z:0=batch")
    assert sizes(opened)["y"] == sizes(opened)["w"] == ["batch", 2, 3]
    assert treadle.InferenceSession(opened).run(
        ["y"], {"x": np.ones((4, 6), np.float32), "z": np.ones((4, 6), np.float32)}
    )


# --- what stands in the way

REFUSED = {
    "two axes of one size": ("float[1,64] x", "<int64[3] s = {1,1,64}> { y = Reshape (x, s) }", "axis 0 or 1"),
    "a row of a table": (
        "float[3,2] x",
        "<float[3,2] t = {1,2,3,4,5,6}> { y = Add (x, t) }",
        "its entries there differ",
    ),
    "the only entry": ("float[1,4] x", "<int64 i = {0}> { y = Gather <axis = 0> (x, i) }", "picks entry 0"),
    "the last entry": (
        "float[5,4] x",
        "<int64 i = {4}> { y = Gather <axis = 0> (x, i) }",
        "was the last one of axis 0",
    ),
    "an axis that goes": ("float[1,4] x", "<int64[1] a = {0}> { y = Squeeze (x, a) }", "takes out axis 0"),
    "the whole axis": ("float[5,4] x", "<int64[1] f = {1}, int64[1] t = {5}> { y = Slice (x, f, t) }", "ends at 5"),
    "all in order": ("float[5] x", "<int64[1] k = {5}> { y, i = TopK (x, k) }", "was all of axis 0"),
    "an iteration each": (
        "float[5] x",
        """<int64 n = {5}, float z = {0}> { y = Loop (n, , z) <body = b (int64 i, bool c, float h) => (bool d, float k) {
          d = Identity (c) e = Gather (x, i) k = Add (h, e) }> }""",
        'makes 5 iterations, as many as "x" has entries',
    ),
    "weights": ("float[2,3] x", "<float[2] w = {1,1}> { y = MatMul (w, x) }", "MatMul"),
    "rows that differ": (
        "float[2,3] x",
        "<float[2,1] t = {1,2}> { y = Concat <axis = 1> (x, t) }",
        "its entries there differ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_names_what_stands_in_the_way(name):
    inputs, body, message = REFUSED[name]
    model = graph(inputs, "float y", body)
    with pytest.raises(treadle.InvalidGraph, match=message) as error:
        treadle.open_sizes(model, "x:0=batch")
    assert 'in the way of "batch"' in str(error.value) and "  /" in str(error.value)


WRONG = {
    "frames": "expected INPUT:AXIS=SYMBOL",
    "x=batch": "expected INPUT:AXIS=SYMBOL",
    "x:0=": "expected INPUT:AXIS=SYMBOL",
    "x:0=7": "expected a word",
    "xs:0=batch": 'no input "xs", did you mean "x"',
    "x:2=batch": "found 2|expected -2 to 1|is 2",
    "x:1=batch": 'open already: its size is "T"',
    "x:0=R": '"R" already names the size 4 of axis 1 of "y"',
}


@pytest.mark.parametrize("size", WRONG)
def test_names_what_is_asked_wrongly(size):
    model = graph("float[2,T] x", "float[2,R] y", "<int64[2] s = {0, 4}> { a = Reshape (x, s) y = Abs (a) }")
    with pytest.raises(treadle.InvalidArgument, match=WRONG[size]):
        treadle.open_sizes(model, size)


def test_one_symbol_is_one_size():
    model = graph("float[2] x, float[3] z", "float[2] y, float[3] w", "{ y = Abs (x) w = Abs (z) }")
    with pytest.raises(treadle.InvalidArgument, match="is to be the size 2 of another axis, and 3"):
        treadle.open_sizes(model, "x:0=n", "z:0=n")
    assert sizes(treadle.open_sizes(model, "x:0=n", "z:-1=m"))["w"] == ["m"]


# --- models

FIXED = [
    ("arname_encoder_bigru", "batch", 1),
    ("dksplit_qdq_bilstm", "batch_size", 1),
    ("os_rk4_vdp", "B", 1),
    ("silero_scan_op15", "T", 6),
    ("tf_while_newton", "unk__1288", 6),
    ("torch_bert_small", "batch", 1),
    ("torch_bilstm_tagger", "time", 6),
    ("torch_while_deq", "batch", 1),
    ("trace_packed_bilstm", "B", 6),
    ("ts_greedy_attention", "B", 1),
    ("ts_gru_generate", "B", 6),
]


def with_fixed_size(path, symbol, size, folder):
    """The model for one size, with everything folded that follows from it, and the axes that had the symbol."""
    model = onnx.load(path)
    axes = []
    for info in [*model.graph.input, *model.graph.output]:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.dim_param != symbol:
                continue
            dim.dim_value = size
            if info in model.graph.input:
                axes.append(f"{info.name}:{axis}={symbol}")
    del model.graph.value_info[:]
    onnx.save(model, folder / "fixed.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "folded.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(folder / "fixed.onnx"), options, providers=["CPUExecutionProvider"])
    return folder / "folded.onnx", axes


def draw(session, sizes, rng):
    feeds = {}
    for value in session.get_inputs():
        shape = [sizes.get(d, 24) if not isinstance(d, int) else d for d in value.shape]
        kind = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(bool)": bool}.get(value.type, np.int64)
        numbers = rng.standard_normal(shape) if kind is np.float32 else rng.integers(1, 5, shape)
        feeds[value.name] = numbers.astype(kind)
    return feeds


@pytest.mark.parametrize(("name", "symbol", "size"), FIXED)
def test_a_model_that_was_fixed_is_opened_again(name, symbol, size, tmp_path):
    path = SHARED / name / "model.onnx"
    if not path.exists():
        pytest.skip("the shared models are not here")
    folded, axes = with_fixed_size(path, symbol, size, tmp_path)
    opened = treadle.InferenceSession(treadle.open_sizes(folded, *axes))
    original = treadle.InferenceSession(path)
    rng = np.random.default_rng(1)
    for other in (size, 2 * size, 3 * size + 1):
        feeds = draw(original, {symbol: other}, rng)
        for expected, found in zip(original.run(None, feeds), opened.run(None, feeds), strict=True):
            assert expected.shape == found.shape
            assert np.allclose(expected, found, rtol=1e-2, atol=1e-3, equal_nan=True)


@pytest.mark.filterwarnings("ignore:Loop .* has no cond")
def test_programs_keep_their_results():
    """A size of random programs either opens, and the results for the old size stay, or something is named."""
    opened = 0
    for seed in range(80):
        model, feeds = make_program(seed, 21)
        for value in model.graph.input:
            dims = value.type.tensor_type.shape.dim
            if not dims or not dims[0].dim_value:
                continue
            try:
                changed = treadle.open_sizes(model.SerializeToString(), f"{value.name}:0=opened")
            except (treadle.InvalidGraph, treadle.NotImplemented) as error:
                assert "in the way" in str(error) or "default" in str(error)
                continue
            opened += 1
            expected = outcome(model.SerializeToString(), feeds[0])
            assert outcome(changed, feeds[0]) == expected, f"seed {seed}, {value.name}"
    assert opened > 20


def outcome(model, feeds):
    """The results as texts. A loop without iterations takes sizes of rows from types, where an opened size is 0."""
    try:
        results = treadle.InferenceSession(model).run(None, feeds)
        return ["empty" if getattr(value, "size", 1) == 0 else repr(value) for value in results]
    except treadle.EngineError as error:
        return type(error)


# --- the command


def convert(*arguments):
    return subprocess.run([TOOL, "convert", *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(not TOOL.exists(), reason="the tool is not built")
def test_the_command_says_what_changed_and_what_runs(tmp_path):
    onnx.save(lstm(1), tmp_path / "m.onnx")
    done = convert(tmp_path / "m.onnx", tmp_path / "o.onnx", "--open", "x:0=batch")
    assert done.returncode == 0, done.stderr
    assert "(LSTM): input 5 is spread to [1,batch,1]" in done.stdout
    assert "(Reshape): shape [1,24] becomes [0,24]" in done.stdout
    assert done.stdout.endswith("batch=1: the same bits as before\nbatch=2: runs\nbatch=3: runs\n")
    assert sizes(tmp_path / "o.onnx")["y"] == ["batch", 24]


@pytest.mark.skipif(not TOOL.exists(), reason="the tool is not built")
def test_the_command_writes_nothing_if_a_node_stands_in_the_way(tmp_path):
    inputs, body, message = REFUSED["the last entry"]
    (tmp_path / "m.onnx").write_bytes(graph(inputs, "float y", body))
    done = convert(tmp_path / "m.onnx", tmp_path / "o.onnx", "--open", "x:0=batch")
    assert done.returncode == 1 and message in done.stderr
    assert not (tmp_path / "o.onnx").exists()

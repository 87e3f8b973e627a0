"""RNN, GRU and LSTM against plain loops: random attributes, versions, types and optional inputs."""

import os

import draws
import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

COUNT = 2000 if os.environ.get("TREADLE_TEST_LONG") else 150
BLOCK = 25


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_draws(first):
    for seed in range(first, first + BLOCK):
        case = draws.draw(seed)
        results = treadle.InferenceSession(case.model()).run(None, case.feeds())
        draws.check(case, results)


def test_draws_cover_what_they_should():
    seen = set()
    for seed in range(COUNT):
        case = draws.draw(seed)
        seen |= {(case.op, case.version), case.dtype.name, case.attributes.get("direction")}
        seen |= {name.lower() for name in case.attributes.get("activations", [])}
        seen |= {name for name, value in case.inputs.items() if value is None}
    assert seen >= {(op, version) for op, versions in draws.VERSIONS.items() for version in versions}
    assert seen >= {name.lower() for name in draws.NAMES}
    assert seen >= {"float32", "float64", "float16", "bfloat16", "B", "sequence_lens", "initial_h", "initial_c", "P"}


def single(op, attributes, inputs, outputs, version=14):
    case = draws.Draw(op, version, np.dtype(np.float32), attributes, inputs, set(), outputs, {})
    return treadle.InferenceSession(case.model()).run(None, case.feeds())


def ones(*shape):
    return np.ones(shape, np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def test_thresholded_relu_keeps_the_threshold_itself():
    x = np.array([[[0.5]], [[np.nextafter(np.float32(0.5), np.float32(0))]]], np.float32)
    inputs = {"X": x, "W": ones(1, 1, 1), "R": zeros(1, 1, 1)}
    (y,) = single("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.5]}, inputs, ["Y"])
    assert y.ravel().tolist() == [0.5, 0.0]


def test_lists_run_on_through_the_second_direction():
    """Relu takes no alpha, so the second direction's LeakyRelu gets the first entry of the list."""
    inputs = {"X": -ones(1, 1, 1), "W": ones(2, 1, 1), "R": zeros(2, 1, 1)}
    attributes = {"direction": "bidirectional", "activations": ["Relu", "LeakyRelu"], "activation_alpha": [0.25]}
    (y,) = single("RNN", attributes, inputs, ["Y"])
    assert y.ravel().tolist() == [0.0, -0.25]


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("LeakyRelu", -1.0, -0.01),
        ("ThresholdedRelu", 0.75, 0.0),
        ("HardSigmoid", 1.0, 0.7),
        ("Elu", -1.0, np.expm1(-1.0)),
        ("Affine", 0.3, 0.3),
    ],
)
def test_defaults_of_activations(name, x, expected):
    inputs = {"X": ones(1, 1, 1) * np.float32(x), "W": ones(1, 1, 1), "R": zeros(1, 1, 1)}
    (y,) = single("RNN", {"activations": [name]}, inputs, ["Y"])
    np.testing.assert_allclose(y.ravel(), [expected], rtol=1e-6)


def test_clip_does_not_bound_the_input_of_h():
    """c grows to 3 under clip 0.5; h = o * Affine(c) shows it unclipped."""
    inputs = {"X": zeros(1, 1, 1), "W": zeros(1, 4, 1), "R": zeros(1, 4, 1), "B": None, "sequence_lens": None,
              "initial_h": None, "initial_c": 6 * ones(1, 1, 1), "P": None}  # fmt: skip
    attributes = {"clip": 0.5, "activations": ["Sigmoid", "Tanh", "Affine"]}
    (h,) = single("LSTM", attributes, inputs, ["", "Y_h"])
    np.testing.assert_allclose(h.ravel(), [0.5 * 3.0], rtol=1e-6)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("length", "entry"), [(4, 1), (-1, 0)])
def test_sequence_length_out_of_range_names_the_entry(op, length, entry):
    gates = draws.GATES[op]
    lengths = np.full(2, 3, np.int32)
    lengths[entry] = length
    inputs = {"X": ones(3, 2, 1), "W": ones(1, gates, 1), "R": ones(1, gates, 1), "B": None, "sequence_lens": lengths}
    with pytest.raises(Exception, match=rf"sequence_lens\[{entry}\] is {length}, expected 0 to 3"):
        single(op, {}, inputs, ["Y"])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["ScaledTanh"]}, "activation_alpha has no value for ScaledTanh"),
        ({"activations": ["ScaledTanh"], "activation_alpha": [1.0]}, "activation_beta has no value for ScaledTanh"),
        ({"activations": ["Swish"]}, "holds 'Swish', expected the name of an activation"),
        ({"direction": "bidirectional", "activations": ["Tanh"]}, "activations has 1 names, expected 2"),
        ({"direction": "backwards"}, "direction is 'backwards'"),
        ({"hidden_size": 3}, "hidden_size is 3, expected the last size of R"),
        ({"layout": 2}, "layout is 2, expected 0 or 1"),
        ({"clip": -1.0}, "clip is -1"),
        ({"direction": "foward"}, "direction is 'foward'"),
    ],
)
def test_bad_attributes(attributes, message):
    inputs = {"X": ones(3, 2, 1), "W": ones(1, 2, 1), "R": ones(1, 2, 2)}
    with pytest.raises(Exception, match=message):
        single("RNN", attributes, inputs, ["Y"])


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("X", (3, 2), "X has shape"),
        ("W", (1, 8, 2), "W has shape"),
        ("R", (1, 7, 2), "R has shape"),
        ("B", (1, 8), "B has shape"),
        ("initial_h", (1, 3, 2), "initial_h has shape"),
        ("P", (1, 8), "P has shape"),
    ],
)
def test_bad_shapes(name, shape, message):
    inputs = {"X": ones(3, 2, 1), "W": ones(1, 8, 1), "R": ones(1, 8, 2), "B": None, "sequence_lens": None,
              "initial_h": None, "initial_c": None, "P": None}  # fmt: skip
    inputs[name] = ones(*shape)
    with pytest.raises(Exception, match=message):
        single("LSTM", {}, inputs, ["Y"])


def test_gru_1_needs_the_last_state():
    inputs = {"X": ones(3, 2, 1), "W": ones(1, 3, 1), "R": ones(1, 3, 1)}
    assert single("GRU", {}, inputs, ["Y", "Y_h"], version=1)[1].shape == (1, 2, 1)
    with pytest.raises(Exception, match="GRU"):
        single("GRU", {}, inputs, ["Y"], version=1)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("with_lengths", [False, True])
def test_one_session_runs_any_sizes(op, layout, with_lengths):
    """Sizes that vary become symbols in the plan; lengths and batches of 0 and 1 included."""
    rng = np.random.default_rng(layout)
    hidden, width, gates = 6, 4, draws.GATES[op]
    w = rng.uniform(-0.5, 0.5, (2, gates * hidden, width)).astype(np.float32)
    r = rng.uniform(-0.5, 0.5, (2, gates * hidden, hidden)).astype(np.float32)
    names = ["X", "W", "R", "", "lengths"] if with_lengths else ["X", "W", "R"]
    node = helper.make_node(op, names, ["Y", "Y_h"], hidden_size=hidden, layout=layout, direction="bidirectional")
    given = [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["b", "t", width] if layout else ["t", "b", width])]
    if with_lengths:
        given.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["b"]))
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("Y", "Y_h")]
    constants = [
        helper.make_tensor(k, TensorProto.FLOAT, v.shape, v.tobytes(), raw=True) for k, v in (("W", w), ("R", r))
    ]
    graph = helper.make_graph([node], "sizes", given, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    session = treadle.InferenceSession(model.SerializeToString())
    for steps, batch in [(5, 2), (7, 2), (3, 3), (0, 3), (1, 1), (4, 0), (0, 0), (6, 4)]:
        x = rng.uniform(-1, 1, (batch, steps, width) if layout else (steps, batch, width)).astype(np.float32)
        feeds = {"X": x}
        if with_lengths:
            feeds["lengths"] = rng.integers(0, steps + 1, batch).astype(np.int32)
        expected = draws.LOOPS[op](x, w, r, None, feeds.get("lengths"), direction="bidirectional", layout=layout)
        for actual, wanted in zip(session.run(None, feeds), expected, strict=False):
            assert actual.shape == wanted.shape, (steps, batch)
            np.testing.assert_allclose(actual, wanted, atol=2e-5)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_steps_past_all_lengths_do_not_run(op, layout, direction):
    """Known sizes first, then a plan for any number of steps. The limit on iterations counts iterations that run."""
    rng = np.random.default_rng(layout)
    hidden, width, gates = 5, 3, draws.GATES[op]
    directions = 2 if direction == "bidirectional" else 1
    w = rng.uniform(-0.5, 0.5, (directions, gates * hidden, width)).astype(np.float32)
    r = rng.uniform(-0.5, 0.5, (directions, gates * hidden, hidden)).astype(np.float32)
    b = rng.uniform(-0.5, 0.5, (directions, 2 * gates * hidden)).astype(np.float32)
    outputs = draws.OUTPUTS[op]
    node = helper.make_node(op, ["X", "W", "R", "B", "lengths", "h"], outputs, hidden_size=hidden, layout=layout,
                            direction=direction)  # fmt: skip
    given = [
        helper.make_tensor_value_info("X", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, None),
        helper.make_tensor_value_info("h", TensorProto.FLOAT, None),
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [helper.make_tensor(k, TensorProto.FLOAT, v.shape, v.tobytes(), raw=True)
                 for k, v in (("W", w), ("R", r), ("B", b))]  # fmt: skip
    graph = helper.make_graph([node], "short", given, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()
    session = treadle.InferenceSession(model)
    for steps, lengths in [(40, [2, 3, 0]), (40, [40, 1, 7]), (9, [1, 0, 4]), (25, [0, 0, 0]), (1, [0, 1, 1])]:
        batch = len(lengths)
        x = rng.uniform(-1, 1, (batch, steps, width) if layout else (steps, batch, width)).astype(np.float32)
        h = rng.uniform(-1, 1, (batch, directions, hidden) if layout else (directions, batch, hidden))
        feeds = {"X": x, "lengths": np.array(lengths, np.int32), "h": h.astype(np.float32)}
        options = treadle.RunOptions()
        options.iteration_limit = directions * max(*lengths, 1)
        expected = draws.LOOPS[op](x, w, r, b, feeds["lengths"], feeds["h"], direction=direction, layout=layout)
        for actual, wanted in zip(session.run(None, feeds, options), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, atol=2e-5)
            assert not actual[wanted == 0].any()
    assert session.counters()["plans"] == 2


def test_weights_captured_by_a_body():
    """An LSTM in the body of a Loop whose weights are values of the outer graph, one of them computed there."""
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, float[4, 2, 3] x, float[1, 20, 3] w, float[1, 20, 5] r, float[1, 2, 5] h0) => (float[1, 2, 5] h) {
      half = Constant <value = float {0.5}>()
      r_half = Mul(r, half)
      h = Loop <body = b (int64 i, bool k, float[1, 2, 5] h_in) => (bool k, float[1, 2, 5] h_out) {
        y, h_out = LSTM <hidden_size: int = 5>(x, w, r_half, , , h_in)
      }>(M, , h0)
    }"""
    rng = np.random.default_rng(2)
    shapes = {"x": (4, 2, 3), "w": (1, 20, 3), "r": (1, 20, 5), "h0": (1, 2, 5)}
    feeds = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    model = onnx.parser.parse_model(text).SerializeToString()
    (actual,) = treadle.InferenceSession(model).run(None, {"M": np.array(3), **feeds})
    h = feeds["h0"]
    for _ in range(3):
        h = draws.LOOPS["LSTM"](feeds["x"], feeds["w"], feeds["r"] * np.float32(0.5), initial_h=h)[1]
    np.testing.assert_allclose(actual, h, atol=1e-5)


@pytest.mark.parametrize("has_bias", [True, False])
def test_dynamic_quantize_lstm(has_bias):
    """8-bit weights against the same steps written out with exact integer sums."""
    rng = np.random.default_rng(5)
    steps, batch, width, hidden = 6, 3, 5, 8
    x = rng.uniform(-1, 1, (steps, batch, width)).astype(np.float32)
    w = rng.integers(-127, 128, (2, width, 4 * hidden)).astype(np.int8)
    r = rng.integers(-127, 128, (2, hidden, 4 * hidden)).astype(np.int8)
    bias = rng.uniform(-1, 1, (2, 8 * hidden)).astype(np.float32) * has_bias
    scales = {"W_scale": np.array([0.004, 0.005], np.float32), "R_scale": np.array([0.003, 0.004], np.float32)}
    zeros_ = {"W_zero_point": np.array([3, -4], np.int8), "R_zero_point": np.array([-2, 1], np.int8)}
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["X", "W", "R", "B" if has_bias else "", "", "", "", "", "W_scale", "W_zero_point", "R_scale", "R_zero_point"],
        ["Y", "Y_h", "Y_c"], domain="com.microsoft", hidden_size=hidden, direction="bidirectional",
    )  # fmt: skip
    constants = {"W": w, "R": r, **({"B": bias} if has_bias else {}), **scales, **zeros_}
    kinds = {np.dtype(np.int8): TensorProto.INT8, np.dtype(np.float32): TensorProto.FLOAT}
    graph = helper.make_graph(
        [node], "quantized", [helper.make_tensor_value_info("X", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("Y", "Y_h", "Y_c")],
        [helper.make_tensor(k, kinds[v.dtype], v.shape, v.tobytes(), raw=True) for k, v in constants.items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()

    def product(a, weights, scale, zero):
        low, high = min(a.min(initial=0), 0), max(a.max(initial=0), 0)
        step = np.float32((np.float32(high) - np.float32(low)) / np.float32(255)) or np.float32(1)
        offset = np.float32(np.rint(np.clip(-low / step, 0, 255)))
        q = np.clip(np.rint(a / step) + offset, 0, 255).astype(np.int64) - int(offset)
        return (q @ (weights.astype(np.int64) - int(zero))) * (float(step) * float(scale))

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    y = np.zeros((steps, 2, batch, hidden))
    finals = []
    for d in range(2):
        h, c = np.zeros((batch, hidden), np.float32), np.zeros((batch, hidden), np.float32)
        rows = x.reshape(-1, width)
        projected = product(rows, w[d], scales["W_scale"][d], zeros_["W_zero_point"][d]).reshape(steps, batch, -1)
        projected = projected + bias[d][: 4 * hidden] + bias[d][4 * hidden :]
        for t in reversed(range(steps)) if d else range(steps):
            g = projected[t] + product(h, r[d], scales["R_scale"][d], zeros_["R_zero_point"][d])
            i, o, f, candidate = np.split(g, 4, axis=1)
            c = (sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)).astype(np.float32)
            h = (sigmoid(o) * np.tanh(c)).astype(np.float32)
            y[t, d] = h
        finals.append((h, c))
    results = treadle.InferenceSession(model).run(None, {"X": x})
    expected = [y, np.stack([h for h, _ in finals]), np.stack([c for _, c in finals])]
    for actual, wanted in zip(results, expected, strict=True):
        # A state that rounds to the other side moves by one of 255 levels.
        np.testing.assert_allclose(actual, wanted, atol=0.02)

"""weights="f16": the same bits as a model whose recurrent weights were rounded to float16 before."""

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _model(nodes, inputs, outputs, weights):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()],
        [info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _rounded(model, *names):
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if tensor.name in names:
            w = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(w.astype(np.float16).astype(np.float32), tensor.name))
    return made


def _run(model, feed, weights, **entries):
    options = treadle.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(model, options, weights=weights).run(None, feed)


def _same(model, rounded, feed, differs=True):
    for jit in ("off", "always"):
        for optimize in ("0", "1"):
            found = _run(model, feed, "f16", jit=jit, optimize=optimize)
            want = _run(rounded, feed, "f32", jit=jit, optimize=optimize)
            for a, b in zip(want, found, strict=True):
                np.testing.assert_array_equal(a, b)
            plain = _run(model, feed, None, jit=jit, optimize=optimize)
            assert all(np.array_equal(a, b) for a, b in zip(plain, found, strict=True)) != differs


def _recurrent(op, hidden, batch, steps=5, inputs=24, scale=0.3, **attributes):
    rng = np.random.default_rng(hidden + batch)
    d = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = GATES[op] * hidden
    weights = {
        "w": (rng.standard_normal((d, rows, inputs)) * scale).astype(np.float32),
        "r": (rng.standard_normal((d, rows, hidden)) * scale).astype(np.float32),
        "b": (rng.standard_normal((d, 2 * rows)) * scale).astype(np.float32),
    }
    feed = {"x": rng.standard_normal((steps, batch, inputs)).astype(np.float32)}
    names = ["x", "w", "r", "b"]
    if attributes.pop("lengths", False):
        feed["n"] = rng.integers(1, steps, batch).astype(np.int32)
        names.append("n")
    node = helper.make_node(op, names, ["y", "h"], hidden_size=hidden, **attributes)
    return _model([node], feed, ["y", "h"], weights), feed


@pytest.mark.parametrize("op", sorted(GATES))
@pytest.mark.parametrize(("hidden", "batch"), [(3, 1), (20, 1), (64, 2), (33, 4), (40, 13)])
def test_operators(op, hidden, batch):
    model, feed = _recurrent(op, hidden, batch)
    _same(model, _rounded(model, "w", "r"), feed)


@pytest.mark.parametrize("op", sorted(GATES))
def test_directions_and_lengths(op):
    model, feed = _recurrent(op, 20, 3, direction="bidirectional", lengths=True)
    _same(model, _rounded(model, "w", "r"), feed)


def test_gru_that_resets_after_its_product():
    model, feed = _recurrent("GRU", 20, 2, linear_before_reset=1)
    _same(model, _rounded(model, "w", "r"), feed)


def _scan(weights_of_body, weight_before):
    """y_t = tanh(x_t u w + y_(t-1) r), with the product by u before the loop."""
    rng = np.random.default_rng(3)
    f = TensorProto.FLOAT
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["x_t", "w"], ["a"]),
            helper.make_node("Gemm", ["h_in", "r"], ["c"], transB=1),
            helper.make_node("Add", ["a", "c"], ["s"]),
            helper.make_node("Tanh", ["s"], ["h_out"]),
            helper.make_node("Identity", ["h_out"], ["y_t"]),
        ],
        "body",
        [info("h_in", f, [1, 32]), info("x_t", f, [1, 32])],
        [info("h_out", f, [1, 32]), info("y_t", f, [1, 32])],
        [numpy_helper.from_array((rng.standard_normal((32, 32)) * 0.2).astype(np.float32), n) for n in weights_of_body],
    )
    nodes = [
        helper.make_node("MatMul", ["x", weight_before], ["xu"]),
        helper.make_node("Scan", ["h0", "xu"], ["h", "y"], body=body, num_scan_inputs=1),
    ]
    feed = {"x": rng.standard_normal((6, 1, 32)).astype(np.float32), "h0": np.zeros((1, 32), np.float32)}
    weights = {
        n: (rng.standard_normal((32, 32)) * 0.2).astype(np.float32)
        for n in [weight_before, *({"w", "r"} - set(weights_of_body))]
    }
    return _model(nodes, feed, ["h", "y"], weights), feed


def test_products_in_loops_and_not_before_them():
    model, feed = _scan([], "u")
    _same(model, _rounded(model, "w", "r"), feed)


def test_weights_too_large_stay():
    model, feed = _recurrent("LSTM", 20, 1)
    r = next(t for t in model.graph.initializer if t.name == "r")
    large = numpy_helper.to_array(r).copy()
    large[0, 0, 0] = 1e6
    r.CopyFrom(numpy_helper.from_array(large, "r"))
    _same(model, _rounded(model, "w"), feed)


def test_explain_says_how_far_off_they_are():
    model, feed = _recurrent("LSTM", 32, 1)
    session = treadle.InferenceSession(model, weights="f16")
    rewrites = session.explain(feed, json=True)["loops"][0]["rewrites"]
    narrowed = [r for r in rewrites if r["change"] == "narrowed"]
    assert len(narrowed) == 2
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer if t.name in "wr"]
    for report, w in zip(narrowed, weights, strict=True):
        error = np.abs(w - w.astype(np.float16).astype(np.float32)).max()
        assert report["into"] == f"off by at most {error:.2g}, weights up to {np.abs(w).max():.2g}"
    assert "narrowed" not in treadle.InferenceSession(model).explain(feed)


def test_a_stream_multiplies_by_the_same_weights():
    model, feed = _recurrent("LSTM", 32, 1, steps=7)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "T"
    del model.graph.output[1]
    session = treadle.InferenceSession(model, weights="f16")
    whole = session.run(None, feed)[0]
    stream = session.stream(time={"x": 0})
    parts = [stream.push(x=feed["x"][t : t + 1]) for t in range(7)]
    np.testing.assert_array_equal(np.concatenate([*parts, stream.flush()]), whole)


def test_other_words_are_refused():
    model, _ = _recurrent("RNN", 4, 1)
    with pytest.raises(treadle.InvalidArgument, match="f32 or f16"):
        treadle.InferenceSession(model, weights="f8")

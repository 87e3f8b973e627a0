"""Earlier runs of a session do not change which inputs it refuses: a plan for any sizes serves only sizes that every
node takes (src/session/README.md). tests/equations/histories.py tries all operators.
"""

import numpy as np
import onnx
import pytest
import treadle
from searches import decoder_only
from searches import search as model_of

HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
TIERS = {"default": {}, "native": {"jit": "always"}, "reference": {"tier": "reference"}, "plain": {"optimize": "0"}}
LSTM = "LSTM <hidden_size = 3> (x, w, r, , lengths)"
CELL = f"float[1,12,2] w = {{{','.join(['0.1'] * 24)}}}, float[1,12,3] r = {{{','.join(['0.2'] * 36)}}}"

MODELS = {
    "alone": f"g (float[t,n,2] x, int32[m] lengths, bool yes) => (y) <{CELL}> {{ y = {LSTM} }}",
    "in a branch": f"""g (float[t,n,2] x, int32[m] lengths, bool yes) => (y) <{CELL}> {{
        y = If (yes) <then_branch = a () => (float[t,d,n,3] u) {{ u = {LSTM} }},
                      else_branch = b () => (float[t,d,n,3] v) {{ z = Constant <value_int = 1> ()  s = Shape(x)
                          p = Unsqueeze(z, axis0)  f = Concat <axis = 0> (s, p)  v = ConstantOfShape(f) }}> }}""".replace(
        "<float[1,12,2]", "<int64[1] axis0 = {0}, float[1,12,2]"
    ),
    "in a loop": f"""g (float[t,n,2] x, int32[m] lengths, bool yes) => (y) <{CELL}, int64 iterations = {{2}}> {{
        y = Loop (iterations, yes) <body = b (int64 i, bool c) => (bool c2, float[t,d,n,3] u) {{ c2 = Identity(c)  u = {LSTM} }}> }}""",
}


def opened(text, tier):
    options = treadle.SessionOptions()
    for key, value in TIERS[tier].items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(text.encode() if isinstance(text, str) else text, options)


def session(name, tier):
    return opened(f"{HEAD} {MODELS[name]}", tier)


def feeds(entries, lengths, yes=True):
    return {"x": np.ones((4, entries, 2), np.float32), "lengths": np.full(lengths, 4, np.int32), "yes": np.array(yes)}


def refusal(session, given) -> str:
    with pytest.raises(treadle.InvalidArgument) as refused:
        session.run(None, given)
    return str(refused.value)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("before", [[], [3], [3, 2], [3, 2, 5, 3]])
def test_a_warm_session_refuses_as_a_new_one_does(name, tier, before):
    warm = session(name, tier)
    for entries in before:
        warm.run(None, feeds(entries, entries))
    for entries, lengths in ((3, 2), (2, 1), (7, 6)):
        text = refusal(warm, feeds(entries, lengths))
        assert text == refusal(session(name, tier), feeds(entries, lengths))
        assert "sequence_lens has shape" in text
    warm.run(None, feeds(6, 6))


@pytest.mark.parametrize("tier", TIERS)
def test_what_does_not_run_is_not_refused(tier):
    for name in ("in a branch", "in a loop"):
        warm = session(name, tier)
        for entries, lengths in ((3, 3), (2, 2), (3, 2), (5, 1)):
            warm.run(None, feeds(entries, lengths, yes=False))


def test_sizes_that_fit_take_two_plans():
    warm = session("alone", "default")
    for entries in (3, 2, 5, 3, 7, 9, 2):
        warm.run(None, feeds(entries, entries))
    assert warm.counters()["plans"] == 2


def test_refusals_are_bounded_in_plans_and_leave_the_others_alone():
    warm = session("alone", "default")
    for entries in (3, 2):
        warm.run(None, feeds(entries, entries))
    for entries in range(2, 40):
        text = refusal(warm, feeds(entries, 1))
        assert f"sequence_lens has shape [1], expected [{entries}]" in text, text
    assert warm.counters()["plans"] <= 10
    warm.run(None, feeds(39, 39))
    assert warm.counters()["plans"] <= 10


def test_a_size_that_a_lowering_has_to_know_may_change():
    """RotaryEmbedding of com.microsoft becomes nodes for one number of heads."""
    text = f"""{HEAD} g (float[b,s,w] x, int64[p] at, float[m,h] cos, float[m,h] sin) => (y) {{
        y = com.microsoft.RotaryEmbedding (x, at, cos, sin) }}"""
    random = np.random.default_rng(0)
    angles = random.random((8, 2), np.float32)

    def given(width):
        return {"x": random.random((1, 5, width), np.float32), "at": np.array([0]), "cos": angles, "sin": angles}

    warm = opened(text, "default")
    for width in (4, 8, 12, 4, 16):
        fed = given(width)
        np.testing.assert_array_equal(warm.run(None, fed)[0], opened(text, "default").run(None, fed)[0])


@pytest.mark.parametrize("tier", TIERS)
def test_sizes_that_data_decides_are_checked_in_the_run(tier):
    lowered = f"""{HEAD} g (float[t,n,2] rows, bool[t] keep, int32[m] lengths) => (y) <{CELL}> {{
        picked = Compress <axis = 1> (rows, keep)  x = Identity(picked)  y = {LSTM} }}"""
    computed = f"""{HEAD} g (float[t,n,2] rows, bool[t] keep) => (y) {{
        picked = Compress <axis = 0> (rows, keep)  y = com.microsoft.DynamicTimeWarping (picked) }}"""
    rows = np.ones((4, 4, 2), np.float32)
    session = opened(lowered, tier)
    for kept, lengths, fits in ((3, 3, True), (2, 3, False), (2, 2, True), (4, 1, False)):
        given = {"rows": rows, "keep": np.arange(4) < kept, "lengths": np.full(lengths, 4, np.int32)}
        if fits:
            assert session.run(None, given)[0].shape == (4, 1, kept, 3)
        else:
            assert f"sequence_lens has shape [{lengths}], expected [{kept}]" in refusal(session, given)
    session = opened(computed, tier)
    for kept in (1, 0, 3, 1):
        given = {"rows": rows, "keep": np.arange(4) < kept}
        if kept == 1:
            session.run(None, given)
        else:
            assert f"input has shape [{kept},4,2]" in refusal(session, given)


@pytest.mark.parametrize("tier", TIERS)
def test_a_refusal_in_a_loop_is_said_by_the_run(tier):
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> g (float[n,k] x, int64 iterations) => (y) {
        y = Loop (iterations, ) <body = b (int64 i, bool c) => (bool c2, float[n,1] u) {
            c2 = Identity(c)  u = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0]> (x) }> }"""
    session = opened(text, tier)
    narrow = np.ones((3, 1), np.float32)
    assert "body, iteration 0" in refusal(session, {"x": narrow, "iterations": np.array(2)})
    assert session.run(None, {"x": narrow, "iterations": np.array(0)})[0].shape[0] == 0


BODIES = {
    "around sizes that it captures": ("picked = Compress <axis = 1> (rows, keep)  x = Identity(picked)", ""),
    "that decides sizes": ("", "picked = Compress <axis = 1> (rows, keep)  x = Identity(picked)"),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("body", BODIES)
def test_sizes_that_data_decides_are_checked_in_each_iteration(tier, body):
    in_front, inside = BODIES[body]
    text = f"""{HEAD} g (float[t,n,2] rows, bool[n] keep, int32[m] lengths, int64 iterations) => (y) <{CELL}> {{ {in_front}
        [loop] y = Loop (iterations, ) <body = b (int64 i, bool c) => (bool c2, float[t,d,k,3] u) {{
            c2 = Identity(c)  {inside}  [cell] u = {LSTM} }}> }}"""
    made, rows = opened(text, tier), np.ones((4, 4, 2), np.float32)
    for kept, lengths, iterations in ((3, 3, 2), (2, 3, 2), (2, 3, 0), (2, 2, 3), (4, 1, 1)):
        given = {"rows": rows, "keep": np.arange(4) < kept, "lengths": np.full(lengths, 4, np.int32)}
        given["iterations"] = np.array(iterations)
        if kept == lengths or iterations == 0:
            assert made.run(None, given)[0].shape[0] == iterations
            continue
        words = f"/loop (Loop-21) body, iteration 0: /loop:body/cell (LSTM-14): sequence_lens has shape [{lengths}]"
        assert words in refusal(made, given)


@pytest.mark.parametrize("tier", TIERS)
def test_sizes_that_grow_are_checked_in_each_iteration(tier):
    text = f"""{HEAD} g (float[t,n,2] first, int32[m] lengths, int64 iterations) => (last, y) <{CELL}> {{
        [loop] last, y = Loop (iterations, , first) <body = b (int64 i, bool c, float[t,k,2] x) => (bool c2, float[t,l,2] more, float sum) {{
            c2 = Identity(c)  [cell] u = {LSTM}  sum = ReduceSum <keepdims = 0> (u)  more = Concat <axis = 1> (x, x) }}> }}"""
    made = opened(text, tier)
    given = {"first": np.ones((4, 3, 2), np.float32), "lengths": np.full(3, 4, np.int32)}
    for iterations in (1, 3, 1, 0):
        if iterations < 2:
            assert made.run(None, given | {"iterations": np.array(iterations)})[1].shape == (iterations,)
        else:
            said = refusal(made, given | {"iterations": np.array(iterations)})
            assert "iteration 1: /loop:body/cell (LSTM-14): sequence_lens has shape [3], expected [6]" in said


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("search", ["GreedySearch", "BeamSearch"])
def test_operands_of_a_search_are_checked_where_data_decides_their_sizes(tier, search):
    feeds = {"input_ids": np.array([[1, 2, 3], [4, 5, 6]], np.int32), "max_length": 6}
    feeds |= {"num_beams": 2, "num_return_sequences": 1} if search == "BeamSearch" else {}
    attributes = {"eos_token_id": 7, "pad_token_id": 0}
    model, feeds = model_of(search, {"decoder": decoder_only(1, 30)}, feeds, attributes, 1, False)
    graph = onnx.load_from_string(model)
    node = graph.graph.node[0]
    keeps = onnx.helper.make_node("Compress", ["max_length", "keep"], ["length"], axis=0)
    node.input[list(node.input).index("max_length")] = "length"
    graph.graph.node.insert(0, keeps)
    graph.graph.input.append(onnx.helper.make_tensor_value_info("keep", onnx.TensorProto.BOOL, [None]))
    for value in graph.graph.input:
        if value.name == "max_length":
            value.type.tensor_type.shape.dim[0].ClearField("dim_value")
    made = opened(graph.SerializeToString(), tier)
    lengths = np.array([6, 6], np.int32)
    plain = treadle.InferenceSession(model).run(None, feeds)[0]
    for keep in ([True, False], [True, True], [False, False], [False, True]):
        given = feeds | {"max_length": lengths, "keep": np.array(keep)}
        if sum(keep) == 1:
            np.testing.assert_array_equal(made.run(None, given)[0], plain)
        else:
            assert f"max_length has shape [{sum(keep)}], expected a scalar or one element" in refusal(made, given)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("loops", [False, True], ids=["alone", "in a loop"])
def test_nodes_whose_lowering_needs_sizes_are_lowered_in_the_run(tier, loops):
    """RotaryEmbedding of com.microsoft becomes nodes for one number of heads and of angles."""
    call = "y = com.microsoft.RotaryEmbedding (x, at, angles, angles)"
    loop = f"""iterations = Constant <value_int = 2> ()  ys = Loop (iterations, ) <body = b (int64 i, bool c) => (bool c2, y) {{
        c2 = Identity(c)  {call} }}>"""
    text = f"""{HEAD} g (float[b,s,w] rows, bool[w] keep, int64[p] at, float[m,h] angles) => ({"ys" if loops else "y"}) {{
        x = Compress <axis = 2> (rows, keep)  {loop if loops else call} }}"""
    plain = opened(f"{HEAD} g (float[b,s,w] x, int64[p] at, float[m,h] angles) => (y) {{ {call} }}", tier)
    random = np.random.default_rng(0)
    rows, angles = random.random((1, 5, 16), np.float32), random.random((8, 2), np.float32)
    made = opened(text, tier)
    for width in (8, 16, 4, 8):
        given = {"at": np.array([1]), "angles": angles}
        expected = plain.run(None, given | {"x": rows[:, :, :width]})[0]
        found = made.run(None, given | {"rows": rows, "keep": np.arange(16) < width})[0]
        for row in found if loops else [found]:
            np.testing.assert_array_equal(row, expected)
    wrong = {"at": np.array([1, 2]), "angles": angles, "rows": rows, "keep": np.arange(16) < 8}
    assert "position_ids have shape [2], expected [1] or [batch,length]" in refusal(made, wrong)


UNLIKE_OPERANDS = {
    "BiasAdd": (
        "float[a,b,c] x, float[d] bias, float[e,f,g] skip",
        "y",
        "(x, bias, skip)",
        [(1, 2, 5), (5,), (3, 2, 5)],
    ),
    "BiasSoftmax": ("float[a] x, float[b] bias", "y", "<axis = 0, is_inner_broadcast = 1> (x, bias)", [(1,), (2,)]),
    "GemmaRotaryEmbedding": (
        "float[a,b,c] angles, float16[a,d,b,c] q, float16[a,e,b,c] q_turned",
        "y, z",
        "(angles, q, q_turned, q, q_turned)",
        [(1, 2, 4), (1, 1, 2, 4), (1, 3, 2, 4)],
    ),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", UNLIKE_OPERANDS)
def test_operands_that_would_widen_the_result_are_refused(name, tier):
    inputs, results, call, shapes = UNLIKE_OPERANDS[name]
    made = opened(f"{HEAD} g ({inputs}) => (y) {{ {results} = com.microsoft.{name} {call} }}", tier)
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    feed = {x.name: np.ones(shape, types[x.type]) for x, shape in zip(made.get_inputs(), shapes, strict=True)}
    with pytest.raises(treadle.InvalidArgument, match="has shape|of shape"):
        made.run(None, feed)

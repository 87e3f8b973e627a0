"""None for an input that the model does not declare as optional: the run goes on without the value, as in onnxruntime."""

import numpy as np
import pytest
import treadle

WAYS = {
    "default": {},
    "native": {"treadle.jit": "always"},
    "reference": {"treadle.tier": "reference"},
    "unoptimised": {"treadle.optimize": "0"},
}
HEAD = '<ir_version: 9, opset_import: ["" : 18]> g '
X = np.array([-1, 0, 1], np.float32)
LOW = np.array(0.5, np.float32)

# Nodes that ask for the value in a branch, in several places of a model; (model, result with a value, result without).
ASKED = {
    "branch": """(float[3] x, float low) => (float[3] y) {
        h = OptionalHasElement (low)
        y = If (h) <then_branch = t () => (float[3] p) { p = Max (x, low) },
                    else_branch = e () => (float[3] q) { q = Neg (x) }>
    }""",
    "identity": """(float[3] x, float low) => (float[3] y) {
        same = Identity (low)
        h = OptionalHasElement (same)
        y = If (h) <then_branch = t () => (float[3] p) { p = Max (x, same) },
                    else_branch = e () => (float[3] q) { q = Neg (x) }>
    }""",
    "loop": """(float[3] x, float low) => (float[3] y) {
        two = Constant <value = int64 {2}> ()
        once, rows = Loop (two, "", x) <body = b (int64 i, bool c, float[3] a) => (bool c1, float[3] a, float[3] r) {
            c1 = Identity (c)
            h = OptionalHasElement (low)
            r = If (h) <then_branch = t () => (float[3] p) { p = Max (a, low) },
                        else_branch = e () => (float[3] q) { q = Neg (a) }>
        }>
        last = Constant <value = int64 {1}> ()
        y = Gather (rows, last)
    }""",
    "sequence": """(float[3] x, seq(float) low) => (float[3] y) {
        h = OptionalHasElement (low)
        zero = Constant <value = int64 {0}> ()
        y = If (h) <then_branch = t () => (float[3] p) { v = SequenceAt (low, zero)  p = Max (x, v) },
                    else_branch = e () => (float[3] q) { q = Neg (x) }>
    }""",
}
# Only nodes whose operand may be left out ask for it.
LEFT_OUT = "(float[3] x, float low) => (float[3] y) { y = Clip (x, low) }"
UNUSED = "(float[3] x, float low) => (float[3] y) { y = Neg (x) }"
NEEDED = {
    "node": ("(float[3] x, float low) => (float[3] y) { y = Max (x, low) }", r"Max_0 .*input 'low' is None"),
    "behind identity": (
        "(float[3] x, float low) => (float[3] y) { l = Identity (low)  y = Max (x, l) }",
        "input 'low' is None",
    ),
    "branch": (
        """(float[3] x, float low) => (float[3] y) {
            h = OptionalHasElement (low)
            y = If (h) <then_branch = t () => (float[3] p) { p = Neg (x) },
                        else_branch = e () => (float[3] q) { q = Max (x, low) }>
        }""",
        r"else_branch/Max_0 .*input 'low' is None",
    ),
    "state": (
        """(float[3] x, float low) => (float y) {
            two = Constant <value = int64 {2}> ()
            y = Loop (two, "", low) <body = b (int64 i, bool c, float a) => (bool c1, float a1) {
                c1 = Identity (c)
                a1 = Add (a, a)
            }>
        }""",
        r"Loop_1 .*input 'low' is None",
    ),
    "output": ("(float[3] x, float low) => (float low) { y = Neg (x) }", "input 'low' is None"),
}


def session_of(text, way="default"):
    options = treadle.SessionOptions()
    for key, value in WAYS[way].items():
        options.add_session_config_entry(key, value)
    return treadle.InferenceSession((HEAD + text).encode(), options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ASKED)
def test_the_model_asks_whether_it_is_there(name, way):
    session = session_of(ASKED[name], way)
    low = [LOW] if name == "sequence" else LOW
    for _ in range(2):
        assert session.run(None, {"x": X, "low": low})[0].tolist() == [0.5, 0.5, 1]
        assert session.run(None, {"x": X, "low": None})[0].tolist() == [1, 0, -1]


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_may_be_left_out_is(way):
    assert session_of(LEFT_OUT, way).run(None, {"x": X, "low": None})[0].tolist() == [-1, 0, 1]
    assert session_of(UNUSED, way).run(None, {"x": X, "low": None})[0].tolist() == [1, 0, -1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NEEDED)
def test_a_value_that_is_needed_is_named(name, way):
    text, message = NEEDED[name]
    session = session_of(text, way)
    for _ in range(2):
        with pytest.raises(treadle.InvalidArgument, match=message):
            session.run(None, {"x": X, "low": None})
    session.run(None, {"x": X, "low": LOW})


def test_an_input_that_is_not_fed_is_still_missing():
    with pytest.raises(ValueError, match="low"):
        session_of(ASKED["branch"]).run(None, {"x": X})


def test_several_inputs_may_be_absent():
    text = """(float[3] x, float a, float b) => (float[3] y, bool ha, bool hb) {
        ha = OptionalHasElement (a)
        hb = OptionalHasElement (b)
        y = Clip (x, a, b)
    }"""
    session = session_of(text)
    for a in (None, LOW):
        for b in (None, np.array(0.75, np.float32)):
            y, has_a, has_b = session.run(None, {"x": X, "a": a, "b": b})
            assert (bool(has_a), bool(has_b)) == (a is not None, b is not None)
            assert y.tolist() == np.clip(X, a, b).tolist()

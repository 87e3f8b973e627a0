"""Loop and If against plain loops: random iteration rules, states and results, and each rule of the specification."""

import os

import numpy as np
import onnx.parser
import pytest
from loop import loop
from onnx import TensorProto, helper

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

VERSIONS = [1, 11, 13, 16, 19, 21, 23, 24, 25]
COUNT = 600 if os.environ.get("TREADLE_TEST_LONG") else 80
BLOCK = 20
FLOAT = np.float32


def run(text, feeds, names=None):
    model = onnx.parser.parse_model(text)
    return treadle.InferenceSession(model.SerializeToString()).run(names, feeds)


class Random:
    """A Loop over int64 vectors. Every result of the body is one of: a body input, a captured value, a constant, a sum
    of two of them, the same as another result; so the back edge carries every kind of permutation."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.version = int(rng.choice(VERSIONS))
        self.states = int(rng.integers(1 if self.version < 11 else 0, 5))
        self.scans = int(rng.integers(0 if self.states else 1, 4))
        self.mode = str(rng.choice(["M", "cond", "both", "M true"]))
        self.m = int(rng.integers(-1, 7))
        self.threshold = int(rng.integers(0, 6))  # the body's condition: iteration < threshold
        self.one_element = bool(rng.random() < 0.3)  # M and cond as [1]
        self.names = ["iteration", "captured", "constant"] + [f"s{k}" for k in range(self.states)]
        self.results = [self.draw_result() for _ in range(self.states + self.scans)]
        self.state_values = [rng.integers(-9, 9, 3) for _ in range(self.states)]
        self.captured = rng.integers(-9, 9, 3)
        self.constant = rng.integers(-9, 9, 3)

    def draw_result(self):
        a, b = (str(n) for n in self.rng.choice(self.names, 2))
        return (a,) if self.rng.random() < 0.6 and a != "iteration" else (a, b)

    def body(self, iteration, condition, *states):
        values = {"iteration": np.int64(iteration), "captured": self.captured, "constant": self.constant}
        values |= {f"s{k}": s for k, s in enumerate(states)}
        results = [np.broadcast_to(sum(values[n] for n in names), (3,)) for names in self.results]
        return [iteration < self.threshold, *results]

    def body_graph(self):
        kind = TensorProto.INT64
        nodes = [helper.make_node("Less", ["iteration", "threshold"], ["continues"])]
        if self.version < 9:  # Less compares integers from version 9 on
            nodes = [helper.make_node("Cast", [n], [f"{n}_f"], to=1) for n in ("iteration", "threshold")]
            nodes.append(helper.make_node("Less", ["iteration_f", "threshold_f"], ["continues"]))
        outputs = ["continues"]
        zero = helper.make_tensor("zero", kind, [3], [0, 0, 0])
        for i, names in enumerate(self.results):
            if len(names) == 1:
                outputs.append(names[0])
            else:
                nodes.append(helper.make_node("Add", list(names), [f"sum{i}"]))
                nodes.append(helper.make_node("Add", [f"sum{i}", "zero"], [f"r{i}"]))
                outputs.append(f"r{i}")
        given = [helper.make_tensor_value_info("iteration", kind, []),
                 helper.make_tensor_value_info("condition", TensorProto.BOOL, [])]  # fmt: skip
        given += [helper.make_tensor_value_info(f"s{k}", kind, [3]) for k in range(self.states)]
        results = [helper.make_tensor_value_info("continues", TensorProto.BOOL, [])]
        results += [helper.make_tensor_value_info(n, kind, [3]) for n in outputs[1:]]
        constants = [helper.make_tensor("constant", kind, [3], self.constant), zero,
                     helper.make_tensor("threshold", kind, [], [self.threshold])]  # fmt: skip
        return helper.make_graph(nodes, "body", given, results, constants)

    def check(self):
        one = [1] if self.one_element else []
        feeds = {"captured": self.captured}
        if self.mode != "cond":
            feeds["M"] = np.full(one, self.m, np.int64)
        if self.mode != "M":
            feeds["cond"] = np.full(one, self.mode == "M true" or self.threshold > 2)
        for k, value in enumerate(self.state_values):
            feeds[f"init{k}"] = value
        names = ["M" if "M" in feeds else "", "cond" if "cond" in feeds else ""]
        names += [f"init{k}" for k in range(self.states)]
        outputs = [f"y{i}" for i in range(self.states + self.scans)]
        kinds = {np.dtype(np.int64): TensorProto.INT64, np.dtype(bool): TensorProto.BOOL}
        graph = helper.make_graph(
            [helper.make_node("Loop", names, outputs, body=self.body_graph())], "loop",
            [helper.make_tensor_value_info(n, kinds[v.dtype], v.shape) for n, v in feeds.items()],
            [helper.make_tensor_value_info(n, TensorProto.INT64, None) for n in outputs],
        )  # fmt: skip
        opset = max(self.version, 7)  # numpy's broadcasting
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        results = treadle.InferenceSession(model.SerializeToString()).run(None, feeds)
        expected = loop(self.body, feeds.get("M"), feeds.get("cond"), self.state_values,
                        [np.zeros((0, 3), np.int64)] * self.scans)  # fmt: skip
        for actual, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(actual, wanted, err_msg=f"{self.mode} {self.results}")
            assert actual.shape == wanted.shape


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_random_loops(first):
    for seed in range(first, first + BLOCK):
        Random(seed).check()


COUNTER = """<ir_version: 8, opset_import: ["": %(opset)s]>
g (int64%(m)s M, bool%(c)s cond, int64 s0) => (int64 s, int64[?] y) {
  s, y = Loop <body = b (int64 i, bool k, int64 h) => (bool t, int64 n, int64 o) {
    one = Constant <value = int64 {1}>()
    three = Constant <value = int64 {3}>()
    n = Add(h, one)
    t = Less(n, three)
    o = Identity(n)
  }>(%(inputs)s, s0)
}"""


def count(inputs, m=None, cond=None, m_shape="", cond_shape="", opset=16):
    """The number of iterations; the body's condition says 'less than 3'."""
    text = COUNTER % {"opset": opset, "m": m_shape, "c": cond_shape, "inputs": inputs}
    unused = [0] if m_shape == "[1]" else 0
    feeds = {"M": np.asarray(unused if m is None else m, np.int64)}
    feeds["cond"] = np.asarray(unused if cond is None else cond, bool)
    s, y = run(text, {**feeds, "s0": np.array(0, np.int64)})
    assert y.tolist() == list(range(1, int(s) + 1))
    return int(s)


@pytest.mark.parametrize(
    ("inputs", "m", "cond", "iterations"),
    [
        ("M, ", 5, None, 5),  # for: the body's condition is ignored
        ("M, cond", 2, True, 2),
        ("M, cond", 7, True, 3),
        ("M, cond", 7, False, 0),
        (", cond", None, True, 3),
        (", cond", None, False, 0),
        ("M, ", 0, None, 0),
        ("M, ", -4, None, 0),
        ("M, cond", 2**63 - 1, True, 3),
        ("M, cond", -(2**63), True, 0),
    ],
)
@pytest.mark.parametrize("shape", ["", "[1]"])
def test_iteration_rules(inputs, m, cond, iterations, shape):
    def shaped(value):
        return value if value is None or not shape else [value]

    assert count(inputs, shaped(m), shaped(cond), shape, shape) == iterations


def test_neither_m_nor_cond_runs_until_a_limit():
    """for (int i=0; ; ++i): it can end by an error only; here by an index past the end."""
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (float[4] x) => (float s) {
      s0 = Constant <value = float {0.0}>()
      s = Loop <body = b (int64 i, bool k, float h) => (bool k2, float n) {
        e = Gather(x, i)
        n = Add(h, e)
        k2 = Not(k)
      }>(, , s0)
    }"""
    with pytest.raises(Exception, match="iteration 4"):
        run(text, {"x": np.zeros(4, FLOAT)})


@pytest.mark.parametrize(("which", "shape"), [("M", (2,)), ("M", (0,)), ("cond", (2,)), ("cond", (2, 2))])
def test_m_and_cond_hold_one_element(which, shape):
    dims = "[" + ",".join("?" for _ in shape) + "]"
    shapes = {"m_shape": dims} if which == "M" else {"cond_shape": dims}
    values = {"m": np.full(shape, 3)} if which == "M" else {"cond": np.full(shape, True)}
    with pytest.raises(Exception, match=which):
        count("M, cond", **{"m": 3, "cond": True, **values}, **shapes)


def test_zero_iterations_of_known_element():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, float[2, N] s0) => (float[2, ?] s, float[?, 2, ?] a, int64[?, ?] b) {
      s, a, b = Loop <body = b (int64 i, bool k, float[2, N] h) => (bool k, float[2, N] n, float[2, N] n, int64[2] d) {
        n = Add(h, h)
        d = Shape(n)
      }>(M, , s0)
    }"""
    s0 = np.ones((2, 3), FLOAT)
    s, a, b = run(text, {"M": np.array(0), "s0": s0})
    np.testing.assert_array_equal(s, s0)
    assert a.shape == (0, 2, 3) or a.shape == (0, 2, 0)  # inferred; unknown sizes are 0
    assert b.shape == (0, 2) and b.dtype == np.int64


def test_zero_iterations_of_unknown_rank():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, int64[?] shape) => (float[] y) {
      y = Loop <body = b (int64 i, bool k) => (bool k, float[] o) { o = ConstantOfShape(shape) }>(M, )
    }"""
    model = onnx.parser.parse_model(text)
    for value in (model.graph.output[0], model.graph.node[0].attribute[0].g.output[1]):
        value.type.tensor_type.ClearField("shape")
    session = treadle.InferenceSession(model.SerializeToString())
    (y,) = session.run(None, {"M": np.array(0), "shape": np.array([2, 3])})
    assert y.dtype == FLOAT and y.size == 0
    (y,) = session.run(None, {"M": np.array(4), "shape": np.array([2, 3])})
    assert y.shape == (4, 2, 3)


def test_a_state_that_grows_although_the_body_declares_one_shape():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, float[1] s0) => (float[?] s, int64[?, ?] n) {
      s, n = Loop <body = b (int64 i, bool k, float[1] h) => (bool k, float[1] g, int64[1] d) {
        g = Concat <axis: int = 0>(h, h)
        d = Shape(g)
      }>(M, , s0)
    }"""
    s, n = run(text, {"M": np.array(5), "s0": np.ones(1, FLOAT)})
    assert s.shape == (32,) and n.ravel().tolist() == [2, 4, 8, 16, 32]


def test_an_element_that_changes_shape_names_the_iteration():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, float[N] s0) => (float[?] s, float[?, ?] y) {
      s, y = Loop <body = b (int64 i, bool k, float[P] h) => (bool k, float[Q] g, float[P] h) {
        g = Concat <axis: int = 0>(h, h)
      }>(M, , s0)
    }"""
    s, y = run(text, {"M": np.array(1), "s0": np.ones(2, FLOAT)})
    assert s.shape == (4,) and y.shape == (1, 2)
    with pytest.raises(Exception, match="iteration 1"):
        run(text, {"M": np.array(3), "s0": np.ones(2, FLOAT)})


def test_an_error_in_the_body_names_the_iteration():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, int64[N] d) => (int64[?] y) {
      y = Loop <body = b (int64 i, bool k) => (bool k, int64 q) {
        e = Gather(d, i)
        six = Constant <value = int64 {6}>()
        q = Div(six, e)
      }>(M, )
    }"""
    assert run(text, {"M": np.array(2), "d": np.array([1, 2, 0])})[0].tolist() == [6, 3]
    with pytest.raises(Exception, match=r"(?s)iteration 2.*division by zero"):
        run(text, {"M": np.array(3), "d": np.array([1, 2, 0])})


def test_omitted_outputs():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, int64 a, int64 b) => (int64 t, int64[?] z) {
      u, t, y, z = Loop <body = l (int64 i, bool k, int64 p, int64 q) => (bool k, int64 q, int64 r, int64 p, int64 r) {
        r = Add(p, q)
      }>(M, , a, b)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.node[0].output[0] = model.graph.node[0].output[2] = ""
    session = treadle.InferenceSession(model.SerializeToString())
    t, z = session.run(None, {"M": np.array(5), "a": np.array(1), "b": np.array(1)})
    assert t == 13 and z.tolist() == [2, 3, 5, 8, 13]


def test_loop_1_needs_a_state():
    text = """<ir_version: 8, opset_import: ["": %s]>
    g (int64 M) => (int64[?] y) {
      y = Loop <body = b (int64 i, bool k) => (bool k, int64 j) { j = Identity(i) }>(M, )
    }"""
    assert run(text % 11, {"M": np.array(3)})[0].tolist() == [0, 1, 2]
    with pytest.raises(Exception, match="Loop"):
        run(text % 10, {"M": np.array(3)})


def test_the_first_iteration_does_not_write_into_inputs_or_captures():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, float[3] a) => (float[3] s, float[3] t, float[3] still) {
      s, t = Loop <body = b (int64 i, bool k, float[3] p, float[3] q) => (bool k, float[3] r, float[3] p) {
        r = Add(p, a)
      }>(M, , a, a)
      still = Identity(a)
    }"""
    a = np.arange(3, dtype=FLOAT)
    s, t, still = run(text, {"M": np.array(3), "a": a})
    assert s.tolist() == [0, 4, 8] and t.tolist() == [0, 3, 6]
    assert still.tolist() == [0, 1, 2] and a.tolist() == [0, 1, 2]


def test_sequence_as_state():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64 M, float[2] x) => (seq(float[?]) s, int64[?] n) {
      s0 = SequenceEmpty <dtype: int = 1>()
      s, n = Loop <body = b (int64 i, bool k, seq(float[?]) h) => (bool k, seq(float[?]) g, int64 l) {
        f = Cast <to: int = 1>(i)
        e = Mul(x, f)
        g = SequenceInsert(h, e)
        l = SequenceLength(g)
      }>(M, , s0)
    }"""
    x = np.array([1, 2], FLOAT)
    s, n = run(text, {"M": np.array(3), "x": x})
    assert [e.tolist() for e in s] == [[0, 0], [1, 2], [2, 4]] and n.tolist() == [1, 2, 3]
    s, n = run(text, {"M": np.array(0), "x": x})
    assert s == [] and n.shape == (0,)


def test_optional_as_state():
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (int64 M, float x) => (optional(float) o, bool[?] had) {
      o0 = Optional <type = optional(float)>()
      o, had = Loop <body = b (int64 i, bool k, optional(float) h) => (bool k, optional(float) g, bool e) {
        e = OptionalHasElement(h)
        g = Optional(x)
      }>(M, , o0)
    }"""
    model = onnx.parser.parse_model(text.replace("<type = optional(float)>", ""))
    node = model.graph.node[0]
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    node.attribute.append(helper.make_attribute("type", element))
    session = treadle.InferenceSession(model.SerializeToString())
    o, had = session.run(None, {"M": np.array(2), "x": np.array(3, FLOAT)})
    assert o == 3 and had.tolist() == [False, True]
    o, had = session.run(None, {"M": np.array(0), "x": np.array(3, FLOAT)})
    assert o is None and had.shape == (0,)


IF = """<ir_version: 8, opset_import: ["": 16]>
g (bool%(c)s c, float[N] x) => (%(type)s y) {
  y = If <then_branch = t () => (%(type)s a) { %(then)s }, else_branch = e () => (%(type)s b) { %(else)s }>(c)
}"""


def choose(c, then, otherwise, kind="float[?]", shape=""):
    text = IF % {"c": shape, "type": kind, "then": then, "else": otherwise}
    model = onnx.parser.parse_model(text)
    if kind == "float[?]":  # ranks may differ: declare none
        for node in model.graph.node:
            for attribute in node.attribute:
                attribute.g.output[0].type.tensor_type.ClearField("shape")
        model.graph.output[0].type.tensor_type.ClearField("shape")
    session = treadle.InferenceSession(model.SerializeToString())
    return session.run(None, {"c": np.asarray(c), "x": np.arange(4, dtype=FLOAT)})[0]


@pytest.mark.parametrize("shape", ["", "[1]"])
def test_if_with_branches_of_unlike_rank(shape):
    then = "s = Constant <value = int64[2] {2, 2}>() a = Reshape(x, s)"
    for c, expected in ((True, [[0, 1], [2, 3]]), (False, [0, 1, 2, 3])):
        result = choose([c] if shape else c, then, "b = Identity(x)", shape=shape)
        assert result.tolist() == expected


def test_if_with_sequences_and_captured_results():
    kind = "seq(float[?])"
    then, otherwise = "a = SequenceConstruct(x, x)", "b = SequenceConstruct(x)"
    assert len(choose(True, then, otherwise, kind)) == 2
    assert len(choose(False, then, otherwise, kind)) == 1


def test_if_with_empty_branches():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (bool c, float[N] p, float[M] q) => (float[?] y) {
      y = If <then_branch = t () => (float[N] p) { }, else_branch = e () => (float[M] q) { }>(c)
    }"""
    feeds = {"p": np.zeros(2, FLOAT), "q": np.ones(3, FLOAT)}
    assert run(text, {"c": np.array(True), **feeds})[0].tolist() == [0, 0]
    assert run(text, {"c": np.array(False), **feeds})[0].tolist() == [1, 1, 1]


def test_only_the_branch_taken_runs():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (bool c, int64 n, int64 d) => (int64 y) {
      y = If <then_branch = t () => (int64 a) { a = Div(n, d) }, else_branch = e () => (int64 n) { }>(c)
    }"""
    feeds = {"n": np.array(7), "d": np.array(0)}
    assert run(text, {"c": np.array(False), **feeds})[0] == 7
    with pytest.raises(Exception, match=r"(?s)then_branch.*division by zero|division by zero"):
        run(text, {"c": np.array(True), **feeds})


def test_a_condition_of_two_elements_is_refused():
    with pytest.raises(Exception, match="cond"):
        choose([True, False], "a = Identity(x)", "b = Neg(x)", shape="[2]")


def test_sequence_map_with_captured_value_and_two_results():
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2] x, float[2] y, float bias) => (seq(float[?]) sums, seq(int64[?]) shapes) {
      s = SequenceConstruct(x, y, x)
      sums, shapes = SequenceMap <body = b (float[2] e, float[2] o) => (float[2] r, int64[1] n) {
        t = Add(e, o)
        r = Add(t, bias)
        n = Shape(r)
      }>(s, y)
    }"""
    x, y = np.array([1, 2], FLOAT), np.array([10, 20], FLOAT)
    sums, shapes = run(text, {"x": x, "y": y, "bias": np.array(0.5, FLOAT)})
    assert [v.tolist() for v in sums] == [[11.5, 22.5], [20.5, 40.5], [11.5, 22.5]]
    assert [v.tolist() for v in shapes] == [[2]] * 3


def test_sequence_map_within_a_loop():
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (int64 M, float[2] x) => (seq(float[2]) s) {
      s0 = SequenceConstruct(x, x)
      s = Loop <body = l (int64 i, bool k, seq(float[2]) h) => (bool k, seq(float[2]) n) {
        f = Cast <to: int = 1>(i)
        n = SequenceMap <body = b (float[2] e) => (float[2] r) { t = Add(e, f) r = Add(t, x) }>(h)
      }>(M, , s0)
    }"""
    x = np.array([1, 2], FLOAT)
    (s,) = run(text, {"M": np.array(3), "x": x})
    assert [v.tolist() for v in s] == [[7, 11]] * 2  # x + 3x + (0 + 1 + 2)

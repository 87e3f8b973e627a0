"""Scan against plain loops: random axes, directions, states and versions, and refused models."""

import os

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper
from scan import scan, scan8

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

VERSIONS = [9, 11, 16, 19, 21, 23, 24, 25]
COUNT = 600 if os.environ.get("TREADLE_TEST_LONG") else 60
BLOCK = 20
FLOAT = np.float32


def run(text, feeds):
    model = onnx.parser.parse_model(text)
    return treadle.InferenceSession(model.SerializeToString()).run(None, feeds)


class Random:
    """A Scan whose states and elements all have one shape E. The body is
    s_k' = s_k * a_k + (the k-th combination of elements), o_j = s_j' - element_j."""

    def __init__(self, seed, batched=False):
        self.rng = rng = np.random.default_rng(seed)
        self.version = 8 if batched else int(rng.choice(VERSIONS))
        self.length = int(rng.integers(0, 6))
        self.element = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
        self.states = int(rng.integers(0, 3))
        self.inputs = int(rng.integers(1, 4))
        self.outputs = int(rng.integers(0 if self.states else 1, 4))
        self.attributes = {}
        self.feeds = {}
        self.factors = [FLOAT(f) for f in rng.uniform(-0.9, 0.9, self.states)]
        self.captured = FLOAT(rng.uniform(-1, 1))

    def values(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype(FLOAT)

    def body(self, *arguments):
        states, elements = arguments[: self.states], arguments[self.states :]
        new = [s * f + elements[k % self.inputs] for k, (s, f) in enumerate(zip(states, self.factors, strict=True))]
        out = []
        for j in range(self.outputs):
            source = new[j % self.states] if self.states else self.captured
            out.append((source - elements[j % self.inputs]).astype(FLOAT))
        return [n.astype(FLOAT) for n in new] + out

    def body_graph(self):
        kind = TensorProto.FLOAT
        names = [f"s{k}" for k in range(self.states)] + [f"x{i}" for i in range(self.inputs)]
        nodes, constants, results = [], [], []
        for k, factor in enumerate(self.factors):
            constants.append(helper.make_tensor(f"f{k}", kind, [], [factor]))
            nodes.append(helper.make_node("Mul", [f"s{k}", f"f{k}"], [f"p{k}"]))
            nodes.append(helper.make_node("Add", [f"p{k}", f"x{k % self.inputs}"], [f"n{k}"]))
            results.append(f"n{k}")
        for j in range(self.outputs):
            source = f"n{j % self.states}" if self.states else "captured"
            nodes.append(helper.make_node("Sub", [source, f"x{j % self.inputs}"], [f"o{j}"]))
            results.append(f"o{j}")
        info = [helper.make_tensor_value_info(n, kind, self.element) for n in names]
        return helper.make_graph(nodes, "body", info,
                                 [helper.make_tensor_value_info(n, kind, self.element) for n in results], constants)  # fmt: skip

    def axes(self, count, rank):
        low = -rank if self.version >= 11 else 0
        return [int(a) for a in self.rng.integers(low, rank, count)]

    def directions(self, count):
        return [int(d) for d in self.rng.integers(0, 2, count)]

    def model(self, names):
        outputs = [f"r{i}" for i in range(self.states + self.outputs)]
        node = helper.make_node("Scan", names, outputs, body=self.body_graph(), num_scan_inputs=self.inputs,
                                **self.attributes)  # fmt: skip
        kinds = {np.dtype(np.int64): TensorProto.INT64, np.dtype(FLOAT): TensorProto.FLOAT}
        given = [helper.make_tensor_value_info(n, kinds[v.dtype], v.shape) for n, v in self.feeds.items()]
        results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
        constants = [helper.make_tensor("captured", TensorProto.FLOAT, [], [self.captured])]
        graph = helper.make_graph([node], "scan", given, results, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.version)], ir_version=10)

    def check(self, names, expected):
        results = treadle.InferenceSession(self.model(names).SerializeToString()).run(None, self.feeds)
        assert len(results) == len(expected)
        for actual, wanted in zip(results, expected, strict=True):
            assert actual.shape == wanted.shape, self.attributes
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6, err_msg=str(self.attributes))


def check_random(seed):
    case = Random(seed)
    rank = len(case.element) + 1
    options = {}
    for side, count in (("input", case.inputs), ("output", case.outputs)):
        axes, directions = case.axes(count, rank), case.directions(count)
        options[f"{side}_axes"], options[f"{side}_directions"] = axes, directions
        if case.rng.random() < 0.7 and count:
            case.attributes[f"scan_{side}_axes"] = axes
        else:
            options[f"{side}_axes"] = None
        if case.rng.random() < 0.7 and count:
            case.attributes[f"scan_{side}_directions"] = directions
        else:
            options[f"{side}_directions"] = None
    states = [case.values(*case.element) for _ in range(case.states)]
    inputs = []
    for i in range(case.inputs):
        axis = options["input_axes"][i] % rank if options["input_axes"] else 0
        inputs.append(case.values(*case.element[:axis], case.length, *case.element[axis:]))
    names = [f"init{k}" for k in range(case.states)] + [f"seq{i}" for i in range(case.inputs)]
    case.feeds = dict(zip(names, states + inputs, strict=True))
    expected = scan(case.body, states, inputs, [(case.element, FLOAT)] * case.outputs, **options)
    case.check(names, expected)


def check_random_batched(seed):
    case = Random(seed, batched=True)
    batch = int(case.rng.integers(0, 4))
    states = [case.values(batch, *case.element) for _ in range(case.states)]
    inputs = [case.values(batch, case.length, *case.element) for _ in range(case.inputs)]
    names = [f"init{k}" for k in range(case.states)] + [f"seq{i}" for i in range(case.inputs)]
    case.feeds = dict(zip(names, states + inputs, strict=True))
    lengths = case.rng.integers(0, case.length + 1, batch) if case.rng.random() < 0.6 else None
    if lengths is not None:
        case.feeds["lengths"] = lengths
    directions = case.directions(case.inputs) if case.rng.random() < 0.6 else None
    if directions:
        case.attributes["directions"] = directions
    expected = scan8(case.body, states, inputs, [(case.element, FLOAT)] * case.outputs, sequence_lens=lengths,
                     directions=directions)  # fmt: skip
    case.check(["" if lengths is None else "lengths", *names], expected)


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_random_scans(first):
    for seed in range(first, first + BLOCK):
        check_random(seed)


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_random_scans_of_version_8(first):
    for seed in range(first, first + BLOCK):
        check_random_batched(seed)


SUM = """<ir_version: 8, opset_import: ["": %(opset)s]>
g (float[%(s)s] s0, float[%(x)s] x) => (float[?] s, float[?,?] y) {
  s, y = Scan <num_scan_inputs: int = %(m)s, %(more)s
    body = b (float[2] h, float[2] e) => (float[2] n, float[2] o) { n = Add(h, e) o = Identity(n) }>(s0, x)
}"""


def sum_text(opset=16, s="2", x="T,2", m=1, more=""):
    return SUM % {"opset": opset, "s": s, "x": x, "m": m, "more": more}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 0}, "num_scan_inputs is 0"),
        ({"m": 3}, "num_scan_inputs is 3"),
        ({"more": "scan_input_axes: ints = [0, 0],"}, "scan_input_axes has 2 entries"),
        ({"more": "scan_output_axes: ints = [0, 0],"}, "scan_output_axes has 2 entries"),
        ({"more": "scan_input_directions: ints = [0, 1],"}, "scan_input_directions has 2 entries"),
        ({"more": "scan_output_directions: ints = [1, 1],"}, "scan_output_directions has 2 entries"),
        ({"more": "scan_input_directions: ints = [2],"}, "scan_input_directions.* 2, expected 0"),
        ({"more": "scan_output_directions: ints = [-1],"}, "scan_output_directions.* -1, expected 0"),
        ({"more": "scan_input_axes: ints = [2],"}, "scan_input_axes is 2, expected -2 to 1"),
        ({"more": "scan_output_axes: ints = [-3],"}, "scan_output_axes is -3, expected -2 to 1"),
    ],
)
def test_bad_attributes(changes, message):
    with pytest.raises(Exception, match=message):
        run(sum_text(**changes), {"s0": np.zeros(2, FLOAT), "x": np.zeros((3, 2), FLOAT)})


def test_lengths_that_differ():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (float[N] a, float[M] b) => (float[?] y) {
      y = Scan <num_scan_inputs: int = 2, body = b (float p, float q) => (float o) { o = Add(p, q) }>(a, b)
    }"""
    with pytest.raises(Exception, match="length"):
        run(text, {"a": np.zeros(3, FLOAT), "b": np.zeros(4, FLOAT)})


def test_a_state_that_changes_shape_names_the_iteration():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (float[N] s0, float[T, K] x) => (float[?] s) {
      s = Scan <num_scan_inputs: int = 1, body = b (float[P] h, float[K] e) => (float[Q] n) {
        n = Concat <axis: int = 0>(h, e) }>(s0, x)
    }"""
    with pytest.raises(Exception, match="iteration 0"):
        run(text, {"s0": np.zeros(2, FLOAT), "x": np.zeros((3, 2), FLOAT)})
    (s,) = run(text, {"s0": np.ones(2, FLOAT), "x": np.zeros((0, 2), FLOAT)})
    assert s.tolist() == [1, 1]


def test_an_element_that_changes_shape_names_the_iteration():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (int64[T, 1] n) => (float[?,?] y) {
      y = Scan <num_scan_inputs: int = 1, body = b (int64[1] k) => (float[Q] o) { o = ConstantOfShape(k) }>(n)
    }"""
    assert run(text, {"n": np.array([[2], [2]])})[0].shape == (2, 2)
    with pytest.raises(Exception, match="iteration 2"):
        run(text, {"n": np.array([[2], [2], [3], [2]])})


@pytest.mark.parametrize(("length", "entry"), [(4, 1), (-1, 0)])
def test_scan_8_length_out_of_range_names_the_entry(length, entry):
    text = """<ir_version: 8, opset_import: ["": 8]>
    g (int64[B] n, float[B] s0, float[B, T] x) => (float[?] s) {
      s = Scan <num_scan_inputs: int = 1, body = b (float h, float e) => (float o) { o = Add(h, e) }>(n, s0, x)
    }"""
    lengths = np.full(2, 3)
    lengths[entry] = length
    with pytest.raises(Exception, match=rf"sequence_lens\[{entry}\] is {length}, expected 0 to 3"):
        run(text, {"n": lengths, "s0": np.zeros(2, FLOAT), "x": np.zeros((2, 3), FLOAT)})


def test_captures_from_two_levels_up():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (float[N] a, float[T] x, float[U] z) => (float[?,?,?] y) {
      y = Scan <num_scan_inputs: int = 1, body = outer (float p) => (float[U, N] o) {
        twice = Add(a, a)
        o = Scan <num_scan_inputs: int = 1, body = inner (float q) => (float[N] r) {
          pq = Mul(p, q)
          r = Add(twice, pq)
        }>(z)
      }>(x)
    }"""
    rng = np.random.default_rng(0)
    a, x, z = (rng.uniform(-1, 1, n).astype(FLOAT) for n in (3, 4, 5))
    (y,) = run(text, {"a": a, "x": x, "z": z})
    np.testing.assert_allclose(y, 2 * a + (x[:, None] * z)[..., None], rtol=1e-6)


def test_body_outputs_that_are_inputs_constants_or_listed_twice():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (float a, float b, float[T] x) => (float p, float q, float[?] same, float[?] one, float[?] old) {
      c = Constant <value = float {7.0}>()
      p, q, same, one, old = Scan <num_scan_inputs: int = 1,
        body = s (float u, float v, float e) => (float v, float u, float e, float c, float v) { w = Add(u, v) }>(a, b, x)
    }"""
    x = np.arange(3, dtype=FLOAT)
    p, q, same, one, old = run(text, {"a": np.array(1, FLOAT), "b": np.array(2, FLOAT), "x": x})
    assert (p, q) == (2, 1)  # swapped three times
    assert same.tolist() == [0, 1, 2] and one.tolist() == [7, 7, 7] and old.tolist() == [2, 1, 2]


def test_scan_8_within_a_loop_captures_what_the_loop_carries():
    text = """<ir_version: 8, opset_import: ["": 8]>
    g (int64 M, float[B] s0, float[B, T] x, float c) => (float[B] s) {
      s, last = Loop <body = outer (int64 i, bool k, float[B] h, float f) => (bool k, float[B] h2, float f2) {
        f2 = Add(f, c)
        h2 = Scan <num_scan_inputs: int = 1, body = inner (float p, float e) => (float o) {
          pe = Add(p, e)
          fc = Mul(f, c)
          o = Add(pe, fc)
        }>(, h, x)
      }>(M, , s0, c)
    }"""
    rng = np.random.default_rng(3)
    s0, x = (rng.uniform(-1, 1, shape).astype(FLOAT) for shape in ((3,), (3, 4)))
    c = FLOAT(0.25)
    (s,) = run(text, {"M": np.array(2), "s0": s0, "x": x, "c": c})
    expected, f = s0.copy(), c
    for _ in range(2):
        expected = expected + x.sum(axis=1) + 4 * f * c
        f = f + c
    np.testing.assert_allclose(s, expected, rtol=1e-5)


def test_only_tensors_are_scanned():
    text = """<ir_version: 8, opset_import: ["": 16]>
    g (float[N] x) => (float[?] y) {
      s = SequenceConstruct(x, x)
      y = Scan <num_scan_inputs: int = 1, body = b (float[N] e) => (float[N] o) { o = Identity(e) }>(s)
    }"""
    with pytest.raises(Exception, match=r"seq\(tensor\(float\)"):
        run(text, {"x": np.zeros(2, FLOAT)})

"""docs/strictness.md shows models that onnx takes and treadle refuses, and models that treadle takes all the same.

Nodes in any order are tried on graphs, bodies and functions besides."""

import pathlib
import re

import numpy as np
import onnx
import pytest
import treadle

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "strictness.md"
REFUSED, _, REST = PAGE.read_text().partition("## Accepted all the same")
ACCEPTED, _, FORGIVEN = REST.partition("## Errors that a run forgives")


def models(text: str) -> list[str]:
    return re.findall(r"```\n(<ir_version.*?)```", text, re.DOTALL)


def test_the_page_has_both():
    assert len(models(REFUSED)) > 10 and len(models(ACCEPTED)) > 3


@pytest.mark.parametrize("text", models(REFUSED))
def test_refused_here_and_taken_by_onnx(text):
    if onnx.__version__.startswith("1.23."):
        onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text), check_type=True, strict_mode=True)
    with pytest.raises(Exception, match="_0 "):
        treadle.InferenceSession(text.encode())
    with pytest.raises(Exception, match="_0 "):
        treadle.infer_shapes(text.encode())
    assert [p for p in treadle.check(text.encode(), full=True) if p.severity == "error" and p.path]


@pytest.mark.parametrize("text", models(ACCEPTED))
def test_accepted_all_the_same(text):
    treadle.InferenceSession(text.encode())
    treadle.infer_shapes(text.encode())
    problems = treadle.check(text.encode(), full=True)
    assert all(p.severity == "warning" and f"(`{p.code}`)" in ACCEPTED for p in problems)


@pytest.mark.parametrize("text", models(FORGIVEN))
def test_a_run_forgives(text):
    [problem] = [p for p in treadle.check(text.encode(), full=True) if p.severity == "error"]
    assert f"(`{problem.code}`)" in FORGIVEN
    with pytest.warns(UserWarning, match=r"another order|imports no operator set"):
        treadle.InferenceSession(text.encode())


UNSORTED = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (bool c, int64 n, float[2] x) => (float[2] y, float[2] z, float[2] w) {
  a = Neg (x)
  b = Add (a, x)
  d = Sub (b, a)
  y = If (c) <
    then_branch = yes () => (float[2] p) { q = Mul (d, a)  r = Exp (q)  p = Add (r, b) },
    else_branch = no () => (float[2] s) { s = Identity (x) }
  >
  z = Loop (n, c, y) <body = step (int64 i, bool on, float[2] h) => (bool go, float[2] k) {
    go = Identity (on)
    m = Mul (h, d)
    k = Tanh (m)
  }>
  w = local.Twice (z)
}
<domain: "local", opset_import: ["" : 17]>
Twice (u) => (v) { e = Add (u, u)  f = Neg (e)  v = Neg (f) }
"""


def shuffle(nodes, rng):
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                shuffle(attribute.g.node, rng)
    order = list(nodes)
    rng.shuffle(order)
    del nodes[:]
    nodes.extend(order)


@pytest.mark.filterwarnings("ignore:the nodes of")
def test_nodes_in_any_order_give_the_same():
    feeds = {"c": np.array(True), "n": np.array(3), "x": np.array([0.5, -1.25], np.float32)}
    sorted_model = onnx.parser.parse_model(UNSORTED)
    expected = treadle.InferenceSession(sorted_model.SerializeToString()).run(None, feeds)
    rng = np.random.default_rng(1)
    for _ in range(30):
        model = onnx.ModelProto()
        model.CopyFrom(sorted_model)
        shuffle(model.graph.node, rng)
        shuffle(model.functions[0].node, rng)
        found = treadle.InferenceSession(model.SerializeToString()).run(None, feeds)
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_nodes_in_a_circle_are_refused():
    text = b"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) { y = Add (t, x) t = Neg (y) }"""
    with pytest.raises(treadle.InvalidGraph, match=r"/Neg_1 \(Neg-13\): .*circle"):
        treadle.InferenceSession(text)


def test_all_missing_operators_are_named():
    text = b"""<ir_version: 8, opset_import: ["" : 17, "a.b" : 1]>
        g (bool c, float[2] x) => (float[2] y) {
          t = a.b.Rare (x)
          u = If (c) <then_branch = f () => (float[2] p) { p = a.b.Often (t) },
                      else_branch = h () => (float[2] q) { q = a.b.Often (x) }>
          y = Nonsense (u)
        }"""
    named = r"3 operators .* not implemented: a\.b\.Often \(2 nodes\), Nonsense \(1 node\), a\.b\.Rare \(1 node\)"
    with pytest.raises(treadle.NotImplemented, match=named):
        treadle.InferenceSession(text)

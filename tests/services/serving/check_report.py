"""Reports in a headless Chromium: they draw, open and fold without an error, and nothing in a model becomes code."""

import browser
import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper
from treadle.report import report

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="chromium is not installed")

# A Loop with an If whose branches differ in rank, in a Loop; a list; a NaN from iteration 3 on.
NESTED = """<ir_version: 10, opset_import: ["" : 22]>
g (int64 m, float[2] x) => (float[2] last, float[k,2] rows) <float three = {3}, float zero = {0}, bool go = {1}, int64[1] axis = {0}> {
  last, rows = Loop (m, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] row) {
    f = Cast <to = 1> (i)
    q = Sub (three, f)
    l = Log (q)
    positive = Greater (q, zero)
    u = If (positive) <then_branch = yes () => (float[2] y) { y = Add (s, l) },
                       else_branch = no () => (float z) { z = Add (l, zero) }>
    inner = Loop (i, go, s) <body = e (int64 j, bool c2, float[2] a) => (bool d2, float[2] b) {
      b = Tanh (a)
      d2 = Identity (go)
    }>
    t = Add (inner, u)
    row = Mul (t, three)
    d = Identity (go)
  }>
}"""


def hostile():
    bad = "</script><script>document.title='broken'</script>"
    graph = helper.make_graph(
        [helper.make_node("Log", ["x"], ["<img src=x onerror=document.title='broken'>"], name=bad, domain="")],
        "@code@",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("<img src=x onerror=document.title='broken'>", TensorProto.FLOAT, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


def long_network(count):
    nodes = "\n".join(f"v{i + 1} = {'Tanh' if i % 2 else 'Neg'} (v{i})" for i in range(count))
    text = f'<ir_version: 10, opset_import: ["" : 22]> g (float[4] v0) => (float[4] v{count}) {{\n{nodes}\n}}'
    return treadle.parse_model(text)


REPORTS = {
    "nested": lambda: report(treadle.parse_model(NESTED), {"m": np.int64(6), "x": np.float32([1, 2])}),
    "hostile": lambda: report(
        hostile(), {"x": np.float32([1, -1])}, title="</title><script>document.title='broken'</script>"
    ),
    "broken": lambda: report(b"\x08\x0anonsense"),
    "unknown operator": lambda: report(treadle.parse_model(NESTED.replace("Tanh", "Nope"))),
    "without inputs": lambda: report(treadle.parse_model(NESTED)),
    "20,000 nodes": lambda: report(long_network(20_000), {"v0": np.ones(4, np.float32)}, runs=1),
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (420, "dark")])
def test_draws_and_opens(chromium, tmp_path, name, width, scheme):
    made = REPORTS[name]()
    made.save(tmp_path / "report.html")
    page = chromium.page((tmp_path / "report.html").as_uri())
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.call("Page.reload")  # with that width
    page.wait("document.documentElement?.dataset.ready === 'yes'", seconds=20)
    page.run("for (const box of document.querySelectorAll('details')) box.open = true; 0")
    page.run("for (const box of document.querySelectorAll('details')) box.open = true; 0")
    page.wait("!document.querySelector('#boxes details') || !!document.querySelector('#boxes td')")
    page.run(
        "for (const rect of document.querySelectorAll('.flame rect')) rect.dispatchEvent(new MouseEvent('click')); 0"
    )
    page.run("window.dispatchEvent(new Event('resize')); 0")
    assert page.run("document.title") != "broken"
    assert page.run("document.scripts.length") == 3
    assert page.run("document.images.length") == 0
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run("performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []
    page.close()


def test_the_first_nan_is_shown(chromium, tmp_path):
    REPORTS["nested"]().save(tmp_path / "report.html")
    page = chromium.page((tmp_path / "report.html").as_uri())
    page.wait("document.documentElement.dataset.ready === 'yes'")
    assert "Log /Loop_0:body/Log_2, iteration 4" in page.run("document.getElementById('answers').innerText")
    assert "made at" in page.run("document.querySelector('#found pre').innerText")
    assert page.run("document.querySelectorAll('#heat option').length") == 3
    page.close()


def test_the_keyboard_opens_boxes(chromium, tmp_path):
    REPORTS["without inputs"]().save(tmp_path / "report.html")
    page = chromium.page((tmp_path / "report.html").as_uri())
    page.wait("document.documentElement.dataset.ready === 'yes'")
    before = page.run("document.querySelector('#boxes details').open")
    page.press("Tab", 9)
    assert page.run("document.activeElement.tagName") == "SUMMARY"
    page.press("Enter", 13, "\r")
    assert page.run("document.querySelector('#boxes details').open") != before
    page.close()


def test_a_model_of_the_wire(tmp_path):
    """The tree of nodes of a model that onnx wrote, with attributes of every kind."""
    node = helper.make_node(
        "Op", ["x"], ["y"], a=1, b=2.5, c="text", d=[1, 2], e=[0.5], f=["u"], g=onnx.TensorProto(dims=[3])
    )
    graph = helper.make_graph([node], "g", [], [])
    from treadle.report._tree import tree

    [found] = tree(helper.make_model(graph).SerializeToString())
    assert dict(found["attributes"]) == {
        "a": "1", "b": "2.5", "c": "text", "d": "[1, 2]", "e": "[0.5]", "f": "['u']", "g": "tensor[3]",
    }  # fmt: skip

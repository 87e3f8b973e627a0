"""Reports as data and as text; tests/services/serving/check_report.py looks at the pages in a browser."""

import json
import re

import numpy as np
import pytest
import treadle
from treadle.report import report

LEVELS = """<ir_version: 10, opset_import: ["" : 20]>
levels (float[n] x) => (float[n] y) <float start = {0}> {
  louder = Mul (x, x)
  last, y = Scan <num_scan_inputs = 1, body = step (float h, float e) => (float k, float o) {
    less = Sub (e, h)
    k = Log (less)
    o = Identity (k)
  }> (start, louder)
}"""
X = np.array([2, 3, 1, 4], np.float32)


@pytest.fixture(scope="module")
def levels():
    return treadle.parse_model(LEVELS)


def data_of(page):
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_a_report_with_inputs(levels):
    made = report(levels, {"x": X})
    assert "A NaN is made by Log /Scan_1:body/Log_1, iteration 2, and reaches an output." in str(made)
    data = data_of(made.html)
    assert [node["op"] for node in data["nodes"]] == ["Mul", "Scan"]
    [body] = data["nodes"][1]["bodies"]
    assert [node["name"] for node in body["nodes"]] == [f"/Scan_1:body/{n}" for n in ("Sub_0", "Log_1", "Identity_2")]
    assert data["nodes"][0]["outputs"] == [["louder", "float[n]"]]
    values = {value["name"]: value for value in data["trace"]["map"]["/Scan_1"]["values"]}
    assert values["k"]["first"] == [2]
    assert values["k"]["marks"] == {"2": "nan", "3": "nan"}
    assert data["times"]["usual_ns"] > 0
    assert data["explanation"]["loops"][0]["node"] == "/Scan_1"


def test_a_stream_has_latencies():
    gain = treadle.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Neg (x) }'
    )
    made = report(gain, {"x": np.ones(1000, np.float32)}, stream={"time": {"x": 0}, "hop": 100}, rate=16000)
    assert len(made.data["pushes"]["us"]) == 10
    assert made.data["pushes"]["hop"] == 100


def test_without_inputs_nothing_runs(levels):
    made = report(levels)
    assert made.data["times"] is None
    assert "with inputs" in str(made)


def test_a_model_that_does_not_load(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x0anonsense")
    made = report(path)
    assert made.data["title"] == "broken.onnx"
    assert made.data["problems"]
    assert "wire type" in str(made)
    made.save(tmp_path / "report.html")
    unknown = report(treadle.parse_model(LEVELS.replace("Log", "Nope")))
    assert "Nope" in str(unknown)
    assert len(unknown.data["nodes"]) == 2  # they are shown


def test_the_page_is_safe_and_whole(levels):
    made = report(levels, {"x": X}, title="</title><script>x</script>&@data@@code@")
    page = made.html
    assert page.count("<script") == 3
    assert re.search(r"https?:", page.split("<script>")[0]) is None
    assert data_of(page)["title"] == "script>&@data@@code@"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-")
    assert "Mike Bostock" in page
    assert "sandbox" in made._repr_html_()

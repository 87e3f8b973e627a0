"""Reports as data and as text; tests/services/serving/check_report.py looks at the pages in a browser."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import treadle
from treadle.report import report
from treadle.report._tree import tree

ROOT = pathlib.Path(__file__).parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
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
    pushes = made.data["pushes"]
    assert len(pushes["us"]) == 10
    assert pushes["hop"] == 100
    said = re.fullmatch(
        r"10 pushes of 100 samples: p50 ([\d,.]+) us, p99 ([\d,.]+) us, p99.9 ([\d,.]+) us, maximum ([\d,.]+) us. "
        r"They take ([\d.e-]+) % of the time in which the samples come.",
        pushes["summary"],
    )
    found = [float(number.replace(",", "")) for number in said.groups()]
    assert found[:4] == pytest.approx(np.percentile(pushes["us"], [50, 99, 99.9, 100]), abs=0.06)
    assert found[4] == pytest.approx(100 * np.mean(pushes["us"]) / (100 / 16000 * 1e6), rel=0.05)
    assert pushes["summary"] in str(made)


def test_a_stream_over_windows_shows_a_window():
    """A model that takes windows of one size is not run over the whole signal."""
    window = treadle.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[12] x) => (float[12] y) { y = Neg (x) }'
    )
    stream = {"time": {"x": 0}, "hop": 8, "context": 4}
    made = report(window, {"x": np.ones(80, np.float32)}, stream=stream)
    assert "A run of one window of 12 samples takes" in str(made)
    assert len(made.data["pushes"]["us"]) == 10
    unknown = report(window, {"x": np.ones(80, np.float32)}, stream={"time": {"z": 0}})
    assert "there is no such input" in str(unknown)


def test_memory_and_who_holds_the_peak():
    grows = treadle.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[4,8] x) => (float[1,8] y) <int64[2] by = {64, 8}, int64[1] axis = {0}, int64 zero = {0}> {
      wide = Tile (x, by) soft = Softmax (wide) sums = CumSum (soft, zero) y = ReduceMean <keepdims = 1> (sums, axis)
    }""")
    memory = report(grows, {"x": np.ones((4, 8), np.float32)}).data["times"]["memory"]
    size = 4 * 64 * 8 * 8 * 4
    peak = memory["steps"][memory["peak"]]
    assert peak["op"] == "Softmax"
    assert 2 * size <= peak["planned"] <= memory["arena_bytes"]
    assert sorted(value["name"] for value in memory["holders"][:2]) == ["soft", "wide"]
    assert [value["bytes"] for value in memory["holders"][:2]] == [size, size]


def test_long_attributes_cost_nothing():
    """Of a forest's lists of numbers only what is shown is read."""
    onnx = pytest.importorskip("onnx")
    many = list(range(300_000))
    node = onnx.helper.make_node("Op", ["x"], ["y"], name="n", numbers=many, parts=[0.5] * 300_000, domain="own")
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], [])).SerializeToString()
    begin = time.perf_counter()
    [found] = tree(model)
    assert time.perf_counter() - begin < 0.1
    assert dict(found["attributes"])["numbers"].startswith("[0, 1, 2, 3, 4, 5,")
    assert dict(found["attributes"])["parts"].endswith("...")


def test_texts_have_no_norms():
    made = report(
        treadle.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
    g (string[n] w, int64 m) => (string[n] j) <bool go = {1}, string[1] dot = {"."}> {
      j = Loop (m, go, w) <body = b (int64 i, bool c, string[n] s) => (bool d, string[n] t) {
        t = StringConcat (s, dot)
        d = Identity (c)
      }>
    }"""),
        {"w": np.array(["wind"]), "m": np.int64(3)},
    )
    assert "left_out" not in made.data["trace"]
    named = [value["name"] for loop in made.data["trace"]["map"].values() for value in loop["values"]]
    assert not {"s", "t"} & set(named)


def test_functions_are_opened():
    """Nodes of a function have the paths that times bear, and the attributes of the call."""
    model = treadle.parse_model("""<ir_version: 10, opset_import: ["" : 22, "house" : 1]>
    g (float[8] x) => (float[8] z) { y = house.F <slope = 0.25> (x) z = house.F (y) }
    <domain: "house", opset_import: ["" : 22]> F <slope: float = 0.125> (v) => (w) {
      a = LeakyRelu <alpha: float = @slope> (v) w = Softmax (a)
    }""")
    made = report(model, {"x": np.ones(8, np.float32)})
    first, second = made.data["nodes"]
    assert (first["function"], first["bodies"][0]["name"]) == ("house", "function")
    inside = [node for call in (first, second) for node in call["bodies"][0]["nodes"]]
    assert [node["name"] for node in inside] == [
        "/F_0/LeakyRelu_0",
        "/F_0/Softmax_1",
        "/F_1/LeakyRelu_0",
        "/F_1/Softmax_1",
    ]
    assert [dict(node["attributes"]) for node in inside] == [{"alpha": "0.25"}, {}, {"alpha": "0.125"}, {}]
    assert {node["node"] for node in made.data["times"]["nodes"]} & {node["name"] for node in inside}


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


def metadata(nodes):
    """By the name of its first output, what a node and those in its bodies say of themselves."""
    found = {}
    for node in nodes:
        found[node.output[0]] = {entry.key: entry.value for entry in node.metadata_props}
        for attribute in node.attribute:
            found |= metadata(attribute.g.node)
    return found


def test_the_model_with_metadata(levels, tmp_path):
    onnx = pytest.importorskip("onnx")
    made = report(levels, {"x": X})
    made.save_model(tmp_path / "seen.onnx")
    written = onnx.load(tmp_path / "seen.onnx")
    onnx.checker.check_model(written, full_check=True)
    said = metadata(written.graph.node)
    assert said["louder"]["treadle.range"] == "louder: 1 to 16"
    assert said["k"]["treadle.range"] == "k: 1.38629 to 2.02995, 2 NaN"
    assert said["last"]["treadle.iterations"] == "4"
    assert said["last"]["treadle.range.1"] == "y: 1.38629 to 2.02995, 2 NaN"
    assert float(said["last"]["treadle.time_us"]) > 0
    assert sum(float(said[name]["treadle.share"].split()[0]) for name in ("louder", "last")) <= 101
    assert "rewritten" in str(said)
    same = treadle.InferenceSession(tmp_path / "seen.onnx").run(None, {"x": X})
    np.testing.assert_array_equal(same, treadle.InferenceSession(levels).run(None, {"x": X}))
    report(tmp_path / "seen.onnx", {"x": X}).save_model(tmp_path / "again.onnx")
    again = onnx.load(tmp_path / "again.onnx")
    keys = [entry.key for entry in again.graph.node[0].metadata_props]
    assert len(keys) == len(set(keys))  # the earlier ones are gone


def test_the_model_with_metadata_without_a_run(levels, tmp_path):
    report(levels).save_model(tmp_path / "seen.onnx")
    onnx = pytest.importorskip("onnx")
    said = metadata(onnx.load(tmp_path / "seen.onnx").graph.node)
    assert "treadle.tier" in said["last"]
    assert "treadle.range" not in said["louder"]


def test_weights_in_files_stay_beside_the_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.ModelProto.FromString(
        treadle.parse_model(
            '<ir_version: 10, opset_import: ["" : 20]> g (float[64] x) => (float[64] y) <float[64] w> { y = Add (x, w) }'
        )
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(64, np.float32), "w"))
    del model.graph.value_info[:]
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    made = report(tmp_path / "m.onnx", {"x": np.ones(64, np.float32)})
    made.save_model(tmp_path / "seen.onnx")
    assert treadle.InferenceSession(tmp_path / "seen.onnx").run(None, {"x": np.ones(64, np.float32)})[0][0] == 2
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match="lie in files beside it"):
        made.save_model(tmp_path / "other" / "seen.onnx")


@pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
def test_the_command(levels, tmp_path):
    (tmp_path / "levels.onnx").write_bytes(levels)
    np.save(tmp_path / "x.npy", X)
    words = [tmp_path / "levels.onnx", tmp_path / "x.npy", "-o", tmp_path / "r.html", "--netron", tmp_path / "n.onnx"]
    environment = os.environ | {"TREADLE_PYTHON": sys.executable}
    done = subprocess.run(
        [TOOL, "report", *words], check=True, capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.stdout.endswith(f"written to {tmp_path / 'r.html'} and {tmp_path / 'n.onnx'}\n")
    assert b"treadle.time_us" in (tmp_path / "n.onnx").read_bytes()

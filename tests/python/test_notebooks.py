"""What notebooks show: sessions, profiles, explanations, traces and comparisons as pages of their own. Nothing runs for it."""

import html
import json
import re
import time

import numpy as np
import pytest
import treadle

LEVELS = """<ir_version: 10, opset_import: ["" : 20]>
levels (float[n] x) => (float[n] y) <float start = {0}> {
  louder = Mul (x, x)
  last, y = Scan <num_scan_inputs = 1, body = step (float h, float e) => (float k, float o) {
    less = Sub (e, h)
    k = Log (less)
    o = Identity (k)
  }> (start, louder)
}"""
FEEDS = {"x": np.array([2, 3, 1, 4], np.float32)}


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "levels.onnx"
    path.write_bytes(treadle.parse_model(LEVELS))
    return treadle.InferenceSession(path)


def shown(thing):
    """The data of the page that a notebook shows."""
    frame = thing._repr_html_()
    [page] = re.fullmatch(r'<iframe sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>', frame).groups()
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html.unescape(page), re.DOTALL)
    return json.loads(data)


def test_a_session_shows_its_boxes(session):
    runs = session.counters()["runs"]
    data = shown(session)
    assert data["title"] == "levels.onnx"
    assert data["about"] == "5 nodes, 1 loop; from x tensor(float)[n] to y"
    assert [node["name"] for node in data["nodes"][1]["bodies"][0]["nodes"]][0] == "/Scan_1:body/Sub_0"
    assert session.counters()["runs"] == runs
    of_text = shown(treadle.InferenceSession(LEVELS.encode()))
    assert len(of_text["nodes"]) == 2


def test_a_session_whose_file_is_gone(session, tmp_path):
    (tmp_path / "levels.onnx").unlink()
    assert shown(session)["about"] == "from x tensor(float)[n] to y"


def test_a_session_of_20_000_nodes_is_shown_at_once():
    nodes = "\n".join(f"v{i + 1} = Neg (v{i})" for i in range(20_000))
    text = f'<ir_version: 10, opset_import: ["" : 22]> g (float[4] v0) => (float[4] v20000) {{\n{nodes}\n}}'
    session = treadle.InferenceSession(treadle.parse_model(text))
    profile = session.profile({"v0": np.ones(4, np.float32)}, runs=1)
    trace = session.trace({"v0": np.ones(4, np.float32)})
    begin = time.perf_counter()
    assert shown(session)["about"].startswith("more than 2,000 nodes")
    assert len(shown(profile)["times"]["nodes"]) <= 2001
    assert "samples" in shown(trace)["text"]
    assert time.perf_counter() - begin < 3
    assert all(len(thing._repr_html_()) < 1_500_000 for thing in (session, profile, trace))


def test_a_profile_shows_times_and_memory(session):
    profile = session.profile(FEEDS, runs=2)
    runs = session.counters()["runs"]
    data = shown(profile)
    assert data["times"]["profiled_ns"] == profile.total_ns
    assert data["times"]["memory"]["steps"]
    assert session.counters()["runs"] == runs


def test_an_explanation_shows_its_text(session):
    explained = session.explain(FEEDS)
    assert isinstance(explained, str)
    runs = session.counters()["runs"]
    assert shown(explained)["text"] == str(explained)
    assert session.counters()["runs"] == runs
    assert isinstance(session.explain(json=True), dict)


def test_a_trace_shows_what_was_found_and_a_heat_map(session):
    trace = session.trace(FEEDS, find="nan")
    runs = session.counters()["runs"]
    data = shown(trace)
    values = {value["name"]: value["first"] for value in data["trace"]["map"]["/Scan_1"]["values"]}
    assert values == {"h": [3], "e": None, "less": [3], "k": [2], "o": [2]}
    assert "made at" in data["trace"]["text"]
    assert "samples" not in data["trace"]["text"]  # the map shows them
    assert session.counters()["runs"] == runs


def test_a_comparison_begins_with_its_result(tmp_path):
    plain = treadle.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[3] x) => (float[3] y) { y = Neg (x) }'
    )
    other = treadle.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[3] x) => (float[3] y) { y = Abs (x) }'
    )
    feeds = {"x": np.ones(3, np.float32)}
    same = shown(treadle.compare(plain, feeds, plain))
    assert [answer["kind"] for answer in same["answers"]] == [""]
    assert "agree" in same["answers"][0]["text"]
    data = shown(treadle.compare(plain, feeds, other))
    assert data["answers"][0]["kind"] == "bad"
    assert "DIFFERENT" in data["text"]


def test_names_stay_texts(tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>.onnx"
    path.write_bytes(treadle.parse_model(LEVELS))
    frame = treadle.InferenceSession(path)._repr_html_()
    assert frame.count("<") == 2  # the frame's own
    assert "<img" not in html.unescape(frame)

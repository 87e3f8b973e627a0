"""bench/bench_passes.py, on a model of which one rewrite changes the graph and the plan."""

import pathlib
import sys

import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")
np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime", reason="benchmarks run it beside treadle")

sys.path.append(str(pathlib.Path(__file__).parents[2] / "bench"))

import bench_passes  # noqa: E402

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[5,64] x, float[64] s0) => (float[64] last) {
  last = Scan <num_scan_inputs = 1, body = b (float[64] s, float[64] e) => (float[64] next) {
    sum = ReduceLogSumExp <keepdims = 1> (e)
    next = Add (s, sum) }> (s0, x) }"""


def subject():
    feeds = {"x": np.ones((5, 64), np.float32), "s0": np.zeros(64, np.float32)}
    return bench_passes.Subject("cases", "sums", treadle.parse_model(MODEL), [feeds])


def test_a_rewrite_that_changes_the_graph_is_found_and_its_plan_is_another_one():
    changed, seconds = bench_passes.changes(subject(), {})
    assert "expand-nodes" in changed
    assert "unstack-states" not in changed
    assert set(seconds) <= set(bench_passes.all_names())
    assert all(taken >= 0 for taken in seconds.values())
    assert bench_passes.replans(subject(), "expand-nodes", {})
    assert not bench_passes.replans(subject(), "unstack-states", {})


def test_options_ask_for_rewrites_of_their_own():
    for value, rewrites in bench_passes.BY_OPTION.values():
        assert value
        assert set(rewrites) <= set(bench_passes.all_names())

"""Runs that are looked into: series of inner values, and where NaN comes from."""

import json
import pathlib
import subprocess

import numpy as np
import pytest
import treadle
from test_cli import TOOL, complaint, tool

LEVELS = """<ir_version: 10, opset_import: ["" : 20]>
levels (float[n] x) => (float[n] y, float last) <float start = {0}> {
  louder = Mul (x, x)
  last, y = Scan <num_scan_inputs = 1, body = step (float h, float e) => (float k, float o) {
    less = Sub (e, h)
    k = Log (less)
    o = Identity (k)
  }> (start, louder)
}"""
X = np.array([2, 3, 1, 4], np.float32)


def expected(x):
    """The values of `less` and of `k`."""
    h, less, k = np.float32(0), [], []
    with np.errstate(invalid="ignore"):
        for e in x * x:
            less.append(e - h)
            h = np.log(less[-1])
            k.append(h)
    return np.array(less), np.array(k)


@pytest.fixture(scope="module")
def session():
    return treadle.InferenceSession(treadle.parse_model(LEVELS))


def test_values_and_statistics_of_each_iteration(session):
    trace = session.trace({"x": X}, values=True)
    less, k = expected(X)
    np.testing.assert_allclose(trace["less"].values, less, rtol=1e-6)
    np.testing.assert_allclose(trace["/Scan_1:body/k"].values, k, rtol=1e-6)
    np.testing.assert_allclose(trace.outputs["y"], k, rtol=1e-6)
    assert trace["k"].iterations.tolist() == [[0], [1], [2], [3]]
    assert trace["k"].nan.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(trace["less"].minimum, less, rtol=1e-6)
    np.testing.assert_allclose(trace["louder"].norm, np.linalg.norm(X * X), rtol=1e-6)
    assert trace["louder"].maximum.tolist() == [16]
    assert trace["louder"].iterations.shape == (1, 0)
    assert {"/Scan_1:body/less", "louder", "y"} <= set(trace)
    assert trace.every == 1
    assert trace.found is None


def test_only_what_is_watched(session):
    trace = session.trace(
        {"x": np.arange(2, 40, dtype=np.float32)}, watch=["less@3-5", "y"], values=True, statistics=False
    )
    assert list(trace) == ["/Scan_1:body/less", "y"]
    assert trace["less"].iterations.ravel().tolist() == [3, 4, 5]
    assert len(trace["less"]) == 3
    assert trace["less"].minimum.size == 0
    every = session.trace({"x": np.arange(2, 40, dtype=np.float32)}, watch="less", every=10)
    assert every["less"].iterations.ravel().tolist() == [0, 10, 20, 30]


def test_what_is_found(session):
    found = session.trace({"x": X}, find="nan", statistics=False).found
    [place] = found["places"]
    assert (place["op"], place["node"]) == ("Log", "/Scan_1:body/Log_1")
    assert place["iterations"] == [{"loop": "/Scan_1", "iteration": 2}]
    assert place["inputs"][0]["name"] == "/Scan_1:body/less"
    assert place["inputs"][0]["made_by"] == "Sub /Scan_1:body/Sub_0"
    assert found["reached"] == 1
    assert [output.get("element") for output in found["outputs"]] == [[2], []]
    none = session.trace({"x": X[:2]}, find="nan")
    assert none.found["places"] == []
    assert "no nan in " in str(none)


def test_wrong_names_and_numbers(session):
    feed = {"x": X}
    with pytest.raises(treadle.InvalidArgument, match=r"no value 'lss' \(did you mean '/Scan_1:body/less'\?\)"):
        session.trace(feed, watch="lss")
    with pytest.raises(treadle.InvalidArgument, match="cannot be found in values"):
        session.trace(feed, find="nans")
    with pytest.raises(treadle.InvalidArgument, match="expected 1 or more"):
        session.trace(feed, every=0)
    with pytest.raises(KeyError, match="did you mean 'less'"):
        session.trace(feed)["lesss"]
    with pytest.raises(KeyError, match="x2"):
        session.trace(feed, watch="less")["x2"]


def test_bounded_memory(session):
    feed = {"x": np.full(100_000, 3, np.float32)}
    with pytest.raises(treadle.InvalidArgument, match="more than memory = 1 MB: watch fewer values, every = "):
        session.trace(feed, memory=1_000_000)
    with pytest.raises(treadle.LimitExceeded, match="more than memory = 1000000 bytes at iteration [0-9]+ of "):
        session.trace(feed, values=True, statistics=False, memory=1_000_000)


def test_a_run_that_fails():
    gather = treadle.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, int64 i) => (float y) { l = Log (x) y = Gather (l, i) }""")
    session = treadle.InferenceSession(gather)
    with pytest.raises(treadle.RuntimeException, match="index 9"):
        session.trace({"x": X, "i": np.int64(9)}, find="nan")
    assert session.trace({"x": X, "i": np.int64(1)}).outputs["y"] == np.log(X[1])


def test_runs_beside_a_trace_are_not_changed(session):
    before = session.run(None, {"x": X})
    counters = session.counters()["plans"]
    session.trace({"x": X}, find="nan")
    for a, b in zip(before, session.run(None, {"x": X}), strict=True):
        np.testing.assert_array_equal(a, b)
    assert session.counters()["plans"] == counters


# --- inputs without a value


OPTIONAL = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, float low, optional(float[n]) more) => (float[n] y, bool has) {
  y = Clip (x, low)
  has = OptionalHasElement (more)
}"""


def test_none_for_an_input():
    session = treadle.InferenceSession(treadle.parse_model(OPTIONAL))
    trace = session.trace({"x": X, "low": None, "more": None}, values=True, find="nan")
    np.testing.assert_array_equal(trace.outputs["y"], X)
    np.testing.assert_array_equal(trace["y"].values[0], X)
    assert not trace.outputs["has"] and "low" not in trace
    given = session.trace({"x": X, "low": np.float32(2), "more": X})
    assert given["low"].minimum == 2 and given.outputs["has"]


def test_none_for_an_input_that_is_needed(session):
    with pytest.raises(treadle.InvalidArgument, match="input 'x' is None, and this node needs its value") as run:
        session.run(None, {"x": None})
    with pytest.raises(treadle.InvalidArgument) as trace:
        session.trace({"x": None})
    assert str(trace.value) == str(run.value)


# --- the tool

needs_tool = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


@pytest.fixture
def levels(tmp_path):
    path = tmp_path / "levels.onnx"
    path.write_bytes(treadle.parse_model(LEVELS))
    np.save(tmp_path / "x.npy", X)
    return path


@needs_tool
def test_find_with_the_tool(levels):
    x = levels.parent / "x.npy"
    text = tool("run", levels, x, "--find", "nan", status=1)
    assert "made at     /Scan_1 body, iteration 2: Log /Scan_1:body/Log_1\n" in text
    found = json.loads(tool("run", levels, x, "--find", "nan", "--json", status=1))["found"]
    assert found["places"][0]["op"] == "Log"
    assert "no inf in " in tool("run", levels, x, "--find", "inf")


@needs_tool
def test_values_with_the_tool(levels):
    out = levels.parent / "out.npz"
    text = tool(
        "run", levels, levels.parent / "x.npy", "--values", "less@1-2", "--values", "louder", "--values-out", out
    )
    assert "/Scan_1:body/less" in text
    with np.load(out) as arrays:
        assert sorted(arrays) == ["/Scan_1:body/less", "/Scan_1:body/less@", "louder"]
        np.testing.assert_allclose(arrays["/Scan_1:body/less"], expected(X)[0][1:3], rtol=1e-6)
        assert arrays["/Scan_1:body/less@"].tolist() == [[1], [2]]
        np.testing.assert_array_equal(arrays["louder"], X * X)
    assert "did you mean" in complaint("run", levels, levels.parent / "x.npy", "--values", "lss")
    limit = complaint("run", levels, levels.parent / "x.npy", "--values", "less", "--values-limit", "6")
    assert "the values take more than 6 bytes at iteration 1 of /Scan_1:body/less" in limit


@needs_tool
def test_iterations_that_do_not_come_are_told(levels):
    out = levels.parent / "out.npz"
    command = [TOOL, "run", levels, levels.parent / "x.npy", "--values", "less@7", "--values-out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "/Scan_1:body/less: not computed in these iterations of this run\n"


@needs_tool
def test_a_run_counts_the_nan_of_its_outputs(levels):
    """Also those that are not among the elements that it prints."""
    x = levels.parent / "long.npy"
    np.save(x, np.array([*range(2, 12), 0, 1], np.float32))
    assert ", 2 nan\n" in tool("run", levels, x)
    np.save(x, np.zeros(9, np.float32) - np.float32(np.nan))
    assert "  all nan\n" in tool("run", levels, x)


@needs_tool
@pytest.mark.parametrize("number", [0, np.inf])
def test_nan_has_no_sign(tmp_path, number):
    (tmp_path / "m.onnxtxt").write_text(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2] x) => (float[2] y) { y = Div (x, x) }'
    )
    np.save(tmp_path / "x.npy", np.array([1, number], np.float32))
    text = tool("run", tmp_path / "m.onnxtxt", tmp_path / "x.npy", "--find", "nan", status=1)
    assert "the first at [1]: nan\n" in text
    assert "1, nan\n" in tool("run", tmp_path / "m.onnxtxt", tmp_path / "x.npy")


@needs_tool
def test_values_of_changing_sizes(tmp_path):
    path = tmp_path / "growing.onnx"
    path.write_bytes(
        treadle.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
g (int64 m, float[1] x) => (float[k] y) <bool go = {1}> {
  y = Loop (m, go, x) <body = b (int64 i, bool c, float[p] s) => (bool d, float[q] t) {
    d = Identity (go)
    t = Concat <axis = 0> (s, x)
  }>
}""")
    )
    tool("run", path, "m=3", "x=[2]", "--values", "t", "--values-out", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        sizes = {name: arrays[name].shape for name in arrays}
    assert sizes == {f"/Loop_0:body/t@{i}": (i + 2,) for i in range(3)} | {"/Loop_0:body/t@": (3, 1)}


@needs_tool
def test_what_cannot_be_combined(levels):
    x = levels.parent / "x.npy"
    for more in (["--tier", "reference"], ["--plan"], ["--out", "y.npy"]):
        done = subprocess.run(
            [TOOL, "run", levels, x, "--find", "nan", *more], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stdout + done.stderr


@needs_tool
def test_names_that_could_break_files_and_texts(tmp_path):
    """Newlines, paths, signs of the options and of JSON in names of values and nodes."""
    import onnx
    from onnx import TensorProto, helper

    names = ["a\nb", "../up", 'q"uote', "at@7", "sta*r", "<script>", "x" * 200]
    nodes = [helper.make_node("Log", ["x"], [name], name=name) for name in names]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in names],
    )
    path = tmp_path / "hostile.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    session = treadle.InferenceSession(str(path))
    feed = {"x": np.array([1, -1], np.float32)}
    trace = session.trace(feed, watch=names, values=True, find="nan")
    assert [name for name in trace if name != "x"] == names
    assert len(trace.found["places"]) == len(names)
    out = tmp_path / "folder" / "out.npz"
    out.parent.mkdir()
    tool("run", path, "x=[1,-1]", "--values", "*", "--values-out", out)
    with np.load(out) as arrays:
        assert len(arrays.files) == len(names) + 1
    subprocess.run(["python3", "-m", "zipfile", "-e", str(out), str(out.parent)], check=True)
    assert list(pathlib.Path(tmp_path).glob("*.npy")) == []
    found = json.loads(tool("run", path, "x=[1,-1]", "--find", "nan", "--json", status=1))["found"]
    assert [output["name"] for output in found["outputs"]] == names

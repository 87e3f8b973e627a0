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


# --- the node alone


def case_results(folder):
    """What a saved node gives for its saved inputs."""
    session = treadle.InferenceSession(str(folder / "model.onnx"))
    messages = [(folder / "test_data_set_0" / f"input_{i}.pb").read_bytes() for i in range(len(session.get_inputs()))]
    feeds = {
        info.name: treadle._core.Value.from_pb(message).numpy()
        for info, message in zip(session.get_inputs(), messages, strict=True)
    }
    return feeds, session.run(None, feeds)


def test_the_node_is_saved_with_its_inputs(session, tmp_path):
    found = session.trace({"x": X}, find="nan", statistics=False, save=tmp_path / "a" / "b").found
    assert found["saved"] == {"folder": str(tmp_path / "a" / "b"), "problem": ""}
    feeds, [k] = case_results(tmp_path / "a" / "b")
    np.testing.assert_allclose([*feeds.values()], expected(X)[0][2:3], rtol=1e-6)
    assert np.isnan(k)


def test_a_node_with_weights_and_states_is_saved_whole(tmp_path):
    """An LSTM, which treadle runs as a loop, in a Loop: its input overflows in the last of three iterations."""
    rng = np.random.default_rng(0)
    text = """<ir_version: 10, opset_import: ["" : 20]>
g (float[2,1,3] x, int64 n) => (float[2,1,1,4] y) <bool go = {1}, float[1,16,3] w = {W}, float[1,16,4] r = {R}> {
  last, y = Loop (n, go, x) <body = b (int64 i, bool c, float[2,1,3] s) => (bool c, float[2,1,3] t, float[2,1,1,4] o) {
    t = Exp (s)
    less = Sub (t, t)
    o, h, cell = LSTM <hidden_size = 4> (less, w, r)
  }>
}"""
    for name, size in (("W", 48), ("R", 64)):
        text = text.replace(name + "}", ", ".join(f"{v:.4f}" for v in rng.standard_normal(size)) + "}")
    text = text.replace("=> (float[2,1,1,4] y)", "=> (float[k,2,1,1,4] y)")
    session = treadle.InferenceSession(treadle.parse_model(text))
    feeds = {"x": np.full((2, 1, 3), 2, np.float32), "n": np.int64(3)}
    found = session.trace(feeds, find="nan", save=tmp_path).found
    assert found["places"][0]["op"] == "Sub" and found["saved"]["problem"] == ""
    feeds, [less] = case_results(tmp_path)
    assert np.isinf([*feeds.values()]).all() and np.isnan(less).all()


def test_what_a_node_reads_from_around_its_body_is_saved(tmp_path):
    """A value of an outer loop, an element of a scanned tensor, and one from the model's graph."""
    session = treadle.InferenceSession(
        treadle.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, float[4] offsets, int64 m) => (float[k,n] y) <bool go = {1}, float zero = {0}> {
  twice = Add (x, x)
  last, y = Loop (m, go, zero) <body = outer (int64 i, bool c, float s) => (bool c, float t, float[n] row) {
    one = Constant <value_float: float = 1.0> ()
    t = Add (s, one)
    end, row = Scan <num_scan_inputs = 1, body = inner (float h, float e) => (float h2, float o) {
      h2 = Identity (e)
      picked = Gather (offsets, i)
      base = Sub (e, t)
      o = Pow (base, picked)
    }> (s, twice)
  }>
}""")
    )
    feeds = {"x": np.float32([2, 1, 3]), "offsets": np.float32([1, 2, 0.5, 1]), "m": np.int64(4)}
    trace = session.trace(feeds, find="nan", save=tmp_path)
    [place] = trace.found["places"]
    assert [at["iteration"] for at in place["iterations"]] == [2, 1]
    assert f"saved       {tmp_path} (treadle test {tmp_path})\n" in str(trace)
    inputs, [o] = case_results(tmp_path)
    assert np.isnan(o) and sorted(map(float, inputs.values())) == [-1, 0.5]


@pytest.mark.parametrize(
    ("text", "feeds", "problem"),
    [
        ("g (float[2] x) => (float[2] y) { y = Neg (x) }", {"x": [1, np.nan]}, "it comes with an input of the model"),
        (
            "g (float[2] x) => (float[2] y) <float[2] c = {1, nan}> { y = Add (x, c) }",
            {"x": [1, 2]},
            "it is in a constant of the model",
        ),
        ("g (float[2] x) => (float[2] y) <float[2] c = {1, -1}> { l = Log (c) y = Add (x, l) }", {"x": [1, 2]}, ""),
    ],
)
def test_what_no_node_of_the_run_made(tmp_path, text, feeds, problem):
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.optimize", "0")
    model = treadle.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    session = treadle.InferenceSession(model, options)
    saved = session.trace({"x": np.float32(feeds["x"])}, find="nan", save=tmp_path / "out").found["saved"]
    assert problem in saved["problem"] and bool(problem) == bool(saved["problem"])
    assert bool(saved["folder"]) == (tmp_path / "out").exists() == (not problem)


def test_where_nothing_can_be_saved(session, tmp_path):
    (tmp_path / "file").write_text("")
    found = session.trace({"x": X}, find="nan", save=tmp_path / "file" / "out").found
    assert found["saved"]["folder"] == "" and "cannot be made: Not a directory" in found["saved"]["problem"]
    with pytest.raises(treadle.InvalidArgument, match="only what `find` finds can be saved"):
        session.trace({"x": X}, save=tmp_path)
    assert "saved" not in session.trace({"x": X[:2]}, find="nan", save=tmp_path / "none").found
    assert not (tmp_path / "none").exists()


def test_the_node_of_a_run_that_fails_is_saved(tmp_path):
    gather = treadle.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, int64 i) => (float y) { l = Log (x) y = Gather (l, i) }""")
    with pytest.raises(treadle.RuntimeException, match="index 9"):
        treadle.InferenceSession(gather).trace({"x": -X, "i": np.int64(9)}, find="nan", save=tmp_path)
    assert np.isnan(case_results(tmp_path)[1]).all()


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
def test_the_node_is_saved_with_the_tool(levels):
    x, out = levels.parent / "x.npy", levels.parent / "out"
    text = tool("run", levels, x, "--find", "nan", "--save", out, status=1)
    assert f"\nsaved       {out} (treadle test {out})\n" in text
    assert "1 passed, 0 failed" in tool("test", out)
    assert "nan" in tool("run", out / "model.onnx", out / "test_data_set_0" / "input_0.pb")


@needs_tool
def test_statistics_with_the_tool(levels):
    x = levels.parent / "x.npy"
    text = tool("run", levels, x, "--statistics", "--watch", "less", "--watch", "k@0-1")
    assert text.splitlines()[0].split() == ["value", "samples", "range", "over", "all", "of", "them"]
    assert [line.split()[:2] for line in text.splitlines()[1:]] == [["/Scan_1:body/less", "4"], ["/Scan_1:body/k", "2"]]
    values = json.loads(tool("run", levels, x, "--statistics", "--every", "2", "--json"))["values"]
    assert next(v for v in values if v["name"] == "/Scan_1:body/less")["iterations"] == [[0], [2]]
    found = tool("run", levels, x, "--statistics", "--find", "nan", status=1)
    assert "made at " in found and "range over all of them" in found


@needs_tool
def test_every_so_many_iterations_with_the_tool(levels):
    out = levels.parent / "out.npz"
    tool("run", levels, levels.parent / "x.npy", "--values", "less", "--every", "3", "--values-out", out)
    with np.load(out) as arrays:
        assert arrays["/Scan_1:body/less@"].tolist() == [[0], [3]]


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
    find = ["--find", "nan"]
    for words in (
        [*find, "--tier", "reference"],
        [*find, "--plan"],
        [*find, "--out", "y.npy"],
        ["--statistics", "--plan"],
        ["--statistics", "--values", "k"],
        ["--watch", "k"],
        ["--every", "2"],
        ["--save", "out"],
    ):
        done = subprocess.run([TOOL, "run", levels, x, *words], capture_output=True, text=True, check=False)
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

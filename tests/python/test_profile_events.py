"""enable_profiling writes onnxruntime's events: programs that read its files find the nodes of every run."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import treadle

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,2] x, int64 n) => (float[2,2] y, float[2,2] z) {
  t = MatMul (x, x)  s = Softmax (t)  a = Add (s, x)  y = Tanh (a)
  k = Constant <value = bool {1}> ()
  z = Loop (n, k, x) <body = b (int64 i, bool c, float[2,2] v) => (bool next, float[2,2] w) {
    next = Identity (c)  q = Sin (v)  w = Add (q, y)
  }>
}"""
FEEDS = {"x": np.ones((2, 2), np.float32), "n": np.array(3)}


def events_of(module, model, feeds, tmp_path, runs=1, **entries):
    options = module.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / module.__name__)
    options.graph_optimization_level = module.GraphOptimizationLevel.ORT_ENABLE_ALL
    for key, value in entries.items():
        options.add_session_config_entry(f"treadle.{key}", value)
    session = module.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    results = [session.run(None, feeds) for _ in range(runs)]
    path = session.end_profiling()
    after = session.run(None, feeds)  # is not recorded any more
    for ours in [*results, after]:
        for got, want in zip(ours, results[0], strict=True):
            np.testing.assert_array_equal(got, want)
    return json.loads(pathlib.Path(path).read_text()), results[0]


def kernels(events):
    return [event for event in events if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]


def test_the_same_events_as_onnxruntime_writes(tmp_path):
    model = onnx.parser.parse_model(TEXT).SerializeToString()
    theirs, _ = events_of(onnxruntime, model, FEEDS, tmp_path, runs=2)
    ours, _ = events_of(treadle, model, FEEDS, tmp_path, runs=2)
    assert {event["name"] for event in ours if event["cat"] == "Session"} == {
        event["name"] for event in theirs if event["cat"] == "Session"
    }
    for events in (theirs, ours):
        assert [event["name"] for event in events].count("model_run") == 2
        assert all({"pid", "tid", "ts", "dur", "ph", "args"} <= event.keys() for event in events)
    # Each runs the loop's condition as well, unless it is known.
    counts = [sum(e["args"]["op_name"] == "Sin" for e in kernels(events)) for events in (theirs, ours)]
    assert counts == [6, 6]

    def seen(events):
        keys = ("op_name", "provider", "input_type_shape", "output_type_shape")
        return {json.dumps([e["name"], *(e["args"][key] for key in keys)]) for e in kernels(events)}

    unlike = {line for line in seen(theirs) if '"Identity"' not in line and '"Loop"' not in line and "Loop" not in line}
    assert unlike <= seen(ours)
    assert {e["args"]["op_name"] for e in kernels(ours)} >= {"MatMul", "Softmax", "Add", "Tanh", "Loop", "Sin"}


def test_events_lie_within_their_run(tmp_path):
    """To the microsecond, however begins and ends are rounded: of a hundred runs some begin late in one."""
    events, _ = events_of(treadle, TEXT.encode(), FEEDS, tmp_path, runs=100)
    runs = [event for event in events if event["name"] == "model_run"]
    executions = [event for event in events if event["name"] == "SequentialExecutor::Execute"]
    loops = [event for event in kernels(events) if event["args"]["op_name"] == "Loop"]
    inside = [event for event in kernels(events) if event["args"]["op_name"] == "Sin"]
    assert (len(runs), len(executions), len(loops), len(inside)) == (100, 100, 100, 300)
    assert all(lies_in_one_of(runs, event) for event in [*executions, *kernels(events)])
    assert all(lies_in_one_of(loops, event) for event in inside)


def lies_in_one_of(outer, event):
    return any(one["ts"] <= event["ts"] and event["ts"] + event["dur"] <= one["ts"] + one["dur"] for one in outer)


LOWERED = {
    "LSTM": ("y, h, c = LSTM <hidden_size = 3> (x, w, r)", 12),
    "GRU": ("y, h = GRU <hidden_size = 3> (x, w, r)", 9),
    "RNN": ("y, h = RNN <hidden_size = 3> (x, w, r)", 3),
}


@pytest.mark.parametrize("operator", LOWERED)
def test_nodes_that_become_loops_keep_their_operator(operator, tmp_path):
    call, rows = LOWERED[operator]
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[5,1,2] x, float[1,{rows},2] w, float[1,{rows},3] r) => (y) {{ {call} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.node[0].name = "/encoder/layer"
    rng = np.random.default_rng(0)
    feeds = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {"x": (5, 1, 2), "w": (1, rows, 2), "r": (1, rows, 3)}.items()
    }
    events, _ = events_of(treadle, model.SerializeToString(), feeds, tmp_path)
    found = {(event["name"], event["args"]["op_name"]) for event in kernels(events)}
    assert found == {("/encoder/layer_kernel_time", operator)}


def test_other_tiers(tmp_path):
    expected = events_of(treadle, TEXT.encode(), FEEDS, tmp_path)[1]
    for entries in ({"jit": "always"}, {"optimize": "0"}, {"tier": "reference"}):
        events, results = events_of(treadle, TEXT.encode(), FEEDS, tmp_path, **entries)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)
        assert [event["name"] for event in events].count("model_run") == 1
        assert bool(kernels(events)) == (entries.get("tier") != "reference")


def test_bindings_and_values_are_recorded_too(tmp_path):
    options = treadle.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    session = treadle.InferenceSession(TEXT.encode(), options)
    binding = session.io_binding()
    for name, value in FEEDS.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    session.run_with_ort_values(None, {name: treadle.OrtValue.ortvalue_from_numpy(v) for name, v in FEEDS.items()})
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    assert sum(event["args"]["op_name"] == "Softmax" for event in kernels(events)) == 2


def test_the_files_of_sessions_have_names_of_their_own(tmp_path):
    import time

    paths = set()
    for _ in range(3):
        options = treadle.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / "p")
        paths.add(treadle.InferenceSession(TEXT.encode(), options).end_profiling())
        time.sleep(0.002)
    assert len(paths) == 3


def test_onnxruntimes_own_reader_reads_them(tmp_path):
    """The profile reader in its package, as a program of its own on the alias."""
    program = f"""
import numpy as np
import onnxruntime as ort
from onnxruntime.transformers.profile_result_processor import load_profile_json, parse_kernel_results, parse_node_results
options = ort.SessionOptions()
options.enable_profiling = True
options.profile_file_prefix = {str(tmp_path / "p")!r}
session = ort.InferenceSession({TEXT!r}.encode(), options, providers=["CPUExecutionProvider"])
session.run(None, {{"x": np.ones((2, 2), np.float32), "n": np.array(3)}})
lines = parse_node_results(load_profile_json(session.end_profiling()))
print("\\n".join(lines))
"""
    folders = [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-m", "treadle.as_onnxruntime", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for operator in ("MatMul", "Softmax", "Sin"):
        assert operator in done.stdout

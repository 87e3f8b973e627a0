"""Names of a model that terminals obey: the tool shows them as escapes, whatever command prints them."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper
from test_cli import TOOL

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

# A sequence that clears a terminal, a line that looks like one of the tool, a mark that turns the direction, the one-byte
# form of the sequence, and a bell.
EVIL = "a\x1b[2J\nFORGED\u202e\u009b\x07"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def hostile():
    """A Scan that makes NaN; every name in it is hostile."""
    h, e, k, o, less, x, y, last, start, n = (f"{EVIL}{name}" for name in "heko-xylsn")
    scalar = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [])  # noqa: E731
    vector = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [n])  # noqa: E731
    nodes = [
        helper.make_node("Sub", [e, h], [less], name=f"{EVIL}sub"),
        helper.make_node("Log", [less], [k], name=f"{EVIL}log"),
        helper.make_node("Identity", [k], [o], name=f"{EVIL}identity"),
    ]
    body = helper.make_graph(nodes, f"{EVIL}body", [scalar(h), scalar(e)], [scalar(k), scalar(o)])
    loop = helper.make_node("Scan", [start, x], [last, y], name=f"{EVIL}scan", body=body, num_scan_inputs=1)
    zero = helper.make_tensor(start, TensorProto.FLOAT, [], [0])
    graph = helper.make_graph([loop], f"{EVIL}graph", [vector(x)], [vector(y), scalar(last)], [zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    model.producer_name = model.doc_string = EVIL
    helper.set_model_props(model, {EVIL: EVIL})
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("hostile")
    model = hostile()
    onnx.save(model, made / "m.onnx")
    other = onnx.ModelProto.FromString(model.SerializeToString())
    [body] = [a.g for a in other.graph.node[0].attribute if a.name == "body"]
    body.node[1].op_type = "Exp"
    onnx.save(other, made / "other.onnx")
    body.node[1].op_type = f"{EVIL}Op"
    onnx.save(other, made / "unknown.onnx")
    del body.node[0]
    onnx.save(other, made / "broken.onnx")
    np.save(made / "x.npy", np.array([2, 3, 1, 4], np.float32))
    (made / "text.onnxtxt").write_text("g (float x) => (float y) { y = Neg (z\x1b[2J) }")
    return made


COMMANDS = [
    "run m.onnx x.npy",
    "run m.onnx --random 1",
    "run m.onnx x.npy --find nan",
    "run m.onnx x.npy --find nan --save alone",
    "run m.onnx x.npy --statistics",
    "run m.onnx x.npy --values *k* --values-out out.npz",
    "run m.onnx x.npy --values *k*@7 --values-out out.npz",
    "run m.onnx x.npy --plan",
    "run m.onnx x.npy --dump changes",
    "run m.onnx x.npy --dump fold-constants",
    "run m.onnx",  # an input is missing
    "run m.onnx x.npy x.npy",
    "run unknown.onnx x.npy",
    "run broken.onnx x.npy",
    "test alone",
    "show m.onnx",
    "show m.onnx --text",
    "show m.onnx --tree",
    "show unknown.onnx --tree",
    "infer m.onnx",
    "check m.onnx",
    "check m.onnx --full",
    "check unknown.onnx",
    "check broken.onnx --full",
    "check text.onnxtxt",
    "explain m.onnx",
    "explain m.onnx x.npy --rewritten",
    "profile m.onnx x.npy",
    "bench m.onnx x.npy --seconds 0.01",
    "bisect m.onnx x.npy",
    "stream m.onnx",
    "compare m.onnx other.onnx x.npy --runs 1",
    "compare m.onnx unknown.onnx x.npy --runs 1",
    "compare m.onnx x.npy --with reference --runs 1",
    "reduce unknown.onnx --keep false -o small.onnx",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_reaches_the_terminal_as_it_is(folder, command):
    environment = {**os.environ, "TREADLE_PYTHON": sys.executable}
    words = [TOOL, *command.split()]
    done = subprocess.run(words, capture_output=True, cwd=folder, env=environment, timeout=120)
    said = (done.stdout + done.stderr).decode()
    assert said
    assert OBEYED.findall(said) == []
    assert not any(line.startswith("FORGED") for line in said.splitlines()), said


def test_programs_get_the_names_as_they_are(folder):
    done = subprocess.run([TOOL, "run", "m.onnx", "x.npy", "--json"], capture_output=True, cwd=folder, check=True)
    assert [output["name"] for output in json.loads(done.stdout)["outputs"]] == [f"{EVIL}y", f"{EVIL}l"]
    session = treadle.InferenceSession(str(folder / "m.onnx"))
    assert f"{EVIL}x" in session.trace({f"{EVIL}x": np.float32([2, 3])}, watch=f"{EVIL}x")


def test_names_that_differ_in_what_is_shown_as_an_escape_stay_apart():
    """A node is called as another one is shown."""
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="n\x1b"),
        helper.make_node("Abs", ["a"], ["b"], name="n\\x1b"),
        helper.make_node("Log", ["b"], ["y"], name="n\x1b"),
    ]
    value = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"}
    model = helper.make_model(
        helper.make_graph(nodes, "g", [value["x"]], [value["y"]]), opset_imports=[helper.make_opsetid("", 20)]
    )
    model.ir_version = 10
    options = treadle.SessionOptions()
    options.add_session_config_entry("treadle.optimize", "0")
    session = treadle.InferenceSession(model.SerializeToString(), options)
    found = session.trace({"x": np.float32([0])}, find="inf,zero").found
    assert found["places"] and re.fullmatch(r"/n\\x1b(#\d)?", found["places"][-1]["node"])
    names = re.findall(r"/n\\x1b(?:#\d)?", str(session.profile({"x": np.float32([1])}, runs=1)))
    assert len(set(names)) == 3

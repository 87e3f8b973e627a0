"""`treadle reduce`: the smallest model for which a command still fails."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper
from test_cli import TOOL
from test_reduce import CHAIN, nodes_of

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


def reduce(*words, status=0, cwd=None):
    done = subprocess.run([TOOL, "reduce", *map(str, words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(treadle.parse_model(CHAIN))
    return path


def script(tmp_path, text):
    path = tmp_path / "judge.sh"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def left(path):
    return [node.op_type for node in nodes_of(onnx.load(path))]


def test_keeps_an_exit_status(chain, tmp_path):
    judge = script(tmp_path, 'grep -q Tanh "$1" && exit 7\nexit 1\n')
    done = reduce(chain, "--keep", judge, "-o", tmp_path / "s.onnx")
    assert left(tmp_path / "s.onnx") == ["Tanh"]
    assert done.stdout.startswith("nodes 5 -> 1, bodies 0 -> 0, bytes ")
    assert "exit status 7" in done.stderr


def test_the_place_of_the_path(chain, tmp_path):
    reduce(chain, "--keep", "! grep -q Tanh {} # the path is not at the end", cwd=tmp_path)
    assert left(tmp_path / "m.small.onnx") == ["Tanh"]


def test_a_command_of_the_tool_itself(tmp_path):
    """A refusal in a body of a model of 200 nodes."""
    lines = [f"v{i + 1} = {'Abs' if i % 3 else 'Neg'} (v{i})" for i in range(200)]
    lines[120:120] = [
        "l = Loop (n, , v5) <body = b (int64 i, bool c, float[4] s) => (bool c, float[4] r) {"
        " t = Exp (s) u = Unheard (t) r = Add (u, s) }>"
    ]
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] v0) => (float[4] v200, l) <int64 n = {9}> {\n'
    (tmp_path / "m.onnxtxt").write_text(text + "\n".join(lines) + "}")
    out = tmp_path / "s.onnxtxt"
    found = json.loads(
        reduce(
            tmp_path / "m.onnxtxt", "--keep", f"{TOOL} run --random 1", "--matches", "Unheard", "-o", out, "--json"
        ).stdout
    )
    assert found["before"]["nodes"] == 204 and found["after"]["nodes"] == 1 and found["attempts"] < 100
    assert "Unheard" in out.read_text() and treadle.parse_model(out.read_text())


def test_a_signal(chain, tmp_path):
    judge = script(tmp_path, 'grep -q Abs "$1" && grep -q Neg "$1" && kill -SEGV $$\nexit 1\n')
    done = reduce(chain, "--keep", f"exec {judge}", "-o", tmp_path / "s.onnx")
    assert sorted(left(tmp_path / "s.onnx")) == ["Abs", "Neg"]
    assert "signal 11" in done.stderr


def test_a_command_that_takes_too_long(chain, tmp_path):
    judge = script(tmp_path, 'grep -q Sqrt "$1" && sleep 60\nexit 0\n')
    begin = time.monotonic()
    reduce(chain, "--keep", judge, "-o", tmp_path / "s.onnx", "--timeout", 0.3, "--jobs", 4)
    assert left(tmp_path / "s.onnx") == ["Sqrt"]
    assert time.monotonic() - begin < 50


def test_a_text_in_the_output_of_a_command_that_succeeds(chain, tmp_path):
    reduce(chain, "--keep", f"{TOOL} show {{}} --text", "--matches", "Exp", "-o", tmp_path / "s.onnx")
    assert left(tmp_path / "s.onnx") == ["Exp"]


def test_the_first_nan_of_a_loop(tmp_path):
    """Log of a state that falls below 0 in the third iteration."""
    (tmp_path / "m.onnxtxt").write_text("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y, float[4] z) <int64 n = {40}, float one = {1}, float[4] w = {1, 2, 3, 4}> {
      p = Mul (x, w)  q = Exp (p)  r = Sub (q, q)  s0 = Add (r, w)
      y, l = Loop (n, , s0, w) <body = b (int64 i, bool c, float[4] s, float[4] h) => (bool c, float[4] s2, float[4] h2) {
        s2 = Sub (s, one)  k = Log (s2)  t = Tanh (h)  h2 = Add (t, k) }>
      z = Sigmoid (l) }""")
    judge = f"{sys.executable} -c \"import sys, treadle, numpy as np; s = treadle.InferenceSession(sys.argv[1]); " \
            "sys.exit(5 if any(np.isnan(v).any() for v in s.run(None, {i.name: np.ones(4, 'f4') for i in s.get_inputs()})) else 0)\""  # fmt: skip
    reduce(tmp_path / "m.onnxtxt", "--keep", judge, "-o", tmp_path / "s.onnx")
    assert len(left(tmp_path / "s.onnx")) <= 4, onnx.printer.to_text(onnx.load(tmp_path / "s.onnx"))


def test_data_in_other_files(tmp_path):
    weights = numpy_helper.from_array(np.full((64, 64), 3, np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 64]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], [weights]))
    model.opset_import[0].version, model.ir_version = 17, 8
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    out = tmp_path / "s.onnx"
    judge = f"{TOOL} show --text {{}} | grep -q MatMul && {TOOL} run {{}} --random 1 > /dev/null && exit 4; exit 0"
    reduce(folder / "m.onnx", "--keep", judge, "-o", out)
    assert left(out) == ["MatMul"]
    assert sorted(os.listdir(folder)) == ["m.onnx", "w.bin"]
    assert treadle.InferenceSession(out.read_bytes())


def test_refuses_a_command_that_succeeds(chain, tmp_path):
    done = reduce(chain, "--keep", "true", status=2, cwd=tmp_path)
    assert f"the command succeeds on {chain}: nothing to keep" in done.stderr
    done = reduce(chain, "--keep", "echo something; false", "--matches", "else", status=2, cwd=tmp_path)
    assert "its output does not have 'else'" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["m.onnx"]


def test_says_where_a_copy_does_not_fail(chain, tmp_path):
    done = reduce(chain, "--keep", 'test "$(basename {})" != m.onnx', status=1, cwd=tmp_path)
    assert "but with exit status 0 on a copy of it" in done.stderr


def test_refuses_what_is_no_model(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\\xff\\x00 no model")
    reduce(tmp_path / "m.onnx", "--keep", "false", status=1, cwd=tmp_path)
    reduce(tmp_path / "none.onnx", "--keep", "false", status=1, cwd=tmp_path)


@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_search_that_is_ended_leaves_the_best_so_far(chain, tmp_path, request_to_end):
    """The first attempts are quick; then one hangs. No file of the search stays."""
    judge = script(tmp_path, 'if grep -q Neg "$1"; then exit 3; fi\nsleep 60\n')
    command = [TOOL, "reduce", chain, "--keep", judge, "-o", tmp_path / "s.onnx", "--timeout", "50"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    (tmp_path / "scratch").mkdir()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(request_to_end)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 130 and "the smallest model so far is in" in errors
    assert "Neg" in left(tmp_path / "s.onnx")
    assert os.listdir(tmp_path / "scratch") == []


def loads(path):
    try:
        treadle.InferenceSession(str(path))
    except treadle._errors.FAILURES:
        return False
    return True


def test_what_is_left_of_a_model_that_loads_does_so_too(tmp_path):
    """All failures of a command tend to have one exit status, those of loading among them: here of Concat without axis."""
    path, out = tmp_path / "m.onnx", tmp_path / "s.onnx"
    path.write_bytes(treadle.parse_model(CHAIN.replace("Abs (c)", "Concat <axis = 0> (c)")))
    judge = script(tmp_path, 'grep -q Concat "$1" && exit 1\nexit 0\n')
    done = reduce(path, "--keep", judge, "-o", out)
    assert "keeping: exit status 1, of models that load" in done.stderr
    assert left(out) == ["Concat"] and loads(out)
    reduce(path, "--keep", judge, "-o", out, "--may-not-load")
    assert left(out) == ["Concat"] and not loads(out)


def test_a_model_that_does_not_load_becomes_smaller_as_well(tmp_path):
    path, out = tmp_path / "m.onnx", tmp_path / "s.onnx"
    path.write_bytes(treadle.parse_model(CHAIN.replace("Tanh", "Unheard")))
    done = reduce(path, "--keep", f"{TOOL} run --random 1", "--matches", "Unheard", "-o", out)
    assert "of models that load" not in done.stderr
    assert left(out) == ["Unheard"]

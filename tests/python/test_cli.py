"""The command-line tool."""

import io
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
import wave

import models
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


def tool(*arguments, status: int = 0, cwd=None) -> str:
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert done.returncode == status, done.stdout + done.stderr
    assert status == 0 or done.stderr or done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    return done.stdout


def complaint(*arguments) -> str:
    """The tool's message about a run that fails."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


@pytest.fixture
def add(tmp_path):
    path = tmp_path / "add.onnx"
    path.write_bytes(models.add())
    return path


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.float32([10, 20, 30])


def test_run_from_files_of_every_kind(add, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "x_fortran.npy", np.asfortranarray(X.astype(">f4")))
    np.savez(tmp_path / "both.npz", x=X, y=Y)
    (tmp_path / "y.pb").write_bytes(numpy_helper.from_array(Y).SerializeToString())
    out = tmp_path / "z.npy"
    for inputs in (
        ["x.npy", "y.pb"],
        ["y=y.pb", "x=x_fortran.npy"],
        ["both.npz"],
        ["x.npy", "y=[10, 20, 30]"],
    ):
        tool("run", add, *inputs, "--out", out, cwd=tmp_path)
        np.testing.assert_array_equal(np.load(out), X + Y)
        out.unlink()
    tool("run", add, "both.npz", "--out", "z.npz", cwd=tmp_path, status=2)
    tool("run", add, "both.npz", "--out", "z=z.pb", cwd=tmp_path)
    np.testing.assert_array_equal(
        numpy_helper.to_array(onnx.TensorProto.FromString((tmp_path / "z.pb").read_bytes())), X + Y
    )


def test_run_prints_json(add, tmp_path):
    np.savez(tmp_path / "both.npz", x=X, y=Y)
    printed = json.loads(tool("run", add, "both.npz", "--json", cwd=tmp_path))
    (z,) = printed["outputs"]
    assert z["name"] == "z" and z["value"]["shape"] == [2, 3]
    np.testing.assert_array_equal(np.reshape(z["value"]["data"], (2, 3)), X + Y)


def test_run_on_a_wave_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.identity(models.FLOAT, [1, "T"]))
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(struct.pack("<3h", 0, 16384, -32768))
    printed = json.loads(tool("run", path, tmp_path / "tone.wav", "--json"))
    value = printed["outputs"][0]["value"]
    assert value["data"] == [0, 0.5, -1] and value["shape"] == [1, 3]


def test_run_on_random_inputs_repeats(add):
    first = json.loads(tool("run", add, "--random", 3, "--dim", "n=4", "--json"))["outputs"]
    assert first[0]["value"]["shape"] == [4, 3]
    assert json.loads(tool("run", add, "--random", 3, "--dim", "n=4", "--json"))["outputs"] == first
    assert json.loads(tool("run", add, "--random", 4, "--dim", "n=4", "--json"))["outputs"] != first
    assert (
        json.loads(tool("run", add, "--random", 3, "--dim", "n=4", "--json", "--tier", "reference"))["outputs"] == first
    )


LOOPS = """<ir_version: 10, opset_import: ["" : 21]>
f (int64 n, bool go, bool[M] mask, int64[N] ids, float[batch, T] x, seq(float[T]) list) => (int64 k, int64 l) {
  one = Constant <value_int = 1> ()
  zero = Constant <value_int = 0> ()
  k = Loop (n, go, zero) <body = b (int64 i, bool c, int64 s) => (bool c, int64 t) { t = Add (s, one) }>
  l = SequenceLength (list)
}
"""


def test_random_inputs_make_loops_run_and_are_told(tmp_path):
    path = tmp_path / "loops.onnxtxt"
    path.write_text(LOOPS)
    for seed in range(5):
        done = subprocess.run([TOOL, "run", path, "--random", str(seed), "--json"], capture_output=True, text=True)
        iterations, length = (output["value"]["data"] for output in json.loads(done.stdout)["outputs"])
        assert iterations[0] >= 1 and length == [3]
        drawn = [line.split("  ") for line in done.stderr.splitlines()]
        assert all(line[0] == "drawn" for line in drawn)
        told = {line[1]: line[2:] for line in drawn if " = " not in line[1]}
        assert list(told) == ["n", "go", "mask", "ids", "x", "list"]
        assert told["n"] == ["tensor(int64)[]", str(iterations[0])] and told["go"] == ["tensor(bool)[]", "1"]
        assert told["x"][0] == "tensor(float)[1,16]"
        assert {line[1] for line in drawn} >= {"M = 16", "N = 16", "T = 16", "batch = 1"}
    done = subprocess.run([TOOL, "run", path, "n=0", "--random", "1", "--dim", "T=3"], capture_output=True, text=True)
    assert "[1,3]" in done.stderr and "T = 16" not in done.stderr
    assert "drawn  n  " not in done.stderr


WINDOWS = """<ir_version: 10, opset_import: ["" : 21]>
f (float[samples] x, float[samples] w, optional(float) o) => (float[windows] y) {
  n = Size (x)
  size = Constant <value_int = 200> ()
  iterations = Div (n, size)
  y = Loop (iterations, ) <body = b (int64 i, bool c) => (bool c, float row) { row = ReduceSum <keepdims = 0> (w) }>
}
"""


def test_random_sizes_are_those_with_which_loops_run_or_that_are_given(tmp_path):
    path = tmp_path / "windows.onnxtxt"
    path.write_text(WINDOWS)
    np.save(tmp_path / "x.npy", np.zeros(450, np.float32))
    for given, size, rows in (([], 256, 1), (["--dim", "samples=700"], 700, 3), (["x=x.npy"], 450, 2)):
        command = [TOOL, "run", path, *given, "--random", "1", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert json.loads(done.stdout)["outputs"][0]["value"]["shape"] == [rows]
        assert f"drawn  w  tensor(float)[{size}]" in done.stderr
        assert "drawn  o  nothing: it is optional" in done.stderr


def test_run_on_a_model_without_outputs(tmp_path):
    path = tmp_path / "none.onnx"
    path.write_bytes(models.model([models.node("Neg", ["x"], ["y"])], [models.value("x", shape=[2])], []))
    for tier in ("program", "native", "reference"):
        assert json.loads(tool("run", path, "--random", 1, "--json", "--tier", tier))["outputs"] == []


def test_exit_status(add, tmp_path):
    tool("run", tmp_path / "none.onnx", status=1)
    tool("run", add, "nothing.npy", status=1)
    tool("run", add, "q=1", status=2)
    tool("run", add, status=1)
    tool("run", status=2)
    tool("unheard", status=2)
    tool(status=2)
    for number in ("2.5", "three", "1e30", "9223372036854775808", "[1, 2.5]"):
        (tmp_path / "n.onnx").write_bytes(models.identity(models.INT64))
        tool("run", tmp_path / "n.onnx", f"x={number}", status=2)
    tool("--version")
    (tmp_path / "cut.npy").write_bytes(
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }"
    )
    tool("run", add, tmp_path / "cut.npy", status=1)


def test_numbers_are_read_in_their_own_type(tmp_path):
    for element, text, expected in (
        (models.INT64, "-9007199254740993", -9007199254740993),
        (onnx.TensorProto.BOOL, "true", True),
        (models.FLOAT, "-1.5e3", -1500.0),
        (onnx.TensorProto.UINT8, "255", 255),
    ):
        path = tmp_path / "model.onnx"
        path.write_bytes(models.identity(element, []))
        tool("run", path, f"x={text}", "--out", tmp_path / "y.npy")
        y = np.load(tmp_path / "y.npy")
        assert y.shape == () and y == expected


def test_failures_name_file_path_iteration_and_operator(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.division())
    for tier in ("program", "native", "reference"):
        command = [TOOL, "run", path, "x=[1, 2, 0]", "--tier", tier]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and done.stdout == ""
        for part in (str(path), "/loop", "iteration 2", "/loop:body/divide", "Div-14", "division by zero"):
            assert part in done.stderr


def test_a_missing_input_is_named_with_a_hint(add):
    for command in (["run", add], ["bench", add, "y=[1, 2, 3]"]):
        done = subprocess.run([TOOL, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and done.stdout == ""
        assert "input 'x' is missing: expected tensor(float)[n,3]" in done.stderr
        assert "x=FILE" in done.stderr and "--random SEED" in done.stderr


def test_an_interrupt_ends_an_endless_model(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.endless())
    # A shell's background jobs ignore interrupts, and so would their children.
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    command = [TOOL, "run", path, "go=1", "s0=0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeding)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        _, problem = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode in (1, 130, -signal.SIGINT) and "Traceback" not in problem


def test_endless_models_are_stopped(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.endless())
    for limit, value, named in (
        ("--time-limit", 0.05, "time limit"),
        ("--iteration-limit", 1000, "limit of 1000 iterations"),
    ):
        assert named in complaint("run", path, "go=1", "s0=0", limit, value)


def test_a_run_that_takes_too_much_memory_is_refused(add):
    given = ["x=[1, 2, 3]", "y=[1, 2, 3]"]
    assert "memory limit" in complaint("run", add, *given, "--memory-limit", 1)
    tool("run", add, *given, "--memory-limit", 1_000_000)


def test_options_that_do_nothing_are_refused(add, tmp_path):
    np.savez(tmp_path / "both.npz", x=X, y=Y)
    given = ["x=[1, 2, 3]", "y=[1, 2, 3]"]
    for arguments in (
        ["run", add, "--random", 1, "--dim", "btach=4"],
        ["run", add, "--random", 1, "--dim", "=4"],
        ["run", add, "--random", 1, "--time-limit", -1],
        ["run", add, "--random", 1, "--iteration-limit", 0],
        ["run", add, "--random", 1, "--memory-limit", "1 MB"],
        ["run", add, "--random", 1, "--plan", "--out", "z.npy"],
        ["run", add, "x=both.npz"],
        ["run", add, "both.npz", "y=[1, 2, 3]"],
        ["run", add, *given, "--tier", "reference", "--weights", "f16"],
        ["run", add, *given, "--teir", "reference"],
        ["run", add, *given, "--tier", "jugde"],
        ["run", add, *given, "--threads", 1000],
        ["run", add, *given, "--out", "z.txt"],
        ["run", add, *given, "--out", "q=z.npy"],
        ["run", add, "x=[1,,2,3]", "y=[1, 2, 3]"],
        ["run", add, "x=[1, 1e39, 3]", "y=[1, 2, 3]"],
        ["show", add, "--max-elements", 3],
        ["show", add, "--text", "--summary"],
        ["show", add, "--tree", "--dim", "n=3"],
        ["convert", add, "b.onnx", "--max-elements", 3],
        ["profile", add, *given, "--runs", 0],
    ):
        tool(*arguments, cwd=tmp_path, status=2)


def test_arrays_that_are_none_are_refused(add, tmp_path):
    def npy(header: str, data: bytes = bytes(64)) -> None:
        text = header.ljust(117) + "\n"
        (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)

    for shape in ("(-2,)", "(2, -3)", "(2, 3", "2, 3", "(2; 3)", "(99999999999999999999,)", "(1e3,)", "[2, 3]", ""):
        npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}")
        assert tool("run", add, "x=x.npy", "y=[1, 2, 3]", cwd=tmp_path, status=1) == ""
    for kind in ("'<U0'", "'<U9999999999'", "''", "'", "[('a', '<f4')]", "'|O'"):
        npy(f"{{'descr': {kind}, 'fortran_order': False, 'shape': (1000000000000,), }}")
        tool("run", add, "x=x.npy", "y=[1, 2, 3]", cwd=tmp_path, status=1)
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }")
    tool("run", add, "x=x.npy", "y=[1, 2, 3]", cwd=tmp_path)


def test_special_files_are_refused(add, tmp_path):
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    (tmp_path / "zero.onnx").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "folder.pb").mkdir()
    for arguments in (
        *(["run", add, f"x={name}", "y=[1, 2, 3]"] for name in ("zero.npy", "pipe.npy", "folder.pb")),
        *([command, "zero.onnx"] for command in ("run", "check", "infer", "show", "explain", "bench", "profile")),
        ["show", "--text", "zero.onnx"],
        ["convert", "zero.onnx", "-"],
    ):
        done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=30, cwd=tmp_path)
        assert done.returncode == 1
        assert any(what in done.stdout + done.stderr for what in ("is a device", "is a pipe", "is a folder"))


def test_every_command_takes_a_model_from_a_pipe(add, tmp_path):
    for command in (
        "run MODEL --random 1",
        "bench MODEL --random 1 --seconds 0",
        "explain MODEL --random 1",
        "profile MODEL --random 1",
        "check MODEL",
        "infer MODEL -o typed.onnx --json",
        "show MODEL",
        "show MODEL --text",
        "show MODEL --tree",
        "convert MODEL -",
    ):
        line = f"{TOOL} {command.replace('MODEL', f'<(cat {add})')}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 0 and "pipe" not in done.stdout + done.stderr, done.stdout + done.stderr


def piped(data, *arguments, status=0, cwd=None):
    done = subprocess.run([TOOL, *map(str, arguments)], input=data, capture_output=True, timeout=60, cwd=cwd)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_a_dash_is_standard_input_or_output(add, tmp_path):
    model = add.read_bytes()
    text = piped(model, "convert", "-", "-")
    assert piped(text, "convert", "-", "-", "--to", "binary") == model or b"Add" in text
    for command in ("check -", "show -", "show - --text", "show - --tree", "run - --random 1", "infer -"):
        assert piped(model, *command.split()) and piped(text, *command.split()), command
    onnx.load_from_string(piped(model, "infer", "-", "--out", "-"))
    assert "traceEvents" in json.loads(piped(model, "profile", "-", "--random", "1", "--out", "-"))

    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "both.npz", x=X, y=Y)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    for name, arguments in (("x.npy", ["x=-", "y=[10,20,30]"]), ("x.pb", ["-", "y=[10,20,30]"]), ("both.npz", ["-"])):
        z = piped((tmp_path / name).read_bytes(), "run", add, *arguments, "--out", "-")
        np.testing.assert_array_equal(np.load(io.BytesIO(z)), X + Y)
    for arguments in (["run", "-", "x=-"], ["run", add, "--random", 1, "--out", "-", "--json"], ["test", "-"]):
        piped(model, *arguments, status=2)
    piped(model, "infer", "-", "--out", "-", "--json", status=2)


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "page.onnx").write_text("<!doctype html>\n<html>")
    commands = ["run", "check", "infer", "show", "explain", "bench", "profile", "show --text", "show --tree"]
    for command in [*(c.split() for c in commands), ["convert", "--to", "text"], ["convert", "--to", "binary"]]:
        arguments = [*command, "page.onnx", *(["out"] if command[0] == "convert" else [])]
        done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=30, cwd=tmp_path)
        assert done.returncode == 1 and "found an HTML page" in done.stdout + done.stderr, command


def test_an_output_that_cannot_be_written_is_an_error(add, tmp_path):
    given = ["x=[1, 2, 3]", "y=[1, 2, 3]"]
    write_case(tmp_path / "case", models.add(), [X, Y], [X + Y])
    with open("/dev/full", "wb") as full:
        for arguments in (
            ["run", add, *given],
            ["run", add, *given, "--json"],
            ["run", add, *given, "--plan"],
            ["check", add],
            ["infer", add],
            ["show", add],
            ["show", add, "--text"],
            ["convert", add, "-"],
            ["ops"],
            ["ops", "--json"],
            ["bench", add, *given, "--seconds", "0"],
            ["explain", add],
            ["profile", add, *given],
            ["test", tmp_path / "case"],
            ["run", "none.onnx", "--json"],
            ["--help"],
            ["--version"],
        ):
            done = subprocess.run([TOOL, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            assert done.returncode == 1, arguments
            assert "treadle: standard output: cannot write to file" in done.stderr
    (tmp_path / "full.npy").symlink_to("/dev/full")
    for arguments in (
        ["run", add, *given, "--out", "z=full.npy"],
        ["infer", add, "-o", "/dev/full"],
        ["convert", add, "/dev/full", "--to", "binary"],
        ["profile", add, *given, "--out", "/dev/full"],
    ):
        done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 1 and "cannot be written: No space left on device" in done.stderr, arguments


def test_show_check_infer_ops_bench(add, tmp_path):
    assert "Add-14(%x, %y)" in tool("show", add)
    assert "Add" not in tool("show", add, "--summary")
    assert json.loads(tool("show", add, "--json"))["inputs"][0] == {"name": "x", "type": "tensor(float)[n,3]"}
    assert "ok" in tool("check", add)
    (tmp_path / "cut.onnx").write_bytes(models.add()[:-5])
    results = json.loads(tool("check", add, tmp_path / "cut.onnx", "--json", status=1))
    assert [r["ok"] for r in results] == [True, False] and "cut.onnx" in results[1]["file"]
    assert [p["code"] for p in results[1]["problems"]] == ["file-invalid"]
    tool("infer", add, "-o", tmp_path / "typed.onnx")
    assert onnx.load(tmp_path / "typed.onnx").graph.output[0].name == "z"
    assert "2*n" in tool("infer", doubling(tmp_path)) and "2*n" not in tool(
        "infer", doubling(tmp_path), "--rules", "onnx"
    )
    assert "1 11 13" in tool("ops")
    assert "since 11" in tool("ops", "Loop")
    assert any(op["name"] == "Scan" for op in json.loads(tool("ops", "--json")))
    tool("ops", "Unheard", status=1)
    timing = json.loads(tool("bench", add, "--random", 1, "--seconds", 0.05, "--json"))
    assert timing["runs"] >= 3
    assert timing["best_s"] <= timing["p50_s"] <= timing["p90_s"] <= timing["p99_s"] <= timing["p99_9_s"]
    assert timing["p99_9_s"] <= timing["maximum_s"] and timing["runs_per_second"] > 0


def doubling(tmp_path):
    (tmp_path / "doubling.txt").write_text("""<ir_version: 10, opset_import: ["" : 21]>
f (float[n] x) => (float[?] y) { y = Concat <axis = 0> (x, x) }
""")
    return tmp_path / "doubling.txt"


def test_check_says_whether_the_model_runs(add, tmp_path):
    assert tool("check", add).splitlines()[-2:] == [
        f"{add}: ok; treadle runs it",
        "  little to gain: no loop; 1 Add",
    ]
    checked = json.loads(tool("check", add, "--json"))[0]
    assert checked["runs"] is True and checked["outlook"] == "little to gain: no loop; 1 Add"
    (tmp_path / "foreign.txt").write_text(FOREIGN)
    last = tool("check", tmp_path / "foreign.txt").splitlines()[-1]
    assert "ok (0 errors, 1 warning); treadle does not run it: " in last and "/Unheard_1" in last and "else" in last
    (tmp_path / "wrong.txt").write_text(WRONG)  # only a full check finds the problem
    result = json.loads(tool("check", tmp_path / "wrong.txt", "--json"))[0]
    assert result["ok"] and not result["runs"] and "/Add_0 (Add-14)" in result["refusal"]


def test_infer_reports_operators_that_it_does_not_know(tmp_path):
    (tmp_path / "foreign.txt").write_text(FOREIGN)
    command = [TOOL, "infer", tmp_path / "foreign.txt", "-o", tmp_path / "typed.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "not inferred: /Unheard_1" in done.stderr and "else" in done.stderr
    assert onnx.load(tmp_path / "typed.onnx").graph.value_info[0].name == "t"  # the rest is written all the same
    done = subprocess.run([*command, "--lenient"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "not inferred: /Unheard_1" in done.stderr
    report = json.loads(tool("infer", tmp_path / "foreign.txt", "--json", status=1))
    assert len(report["unknown_operators"]) == 1 and "graph" in report


def write_case(folder, data, inputs, outputs, meta=None):
    sets = folder / "test_data_set_0"
    sets.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(data)
    for prefix, arrays in (("input", inputs), ("output", outputs)):
        for i, array in enumerate(arrays):
            (sets / f"{prefix}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
    if meta is not None:
        (folder / "meta.json").write_text(json.dumps(meta))


def test_test(tmp_path):
    write_case(tmp_path / "right", models.add(), [X, Y], [X + Y])
    write_case(
        tmp_path / "close", models.add(), [X, Y], [X + Y + 0.01], {"about": {"x": [1, {}]}, "inputs": ["x", "y"]}
    )
    write_case(tmp_path / "swapped", models.add(), [Y, X], [X + Y], {"inputs": ["y", "x"], "rtol": 0, "atol": 0})
    assert tool("test", tmp_path / "right").splitlines()[-1] == "1 passed, 0 failed"
    assert tool("test", tmp_path, "--tier", "all").splitlines()[-1] == "9 passed, 0 failed"
    write_case(tmp_path / "strict", models.add(), [X, Y], [X + Y + 0.01], {"rtol": 1e-6, "atol": 0})
    write_case(tmp_path / "shape", models.add(), [X, Y], [(X + Y)[:1]])
    write_case(tmp_path / "no_model", b"nothing", [], [])
    write_case(tmp_path / "integers", models.division(), [np.array([3])], [np.array([34])])
    result = json.loads(tool("test", tmp_path, "--json", status=1))
    assert {c["name"] for c in result["cases"] if not c["passed"]} == {"strict", "shape", "no_model", "integers"}
    assert (result["passed"], result["failed"]) == (3, 4)
    tool("test", tmp_path / "right" / "test_data_set_0", status=2)


def test_errors_are_json_where_it_is_asked_for(add, tmp_path):
    def error(*arguments, status=1):
        return json.loads(tool(*arguments, "--json", status=status))["error"]

    assert error("show", tmp_path / "none.onnx")["code"] == "no such file"
    assert error("run", add)["code"] in ("input", "usage", "invalid argument")
    assert error("ops", "Unheard")["message"] == "there is no operator 'Unheard'"
    assert error("ops", "gathernd")["message"].endswith("did you mean GatherND?")
    assert error("show", status=2)["code"] == "usage"
    (tmp_path / "wrong.txt").write_text(WRONG)
    wrong = error("infer", tmp_path / "wrong.txt")
    assert wrong["code"] == "invalid model" and "/Add_0 (Add-14)" in wrong["path"] and wrong["message"]
    tool("infer", tmp_path / "wrong.txt", "--lenient")
    assert error("convert", add, tmp_path / "unclear", status=2)["code"] == "usage"


WRONG = """<ir_version: 10, opset_import: ["" : 21]>
f (float[2] x, float[3] k) => (float[2] y) {
  y = Add (x, k)
}
"""

FOREIGN = """<ir_version: 10, opset_import: ["" : 21, "else" : 1]>
f (float[N,2] x, bool c) => (float[?,?] y) {
  t = Transpose (x)
  u = else.Unheard (t)
  y = If (c) <then_branch = a () => (float[?,?] p) { p = Relu (t) }, else_branch = b () => (float[?,?] q) { q = Neg (t) }>
}
"""


def test_a_tree_needs_no_session(tmp_path):
    (tmp_path / "foreign.txt").write_text(FOREIGN)
    tool("show", tmp_path / "foreign.txt", status=1)
    tree = tool("show", "--tree", tmp_path / "foreign.txt")
    assert "then_branch:" in tree and "tensor(float)[2,N] = Relu" in tree and "%u: unknown" in tree
    (tmp_path / "wrong.txt").write_text(WRONG)
    assert "Add" in tool("show", "--tree", tmp_path / "wrong.txt")


LOG_SUM = """
<ir_version: 8, opset_import: ["" : 18]>
sums (float[5,64] x) => (float[64] last) {
    zero = Constant <value = float[64] {ZEROS}> ()
    last = Scan <num_scan_inputs = 1, body = step (float[64] s, float[64] e) => (float[64] next) {
        sum = ReduceLogSumExp <keepdims = 1> (e)
        next = Add (s, sum)
    }> (zero, x)
}
""".replace("ZEROS", ", ".join(["0"] * 64))


@pytest.fixture
def log_sum(tmp_path):
    path = tmp_path / "sums.onnxtxt"
    path.write_text(LOG_SUM)
    return path


def test_a_pass_can_be_dumped_behind_and_switched_off(log_sum):
    def dump(name, *arguments):
        return tool("run", log_sum, "--random", 1, "--dump", name, *arguments)

    assert "= ReduceLogSumExp-" in dump("reshape-transposes")
    assert "= ReduceLogSumExp-" not in dump("expand-nodes")
    assert "= ReduceLogSumExp-" in dump("hoist-invariants", "--without", "expand-nodes")
    assert "= ReduceLogSumExp-" in dump("fold-constants")
    for option in ("--dump", "--without"):
        done = subprocess.run([TOOL, "run", log_sum, option, "nonsense"], capture_output=True, text=True)
        assert done.returncode == 2
        assert "nonsense" in done.stderr
        assert "expand-nodes" in done.stderr
    tool("run", log_sum, "--random", 1, "--dump", "solve-recurrences", status=1)  # it is off by default


def pass_names():
    table = (ROOT / "src" / "opt" / "pipeline.cc").read_text()
    return re.findall(r'^    \{"([a-z-]+)", Stage::k', table, re.MULTILINE)


def test_every_pass_can_be_named(log_sum):
    """In --without, in --dump, and in the list that `bisect` halves: it takes the names from the list of --without."""
    for name in pass_names():
        tool("run", log_sum, "--random", 1, "--plan", "--without", name)
        dumped = subprocess.run(
            [TOOL, "run", log_sum, "--random", "1", "--dump", name], capture_output=True, text=True, check=False
        )
        assert dumped.returncode in (0, 1), dumped.stderr  # 1: the options do not ask for it
        assert "return " in dumped.stdout or f"dump = {name}: nothing" in dumped.stderr
    every = [argument for name in pass_names() for argument in ("--without", name)]
    assert "results are those of" in tool("bisect", log_sum, "--random", 1, *every)


def test_what_each_pass_did_can_be_dumped(log_sum):
    def changes(*arguments):
        lines = tool("run", log_sum, "--random", 1, "--dump", "changes", *arguments).splitlines()
        return {name: changed for name, changed, _, unit in map(str.split, lines) if unit == "us"}

    found = changes()
    assert [name for name in pass_names() if name in found] == list(found)
    assert found["expand-nodes"] == "changed"
    assert found["unstack-states"] == "same"
    assert "solve-recurrences" not in found
    assert "expand-nodes" not in changes("--without", "expand-nodes")


def test_the_environment_switches_passes_off(log_sum):
    def dump(off):
        environment = {**os.environ, "TREADLE_PASSES_OFF": off}
        command = [TOOL, "run", log_sum, "--random", "1", "--dump", "hoist-invariants"]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    assert "= ReduceLogSumExp-" in dump("expand-nodes,simplify-products").stdout
    assert "= ReduceLogSumExp-" not in dump("").stdout
    wrong = dump("nonsense")
    assert wrong.returncode == 1
    assert "there is no pass 'nonsense'" in wrong.stderr
    assert "hoist-invariants" in wrong.stderr


# Each with a rewrite that rounds differently.
REORDERED = {
    "simplify-products": """
<ir_version: 8, opset_import: ["" : 18]>
turned (float[9,7,7] a, float[7] x) => (float[7] last) {
    last = Scan <num_scan_inputs = 1, body = step (float[7] s, float[7,7] e) => (float[7] next) {
        sums = Einsum <equation = "ij,kj->k"> (e, e)
        next = Tanh (sums)
    }> (x, a)
}
""",
    "fold-batch-normalization": """
<ir_version: 8, opset_import: ["" : 18]>
normal (float[1,1,8,8] x) => (float[1,2,8,8] y) {
    w = Constant <value = float[2,1,1,1] {0.3, 0.7}> ()
    b = Constant <value = float[2] {0.1, 0.2}> ()
    v = Constant <value = float[2] {1.3, 1.7}> ()
    c = Conv (x, w)
    y = BatchNormalization (c, v, b, b, v)
}
""",
}


@pytest.mark.parametrize("name", REORDERED)
def test_bisect_names_the_pass(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_ISA", "baseline")  # the reference interpreter's: others round sums differently
    path = tmp_path / "model.onnxtxt"
    path.write_text(REORDERED[name])
    assert "results are those of the reference interpreter" in tool("bisect", path, "--random", 1)
    exact = ["--rtol", 0, "--atol", 0, "--random", 1, "--tier", "program"]
    found = json.loads(tool("bisect", path, *exact, "--json", status=1))
    assert found["pass"] == name
    assert "elements differ" in found["problem"]
    assert found["remark"] == "right with it alone switched off"
    assert tool("bisect", path, *exact, status=1).startswith(f"{name}: output")
    tool("bisect", path, *exact, "--without", name)

"""python -m treadle is the command-line tool."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

BIN = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", pathlib.Path(__file__).parents[2] / "build" / "bin"))
MODULE = [sys.executable, "-m", "treadle"]
ENDLESS = """<ir_version: 9, opset_import: ["" : 20]>
endless (float x) => (float y) <bool yes = {1}> {
   y = Loop (, yes, x) <body = step (int64 i, bool go, float s) => (bool go, float t) { t = Cos (s) }>
}"""


@pytest.mark.parametrize("words", [["ops", "--json", "Loop"], ["--version"], ["run", "nowhere.onnx"], ["no-such"], []])
def test_it_says_and_ends_as_the_tool_does(words, tmp_path):
    def told(command):
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    assert told(MODULE) == told([BIN / "treadle"])


def test_names_of_files_need_not_be_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.onnxtxt"
    with open(path, "w") as file:
        file.write(ENDLESS)
    done = subprocess.run([*MODULE, "check", path], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_ends_it(tmp_path):
    (tmp_path / "endless.onnxtxt").write_text(ENDLESS)
    command = [*MODULE, "run", "endless.onnxtxt", "x=1"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(2)  # the run has begun
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "iteration" in said

"""The command `treadle` of an installed package, and `python -m treadle`, are the command-line tool."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

BIN = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", pathlib.Path(__file__).parents[2] / "build" / "bin"))
MODULE = [sys.executable, "-m", "treadle"]
SCRIPT = [sys.executable, "-c", "import sys, treadle_tool; sys.exit(treadle_tool.main())"]  # as pip writes it
ENDLESS = """<ir_version: 9, opset_import: ["" : 20]>
endless (float x) => (float y) <bool yes = {1}> {
   y = Loop (, yes, x) <body = step (int64 i, bool go, float s) => (bool go, float t) { t = Cos (s) }>
}"""


@pytest.mark.parametrize("tool", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize("words", [["ops", "--json", "Loop"], ["--version"], ["run", "nowhere.onnx"], ["no-such"], []])
def test_it_says_and_ends_as_the_tool_does(tool, words, tmp_path):
    def told(command):
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    assert told(tool) == told([BIN / "treadle"])


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


def test_the_script_imports_neither_numpy_nor_the_package():
    """Their import takes ten times as long as most commands."""
    asked = (
        "import sys, treadle_tool; treadle_tool.main(); print([m for m in ('numpy', 'treadle') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asked, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_script_names_the_missing_file(tmp_path):
    """Where the tool's module is installed without the package."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SCRIPT[2]}"]
    (tmp_path / "treadle_tool").symlink_to(pathlib.Path(__file__).parents[2] / "python" / "treadle_tool")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "expected its file treadle/_core.abi3.so" in done.stderr

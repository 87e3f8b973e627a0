"""The bar that the tool shows on a terminal, and the terminal after Ctrl-C."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import models
import numpy as np
import pytest
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

# x' = sin(x), `m` times.
COUNTED = """<ir_version: 10, opset_import: ["" : 22]>
g (int64 m, float[4] x) => (float[4] y) <bool yes = {1}> {
  y = Loop (m, yes, x) <body = b (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
    on = Identity (go)
    t = Sin (s)
  }>
}"""


@pytest.fixture
def counted(tmp_path):
    path = tmp_path / "counted.onnxtxt"
    path.write_text(COUNTED)
    return path


class Terminal:
    """A process of the tool whose standard error is a terminal, and what the terminal gets."""

    def __init__(self, *arguments, columns=100):
        try:
            self._terminal, end = pty.openpty()
        except OSError as problem:
            pytest.skip(f"this machine gives no terminal: {problem}")
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
        self.process = subprocess.Popen(
            [TOOL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=end, preexec_fn=heeding
        )
        os.close(end)
        self.text = ""

    def read(self, until=None, seconds=60):
        """Reads the output until the process ends, or until the pattern is in it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (until and re.search(until, self.text)):
            if not select.select([self._terminal], [], [], 0.1)[0]:
                continue
            try:
                self.text += os.read(self._terminal, 4096).decode()
            except OSError:  # the other end is closed
                break
        return self.text

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        self.read()
        return self.process.wait(timeout=60)

    def end(self):
        self.read()
        out = self.process.stdout.read().decode()
        return self.process.wait(timeout=60), out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        os.close(self._terminal)


BAR = r"\r\x1b\[K *\d+% \[#*-*\] [\d,]+ of 1,000,000,000,000 iterations  \d.*/s  \d+:\d\d:\d\d left"


@pytest.mark.parametrize("tier", ["program", "native"])
def test_run_shows_iterations_and_says_where_it_was(counted, tier):
    with Terminal("run", counted, "m=1000000000000", "x=[1,2,3,4]", "--tier", tier) as terminal:
        assert re.search(BAR, terminal.read(until=BAR)), terminal.text
        assert terminal.interrupt() == 130
        last = terminal.text.rpartition("\r\x1b[K")[2]
        assert re.fullmatch(r"treadle: interrupted after [\d,]+ of 1,000,000,000,000 iterations\r\n", last), last
        assert int(re.search(r"after ([\d,]+)", last)[1].replace(",", "")) > 0


def test_a_loop_that_ends_by_a_condition_has_no_total(tmp_path):
    path = tmp_path / "endless.onnx"
    path.write_bytes(models.endless())
    pattern = r"\r\x1b\[K[\d,]+ iterations  \d.*/s"
    with Terminal("run", path, "go=1", "s0=0") as terminal:
        assert re.search(pattern, terminal.read(until=pattern)) and "%" not in terminal.text
        assert terminal.interrupt() == 130
        assert re.search(r"interrupted after [\d,]+ iterations", terminal.text)


def test_a_line_is_not_wider_than_the_terminal(counted):
    with Terminal("run", counted, "m=1000000000000", "x=[1,2,3,4]", columns=30) as terminal:
        terminal.read(until="%")
        terminal.interrupt()
        lines = terminal.text.partition("treadle:")[0].split("\r\x1b[K")
        assert max(map(len, lines)) == 29


def test_bench_shows_runs(counted):
    with Terminal("bench", counted, "m=100000", "x=[1,2,3,4]", "--seconds", "1.5") as terminal:
        status, out = terminal.end()
        assert status == 0 and "p50" in out
        assert re.search(r"\d% \[#+-*\] [\d,]+ of [\d,]+ runs  ", terminal.text)
        assert terminal.text.endswith("\r\x1b[K"), "the bar is gone"
    with Terminal("bench", counted, "m=100000", "x=[1,2,3,4]", "--seconds", "60") as terminal:
        terminal.read(until="runs")
        assert terminal.interrupt() == 130
        assert re.search(r"interrupted after \d+ runs", terminal.text)


def test_test_shows_cases(counted, tmp_path):
    for name, iterations in (("a", 3), ("b", 1 << 40)):
        data = tmp_path / "cases" / name / "test_data_set_0"
        data.mkdir(parents=True)
        (data.parent / "model.onnx").write_text(COUNTED)
        x = np.float32([1, 2, 3, 4])
        for i, array in enumerate((np.int64(iterations), x)):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
        (data / "output_0.pb").write_bytes(numpy_helper.from_array(np.sin(np.sin(np.sin(x)))).SerializeToString())
    with Terminal("test", tmp_path / "cases") as terminal:
        assert "1 of 2 cases" in terminal.read(until="1 of 2 cases.* b")
        assert terminal.interrupt() == 130
        assert "interrupted in b (program), after 1 of 2 cases" in terminal.text


@pytest.mark.parametrize("quiet", ["--json", "--quiet"])
def test_nothing_is_shown_where_it_is_not_wanted(counted, quiet):
    with Terminal("run", counted, "m=20000000", "x=[1,2,3,4]", "--tier", "program", quiet) as terminal:
        status, out = terminal.end()
        assert status == 0 and "y" in out
        assert terminal.text == ""


def test_nothing_is_shown_in_a_pipe(counted):
    arguments = [TOOL, "run", counted, "m=20000000", "x=[1,2,3,4]", "--tier", "program"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""


def test_an_interrupt_is_json_where_that_is_asked_for(counted):
    with Terminal("run", counted, "m=1000000000000", "x=[1,2,3,4]", "--json") as terminal:
        time.sleep(1)
        assert terminal.interrupt() == 130
        error = json.loads(terminal.process.stdout.read())["error"]
        assert error["code"] == "interrupted" and "of 1,000,000,000,000 iterations" in error["message"]

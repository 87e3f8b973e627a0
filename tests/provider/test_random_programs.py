"""Random control-flow programs in onnxruntime with treadle as its execution provider, beside onnxruntime alone."""

import os
import pathlib
import subprocess
import sys

import onnxruntime
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = 2000 if os.environ.get("TREADLE_TEST_LONG") else 40


@pytest.mark.skipif(int(onnxruntime.__version__.split(".")[1]) < 25, reason="the generator registers by name")
def test_random_programs_give_the_same():
    pytest.importorskip("treadle")
    command = [sys.executable, ROOT / "fuzz" / "provided.py", "--count", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-5].strip(",")) >= COUNT // 3, done.stdout  # that could be compared

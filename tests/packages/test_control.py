"""The control loop of examples/control balances its pole, and its pushes find their memory in place."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from commands import call

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "control"


@pytest.fixture(scope="module")
def loop(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("control")
    call("cmake", "-S", EXAMPLE, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    call("cmake", "--build", folder, "-j", os.cpu_count())
    return folder / "loop"


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy.onnx"
    said = call(sys.executable, EXAMPLE / "policy.py", path)
    assert float(re.search(r"at most (\S+) degrees", said)[1]) < 5
    return path


def test_the_pole_stays_upright(loop, policy):
    said = call(loop, policy, 2)
    assert "2000 periods of 1.000 ms" in said and "may be late" not in said, said
    assert float(re.search(r"at most (\S+) degrees", said)[1]) < 8, said
    assert re.search(r"^policy( +\d+\.\d\d){4}$", said, re.MULTILINE), said
    if "memory is not locked" not in said:
        assert "page faults 0," in said


def test_without_the_right_to_be_punctual(loop, policy):
    """The loop says what is not allowed, and goes on."""
    limited = ["prlimit", "--rtprio=0", "--memlock=0"]
    if os.geteuid() == 0:
        limited += ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    command = [*limited, loop, policy, "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "memory is not locked: " in done.stdout and "the scheduler is not SCHED_FIFO: " in done.stdout


def test_it_says_what_is_wrong(loop):
    for arguments, status, message in (
        ([], 2, "usage: "),
        (["nowhere.onnx"], 1, "nowhere.onnx"),
        (["nowhere.onnx", "0"], 2, "no such number of periods"),
    ):
        done = subprocess.run([loop, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status and message in done.stderr, done.stderr

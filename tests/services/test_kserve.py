"""treadle.serving.kserve: real servers on 127.0.0.1, asked by tritonclient, WebSockets and haproxy.

The SDK, the clients and the tests that use them, serving/check_*.py, have an environment of their own.
"""

import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))

from environment import make_venv  # noqa: E402

VENV = ROOT / "build" / "venv-kserve"
CHECKS = sorted((pathlib.Path(__file__).parent / "serving").glob("check_*.py"))


@pytest.fixture(scope="module")
def python():
    """The interpreter that has the SDK; of several processes that run tests, one makes the environment."""
    with VENV.with_name("venv-kserve.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_venv(VENV, ROOT / "tools" / "requirements-kserve.txt")
    return VENV / "bin" / "python"


@pytest.mark.parametrize("check", CHECKS, ids=lambda path: path.stem)
def test_serving(check, python, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("PYTEST_XDIST_WORKER", None)
    command = [python, "-m", "pytest", "-q", "-rs", "--tb=short", f"--basetemp={tmp_path / 'temp'}"]
    command += [f"--confcutdir={check.parent}", check]  # files above need packages of another environment
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]

"""Python environments that have Ray, or Dask, Spark and Daft, and programs run in them."""

import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))

from console import Failure  # noqa: E402
from environment import make_venv  # noqa: E402

RAY, TABLES = "ray", "tables"


def interpreter(name):
    """The interpreter of the environment made from tools/requirements-NAME.txt; skips where that cannot be installed."""
    venv = ROOT / "build" / f"venv-{name}"
    with open(venv.with_suffix(".lock"), "w") as lock:  # tests that run side by side share it
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            make_venv(venv, ROOT / "tools" / f"requirements-{name}.txt")
        except Failure as e:
            pytest.skip(f"tools/requirements-{name}.txt cannot be installed: {e}")
    return venv / "bin" / "python"


def run(python, program, folder, *arguments, check=True):
    """The output of a program; workers that an engine starts are of the same environment."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    env |= {"PYTHONPATH": str(ROOT / "build" / "python"), "RAY_USAGE_STATS_ENABLED": "0", "DO_NOT_TRACK": "1"}
    env |= {"PYSPARK_PYTHON": str(python), "PATH": f"{pathlib.Path(python).parent}:{env['PATH']}"}
    command = [str(python), str(program), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout

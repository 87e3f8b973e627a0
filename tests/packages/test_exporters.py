"""The test suites of spox, onnxscript, skl2onnx, tf2onnx and jax2onnx give on treadle what they give on onnxruntime."""

import fcntl
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools" / "devtool"), str(pathlib.Path(__file__).parent / "exporters")]

import suites  # noqa: E402
from console import Failure  # noqa: E402
from environment import make_venv  # noqa: E402

REPORTS = ROOT / "build" / "test" / "exporters"


def interpreter(suite):
    """The interpreter of the suite's environment; skips where the environment cannot be made."""
    venv = ROOT / "build" / f"venv-exporters-{suite.name}"
    with venv.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            make_venv(venv, suites.requirements(suite))
        except Failure as e:
            pytest.skip(f"{suites.requirements(suite).name} cannot be installed: {e}")
    return venv / "bin" / "python"


@pytest.mark.parametrize("name", suites.SUITES)
def test_suite(name, tmp_path):
    suite = suites.SUITES[name]
    python = interpreter(suite)
    REPORTS.mkdir(parents=True, exist_ok=True)
    source = suites.unpack(suite, python, tmp_path)
    peer, own = (
        suites.run(suite, python, source, engine, REPORTS / f"{name}-{engine}.xml")
        for engine in ("onnxruntime", "treadle")
    )
    print(f"{name}: onnxruntime {suites.counts(peer)}; treadle {suites.counts(own)}")
    without_reason, without_use = suites.unexplained(suite, suites.lost(peer, own))
    assert not without_reason, "\n".join(sorted(without_reason))
    assert not without_use, f"differences.toml has reasons that no test needs: {sorted(without_use)}"

"""Commands that hand their work to Python: `treadle serve`, and `treadle bench --with`."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import models
import numpy as np
import pytest
from treadle import _bench_with

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

# Stands for Python: writes down its arguments, and waits for its end where it is asked to.
FAKE = """#!{python}
import json, pathlib, signal, sys, time
pathlib.Path({seen!r}).write_text(json.dumps(sys.argv))
if "--log_level=DEBUG" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    pathlib.Path({seen!r} + ".ready").touch()
    time.sleep(60)
"""


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Where the arguments of the Python that the tool starts are written."""
    path = tmp_path / "seen.json"
    fake = tmp_path / "python"
    fake.write_text(FAKE.format(python=sys.executable, seen=str(path)))
    fake.chmod(0o755)
    monkeypatch.setenv("TREADLE_PYTHON", str(fake))
    return path


def test_serve_hands_its_options_on(seen):
    words = ["vad.onnx", "--time", "input=1", "--time", "y=0", "--hop", "512", "--no_page", "--bind", "sr=16000"]
    assert subprocess.run([TOOL, "serve", *words], check=False, timeout=60).returncode == 0
    module, *passed = json.loads(seen.read_text())[3:]
    assert module == "treadle.serving.kserve"
    assert sorted(passed) == ["--bind=sr=16000", "--hop=512", "--no_page", "--time=input=1", "--time=y=0", "vad.onnx"]


def test_serve_passes_a_request_to_end_on(seen):
    with subprocess.Popen([TOOL, "serve", "vad.onnx", "--log_level", "DEBUG"]) as process:
        latest = time.monotonic() + 60
        while not pathlib.Path(f"{seen}.ready").exists():
            assert time.monotonic() < latest and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 7


def test_bench_with_another_engine_gets_the_inputs(seen, tmp_path):
    (tmp_path / "add.onnx").write_bytes(models.add())
    words = [tmp_path / "add.onnx", "--random", "1", "--with", "onnxruntime", "--seconds", "0.5", "--threads", "1"]
    subprocess.run([TOOL, "bench", *words], check=True, capture_output=True, timeout=60)
    module, model, *passed = json.loads(seen.read_text())[3:]
    assert module == "treadle._bench_with" and model == str(tmp_path / "add.onnx")
    assert [word.partition("=")[2].partition("=")[0] for word in passed if word.startswith("--feed=")] == ["x", "y"]
    assert {"--seconds=0.5", "--threads=1"} <= set(passed)


def test_bench_with_another_engine_has_one_caller(tmp_path):
    (tmp_path / "add.onnx").write_bytes(models.add())
    words = [tmp_path / "add.onnx", "--random", "1", "--with", "onnxruntime", "--callers", "2"]
    done = subprocess.run([TOOL, "bench", *words], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--with times runs of one caller" in done.stderr


def test_runs_take_turns():
    order = []
    times = _bench_with.in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 0)
    assert order[:2] == ["a", "b"] and [len(found) >= 3 for found in times.values()] == [True, True]
    assert order[2:6] == ["a", "b", "a", "b"]


def test_the_table_has_percentiles_and_the_ratio():
    times = {"treadle": [1e-3, 2e-3, 3e-3], "onnxruntime 1": [2e-3, 4e-3, 9e-3]}
    lines = _bench_with.table(times).splitlines()
    assert lines[1].split() == ["p50", "2.000", "ms", "4.000", "ms", "2.00"]
    assert lines[-2].split() == ["maximum", "3.000", "ms", "9.000", "ms", "3.00"]
    assert json.loads(_bench_with.as_json(times))["ratio"] == 2


def test_both_engines_run_the_model(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "add.onnx").write_bytes(models.add())
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    words = [tmp_path / "add.onnx", tmp_path / "x.npy", "y=[1,2,3]", "--with", "onnxruntime", "--seconds", "0.05"]
    environment = os.environ | {"TREADLE_PYTHON": sys.executable}
    done = subprocess.run(
        [TOOL, "bench", *words, "--json"], check=True, capture_output=True, text=True, timeout=120, env=environment
    )
    found = json.loads(done.stdout)
    assert [engine["engine"].split()[0] for engine in found["engines"]] == ["treadle", "onnxruntime"]
    assert found["ratio"] > 0

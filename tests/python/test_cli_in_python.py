"""Commands that hand their work to Python."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

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

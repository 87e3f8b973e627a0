"""The code of docs/howto/triton.md, one block after the other, against a server."""

import contextlib
import io
import os
import re
import shutil
import subprocess

import numpy as np
import treadle
from triton_server import ROOT, TritonServer

PAGE = ROOT / "docs" / "howto" / "triton.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for kind, text in BLOCK.findall(PAGE.read_text()) if kind == language]


def test_code_blocks_are_of_three_languages():
    assert {kind for kind, _ in BLOCK.findall(PAGE.read_text())} == {"sh", "python", "text"}


def test_blocks_run(tmp_path, monkeypatch, backend):
    monkeypatch.chdir(tmp_path)
    vad = ROOT / "examples" / "vad" / "silero_vad.onnx"
    shutil.copy(vad, tmp_path)
    path = {"PATH": f"{ROOT / 'build' / 'bin'}:{os.environ['PATH']}"}
    [command] = blocks("sh")
    done = subprocess.run(["bash", "-ec", command], check=True, capture_output=True, text=True, env=os.environ | path)
    started = f"tritonserver --model-repository={tmp_path / 'models'} --backend-directory={ROOT / 'build/lib/backends'}"
    assert started in done.stderr
    names: dict = {}
    printed = io.StringIO()
    with TritonServer(tmp_path / "models") as server, contextlib.redirect_stdout(printed):
        for block in blocks("python"):
            exec(block.replace("localhost:8000", server.http), names)
        names["client"].close()
    lines = printed.getvalue().splitlines()
    assert len(lines) == 10 and lines[0] == "(1, 3, 1)"
    stream = treadle.InferenceSession(str(vad)).stream(
        time={"input": 1}, hop=512, context=64, bind={"sr": np.int64(16000)}
    )
    stream.push(names["chunks"][0][np.newaxis])
    expected = stream.push(names["chunks"][1][np.newaxis])
    np.testing.assert_allclose(names["speech"], expected.swapaxes(0, 1), rtol=1e-5, atol=1e-6)
    stream.load(names["snapshot"].tobytes())  # as the page says
